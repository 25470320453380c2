# SPDX-License-Identifier: BSD-3-Clause
# The simulator also shows its runs to the checker of histories.
$(B)/sim: $(HISTORY_LIB)

$(B)/unit/test_events: $(CHECKED)/tests/sim/events.o

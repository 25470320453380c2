# SPDX-License-Identifier: BSD-3-Clause
# The simulator also shows its runs to the checker of histories.
$(B)/sim: $(HISTORY_LIB)

$(UNIT_BIN): $(CHECKED)/tests/sim/events.o

# SPDX-License-Identifier: BSD-3-Clause
# The simulated world that the simulator and tests/sweep drive: no program of its own.

WORLD_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/world/*.c)))

$(B)/sim $(B)/sweep: $(WORLD_OBJ)
$(UNIT_BIN): $(addprefix $(CHECKED)/tests/world/,store.o journal.o txlog.o reference.o)
$(UNIT_BIN): $(CHECKED)/tests/unit/tx_party.o

-include $(WORLD_OBJ:.o=.d) $(CHECKED)/tests/unit/tx_party.d

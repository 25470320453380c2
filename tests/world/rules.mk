# SPDX-License-Identifier: BSD-3-Clause
# The simulated world that the simulator, tests/crash and tests/steps drive: no program of its own.

WORLD_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/world/*.c)))

$(B)/sim $(B)/crash $(B)/steps: $(WORLD_OBJ)
$(B)/unit/test_store: $(CHECKED)/tests/world/store.o

-include $(WORLD_OBJ:.o=.d)

# SPDX-License-Identifier: BSD-3-Clause
# The simulated world that the simulator, tests/crash and tests/steps drive: no program of its own.

WORLD_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/world/*.c)))

$(B)/sim $(B)/crash $(B)/steps $(B)/atomic: $(WORLD_OBJ)
TX_TESTS := $(addprefix $(B)/unit/test_tx,_calls _late _order _strangers) $(B)/unit/test_tx
$(B)/unit/test_store $(TX_TESTS): $(addprefix $(CHECKED)/tests/world/,store.o journal.o)
$(TX_TESTS): $(CHECKED)/tests/unit/tx_party.o
$(B)/unit/test_txlog: $(CHECKED)/tests/world/txlog.o $(CHECKED)/tests/world/reference.o

-include $(WORLD_OBJ:.o=.d) $(CHECKED)/tests/unit/tx_party.d

# SPDX-License-Identifier: BSD-3-Clause
# A server that lies, before the daemon. It shows most with B=build/asan SAN=address,undefined.
HOSTILE_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/hostile/*.c)))

$(B)/hostile: $(HOSTILE_OBJ) $(SIM_LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

-include $(HOSTILE_OBJ:.o=.d)

HOSTILE_ANSWERS ?= 100000
HOSTILE_SEED ?= 1

.PHONY: hostile
hostile: $(BIN) $(B)/hostile ## a server that lies, before the daemon (HOSTILE_ANSWERS=5000000 HOSTILE_SEED=1)
	$(B)/hostile $(BIN) --answers $(HOSTILE_ANSWERS) --seed $(HOSTILE_SEED)
	$(B)/hostile $(BIN) --answers $(HOSTILE_ANSWERS) --seed $(HOSTILE_SEED) --couchbase

# SPDX-License-Identifier: BSD-3-Clause
# Changes of several lists in one step, in all orders of steps of a bounded world.

ATOMIC_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/atomic/*.c)))

$(B)/atomic: $(ATOMIC_OBJ) $(SIM_LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

-include $(ATOMIC_OBJ:.o=.d)

.PHONY: atomic
atomic: $(B)/atomic ## every step of transactions crashed, and met by readers, writers and others
	$(RUNNER) $(B)/atomic --jobs $(JOBS:-j%=%)

programs: $(B)/atomic

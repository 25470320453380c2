# SPDX-License-Identifier: BSD-3-Clause
# Every step crashed: the list engine in all orders of events of bounded worlds.

SWEEP_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/sweep/*.c)))

$(B)/sweep: $(SWEEP_OBJ) $(SIM_LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

-include $(SWEEP_OBJ:.o=.d)

.PHONY: sweep
sweep: $(B)/sweep ## every step of every list operation crashed, failed and met by others (SWEEP_ARGS=...)
	$(RUNNER) $(B)/sweep --jobs $(JOBS:-j%=%) $(SWEEP_ARGS)

programs: $(B)/sweep

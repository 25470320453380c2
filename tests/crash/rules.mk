# SPDX-License-Identifier: BSD-3-Clause
# Every step crashed: the list engine in all orders of events of a bounded world.

CRASH_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/crash/*.c)))

$(B)/crash: $(CRASH_OBJ) $(SIM_LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

-include $(CRASH_OBJ:.o=.d)

.PHONY: crash
crash: $(B)/crash ## every step of every list operation crashed, failed and interleaved in turn
	$(RUNNER) $(B)/crash --jobs $(JOBS:-j%=%)

programs: $(B)/crash

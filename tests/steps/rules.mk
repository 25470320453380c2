# SPDX-License-Identifier: BSD-3-Clause
# Every step of what is done with lists of dialects: crashed, its answer lost, met by another proxy.

STEPS_OBJ := $(patsubst %.c,$(CHECKED)/%.o,$(sort $(wildcard tests/steps/*.c)))

$(B)/steps: $(STEPS_OBJ) $(SIM_LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

-include $(STEPS_OBJ:.o=.d)

.PHONY: steps
steps: $(B)/steps ## every step of what is done with lists of dialects, as make crash
	$(RUNNER) $(B)/steps --jobs $(JOBS:-j%=%)

programs: $(B)/steps

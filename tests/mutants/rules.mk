# SPDX-License-Identifier: BSD-3-Clause

# The daemon of the objects that unit tests and simulator have: what it needs is built for these.
$(CHECKED)/mclistd: $(CHECKED_OBJ) $(CHECKED)/src/main.o
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

.PHONY: mutants
mutants: ## plants known faults; the simulator, or the test that is named, must find each (MUTANTS="name name")
	@B='$(B)' CC='$(CC)' CFLAGS='$(CFLAGS)' WERROR='$(WERROR)' LTO='$(LTO)' \
	    scripts/run-mutants $(MUTANTS)

# SPDX-License-Identifier: BSD-3-Clause
# The real daemon under fire: see tests/torture/torture.
#
#   TORTURE_S=60      seconds under fire, over all scenarios
#   TORTURE_ARGS=     more options: --seed N, --only NAME, ...

TORTURE_S    ?= 60
TORTURE_ARGS ?=
RELAY_BIN    := $(B)/relay

$(RELAY_BIN): $(B)/obj/tests/torture/relay.o
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

-include $(B)/obj/tests/torture/relay.d

.PHONY: torture
torture: all $(RELAY_BIN) $(B)/check-history ## kills, pauses, cut links under load (TORTURE_S=60)
	MCLISTD="$${MCLISTD:-$(BIN)}" MCLISTD_RUNNER="$(RUNNER)" \
	    $(PYTHON) tests/torture/torture --build $(B) --seconds $(TORTURE_S) $(TORTURE_ARGS)

programs: $(RELAY_BIN) $(B)/check-history

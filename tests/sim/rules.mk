# SPDX-License-Identifier: BSD-3-Clause
# The simulator also shows its runs to the checker of histories.
$(B)/sim: $(HISTORY_LIB)

$(UNIT_BIN): $(CHECKED)/tests/sim/events.o

# The simulator for long, in worlds that no commit before has met: the first seed is the commit's.
#
#   SOAK_SEEDS=1000   of each kind of world
#   SOAK_FIRST=N      from that seed on: what a run with that number did, once more
#   SOAK_WORLDS=...   the kinds: options of build/sim, with commas between the options of one kind

COMMA         := ,
SOAK_SEEDS    ?= 1000
SOAK_DIALECTS := simple tombstone signed paired flip marker sublists ring
SOAK_WORLDS   ?= --dialect,native --no-times --transactions --couchbase --couchbase,--transactions \
                 --crowd $(SOAK_DIALECTS:%=--dialect,%) \
                 $(patsubst %,--couchbase$(COMMA)--dialect$(COMMA)%,$(filter-out paired,$(SOAK_DIALECTS)))
# Without git it is the second.
SOAK_FIRST    ?= $(shell commit=$$(git rev-parse HEAD 2>/dev/null | cut -c 1-8) && \
                     test -n "$$commit" && echo $$((0x$$commit * 100000)) || date +%s00000)

.PHONY: soak
soak: $(SIM_BIN) ## the simulator in worlds that the commit chooses (SOAK_SEEDS=1000 of each kind)
	@first=$(SOAK_FIRST); failed=0; log=$(B)/soak.log; : >$$log; \
	echo "all of it is in $$log; once more: make soak SOAK_SEEDS=$(SOAK_SEEDS) SOAK_FIRST=$$first"; \
	for world in $(SOAK_WORLDS); do \
	    options=$$(echo "$$world" | tr , ' '); seeds=$(SOAK_SEEDS); \
	    test "$$world" != --crowd || seeds=$$(((seeds + 99) / 100)); \
	    $(SIM_BIN) $$options --seeds $$seeds --first $$first --jobs $(JOBS:-j%=%) >$$log.last 2>&1 || \
	        { failed=1; grep -a '^FAILED: \|^VIOLATION: \|^again with: ' $$log.last; }; \
	    printf '%s: ' "$$options"; tail -n 1 $$log.last; cat $$log.last >>$$log; \
	done; rm -f $$log.last; exit $$failed

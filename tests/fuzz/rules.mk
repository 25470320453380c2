# SPDX-License-Identifier: BSD-3-Clause
# Fuzzing with libFuzzer, which is clang's: these targets use their own compiler and flags and keep
# to $(B)/fuzz. Each fuzz_NAME.c is one program; every other .c file here is linked to all of them.
# An input that is there runs again in the objects of the unit tests, which are built anyway: where
# it goes in the code does not matter then. It shows most with B=build/asan CC=clang
# SAN=address,undefined.
#
#   FUZZ_S=600      seconds per target
#   FUZZ_JOBS=1     targets at a time
#   FUZZ_ONLY=      only these: FUZZ_ONLY="engine config"

FUZZ_CC   ?= clang
FUZZ_S    ?= 600
FUZZ_JOBS ?= 1
FUZZ_ONLY ?=

FUZZ_SRC     := $(sort $(wildcard tests/fuzz/*.c))
FUZZ_NAMES   := $(patsubst tests/fuzz/fuzz_%.c,%,$(filter tests/fuzz/fuzz_%,$(FUZZ_SRC)))
FUZZ_WANTED  := $(if $(FUZZ_ONLY),$(FUZZ_ONLY),$(FUZZ_NAMES))
FUZZ_BIN     := $(FUZZ_WANTED:%=$(B)/fuzz/%)
# What is fuzzed: all that needs no sockets, how the pool speaks to servers, what proxies tell each
# other there, and what bridges read.
FUZZ_LIB_SRC := $(sort $(foreach d,base config proto list dialect,$(wildcard src/$(d)/*.c src/$(d)/*/*.c))) \
	src/pool/memcached/wire_memcached.c src/pool/couchbase/wire_couchbase.c \
	src/pool/gate_item.c src/pool/locate/shard.c src/proxy/bridge/flags.c src/proxy/bridge/text.c \
	src/proxy/client/binary.c src/proxy/plain/fill.c tests/world/store.c tests/world/journal.c tests/world/reference.c \
	tests/world/txlog.c $(filter-out tests/fuzz/fuzz_%,$(FUZZ_SRC))
FUZZ_LIB_OBJ := $(FUZZ_LIB_SRC:%.c=$(B)/fuzz/obj/%.o)
FUZZ_OBJ     := $(FUZZ_NAMES:%=$(B)/fuzz/obj/tests/fuzz/fuzz_%.o)
FUZZ_LIBS    := -linih -lcrypto -ljson-c -lmemcached -lm
REPLAY_BIN   := $(FUZZ_WANTED:%=$(B)/replay/%)

FUZZ_SANITIZERS := address,undefined
# Warnings that only gcc has are not for this compiler.
FUZZ_CFLAGS := -std=gnu11 -O1 -g -pthread -fPIE -fno-omit-frame-pointer -fno-sanitize-recover=all \
	$(filter-out -Wjump-misses-init -Wmaybe-uninitialized -Wlogical-op,$(WARNINGS)) $(WERROR) \
	-DMCLISTD_SLOW_CHECKS

$(B)/fuzz/obj/%.o: %.c tests/fuzz/rules.mk
	@mkdir -p $(@D)
	$(call say,CC  )$(FUZZ_CC) $(ALL_CPPFLAGS) $(FUZZ_CFLAGS) \
	    -fsanitize=fuzzer-no-link,$(FUZZ_SANITIZERS) -MMD -MP -c -o $@ $<

$(B)/fuzz/lib.a: $(FUZZ_LIB_OBJ)
$(B)/replay/lib.a: $(FUZZ_LIB_SRC:%.c=$(CHECKED)/%.o)
$(B)/fuzz/lib.a $(B)/replay/lib.a:
	@mkdir -p $(@D)
	$(call say,AR  )rm -f $@ && ar qcs $@ $^

$(FUZZ_NAMES:%=$(B)/fuzz/%): $(B)/fuzz/%: $(B)/fuzz/obj/tests/fuzz/fuzz_%.o $(B)/fuzz/lib.a
	$(call say,LINK)$(FUZZ_CC) -fsanitize=fuzzer,$(FUZZ_SANITIZERS) -pthread -pie -o $@ $^ $(FUZZ_LIBS)

$(REPLAY_BIN): $(B)/replay/%: $(CHECKED)/tests/fuzz/fuzz_%.o $(B)/replay/lib.a
	$(call say,LINK)$(FUZZ_CC) $(patsubst %,-fsanitize=%,fuzzer $(SAN)) -pthread -pie -o $@ $^ $(FUZZ_LIBS)

-include $(FUZZ_OBJ:.o=.d) $(FUZZ_LIB_OBJ:.o=.d) \
	$(patsubst tests/fuzz/%.c,$(CHECKED)/tests/fuzz/%.d,$(FUZZ_SRC))

.PHONY: fuzz
fuzz: $(FUZZ_BIN) ## fuzz all parsers, the list format and the engine (FUZZ_S=600 each, FUZZ_JOBS, FUZZ_ONLY)
	@FUZZ_S=$(FUZZ_S) FUZZ_JOBS=$(FUZZ_JOBS) tests/fuzz/run fuzz $(B)/fuzz $(FUZZ_WANTED)

.PHONY: fuzz-replay
fuzz-replay: $(REPLAY_BIN) ## every input that fuzzing has found worth keeping, once
	@FUZZ_JOBS=$(FUZZ_JOBS) tests/fuzz/run replay $(B)/replay $(FUZZ_WANTED)

.PHONY: fuzz-corpus
fuzz-corpus: $(FUZZ_BIN) ## chooses anew what of the inputs found is kept in tests/fuzz/corpus
	@tests/fuzz/run corpus $(B)/fuzz $(FUZZ_WANTED)

# SPDX-License-Identifier: BSD-3-Clause
# The benchmark: build/load is the load generator, tests/bench/run compares with other programs.
#
#   BENCH="get ladd"   only rows whose names begin so; the documents stay as they are
#   BENCH_S=1.5        seconds per measurement
#   BENCH_ARGS=        more options, as for tests/bench/run: --collections, --bucket, --long

BENCH      ?=
BENCH_S    ?= 1.5
BENCH_ARGS ?=

LOAD_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard tests/bench/*.c)))

$(B)/load: $(LOAD_OBJ)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lm

# What a bucket's rows have behind the proxy.
DOCUMENTS_OBJ := $(B)/obj/tests/cluster/documents.o

$(B)/documents: $(DOCUMENTS_OBJ)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

-include $(LOAD_OBJ:.o=.d) $(DOCUMENTS_OBJ:.o=.d)

.PHONY: bench
bench: $(BIN) $(B)/load $(B)/documents ## speed and memory beside other programs; 20 minutes (BENCH="get")
	scripts/install-deps --bench
	$(PYTHON) tests/bench/check-load $(B)/load
	$(PYTHON) tests/bench/run --build $(B) --seconds $(BENCH_S) \
	    $(BENCH_ARGS) $(BENCH)

.PHONY: bench-smoke
bench-smoke: $(BIN) $(B)/load $(B)/documents ## does each row of the benchmark run? Only instructions are measured
	scripts/install-deps --bench
	$(PYTHON) tests/bench/check-load $(B)/load
	$(PYTHON) tests/bench/run --build $(B) --smoke $(BENCH_ARGS) $(BENCH)
	$(PYTHON) tests/bench/instructions --build $(B)

programs: $(B)/load $(B)/documents

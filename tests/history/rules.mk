# SPDX-License-Identifier: BSD-3-Clause
# The checker of histories: build/check-history decides files of recorded operations, build/make-history
# writes random ones. HISTORY_LIB is what other programs link, together with src/base.

HISTORY_SRC  := $(sort $(wildcard tests/history/*.c))
HISTORY_OBJ  := $(HISTORY_SRC:%.c=$(CHECKED)/%.o)
HISTORY_ROOM := $(CHECKED)/tests/history
HISTORY_TRY  := $(HISTORY_ROOM)/generate.o $(HISTORY_ROOM)/brute.o
HISTORY_MAIN := $(HISTORY_ROOM)/main.o $(HISTORY_ROOM)/make_history.o
HISTORY_LIB  := $(filter-out $(HISTORY_MAIN) $(HISTORY_TRY),$(HISTORY_OBJ))
HISTORY_BASE := $(filter $(CHECKED)/src/base/%,$(CHECKED_OBJ))

.PHONY: history
history: $(B)/check-history $(B)/make-history ## build build/check-history, which decides recorded histories

$(B)/check-history: $(HISTORY_ROOM)/main.o $(HISTORY_LIB) $(HISTORY_BASE)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

$(B)/make-history: $(HISTORY_ROOM)/make_history.o $(HISTORY_ROOM)/generate.o $(HISTORY_LIB) $(HISTORY_BASE)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^

$(UNIT_BIN): $(HISTORY_LIB) $(HISTORY_TRY)

-include $(HISTORY_OBJ:.o=.d)

# mclistd: `make help` lists the targets.
#
# Variables worth setting:
#   CC=clang        another compiler (give it another B)
#   B=build/x       where everything is built; nothing is ever written elsewhere
#   SAN=address     sanitizers, as for -fsanitize=
#   WERROR=-Werror  warnings stop the build, as in `make check` and `make test`
#   LTO=            no link-time optimisation of the daemon; or options for another kind
#   ARGS="-v"       more options for `make run`
#   ONLY="chain log" only these unit tests: tests/unit/test_chain.c, test_log.c
#   DIRS="base"     only these folders of src, as long as others do not compile
#   PYTEST_ARGS=    more options for the wire tests
#   WIRE_TESTS=     only these, as for pytest: tests/wire/test_x.py::test_y
#   COMMIT=x        what -V says of the sources, where git cannot tell
#   V=1             show every command in full

VERSION := 0.2.0

# The last commit that changed the program; a commit of something else links nothing anew. Root asks
# as the owner does: `sudo make install` builds nothing anew either.
ifeq ($(origin COMMIT),undefined)
GIT = git --no-optional-locks -c safe.directory='*'
COMMIT := $(or $(shell test -e .git && \
	commit=$$($(GIT) log -1 --format=%h --abbrev=12 -- src Makefile 2>/dev/null) && \
	echo "$$commit$$($(GIT) status --porcelain -- src Makefile | sed -n '1s/.*/-changed/p')"),unknown)
endif

B      ?= build
PREFIX ?= /usr/local
# A private prefix keeps its own etc; a system one uses the system's.
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR    ?= $(PREFIX)/lib/systemd/system
PYTHON     ?= /usr/bin/python3

# --- flags -------------------------------------------------------------------

SAN    ?=
# Empty, so that next year's compiler, which may warn of more, can compile a release.
WERROR ?=
CFLAGS ?= $(if $(SAN),-O1,-O2) -g

WARNINGS := -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wvla -Wformat=2 -Wimplicit-fallthrough -Wunused-result

# Warnings that not every compiler has.
accepted = $(shell $(CC) -Werror $(1) -fsyntax-only -x c /dev/null >/dev/null 2>&1 && echo $(1))
WARNINGS += $(foreach w,-Wjump-misses-init -Wmaybe-uninitialized -Wlogical-op,$(call accepted,$(w)))

ifeq ($(SAN),)
HARDEN := -fstack-protector-strong \
	$(if $(filter -O0,$(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
else
# Instrumented code confuses the flow analysis of gcc, hence no maybe-uninitialized.
HARDEN := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer \
	$(if $(call accepted,-Wmaybe-uninitialized),-Wno-maybe-uninitialized)
endif

# Link-time optimisation saves the daemon 6 to 8 % of its processor time; only the daemon has it.
# Used where a program can be linked with it: clang needs a plug-in of the linker.
ifeq ($(origin LTO),undefined)
linkable = $(shell echo 'int main(void){return 0;}' | $(CC) $(1) -x c - -o /dev/null \
	>/dev/null 2>&1 && echo $(1))
LTO := $(if $(SAN),,$(call linkable,-flto=auto))
endif

ALL_CFLAGS  = -std=gnu11 $(CFLAGS) -pthread -fPIE $(WARNINGS) $(WERROR) $(HARDEN)
# The version is quoted for the shell; it reaches the compiler as a string literal.
ALL_CPPFLAGS = -D_GNU_SOURCE -Isrc -DMCLISTD_VERSION='"$(VERSION)"' $(CPPFLAGS)
ALL_LDFLAGS = -pthread -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(if $(SAN),-fsanitize=$(SAN)) \
	$(LDFLAGS)
LIBS       := -levent -levent_pthreads -lmemcached -linih -lssl -lcrypto -ljson-c -lresolv -lm

# --- files -------------------------------------------------------------------

# Two sets of objects: the daemon's, and those of unit tests and simulator, where CHECK_SLOW is
# alive. Sanitizer builds have it everywhere, so one set is enough.
CHECKED  := $(B)/$(if $(SAN),obj,checked)

BIN      := $(B)/mclistd
DIRS     ?= *
SRC      := $(sort $(wildcard $(foreach d,$(DIRS),src/$(d)/*.c src/$(d)/*/*.c)))
OBJ      := $(SRC:%.c=$(B)/obj/%.o)
CHECKED_OBJ := $(SRC:%.c=$(CHECKED)/%.o)
MAIN_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard src/main.c))

SUPPORT_SRC := $(sort $(wildcard tests/unit/support_*.c))
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(CHECKED)/%.o)
UNIT_SRC    := $(sort $(wildcard $(if $(ONLY),$(ONLY:%=tests/unit/test_%.c),tests/unit/test_*.c)))
UNIT_BIN    := $(B)/unit/tests

SIM_SRC := $(sort $(wildcard tests/sim/*.c))
SIM_OBJ := $(SIM_SRC:%.c=$(CHECKED)/%.o)
SIM_LIB := $(foreach d,base tls proto config list dialect,$(filter $(CHECKED)/src/$(d)/%,$(CHECKED_OBJ)))
SIM_BIN := $(if $(SIM_SRC),$(B)/sim)

UNIT_OBJ  := $(UNIT_SRC:%.c=$(CHECKED)/%.o) $(CHECKED)/tests/unit/run.o
ALL_OBJ   := $(OBJ) $(MAIN_OBJ) $(CHECKED_OBJ) $(SUPPORT_OBJ) $(SIM_OBJ) $(UNIT_OBJ)
C_FILES    = $(sort $(wildcard src/*.[ch] src/*/*.[ch] src/*/*/*.[ch] tests/*/*.[ch]))
JOBS      := -j$(shell nproc 2>/dev/null || echo 2)

# Sanitizer reports must end the program with a code that nothing else uses.
export ASAN_OPTIONS  ?= exitcode=66:detect_leaks=1
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS  ?= exitcode=66:halt_on_error=1:atexit_sleep_ms=50
# Bytecode is kept, but beside what else is built.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(abspath $(B))/pycache
# The thread sanitizer of older compilers does not survive large address randomisation.
RUNNER := $(if $(findstring thread,$(SAN)),$(shell setarch -R true 2>/dev/null && echo setarch -R))

ifneq ($(V),1)
say = @echo "  $(1)" $@;
endif

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

# --- building ----------------------------------------------------------------

.PHONY: all
all: $(if $(MAIN_OBJ),$(BIN) $(B)/mclistd-cli,$(OBJ)) ## build the daemon: build/mclistd

.PHONY: run
run: ## install what is missing, build, run in the foreground on 127.0.0.1:11220 (ARGS=...)
	scripts/install-deps --run
	$(MAKE) $(JOBS) all
	$(BIN) -p 11220 $(if $(filter -l --listen,$(ARGS)),,-l 127.0.0.1) $(ARGS)

.PHONY: try
try: ## install what is missing, build, a prompt with a private proxy (ARGS=...)
	scripts/install-deps --try
	$(MAKE) $(JOBS) all
	$(BIN) --try $(ARGS)

# `mclistd --try` looks for the prompt beside itself.
$(B)/mclistd-cli:
	@mkdir -p $(@D)
	@ln -sf $(CURDIR)/scripts/cli $@

# Everything that has to be compiled, without running any of it.
.PHONY: programs
programs: all $(UNIT_BIN) $(SIM_BIN)

$(OBJ) $(MAIN_OBJ): DAEMON_CFLAGS = $(LTO)

$(BIN): $(OBJ) $(MAIN_OBJ)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(LTO) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# What -V says is compiled for the daemon alone, when it changes.
BUILT := -DMCLISTD_COMMIT='"$(COMMIT)"' $(if $(LTO),-DMCLISTD_LTO) \
	$(if $(SAN),-DMCLISTD_SANITIZERS='"$(SAN)"')
$(B)/obj/src/base/version.o: private ALL_CPPFLAGS += $(BUILT)
$(B)/obj/src/base/version.o: $(B)/commit
$(B)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' > $@

# One program for all unit tests: the main() of each file goes by the file's name, and run.c calls it.
# Compiling what runs once took far longer than running it; warnings of what is not set need -O1.
UNIT_FLAGS = -Dmain=$(notdir $*)_main $(call accepted,-Wno-missing-prototypes) $(if $(SAN),-O0,-O1)
$(CHECKED)/tests/unit/test_%.o: private ALL_CFLAGS += $(UNIT_FLAGS)
$(CHECKED)/tests/unit/run.o: private ALL_CPPFLAGS += -I$(B)
$(CHECKED)/tests/unit/run.o: $(B)/unit/names.h
UNIT_NAMES := $(foreach t,$(UNIT_SRC:tests/unit/%.c=%),UNIT_TESTS($(t)))
$(B)/unit/names.h: FORCE
	@mkdir -p $(@D)
	@echo '$(UNIT_NAMES)' | cmp -s - $@ || echo '$(UNIT_NAMES)' > $@

$(UNIT_BIN): $(UNIT_OBJ) $(SUPPORT_OBJ) $(CHECKED_OBJ)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

$(B)/sim: $(SIM_OBJ) $(SIM_LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_CPPFLAGS) $(if $(SAN),-DMCLISTD_SLOW_CHECKS) $(ALL_CFLAGS) $(DAEMON_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/checked/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_CPPFLAGS) -DMCLISTD_SLOW_CHECKS $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# A header that the daemon needs, and Debian's package that has it.
HEADERS := event2/event.h:libevent-dev libmemcached/memcached.h:libmemcached-dev \
	ini.h:libinih-dev openssl/ssl.h:libssl-dev json-c/json.h:libjson-c-dev

# Rewritten only when the compiler or a flag changes: then all objects are built again, and it is
# seen whether all headers are there.
FLAGS_NOW := $(subst ','\'',$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LTO) $(ALL_LDFLAGS))
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || { \
	missing=; for header in $(HEADERS); do \
	echo "#include <$${header%:*}>" | $(CC) $(ALL_CPPFLAGS) -E -x c - >/dev/null 2>&1 || \
	missing="$$missing $${header#*:}"; done; \
	[ -z "$$missing" ] || { command -v $(firstword $(CC)) >/dev/null || \
	missing=" $(firstword $(CC)) (build-essential)"; \
	echo "missing:$$missing; scripts/install-deps --run installs what is needed" >&2; exit 1; }; \
	echo '$(FLAGS_NOW)' > $@; }
.PHONY: FORCE
FORCE:

-include $(ALL_OBJ:.o=.d)

# --- testing -----------------------------------------------------------------

.PHONY: test
test: ## everything, as on a fresh machine: dependencies, style, both compilers, all tests, sanitizers
	.ci/run

.PHONY: check
check: export WERROR = -Werror
check: ## the quick round before a commit: style, unit tests, simulator, most wire tests: 2 minutes
	$(MAKE) $(JOBS) style all unit sim
	$(MAKE) -j2 check-sim e2e PYTEST_ARGS='-m "not slow and not thorough"'

# Beside the wire tests, which it does not delay. All worlds, a third of what happens in them.
.PHONY: check-sim
check-sim: $(SIM_BIN)
	@nice $(B)/sim --ops 1000 --jobs $(JOBS:-j%=%) >$(B)/sim.log || { cat $(B)/sim.log; exit 1; }
	@tail -n 1 $(B)/sim.log

# Each on its own, so that -j runs several at a time; one that fails does not stop the others.
UNIT_RUN := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%.run)

.PHONY: unit
unit: $(UNIT_RUN) ## unit tests (ONLY="name name")
	@for t in $(UNIT_RUN:.run=); do test ! -e $$t.failed || exit 1; done

.PHONY: $(UNIT_RUN)
$(UNIT_RUN): %.run: $(UNIT_BIN)
	@rm -f $*.failed; \
	if timeout 300 $(RUNNER) $(UNIT_BIN) $(@F:.run=) >$*.log 2>&1; then \
	    sed -n "s|^\[  PASSED  \] \(.*\) test(s).*|ok      $(@F:.run=): \1|p" $*.log; \
	else \
	    code=$$?; touch $*.failed; \
	    { echo "FAILED  $(@F:.run=) (exit $$code):"; cat $*.log; } >$*.text; cat $*.text; rm $*.text; \
	fi

# The tests mostly wait: several at a time, where pytest-xdist is installed; with sanitizers less so.
PYTEST_PARALLEL = $(shell $(PYTHON) -c 'import xdist' 2>/dev/null && \
	echo '-n $(if $(SAN),4,6) --dist loadgroup')

WIRE_TESTS ?= tests/wire

.PHONY: e2e
e2e: all ## wire tests: the real daemon before real memcacheds (PYTEST_ARGS=...)
	MCLISTD=$(BIN) MCLISTD_RUNNER="$(RUNNER)" \
	    $(PYTHON) -m pytest -q -p no:cacheprovider $(PYTEST_PARALLEL) $(WIRE_TESTS) $(PYTEST_ARGS)

.PHONY: sim
sim: $(SIM_BIN) ## build build/sim, the list engine in a virtual world

.PHONY: model
model: ## check the models of how lists are stored, changed together, moved: docs/model
	scripts/check-model
	scripts/check-transactions
	scripts/check-servers

.PHONY: asan
asan: ## unit and wire tests under the address and undefined behaviour sanitizers
	$(MAKE) $(JOBS) B=$(B)/asan SAN=address,undefined unit
	$(MAKE) $(JOBS) B=$(B)/asan SAN=address,undefined MCLISTD_SLOW=3 e2e

.PHONY: tsan
tsan: ## unit and wire tests under the thread sanitizer
	$(MAKE) $(JOBS) B=$(B)/tsan SAN=thread unit
	$(MAKE) $(JOBS) B=$(B)/tsan SAN=thread MCLISTD_SLOW=5 e2e

# Rooms of tests with targets of their own.
-include $(sort $(wildcard tests/*/rules.mk))

.PHONY: style
style: ## folder ranks and style rules
	@scripts/check-layers
	@scripts/check-style

.PHONY: format
format: ## clang-format all C files in place
	clang-format -i $(C_FILES)

# --- installing --------------------------------------------------------------

# The scripts that are for operators, as commands: mclistd-NAME.
COMMANDS := convert sweep lists cli
PARTS    := convert lists servers cli
LIBDIR   := $(PREFIX)/lib/mclistd
MANDIR   ?= $(PREFIX)/share/man
COMPLETE := $(PREFIX)/share/bash-completion/completions
MAN      := mclistd-cli.1 mclistd.ini.5 mclist.7 mclistd.8 $(patsubst %,mclistd-%.8,convert lists sweep)
# Manual pages need Debian's lowdown; without it they are left out.
MAKE_MAN  = scripts/make-man "$(RUNNER) $(abspath $(BIN))" $(VERSION)
WITH_MAN := $(shell command -v lowdown >/dev/null && echo yes)

# The user of the unit, if there is one; without a name systemd makes one up at each start.
UNIT_USER ?=

.PHONY: man
man: all ## manual pages from the documents: build/man
	$(MAKE_MAN) $(B)/man

.PHONY: install
install: all ## install under DESTDIR and PREFIX; never overwrites a configuration
	install -D -m 755 $(BIN) $(DESTDIR)$(PREFIX)/bin/mclistd
	install -d $(PARTS:%=$(DESTDIR)$(LIBDIR)/mclistd_%)
	install -m 755 $(COMMANDS:%=scripts/%) $(DESTDIR)$(LIBDIR)
	install -m 644 scripts/mclistd_convert/*.py $(DESTDIR)$(LIBDIR)/mclistd_convert
	install -m 644 scripts/mclistd_lists/*.py $(DESTDIR)$(LIBDIR)/mclistd_lists
	install -m 644 scripts/mclistd_servers/*.py $(DESTDIR)$(LIBDIR)/mclistd_servers
	install -m 644 scripts/mclistd_cli/*.py docs/verbs.md $(DESTDIR)$(LIBDIR)/mclistd_cli
	for c in $(COMMANDS); do ln -sf ../lib/mclistd/$$c $(DESTDIR)$(PREFIX)/bin/mclistd-$$c; done
	$(if $(WITH_MAN),set -e; pages=$$(mktemp -d); $(MAKE_MAN) $$pages; for p in $(MAN); do \
	    install -D -m 644 $$pages/$$p $(DESTDIR)$(MANDIR)/man$${p##*.}/$$p; done; rm -r $$pages)
	test -e $(DESTDIR)$(SYSCONFDIR)/mclistd.ini || \
	    install -D -m 644 conf/mclistd.ini $(DESTDIR)$(SYSCONFDIR)/mclistd.ini
	install -D -m 644 conf/mclistd.bash-completion $(DESTDIR)$(COMPLETE)/mclistd
	ln -sf mclistd $(DESTDIR)$(COMPLETE)/mclistd-cli
	install -d $(DESTDIR)$(UNITDIR)
	sed -e 's|/usr/local/bin/|$(PREFIX)/bin/|' -e 's|/etc/mclistd.ini|$(SYSCONFDIR)/mclistd.ini|' \
	    $(if $(UNIT_USER),-e 's|^DynamicUser=yes|User=$(UNIT_USER)|') \
	    conf/mclistd.service > $(DESTDIR)$(UNITDIR)/mclistd.service
	chmod 644 $(DESTDIR)$(UNITDIR)/mclistd.service
	install -m 644 conf/mclistd.socket $(DESTDIR)$(UNITDIR)/mclistd.socket

.PHONY: uninstall
uninstall: ## remove what install put there, but not the configuration
	rm -f $(DESTDIR)$(PREFIX)/bin/mclistd $(COMMANDS:%=$(DESTDIR)$(PREFIX)/bin/mclistd-%)
	rm -rf $(DESTDIR)$(LIBDIR)
	rm -f $(DESTDIR)$(UNITDIR)/mclistd.service $(DESTDIR)$(UNITDIR)/mclistd.socket
	rm -f $(DESTDIR)$(COMPLETE)/mclistd $(DESTDIR)$(COMPLETE)/mclistd-cli
	rm -f $(foreach p,$(MAN),$(DESTDIR)$(MANDIR)/man$(patsubst .%,%,$(suffix $(p)))/$(p))

# dpkg-buildpackage wants debian/ beside the sources: a copy has it there. Nothing of this make's
# variables reaches the one within.
DEB_TREE := $(B)/deb/mclistd-$(VERSION)

.PHONY: deb
deb: ## a package for Debian: build/deb/*.deb (scripts/install-deps --deb has what it needs)
	rm -rf $(B)/deb
	mkdir -p $(DEB_TREE)
	cp -a LICENSE Makefile README.md conf docs scripts src $(DEB_TREE)
	cp -a conf/debian $(DEB_TREE)/debian
	cd $(DEB_TREE) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u B -u SAN -u PREFIX -u DESTDIR \
	    -u CFLAGS -u WERROR COMMIT=$(COMMIT) dpkg-buildpackage -b -us -uc

.PHONY: clean
clean: ## remove build/
	rm -rf $(B)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 15

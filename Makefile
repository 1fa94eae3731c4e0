# pullet: GNU make. `make help` lists the targets.
VERSION     := 0.1.0

PREFIX      ?= /usr/local
BINDIR      ?= $(PREFIX)/bin
SBINDIR     ?= $(PREFIX)/sbin
LIBDIR      ?= $(PREFIX)/lib
INCLUDEDIR  ?= $(PREFIX)/include
MANDIR      ?= $(PREFIX)/share/man
DOCDIR      ?= $(PREFIX)/share/doc/pullet
SYSCONFDIR  ?= /etc
RUNSTATEDIR ?= /run
LOCALSTATEDIR ?= /var
DESTDIR     ?=
INSTALL     ?= install
PKG_CONFIG  ?= pkg-config
CLANG       ?= clang

# ---- flags: a packager's CFLAGS and LDFLAGS win, what the code needs is added to them
CFLAGS      ?= -O2 -g
SAN         ?=
WERROR      ?=
V           ?=
comma       := ,
BUILD       := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

WARN     := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wformat=2 -Wundef -Wwrite-strings $(if $(WERROR),-Werror)
HARDEN   := $(if $(SAN),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong -fstack-clash-protection \
            $(if $(filter x86_64,$(shell uname -m)),-fcf-protection)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
DEFS     := -D_GNU_SOURCE -DPULLET_VERSION='"$(VERSION)"' -DPULLET_SYSCONFDIR='"$(SYSCONFDIR)"' \
            -DPULLET_RUNSTATEDIR='"$(RUNSTATEDIR)"' -DPULLET_LOCALSTATEDIR='"$(LOCALSTATEDIR)"'
ALL_CFLAGS  = -std=c11 $(WARN) $(HARDEN) -fPIE -pthread $(DEFS) $(SANFLAGS) $(CFLAGS) -MMD -MP
ALL_LDFLAGS = -pie -Wl,--as-needed,-z,relro,-z,now -pthread $(SANFLAGS) $(LDFLAGS)

AGENT_PKGS := libcurl libzmq yaml-0.1 libevent_core libevent_extra jansson libcrypto libpcre2-8
PKG_CFLAGS  = $(shell $(PKG_CONFIG) --cflags $(AGENT_PKGS))
PKG_LIBS    = $(shell $(PKG_CONFIG) --libs $(AGENT_PKGS)) -lm

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $@;)

# ---- what there is
LIB_SRC    := $(sort $(wildcard lib/*.c))
AGENT_SRC  := $(sort $(filter-out agent/main.c,$(wildcard agent/*.c agent/kinds/*.c)))
CLI_SRC    := $(sort $(wildcard agent/cli/*.c))
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c))
STRESS_SRC := $(sort $(wildcard tests/stress/stress_*.c))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SRC  := $(sort $(wildcard tests/bench/bench_*.c))
FLEET_SRC  := $(sort $(wildcard tests/fleet/*.c))
MAN        := agent/pulletd.8 agent/cli/pullet.1 agent/pullet.yaml.5 lib/libpullet.3

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
PROGRAMS := $(BUILD)/pulletd $(BUILD)/pullet
# the library for applications: what of lib/ they need, and nothing else of it visible
SONAME   := libpullet.so.0
LIBRARY  := $(BUILD)/$(SONAME) $(BUILD)/libpullet.a $(BUILD)/libpullet.pc
LIB_PIC  := $(BUILD)/pic/reader.o $(BUILD)/pic/snapshot.o
UNIT     := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_SRC))
STRESS   := $(patsubst tests/stress/%.c,$(BUILD)/stress/%,$(STRESS_SRC))
# the harness with seeded bugs; the third is an allocation, which sanitizers hide
BROKEN   := $(foreach n,1 2 $(if $(SAN),,3),$(BUILD)/stress/broken$(n))
REPLAY   := $(patsubst tests/fuzz/%.c,$(BUILD)/replay/%,$(FUZZ_SRC))
FUZZ     := $(patsubst tests/fuzz/%.c,build-fuzz/%,$(FUZZ_SRC))
BENCH_LIBS := -lev -luv -llmdb -lcdb
BENCH    := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
C_FILES  := $(shell find lib agent tests -name '*.[ch]' -not -path 'tests/model/*' 2>/dev/null | sort)

.PHONY: all programs tests help deps demo check check-run check-stress check-integration check-man check-coverage quickcheck \
        coverage model fleet fleet-etcd check-fleet check-bindings languages lint layers bench bench-languages torture fuzz install uninstall dist clean
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

all: $(PROGRAMS) $(LIBRARY) ## build pulletd, pullet and libpullet
tests: all $(UNIT) $(STRESS) $(BROKEN) $(REPLAY) $(BUILD)/fleet ## build the tests

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(if $(filter lib/%,$<),,$(PKG_CFLAGS)) -c -o $@ $<

$(BUILD)/lib.a: $(call obj,$(LIB_SRC))
	$(call say,AR)rm -f $@ && $(AR) rcD $@ $^
$(BUILD)/agent.a: $(call obj,$(AGENT_SRC))
	$(call say,AR)rm -f $@ && $(AR) rcD $@ $^

$(BUILD)/pic/%.o: lib/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(subst -fPIE,-fPIC,$(ALL_CFLAGS)) -c -o $@ $<
$(BUILD)/$(SONAME): $(LIB_PIC) lib/libpullet.map
	$(call say,LD)$(CC) $(subst -pie,-shared,$(ALL_LDFLAGS)) -Wl,-soname,$(SONAME),--version-script=lib/libpullet.map -o $@ $(LIB_PIC)
	@ln -sf $(SONAME) $(BUILD)/libpullet.so
$(BUILD)/libpullet.a: $(LIB_PIC)
	$(call say,AR)$(LD) -r -o $(BUILD)/pic/libpullet.o $^ && objcopy --wildcard --keep-global-symbol='pullet_*' $(BUILD)/pic/libpullet.o \
	  && rm -f $@ && $(AR) rcD $@ $(BUILD)/pic/libpullet.o
# each time: the directories may be others than last time
$(BUILD)/libpullet.pc: lib/libpullet.pc.in FORCE
	$(Q)sed 's|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' $< > $@

link = $(call say,LD)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)
$(BUILD)/pulletd: $(BUILD)/agent/main.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/pullet: $(call obj,$(CLI_SRC)) $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS) -lcmocka
$(BUILD)/stress/%: $(BUILD)/tests/stress/%.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/stress/broken%: tests/stress/stress_trigger.c $(BUILD)/lib.a
	$(call say,LD)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -DSTRESS_BREAK=$* $(ALL_LDFLAGS) -o $@ $^
$(BUILD)/fleet: $(call obj,$(FLEET_SRC)) $(BUILD)/lib.a
	$(link) -lm
$(BUILD)/replay/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS) $(BENCH_LIBS)

FORCE:

DEPENDENCIES := $(shell find $(BUILD) -name '*.d' 2>/dev/null)
$(DEPENDENCIES): ; # else the pattern of the broken harnesses would make them
-include $(DEPENDENCIES)

# ---- tests
PYTHON := /usr/bin/python3
RUN    := $(if $(findstring thread,$(SAN)),TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp) $(PYTHON) tests/run
SEP     = $(foreach p,$(1),$(p) --)

deps:
	@packaging/deps.sh --test

check: deps ## install what is missing, build, run all tests (about 10 minutes)
	@$(MAKE) --no-print-directory check-run

quickcheck: all tests ## unit tests, fuzz corpora, layers: a minute
	@$(RUN) $(call SEP,$(UNIT)) $(foreach r,$(REPLAY),$(r) tests/fuzz/corpus/$(patsubst $(BUILD)/replay/fuzz_%,%,$(r)) --) \
	        $(PYTHON) tests/layers/layers.py -- $(PYTHON) tests/layers/layers.py --self-test

check-stress: tests
	@$(RUN) --timeout 600 $(call SEP,$(STRESS)) tests/stress/seeded.sh $(BROKEN)

torture: deps ## readers against a writer that swaps 100,000 times: on tmpfs, ext4 and overlayfs (root; minutes)
	@$(MAKE) --no-print-directory $(BUILD)/stress/stress_snapshot
	@tests/stress/torture.sh $(BUILD)/stress/stress_snapshot

# left out where a sanitizer could see nothing: what tests the tests, and, for that of threads, what all runs in the loop's
UNSEEN      := $(if $(SAN),conformance readme) $(if $(findstring thread,$(SAN)),apollo consul etcd_faults fleet nacos s3 spring tls)
INTEGRATION  = $(sort $(filter-out $(patsubst %,tests/integration/test_%.py,$(UNSEEN)),$(wildcard tests/integration/test_*.py)))
# what looks at the whole machine, or loads it, runs alone
ALONE       := $(patsubst %,tests/integration/test_%.py,idle crash change_crash faults servers)
check-integration: all
	@export PULLET_BUILD=$(BUILD); bad=0; \
	$(RUN) --timeout 900 $(foreach t,$(filter $(ALONE),$(INTEGRATION)),$(PYTHON) $(t) --) || bad=1; \
	$(RUN) --timeout 900 --jobs 3 $(foreach t,$(filter-out $(ALONE),$(INTEGRATION)),$(PYTHON) $(t) --) || bad=1; exit $$bad

# one after the other, so that the output reads; a failure in one does not hide the next
check-run: all tests
	@rm -f $(BUILD)/sums; export PULLET_TEST_SUMS=$(BUILD)/sums; bad=0; \
	for part in quickcheck check-stress check-fleet check-integration $(if $(SAN),,check-man check-coverage check-bindings); do \
	  echo "== $$part"; $(MAKE) --no-print-directory $$part || bad=1; done; \
	awk '{ p += $$1; f += $$2 } END { printf "check: %d passed, %d failed\n", p, f }' $(BUILD)/sums; exit $$bad

check-man:
	@$(RUN) sh tests/man.sh $(MAN)

$(BUILD)/cpp/test_pullet: lib/cpp/test_pullet.cpp lib/cpp/pullet.hpp $(BUILD)/pic/snapshot.o $(BUILD)/$(SONAME)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 -O2 -Wall -Wextra -Wshadow -Wconversion $(if $(WERROR),-Werror) -Ilib -o $@ $< $(BUILD)/pic/snapshot.o \
	  -L$(BUILD) -lpullet -Wl,-rpath,$(abspath $(BUILD)) -pthread

check-bindings: all $(BUILD)/cpp/test_pullet
	@PYTHONDONTWRITEBYTECODE=1 PULLET_LIBRARY=$(abspath $(BUILD)/$(SONAME)) $(RUN) $(PYTHON) lib/python/test_pullet.py -- \
	  $(BUILD)/cpp/test_pullet -- sh -c '$(PYTHON) tests/golden/make.py --check && echo "1 passed, 0 failed"'

languages: ## install Go, Java and Node.js, test their bindings
	@packaging/deps.sh --all
	@$(MAKE) --no-print-directory all
	@PULLET_BUILD=$(abspath $(BUILD)) $(RUN) --timeout 600 sh lib/go/test.sh -- sh lib/java/test.sh -- sh lib/node/test.sh

check-fleet: tests
	@$(RUN) $(BUILD)/fleet --check $(if $(SAN),--agents 1000)

fleet: $(BUILD)/fleet ## simulate FLEET_AGENTS (100000) agents; table, CSV and charts into build/fleet-results
	@$< --agents $(or $(FLEET_AGENTS),100000) --out $(BUILD)/fleet-results

model: deps ## check the trigger's word and hand-over: all states (spin), the memory order (relacy); seeded bugs
	@$(RUN) --timeout 600 tests/model/run.sh

coverage: ## lines and branches of lib/ that the unit tests take; what is left, and why
	@tests/coverage.sh
check-coverage:
	@$(RUN) tests/coverage.sh

layers: ## check who includes whom, and that the check finds seeded violations
	@$(PYTHON) tests/layers/layers.py && $(PYTHON) tests/layers/layers.py --self-test

lint: deps ## format, shell scripts, static analysis
	@tests/lint.sh $(C_FILES)

bench-languages: ## measure: each binding beside its language's map, environment, and file parsed at each read
	@packaging/deps.sh --all
	@$(MAKE) --no-print-directory all
	@PULLET_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/bench/languages.py

bench: deps all $(BENCH) $(BUILD)/bench/etcd_probe ## measure: engine beside its peers, push and etcd to visible beside the bare hops
	@for b in $(BENCH) '$(PYTHON) tests/bench/etcd.py'; do PULLET_BUILD=$(BUILD) $$b || exit 1; done

fleet-etcd: deps all ## measure: 300 real agents, three members of etcd, one relay: a put until all have it, requests, memory
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/bench/fleet_etcd.py

fuzz: $(FUZZ) ## fuzz each parser for FUZZ_SECONDS (60) with clang
	@mkdir -p build-fuzz/found; for f in $(FUZZ); do n=$${f##*/fuzz_}; mkdir -p build-fuzz/corpus/$$n; \
	  $$f -max_total_time=$(or $(FUZZ_SECONDS),60) -timeout=5 -rss_limit_mb=512 -artifact_prefix=build-fuzz/found/ \
	    build-fuzz/corpus/$$n tests/fuzz/corpus/$$n || exit 1; done
build-fuzz/%: tests/fuzz/%.c $(LIB_SRC) $(AGENT_SRC)
	@mkdir -p $(@D)
	$(call say,FUZZ)$(CLANG) -std=c11 -O1 -g -fsanitize=fuzzer,address,undefined $(DEFS) $(PKG_CFLAGS) -pthread -o $@ $^ $(PKG_LIBS)

# ---- demo, install
demo: ## install what is missing, build, show a pull, a push, an outage and the recovery
	@packaging/deps.sh
	@$(MAKE) --no-print-directory all
	@PULLET_BUILD=$(BUILD) packaging/demo.sh

install: all ## install under DESTDIR/PREFIX
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SBINDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man5 \
	              $(DESTDIR)$(MANDIR)/man8 $(DESTDIR)$(DOCDIR)/examples $(DESTDIR)$(SYSCONFDIR)/pullet/conf.d
	$(INSTALL) -m 755 $(BUILD)/pulletd $(DESTDIR)$(SBINDIR)/pulletd
	$(INSTALL) -m 755 $(BUILD)/pullet $(DESTDIR)$(BINDIR)/pullet
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)
	$(INSTALL) -m 755 $(BUILD)/$(SONAME) $(DESTDIR)$(LIBDIR)/
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libpullet.so
	$(INSTALL) -m 644 $(BUILD)/libpullet.a $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 644 $(BUILD)/libpullet.pc $(DESTDIR)$(LIBDIR)/pkgconfig/
	$(INSTALL) -m 644 lib/pullet.h lib/cpp/pullet.hpp $(DESTDIR)$(INCLUDEDIR)/
	$(INSTALL) -m 644 agent/cli/pullet.1 $(DESTDIR)$(MANDIR)/man1/
	$(INSTALL) -m 644 agent/pullet.yaml.5 $(DESTDIR)$(MANDIR)/man5/
	$(INSTALL) -m 644 agent/pulletd.8 $(DESTDIR)$(MANDIR)/man8/
	$(INSTALL) -m 644 lib/libpullet.3 $(DESTDIR)$(MANDIR)/man3/
	for f in open refresh get wait each close; do ln -sf libpullet.3 $(DESTDIR)$(MANDIR)/man3/pullet_$$f.3; done
	$(INSTALL) -m 644 README.md ARCHITECTURE.md NEWS.md LICENSE lib/GUIDE.md lib/FORMAT.md $(DESTDIR)$(DOCDIR)/
	$(INSTALL) -m 644 etc/*.yaml $(DESTDIR)$(DOCDIR)/examples/

uninstall: ## remove what install put there; configuration and state stay
	rm -f $(DESTDIR)$(SBINDIR)/pulletd $(DESTDIR)$(BINDIR)/pullet $(DESTDIR)$(MANDIR)/man1/pullet.1 \
	      $(DESTDIR)$(LIBDIR)/$(SONAME) $(DESTDIR)$(LIBDIR)/libpullet.so $(DESTDIR)$(LIBDIR)/libpullet.a \
	      $(DESTDIR)$(LIBDIR)/pkgconfig/libpullet.pc $(DESTDIR)$(INCLUDEDIR)/pullet.h $(DESTDIR)$(INCLUDEDIR)/pullet.hpp \
	      $(DESTDIR)$(MANDIR)/man5/pullet.yaml.5 $(DESTDIR)$(MANDIR)/man8/pulletd.8 $(DESTDIR)$(MANDIR)/man3/libpullet.3 $(DESTDIR)$(MANDIR)/man3/pullet_*.3
	rm -rf $(DESTDIR)$(DOCDIR)
	rmdir $(DESTDIR)$(SYSCONFDIR)/pullet/conf.d $(DESTDIR)$(SYSCONFDIR)/pullet 2>/dev/null || true

dist: ## make pullet-VERSION.tar.gz, the same bytes every time
	git archive --format=tar --prefix=pullet-$(VERSION)/ HEAD | gzip -n > pullet-$(VERSION).tar.gz

clean: ## remove what was built
	rm -rf build build-*

help: ## print this
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile
	@echo "  Variables: PREFIX DESTDIR SYSCONFDIR BINDIR SBINDIR MANDIR CFLAGS LDFLAGS"
	@echo "             SAN=address,undefined | SAN=thread   WERROR=1   V=1   FUZZ_SECONDS=60   FLEET_AGENTS=100000"

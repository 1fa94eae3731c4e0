# pullet: GNU make. `make help` lists the targets.
VERSION     := 0.1.0

PREFIX      ?= /usr/local
BINDIR      ?= $(PREFIX)/bin
SBINDIR     ?= $(PREFIX)/sbin
LIBDIR      ?= $(PREFIX)/lib
INCLUDEDIR  ?= $(PREFIX)/include
MANDIR      ?= $(PREFIX)/share/man
DOCDIR      ?= $(PREFIX)/share/doc/pullet
DEVDOCDIR   ?= $(DOCDIR)
BASHDIR     ?= $(PREFIX)/share/bash-completion/completions
FISHDIR     ?= $(PREFIX)/share/fish/vendor_completions.d
ZSHDIR      ?= $(PREFIX)/share/zsh/site-functions
# not set: not installed
PYTHONDIR   ?=
UNITDIR     ?=
SYSUSERSDIR ?=
TMPFILESDIR ?=
SYSCONFDIR  ?= /etc
RUNSTATEDIR ?= /run
LOCALSTATEDIR ?= /var
DESTDIR     ?=
INSTALL     ?= install
PKG_CONFIG  ?= pkg-config
PLACES      := PREFIX BINDIR SBINDIR LIBDIR INCLUDEDIR MANDIR DOCDIR DEVDOCDIR SYSCONFDIR RUNSTATEDIR LOCALSTATEDIR PYTHONDIR UNITDIR SYSUSERSDIR TMPFILESDIR BASHDIR FISHDIR ZSHDIR
CLANG       ?= clang

# ---- flags: a packager's CFLAGS and LDFLAGS win, what the code needs is added to them
# a sanitizer's stacks are as good with less, in half the time to build; what gcc then takes for uninitialized, it sees right at -O2
CFLAGS      ?= $(if $(SAN),-O1 -g1 -Wno-maybe-uninitialized,-O2 -g)
SAN         ?=
WERROR      ?=
V           ?=
comma       := ,
BUILD       := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

# at -O1 gcc warns of ranges that it knows better at -O2: only the plain build takes warnings for errors
WARN     := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wformat=2 -Wundef -Wwrite-strings $(if $(SAN),,$(if $(WERROR),-Werror))
HARDEN   := $(if $(SAN),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong -fstack-clash-protection \
            $(if $(filter x86_64,$(shell uname -m)),-fcf-protection)
# a sanitized program is for tests, which start thousands: in one place, it need not be relocated each time
PIC      := $(if $(SAN),-fno-pie,-fPIE)
PIE      := $(if $(SAN),-no-pie,-pie)
# and they are linked two hundred at a time: gold takes a third of the time, where there is one
GOLD     := $(if $(SAN),$(if $(shell command -v ld.gold),-fuse-ld=gold))
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
DEFS     := -D_GNU_SOURCE -DPULLET_VERSION='"$(VERSION)"' -DPULLET_SYSCONFDIR='"$(SYSCONFDIR)"' \
            -DPULLET_RUNSTATEDIR='"$(RUNSTATEDIR)"' -DPULLET_LOCALSTATEDIR='"$(LOCALSTATEDIR)"'
# "room/file.h" is looked for in agent/, "lib/file.h" from the root
QUOTED   := -iquote agent -iquote .
ALL_CFLAGS  = -std=c11 $(WARN) $(HARDEN) $(PIC) -pthread $(DEFS) $(SANFLAGS) $(QUOTED) $(CPPFLAGS) $(CFLAGS) -MMD -MP
ALL_LDFLAGS = $(PIE) $(GOLD) -Wl,--as-needed,-z,relro,-z,now -pthread $(SANFLAGS) $(LDFLAGS)

AGENT_PKGS := libcurl libzmq yaml-0.1 libevent_core libevent_extra jansson libcrypto libssl libpcre2-8 zlib
PKG_CFLAGS  = $(shell $(PKG_CONFIG) --cflags $(AGENT_PKGS))
PKG_LIBS    = $(shell $(PKG_CONFIG) --libs $(AGENT_PKGS)) -lm
# what is tested is built as it is installed; to optimize the tests themselves was half of the time to build all; what gcc guesses there of lengths is wrong
$(BUILD)/tests/unit/%.o $(BUILD)/tests/fuzz/%.o: PKG_CFLAGS += -O0 -g1 -U_FORTIFY_SOURCE -Wno-format-truncation

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $@;)

# ---- what there is
LIB_SRC    := $(sort $(wildcard lib/*.c))
AGENT_SRC  := $(sort $(filter-out agent/main.c,$(shell find agent -name '*.c' -not -path 'agent/cli/*')))
CLI_SRC    := $(sort $(shell find agent/cli -name '*.c'))
UNIT_SRC   := $(sort $(shell find tests/unit -name 'test_*.c'))
STRESS_SRC := $(sort $(wildcard tests/stress/stress_*.c))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SRC  := $(sort $(wildcard tests/bench/bench_*.c))
FLEET_SRC  := $(sort $(wildcard tests/fleet/*.c))
SIM_SRC    := $(sort $(filter-out tests/sim/test_%,$(wildcard tests/sim/*.c)))
SIM_DISK   := $(sort $(wildcard tests/sim/disk*.c tests/sim/libc*.c))
# the core's model, around the product's own table
MODEL_SRC  := $(sort $(wildcard tests/model/core_*.c)) agent/config/decide.c
MAN        := agent/pulletd.8 agent/cli/pullet.1 agent/pullet.yaml.5 agent/pullet.7 lib/libpullet.3

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
PROGRAMS := $(BUILD)/pulletd $(BUILD)/pullet
# the library for applications: what of lib/ they need, and nothing else of it visible
SONAME   := libpullet.so.0
LIBRARY  := $(BUILD)/$(SONAME) $(BUILD)/libpullet.a $(BUILD)/libpullet.pc $(BUILD)/cmake/pulletConfig.cmake $(BUILD)/cmake/pulletConfigVersion.cmake
LIB_PIC  := $(BUILD)/pic/decode.o $(BUILD)/pic/explain.o $(BUILD)/pic/reader.o $(BUILD)/pic/path_watch.o $(BUILD)/pic/snapshot.o $(BUILD)/pic/writer.o
# the Python module, and its fast half where Python's headers are: one file for 3.10 and all later ones. A sanitized one cannot be loaded
PYTHON_CFLAGS := $(if $(SAN),,$(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --silence-errors --atleast-version=3.10 python3 && $(PKG_CONFIG) --cflags python3)))
PYTHON_MODULE := $(patsubst lib/%,$(BUILD)/%,$(sort $(wildcard lib/python/pullet/*.py) lib/python/pullet/py.typed)) $(if $(PYTHON_CFLAGS),$(BUILD)/python/pullet/_native.abi3.so)
UNIT     := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(UNIT_SRC))
STRESS   := $(patsubst tests/stress/%.c,$(BUILD)/stress/%,$(STRESS_SRC))
# the harness with seeded bugs; the third is an allocation, which sanitizers hide
BROKEN   := $(foreach n,1 2 4 5 $(if $(SAN),,3),$(BUILD)/stress/broken$(n))
REPLAY   := $(patsubst tests/fuzz/%.c,$(BUILD)/replay/%,$(FUZZ_SRC))
SIM      := $(BUILD)/sim/sim
SIM_TEST := $(patsubst %,$(BUILD)/sim/test_%,cut disk libc)
FUZZ     := $(patsubst tests/fuzz/%.c,build-fuzz/%,$(FUZZ_SRC))
BENCH_LIBS := -lev -luv -llmdb -lcdb
BENCH    := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
C_FILES  := $(shell find lib agent tests -name '*.[ch]' -not -path tests/model/stdatomic.h 2>/dev/null | sort)

.PHONY: all programs tests help deps demo check check-run check-stress check-integration check-man check-coverage quickcheck check-attack check-built seeded check-clean-root trace-programs random-values golden-cases \
        coverage coverage-agent coverage-agent-run sim-coverage sim-coverage-run mutants mutants-build model model-core fleet fleet-etcd bench-many check-fleet sim sim-bugs sim-fleet check-sim-fleet check-bindings languages check-servers check-packages packages-languages deb rpm sbom lint format layers bench bench-compare bench-languages torture soak soak-seeded fuzz install uninstall dist clean
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

all: $(PROGRAMS) $(LIBRARY) $(PYTHON_MODULE) ## build pulletd, pullet and libpullet
	$(if $(SAN)$(PYTHON_CFLAGS),@:,@echo "  skipped: Python's extension, for want of the headers of Python 3.10 or newer (python3-dev): the module reads through ctypes, ten times slower")
tests: all ## build the tests

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(if $(filter lib/%,$<),,$(PKG_CFLAGS)) -c -o $@ $<

# the status page is part of the program
$(BUILD)/agent/control/page/page.o: $(filter-out %.c %.h %/README,$(wildcard agent/control/page/*))

$(BUILD)/lib.a: $(call obj,$(LIB_SRC))
	$(call say,AR)rm -f $@ && $(AR) rcD $@ $^
$(BUILD)/agent.a: $(call obj,$(AGENT_SRC))
	$(call say,AR)rm -f $@ && $(AR) rcD $@ $^

# pullet without its main(), for its unit tests
$(BUILD)/cli.a: $(call obj,$(filter-out agent/cli/main.c,$(CLI_SRC)))
	$(call say,AR)rm -f $@ && $(AR) rcD $@ $^

$(BUILD)/pic/%.o: lib/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(subst $(PIC),-fPIC,$(ALL_CFLAGS)) -c -o $@ $<
$(BUILD)/$(SONAME): $(LIB_PIC) lib/libpullet.map
	$(call say,LD)$(CC) $(subst $(PIE),-shared,$(ALL_LDFLAGS)) -Wl,-soname,$(SONAME),--version-script=lib/libpullet.map -o $@ $(LIB_PIC)
	@ln -sf $(SONAME) $(BUILD)/libpullet.so
$(BUILD)/libpullet.a: $(LIB_PIC)
	$(call say,AR)$(LD) -r -o $(BUILD)/pic/libpullet.o $^ && objcopy --wildcard --keep-global-symbol='pullet_*' $(BUILD)/pic/libpullet.o \
	  && rm -f $@ && $(AR) rcD $@ $(BUILD)/pic/libpullet.o
# each time: the directories may be others than last time
$(BUILD)/libpullet.pc: lib/libpullet.pc.in FORCE
	$(Q)sed 's|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' $< > $@.$$$$ && mv $@.$$$$ $@
$(BUILD)/cmake/%.cmake: lib/cmake/%.cmake.in FORCE
	@mkdir -p $(@D)
	$(Q)sed 's|@INCLUDEDIR@|$(shell realpath -m --relative-to='$(LIBDIR)/cmake/pullet' '$(INCLUDEDIR)')|; s|@VERSION@|$(VERSION)|' $< > $@.$$$$ && mv $@.$$$$ $@

$(BUILD)/python/%: lib/python/%
	@mkdir -p $(@D) && cp $< $@
$(BUILD)/python/%.abi3.so: lib/python/%.c $(BUILD)/$(SONAME)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(subst $(PIC),-fPIC,$(ALL_CFLAGS)) -iquote lib $(PYTHON_CFLAGS) $(subst $(PIE),-shared,$(ALL_LDFLAGS)) -o $@ $< -L$(BUILD) -lpullet

link = $(call say,LD)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^)
$(BUILD)/pulletd: $(BUILD)/agent/main.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/pullet: $(call obj,$(CLI_SRC)) $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/unit/cli/%: $(BUILD)/tests/unit/cli/%.o $(BUILD)/cli.a $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS) -lcmocka
# push, simulated, in place of the agent's subscriber
$(BUILD)/unit/sim/test_push: $(call obj,$(filter-out %/push_strangers.c,$(wildcard tests/sim/push*.c)))
$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS) -lcmocka
$(BUILD)/stress/%: $(BUILD)/tests/stress/%.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/stress/broken%: tests/stress/stress_trigger.c $(BUILD)/lib.a
	$(call say,LD)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -DSTRESS_BREAK=$* $(ALL_LDFLAGS) -o $@ $^
$(BUILD)/fleet: $(call obj,$(FLEET_SRC)) $(BUILD)/lib.a
	$(link) -lm
$(BUILD)/core_model: $(call obj,$(MODEL_SRC))
	$(link)
# the simulator's seam: the names of libc that the linker wraps in its programs
SIM_WRAP := $(foreach n,$(shell cat tests/sim/wrap.txt),-Wl,--wrap=$(n))
$(BUILD)/sim/test_%: $(BUILD)/tests/sim/test_%.o $(call obj,$(SIM_DISK) tests/sim/test_world.c) tests/sim/wrap.txt
	$(link) $(SIM_WRAP) -ljansson -lcmocka
# the simulator: the product as it is built, and all that it asks the world for caught by the linker
$(BUILD)/sim/sim: $(call obj,$(SIM_SRC)) $(BUILD)/agent.a $(BUILD)/lib.a tests/sim/wrap.txt tests/sim/seam.txt tests/sim/seam.py
	$(link) $(SIM_WRAP) $(PKG_LIBS) -Wl,-Map=$@.map
	$(Q)$(PYTHON) tests/sim/seam.py $@.map
# the same with one file of the product that has a seeded bug (tests/sim/bugs.py writes it)
$(BUILD)/sim/bugs/%/sim: $(call obj,$(SIM_SRC)) $(BUILD)/sim/bugs/%/bug.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(SIM_WRAP) $(PKG_LIBS)
$(BUILD)/sim/bugs/%/bug.o: $(BUILD)/sim/bugs/%/bug.c
	$(call say,CC)$(CC) $(ALL_CFLAGS) $(PKG_CFLAGS) -iquote lib -w -c -o $@ $<
$(BUILD)/replay/fuzz_plan: $(call obj,agent/cli/rollout/plan.c)
$(BUILD)/replay/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS)
$(BUILD)/bench/%.so: tests/bench/%.c
	$(call say,LD)mkdir -p $(@D) && $(CC) $(subst $(PIC),-fPIC,$(ALL_CFLAGS)) $(subst $(PIE),-shared,$(ALL_LDFLAGS)) -o $@ $<
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/agent.a $(BUILD)/lib.a
	$(link) $(PKG_LIBS) $(BENCH_LIBS)
$(PROGRAMS) $(UNIT) $(STRESS) $(REPLAY) $(BUILD)/fleet: $(if $(findstring thread,$(SAN)),$(BUILD)/tests/tsan.o)

FORCE:

DEPENDENCIES := $(shell find $(BUILD) -path $(BUILD)/packages -prune -o -type f -name '*.d' -print 2>/dev/null)
$(DEPENDENCIES): ; # else the pattern of the broken harnesses would make them
-include $(DEPENDENCIES)

# ---- tests
PYTHON := /usr/bin/python3
RUN    := $(PYTHON) tests/run
SEP     = $(foreach p,$(1),$(p) --)
# the sum of what tests/run wrote to a file, under this name
sum     = awk '{ p += $$1; f += $$2; s += $$3 } END { printf "$(1): %d passed, %d failed", p, f; if (s) printf ", %d skipped", s; print "" }'

deps: ## install what building and testing need (root)
	@packaging/deps.sh --test

# what each part runs; `make check` runs all of them in one pool, what takes longest first
PARTS       := quickcheck check-integration check-attack check-stress check-fleet $(if $(SAN),,check-man check-coverage check-bindings)
# tests mostly wait, so more run at a time than there are processors
JOBS        ?= 6

check: deps ## install what is missing, build, run all tests (how long: CONTRIBUTING.md)
	@$(MAKE) --no-print-directory check-run

quickcheck: all tests ## unit tests, fuzz corpora, a short simulation, layers
	@$(RUN) --again --jobs 3 $(RUN_quickcheck)
# what takes longest begins first; the sanitizer of threads has nothing to see where there is one
SLOW        := $(patsubst %,$(BUILD)/unit/%,http/test_client publish/test_publish lib/test_reader pull/test_watch crypto/test_minisign fleet/test_report publish/test_file_set)
# these start a thread, as strace sees it (clone3 with CLONE_THREAD), by themselves or by what they test
CROSSING_UNIT := base/test_loop lib/test_reader lib/test_trigger notify/test_reload process/test_process publish/test_file_set pull/test_exchange \
                 pull/test_local_file pull/test_pull push/test_peer_guard relay/test_listener schema/test_schema \
                 $(patsubst tests/unit/%.c,%,$(shell grep -rl --include='test_*.c' 'pthread_create' tests/unit))
UNIT_thread = $(filter $(sort $(patsubst %,$(BUILD)/unit/%,$(CROSSING_UNIT))),$(UNIT))
# memory that runs out: a sanitizer allocates in its own way
UNIT_run    = $(if $(findstring thread,$(SAN)),$(UNIT_thread),$(if $(SAN),$(filter-out %_memory,$(UNIT)),$(UNIT)))
tests: $(UNIT_run) $(STRESS) $(BROKEN) $(if $(findstring thread,$(SAN)),,$(REPLAY) $(SIM_TEST)) $(BUILD)/fleet $(if $(SAN),,$(BUILD)/core_model $(SIM))
RUN_replay  = $(foreach r,$(REPLAY),$(r) tests/fuzz/corpus/$(patsubst $(BUILD)/replay/fuzz_%,%,$(r)) --)
RUN_layers  = $(PYTHON) tests/layers/layers.py -- $(PYTHON) tests/layers/layers.py --self-test -- $(PYTHON) tests/mutants/self_test.py --
RUN_quickcheck = $(call SEP,$(filter $(UNIT_run),$(SLOW)) $(filter-out $(SLOW),$(UNIT_run))) $(if $(findstring thread,$(SAN)),,$(RUN_replay) $(call SEP,$(SIM_TEST))) $(if $(SAN),,$(if $(SIM),$(SIM) --seeds 200 -- $(RUN_check-sim-fleet)) $(RUN_layers))

# quick, and on no other program, user or network
BUILT       := $(filter-out %/test_reader,$(filter $(BUILD)/unit/lib/% $(BUILD)/unit/text/% $(BUILD)/unit/document/%,$(UNIT)))
check-built: $(BUILT) ## unit tests of lib/ and of documents: what the Debian packages run as they are built (seconds)
	@unset PULLET_TEST_SUMS PULLET_SLOTS; $(RUN) --jobs 2 $(call SEP,$(BUILT)) # a test of packages has these

RUN_check-stress = $(call SEP,$(STRESS)) tests/stress/seeded.sh $(BROKEN) --
check-stress: tests ## threads and processes against each other, and the bugs that must be found so
	@$(RUN) --timeout 600 $(RUN_check-stress)

# each power cut is of a file system of its own, so all kinds of it run beside each other
POWER_CUTS   := ext4_normal ext4_strict xfs_normal xfs_strict ext4_eager ext4_eager_strict ext4_copy ext4_copy_strict xfs_copy xfs_copy_strict seeded
POWER        := $(foreach c,ext4 xfs seeded,$(PYTHON) tests/stress/power_blocks.py $(c) --) $(foreach c,$(POWER_CUTS),$(PYTHON) tests/stress/power_cut.py $(c) --)
HARD         := $(foreach c,black_hole reset loss slow dead_dns seeded_busy seeded_deaf seeded_slow_end,$(PYTHON) tests/stress/network.py $(c) --) $(PYTHON) tests/stress/clock.py --
torture: deps ## readers beside 100,000 swaps on five file systems; 2,000 power cuts on ext4 and XFS, one after each write; bad networks, other clocks; all calls, allocations and damages (root, loop devices; minutes)
	@$(MAKE) --no-print-directory all $(BUILD)/stress/stress_snapshot
	@export PULLET_BUILD=$(BUILD); bad=0; $(RUN) --timeout 1800 tests/stress/torture.sh $(BUILD)/stress/stress_snapshot || bad=1; \
	$(RUN) --timeout 1800 --jobs 4 $(POWER) $(HARD) || bad=1; \
	PULLET_TEST_POINTS=all $(RUN) --timeout 3600 $(foreach t,calls allocations damage,$(PYTHON) tests/integration/test_$(t).py --) || bad=1; exit $$bad

soak: deps ## 20 configs, 50 changes a second, reloads, restarts, readers in six languages for SOAK_MINUTES (20): memory, descriptors, threads, files are flat
	@packaging/deps.sh --all
	@$(MAKE) --no-print-directory all
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/soak/soak.py Soak
soak-seeded: all ## the bugs that the soak must find, a minute each
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/soak/soak.py Seeded

# what sanitizers cannot see: what tests the tests, or preloads what they do; and what also measures, which they change
UNSEEN      := allocations blocks calls completions conformance damage outage readme scalars steady suite
MEASURING   := endless network service idle crash change_crash servers
# of others, which that of memory sees whole, the cases that measure
MEASURED    := fleet:Reader.test_ten_thousand_hosts relay:Upstream.test_stop_is_quick_while_upstream_and_a_subscriber_hang sighup:Reload.test_one_of_a_thousand \
               http:Hostile.test_ten_thousand_connections_one_after_the_other,Hostile.test_without_descriptors_nothing_spins,Hostile.test_answers_that_nobody_reads_are_bounded
# where two threads meet: what else there is runs in the loop's thread alone, and the sanitizer of memory sees that
THREADED    := agent change convergence curve flood kinds_local operate push relay sighup
# killed at each system call, without a sanitizer: what counts is what then lies on the disk. `crash` recovers under that of memory, the same threads meet in `change`
KILLED      := change_crash
programs     = $(patsubst %,tests/$(1)/test_%.py,$(2))
all_of       = $(sort $(wildcard tests/$(1)/test_*.py))
# ONCE=1, for .ci/run: what the sanitizer of memory's run sees too is left to that
VIEW        := $(if $(findstring thread,$(SAN)),thread,$(if $(SAN),memory,$(if $(ONCE),once,all)))
integration_all    = $(call all_of,integration)
integration_once   = $(call programs,integration,$(UNSEEN) $(MEASURING))
integration_memory = $(filter-out $(call programs,integration,$(UNSEEN) $(KILLED)),$(integration_all))
integration_thread = $(call programs,integration,$(THREADED))
INTEGRATION        = $(integration_$(VIEW))
# what takes longest begins first
LONG        := $(call programs,integration,fleet blocks change_crash misbehaviour nacos relay outage http sighup etcd sign push operate change consul apollo flood servers desync)
RUN_check-integration = $(foreach t,$(filter $(INTEGRATION),$(LONG)) $(filter-out $(LONG),$(INTEGRATION)),$(PYTHON) $(t) --) \
	  $(if $(filter once,$(VIEW)),$(foreach m,$(MEASURED),$(PYTHON) tests/integration/test_$(subst $(comma), ,$(subst :,.py ,$(m))) --))
check-integration: all ## the programs beside real servers
	@PULLET_BUILD=$(BUILD) $(RUN) --again --timeout 900 --jobs $(JOBS) $(RUN_check-integration)

# a sanitizer has memory of its own, so what measures that is left out; that of threads is shown what crosses them
UNMEASURED  := push_memory documents
CROSSING    := answers push_replay relay_hostile withdrawn
attack_all    = $(call all_of,attack)
attack_once   = $(call programs,attack,$(UNMEASURED) answers control_socket serve)
attack_memory = $(filter-out $(call programs,attack,$(UNMEASURED)),$(attack_all))
attack_thread = $(call programs,attack,$(CROSSING))
LONG_ATTACK   = $(call programs,attack,control_socket receipts hooks secrets relay_hostile)
RUN_check-attack = $(foreach t,$(filter $(attack_$(VIEW)),$(LONG_ATTACK)) $(filter-out $(LONG_ATTACK),$(attack_$(VIEW))),$(PYTHON) $(t) --)
check-attack: all ## hostile servers, peers and users against them
	@PULLET_BUILD=$(BUILD) $(RUN) --again --timeout 900 --jobs $(JOBS) $(RUN_check-attack)

# in a copy of the tree, below build/
seeded: all ## put each hole back that was closed, and see that its test fails (SEEDS="words of names"; QUICK=1: what unit tests see; THIRD=0..2: every third; root; 12 minutes)
	@$(PYTHON) tests/attack/seeded.py $(if $(QUICK),--units) $(if $(THIRD),--third $(THIRD)) $(SEEDS)

# long ones first
check-run:
	@$(MAKE) --no-print-directory -j$$(nproc) tests $(if $(SAN),,$(if $(filter check-bindings,$(PARTS)),$(CPP_TESTS) random-values golden-cases))
	@$(if $(SAN),$(MAKE) --no-print-directory SAN= build/$(SONAME)) # a sanitized one cannot be loaded by Python
	@rm -f $(BUILD)/sums; export PULLET_BUILD=$(BUILD) PULLET_TEST_SUMS=$(BUILD)/sums; bad=0; \
	$(RUN) --again --timeout 900 --jobs $(JOBS) $(foreach p,$(filter check-integration check-attack,$(PARTS)) $(filter-out check-integration check-attack,$(PARTS)),$(RUN_$(p))) || bad=1; \
	$(call sum,check) $(BUILD)/sums; exit $$bad

# with --seccomp-bpf nothing but execve stops; what traces by itself fails under a tracer, and is seen all the same
trace-programs: deps tests ## run all tests under strace, keep what they execute in tests/programs.txt (root)
	@strace -f -z -qq --seccomp-bpf -e trace=execve -e signal=none -o $(BUILD)/programs.trace $(MAKE) --no-print-directory check-run || true
	@$(PYTHON) tests/programs.py $(BUILD)/programs.trace >$(BUILD)/programs.txt && mv $(BUILD)/programs.txt tests/programs.txt

check-clean-root: ## make demo and make check on a fresh minimal Debian (root; QUICK=1; SHAPE=chroot, container, user or bare)
	@tests/clean_root.sh $(if $(QUICK),--quick) $(or $(SHAPE),chroot)

RUN_check-man = sh tests/man.sh $(MAN) -- $(PYTHON) tests/man.py -- $(PYTHON) tests/man.py --self-test --
check-man: $(PROGRAMS) ## the man pages against what the programs have
	@PULLET_BUILD=$(BUILD) $(RUN) $(RUN_check-man)

$(BUILD)/cpp/test_pullet: lib/cpp/test_pullet.cpp lib/cpp/pullet.hpp $(BUILD)/pic/snapshot.o $(BUILD)/$(SONAME)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 -O2 -Wall -Wextra -Wshadow -Wconversion $(if $(WERROR),-Werror) -Ilib -o $@ $< $(BUILD)/pic/snapshot.o \
	  -L$(BUILD) -lpullet -Wl,-rpath,$(abspath $(BUILD)) -pthread

$(BUILD)/cpp/test_cases: lib/cpp/test_cases.cpp lib/cpp/pullet.hpp $(BUILD)/$(SONAME)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 -O1 -Wall -Wextra -Wshadow -Wconversion $(if $(WERROR),-Werror) -Ilib $$($(PKG_CONFIG) --cflags jansson) -o $@ $< \
	  -L$(BUILD) -lpullet -Wl,-rpath,$(abspath $(BUILD)) $$($(PKG_CONFIG) --libs jansson)
CPP_TESTS = $(BUILD)/cpp/test_pullet $(BUILD)/cpp/test_cases

# thousands of texts that every language must read alike; PULLET_SEED repeats them
VALUES = $(BUILD)/values
random-values:
	@$(PYTHON) tests/golden/make.py --random $(VALUES) $(PULLET_SEED)
# and the images of tests/golden/cases.json
CASES = $(BUILD)/cases
golden-cases: $(BUILD)/pullet
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/golden/cases.py $(CASES)

# through ctypes, and with the extension
TEST_PYTHON = env PYTHONDONTWRITEBYTECODE=1 PULLET_LIBRARY=$(abspath $(BUILD)/$(SONAME)) PULLET_VALUES=$(abspath $(VALUES)/random) PULLET_CASES=$(abspath $(CASES)) $(1) $(PYTHON) lib/python/test_pullet.py --
RUN_check-bindings = $(call TEST_PYTHON) $(if $(PYTHON_CFLAGS),$(call TEST_PYTHON,PULLET_PYTHON=$(abspath $(BUILD)/python))) \
	  $(BUILD)/cpp/test_pullet tests/golden/values $(VALUES)/random -- $(BUILD)/cpp/test_cases tests/golden/cases.json $(CASES) -- \
	  sh -c '$(PYTHON) tests/golden/make.py --check && echo "1 passed, 0 failed"' --
check-bindings: all $(CPP_TESTS) random-values golden-cases ## C++ and Python against C, value by value
	@$(RUN) $(RUN_check-bindings)

languages: ## install Go, Java and Node.js, test their bindings
	@packaging/deps.sh --all
	@$(MAKE) --no-print-directory all random-values golden-cases VALUES=$(BUILD)/values-languages CASES=$(BUILD)/cases-languages
	@PULLET_BUILD=$(abspath $(BUILD)) PULLET_VALUES=$(abspath $(BUILD)/values-languages/random) PULLET_CASES=$(abspath $(BUILD)/cases-languages) $(RUN) --timeout 600 --jobs 3 sh lib/go/test.sh -- sh lib/java/test.sh -- sh lib/node/test.sh

# nothing of it is kept: s3rver comes from npm into a temporary folder
check-servers: ## servers of others: the kind s3 before s3rver (npm) and Ceph's radosgw (root, network; a minute)
	@packaging/deps.sh --servers
	@$(MAKE) --no-print-directory all
	@PULLET_BUILD=$(BUILD) $(RUN) --timeout 300 --jobs 1 $(foreach t,$(call all_of,servers),$(PYTHON) $(t) --)

RUN_check-fleet = $(BUILD)/fleet --check $(if $(SAN),--agents 1000) --
check-fleet: tests ## what a simulated fleet asks of its servers, within its bounds
	@$(RUN) $(RUN_check-fleet)

fleet: $(BUILD)/fleet ## simulate FLEET_AGENTS (100000) agents; table, CSV and charts into build/fleet-results
	@$< --agents $(or $(FLEET_AGENTS),100000) --out $(BUILD)/fleet-results

sim: $(BUILD)/sim/sim ## live thousands of simulated minutes of the whole agent (SEEDS=1000 FROM=1 HOURS=; SEED=S TRACE=1 TROUBLES=N for one)
	@$< $(if $(HOURS),--hours $(HOURS)) $(if $(TROUBLES),--troubles $(TROUBLES)) \
	  $(if $(SEED),--seed $(SEED) $(if $(TRACE),--trace),--seeds $(or $(SEEDS),1000) --from $(or $(FROM),1) --jobs $$(nproc))
sim-bugs: $(BUILD)/sim/sim ## put seeded bugs into the agent: the simulator must find each (THIRD=0..2: every third; BUGS="words of names")
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/sim/bugs.py $(if $(THIRD),--third $(THIRD)) $(BUGS)
sim-fleet: $(BUILD)/sim/sim ## lives of a simulated fleet (SEEDS=20 FROM=1 HOSTS=200; SEED=S TRACE=1 for one)
	@$< --fleet --hosts $(or $(HOSTS),200) $(if $(TROUBLES),--troubles $(TROUBLES)) \
	  $(if $(SEED),--seed $(SEED) $(if $(TRACE),--trace),--seeds $(or $(SEEDS),20) --from $(or $(FROM),1) --jobs $$(nproc))
# each life twice: the same seed is the same life
RUN_check-sim-fleet = $(BUILD)/sim/sim --fleet --hosts 60 --seeds 3 --twice --
check-sim-fleet: $(BUILD)/sim/sim
	@$(RUN) $(RUN_check-sim-fleet)

model: deps $(BUILD)/core_model ## check the trigger's word and hand-over: all states (spin), the memory order (relacy); seeded bugs; model-core
	@PULLET_BUILD=$(BUILD) $(RUN) --timeout 1200 tests/model/run.sh -- tests/model/core.sh
model-core: $(BUILD)/core_model ## check the table of the core: all facts, all worlds, random lives (PULLET_SEED repeats them), seeded bugs (seconds)
	@PULLET_BUILD=$(BUILD) $(RUN) tests/model/core.sh

coverage: ## lines and branches of lib/ that the unit tests take; what is left, and why
	@tests/coverage.sh
RUN_check-coverage = tests/coverage.sh --
check-coverage: ## lines and branches of lib/ that its tests take, within their bounds
	@$(RUN) $(RUN_check-coverage)

# in a build folder of its own, which is kept: the next time builds only what changed. The tests of lib/ run nothing of agent/
COVERED     := build-coverage
coverage-agent: ## lines of agent/ that the unit tests take, by room (FUNCTIONS=N: and the N largest holes)
	@$(MAKE) --no-print-directory BUILD=$(COVERED) HARDEN= CFLAGS='-O1 -g1' LDFLAGS='--coverage -Wl,--wrap=_exit' coverage-agent-run
# only what is measured is slower: agent/, and the tests that include a file of it
$(COVERED)/agent/%.o $(foreach room,agent cli fleet notify settings,$(COVERED)/tests/unit/$(room)/%.o): PKG_CFLAGS += -O0 --coverage
UNIT_agent   = $(filter-out $(BUILD)/unit/lib/%,$(UNIT))
$(UNIT_agent) $(PROGRAMS): $(if $(filter $(COVERED),$(BUILD)),$(BUILD)/tests/coverage_exit.o)
coverage-agent-run: $(UNIT_agent) $(PROGRAMS)
	@find $(BUILD) -name '*.gcda' -delete
	@$(RUN) --timeout 120 --jobs 3 $(call SEP,$(filter $(UNIT_agent),$(SLOW)) $(filter-out $(SLOW),$(UNIT_agent)))
	@$(PYTHON) tests/coverage_agent.py $(BUILD) $(if $(FUNCTIONS),--functions $(FUNCTIONS))

# in build folders of their own, which are kept; the maps, of ld.bfd, say which programs contain an object
MUTATED     := build-mutants
MUTATED_SAN := build-mutants-address
mutants: deps ## change the code at random places, see that a unit test fails (SEED=1, COUNT=500, ROOM="config lib"; LEAKS=0; AGAIN=1; root)
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(MUTATED) CFLAGS=-O2 LDFLAGS='-Wl,-Map=$$@.map' mutants-build
	@$(if $(filter 0,$(LEAKS)),,$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(MUTATED_SAN) SAN=address,undefined GOLD= LDFLAGS='-Wl,-Map=$$@.map' mutants-build)
	@$(PYTHON) tests/mutants/mutants.py --build $(MUTATED) $(if $(filter 0,$(LEAKS)),,--build $(MUTATED_SAN)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(if $(AGAIN),--again) $(ROOM)
define MUTANTS_COMMANDS
$(CC) $(ALL_CFLAGS) $(PKG_CFLAGS)
$(CC) $(ALL_LDFLAGS)
$(PKG_LIBS) -lcmocka
endef
mutants-build: $(UNIT_run) $(if $(SAN),,$(if $(wildcard tests/sim/main.c),$(BUILD)/sim/sim))
	@$(file >$(BUILD)/commands,$(MUTANTS_COMMANDS)):
# the core alone is measured. What gcov writes its files with is the real thing: the seam is for the rest of the program
SIM_COVERED := build-sim-coverage
sim-coverage: ## lines and branches of the core that the simulator's lives take (SIM_SEEDS=5000; FUNCTIONS=N: the N largest holes; LEFT=1)
	@$(MAKE) --no-print-directory BUILD=$(SIM_COVERED) HARDEN= CFLAGS='-O1 -g1' LDFLAGS='--coverage -Wl,-u,__gcov_dump' sim-coverage-run
$(foreach room,config publish version push,$(patsubst %.c,$(SIM_COVERED)/%.o,$(wildcard agent/$(room)/*.c))): PKG_CFLAGS += -O0 --coverage
$(SIM_COVERED)/libgcov.a: tests/sim/wrap.txt
	@mkdir -p $(@D) && sed 's/\(.*\)/\1 __real_\1/' $< > $@.names && objcopy --redefine-syms=$@.names $$($(CC) -print-file-name=libgcov.a) $@
$(SIM_COVERED)/sim/sim: $(SIM_COVERED)/libgcov.a
sim-coverage-run: $(BUILD)/sim/sim
	@find $(BUILD) -name '*.gcda' -delete
	@$< --seeds $(or $(SIM_SEEDS),5000) --jobs $$(nproc) || true
	@$< --fleet --hosts 60 --seeds 20 || true
	@$(PYTHON) tests/coverage_sim.py $(BUILD) $(if $(FUNCTIONS),--functions $(FUNCTIONS)) $(if $(LEFT),--left)

layers: ## check who includes whom, and that the check finds seeded violations
	@[ -x $(PYTHON) ] || { echo '$(PYTHON) is missing: install python3' >&2; exit 1; }
	@$(PYTHON) tests/layers/layers.py && $(PYTHON) tests/layers/layers.py --self-test

lint: deps ## format, shell scripts, static analysis
	@tests/lint.sh $(C_FILES)

format: ## format all C files as lint wants them
	@clang-format -i $(C_FILES)

bench-languages: ## measure: each binding beside its language's map, environment, and file parsed at each read
	@packaging/deps.sh --all
	@$(MAKE) --no-print-directory all
	@PULLET_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/bench/languages.py

bench: deps all $(BENCH) $(BUILD)/bench/etcd_probe $(BUILD)/bench/turns.so ## measure: engine beside its peers, push and etcd to visible beside the bare hops
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/bench/run.py measure $(BENCH_ONLY)

bench-compare: deps all $(BENCH) $(BUILD)/bench/etcd_probe $(BUILD)/bench/turns.so ## measure REV and this tree in turn (ROUNDS=5, BENCH_ONLY="latency etcd"): what differs
	@$(if $(REV),,echo 'make bench-compare REV=...: which version to compare with' >&2; exit 64)
	@PULLET_BUILD=$(BUILD) $(if $(ROUNDS),ROUNDS=$(ROUNDS)) $(PYTHON) tests/bench/run.py compare $(REV) $(BENCH_ONLY)

bench-many: deps all ## measure: agents with 1, 1,000 and 10,000 configs: memory of one, a scrape of all, a change of one
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/bench/many.py

fleet-etcd: deps all ## measure: 300 real agents, three members of etcd, one relay: a put until all have it, requests, memory
	@PULLET_BUILD=$(BUILD) $(PYTHON) tests/bench/fleet_etcd.py

fuzz: $(FUZZ) ## fuzz each parser for FUZZ_SECONDS (60) with clang
	@mkdir -p build-fuzz/found; for f in $(FUZZ); do n=$${f##*/fuzz_}; mkdir -p build-fuzz/corpus/$$n; \
	  $$f -max_total_time=$(or $(FUZZ_SECONDS),60) -timeout=5 -rss_limit_mb=512 -artifact_prefix=build-fuzz/found/ \
	    build-fuzz/corpus/$$n tests/fuzz/corpus/$$n || exit 1; done
build-fuzz/fuzz_plan: agent/cli/rollout/plan.c
build-fuzz/%: tests/fuzz/%.c $(LIB_SRC) $(AGENT_SRC)
	@mkdir -p $(@D)
	$(call say,FUZZ)$(CLANG) -std=c11 -O1 -g -fsanitize=fuzzer,address,undefined $(DEFS) $(QUOTED) $(PKG_CFLAGS) -pthread -o $@ $^ $(PKG_LIBS)

# ---- packages
deb: ## build the Debian packages, with SBOM, into build/packages/deb
	@packaging/package.sh deb $(VERSION) $(BUILD)/packages/deb
rpm: ## build the RPM packages, with SBOM, into build/packages/rpm
	@packaging/package.sh rpm $(VERSION) $(BUILD)/packages/rpm
sbom: deb ## build them too: what they are made of (SPDX), build/packages/deb/pullet_VERSION.spdx.json

# these measure how long a service or a page takes, so nothing else runs beside them, which mostly wait, and they come last: in .ci/run the
# other lanes have ended by then. Of the others, what takes longest begins first
QUIET       := $(patsubst %,tests/packages/test_%.py,systemd page)
# what packaging/ alone decides: that the same bytes come out again, and what Debian's tools say
OF_PACKAGING := $(patsubst %,tests/packages/test_%.py,rebuilt tools)
BUSY         = $(if $(QUICK),,$(OF_PACKAGING)) $(filter-out $(QUIET) $(OF_PACKAGING),$(sort $(wildcard tests/packages/test_*.py)))
check-packages: ## build deb, rpm and SBOM, test what is installed from them (root; QUICK=1: not what packaging/ alone decides; about 6 minutes)
	@packaging/deps.sh --packages
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@mkdir -p $(BUILD)/packages && rm -f $(BUILD)/packages/times
	@export PULLET_BUILD=$(BUILD); tests/packages/root.sh & root=$$!; $(MAKE) --no-print-directory deb rpm && wait $$root
	@export PULLET_BUILD=$(BUILD) PULLET_TEST_SUMS=$(BUILD)/packages/sums; rm -f $$PULLET_TEST_SUMS; bad=0; \
	$(RUN) --again --timeout 900 --jobs 3 $(foreach t,$(BUSY),$(PYTHON) $(t) --) || bad=1; \
	$(RUN) --again --timeout 900 --jobs 2 $(foreach t,$(QUIET),$(PYTHON) $(t) --) || bad=1; \
	cat $(BUILD)/packages/times; $(call sum,packages) $$PULLET_TEST_SUMS; exit $$bad

# ---- demo, install
demo: ## install what is missing, build, show a pull, a push, an outage and the recovery
	@packaging/deps.sh
	@$(MAKE) --no-print-directory all
	@PULLET_BUILD=$(BUILD) packaging/demo.sh

# a directory, the mode, files, the name of one that is to have another; nothing where there is no directory or no file
put = $(if $(and $(1),$(3)),$(Q)$(INSTALL) -d '$(DESTDIR)$(1)' && $(INSTALL) -m $(2) $(3) '$(DESTDIR)$(1)/$(4)')

# where links of README.md and lib/GUIDE.md point, by the same paths: a directory, the folder that they are in, files
GUIDE      := GUIDE.md FORMAT.md cpp/example_poll.cpp java/example/netty/NettyExample.java
LINKED     := $(addprefix lib/,$(GUIDE) go/README.md java/README.md) packaging/README.md packaging/container/README.md tests/bench/RESULTS.md tests/fleet/results/outage.svg
put_linked  = $(Q)for f in $(3); do $(INSTALL) -D -m 644 $(2)/$$f '$(DESTDIR)$(1)'/$$f || exit; done

install: all ## install under DESTDIR/PREFIX
	$(call put,$(SBINDIR),755,$(BUILD)/pulletd)
	$(call put,$(BINDIR),755,$(BUILD)/pullet)
	$(call put,$(LIBDIR),755,$(BUILD)/$(SONAME))
	$(Q)ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libpullet.so
	$(call put,$(LIBDIR),644,$(BUILD)/libpullet.a)
	$(call put,$(LIBDIR)/pkgconfig,644,$(BUILD)/libpullet.pc)
	$(call put,$(LIBDIR)/cmake/pullet,644,$(filter %.cmake,$(LIBRARY)))
	$(call put,$(INCLUDEDIR),644,lib/pullet.h lib/cpp/pullet.hpp)
	$(call put,$(addsuffix /pullet,$(PYTHONDIR)),644,$(filter-out %.so,$(PYTHON_MODULE)))
	$(call put,$(addsuffix /pullet,$(PYTHONDIR)),755,$(filter %.so,$(PYTHON_MODULE)))
	$(call put,$(MANDIR)/man1,644,$(filter %.1,$(MAN)))
	$(call put,$(MANDIR)/man3,644,$(filter %.3,$(MAN)))
	$(call put,$(MANDIR)/man5,644,$(filter %.5,$(MAN)))
	$(call put,$(MANDIR)/man7,644,$(filter %.7,$(MAN)))
	$(call put,$(MANDIR)/man8,644,$(filter %.8,$(MAN)))
	$(Q)for f in open refresh get wait fd each close; do ln -sf libpullet.3 $(DESTDIR)$(MANDIR)/man3/pullet_$$f.3; done
	$(call put,$(DOCDIR),644,README.md ARCHITECTURE.md CONTRIBUTING.md NEWS.md SECURITY.md LICENSE packaging/openapi.yaml)
	$(call put,$(DOCDIR)/examples,644,$(wildcard etc/*.yaml etc/*.rollout) packaging/prometheus/pullet.rules.yml packaging/prometheus/pullet.dashboard.json)
	$(call put,$(DOCDIR)/examples/templates,644,$(wildcard etc/templates/*))
	$(call put,$(DOCDIR)/examples/kubernetes,644,$(wildcard packaging/kubernetes/*.yaml))
	$(call put,$(DOCDIR)/examples/kubernetes/base,644,$(wildcard packaging/kubernetes/base/*.yaml))
	$(call put_linked,$(DOCDIR),.,$(LINKED))
	$(call put_linked,$(DEVDOCDIR),lib,$(GUIDE))
	$(call put,$(BASHDIR),644,packaging/completions/pullet.bash,pullet)
	$(call put,$(FISHDIR),644,packaging/completions/pullet.fish)
	$(call put,$(ZSHDIR),644,packaging/completions/_pullet)
	$(Q)ln -sf pullet $(DESTDIR)$(BASHDIR)/pulletd; ln -sf pullet.fish $(DESTDIR)$(FISHDIR)/pulletd.fish # these look by name
	$(call put,$(UNITDIR),644,$(wildcard packaging/systemd/*.service packaging/systemd/*.path))
	$(call put,$(SYSUSERSDIR),644,packaging/systemd/pullet.sysusers,pullet.conf)
	$(call put,$(TMPFILESDIR),644,packaging/systemd/pullet.tmpfiles,pullet.conf)
	$(Q)$(INSTALL) -d $(DESTDIR)$(SYSCONFDIR)/pullet/conf.d $(DESTDIR)$(SYSCONFDIR)/pullet/changed.d
	$(if $(wildcard $(DESTDIR)$(SYSCONFDIR)/pullet/pullet.yaml),,$(call put,$(SYSCONFDIR)/pullet,640,packaging/pullet.yaml) && \
		sed -i 's|/usr/share/doc/pullet|$(DOCDIR)|' '$(DESTDIR)$(SYSCONFDIR)/pullet/pullet.yaml')

# from a list of what installing would put there, so that there is only one
uninstall: all ## remove what install put there; configuration and state stay
	$(Q)rm -rf $(BUILD)/uninstall && $(MAKE) --no-print-directory install DESTDIR=$(abspath $(BUILD))/uninstall
	$(Q)cd $(BUILD)/uninstall && find . ! -type d ! -path '.$(SYSCONFDIR)/*' -printf '$(DESTDIR)/%P\n' | xargs -d '\n' rm -f
	$(Q)cd $(BUILD)/uninstall && find . -depth -type d -path '*/pullet*' -printf '$(DESTDIR)/%P\n' | xargs -d '\n' rmdir 2>/dev/null || true
	$(Q)rm -rf $(BUILD)/uninstall

# a package of each language as its users expect it, one script a line; installed from there in an empty place without a network, each gives a value
packages-languages: all ## build wheel, sdist, npm tarball, CMake package, Go module, jar into build/packages/languages, install and try each (Go: make languages)
	@mkdir -p $(BUILD)/packages/languages
	@PULLET_BUILD=$(abspath $(BUILD)) $(RUN) --timeout 300 \
	  sh packaging/languages/python.sh $(abspath $(BUILD)/packages/languages) -- \
	  sh packaging/languages/node.sh $(abspath $(BUILD)/packages/languages) -- \
	  sh packaging/languages/cmake.sh $(abspath $(BUILD)/packages/languages) -- \
	  sh packaging/languages/java.sh $(abspath $(BUILD)/packages/languages) --
	@lib/go/package.sh $(abspath $(BUILD))/packages/languages/go $(VERSION)

dist: ## make pullet-VERSION.tar.gz, the same bytes every time
	@packaging/dist.sh $(VERSION) pullet-$(VERSION).tar.gz

clean: ## remove what was built
	rm -rf build build-*

help: ## print this
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile
	@echo "  Where to: DESTDIR, and with their values:"
	@$(foreach v,$(PLACES),printf '    %-14s%s\n' $(v) '$(or $($(v)),not installed)';)
	@echo "  Building: CC CFLAGS CPPFLAGS LDFLAGS PKG_CONFIG INSTALL   SAN=address,undefined | SAN=thread   WERROR=1   V=1"
	@echo "  Testing:  JOBS=$(JOBS) (test programs at a time)   FUZZ_SECONDS=60   FLEET_AGENTS=100000"

# What `make check` runs. A new unit test is a line in unit_tests (its source is the name with .c);
# a new end-to-end test is a name in together.py, or in one of the lists below: `make check` is to take two minutes.

unit_tests = \
	%D%/unit/test_admit \
	%D%/unit/test_args \
	%D%/unit/test_auth \
	%D%/unit/test_bag \
	%D%/unit/test_base \
	%D%/unit/test_bench \
	%D%/unit/test_beside \
	%D%/unit/test_ceiling \
	%D%/unit/test_capture \
	%D%/unit/test_cgroup \
	%D%/unit/test_chan \
	%D%/unit/test_cidr \
	%D%/unit/test_classic \
	%D%/unit/test_clean \
	%D%/unit/test_disturbed \
	%D%/unit/test_confidence \
	%D%/unit/test_confine \
	%D%/unit/test_conversation \
	%D%/unit/test_cpu \
	%D%/unit/test_daemon \
	%D%/unit/test_dccp \
	%D%/unit/test_delay \
	%D%/unit/test_doc \
	%D%/unit/test_evidence \
	%D%/unit/test_explain \
	%D%/unit/test_explain_flows \
	%D%/unit/test_codec \
	%D%/unit/test_foreign \
	%D%/unit/test_gate \
	%D%/unit/test_group \
	%D%/unit/test_guard \
	%D%/unit/test_figure \
	%D%/unit/test_fit \
	%D%/unit/test_knee \
	%D%/unit/test_one_port \
	%D%/unit/test_outage \
	%D%/unit/test_oneway \
	%D%/unit/test_stations \
	%D%/unit/test_hist \
	%D%/unit/test_times \
	%D%/unit/test_host \
	%D%/unit/test_engine \
	%D%/unit/test_human \
	%D%/unit/test_ids \
	%D%/unit/test_interim \
	%D%/unit/test_judge \
	%D%/unit/test_key \
	%D%/unit/test_ledger \
	%D%/unit/test_live \
	%D%/unit/test_limits \
	%D%/unit/test_load \
	%D%/unit/test_line \
	%D%/unit/test_lines \
	%D%/unit/test_link \
	%D%/unit/test_loops \
	%D%/unit/test_moved \
	%D%/unit/test_net \
	%D%/unit/test_notify \
	%D%/unit/test_omni \
	%D%/unit/test_open \
	%D%/unit/test_old \
	%D%/unit/test_sources \
	%D%/unit/test_option \
	%D%/unit/test_passed \
	%D%/unit/test_perf \
	%D%/unit/test_plan \
	%D%/unit/test_preflight \
	%D%/unit/test_progress \
	%D%/unit/test_ramp \
	%D%/unit/test_record \
	%D%/unit/test_refusals \
	%D%/unit/test_relay \
	%D%/unit/test_repeat \
	%D%/unit/test_report \
	%D%/unit/test_route \
	%D%/unit/test_secret \
	%D%/unit/test_sequence \
	%D%/unit/test_select \
	%D%/unit/test_server \
	%D%/unit/test_status \
	%D%/unit/test_spread \
	%D%/unit/test_stop \
	%D%/unit/test_taken \
	%D%/unit/test_talk \
	%D%/unit/test_tally \
	%D%/unit/test_tc \
	%D%/unit/test_team \
	%D%/unit/test_transport \
	%D%/unit/test_trial \
	%D%/unit/test_trusted \
	%D%/unit/test_unix \
	%D%/unit/test_uuid \
	%D%/unit/test_wire \
	%D%/unit/test_witness \
	%D%/unit/test_zerocopy

if HAVE_URING
unit_tests += %D%/unit/test_uring
endif

if HAVE_OPENSSL
unit_tests += %D%/unit/test_tls
endif

if HAVE_JANSSON
unit_tests += %D%/unit/test_document %D%/unit/test_explain_bed %D%/unit/test_json
endif

# Only what they test is optimised, which halves the time of their builds.
unit_cflags = -O0
unit_objects = $(unit_tests:=.$(OBJEXT))
$(unit_objects): CFLAGS += $(unit_cflags)

# One program runs all of them, several at a time, whatever make -j says.
e2e_tests = %D%/e2e/together.py

# What `make check-more` runs beyond that, some minutes; CI does. The long ones first.
more_tests = \
	%D%/e2e/open_loop.py \
	%D%/e2e/one_port.py \
	%D%/e2e/attacks.py \
	%D%/e2e/engine_list.py \
	%D%/e2e/planted.py \
	%D%/e2e/flows.py \
	%D%/e2e/netns.py \
	%D%/e2e/ramp.py \
	%D%/e2e/beside.py \
	%D%/e2e/clean.py \
	%D%/e2e/limits.py \
	%D%/e2e/preflight.py \
	%D%/e2e/scarce.py \
	%D%/e2e/keys.py \
	%D%/e2e/sessions.py \
	%D%/e2e/stations.py \
	%D%/e2e/spin.py \
	%D%/e2e/placement.py \
	%D%/e2e/kills.py \
	%D%/e2e/unix.py \
	%D%/e2e/engines.py \
	%D%/e2e/service.py \
	%D%/e2e/explain.py \
	%D%/e2e/zerocopy.py \
	%D%/e2e/deploy.py \
	%D%/e2e/cut.py \
	%D%/e2e/strangers.py \
	%D%/e2e/uring.py \
	%D%/e2e/crowd.py \
	%D%/e2e/standstill.py

# Its files are in no list: what is in the folder is distributed.
EXTRA_DIST += %D%/e2e

# What `make check-clients` runs, some minutes of it: CI does. Colons are before arguments. One reads the
# clock, and runs alone; of the others some at a time, as most of it is waiting, the long ones first.
clients_alone = %D%/e2e/clients.py
client_tests = \
	%D%/e2e/netsweep_test.py \
	%D%/e2e/netreport_test.py \
	%D%/e2e/netmesh_test.py \
	%D%/e2e/fleet_test.py \
	%D%/e2e/netvm_test.py \
	%D%/e2e/builds.py \
	%D%/e2e/interop.py \
	%D%/e2e/recipes.py \
	%D%/e2e/netgate_stats.py \
	%D%/e2e/golden.py:--timed \
	%D%/e2e/first_failures.py \
	%D%/e2e/completion.py \
	%D%/e2e/explain.py:--long \
	%D%/e2e/interop_more.py:--every \
	%D%/e2e/netgate_test.py \
	%D%/e2e/sessions.py:--long \
	%D%/e2e/netgate_past.py \
	%D%/e2e/combinations.py \
	%D%/e2e/values.py \
	%D%/e2e/netgate_keeper.py \
	%D%/e2e/netgate_output.py \
	%D%/e2e/progress.py \
	%D%/e2e/progress_scripts.py

# What `make check-laws` runs, with NP_LAWS_MINUTES of chance, 3 unless it says so.
EXTRA_DIST += %D%/laws

# What `make check-links` runs, some minutes, too: links between network namespaces. Some are to be kept full, to
# a hundredth, or read in time, by a machine with nothing else to do; of the others some at a time.
links_alone = \
	%D%/e2e/link.py \
	%D%/e2e/netns.py:full-link \
	%D%/e2e/udp_account.py \
	%D%/e2e/wire.py
link_tests = \
	%D%/e2e/netlab_test.py \
	%D%/e2e/mptcp.py

# What `make check-long` runs beyond that.
long_tests = \
	%D%/e2e/attacks.py:--long \
	%D%/e2e/programs.py:--long \
	%D%/e2e/clean.py:--long \
	%D%/e2e/crowd.py:--long \
	%D%/e2e/examples.py \
	%D%/e2e/explain_bed.py \
	%D%/e2e/fleet_long.py \
	%D%/e2e/flent.py \
	%D%/e2e/interim.py:--long \
	%D%/e2e/interop_more.py:--long \
	%D%/e2e/kills.py:--long \
	%D%/e2e/law_judge.py:--long \
	%D%/e2e/netgate_keeper.py:--long \
	%D%/e2e/netgate_long.py \
	%D%/e2e/netlab_long.py \
	%D%/e2e/netsweep_long.py \
	%D%/e2e/rates_long.py:--write \
	%D%/e2e/torture.py:--long \
	%D%/e2e/wire_bed.py

# What `make check-packages` runs, some minutes, too; CI does.
package_tests = %D%/e2e/packages_long.py

# What `make check-vm` runs in guests of scripts/netvm, without KVM some minutes; CI does. The names of
# the files are in no list: what is in the folder is run.
EXTRA_DIST += %D%/vm

# What `make check-explain` runs: half an hour, as a hundred causes are planted three times each.
explain_tests = %D%/e2e/explain_bed.py
EXTRA_DIST += %D%/record-explain

# What tests need beside themselves.
EXTRA_DIST += \
	%D%/golden \
	%D%/unit/explain \
	%D%/vectors \
	%D%/lib/run-e2e \
	%D%/lib/skip \
	%D%/lib/timed \
	%D%/unit/without-cmocka

# Programs without a _SOURCES or _LDADD of their own: the unit tests and the fuzz targets. fuzz_main
# has a main() for those that bring none.
AM_DEFAULT_SOURCE_EXT = .c
if HAVE_CMOCKA
unit_lib = %D%/lib/libtest.a
unit_libs = $(CMOCKA_LIBS)
endif
LDADD = $(unit_lib) $(fuzz_main) $(netserver_libs) $(unit_libs) $(JANSSON_LIBS)
AM_CPPFLAGS += $(CMOCKA_CFLAGS)

# What the unit tests share.
%C%_lib_libtest_a_SOURCES = \
	%D%/lib/allocs.c %D%/lib/allocs.h \
	%D%/lib/bags.c %D%/lib/bags.h \
	%D%/lib/check.h \
	%D%/lib/daemon.c %D%/lib/daemon.h \
	%D%/lib/deadly.c %D%/lib/deadly.h \
	%D%/lib/ends.c %D%/lib/ends.h \
	%D%/lib/null.c %D%/lib/null.h \
	%D%/lib/records.c %D%/lib/records.h \
	%D%/lib/root.c %D%/lib/root.h \
	%D%/lib/session.c %D%/lib/session.h \
	%D%/lib/sockets.c %D%/lib/sockets.h \
	%D%/lib/tests.c \
	%D%/lib/words.c %D%/lib/words.h

# The options of netperf stand in no library.
%C%_unit_test_beside_SOURCES = %D%/unit/test_beside.c src/cli/look.c src/cli/aim.c src/cli/args.c src/cli/beside.c \
	src/cli/checks.c src/cli/help.c src/cli/omni.c src/cli/options.c src/cli/stray.c src/cli/tests.c
%C%_unit_test_ceiling_SOURCES = %D%/unit/test_ceiling.c src/cli/ceilings.c
%C%_unit_test_progress_SOURCES = %D%/unit/test_progress.c src/cli/progress_text.c
%C%_unit_test_args_SOURCES = %D%/unit/test_args.c src/cli/args.c src/cli/checks.c \
	src/cli/help.c src/cli/omni.c src/cli/options.c src/cli/stray.c src/cli/tests.c
%C%_unit_test_document_SOURCES = %D%/unit/test_document.c src/cli/args.c src/cli/document.c \
	src/cli/checks.c src/cli/help.c src/cli/look.c src/cli/omni.c src/cli/options.c \
	src/cli/progress.c src/cli/progress_text.c src/cli/show.c src/cli/stray.c src/cli/tests.c
# A session does what the test says.
%C%_unit_test_taken_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=np_server_serve -Wl,--wrap=getrandom
# Sleeps are counted.
%C%_unit_test_loops_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=nanosleep
# netlab is a program apart.
%C%_unit_test_line_LDADD = tests/link/libnetlab.a $(LDADD)
%C%_unit_test_doc_SOURCES = %D%/unit/test_doc.c src/cli/options.c

# What make bench compares with; it stands alone.
EXTRA_PROGRAMS = %D%/bench/bare
EXTRA_DIST += %D%/bench/bench %D%/bench/by_engine.py %D%/bench/common.py %D%/bench/fleet.py %D%/bench/many.py \
	%D%/bench/iperf3.py %D%/bench/neper.py \
	%D%/bench/reports.py %D%/bench/setting_up.py
%C%_bench_bare_SOURCES = %D%/bench/bare.c %D%/bench/bare.h %D%/bench/ways.c
%C%_bench_bare_LDADD =
# Our steps over connections that move nothing.
EXTRA_PROGRAMS += %D%/bench/null
%C%_bench_null_SOURCES = %D%/bench/null.c %D%/lib/null.c %D%/lib/null.h
%C%_bench_null_LDADD = src/libnetperf.a $(netperf_libs)
CLEANFILES += $(EXTRA_PROGRAMS)

check_PROGRAMS =
check_LIBRARIES =
# The longest first: most of it is waiting, and the others run meanwhile.
TESTS = $(e2e_tests)
if HAVE_CMOCKA
check_PROGRAMS += $(unit_tests)
check_LIBRARIES += %D%/lib/libtest.a
TESTS += $(unit_tests)
else
TESTS += %D%/unit/without-cmocka
endif
include %D%/fuzz/local.mk

test_environment = \
	NETPERF='$(abs_top_builddir)/src/netperf' \
	NETSERVER='$(abs_top_builddir)/src/netserver' \
	top_srcdir='$(abs_top_srcdir)' \
	top_builddir='$(abs_top_builddir)' \
	PYTHONPYCACHEPREFIX='$(abs_top_builddir)/pycache' PYTHONDONTWRITEBYTECODE=
AM_TESTS_ENVIRONMENT = \
	$(test_environment); \
	export NETPERF NETSERVER top_srcdir top_builddir PYTHONPYCACHEPREFIX PYTHONDONTWRITEBYTECODE;

TEST_EXTENSIONS = .py
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/lib/timed
if HAVE_PYTHON
TESTS += scripts/check-layers
PY_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/lib/run-e2e $(PYTHON)
else
PY_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/lib/skip "no python3"
endif
CLEANFILES += e2e.lock
# Most of what a short script takes is to compile netkit, and Python's own modules, which have to be written there, too.
clean-local:
	rm -rf pycache %D%/fuzz/seeds

# As many at a time as $at_once says.
run_suites = env $(test_environment) NP_TEST_LONG='$(NP_TEST_LONG)' NP_TEST_AT_ONCE=$${at_once:-1} \
	$(PYTHON) $(top_srcdir)/tests/e2e/together.py $$suites
run_alone_first = status=0; suites=$$alone; $(run_suites) || status=1; \
	suites=$$others; at_once=3; $(run_suites) || status=1; exit $$status

.PHONY: check-clients check-explain check-laws check-links check-links-alone check-links-others check-long check-more \
	check-packages check-vm
check-more: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@suites='$(more_tests)'; at_once=6; $(run_suites)

check-clients: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@alone='$(clients_alone)'; others='$(client_tests)'; $(run_alone_first)

check-vm: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@files=`sed -n 's/^# netvm: with //p' $(top_srcdir)/tests/vm/*`; \
		test -z "$$files" || $(MAKE) $(AM_MAKEFLAGS) $$files
	$(PYTHON) $(top_srcdir)/scripts/netvm test --build $(abs_top_builddir) $$NP_ONLY

check-laws: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@env $(test_environment) $(PYTHON) $(top_srcdir)/tests/laws/run.py --known --minutes $${NP_LAWS_MINUTES:-3} || test $$? = 77

check-links: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@alone='$(links_alone)'; others='$(link_tests)'; $(run_alone_first)

check-links-alone: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@suites='$(links_alone)'; $(run_suites)

check-links-others: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@suites='$(link_tests)'; at_once=3; $(run_suites)

# NP_PACKAGES=DIR: of a release that scripts/release has made.
check-packages:
	@suites='$(package_tests)'; $(run_suites)

# As many runs of each planted cause as NP_EXPLAIN_RUNS says, 3 unless it does.
check-explain: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@suites='$(explain_tests)'; $(run_suites)

# Each planted cause once. The example scripts at their own lengths, which take a day: make check-long NP_TEST_LONG=1.
check-long: $(bin_PROGRAMS) $(noinst_PROGRAMS)
	@NP_EXPLAIN_RUNS=1; export NP_EXPLAIN_RUNS; suites='$(long_tests)'; $(run_suites)

# Every line of a test's log that starts with SKIP, once the summary stands.
check-local: check-TESTS
	@$(MAKE) --no-print-directory skip-reasons

.PHONY: skip-reasons
skip-reasons:
	@for log in $(TEST_LOGS); do \
		test -f $$log || continue; \
		sed -n "/(exit status: [0-9]*)$$/d; s|^SKIP[: ]*|skipped: $${log%.log}: |p" $$log; \
	done

# Fuzz targets: a new one is tests/fuzz/fuzz_NAME.c, a line here, and seeds in tests/fuzz/corpus/NAME.
# make-seeds adds those that come from recordings. `make check` runs each target over its seeds,
# `make fuzz` for as long as FUZZ_SECONDS says.

fuzz_targets = \
	%D%/fuzz_admit \
	%D%/fuzz_chan \
	%D%/fuzz_dialects \
	%D%/fuzz_errqueue \
	%D%/fuzz_explain \
	%D%/fuzz_ext \
	%D%/fuzz_ledger \
	%D%/fuzz_messages \
	%D%/fuzz_one_port \
	%D%/fuzz_options \
	%D%/fuzz_report \
	%D%/fuzz_selectors \
	%D%/fuzz_sequence \
	%D%/fuzz_session

# The options of netperf stand in no library.
%C%_fuzz_options_SOURCES = %D%/fuzz_options.c src/cli/args.c src/cli/checks.c \
	src/cli/help.c src/cli/omni.c src/cli/options.c src/cli/stray.c src/cli/tests.c

# The main() of those that bring none; with LDFLAGS=-fsanitize=fuzzer libFuzzer has one before.
fuzz_main = %D%/libreplay.a
%C%_libreplay_a_SOURCES = %D%/replay.c %D%/fuzz.h

check_LIBRARIES += %D%/libreplay.a
check_PROGRAMS += $(fuzz_targets)
if HAVE_PYTHON
TESTS += $(fuzz_targets)
check_DATA = fuzz-seeds
endif
EXTRA_DIST += \
	%D%/corpus \
	%D%/make-seeds

.PHONY: fuzz fuzz-seeds fuzz-targets
fuzz-targets: $(fuzz_targets) fuzz-seeds

fuzz-seeds:
	@env $(test_environment) $(PYTHON) $(srcdir)/%D%/make-seeds %D%/seeds

fuzz:
	FUZZ_DIR='$(abs_top_builddir)/fuzz' $(top_srcdir)/scripts/fuzz $(FUZZ_TARGETS)

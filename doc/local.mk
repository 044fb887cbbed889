# Manual pages and completions: scripts/mkdoc makes those of programs from the tables that the programs
# parse by, which a program of each prints that has to run here, and those of scripts from their
# parsers. The pages are in the tarball, for builds that can't make them.

EXTRA_DIST += %D%/netgate.1.in %D%/netlab.1.in %D%/netmesh.1.in %D%/netperf.1.in %D%/netreport.1.in %D%/netserver.1.in \
	%D%/netsweep.1.in %D%/netvm.1.in $(page_parts)
page_parts = %D%/completion.1.in %D%/planted.1.in %D%/progress.1.in

# What manual pages, units and scripts refer to, and what these pages refer to in turn.
dist_doc_DATA = \
	%D%/DIFFERENCES.md \
	%D%/ceilings.md \
	%D%/cookbook.md \
	%D%/engines.md \
	%D%/evidence.md \
	%D%/explain.md \
	%D%/flows.md \
	%D%/gate.md \
	%D%/json.md \
	%D%/netgate.schema.json \
	%D%/netperf-run.schema.json \
	%D%/protocol.md \
	%D%/protocols.md \
	%D%/results.md \
	%D%/security.md \
	%D%/service.md

dist_man1_MANS =

# bash looks for a file with the name of the command.
bashcompdir = $(datadir)/bash-completion/completions
fishcompdir = $(datadir)/fish/vendor_completions.d
zshcompdir = $(datadir)/zsh/site-functions
bashcomp_DATA =
fishcomp_DATA =
zshcomp_DATA =

if NP_RUNS_HERE
noinst_PROGRAMS += src/cli/mkrows netserver/mkrows
src_cli_mkrows_SOURCES = src/cli/mkrows.c src/cli/options.c src/cli/tests.c
src_cli_mkrows_LDADD = src/libnetperf.a $(netperf_libs)
netserver_mkrows_SOURCES = netserver/mkrows.c
netserver_mkrows_LDADD = $(netserver_libs)
endif

# These are kept whole in git, for those who read them there: a test compares.
protocol-tables:
	set -e; for page in evidence.md protocol.md netperf-run.schema.json; do \
		$(run_mkdoc) tables $(srcdir)/%D%/$$page > $$page.tmp; \
		mv $$page.tmp $(srcdir)/%D%/$$page; \
	done

if NP_PAGES
dist_man1_MANS += %D%/netperf.1 %D%/netserver.1
endif
if NP_SCRIPT_PAGES
dist_man1_MANS += %D%/netgate.1 %D%/netlab.1 %D%/netmesh.1 %D%/netreport.1 %D%/netsweep.1 %D%/netvm.1
endif

if NP_COMPLETES
bashcomp_DATA += %D%/bash/netgate %D%/bash/netlab %D%/bash/netmesh %D%/bash/netreport %D%/bash/netsweep %D%/bash/netvm
fishcomp_DATA += %D%/fish/netgate.fish %D%/fish/netlab.fish %D%/fish/netmesh.fish %D%/fish/netreport.fish %D%/fish/netsweep.fish \
	%D%/fish/netvm.fish
zshcomp_DATA += %D%/zsh/_netgate %D%/zsh/_netlab %D%/zsh/_netmesh %D%/zsh/_netreport %D%/zsh/_netsweep %D%/zsh/_netvm

completed = $(top_srcdir)/scripts/mkdoc $(dist_bin_SCRIPTS) $(dist_netkit_DATA) $(dist_gate_DATA) $(dist_vm_DATA) \
	$(dist_plans_DATA) $(top_srcdir)/src/stats/metrics.def
# Half of what one start takes is to compile netkit, if not kept.
run_mkdoc = PYTHONPYCACHEPREFIX='$(abs_top_builddir)/pycache' $(PYTHON) $(top_srcdir)/scripts/mkdoc
mkdoc = $(MKDIR_P) $(@D) && $(run_mkdoc)

# One process makes those of all scripts, which are newer than the stamp.
script_completions = \
	%D%/bash/netgate %D%/bash/netlab %D%/bash/netmesh %D%/bash/netreport %D%/bash/netsweep %D%/bash/netvm \
	%D%/fish/netgate.fish %D%/fish/netlab.fish %D%/fish/netmesh.fish %D%/fish/netreport.fish %D%/fish/netsweep.fish %D%/fish/netvm.fish \
	%D%/zsh/_netgate %D%/zsh/_netlab %D%/zsh/_netmesh %D%/zsh/_netreport %D%/zsh/_netsweep %D%/zsh/_netvm
$(script_completions): %D%/completions.stamp
	@test -f $@ || { rm -f %D%/completions.stamp; $(MAKE) $(AM_MAKEFLAGS) %D%/completions.stamp; }
%D%/completions.stamp: $(completed)
	$(AM_V_GEN)$(MKDIR_P) %D%/bash %D%/fish %D%/zsh && : > $@.tmp && \
		$(run_mkdoc) completions %D% && mv $@.tmp $@
CLEANFILES += %D%/completions.stamp

script_pages = %D%/netgate.1 %D%/netlab.1 %D%/netmesh.1 %D%/netreport.1 %D%/netsweep.1 %D%/netvm.1
CLEANFILES += $(script_pages)

%D%/netgate.1: %D%/netgate.1.in
%D%/netlab.1: %D%/netlab.1.in
%D%/netmesh.1: %D%/netmesh.1.in
%D%/netreport.1: %D%/netreport.1.in
%D%/netsweep.1: %D%/netsweep.1.in
%D%/netvm.1: %D%/netvm.1.in
$(script_pages): $(completed) $(page_parts)
	$(AM_V_GEN)$(mkdoc) manual $(@F) > $@.tmp && mv $@.tmp $@

if NP_RUNS_HERE
bashcomp_DATA += %D%/bash/netperf %D%/bash/netserver
fishcomp_DATA += %D%/fish/netperf.fish %D%/fish/netserver.fish
zshcomp_DATA += %D%/zsh/_netperf %D%/zsh/_netserver
CLEANFILES += %D%/netperf.1 %D%/netserver.1

# The folder has the shell's name; $$by is the program that prints the rows.
complete = $(mkdoc) $$(basename $(@D)) $(@F) $$by > $@.tmp && mv $@.tmp $@

%D%/bash/netperf %D%/fish/netperf.fish %D%/zsh/_netperf: src/cli/mkrows$(EXEEXT) $(completed)
	$(AM_V_GEN)by=src/cli/mkrows$(EXEEXT); $(complete)

%D%/bash/netserver %D%/fish/netserver.fish %D%/zsh/_netserver: netserver/mkrows$(EXEEXT) $(completed)
	$(AM_V_GEN)by=netserver/mkrows$(EXEEXT); $(complete)

%D%/netperf.1: %D%/netperf.1.in src/cli/mkrows$(EXEEXT) $(page_parts) $(top_srcdir)/scripts/mkdoc
	$(AM_V_GEN)$(mkdoc) manual $(@F) src/cli/mkrows$(EXEEXT) > $@.tmp && mv $@.tmp $@

%D%/netserver.1: %D%/netserver.1.in netserver/mkrows$(EXEEXT) $(page_parts) $(top_srcdir)/scripts/mkdoc
	$(AM_V_GEN)$(mkdoc) manual $(@F) netserver/mkrows$(EXEEXT) > $@.tmp && mv $@.tmp $@
endif
endif
CLEANFILES += $(bashcomp_DATA) $(fishcomp_DATA) $(zshcomp_DATA)

# The units are made in any case, so that tests can look at them.
# (The brackets keep configure from filling in the pattern.)
EXTRA_DIST += %D%/systemd/netserver.service.in %D%/systemd/netserver.socket
noinst_DATA = %D%/systemd/netserver.service
CLEANFILES += %D%/systemd/netserver.service
if NP_SYSTEMD
systemdsystemunit_DATA = %D%/systemd/netserver.service %D%/systemd/netserver.socket
endif

%D%/systemd/netserver.service: %D%/systemd/netserver.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		sed 's|@bindir[@]|$(bindir)|g' $(srcdir)/%D%/systemd/netserver.service.in > $@.tmp && \
		mv $@.tmp $@

# Manual pages and shell completions: written by hand in doc/*.in, with the options filled in from
# the tables that the programs parse by. What fills them in has to run here, so that a build for
# another machine goes without.

doc_sources = \
	%D%/netperf.1.in \
	%D%/netperf.bash.in \
	%D%/netperf.fish.in \
	%D%/netperf.zsh.in \
	%D%/netserver.1.in \
	%D%/netserver.bash.in \
	%D%/netserver.fish.in \
	%D%/netserver.zsh.in
EXTRA_DIST += $(doc_sources)

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

# Of scripts, which have no tables to fill in.
dist_man1_MANS = %D%/netgate.1 %D%/netlab.1 %D%/netreport.1 %D%/netsweep.1 %D%/netvm.1

# bash looks for a file with the name of the command.
bashcompdir = $(datadir)/bash-completion/completions
fishcompdir = $(datadir)/fish/vendor_completions.d
zshcompdir = $(datadir)/zsh/site-functions
bashcomp_DATA =
fishcomp_DATA =
zshcomp_DATA =

if NP_RUNS_HERE
noinst_PROGRAMS = src/cli/mkdoc netserver/mkdoc src/wire/mkdoc
src_cli_mkdoc_SOURCES = src/cli/mkdoc.c src/cli/options.c
src_cli_mkdoc_LDADD = src/libnetperf.a $(netperf_libs)
src_wire_mkdoc_SOURCES = src/wire/mkdoc.c
src_wire_mkdoc_LDADD =
netserver_mkdoc_SOURCES = netserver/mkdoc.c
netserver_mkdoc_LDADD = $(netserver_libs)

man1_MANS = %D%/netperf.1 %D%/netserver.1
bashcomp_DATA += %D%/bash/netperf %D%/bash/netserver
fishcomp_DATA += %D%/fish/netperf.fish %D%/fish/netserver.fish
zshcomp_DATA += %D%/zsh/_netperf %D%/zsh/_netserver
CLEANFILES += $(man1_MANS)

# What the rules below begin with: the program, and the text that it fills in.
fill_in = $(MKDIR_P) $(@D) && $$by < $$in > $@.tmp && mv $@.tmp $@
by_netperf = $(AM_V_GEN)by=src/cli/mkdoc$(EXEEXT) in=$(srcdir)/%D%
by_netserver = $(AM_V_GEN)by=netserver/mkdoc$(EXEEXT) in=$(srcdir)/%D%

%D%/netperf.1: %D%/netperf.1.in src/cli/mkdoc$(EXEEXT)
	$(by_netperf)/netperf.1.in; $(fill_in)

%D%/netserver.1: %D%/netserver.1.in netserver/mkdoc$(EXEEXT)
	$(by_netserver)/netserver.1.in; $(fill_in)

# The page is kept whole in git, for those who read it there: a test compares.
protocol-tables: src/wire/mkdoc$(EXEEXT)
	src/wire/mkdoc$(EXEEXT) < $(srcdir)/%D%/protocol.md > protocol.md.tmp
	mv protocol.md.tmp $(srcdir)/%D%/protocol.md

%D%/bash/netperf: %D%/netperf.bash.in src/cli/mkdoc$(EXEEXT)
	$(by_netperf)/netperf.bash.in; $(fill_in)

%D%/bash/netserver: %D%/netserver.bash.in netserver/mkdoc$(EXEEXT)
	$(by_netserver)/netserver.bash.in; $(fill_in)

%D%/fish/netperf.fish: %D%/netperf.fish.in src/cli/mkdoc$(EXEEXT)
	$(by_netperf)/netperf.fish.in; $(fill_in)

%D%/fish/netserver.fish: %D%/netserver.fish.in netserver/mkdoc$(EXEEXT)
	$(by_netserver)/netserver.fish.in; $(fill_in)

%D%/zsh/_netperf: %D%/netperf.zsh.in src/cli/mkdoc$(EXEEXT)
	$(by_netperf)/netperf.zsh.in; $(fill_in)

%D%/zsh/_netserver: %D%/netserver.zsh.in netserver/mkdoc$(EXEEXT)
	$(by_netserver)/netserver.zsh.in; $(fill_in)
endif

# Those of the scripts are made from what their own parsers know.
if NP_COMPLETES
bashcomp_DATA += %D%/bash/netgate %D%/bash/netlab %D%/bash/netreport %D%/bash/netsweep %D%/bash/netvm
fishcomp_DATA += %D%/fish/netgate.fish %D%/fish/netlab.fish %D%/fish/netreport.fish %D%/fish/netsweep.fish \
	%D%/fish/netvm.fish
zshcomp_DATA += %D%/zsh/_netgate %D%/zsh/_netlab %D%/zsh/_netreport %D%/zsh/_netsweep %D%/zsh/_netvm

completed = $(top_srcdir)/scripts/mkcompletion $(dist_bin_SCRIPTS) $(dist_netkit_DATA) $(dist_gate_DATA) $(dist_vm_DATA) \
	$(dist_plans_DATA) $(top_srcdir)/src/stats/metrics.def
complete = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) $(top_srcdir)/scripts/mkcompletion

%D%/bash/netgate %D%/bash/netlab %D%/bash/netreport %D%/bash/netsweep %D%/bash/netvm: $(completed)
	$(complete) bash $(@F) > $@.tmp && mv $@.tmp $@

%D%/fish/netgate.fish %D%/fish/netlab.fish %D%/fish/netreport.fish %D%/fish/netsweep.fish %D%/fish/netvm.fish: \
	$(completed)
	$(complete) fish $(@F) > $@.tmp && mv $@.tmp $@

%D%/zsh/_netgate %D%/zsh/_netlab %D%/zsh/_netreport %D%/zsh/_netsweep %D%/zsh/_netvm: $(completed)
	$(complete) zsh $(@F) > $@.tmp && mv $@.tmp $@
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

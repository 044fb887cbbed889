# src/libnetperf.a: everything the two programs share, all of src/ but cli/.
# A new source file is a line here, with its header, in the order of the floors.

noinst_LIBRARIES += src/libnetperf.a
src_libnetperf_a_SOURCES = \
	%D%/base/bag.c %D%/base/bag.h \
	%D%/base/clock.c %D%/base/clock.h \
	%D%/base/cpulist.c %D%/base/cpulist.h \
	%D%/base/err.c %D%/base/err.h \
	%D%/base/fds.c %D%/base/fds.h \
	%D%/base/lines.h \
	%D%/base/log.c %D%/base/log.h \
	%D%/base/multiplex.c \
	%D%/base/output.c %D%/base/output.h \
	%D%/base/ring.c %D%/base/ring.h \
	%D%/base/sanitized.h \
	%D%/base/secret.c %D%/base/secret.h \
	%D%/base/text.c %D%/base/text.h \
	%D%/base/trusted.c %D%/base/trusted.h \
	%D%/base/units.c %D%/base/units.h \
	%D%/base/uuid.c %D%/base/uuid.h \
	%D%/wire/auth.c %D%/wire/auth.h \
	%D%/wire/chan.c %D%/wire/chan.h \
	%D%/wire/ext.c \
	%D%/wire/token.c %D%/wire/token.h \
	%D%/wire/messages.def \
	%D%/wire/msg.c %D%/wire/msg.h \
	%D%/wire/plan.c %D%/wire/plan.def %D%/wire/plan.h \
	%D%/wire/tagged.c %D%/wire/tagged.h \
	%D%/wire/wire.c %D%/wire/wire.h \
	%D%/opt/help.c \
	%D%/opt/option.c %D%/opt/option.h \
	%D%/stats/ceiling.c %D%/stats/ceiling.h \
	%D%/stats/confidence.c %D%/stats/confidence.h \
	%D%/stats/counters.h \
	%D%/stats/hist.c %D%/stats/hist.h \
	%D%/stats/oneway.c %D%/stats/oneway.h \
	%D%/stats/metrics.c %D%/stats/metrics.def \
	%D%/stats/record.c %D%/stats/record.h \
	%D%/net/addr.c %D%/net/addr.h \
	%D%/net/capture.h \
	%D%/net/follow.c %D%/net/follow.h \
	%D%/net/ledger.c %D%/net/ledger.h \
	%D%/net/eth.c %D%/net/eth.h \
	%D%/net/sources.c %D%/net/sources.h \
	%D%/net/race.c %D%/net/race.h \
	%D%/net/sock.c %D%/net/sock.h \
	%D%/net/tcpinfo.c %D%/net/tcpinfo.h \
	%D%/sys/cgroup.c %D%/sys/cgroup.h \
	%D%/sys/cpu.c %D%/sys/cpu.h \
	%D%/sys/ethtool.c %D%/sys/ethtool.h \
	%D%/sys/file.c %D%/sys/file.h \
	%D%/sys/host.c %D%/sys/host.h \
	%D%/sys/irq.c %D%/sys/irq.h \
	%D%/sys/link.c %D%/sys/link.h \
	%D%/sys/meters.c %D%/sys/meters.h \
	%D%/sys/moved.c %D%/sys/moved.h \
	%D%/sys/nic.c %D%/sys/nic.h \
	%D%/sys/rtnl.c %D%/sys/rtnl.h \
	%D%/sys/tc.c %D%/sys/tc.h \
	%D%/sys/thread.c %D%/sys/thread.h \
	%D%/bench/bench.h \
	%D%/bench/closing.c \
	%D%/bench/codec.c %D%/bench/codec.h \
	%D%/bench/ids.c %D%/bench/ids.h \
	%D%/bench/modules.def %D%/bench/transports.def \
	%D%/bench/lacks.c %D%/bench/lacks.h \
	%D%/bench/load.c %D%/bench/load.h \
	%D%/bench/open.c %D%/bench/open.h \
	%D%/bench/plan.c %D%/bench/plan.h %D%/bench/terms.h \
	%D%/bench/ramp.c %D%/bench/ramp.h \
	%D%/bench/registry.c \
	%D%/bench/rings.c \
	%D%/bench/run.c %D%/bench/run.h \
	%D%/bench/sampler.c %D%/bench/sampler.h \
	%D%/bench/sequence.c %D%/bench/sequence.h \
	%D%/bench/stamps.c %D%/bench/stamps.h \
	%D%/bench/stop.c %D%/bench/stop.h \
	%D%/bench/tally.c %D%/bench/tally.h \
	%D%/bench/worker.c %D%/bench/worker.h \
	%D%/bench/engine/batch.c \
	%D%/bench/engine/calls.c %D%/bench/engine/calls.h \
	%D%/bench/engine/engine.c %D%/bench/engine/engine.h \
	%D%/bench/engine/epoll.c \
	%D%/bench/engine/io.c %D%/bench/engine/io.h \
	%D%/bench/engine/segment.c \
	%D%/bench/engine/spin.c \
	%D%/bench/engine/sync.c %D%/bench/engine/sync.h \
	%D%/bench/engine/syscall.h \
	%D%/bench/engine/uring.h \
	%D%/bench/engine/zerocopy.c %D%/bench/engine/zerocopy.h \
	%D%/bench/pattern/crr.c \
	%D%/bench/pattern/mss.c \
	%D%/bench/pattern/rr.c \
	%D%/bench/pattern/sendfile.c \
	%D%/bench/pattern/stream.c %D%/bench/pattern/stream.h \
	%D%/bench/transport/endpoint.c %D%/bench/transport/endpoint.h \
	%D%/bench/transport/one_port.c \
	%D%/bench/transport/eth.c \
	%D%/bench/transport/many.c %D%/bench/transport/many.h \
	%D%/bench/transport/spread.c \
	%D%/bench/transport/mptcp.c \
	%D%/bench/transport/tcp.c %D%/bench/transport/tcp.h \
	%D%/bench/transport/tls.c %D%/bench/transport/tls.h \
	%D%/bench/transport/udp.c \
	%D%/bench/transport/unix.c %D%/bench/transport/unix.h \
	%D%/bench/transport/dccp.c \
	%D%/bench/transport/dccp.h \
	%D%/bench/transport/sctp.c \
	%D%/bench/transport/llc.c \
	%D%/bench/transport/tipc.c \
	%D%/bench/transport/vsock.c \
	%D%/run/client.c %D%/run/client.h %D%/run/client_parts.h \
	%D%/run/client_agree.c \
	%D%/run/client_ask.c \
	%D%/run/client_judge.c \
	%D%/run/client_open.c \
	%D%/run/clean.c %D%/run/clean.h \
	%D%/run/disturbed.c %D%/run/disturbed.h %D%/run/outage.c %D%/run/outage.h \
	%D%/run/intervals.c %D%/run/intervals.h \
	%D%/run/drive.c %D%/run/drive.h \
	%D%/run/ends.c %D%/run/ends.h \
	%D%/run/evidence.c %D%/run/evidence.h \
	%D%/run/foreign.c %D%/run/foreign.h \
	%D%/run/gate.c %D%/run/gate.h \
	%D%/run/beside.c %D%/run/beside.h \
	%D%/run/knee.c %D%/run/knee.h \
	%D%/run/group.c \
	%D%/run/live.c %D%/run/live.h \
	%D%/run/repeat.c %D%/run/repeat.h \
	%D%/run/report.c \
	%D%/run/server.c %D%/run/server.h %D%/run/server_parts.h \
	%D%/run/server_answer.c \
	%D%/run/server_limits.c \
	%D%/run/server_policy.c \
	%D%/run/server_test.c \
	%D%/run/stations.c %D%/run/stations.h \
	%D%/run/talk.c %D%/run/talk.h %D%/run/talk_rows.h \
	%D%/run/talk_netperf.c %D%/run/talk.def \
	%D%/run/talk_plan.c \
	%D%/run/team.c %D%/run/team.h \
	%D%/run/trial.c %D%/run/trial.h \
	%D%/out/classic.c %D%/out/format.h \
	%D%/out/explain.c %D%/out/explain.h \
	%D%/out/explain/ceiling.c %D%/out/explain/constants.h \
	%D%/out/explain/delay.c \
	%D%/out/explain/ends.c \
	%D%/out/explain/facts.c %D%/out/explain/facts.h \
	%D%/out/explain/flows.c \
	%D%/out/explain/limits.def \
	%D%/out/explain/link.c \
	%D%/out/explain/rules.c %D%/out/explain/rules.def %D%/out/explain/rules.h \
	%D%/out/explain/tcp.c %D%/out/explain/turns.c \
	%D%/out/human.c \
	%D%/out/look.c \
	%D%/out/datagrams.c \
	%D%/out/ledger_table.c \
	%D%/out/omni.c \
	%D%/out/preflight_rules.c %D%/out/preflight_rules.h \
	%D%/out/select.c %D%/out/select.h \
	%D%/out/times.c

# What programs need beside src/libnetperf.a.
netperf_libs = $(SODIUM_LIBS) $(PCAP_LIBS) $(URING_LIBS) $(OPENSSL_LIBS)
if HAVE_PCAP
src_libnetperf_a_SOURCES += %D%/net/capture_pcap.c
# The other files are then the same to ccache with and without it.
%D%/net/capture_pcap.$(OBJEXT): AM_CPPFLAGS += $(PCAP_CFLAGS)
else
src_libnetperf_a_SOURCES += %D%/net/capture_none.c
endif

if HAVE_URING
src_libnetperf_a_SOURCES += %D%/bench/engine/uring.c \
	%D%/bench/engine/uring_ring.c %D%/bench/engine/uring_ring.h
AM_CPPFLAGS += $(URING_CFLAGS)
else
src_libnetperf_a_SOURCES += %D%/bench/engine/uring_none.c
endif

if HAVE_OPENSSL
src_libnetperf_a_SOURCES += %D%/bench/transport/tls_openssl.c
AM_CPPFLAGS += $(OPENSSL_CFLAGS)
else
src_libnetperf_a_SOURCES += %D%/bench/transport/tls_none.c
endif

bin_PROGRAMS += src/netperf
src_netperf_SOURCES = \
	%D%/cli/aim.c %D%/cli/aim.h \
	%D%/cli/beside.c %D%/cli/beside.h \
	%D%/cli/args.c %D%/cli/args.h \
	%D%/cli/ceilings.c \
	%D%/cli/tell_evidence.c \
	%D%/cli/engines.c \
	%D%/cli/checks.c \
	%D%/cli/help.c \
	%D%/cli/look.c %D%/cli/look.h \
	%D%/cli/main.c \
	%D%/cli/modes.h \
	%D%/cli/omni.c \
	%D%/cli/options.c \
	%D%/cli/phrases.c \
	%D%/cli/stray.c \
	%D%/cli/preflight.c \
	%D%/cli/progress.c %D%/cli/progress.h \
	%D%/cli/progress_text.c \
	%D%/cli/show.c %D%/cli/show.h \
	%D%/cli/tests.c
src_netperf_LDADD = src/libnetperf.a $(netperf_libs)

# JSON: no part of the daemon, which links what the library has of it but does not pull it in.
if HAVE_JANSSON
AM_CPPFLAGS += $(JANSSON_CFLAGS)
src_libnetperf_a_SOURCES += %D%/out/json.c %D%/out/json.h
documents = src/cli/document.c src/cli/document.h
src_netperf_LDADD += $(JANSSON_LIBS)
else
documents = src/cli/document.h src/cli/document_none.c
endif
src_netperf_SOURCES += $(documents)

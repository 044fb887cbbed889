# netserver/libnetserver.a: the daemon but its main(), so that tests can link it.
# The program is made in src/, where scripts that build netperf look for it.

noinst_LIBRARIES += netserver/libnetserver.a
netserver_libnetserver_a_SOURCES = \
	%D%/admit.c %D%/admit.h \
	%D%/args.c %D%/args.h \
	%D%/caller.c %D%/caller.h \
	%D%/confine.c %D%/confine.h \
	%D%/daemon.c %D%/daemon.h \
	%D%/filter.h \
	%D%/forkserver.c \
	%D%/front.c \
	%D%/one_port.c %D%/one_port.h \
	%D%/proxied.c %D%/proxied.h \
	%D%/guard.c %D%/guard.h \
	%D%/landlock.c \
	%D%/launch.c %D%/launch.h \
	%D%/limits.def \
	%D%/lines.c %D%/lines.h \
	%D%/metrics.c \
	%D%/notify.c %D%/notify.h \
	%D%/passed.c %D%/passed.h \
	%D%/processors.c %D%/processors.h \
	%D%/session.c %D%/session.h \
	%D%/sessions.c %D%/sessions.h \
	%D%/status.c %D%/status.h
netserver_libs = netserver/libnetserver.a src/libnetperf.a $(netperf_libs)
if HAVE_SECCOMP
netserver_libnetserver_a_SOURCES += %D%/filter_seccomp.c
AM_CPPFLAGS += $(SECCOMP_CFLAGS)
netserver_libs += $(SECCOMP_LIBS)
else
netserver_libnetserver_a_SOURCES += %D%/filter_none.c
endif

bin_PROGRAMS += src/netserver
src_netserver_SOURCES = \
	%D%/main.c
src_netserver_LDADD = $(netserver_libs)

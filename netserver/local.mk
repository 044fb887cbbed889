# netserver/libnetserver.a: the daemon but its main(), so that tests can link it.
# The program is made in src/, where scripts that build netperf look for it.

noinst_LIBRARIES += netserver/libnetserver.a
netserver_libnetserver_a_SOURCES = \
	%D%/admit.c %D%/admit.h \
	%D%/args.c %D%/args.h \
	%D%/daemon.c %D%/daemon.h \
	%D%/notify.c %D%/notify.h
netserver_libs = netserver/libnetserver.a src/libnetperf.a $(SODIUM_LIBS)

bin_PROGRAMS += src/netserver
src_netserver_SOURCES = \
	%D%/main.c
src_netserver_LDADD = $(netserver_libs)

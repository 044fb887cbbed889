# netlab-link: the link of scripts/netlab where the kernel has no netem, as on machines that run the
# tests. Built by make and not installed. In a library but its main(), so that unit tests can link it.

noinst_LIBRARIES += tests/link/libnetlab.a
tests_link_libnetlab_a_SOURCES = \
	%D%/carry.c %D%/carry.h \
	%D%/line.c %D%/line.h \
	%D%/link.c %D%/link.h \
	%D%/ns.c %D%/ns.h \
	%D%/probe.c %D%/probe.h

noinst_PROGRAMS += tests/link/netlab-link
tests_link_netlab_link_SOURCES = %D%/main.c
tests_link_netlab_link_LDADD = tests/link/libnetlab.a src/libnetperf.a

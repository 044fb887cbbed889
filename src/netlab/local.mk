# netlab-link: what scripts/netlab has done in C. In a library but its main(), so that tests can link
# it; Linux only, as everything that netlab does.

noinst_LIBRARIES += src/netlab/libnetlab.a
src_netlab_libnetlab_a_SOURCES = \
	%D%/carry.c %D%/carry.h \
	%D%/line.c %D%/line.h \
	%D%/link.c %D%/link.h \
	%D%/ns.c %D%/ns.h \
	%D%/probe.c %D%/probe.h

pkglibexec_PROGRAMS = src/netlab/netlab-link
src_netlab_netlab_link_SOURCES = %D%/main.c
src_netlab_netlab_link_LDADD = src/netlab/libnetlab.a src/libnetperf.a

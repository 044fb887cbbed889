/*
 * Receiving without a copy (-V): what arrives goes by splice(2) through a pipe to /dev/null, and
 * user space never sees it.
 */
#ifndef NP_BENCH_PATTERN_SPLICE_H
#define NP_BENCH_PATTERN_SPLICE_H

struct np_run;

/*
 * A stream receiver's loop, timed and paced as the flow's parameters say. Returns 0, -errno, or
 * -ENOSYS before anything was received where this machine can't do it.
 */
int np_splice_receive(struct np_run *run);

#endif

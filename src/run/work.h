/* What a test cost this end, summed over its workers (sys/thread.h). */
#ifndef NP_RUN_WORK_H
#define NP_RUN_WORK_H

#include "base/bag.h"
#include "bench/run.h"

/* As work.* of the evidence. The workers are back. */
void np_work_put(const struct np_run *run, struct np_bag *into);

#endif

/* From when on an interval counts as disturbed, as in doc/evidence.md (see tests/e2e/doc.py). */
#ifndef NP_RUN_THRESHOLDS_H
#define NP_RUN_THRESHOLDS_H

#define NP_D_STEAL 0.15   /* share of a processor's time that the hypervisor gave to others */
#define NP_D_WAITED 0.06  /* share of the time that a worker waited while others ran */
#define NP_D_TOUCHED 0.03 /* the same if it ran for less, or if many threads compete */
#define NP_D_SHORT_US 40  /* us of each wait: the kernel still handles the packets that woke it */
#define NP_D_STALLED 0.3  /* share of the time that threads of others waited for a processor */
#define NP_D_OTHERS 0.3   /* share of a worker's processor used by programs outside the test */
#define NP_D_SLOW 0.8     /* of the highest frequency so far: a busy processor below it is slowed */
#define NP_D_SLOW_BUSY 0.5    /* share of its time from which on a processor is busy */
#define NP_D_SQUEEZED 10      /* softirqs cut short in an interval that may be the test's own */
#define NP_D_SQUEEZED_TIMES 4 /* times the mean so far: more than that is not the test's own */
#define NP_D_FOREIGN 0.05     /* share of the interface's bytes that may be headers, or read late */
#define NP_D_FOREIGN_BYTES 20000 /* an interval: ARP, a shell and the like do not disturb */
#define NP_D_CLOCK_S 0.001  /* s: a step of the wall clock; slewing moves it by 0.00005 in 0.1 s */
#define NP_D_STOPPED_S 0.02 /* s in an interval in which the process stood still */

#endif

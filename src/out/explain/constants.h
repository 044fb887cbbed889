/* Thresholds of the rules. doc/explain.md has those that decide between causes, in words. */
#ifndef NP_OUT_EXPLAIN_CONSTANTS_H
#define NP_OUT_EXPLAIN_CONSTANTS_H

#define NP_ENOUGH 0.5          /* least score with which a rule holds */
#define NP_RIVAL 0.15          /* a rule with a score this close to the best one is named, too */
#define NP_STRONG 0.7          /* least score of another cause that is always named */
#define NP_WEAK 0.7            /* best score below which a tie is unclear */
#define NP_TIE 0.03            /* scores this close are a tie */
#define NP_SHORT 0.01          /* s: a shorter test allows no conclusion */
#define NP_NEXT 10             /* times the rate measured: more than that is not predicted */
#define NP_WITHIN 1.1          /* times another figure: up to that, the two agree */
#define NP_BUSY 0.85           /* share of a processor from which on it limits a thread */
#define NP_RUNS 0.03           /* share of a processor below which a thread hardly runs */
#define NP_WAITS 0.25          /* share of the time ready to run: the thread lacks a processor */
#define NP_WAITS_HOG 0.1       /* the same, if others keep its processor busy */
#define NP_CROWDED 0.85        /* busy share of a processor from which on it is crowded */
#define NP_THROTTLED 0.1       /* share of the time in which a quota was used up */
#define NP_OFTEN 0.5           /* share of the periods in which it was used up: it is the quota */
#define NP_DISTURBED 0.05      /* share of the time that others disturbed: above it, a doubt */
#define NP_COPIES 0.6          /* share of a processor from which on a reader's copies matter */
#define NP_JUST_AFTER 32       /* bytes after a page, to where some processors copy slowly */
#define NP_STOOD_TIMES 10      /* times P99: percentiles of a closed loop hide such a stall */
#define NP_STOOD_US 1000       /* and it lasts as long at least */
#define NP_STALLED 0.15        /* share of the time in which a process stood still */
#define NP_MOSTLY_BLOCKED 0.5  /* share of the time blocked in a call, or asleep by choice */
#define NP_SLEEPS 0.4          /* share of the time asleep: no processor limits what is held up */
#define NP_ASKED 0.85          /* of the rate that the user asked for: that rate limits */
#define NP_LOSSY 0.001         /* share of segments from which on their loss matters */
#define NP_LOSSY_UDP 0.01      /* the same, as a share of datagrams */
#define NP_HEAVY 0.05          /* share of segments: losing it causes pauses by itself */
#define NP_WINDOW 0.4          /* share of the time in which the receiver's window limited */
#define NP_SNDBUF 0.3          /* share of the time in which the send buffer limited */
#define NP_QUEUE_US 300        /* us of a round trip above the least: a queue */
#define NP_QUEUE_TIMES 2       /* and this many times the least */
#define NP_QUEUE_SEGMENTS 4    /* and this many segments in the queue */
#define NP_ONE_WAY 0.6         /* share of the round trip that one direction takes, to be named */
#define NP_UNREAD 0.4          /* share of samples with a quarter of the buffer unread */
#define NP_WINDOW_SHUT 0.2     /* of the buffer: its size does not explain so small a window */
#define NP_FULL 0.97           /* of the ceiling: the link is full */
#define NP_FULL_SHAPER 0.8     /* the same, for a shaper that held packets back throughout */
#define NP_FULL_TURNS 0.85     /* the same, for one direction of transactions */
#define NP_FULL_MOSTLY 0.7     /* the same, beside which nothing else is busy */
#define NP_FULL_OTHERS 0.9     /* the same, including the traffic of others */
#define NP_OVERLIMITS 10       /* packets a second that a queue held back throughout */
#define NP_TOO_FULL 1.05       /* of the ceiling: the data took another path */
#define NP_SOFTIRQ 0.85        /* share of a processor in softirq */
#define NP_LOST_TO_RATE 0.05   /* share of lost datagrams: if the rest is steady, a rate limits */
#define NP_SMALL_RCVBUF 16384  /* bytes of SO_RCVBUF, too few to keep a window open */
#define NP_USUAL_RCVBUF 131072 /* bytes of SO_RCVBUF that are not a small buffer */
#define NP_SOFTIRQ_NEXT 0.3    /* share of a processor in softirq that may limit next */
#define NP_CALL 65536          /* bytes of a call from which on its size hardly matters */
#define NP_UNSCALED 60000      /* bytes, about the largest window without scaling */
#define NP_LOSS_BBR 0.1        /* share of lost segments up to which BBR does not slow down */
#define NP_LEFT 0.7            /* share of samples with unread data: the reader is late */
#define NP_STEADY 0.1          /* relative spread of a steady rate between samples */
#define NP_STILL 0.15          /* share of the time in which nothing moved */
#define NP_STILL_S 0.3         /* s, the least length of the longest such time */
#define NP_NARROW 1280         /* bytes: no usual link has a smaller MTU */
#define NP_STATION 0.5         /* share of a transaction that one part takes, to be named */
#define NP_IN_VAIN 0.5         /* share of the retransmissions that were not needed */
#define NP_HOLE 0.8            /* share of the time from which on an outage may be due to an MTU */
#define NP_TURN_TIMES 3        /* a transaction of this many round trips waits for an end */

/* Of several flows (flows.c). */
#define NP_ALIKE 0.9       /* Jain's index of their rates from which on flows are equal */
#define NP_SLOW 0.6        /* of the greatest rate, and on average of the others: slow flows */
#define NP_MEMBERS 0.8     /* share of the slow flows that must have the property */
#define NP_TIMES_LOSS 4    /* times the others' loss: the loss is the flow's own */
#define NP_LOSS_STOPS 0.02 /* share of segments from which on loss also leaves windows empty */
#define NP_TIMER_S 0.2     /* s, the least that the loss of a single segment costs */
#define NP_TIMES_RTT 1.7   /* times the others' round trip: the round trip is the flow's own */
#define NP_APART_US 300    /* us by which such a round trip is longer at least */
#define NP_BUSIER 0.1      /* of a processor, by which a slow flow's thread is busier */
#define NP_CHANCE 0.02     /* probability below which a common property is not chance */

#endif

/*
 * What the rules compare with. doc/explain.md has the same table: tests/e2e/doc.py compares them.
 */
#ifndef NP_OUT_EXPLAIN_CONSTANTS_H
#define NP_OUT_EXPLAIN_CONSTANTS_H

#define NP_ENOUGH 0.5         /* score from which on a rule holds */
#define NP_RIVAL 0.15         /* a rule whose score is that close to the best one's is named, too */
#define NP_STRONG 0.7         /* score of another cause that is named whatever the best one's is */
#define NP_WEAK 0.7           /* best score below which a tie is unclear */
#define NP_TIE 0.03           /* scores that close are a tie */
#define NP_SHORT 0.01         /* s: of a test that is shorter nothing is concluded */
#define NP_NEXT 10            /* times the rate measured: what is beyond that is no forecast */
#define NP_WITHIN 1.1         /* times the rate measured: what allows no more than that limits */
#define NP_BUSY 0.85          /* share of a processor from which on a thread is held up by it */
#define NP_RUNS 0.03          /* share of a processor below which a thread wants none */
#define NP_WAITS 0.25         /* share of the time ready to run that is want of a processor */
#define NP_WAITS_HOG 0.1      /* the same, where others keep its processor busy */
#define NP_CROWDED 0.85       /* share of a processor that is busy, from which on it is crowded */
#define NP_THROTTLED 0.1      /* share of the time in which a quota was used up */
#define NP_OFTEN 0.5          /* share of the periods in which it was: it is the quota */
#define NP_DISTURBED 0.05     /* share of the time that others disturbed: beyond it, a doubt */
#define NP_STALLED 0.15       /* share of the time in which a process did not get to look */
#define NP_STALLED_S 0.05     /* s, the least of the longest of those times */
#define NP_HELD_UP 0.3        /* share of looks that came late without want of a processor */
#define NP_BLOCKED 0.5        /* share of the time in a call, from which on a thread waits */
#define NP_ASKED 0.85         /* of the rate that the user asked for: it is what limits */
#define NP_LOSSY 0.001        /* share of segments from which on their loss matters */
#define NP_LOSSY_UDP 0.01     /* share of datagrams, the same */
#define NP_HEAVY 0.05         /* share of segments whose loss makes pauses by itself */
#define NP_WINDOW 0.4         /* share of the time that the receiver's window held the sender up */
#define NP_SNDBUF 0.3         /* share of the time that the send buffer did */
#define NP_QUEUE_US 300       /* us of a round trip beyond the least that are a queue */
#define NP_QUEUE_TIMES 2      /* and so many times the least */
#define NP_QUEUE_SEGMENTS 4   /* and so many segments in it */
#define NP_ONE_WAY 0.6        /* share of the round trip that one direction has, to be named */
#define NP_UNREAD 0.4         /* share of samples with a quarter of the buffer to be read */
#define NP_WINDOW_SHUT 0.2    /* of the buffer: a window that small is not of its size */
#define NP_FULL 0.97          /* of the ceiling: the link is full */
#define NP_FULL_SHAPER 0.8    /* the same of a shaper that held packets back all the while */
#define NP_FULL_TURNS 0.85    /* the same of one direction of transactions */
#define NP_FULL_OTHERS 0.9    /* the same of what others carry beside */
#define NP_OVERLIMITS 10      /* packets a second that a queue held back all the while */
#define NP_TOO_FULL 1.05      /* of the ceiling: the data went another way */
#define NP_SOFTIRQ 0.85       /* share of a processor in softirq */
#define NP_LOST_TO_RATE 0.05  /* share of datagrams from which on a steady rest is a rate */
#define NP_SMALL_RCVBUF 16384 /* bytes of SO_RCVBUF below which nobody keeps a window open */
#define NP_USUAL_RCVBUF 131072 /* bytes of SO_RCVBUF that are no small buffer */
#define NP_SOFTIRQ_NEXT 0.3    /* share of a processor in softirq that may limit next */
#define NP_UNSCALED 60000      /* bytes of a window that only scaling would make wider */
#define NP_LOSS_BBR 0.1        /* share of segments up to which BBR does not mind loss */
#define NP_LEFT 0.7            /* share of samples with anything to be read: the reader is late */
#define NP_STEADY 0.1          /* relative spread of a rate between samples that is steady */
#define NP_STILL 0.15          /* share of the time in which nothing moved */
#define NP_STILL_S 0.3         /* s, the least of the longest of those times */
#define NP_NARROW 1280         /* bytes: MTUs below are not what links come with */
#define NP_STATION 0.5         /* share of a transaction that one station takes, to be named */
#define NP_IN_VAIN 0.5         /* share of what was sent again that had not been lost */
#define NP_HOLE 0.8            /* share of the time from which on it may be an MTU on the way */
#define NP_TURN_TIMES 3        /* a transaction that takes so many round trips waits for an end */

/* Of several flows (flows.c). */
#define NP_ALIKE 0.9       /* Jain's index of their rates from which on flows are alike */
#define NP_SLOW 0.6        /* of the others' mean rate: slow flows have no more on average */
#define NP_MEMBERS 0.8     /* share of the slow flows that have to have what makes them slow */
#define NP_TIMES_LOSS 4    /* times the others' loss that a loss is a flow's own */
#define NP_LOSS_STOPS 0.02 /* share of segments from which on loss leaves windows empty, too */
#define NP_TIMER_S 0.2     /* s that a lone segment's loss takes, at least */
#define NP_TIMES_RTT 1.7   /* times the others' round trip that it is a flow's own */
#define NP_BUSIER 0.1      /* of a processor, that a slow flow's thread is busier */
#define NP_CHANCE 0.02     /* probability below which what slow flows share is no chance */

#endif

/*
 * netlab-link run: a link of two TUN devices, one in each namespace, held and served by a process
 * in the background. Everything of it goes with that process. And netlab-link tell: speaks to it.
 */
#ifndef NP_TESTS_LINK_LINK_H
#define NP_TESTS_LINK_LINK_H

#include "base/err.h"

#include <stdio.h>

/*
 * words: device=NAME, one=PATH and two=PATH of the namespaces, where there are several links
 * between two of them control=NAME, by which this one is told things (netlab-link), the rest as
 * np_line_plan_word() takes it. Returns in the parent once the devices are there and the link is
 * served; the process that serves it does not return. NP_EUSAGE, NP_ESYS.
 */
int np_link_run(char *const *words, struct np_err *err);

/*
 * Asks the link of the namespace at words[0], which may be followed by its control=NAME: "show"
 * prints JSON, "set NAME=VALUE..." changes it, "clear" forgets the latenesses. NP_EPEER when it
 * refuses or there is none.
 */
int np_link_tell(char *const *words, FILE *out, struct np_err *err);

#endif

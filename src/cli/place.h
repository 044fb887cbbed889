/*
 * Files that a run is to write at its end: whether that will do is better known before it.
 */
#ifndef NP_CLI_PLACE_H
#define NP_CLI_PLACE_H

#include <stdbool.h>

/*
 * Could that file be written now? Nothing is made or changed. replaced: another one takes its
 * place, so that its directory has to be writable, unless it is a pipe or device. Returns 0, or an
 * errno.
 */
int np_place_lacks(const char *path, bool replaced);

#endif

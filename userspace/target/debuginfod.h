/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers, through elfutils' libdebuginfod and its cache. The library
 * is looked for at run time: it is not needed to run, and a static binary does without.
 */
#ifndef WAFFLE_TARGET_DEBUGINFOD_H
#define WAFFLE_TARGET_DEBUGINFOD_H

#include "target/buildid.h"

struct debuginfod;

/* NULL: DEBUGINFOD_URLS is not set or empty, or there is no libdebuginfod (or no memory). */
struct debuginfod *debuginfod_open(void);
void debuginfod_close(struct debuginfod *debuginfod);

/*
 * A descriptor of the debug file of a build-id, or a negative errno. May ask the network and take
 * as long as DEBUGINFOD_TIMEOUT says (90 s without data by default).
 */
int debuginfod_fetch(struct debuginfod *debuginfod, const struct build_id *id);

#endif

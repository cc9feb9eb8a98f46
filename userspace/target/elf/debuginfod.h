/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers, through elfutils' libdebuginfod and its cache. The library
 * is loaded at run time and is optional: a static binary works without it.
 */
#ifndef WAFFLE_TARGET_ELF_DEBUGINFOD_H
#define WAFFLE_TARGET_ELF_DEBUGINFOD_H

#include "target/elf/buildid.h"

struct debuginfod;

/* NULL: DEBUGINFOD_URLS is unset or empty, libdebuginfod is not installed, or allocation failed. */
struct debuginfod *debuginfod_open(void);
void debuginfod_close(struct debuginfod *debuginfod);

/*
 * Returns a descriptor of the debug file with a build-id, or a negative errno. May access the
 * network and block up to DEBUGINFOD_TIMEOUT (by default 90 s without data).
 */
int debuginfod_fetch(struct debuginfod *debuginfod, const struct build_id *id);

#endif

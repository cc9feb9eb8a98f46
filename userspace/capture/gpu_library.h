/* SPDX-License-Identifier: Apache-2.0 */
/* libwaffle-gpu, the library that records what GPUs did and ranges of NVTX (usdt/gpu). */
#ifndef WAFFLE_CAPTURE_GPU_LIBRARY_H
#define WAFFLE_CAPTURE_GPU_LIBRARY_H

#include <limits.h>
#include <sys/types.h>

#include "util/error.h"

/* Its path: next to waffle-bpf in a build tree, or where make install puts it. */
int gpu_library_path(char path[PATH_MAX], struct error *err);

/* Loads it into a running process, unless it is there (target/inject/inject.h). */
int gpu_library_load(pid_t pid, struct error *err);

#endif

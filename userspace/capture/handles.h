/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of kernels that a CUDA program got before the capture began. Since CUDA 13 a launch asks
 * once for the handle of its kernel and keeps it in a static variable of the launch's stub,
 *	__device_stub__Z5saxpyifPfS_(…)::__handle
 * so the symbol table says where it is and what it is a handle of.
 */
#ifndef WAFFLE_CAPTURE_HANDLES_H
#define WAFFLE_CAPTURE_HANDLES_H

#include <stdint.h>

#include "target/image.h"
#include "util/wire.h"

/* What CUDA's compilers put before the name of a kernel to call the host's side of it. */
#define HANDLES_STUB "__device_stub_"

/*
 * Calls `each` with the value and the kernel's name of every such variable of the ELF file open at
 * `fd`, of which the byte at `offset` is at `address` in the process's memory; not those that are
 * still 0. Nothing to be found is no error. -ENOMEM.
 */
int handles_find(int fd, const struct image *image, uint64_t address, uint64_t offset,
		 void (*each)(uint64_t handle, const char *name, void *arg), void *arg);

/* The worker's side, which reads the file: a worker_handler. */
int handles_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

/* The name that a process gives for a handle, at an address of its memory; the copy is the
 * caller's. NULL: it can't be read. */
char *handles_text(const struct image *image, uint64_t address);

#endif

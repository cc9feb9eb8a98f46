/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of kernels that a program obtained before the capture.
 *
 * CUDA: since CUDA 13 the stub of a launch requests the handle of its kernel once, and keeps it in
 * a static variable:
 *
 *	__device_stub__Z5saxpyifPfS_(…)::__handle
 *
 * So the symbol table has the variable's address and the name of the kernel.
 *
 * HIP: the handle is the address of a variable that has the name of the kernel, _Z5saxpyifPfS_. The
 * function that launches it is _Z20__device_stub__saxpyifPfS_. The compiler makes both
 * (clang/lib/CodeGen/CGCUDANV.cpp).
 */
#ifndef WAFFLE_CAPTURE_ENRICH_HANDLES_H
#define WAFFLE_CAPTURE_ENRICH_HANDLES_H

#include <stdint.h>

#include "target/process/image.h"
#include "util/wire.h"

/* Prefixes that compilers put before a kernel's name to name its stub on the host. CUDA's put it
 * before the mangled name, those of HIP before the name in the source. */
#define HANDLES_STUB "__device_stub_"
#define HANDLES_STUB_HIP "__device_stub__"

/*
 * Calls `each` with the handle and the kernel's name of every such variable in the ELF file open at
 * `fd`. The byte of the file at `offset` is mapped at `address` in the process. CUDA's variables
 * that are still 0 are skipped, and all of CUDA's without an image. Neither a handle nor a name is
 * ever empty, whatever the worker replies. Finding none is no error. -ENOMEM.
 */
int handles_find(int fd, const struct image *image, uint64_t address, uint64_t offset,
		 void (*each)(uint64_t handle, const char *name, void *arg), void *arg);

/* The worker's side, which reads the file: a worker_handler. */
int handles_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

#endif

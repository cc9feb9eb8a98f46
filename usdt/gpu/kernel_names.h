/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels at run time (waffle_named.h). Only one thread may call it. */
#ifndef WAFFLE_USDT_GPU_KERNEL_NAMES_H
#define WAFFLE_USDT_GPU_KERNEL_NAMES_H

#include "usdt/gpu/fields.h"

/* The name for a kernel with these keys. `text` is as the compiler has made it, and may be NULL. It
 * is demangled if the process has loaded a C++ library that can do that. */
waffle_name_t *kernel_name(const char *text, const struct fields *fields);

#endif

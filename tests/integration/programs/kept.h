/* SPDX-License-Identifier: Apache-2.0 */
/* KEPT: the compiler neither inlines nor clones the function. */
#ifndef PROGRAMS_KEPT_H
#define PROGRAMS_KEPT_H

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

#endif

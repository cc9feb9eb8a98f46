/* SPDX-License-Identifier: Apache-2.0 */
/* KEPT: the compiler calls the function as it is written. */
#ifndef PROGRAMS_KEPT_H
#define PROGRAMS_KEPT_H

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ names as people write them (Itanium C++ ABI, 5.1). The demangler is the one of GCC's run-time
 * library (libsupc++.a), entered where it hands out pieces of text, because a name of 200 bytes can
 * unfold to gigabytes and names come from files that nobody has checked.
 */
#ifndef WAFFLE_TARGET_DEMANGLE_H
#define WAFFLE_TARGET_DEMANGLE_H

#include <stddef.h>

#include "util/wire.h"

#define DEMANGLE_MAX 4096 /* bytes of the longest name that is written out, with its NUL */

/*
 * Writes the name of a mangled symbol ("_ZN3foo3barEi" → "foo::bar(int)") into `text` and returns
 * it. NULL: not mangled, damaged, or too long when written out; show the symbol as it is. Uses up
 * to some hundred kB of stack.
 */
const char *demangle(const char *symbol, char text[DEMANGLE_MAX]);

/* The same in a worker, if there is one (target/worker.h): a worker_handler. */
int demangle_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

#endif

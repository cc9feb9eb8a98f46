/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles C++ names (Itanium C++ ABI, 5.1) with GCC's run-time library (libsupc++.a). We use its
 * callback interface, which hands out the text in pieces. Names come from untrusted files, and a
 * name of 200 bytes can expand to gigabytes. Names of Rust are those of C++, or of its own scheme
 * (demangle_rust_internal.h).
 */
#ifndef WAFFLE_TARGET_ELF_DEMANGLE_H
#define WAFFLE_TARGET_ELF_DEMANGLE_H

#include <stddef.h>

#include "util/wire.h"

#define DEMANGLE_MAX 4096 /* bytes of the longest demangled name, with its NUL */

/*
 * Demangles a symbol ("_ZN3foo3barEi" → "foo::bar(int)") into `text` and returns it. NULL: the
 * symbol is not mangled, is malformed, or its demangled name is too long; show it unchanged. May
 * use several hundred kB of stack.
 */
const char *demangle(const char *symbol, char text[DEMANGLE_MAX]);
/* The same, but an older name of Rust keeps the escapes and the hash that the symbol has: that is
 * how users write such a function. */
const char *demangle_as_written(const char *symbol, char text[DEMANGLE_MAX]);

/* Demangles many symbols with few requests to the worker, since a request takes longer than a name.
 * Each of `names` becomes what demangle() returns, as a copy that the caller frees. */
#define DEMANGLE_BATCH 64 /* how many a caller passes at once */
void demangle_batch(const char *const *symbols, size_t count, char **names);

/* Both ask a worker, if there is one (target/worker/worker.h). This is the worker_handler. */
int demangle_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

#endif

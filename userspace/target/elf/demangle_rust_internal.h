/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles names of Rust, version 0: rustc's default since 1.95 (Rust RFC 2603). The older names
 * look like those of C++ and are left to its demangler. Hashes of crates and types of constants are
 * left out, as in Rust's own backtraces. Unlike those, identifiers and characters beyond ASCII stay
 * encoded: punycode{gre_jva7d}, '\u{2764}'.
 */
#ifndef WAFFLE_TARGET_ELF_DEMANGLE_RUST_INTERNAL_H
#define WAFFLE_TARGET_ELF_DEMANGLE_RUST_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a name begins like one. */
bool demangle_is_rust(const char *symbol);
/* Demangles "_RNvCs1234_7mycrate3foo" to "mycrate::foo". False: it is malformed, uses what is
 * unknown here, or does not fit. The work and the depth of the stack are bounded. */
bool demangle_rust(const char *symbol, char *text, size_t size);

#endif

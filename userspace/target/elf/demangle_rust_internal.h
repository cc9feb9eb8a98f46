/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles names of Rust, version 0: rustc's default since 1.95 (Rust RFC 2603). The older names
 * look like those of C++, whose demangler leaves escapes and a hash in them. Hashes of crates and
 * types of constants are left out, as in Rust's own backtraces. Unlike those, identifiers and
 * characters beyond ASCII stay encoded: punycode{gre_jva7d}, '\u{2764}'.
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

/* Decodes such an older name in place: "_$LT$shape..Square$GT$::area::h0123456789abcdef" is
 * "<shape::Square>::area" (compiler/rustc_symbol_mangling/src/legacy.rs). False: it is another
 * name, and is left as it is. */
bool demangle_rust_old(char *text);

#endif

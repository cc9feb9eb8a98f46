/* SPDX-License-Identifier: Apache-2.0 */
/*
 * USDT probes: notes of the section .note.stapsdt, owner "stapsdt", type 3, as SystemTap's
 * <sys/sdt.h> writes them (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
 * A note is not trusted: one that makes no sense is counted and left out.
 */
#ifndef WAFFLE_CALL_USDT_H
#define WAFFLE_CALL_USDT_H

#include <libelf.h>

#include "call/recipe.h"

struct usdt_note {
	const char *provider, *name;
	const char *arguments; /* "-4@%edi 8@-16(%rbp)" */
	uint64_t address;      /* link-time, of the nop */
	uint64_t semaphore;    /* link-time; 0: none */
};

/* Calls `each` with every note until it returns something else than 0, which is returned. */
int usdt_each(Elf *elf, int (*each)(const struct usdt_note *note, void *arg), void *arg,
	      uint32_t *bad);

/* What a symbol of an operand is: false: there is none. */
typedef bool usdt_symbol(const char *name, size_t len, uint64_t *address, void *arg);

/*
 * Reads the operands of a note into `at`, whose machine is set. An operand that the kernel can't
 * read (in a vector register, in another segment, a float) has at.count 0, and why. Returns how
 * many of those there are, or -EINVAL: the text is not understood from at->count on.
 */
int usdt_arguments(struct call_at *at, const struct usdt_note *note, usdt_symbol *symbol,
		   void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * USDT probes: notes in the section .note.stapsdt, owner "stapsdt", type 3, as SystemTap's
 * <sys/sdt.h> writes them (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation).
 * Notes are not trusted: a malformed one is counted and skipped.
 */
#ifndef WAFFLE_PROBE_FIND_USDT_INTERNAL_H
#define WAFFLE_PROBE_FIND_USDT_INTERNAL_H

#include <libelf.h>

#include "probe/args/fetch_program.h"

struct usdt_note {
	const char *provider, *name;
	const char *arguments; /* "-4@%edi 8@-16(%rbp)" */
	uint64_t address;      /* link-time address of the nop */
	uint64_t semaphore;    /* link-time address; 0: none */
};

/* Calls `each` with every note until it returns a value other than 0, which is then returned. */
int usdt_each(Elf *elf, int (*each)(const struct usdt_note *note, void *arg), void *arg,
	      uint32_t *bad);

/* Looks up the address of a symbol in an operand. False: there is none. */
typedef bool usdt_symbol(const char *name, size_t len, uint64_t *address, void *arg);

/*
 * Parses the operands of a note into `at`, whose machine is set. An operand that the kernel cannot
 * read (in a vector register, in another segment, a float) has at.count 0 and a reason. Returns how
 * many of those there are. -EINVAL: the text is malformed from argument at->count on.
 */
int usdt_arguments(struct call_at *at, const struct usdt_note *note, usdt_symbol *symbol,
		   void *arg);

#endif

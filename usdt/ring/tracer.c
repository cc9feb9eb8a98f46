// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring/tracer.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "usdt/ring/rings.h"
#include "waffle/abi.h"
#include "waffle/arch.h"

#ifdef __x86_64__
#define PROBE(name) name "_landing:\n\tendbr64\n" name "_probe:\n\tnop\n\tret\n"
#else
#define PROBE(name) "\t.balign 4\n" name "_landing:\n\thint #34\n" name "_probe:\n\tnop\n\tret\n"
#endif

_Static_assert(offsetof(struct rings_gate, ring) == 2 && offsetof(struct rings_gate, usdt) == 4,
	       "the note has these offsets");
_Static_assert(RING_VERSION == 3 && WAFFLE_TRANSPORT_VERSION == 2,
	       "whoever changes the layout of rings has to change the version of the note, too");

#define TEXT_(value) #value
#define TEXT(value) TEXT_(value)

/* Both probes are in one section, so that the linker keeps both. */
// clang-format off
__asm__(".pushsection .text.tracer_probes,\"ax\",%progbits\n"
	".hidden tracer_ring_landing\n"
	".globl tracer_ring_landing\n"
	PROBE("tracer_ring")
	PROBE("tracer_usdt")
	".popsection\n"
	".pushsection .note.waffle,\"\",%note\n"
	"\t.balign 4\n"
	"\t.4byte 2f-1f, 4f-3f, " TEXT(WAFFLE_NOTE_TRANSPORT) "\n"
	"1: .asciz \"" WAFFLE_NOTE_OWNER "\"\n"
	"2: .balign 4\n"
	"3: .8byte tracer_ring_probe, rings_gate+2, tracer_usdt_probe, rings_gate+4\n"
	"\t.4byte " TEXT(WAFFLE_TRANSPORT_VERSION) ", 0\n"
	"4: .balign 4\n"
	".popsection\n");
// clang-format on

extern const char tracer_ring_landing[] __attribute__((visibility("hidden")));

void tracer_announce(const void *memory, uint64_t map_bytes, uint32_t tid)
{
	/* The convention of sites (abi.h): four arguments in registers. */
	waffle_probe_call_(tracer_ring_landing + WAFFLE_LANDING_, (uintptr_t)memory,
			   (const void *)map_bytes, (const void *)(uintptr_t)tid, 0);
}

/* The number after a word that begins a line of a file of /proc. -1: there is none. */
static long number_of(const char *path, const char *word)
{
	static char text[4096]; /* some threads that load libraries have small stacks */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *line;

	if (fd >= 0)
		close(fd);
	text[got < 0 ? 0 : got] = '\0';
	line = strstr(text, word);
	return line ? strtol(line + strlen(word), NULL, 10) : -1;
}

/* As process_is_confined() of userspace/target has it: all processes of a container have the
 * filters of its first one. */
static bool is_confined(void)
{
	long mode = number_of("/proc/self/status", "\nSeccomp:");

	if (mode != SECCOMP_MODE_FILTER)
		return mode == SECCOMP_MODE_STRICT;
	return number_of("/proc/self/status", "\nSeccomp_filters:") !=
	       number_of("/proc/1/status", "\nSeccomp_filters:");
}

void tracer_heed_sandbox(void)
{
	if (__atomic_load_n(&rings_gate.ring, __ATOMIC_RELAXED) && is_confined())
		/* Only the high byte: the kernel counts tracers in the low one (sites.h). */
		__atomic_store_n((uint8_t *)&rings_gate.usdt + 1, 1, __ATOMIC_RELAXED);
}

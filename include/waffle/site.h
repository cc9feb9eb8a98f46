/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A site is one asm statement with the test, the probe, the semaphore and the notes. So the
 * compiler can neither drop nor share a part of it. Sections are opened with "?". So in an inline
 * function or a template they join its COMDAT group, and the linker drops them with the group.
 *
 * All compile-time facts are one string literal ("meta", see abi.h), to which the note points. The
 * running program neither reads nor sends it.
 */
#ifndef WAFFLE_SITE_H
#define WAFFLE_SITE_H

#include "abi.h"
#include "arch.h"

/* A string literal. The program may define it before the include, or again before a use. */
#ifndef WAFFLE_CATEGORY
#define WAFFLE_CATEGORY ""
#endif

/* Start of a site's meta; the keys follow. */
#define WAFFLE_META_HEAD_(name) name "\0" __FILE__ "\0" WAFFLE_CATEGORY "\0"

#define WAFFLE_ASM_SEMAPHORE_                                                                      \
	".pushsection .probes,\"aw?\",\"progbits\"\n\t.balign 2\n992: .2byte 0\n\t.popsection\n"

/* waffle's note; its layout is in abi.h. */
#define WAFFLE_ASM_NOTE_(semaphore)                                                                \
	".pushsection .note.waffle,\"?\",\"note\"\n\t.balign 4\n"                                  \
	"\t.4byte 994f-993f, 996f-995f, 1\n"                                                       \
	"993: .asciz \"waffle\"\n994: .balign 4\n"                                                 \
	"995: .8byte 990b, 989b, " semaphore ", %c[waffle_meta], %c[waffle_func]\n"                \
	"\t.4byte %c[waffle_bytes], %c[waffle_line], %c[waffle_kind], %c[waffle_version]\n"        \
	"996: .balign 4\n\t.popsection\n"

/*
 * A plain USDT note (SystemTap's format 3), with which bpftrace and perf see waffle:span_12, … too.
 * The name includes the line, because bpftrace assumes that probes of one name share one semaphore.
 */
#define WAFFLE_ASM_USDT_(usdt, semaphore)                                                          \
	".pushsection .note.stapsdt,\"?\",\"note\"\n\t.balign 4\n"                                 \
	"\t.4byte 994f-993f, 996f-995f, 3\n"                                                       \
	"993: .asciz \"stapsdt\"\n994: .balign 4\n"                                                \
	"995: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                        \
	"\t.asciz \"waffle\"\n\t.asciz \"" usdt "_%c[waffle_line]\"\n\t.asciz \"" WAFFLE_ASM_ARGS_ \
	"\"\n"                                                                                     \
	"996: .balign 4\n\t.popsection\n"                                                          \
	".ifndef _.stapsdt.base\n"                                                                 \
	"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                  \
	"\t.weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n"                                       \
	"_.stapsdt.base: .space 1\n\t.size _.stapsdt.base, 1\n\t.popsection\n"                     \
	".endif\n"

/*
 * Refers to the strings from code behind the probe, where nothing runs. The notes do not count as
 * references for lld --gc-sections. Without this it would drop the strings, and the site would have
 * no name. In front of that is the distance to the semaphore, which libwaffle reads
 * (usdt/ring/hit_x86.S). An armed site finds its meta and its line there, too, so that it need not
 * pass them.
 */
#define WAFFLE_ASM_KEEP_(semaphore)                                                                \
	".subsection 1\n\t.4byte " semaphore "\n\t.4byte %c[waffle_meta] - .\n"                    \
	"\t.4byte %c[waffle_func] - .\n\t.4byte %c[waffle_line]\n\t.previous\n"

/* Distance in bytes from the probe (arch.h) to the offset of the meta and to the line. */
#define WAFFLE_AT_META_ (WAFFLE_PROBE_BYTES_ + 4)
#define WAFFLE_AT_LINE_ (WAFFLE_PROBE_BYTES_ + 12)

/* The site's meta, which begins with its name. */
static __inline__ const char *waffle_probe_meta_(const void *probe_)
{
	const char *at_ = (const char *)probe_ + WAFFLE_AT_META_;
	int distance_;

	__builtin_memcpy(&distance_, at_, sizeof(distance_));
	return at_ + distance_;
}

static __inline__ unsigned waffle_probe_line_(const void *probe_)
{
	unsigned line_;

	__builtin_memcpy(&line_, (const char *)probe_ + WAFFLE_AT_LINE_, sizeof(line_));
	return line_;
}

#define WAFFLE_ASM_SITE_INPUTS_(site_kind, site_meta)                                              \
	[waffle_meta] WAFFLE_ASM_SYMBOL_(site_meta), [waffle_func] WAFFLE_ASM_SYMBOL_(__func__),   \
		[waffle_bytes] "i"(sizeof(site_meta)), [waffle_line] "i"(__LINE__),                \
		[waffle_kind] "i"(site_kind), [waffle_version] "i"(WAFFLE_SITE_VERSION)

#define WAFFLE_ASM_BODY_(usdt)                                                                     \
	WAFFLE_ASM_PROBE_ WAFFLE_ASM_KEEP_("992f - .")                                             \
		WAFFLE_ASM_SEMAPHORE_ WAFFLE_ASM_NOTE_("992b") WAFFLE_ASM_USDT_(usdt, "992b")

/* Sets `armed` (an int) and, if it is not 0, `probe_var` (a const void *). */
#ifdef __clang__
#define WAFFLE_SITE_TEST_(armed, probe_var, site_kind, usdt, site_meta)                            \
	__asm__ __volatile__(WAFFLE_ASM_FLAGS_ WAFFLE_ASM_BODY_(usdt)                              \
			     : [waffle_probe] "=r"(probe_var), WAFFLE_ASM_ARMED_(armed)            \
			     : WAFFLE_ASM_SITE_INPUTS_(site_kind, site_meta)                       \
			     : "cc")
#else
/* The asm writes probe_var but cannot declare it: before gcc 11 asm goto has no outputs. The empty
 * asm at the label declares the output on the path that uses it. */
#define WAFFLE_SITE_TEST_(armed, probe_var, site_kind, usdt, site_meta)                            \
	do {                                                                                       \
		__label__ waffle_armed_;                                                           \
		__asm__ goto(WAFFLE_ASM_GOTO_ WAFFLE_ASM_BODY_(usdt)                               \
			     :                                                                     \
			     : [waffle_probe] "m"(probe_var),                                      \
			       WAFFLE_ASM_SITE_INPUTS_(site_kind, site_meta)                       \
			     : WAFFLE_ASM_CLOBBERS_                                                \
			     : waffle_armed_);                                                     \
		(armed) = 0;                                                                       \
		if (0) {                                                                           \
		waffle_armed_:                                                                     \
			__asm__("" : "=m"(probe_var));                                             \
			(armed) = 1;                                                               \
		}                                                                                  \
	} while (0)
#endif

/* A site without a semaphore, for code that only runs when armed. Yields the probe's address. */
#define WAFFLE_SITE_BARE_(probe_var, site_kind, usdt, site_meta)                                   \
	__asm__ __volatile__(WAFFLE_ASM_ADDRESS_ WAFFLE_ASM_PROBE_ WAFFLE_ASM_KEEP_("0")           \
				     WAFFLE_ASM_NOTE_("0") WAFFLE_ASM_USDT_(usdt, "0")             \
			     : [waffle_probe] "=r"(probe_var)                                      \
			     : WAFFLE_ASM_SITE_INPUTS_(site_kind, site_meta))

#endif

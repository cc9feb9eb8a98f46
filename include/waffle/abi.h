/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between an instrumented program and waffle-bpf: the ELF note of a site, the
 * registers at its probe, and the frame that an armed site passes. The macros in this directory
 * write it, bpf/ copies it, userspace/ reads it. Plain enums and structs only: no libc, usable from
 * BPF.
 */
#ifndef WAFFLE_ABI_H
#define WAFFLE_ABI_H

/*
 * The ELF note: section .note.waffle, owner "waffle", type WAFFLE_NOTE_SITE. All addresses are
 * link-time addresses of the file with the note. The descriptor has the byte order of the file:
 *   u64 probe      the probed instruction, a one-byte nop that only an armed site executes
 *   u64 test       an address in the function that uses the macro
 *   u64 semaphore  16-bit counter that the kernel raises while armed; 0: none
 *   u64 meta       "name\0file\0category\0" then one "<type>key\0" for each key
 *   u64 func       name of the enclosing function, NUL-terminated; 0: none
 *   u32 meta_size  bytes at meta, the last one a NUL
 *   u32 line
 *   u32 kind       enum waffle_site_kind
 *   u32 version    WAFFLE_SITE_VERSION; 0: not known
 *
 * A stand-in for a real library (docs/simulation.md) has a note of type WAFFLE_NOTE_SIMULATION with
 * an empty descriptor.
 *
 * A file that contains libwaffle has a note of type WAFFLE_NOTE_TRANSPORT. What its two probes and
 * their semaphores are for is in usdt/ring/tracer.h. Addresses are link-time addresses, too:
 *   u64 ring probe, u64 its semaphore, u64 usdt probe, u64 its semaphore
 *   u32 version    WAFFLE_TRANSPORT_VERSION
 *   u32 reserved   0
 */
#define WAFFLE_NOTE_SECTION ".note.waffle"
#define WAFFLE_NOTE_OWNER "waffle"
#define WAFFLE_NOTE_SITE 1
#define WAFFLE_NOTE_SIMULATION 2
#define WAFFLE_NOTE_TRANSPORT 3
#define WAFFLE_NOTE_DESC_BYTES 56
#define WAFFLE_NOTE_TRANSPORT_BYTES 40
#define WAFFLE_TRANSPORT_VERSION 2
/* The number in the names of struct waffle_process_ (context.h). Sites share that struct with a
 * libwaffle of the same number only. Others record nothing there, but their probes are the same. */
#define WAFFLE_SITE_VERSION 6

/* The macro of a site. WAFFLE_SITE_SPAN_END has no name: the site of the span's begin names it. */
enum waffle_site_kind {
	WAFFLE_SITE_SPAN = 1,
	WAFFLE_SITE_SPAN_END = 2,
	WAFFLE_SITE_EVENT = 3,
	WAFFLE_SITE_COUNTER = 4,
	WAFFLE_SITE_LOG_INFO = 5,
	WAFFLE_SITE_LOG_WARN = 6,
	WAFFLE_SITE_LOG_ERROR = 7,
	WAFFLE_SITE_KIND_COUNT
};

/* Type letter of a key in the site's meta, and the layout of its value in the frame. */
#define WAFFLE_KEY_I64 'i'         /* one word, signed */
#define WAFFLE_KEY_U64 'u'         /* one word */
#define WAFFLE_KEY_F64 'd'         /* one word, IEEE 754 binary64 */
#define WAFFLE_KEY_BOOL 'b'        /* one word, 0 or 1 */
#define WAFFLE_KEY_PTR 'p'         /* one word */
#define WAFFLE_KEY_STR 's'         /* one word WAFFLE_STR_*, then the bytes padded to whole words */
#define WAFFLE_KEY_NUMBER 'n'      /* two words: enum waffle_number, then the value (counters) */
#define WAFFLE_KEY_CAUSE_SPAN 'S'  /* one word, a span id; 0: no link */
#define WAFFLE_KEY_CAUSE_EVENT 'E' /* one word, an event id; 0: no link */
/* Only in calls, which are functions that waffle-bpf decodes itself: */
#define WAFFLE_KEY_CODE 'c' /* one word, the address of a function, or a handle of one */
#define WAFFLE_KEY_DIM3 'v' /* two words: x in the low half, y in the high half; then z */

enum waffle_number {
	WAFFLE_NUMBER_I64 = 0,
	WAFFLE_NUMBER_U64 = 1,
	WAFFLE_NUMBER_F64 = 2,
	WAFFLE_NUMBER_NONE = 3, /* no value; the second word is 0 */
};

/* First word of a string: the number of copied bytes, and two marks. Both marks together mean that
 * the string could not be read. */
#define WAFFLE_STR_LEN(word) ((unsigned)((word)&0xffffffffu))
#define WAFFLE_STR_CUT (1ull << 32)  /* the original was longer */
#define WAFFLE_STR_NULL (1ull << 33) /* a null pointer */

#define WAFFLE_STR_MAX 256 /* limit of bytes copied from a string value */
#define WAFFLE_KEYS_MAX 16

/* x86-64: a probe's call leaves this many bytes below the function's stack unused, since a leaf
 * function may keep data there (waffle_probe_call_() in arch.h). Unwinding from a probe relies on
 * the number. */
#define WAFFLE_RED_ZONE 128

/*
 * Registers at a probe (x86-64 / aarch64), which are also the arguments of the USDT note
 * "waffle:<kind>":
 *   1  rdi/x0  span or event id
 *   2  rsi/x1  address of the site's name; at a span end: the probe address of the span's begin
 *   3  rdx/x2  address of the frame; 0 at a span end
 *   4  rcx/x3  size of the frame in bytes; 0 at a span end
 * The frame: the words of struct waffle_frame, followed by the keys' values in order.
 */
struct waffle_frame {
	unsigned long long id;       /* span or event id; 0 only for counters */
	unsigned long long parent;   /* current span, or 0 */
	unsigned long long trace_hi; /* 128-bit trace id, or 0 outside any span */
	unsigned long long trace_lo;
};

#define WAFFLE_FRAME_MAX (sizeof(struct waffle_frame) + WAFFLE_KEYS_MAX * (8 + WAFFLE_STR_MAX))

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The contract between generated programs (userspace/filter/codegen/codegen.h) and
 * bpf/filter.bpf.c: the next program after each decision, and the state of spans that have not
 * ended. */
#ifndef WAFFLE_FILTER_H
#define WAFFLE_FILTER_H

#include "record.h"
#include "waffle/abi.h"

/*
 * Slots of the program array `filter_next`. The cookie of a filtered site has its site index in the
 * low 32 bits and its class in the high ones. The class is an index into `filter_classes`. Slot
 * WAFFLE_NEXT_COUNT + class has the program that decides at the end of a deferred span.
 */
enum waffle_next {
	WAFFLE_NEXT_HIT,     /* an event that passes */
	WAFFLE_NEXT_KEEP,    /* a span that passes at its begin */
	WAFFLE_NEXT_DEFER,   /* a span that is decided at its end */
	WAFFLE_NEXT_REJECT,  /* a hit that does not pass, but may be a parent or a child */
	WAFFLE_NEXT_RELEASE, /* a deferred span that passes at its end */
	WAFFLE_NEXT_DISCARD, /* a deferred span that does not pass */
	WAFFLE_NEXT_STACK,   /* takes the stack of the hit */
	WAFFLE_NEXT_COUNT
};
#define WAFFLE_CLASSES_MAX 4096

/* The map that holds a span, by the longest frame of its site. */
enum waffle_deferred_size {
	WAFFLE_DEFERRED_SMALL,
	WAFFLE_DEFERRED_MEDIUM,
	WAFFLE_DEFERRED_LARGE,
	WAFFLE_DEFERRED_SIZE_COUNT
};
#define WAFFLE_DEFERRED_SMALL_BYTES 160  /* frames without strings: 4 + 16 words */
#define WAFFLE_DEFERRED_MEDIUM_BYTES 704 /* two strings of full length and 16 words */

/* Limits of what is open and of what is deferred; more is counted as dropped. The filter in user
 * space (userspace/filter/stream/) has the same ones for each process. */
#define WAFFLE_OPEN_MAX 65536
#define WAFFLE_DEFERRED_SMALL_MAX 32768
#define WAFFLE_DEFERRED_MEDIUM_MAX 4096
#define WAFFLE_DEFERRED_LARGE_MAX 1024
/* --keep-children */
#define WAFFLE_CHILD_BUFFERS_MAX 512 /* threads with deferred spans; 35 KiB each */
#define WAFFLE_CHILD_COUNT 128       /* the most records buffered in a thread */
#define WAFFLE_CHILD_BYTES 240       /* the longest buffered record */
#define WAFFLE_CHILD_SLOTS 64 /* the most deferred spans of a thread whose children are kept */

struct waffle_class {
	__u64 name_bits; /* predicates on parent.name that the name of its sites makes true */
	__u32 is_span;
	__u32 deferred; /* enum waffle_deferred_size */
};

enum waffle_open_state {
	WAFFLE_OPEN_REJECTED, /* did not pass; known as a parent only */
	WAFFLE_OPEN_KEPT,     /* its begin is delivered */
	WAFFLE_OPEN_DEFERRED, /* decided at its end */
	WAFFLE_OPEN_BUFFERED, /* --keep-children: its begin is in its thread's buffer */
};

#define WAFFLE_DEPTH_UNKNOWN 0xffffffffu

/* A span that has not ended; key: its id. */
struct waffle_open {
	__u64 name_bits; /* class->name_bits: its children test their parent's */
	__u64 inside;    /* --keep-children: slots of the deferred spans around it, one bit each */
	__u32 depth;     /* WAFFLE_DEPTH_UNKNOWN: an ancestor is unknown */
	__u32 class;
	__u32 tid, tgid; /* of the thread that began it */
	__u8 state;      /* enum waffle_open_state */
	__u8 deferred;   /* enum waffle_deferred_size, if WAFFLE_OPEN_DEFERRED */
	__u8 slot;       /* --keep-children: its bit in `inside` of its descendants */
	__u8 reserved;
	__u32 born;     /* --keep-children: its begin, on the clock of its thread's buffer */
	__u32 position; /* WAFFLE_OPEN_BUFFERED: position of its begin in the buffer */
	__u32 lost;     /* WAFFLE_OPEN_DEFERRED: children that found no room */
	/* Time and stack pointer of its begin. By the stack pointer
	 * kernel/sweep.c finds spans that were left. */
	__u64 ts, sp;
};
#define WAFFLE_SLOT_NONE 0xff

/* A deferred span; key: its id. Followed by room for the frame, by enum waffle_deferred_size. */
struct waffle_deferred {
	__u64 ts, end_ts;
	__u64 parent_bits; /* name_bits of its parent */
	__u32 tid, tgid;
	__u32 cpu, site;
	__u32 depth;      /* its own; WAFFLE_DEPTH_UNKNOWN */
	__u32 has_parent; /* parent_bits is known */
	char comm[WAFFLE_COMM_BYTES];
	__u32 frame_bytes;
	__u32 reserved;
	/* __u8 frame[]; */
};

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls: functions, USDT probes and tracepoints that are not sites of waffle's macros but are
 * recorded as if they were. A fetch program says how to read the values of a call from registers
 * and memory. The programs of call.bpf.c lay them out as the frame of a site
 * (include/waffle/abi.h). From there on a call is a span or event like any other.
 */
#ifndef WAFFLE_CALL_H
#define WAFFLE_CALL_H

#include "filter.h"
#include "record.h"

#define WAFFLE_FETCH_PROGRAMS_MAX 4096 /* call sites of a session */
#define WAFFLE_FETCHES_MAX 24
#define WAFFLE_FETCH_LOADS 4
#define WAFFLE_SAVED_MAX 4
/* The cookie at a call: its site; from this bit on its fetch program; in the high half its class.
 */
#define WAFFLE_COOKIE_FETCH_PROGRAM_SHIFT 20
#define WAFFLE_ENUMS_MAX 32      /* tables of names */
#define WAFFLE_ENUM_NAMES_MAX 64 /* names of a table, each of at most 8 bytes */

/* The source of a value's first word. */
enum waffle_fetch_from {
	WAFFLE_FETCH_CONSTANT, /* `constant` */
	WAFFLE_FETCH_REGISTER, /* word `reg` of struct pt_regs, plus word `index` times `scale` */
	/* address of the BPF program's context, where a tracepoint's fields are */
	WAFFLE_FETCH_CONTEXT,
	WAFFLE_FETCH_SAVED,    /* word `reg` of those saved at the entry */
	WAFFLE_FETCH_DURATION, /* ns from entry to return */
	/* Address of a tracepoint's field of variable length: that of the context, plus the low
	 * half of its 32-bit word at `constant`. */
	WAFFLE_FETCH_DATA_LOC,
};

/* The conversion of a value. Its result is one word; strings and enums have two or more. */
enum waffle_format {
	WAFFLE_FORMAT_WORD, /* the low `bytes` bytes, extended by sign if WAFFLE_FETCH_SIGNED */
	WAFFLE_FORMAT_HIGH, /* the high half of the word before it: dim3 */
	WAFFLE_FORMAT_STR,  /* WAFFLE_KEY_STR: a string at that address */
	/* WAFFLE_KEY_STR: a char array of at most `bytes` bytes at that address */
	WAFFLE_FORMAT_BYTES,
	/* WAFFLE_KEY_STR of one word of text: names[value] of table `constant`; "#17" for a number
	 * that has no name. */
	WAFFLE_FORMAT_ENUM,
	/* The number of earlier calls with this value in the process, over all fetch programs of
	 * the same `constant`: the sequence number of a communicator's collectives. With
	 * WAFFLE_FETCH_TAG the value is an address. The 8 bytes at `tag` after it distinguish
	 * objects that had this address one after the other. */
	WAFFLE_FORMAT_SEQUENCE,
};

#define WAFFLE_FETCH_SIGNED 1u
#define WAFFLE_FETCH_KERNEL 2u /* addresses are the kernel's (tracepoints) */
#define WAFFLE_FETCH_TAG 4u    /* SEQUENCE: it has a `tag` */
/* WORD: the value is 0 unless the int in word `index` is greater than `tag`. At the return, `index`
 * is that of a word saved at the entry. */
#define WAFFLE_FETCH_IF 8u

/*
 * value = start; for each load: value = *(word *)(value + offset[i]), the last one of `bytes` bytes
 * (of 8 if the format is STR or BYTES); and value += offset[loads]. A load that fails gives 0 and
 * is counted; the call is recorded nevertheless.
 */
struct waffle_fetch {
	__u8 from; /* enum waffle_fetch_from */
	__u8 format;
	__u8 reg, index;
	__u8 scale; /* 0: no index */
	__u8 loads;
	__u8 bytes; /* 1, 2, 4 or 8; 0 in BYTES means WAFFLE_STR_MAX */
	__u8 flags; /* WAFFLE_FETCH_* */
	__s32 offset[WAFFLE_FETCH_LOADS + 1];
	__s32 tag;
	__u64 constant;
};

/*
 * Most values at an entry are words of registers or of the stack. If all are, the frame is made by
 * this faster form, in a third of the time. The value is (word + offset), without the highest
 * `spare` bits. It is written as 8 bytes, in order, so that the next one overwrites what a shorter
 * one (WAFFLE_FORMAT_HIGH) wrote beyond its end.
 */
struct waffle_word {
	__u8 from;  /* index into waffle_call_thread.words */
	__u8 to;    /* offset in the frame, in units of 4 bytes */
	__u8 spare; /* 0 to 56 */
	__u8 is_signed;
	__s32 offset;
};

#define WAFFLE_WORD_ROOM (63 * sizeof(__u32) + sizeof(__u64)) /* bytes of a frame of words */

/*
 * Ids of spans and events. They differ because a thread begins no two in the same nanosecond, and
 * sessions have different seeds. The low 22 bits hold any tid (PID_MAX_LIMIT), the rest a time that
 * wraps after 73 minutes. So the number of such periods is mixed in as well.
 */
#define WAFFLE_ID_TID_BITS 22
static inline __attribute__((always_inline)) __u64 waffle_call_id(__u64 now, __u32 tid, __u64 seed)
{
	__u64 age = now >> (64 - WAFFLE_ID_TID_BITS);
	__u64 id = (now << WAFFLE_ID_TID_BITS | tid) * 0x9e3779b97f4a7c15ull ^ /* odd: no two */
		   age * 0xc2b2ae3d27d4eb4full ^ seed; /* products are equal */

	return id ? id : 1;
}

/* Flags of a fetch program. */
/* An outer event; INNER calls nested in it are not recorded. */
#define WAFFLE_CALL_OUTER 1u
#define WAFFLE_CALL_INNER 2u
/* ends at another probe, found by `key`, on any thread of the process */
#define WAFFLE_CALL_PAIR 4u
#define WAFFLE_CALL_STACK 8u /* its stacks are requested */
#define WAFFLE_CALL_END 16u  /* this probe ends the pairs of `pair` */
#define WAFFLE_CALL_NOUNWIND                                                                       \
	32u /* nothing unwinds through it: probe/find/return_sites_internal.h */
/* A pair that begins and ends in one function of one thread. As with calls, stack pointers tell
 * which pairs were left. */
#define WAFFLE_CALL_FRAME 64u
/* A spec of a function: at its probes, except return probes, the frame pointer is the caller's. */
#define WAFFLE_CALL_FUNCTION 128u

struct waffle_fetch_program {
	__u8 begins;  /* fetches for the frame at the entry: [0, begins) */
	__u8 saves;   /* then those whose values are kept for the return */
	__u8 returns; /* then those for the record at the return */
	/* then, for pairs, the fetch of their key; 0: pairs nest in their thread */
	__u8 keys;
	__u32 flags; /* WAFFLE_CALL_* */
	__u32 pair;  /* number of the pair, the same at both ends */
	/* entries of `words`, which replace [0, begins); 0: not all of these are words */
	__u8 word_count;
	__u8 stack_words; /* words of the stack that `words` need */
	__u16 word_bytes; /* size of the frame that `words` make */
	/* WAFFLE_CALL_OUTER: bytes of its object's code before and after the probe. */
	__u32 code_before, code_behind;
	struct waffle_word words[WAFFLE_FETCHES_MAX];
	struct waffle_fetch fetches[WAFFLE_FETCHES_MAX];
};

/* The names of a table's numbers from 0 on, padded with zeros to 8 bytes. All zeros: no name. */
struct waffle_enum {
	char names[WAFFLE_ENUM_NAMES_MAX][8];
};

#define WAFFLE_CALL_FRAME_MAX 672 /* four words, 16 words, and 512 bytes of strings */
#define WAFFLE_CALL_DEPTH_MAX 16

/* A call that is being recorded, or that a filter decides. `deferred` and the frame after it have
 * the same layout as the maps of deferred spans, so that the same generated code can test them. */
struct waffle_call_slot {
	struct waffle_deferred deferred;
	__u8 frame[WAFFLE_CALL_FRAME_MAX];
	__u64 id;
	__u64 key; /* of a pair */
	__u64 saved[WAFFLE_SAVED_MAX];
	/* Progress of the frame, in memory so that the verifier does not track these values. */
	__u64 at;            /* bytes written */
	__u64 saved_count;   /* values saved */
	__u32 fetch_program; /* its site */
	__u32 state;         /* enum waffle_open_state */
	__u32 begin_bytes;   /* bytes of the frame that the entry wrote */
	__u32 class;         /* class of the site: its filter program decides on the call */
	__u64 open;          /* index in waffle_call_thread.open; WAFFLE_CALL_DEPTH_MAX: none */
};

/* A call that has not returned. */
struct waffle_call_open {
	__u64 id, ts;
	/* stack pointer at the entry, which identifies the return; 0: it has returned */
	__u64 sp;
	__u64 ip;   /* of the probe */
	__u64 link; /* return address */
	__u64 saved[WAFFLE_SAVED_MAX];
	__u32 fetch_program; /* its site */
	__u16 state; /* enum waffle_open_state; the whole slot of a deferred one is in a map */
	__u16 outer; /* it has WAFFLE_CALL_OUTER */
};

/* A pair that has begun, in call_pairs. For a pair without a key, `value` has its thread and its
 * level there. One more entry per thread counts the levels. */
struct waffle_pair_key {
	__u64 value;
	__u32 tgid, pair;
};
struct waffle_pair {
	__u64 id, ts;
	__u32 site;
	__u32 level; /* in the entry of a thread: number of its open pairs */
};
#define WAFFLE_PAIR_THREAD 0xffffffffull /* the level in the key of a thread's entry */

/* Words of struct pt_regs: 21 on x86-64, 34 on aarch64. */
#define WAFFLE_CALL_REGS 34
#define WAFFLE_CALL_STACK_WORDS 8
#define WAFFLE_CALL_WORDS (WAFFLE_CALL_REGS + WAFFLE_CALL_STACK_WORDS) /* at most 64 */

/* An open pair with WAFFLE_CALL_FRAME. */
#define WAFFLE_CALL_FRAMES_MAX 16
struct waffle_call_frame {
	__u64 sp;
	__u32 pair;
	__u32 reserved;
};

/*
 * The open calls of a thread, and slots for the call that is being recorded: one at a uprobe, and
 * one at a tracepoint, which may interrupt it. From Linux 7 on, task storage of a thread is limited
 * to 8 KiB (kmalloc_nolock() of mm/slub.c), so deferred calls have maps of their own.
 */
enum waffle_call_at { WAFFLE_CALL_AT_UPROBE, WAFFLE_CALL_AT_POINT, WAFFLE_CALL_AT_COUNT };
struct waffle_call_thread {
	__u32 depth;      /* calls in `open` */
	__u32 outer_open; /* those of them with WAFFLE_CALL_OUTER */
	__u64 now;        /* time of the current program, for calls that it finds to have ended */
	/* The last outer event: its stack pointer, the word there, and its return address.
	 * outer_is_open() in call_nest.bpf.h decides by these whether it is still open. */
	__u64 event_sp, event_word, event_link;
	/* The code of the object that has the outer event at code_ip, and whether calls nested in
	 * that event return there. */
	__u64 code_ip, code_start, code_end;
	__u32 code_calls;
	__u32 reserved;
	/* Registers; then words at the stack pointer, where arguments are, as far as they were
	 * read. */
	__u64 words[WAFFLE_CALL_WORDS];
	__u64 stack_words; /* how many were read */
	__u64 context;     /* context of a tracepoint's program, as a number */
	/* WAFFLE_STACK_CALL or 0, for the stacks that the current program takes */
	__u64 at_call;
	__u64 frame_count;
	struct waffle_call_frame frames[WAFFLE_CALL_FRAMES_MAX];
	struct waffle_call_open open[WAFFLE_CALL_DEPTH_MAX];
	struct waffle_call_slot slots[WAFFLE_CALL_AT_COUNT];
};

/* The deferred calls of a thread, for one half of its depth. */
#define WAFFLE_CALL_DEFERRED_MAX (WAFFLE_CALL_DEPTH_MAX / 2)
struct waffle_calls_deferred {
	struct waffle_call_slot slots[WAFFLE_CALL_DEFERRED_MAX];
};
#define WAFFLE_TASK_STORAGE_MAX 8000 /* the kernel adds some bytes */
_Static_assert(sizeof(struct waffle_call_thread) <= WAFFLE_TASK_STORAGE_MAX, "calls");
_Static_assert(sizeof(struct waffle_calls_deferred) <= WAFFLE_TASK_STORAGE_MAX, "deferred calls");

/*
 * Filters. A program that was generated for a class of calls reads the slot, decides, and continues
 * in a program of this array or ends. Programs that decide at the entry follow at
 * WAFFLE_CALL_NEXT_COUNT + class, those that decide at the return WAFFLE_CLASSES_MAX later.
 */
enum waffle_call_next {
	WAFFLE_CALL_ACCEPT,
	WAFFLE_CALL_DEFER,  /* the decision needs values of the end */
	WAFFLE_CALL_STACKS, /* takes the stacks of the span or event that was just recorded */
	WAFFLE_CALL_NEXT_COUNT
};

/* In a cookie: the class has a program that decides at the entry. */
#define WAFFLE_COOKIE_ENTRY_FILTER (1ull << 62)
/* In a cookie: the class has a program that decides at the return, for all calls or for those that
 * the first one defers. */
#define WAFFLE_COOKIE_RETURN_FILTER (1ull << 61)
#define WAFFLE_COOKIE_CLASS(cookie) ((__u32)((cookie) >> 32) & 0xffff)
#define WAFFLE_COOKIE_FETCH_PROGRAM(cookie) ((__u32)(cookie) >> WAFFLE_COOKIE_FETCH_PROGRAM_SHIFT)
#define WAFFLE_COOKIE_SITE(cookie)                                                                 \
	((__u32)(cookie) & ((1u << WAFFLE_COOKIE_FETCH_PROGRAM_SHIFT) - 1))

#endif

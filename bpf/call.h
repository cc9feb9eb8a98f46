/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Calls: functions, USDT probes and tracepoints that are no sites of waffle's macros, recorded as
 * if they were. A recipe says how the values of a call are found in registers and memory; the
 * programs of call.bpf.c lay out a frame from them as a site does (include/waffle/abi.h), and from
 * there on a call is a span or event like all others.
 */
#ifndef WAFFLE_CALL_H
#define WAFFLE_CALL_H

#include "filter.h"
#include "record.h"

#define WAFFLE_RECIPES_MAX 4096 /* call sites of a session */
#define WAFFLE_FETCHES_MAX 24
#define WAFFLE_FETCH_LOADS 4
#define WAFFLE_SAVED_MAX 4
/* The cookie at a call: its site, its recipe from this bit on, in the high half its class or what
 * is to be known of a plain call (WAFFLE_COOKIE_PLAIN). */
#define WAFFLE_COOKIE_RECIPE_SHIFT 20
#define WAFFLE_ENUMS_MAX 32      /* tables of names */
#define WAFFLE_ENUM_NAMES_MAX 64 /* of a table; a name has at most 8 bytes */
#define WAFFLE_ENUM_PLAIN_MAX 16

/* Where a value begins. */
enum waffle_fetch_from {
	WAFFLE_FETCH_CONSTANT, /* `constant` */
	WAFFLE_FETCH_REGISTER, /* word `reg` of struct pt_regs, plus word `index` times `scale` */
	WAFFLE_FETCH_CONTEXT,  /* address of the program's context: a tracepoint's fields */
	WAFFLE_FETCH_SAVED,    /* word `reg` of what was saved at the entry */
	WAFFLE_FETCH_DURATION, /* ns from entry to return */
	/* Address of a tracepoint's field of variable length: that of the context, plus the low
	 * half of its 32-bit word at `constant`. */
	WAFFLE_FETCH_DATA_LOC,
};

/* What is made of a value: one word each, but for strings and enums. */
enum waffle_format {
	WAFFLE_FORMAT_WORD,  /* the low `bytes` bytes, extended by sign if WAFFLE_FETCH_SIGNED */
	WAFFLE_FORMAT_HIGH,  /* goes into the high half of the word before, makes none of its own:
				dim3 */
	WAFFLE_FORMAT_STR,   /* WAFFLE_KEY_STR: the value is the address of a string */
	WAFFLE_FORMAT_BYTES, /* WAFFLE_KEY_STR: a string in place of at most `bytes` bytes at the
				address */
	/* WAFFLE_KEY_STR of one word of text: names[value] of table `constant`; "#17" for a number
	 * that has no name. */
	WAFFLE_FORMAT_ENUM,
	/* How many calls with this value came before in the process, in all recipes of the same
	 * `constant`: the sequence number of a communicator's collectives. With WAFFLE_FETCH_TAG
	 * the value is an address, and the 8 bytes at `tag` behind it tell what is there now from
	 * what was there before. */
	WAFFLE_FORMAT_SEQUENCE,
};

#define WAFFLE_FETCH_SIGNED 1u
#define WAFFLE_FETCH_KERNEL 2u /* its addresses are the kernel's (tracepoints) */
#define WAFFLE_FETCH_TAG 4u    /* SEQUENCE: it has a `tag` */

/*
 * value = start; for each load: value = *(word *)(value + offset[i]), the last one of `bytes`
 * bytes (of 8 if the format is STR or BYTES); and value += offset[loads]. An address that can't be
 * read gives 0, is counted, and the call is recorded all the same.
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
 * Most values at entries are words, of registers or of the stack; where all are, they are made from
 * these, which takes a third of the time. The value is (word + offset), of whose bits the highest
 * `spare` are not the value's. It is written as 8 bytes, in order: one that goes into the high half
 * of a word (WAFFLE_FORMAT_HIGH) is written there, and what stands out behind is overwritten.
 */
struct waffle_word {
	__u8 from;  /* of waffle_call_thread's words */
	__u8 to;    /* in the frame, in units of 4 bytes */
	__u8 spare; /* 0 to 56 */
	__u8 is_signed;
	__s32 offset;
};

#ifdef __bpf__
#define WAFFLE_WORD_STORE(to, value) (*(__u64 *)(to) = (value)) /* its stores need no alignment */
#else
#define WAFFLE_WORD_STORE(to, value) __builtin_memcpy(to, &(value), sizeof(value))
#endif
#define WAFFLE_WORD_NUMBERS 64
#define WAFFLE_WORD_ROOM (63 * sizeof(__u32) + sizeof(__u64))
/*
 * Makes the values of `count` words in a frame. Of the room for them, all that the fields of struct
 * waffle_word can refer to is touched at most: 64 words, and 256 bytes of the frame.
 */
static inline __attribute__((always_inline)) void
waffle_words_make(__u8 *frame, const struct waffle_word *list, __u32 count, const __u64 *words)
{
	for (__u32 i = 0; i < WAFFLE_FETCHES_MAX; i++) {
		const struct waffle_word *word = &list[i];
		__u32 spare = word->spare & 63;
		__u64 value;

		if (i >= count)
			break;
		value = (words[word->from & 63] + (__u64)(__s64)word->offset) << spare;
		value = word->is_signed ? (__u64)((__s64)value >> spare) : value >> spare;
		WAFFLE_WORD_STORE(frame + (word->to & 63) * sizeof(__u32), value);
	}
}

/*
 * Ids of spans and events: no two of a thread begin in the same nanosecond, and no two sessions
 * have the same seed. The low 22 bits hold any tid (PID_MAX_LIMIT), the rest 73 minutes; which 73
 * minutes these are is mixed in by itself, or else ids would come again in a longer capture.
 */
#define WAFFLE_ID_TID_BITS 22
static inline __attribute__((always_inline)) __u64 waffle_call_id(__u64 now, __u32 tid, __u64 seed)
{
	__u64 age = now >> (64 - WAFFLE_ID_TID_BITS);
	__u64 id = (now << WAFFLE_ID_TID_BITS | tid) * 0x9e3779b97f4a7c15ull ^ /* odd: no two */
		   age * 0xc2b2ae3d27d4eb4full ^ seed; /* products are equal */

	return id ? id : 1;
}

/* What is done around a call. */
/* Counts by itself: what is INNER and nested in it is not recorded. */
#define WAFFLE_CALL_OUTER 1u
#define WAFFLE_CALL_INNER 2u
#define WAFFLE_CALL_PAIR 4u      /* ends at another probe, by `key`, on any thread of the process */
#define WAFFLE_CALL_STACK 8u     /* its stacks are wanted */
#define WAFFLE_CALL_END 16u      /* the probe that ends the pairs of `pair` */
#define WAFFLE_CALL_NOUNWIND 32u /* nothing unwinds through it: call/returns.h */
/* A pair of one thread, both ends in one function: as with calls, stack pointers tell which of them
 * were left. */
#define WAFFLE_CALL_FRAME 64u
/* Of a function: at its probes, but for a return probe, it was called just now or returns at once.
 */
#define WAFFLE_CALL_FUNCTION 128u
#define WAFFLE_CALL_TABLE 256u /* of the tables of CUDA and NCCL */

struct waffle_recipe {
	__u8 begins;  /* fetches for the frame at the entry: [0, begins) */
	__u8 saves;   /* then those whose values are kept for the return */
	__u8 returns; /* then those for the record at the return */
	/* then, for pairs, the one that is their key; 0: the thread is, and pairs nest in it */
	__u8 keys;
	__u32 flags;      /* WAFFLE_CALL_* */
	__u32 pair;       /* number that both ends of a pair have */
	__u8 word_count;  /* in `words`, instead of [0, begins); 0: not all of these are words */
	__u8 stack_words; /* of the stack, as many have to be read for `words` */
	__u16 word_bytes; /* the frame with them */
	/* Of WAFFLE_CALL_OUTER: bytes of its object's code before and behind the probe. */
	__u32 code_before, code_behind;
	struct waffle_word words[WAFFLE_FETCHES_MAX];
	struct waffle_fetch fetches[WAFFLE_FETCHES_MAX];
};

/* Names of a table's numbers from 0 on, each padded with zeros to 8 bytes; all zeros: no name. */
struct waffle_enum {
	char names[WAFFLE_ENUM_NAMES_MAX][8];
};

#define WAFFLE_CALL_FRAME_MAX 672 /* four words, 16 words, and 512 bytes of strings */
#define WAFFLE_CALL_DEPTH_MAX 16

/*
 * A call as it is recorded, or decided about under a filter. `held` and the frame behind it lie as
 * in the maps of held spans, so that the same generated code asks them.
 */
struct waffle_call_slot {
	struct waffle_held held;
	__u8 frame[WAFFLE_CALL_FRAME_MAX];
	__u64 id;
	__u64 key; /* of a pair */
	__u64 saved[WAFFLE_SAVED_MAX];
	/* Of the frame under way, here so that the verifier does not follow what becomes of them.
	 */
	__u64 at;          /* bytes so far */
	__u64 saved_count; /* values saved so far */
	__u32 recipe;      /* its site */
	__u32 state;       /* enum waffle_open_state */
	__u32 begin_bytes; /* of the frame, what was known at the entry */
	__u32 class;       /* of its site, whose program is asked */
	__u64 open;        /* its place in waffle_call_thread.open; WAFFLE_CALL_DEPTH_MAX: none */
};

/* A call that has not returned. */
struct waffle_call_open {
	__u64 id, ts;
	__u64 sp;   /* at the entry: what the return is recognised by; 0: it has returned */
	__u64 ip;   /* of the probe */
	__u64 link; /* where it returns to */
	__u64 saved[WAFFLE_SAVED_MAX];
	__u32 recipe; /* its site */
	__u16 state;  /* enum waffle_open_state; the whole slot of a held one is in a map */
	__u16 outer;  /* WAFFLE_CALL_OUTER */
};

/* A pair that has begun, in call_pairs. Those without a key have their thread and its level of them
 * in `value`, and one entry more that counts them. */
struct waffle_pair_key {
	__u64 value;
	__u32 tgid, pair;
};
struct waffle_pair {
	__u64 id, ts;
	__u32 site;
	__u32 level; /* of a thread's own entry: how many pairs it is in */
};
#define WAFFLE_PAIR_THREAD 0xffffffffull /* the level of a thread's own entry */

/* Words of struct pt_regs that are kept: 21 of x86-64, 34 of aarch64. */
#define WAFFLE_CALL_REGS 34
#define WAFFLE_CALL_STACK_WORDS 8
#define WAFFLE_CALL_WORDS (WAFFLE_CALL_REGS + WAFFLE_CALL_STACK_WORDS) /* at most 64 */

/* A WAFFLE_CALL_FRAME that a thread is in. */
#define WAFFLE_CALL_FRAMES_MAX 16
struct waffle_call_frame {
	__u64 sp;
	__u32 pair;
	__u32 reserved;
};

/*
 * Calls that a thread is in, and the slots of what is being recorded: at a uprobe, and at a
 * tracepoint, which may come in between. From Linux 7 on what is kept of a thread has less than 8
 * KiB (kmalloc_nolock() of mm/slub.c), so that held calls are in maps of their own.
 */
enum waffle_call_at { WAFFLE_CALL_AT_UPROBE, WAFFLE_CALL_AT_POINT, WAFFLE_CALL_AT_COUNT };
struct waffle_call_thread {
	__u32 depth; /* calls in `open` */
	__u32 outer; /* of them those that are WAFFLE_CALL_OUTER */
	__u64 now;   /* of the program under way, which may find that calls have ended */
	/* Of the last event that is WAFFLE_CALL_OUTER: its stack pointer and what lay there (while
	 * both are as they were, the thread is still in it), and where it returns to. */
	__u64 outer_sp, outer_word, outer_link;
	/* Of the last but for the same `ip`: the code of the object that it is in, and whether what
	 * is nested in it is called from there. */
	__u64 code_ip, code_start, code_end;
	__u32 code_calls;
	__u32 outer_failed; /* some of them had nothing nested in them */
	/* How a call came to be nested in such an event, and how many were taken for nested for
	 * that: call_nest.h. */
	__u64 way_ip, way_code_ip, way_bytes, way_frame, way_skips, way_random;
	__u64 code_way; /* the last event is of a WAFFLE_CALL_TABLE */
	/* Registers; then what lies at the stack pointer, as far as it was read: arguments do. */
	__u64 words[WAFFLE_CALL_WORDS];
	__u64 stack_words; /* as many were */
	__u64 context;     /* of a tracepoint's program: its address as a number */
	__u64 at_call;     /* WAFFLE_STACK_CALL or 0: how the program under way takes stacks */
	__u64 frame_count;
	struct waffle_call_frame frames[WAFFLE_CALL_FRAMES_MAX];
	struct waffle_call_open open[WAFFLE_CALL_DEPTH_MAX];
	struct waffle_call_slot slots[WAFFLE_CALL_AT_COUNT];
};

/*
 * A plain call is an event that counts by itself, or is nested in such a one, or neither, and has
 * no values but words, of arguments' registers and of the first words of the stack. Launches are,
 * the most frequent calls of all. The kernel tells these words as they are (struct
 * waffle_rec_plain).
 */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define WAFFLE_PLAIN_REGS 6
#else
#define WAFFLE_PLAIN_REGS 8
#endif
#define WAFFLE_PLAIN_STACK (WAFFLE_PLAIN_WORDS - WAFFLE_PLAIN_REGS)

/*
 * The way of plain calls out of the kernel: slots of each CPU, which take less time than a ring
 * buffer, as there is no lock. Where a CPU's slots are full, the ring buffers have room.
 */
#define WAFFLE_PLAIN_SLOTS 4096u /* of a CPU; a power of two */
struct waffle_plain_slot {
	__u64 number; /* 1 and more; that of the slot's turn when the record is whole */
	struct waffle_rec_plain rec;
};
/* Of a CPU: slots taken, and read so far, which capture/ writes; each on a cache line of its own.
 */
struct waffle_plain_ends {
	__u64 head;
	__u64 padding[7];
	__u64 tail;
	__u64 more_padding[7];
};

/* Held calls of a thread: those of half of its depth. */
#define WAFFLE_CALL_HELD_MAX (WAFFLE_CALL_DEPTH_MAX / 2)
struct waffle_call_helds {
	struct waffle_call_slot slots[WAFFLE_CALL_HELD_MAX];
};
#define WAFFLE_TASK_STORAGE_MAX 8000 /* and some bytes that the kernel adds */
_Static_assert(sizeof(struct waffle_call_thread) <= WAFFLE_TASK_STORAGE_MAX, "calls");
_Static_assert(sizeof(struct waffle_call_helds) <= WAFFLE_TASK_STORAGE_MAX, "held calls");

/*
 * Filters. A program that was generated for a class of calls finds the slot, decides, and goes on
 * or ends. Those that are asked at the entry are behind WAFFLE_CALL_NEXT_COUNT, and
 * WAFFLE_CLASSES_MAX further those that are asked at the return.
 */
enum waffle_call_next {
	WAFFLE_CALL_ACCEPT,
	WAFFLE_CALL_HOLD,   /* hangs on what is known at the end only */
	WAFFLE_CALL_STACKS, /* takes the stacks of what was recorded just now */
	WAFFLE_CALL_NEXT_COUNT
};

/* In a cookie: the class of its site has a program that is asked at the entry, … */
#define WAFFLE_COOKIE_ASKED (1ull << 62)
/* … and one at the return, of all calls or of those that the first one holds. */
#define WAFFLE_COOKIE_HELD (1ull << 61)
#define WAFFLE_COOKIE_CLASS(cookie) ((__u32)((cookie) >> 32) & 0xffff)
/* In that of a plain call, which is in no class: from which word of the stack on, how many, and
 * whether it is WAFFLE_CALL_OUTER; such a one has the first. */
#define WAFFLE_COOKIE_PLAIN(first, count, outer)                                                   \
	((__u64)(first) << 32 | (__u64)(count) << 40 | (__u64)((outer) ? 1 : 0) << 48)
#define WAFFLE_COOKIE_PLAIN_FIRST(cookie) ((cookie) >> 32 & 0xff)
#define WAFFLE_COOKIE_PLAIN_COUNT(cookie) ((cookie) >> 40 & 0xff)
#define WAFFLE_COOKIE_PLAIN_OUTER(cookie) ((cookie) >> 48 & 1)
#define WAFFLE_COOKIE_RECIPE(cookie) ((__u32)(cookie) >> WAFFLE_COOKIE_RECIPE_SHIFT)
#define WAFFLE_COOKIE_SITE(cookie) ((__u32)(cookie) & ((1u << WAFFLE_COOKIE_RECIPE_SHIFT) - 1))

#endif

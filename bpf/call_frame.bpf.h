/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The interpreter of fetch programs: makes a frame from registers and memory. */
#ifndef WAFFLE_CALL_FRAME_BPF_H
#define WAFFLE_CALL_FRAME_BPF_H

#include "call.h"
#include "emit.bpf.h"
#include "thread_storage.bpf.h"

/* Words of struct pt_regs that fetch programs refer to (arch/x86/include/asm/ptrace.h,
 * arch/arm64/…). */
#if defined(__TARGET_ARCH_x86)
#define REGS_WORDS 21
#define REGS_SP 19
#else
#define REGS_WORDS 34
#define REGS_SP 31
#endif

/* Addresses in arguments that could not be read. */
extern __u64 call_faults;

/* The sizes of these are set before loading. */
extern struct fetch_programs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_fetch_program);
} fetch_programs SEC(".maps");

extern struct call_enums_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct waffle_enum);
} call_enums SEC(".maps");

struct sequence_key {
	__u64 value, tag;
	__u32 tgid, group;
};

extern struct call_sequences_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct sequence_key);
	__type(value, __u64);
} call_sequences SEC(".maps");

/* A walk over the fetches of a fetch program. */
struct fetches {
	struct waffle_fetch_program *fetch_program;
	struct waffle_call_thread *thread;
	struct waffle_call_slot *slot;
	__u64 now;
	__u64 first; /* index of the first fetch */
	__u32 tgid;
};

/* Nothing lies in the first page of an address space. A pointer there means "none": it is null,
 * or a small number as MPICH's MPI_STATUS_IGNORE. Reading from it gives 0, and does not count as
 * a failed load. */
#define NOWHERE_BYTES 4096

static __always_inline long user_read(void *to, __u32 size, __u64 address, __u8 flags)
{
	long failed = flags & WAFFLE_FETCH_KERNEL
			      ? bpf_probe_read_kernel(to, size, (const void *)address)
			      : bpf_probe_read_user(to, size, (const void *)address);

	if (failed)
		__sync_fetch_and_add(&call_faults, address >= NOWHERE_BYTES);
	return failed;
}

/* Offset of a string in a tracepoint's record (include/trace/stages/stage1_struct_define.h). */
static __always_inline __u64 data_loc(__u64 address)
{
	__u32 word = 0;

	user_read(&word, sizeof(word), address, WAFFLE_FETCH_KERNEL);
	return word & 0xffff;
}

static __always_inline __u64 fetch_start(const struct waffle_call_thread *thread,
					 const struct waffle_call_slot *slot, __u64 now,
					 const struct waffle_fetch *fetch)
{
	__u64 reg = fetch->reg, index = fetch->index;
	__u64 value;

	switch (fetch->from) {
	case WAFFLE_FETCH_REGISTER:
		barrier_var(reg);
		if (reg >= REGS_WORDS)
			return 0;
		value = thread->words[reg];
		barrier_var(index);
		if (fetch->scale && index < REGS_WORDS)
			value += thread->words[index] * fetch->scale;
		return value;
	case WAFFLE_FETCH_CONTEXT:
		return thread->context;
	case WAFFLE_FETCH_DATA_LOC:
		return thread->context + data_loc(thread->context + fetch->constant);
	case WAFFLE_FETCH_SAVED:
		return slot->saved[reg & (WAFFLE_SAVED_MAX - 1)];
	case WAFFLE_FETCH_DURATION:
		return now - slot->deferred.ts;
	default:
		return fetch->constant;
	}
}

/*
 * Reads the first words at the stack pointer, all at once: reading three of them one by one takes
 * twice as long, and reading eight half as long again. They are copied through the BPF stack, since
 * a hardened kernel checks other destinations slowly (CONFIG_HARDENED_USERCOPY). False: the
 * process's stack ends before that.
 */
static __always_inline bool stack_read(struct waffle_call_thread *thread, __u64 count)
{
	__u64 stack[WAFFLE_CALL_STACK_WORDS] = {0};

	if (thread->stack_words >= count)
		return true;
	barrier_var(count);
	if (count > WAFFLE_CALL_STACK_WORDS ||
	    bpf_probe_read_user(stack, count * sizeof(__u64), (const void *)thread->words[REGS_SP]))
		return false;
#pragma unroll
	for (int i = 0; i < WAFFLE_CALL_STACK_WORDS; i++)
		thread->words[WAFFLE_CALL_REGS + i] = stack[i];
	thread->stack_words = count;
	return true;
}

/* An argument on the stack: at an offset from the stack pointer, in a word of its own. */
static __always_inline bool stack_argument(struct waffle_call_thread *thread,
					   const struct waffle_fetch *fetch, __u64 *value)
{
	__u64 index = (__u32)fetch->offset[0] / sizeof(__u64);
	__u32 spare = (64 - 8 * fetch->bytes) & 63; /* bits of the word beyond the value */

	if (fetch->from != WAFFLE_FETCH_REGISTER || fetch->reg != REGS_SP || fetch->loads != 1 ||
	    fetch->scale || fetch->offset[0] & 7 || !fetch->bytes || fetch->bytes > sizeof(__u64) ||
	    fetch->format == WAFFLE_FORMAT_BYTES || fetch->format == WAFFLE_FORMAT_STR)
		return false;
	barrier_var(index);
	if (index >= WAFFLE_CALL_STACK_WORDS || !stack_read(thread, WAFFLE_CALL_STACK_WORDS))
		return false;
	*value = (thread->words[WAFFLE_CALL_REGS + index] << spare >> spare) + fetch->offset[1];
	return true;
}

/* A number of fetch->bytes bytes, zero- or sign-extended. */
static __always_inline __u64 fetch_extend(__u64 value, const struct waffle_fetch *fetch)
{
	__u32 shift = 64 - 8 * (fetch->bytes & 15);

	if (!shift || shift > 63)
		return value;
	value <<= shift;
	return fetch->flags & WAFFLE_FETCH_SIGNED ? (__u64)((__s64)value >> shift) : value >> shift;
}

/* Whether the condition of a fetch does not hold. */
static __always_inline bool fetch_is_off(const struct waffle_call_thread *thread,
					 const struct waffle_call_slot *slot,
					 const struct waffle_fetch *fetch)
{
	__u64 index = fetch->index;

	if (!(fetch->flags & WAFFLE_FETCH_IF))
		return false;
	barrier_var(index);
	if (fetch->from == WAFFLE_FETCH_SAVED)
		return (__s32)slot->saved[index & (WAFFLE_SAVED_MAX - 1)] <= fetch->tag;
	return index >= REGS_WORDS || (__s32)thread->words[index] <= fetch->tag;
}

/* The value of a fetch. This function and the next ones are global, so that the verifier checks
 * each only once. */
__noinline __u64 call_fetch(struct waffle_call_thread *thread, const struct waffle_call_slot *slot,
			    __u64 now, const struct waffle_fetch *fetch)
{
	__u64 value, word;
	__u64 loads, size;

	if (!thread || !slot || !fetch)
		return 0;
	if (fetch_is_off(thread, slot, fetch))
		return 0;
	if (stack_argument(thread, fetch, &value))
		return value;
	value = fetch_start(thread, slot, now, fetch);
	loads = fetch->loads;
	for (__u32 i = 0; i < WAFFLE_FETCH_LOADS; i++) {
		if (i >= loads)
			return value + fetch->offset[i];
		word = 0;
		size = i + 1 == loads ? fetch->bytes : sizeof(word);
		barrier_var(size);
		if (size > sizeof(word))
			size = sizeof(word);
		if (user_read(&word, size, value + fetch->offset[i], fetch->flags))
			return 0;
		value = word;
	}
	return value + fetch->offset[WAFFLE_FETCH_LOADS];
}

static __always_inline __u64 fetch_value(const struct fetches *walk,
					 const struct waffle_fetch *fetch)
{
	return call_fetch(walk->thread, walk->slot, walk->now, fetch);
}

/* The text of a number that has no name: '#' and its digits, or "#?" if that takes over 8 bytes. */
#define ENUM_DIGITS 6
static __always_inline __u64 enum_number(__u64 value, __u32 *len)
{
	bool is_negative = (__s64)value < 0;
	__u64 left = is_negative ? -value : value, text = 0;

	*len = 1 + is_negative;
	for (int i = 0; i < ENUM_DIGITS && (left || !i); i++, left /= 10) {
		text = text << 8 | ('0' + left % 10);
		++*len;
	}
	if (left) {
		*len = 2;
		return '#' | '?' << 8;
	}
	if (is_negative)
		text = text << 8 | '-';
	return text << 8 | '#';
}

static __always_inline __u64 enum_name(const struct waffle_fetch *fetch, __u64 value, __u32 *len)
{
	__u32 table = fetch->constant;
	struct waffle_enum *names = bpf_map_lookup_elem(&call_enums, &table);
	__u64 word = 0;

	if (names && value < WAFFLE_ENUM_NAMES_MAX)
		word = *(__u64 *)names->names[value];
	if (!word)
		return enum_number(value, len);
	/* Names are padded with zeros. */
	*len = 8;
	for (__u64 left = word; *len && !(left >> 56); left <<= 8)
		--*len;
	return word;
}

static __always_inline __u64 sequence_next(const struct fetches *walk,
					   const struct waffle_fetch *fetch, __u64 value)
{
	struct sequence_key key = {.value = value, .tgid = walk->tgid, .group = fetch->constant};
	__u64 *count, zero = 0;

	if (fetch->flags & WAFFLE_FETCH_TAG)
		user_read(&key.tag, sizeof(key.tag), value + fetch->tag, fetch->flags);
	count = bpf_map_lookup_elem(&call_sequences, &key);
	if (!count) {
		bpf_map_update_elem(&call_sequences, &key, &zero, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&call_sequences, &key);
	}
	return count ? __sync_fetch_and_add(count, 1) : 0;
}

/* Strings of a frame: the last offset at which one of full length still has room. */
#define STRING_ROOM (WAFFLE_CALL_FRAME_MAX - sizeof(__u64) - WAFFLE_STR_MAX)

/* Copies a string. If the frame has no room for it, it is written as an unreadable one. */
__noinline int call_string(struct waffle_call_thread *thread, struct waffle_call_slot *slot,
			   const struct waffle_fetch *fetch, __u64 address)
{
	__u64 at, size = WAFFLE_STR_MAX;
	__u8 *frame;
	__u64 head = WAFFLE_STR_NULL, len = 0;
	long got;

	if (!thread || !slot || !fetch)
		return 0;
	frame = slot->frame;
	at = slot->at;
	barrier_var(at);
	if (at > STRING_ROOM) {
		if (at <= WAFFLE_CALL_FRAME_MAX - sizeof(head))
			*(__u64 *)(frame + at) = WAFFLE_STR_NULL | WAFFLE_STR_CUT;
		slot->at += sizeof(head);
		return 0;
	}
	if (fetch->format == WAFFLE_FORMAT_BYTES && fetch->bytes)
		size = fetch->bytes + 1ull; /* one more for a NUL, which the bytes may lack */
	barrier_var(size);
	if (size > WAFFLE_STR_MAX)
		size = WAFFLE_STR_MAX;
	got = fetch->flags & WAFFLE_FETCH_KERNEL
		      ? bpf_probe_read_kernel_str(frame + at + sizeof(head), size, (void *)address)
		      : bpf_probe_read_user_str(frame + at + sizeof(head), size, (void *)address);
	if (got > 0) {
		len = got - 1; /* without the NUL */
		head = len;
		if (len + 1 == size && fetch->format == WAFFLE_FORMAT_STR)
			head |= WAFFLE_STR_CUT;
	} else if (address) {
		head |= WAFFLE_STR_CUT;
		__sync_fetch_and_add(&call_faults, 1);
	}
	*(__u64 *)(frame + at) = head;
	slot->at += sizeof(head) + ((len + 7) & ~7ull);
	return 0;
}

static __always_inline void frame_word(struct fetches *walk, __u64 word)
{
	__u64 at = walk->slot->at;

	barrier_var(at);
	if (at <= WAFFLE_CALL_FRAME_MAX - sizeof(word))
		*(__u64 *)(walk->slot->frame + at) = word;
	walk->slot->at += sizeof(word);
}

/* Sets the high half of the last word. */
static __always_inline void frame_high(struct fetches *walk, __u64 value)
{
	__u64 at = walk->slot->at - sizeof(value);

	barrier_var(at);
	if (at <= WAFFLE_CALL_FRAME_MAX - sizeof(value)) {
		__u64 *word = (__u64 *)(walk->slot->frame + at);

		*word = (__u32)*word | value << 32;
	}
}

/* Most fetches: a register as it is. */
static __always_inline bool fetch_plain(const struct waffle_fetch *fetch)
{
	return fetch->from == WAFFLE_FETCH_REGISTER && !(fetch->scale | fetch->loads);
}

static long fetch_one(__u32 number, void *context)
{
	struct fetches *walk = context;
	__u64 index = walk->first + number;
	__u32 len;
	const struct waffle_fetch *fetch;
	__u64 value;

	barrier_var(index);
	if (index >= WAFFLE_FETCHES_MAX)
		return 1;
	fetch = &walk->fetch_program->fetches[index];
	value = fetch->reg;
	barrier_var(value);
	if (fetch_plain(fetch) && value < REGS_WORDS)
		value = walk->thread->words[value] + fetch->offset[0];
	else
		value = fetch_value(walk, fetch);
	switch (fetch->format) {
	case WAFFLE_FORMAT_WORD:
		frame_word(walk, fetch_extend(value, fetch));
		break;
	case WAFFLE_FORMAT_HIGH:
		frame_high(walk, value);
		break;
	case WAFFLE_FORMAT_ENUM:
		value = enum_name(fetch, fetch_extend(value, fetch), &len);
		frame_word(walk, len);
		frame_word(walk, value);
		break;
	case WAFFLE_FORMAT_SEQUENCE:
		frame_word(walk, sequence_next(walk, fetch, value));
		break;
	default:
		call_string(walk->thread, walk->slot, fetch, value);
	}
	return 0;
}

static long fetch_saved(__u32 number, void *context)
{
	struct fetches *walk = context;
	__u64 index = walk->first + number;

	barrier_var(index);
	if (index >= WAFFLE_FETCHES_MAX)
		return 1;
	walk->slot->saved[walk->slot->saved_count++ & (WAFFLE_SAVED_MAX - 1)] =
		fetch_value(walk, &walk->fetch_program->fetches[index]);
	return 0;
}

static __always_inline void regs_read(struct waffle_call_thread *thread, void *ctx)
{
	thread->stack_words = 0;
#pragma unroll
	for (int i = 0; i < REGS_WORDS; i++)
		thread->words[i] = ((const __u64 *)ctx)[i];
}

/* Lays out the frame of an entry, or the values of a return alone (`from` is 0). */
static __always_inline void frame_make(struct fetches *walk, __u32 first, __u32 count, __u32 from)
{
	walk->first = first;
	walk->slot->at = from;
	bpf_loop(count, fetch_one, walk, 0);
	walk->slot->deferred.frame_bytes = walk->slot->at;
}

/* Writes the values of words into a frame. Whatever the fields of struct waffle_word hold, it reads
 * only the first 64 words and writes only the first WAFFLE_WORD_ROOM bytes. */
static __always_inline void
words_make(__u8 *frame, const struct waffle_fetch_program *fetch_program, const __u64 *words)
{
	for (__u32 i = 0; i < WAFFLE_FETCHES_MAX; i++) {
		const struct waffle_word *word = &fetch_program->words[i];
		__u32 spare = word->spare & 63;
		__u64 value;

		if (i >= fetch_program->word_count)
			break;
		value = (words[word->from & 63] + (__u64)(__s64)word->offset) << spare;
		value = word->is_signed ? (__u64)((__s64)value >> spare) : value >> spare;
		*(__u64 *)(frame + (word->to & 63) * sizeof(__u32)) =
			value; /* stores need no alignment */
	}
}

/* Lays out the frame of an entry. */
static __always_inline void frame_begin(struct fetches *walk)
{
	const struct waffle_fetch_program *fetch_program = walk->fetch_program;

	if (fetch_program->word_count && stack_read(walk->thread, fetch_program->stack_words)) {
		words_make(walk->slot->frame, fetch_program, walk->thread->words);
		walk->slot->deferred.frame_bytes = fetch_program->word_bytes;
	} else {
		frame_make(walk, 0, fetch_program->begins, sizeof(struct waffle_frame));
	}
}

#endif

// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/stack_numbers_internal.h"
#include "capture/enrich/stack_mix_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/keymap.h"
#include "util/map.h"
#include "util/vec.h"

#define STACKS_MAX (1u << 20)
#define WALKS_MAX (1u << 16)
#define TRACES_MAX (1u << 18) /* a power of two */
#define TRACE_LATE_NS 1000000000ull
#define SYMBOLS_MAX (1u << 20)

/* A stack with the kernel's number, to which records refer. */
struct trace {
	uint64_t ts;
	uint32_t number; /* the kernel's number; 0: unused */
	uint32_t stack;  /* number in the file */
};

/* The user stack of a thread's wait or wake-up. */
struct stack_walk {
	uint64_t ts;
	uint32_t number; /* number in the file */
};

/* What is known of a stack in the file. */
struct stack_row {
	uint64_t key[2];
	bool interrupt; /* it is an interrupt's */
	bool held;      /* during a sweep: a record may still refer to it */
};

struct stack_numbers {
	struct stack_numbers_uses uses;
	struct trace *traces; /* the last TRACES_MAX, by the kernel's number */
	uint64_t left_out;    /* see stack_numbers_left_out() */
	uint64_t late;        /* see stack_numbers_late() */
	/* tid → index in `walks`: the user stack of a wait that was unwound by tables. It precedes
	 * the record of the wait. */
	struct map waits;
	VEC(struct stack_walk) walks;
	VEC(uint32_t) unused_walks;
	struct keymap frames; /* stack_key() → number in the file */
	uint32_t count;
	struct map symbols;             /* kernel addresses that were named */
	VEC(struct stack_row) numbered; /* by the file's number, from 1 */
};

int stack_numbers_open(struct stack_numbers **numbers, const struct stack_numbers_uses *uses,
		       struct error *err)
{
	struct stack_numbers *made = calloc(1, sizeof(*made));

	*numbers = made;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->uses = *uses;
	made->traces = calloc(TRACES_MAX, sizeof(*made->traces));
	return made->traces ? 0 : error_set(err, ENOMEM, "out of memory");
}

void stack_numbers_close(struct stack_numbers *numbers)
{
	if (!numbers)
		return;
	free(numbers->traces);
	keymap_free(&numbers->frames);
	map_free(&numbers->waits);
	vec_free(&numbers->walks);
	vec_free(&numbers->unused_walks);
	map_free(&numbers->symbols);
	vec_free(&numbers->numbered);
	free(numbers);
}

uint64_t stack_numbers_left_out(const struct stack_numbers *numbers)
{
	return numbers->left_out;
}

uint64_t stack_numbers_late(const struct stack_numbers *numbers)
{
	return numbers->late;
}

bool stack_numbers_is_interrupt(const struct stack_numbers *numbers, uint32_t number)
{
	return number && numbers->numbered.data[number - 1].interrupt;
}

void stack_numbers_forget(struct stack_numbers *numbers, uint32_t tid)
{
	uint32_t index = map_remove(&numbers->waits, tid);

	if (index != MAP_NONE)
		(void)vec_push(&numbers->unused_walks, index);
}

/* The meaning of a kernel function on a stack for that stack. */
enum symbol_role { SYMBOL_UNKNOWN, SYMBOL_PLAIN, SYMBOL_TRACING, SYMBOL_INTERRUPT };

static enum symbol_role symbol_role(const char *name)
{
	static const struct {
		const char *beginning;
		enum symbol_role role;
	} rows[] = {
		/* Our own program on the stack, and the tracepoint that called it. */
		{"bpf_prog_", SYMBOL_TRACING},
		{"bpf_trace_run", SYMBOL_TRACING},
		{"__bpf_trace_", SYMBOL_TRACING},
		{"__traceiter_", SYMBOL_TRACING},
		{"bpf_trampoline_", SYMBOL_TRACING},
		/* Entry points of interrupts: arch/x86/include/asm/idtentry.h and
		 * arch/arm64/kernel/entry.S. */
		{"asm_sysvec_", SYMBOL_INTERRUPT},
		{"asm_common_interrupt", SYMBOL_INTERRUPT},
		{"asm_spurious_interrupt", SYMBOL_INTERRUPT},
		{"el1h_64_irq", SYMBOL_INTERRUPT},
		{"el0t_64_irq", SYMBOL_INTERRUPT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(name, rows[i].beginning, strlen(rows[i].beginning)))
			return rows[i].role;
	return SYMBOL_PLAIN;
}

/* Adds the name of a kernel address to the file, once. */
static int symbol_add(struct stack_numbers *numbers, uint64_t address, enum symbol_role *role,
		      struct error *err)
{
	uint32_t known = map_get(&numbers->symbols, address);
	struct kernel_symbol found;

	*role = known != MAP_NONE ? known : SYMBOL_UNKNOWN;
	if (known != MAP_NONE || numbers->symbols.len >= SYMBOLS_MAX)
		return 0;
	if (kernel_symbol_find(numbers->uses.kernel, address, &found))
		*role = symbol_role(found.name);
	if (!map_set(&numbers->symbols, address, *role) || *role == SYMBOL_UNKNOWN)
		return 0;
	return store_writer_add_symbol(numbers->uses.writer,
				       &(struct store_symbol){.address = address,
							      .offset = found.offset,
							      .name = found.name},
				       err);
}

/* Names the functions of a kernel stack. Removes the innermost frames of our own BPF programs, and
 * the outermost frames that belong to interrupted code. */
static int kernel_stack_finish(struct stack_numbers *numbers, struct store_stack *stack,
			       bool *interrupt, struct error *err)
{
	uint32_t made = 0;

	for (uint32_t i = 0; i < stack->count; i++) {
		enum symbol_role role;
		int result = symbol_add(numbers, stack->addresses[i], &role, err);

		if (result)
			return result;
		if (role == SYMBOL_TRACING && made == i && i + 1 < stack->count)
			made++;
		if (role == SYMBOL_INTERRUPT) { /* the interrupted code is not the cause */
			*interrupt = true;
			stack->count = i + 1;
			stack->cut = false;
		}
	}
	stack->addresses += made;
	stack->count -= made;
	return 0;
}

static int user_stack_finish(struct stack_numbers *numbers, struct store_stack *stack, uint64_t ts,
			     struct error *err)
{
	pid_t pid = (pid_t)stack->pid;
	struct address_spaces *spaces = numbers->uses.spaces;
	int result = address_spaces_write(spaces, pid, ts, stack->addresses, stack->count, err);
	uint32_t count = address_spaces_code_count(spaces, pid, ts, stack->addresses, stack->count);

	stack->cut |= count < stack->count;
	stack->count = count;
	return result;
}

/* Writes the mappings of the native frames, all of which are code. */
static int mixed_stack_finish(struct stack_numbers *numbers, const struct store_stack *stack,
			      uint64_t ts, struct error *err)
{
	uint64_t native[STORE_STACK_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < stack->count; i++)
		if (!(stack->addresses[i] & STORE_NAMED) && count < STORE_STACK_MAX)
			native[count++] = stack->addresses[i];
	return count ? address_spaces_write(numbers->uses.spaces, (pid_t)stack->pid, ts, native,
					    count, err)
		     : 0;
}

static bool has_named(const struct store_stack *stack)
{
	for (uint32_t i = 0; i < stack->count; i++)
		if (stack->addresses[i] & STORE_NAMED)
			return true;
	return false;
}

static bool stack_has_room(struct stack_numbers *numbers)
{
	return numbers->count < STACKS_MAX && store_writer_has_room(numbers->uses.writer);
}

/* The key of a stack and its process (0: the kernel): two hashes with different secrets. The stacks
 * themselves would be too much to keep: there may be a million, of up to a kilobyte each. */
static void stack_key(const struct store_stack *stack, uint64_t key[2])
{
	const struct hash_secret first = hash_secret();
	const struct hash_secret second = {.factor = first.begin | 1, .begin = first.factor};
	uint64_t word = (uint64_t)stack->cut << 32 | stack->pid;

	key[0] = hash_word(first.begin, word, &first);
	key[1] = hash_word(second.begin, word, &second);
	for (uint32_t i = 0; i < stack->count; i++) {
		key[0] = hash_word(key[0], stack->addresses[i], &first);
		key[1] = hash_word(key[1], stack->addresses[i], &second);
	}
}

/* Adds a stack of `ts` to the file, unless it is there, and returns its number. 0: it is empty or
 * privileged. -ENOSPC: the file has no room. Frames of Python and Java are numbers rather than
 * addresses, so they need no mapping. */
static int stack_add(struct stack_numbers *numbers, uint32_t *number, struct store_stack *stack,
		     uint64_t ts, struct error *err)
{
	struct stack_row row = {.interrupt = false};
	uint64_t named[STORE_STACK_MAX];
	uint32_t known, next = store_writer_next(numbers->uses.writer, STORE_STACKS);
	int result;

	*number = 0;
	if (stack->pid && processes_is_privileged(address_spaces_processes(numbers->uses.spaces),
						  (pid_t)stack->pid))
		return 0;
	if (stack->pid && numbers->uses.stacks && stack->count <= STORE_STACK_MAX) {
		result = stacks_jvm(numbers->uses.stacks, stack, ts, named, err);
		if (result)
			return result;
	}
	stack_key(stack, row.key);
	known = keymap_get(&numbers->frames, row.key, sizeof(row.key));
	if (known != MAP_NONE) {
		*number = known;
		return 0;
	}
	if (!stack->count)
		return 0;
	if (!stack_has_room(numbers))
		return -ENOSPC;
	if ((next > numbers->numbered.len && !vec_push(&numbers->numbered, row)) ||
	    !keymap_set(&numbers->frames, row.key, sizeof(row.key), next))
		return -ENOMEM;
	if (!stack->pid)
		result = kernel_stack_finish(numbers, stack, &row.interrupt, err);
	else
		result = has_named(stack) ? mixed_stack_finish(numbers, stack, ts, err)
					  : user_stack_finish(numbers, stack, ts, err);
	result = result ?: store_writer_add_stack(numbers->uses.writer, stack, err);
	if (result)
		return result;
	*number = next;
	numbers->numbered.data[next - 1] = row;
	numbers->count++;
	return 0;
}

static void number_hold(struct stack_numbers *numbers, uint32_t number)
{
	if (number)
		numbers->numbered.data[number - 1].held = true;
}

static bool number_drop(uint32_t number, void *arg)
{
	struct stack_numbers *numbers = arg;
	const struct stack_row *row = &numbers->numbered.data[number - 1];

	if (row->held)
		return false;
	keymap_remove(&numbers->frames, row->key, sizeof(row->key));
	numbers->count--;
	return true;
}

/* The kernel may send any of its numbers again. */
void stack_numbers_sweep(struct stack_numbers *numbers)
{
	if (!store_writer_should_sweep(numbers->uses.writer, STORE_STACKS))
		return;
	for (size_t i = 0; i < numbers->numbered.len; i++)
		numbers->numbered.data[i].held = false;
	for (size_t i = 0; i < TRACES_MAX; i++)
		number_hold(numbers, numbers->traces[i].stack);
	for (size_t i = 0; i < numbers->walks.len; i++)
		number_hold(numbers, numbers->walks.data[i].number);
	store_writer_sweep(numbers->uses.writer, STORE_STACKS, number_drop, numbers);
}

/* Numbers a stack as stack_add() does. If there is no room, the record gets no stack, and the
 * stack counts as left out. */
static int frames_number(struct stack_numbers *numbers, uint32_t *number, struct store_stack *stack,
			 uint64_t ts, struct error *err)
{
	int result = stack_add(numbers, number, stack, ts, err);

	if (result != -ENOSPC)
		return result;
	numbers->left_out++;
	return 0;
}

/* Replaces the kernel's number of a stack, in a record of `ts`, by the file's. The result is 0 if
 * the number is unknown, or if the kernel has reused it for another stack. */
static void trace_replace(struct stack_numbers *numbers, uint32_t *number, uint64_t ts)
{
	const struct trace *trace = &numbers->traces[*number & (TRACES_MAX - 1)];

	if (!*number)
		return;
	if (trace->number == *number && trace->ts <= ts + TRACE_LATE_NS) {
		*number = trace->stack;
		return;
	}
	/* A later stack has the place of this one, or its record did not come yet. */
	if (trace->number && (int32_t)(trace->number - *number) >= 0)
		numbers->left_out++;
	else
		numbers->late++;
	*number = 0;
}

/* Replaces both numbers of a wait or wake-up whose stacks were taken at `ts`. If the user stack
 * was unwound by tables, an earlier record has it. */
void stack_numbers_replace(struct stack_numbers *numbers, uint32_t tid, uint64_t ts,
			   uint32_t *kernel_number, uint32_t *user_number)
{
	uint32_t walked = map_get(&numbers->waits, tid);

	trace_replace(numbers, kernel_number, ts);
	if (*user_number != WAFFLE_STACK_BY_FRAMES) {
		trace_replace(numbers, user_number, ts);
	} else if (walked != MAP_NONE && numbers->walks.data[walked].ts == ts) {
		*user_number = numbers->walks.data[walked].number;
		stack_numbers_forget(numbers, tid);
	} else {
		*user_number = 0;
	}
}

/* Keeps the user stack of a wait until the record of the wait arrives. */
static int walk_keep(struct stack_numbers *numbers, const struct waffle_rec *rec,
		     struct store_stack stack, uint64_t *addresses, struct error *err)
{
	uint32_t index = map_get(&numbers->waits, rec->tid);
	struct stack_walk walk = {.ts = rec->ts};
	int result;

	stack.addresses = addresses;
	result = frames_number(numbers, &walk.number, &stack, rec->ts, err);
	stack.addresses = NULL;
	if (result)
		return result;
	if (index != MAP_NONE) {
		numbers->walks.data[index] = walk;
		return 0;
	}
	if (numbers->waits.len >= WALKS_MAX) { /* most belong to threads that are gone */
		map_free(&numbers->waits);
		numbers->walks.len = numbers->unused_walks.len = 0;
	}
	if (numbers->unused_walks.len)
		index = numbers->unused_walks.data[--numbers->unused_walks.len];
	else if (vec_push(&numbers->walks, walk))
		index = (uint32_t)numbers->walks.len - 1;
	else
		return -ENOMEM;
	numbers->walks.data[index] = walk;
	return map_set(&numbers->waits, rec->tid, index) ? 0 : -ENOMEM;
}

/* Removes the marks of frames that begin a call of the interpreter's loop. Returns a bit for each.
 */
static uint64_t ends_take(uint64_t *pairs, uint32_t count)
{
	uint64_t ends = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (pairs[2 * i + 1] & WAFFLE_PYTHON_ENTRY)
			ends |= 1ull << i;
		pairs[2 * i + 1] &= ~WAFFLE_PYTHON_ENTRY;
	}
	return ends;
}

/* Keeps the stack of a wait, whose frames of Python are among the native ones. */
static int walk_mix(struct stack_numbers *numbers, const struct waffle_rec_frames *frames,
		    struct store_stack user, uint64_t *pairs, struct error *err)
{
	uint64_t python[WAFFLE_FRAMES_PYTHON_MAX];
	uint64_t mixed[WAFFLE_FRAMES_USER_MAX + WAFFLE_FRAMES_PYTHON_MAX];
	static const struct python_code_range unknown;
	const struct python *interpreter;
	struct stack_mix mix = {.native = user.addresses,
				.native_count = user.count,
				.python = python,
				.python_ends = ends_take(pairs, frames->python_count)};
	int count = numbers->uses.stacks && frames->python_count
			    ? stacks_python(numbers->uses.stacks, frames, pairs, python, err)
			    : 0;

	if (count < 0)
		return count;
	interpreter = count ? stacks_interpreter(numbers->uses.stacks, frames->tgid) : NULL;
	mix.python_count = (uint32_t)count;
	user.count = stack_mix(&mix, interpreter ? &interpreter->code : &unknown, mixed);
	return walk_keep(numbers, &frames->rec, user, mixed, err);
}

int stack_numbers_frames(struct stack_numbers *numbers, struct waffle_rec *rec, struct error *err)
{
	struct waffle_rec_frames frames = *(const struct waffle_rec_frames *)rec;
	struct waffle_rec_stack *stack = (struct waffle_rec_stack *)rec;
	uint64_t addresses[WAFFLE_FRAMES_USER_MAX], pairs[2 * WAFFLE_FRAMES_PYTHON_MAX];
	uint32_t words = frames.frame_bytes / 8, python = frames.python_count;
	struct store_stack user = {
		.addresses = addresses, .pid = frames.tgid, .cut = frames.cut & WAFFLE_CUT_USER};
	const uint64_t *from =
		(const uint64_t *)(const void *)((const struct waffle_rec_frames *)rec + 1);
	int result, count;

	_Static_assert(sizeof(frames) >= sizeof(*stack), "a STACK fits where FRAMES were");
	if (python > WAFFLE_FRAMES_PYTHON_MAX || 2 * python > words ||
	    words - 2 * python > WAFFLE_FRAMES_USER_MAX)
		return -EINVAL;
	user.count = words - 2 * python;
	memcpy(addresses, from, user.count * sizeof(*from));
	memcpy(pairs, from + user.count, 2 * python * sizeof(*from));
	if (user.cut && numbers->uses.stacks)
		stacks_cut(numbers->uses.stacks, frames.tgid, frames.rec.ts);
	if (!frames.id)
		return walk_mix(numbers, &frames, user, pairs, err);
	ends_take(pairs, python);
	*stack = (struct waffle_rec_stack){
		.rec = frames.rec, .id = frames.id, .kernel_stack = frames.kernel_stack};
	stack->rec.kind = WAFFLE_REC_STACK;
	trace_replace(numbers, &stack->kernel_stack, stack->rec.ts);
	result = frames_number(numbers, &stack->user_stack, &user, frames.rec.ts, err);
	if (result || !python || !numbers->uses.stacks)
		return result;
	count = stacks_python(numbers->uses.stacks, &frames, pairs, addresses, err);
	if (count < 0)
		return count;
	user.count = (uint32_t)count;
	user.cut = frames.cut & WAFFLE_CUT_PYTHON;
	return frames_number(numbers, &stack->python_stack, &user, frames.rec.ts, err);
}

int stack_numbers_trace(struct stack_numbers *numbers, const struct waffle_rec *rec,
			struct error *err)
{
	const struct waffle_rec_trace *taken = (const struct waffle_rec_trace *)rec;
	uint64_t addresses[WAFFLE_STACK_DEPTH];
	struct store_stack stack = {
		.addresses = addresses, .pid = taken->tgid, .count = taken->frame_bytes / 8};
	struct trace *trace = &numbers->traces[taken->number & (TRACES_MAX - 1)];
	int result;

	if (stack.count > WAFFLE_STACK_DEPTH)
		return -EINVAL;
	stack.cut = stack.count == WAFFLE_STACK_DEPTH;
	memcpy(addresses, taken + 1, stack.count * sizeof(*addresses));
	*trace = (struct trace){.ts = rec->ts, .number = taken->number};
	result = stack_add(numbers, &trace->stack, &stack, rec->ts, err);
	return result == -ENOSPC ? -EINVAL : result;
}

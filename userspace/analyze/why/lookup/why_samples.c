// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_samples.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_phases_internal.h"
#include "analyze/why/lookup/why_meaning.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/memory.h"
#include "util/path.h"
#include "util/syscall_names.h"

const char *const sample_spin_texts[SAMPLE_SPIN_COUNT] = {
	[SAMPLE_SPIN_USER] = "spins for a lock",
	[SAMPLE_SPIN_PI] = "spins for a PI mutex",
	[SAMPLE_SPIN_KERNEL] = "spins for a kernel mutex",
	[SAMPLE_SPIN_KERNEL_SPIN] = "spins for a kernel spin lock",
	[SAMPLE_SPIN_PAUSE] = "spins in a loop that waits",
	[SAMPLE_SPIN_ALLOCATOR] = "for a lock of malloc()",
};
const char *const sample_spin_names[SAMPLE_SPIN_COUNT] = {
	[SAMPLE_SPIN_USER] = "user-lock",      [SAMPLE_SPIN_PI] = "pi-mutex",
	[SAMPLE_SPIN_KERNEL] = "kernel-mutex", [SAMPLE_SPIN_KERNEL_SPIN] = "kernel-spinlock",
	[SAMPLE_SPIN_PAUSE] = "pause",         [SAMPLE_SPIN_ALLOCATOR] = "allocator-lock",
};

struct sample_places {
	const struct model *model;
	struct stack_names *names;
	struct strtab *texts;
	VEC(struct sample_place) list;
	struct keymap known;  /* struct sample_place → index */
	struct map user_at;   /* user stack → place; the stack belongs to one process */
	struct map kernel_at; /* kernel stack, system call and what it is for → place */
	struct map locks_at;  /* user stack → whether it is in a lock of the memory allocator */
	/* Of each user stack: struct sample_place.phase as a place, or MAP_NONE; the number of
	 * functions that samples are within; and their places, innermost first, each function once.
	 */
	VEC(uint32_t) callers;
	struct map callers_at; /* user stack → index in callers */
};

struct sample_places *sample_places_new(const struct model *model, struct stack_names *names,
					struct strtab *texts)
{
	struct sample_places *made = memory_zeroed(1, sizeof(*made));

	made->model = model;
	made->names = names;
	made->texts = texts;
	return made;
}

void sample_places_free(struct sample_places *places)
{
	if (!places)
		return;
	vec_free(&places->list);
	keymap_free(&places->known);
	map_free(&places->user_at);
	map_free(&places->kernel_at);
	map_free(&places->locks_at);
	vec_free(&places->callers);
	map_free(&places->callers_at);
	free(places);
}

const struct sample_place *sample_places_get(const struct sample_places *places, uint32_t place)
{
	return &places->list.data[place];
}

static uint32_t place_number(struct sample_places *places, const struct sample_place *place)
{
	const uint32_t key[7] = {(uint32_t)place->kernel << 8 | place->spin,
				 (uint32_t)place->syscall,
				 place->text,
				 place->module,
				 place->generator,
				 place->source,
				 place->phase};
	uint32_t number = keymap_get(&places->known, key, sizeof(key));

	if (number != MAP_NONE)
		return number;
	number = (uint32_t)places->list.len;
	vec_add(&places->list, *place);
	keymap_put(&places->known, key, sizeof(key), number);
	return number;
}

static uint32_t text_of(const struct sample_places *places, const char *text)
{
	return text ? strtab_put(places->texts, text, strlen(text)) : 0;
}

uint32_t *sample_places_take(struct sample_places *places, const struct sample_places *from)
{
	uint32_t *numbers = memory_zeroed(from->list.len, sizeof(*numbers));

	for (size_t i = 0; i < from->list.len; i++) {
		struct sample_place place = from->list.data[i];

		place.text = strtab_take(places->texts, from->texts, place.text);
		place.function = strtab_take(places->texts, from->texts, place.function);
		place.module = strtab_take(places->texts, from->texts, place.module);
		place.generator = strtab_take(places->texts, from->texts, place.generator);
		place.source = strtab_take(places->texts, from->texts, place.source);
		place.phase = strtab_take(places->texts, from->texts, place.phase);
		numbers[i] = place_number(places, &place);
	}
	return numbers;
}

/* ---- the program's own code ---- */

/*
 * Whether a function spins for a lock, by its name. There is no list of all spin locks, so a name
 * that says "spin lock" counts, and the loops of well-known libraries do.
 */
static bool spins_by_name(const char *function)
{
	static const char *const parts[] = {"spin_lock", "spinlock", "SpinLock", "spinLock",
					    "Spinlock"};
	static const char *const names[] = {
		"runtime.procyield",                         /* Go */
		"std::sys::sync::mutex::futex::Mutex::spin", /* Rust */
		"parking_lot_core::spinwait::SpinWait::spin",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(function, names[i], strlen(names[i])))
			return true;
	if (strstr(function, "unlock") || strstr(function, "Unlock") || strstr(function, "init"))
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(function, parts[i]))
			return true;
	return false;
}

/* Whether a function of CPython collects garbage. Until 3.8 it is collect(). The compiler may add
 * suffixes. */
static bool collects_garbage(const char *function)
{
	static const char *const names[] = {"gc_collect", "collect."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(function, names[i], strlen(names[i])))
			return true;
	return !strcmp(function, "collect");
}

/* The innermost function of a stack, with what is inlined into it. If the interpreter of Python
 * runs it, the function of Python that called it counts. */
struct leaf {
	const char *function, *module;
	const char *file; /* of a function of Python; else NULL */
	bool native;      /* the innermost function is known, and is the interpreter's */
	bool done, spins;
	bool collects; /* the interpreter collects garbage */
};

static void leaf_frame(const struct stack_frame *frame, void *arg)
{
	struct leaf *leaf = arg;

	if (leaf->done || frame->cut)
		return;
	if (!leaf->native && frame->function && spins_by_name(frame->function))
		leaf->spins = true;
	if (stack_frame_is_python(frame)) {
		leaf->done = true;
		if (!frame->function || !frame->file)
			return;
		leaf->function = frame->function;
		leaf->module = frame->module;
		leaf->file = frame->file;
		return;
	}
	if (frame->function && stack_frame_is_interpreter(frame))
		leaf->collects |= collects_garbage(frame->function);
	if (leaf->native) {
		/* The begin of a thread is in front of Python's functions if nobody knows which
		 * calls of the interpreter's loop ran them. */
		leaf->done = !stack_frame_is_interpreter(frame) && !stack_frame_is_common(frame);
		return;
	}
	leaf->function = frame->function;
	leaf->module = frame->module;
	leaf->native = !frame->inlined && stack_frame_is_interpreter(frame);
	leaf->done = !frame->inlined && !leaf->native;
}

/* "step (train.py)", or "step (train.py), garbage collection". */
static uint32_t python_text(const struct sample_places *places, const char *function,
			    const char *file, bool collects)
{
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);
	uint32_t number;

	fprintf(out, "%s (%s)%s", function, path_base(file),
		collects ? ", garbage collection" : "");
	fclose(out);
	number = text_of(places, text);
	free(text);
	return number;
}

/* What may have generated the code at the top of a stack; 0: unknown. */
static uint32_t generator_of(const struct sample_places *places, const struct model_sample *sample)
{
	const struct store_stack *stack =
		store_reader_stack(places->model->reader, sample->user_stack);

	if (!stack || !stack->count)
		return 0;
	return text_of(places, stack_names_generator(places->names, stack->pid, stack->addresses[0],
						     sample->ts));
}

/* Whether the sample hit the thread right behind an instruction that only waits. */
static bool pauses(const struct sample_places *places, const struct model_sample *sample)
{
	const struct store_stack *stack =
		store_reader_stack(places->model->reader, sample->user_stack);

	return stack && stack->count &&
	       stack_names_pauses(places->names, stack->pid, sample->ts, stack->addresses[0]);
}

/* Sources of Python's own library say nothing about who called. */
static uint32_t source_text(const struct sample_places *places, const char *file)
{
	bool known = file && (!stack_source_is_library(file) || stack_source_in_packages(file));

	return known ? text_of(places, file) : 0;
}

static uint32_t user_place(struct sample_places *places, const struct model_sample *sample)
{
	struct sample_place place = {.syscall = -1};
	struct leaf leaf = {0};

	stack_names_each(places->names, sample->user_stack, sample->ts, leaf_frame, &leaf);
	place.function = leaf.file ? python_text(places, leaf.function, leaf.file, false)
				   : text_of(places, leaf.function);
	place.text = leaf.file && leaf.collects
			     ? python_text(places, leaf.function, leaf.file, true)
			     : place.function;
	place.module = text_of(places, leaf.module ? path_base(leaf.module) : NULL);
	place.source = source_text(places, leaf.file);
	if (!leaf.function && !leaf.module)
		place.generator = generator_of(places, sample);
	if (leaf.spins)
		place.spin = SAMPLE_SPIN_USER;
	else if (pauses(places, sample))
		place.spin = SAMPLE_SPIN_PAUSE;
	return place_number(places, &place);
}

/* ---- the functions that it is within ---- */

struct callers {
	struct sample_places *places;
	size_t begin;
	bool python;       /* only functions of Python count, since there are some */
	const char *phase; /* as phase_add() sets it */
};

static void callers_add(const struct callers *callers, uint32_t place)
{
	struct sample_places *places = callers->places;

	for (size_t i = callers->begin; i < places->callers.len; i++)
		if (places->callers.data[i] == place)
			return;
	vec_add(&places->callers, place);
}

/* Everything is within these, or calls into the JVM's code go through them. */
static bool says_nothing(const char *function)
{
	return !strcmp(function, "main") || !strcmp(function, "_start") ||
	       !strncmp(function, "JavaCalls::", strlen("JavaCalls::"));
}

static void callers_frame(const struct stack_frame *frame, void *arg)
{
	struct callers *callers = arg;
	struct sample_places *places = callers->places;
	struct sample_place place = {.syscall = -1};
	bool python = stack_frame_is_python(frame);

	if (!frame->function || frame->cut || (python && !frame->file))
		return;
	phase_add(&callers->phase, frame);
	if (python && !callers->python) {
		callers->python = true;
		places->callers.len = callers->begin;
	}
	if (!python && (callers->python || stack_frame_is_common(frame) ||
			stack_frame_is_interpreter(frame) || says_nothing(frame->function)))
		return;
	place.function = python ? python_text(places, frame->function, frame->file, false)
				: text_of(places, frame->function);
	place.text = place.function;
	place.module = text_of(places, frame->module ? path_base(frame->module) : NULL);
	place.source = source_text(places, python ? frame->file : NULL);
	callers_add(callers, place_number(places, &place));
}

/* What a stack is within, as struct sample_places has it. */
static const uint32_t *callers_of(struct sample_places *places, const struct model_sample *sample)
{
	uint32_t at = map_get(&places->callers_at, sample->user_stack);

	if (at == MAP_NONE) {
		struct callers callers = {.places = places, .begin = places->callers.len + 2};
		struct sample_place place = {.syscall = -1};

		at = (uint32_t)places->callers.len;
		vec_add(&places->callers, MAP_NONE);
		vec_add(&places->callers, 0);
		stack_names_each(places->names, sample->user_stack, sample->ts, callers_frame,
				 &callers);
		place.phase = text_of(places, callers.phase);
		if (place.phase)
			places->callers.data[at] = place_number(places, &place);
		places->callers.data[at + 1] = (uint32_t)(places->callers.len - callers.begin);
		map_put(&places->callers_at, sample->user_stack, at);
	}
	return &places->callers.data[at];
}

/* ---- the kernel ---- */

/* The functions in which the kernel spins, by their beginning, since the compiler may add
 * suffixes. */
static uint8_t kernel_spin(const char *function)
{
	static const struct {
		const char *beginning;
		enum sample_spin spin;
	} rows[] = {
		/* kernel/locking/rtmutex.c */
		{"rtmutex_spin_on_owner", SAMPLE_SPIN_PI},
		{"rt_mutex_slowlock_block", SAMPLE_SPIN_PI},
		/* mutex.c, rwsem.c, osq_lock.c */
		{"mutex_spin_on_owner", SAMPLE_SPIN_KERNEL},
		{"mutex_optimistic_spin", SAMPLE_SPIN_KERNEL},
		{"rwsem_spin_on_owner", SAMPLE_SPIN_KERNEL},
		{"rwsem_optimistic_spin", SAMPLE_SPIN_KERNEL},
		{"osq_lock", SAMPLE_SPIN_KERNEL},
		/* qspinlock.c, qrwlock.c */
		{"native_queued_spin_lock_slowpath", SAMPLE_SPIN_KERNEL_SPIN},
		{"__pv_queued_spin_lock_slowpath", SAMPLE_SPIN_KERNEL_SPIN},
		{"queued_spin_lock_slowpath", SAMPLE_SPIN_KERNEL_SPIN},
		{"queued_read_lock_slowpath", SAMPLE_SPIN_KERNEL_SPIN},
		{"queued_write_lock_slowpath", SAMPLE_SPIN_KERNEL_SPIN},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(function, rows[i].beginning, strlen(rows[i].beginning)))
			return rows[i].spin;
	return SAMPLE_SPIN_NONE;
}

/* The innermost functions that may spin: a spinning function calls short ones. */
#define SPIN_FRAMES 2

struct kernel_frames {
	uint32_t count;
	uint8_t spin;
	const char *innermost, *meaning;
};

/* Functions that begin or end a program's handler of a signal, by their beginning. */
static bool is_of_signal(const char *function)
{
	static const char *const rows[] = {
		"get_signal",
		"arch_do_signal_or_restart",
		"do_signal",
		"__do_sys_rt_sigreturn",
		"__x64_sys_rt_sigreturn",
		"__arm64_sys_rt_sigreturn",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(function, rows[i], strlen(rows[i])))
			return true;
	return false;
}

static void kernel_frame(const struct stack_frame *frame, void *arg)
{
	struct kernel_frames *frames = arg;

	if (!frame->function || frame->cut)
		return;
	if (!frames->count)
		frames->innermost = frame->function;
	if (frames->count++ < SPIN_FRAMES && !frames->spin)
		frames->spin = kernel_spin(frame->function);
	if (strstr(frame->function, "page_fault"))
		frames->meaning = "page fault";
	else if (!frames->meaning && is_of_signal(frame->function))
		frames->meaning = "signals";
	else if (!frames->meaning && (strstr(frame->function, "sysvec_") ||
				      strstr(frame->function, "common_interrupt") ||
				      strstr(frame->function, "_softirq")))
		frames->meaning = "interrupt";
}

/* Between the system call and the function that locks or unlocks. The names of glibc. */
static const char lock_functions[] = "*__lll_lock_wait* *__lll_lock_wake* lll_* futex_* ";
/* The allocator of glibc. The compiler may make parts of a function one of its own. */
static const char allocator_functions[] =
	"malloc free cfree calloc realloc memalign posix_memalign aligned_alloc valloc pvalloc "
	"*__libc_malloc* *__libc_free* *__libc_calloc* *__libc_realloc* *__libc_memalign* "
	"_mid_memalign* _int_malloc _int_free* _int_realloc _int_memalign arena_get* "
	"malloc_consolidate sysmalloc malloc_trim ";

struct lock_frames {
	bool done, allocator;
};

static void lock_frame(const struct stack_frame *frame, void *arg)
{
	struct lock_frames *frames = arg;

	if (frames->done || meaning_is_listed(frame->function, lock_functions))
		return;
	frames->done = true;
	frames->allocator = meaning_is_listed(frame->function, allocator_functions);
}

/* Whether a sample is in futex(2) for a lock of the memory allocator: to wait for it, or to wake
 * those that wait. A thread that does so very often hardly waits, but neither does its work. */
static bool is_for_allocator(struct sample_places *places, const struct model_sample *sample)
{
	const char *name = sample->kernel && sample->syscall >= 0
				   ? syscall_name(places->model->meta->machine, sample->syscall)
				   : NULL;
	uint32_t known;

	if (!name || strcmp(name, "futex") != 0)
		return false;
	known = map_get(&places->locks_at, sample->user_stack);
	if (known == MAP_NONE) {
		struct lock_frames frames = {0};

		stack_names_each(places->names, sample->user_stack, sample->ts, lock_frame,
				 &frames);
		known = frames.allocator;
		map_put(&places->locks_at, sample->user_stack, known);
	}
	return known;
}

/* A system call says more than the function in it. Without one, the outer functions do. */
static uint32_t kernel_place(struct sample_places *places, const struct model_sample *sample,
			     bool allocator)
{
	struct sample_place place = {.kernel = true, .syscall = sample->syscall};
	struct kernel_frames frames = {0};

	stack_names_each(places->names, sample->kernel_stack, sample->ts, kernel_frame, &frames);
	place.spin = frames.spin ?: allocator ? SAMPLE_SPIN_ALLOCATOR : SAMPLE_SPIN_NONE;
	if (sample->syscall < 0)
		place.text = text_of(places, frames.meaning ?: frames.innermost);
	return place_number(places, &place);
}

static uint32_t place_of(struct sample_places *places, const struct model_sample *sample)
{
	struct map *cache = sample->kernel ? &places->kernel_at : &places->user_at;
	bool allocator = is_for_allocator(places, sample);
	uint64_t key = sample->kernel ? (uint64_t)allocator << 48 |
						(uint64_t)(uint16_t)sample->syscall << 32 |
						sample->kernel_stack
				      : sample->user_stack;
	uint32_t place = map_get(cache, key);

	if (place != MAP_NONE)
		return place;
	place = sample->kernel ? kernel_place(places, sample, allocator)
			       : user_place(places, sample);
	map_put(cache, key, place);
	return place;
}

/* ---- texts ---- */

static void put_kernel(FILE *out, const struct sample_places *places,
		       const struct sample_place *place)
{
	const char *name = place->syscall >= 0
				   ? syscall_name(places->model->meta->machine, place->syscall)
				   : NULL;

	fputs("kernel", out);
	if (name)
		fprintf(out, ", %s()", name);
	else if (place->syscall >= 0)
		fprintf(out, ", system call %d", place->syscall);
	else if (place->text)
		fprintf(out, ", %s", strtab_get(places->texts, place->text));
}

const char *sample_place_function(const struct sample_places *places, uint32_t number)
{
	return strtab_get(places->texts, sample_places_get(places, number)->text);
}

const char *sample_place_phase(const struct sample_places *places, uint32_t number)
{
	return strtab_get(places->texts, sample_places_get(places, number)->phase);
}

char *sample_place_text(const struct sample_places *places, uint32_t number)
{
	const struct sample_place *place = sample_places_get(places, number);
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);

	if (place->kernel)
		put_kernel(out, places, place);
	else if (place->text)
		fprintf(out, "%s, user", strtab_get(places->texts, place->text));
	else if (place->module)
		fprintf(out, "%s without names, user", strtab_get(places->texts, place->module));
	else if (place->generator)
		fprintf(out, "code in no known file, as %s generates, user",
			strtab_get(places->texts, place->generator));
	else
		fputs("unknown code, user", out);
	if (place->spin)
		fprintf(out, ", %s", sample_spin_texts[place->spin]);
	memory_require(!fclose(out));
	return text;
}

/* ---- counts ---- */

static int by_place(const void *left, const void *right)
{
	const struct sample_count *a = left, *b = right;

	return a->place < b->place ? -1 : a->place > b->place;
}

static int by_count(const void *left, const void *right)
{
	const struct sample_count *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return by_place(left, right);
}

static void count_add(struct sample_count *to, const struct sample_count *more)
{
	to->count += more->count;
	to->within += more->within;
	to->depth += more->depth;
}

static void counts_join(sample_counts *counts)
{
	size_t kept = 0;

	if (!counts->len)
		return;
	qsort(counts->data, counts->len, sizeof(*counts->data), by_place);
	for (size_t i = 1; i < counts->len; i++) {
		if (counts->data[i].place == counts->data[kept].place)
			count_add(&counts->data[kept], &counts->data[i]);
		else
			counts->data[++kept] = counts->data[i];
	}
	counts->len = kept + 1;
}

void sample_counts_add(sample_counts *counts, const struct sample_count *more)
{
	if (counts->len == counts->cap && counts->len >= 64) {
		counts_join(counts);
		/* If most are different, the list has to grow. */
		vec_need(counts, counts->len > counts->cap / 2 ? counts->cap : 1);
	}
	vec_add(counts, *more);
}

bool sample_places_match(const struct sample_places *places, size_t left, size_t right)
{
	const struct model_sample *a = &places->model->samples.data[left];
	const struct model_sample *b = &places->model->samples.data[right];

	return a->user_stack == b->user_stack && a->kernel == b->kernel &&
	       a->kernel_stack == b->kernel_stack && a->syscall == b->syscall;
}

void sample_counts_add_samples(sample_counts *counts, struct sample_places *places, size_t index,
			       uint32_t count)
{
	const struct model_sample *sample = &places->model->samples.data[index];
	const uint32_t *callers = callers_of(places, sample);
	uint32_t phase = callers[0], len = callers[1];

	callers += 2;
	sample_counts_add(counts, &(struct sample_count){place_of(places, sample), count, 0, 0});
	if (phase != MAP_NONE)
		sample_counts_add(counts, &(struct sample_count){phase, 0, count, 0});
	for (uint32_t i = 0; i < len; i++)
		sample_counts_add(counts, &(struct sample_count){callers[i], 0, count,
								 (uint64_t)count * (len - 1 - i)});
}

void sample_counts_finish(sample_counts *counts)
{
	counts_join(counts);
	if (counts->len)
		qsort(counts->data, counts->len, sizeof(*counts->data), by_count);
}

uint64_t sample_counts_total(const struct sample_count *counts, size_t len)
{
	uint64_t total = 0;

	for (size_t i = 0; i < len; i++)
		total += counts[i].count;
	return total;
}

static bool have_one_function(const struct sample_place *a, const struct sample_place *b)
{
	return a->function && a->function == b->function && a->module == b->module;
}

static bool is_within_half(const struct sample_count *count, uint64_t total)
{
	return count->within && (uint64_t)count->within * 2 >= total;
}

static double depth_of(const struct sample_count *count)
{
	return (double)count->depth / count->within;
}

static bool is_of_first(const struct sample_places *places, const struct sample_count *counts,
			const struct sample_count *count)
{
	return have_one_function(sample_places_get(places, count->place),
				 sample_places_get(places, counts->place));
}

/* The innermost function that so many of the samples are within; of several, the one with the most.
 * NULL: none. */
static const struct sample_count *innermost(const struct sample_places *places,
					    const struct sample_count *counts, size_t len,
					    uint64_t least)
{
	const struct sample_count *found = NULL;

	for (size_t i = 0; i < len; i++) {
		const struct sample_count *count = &counts[i];

		if (!count->within || count->within < least ||
		    sample_places_get(places, count->place)->phase)
			continue;
		if (!found || depth_of(count) > depth_of(found) ||
		    (depth_of(count) >= depth_of(found) && count->within > found->within))
			found = count;
	}
	return found;
}

const struct sample_count *sample_counts_within(const struct sample_places *places,
						const struct sample_count *counts, size_t len)
{
	uint64_t total = sample_counts_total(counts, len);
	const struct sample_count *found = innermost(places, counts, len, total - total / 2);

	return found && is_of_first(places, counts, found) ? NULL : found;
}

/* Whether a place shows the function already: half of the samples within it are in its own code. */
static bool is_place(const struct sample_places *places, const struct sample_count *counts,
		     size_t len, const struct sample_count *within)
{
	const struct sample_place *function = sample_places_get(places, within->place);

	for (size_t i = 0; i < len && counts[i].count * 2ull >= within->within; i++)
		if (have_one_function(sample_places_get(places, counts[i].place), function))
			return true;
	return false;
}

static const char *source_of(const struct sample_places *places, const struct sample_count *count)
{
	return strtab_get(places->texts, sample_places_get(places, count->place)->source);
}

/* Whether the source of a function is beside or below that of another one. "": whether it is in no
 * package; NULL: whether it is in an installed package. */
static bool is_beside(const struct sample_places *places, const struct sample_count *count,
		      const char *other)
{
	const char *source = source_of(places, count);

	if (!*source || !stack_source_in_packages(source) == !other)
		return false;
	return !other || path_is_in_folder_of(source, other);
}

/* The source of the outermost function that half of the samples are within, and that is in no
 * folder for libraries. NULL: there is none, an installed package is the program. */
static const char *own_source(const struct sample_places *places, const struct sample_count *counts,
			      size_t len)
{
	uint64_t total = sample_counts_total(counts, len);
	const struct sample_count *outermost = NULL;

	for (size_t i = 0; i < len; i++)
		if (is_within_half(&counts[i], total) && is_beside(places, &counts[i], "") &&
		    (!outermost || depth_of(&counts[i]) < depth_of(outermost)))
			outermost = &counts[i];
	return outermost ? source_of(places, outermost) : NULL;
}

/* The innermost of these functions that so many of the samples are within, but fewer than `most`.
 * NULL: none. */
static const struct sample_count *innermost_of(const struct sample_places *places,
					       const struct sample_count *counts, size_t len,
					       const char *source, uint64_t least, uint64_t most)
{
	const struct sample_count *found = NULL;

	for (size_t i = 0; i < len; i++)
		if (counts[i].within && counts[i].within >= least && counts[i].within < most &&
		    is_beside(places, &counts[i], source) &&
		    (!found || depth_of(&counts[i]) > depth_of(found)))
			found = &counts[i];
	return found;
}

/* Whether a function is of CUDA's or HIP's driver or runtime, which may also be part of the
 * program's file. */
static bool is_of_gpu_library(const struct sample_places *places, const struct sample_count *count)
{
	static const char *const modules[] = {"libcuda.so", "libcudart.so", "libcudart-",
					      "libamdhip64.so"};
	static const char *const prefixes[] = {"cuda", "cu", "hip"};
	const struct sample_place *place = sample_places_get(places, count->place);
	const char *function = strtab_get(places->texts, place->function);
	const char *module = strtab_get(places->texts, place->module);

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (!strncmp(module, modules[i], strlen(modules[i])))
			return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(function, prefixes[i], strlen(prefixes[i])) &&
		    isupper((unsigned char)function[strlen(prefixes[i])]))
			return true;
	return !strncmp(function, "libcudart_static_", strlen("libcudart_static_"));
}

/* The innermost function outside of such a library that at least half of the samples are within, if
 * they are in one. NULL: they are not, or there is none. */
static const struct sample_count *gpu_library_caller(const struct sample_places *places,
						     const struct sample_count *counts, size_t len)
{
	uint64_t total = sample_counts_total(counts, len);
	const struct sample_count *within = innermost(places, counts, len, total - total / 2);
	const struct sample_count *found = NULL;

	if (!within || !is_of_gpu_library(places, within))
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (is_within_half(&counts[i], total) &&
		    !sample_places_get(places, counts[i].place)->phase &&
		    !is_of_gpu_library(places, &counts[i]) &&
		    (!found || depth_of(&counts[i]) > depth_of(found)))
			found = &counts[i];
	return found;
}

const struct sample_count *sample_counts_own(const struct sample_places *places,
					     const struct sample_count *counts, size_t len)
{
	const struct sample_count *within = sample_counts_within(places, counts, len);
	uint64_t total = sample_counts_total(counts, len);
	const char *source = own_source(places, counts, len);
	const struct sample_count *found =
		innermost_of(places, counts, len, source, total - total / 2, UINT64_MAX)
			?: gpu_library_caller(places, counts, len);

	return found && (found == within || is_of_first(places, counts, found)) ? NULL : found;
}

/* A part of the samples in percent that is worth a function of its own. */
#define PART_PERCENT 30

/* The program's own function of that part, if half of the samples are within a library that calls
 * it, as the loop of asyncio calls coroutines. NULL: none. */
static const struct sample_count *called_part(const struct sample_places *places,
					      const struct sample_count *counts, size_t len,
					      uint64_t least)
{
	const struct sample_count *within = sample_counts_within(places, counts, len);
	const struct sample_count *own = sample_counts_own(places, counts, len), *found;
	const char *source = own_source(places, counts, len);
	uint64_t total = sample_counts_total(counts, len);

	if (!within || !own || is_beside(places, within, source))
		return NULL;
	found = innermost_of(places, counts, len, source, least, total - total / 2);
	return found && depth_of(found) > depth_of(own) ? found : NULL;
}

const struct sample_count *sample_counts_part(const struct sample_places *places,
					      const struct sample_count *counts, size_t len)
{
	uint64_t total = sample_counts_total(counts, len);
	uint64_t least = (total * PART_PERCENT + 99) / 100;
	const struct sample_count *found =
		called_part(places, counts, len, least) ?: innermost(places, counts, len, least);

	if (!found || found->within < SAMPLE_COUNT_MIN || is_within_half(found, total) ||
	    is_place(places, counts, len, found) ||
	    (counts->count * 2ull >= total && sample_places_get(places, counts->place)->function))
		return NULL;
	return found;
}

const struct sample_count *sample_counts_phase(const struct sample_places *places,
					       const struct sample_count *counts, size_t len)
{
	const struct sample_count *found = NULL;

	for (size_t i = 0; i < len; i++)
		if (sample_places_get(places, counts[i].place)->phase &&
		    (!found || counts[i].within > found->within))
			found = &counts[i];
	return found;
}

unsigned sample_percent(uint64_t count, uint64_t total)
{
	unsigned step = total < 100 ? 10 : total < 1000 ? 5 : 1;

	return total ? (unsigned)((count * 100 + step * total / 2) / (step * total)) * step : 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Prints chains as an indented tree. A line is a period of a thread's time. The lines below it are
 * what the thread that ended this period did meanwhile.
 *
 *	168 ms blocked on futex 0x7f01 ← woken by loader-2 (12), which spent those 168 ms:
 *	  150 ms uninterruptible (D) in pread64 on /data/shard-7 [1]
 *	  14.0 ms runnable behind backup (99) on cpu 1 [2]
 */
#include "render/text/why_chain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render/place.h"
#include "render/text/frame.h"
#include "store/record.h"
#include "target/process/descriptors.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/syscall_names.h"
#include "util/terminal.h"

/* Limit of the depth in the text; deeper chains are cut. */
#define DEPTH_MAX 32

/* Parts of an instance with the same first `depth` steps. */
struct branch {
	const uint32_t *parts; /* their numbers, the largest part first */
	uint32_t count, depth;
};

static const struct why_part *part_of(const struct why_printer *printer,
				      const struct why_instance *instance, uint32_t number)
{
	return &printer->why->parts.data[instance->part + number];
}

static const struct why_step *step_of(const struct why_printer *printer,
				      const struct why_part *part, uint32_t depth)
{
	return depth < part->step_count ? &printer->why->steps.data[part->step + depth] : NULL;
}

static bool same_step(const struct why_step *a, const struct why_step *b)
{
	return a->thread == b->thread && a->from_ts == b->from_ts && a->to_ts == b->to_ts &&
	       a->state == b->state;
}

static void put_indent(const struct why_printer *printer, uint32_t depth)
{
	fprintf(printer->out, "%*s", 6 + 2 * (int)depth, "");
}

/* ---- a step ---- */

/* A function of Python is found by its file and line: " (train.py:24)". */
static void put_python_line(const struct why_printer *printer, const struct stack_frame *frame)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

	if (!frame->file || !frame->line || !stack_frame_is_python(frame))
		return;
	fputs(" (", printer->out);
	why_put(printer, slash ? slash + 1 : frame->file);
	fprintf(printer->out, ":%u)", frame->line);
}

/* "Queue.get (sqlalchemy/util/queue.py:199)" */
static void put_package(const struct why_printer *printer, const struct stack_frame *frame)
{
	why_put(printer, frame->function);
	fputs(" (", printer->out);
	why_put(printer, stack_source_in_packages(frame->file));
	if (frame->line)
		fprintf(printer->out, ":%u", frame->line);
	fputc(')', printer->out);
}

static const struct model_wait *wait_at(const struct why_printer *printer, uint32_t wait)
{
	return wait < printer->model->waits.len ? &printer->model->waits.data[wait] : NULL;
}

/* Prints the function of a package that called Python's own library, and the program's own function
 * of Python, behind `by` and `from`. */
static bool put_callers(const struct why_printer *printer, const struct model_wait *wait,
			const char *by, const char *from)
{
	struct stack_names *names = printer->view->names;
	struct stack_frame package, own;
	bool packaged = stack_names_package(names, wait->user_stack, wait->from_ts, &package);
	bool owned = stack_names_own(names, wait->user_stack, wait->from_ts, &own);

	if (packaged) {
		fputs(by, printer->out);
		put_package(printer, &package);
	}
	if (owned) {
		fputs(packaged ? ", from " : from, printer->out);
		why_put(printer, own.function);
		put_python_line(printer, &own);
	}
	return packaged || owned;
}

void why_put_python_function(const struct why_printer *printer, uint32_t wait, const char *before)
{
	const struct model_wait *of = wait_at(printer, wait);
	struct stack_frame inner;

	if (!of || put_callers(printer, of, before, before) ||
	    !stack_names_inner(printer->view->names, of->user_stack, of->from_ts, &inner) ||
	    !stack_frame_is_python(&inner))
		return;
	fputs(before, printer->out);
	why_put(printer, inner.function);
	put_python_line(printer, &inner);
}

bool why_put_function(const struct why_printer *printer, uint32_t wait, const char *before)
{
	const struct model_wait *of = wait_at(printer, wait);
	struct stack_frame inner;

	if (!of || !stack_names_inner(printer->view->names, of->user_stack, of->from_ts, &inner))
		return false;
	fputs(before, printer->out);
	why_put(printer, inner.function);
	put_python_line(printer, &inner);
	put_callers(printer, of, ", by ", ", from ");
	return true;
}

/* True: the thread waited in epoll_wait(), and the object is the file that became ready. */
static bool is_ready(const char *syscall, const char *object)
{
	return syscall_name_is_epoll(syscall) && !descriptor_is_epoll(object) &&
	       !descriptor_is_connecting(object);
}

static void put_place(const struct why_printer *printer, const struct why_step *step)
{
	const char *object = strtab_get(printer->why->texts, step->object);
	const char *name = NULL;

	if (step->syscall >= 0)
		name = syscall_name(printer->model->meta->machine, step->syscall);
	if (name && strncmp(object, name, strlen(name)))
		fprintf(printer->out, " in %s", name);
	else if (!name && step->syscall >= 0)
		fprintf(printer->out, " in system call %d", step->syscall);
	if (*object) {
		fputs(is_ready(name, object) ? ", ready: " : " on ", printer->out);
		why_put(printer, object);
	}
	why_put_function(printer, step->wait, ", called within ");
}

/* Prints what the kernel stack reveals about a wait: ": waits for a commit of the journal (jbd2),
 * ext4". */
static void put_meaning(const struct why_printer *printer, const struct why_step *step)
{
	if (!step->meaning)
		return;
	fputs(": ", printer->out);
	why_put(printer, strtab_get(printer->why->texts, step->meaning));
}

/* Prints ", preempted by backup (99) on cpu 0, behind hog (7) on cpu 1, moved there from cpu 0", or
 * if nobody had that CPU, ", preempted by backup (99) on cpu 0, moved to cpu 1". */
static void put_contention(const struct why_printer *printer, const struct why_step *step)
{
	bool moved = step->from_cpu != MODEL_CPU_NONE && step->cpu != MODEL_CPU_NONE;
	bool behind = step->by != MODEL_NONE && step->by != step->preemptor;

	if (step->preemptor != MODEL_NONE) {
		fputs(", preempted by ", printer->out);
		why_put_thread(printer, step->preemptor);
		if (moved)
			fprintf(printer->out, " on cpu %u", step->from_cpu);
	}
	if (moved && step->preemptor != MODEL_NONE && !behind) {
		fprintf(printer->out, ", moved to cpu %u", step->cpu);
		return;
	}
	if (behind) {
		fputs(step->preemptor != MODEL_NONE ? ", behind " : " behind ", printer->out);
		why_put_thread(printer, step->by);
	}
	if (step->cpu != MODEL_CPU_NONE)
		fprintf(printer->out, " on cpu %u", step->cpu);
	if (moved)
		fprintf(printer->out, ", moved there from cpu %u", step->from_cpu);
}

static void put_runnable(const struct why_printer *printer, const struct why_step *step,
			 enum why_cause cause)
{
	if (cause != WHY_CPU_QUOTA && step->object && step->cpu == MODEL_CPU_NONE) {
		why_put(printer, strtab_get(printer->why->texts, step->object));
		return;
	}
	if (cause != WHY_CPU_QUOTA) {
		fputs("runnable", printer->out);
		put_contention(printer, step);
		if (step->object) {
			fputs(": ", printer->out);
			why_put(printer, strtab_get(printer->why->texts, step->object));
		}
		return;
	}
	fputs("throttled", printer->out);
	if (step->object) {
		fputs(" by ", printer->out);
		why_put(printer, strtab_get(printer->why->texts, step->object));
	}
	put_meaning(printer, step);
}

void why_put_neighbour(const struct why_printer *printer, const char *glue,
		       const struct why_neighbour *neighbour)
{
	if (!neighbour->bytes)
		return;
	fprintf(printer->out, "%sdisk shared with ", glue);
	why_put(printer, model_thread_name(printer->model, neighbour->thread));
}

void why_put_frequency(const struct why_printer *printer, const struct why_step *step)
{
	if (step->cpu_khz && step->cpu_khz < step->cpu_max_khz - step->cpu_max_khz / 20)
		fprintf(printer->out, ", at %.1f of %.1f GHz", step->cpu_khz / 1e6,
			step->cpu_max_khz / 1e6);
}

static void put_running(const struct why_printer *printer, const struct why_step *step)
{
	const struct model *model = printer->model;

	fputs("running", printer->out);
	if (step->span < model->spans.len) {
		fputs(" in ", printer->out);
		why_put(printer, model_site(model, model->spans.data[step->span].site)->name);
	}
	if (step->object) {
		fputs(", ", printer->out);
		why_put(printer, strtab_get(printer->why->texts, step->object));
	}
	why_put_frequency(printer, step);
}

/* Prints "blocked in cudaStreamSynchronize: waits for the GPU: kernel gemm on stream 0x7f01,
 * launched in forward by trainer (12)". */
static void put_call(const struct why_printer *printer, const struct why_step *step)
{
	const struct model *model = printer->model;

	fputs(step->state == WAFFLE_THREAD_RUNNING ? "running"
						   : model_blocked_text(step->task_state),
	      printer->out);
	if (step->span < model->spans.len) {
		fputs(" in ", printer->out);
		why_put(printer, model_site(model, model->spans.data[step->span].site)->name);
	}
	put_meaning(printer, step);
	if (!step->call_ts || step->last_rank)
		return;
	fputs(", launched", printer->out);
	if (step->call_span < model->spans.len) {
		fputs(" in ", printer->out);
		why_put(printer, model_site(model, model->spans.data[step->call_span].site)->name);
	}
	fputs(" by ", printer->out);
	why_put_thread(printer, step->call_thread);
}

/* `cause`: of the part that ends with this step; WHY_CAUSE_COUNT: none ends. */
static void put_step(const struct why_printer *printer, const struct why_step *step,
		     enum why_cause cause)
{
	if (step->gpu) {
		put_call(printer, step);
		return;
	}
	if (step->answer) {
		fputs("nothing to run, an answer is awaited at ", printer->out);
		why_put(printer, strtab_get(printer->why->texts, step->object));
		return;
	}
	switch (step->state) {
	case WAFFLE_THREAD_RUNNING:
		put_running(printer, step);
		break;
	case WAFFLE_THREAD_RUNNABLE:
		put_runnable(printer, step, cause);
		break;
	case WAFFLE_THREAD_BLOCKED:
		fputs(model_blocked_text(step->task_state), printer->out);
		put_place(printer, step);
		put_meaning(printer, step);
		break;
	default:
		fputs(step->handed        ? "of the span"
		      : step->not_started ? "before its start"
					  : "not known",
		      printer->out);
		break;
	}
}

void why_put_first_step(const struct why_printer *printer, const struct why_part *part)
{
	if (part->step_count)
		put_step(printer, &printer->why->steps.data[part->step],
			 part->step_count == 1 ? part->cause : WHY_CAUSE_COUNT);
}

/* ---- evidence ---- */

static void put_stack_frame(const struct stack_frame *frame, void *arg)
{
	const struct why_printer *printer = arg;

	fputs(" ← ", printer->out);
	frame_put(printer->out, frame);
}

static void print_stack(const struct why_printer *printer, uint32_t depth, const char *name,
			uint32_t stack, uint64_t ts)
{
	if (!store_reader_stack(printer->model->reader, stack))
		return;
	put_indent(printer, depth);
	fprintf(printer->out, "  %s stack", name);
	stack_names_each(printer->view->names, stack, ts, put_stack_frame, (void *)printer);
	fputc('\n', printer->out);
}

/* Prints ": record 17 (switch-out), 18 (wake), 21 (switch-in)". */
static void put_records(const struct why_printer *printer, const struct why_step *step)
{
	const char *glue = ": record ";

	for (uint32_t i = 0; i < step->count; i++) {
		const struct why_record *record = &printer->why->records.data[step->record + i];

		if (!record->number)
			continue;
		fprintf(printer->out, "%s%" PRIu64 " (%s)", glue, record->number,
			why_role_names[record->role]);
		glue = ", ";
	}
	fputs(*glue == ':' ? ": no record says so\n" : "\n", printer->out);
}

static void print_evidence(const struct why_printer *printer, uint32_t depth,
			   const struct why_step *step)
{
	const struct model *model = printer->model;
	const struct model_wake *wake;

	if (!printer->view->evidence)
		return;
	why_paint(printer, TERMINAL_DIM);
	put_indent(printer, depth);
	fputs("  from ", printer->out);
	why_put_time(printer, step->from_ts);
	fputs(" to ", printer->out);
	why_put_time(printer, step->to_ts);
	put_records(printer, step);
	if (step->wait < model->waits.len) {
		const struct model_wait *wait = &model->waits.data[step->wait];

		print_stack(printer, depth, "user", wait->user_stack, wait->from_ts);
		print_stack(printer, depth, "kernel", wait->kernel_stack, wait->from_ts);
	}
	wake = step->state == WAFFLE_THREAD_BLOCKED
		       ? model_wake_at(model, step->thread, step->to_ts)
		       : NULL;
	if (wake) {
		print_stack(printer, depth, "waker's user", wake->user_stack, wake->ts);
		print_stack(printer, depth, "waker's kernel", wake->kernel_stack, wake->ts);
	}
	why_paint(printer, TERMINAL_END);
}

/* ---- the tree ---- */

static void print_branch(const struct why_printer *printer, const struct why_instance *instance,
			 struct branch branch);

/* Moves the parts with the same step as the first one to the front of `rest`. Returns their
 * number. */
static uint32_t gather(const struct why_printer *printer, const struct why_instance *instance,
		       uint32_t *rest, uint32_t count, uint32_t depth)
{
	const struct why_step *first = step_of(printer, part_of(printer, instance, rest[0]), depth);
	uint32_t same = 1;

	for (uint32_t i = 1; i < count; i++) {
		const struct why_step *step =
			step_of(printer, part_of(printer, instance, rest[i]), depth);
		uint32_t part = rest[i];

		if (!same_step(first, step))
			continue;
		memmove(&rest[same + 1], &rest[same], (i - same) * sizeof(*rest));
		rest[same++] = part;
	}
	return same;
}

/* Prints " [2], the longest of 5 stretches, 168 ms together" for the parts that end with this step.
 * Returns their number. */
static uint32_t put_ends(const struct why_printer *printer, const struct why_instance *instance,
			 struct branch branch)
{
	uint32_t ends = 0;

	for (uint32_t i = 0; i < branch.count; i++) {
		const struct why_part *part = part_of(printer, instance, branch.parts[i]);

		if (part->step_count != branch.depth)
			continue;
		fprintf(printer->out, " [%u]", branch.parts[i] + 1);
		if (part->stretches > 1) {
			fprintf(printer->out, ", the longest of %" PRIu64 " stretches, ",
				part->stretches);
			why_put_duration(printer, part->ns);
			fputs(" together", printer->out);
		}
		ends++;
	}
	return ends;
}

/* Prints ", process 40" if a thread is in another process and is not its main thread. */
static void put_other_process(const struct why_printer *printer, uint32_t from, uint32_t to)
{
	const struct model_thread *threads = printer->model->threads.data;
	size_t count = printer->model->threads.len;

	if (from < count && to < count && threads[to].pid != threads[from].pid &&
	    threads[to].pid != threads[to].tid)
		fprintf(printer->out, ", process %u", place_pid(printer->model, to));
}

/* Prints " ← woken 37 times by ticker (14), at last by ". */
static void put_series(const struct why_printer *printer, const struct why_step *step)
{
	uint32_t others = step->wakes ? step->wakes - 1 : 0;

	if (!step->woken_count || (step->woken_by == step->by && step->woken_count == others)) {
		fputs(" ← woken by ", printer->out);
		return;
	}
	fputs(" ← woken ", printer->out);
	if (step->woken_count < others)
		fprintf(printer->out, "%" PRIu32 " times, ", step->wakes);
	if (step->woken_count == 1)
		fputs("once by ", printer->out);
	else
		fprintf(printer->out, "%" PRIu32 " times by ", step->woken_count);
	if (step->woken_by == MODEL_NONE)
		fputs("interrupts", printer->out);
	else
		why_put_thread(printer, step->woken_by);
	fputs(", at last by ", printer->out);
}

/* Prints " ← woken by loader-2 (12), which spent those 168 ms:". `below`: time of the lines
 * below. */
static void put_waker(const struct why_printer *printer, const struct why_step *step, uint32_t next,
		      uint64_t below)
{
	uint64_t ns = step->to_ts - step->from_ts;

	if (step->handed)
		fputs(" ← handed over to ", printer->out);
	else if (step->not_started)
		fputs(" ← started by ", printer->out);
	else if (step->answer)
		fputs(" ← answered by ", printer->out);
	else if (step->owned || step->left)
		fputs(" ← not ended by ", printer->out);
	else if (step->locked)
		fputs(" ← locked by ", printer->out);
	else if (step->last_rank)
		fputs(step->call_ts ? " ← arrived last: " : " ← not there: ", printer->out);
	else if (step->host)
		fputs(" ← run by ", printer->out);
	else
		put_series(printer, step);
	if (step->interrupt) {
		fputs("an interrupt; waited for ", printer->out);
	} else if (step->by != next && step->by != MODEL_NONE) {
		why_put_thread(printer, step->by);
		fputs(" for ", printer->out);
	}
	why_put_thread(printer, next);
	put_other_process(printer, step->thread, next);
	fputs(below == ns ? ", which spent those " : ", which spent of those ", printer->out);
	why_put_duration(printer, ns);
	fputc(':', printer->out);
}

/* Whether an earlier part has the same step as parts[at]. */
static bool step_repeats(const struct why_printer *printer, const struct why_instance *instance,
			 const uint32_t *parts, uint32_t at, uint32_t depth)
{
	const struct why_step *step =
		step_of(printer, part_of(printer, instance, parts[at]), depth);

	for (uint32_t i = 0; i < at; i++) {
		const struct why_step *other =
			step_of(printer, part_of(printer, instance, parts[i]), depth);

		if (other && same_step(step, other))
			return true;
	}
	return false;
}

/* Sum of the distinct steps that follow. *thread is the thread of the first one. */
static uint64_t time_below(const struct why_printer *printer, const struct why_instance *instance,
			   const uint32_t *parts, uint32_t count, uint32_t depth, uint32_t *thread)
{
	uint64_t sum = 0;

	*thread = MODEL_NONE;
	for (uint32_t i = 0; i < count; i++) {
		const struct why_step *step =
			step_of(printer, part_of(printer, instance, parts[i]), depth);

		if (!step || step_repeats(printer, instance, parts, i, depth))
			continue;
		if (*thread == MODEL_NONE)
			*thread = step->thread;
		sum += step->to_ts - step->from_ts;
	}
	return sum;
}

/* ---- waits of nested spans ---- */

static uint64_t wait_key(const struct why_step *step)
{
	return hash_number(hash_number(step->from_ts ^ (uint64_t)step->thread << 32) ^ step->to_ts);
}

static bool same_chain(const struct why_printer *printer, const struct why_part *a,
		       const struct why_part *b)
{
	if (a->cause != b->cause || a->thread != b->thread || a->object != b->object ||
	    a->step_count != b->step_count)
		return false;
	for (uint32_t i = 0; i < a->step_count; i++)
		if (!same_step(step_of(printer, a, i), step_of(printer, b, i)))
			return false;
	return true;
}

/* The instance above that shows the same chains of this wait; NULL: none. */
static const struct why_instance *explained_by(const struct why_printer *printer,
					       const struct why_instance *instance,
					       const uint32_t *parts, uint32_t count)
{
	const struct why_step *step = step_of(printer, part_of(printer, instance, parts[0]), 0);
	const struct why_instance *other;
	uint32_t number, longest = 0;

	if (!printer->explained || step->state != WAFFLE_THREAD_BLOCKED)
		return NULL;
	number = map_get(&printer->explained->waits, wait_key(step));
	if (number == MAP_NONE)
		return NULL;
	other = &printer->why->instances.data[number];
	for (uint32_t i = 0; i < count; i++) {
		uint32_t k = 0;

		longest = part_of(printer, instance, parts[i])->step_count > longest
				  ? part_of(printer, instance, parts[i])->step_count
				  : longest;
		while (k < printer->explained->shown.data[number] &&
		       !same_chain(printer, part_of(printer, instance, parts[i]),
				   part_of(printer, other, k)))
			k++;
		if (k == printer->explained->shown.data[number])
			return NULL;
	}
	/* A wait without a chain is as long as the reference to it. */
	return longest > 1 ? other : NULL;
}

/* Notes which waits the instance has explained. */
static void note_explained(const struct why_printer *printer, const struct why_instance *instance,
			   uint32_t shown)
{
	uint32_t number = (uint32_t)(instance - printer->why->instances.data);

	if (!printer->explained)
		return;
	while (printer->explained->shown.len < number)
		vec_add(&printer->explained->shown, 0);
	vec_add(&printer->explained->shown, shown);
	for (uint32_t i = 0; i < shown; i++) {
		const struct why_step *step = step_of(printer, part_of(printer, instance, i), 0);

		if (step && map_get(&printer->explained->waits, wait_key(step)) == MAP_NONE)
			map_put(&printer->explained->waits, wait_key(step), number);
	}
}

/* Prints " [1] [3]: explained above, at request 8d3f00000000012a". */
static void put_explained(const struct why_printer *printer, const struct why_instance *other,
			  const uint32_t *parts, uint32_t count)
{
	const struct model *model = printer->model;

	for (uint32_t i = 0; i < count; i++)
		fprintf(printer->out, " [%u]", parts[i] + 1);
	fputs(": explained above", printer->out);
	if (other->span < model->spans.len) {
		fputs(", at ", printer->out);
		why_put(printer, model_site(model, model->spans.data[other->span].site)->name);
		fprintf(printer->out, " %016" PRIx64, model->spans.data[other->span].id);
	}
	fputc('\n', printer->out);
}

/* Prints the line of one step that parts share, and below it the following steps. */
static void print_step(const struct why_printer *printer, const struct why_instance *instance,
		       const uint32_t *parts, uint32_t count, uint32_t depth)
{
	struct branch below = {parts, count, depth + 1};
	const struct why_part *first = part_of(printer, instance, parts[0]);
	const struct why_step *step = step_of(printer, first, depth);
	const struct why_instance *other;
	uint32_t thread, ends;
	uint64_t ns;

	put_indent(printer, depth);
	why_put_duration(printer, step->to_ts - step->from_ts);
	fputc(' ', printer->out);
	put_step(printer, step, first->step_count == depth + 1 ? first->cause : WHY_CAUSE_COUNT);
	other = depth ? NULL : explained_by(printer, instance, parts, count);
	if (other) {
		put_explained(printer, other, parts, count);
		return;
	}
	ends = put_ends(printer, instance, below);
	ns = time_below(printer, instance, parts, count, depth + 1, &thread);
	if (ends < count)
		put_waker(printer, step, thread, ns);
	fputc('\n', printer->out);
	print_evidence(printer, depth, step);
	if (ends < count && depth + 1 < DEPTH_MAX)
		print_branch(printer, instance, below);
}

/* Whether a part has more lines. If the instance only ran itself, it needs no chain. */
static bool goes_on(const struct why_printer *printer, const struct why_part *part, uint32_t depth)
{
	const struct why_step *step = step_of(printer, part, depth);

	return step && (depth || part->step_count > 1 || step->state != WAFFLE_THREAD_RUNNING ||
			printer->view->evidence);
}

static void print_branch(const struct why_printer *printer, const struct why_instance *instance,
			 struct branch branch)
{
	uint32_t *rest = memory_get(((size_t)branch.count + 1) * sizeof(*rest)), count = 0;

	for (uint32_t i = 0; i < branch.count; i++)
		if (goes_on(printer, part_of(printer, instance, branch.parts[i]), branch.depth))
			rest[count++] = branch.parts[i];
	for (uint32_t at = 0, same; at < count; at += same) {
		same = gather(printer, instance, rest + at, count - at, branch.depth);
		print_step(printer, instance, rest + at, same, branch.depth);
	}
	free(rest);
}

void why_print_chains(const struct why_printer *printer, const struct why_instance *instance,
		      uint32_t shown)
{
	uint32_t *parts = memory_get(((size_t)shown + 1) * sizeof(*parts));

	for (uint32_t i = 0; i < shown; i++)
		parts[i] = i;
	print_branch(printer, instance, (struct branch){parts, shown, 0});
	note_explained(printer, instance, shown);
	free(parts);
}

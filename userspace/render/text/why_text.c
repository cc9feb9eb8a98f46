// SPDX-License-Identifier: Apache-2.0
#include "render/text/why_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_wait.h"
#include "analyze/why/parts/why_merge.h"
#include "analyze/why/why_waiters.h"
#include "render/place.h"
#include "render/text/hang_text.h"
#include "render/text/impaired_text_internal.h"
#include "render/text/killed_text_internal.h"
#include "render/text/samples_text_internal.h"
#include "render/text/values_text_internal.h"
#include "render/text/why_chain.h"
#include "render/text/why_node.h"
#include "symbolize/stack_java.h"
#include "util/signal_names.h"
#include "util/syscall_names.h"
#include "util/template_fold.h"
#include "util/terminal.h"
#include "util/text.h"
#include "util/units.h"

/* ---- an instance ---- */

/* Prints "  user=7  path=/index": the keys of a span. */
static void put_keys(const struct why_printer *printer, uint32_t span)
{
	const struct model *model = printer->model;

	if (span < model->spans.len)
		values_put(printer->out, model, model->spans.data[span].site,
			   model->spans.data[span].frame);
}

/* Whether a traced thread lived at any time of an instance. */
static bool lived(const struct model_thread *thread, const struct why_instance *instance)
{
	return thread->traced && thread->born_ts < instance->to_ts &&
	       (!thread->exit_ts || thread->exit_ts > instance->from_ts);
}

/* Prints ", a Go program with 10 threads". */
static void put_program(const struct why_printer *printer, const struct why_instance *instance)
{
	const struct model *model = printer->model;
	uint32_t pid = model->threads.data[instance->thread].pid;
	uint64_t count = 0;

	for (size_t i = 0; i < model->threads.len; i++)
		count += model->threads.data[i].pid == pid &&
			 lived(&model->threads.data[i], instance);
	fprintf(printer->out, ", a Go program with %" PRIu64 " %s", count,
		units_plural(count, "thread", "threads"));
}

/* Prints "step 00000000000000a1 of worker (11), process 10, at 3.21 s: 168 ms". */
static void print_headline(const struct why_printer *printer, const struct why_instance *instance)
{
	const struct model *model = printer->model;
	uint32_t thread = instance->thread;

	if (instance->median_of)
		fprintf(printer->out, "For comparison, the median of %" PRIu64 " %s:\n",
			instance->median_of, units_plural(instance->median_of, "span", "spans"));
	why_paint(printer, TERMINAL_BOLD);
	if (instance->span < model->spans.len) {
		const struct model_span *span = &model->spans.data[instance->span];

		why_put(printer, model_site(model, span->site)->name);
		fprintf(printer->out, " %016" PRIx64 " of ", span->id);
	}
	why_put_thread(printer, thread);
	if (instance->program)
		put_program(printer, instance);
	if (thread < model->threads.len &&
	    model->threads.data[thread].pid != model->threads.data[thread].tid)
		fprintf(printer->out, ", process %u", place_pid(model, thread));
	fputs(", at ", printer->out);
	why_put_time(printer, instance->from_ts);
	fputs(": ", printer->out);
	why_put_duration(printer, instance->to_ts - instance->from_ts);
	why_paint(printer, TERMINAL_END);
	put_keys(printer, instance->span);
	fputc('\n', printer->out);
}

static void put_part_of_time(const struct why_printer *printer, const char *before,
			     const char *name, uint64_t ns, uint64_t whole)
{
	char time[UNITS_TEXT], share[UNITS_TEXT];

	fprintf(printer->out, "%s%s %s (%s)", before, name, units_format_duration(time, ns),
		units_format_share(share, ns, whole));
}

static void print_times(const struct why_printer *printer, const struct why_instance *instance)
{
	uint64_t whole = instance->to_ts - instance->from_ts;

	put_part_of_time(printer, "  ", "running", instance->running_ns, whole);
	put_part_of_time(printer, ", ", "runnable", instance->runnable_ns, whole);
	put_part_of_time(printer, ", ", "blocked", instance->blocked_ns, whole);
	if (instance->unknown_ns)
		put_part_of_time(printer, ", ", "unknown", instance->unknown_ns, whole);
	fputc('\n', printer->out);
}

/* Warn if the tracer itself took more than a twentieth of a span. */
#define OWN_PARTS 20

/* A lap whose thread has ended is over; other spans may have ended without a record. */
static void print_unfinished(const struct why_printer *printer, const struct why_instance *instance)
{
	const struct model *model = printer->model;
	const struct model_thread *thread = &model->threads.data[instance->thread];
	bool ended = thread->exit_ts && thread->exit_ts <= instance->to_ts;
	bool laps = instance->span < model->spans.len &&
		    model_site(model, model->spans.data[instance->span].site)->laps;

	if (!laps)
		fputs("  its end was not seen\n", printer->out);
	else if (ended && thread->tid == thread->pid)
		fputs("  it never completed: the program ended in it\n", printer->out);
	else if (ended)
		fputs("  it never completed: its thread ended in it\n", printer->out);
	else
		fputs("  it had not completed when the capture ended\n", printer->out);
}

/* Prints "  memory.max 64.0 MiB of /sys/fs/cgroup/app used up, the most by hog (4711)". */
static void print_note(const struct why_printer *printer, uint32_t text)
{
	if (!text)
		return;
	fputs("  ", printer->out);
	why_put(printer, strtab_get(printer->why->texts, text));
	fputc('\n', printer->out);
}

static void print_doubts(const struct why_printer *printer, const struct why_instance *instance)
{
	why_paint(printer, TERMINAL_WARN);
	if (instance->loss)
		fputs("  records were lost during it: its causes are likely at best\n",
		      printer->out);
	if (instance->own_ns > (instance->to_ts - instance->from_ts) / OWN_PARTS) {
		fputs("  waffle-bpf itself took ", printer->out);
		why_put_duration(printer, instance->own_ns);
		fputs(" of it: without the capture it would have been shorter\n", printer->out);
	}
	if (instance->begun_before)
		fputs("  it began before the capture: only its end was seen\n", printer->out);
	if (instance->ended_by != MODEL_NONE) {
		fputs("  ended by ", printer->out);
		why_put_thread(printer, instance->ended_by);
		fputs(": its causes are likely at best\n", printer->out);
	}
	if (instance->unfinished)
		print_unfinished(printer, instance);
	if (instance->left)
		fputs("  it did not return, as after longjmp(): it ended at the shown time or "
		      "before\n",
		      printer->out);
	why_paint(printer, TERMINAL_END);
}

/* Prints ", its children" behind several processes. */
static void put_relation(const struct why_printer *printer, const struct why_part *part)
{
	static const char *const texts[] = {
		[WHY_RELATION_CHILDREN] = "its children",
		[WHY_RELATION_SIBLINGS] = "children of the same process",
	};

	if (part->relation)
		fprintf(printer->out, ", %s%s", part->relation_mostly ? "mostly " : "",
			texts[part->relation]);
}

static void put_culprits(const struct why_printer *printer, const struct why_part *part)
{
	char text[PLACE_THREADS_TEXT];

	if (part->threads < 2)
		why_put_thread(printer, part->thread);
	else
		why_put(printer, place_threads(text, printer->model, part->thread,
					       why_part_name(printer->why, part), part->threads,
					       part->processes));
}

/* Longer names of templates in a culprit's object are folded. */
#define OBJECT_COLUMNS 130

/* Prints ", may poll in take (pool.c:7): 610 sleeps of 4.93 ms, it runs for 15.0 us between
 * them, seen in flock()". */
static void put_polls(const struct why_printer *printer, const struct why_polls *polls)
{
	const char *call;

	if (!polls->sleeps)
		return;
	fputs(", may poll", printer->out);
	why_put_function(printer, polls->wait, " in ");
	fprintf(printer->out, ": %" PRIu64 " sleeps of ", polls->sleeps);
	why_put_duration(printer, polls->slept_ns / polls->sleeps);
	fputs(", it runs for ", printer->out);
	why_put_duration(printer, polls->checks ? polls->ran_ns / polls->checks : 0);
	fputs(" between them", printer->out);
	call = polls->votes ? syscall_name(printer->model->meta->machine, polls->call) : NULL;
	if (call)
		fprintf(printer->out, ", seen in %s()", call);
}

/* Whether the culprit had the lock when the one before it was refused it. Nothing shows how long it
 * kept it. */
static bool is_refused(const struct why_printer *printer, const struct why_part *part)
{
	return part->step_count > 1 &&
	       printer->why->steps.data[part->step + part->step_count - 2].locked;
}

/* Prints ", holds cache_lock". A lock without a name is told by the function that waits for it.
 * Those that are neither a futex nor the GIL are said as they are. */
static void put_lock(const struct why_printer *printer, const struct why_part *part)
{
	const char *lock = strtab_get(printer->why->texts, part->lock);
	const char *name = strchr(lock, '(');
	const char *end = strrchr(lock, ')');

	if (!part->lock)
		return;
	if (text_begins(lock, WAIT_GIL_BEGIN)) {
		fputs(", holds the GIL", printer->out);
	} else if (!text_begins(lock, WAIT_FUTEX_BEGIN)) {
		fputs(is_refused(printer, part) ? ", had locked "
		      : *lock == '/'            ? ", holds the lock of "
						: ", holds ",
		      printer->out);
		why_put(printer, lock);
	} else if (name && end > name) {
		fputs(", holds ", printer->out);
		terminal_put(printer->out, name + 1, (size_t)(end - name - 1));
	} else if (why_put_function(
			   printer,
			   printer->why->steps.data[part->step + part->step_count - 2].wait,
			   ", holds the lock that ")) {
		fputs(" waits for", printer->out);
	}
}

/* A runtime that has nothing to run is a cause of its own, which says so. */
static bool is_idle_loop(enum why_cause cause, bool idle)
{
	return idle && cause != WHY_IDLE;
}

/* Behind idle time of an event loop. */
#define IDLE_TEXT ": idle, no event came"

/* "8 " of "8 connections to 10.0.0.2:80 (tcp)". */
static void put_count(const struct why_printer *printer, uint32_t count)
{
	if (count)
		fprintf(printer->out, "%" PRIu32 " ", count);
}

/* The time in which its own pool had the CPU is said if it is at least this part of a cause. */
#define POOL_WAIT_PARTS 20

/* Prints ", of which 860 ms while other threads of its pool had the CPU". */
static void put_pool_wait(const struct why_printer *printer, uint64_t pool_wait_ns, uint64_t ns)
{
	if (!pool_wait_ns || pool_wait_ns < ns / POOL_WAIT_PARTS)
		return;
	fputs(", of which ", printer->out);
	why_put_duration(printer, pool_wait_ns);
	fputs(" while other threads of its pool had the CPU", printer->out);
}

static void put_culprit(const struct why_printer *printer, const struct why_part *part)
{
	const struct model *model = printer->model;
	const char *glue = "";

	if (part->thread < model->threads.len) {
		put_culprits(printer, part);
		put_relation(printer, part);
		glue = ", ";
		if (part->span < model->spans.len) {
			fputs(" in ", printer->out);
			why_put(printer,
				model_site(model, model->spans.data[part->span].site)->name);
		}
	}
	if (part->object) {
		char *object = template_fold(strtab_get(printer->why->texts, part->object),
					     OBJECT_COLUMNS);

		fputs(glue, printer->out);
		put_count(printer, part->connections);
		why_put(printer, object);
		free(object);
	}
	if (part->thread >= model->threads.len && !part->object)
		fputs(why_causes[part->cause].text, printer->out);
	if (is_idle_loop(part->cause, part->idle))
		fputs(IDLE_TEXT, printer->out);
	put_lock(printer, part);
	put_pool_wait(printer, part->pool_wait_ns, part->ns);
	why_put_neighbour(printer, ", ", &part->neighbour);
	put_polls(printer, &part->polls);
}

/* Causes of a smaller part of the time than this are not shown there. */
#define BY_CAUSE_PARTS 100

/* A cause is split if its largest culprit leaves more than this part of the time to others. */
#define SPLIT_PARTS 10

/* Whether the numbered causes do not show what most of the time was lost to, or split a cause. */
static bool hides_cause(const struct why_printer *printer, const struct why_instance *instance,
			const struct why_by_cause *sums, uint32_t count)
{
	const struct why_part *parts = &printer->why->parts.data[instance->part];
	uint64_t whole = instance->to_ts - instance->from_ts;

	for (uint32_t i = 0; i < count; i++)
		if (!sums[i].capture &&
		    sums[i].ns - parts[sums[i].largest].ns > whole / SPLIT_PARTS)
			return true;
	return sums[0].cause != parts[0].cause || sums[0].ns - parts[0].ns > whole / BY_CAUSE_PARTS;
}

static bool is_of_cause(const struct why_part *part, const struct why_by_cause *sum)
{
	return part->cause == sum->cause && part->idle == sum->idle;
}

/* Whether one thread is to blame for all of a cause, but for different objects or spans. */
static bool has_one_culprit(const struct why_printer *printer, const struct why_instance *instance,
			    const struct why_by_cause *sum)
{
	const struct why_part *parts = &printer->why->parts.data[instance->part];
	uint32_t thread = parts[sum->largest].thread;

	for (uint32_t i = 0; i < instance->part_count; i++)
		if (is_of_cause(&parts[i], sum) &&
		    (parts[i].thread != thread || parts[i].threads > 1))
			return false;
	return thread < printer->model->threads.len;
}

/* The length of the path that a part's object begins with; of several files, that of the folder. */
static size_t path_length(const char *object, const struct why_part *part)
{
	const char *end =
		wait_file_system(object) ?: strstr(object, " (") ?: object + strlen(object);

	while (part->objects > 1 && end > object && *end != '/')
		end--;
	return (size_t)(end - object);
}

/* The length of the folder that two paths have in common, or of the path if they are the same. */
static size_t common_length(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i = 0, folder = 0;

	for (; i < a_len && i < b_len && a[i] == b[i]; i++)
		folder = a[i] == '/' ? i : folder;
	return (i == a_len || a[i] == '/') && (i == b_len || b[i] == '/') ? i : folder;
}

/* Files of which no path is known may have this part of the time. */
#define FOLDER_PARTS 10

/* Prints ", files in /data/shards", the folder of the files of a cause. */
static void put_folder(const struct why_printer *printer, const struct why_instance *instance,
		       const struct why_by_cause *sum)
{
	const struct why_part *parts = &printer->why->parts.data[instance->part];
	const char *first = NULL;
	uint64_t ns = 0;
	size_t len = 0;
	bool several = false;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const char *object = strtab_get(printer->why->texts, parts[i].object);
		size_t path = path_length(object, &parts[i]), common;

		if (!is_of_cause(&parts[i], sum) || *object != '/')
			continue;
		ns += parts[i].ns;
		common = first ? common_length(first, len, object, path) : path;
		several |= parts[i].objects > 1 || (first && (common < len || common < path));
		first = first ? first : object;
		len = common;
	}
	if (!len || ns < sum->ns - sum->ns / FOLDER_PARTS)
		return;
	fputs(several ? ", files in " : ", ", printer->out);
	terminal_put(printer->out, first, len);
}

/* The time of a cause in which other threads of the process had the CPU; 0: it is another cause. */
static uint64_t own_contention_ns(const struct why_printer *printer,
				  const struct why_instance *instance,
				  const struct why_by_cause *sum)
{
	const struct model *model = printer->model;
	const struct model_process *own = model_process_of(model, instance->thread);
	uint64_t ns = 0;

	for (uint32_t i = 0; sum->cause == WHY_CPU_CONTENTION && i < instance->part_count; i++) {
		const struct why_part *part = &printer->why->parts.data[instance->part + i];

		if (is_of_cause(part, sum) && own && part->processes == 1 &&
		    model_process_of(model, part->thread) == own)
			ns += part->ns;
	}
	return ns;
}

/* Prints " (40 culprits, cc1 (4711) 15.1 %)", " (8 culprits, calc (4711) 9.0 %; its own process
 * 60.0 %)" or " (db (4711), files in /data/shards)". */
static void put_of_cause(const struct why_printer *printer, const struct why_instance *instance,
			 const struct why_by_cause *sum)
{
	const struct why_part *part = &printer->why->parts.data[instance->part + sum->largest];
	uint64_t whole = instance->to_ts - instance->from_ts, own_ns;
	char share[UNITS_TEXT];

	if (has_one_culprit(printer, instance, sum)) {
		fputs(" (", printer->out);
		put_culprits(printer, part);
		put_folder(printer, instance, sum);
		fputc(')', printer->out);
		return;
	}
	fprintf(printer->out, " (%" PRIu32 " culprits, ", sum->culprits);
	if (part->thread < printer->model->threads.len)
		put_culprits(printer, part);
	else
		put_culprit(printer, part);
	fprintf(printer->out, " %s", units_format_share(share, part->ns, whole));
	own_ns = own_contention_ns(printer, instance, sum);
	if (own_ns > sum->ns / 2)
		fprintf(printer->out, "; its own process %s",
			units_format_share(share, own_ns, whole));
	fputc(')', printer->out);
}

/* Prints "  by cause: 64.0 % cpu-contention (40 culprits, cc1 (4711) 15.1 %), 27.0 % running",
 * unless the largest culprit says as much. */
static void print_by_cause(const struct why_printer *printer, const struct why_instance *instance)
{
	struct why_by_cause sums[WHY_BY_CAUSE_MAX];
	uint32_t count = why_by_cause(printer->why, instance, sums);
	uint64_t whole = instance->to_ts - instance->from_ts;
	char share[UNITS_TEXT];

	if (!count || !hides_cause(printer, instance, sums, count))
		return;
	fputs("  by cause:", printer->out);
	for (uint32_t i = 0; i < count && (!i || sums[i].ns > whole / BY_CAUSE_PARTS); i++) {
		fprintf(printer->out, "%s %s ", i ? "," : "",
			units_format_share(share, sums[i].ns, whole));
		why_paint(printer, i ? "" : TERMINAL_BOLD);
		fputs(why_causes[sums[i].cause].name, printer->out);
		if (is_idle_loop(sums[i].cause, sums[i].idle))
			fputs(" (idle)", printer->out);
		if (why_has_run(sums[i].cause, sums[i].ran_ns, sums[i].ns))
			fputs(" (running)", printer->out);
		why_paint(printer, TERMINAL_END);
		if (sums[i].culprits > 1)
			put_of_cause(printer, instance, &sums[i]);
	}
	fputc('\n', printer->out);
}

/* ---- by process ---- */

/* Prints "  by process: 84.2 % php (4711), 12.0 % nginx (4700)". */
static void print_by_process(const struct why_printer *printer, const struct why_instance *instance)
{
	const struct model *model = printer->model;
	struct why_by_process sums[WHY_BY_PROCESS_MAX];
	uint32_t count = why_by_process(printer->why, instance, sums);
	char share[UNITS_TEXT];

	if (!count)
		return;
	for (uint32_t i = 0; i < count; i++) {
		fprintf(printer->out, "%s %s ", i ? "," : "  by process:",
			units_format_share(share, sums[i].ns, instance->to_ts - instance->from_ts));
		why_put_thread(printer, model->processes.data[sums[i].process].main_thread);
	}
	fputc('\n', printer->out);
}

/* Fewer short processes than this, or a smaller part of the time, are not shown there. */
#define SHORT_COUNT 10
#define SHORT_PARTS 10

/* Prints "  short processes: 42.1 %, most for those named cut; 3,021 began meanwhile, and lived for
 * 4.10 ms on average". */
static void print_short_processes(const struct why_printer *printer,
				  const struct why_instance *instance)
{
	struct why_short_processes sum = why_short_processes(printer->why, instance);
	uint64_t whole = instance->to_ts - instance->from_ts;
	char share[UNITS_TEXT], count[UNITS_TEXT], time[UNITS_TEXT];

	if (sum.count < SHORT_COUNT || sum.ns <= whole / SHORT_PARTS)
		return;
	fprintf(printer->out, "  short processes: %s, most for those named ",
		units_format_share(share, sum.ns, whole));
	why_put(printer, model_thread_name(printer->model, sum.thread));
	fprintf(printer->out, "; %s began meanwhile, and lived for %s on average\n",
		units_format_count(count, sum.count),
		units_format_duration(time, sum.lived_ns / sum.count));
}

/* ---- locks ---- */

/* A lock that takes a smaller part of the time than this is not shown there. */
#define LOCK_PARTS 10

/* Whether the first cause shows at least half of the time that a lock takes, or is a lock, too. */
static bool shows_lock(const struct why_part *first, const struct why_lock_time *lock)
{
	return (why_is_lock(first->cause) || first->lock == lock->lock) &&
	       first->ns >= lock->ns / 2;
}

/* Prints ", held up by postgres (4712), idle in transaction: it waits for its client psql (4713)".
 */
static void put_holder(const struct why_printer *printer, const struct why_lock_time *lock)
{
	uint32_t thread_count = (uint32_t)printer->model->threads.len;

	if (lock->holder >= thread_count)
		return;
	fputs(", held up by ", printer->out);
	why_put_thread(printer, lock->holder);
	if (lock->awaited >= thread_count)
		return;
	fputs(lock->idle ? ", idle in transaction: it waits for its client " : ", which waits for ",
	      printer->out);
	why_put_thread(printer, lock->awaited);
}

/* A futex without a name is told by the function that waits for it: "futex 0x7f01, awaited by
 * Pool::ask". */
static void put_named_lock(const struct why_printer *printer, const struct why_lock_time *lock)
{
	const char *text = strtab_get(printer->why->texts, lock->lock);

	why_put(printer, text);
	if (lock->wait != MODEL_NONE && wait_is_unnamed_futex(text))
		why_put_function(printer, lock->wait, ", awaited by ");
}

/* Prints "  in waits for locks: 61.0 % a lock in PostgreSQL", unless the first cause says so. */
static void print_locks(const struct why_printer *printer, const struct why_instance *instance)
{
	const struct why *why = printer->why;
	uint64_t whole = instance->to_ts - instance->from_ts;
	const struct why_lock_time *locks;
	char share[UNITS_TEXT];
	uint32_t count = 0;

	if (!instance->lock_count || !instance->part_count)
		return;
	locks = &why->locks.data[instance->lock];
	if (locks->ns < whole / LOCK_PARTS || shows_lock(&why->parts.data[instance->part], locks))
		return;
	fputs("  in waits for locks:", printer->out);
	while (count < instance->lock_count && locks[count].ns >= whole / LOCK_PARTS)
		count++;
	for (uint32_t i = 0; i < count; i++) {
		fprintf(printer->out, "%s %s ", i ? "," : "",
			units_format_share(share, locks[i].ns, whole));
		put_named_lock(printer, &locks[i]);
		if (i + 1 == count || locks[i + 1].holder != locks[i].holder)
			put_holder(printer, &locks[i]);
	}
	fputc('\n', printer->out);
}

/* The begin of a cause's row, up to its culprit; `of_ns`: the time of which it is a share. */
static void put_row_begin(const struct why_printer *printer, size_t number, enum why_cause cause,
			  enum why_grade grade, uint64_t ns, uint64_t of_ns)
{
	char share[UNITS_TEXT], time[UNITS_TEXT];

	fprintf(printer->out, "  %2zu.", number + 1);
	terminal_put_cell(printer->out, 8, units_format_share(share, ns, of_ns));
	terminal_put_cell(printer->out, 10, units_format_duration(time, ns));
	fputs("  ", printer->out);
	why_paint(printer, number ? "" : TERMINAL_BOLD);
	why_paint(printer, why_causes[cause].colour);
	fprintf(printer->out, "%-16s", why_causes[cause].name);
	why_paint(printer, TERMINAL_END);
	fprintf(printer->out, "  %-7s  ", why_grade_names[grade]);
}

/* The row of those causes that have no row of their own. */
static void put_rest(const struct why_printer *printer, size_t count, uint64_t ns, uint64_t of_ns)
{
	char share[UNITS_TEXT], time[UNITS_TEXT];

	if (!count)
		return;
	why_paint(printer, TERMINAL_DIM);
	fputs("   … ", printer->out);
	terminal_put_cell(printer->out, 8, units_format_share(share, ns, of_ns));
	terminal_put_cell(printer->out, 10, units_format_duration(time, ns));
	fprintf(printer->out, "  %zu more\n", count);
	why_paint(printer, TERMINAL_END);
}

#define SAMPLES_INDENT 26 /* below the name of the cause */

/* Whether the cause's object is a futex without a name, or several. */
static bool has_unnamed_futex(const struct why_printer *printer, const struct why_part *part)
{
	const char *text = strtab_get(printer->why->texts, part->object);
	size_t len = strlen(text), of_some = strlen(WAIT_FUTEXES_END);

	if (part->objects > 1)
		return len > of_some && !strcmp(text + len - of_some, WAIT_FUTEXES_END);
	return wait_is_unnamed_futex(text);
}

/* Whether the culprit itself waits, for no other thread that is known. */
static bool waits_itself(enum why_cause cause)
{
	return cause == WHY_SLEEP || cause == WHY_TIMER || cause == WHY_DISK_READ ||
	       cause == WHY_DISK_WRITE || cause == WHY_UNKNOWN;
}

/* Prints ", at the end in com.zaxxer.hikari.util.ConcurrentBag.borrow, by
 * com.zaxxer.hikari.HikariDataSource.getConnection, from com.acme.Orders.load". */
static void put_at_end(const struct why_printer *printer, uint32_t at_end)
{
	const struct model *model = printer->model;
	const struct model_open_wait *wait;
	struct stack_java java;

	if (at_end >= model->open_waits.len)
		return;
	wait = &model->open_waits.data[at_end];
	if (!stack_java_find(printer->view->names, wait->user_stack, wait->ts, &java))
		return;
	fputs(", at the end in ", printer->out);
	why_put(printer, java.inner);
	if (java.entry) {
		fputs(", by ", printer->out);
		why_put(printer, java.entry);
	}
	if (java.caller) {
		fputs(", from ", printer->out);
		why_put(printer, java.caller);
	}
}

/* Locks of Python have no names. The functions that wait for one tell it from others: ", awaited by
 * Queue.get (sqlalchemy/util/queue.py:199), from page (shop.py:14)". The same for a wait of the
 * culprit: ", called within save (train.py:17)". Of Java, only a wait at the end has them. */
static void put_waiting_function(const struct why_printer *printer, const struct why_part *part)
{
	bool unnamed = has_unnamed_futex(printer, part);

	if (!unnamed && (!waits_itself(part->cause) || part->idle || part->polls.sleeps))
		return;
	why_put_python_function(printer, part->wait,
				unnamed ? ", awaited by " : ", called within ");
	put_at_end(printer, part->at_end);
}

/* Prints ", while backup (4711) has nice 19". */
static void put_nice(const struct why_printer *printer, const struct why_part *part)
{
	const struct model_process *process = why_part_nice(printer->why, part);

	if (!process)
		return;
	fputs(", while ", printer->out);
	why_put_thread(printer, process->main_thread);
	fprintf(printer->out, " has nice %d", process->nice);
}

/* A smaller part of a cause than this is not mentioned. */
#define OPEN_PARTS 20

static void put_open(const struct why_printer *printer, const struct why_part *part)
{
	char time[UNITS_TEXT];

	if (part->open_ns && part->open_ns >= part->ns / OPEN_PARTS)
		fprintf(printer->out, ", of which %s go on when the capture ends",
			units_format_duration(time, part->open_ns));
}

static void print_signals(const struct why_printer *printer, const struct why_signals *signals)
{
	const char *name = signal_name(signals->signo);
	char count[UNITS_TEXT];

	if (!signals->count)
		return;
	fprintf(printer->out, "%*ssignals: %s of ", SAMPLES_INDENT, "",
		units_format_count(count, signals->count));
	if (name)
		fputs(name, printer->out);
	else
		fprintf(printer->out, "signal %" PRIu32, signals->signo);
	fputs(signals->timer ? ", from a timer\n" : "\n", printer->out);
}

static void print_cause(const struct why_printer *printer, const struct why_instance *instance,
			uint32_t number)
{
	const struct why_part *part = &printer->why->parts.data[instance->part + number];

	put_row_begin(printer, number, part->cause, part->grade, part->ns,
		      instance->to_ts - instance->from_ts);
	put_culprit(printer, part);
	put_waiting_function(printer, part);
	put_nice(printer, part);
	if (part->span != instance->span)
		put_keys(printer, part->span);
	if (part->step_count == 1) /* its chain is not printed */
		why_put_frequency(printer, &printer->why->steps.data[part->step]);
	put_open(printer, part);
	fputc('\n', printer->out);
	samples_print(printer->out, printer->why->sample_places,
		      why_part_places(printer->why, part), part->place_count, SAMPLES_INDENT);
	print_signals(printer, &part->signals);
}

static void print_rest(const struct why_printer *printer, const struct why_instance *instance,
		       uint32_t shown)
{
	uint64_t ns = 0;

	for (uint32_t i = shown; i < instance->part_count; i++)
		ns += printer->why->parts.data[instance->part + i].ns;
	put_rest(printer, instance->part_count - shown, ns, instance->to_ts - instance->from_ts);
}

/* ---- links ---- */

static void print_links(const struct why_printer *printer, uint32_t span)
{
	const struct model *model = printer->model;

	if (span >= model->spans.len)
		return;
	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];

		if (link->from_kind != MODEL_NODE_SPAN || link->from != span)
			continue;
		fputs("  linked to its cause: ", printer->out);
		why_put_node(printer, link->to_kind, link->to, link->to_id);
		fputc('\n', printer->out);
	}
}

/* Causes of less than this part of the time are only summed up. On a busy machine there are
 * hundreds of them, a neighbour each. */
#define SMALL_PARTS 100

static bool is_small(const struct why_printer *printer, uint64_t ns, uint64_t whole)
{
	return printer->view->causes && !printer->view->evidence && ns < whole / SMALL_PARTS;
}

static uint32_t parts_shown(const struct why_printer *printer, const struct why_instance *instance)
{
	const struct why_part *parts = printer->why->parts.data;
	uint64_t whole = instance->to_ts - instance->from_ts;
	uint32_t shown = instance->part_count;

	if (printer->view->causes && printer->view->causes < shown)
		shown = printer->view->causes;
	while (shown > 1 && is_small(printer, parts[instance->part + shown - 1].ns, whole))
		shown--;
	return shown;
}

/* Says what comes later than by its share (why_idle.h). */
static void print_order(const struct why_printer *printer, const struct why_instance *instance,
			uint32_t shown)
{
	const struct why_part *parts = printer->why->parts.data;
	bool capture = false, idle = false;

	for (uint32_t i = instance->part + 1; i < instance->part + shown; i++) {
		if (parts[i].ns <= parts[i - 1].ns)
			continue;
		capture |= parts[i].capture;
		idle |= !parts[i].capture;
	}
	if (idle)
		fputs("  idle time, cpu-contention and unknown are listed after other causes, "
		      "whatever their share\n",
		      printer->out);
	if (capture)
		fputs("  what the capture itself took is listed last, whatever its share\n",
		      printer->out);
}

static void print_instance(const struct why_printer *printer, const struct why_instance *instance)
{
	uint32_t shown = parts_shown(printer, instance);

	print_headline(printer, instance);
	print_times(printer, instance);
	print_note(printer, instance->memory);
	print_note(printer, instance->cpus);
	print_note(printer, instance->full_pool);
	print_note(printer, instance->manager);
	print_doubts(printer, instance);
	print_locks(printer, instance);
	print_short_processes(printer, instance);
	print_by_cause(printer, instance);
	print_by_process(printer, instance);
	print_order(printer, instance, shown);
	for (uint32_t i = 0; i < shown; i++)
		print_cause(printer, instance, i);
	print_rest(printer, instance, shown);
	if (!printer->view->brief)
		why_print_chains(printer, instance, shown);
	print_links(printer, instance->span);
}

/* ---- threads ---- */

static void put_merged_culprit(const struct why_printer *printer,
			       const struct why_merged_part *part)
{
	const struct model *model = printer->model;
	const char *glue = ", ";

	if (part->own)
		fputs("the thread itself", printer->out);
	else if (part->threads > 1) {
		fprintf(printer->out, "%" PRIu32 " threads named ", part->threads);
		why_put(printer, model_thread_kind_name(model, part->thread));
	} else if (part->thread < model->threads.len)
		why_put_thread(printer, part->thread);
	else
		glue = "";
	if (part->object) {
		fputs(glue, printer->out);
		put_count(printer, part->connections);
		why_put(printer, strtab_get(printer->why->texts, part->object));
	} else if (!*glue) {
		fputs(why_causes[part->cause].text, printer->out);
	}
	if (is_idle_loop(part->cause, part->idle))
		fputs(IDLE_TEXT, printer->out);
	put_pool_wait(printer, part->pool_wait_ns, part->ns);
	why_put_neighbour(printer, ", ", &part->neighbour);
	put_polls(printer, &part->polls);
}

static void print_merged_part(const struct why_printer *printer, const struct why_merged *merged,
			      size_t number)
{
	const struct why_merged_part *part = &merged->parts.data[number];

	put_row_begin(printer, number, part->cause, part->grade, part->ns, merged->ns);
	put_merged_culprit(printer, part);
	fputc('\n', printer->out);
	samples_print(printer->out, printer->why->sample_places,
		      part->place_count ? &merged->places.data[part->place] : NULL,
		      part->place_count, SAMPLES_INDENT);
}

static void print_merged_rest(const struct why_printer *printer, const struct why_merged *merged,
			      size_t shown)
{
	uint64_t ns = 0;

	for (size_t i = shown; i < merged->parts.len; i++)
		ns += merged->parts.data[i].ns;
	put_rest(printer, merged->parts.len - shown, ns, merged->ns);
}

/* Threads that were chosen by a name have it in common, or their kind. */
static const char *chosen_name(const struct why *why)
{
	uint32_t first = why->instances.data[0].thread;
	const struct model_thread *threads = why->model->threads.data;

	for (size_t i = 1; i < why->instances.len; i++)
		if (threads[why->instances.data[i].thread].comm != threads[first].comm)
			return model_thread_kind_name(why->model, first);
	return model_thread_name(why->model, first);
}

/* Prints "8 threads named worker, 40 s of time", and the causes of all of them together. */
static void print_merged(const struct why_printer *printer)
{
	const struct why *why = printer->why;
	struct why_instance all = {.to_ts = 0};
	size_t shown, limit = printer->view->causes;
	struct why_merged merged;

	why_merge(&merged, why);
	shown = limit && limit < merged.parts.len ? limit : merged.parts.len;
	while (shown > 1 && is_small(printer, merged.parts.data[shown - 1].ns, merged.ns))
		shown--;
	why_paint(printer, TERMINAL_BOLD);
	fprintf(printer->out, "%zu threads named ", why->instances.len);
	why_put(printer, chosen_name(why));
	fputs(", together ", printer->out);
	why_put_duration(printer, merged.ns);
	why_paint(printer, TERMINAL_END);
	fputc('\n', printer->out);
	all.to_ts = merged.ns;
	all.running_ns = merged.running_ns;
	all.runnable_ns = merged.runnable_ns;
	all.blocked_ns = merged.blocked_ns;
	all.unknown_ns = merged.unknown_ns;
	print_times(printer, &all);
	for (size_t i = 0; i < shown; i++)
		print_merged_part(printer, &merged, i);
	print_merged_rest(printer, &merged, shown);
	why_merged_free(&merged);
}

static void print_waits(const struct why *waits, const struct why_view *view, FILE *out)
{
	const struct why_printer printer = {
		.why = waits, .model = waits->model, .view = view, .out = out};
	char time[UNITS_TEXT];

	if (!waits->instances.len)
		return;
	fputs("\nThe longest waits:\n", out);
	for (size_t i = 0; i < waits->instances.len; i++) {
		const struct why_instance *wait = &waits->instances.data[i];
		const struct why_part *part = &waits->parts.data[wait->part];

		terminal_put_cell(out, 12,
				  units_format_duration(time, wait->to_ts - wait->from_ts));
		fputs("  at ", out);
		why_put_time(&printer, wait->from_ts);
		fputs("  ", out);
		why_put_thread(&printer, wait->thread);
		fputs("  ", out);
		if (wait->part_count) {
			fprintf(out, "%s  %s  ", why_causes[part->cause].name,
				why_grade_names[part->grade]);
			put_culprit(&printer, part);
		}
		fputc('\n', out);
	}
}

/* "Threads that wait for it:" below a thread; below calls it is named. */
static void put_waiters_title(const struct why_printer *printer, uint32_t explained, bool named)
{
	fputs("\nThreads that wait for ", printer->out);
	if (named)
		why_put_thread(printer, explained);
	else
		fputs("it", printer->out);
	fputs(":\n", printer->out);
}

/* Prints " and 4 more", or " and at least 4 more". */
static void put_more_waiters(FILE *out, const struct why_waiters *waiters, uint32_t more)
{
	if (more)
		fprintf(out, " and %s%" PRIu32 " more", waiters->cut ? "at least " : "", more);
}

/* Whether a thread that the waiter waits for waits for the lock, but not the waiter itself. */
static bool is_behind_lock(const struct why *why, const struct why_part *part, uint32_t lock)
{
	const struct why_step *steps = &why->steps.data[part->step];

	if (part->step_count < 2 || steps[0].lock == lock)
		return false;
	for (uint32_t i = 1; i < part->step_count; i++)
		if (steps[i].lock == lock)
			return true;
	return part->object == lock;
}

/* Prints "; 61.0 % in waits for the lock of a row in PostgreSQL" of a client of that server. */
static void put_waiters_lock(const struct why_printer *printer, const struct why_instance *instance,
			     const struct why_part *part)
{
	const struct why *why = printer->why;
	uint64_t whole = instance->to_ts - instance->from_ts;
	const struct why_lock_time *lock;
	char share[UNITS_TEXT];

	if (!instance->lock_count)
		return;
	lock = &why->locks.data[instance->lock];
	if (lock->ns < whole / LOCK_PARTS || !is_behind_lock(why, part, lock->lock) ||
	    wait_is_unnamed_futex(strtab_get(why->texts, lock->lock)))
		return;
	fprintf(printer->out, "; %s in waits for ", units_format_share(share, lock->ns, whole));
	why_put(printer, strtab_get(why->texts, lock->lock));
}

/* Whether the instances are threads, not spans. */
static bool is_of_threads(const struct why *why)
{
	return why->instances.len && why->instances.data[0].span == MODEL_NONE;
}

static void print_waiter(const struct why_printer *printer, const struct why_waiters *waiters,
			 const struct why_waiter *waiter)
{
	const struct why *why = waiters->why;
	const struct why_instance *instance = &why->instances.data[waiter->instance];
	const struct why_part *part = &why->parts.data[instance->part + waiter->part];
	char share[UNITS_TEXT], time[UNITS_TEXT];

	terminal_put_cell(
		printer->out, 8,
		units_format_share(share, waiter->ns, instance->to_ts - instance->from_ts));
	terminal_put_cell(printer->out, 10, units_format_duration(time, waiter->ns));
	fputs("  ", printer->out);
	why_put_thread(printer, instance->thread);
	put_more_waiters(printer->out, waiters, waiter->more);
	fprintf(printer->out, "  %s  ", why_grade_names[part->grade]);
	why_put_first_step(printer, part);
	put_waiters_lock(printer, instance, part);
	fputc('\n', printer->out);
}

static void print_waiters(const struct why *why, const struct why_waiters *waiters,
			  const struct why_view *view, FILE *out)
{
	const struct why_printer printer = {
		.why = waiters->why, .model = why->model, .view = view, .out = out};

	if (waiters->list.len)
		put_waiters_title(&printer, waiters->explained, !is_of_threads(why));
	for (size_t i = 0; i < waiters->list.len; i++)
		print_waiter(&printer, waiters, &waiters->list.data[i]);
	if (!waiters->resting.len || !why_rests(why))
		return;
	fputs("\nOther threads of its process that mostly sleep:\n", out);
	for (size_t i = 0; i < waiters->resting.len; i++)
		print_waiter(&printer, waiters, &waiters->resting.data[i]);
}

/* ---- the output ---- */

static bool is_many_threads(const struct why *why)
{
	for (size_t i = 0; i < why->instances.len; i++)
		if (why->instances.data[i].span != MODEL_NONE)
			return false;
	return why->instances.len > 1;
}

static struct hang_view hang_view_of(const struct why *why, const struct why_view *view)
{
	return (struct hang_view){why->model, view->names, view->colour, view->evidence};
}

static void print_deadlocks(const struct why *why, const struct why_view *view, FILE *out)
{
	const struct hang_view of = hang_view_of(why, view);

	if (view->hangs && hang_print_deadlocks(view->hangs, &of, out))
		fputc('\n', out);
}

/* Spans are explained up to the end of the capture, threads as well; but of a thread that hangs,
 * the wait itself is all there is. */
static void print_hangs(const struct why *why, const struct why_view *view, FILE *out)
{
	const struct hang_view of = hang_view_of(why, view);

	if (!view->hangs || !view->hangs->waits.len || !is_of_threads(why))
		return;
	fputc('\n', out);
	hang_print_waits(view->hangs, &of, out);
}

static void print_processes(const struct model *model, bool colour, FILE *out)
{
	bool killed = killed_print(model, colour, out);

	if (impaired_print(model, colour, out) || killed)
		fputc('\n', out);
}

void why_print_text(const struct why *why, const struct why_view *view, FILE *out)
{
	struct why_explained explained = {.waits = {0}};
	const struct why_printer printer = {why, why->model, view, out,
					    view->evidence ? NULL : &explained};
	bool many = is_many_threads(why) && !view->evidence;

	if (!view->brief)
		print_processes(why->model, view->colour, out);
	print_deadlocks(why, view, out);
	if (many)
		print_merged(&printer);
	for (size_t i = 0; i < why->instances.len && !many; i++) {
		if (i)
			fputc('\n', out);
		print_instance(&printer, &why->instances.data[i]);
	}
	if (view->waiters)
		print_waiters(why, view->waiters, view, out);
	if (view->waits)
		print_waits(view->waits, view, out);
	print_hangs(why, view, out);
	if (!view->brief)
		why_print_records(&printer);
	map_free(&explained.waits);
	vec_free(&explained.shown);
}

// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/walk/why_instance.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/cause/why_cpu_limits.h"
#include "analyze/why/cause/why_pressure.h"
#include "analyze/why/lookup/why_at_end.h"
#include "analyze/why/lookup/why_full_pool.h"
#include "analyze/why/lookup/why_manager.h"
#include "analyze/why/lookup/why_signals.h"
#include "analyze/why/parts/why_connections.h"
#include "analyze/why/parts/why_idle.h"
#include "analyze/why/parts/why_locks.h"
#include "analyze/why/parts/why_neighbours.h"
#include "analyze/why/parts/why_polls.h"
#include "analyze/why/parts/why_sampled.h"
#include "analyze/why/series/why_series.h"
#include "analyze/why/walk/why_go_walk_internal.h"
#include "analyze/why/walk/why_handoff_internal.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/text.h"

struct why_instance why_span_instance(const struct model *model, uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];

	return (struct why_instance){
		.span = index,
		.thread = span->thread,
		.from_ts = span->start_ts,
		.to_ts = span->end_ts,
		.begun_before = span->flags & MODEL_SPAN_BEGUN_BEFORE,
		.unfinished = span->flags & MODEL_SPAN_UNFINISHED,
		.left = span->flags & MODEL_SPAN_LEFT,
		.ranks_behind = !model_span_ranks(span),
		.once = site_is_once(model_site(model, span->site)),
		.ended_by = span->flags & MODEL_SPAN_MOVED ? span->end_thread : MODEL_NONE,
	};
}

struct why_instance why_window_instance(uint32_t thread, uint64_t from_ts, uint64_t to_ts)
{
	return (struct why_instance){.span = MODEL_NONE,
				     .thread = thread,
				     .from_ts = from_ts,
				     .to_ts = to_ts,
				     .ended_by = MODEL_NONE};
}

static int larger(const void *left, const void *right)
{
	const struct why_sum *a = left, *b = right;

	if (a->part.ns != b->part.ns)
		return a->part.ns > b->part.ns ? -1 : 1;
	if (a->part.cause != b->part.cause)
		return a->part.cause < b->part.cause ? -1 : 1;
	return a->part.thread < b->part.thread ? -1 : a->part.thread > b->part.thread;
}

/* Up to this many similar threads stay apart. */
#define ALIKE_MAX 4

static struct why_idle_time time_of(const struct why_sum *sum)
{
	return (struct why_idle_time){sum->part.cause, sum->part.idle, sum->part.capture,
				      sum->part.ns};
}

static int comes_first(const void *left, const void *right, void *order)
{
	const struct why_idle_time a = time_of(left), b = time_of(right);

	return why_idle_compare(&a, &b, order) ?: larger(left, right);
}

/* Whether waffle-bpf itself took the time for the capture. */
static bool is_of_capture(const struct why_walk *walk, const struct why_part *part)
{
	return part->object &&
	       (part->object == walk->own_cpu_text || part->object == walk->own_hold_text);
}

static void sums_sort(struct why_walk *walk, const struct why_instance *instance)
{
	struct why_idle_order order;
	uint64_t capture_ns = 0;
	bool idle = false;

	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_part *part = &walk->sums.data[i].part;

		part->capture = is_of_capture(walk, part);
		capture_ns += part->capture ? part->ns : 0;
		idle |= part->idle;
	}
	order = why_idle_order(idle, instance->to_ts - instance->from_ts, capture_ns);
	if (walk->sums.len)
		qsort_r(walk->sums.data, walk->sums.len, sizeof(*walk->sums.data), comes_first,
			&order);
}

static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* 0: the culprit is no thread. */
static uint32_t pid_of(const struct model *model, const struct why_sum *sum)
{
	return sum->part.thread < model->threads.len ? model->threads.data[sum->part.thread].pid
						     : 0;
}

/*
 * The process that a culprit shares with those that are alike. 0: it need not be the same one, as
 * with the many short processes of a build. Ranks, and threads in a span, are told apart by their
 * process.
 */
static uint32_t alike_pid(const struct model *model, const struct why_sum *sum)
{
	const struct model_process *process = model_process_of(model, sum->part.thread);
	bool ranked = process && process->rank != MODEL_NONE;

	return ranked || sum->site != MODEL_NONE ? pid_of(model, sum) : 0;
}

/* 0: the culprits differ only in their thread, or their process. */
static int alike(const struct model *model, const struct why_sum *a, const struct why_sum *b)
{
	uint32_t on_a = model_host_of(model, a->part.thread);
	uint32_t on_b = model_host_of(model, b->part.thread);

	return compare(a->part.cause, b->part.cause)
		       ?: compare(model_thread_kind(model, a->part.thread),
				  model_thread_kind(model, b->part.thread))
			       ?: compare(a->site, b->site)
				       ?: compare(a->part.object, b->part.object)
					       ?: compare(on_a, on_b)
						       ?: compare(alike_pid(model, a),
								  alike_pid(model, b));
}

static void add_sum(struct why_walk *walk, struct why_sum *to, const struct why_sum *sum)
{
	why_sampled_join(walk, to, sum);
	why_neighbours_join(walk, to, sum);
	to->part.ns += sum->part.ns;
	to->part.through_ns += sum->part.through_ns;
	to->part.pool_wait_ns += sum->part.pool_wait_ns;
	to->part.ran_ns += sum->part.ran_ns;
	to->part.open_ns += sum->part.open_ns;
	to->part.stretches += sum->part.stretches;
	if (to->part.lock != sum->part.lock)
		to->part.lock = 0;
	for (unsigned i = 0; i < WHY_RELATIONS; i++)
		to->relation_ns[i] += sum->relation_ns[i];
	to->futex &= sum->futex;
	if (to->unnamed != sum->unnamed)
		to->unnamed = 0;
	to->placed_ns += sum->placed_ns;
	to->votes_ns += to->place && sum->place == to->place ? sum->votes_ns : 0;
	why_polls_add(&to->part.polls, &sum->part.polls);
	for (unsigned i = 0; i <= WHY_GRADE_CERTAIN; i++)
		to->grade_ns[i] += sum->grade_ns[i];
}

/* Returns why_part.name of sums that become one. */
static uint32_t common_name(const struct why_walk *walk, const struct why_sum *sums, size_t count)
{
	const struct model *model = walk->model;
	uint32_t first = sums->part.thread;
	char name[WAFFLE_THREAD_NAME];

	for (size_t i = 0; i < count && first < model->threads.len; i++) {
		if (sums[i].part.name)
			return sums[i].part.name;
		if (model_thread_kind(model, sums[i].part.thread) !=
		    model_thread_kind(model, first))
			return strtab_put(walk->why->texts, name,
					  text_without_numbers(name, sizeof(name),
							       model_thread_name(model, first)));
	}
	return 0;
}

/* Merges sums into one: the largest, with the time of all. They are grouped by process and, within
 * it, by thread. */
static struct why_sum group_sum(struct why_walk *walk, const struct why_sum *sums, size_t count)
{
	struct why_sum all;
	size_t most = 0;
	uint32_t threads = sums->part.threads, processes = sums->part.processes;

	for (size_t i = 1; i < count; i++) {
		const struct why_part *part = &sums[i].part;

		if (part->thread != sums[i - 1].part.thread)
			threads += part->threads;
		if (pid_of(walk->model, &sums[i]) != pid_of(walk->model, &sums[i - 1]))
			processes += part->processes;
		if (larger(&sums[i], &sums[most]) < 0)
			most = i;
	}
	all = sums[most];
	all.part.threads = threads;
	all.part.processes = processes;
	all.part.name = common_name(walk, sums, count);
	for (size_t i = 0; i < count; i++)
		if (i != most)
			add_sum(walk, &all, &sums[i]);
	return all;
}

/* How sums are folded: of those that `takes` selects, more than `apart` that `group` finds equal
 * become one. */
struct sum_folding {
	size_t apart;
	bool (*takes)(const struct why_walk *walk, const struct why_sum *sum);
	int (*group)(const struct model *model, const struct why_sum *a, const struct why_sum *b);
	/* Whether those that are equal stay apart nevertheless; NULL: no. */
	bool (*keeps)(const struct why_sum *sums, size_t count);
	/* Names what several objects are; NULL: they have one. */
	void (*join)(struct why_walk *walk, struct why_sum *sum, size_t objects);
};

struct sum_order {
	const struct sum_folding *folding;
	const struct model *model;
};

/* Groups equal sums, those of each process and thread together. */
static int by_group(const void *left, const void *right, void *arg)
{
	const struct why_sum *a = left, *b = right;
	const struct sum_order *order = arg;
	const struct model *model = order->model;

	return order->folding->group(model, a, b) ?: compare(pid_of(model, a), pid_of(model, b))
		       ?: compare(a->part.thread, b->part.thread) ?: larger(a, b);
}

/* Moves the sums that are folded to the front, and returns their number. */
static size_t taken_first(struct why_walk *walk, const struct sum_folding *folding)
{
	size_t taken = 0;

	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum sum = walk->sums.data[i];

		if (!folding->takes(walk, &sum))
			continue;
		walk->sums.data[i] = walk->sums.data[taken];
		walk->sums.data[taken++] = sum;
	}
	return taken;
}

/* Number of different objects: several threads may wait for one. */
static size_t objects_of(const struct why_sum *sums, size_t count)
{
	struct map seen = {0};
	size_t objects = 0;

	for (size_t i = 0; i < count; i++) {
		if (map_get(&seen, sums[i].part.object) != MAP_NONE)
			continue;
		map_put(&seen, sums[i].part.object, 1);
		objects++;
	}
	map_free(&seen);
	return objects;
}

static void fold(struct why_walk *walk, const struct sum_folding *folding)
{
	struct sum_order order = {folding, walk->model};
	struct why_sum *sums = walk->sums.data;
	size_t taken = taken_first(walk, folding), kept = 0, objects;

	if (taken <= folding->apart)
		return;
	qsort_r(sums, taken, sizeof(*sums), by_group, &order);
	for (size_t i = 0, end; i < taken; i = end) {
		for (end = i + 1;
		     end < taken && !folding->group(walk->model, &sums[i], &sums[end]);)
			end++;
		if (end - i <= folding->apart ||
		    (folding->keeps && folding->keeps(&sums[i], end - i))) {
			memmove(&sums[kept], &sums[i], (end - i) * sizeof(*sums));
			kept += end - i;
			continue;
		}
		objects = folding->join ? objects_of(&sums[i], end - i) : 1;
		sums[kept] = group_sum(walk, &sums[i], end - i);
		if (objects > 1)
			folding->join(walk, &sums[kept], objects);
		kept++;
	}
	memmove(&sums[kept], &sums[taken], (walk->sums.len - taken) * sizeof(*sums));
	walk->sums.len -= taken - kept;
}

/* Other threads than the instance's own. */
static bool is_other(const struct why_walk *walk, const struct why_sum *sum)
{
	return sum->part.thread != walk->instance->thread &&
	       sum->part.thread < walk->model->threads.len;
}

static const struct sum_folding fold_threads = {
	.apart = ALIKE_MAX, .takes = is_other, .group = alike};

/* ---- neighbours ---- */

/* Threads that are not recorded and have the CPU: of those, only the name is known anyway. */
static bool is_rival(const struct why_walk *walk, const struct why_sum *sum)
{
	return sum->part.cause == WHY_CPU_CONTENTION && is_other(walk, sum) &&
	       strcmp(model_thread_name(walk->model, sum->part.thread), "?") != 0 &&
	       !model_is_traced(walk->model, sum->part.thread);
}

/* One that has at least two thirds of the time says more alone than all of its name. */
static bool has_main(const struct why_sum *sums, size_t count)
{
	uint64_t ns = 0, most_ns = 0;

	for (size_t i = 0; i < count; i++) {
		ns += sums[i].part.ns;
		most_ns = sums[i].part.ns > most_ns ? sums[i].part.ns : most_ns;
	}
	return most_ns >= ns - ns / 3;
}

static const struct sum_folding fold_rivals = {
	.apart = 1, .takes = is_rival, .group = alike, .keeps = has_main};

/* ---- pools ---- */

/* Time whose object says little: the timer of each thread may be its own. */
static bool is_sleep(const struct why_sum *sum)
{
	return sum->part.cause == WHY_SLEEP || sum->part.cause == WHY_TIMER;
}

#define DIGITS "0123456789"

/* Whether the culprit has a name of its own with a number in it, as the threads of a pool have. The
 * name of an executable, such as python3.11, may have one, too. */
static bool is_numbered(const struct model *model, const struct why_sum *sum)
{
	const struct model_process *process = model_process_of(model, sum->part.thread);
	uint32_t main = process ? process->main_thread : MODEL_NONE;

	if (model->threads.data[sum->part.thread].kind)
		return true;
	return strpbrk(model_thread_name(model, sum->part.thread), DIGITS) && main != MODEL_NONE &&
	       model->threads.data[main].comm != model->threads.data[sum->part.thread].comm;
}

static bool is_main_thread(const struct model *model, const struct why_sum *sum)
{
	const struct model_process *process = model_process_of(model, sum->part.thread);

	return process && process->main_thread == sum->part.thread;
}

/* Whether the culprit is the main thread of a process and its object can be that of others. */
static bool is_of_worker(const struct model *model, const struct why_sum *sum)
{
	return is_main_thread(model, sum) && sum->part.object && !sum->futex && !is_sleep(sum);
}

/*
 * Threads of a pool have numbers in their names: pool-1, pool-2. The workers of a server are
 * processes of one name. What they do for one reason has one cause, however few they are, and so
 * has what one thread does that waits in one place for a new futex each time.
 *
 * If a program makes a thread for each job, the only wait of such a thread often has no stack, and
 * its lock and condition are its own. Then it is enough that they sleep. Kernels of a GPU are few,
 * and each is worth its own line.
 */
static bool is_of_pool(const struct why_walk *walk, const struct why_sum *sum)
{
	const struct why_part *part = &sum->part;

	if (part->thread >= walk->model->threads.len || is_of_capture(walk, part) ||
	    part->cause == WHY_GPU || part->cause == WHY_COLLECTIVE)
		return false;
	if (sum->own)
		return sum->place && sum->futex;
	return (is_sleep(sum) && sum->place) || is_numbered(walk->model, sum) ||
	       is_of_worker(walk->model, sum);
}

/* Returns what the objects of a pool's threads must have in common: of futexes without a name that
 * they wait for in one place, the kind. */
static uint32_t pool_object(const struct why_sum *sum)
{
	if (is_sleep(sum) && !sum->own)
		return 0;
	return sum->place && sum->futex ? sum->unnamed : sum->part.object;
}

/* Returns the process that the culprits must have in common. Of programs that sleep it is the
 * parent, since a script may start them one after the other. */
static uint32_t pool_pid(const struct model *model, const struct why_sum *sum)
{
	const struct model_process *process = model_process_of(model, sum->part.thread);

	if (is_of_worker(model, sum))
		return alike_pid(model, sum);
	if (is_sleep(sum) && is_main_thread(model, sum) && !alike_pid(model, sum) && process->ppid)
		return process->ppid;
	return pid_of(model, sum);
}

static uint32_t grade_of(const struct why_sum *sum)
{
	return why_grade_of(sum->grade_ns, sum->part.ns);
}

/* What they have in common apart from their objects. */
static int place_group(const struct model *model, const struct why_sum *a, const struct why_sum *b)
{
	int order = compare(a->part.cause, b->part.cause) ?: compare(grade_of(a), grade_of(b))
			    ?: compare(a->own, b->own) ?: compare(a->part.idle, b->part.idle)
			    ?: compare(a->place, b->place) ?: compare(a->site, b->site);

	return order ?: compare(pool_pid(model, a), pool_pid(model, b))
		       ?: compare(model_host_of(model, a->part.thread),
				  model_host_of(model, b->part.thread))
			       ?: text_compare_without_numbers(model_thread_name(model, a->part.thread),
						       model_thread_name(model, b->part.thread));
}

static int pool_group(const struct model *model, const struct why_sum *a, const struct why_sum *b)
{
	return place_group(model, a, b) ?: compare(pool_object(a), pool_object(b));
}

/* ---- many objects ---- */

/* An object with at least this part of the time stays apart: the one large file among many. */
#define LARGE_PARTS 20

/* A server may have thousands of connections, and a program may read thousands of files. Each has
 * little of the time. Kernels of a GPU are few, and each is worth its own line. */
static bool is_small_object(const struct why_walk *walk, const struct why_sum *sum)
{
	const struct why_instance *instance = walk->instance;
	const struct why_part *part = &sum->part;

	return part->object && part->objects < 2 && !is_of_capture(walk, part) &&
	       part->cause != WHY_GPU && part->cause != WHY_COLLECTIVE &&
	       part->ns < (instance->to_ts - instance->from_ts) / LARGE_PARTS;
}

/* The threads of a name are alike, but the instance's own is not like another one. */
static int object_group(const struct model *model, const struct why_sum *a, const struct why_sum *b)
{
	bool thread_a = a->part.thread < model->threads.len;
	bool thread_b = b->part.thread < model->threads.len;
	int order = compare(a->part.cause, b->part.cause) ?: compare(thread_a, thread_b)
			    ?: compare(a->own, b->own) ?: compare(a->site, b->site)
			    ?: compare(a->part.idle, b->part.idle);

	if (order || !thread_a)
		return order;
	return compare(model_thread_kind(model, a->part.thread),
		       model_thread_kind(model, b->part.thread))
		       ?: compare(model_host_of(model, a->part.thread),
				  model_host_of(model, b->part.thread))
			       ?: compare(alike_pid(model, a), alike_pid(model, b));
}

/* "socket:[4711] (tcp …) and 164 more" */
static void name_objects(struct why_walk *walk, struct why_sum *sum, size_t count)
{
	char *text = NULL;
	size_t len = 0;
	FILE *stream;

	if (!sum->part.object)
		return;
	stream = memory_stream(&text, &len);
	fprintf(stream, "%s and %zu more", strtab_get(walk->why->texts, sum->part.object),
		count - 1);
	memory_require(!fclose(stream));
	sum->part.object = strtab_put(walk->why->texts, text, len);
	sum->part.objects = (uint32_t)count;
	sum->part.connections = 0;
	free(text);
}

static void name_unnamed(struct why_walk *walk, struct why_sum *sum, size_t count)
{
	sum->part.object = wait_unnamed_text(walk->why->texts, sum->part.object, count);
	sum->part.objects = (uint32_t)count;
}

static void name_pool_objects(struct why_walk *walk, struct why_sum *sum, size_t count)
{
	if (sum->futex)
		name_unnamed(walk, sum, count);
	else
		name_objects(walk, sum, count);
}

/* Threads that wait in one place may each have a timer or a futex of its own. */
static const struct sum_folding fold_pools = {
	.apart = 1, .takes = is_of_pool, .group = pool_group, .join = name_pool_objects};

/* A thread's own objects first: then the thread is still named. */
static int object_of_thread(const struct model *model, const struct why_sum *a,
			    const struct why_sum *b)
{
	return object_group(model, a, b) ?: compare(a->part.thread, b->part.thread);
}

static const struct sum_folding fold_objects_of_thread = {.apart = ALIKE_MAX,
							  .takes = is_small_object,
							  .group = object_of_thread,
							  .join = name_objects};
static const struct sum_folding fold_objects = {
	.apart = ALIKE_MAX, .takes = is_small_object, .group = object_group, .join = name_objects};

/* ---- files of an epoll ---- */

static bool is_epoll(const struct why_walk *walk, const struct why_sum *sum)
{
	return descriptor_is_epoll(strtab_get(walk->why->texts, sum->part.object)) &&
	       sum->part.objects < 2;
}

static void name_epoll(struct why_walk *walk, struct why_sum *sum, size_t count)
{
	(void)count;
	sum->part.object = strtab_put(walk->why->texts, DESCRIPTOR_EPOLL, strlen(DESCRIPTOR_EPOLL));
}

/* A loop watches other connections each time. */
static const struct sum_folding fold_epolls = {
	.apart = 1, .takes = is_epoll, .group = object_of_thread, .join = name_epoll};

/* ---- connections to one server ---- */

static bool is_connection(const struct why_walk *walk, const struct why_sum *sum)
{
	(void)walk;
	return sum->server;
}

static int server_group(const struct model *model, const struct why_sum *a, const struct why_sum *b)
{
	return object_group(model, a, b) ?: compare(a->server, b->server);
}

static void name_server(struct why_walk *walk, struct why_sum *sum, size_t count)
{
	(void)walk;
	sum->part.object = sum->server;
	sum->accepted = 0;
	sum->part.connections = (uint32_t)count;
}

static const struct sum_folding fold_connections = {
	.apart = 1, .takes = is_connection, .group = server_group, .join = name_server};

/* ---- connections of a server ---- */

static bool is_accepted(const struct why_walk *walk, const struct why_sum *sum)
{
	(void)walk;
	return sum->accepted;
}

static int accepted_group(const struct model *model, const struct why_sum *a,
			  const struct why_sum *b)
{
	return object_of_thread(model, a, b) ?: compare(a->place, b->place)
		       ?: compare(a->accepted, b->accepted);
}

static void name_accepted(struct why_walk *walk, struct why_sum *sum, size_t count)
{
	(void)walk;
	sum->part.object = sum->accepted;
	sum->part.connections = (uint32_t)count;
}

/* A client has a port of its own for each connection, so several with one local end are those of a
 * server. */
static const struct sum_folding fold_accepted = {.apart = 1,
						 .takes = is_accepted,
						 .group = accepted_group,
						 .keeps = has_main,
						 .join = name_accepted};

/* ---- sockets and futexes of one culprit ---- */

/* Whether the culprit is known whatever the socket is, alone or in a list, or the futex, unless
 * that is a lock. What was sent again is a cause of its own. */
static bool is_channel_of_culprit(const struct why_walk *walk, const struct why_sum *sum)
{
	const char *object = strtab_get(walk->why->texts, sum->part.object);

	if (!is_other(walk, sum) || sum->part.objects > 1 || sum->part.connections)
		return false;
	if (sum->futex)
		return !why_is_lock(sum->part.cause);
	return descriptor_is_socket(object) ? !strstr(object, DESCRIPTOR_AFTER)
					    : descriptor_list(object) != NULL;
}

static const struct sum_folding fold_channels = {.apart = 1,
						 .takes = is_channel_of_culprit,
						 .group = object_of_thread,
						 .join = name_pool_objects};

/* ---- pipes for a child each ---- */

/* What is waited for in one place has no name. Small objects are one cause already. */
static bool is_unnamed(const struct why_walk *walk, const struct why_sum *sum)
{
	return sum->place && sum->unnamed && !sum->file && sum->part.objects < 2 &&
	       (sum->own || sum->part.thread == MODEL_NONE || is_of_pool(walk, sum));
}

static int unnamed_group(const struct model *model, const struct why_sum *a,
			 const struct why_sum *b)
{
	return place_group(model, a, b) ?: compare(a->unnamed, b->unnamed);
}

static const struct sum_folding fold_unnamed = {
	.apart = 1, .takes = is_unnamed, .group = unnamed_group, .join = name_unnamed};

/* ---- numbered files ---- */

static bool is_numbered_file(const struct why_walk *walk, const struct why_sum *sum)
{
	(void)walk;
	return sum->unnamed && sum->file && sum->part.objects < 2;
}

static int file_group(const struct model *model, const struct why_sum *a, const struct why_sum *b)
{
	return object_group(model, a, b) ?: compare(a->unnamed, b->unnamed);
}

/* The one slow file among many is told apart. */
static const struct sum_folding fold_files = {.apart = 1,
					      .takes = is_numbered_file,
					      .group = file_group,
					      .keeps = has_main,
					      .join = name_unnamed};

void why_instance_judge(struct why_instance *instance, const struct why_walk *walk)
{
	const struct model *model = walk->model;

	if (windows_touch(&walk->all_losses, instance->from_ts, instance->to_ts))
		instance->loss = true;
	if (instance->span != MODEL_NONE &&
	    model->spans.data[instance->span].flags & MODEL_SPAN_LOSS)
		instance->loss = true;
}

/* The processes that a part sums up are of a kind if those of another one have less than this part
 * of its time. */
#define RELATION_PARTS 10

/* That who waits for the end of a process has started it goes without saying. */
static void set_relation(struct why_sum *sum)
{
	struct why_part *part = &sum->part;

	if (part->processes < 2 || part->cause == WHY_PROCESS_EXIT)
		return;
	for (unsigned i = WHY_RELATION_NONE + 1; i < WHY_RELATIONS; i++) {
		if (sum->relation_ns[i] <= part->ns - part->ns / RELATION_PARTS)
			continue;
		part->relation = i;
		part->relation_mostly = sum->relation_ns[i] < part->ns;
	}
}

static void finish(const struct why_walk *walk, struct why_sum *sum,
		   const struct why_instance *instance)
{
	/* We can only guess when the span moved to the other thread. */
	bool elsewhere = instance->ended_by != MODEL_NONE;
	bool doubtful = instance->loss || instance->begun_before || elsewhere;

	sum->part.grade = why_grade_of(sum->grade_ns, sum->part.ns);
	set_relation(sum);
	if (sum->votes_ns < sum->placed_ns - sum->votes_ns)
		sum->part.wait = MODEL_NONE;
	if (!why_polls_are(&sum->part.polls, sum->part.stretches, sum->part.ns))
		sum->part.polls = (struct why_polls){0};
	if (doubtful && sum->part.grade == WHY_GRADE_CERTAIN)
		sum->part.grade = WHY_GRADE_LIKELY;
	sum->part.neighbour = why_neighbours_most(walk, sum);
	if (sum->part.cause == WHY_RUNNING && sum->part.thread == instance->thread)
		sum->part.signals = why_signals_of(walk, instance->thread, instance->from_ts,
						   instance->to_ts, sum->part.ns);
}

/* A chain of a smaller part of the time says little. */
#define CHAIN_PARTS 10

/* The text of a thread to which a chain of enough time leads. */
static uint32_t text_of_chains(struct why_walk *walk, const struct why_instance *instance,
			       uint32_t (*text_of)(struct why_walk *walk, uint32_t thread))
{
	uint64_t least_ns = (instance->to_ts - instance->from_ts) / CHAIN_PARTS;
	uint32_t text = 0;

	for (size_t i = 0; i < walk->sums.len && !text; i++) {
		const struct why_sum *sum = &walk->sums.data[i];
		const struct why_step *steps = walk->chains.data[sum->chain].steps;

		for (uint32_t k = 0; k < sum->part.step_count && !text; k++)
			if (sum->part.ns >= least_ns)
				text = text_of(walk, steps[k].thread);
	}
	return text;
}

/* The wait that why_wait_at_end() compares. The JVM may have compiled the method in which the
 * thread waits, so that no stack is that of most waits: then it is the one of the longest stretch.
 */
static uint32_t wait_to_compare(const struct why_walk *walk, const struct why_sum *sum)
{
	const struct why_step *steps = walk->chains.data[sum->chain].steps;
	uint32_t count = sum->part.step_count;

	return sum->part.wait == MODEL_NONE && count &&
			       steps[count - 1].state == WAFFLE_THREAD_BLOCKED
		       ? steps[count - 1].wait
		       : sum->part.wait;
}

void why_instance_take(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	why_instance_judge(instance, walk);
	sums_sort(walk, instance);
	instance->memory = why_pressure_memory(walk, instance);
	instance->cpus = why_cpu_limits(walk, instance);
	instance->full_pool = text_of_chains(walk, instance, why_full_pool_text);
	instance->manager = text_of_chains(walk, instance, why_manager_text);
	instance->part = (uint32_t)why->parts.len;
	instance->part_count = (uint32_t)walk->sums.len;
	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum *sum = &walk->sums.data[i];

		finish(walk, sum, instance);
		instance->own_ns += is_of_capture(walk, &sum->part) ? sum->part.ns : 0;
		why_sampled_take(walk, sum, &sum->part);
		sum->part.at_end = why_wait_at_end(walk, wait_to_compare(walk, sum),
						   sum->part.cause == WHY_TIMER);
		sum->part.step = (uint32_t)why->steps.len;
		vec_need(&why->steps, sum->part.step_count);
		vec_add(&why->parts, sum->part);
		memcpy(&why->steps.data[why->steps.len], walk->chains.data[sum->chain].steps,
		       sum->part.step_count * sizeof(struct why_step));
		for (uint32_t k = 0; k < sum->part.step_count; k++) {
			struct why_step *step = &why->steps.data[why->steps.len + k];

			if (step->series_last)
				why_series_describe(walk, step);
		}
		why->steps.len += sum->part.step_count;
	}
	why_locks_take(why, walk, instance);
}

void why_instance_parts(struct why *why, struct why_walk *walk, struct why_instance *instance)
{
	instance->part = 0;
	instance->part_count = (uint32_t)walk->sums.len;
	why->parts.len = 0;
	why->places.len = 0;
	vec_need(&why->parts, walk->sums.len);
	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum *sum = &walk->sums.data[i];

		finish(walk, sum, instance);
		why_sampled_take(walk, sum, &sum->part);
		why->parts.data[why->parts.len++] = sum->part;
	}
}

/* The text of the functions that a stack is in, the innermost first. Code without names, such as
 * that of a just-in-time compiler, has other addresses in each thread. If nothing has a name, only
 * the same stack is the same place. */
static uint32_t place_make(struct why_walk *walk, uint32_t stack, uint64_t ts)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count =
		stack_names_functions(walk->names, stack, ts, functions, STACK_NAMES_FUNCTIONS);
	char *text = NULL;
	size_t len = 0;
	FILE *stream = memory_stream(&text, &len);
	uint32_t place;

	for (uint32_t i = 0; i < count; i++)
		fprintf(stream, "%s\n", functions[i]);
	if (!count)
		fprintf(stream, "stack %" PRIu32, stack);
	memory_require(!fclose(stream));
	place = strtab_put(walk->why->texts, text, len);
	free(text);
	return place;
}

/* Returns the text of the place of part.wait; 0: unknown. */
static uint32_t place_of(struct why_walk *walk, const struct why_sum *sum)
{
	const struct model_wait *wait;
	uint32_t place;

	if (sum->part.wait == MODEL_NONE)
		return 0;
	wait = &walk->model->waits.data[sum->part.wait];
	place = map_get(&walk->places, wait->user_stack);
	if (place == MAP_NONE) {
		place = place_make(walk, wait->user_stack, wait->from_ts);
		map_put(&walk->places, wait->user_stack, place);
	}
	return place;
}

static enum why_relation relation_of(const struct model *model, uint32_t thread, uint32_t other)
{
	const struct model_process *own = model_process_of(model, thread);
	const struct model_process *process = model_process_of(model, other);
	uint32_t parent;

	if (!own || !process || own == process || !process->ppid)
		return WHY_RELATION_NONE;
	if (process->ppid == own->pid)
		return WHY_RELATION_CHILDREN;
	parent = map_get(&model->pids, process->ppid);
	return process->ppid == own->ppid && parent != MAP_NONE &&
			       model_is_traced(model, model->processes.data[parent].main_thread)
		       ? WHY_RELATION_SIBLINGS
		       : WHY_RELATION_NONE;
}

static void fold_all(struct why_walk *walk, const struct why_instance *instance)
{
	for (size_t i = 0; i < walk->sums.len; i++) {
		struct why_sum *sum = &walk->sums.data[i];

		sum->own = sum->part.thread == instance->thread;
		sum->relation_ns[relation_of(walk->model, instance->thread, sum->part.thread)] =
			sum->part.ns;
		sum->place = place_of(walk, sum);
		sum->futex = wait_is_unnamed_futex(strtab_get(walk->why->texts, sum->part.object));
		sum->unnamed = wait_unnamed(walk->why->texts, sum->part.object,
					    why_is_lock(sum->part.cause));
		sum->file = *strtab_get(walk->why->texts, sum->part.object) == '/';
		sum->server = why_connections_to(walk->why->texts, sum->part.object);
		sum->accepted = why_connections_at(walk->why->texts, sum->part.object);
	}
	fold(walk, &fold_connections);
	fold(walk, &fold_threads);
	fold(walk, &fold_rivals);
	fold(walk, &fold_epolls);
	fold(walk, &fold_pools);
	fold(walk, &fold_accepted);
	fold(walk, &fold_files);
	fold(walk, &fold_objects_of_thread);
	fold(walk, &fold_objects);
	fold(walk, &fold_channels);
	fold(walk, &fold_unnamed);
}

void why_instance_walk(struct why_walk *walk, struct why_instance *instance)
{
	walk->instance = instance;
	walk->end_ts = instance->to_ts;
	walk->depth = 0;
	walk->sums.len = 0;
	why_locks_clear(walk);
	walk->sampled.len = 0;
	walk->neighbours.len = 0;
	if (walk->more_sums.len)
		map_free(&walk->more_sums);
	walk->instances++;
	why_await_forget(&walk->awaits);
	if (instance->ended_by < walk->model->threads.len)
		why_walk_handed_over(walk, instance);
	else if (instance->program)
		why_walk_program(walk, instance);
	else
		why_walk_time(walk, instance->thread, instance->from_ts, instance->to_ts, NULL);
	/* Without chains, the caller adds up instances by names, not by threads. */
	if (!walk->no_chains)
		fold_all(walk, instance);
}

struct why *why_walk_begin(struct why_walk *walk, const struct model *model,
			   struct stack_names *names)
{
	struct why *why = memory_zeroed(1, sizeof(*why));

	why->model = model;
	why->texts = strtab_make();
	*walk = (struct why_walk){.why = why, .model = model, .names = names};
	why_intervals_init(&walk->intervals, model);
	return why;
}

int why_start(struct why **why, struct why_walk *walk, const struct model *model,
	      struct stack_names *names, struct error *err)
{
	*walk = (struct why_walk){0};
	*why = NULL;
	if (!model->sched)
		return error_set(err, ENODATA,
				 "the capture has no scheduler records, which show why threads "
				 "waited; record it with the source sched");
	*why = why_walk_begin(walk, model, names);
	return 0;
}

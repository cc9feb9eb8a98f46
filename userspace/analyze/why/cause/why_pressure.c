// SPDX-License-Identifier: Apache-2.0
/*
 * What made a disk or the memory slow besides the thread itself: a limit of its cgroup, or the
 * requests of a neighbour. The line of the cause shows them: a limit is added to the object, and a
 * neighbour is summed up beside it. The cause and its culprit stay what they are, since nothing
 * shows how long the wait would have been without the neighbour.
 */
#include "analyze/why/cause/why_pressure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/why/cause/why_blocked_internal.h"
#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/units.h"

/* Limit of the requests to examine around a wait. */
#define REQUESTS_MAX 512

/* A text that is put together. */
struct pressure {
	char text[512];
	size_t len;
};

static void __attribute__((format(printf, 2, 3)))
add(struct pressure *pressure, const char *format, ...)
{
	size_t room = sizeof(pressure->text) - pressure->len;
	va_list arguments;
	int len;

	va_start(arguments, format);
	len = vsnprintf(pressure->text + pressure->len, room, format, arguments);
	va_end(arguments);
	if (len > 0)
		pressure->len += (size_t)len < room ? (size_t)len : room - 1;
}

/* Adds details to what the kernel's stack says of the wait. They are shown in the chain. */
static void __attribute__((format(printf, 2, 3)))
add_meaning(struct why_walk *walk, const char *format, ...)
{
	struct why_step *step = &walk->path[walk->depth - 1];
	struct pressure all = {.len = 0};
	va_list arguments;
	int len;

	if (walk->no_chains)
		return;
	add(&all, "%.200s%s", strtab_get(walk->why->texts, step->meaning),
	    step->meaning ? "; " : "");
	va_start(arguments, format);
	len = vsnprintf(all.text + all.len, sizeof(all.text) - all.len, format, arguments);
	va_end(arguments);
	if (len < 0 || all.len + (size_t)len >= sizeof(all.text))
		return;
	step->meaning = strtab_put(walk->why->texts, all.text, all.len + (size_t)len);
}

/* ---- memory ---- */

/* Whether the wait was for memory: the kernel says so, or its stack does. */
static bool is_for_memory(const struct why_blocked *blocked, const struct model_memory *memory)
{
	const struct meaning_row *work = blocked->stack.meaning.rows[MEANING_WORK];

	return memory->flags & WAFFLE_MEMORY_STALL || (work && work->rule == MEANING_RECLAIM) ||
	       blocked->stack.meaning.rule == MEANING_SWAP;
}

/* The limit that the thread's cgroup had reached when the wait ended; NULL: none. */
static const struct model_memory *memory_at(const struct why_walk *walk,
					    const struct why_blocked *blocked)
{
	const struct model_memory *all = walk->model->memories.data;
	size_t len = walk->model->memories.len, at;
	uint64_t ts;

	if (!len)
		return NULL;
	ts = why_switched_in(walk, blocked->thread, blocked->index);
	at = lower_bound(len, i,
			 all[i].thread < blocked->thread ||
				 (all[i].thread == blocked->thread && all[i].ts < ts));
	return at < len && all[at].thread == blocked->thread && all[at].ts == ts ? &all[at] : NULL;
}

static const char *memory_limit_name(const struct model_memory *memory)
{
	if (memory->flags & WAFFLE_MEMORY_HIGH)
		return "memory.high";
	return memory->flags & WAFFLE_MEMORY_OLD ? "memory.limit_in_bytes" : "memory.max";
}

/* Adds "memory.max 64.0 MiB of /sys/fs/cgroup/app used up, the most by hog (4711)". */
static void add_memory_limit(struct why_walk *walk, const struct model_memory *memory,
			     struct pressure *pressure)
{
	char limit[UNITS_TEXT];

	add(pressure, ", %s %s of %.256s used up", memory_limit_name(memory),
	    units_format_bytes(limit, memory->limit_bytes),
	    strtab_get(walk->why->texts, why_cgroup(walk, memory->cgroup, "memory")));
	if (memory->user_pid)
		add(pressure, ", the most by %.16s (%u)",
		    strtab_get(walk->model->strings, memory->user_comm),
		    model_pid_real(walk->model, memory->user_pid));
}

/* The amount that the process has is different for each wait, and waits with different objects are
 * not summed up. So the amount is in the chain. */
static void add_memory(struct why_walk *walk, const struct why_blocked *blocked,
		       struct pressure *pressure)
{
	const struct model_memory *memory = memory_at(walk, blocked);
	const struct model *model = walk->model;
	char bytes[UNITS_TEXT];

	if (!memory || !is_for_memory(blocked, memory))
		return;
	add_memory_limit(walk, memory, pressure);
	if (memory->user_pid)
		add_meaning(walk, "%.16s (%u) has %s of its cgroup's memory",
			    strtab_get(model->strings, memory->user_comm),
			    model_pid_real(model, memory->user_pid),
			    units_format_bytes(bytes, memory->user_bytes));
}

/* The limit counts if the thread's own page faults take at least this part of the time. */
#define FAULT_PARTS 10

static bool faults_matter(const struct why_walk *walk, const struct why_instance *instance)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < walk->sums.len; i++) {
		const struct why_part *part = &walk->sums.data[i].part;

		if (part->thread == instance->thread &&
		    (part->cause == WHY_PAGE_FAULT_MINOR || part->cause == WHY_PAGE_FAULT_MAJOR))
			ns += part->ns;
	}
	return ns && ns >= (instance->to_ts - instance->from_ts) / FAULT_PARTS;
}

/* The limit counts if the thread's own reads of pages of files take at least this part. */
#define READ_PARTS 4

/* Limit of the waits to search for one with a stack. */
#define WAITS_MAX 4096

/* The kernel's stack of a wait. The kernel takes those of a part of very frequent waits only, so
 * without one it is that of the thread's first wait for the same file in the instance. 0: none. */
static uint32_t stack_like(struct why_walk *walk, const struct why_instance *instance,
			   const struct model_wait *wait)
{
	const struct model_wait *all = walk->model->waits.data;
	size_t len = walk->model->waits.len, first;

	if (wait->kernel_stack || !wait->object)
		return wait->kernel_stack;
	first = lower_bound(len, i,
			    all[i].thread < wait->thread || (all[i].thread == wait->thread &&
							     all[i].from_ts < instance->from_ts));
	for (size_t i = first; i < len && i - first < WAITS_MAX; i++) {
		if (all[i].thread != wait->thread || all[i].from_ts >= instance->to_ts)
			break;
		walk->why->searched++;
		if (all[i].kernel_stack && all[i].object == wait->object)
			return all[i].kernel_stack;
	}
	return 0;
}

/* Whether the longest wait of a sum was for pages of a file. Direct I/O needs no pages. */
static bool reads_pages(struct why_walk *walk, const struct why_instance *instance,
			const struct why_sum *sum)
{
	const struct why_step *step =
		&walk->chains.data[sum->chain].steps[sum->part.step_count - 1];
	struct why_stack stack = {0};
	uint32_t number;

	if (step->wait >= walk->model->waits.len)
		return false;
	number = stack_like(walk, instance, &walk->model->waits.data[step->wait]);
	why_stack_meaning(walk, number, &stack);
	return stack.meaning.rule == MEANING_READ;
}

static bool reads_matter(struct why_walk *walk, const struct why_instance *instance)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < walk->sums.len; i++) {
		const struct why_part *part = &walk->sums.data[i].part;

		if (part->thread == instance->thread && part->cause == WHY_DISK_READ &&
		    reads_pages(walk, instance, &walk->sums.data[i]))
			ns += part->ns;
	}
	return ns && ns >= (instance->to_ts - instance->from_ts) / READ_PARTS;
}

/* Whether the limit was reached for most of the time. The first read of a large file may fill the
 * cgroup as well, but only at the end. */
static bool is_always_full(const struct why_instance *instance, const struct model_memory *first,
			   const struct model_memory *last)
{
	uint64_t part = (instance->to_ts - instance->from_ts) / READ_PARTS;

	return first->ts <= instance->from_ts + part && last->ts + part >= instance->to_ts;
}

static uint32_t limit_text(struct why_walk *walk, const struct model_memory *memory, bool reads)
{
	struct pressure pressure = {.len = 0};

	add_memory_limit(walk, memory, &pressure);
	if (reads)
		add(&pressure, "; pages of files are dropped early");
	return strtab_put(walk->why->texts, pressure.text + strlen(", "),
			  pressure.len - strlen(", "));
}

uint32_t why_pressure_memory(struct why_walk *walk, const struct why_instance *instance)
{
	const struct model_memory *all = walk->model->memories.data;
	size_t len = walk->model->memories.len, first, end;
	bool reads;

	if (!len || walk->no_chains)
		return 0;
	first = lower_bound(
		len, i,
		all[i].thread < instance->thread ||
			(all[i].thread == instance->thread && all[i].ts < instance->from_ts));
	end = lower_bound(len, i,
			  all[i].thread < instance->thread || (all[i].thread == instance->thread &&
							       all[i].ts <= instance->to_ts));
	if (first >= end)
		return 0;
	reads = is_always_full(instance, &all[first], &all[end - 1]) &&
		reads_matter(walk, instance);
	if (!reads && !faults_matter(walk, instance))
		return 0;
	return limit_text(walk, &all[end - 1], reads);
}

/* ---- disks ---- */

/* The sum of what neighbours that have the same name transferred. */
struct neighbour {
	uint32_t comm;
	struct why_neighbour sum;
	uint64_t since; /* scratch: the earliest begin of those that were added */
};

/* The requests that were in flight during a wait. */
struct wait_requests {
	/* The wait may be for several requests. These are the sum of the times that they were in
	 * flight during the wait, and the sum of their lengths. */
	uint64_t own_ns, own_bytes;
	uint32_t disk; /* 0: unknown */
	struct neighbour neighbours[WHY_NEIGHBOURS_MAX];
	uint32_t neighbour_count;
};

/* Requests come by falling time of their end, so that what overlaps counts once. Only the time
 * within the wait counts, and the bytes of a request in the wait in which it ends. */
static void add_request(struct neighbour *neighbour, const struct why_blocked *blocked,
			const struct model_io *io)
{
	uint64_t from = io->issue_ts > blocked->from ? io->issue_ts : blocked->from;
	uint64_t to = io->done_ts < neighbour->since ? io->done_ts : neighbour->since;

	neighbour->sum.thread = io->thread; /* the first one of them */
	if (io->done_ts <= blocked->to)
		neighbour->sum.bytes += io->bytes;
	if (from >= to)
		return;
	neighbour->sum.ns += to - from;
	neighbour->since = from;
}

static void add_neighbour(struct wait_requests *requests, const struct model *model,
			  const struct why_blocked *blocked, const struct model_io *io)
{
	uint32_t comm, at = 0;

	if (io->thread >= model->threads.len || io->issue_ts >= blocked->to)
		return;
	comm = model->threads.data[io->thread].comm;
	while (at < requests->neighbour_count && requests->neighbours[at].comm != comm)
		at++;
	if (at == WHY_NEIGHBOURS_MAX)
		return;
	if (at == requests->neighbour_count)
		requests->neighbours[requests->neighbour_count++] =
			(struct neighbour){.comm = comm, .since = blocked->to};
	add_request(&requests->neighbours[at], blocked, io);
}

static void add_own(struct wait_requests *requests, const struct why_blocked *blocked,
		    const struct model_io *io)
{
	uint64_t from = io->issue_ts > blocked->from ? io->issue_ts : blocked->from;
	uint64_t to = io->done_ts < blocked->to ? io->done_ts : blocked->to;

	requests->own_ns += from < to ? to - from : 0;
	requests->own_bytes += io->bytes;
	requests->disk = io->disk;
}

/* Whether the request may be what the thread waits for: it is its own, or one of the kernel's. */
static bool is_own(const struct model *model, const struct why_blocked *blocked, uint32_t dev,
		   const struct model_io *io)
{
	if (io->flags & WAFFLE_IO_NEIGHBOUR || (dev && io->dev != dev))
		return false;
	return io->thread == blocked->thread || !model_is_traced(model, io->thread);
}

static void find_requests(struct why_walk *walk, const struct why_blocked *blocked,
			  struct wait_requests *requests)
{
	const struct model *model = walk->model;
	const struct model_io *ios = model->ios.data;
	uint32_t dev = walk->path[walk->depth - 1].dev,
		 host = model_host_of(model, blocked->thread);
	size_t first = lower_bound(model->ios.len, i, ios[i].done_ts <= blocked->from), end;

	for (end = first; end < model->ios.len && end - first < REQUESTS_MAX; end++) {
		if (ios[end].done_ts > blocked->to && ios[end].issue_ts >= blocked->to)
			break;
		walk->why->searched++;
		if (model_host_of(model, ios[end].thread) == host &&
		    is_own(model, blocked, dev, &ios[end]))
			add_own(requests, blocked, &ios[end]);
	}
	for (size_t i = end; requests->disk && i-- > first;)
		if (ios[i].flags & WAFFLE_IO_NEIGHBOUR && ios[i].disk == requests->disk &&
		    model_host_of(model, ios[i].thread) == host)
			add_neighbour(requests, model, blocked, &ios[i]);
}

#define DISK_KINDS (WAFFLE_IO_LIMIT_WRITES | WAFFLE_IO_LIMIT_COUNT | WAFFLE_IO_LIMIT_OLD)

/* A limit of the process for that disk. Several cgroups may have one: the lowest counts. */
static const struct model_io_limit *io_limit(const struct model *model, uint32_t pid, uint32_t disk,
					     bool write)
{
	const struct model_io_limit *all = model->io_limits.data, *found = NULL;
	size_t len = model->io_limits.len;

	for (size_t i = lower_bound(len, k, all[k].pid < pid); i < len && all[i].pid == pid; i++)
		if (disk && all[i].dev == disk && !(all[i].kind & ~DISK_KINDS) &&
		    !!(all[i].kind & WAFFLE_IO_LIMIT_WRITES) == write &&
		    (!found || all[i].limit < found->limit))
			found = &all[i];
	return found;
}

/* Where the limit is set. */
static const char *limit_file(const struct model_io_limit *limit)
{
	bool writes = limit->kind & WAFFLE_IO_LIMIT_WRITES;

	if (!(limit->kind & WAFFLE_IO_LIMIT_OLD))
		return "io.max";
	if (limit->kind & WAFFLE_IO_LIMIT_COUNT)
		return writes ? "blkio.throttle.write_iops_device"
			      : "blkio.throttle.read_iops_device";
	return writes ? "blkio.throttle.write_bps_device" : "blkio.throttle.read_bps_device";
}

/* Adds "and its cgroup /sys/fs/cgroup/app is limited to 1.00 MiB of reads a second (io.max)". */
static void add_io_limit(struct why_walk *walk, const struct model_io_limit *limit,
			 struct pressure *pressure)
{
	bool count = limit->kind & WAFFLE_IO_LIMIT_COUNT;
	char text[UNITS_TEXT];

	add(pressure, ", and its cgroup %.256s is limited to %s%s %s a second (%s)",
	    strtab_get(walk->why->texts, why_cgroup(walk, limit->cgroup, "blkio")),
	    count ? units_format_count(text, limit->limit) : units_format_bytes(text, limit->limit),
	    count ? "" : " of", limit->kind & WAFFLE_IO_LIMIT_WRITES ? "writes" : "reads",
	    limit_file(limit));
}

static const struct neighbour *largest(const struct wait_requests *requests)
{
	const struct neighbour *found = NULL;

	for (uint32_t i = 0; i < requests->neighbour_count; i++)
		if (!found || requests->neighbours[i].sum.bytes >= found->sum.bytes)
			found = &requests->neighbours[i];
	return found;
}

/* If a limit held the requests back, the disk was busy with them for less than half of the wait,
 * and no neighbour matters. */
static void add_disk(struct why_walk *walk, const struct why_blocked *blocked, bool write,
		     struct pressure *pressure, struct why_disk_use *disk)
{
	const struct model *model = walk->model;
	uint32_t pid = model->threads.data[blocked->thread].pid;
	const struct model_io_limit *limit;
	const struct neighbour *neighbour;
	struct wait_requests requests = {0};
	char bytes[UNITS_TEXT];

	find_requests(walk, blocked, &requests);
	limit = io_limit(model, pid, requests.disk, write);
	if (limit && requests.own_ns < (blocked->to - blocked->from) / 2) {
		add_io_limit(walk, limit, pressure);
		return;
	}
	neighbour = largest(&requests);
	disk->own_bytes = requests.own_bytes;
	if (!neighbour)
		return;
	disk->neighbour = neighbour->sum;
	if (neighbour->sum.bytes <= disk->own_bytes ||
	    !why_neighbour_counts(&neighbour->sum, blocked->to - blocked->from))
		return;
	add_meaning(walk, "meanwhile the disk did %s for %.16s (%u)",
		    units_format_bytes(bytes, neighbour->sum.bytes),
		    model_thread_name(model, neighbour->sum.thread),
		    model_pid_real(model, model->threads.data[neighbour->sum.thread].pid));
}

uint32_t why_pressure(struct why_walk *walk, const struct why_blocked *blocked,
		      enum why_cause cause, struct why_disk_use *disk)
{
	struct pressure pressure = {.len = 0}, all = {.len = 0};

	add_memory(walk, blocked, &pressure);
	if (cause == WHY_DISK_READ || cause == WHY_DISK_WRITE || cause == WHY_PAGE_FAULT_MAJOR)
		add_disk(walk, blocked, cause == WHY_DISK_WRITE, &pressure, disk);
	if (!pressure.len)
		return blocked->object;
	if (!blocked->object)
		return strtab_put(walk->why->texts, pressure.text + strlen(", "),
				  pressure.len - strlen(", "));
	add(&all, "%.200s%s", strtab_get(walk->why->texts, blocked->object), pressure.text);
	return strtab_put(walk->why->texts, all.text, all.len);
}

// SPDX-License-Identifier: Apache-2.0
#include "capture/address_space/address_spaces.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "capture/address_space/hit_image.h"
#include "capture/address_space/mapping_log_internal.h"
#include "capture/address_space/mmap_queue_internal.h"
#include "target/process/address_space.h"
#include "util/clock.h"
#include "util/vec.h"

#define PROCESSES_MAX 32768 /* up to 16384 are traced, and others wake them */
#define DEFERRED_MAX 32     /* the kernel maps a program, its loader and the vDSO */
#define READ_MIN_NS 20000000ull
#define READ_MAX_NS 10000000000ull
#define SWEEP_NS 5000000000ull

struct address_space {
	pid_t pid;        /* 0: unused */
	pid_t parent;     /* whose program it still runs; 0: unknown */
	uint64_t fork_ts; /* time of that fork */
	struct known_mappings known;
	bool is_privileged; /* known.now is a privileged program's, which only arming may see */
	uint64_t begin_ts;  /* start of the program of known.now; 0: unknown */
	uint64_t since;     /* start of the program of the last record; 0: before the capture */
	uint64_t whole_ts;  /* known.now lacks no code since then, as far as is known; 0: unknown */
	uint64_t exec_ts;   /* an exec was reported whose record is pending; 0: none */
	VEC(struct mmap_event) deferred; /* mappings of that program; paths are copies */
	uint64_t tried_ts;               /* time of the last attempt to read */
	uint64_t next_ts, gap_ns; /* address_spaces_write(): the next one, and its distance */
	struct address_space_notes notes;
};

struct address_spaces {
	const struct kernel *kernel;
	struct processes processes;
	struct mmap_queue *queue;
	struct mapping_log *log;
	struct map pids; /* pid → index in `list` */
	VEC(struct address_space) list;
	VEC(uint32_t) unused; /* indexes in `list` */
	uint64_t sweep_ts;    /* time of the last search for processes that are gone */
	uint64_t lost_ts;     /* events of unknown processes were dropped; 0: never */
	bool written;         /* mappings were written on demand */
	uint64_t version;
};

int address_spaces_open(struct address_spaces **spaces, const struct kernel *kernel,
			struct store_writer *writer, struct error *err)
{
	*spaces = calloc(1, sizeof(**spaces));
	if (!*spaces)
		return error_set(err, ENOMEM, "out of memory");
	(*spaces)->kernel = kernel;
	(*spaces)->processes.kernel = kernel;
	return mmap_queue_open(&(*spaces)->queue, err)
		       ?: mapping_log_open(&(*spaces)->log, writer, err);
}

static void deferred_free(struct address_space *space)
{
	for (size_t i = 0; i < space->deferred.len; i++)
		free(space->deferred.data[i].mapping.path);
	vec_free(&space->deferred);
	space->exec_ts = 0;
}

static void space_free(struct address_space *space)
{
	mappings_free(&space->known.now);
	mappings_free(&space->known.reported);
	deferred_free(space);
	map_free(&space->notes.sites);
	map_free(&space->notes.values);
}

void address_spaces_close(struct address_spaces *spaces)
{
	if (!spaces)
		return;
	for (size_t i = 0; i < spaces->list.len; i++)
		space_free(&spaces->list.data[i]);
	vec_free(&spaces->list);
	vec_free(&spaces->unused);
	map_free(&spaces->pids);
	mapping_log_close(spaces->log);
	mmap_queue_close(spaces->queue);
	processes_free(&spaces->processes);
	free(spaces);
}

bool address_spaces_are_written(const struct address_spaces *spaces)
{
	uint32_t users = WAFFLE_WAIT_STACKS | WAFFLE_WAIT_FAULTS | WAFFLE_WAIT_SAMPLES;

	return spaces->written || (spaces->kernel && (kernel_wait_sources(spaces->kernel) & users ||
						      kernel_stacks_wanted(spaces->kernel)));
}

struct processes *address_spaces_processes(struct address_spaces *spaces)
{
	return &spaces->processes;
}

uint64_t address_spaces_unparsed(const struct address_spaces *spaces)
{
	return mapping_log_unparsed(spaces->log);
}

uint64_t address_spaces_version(const struct address_spaces *spaces)
{
	return spaces->version;
}

/* ---- the table of processes ---- */

static struct address_space *space_find(const struct address_spaces *spaces, pid_t pid)
{
	uint32_t index = map_get(&spaces->pids, (uint64_t)pid);

	return index == MAP_NONE ? NULL : &spaces->list.data[index];
}

/* Forgets all that was mapped before a new program began. */
static void space_reset(struct address_space *space, uint64_t ts)
{
	mappings_free(&space->known.now);
	mappings_free(&space->known.reported);
	map_free(&space->notes.sites);
	space->known.read_ts = space->known.last_ts = space->whole_ts = 0;
	space->begin_ts = space->since = ts;
	space->is_privileged = false;
}

static void space_remove(struct address_spaces *spaces, pid_t pid)
{
	uint32_t index = map_remove(&spaces->pids, (uint64_t)pid);
	struct address_space *space;

	if (index == MAP_NONE)
		return;
	space = &spaces->list.data[index];
	space_free(space);
	*space = (struct address_space){0};
	spaces->version++;
	(void)!vec_push(&spaces->unused, index); /* without memory the entry stays unused */
}

void address_spaces_forget(struct address_spaces *spaces, pid_t pid)
{
	processes_forget(&spaces->processes, pid);
	space_remove(spaces, pid);
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

static void sweep(struct address_spaces *spaces)
{
	uint64_t now = clock_monotonic_ns();

	if (now - spaces->sweep_ts < SWEEP_NS)
		return;
	spaces->sweep_ts = now;
	for (size_t i = 0; i < spaces->list.len; i++) {
		pid_t pid = spaces->list.data[i].pid;

		if (pid && is_gone(pid))
			address_spaces_forget(spaces, pid);
	}
}

/* NULL: there are too many. */
static struct address_space *space_get(struct address_spaces *spaces, pid_t pid)
{
	struct address_space *space = space_find(spaces, pid);
	uint32_t index = (uint32_t)spaces->list.len;

	if (space)
		return space;
	if (!spaces->unused.len && index >= PROCESSES_MAX)
		sweep(spaces);
	if (spaces->unused.len)
		index = spaces->unused.data[--spaces->unused.len];
	else if (index >= PROCESSES_MAX || !vec_push(&spaces->list, (struct address_space){0}))
		return NULL;
	space = &spaces->list.data[index];
	*space = (struct address_space){
		.pid = pid, .gap_ns = READ_MIN_NS, .notes.handles_since = UINT64_MAX};
	map_set(&spaces->pids, (uint64_t)pid, index);
	return space;
}

struct address_space_notes *address_spaces_notes(struct address_spaces *spaces, pid_t pid)
{
	struct address_space *space = space_get(spaces, pid);

	return space ? &space->notes : NULL;
}

/* ---- reading /proc ---- */

/* 0: unknown. */
static uint64_t program_begin(const struct address_spaces *spaces, pid_t pid)
{
	uint64_t since = spaces->kernel ? kernel_program_since(spaces->kernel, pid) : 0;

	return since == UINT64_MAX ? 0 : since;
}

/* Writes what was read, if mappings are written. Returns 1 if some of the ranges are new. */
static int read_write(struct address_spaces *spaces, const struct address_space *space,
		      const struct mappings *seen, uint64_t ts, struct error *err)
{
	const struct sighting sighting = {space->pid, ts, false};
	bool writes = address_spaces_are_written(spaces);
	int news = 0, result = 0;

	for (size_t i = 0; i < seen->list.len && i < ADDRESS_SPACE_MAX && !result; i++) {
		struct mapping *mapping = &seen->list.data[i];

		if (!address_space_at(&space->known.now, mapping->start))
			news = 1;
		if (writes)
			result =
				mapping_log_add(spaces->log, &space->known, mapping, sighting, err);
	}
	return result ?: news;
}

/* Takes ownership of what was read at `ts`. */
static void read_keep(struct address_spaces *spaces, struct address_space *space,
		      const struct mappings *seen, uint64_t ts, bool is_privileged)
{
	mappings_free(&space->known.now);
	map_free(&space->notes.sites);
	space->known.now = *seen;
	space->known.read_ts = space->known.last_ts = space->whole_ts = ts;
	space->begin_ts = program_begin(spaces, space->pid);
	space->is_privileged = is_privileged;
	spaces->version++;
}

/* Writes the last known mappings of the parent for a child that has run no other program since its
 * fork, once. They get the time of the record, since the child may run another program by now. */
static int inherited_write(struct address_spaces *spaces, struct address_space *space, uint64_t ts,
			   struct error *err)
{
	const struct address_space *parent = space_find(spaces, space->parent);
	bool same = parent && !parent->is_privileged && parent->begin_ts <= space->fork_ts &&
		    parent->since <= space->fork_ts;
	int result = 0;

	for (size_t i = 0; same && i < parent->known.now.list.len && result >= 0; i++) {
		struct mapping mapping = parent->known.now.list.data[i];

		if (address_spaces_are_written(spaces))
			result = mapping_log_add(spaces->log, &space->known, &mapping,
						 (struct sighting){space->pid, ts, false}, err);
	}
	if (same && parent->known.now.list.len)
		space->parent = 0;
	return result;
}

/* Reads the mappings of the program that a process ran at `ts`. The rows get a time before the
 * read: an event reported meanwhile is then later than the row and takes its place. Returns 1 if
 * some of the ranges are new. */
static int space_read(struct address_spaces *spaces, struct address_space *space, uint64_t ts,
		      struct error *err)
{
	uint64_t now = clock_monotonic_ns();
	struct mappings seen;
	int result;

	space->tried_ts = now;
	if (hit_image_mappings(&seen, spaces->kernel, space->pid, ts, true))
		return inherited_write(spaces, space, ts, err);
	result = read_write(spaces, space, &seen, now, err);
	read_keep(spaces, space, &seen, now, false);
	return result;
}

int address_spaces_scan(struct address_spaces *spaces, pid_t pid, const struct mappings **now,
			struct error *err)
{
	static const struct mappings none;
	uint64_t ts = clock_monotonic_ns();
	struct address_space *space = space_get(spaces, pid);
	struct mappings seen;
	bool readable;
	int result;

	if (!space)
		return error_set(err, ENOMEM, "pid %d: too many processes", pid);
	result = address_spaces_are_written(spaces) ? process_mappings_all(&seen, pid, err)
						    : process_mappings(&seen, pid, err);
	if (result)
		return result;
	*now = &none;
	if (!seen.list.len) /* a zombie */
		return 0;
	readable = hit_image_is_same(spaces->kernel, pid, ts);
	if (readable)
		result = read_write(spaces, space, &seen, ts, err);
	read_keep(spaces, space, &seen, ts, !readable);
	*now = &space->known.now;
	return result < 0 ? result : 0;
}

/* ---- events ---- */

void address_spaces_push(struct address_spaces *spaces, const struct mmap_event *event, bool traced)
{
	mmap_queue_push(spaces->queue, event, traced);
}

static int mapping_apply(struct address_spaces *spaces, struct address_space *space,
			 const struct mmap_event *event, struct error *err)
{
	const struct sighting sighting = {event->pid, event->ts, true};
	struct mapping mapping = event->mapping;
	int result = 0;

	mapping.since = event->ts;
	if (address_spaces_are_written(spaces))
		result = mapping_log_add(spaces->log, &space->known, &mapping, sighting, err);
	if (!address_space_map(&space->known.reported, &mapping))
		spaces->lost_ts = event->ts;
	if (event->ts <= space->known.read_ts)
		return result;
	space->known.last_ts = event->ts;
	if (mapping.ino)
		map_free(&space->notes.sites);
	if (!address_space_map(&space->known.now, &mapping))
		space->whole_ts = 0;
	return result;
}

/* Whether an event belongs to a program that may still turn out to be privileged. If the mappings
 * could be read since the program began, it is not. */
static bool must_defer(const struct address_spaces *spaces, const struct address_space *space,
		       const struct mmap_event *event)
{
	uint64_t read_ts = space->is_privileged ? 0 : space->known.read_ts;
	bool was_read = read_ts > space->exec_ts && event->ts > read_ts;

	/* Only targets have an exec record for which their mappings could wait. */
	return space->exec_ts && !was_read && spaces->kernel &&
	       kernel_program_since(spaces->kernel, event->pid) != UINT64_MAX;
}

/* An event without room is not lost: its mapping is found when the mappings are read. */
static void mapping_defer(struct address_space *space, const struct mmap_event *event)
{
	struct mmap_event copy = *event;

	copy.mapping.path = space->deferred.len < DEFERRED_MAX ? strdup(event->mapping.path) : NULL;
	if (!copy.mapping.path || !vec_push(&space->deferred, copy)) {
		free(copy.mapping.path);
		space->whole_ts = 0;
	}
}

static void exec_begin(struct address_space *space, uint64_t ts)
{
	deferred_free(space);
	space->exec_ts = space->since = ts;
	space->parent = 0;
	mappings_free(&space->known.reported);
	if (ts > space->begin_ts)
		space->begin_ts = ts;
	if (ts <= space->known.read_ts)
		return;
	mappings_free(&space->known.now);
	map_free(&space->notes.sites);
	space->is_privileged = false;
	space->whole_ts = ts;
}

static int event_apply(struct address_spaces *spaces, const struct queued_mmap *queued,
		       struct error *err)
{
	const struct mmap_event *event = &queued->event;
	struct address_space *space;

	if (event->kind == MMAP_LOST) {
		spaces->lost_ts = event->ts;
		spaces->version++;
		return 0;
	}
	/* The previous program, which may have been privileged, is gone. */
	if (event->kind == MMAP_EXEC)
		processes_begin(&spaces->processes, event->pid);
	else if (processes_is_privileged(&spaces->processes, event->pid))
		return 0;
	/* Other processes matter only if records refer to them. */
	if (!queued->traced &&
	    processes_of_thread(&spaces->processes, (uint32_t)event->pid) != (uint32_t)event->pid)
		return 0;
	space = space_get(spaces, event->pid);
	if (!space)
		return 0;
	spaces->version++;
	if (event->kind == MMAP_EXEC)
		exec_begin(space, event->ts);
	else if (must_defer(spaces, space, event))
		mapping_defer(space, event);
	else
		return mapping_apply(spaces, space, event, err);
	return 0;
}

int address_spaces_advance(struct address_spaces *spaces, uint64_t ts, struct error *err)
{
	const struct queued_mmap *queued;
	int result = 0;

	while (!result && (queued = mmap_queue_pop(spaces->queue, ts)))
		result = event_apply(spaces, queued, err);
	return result;
}

int address_spaces_begin_round(struct address_spaces *spaces, uint64_t before_ts, struct error *err)
{
	return mapping_log_late(spaces->log, false, err)
		       ?: address_spaces_advance(
				  spaces, mmap_queue_begin_round(spaces->queue, before_ts), err);
}

int address_spaces_finish(struct address_spaces *spaces, struct error *err)
{
	return mapping_log_late(spaces->log, true, err);
}

static void forked(struct address_spaces *spaces, pid_t parent, pid_t child, uint64_t ts)
{
	struct address_space *space = space_find(spaces, child);

	/* The exit of an earlier process with this pid was lost. */
	if (space && space->known.last_ts < ts)
		space_remove(spaces, child);
	space = space_get(spaces, child);
	if (!space)
		return;
	space->parent = parent;
	space->fork_ts = ts;
	/* A stack of the child may have preceded this record and found nothing. */
	space->next_ts = 0;
}

/* Mappings that were reported since the exec event, or read after the exec's record, belong to
 * the new program. All others are forgotten. */
static int exec_end(struct address_spaces *spaces, pid_t pid, uint64_t ts, bool privileged,
		    struct error *err)
{
	struct address_space *space = space_find(spaces, pid);
	bool reported;
	int result = 0;

	if (!space)
		return 0;
	reported = space->exec_ts > spaces->lost_ts;
	for (size_t i = 0; !privileged && i < space->deferred.len && !result; i++)
		result = mapping_apply(spaces, space, &space->deferred.data[i], err);
	deferred_free(space);
	if (!reported) {
		mappings_free(&space->known.reported);
		space->since = ts;
	}
	if (privileged ? !space->is_privileged : !reported && space->known.read_ts <= ts)
		space_reset(space, ts);
	space->parent = 0;
	space->tried_ts = space->next_ts = 0;
	space->gap_ns = READ_MIN_NS;
	spaces->version++;
	return result;
}

int address_spaces_record(struct address_spaces *spaces, const struct waffle_rec *rec,
			  bool privileged, struct error *err)
{
	const struct waffle_rec_fork *fork = (const struct waffle_rec_fork *)rec;
	pid_t pid = (pid_t)((const struct waffle_rec_exit *)rec)->tgid;

	if (rec->kind == WAFFLE_REC_FORK) {
		forked(spaces, (pid_t)fork->tgid, (pid_t)fork->child_tgid, rec->ts);
		return 0;
	}
	if (rec->kind == WAFFLE_REC_EXIT) {
		/* Other threads may outlive the main thread. */
		if (rec->tid == (uint32_t)pid && is_gone(pid))
			space_remove(spaces, pid);
		return 0;
	}
	/* We write the mappings now, since the process may be gone when they are needed. */
	return exec_end(spaces, pid, rec->ts, privileged, err)
		       ?: address_spaces_write(spaces, pid, rec->ts, NULL, 0, err);
}

/* ---- questions ---- */

const struct mappings *address_spaces_now(const struct address_spaces *spaces, pid_t pid)
{
	const struct address_space *space = space_find(spaces, pid);

	return space && space->known.now.list.len ? &space->known.now : NULL;
}

/* A report is preferred to what was read. What was read does not hold if a queued event from
 * before the read changes it. */
static struct code_place code_at(const struct address_spaces *spaces,
				 const struct address_space *space, uint64_t ts, uint64_t address)
{
	uint64_t lost_ts = spaces->lost_ts;
	uint64_t program_since = space->since > lost_ts ? space->since : lost_ts;
	uint64_t since = program_since, read_ts = space->known.read_ts;
	const struct mapping *mapping = address_space_at(&space->known.reported, address);

	if (mapping && mapping->since >= since)
		since = mapping->since;
	else if (space->is_privileged || read_ts < lost_ts || ts < space->begin_ts ||
		 mmap_queue_may_change(spaces->queue, space->pid, address, read_ts))
		mapping = NULL;
	else
		mapping = address_space_at(&space->known.now, address);
	if (mapping && (!mapping->ino || !mapping->executable))
		mapping = NULL;
	return (struct code_place){mapping, since, program_since};
}

struct code_place address_spaces_code(struct address_spaces *spaces, pid_t pid, uint64_t ts,
				      uint64_t address, bool may_read)
{
	struct address_space *space = space_get(spaces, pid);
	struct error ignored = ERROR_INIT;
	struct code_place place;
	bool complete;

	if (!space)
		return (struct code_place){0};
	place = code_at(spaces, space, ts, address);
	/* Once it was read, new code is reported. */
	complete = space->known.read_ts > spaces->lost_ts && space->known.reported.list.len;
	if (place.mapping || !may_read || complete ||
	    clock_monotonic_ns() - space->tried_ts < READ_MIN_NS)
		return place;
	space_read(spaces, space, ts, &ignored);
	return code_at(spaces, space, ts, address);
}

int address_spaces_write(struct address_spaces *spaces, pid_t pid, uint64_t ts,
			 const uint64_t *addresses, uint32_t count, struct error *err)
{
	struct address_space *space;
	bool missing;
	int result;

	spaces->written |= count > 0;
	if (!address_spaces_are_written(spaces) || processes_is_privileged(&spaces->processes, pid))
		return 0;
	space = space_get(spaces, pid);
	if (!space || ts < space->begin_ts)
		return 0;
	missing = !count || space->is_privileged;
	for (uint32_t i = 0; i < count && !missing; i++)
		missing = !address_space_at(&space->known.now, addresses[i]);
	if (!missing || clock_monotonic_ns() < space->next_ts)
		return 0;
	result = space_read(spaces, space, ts, err);
	space->gap_ns = result ? READ_MIN_NS : space->gap_ns * 2;
	if (space->gap_ns > READ_MAX_NS)
		space->gap_ns = READ_MAX_NS;
	space->next_ts = space->tried_ts + space->gap_ns;
	return result < 0 ? result : 0;
}

uint32_t address_spaces_code_count(const struct address_spaces *spaces, pid_t pid, uint64_t ts,
				   const uint64_t *addresses, uint32_t count)
{
	const struct address_space *space = space_find(spaces, pid);

	if (!space || space->is_privileged || space->whole_ts <= spaces->lost_ts ||
	    !space->known.now.list.len || ts < space->begin_ts)
		return count;
	for (uint32_t i = 1; i < count; i++) {
		const struct mapping *range = address_space_at(&space->known.now, addresses[i]);

		if (!range || !range->executable)
			return i;
	}
	return count;
}

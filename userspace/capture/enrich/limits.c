// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/limits_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/map.h"
#include "util/vec.h"

#define AGAIN_NS 1000000000ull /* between two searches in a cgroup */
#define CGROUPS_MAX 64
/* Searches take at most 1 / COST of a CPU: a cgroup may have many processes. */
#define COST 50
#define PROCESSES_MAX 4096

_Static_assert(sizeof(((struct cgroup_user *)NULL)->comm) == WAFFLE_COMM_BYTES,
	       "a name fits into its record");

/* Who used the memory of a cgroup when it was last looked for. */
struct memory_row {
	uint64_t cgroup, looked_ts;
	struct cgroup_user user;
};

struct io_row {
	uint32_t pid;
	struct cgroup_io_limit limit;
};

enum process_state {
	PROCESS_KNOWN,
	PROCESS_ENDED,
	PROCESS_REPLACED, /* by another one with its pid: nothing is said of either */
};

struct limits {
	VEC(struct memory_row) memory;
	uint64_t rest_ns;     /* no search for memory before */
	struct map processes; /* pid → enum process_state */
	VEC(struct io_row) io;
};

struct limits *limits_open(void)
{
	return calloc(1, sizeof(struct limits));
}

void limits_close(struct limits *limits)
{
	if (!limits)
		return;
	vec_free(&limits->memory);
	map_free(&limits->processes);
	vec_free(&limits->io);
	free(limits);
}

static struct memory_row *memory_row(struct limits *limits, uint64_t cgroup)
{
	for (size_t i = 0; i < limits->memory.len; i++)
		if (limits->memory.data[i].cgroup == cgroup)
			return &limits->memory.data[i];
	if (limits->memory.len >= CGROUPS_MAX ||
	    !vec_push(&limits->memory, ((struct memory_row){.cgroup = cgroup})))
		return NULL;
	return &limits->memory.data[limits->memory.len - 1];
}

static void user_find(struct limits *limits, struct memory_row *row, uint32_t tid)
{
	uint64_t begin_ns = clock_monotonic_ns(), end_ns;
	char path[PATH_MAX];

	if (!cgroup_path(path, sizeof(path), (pid_t)tid, row->cgroup, "memory") ||
	    !cgroup_memory_user(&row->user, path))
		row->user = (struct cgroup_user){0};
	end_ns = clock_monotonic_ns();
	limits->rest_ns = end_ns + COST * (end_ns - begin_ns);
}

void limits_memory(struct limits *limits, struct waffle_rec_memory *memory)
{
	struct memory_row *row = memory_row(limits, memory->cgroup);

	if (!row)
		return;
	if ((!row->looked_ts || memory->rec.ts >= row->looked_ts + AGAIN_NS) &&
	    clock_monotonic_ns() >= limits->rest_ns) {
		row->looked_ts = memory->rec.ts;
		user_find(limits, row, memory->rec.tid);
	}
	memory->user_pid = row->user.pid;
	memory->user_bytes = row->user.bytes;
	memcpy(memory->user_comm, row->user.comm, sizeof(memory->user_comm));
}

static void rows_remove(struct limits *limits, uint32_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < limits->io.len; i++)
		if (limits->io.data[i].pid != pid)
			limits->io.data[kept++] = limits->io.data[i];
	limits->io.len = kept;
}

size_t limits_process(struct limits *limits, uint32_t pid, struct cgroup_io_limit *found)
{
	uint32_t state = map_get(&limits->processes, pid);
	size_t count;

	if (state == PROCESS_ENDED) {
		rows_remove(limits, pid);
		(void)map_set(&limits->processes, pid, PROCESS_REPLACED); /* it has room */
	}
	if (state != MAP_NONE || limits->processes.len >= PROCESSES_MAX ||
	    !map_set(&limits->processes, pid, PROCESS_KNOWN))
		return 0;
	count = cgroup_io_limits((pid_t)pid, found, LIMITS_OF_PROCESS);
	for (size_t i = 0; i < count; i++)
		(void)vec_push(&limits->io, ((struct io_row){pid, found[i]}));
	return count;
}

void limits_forget(struct limits *limits, uint32_t pid)
{
	if (map_get(&limits->processes, pid) == PROCESS_KNOWN)
		(void)map_set(&limits->processes, pid, PROCESS_ENDED);
}

int limits_each(struct limits *limits, uint64_t ts, int (*pass)(struct waffle_rec *rec, void *arg),
		void *arg)
{
	int result = 0;

	for (size_t i = 0; i < limits->io.len && !result; i++) {
		const struct io_row *row = &limits->io.data[i];
		struct waffle_rec_io_limit rec = {
			.rec = {.ts = ts, .tid = row->pid, .kind = WAFFLE_REC_IO_LIMIT},
			.cgroup = row->limit.cgroup,
			.limit = row->limit.limit,
			.dev = row->limit.dev,
			.kind = row->limit.kind};

		result = pass(&rec.rec, arg);
	}
	return result;
}

// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/limits_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/vec.h"

#define AGAIN_NS 1000000000ull /* between two searches in a cgroup */
#define CGROUPS_MAX 64
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

struct limits {
	VEC(struct memory_row) memory;
	struct map processes; /* pid → 1: its limits are known */
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

void limits_memory(struct limits *limits, struct waffle_rec_memory *memory)
{
	struct memory_row *row = memory_row(limits, memory->cgroup);
	char path[PATH_MAX];

	if (!row)
		return;
	if (!row->looked_ts || memory->rec.ts >= row->looked_ts + AGAIN_NS) {
		row->looked_ts = memory->rec.ts;
		if (!cgroup_path(path, sizeof(path), (pid_t)memory->rec.tid, row->cgroup) ||
		    !cgroup_memory_user(&row->user, path))
			row->user = (struct cgroup_user){0};
	}
	memory->user_pid = row->user.pid;
	memory->user_bytes = row->user.bytes;
	memcpy(memory->user_comm, row->user.comm, sizeof(memory->user_comm));
}

size_t limits_process(struct limits *limits, uint32_t pid, struct cgroup_io_limit *found)
{
	size_t count;

	if (map_get(&limits->processes, pid) != MAP_NONE ||
	    limits->processes.len >= PROCESSES_MAX || !map_set(&limits->processes, pid, 1))
		return 0;
	count = cgroup_io_limits((pid_t)pid, found, LIMITS_OF_PROCESS);
	for (size_t i = 0; i < count; i++)
		(void)vec_push(&limits->io, ((struct io_row){pid, found[i]}));
	return count;
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

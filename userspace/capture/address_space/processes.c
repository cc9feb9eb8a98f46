// SPDX-License-Identifier: Apache-2.0
#include "capture/address_space/processes.h"

#define THREADS_MAX (1u << 19) /* per map */

void processes_free(struct processes *processes)
{
	map_free(&processes->tgids);
	map_free(&processes->old_tgids);
	map_free(&processes->privileged);
}

/* A full map becomes the old one, and the previous old one is dropped. */
static void thread_is_of(struct processes *processes, uint32_t tid, uint32_t tgid)
{
	if (processes->tgids.len >= THREADS_MAX) {
		map_free(&processes->old_tgids);
		processes->old_tgids = processes->tgids;
		processes->tgids = (struct map){0};
	}
	map_set(&processes->tgids, tid, tgid);
}

uint32_t processes_of_thread(struct processes *processes, uint32_t tid)
{
	uint32_t tgid = map_get(&processes->tgids, tid);

	if (tgid != MAP_NONE || !processes->old_tgids.len)
		return tgid == MAP_NONE ? 0 : tgid;
	tgid = map_get(&processes->old_tgids, tid);
	if (tgid == MAP_NONE)
		return 0;
	thread_is_of(processes, tid, tgid);
	return tgid;
}

bool processes_is_privileged(const struct processes *processes, pid_t pid)
{
	return map_get(&processes->privileged, (uint64_t)pid) != MAP_NONE ||
	       (processes->kernel && kernel_program_is_privileged(processes->kernel, pid));
}

uint32_t processes_readable(struct processes *processes, uint32_t tid)
{
	uint32_t pid = processes_of_thread(processes, tid);

	return pid && !processes_is_privileged(processes, (pid_t)pid) ? pid : 0;
}

static void privileged_set(struct processes *processes, uint32_t pid, bool is)
{
	if (!is)
		map_remove(&processes->privileged, pid);
	else if (processes->privileged.len < THREADS_MAX)
		map_set(&processes->privileged, pid, 1);
}

void processes_begin(struct processes *processes, pid_t pid)
{
	privileged_set(processes, (uint32_t)pid, false);
}

static void thread_forget(struct processes *processes, uint32_t tid)
{
	map_remove(&processes->tgids, tid);
	map_remove(&processes->old_tgids, tid);
}

void processes_forget(struct processes *processes, pid_t pid)
{
	privileged_set(processes, (uint32_t)pid, false);
	thread_forget(processes, (uint32_t)pid);
}

void processes_record(struct processes *processes, const struct waffle_rec *rec, bool privileged)
{
	const struct waffle_rec_fork *fork = (const struct waffle_rec_fork *)rec;
	uint32_t tgid;

	switch (rec->kind) {
	case WAFFLE_REC_TASK:
		thread_is_of(processes, rec->tid, ((const struct waffle_rec_task *)rec)->tgid);
		break;
	case WAFFLE_REC_STATE:
		thread_is_of(processes, rec->tid, ((const struct waffle_rec_state *)rec)->tgid);
		break;
	case WAFFLE_REC_FORK:
		thread_is_of(processes, fork->child_tgid, fork->child_tgid);
		privileged_set(processes, fork->child_tgid,
			       map_get(&processes->privileged, fork->tgid) != MAP_NONE);
		break;
	case WAFFLE_REC_EXEC:
		tgid = ((const struct waffle_rec_exit *)rec)->tgid;
		thread_is_of(processes, rec->tid, tgid);
		privileged_set(processes, tgid, privileged);
		break;
	case WAFFLE_REC_EXIT:
		tgid = ((const struct waffle_rec_exit *)rec)->tgid;
		if (rec->tid == tgid)
			privileged_set(processes, tgid, false);
		thread_forget(processes, rec->tid);
		break;
	default:
		break;
	}
}

// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/cpu_users_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/process/cgroup.h"
#include "target/process/cpu_time.h"
#include "target/process/process.h"
#include "util/clock.h"
#include "util/vec.h"

#define CGROUPS_MAX 8
#define SEARCH_NS 20000000ull /* limit of reading the processes of a cgroup */

struct user {
	uint32_t pid;
	struct cpu_time time;
};

/* A cgroup that has throttled, and its processes at that time. */
struct throttling {
	uint64_t cgroup;
	char *path;                 /* NULL: not found */
	uint64_t begin_ns, boot_ns; /* CLOCK_MONOTONIC and CLOCK_BOOTTIME */
	VEC(struct user) users;
};

struct cpu_users {
	VEC(struct throttling) cgroups;
};

struct cpu_users *cpu_users_open(void)
{
	return calloc(1, sizeof(struct cpu_users));
}

void cpu_users_close(struct cpu_users *users)
{
	if (!users)
		return;
	for (size_t i = 0; i < users->cgroups.len; i++) {
		free(users->cgroups.data[i].path);
		vec_free(&users->cgroups.data[i].users);
	}
	vec_free(&users->cgroups);
	free(users);
}

/* ---- the begin ---- */

static void user_add(pid_t pid, void *arg)
{
	struct throttling *throttling = arg;
	struct user user = {.pid = (uint32_t)pid};

	if (clock_monotonic_ns() < throttling->begin_ns + SEARCH_NS &&
	    process_cpu_time(&user.time, pid))
		(void)vec_push(&throttling->users, user);
}

void cpu_users_throttled(struct cpu_users *users, uint64_t cgroup, uint32_t tid)
{
	struct throttling *throttling;
	char path[PATH_MAX];

	for (size_t i = 0; i < users->cgroups.len; i++)
		if (users->cgroups.data[i].cgroup == cgroup)
			return;
	if (users->cgroups.len >= CGROUPS_MAX ||
	    !vec_push(&users->cgroups, (struct throttling){.cgroup = cgroup}))
		return;
	throttling = &users->cgroups.data[users->cgroups.len - 1];
	throttling->begin_ns = clock_monotonic_ns();
	throttling->boot_ns = clock_ns(CLOCK_BOOTTIME);
	if (!cgroup_path(path, sizeof(path), (pid_t)tid, cgroup, "cpu"))
		return;
	throttling->path = strdup(path);
	if (throttling->path)
		cgroup_processes_each(path, user_add, throttling);
}

/* ---- the end ---- */

struct cpu_search {
	const struct throttling *throttling;
	uint64_t ts, until_ns;
	bool (*is_recorded)(pid_t pid, void *arg);
	int (*pass)(struct waffle_rec *rec, void *arg);
	void *arg;
	int result; /* of `pass` */
};

/* How long a process had run when its cgroup throttled for the first time. False: unknown, as of
 * one that has come from another cgroup. */
static bool ran_before(const struct throttling *throttling, const struct user *user,
		       uint64_t *before_ns)
{
	*before_ns = 0;
	for (size_t i = 0; i < throttling->users.len; i++) {
		const struct user *before = &throttling->users.data[i];

		if (before->pid != user->pid || before->time.start_ns != user->time.start_ns)
			continue;
		*before_ns = before->time.ran_ns;
		return true;
	}
	return user->time.start_ns > throttling->boot_ns;
}

static int user_pass(const struct cpu_search *search, const struct user *user, uint64_t ran_ns)
{
	const struct throttling *throttling = search->throttling;
	uint64_t ms = (clock_monotonic_ns() - throttling->begin_ns) / 1000000;
	struct waffle_rec_task task = {
		.rec = {.ts = search->ts, .tid = user->pid, .kind = WAFFLE_REC_TASK},
		.tgid = user->pid};
	struct waffle_rec_io_limit rec = {
		.rec = {.ts = search->ts, .tid = user->pid, .kind = WAFFLE_REC_IO_LIMIT},
		.cgroup = throttling->cgroup,
		.limit = ran_ns,
		.dev = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX,
		.kind = WAFFLE_IO_LIMIT_CPU_USER};

	process_comm((pid_t)user->pid, task.comm);
	return search->pass(&task.rec, search->arg) ?: search->pass(&rec.rec, search->arg);
}

static void user_look(pid_t pid, void *arg)
{
	struct cpu_search *search = arg;
	struct user user = {.pid = (uint32_t)pid};
	uint64_t before_ns;

	if (search->result || clock_monotonic_ns() >= search->until_ns ||
	    search->is_recorded(pid, search->arg) || !process_cpu_time(&user.time, pid) ||
	    !ran_before(search->throttling, &user, &before_ns) || user.time.ran_ns <= before_ns)
		return;
	search->result = user_pass(search, &user, user.time.ran_ns - before_ns);
}

int cpu_users_each(struct cpu_users *users, uint64_t ts, bool (*is_recorded)(pid_t pid, void *arg),
		   int (*pass)(struct waffle_rec *rec, void *arg), void *arg)
{
	struct cpu_search search = {.ts = ts, .is_recorded = is_recorded, .pass = pass, .arg = arg};

	for (size_t i = 0; i < users->cgroups.len && !search.result; i++) {
		const struct throttling *throttling = &users->cgroups.data[i];
		struct stat info;

		/* Another cgroup may have its path by now. */
		if (!throttling->path || stat(throttling->path, &info) ||
		    info.st_ino != throttling->cgroup)
			continue;
		search.throttling = throttling;
		search.until_ns = clock_monotonic_ns() + SEARCH_NS;
		cgroup_processes_each(throttling->path, user_look, &search);
	}
	return search.result;
}

// SPDX-License-Identifier: Apache-2.0
#include "target/process/cgroup.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/record.h"
#include "target/process/process.h"

/* Finds a whole word in a comma-separated list. */
static const char *option_find(const char *options, const char *option)
{
	size_t len = strlen(option);

	for (const char *at = options; (at = strstr(at, option)); at++)
		if (at > options && strchr(", ", at[-1]) && strchr(",\n", at[len]))
			return at;
	return NULL;
}

/* Mount point of the cgroup hierarchy with this controller. Without a controller: of the unified
 * hierarchy. */
static bool cgroup_mount(const char *controllers, char *point, size_t size)
{
	char *line = NULL, place[PATH_MAX];
	size_t line_size = 0;
	bool found = false;
	FILE *mounts = fopen("/proc/self/mountinfo", "re");

	while (mounts && !found && getline(&line, &line_size, mounts) > 0) {
		const char *rest = strstr(line, *controllers ? " - cgroup " : " - cgroup2 ");
		const char *option = rest && *controllers ? option_find(rest, controllers) : rest;

		if (!option || sscanf(line, "%*u %*u %*s %*s %4095s", place) != 1)
			continue;
		process_unescape(place);
		snprintf(point, size, "%s", place);
		found = true;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/* ---- the cgroups of a thread ---- */

/* Whether a list such as "cpu,cpuacct" has a controller. */
static bool has_controller(const char *controllers, const char *name)
{
	size_t len = strlen(name);

	for (const char *comma; controllers; controllers = comma ? comma + 1 : NULL) {
		if (strcspn(controllers, ":,") == len && !strncmp(controllers, name, len))
			return true;
		comma = strchr(controllers, ',');
	}
	return false;
}

/* A folder of a cgroup of a thread. A true return stops the search. */
typedef bool (*folder_fn)(const char *path, const char *controllers, void *arg);

/* The thread's own cgroup of a hierarchy, then those above it. `path` has the mount point, and
 * `size` bytes. */
static bool folders_up(char *path, size_t mount_len, const char *controllers, folder_fn each,
		       void *arg)
{
	for (char *slash = path + mount_len; slash;) {
		if (each(path, controllers, arg))
			return true;
		slash = strrchr(path + mount_len, '/');
		if (slash)
			*slash = '\0';
	}
	return false;
}

/* A cgroup outside of our cgroup namespace, such as "/../a". No mount of ours has it: its path
 * would lead to some folder that who has named the cgroup may have made. */
static bool is_outside(const char *folder)
{
	return !strncmp(folder, "/..", 3) && (!folder[3] || folder[3] == '/');
}

/* Lines look like "4:cpu,cpuacct:/a/b"; the unified hierarchy is "0::/a/b". With a controller:
 * only its hierarchy, and the unified one. */
static bool folders_each(pid_t tid, const char *controller, char *path, size_t size, folder_fn each,
			 void *arg)
{
	char name[64], *line = NULL, point[PATH_MAX];
	size_t line_size = 0;
	bool found = false;
	FILE *groups;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", tid);
	groups = fopen(name, "re");
	while (groups && !found && getline(&line, &line_size, groups) > 0) {
		char *controllers = strchr(line, ':'), *folder;

		if (!controllers || !(folder = strchr(++controllers, ':')))
			continue;
		*folder++ = '\0';
		folder[strcspn(folder, "\n")] = '\0';
		if (controller && *controllers && !has_controller(controllers, controller))
			continue;
		if (is_outside(folder) || !cgroup_mount(controllers, point, sizeof(point)) ||
		    strlen(point) >= size)
			continue;
		snprintf(path, size, "%s%s", point, folder);
		found = folders_up(path, strlen(point), controllers, each, arg);
	}
	free(line);
	if (groups)
		fclose(groups);
	return found;
}

static bool has_inode(const char *path, const char *controllers, void *arg)
{
	const uint64_t *ino = arg;
	struct stat info;

	(void)controllers;
	return !stat(path, &info) && info.st_ino == *ino;
}

bool cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino, const char *controller)
{
	/* It may be an ancestor, since limits are inherited. */
	return folders_each(tid, controller, path, size, has_inode, &ino);
}

/* ---- limits of disks ---- */

struct limit_search {
	struct cgroup_io_limit *limits;
	size_t count, max;
	bool freezer, old_freezer; /* looked for one, of version 2 and 1 */
};

static void limit_add(struct limit_search *search, const char *path,
		      const struct cgroup_io_limit *limit)
{
	struct stat info;

	if (search->count == search->max || stat(path, &info))
		return;
	search->limits[search->count] = *limit;
	search->limits[search->count++].cgroup = info.st_ino;
}

/* A value of a line such as "8:16 rbps=2097152 wbps=max riops=max wiops=120". */
static void value_add(struct limit_search *search, const char *path, const char *line,
		      const char *key, struct cgroup_io_limit limit)
{
	const char *at = strstr(line, key);

	if (at && sscanf(at + strlen(key), "%" SCNu64, &limit.limit) == 1)
		limit_add(search, path, &limit);
}

static const struct {
	const char *old_file; /* of version 1; a line is "8:16 2097152" */
	const char *key;      /* in io.max of version 2 */
	uint32_t kind;
} io_limits[] = {
	{"blkio.throttle.read_bps_device", " rbps=", 0},
	{"blkio.throttle.write_bps_device", " wbps=", WAFFLE_IO_LIMIT_WRITES},
	{"blkio.throttle.read_iops_device", " riops=", WAFFLE_IO_LIMIT_COUNT},
	{"blkio.throttle.write_iops_device",
	 " wiops=", WAFFLE_IO_LIMIT_WRITES | WAFFLE_IO_LIMIT_COUNT},
};
#define IO_LIMITS (sizeof(io_limits) / sizeof(io_limits[0]))

/* Reads a file of limits: that of a row of io_limits, or with IO_LIMITS io.max, which has those of
 * all rows. */
static void limits_read(struct limit_search *search, const char *path, size_t row)
{
	const char *name = row < IO_LIMITS ? io_limits[row].old_file : "io.max";
	char file[PATH_MAX + 64], line[256];
	unsigned high, low;
	FILE *limits;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	limits = fopen(file, "re");
	while (limits && fgets(line, sizeof(line), limits)) {
		struct cgroup_io_limit limit = {0};

		if (sscanf(line, "%u:%u", &high, &low) != 2)
			continue;
		limit.dev = high << 20 | low;
		for (size_t i = 0; i < IO_LIMITS; i++) {
			limit.kind = io_limits[i].kind;
			if (row == IO_LIMITS)
				value_add(search, path, line, io_limits[i].key, limit);
			limit.kind |= WAFFLE_IO_LIMIT_OLD;
			if (row == i)
				value_add(search, path, line, " ", limit);
		}
	}
	if (limits)
		fclose(limits);
}

/* The root cgroup has neither file. */
static void freezer_add(struct limit_search *search, const char *path, const char *name)
{
	struct cgroup_io_limit limit = {.kind = WAFFLE_IO_LIMIT_FREEZER};
	char file[PATH_MAX + 64];

	snprintf(file, sizeof(file), "%s/%s", path, name);
	if (!access(file, F_OK))
		limit_add(search, path, &limit);
}

static bool folder_limits(const char *path, const char *controllers, void *arg)
{
	struct limit_search *search = arg;
	bool *looked = *controllers ? &search->old_freezer : &search->freezer;

	if (!*looked && (!*controllers || has_controller(controllers, "freezer"))) {
		freezer_add(search, path, *controllers ? "freezer.state" : "cgroup.freeze");
		*looked = true;
	}
	if (!*controllers)
		limits_read(arg, path, IO_LIMITS);
	for (size_t i = 0; i < IO_LIMITS && has_controller(controllers, "blkio"); i++)
		limits_read(arg, path, i);
	return false;
}

size_t cgroup_io_limits(pid_t pid, struct cgroup_io_limit *limits, size_t max)
{
	struct limit_search search = {.limits = limits, .max = max};
	char path[PATH_MAX];

	folders_each(pid, NULL, path, sizeof(path), folder_limits, &search);
	return search.count;
}

/* ---- the limit of processes ---- */

/* The number in a file of a cgroup; UINT64_MAX: "max", or there is no such file. */
static uint64_t value_read(const char *path, const char *name)
{
	char file[PATH_MAX + 64];
	uint64_t value = UINT64_MAX;
	FILE *in;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	in = fopen(file, "re");
	if (in && fscanf(in, "%" SCNu64, &value) != 1)
		value = UINT64_MAX;
	if (in)
		fclose(in);
	return value;
}

static bool has_all_pids(const char *path, const char *controllers, void *arg)
{
	struct limit_search *search = arg;
	struct cgroup_io_limit limit = {.kind = WAFFLE_IO_LIMIT_PIDS};
	uint64_t count;

	(void)controllers;
	limit.limit = value_read(path, "pids.max");
	if (limit.limit == UINT64_MAX)
		return false;
	count = value_read(path, "pids.current");
	if (count == UINT64_MAX || count < limit.limit)
		return false;
	limit_add(search, path, &limit);
	return search->count;
}

bool cgroup_pids_are_used_up(struct cgroup_io_limit *limit, pid_t pid)
{
	struct limit_search search = {.limits = limit, .max = 1};
	char path[PATH_MAX];

	return folders_each(pid, "pids", path, sizeof(path), has_all_pids, &search);
}

/* ---- the weight of CPUs ---- */

#define WEIGHT 100
#define SHARES 1024

static bool lower_weight(const char *path, const char *controllers, void *arg)
{
	struct limit_search *search = arg;
	const struct cgroup_io_limit *least = search->limits;
	struct cgroup_io_limit limit = {.kind = WAFFLE_IO_LIMIT_WEIGHT};
	uint64_t usual = *controllers ? SHARES : WEIGHT, least_usual;

	limit.limit = value_read(path, *controllers ? "cpu.shares" : "cpu.weight");
	if (*controllers)
		limit.kind |= WAFFLE_IO_LIMIT_OLD;
	if (limit.limit >= usual)
		return false;
	least_usual = search->count && least->kind & WAFFLE_IO_LIMIT_OLD ? SHARES : WEIGHT;
	if (search->count && limit.limit * least_usual >= least->limit * usual)
		return false;
	search->count = 0;
	limit_add(search, path, &limit);
	return false;
}

bool cgroup_weight_is_low(struct cgroup_io_limit *limit, pid_t pid)
{
	struct limit_search search = {.limits = limit, .max = 1};
	char path[PATH_MAX];

	folders_each(pid, "cpu", path, sizeof(path), lower_weight, &search);
	return search.count;
}

/* ---- processes ---- */

#define PROCESSES_MAX 1024 /* to read, of a cgroup and those below it */
#define DEPTH_MAX 4

struct process_search {
	void (*each)(pid_t pid, void *arg);
	void *arg;
	unsigned processes;
};

static void processes_read(struct process_search *search, const char *path, unsigned depth)
{
	char name[PATH_MAX];
	struct dirent *entry;
	FILE *processes;
	DIR *folder;
	pid_t pid;

	if ((size_t)snprintf(name, sizeof(name), "%s/cgroup.procs", path) >= sizeof(name))
		return;
	processes = fopen(name, "re");
	while (processes && search->processes++ < PROCESSES_MAX &&
	       fscanf(processes, "%d", &pid) == 1)
		search->each(pid, search->arg);
	if (processes)
		fclose(processes);
	folder = depth < DEPTH_MAX ? opendir(path) : NULL;
	while (folder && search->processes < PROCESSES_MAX && (entry = readdir(folder)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    (size_t)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name) <
			    sizeof(name))
			processes_read(search, name, depth + 1);
	if (folder)
		closedir(folder);
}

void cgroup_processes_each(const char *path, void (*each)(pid_t pid, void *arg), void *arg)
{
	struct process_search search = {.each = each, .arg = arg};

	processes_read(&search, path, 0);
}

/* ---- who uses the memory ---- */

/* Resident memory of a process, the second number in its statm. */
static uint64_t resident_bytes(pid_t pid)
{
	char name[64];
	uint64_t pages = 0;
	FILE *statm;

	snprintf(name, sizeof(name), "/proc/%d/statm", pid);
	statm = fopen(name, "re");
	if (statm && fscanf(statm, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	if (statm)
		fclose(statm);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void user_look(pid_t pid, void *arg)
{
	struct cgroup_user *user = arg;
	uint64_t bytes = resident_bytes(pid);

	if (bytes <= user->bytes)
		return;
	user->bytes = bytes;
	user->pid = (uint32_t)pid;
}

bool cgroup_memory_user(struct cgroup_user *user, const char *path)
{
	*user = (struct cgroup_user){0};
	cgroup_processes_each(path, user_look, user);
	if (user->pid)
		process_comm((pid_t)user->pid, user->comm);
	return user->pid;
}

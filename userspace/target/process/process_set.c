// SPDX-License-Identifier: Apache-2.0
#include "target/process/process_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/process/container_name_internal.h"
#include "util/map.h"

#define KTHREADD 2 /* the parent of all threads of the kernel */

struct process_row {
	pid_t pid, parent;
};

typedef VEC(struct process_row) process_rows;

static int compare_parents(const void *a, const void *b)
{
	const struct process_row *x = a, *y = b;

	return x->parent != y->parent ? (x->parent < y->parent ? -1 : 1)
				      : (x->pid > y->pid) - (x->pid < y->pid);
}

/* All processes but the kernel's own, sorted by parent. */
static int rows_read(process_rows *rows, struct error *err)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int result = 0;

	if (!proc)
		return error_set(err, errno, "/proc: %s", strerror(errno));
	while (!result && (entry = readdir(proc))) {
		struct process_row row = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};

		if (row.pid <= 0)
			continue;
		row.parent = process_parent(row.pid);
		if (row.pid != KTHREADD && row.parent != KTHREADD && !vec_push(rows, row))
			result = error_set(err, ENOMEM, "out of memory");
	}
	closedir(proc);
	if (!result && rows->len)
		qsort(rows->data, rows->len, sizeof(*rows->data), compare_parents);
	return result;
}

/* The index of the first child of a process; rows->len: none. */
static size_t first_child(const process_rows *rows, pid_t parent)
{
	size_t from = 0, to = rows->len;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (rows->data[middle].parent < parent)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Adds the descendants of pids[from …], but nothing that is in `known`. A process is in the set
 * once, so that this ends even if a reused pid makes /proc show a circle. */
static int descendants_add(pid_list *pids, size_t from, struct map *known, const process_rows *rows,
			   struct error *err)
{
	for (size_t i = from; i < pids->len; i++) {
		pid_t parent = pids->data[i];

		for (size_t j = first_child(rows, parent);
		     j < rows->len && rows->data[j].parent == parent; j++) {
			pid_t pid = rows->data[j].pid;

			if (map_get(known, (uint64_t)pid) != MAP_NONE)
				continue;
			if (!map_set(known, (uint64_t)pid, 0) || !vec_push(pids, pid))
				return error_set(err, ENOMEM, "out of memory");
		}
	}
	return 0;
}

/* Makes `known` this process and its descendants. */
static int own_find(struct map *known, const process_rows *rows, struct error *err)
{
	pid_list own = {0};
	int result = 0;

	if (!map_set(known, (uint64_t)getpid(), 0) || !vec_push(&own, getpid()))
		result = error_set(err, ENOMEM, "out of memory");
	result = result ?: descendants_add(&own, 0, known, rows, err);
	vec_free(&own);
	return result;
}

int process_set_add_descendants(pid_list *pids, struct error *err)
{
	process_rows rows = {0};
	struct map known = {0};
	int result = rows_read(&rows, err) ?: own_find(&known, &rows, err);

	for (size_t i = 0; i < pids->len && !result; i++)
		if (!map_set(&known, (uint64_t)pids->data[i], 0))
			result = error_set(err, ENOMEM, "out of memory");
	result = result ?: descendants_add(pids, 0, &known, &rows, err);
	map_free(&known);
	vec_free(&rows);
	return result;
}

long process_set_descendants(const pid_list *pids)
{
	struct error ignored = ERROR_INIT;
	pid_list all = {0};
	long result = 0;

	for (size_t i = 0; i < pids->len && !result; i++)
		if (!vec_push(&all, pids->data[i]))
			result = -ENOMEM;
	result = result ?: process_set_add_descendants(&all, &ignored);
	result = result ?: (long)(all.len - pids->len);
	vec_free(&all);
	return result;
}

/* ---- cgroups ---- */

#define CGROUP_ROOT "/sys/fs/cgroup"

/* "name" or "/name/" is the cgroup "/name". */
static size_t path_trim(const char **path)
{
	size_t len;

	if (!strncmp(*path, CGROUP_ROOT, strlen(CGROUP_ROOT)) &&
	    strchr("/", (*path)[strlen(CGROUP_ROOT)]))
		*path += strlen(CGROUP_ROOT);
	*path += strspn(*path, "/");
	len = strlen(*path);
	while (len && (*path)[len - 1] == '/')
		len--;
	return len;
}

/* In version 1, a folder of /sys/fs/cgroup is named like the controllers, such as "cpu,cpuacct". */
static size_t path_find(const char *name, const char *controllers, const char *path)
{
	size_t len = path_trim(&name), of = strlen(controllers);

	if (of && len >= of && !strncmp(name, controllers, of) && (len == of || name[of] == '/')) {
		name += of;
		len -= of;
		len -= strspn(name, "/");
		name += strspn(name, "/");
	}
	if (!len)
		return 1; /* all are in the root */
	if (path[0] != '/' || strncmp(path + 1, name, len) || !strchr("/", path[1 + len]))
		return 0;
	return 1 + len;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	return len >= strlen(end) && !memcmp(text + len - strlen(end), end, strlen(end));
}

static bool is_component(const char *text, size_t len, const char *name, const char *suffix)
{
	size_t name_len = strlen(name);

	return len == name_len + strlen(suffix) && !memcmp(text, name, name_len) &&
	       ends_with(text, len, suffix);
}

/* Whether a component of a cgroup's path is that of a container with this id, begin of an id, or
 * name. */
static bool is_container(const char *text, size_t len, const char *name)
{
	static const char *const named[] = {"lxc.payload.", "systemd-nspawn@", "machine-"};
	const char *id = container_id_in(text, len);

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		size_t of = strlen(named[i]), rest;

		if (len <= of || memcmp(text, named[i], of))
			continue;
		rest = len - of;
		if (is_component(text + of, rest, name, "") ||
		    is_component(text + of, rest, name, ".service") ||
		    is_component(text + of, rest, name, ".scope"))
			return true;
	}
	return id && strlen(name) < CONTAINER_ID_BYTES && !strncmp(id, name, strlen(name));
}

/* A user may create cgroups of any name below a service, and those of a service's user instance
 * (user@1000.service) are such. So may root of a container, whose cgroup need not be a scope, as
 * "/lxc.payload.web/system.slice/nginx.service". So only what is in slices alone is the system's.
 */
static bool is_unit(const char *text, size_t len, const char *name)
{
	return is_component(text, len, name, strchr(name, '.') ? "" : ".service");
}

size_t cgroup_find(enum cgroup_name kind, const char *name, const char *controllers,
		   const char *path)
{
	size_t end = 0;

	if (kind == CGROUP_PATH)
		return path_find(name, controllers, path);
	while (path[end] == '/') {
		const char *text = path + end + 1;
		size_t len = strcspn(text, "/");

		end += 1 + len;
		if (kind == CGROUP_UNIT ? is_unit(text, len, name) : is_container(text, len, name))
			return end;
		if (kind == CGROUP_UNIT && !ends_with(text, len, ".slice"))
			return 0;
	}
	return 0;
}

/* The line of /proc/PID/cgroup that matches, cut to the part that does. */
struct cgroup_match {
	char path[PATH_MAX];
};

static bool process_matches(pid_t pid, enum cgroup_name kind, const char *name,
			    struct cgroup_match *match)
{
	char file[64], line[PATH_MAX + 256];
	bool found = false;
	FILE *cgroup;

	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	cgroup = fopen(file, "re");
	while (cgroup && !found && fgets(line, sizeof(line), cgroup)) {
		char *controllers = strchr(line, ':'), *path;
		size_t len;

		if (!controllers || !(path = strchr(++controllers, ':')))
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		len = cgroup_find(kind, name, controllers, path);
		found = len && len < sizeof(match->path);
		if (found)
			snprintf(match->path, sizeof(match->path), "%.*s", (int)len, path);
	}
	if (cgroup)
		fclose(cgroup);
	return found;
}

/* The same for the ids of a container's name. Of two, one may be of a container that is stopped. */
static bool process_matches_any(pid_t pid, enum cgroup_name kind, const char *name,
				const struct container_ids *ids, struct cgroup_match *match)
{
	for (unsigned i = 0; i < ids->count; i++)
		if (process_matches(pid, kind, ids->ids[i], match))
			return true;
	return !ids->count && process_matches(pid, kind, name, match);
}

static const char *const option_names[CGROUP_NAMES] = {
	[CGROUP_PATH] = "--cgroup",
	[CGROUP_UNIT] = "--unit",
	[CGROUP_CONTAINER] = "--container",
};

static int none_found(enum cgroup_name kind, const char *name, struct error *err)
{
	static const char *const hints[CGROUP_NAMES] = {
		[CGROUP_PATH] = "/proc/PID/cgroup shows the path of a process",
		[CGROUP_UNIT] = "of a user's unit, give the path: --cgroup",
		[CGROUP_CONTAINER] =
			"of others than Docker, Podman, LXC and systemd-nspawn, give the id",
	};

	return error_set(err, ESRCH, "%s %s: no process is in it; %s", option_names[kind], name,
			 hints[kind]);
}

/* Users may create cgroups that look like a container's, so what fits several is rejected. */
static int match_add(struct cgroup_match *first, const struct cgroup_match *match,
		     enum cgroup_name kind, const char *name, struct error *err)
{
	if (!first->path[0])
		*first = *match;
	else if (kind == CGROUP_CONTAINER && strcmp(first->path, match->path) != 0)
		return error_set(err, EINVAL, "%s %s: fits %s and %s; give one with --cgroup",
				 option_names[kind], name, first->path, match->path);
	return 0;
}

int process_set_add_cgroup(pid_list *pids, enum cgroup_name kind, const char *name,
			   struct error *err)
{
	struct container_ids ids = {.count = 0};
	struct cgroup_match first = {.path = ""};
	process_rows rows = {0};
	struct map own = {0};
	size_t before = pids->len;
	int result = rows_read(&rows, err) ?: own_find(&own, &rows, err);

	if (kind == CGROUP_CONTAINER)
		container_by_name("/", name, &ids);
	for (size_t i = 0; i < rows.len && !result && *name; i++) {
		struct cgroup_match match;
		pid_t pid = rows.data[i].pid;

		if (map_get(&own, (uint64_t)pid) != MAP_NONE ||
		    !process_matches_any(pid, kind, name, &ids, &match))
			continue;
		result = match_add(&first, &match, kind, name, err);
		if (!result && !vec_push(pids, pid))
			result = error_set(err, ENOMEM, "out of memory");
	}
	if (!result && pids->len == before && ids.too_large && !ids.count)
		result = error_set(err, EFBIG,
				   "container %s: the file with the names of containers is too "
				   "large to be read; give the container's id",
				   name);
	else if (!result && pids->len == before)
		result = none_found(kind, name, err);
	map_free(&own);
	vec_free(&rows);
	return result;
}

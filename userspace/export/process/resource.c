// SPDX-License-Identifier: Apache-2.0
#include "export/process/resource_internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Beyond this many processes the oldest is forgotten. */
#define CACHE_MAX 1024u

/* False: the process is gone, or nothing of it can be read. */
static bool process_read(struct resource_process *process, uint32_t pid)
{
	char path[32], file[PATH_MAX], *slash;
	ssize_t len;

	*process = (struct resource_process){.pid = pid, .rank.rank = PROCESS_RANK_NONE};
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	len = readlink(path, file, sizeof(file) - 1);
	if (len <= 0)
		return false;
	file[len] = '\0';
	slash = strrchr(file, '/');
	snprintf(process->executable, sizeof(process->executable), "%.127s",
		 slash ? slash + 1 : file);
	container_id_read(process->container, (pid_t)pid);
	if (!process_rank_read(&process->rank, (pid_t)pid))
		process->rank = (struct process_rank){.rank = PROCESS_RANK_NONE};
	return true;
}

static struct resource_process *cache_find(struct resource_cache *cache, uint32_t pid)
{
	for (size_t i = 0; cache && i < cache->list.len; i++)
		if (cache->list.data[i].pid == pid)
			return &cache->list.data[i];
	return NULL;
}

void resource_find(struct resource_process *found, struct resource_cache *cache, uint32_t pid)
{
	struct resource_process *known = cache_find(cache, pid);

	if (!process_read(found, pid)) {
		if (known)
			*found = *known;
		return;
	}
	if (known) {
		*known = *found;
	} else if (cache) {
		if (cache->list.len == CACHE_MAX) {
			memmove(cache->list.data, cache->list.data + 1,
				(CACHE_MAX - 1) * sizeof(*cache->list.data));
			cache->list.len--;
		}
		vec_push(&cache->list, *found); /* without memory it is read again */
	}
}

void resource_cache_free(struct resource_cache *cache)
{
	vec_free(&cache->list);
}

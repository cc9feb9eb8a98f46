// SPDX-License-Identifier: Apache-2.0
#include "cmd/target_options_internal.h"

#include <string.h>

#include "target/process/process_set.h"
#include "util/map.h"

bool target_options_given(const struct target_options *options)
{
	return options->pids.len || options->comms.len || options->cgroups.len;
}

bool target_options_grow(const struct target_options *options)
{
	return options->tree || options->cgroups.len;
}

static enum cgroup_name cgroup_kind(const struct option_item *item)
{
	return !strcmp(item->row->name, "container") ? CGROUP_CONTAINER
	       : !strcmp(item->row->name, "unit")    ? CGROUP_UNIT
						     : CGROUP_PATH;
}

/* Keeps the first of each. Without memory, some stay twice, which is found later. */
static void duplicates_remove(pid_list *pids)
{
	struct map seen = {0};
	size_t kept = 0;

	for (size_t i = 0; i < pids->len; i++) {
		if (map_get(&seen, (uint64_t)pids->data[i]) != MAP_NONE)
			continue;
		(void)map_set(&seen, (uint64_t)pids->data[i], 1);
		pids->data[kept++] = pids->data[i];
	}
	pids->len = kept;
	map_free(&seen);
}

int target_options_find(pid_list *found, void *arg, struct error *err)
{
	const struct target_options *options = arg;
	int result = 0;

	for (size_t i = 0; i < options->pids.len && !result; i++)
		if (!vec_push(found, (pid_t)options->pids.data[i]))
			result = error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < options->comms.len && !result; i++)
		result = process_find(found, options->comms.data[i].text, err);
	for (size_t i = 0; i < options->cgroups.len && !result; i++)
		result = process_set_add_cgroup(found, cgroup_kind(&options->cgroups.data[i]),
						options->cgroups.data[i].text, err);
	duplicates_remove(found);
	if (!result && options->tree)
		result = process_set_add_descendants(found, err);
	return result;
}

void target_options_free(struct target_options *options)
{
	vec_free(&options->pids);
	vec_free(&options->comms);
	vec_free(&options->cgroups);
}

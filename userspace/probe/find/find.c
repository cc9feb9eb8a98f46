// SPDX-License-Identifier: Apache-2.0
/* Searches a file for calls, in this process or in a worker. */
#include "probe/find/find_internal.h"
#include "probe/find/find_remote_internal.h"
#include "target/worker/worker.h"

/* Selects the descriptions here, since only the tracer can resolve their paths in the view of the
 * process. Whether the file is a program is found later, by its reader. */
static bool lists_make(struct find_lists *lists, const struct call_set *set, const char *path)
{
	for (unsigned exe = 0; exe < 2; exe++) {
		struct set_file file = {.path = path, .is_exe = exe, .process = set->process};

		for (uint32_t i = 0; i < set->entries.len; i++) {
			const struct call_spec *spec = &set->entries.data[i]->spec;

			if (spec->type != SPEC_TRACEPOINT && set_lib_matches(spec, &file) &&
			    !vec_push(&lists->of[exe], i))
				return false;
		}
	}
	return true;
}

int find_alone(struct call_set *set, struct object *object, int fd, struct error *err)
{
	struct find_lists lists = {0};
	int result = 0;

	if (!lists_make(&lists, set, object->path))
		result = error_set(err, ENOMEM, "out of memory");
	else if (worker_is_there())
		result = find_remote(set, object, fd, &lists, err);
	else
		result = find_in_file(set, object, fd, &lists, err);
	vec_free(&lists.of[0]);
	vec_free(&lists.of[1]);
	return result;
}

// SPDX-License-Identifier: Apache-2.0
#include "capture/explain.h"

#include "kernel/kernel.h"
#include "target/elf/objects.h"
#include "util/clock.h"

static int calls_find(struct object *object, int fd, void *arg, struct error *err)
{
	return call_set_wants(arg, object->path) ? call_set_find(arg, object, fd, err) : 0;
}

static int objects_find(struct objects *objects, const struct session_options *options,
			struct error *err)
{
	int result = 0;

	objects->more = options->calls ? calls_find : NULL;
	objects->arg = options->calls;
	for (size_t i = 0; i < options->pid_count && !result; i++) {
		if (options->calls)
			call_set_process(options->calls, options->pids[i]);
		result = objects_add_process(objects, options->pids[i], err);
	}
	if (!result && options->command)
		result = objects_add_command(objects, options->command[0], err);
	return result;
}

static int site_plan(struct explain *explain, struct plan *plan, const struct site_info *info,
		     struct error *err)
{
	struct explain_site site = {.site = info};
	int result = plan_site(plan, info, &site.use, &site.class, err);

	if (!result && !vec_push(&explain->sites, site))
		result = error_set(err, ENOMEM, "out of memory");
	return result;
}

static int sites_plan(struct explain *explain, struct plan *plan, const struct objects *objects,
		      const struct call_set *calls, struct error *err)
{
	const struct call_tracepoint *tracepoints = NULL;
	size_t count = calls ? call_set_tracepoints(calls, &tracepoints) : 0;
	int result = 0;

	for (size_t o = 0; o < objects->list.len; o++) {
		const struct object *object = objects->list.data[o];

		for (size_t i = 0; i < object->sites.len && !result; i++)
			result = site_plan(explain, plan, &object->sites.data[i], err);
	}
	for (size_t i = 0; i < count && !result; i++)
		result = site_plan(explain, plan, &tracepoints[i].site, err);
	return result;
}

/* Loads all programs, so that the kernel verifies them. */
static int classes_load(struct explain *explain, struct kernel *kernel, struct error *err)
{
	const struct plan *plan = explain->plan;
	uint64_t begin = clock_monotonic_ns();

	for (uint32_t i = 0; !plan->is_static && i < plan->classes.len; i++) {
		int result = kernel_class_load(kernel, i, &plan->classes.data[i], err);

		if (result)
			return result;
	}
	explain->load_ns = plan->is_static ? 0 : clock_monotonic_ns() - begin;
	for (uint32_t i = 0; i < plan->classes.len; i++) {
		struct explain_class class = {
			.hit_jited_bytes = kernel_class_jited(kernel, i, false),
			.end_jited_bytes = kernel_class_jited(kernel, i, true),
		};

		if (!vec_push(&explain->classes, class))
			return error_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

int session_explain(const struct session_options *options, const struct session_events *events,
		    int (*show)(const struct explain *explain, void *arg), void *arg,
		    struct error *err)
{
	struct kernel_options kernel_options;
	struct objects objects = {0};
	struct explain explain = {0};
	struct kernel *kernel = NULL;
	struct plan *plan = NULL;
	int result = objects_find(&objects, options, err)
			     ?: session_configure(&kernel_options, &plan, options, err);

	if (!result)
		result = sites_plan(&explain, plan, &objects, options->calls, err);
	if (!result)
		result = kernel_open(&kernel, &kernel_options, err);
	explain.plan = plan;
	explain.sched = kernel_options.sched;
	if (!result)
		result = classes_load(&explain, kernel, err);
	if (!result) {
		plan_warn(plan, events->notify, events->arg);
		result = show(&explain, arg);
	}
	kernel_close(kernel);
	plan_free(plan);
	objects_free(&objects);
	vec_free(&explain.sites);
	vec_free(&explain.classes);
	return result;
}

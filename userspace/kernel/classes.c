// SPDX-License-Identifier: Apache-2.0
/* Loads the generated programs of a filter, and the programs that they continue in
 * (bpf/filter.bpf.c). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "bpf/filter.h"
#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

static const uint32_t deferred_spans[WAFFLE_DEFERRED_SIZE_COUNT] = {
	[WAFFLE_DEFERRED_SMALL] = WAFFLE_DEFERRED_SMALL_MAX,
	[WAFFLE_DEFERRED_MEDIUM] = WAFFLE_DEFERRED_MEDIUM_MAX,
	[WAFFLE_DEFERRED_LARGE] = WAFFLE_DEFERRED_LARGE_MAX,
};

int classes_configure(struct kernel *kernel, const struct kernel_options *options)
{
	struct waffle_bpf *bpf = kernel->bpf;
	bool defers = options->filtered && options->defers;
	struct bpf_program *const programs[] = {
		bpf->progs.filter_hit,     bpf->progs.filter_keep,  bpf->progs.filter_defer,
		bpf->progs.filter_reject,  bpf->progs.filter_end,   bpf->progs.filter_release,
		bpf->progs.filter_discard, bpf->progs.filter_stack,
	};
	int result = 0;

	kernel->filtered = options->filtered;
	kernel->config.keep_children &= options->filtered;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		bpf_program__set_autoload(programs[i], kernel->filtered);
	bpf_program__set_autoload(bpf->progs.filter_thread_exit, kernel->config.keep_children);
	if (!kernel->filtered)
		return 0;
	for (int i = 0; !result && i < WAFFLE_DEFERRED_SIZE_COUNT; i++)
		if (defers)
			result = bpf_map__set_max_entries(deferred_map(kernel, i),
							  deferred_spans[i]);
	if (!result && defers && kernel->config.keep_children)
		result = bpf_map__set_max_entries(bpf->maps.filter_buffers,
						  WAFFLE_CHILD_BUFFERS_MAX);
	return result ?: bpf_map__set_max_entries(bpf->maps.filter_open, WAFFLE_OPEN_MAX)
		      ?: bpf_map__set_max_entries(bpf->maps.filter_classes, WAFFLE_CLASSES_MAX)
		      ?: bpf_map__set_max_entries(bpf->maps.filter_next,
						  WAFFLE_NEXT_COUNT + WAFFLE_CLASSES_MAX);
}

static int next_set(struct kernel *kernel, uint32_t slot, int program)
{
	return bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.filter_next), &slot, &program,
				   BPF_ANY)
		       ? -errno
		       : 0;
}

/* The program for each decision (enum waffle_next). */
static int next_program(const struct kernel *kernel, enum waffle_next next)
{
	const struct waffle_bpf *bpf = kernel->bpf;
	struct bpf_program *const programs[WAFFLE_NEXT_COUNT] = {
		[WAFFLE_NEXT_HIT] = bpf->progs.filter_hit,
		[WAFFLE_NEXT_KEEP] = bpf->progs.filter_keep,
		[WAFFLE_NEXT_DEFER] = bpf->progs.filter_defer,
		[WAFFLE_NEXT_REJECT] = bpf->progs.filter_reject,
		[WAFFLE_NEXT_RELEASE] = bpf->progs.filter_release,
		[WAFFLE_NEXT_DISCARD] = bpf->progs.filter_discard,
		[WAFFLE_NEXT_STACK] = bpf->progs.filter_stack,
	};

	return bpf_program__fd(programs[next]);
}

int classes_open(struct kernel *kernel, struct error *err)
{
	int result = 0;

	for (uint32_t i = 0; kernel->filtered && !result && i < WAFFLE_NEXT_COUNT; i++)
		result = next_set(kernel, i, next_program(kernel, i));
	return result ? error_set(err, -result, "the filter's programs: %s", strerror(-result)) : 0;
}

static void loaded_close(struct loaded_class *loaded)
{
	if (loaded->own)
		close(loaded->hit);
}

void classes_close(struct kernel *kernel)
{
	for (size_t i = 0; i < kernel->classes.len; i++)
		loaded_close(&kernel->classes.data[i]);
	vec_free(&kernel->classes);
}

/* Loads the program at the sites of a class: its own, or the one for its only possible decision. */
static int hit_load(const struct kernel *kernel, const struct plan_class *class, struct error *err)
{
	if (class->hit.insns.len)
		return code_load(kernel, &class->hit, class->deferred, false, err);
	if (class->context)
		return next_program(kernel, WAFFLE_NEXT_REJECT);
	if (!class->is_span)
		return next_program(kernel, WAFFLE_NEXT_HIT);
	return next_program(kernel, class->defers ? WAFFLE_NEXT_DEFER : WAFFLE_NEXT_KEEP);
}

/* Tells the programs about a class, before a site of it can be hit. */
static int class_publish(struct kernel *kernel, uint32_t index, const struct plan_class *class,
			 int end, struct error *err)
{
	struct waffle_class value = {
		.name_bits = class->name_bits,
		.is_span = class->is_span,
		.deferred = class->deferred,
	};
	int result = 0;

	if (bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.filter_classes), &index, &value,
				BPF_ANY))
		result = -errno;
	if (!result && class->defers)
		result = next_set(kernel, WAFFLE_NEXT_COUNT + index, end);
	return result ? error_set(err, -result, "the filter's programs: %s", strerror(-result)) : 0;
}

/* The program at the end of deferred spans lives in the program array. */
static int end_load(struct kernel *kernel, struct loaded_class *loaded, uint32_t index,
		    const struct plan_class *class, struct error *err)
{
	int end = class->defers ? code_load(kernel, &class->end, class->deferred, false, err) : 0;
	int result = end < 0 ? end : class_publish(kernel, index, class, end, err);

	if (class->defers && end >= 0) {
		loaded->end_jited = jited_bytes(end);
		close(end);
	}
	return result;
}

int kernel_class_load(struct kernel *kernel, uint32_t index, const struct plan_class *class,
		      struct error *err)
{
	struct loaded_class loaded = {
		.is_span = class->is_span,
		.own = class->hit.insns.len > 0 && !class->call,
	};
	int result;

	if (index != kernel->classes.len || index >= WAFFLE_CLASSES_MAX)
		return error_set(err, E2BIG, "the filter: too many kinds of sites (at most %d)",
				 WAFFLE_CLASSES_MAX);
	if (class->call) {
		result = call_class_load(kernel, &loaded, index, class, err);
		if (!result && !vec_push(&kernel->classes, loaded))
			result = error_set(err, ENOMEM, "out of memory");
		return result;
	}
	loaded.hit = hit_load(kernel, class, err);
	if (loaded.hit < 0)
		return loaded.hit;
	if (loaded.own)
		loaded.hit_jited = jited_bytes(loaded.hit);
	result = end_load(kernel, &loaded, index, class, err);
	if (!result && !vec_push(&kernel->classes, loaded))
		result = error_set(err, ENOMEM, "out of memory");
	if (result)
		loaded_close(&loaded);
	return result;
}

uint32_t kernel_class_count(const struct kernel *kernel)
{
	return (uint32_t)kernel->classes.len;
}

uint32_t kernel_class_jited(const struct kernel *kernel, uint32_t index, bool at_end)
{
	if (index >= kernel->classes.len)
		return 0;
	return at_end ? kernel->classes.data[index].end_jited
		      : kernel->classes.data[index].hit_jited;
}

// SPDX-License-Identifier: Apache-2.0
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

#include "probe/kernel_internal.h"
#include "waffle.skel.h"

struct armed {
	VEC(struct bpf_link *) links;
	size_t refused; /* probes that another tracer holds */
};

/* Probes of one program, as the kernel wants them: parallel arrays. */
struct batch {
	unsigned long *offsets, *semaphores;
	__u64 *cookies;
	size_t count;
};

static void batch_free(struct batch *batch)
{
	free(batch->offsets);
	free(batch->semaphores);
	free(batch->cookies);
}

/* Collects the object's span ends, or everything else. */
static bool batch_fill(struct batch *batch, const struct object *object, bool ends,
		       uint32_t first_site)
{
	size_t max = object->probes.len;

	*batch = (struct batch){
		.offsets = calloc(max, sizeof(*batch->offsets)),
		.semaphores = calloc(max, sizeof(*batch->semaphores)),
		.cookies = calloc(max, sizeof(*batch->cookies)),
	};
	if (!batch->offsets || !batch->semaphores || !batch->cookies)
		return false;
	for (size_t i = 0; i < max; i++) {
		const struct object_probe *probe = &object->probes.data[i];

		if ((probe->site == OBJECT_SPAN_END) != ends)
			continue;
		batch->offsets[batch->count] = probe->offset;
		batch->semaphores[batch->count] = probe->semaphore_offset;
		batch->cookies[batch->count++] = ends ? 0 : first_site + probe->site;
	}
	return true;
}

static bool link_keep(struct armed *armed, struct bpf_link *link)
{
	if (link && vec_push(&armed->links, link))
		return true;
	bpf_link__destroy(link);
	return false;
}

/*
 * One link for `count` probes from `first` on. The kernel wants the same semaphore of all who probe
 * an instruction (uprobe_register) and refuses all probes (-EINVAL) if another tracer has
 * registered one with another semaphore; then the halves are tried, down to the one that is left
 * out.
 */
static int attach_multi(struct armed *armed, const struct batch *batch, size_t first, size_t count,
			struct bpf_program *program, const char *path, pid_t pid)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, options, .offsets = batch->offsets + first,
		    .ref_ctr_offsets = batch->semaphores + first, .cookies = batch->cookies + first,
		    .cnt = count);
	int result = 0;

	if (!link_keep(armed, bpf_program__attach_uprobe_multi(program, pid, path, NULL, &options)))
		result = -errno;
	if (result != -EINVAL)
		return result;
	if (count == 1) {
		armed->refused++;
		return 0;
	}
	return attach_multi(armed, batch, first, count / 2, program, path, pid)
		       ?: attach_multi(armed, batch, first + count / 2, count - count / 2, program,
				       path, pid);
}

static int attach_each(struct armed *armed, const struct batch *batch, struct bpf_program *program,
		       const char *path, pid_t pid)
{
	for (size_t i = 0; i < batch->count; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = batch->cookies[i],
			    .ref_ctr_offset = batch->semaphores[i]);

		if (!link_keep(armed, bpf_program__attach_uprobe_opts(program, pid, path,
								      batch->offsets[i], &options)))
			return -errno;
	}
	return 0;
}

static int arm_part(struct kernel *kernel, struct armed *armed, const struct object *object,
		    const char *path, pid_t pid, bool ends, uint32_t first_site)
{
	struct waffle_bpf *bpf = kernel->bpf;
	struct bpf_program *program =
		kernel->multi ? (ends ? bpf->progs.span_end_multi : bpf->progs.hit_multi)
			      : (ends ? bpf->progs.span_end_single : bpf->progs.hit_single);
	struct batch batch;
	int result = 0;

	if (!batch_fill(&batch, object, ends, first_site))
		result = -ENOMEM;
	else if (batch.count)
		result = kernel->multi
				 ? attach_multi(armed, &batch, 0, batch.count, program, path, pid)
				 : attach_each(armed, &batch, program, path, pid);
	batch_free(&batch);
	return result;
}

int kernel_arm(struct kernel *kernel, struct armed **armed, const struct object *object,
	       const char *path, pid_t pid, uint32_t first_site, struct error *err)
{
	struct armed *made;
	int result;

	*armed = NULL;
	if (!object->probes.len)
		return 0;
	made = calloc(1, sizeof(*made));
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	/* Ends first: a span that begins armed can then always end so. */
	result = arm_part(kernel, made, object, path, pid, true, first_site)
			 ?: arm_part(kernel, made, object, path, pid, false, first_site);
	if (!result) {
		*armed = made;
		return 0;
	}
	armed_release(made);
	if (result == -ESRCH)
		return error_set(err, ESRCH, "pid %d: it exited while being armed", pid);
	return error_set(err, -result, "arming %s: %s", object->path, strerror(-result));
}

size_t armed_refused(const struct armed *armed)
{
	return armed ? armed->refused : 0;
}

void armed_release(struct armed *armed)
{
	if (!armed)
		return;
	/* Begins go first, so that no span is begun whose end is not seen. */
	for (size_t i = armed->links.len; i > 0; i--)
		bpf_link__destroy(armed->links.data[i - 1]);
	vec_free(&armed->links);
	free(armed);
}

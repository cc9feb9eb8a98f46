// SPDX-License-Identifier: Apache-2.0
/*
 * Attaches programs to the probes of a file. Since Linux 6.6 one link takes many probes; before,
 * each has a perf event of its own. Programs are passed as descriptors, since those of a filter are
 * not part of the skeleton.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/kernel_internal.h"
#include "waffle.skel.h"

#define UPROBE_PMU "/sys/bus/event_source/devices/uprobe/type"
#define UPROBE_SEMAPHORE_SHIFT 32 /* format/ref_ctr_offset beside it: config:32-63 */
#define UPROBE_RETURN 1           /* format/retprobe: config:0 */

struct armed {
	VEC(int) fds;   /* links, and the perf events below them; those of span ends first */
	size_t begins;  /* where the others begin */
	size_t refused; /* probes that another tracer holds */
	struct armed_unsupported unsupported;
};

/* Closing a link waits until no CPU can be in its programs any more (RCU), 40 to 110 ms. Links that
 * are closed in parallel wait together. */
#define CLOSERS_MAX 32

/* A probe, and the program that is attached to it. */
struct row {
	int program;
	unsigned long offset, semaphore;
	uint64_t cookie;
	bool at_return;
};

/* Probes sorted by program, also as the parallel arrays that the kernel takes. */
struct arm_batch {
	struct row *rows;
	unsigned long *offsets, *semaphores;
	__u64 *cookies;
	size_t count;
};

static void batch_free(struct arm_batch *batch)
{
	free(batch->rows);
	free(batch->offsets);
	free(batch->semaphores);
	free(batch->cookies);
}

/* The program for a begin or event; -1: none. */
static int row_program(const struct kernel *kernel, const struct arm_request *request,
		       uint32_t site, uint64_t *cookie)
{
	const struct arm_use *use = request->uses ? &request->uses[site] : NULL;
	bool stack = request->stacks && request->stacks[site];

	*cookie = request->first_site + site;
	if (use && use->use == PLAN_DORMANT)
		return -1;
	if (!use || !kernel->filtered || request->unfiltered)
		return bpf_program__fd(stack ? kernel->bpf->progs.hit_stack
					     : kernel->bpf->progs.hit);
	if (use->class >= kernel->classes.len)
		return -1;
	*cookie |= (uint64_t)use->class << 32 | (stack ? WAFFLE_COOKIE_STACK : 0);
	return kernel->classes.data[use->class].hit;
}

/* The program for a call's probe; -1: none. */
static int row_call(const struct kernel *kernel, const struct arm_request *request,
		    const struct object_probe *probe, uint64_t *cookie)
{
	const struct arm_use *use = request->uses ? &request->uses[probe->site] : NULL;

	/* The filter tests keys of the begin, which an end does not have. If no begin has
	 * passed, the end records nothing. */
	if (use && use->use == PLAN_DORMANT && probe->type != OBJECT_PROBE_END)
		return -1;
	return call_program(kernel, request->first_site + probe->site, probe->type,
			    probe->type == OBJECT_PROBE_END ? NULL : use, cookie);
}

/*
 * The order in which the probes of a file are armed. Ends come before begins, so that every begin
 * that is recorded has an end. But where a pair ends and the next one begins at one instruction
 * (A..A), the end must run first. The kernel runs the program last that was attached first, so such
 * an end is armed last.
 */
enum arm_part { ARM_ENDS, ARM_BEGINS, ARM_ENDS_AT_BEGINS };

static bool begins_there(const struct object *object, const struct object_probe *end)
{
	for (size_t i = 0; i < object->probes.len; i++) {
		const struct object_probe *probe = &object->probes.data[i];

		if (probe->offset == end->offset && probe->type == OBJECT_PROBE_INSTANT)
			return true;
	}
	return false;
}

static enum arm_part probe_part(const struct object *object, const struct object_probe *probe)
{
	if (probe->type == OBJECT_PROBE_END)
		return begins_there(object, probe) ? ARM_ENDS_AT_BEGINS : ARM_ENDS;
	return probe->type == OBJECT_PROBE_LEAVE || probe->type == OBJECT_PROBE_RETURN ||
			       (probe->type == OBJECT_PROBE_SITE && probe->site == OBJECT_SPAN_END)
		       ? ARM_ENDS
		       : ARM_BEGINS;
}

static int row_fill(struct row *row, const struct kernel *kernel, const struct arm_request *request,
		    const struct object_probe *probe)
{
	row->offset = probe->offset;
	row->semaphore = probe->semaphore_offset;
	row->at_return = probe->type == OBJECT_PROBE_LEAVE;
	if (probe->type == OBJECT_PROBE_CONTROL)
		return bpf_program__fd(kernel->bpf->progs.ring_made);
	if (probe->type != OBJECT_PROBE_SITE)
		return row_call(kernel, request, probe, &row->cookie);
	if (probe->site != OBJECT_SPAN_END)
		return row_program(kernel, request, probe->site, &row->cookie);
	return bpf_program__fd(kernel->filtered && !request->unfiltered
				       ? kernel->bpf->progs.filter_end
				       : kernel->bpf->progs.span_end);
}

static int row_compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->program != y->program)
		return x->program < y->program ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Collects the probes of a part. */
static bool batch_fill(struct arm_batch *batch, const struct kernel *kernel,
		       const struct arm_request *request, enum arm_part part)
{
	const struct object *object = request->object;
	size_t max = object->probes.len;

	*batch = (struct arm_batch){
		.rows = calloc(max, sizeof(*batch->rows)),
		.offsets = calloc(max, sizeof(*batch->offsets)),
		.semaphores = calloc(max, sizeof(*batch->semaphores)),
		.cookies = calloc(max, sizeof(*batch->cookies)),
	};
	if (!batch->rows || !batch->offsets || !batch->semaphores || !batch->cookies)
		return false;
	for (size_t i = 0; i < max; i++) {
		const struct object_probe *probe = &object->probes.data[i];
		struct row row = {0};

		if (probe_part(object, probe) != part)
			continue;
		row.program = row_fill(&row, kernel, request, probe);
		if (row.program >= 0)
			batch->rows[batch->count++] = row;
	}
	qsort(batch->rows, batch->count, sizeof(*batch->rows), row_compare);
	for (size_t i = 0; i < batch->count; i++) {
		batch->offsets[i] = batch->rows[i].offset;
		batch->semaphores[i] = batch->rows[i].semaphore;
		batch->cookies[i] = batch->rows[i].cookie;
	}
	return true;
}

/* Stores a new descriptor, or returns the negative errno that it is instead. */
static int fd_keep(struct armed *armed, int fd)
{
	if (fd < 0)
		return -errno;
	if (vec_push(&armed->fds, fd))
		return 0;
	close(fd);
	return -ENOMEM;
}

/* Whether the kernel can't probe the instruction (arch_uprobe_analyze_insn()). Its own ENOTSUPP is
 * 524. */
static bool is_unsupported(int result)
{
	return result == -524 || result == -EOPNOTSUPP || result == -ENOEXEC;
}

/* Leaves a probe out. */
static void leave_out(struct armed *armed, const struct row *row, int result)
{
	if (!is_unsupported(result))
		armed->refused++;
	else if (!armed->unsupported.count++)
		armed->unsupported.first = row->offset;
}

/*
 * Attaches one link to `count` probes from `first` on. All tracers of an instruction must name the
 * same semaphore (uprobe_register). If another tracer has named another one, or if a single
 * instruction can't be probed, the kernel refuses all probes of the link (-EINVAL). Then both
 * halves are tried, and so on, down to the probe that is left out.
 */
static int attach_multi(struct armed *armed, const struct arm_batch *batch, size_t first,
			size_t count, const struct arm_request *request)
{
	LIBBPF_OPTS(bpf_link_create_opts, options,
		    .uprobe_multi = {
			    .path = request->path,
			    .offsets = batch->offsets + first,
			    .ref_ctr_offsets = batch->semaphores + first,
			    .cookies = batch->cookies + first,
			    .cnt = (__u32)count,
			    .flags = batch->rows[first].at_return ? BPF_F_UPROBE_MULTI_RETURN : 0,
			    .pid = request->pid < 0 ? 0 : (__u32)request->pid, /* 0: all */
		    });
	int result = fd_keep(armed, bpf_link_create(batch->rows[first].program, 0,
						    BPF_TRACE_UPROBE_MULTI, &options));

	if (result != -EINVAL && !is_unsupported(result))
		return result;
	if (count == 1) {
		leave_out(armed, &batch->rows[first], result);
		return 0;
	}
	return attach_multi(armed, batch, first, count / 2, request)
		       ?: attach_multi(armed, batch, first + count / 2, count - count / 2, request);
}

/* The type of uprobes among perf events; a negative errno without them. */
static int uprobe_type(void)
{
	FILE *file = fopen(UPROBE_PMU, "re");
	int type = -ENODEV;

	if (!file)
		return -errno;
	if (fscanf(file, "%d", &type) != 1)
		type = -ENODEV;
	fclose(file);
	return type;
}

static int attach_single(struct armed *armed, const struct row *row, int type,
			 const struct arm_request *request)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = row->cookie);
	struct perf_event_attr event = {
		.size = sizeof(event),
		.type = (__u32)type,
		.config = (__u64)row->semaphore << UPROBE_SEMAPHORE_SHIFT |
			  (row->at_return ? UPROBE_RETURN : 0),
		.uprobe_path = (__u64)(uintptr_t)request->path,
		.probe_offset = row->offset,
	};
	int fd, result;

	if (row->semaphore >> UPROBE_SEMAPHORE_SHIFT)
		return -EFBIG;
	fd = (int)syscall(SYS_perf_event_open, &event, request->pid, request->pid < 0 ? 0 : -1, -1,
			  PERF_FLAG_FD_CLOEXEC);
	result = fd_keep(armed, fd);
	if (result == -EINVAL || is_unsupported(result)) { /* as in attach_multi() */
		leave_out(armed, row, result);
		return 0;
	}
	if (!result)
		result =
			fd_keep(armed, bpf_link_create(row->program, fd, BPF_PERF_EVENT, &options));
	if (!result && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		result = -errno;
	return result;
}

static int attach_each(struct armed *armed, const struct arm_batch *batch,
		       const struct arm_request *request)
{
	int type = uprobe_type(), result = type < 0 ? type : 0;

	for (size_t i = 0; !result && i < batch->count; i++)
		result = attach_single(armed, &batch->rows[i], type, request);
	return result;
}

/* Attaches a link for each program, to all of its probes. */
static int attach_programs(struct armed *armed, const struct arm_batch *batch,
			   const struct arm_request *request)
{
	size_t first = 0, end;
	int result = 0;

	for (; !result && first < batch->count; first = end) {
		for (end = first + 1; end < batch->count; end++)
			if (batch->rows[end].program != batch->rows[first].program)
				break;
		result = attach_multi(armed, batch, first, end - first, request);
	}
	return result;
}

static int part_arm(struct kernel *kernel, struct armed *armed, const struct arm_request *request,
		    enum arm_part part)
{
	struct arm_batch batch;
	int result = 0;

	if (!batch_fill(&batch, kernel, request, part))
		result = -ENOMEM;
	else if (batch.count)
		result = kernel->multi ? attach_programs(armed, &batch, request)
				       : attach_each(armed, &batch, request);
	batch_free(&batch);
	return result;
}

bool kernel_arms_many(const struct kernel *kernel)
{
	return kernel->multi;
}

int kernel_arm(struct kernel *kernel, struct armed **armed, const struct arm_request *request,
	       struct error *err)
{
	struct armed *made;
	int result;

	*armed = NULL;
	if (!request->object->probes.len)
		return 0;
	result = kernel_locks_check(kernel, request->object->path, err);
	if (result)
		return result;
	made = calloc(1, sizeof(*made));
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	result = part_arm(kernel, made, request, ARM_ENDS);
	made->begins = made->fds.len;
	result = result ?: part_arm(kernel, made, request, ARM_BEGINS)
			 ?: part_arm(kernel, made, request, ARM_ENDS_AT_BEGINS);
	if (!result) {
		*armed = made;
		return 0;
	}
	armed_release(made);
	if (result == -ESRCH)
		return error_set(err, ESRCH, "pid %d: it exited while being armed", request->pid);
	return error_set(err, -result, "arming %s: %s%s", request->object->path, strerror(-result),
			 result == -EMFILE ? "; its sites stay dormant; raise 'ulimit -n'" : "");
}

size_t armed_refused(const struct armed *armed)
{
	return armed ? armed->refused : 0;
}

struct armed_unsupported armed_unsupported(const struct armed *armed)
{
	return armed ? armed->unsupported : (struct armed_unsupported){0};
}

struct closing {
	const int *fds;
	size_t count, next;
};

static void *close_some(void *arg)
{
	struct closing *closing = arg;
	size_t at;

	while ((at = __atomic_fetch_add(&closing->next, 1, __ATOMIC_RELAXED)) < closing->count)
		close(closing->fds[at]);
	return NULL;
}

static void close_all(const int *fds, size_t count)
{
	struct closing closing = {.fds = fds, .count = count};
	pthread_t threads[CLOSERS_MAX];
	size_t started = 0;

	/* Without a thread it only takes longer. */
	while (started < CLOSERS_MAX && started + 1 < count &&
	       !pthread_create(&threads[started], NULL, close_some, &closing))
		started++;
	close_some(&closing);
	while (started)
		pthread_join(threads[--started], NULL);
}

/* Closes the descriptors of all begins, or of all ends. They are closed together, or one by one
 * if there is no memory for that. */
static void close_part(struct armed *const *list, size_t count, bool begins)
{
	VEC(int) fds = {0};

	for (size_t i = 0; i < count; i++) {
		const struct armed *armed = list[i];
		size_t len = armed ? armed->fds.len : 0;
		size_t middle = armed && armed->begins < len ? armed->begins : len;
		size_t end = begins ? len : middle;

		for (size_t at = begins ? middle : 0; at < end; at++)
			if (!vec_push(&fds, armed->fds.data[at]))
				close(armed->fds.data[at]);
	}
	close_all(fds.data, fds.len);
	vec_free(&fds);
}

void armed_release_all(struct armed *const *list, size_t count)
{
	/* Begins go first, so that no recorded span loses its end. */
	close_part(list, count, true);
	close_part(list, count, false);
	for (size_t i = 0; i < count; i++) {
		if (list[i])
			vec_free(&list[i]->fds);
		free(list[i]);
	}
}

void armed_release(struct armed *armed)
{
	armed_release_all(&armed, 1);
}

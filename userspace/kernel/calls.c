// SPDX-License-Identifier: Apache-2.0
/* Calls: their fetch programs in the kernel, and tracepoints (bpf/call.bpf.c). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/kernel_internal.h"
#include "util/privileges.h"
#include "waffle.skel.h"

#define SEQUENCES_MAX 4096      /* communicators of all processes, in an LRU map */
#define PAIRS_MAX 65536         /* open pairs */
#define PAIRS_DEFERRED_MAX 4096 /* open pairs whose filter decides at the end */
/* Each class may have a program for the entry and one for the return. */
#define NEXT_SLOTS (WAFFLE_CALL_NEXT_COUNT + 2 * WAFFLE_CLASSES_MAX)

/* The programs at calls. calls_load() loads them, not kernel_open(). */
static void programs_autoload(struct waffle_bpf *bpf, bool loaded, bool filtered, bool stacks)
{
	struct bpf_program *const programs[] = {
		bpf->progs.call_instant, bpf->progs.call_inner, bpf->progs.call_enter,
		bpf->progs.call_leave,   bpf->progs.call_ret,   bpf->progs.call_end,
		bpf->progs.call_point,   bpf->progs.call_exec,
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		bpf_program__set_autoload(programs[i], loaded);
	bpf_program__set_autoload(bpf->progs.call_stacks_take, loaded && stacks);
	bpf_program__set_autoload(bpf->progs.call_stacks_take_point, loaded && stacks);
	bpf_program__set_autoload(bpf->progs.call_accept, loaded && filtered);
	bpf_program__set_autoload(bpf->progs.call_defer, loaded && filtered);
	bpf_program__set_autoload(bpf->progs.call_accept_point, loaded && filtered);
}

/* Sets the sizes of the maps, before loading. */
int calls_configure(struct kernel *kernel, const struct kernel_options *options)
{
	struct waffle_bpf *bpf = kernel->bpf;
	struct waffle_config *config = &kernel->config;

	kernel->calls = options->calls;
	programs_autoload(bpf, false, false, false);
	if (!options->calls)
		return 0;
	if (getrandom(&config->call_seed, sizeof(config->call_seed), 0) !=
	    sizeof(config->call_seed))
		return -errno;
	config->call_stacks = options->stacks;
	config->call_filtered = options->filtered;
	if (bpf_map__set_max_entries(bpf->maps.call_next, NEXT_SLOTS) ||
	    bpf_map__set_max_entries(bpf->maps.call_next_point, NEXT_SLOTS) ||
	    (options->filtered &&
	     bpf_map__set_max_entries(bpf->maps.call_pairs_deferred, PAIRS_DEFERRED_MAX)))
		return -EINVAL;
	return bpf_map__set_max_entries(bpf->maps.fetch_programs, WAFFLE_FETCH_PROGRAMS_MAX)
		       ?: bpf_map__set_max_entries(bpf->maps.call_enums, WAFFLE_ENUMS_MAX)
		       ?: bpf_map__set_max_entries(bpf->maps.call_sequences, SEQUENCES_MAX)
			  ?: bpf_map__set_max_entries(bpf->maps.call_pairs, PAIRS_MAX);
}

/* Puts a program into the array of its kind, since tail calls between programs at uprobes and
 * programs at tracepoints are refused. A class may have both. */
static int next_set(const struct bpf_map *map, uint32_t slot, int program)
{
	return bpf_map_update_elem(bpf_map__fd(map), &slot, &program, BPF_ANY) ? -errno : 0;
}

/* Fills the arrays of programs for tail calls. */
static int next_programs_set(const struct kernel *kernel)
{
	const struct waffle_bpf *bpf = kernel->call_bpf;
	const struct {
		struct bpf_map *map;
		struct bpf_program *program;
		enum waffle_call_next slot;
	} rows[] = {
		{bpf->maps.call_next, bpf->progs.call_accept, WAFFLE_CALL_ACCEPT},
		{bpf->maps.call_next, bpf->progs.call_defer, WAFFLE_CALL_DEFER},
		{bpf->maps.call_next_point, bpf->progs.call_accept_point, WAFFLE_CALL_ACCEPT},
		{bpf->maps.call_next, bpf->progs.call_stacks_take, WAFFLE_CALL_STACKS},
		{bpf->maps.call_next_point, bpf->progs.call_stacks_take_point, WAFFLE_CALL_STACKS},
	};
	int result = 0;

	for (size_t i = 0; !result && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (bpf_program__autoload(rows[i].program))
			result = next_set(rows[i].map, rows[i].slot,
					  bpf_program__fd(rows[i].program));
	return result;
}

/* Makes the programs of `to` use the maps, global variables
 * and constants of `from`, which is loaded. */
static int maps_share(const struct waffle_bpf *from, struct waffle_bpf *to)
{
	struct bpf_map *map = NULL, *shared = NULL;
	int result = 0;

	while (!result && (map = bpf_object__next_map(to->obj, map))) {
		shared = bpf_object__next_map(from->obj, shared);
		result = bpf_map__reuse_fd(map, bpf_map__fd(shared));
	}
	return result;
}

/*
 * Most sessions never arm a call, as most programs have neither CUDA nor NCCL. The programs at
 * calls take a third of the time that loading all takes. So the first call loads them, or a thread
 * soon after the start (calls_load_soon()): it opens the object a second time, for them alone.
 */
static int calls_load(struct kernel *kernel)
{
	struct waffle_bpf *bpf = kernel_programs_open(kernel);
	struct bpf_program *program = NULL;
	int result;

	if (!bpf)
		return -errno;
	kernel->call_bpf = bpf;
	while ((program = bpf_object__next_program(bpf->obj, program)))
		bpf_program__set_autoload(program, false);
	programs_autoload(bpf, true, kernel->filtered, kernel->config.call_stacks);
	kernel_site_programs_configure(kernel, bpf);
	result = maps_share(kernel->bpf, bpf) ?: waffle_bpf__load(bpf);
	if (!result)
		result = next_programs_set(kernel);
	if (!result && !(bpf->links.call_exec = bpf_program__attach(bpf->progs.call_exec)))
		result = -errno;
	return result;
}

/* Loads a program into the array that holds it from then on. */
static int next_load(const struct kernel *kernel, const struct filter_code *code, uint32_t slot,
		     bool at_tracepoint, uint32_t *jited, struct error *err)
{
	struct waffle_bpf *bpf = kernel->bpf;
	int program, result;

	if (!code->insns.len)
		return 0;
	program = code_load(kernel, code, WAFFLE_DEFERRED_SMALL, at_tracepoint, err);
	if (program < 0)
		return program;
	result = next_set(at_tracepoint ? bpf->maps.call_next_point : bpf->maps.call_next, slot,
			  program);
	*jited = jited_bytes(program);
	close(program);
	return result ? error_set(err, -result, "the filter's programs: %s", strerror(-result)) : 0;
}

int call_class_load(const struct kernel *kernel, struct loaded_class *loaded, uint32_t index,
		    const struct plan_class *class, struct error *err)
{
	uint32_t slot = WAFFLE_CALL_NEXT_COUNT + index, ignored;

	loaded->hit = -1;
	if (!kernel->calls)
		return 0;
	if (class->hit.insns.len)
		loaded->cookie |= WAFFLE_COOKIE_ENTRY_FILTER;
	if (class->defers)
		loaded->cookie |= WAFFLE_COOKIE_RETURN_FILTER;
	return next_load(kernel, &class->hit, slot, false, &loaded->hit_jited, err)
		       ?: next_load(kernel, &class->end, slot + WAFFLE_CLASSES_MAX, false,
				    &loaded->end_jited, err)
			  ?: next_load(kernel, &class->point, slot, true, &ignored, err);
}

static int map_write(const struct bpf_map *map, uint32_t index, const void *value)
{
	return bpf_map_update_elem(bpf_map__fd(map), &index, value, BPF_ANY) ? -errno : 0;
}

/* Delay before the programs are loaded in the background, to spare short commands the time. */
#define LOAD_AFTER_MS 250

static void *calls_loader(void *arg)
{
	struct kernel *kernel = arg;
	struct pollfd wake = {.fd = kernel->call_wake, .events = POLLIN};

	privileges_keep_tracing(); /* it starts before the tracer gives up its own */
	poll(&wake, 1, LOAD_AFTER_MS);
	if (!__atomic_load_n(&kernel->call_cancelled, __ATOMIC_ACQUIRE))
		kernel->call_result = calls_load(kernel);
	return NULL;
}

/* Loads the programs in a thread, so that the arming of a library that is opened late need not
 * wait for them. */
void calls_load_soon(struct kernel *kernel)
{
	if (!kernel->calls || kernel->call_bpf || kernel->call_loading)
		return;
	kernel->call_wake = eventfd(0, EFD_CLOEXEC);
	if (kernel->call_wake < 0)
		return; /* the first call loads them */
	kernel->call_loading = !pthread_create(&kernel->call_loader, NULL, calls_loader, kernel);
	if (!kernel->call_loading)
		close(kernel->call_wake);
}

/* Waits for the loading thread. */
static void loader_join(struct kernel *kernel)
{
	if (!kernel->call_loading)
		return;
	eventfd_write(kernel->call_wake, 1);
	pthread_join(kernel->call_loader, NULL);
	close(kernel->call_wake);
	kernel->call_loading = false;
}

int kernel_calls_ready(struct kernel *kernel)
{
	loader_join(kernel);
	if (!kernel->call_bpf)
		kernel->call_result = calls_load(kernel);
	return kernel->call_result;
}

int kernel_fetch_program_set(struct kernel *kernel, uint32_t site,
			     const struct waffle_fetch_program *fetch_program)
{
	uint32_t number = (uint32_t)kernel->fetch_programs.len;
	int result = kernel_calls_ready(kernel);

	if (result)
		return result;
	if (number >= WAFFLE_FETCH_PROGRAMS_MAX || site >> WAFFLE_COOKIE_FETCH_PROGRAM_SHIFT)
		return -E2BIG;
	if (!vec_push(&kernel->fetch_programs, site))
		return -ENOMEM;
	return map_write(kernel->bpf->maps.fetch_programs, number, fetch_program);
}

int kernel_enums_set(struct kernel *kernel, const struct waffle_enum *enums, uint32_t count)
{
	int result = count > WAFFLE_ENUMS_MAX ? -E2BIG : 0;

	for (uint32_t i = 0; !result && i < count; i++)
		result = map_write(kernel->bpf->maps.call_enums, i, &enums[i]);
	return result;
}

uint64_t kernel_calls_too_deep(const struct kernel *kernel)
{
	return __atomic_load_n(&kernel->bpf->bss->call_too_deep, __ATOMIC_RELAXED);
}

uint64_t kernel_call_faults(const struct kernel *kernel)
{
	return __atomic_load_n(&kernel->bpf->bss->call_faults, __ATOMIC_RELAXED);
}

/* The cookie of a call's site, with its fetch program and class. False: its fetch program was not
 * set, or there is no such class. */
static bool call_cookie(const struct kernel *kernel, uint32_t site, const struct arm_use *use,
			uint64_t *cookie)
{
	size_t number = kernel->fetch_programs.len;

	while (number &&
	       kernel->fetch_programs.data[number - 1] != site) /* mostly it is the last one */
		number--;
	if (!number || (kernel->filtered && use && use->class >= kernel->classes.len))
		return false;
	*cookie = site | (uint64_t)(number - 1) << WAFFLE_COOKIE_FETCH_PROGRAM_SHIFT;
	if (kernel->filtered && use)
		*cookie |= kernel->classes.data[use->class].cookie | (uint64_t)use->class << 32;
	return true;
}

int call_program(const struct kernel *kernel, uint32_t site, uint8_t type,
		 const struct arm_use *use, uint64_t *cookie)
{
	const struct waffle_bpf *bpf = kernel->call_bpf;

	if (!call_cookie(kernel, site, use, cookie))
		return -1;

	struct bpf_program *const programs[] = {
		[OBJECT_PROBE_INSTANT] = bpf->progs.call_instant,
		[OBJECT_PROBE_INNER] = bpf->progs.call_inner,
		[OBJECT_PROBE_ENTER] = bpf->progs.call_enter,
		[OBJECT_PROBE_LEAVE] = bpf->progs.call_leave,
		[OBJECT_PROBE_RETURN] = bpf->progs.call_ret,
		[OBJECT_PROBE_END] = bpf->progs.call_end,
	};

	return bpf_program__fd(programs[type]);
}

/* Opens a perf event of the tracepoint on a CPU, with the program. */
static int point_attach(struct kernel *kernel, uint64_t id, uint64_t cookie, int cpu)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = cookie);
	struct perf_event_attr event = {
		.size = sizeof(event),
		.type = PERF_TYPE_TRACEPOINT,
		.config = id,
	};
	int fd = (int)syscall(SYS_perf_event_open, &event, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), link;

	if (fd < 0)
		return -errno;
	if (!vec_push(&kernel->point_fds, fd)) {
		close(fd);
		return -ENOMEM;
	}
	link = bpf_link_create(bpf_program__fd(kernel->call_bpf->progs.call_point), fd,
			       BPF_PERF_EVENT, &options);
	if (link < 0)
		return -errno;
	if (!vec_push(&kernel->point_fds, link)) {
		close(link);
		return -ENOMEM;
	}
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

/* A program of a tracepoint's perf event runs on every CPU, whichever the event was opened for
 * (kernel/events/core.c: perf_event_set_bpf_prog, kernel/trace/bpf_trace.c: trace_call_bpf). */
int kernel_tracepoint_attach(struct kernel *kernel, uint64_t id, uint32_t site,
			     const struct arm_use *use)
{
	uint64_t cookie;

	if (!call_cookie(kernel, site, use, &cookie))
		return -ENOENT;
	return point_attach(kernel, id, cookie, 0);
}

void calls_detach(struct kernel *kernel)
{
	__atomic_store_n(&kernel->call_cancelled, true, __ATOMIC_RELEASE);
	loader_join(kernel);
	while (kernel->point_fds.len)
		close(kernel->point_fds.data[--kernel->point_fds.len]);
	vec_free(&kernel->point_fds);
	if (kernel->call_bpf)
		skipped_add(kernel->call_bpf->obj, kernel->skipped);
	waffle_bpf__destroy(kernel->call_bpf);
	kernel->call_bpf = NULL;
}

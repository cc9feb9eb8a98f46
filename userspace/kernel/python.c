// SPDX-License-Identifier: Apache-2.0
/* Watches of functions of Python (bpf/python.bpf.c). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/kernel_internal.h"
#include "util/map.h"
#include "waffle.skel.h"

#define ROUNDS_MAX 8 /* of looking for threads that began meanwhile */

struct kernel_watch {
	struct kernel *kernel;
	uint64_t addresses[2];
	size_t address_count; /* how many of them are in the map */
	VEC(int) events;
	struct map tids; /* those that have events */
};

int python_configure(struct kernel *kernel, const struct kernel_options *options)
{
	struct waffle_bpf *bpf = kernel->bpf;

	bpf_program__set_autoload(bpf->progs.on_watched, options->python);
	return options->python
		       ? bpf_map__set_max_entries(bpf->maps.python_watches, 2 * WAFFLE_WATCHES_MAX)
		       : 0;
}

/* Watches an address for a thread and for all threads that it begins. Negative errno on failure. */
static int event_open(const struct kernel_watch *watch, pid_t tid, uint64_t address, uint32_t type,
		      uint64_t bytes)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.disabled = 1,
		.inherit = 1,
		.inherit_thread = !watch->kernel->config.follow_children,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.remove_on_exec = 1,
		.bp_type = type,
		.bp_addr = address,
		.bp_len = bytes,
	};
	int program = bpf_program__fd(watch->kernel->bpf->progs.on_watched);
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int result;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) && !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return fd;
	result = -errno;
	close(fd);
	return result;
}

/* Others need descriptors, too. */
static bool has_room(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd < limit.rlim_cur / 4 * 3;
}

static int thread_watch(struct kernel_watch *watch, pid_t tid)
{
	int first, count;

	/* For each event, older kernels walk the list of all events, under a lock of the machine.
	 */
	if (watch->tids.len >= KERNEL_WATCH_THREADS_MAX)
		return -EUSERS;
	if (!vec_reserve(&watch->events, 2) || !map_set(&watch->tids, (uint64_t)tid, 1))
		return -ENOMEM;
	/* The number of references first: a begin without its end would look like an endless call.
	 */
	count = event_open(watch, tid, watch->addresses[1], HW_BREAKPOINT_W, HW_BREAKPOINT_LEN_4);
	if (count < 0)
		return count == -ESRCH ? 0 : count;
	watch->events.data[watch->events.len++] = count;
	first = event_open(watch, tid, watch->addresses[0], HW_BREAKPOINT_RW, HW_BREAKPOINT_LEN_1);
	if (first < 0)
		return first == -ESRCH ? 0 : first;
	watch->events.data[watch->events.len++] = first;
	return has_room(first) ? 0 : -EMFILE;
}

/* Watches the threads that are not watched yet. Returns their number, or a negative errno. */
static int threads_watch(struct kernel_watch *watch, pid_t pid)
{
	char path[32];
	struct dirent *entry;
	int result = 0, added = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	folder = opendir(path);
	if (!folder)
		return -ESRCH;
	while (result >= 0 && (entry = readdir(folder))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || map_get(&watch->tids, (uint64_t)tid) != MAP_NONE)
			continue;
		result = thread_watch(watch, tid);
		added++;
	}
	closedir(folder);
	return result < 0 ? result : added;
}

/* The last watch of an address removes it from the map, so that it makes room, and another process
 * may have another function there. */
static void address_remove(struct kernel *kernel, uint64_t address)
{
	uint32_t uses = map_get(&kernel->watched, address);

	if (uses == MAP_NONE)
		return;
	if (uses > 1) {
		map_set(&kernel->watched, address, uses - 1);
		return;
	}
	map_remove(&kernel->watched, address);
	bpf_map_delete_elem(bpf_map__fd(kernel->bpf->maps.python_watches), &address);
}

void kernel_watch_free(struct kernel_watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->events.len; i++)
		close(watch->events.data[i]);
	for (size_t i = 0; i < watch->address_count; i++)
		address_remove(watch->kernel, watch->addresses[i]);
	vec_free(&watch->events);
	map_free(&watch->tids);
	free(watch);
}

static bool is_same(const struct waffle_watch *a, const struct waffle_watch *b)
{
	return a->code == b->code && a->name == b->name && a->first_line == b->first_line &&
	       a->function == b->function && a->first == b->first &&
	       a->python.runtime == b->python.runtime && a->return_opcode == b->return_opcode;
}

/* Two programs may have functions at one address. Their watches must be the same then, as they are
 * if both programs run at fixed addresses. */
static int address_add(struct kernel *kernel, uint64_t address, const struct waffle_watch *function)
{
	int map = bpf_map__fd(kernel->bpf->maps.python_watches), result;
	uint32_t uses = map_get(&kernel->watched, address);
	struct waffle_watch known;

	if (uses != MAP_NONE) {
		if (bpf_map_lookup_elem(map, &address, &known) || !is_same(&known, function))
			return -EEXIST;
		return map_set(&kernel->watched, address, uses + 1) ? 0 : -ENOMEM;
	}
	if (!map_set(&kernel->watched, address, 1))
		return -ENOMEM;
	if (!bpf_map_update_elem(map, &address, function, BPF_ANY))
		return 0;
	result = -errno;
	map_remove(&kernel->watched, address);
	return result;
}

int kernel_watch_python(struct kernel *kernel, struct kernel_watch **watch, pid_t pid,
			const struct waffle_watch *function)
{
	int result = 0;
	struct kernel_watch *made = calloc(1, sizeof(*made));

	*watch = NULL;
	if (!made)
		return -ENOMEM;
#if !defined(__x86_64__)
	/* An aarch64 CPU reports an access before it happens, and the kernel has to step over it.
	 * Some versions do not do that for events with a BPF program, so the thread would not go
	 * on. */
	free(made);
	return -EOPNOTSUPP;
#endif
	made->kernel = kernel;
	made->addresses[0] = function->first;
	made->addresses[1] = function->code;
	for (size_t i = 0; i < 2 && !result; i++) {
		result = address_add(kernel, made->addresses[i], function);
		made->address_count += !result;
	}
	/* A thread that is already watched may begin others, which are watched, too. Others may
	 * begin new ones before we come to them. */
	for (int i = 0; i < ROUNDS_MAX && (!i || result > 0) && result >= 0; i++)
		result = threads_watch(made, pid);
	if (result < 0) {
		kernel_watch_free(made);
		return result;
	}
	*watch = made;
	return 0;
}

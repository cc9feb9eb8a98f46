// SPDX-License-Identifier: Apache-2.0
#include "capture/transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "target/process/image.h"
#include "target/process/injection.h"
#include "target/process/process.h"
#include "target/process/process_tids.h"
#include "util/clock.h"
#include "util/vec.h"
#include "waffle/abi.h"

/* How /proc shows a mapped ring of libwaffle. */
#define RING_PATH "/memfd:waffle-ring"
/* Announced rings and names of a process that are looked at in a second. To map one takes some
 * 30 µs, so a process that makes and unmaps them in a loop keeps the tracer busy for 3 % of a
 * second. A thread whose ring is not looked at uses the kernel, and announces it again. */
#define ANNOUNCED_MAX 1000

struct transport_process {
	pid_t pid;
	bool ring;
	bool filtered;      /* in user space, since it has had rings */
	bool other_version; /* of libwaffle is `why` */
	bool expected;      /* see struct transport_way; its way was not told yet */
	const char *why;    /* see struct transport_way */
	int lock;           /* its directory in /proc; -1: not locked */
	uint32_t announced; /* rings that were looked at in this second … */
	uint64_t second;    /* … which is this one */
};

struct transport {
	struct transport_options options;
	VEC(struct transport_process) processes;
};

const char *transport_mode_choice(size_t mode, const char **help)
{
	static const struct {
		const char *name, *help;
	} modes[TRANSPORT_MODE_COUNT] = {
		[TRANSPORT_AUTO] = {"auto", "through rings where that is possible. The default."},
		[TRANSPORT_RING] = {"ring", "through rings, or the capture fails."},
		[TRANSPORT_USDT] = {"usdt", "through the kernel, as those of other programs."},
	};

	if (mode >= TRANSPORT_MODE_COUNT)
		return NULL;
	*help = modes[mode].help;
	return modes[mode].name;
}

int transport_open(struct transport **transport, const struct transport_options *options,
		   struct error *err)
{
	*transport = calloc(1, sizeof(**transport));
	if (!*transport)
		return error_set(err, ENOMEM, "out of memory");
	(*transport)->options = *options;
	return 0;
}

static void lock_release(struct transport_process *process)
{
	if (process->lock >= 0)
		close(process->lock);
	process->lock = -1;
}

void transport_close(struct transport *transport)
{
	if (!transport)
		return;
	for (size_t i = 0; i < transport->processes.len; i++)
		lock_release(&transport->processes.data[i]);
	vec_free(&transport->processes);
	free(transport);
}

static struct transport_process *process_find_of(const struct transport *transport, pid_t pid)
{
	for (size_t i = 0; i < transport->processes.len; i++)
		if (transport->processes.data[i].pid == pid)
			return &transport->processes.data[i];
	return NULL;
}

/* Locks a process for rings. The kernel drops the lock when this process ends. */
static const char *process_lock(struct transport_process *process)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", process->pid);
	process->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process->lock < 0)
		return errno == EMFILE ? "too many files are open" : "it has ended";
	if (!flock(process->lock, LOCK_EX | LOCK_NB))
		return NULL;
	lock_release(process);
	return "another waffle-bpf traces it";
}

/* Reads a ring or names, which have the same kind of memory. Names that can't be read are not
 * recorded, and no reason not to use rings. */
static int memory_take_over(struct transport *transport, pid_t pid, const struct mapping *mapping)
{
	uint64_t bytes = mapping->end - mapping->start;
	int result = name_set_add(transport->options.names, pid, mapping->start, bytes);

	return result == -EACCES
		       ? ring_set_add(transport->options.rings, pid, mapping->start, bytes, true)
		       : 0;
}

/* Takes over the rings that another tracer has left. If one can't be read, its thread must not
 * write into it, so the process can't use any. */
static const char *rings_take_over(struct transport *transport, pid_t pid)
{
	struct error ignored = ERROR_INIT;
	struct mappings mappings;
	int result = 0;

	if (process_mappings_all(&mappings, pid, &ignored))
		return "it has ended";
	for (size_t i = 0; !result && i < mappings.list.len; i++) {
		const struct mapping *mapping = &mappings.list.data[i];

		if (!strcmp(mapping->path, RING_PATH))
			result = memory_take_over(transport, pid, mapping);
	}
	mappings_free(&mappings);
	return !result             ? NULL
	       : result == -ENOSPC ? "there are too many rings"
				   : "a ring of an earlier tracer can't be mapped";
}

/* In a sandbox, a system call that the program does not expect may end it. */
static const char *sandbox_refuses(pid_t pid)
{
	return process_is_confined(pid) ? "its sandbox (seccomp) may not let it make rings" : NULL;
}

/* Why the hits of a process come through the kernel. NULL: they come through rings. */
static const char *process_choose(struct transport *transport, struct transport_process *process,
				  const struct object *object)
{
	const char *why = transport->options.refusal;

	if (why)
		return why;
	process->other_version = object->transport.version != WAFFLE_TRANSPORT_VERSION;
	if (process->other_version)
		return "its libwaffle is of another version";
	if (!image_may_be_read(process->pid))
		return "its program may not be read";
	why = sandbox_refuses(process->pid)
		      ?: process_lock(process)
		      ?: rings_take_over(transport, process->pid);
	if (why)
		lock_release(process);
	return why;
}

static void process_tell(const struct transport *transport, const struct transport_process *process,
			 bool ended)
{
	const struct transport_options *options = &transport->options;
	struct transport_way way = {.pid = process->pid,
				    .ring = process->ring,
				    .why = process->why,
				    .records = ring_set_taken(options->rings, process->pid),
				    .ended = ended,
				    .expected = process->expected};

	if (!ended || !process->expected)
		options->decided(&way, options->arg);
}

/* It loads a libwaffle, so its way is of interest. */
static void expected_tell(const struct transport *transport, struct transport_process *process)
{
	if (!process->expected)
		return;
	process->expected = false;
	process_tell(transport, process, false);
}

static void process_decide(struct transport *transport, struct transport_process *process,
			   const struct object *object)
{
	if (transport->options.mode != TRANSPORT_USDT) {
		process->why = process_choose(transport, process, object);
		process->ring = !process->why;
		process->filtered |= process->ring;
	}
	process_tell(transport, process, false);
}

/* NULL: out of memory. */
static struct transport_process *process_add(struct transport *transport, pid_t pid)
{
	struct transport_process process = {.pid = pid, .lock = -1};

	return vec_push(&transport->processes, process)
		       ? &transport->processes.data[transport->processes.len - 1]
		       : NULL;
}

/* Whether it is libwaffle-gpu, which is armed before anybody knows whether it will be loaded. */
static bool is_injected(const struct object *object)
{
	return object->path && injection_is_ours(object->path);
}

struct object_probe transport_probe(struct transport *transport, pid_t pid,
				    const struct object *object)
{
	struct transport_process *process = process_find_of(transport, pid);
	bool fits = object->transport.version == WAFFLE_TRANSPORT_VERSION, ring;

	if (!process) {
		process = process_add(transport, pid);
		if (process) {
			process->expected = is_injected(object);
			process_decide(transport, process, object);
		}
	} else if (process->other_version && fits) {
		/* This is another copy of libwaffle, mostly that of the next program. */
		process_decide(transport, process, object);
	}
	if (process && !is_injected(object))
		expected_tell(transport, process);
	ring = process && process->ring && fits;
	return (struct object_probe){.offset =
					     ring ? object->transport.ring : object->transport.usdt,
				     .semaphore_offset = ring ? object->transport.ring_semaphore
							      : object->transport.usdt_semaphore,
				     .site = OBJECT_SPAN_END,
				     .type = OBJECT_PROBE_CONTROL};
}

void transport_loaded(struct transport *transport, pid_t pid)
{
	struct transport_process *process = process_find_of(transport, pid);

	if (process)
		expected_tell(transport, process);
}

void transport_keeps_kernel(struct transport *transport, pid_t pid)
{
	struct transport_process *process =
		process_find_of(transport, pid) ? NULL : process_add(transport, pid);

	if (!process)
		return;
	process->why = "it opened libwaffle late, and the filter asks for more than the site";
	process_tell(transport, process, false);
}

bool transport_has_rings(const struct transport *transport, pid_t pid)
{
	const struct transport_process *process = process_find_of(transport, pid);

	return process && process->ring;
}

bool transport_filters(const struct transport *transport, pid_t pid)
{
	const struct transport_process *process = process_find_of(transport, pid);

	return process && process->filtered;
}

bool transport_confines(struct transport *transport, pid_t pid)
{
	struct transport_process *process = process_find_of(transport, pid);
	const char *why = process && process->ring ? sandbox_refuses(pid) : NULL;

	if (!why)
		return false;
	process->ring = false;
	process->why = why;
	lock_release(process);
	process_tell(transport, process, false);
	return true;
}

void transport_site(struct transport *transport, pid_t pid, uint64_t probe, uint32_t site)
{
	ring_set_site(transport->options.rings, pid, probe, site);
}

void transport_mapped(struct transport *transport, pid_t pid, uint64_t start, uint64_t end,
		      uint64_t ts)
{
	if (transport_has_rings(transport, pid))
		ring_set_mapped(transport->options.rings, pid, start, end, ts);
}

/* Whether one more announcement of a process is looked at. */
static bool announcement_is_granted(struct transport_process *process)
{
	uint64_t second = clock_monotonic_ns() / 1000000000ull;

	if (process->second != second)
		process->announced = 0;
	process->second = second;
	return process->announced++ < ANNOUNCED_MAX && image_may_be_read(process->pid);
}

static void ring_add(struct transport *transport, struct transport_process *process,
		     const struct waffle_rec_ring *rec)
{
	int result = ring_set_add(transport->options.rings, process->pid, rec->address, rec->bytes,
				  false);

	if (result != -ENOSPC || process->why)
		return;
	process->why = "there are too many rings";
	process_tell(transport, process, false);
}

void transport_ring(struct transport *transport, const struct waffle_rec_ring *rec, bool add)
{
	pid_t pid = (pid_t)rec->tgid;
	struct transport_process *process = process_find_of(transport, pid);

	if (!process || !process->ring)
		return;
	expected_tell(transport, process);
	if (!rec->seen_tid) {
		if (add && announcement_is_granted(process))
			name_set_add(transport->options.names, pid, rec->address, rec->bytes);
		return;
	}
	/* Also if the process has ended since: the ring may be one that is mapped. */
	ring_set_thread(transport->options.rings, pid, rec->seen_tid, rec->rec.tid);
	/* If it can't be mapped, its hits come through the kernel. */
	if (add && !ring_set_has(transport->options.rings, pid, rec->address) &&
	    announcement_is_granted(process))
		ring_add(transport, process, rec);
}

void transport_exec(struct transport *transport, pid_t pid)
{
	name_set_ended(transport->options.names, pid);
	ring_set_ended(transport->options.rings, pid);
}

void transport_finish(struct transport *transport)
{
	for (size_t i = 0; i < transport->processes.len; i++)
		process_tell(transport, &transport->processes.data[i], true);
}

void transport_forget(struct transport *transport, pid_t pid)
{
	struct transport_process *process = process_find_of(transport, pid);

	if (process)
		process_tell(transport, process, true);
	name_set_ended(transport->options.names, pid);
	ring_set_forget(transport->options.rings, pid);
	if (!process)
		return;
	lock_release(process);
	*process = transport->processes.data[--transport->processes.len];
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF programs of a session and their maps. Everything that is attached goes away with this
 * process, however it ends: links are held by file descriptors, never pinned.
 */
#ifndef WAFFLE_PROBE_KERNEL_H
#define WAFFLE_PROBE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/record.h"
#include "bpf/shared.h"
#include "target/object.h"
#include "util/error.h"

struct kernel;

struct kernel_options {
	uint64_t ring_bytes;  /* of each ring for spans; rounded up to a power of two */
	uint32_t sched_slots; /* switches that a CPU can hold; rounded up to a power of two */
	bool sched;           /* record the scheduler */
	bool follow;          /* children of targets are targets */
	bool hold_exec;       /* stop a target's new program until kernel_exec_release() */
};

/* Loads programs and maps; nothing is attached yet. */
int kernel_open(struct kernel **kernel, const struct kernel_options *options, struct error *err);
/* Detaches everything that is left and frees. */
void kernel_close(struct kernel *kernel);

int kernel_target_add(struct kernel *kernel, pid_t pid, struct error *err);

/* From now on nothing is recorded, though all is still attached. */
void kernel_finish(struct kernel *kernel);
/* Attaches the scheduler's and the tasks' tracepoints. */
int kernel_attach(struct kernel *kernel, struct error *err);
/* Detaches them; sites are disarmed separately. */
void kernel_detach(struct kernel *kernel);

/* Calls `each` with the state of every thread of the targets now. */
int kernel_snapshot(struct kernel *kernel, bool at_end,
		    int (*each)(const struct waffle_rec *rec, void *arg), void *arg,
		    struct error *err);

/* Memory shared with the programs. */
uint32_t kernel_cpu_count(const struct kernel *kernel);
const struct waffle_cpu *kernel_cpu(const struct kernel *kernel, uint32_t cpu);
struct waffle_tail *kernel_tail(const struct kernel *kernel, uint32_t cpu);
const struct waffle_rec_switch *kernel_slot(const struct kernel *kernel, uint32_t cpu,
					    uint64_t position);
uint32_t kernel_ring_count(const struct kernel *kernel);
int kernel_ring_fd(const struct kernel *kernel, uint32_t ring);

/* This program needs no hold at its exec: it is armed, or has nothing to arm. */
void kernel_exec_known(struct kernel *kernel, dev_t dev, ino_t ino);
/* Lets a held program run. Nothing happens if it was not held. */
void kernel_exec_release(struct kernel *kernel, pid_t pid);

/* ---- arming ---- */

struct armed;

/*
 * Arms the probes of an object in one process (or, pid -1, wherever the file is mapped). `path` is
 * a path to the file that is valid now; site numbers sent with hits are `first_site` + the object's
 * own. NULL in *armed and 0: nothing to arm. The kernel raises the semaphores and lowers them when
 * the link goes.
 */
int kernel_arm(struct kernel *kernel, struct armed **armed, const struct object *object,
	       const char *path, pid_t pid, uint32_t first_site, struct error *err);
/* Probes left out because another tracer holds them with another semaphore, as bpftrace may. */
size_t armed_refused(const struct armed *armed);
void armed_release(struct armed *armed);

#endif

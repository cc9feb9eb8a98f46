// SPDX-License-Identifier: Apache-2.0
/*
 * The stand-in for libnccl.so.2: groups, and the kernels that execute them. A group becomes one
 * kernel per communicator and stream. The kernel first arrives at all its meetings and then waits
 * for each. So a send and a receive in one group do not block each other.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_work.h"

#define GROUP_TASKS 256
#define KERNELS_MAX 32

struct work {
	uint32_t count;
	struct task tasks[];
};

struct group {
	unsigned depth;
	uint32_t tasks, joins;
	struct task task[GROUP_TASKS];
	ncclComm_t join[RANKS_MAX];
};

static __thread struct group group;

/* NCCL contains a runtime of its own and calls the driver, so no function of libcudart is
 * called. */
static struct {
	__typeof__(cuLaunchKernel) *cuLaunchKernel;
	__typeof__(cuModuleLoadData) *cuModuleLoadData;
	__typeof__(cuModuleGetFunction) *cuModuleGetFunction;
	const struct waffle_simulation *simulation;
	CUmodule module;
	struct {
		char name[48];
		CUfunction function;
	} kernels[KERNELS_MAX];
	uint32_t kernel_count;
	bool ready;
} driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;

static void driver_open(void)
{
	void *library = dlopen(SIM_DRIVER_LIBRARY, RTLD_NOW);
	__typeof__(cuGetProcAddress_v2) *get =
		library ? (__typeof__(get))dlsym(library, "cuGetProcAddress_v2") : NULL;

	if (!get)
		return;
	/* With NVIDIA's driver the kernels would have no code, so nothing could be launched. */
	driver.simulation = dlsym(library, "waffle_simulation");
	get("cuLaunchKernel", (void **)&driver.cuLaunchKernel, 12000, 0, NULL);
	get("cuModuleLoadData", (void **)&driver.cuModuleLoadData, 12000, 0, NULL);
	get("cuModuleGetFunction", (void **)&driver.cuModuleGetFunction, 12000, 0, NULL);
	driver.ready = driver.simulation && driver.cuLaunchKernel && driver.cuModuleLoadData &&
		       driver.cuModuleGetFunction &&
		       driver.cuModuleLoadData(&driver.module, NULL) == CUDA_SUCCESS;
}

static uint64_t transfer_ns(uint64_t bytes)
{
	const struct sim_config *config = sim_config();

	return config->collective_latency_ns +
	       (config->collective_bytes_per_ns > 0
			? (uint64_t)((double)bytes / config->collective_bytes_per_ns)
			: 0);
}

static struct meeting *task_meeting(const struct task *task)
{
	struct shared *shared = task->comm->shared;

	return task->peer_from < 0 ? &shared->collectives
				   : &shared->pairs[task->peer_from][task->peer_to];
}

/* The round of its meeting is only known at execution: a graph may execute it many times. */
static uint32_t task_time(const struct task *task)
{
	ncclComm_t comm = task->comm;

	if (task->peer_from < 0)
		return __atomic_fetch_add(&comm->collectives, 1, __ATOMIC_SEQ_CST);
	if (task->peer_from == comm->rank)
		return __atomic_fetch_add(&comm->sent[task->peer_to], 1, __ATOMIC_SEQ_CST);
	return __atomic_fetch_add(&comm->received[task->peer_from], 1, __ATOMIC_SEQ_CST);
}

static uint64_t work_run(void *arg, uint64_t start_ns)
{
	struct work *work = arg;
	uint64_t end = start_ns;

	for (uint32_t i = 0; i < work->count; i++) {
		struct task *task = &work->tasks[i];

		task->time = task_time(task);
		meeting_arrive(task_meeting(task), task->time, start_ns);
	}
	for (uint32_t i = 0; i < work->count; i++) {
		struct task *task = &work->tasks[i];
		uint64_t last = meeting_wait(task_meeting(task), task->time, &task->comm->aborted);

		if (!last)
			return sim_now_ns();
		last += transfer_ns(task->bytes);
		if (last > end)
			end = last;
	}
	return end;
}

static CUfunction kernel_get(const char *kernel)
{
	CUfunction function = NULL;
	char name[48], mangled[128];

	snprintf(name, sizeof(name), "ncclDevKernel_%s", kernel);
	pthread_mutex_lock(&kernels_lock);
	for (uint32_t i = 0; i < driver.kernel_count && !function; i++) {
		if (!strcmp(driver.kernels[i].name, name))
			function = driver.kernels[i].function;
	}
	if (!function && driver.kernel_count < KERNELS_MAX) {
		snprintf(mangled, sizeof(mangled), "_Z%zu%s24ncclDevKernelArgsStorageILm4096EE",
			 strlen(name), name);
		if (driver.cuModuleGetFunction(&function, driver.module, mangled) == CUDA_SUCCESS) {
			driver.simulation->kernel_code(function, work_run);
			snprintf(driver.kernels[driver.kernel_count].name, sizeof(name), "%s",
				 name);
			driver.kernels[driver.kernel_count++].function = function;
		}
	}
	pthread_mutex_unlock(&kernels_lock);
	return function;
}

/* The memory is kept, since a graph may execute it again. */
static ncclResult_t work_launch(struct work *work)
{
	const struct task *first = &work->tasks[0];
	CUfunction function = kernel_get(first->kernel);
	void *params[] = {&work};

	if (!function || driver.cuLaunchKernel(function, 2, 1, 1, 512, 1, 1, 82240, first->stream,
					       params, NULL) != CUDA_SUCCESS)
		return ncclUnhandledCudaError;
	return ncclSuccess;
}

/* Removes the tasks from the group that have the communicator and stream of its first task, and
 * launches them. */
static ncclResult_t group_launch_one(void)
{
	struct work *work = calloc(1, sizeof(*work) + group.tasks * sizeof(work->tasks[0]));
	uint32_t kept = 0;

	if (!work)
		return ncclSystemError;
	for (uint32_t i = 0; i < group.tasks; i++) {
		const struct task *task = &group.task[i];

		if (!work->count ||
		    (task->comm == work->tasks[0].comm && task->stream == work->tasks[0].stream))
			work->tasks[work->count++] = *task;
		else
			group.task[kept++] = *task;
	}
	group.tasks = kept;
	return work_launch(work);
}

static ncclResult_t group_end(void)
{
	ncclResult_t result = ncclSuccess;

	for (uint32_t i = 0; i < group.joins; i++) {
		ncclResult_t joined = comm_wait(group.join[i]);

		if (result == ncclSuccess)
			result = joined;
	}
	group.joins = 0;
	while (group.tasks && result == ncclSuccess)
		result = group_launch_one();
	group.tasks = 0;
	return result;
}

DEFINE_NCCL(ncclGroupStart, void)
{
	SIM_CALL(ncclResult_t);
	group.depth++;
	return ncclSuccess;
}

DEFINE_NCCL(ncclGroupEnd, void)
{
	SIM_CALL(ncclResult_t);
	if (!group.depth)
		return ncclInvalidUsage;
	return --group.depth ? ncclSuccess : group_end();
}

ncclResult_t task_submit(const struct task *task)
{
	pthread_once(&driver_once, driver_open);
	if (!driver.ready)
		return ncclUnhandledCudaError;
	if (!comm_good(task->comm) || group.tasks == GROUP_TASKS)
		return ncclInvalidArgument;
	group.task[group.tasks++] = *task;
	return group.depth ? ncclSuccess : group_end();
}

ncclResult_t join_submit(ncclComm_t comm)
{
	if (group.joins == RANKS_MAX)
		return ncclInvalidUsage;
	group.join[group.joins++] = comm;
	return group.depth ? ncclSuccess : group_end();
}

// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nccl.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "usdt/gpu/control.h"
#include "usdt/gpu/nccl_spans.h"
#include "usdt/gpu/nccl_tasks.h"
#include "usdt/say/say.h"

#define COMMS_MAX 1024u

static struct {
	pthread_mutex_t lock;
	struct nccl_comm comms[COMMS_MAX];
	unsigned version; /* of the interface; 0: NCCL has not come yet */
	int mask;         /* what NCCL shall report now */
	bool wanted;      /* somebody records */
	bool told;        /* that there were too many communicators */
	bool told_armed;  /* only the thread of control.c uses it */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- the mask ---- */

/* The kernel's channels make NCCL's proxy threads look at counters that the GPU writes. */
static int mask_of(unsigned version)
{
	return NCCL_EVENT_COLL | NCCL_EVENT_P2P | NCCL_EVENT_PROXY_OP | NCCL_EVENT_PROXY_STEP |
	       (nccl_layouts[version].kernels ? NCCL_EVENT_KERNEL_CHANNEL : 0) |
	       (nccl_layouts[version].phases ? NCCL_EVENT_KERNEL_PHASE : 0);
}

/* With the lock. NCCL reads the word at each group, without a lock. */
static void mask_set(int mask)
{
	__atomic_store_n(&plugin.mask, mask, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < COMMS_MAX; i++)
		if (plugin.comms[i].used && plugin.comms[i].mask)
			__atomic_store_n(plugin.comms[i].mask, mask, __ATOMIC_RELAXED);
}

/* ---- what NCCL calls ---- */

static int comm_begin(void **context, int *mask, uint64_t hash, const char *name, int nranks,
		      int rank, unsigned version)
{
	struct nccl_comm *comm = NULL;

	pthread_mutex_lock(&plugin.lock);
	for (unsigned i = 0; i < COMMS_MAX && !comm; i++)
		if (!plugin.comms[i].used)
			comm = &plugin.comms[i];
	if (comm) {
		*comm = (struct nccl_comm){
			.hash = hash, .rank = rank, .nranks = nranks, .mask = mask, .used = true};
		if (name)
			snprintf(comm->name, sizeof(comm->name), "%s", name);
		plugin.version = version;
		mask_set(plugin.wanted ? mask_of(version) : 0);
	}
	pthread_mutex_unlock(&plugin.lock);
	/* NCCL does not call finalize() for a NULL context, nor is it given to start(). */
	*context = comm;
	if (!comm && !__atomic_exchange_n(&plugin.told, true, __ATOMIC_RELAXED))
		say_line("NCCL's own view: further communicators are not recorded: there are more "
			 "than %u",
			 COMMS_MAX);
	return 0;
}

/* Starts the thread first, so that the first collective of a recorded program is seen. */
static int init(void **context, int *mask, uint64_t hash, const char *name, int nranks, int rank,
		unsigned version)
{
	int code = errno;

	if (!context || !mask)
		return 0;
	gpu_control_start();
	comm_begin(context, mask, hash, name, nranks, rank, version);
	errno = code;
	return 0;
}

/* The tasks of a communicator may be written later, so its place is kept until then. */
static int finalize(void *context)
{
	struct nccl_comm *comm = context;

	if (!comm)
		return 0;
	pthread_mutex_lock(&plugin.lock);
	comm->mask = NULL;
	__atomic_store_n(&comm->finished, true, __ATOMIC_RELAXED);
	comm->used = nccl_tasks_has(comm);
	pthread_mutex_unlock(&plugin.lock);
	return 0;
}

static int start(void *context, void **handle, const void *description, unsigned version)
{
	if (!handle)
		return 0;
	*handle = NULL;
	if (context && description && __atomic_load_n(&plugin.mask, __ATOMIC_RELAXED))
		*handle = nccl_event_begin(context, &nccl_layouts[version], description, now_ns());
	return 0;
}

static int stop(void *handle)
{
	if (handle)
		nccl_event_end(handle, now_ns());
	return 0;
}

static int record(void *handle, int state, const void *arguments, unsigned version)
{
	uint64_t timer = 0;

	if (!handle)
		return 0;
	if ((state == NCCL_STATE_KERNEL_STOP || state == NCCL_STATE_PHASE_STOP) && arguments &&
	    nccl_layouts[version].timer)
		memcpy(&timer, arguments, sizeof(timer));
	nccl_event_state(handle, state, timer, now_ns());
	return 0;
}

/* ---- the versions ---- */

#define INIT_OLD(version)                                                                          \
	static int init_v##version(void **context, int *mask)                                      \
	{                                                                                          \
		return init(context, mask, 0, NULL, -1, -1, version);                              \
	}
INIT_OLD(1)
INIT_OLD(2)
INIT_OLD(3)

static int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
		   int nranks, int rank, nccl_logger logger)
{
	(void)nodes, (void)logger;
	return init(context, mask, hash, name, nranks, rank, 4);
}

#define INIT_NEW(version)                                                                          \
	static int init_v##version(void **context, uint64_t hash, int *mask, const char *name,     \
				   int nodes, int nranks, int rank, nccl_logger logger)            \
	{                                                                                          \
		(void)nodes, (void)logger;                                                         \
		return init(context, mask, hash, name, nranks, rank, version);                     \
	}
INIT_NEW(5)
INIT_NEW(6)
INIT_NEW(7)

#define PLUGIN(version)                                                                            \
	static int start_v##version(void *context, void **handle, const void *description)         \
	{                                                                                          \
		return start(context, handle, description, version);                               \
	}                                                                                          \
	static int record_v##version(void *handle, int state, const void *arguments)               \
	{                                                                                          \
		return record(handle, state, arguments, version);                                  \
	}                                                                                          \
	extern const struct nccl_plugin ncclProfiler_v##version;                                   \
	__attribute__((visibility("default")))                                                     \
	const struct nccl_plugin ncclProfiler_v##version = {                                       \
		"waffle", (void *)init_v##version, start_v##version,                               \
		stop,     record_v##version,       finalize,                                       \
	};
PLUGIN(1)
PLUGIN(2)
PLUGIN(3)
PLUGIN(4)
PLUGIN(5)
PLUGIN(6)
PLUGIN(7)

/* ---- control ---- */

unsigned nccl_watch(waffle_name_t *const **names)
{
	return nccl_spans_names(names);
}

/* Frees the places of finished communicators whose tasks are all written. Returns how many there
 * are. */
static unsigned comms_look(void)
{
	unsigned count = 0;

	pthread_mutex_lock(&plugin.lock);
	for (unsigned i = 0; i < COMMS_MAX; i++) {
		struct nccl_comm *comm = &plugin.comms[i];

		if (comm->used && comm->finished)
			comm->used = nccl_tasks_has(comm);
		count += comm->used;
	}
	pthread_mutex_unlock(&plugin.lock);
	return count;
}

static void tasks_write(bool all)
{
	struct nccl_task task;
	uint64_t now = now_ns();

	while (nccl_tasks_take(&task, now, all))
		nccl_spans_write(&task);
}

bool nccl_follow(bool wanted)
{
	bool record = wanted && nccl_spans_wanted(), was;
	unsigned version;

	pthread_mutex_lock(&plugin.lock);
	was = plugin.wanted; /* so NCCL may have told something since the last call */
	plugin.wanted = record;
	version = plugin.version;
	if (version)
		mask_set(record ? mask_of(version) : 0);
	pthread_mutex_unlock(&plugin.lock);
	if (!version || !(record || was))
		return record;
	if (!plugin.told_armed)
		nccl_spans_session("armed", version, comms_look(), nccl_losses());
	tasks_write(!record);
	comms_look();
	if (!record)
		nccl_spans_session("disarmed", version, comms_look(), nccl_losses());
	plugin.told_armed = record;
	return record;
}

void nccl_fork_child(void)
{
	pthread_mutex_init(&plugin.lock, NULL);
	nccl_tasks_fork_child();
}

// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nccl_tasks.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define TASKS_MAX 4096u
#define EVENTS_MAX 16384u
#define NONE UINT32_MAX
#define STATE_NONE 0xff

enum { TASK_FREE, TASK_OPEN, TASK_STOPPED };

/* A part of a task: a proxy op, a step of one, a channel of the kernel, or a phase of one. */
struct nccl_part {
	uint32_t task, task_generation;
	uint32_t generation, next;
	uint16_t type; /* enum nccl_event_type; 0: free */
	uint8_t wait;  /* of a step: enum nccl_wait, or STATE_NONE */
	bool barrier;  /* set in a phase in which the kernel waits for the kernels of other ranks */
	/* Of a channel: how long it was at barriers. Of a phase: the GPU's time of its begin. */
	uint64_t gpu_ns;
	void *parent; /* of a phase: the channel's handle */
};

/* Handle: generation (32 bits), kind (1 bit), index plus one. So it is never NULL. */
#define HANDLE_EVENT 0x80000000u

static struct {
	pthread_mutex_t lock;
	struct nccl_task tasks[TASKS_MAX];
	struct nccl_part events[EVENTS_MAX];
	uint32_t used_tasks, used_events; /* of the pools: what is behind was never used */
	uint32_t free_task, free_event;
	uint32_t look; /* where nccl_tasks_take() looks next */
	struct nccl_losses losses;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .free_task = NONE, .free_event = NONE};

static void *handle_make(uint32_t generation, uint32_t index, uint32_t kind)
{
	return (void *)(uintptr_t)((uint64_t)generation << 32 | kind | (index + 1));
}

static struct nccl_task *task_of(void *handle)
{
	uint64_t word = (uintptr_t)handle;
	uint32_t index = (uint32_t)word - 1;

	if (!handle || index >= pool.used_tasks || pool.tasks[index].state == TASK_FREE ||
	    pool.tasks[index].generation != word >> 32)
		return NULL;
	return &pool.tasks[index];
}

static struct nccl_part *event_of(void *handle)
{
	uint64_t word = (uintptr_t)handle;
	uint32_t index = ((uint32_t)word & ~HANDLE_EVENT) - 1;

	if (!((uint32_t)word & HANDLE_EVENT) || index >= pool.used_events ||
	    !pool.events[index].type || pool.events[index].generation != word >> 32)
		return NULL;
	return &pool.events[index];
}

/* The task of a part. NULL: it was written already. */
static struct nccl_task *task_of_event(const struct nccl_part *event)
{
	struct nccl_task *task = &pool.tasks[event->task];

	return task->state != TASK_FREE && task->generation == event->task_generation ? task : NULL;
}

/* ---- times ---- */

/* Adds the time since the last change to the kinds of waiting that went on. */
static void task_pass(struct nccl_task *task, uint64_t now_ns)
{
	for (unsigned i = 0; i < NCCL_WAITS; i++)
		if (task->steps[i] && now_ns > task->changed_ns)
			task->wait_ns[i] += now_ns - task->changed_ns;
	if (now_ns > task->changed_ns)
		task->changed_ns = now_ns;
}

enum nccl_end nccl_task_end(const struct nccl_task *task)
{
	return task->kernel_end_ns  ? NCCL_END_KERNEL
	       : task->proxy_end_ns ? NCCL_END_PROXY
				    : NCCL_END_ENQUEUED;
}

uint64_t nccl_task_end_ns(const struct nccl_task *task)
{
	uint64_t end = task->enqueued_ns ? task->enqueued_ns : task->start_ns;

	end = task->proxy_end_ns > end ? task->proxy_end_ns : end;
	return task->kernel_end_ns > end ? task->kernel_end_ns : end;
}

/* ---- tasks ---- */

static uint64_t read_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static int32_t read_i32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* A longer text is cut. */
static void read_text(char text[NCCL_TEXT_BYTES], const struct nccl_layout *layout,
		      const uint8_t *description, uint16_t at, const char *(*of_number)(unsigned))
{
	const char *from = NULL;

	if (at)
		from = layout->numbers ? of_number(description[at])
				       : (const char *)(uintptr_t)read_u64(description + at);
	text[0] = '\0';
	for (unsigned i = 0; from && from[i] && i < NCCL_TEXT_BYTES - 1; i++) {
		text[i] = from[i];
		text[i + 1] = '\0';
	}
}

static int read_datatype(const struct nccl_layout *layout, const uint8_t *description, uint16_t at)
{
	if (layout->numbers)
		return description[at];
	return nccl_type_number((const char *)(uintptr_t)read_u64(description + at));
}

static void task_fill(struct nccl_task *task, const struct nccl_layout *layout,
		      const struct nccl_task_layout *at, const uint8_t *description)
{
	task->rank = read_i32(description + NCCL_AT_RANK);
	task->peer = at->peer ? read_i32(description + at->peer) : -1;
	task->comm_hash = at->hash ? read_u64(description + at->hash) : 0;
	task->seq = at->seq ? read_u64(description + at->seq) : 0;
	task->count = read_u64(description + at->count);
	task->channels = at->channels ? description[at->channels] : 0;
	read_text(task->func, layout, description, at->func, nccl_function_name);
	read_text(task->algo, layout, description, at->algo, nccl_algorithm_name);
	read_text(task->proto, layout, description, at->proto, nccl_protocol_name);
	task->datatype = read_datatype(layout, description, at->datatype);
}

static void task_free(struct nccl_task *task)
{
	task->state = TASK_FREE;
	task->generation++;
	task->next = pool.free_task;
	pool.free_task = (uint32_t)(task - pool.tasks);
}

static struct nccl_task *task_new(void)
{
	struct nccl_task *task;
	uint32_t index = pool.free_task, generation;

	if (index != NONE)
		pool.free_task = pool.tasks[index].next;
	else if (pool.used_tasks < TASKS_MAX)
		index = pool.used_tasks++;
	else
		return NULL;
	task = &pool.tasks[index];
	generation = task->generation;
	*task = (struct nccl_task){.generation = generation, .state = TASK_OPEN};
	return task;
}

static void *task_begin(struct nccl_comm *comm, const struct nccl_layout *layout,
			const uint8_t *description, bool message, uint64_t now_ns)
{
	struct nccl_task *task = task_new();

	if (!task) {
		pool.losses.tasks++;
		return NULL;
	}
	task->comm = comm;
	task->message = message;
	task->kernels = layout->kernels;
	task->start_ns = task->changed_ns = now_ns;
	task_fill(task, layout, message ? &layout->p2p : &layout->coll, description);
	return handle_make(task->generation, (uint32_t)(task - pool.tasks), 0);
}

/* ---- parts ---- */

/* Takes a part of the pool. NULL: there is none. */
static struct nccl_part *part_new(uint16_t type, const struct nccl_task *task)
{
	uint32_t index = pool.free_event, generation;
	struct nccl_part *part;

	if (index != NONE) {
		pool.free_event = pool.events[index].next;
	} else if (pool.used_events < EVENTS_MAX) {
		index = pool.used_events++;
	} else {
		pool.losses.events++;
		return NULL;
	}
	part = &pool.events[index];
	generation = part->generation;
	*part = (struct nccl_part){.task = (uint32_t)(task - pool.tasks),
				   .task_generation = task->generation,
				   .generation = generation,
				   .type = type,
				   .wait = STATE_NONE};
	return part;
}

static void channel_begin(struct nccl_task *task, const struct nccl_layout *layout,
			  const uint8_t *description, uint64_t now_ns)
{
	uint64_t timer = layout->timer ? read_u64(description + NCCL_AT_TIMER) : 0;

	if (!task->kernel_ns)
		task->kernel_ns = now_ns;
	if (timer && (!task->gpu_begin || timer < task->gpu_begin))
		task->gpu_begin = timer;
}

static void phase_begin(struct nccl_part *phase, void *parent, const uint8_t *description)
{
	phase->parent = parent;
	phase->barrier = description[NCCL_AT_PHASE] == NCCL_PHASE_INITIAL_SYNC ||
			 description[NCCL_AT_PHASE] == NCCL_PHASE_FINAL_SYNC;
	phase->gpu_ns = read_u64(description + NCCL_AT_PHASE_TIMER);
}

/* The task of an event that begins. NULL: it was written already, or is of another process: with
 * PXN the parent of a proxy op may be a handle of one. */
static struct nccl_task *task_of_parent(uint16_t type, void *parent, const uint8_t *description)
{
	bool of_part = type == NCCL_EVENT_PROXY_STEP || type == NCCL_EVENT_KERNEL_PHASE;
	const struct nccl_part *part = of_part ? event_of(parent) : NULL;

	if (type == NCCL_EVENT_PROXY_OP && read_i32(description + NCCL_AT_PID) != (int32_t)getpid())
		return NULL;
	return part ? task_of_event(part) : task_of(parent);
}

static void *event_begin(uint16_t type, const struct nccl_layout *layout,
			 const uint8_t *description, uint64_t now_ns)
{
	void *parent = (void *)(uintptr_t)read_u64(description + NCCL_AT_PARENT);
	struct nccl_task *task = task_of_parent(type, parent, description);
	struct nccl_part *part;

	if (!task) {
		pool.losses.late++;
		return NULL;
	}
	part = part_new(type, task);
	if (!part)
		return NULL;
	task_pass(task, now_ns);
	task->open++;
	task->has_steps |= type == NCCL_EVENT_PROXY_STEP;
	task->has_phases |= type == NCCL_EVENT_KERNEL_PHASE;
	if (type == NCCL_EVENT_KERNEL_CHANNEL)
		channel_begin(task, layout, description, now_ns);
	else if (type == NCCL_EVENT_KERNEL_PHASE)
		phase_begin(part, parent, description);
	return handle_make(part->generation, (uint32_t)(part - pool.events), HANDLE_EVENT);
}

static void step_wait(const struct nccl_part *event, struct nccl_task *task, uint8_t wait,
		      uint64_t now_ns)
{
	task_pass(task, now_ns);
	if (event->wait != STATE_NONE && task->steps[event->wait])
		task->steps[event->wait]--;
	if (wait != STATE_NONE)
		task->steps[wait]++;
}

static void event_end(struct nccl_part *event, uint64_t now_ns)
{
	struct nccl_task *task = task_of_event(event);

	if (task) {
		step_wait(event, task, STATE_NONE, now_ns);
		task->open -= task->open > 0;
		if (event->type == NCCL_EVENT_KERNEL_CHANNEL) {
			task->kernel_end_ns = now_ns;
			task->ended++;
			if (event->gpu_ns > task->barrier_ns)
				task->barrier_ns = event->gpu_ns;
		} else if (event->type != NCCL_EVENT_KERNEL_PHASE) {
			task->proxy_end_ns = now_ns;
		}
	}
	event->type = 0;
	event->generation++;
	event->next = pool.free_event;
	pool.free_event = (uint32_t)(event - pool.events);
}

/* ---- what NCCL calls ---- */

void *nccl_event_begin(struct nccl_comm *comm, const struct nccl_layout *layout,
		       const uint8_t *description, uint64_t now_ns)
{
	uint64_t type = layout->wide_type ? read_u64(description) : *description;
	void *handle = NULL;

	pthread_mutex_lock(&pool.lock);
	switch (type) {
	case NCCL_EVENT_COLL:
	case NCCL_EVENT_P2P:
		handle = task_begin(comm, layout, description, type == NCCL_EVENT_P2P, now_ns);
		break;
	case NCCL_EVENT_PROXY_OP:
	case NCCL_EVENT_PROXY_STEP:
	case NCCL_EVENT_KERNEL_CHANNEL:
	case NCCL_EVENT_KERNEL_PHASE:
		handle = event_begin((uint16_t)type, layout, description, now_ns);
		break;
	default: /* groups and what newer versions have: their parts refer to no group */
		break;
	}
	pthread_mutex_unlock(&pool.lock);
	return handle;
}

void nccl_event_end(void *handle, uint64_t now_ns)
{
	struct nccl_task *task;
	struct nccl_part *event;

	pthread_mutex_lock(&pool.lock);
	task = task_of(handle);
	event = event_of(handle);
	if (event) {
		event_end(event, now_ns);
	} else if (task && task->state == TASK_OPEN) {
		task_pass(task, now_ns);
		task->enqueued_ns = now_ns;
		task->state = TASK_STOPPED;
	}
	pthread_mutex_unlock(&pool.lock);
}

/* Adds a phase to its channel, which NCCL ends after its phases. */
static void phase_end(const struct nccl_part *phase, uint64_t timer)
{
	struct nccl_part *channel = event_of(phase->parent);

	if (channel && channel->type == NCCL_EVENT_KERNEL_CHANNEL && phase->barrier &&
	    phase->gpu_ns && timer > phase->gpu_ns)
		channel->gpu_ns += timer - phase->gpu_ns;
}

void nccl_event_state(void *handle, int state, uint64_t timer, uint64_t now_ns)
{
	static const uint8_t waits[] = {
		[NCCL_STATE_SEND_GPU_WAIT] = NCCL_WAIT_GPU + 1,
		[NCCL_STATE_SEND_WAIT] = NCCL_WAIT_NETWORK + 1,
		[NCCL_STATE_RECV_WAIT] = NCCL_WAIT_RECEIVE + 1,
		[NCCL_STATE_RECV_FLUSH_WAIT] = NCCL_WAIT_NETWORK + 1,
		[NCCL_STATE_RECV_GPU_WAIT] = NCCL_WAIT_GPU + 1,
		[NCCL_STATE_SEND_PEER_WAIT] = NCCL_WAIT_PEER + 1,
	};
	uint8_t wait = state >= 0 && (unsigned)state < sizeof(waits) ? waits[state] : 0;
	struct nccl_task *task;
	struct nccl_part *event;

	pthread_mutex_lock(&pool.lock);
	event = event_of(handle);
	task = event ? task_of_event(event) : NULL;
	if (task && event->type == NCCL_EVENT_PROXY_STEP && wait) {
		step_wait(event, task, (uint8_t)(wait - 1), now_ns);
		event->wait = (uint8_t)(wait - 1);
	} else if (task && event->type == NCCL_EVENT_KERNEL_CHANNEL &&
		   state == NCCL_STATE_KERNEL_STOP && timer > task->gpu_end) {
		task->gpu_end = timer;
	} else if (task && event->type == NCCL_EVENT_KERNEL_PHASE &&
		   state == NCCL_STATE_PHASE_STOP) {
		phase_end(event, timer);
	}
	pthread_mutex_unlock(&pool.lock);
}

/* ---- what is complete ---- */

/* How long we wait for more of a task that may be complete. */
#define IDLE_NS UINT64_C(1000000000)
#define IDLE_NO_KERNEL_NS UINT64_C(30000000000) /* the GPU may have other work before */

static bool is_complete(const struct nccl_task *task, uint64_t now_ns)
{
	uint64_t idle_ns = task->kernels && !task->ended ? IDLE_NO_KERNEL_NS : IDLE_NS;

	if (__atomic_load_n(&task->comm->finished, __ATOMIC_RELAXED))
		return true;
	if (task->state != TASK_STOPPED || task->open)
		return false;
	return (task->channels && task->ended >= task->channels) ||
	       now_ns >= task->changed_ns + idle_ns;
}

bool nccl_tasks_take(struct nccl_task *task, uint64_t now_ns, bool all)
{
	bool found = false;

	pthread_mutex_lock(&pool.lock);
	for (uint32_t i = 0; i < pool.used_tasks && !found; i++) {
		struct nccl_task *at = &pool.tasks[pool.look++ % pool.used_tasks];

		found = at->state != TASK_FREE && (all || is_complete(at, now_ns));
		if (!found)
			continue;
		if (at->open)
			task_pass(at, now_ns);
		*task = *at;
		task_free(at);
	}
	pthread_mutex_unlock(&pool.lock);
	return found;
}

bool nccl_tasks_has(const struct nccl_comm *comm)
{
	bool has = false;

	pthread_mutex_lock(&pool.lock);
	for (uint32_t i = 0; i < pool.used_tasks && !has; i++)
		has = pool.tasks[i].state != TASK_FREE && pool.tasks[i].comm == comm;
	pthread_mutex_unlock(&pool.lock);
	return has;
}

struct nccl_losses nccl_losses(void)
{
	struct nccl_losses losses;

	pthread_mutex_lock(&pool.lock);
	losses = pool.losses;
	pthread_mutex_unlock(&pool.lock);
	return losses;
}

void nccl_tasks_fork_child(void)
{
	pthread_mutex_init(&pool.lock, NULL);
}

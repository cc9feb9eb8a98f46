// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nccl_spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "waffle_track.h"

#define CATEGORY "nccl.profiler"
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The functions of NCCL (ncclFuncToString() in its src/collectives.cc). Others have the last name,
 * and so does an unknown one. */
static const struct {
	const char *name;
	bool message;
} functions[] = {
	{"AllReduce", false},  {"AllGather", false}, {"ReduceScatter", false}, {"Broadcast", false},
	{"Reduce", false},     {"AlltoAll", false},  {"Gather", false},        {"Scatter", false},
	{"Send", true},        {"Recv", true},       {"SendRecv", true},       {"message", true},
	{"collective", false},
};
#define FUNCTIONS COUNT(functions)
#define SESSION FUNCTIONS /* its index among the names */

/* The keys of a span, in this order. What is not known of a task has no key. */
enum key {
	KEY_COMM,
	KEY_RANK,
	KEY_NRANKS,
	KEY_SEQ,
	KEY_PEER,
	KEY_BYTES,
	KEY_DATATYPE,
	KEY_ALGO,
	KEY_PROTO,
	KEY_CHANNELS,
	KEY_END,
	KEY_QUEUED,
	KEY_GPU,
	KEY_GPU_WAIT,
	KEY_PEER_WAIT,
	KEY_NETWORK_WAIT,
	KEY_RECEIVE_WAIT,
	KEYS
};

static const waffle_key_t keys[KEYS] = {
	[KEY_COMM] = {WAFFLE_KEY_PTR, "comm"},
	[KEY_RANK] = {WAFFLE_KEY_I64, "rank"},
	[KEY_NRANKS] = {WAFFLE_KEY_I64, "nranks"},
	[KEY_SEQ] = {WAFFLE_KEY_U64, "seq"},
	[KEY_PEER] = {WAFFLE_KEY_I64, "peer"},
	[KEY_BYTES] = {WAFFLE_KEY_U64, "bytes"},
	[KEY_DATATYPE] = {WAFFLE_KEY_STR, "datatype"},
	[KEY_ALGO] = {WAFFLE_KEY_STR, "algo"},
	[KEY_PROTO] = {WAFFLE_KEY_STR, "proto"},
	[KEY_CHANNELS] = {WAFFLE_KEY_U64, "channels"},
	[KEY_END] = {WAFFLE_KEY_STR, "end"},
	[KEY_QUEUED] = {WAFFLE_KEY_U64, "queued_ns"},
	[KEY_GPU] = {WAFFLE_KEY_U64, "gpu_ns"},
	[KEY_GPU_WAIT] = {WAFFLE_KEY_U64, "gpu_wait_ns"},
	[KEY_PEER_WAIT] = {WAFFLE_KEY_U64, "peer_wait_ns"},
	[KEY_NETWORK_WAIT] = {WAFFLE_KEY_U64, "network_wait_ns"},
	[KEY_RECEIVE_WAIT] = {WAFFLE_KEY_U64, "receive_wait_ns"},
};
_Static_assert(KEYS - 1 <= WAFFLE_KEYS_MAX, "a task has a number or a peer");

static const waffle_key_t session_keys[] = {
	{WAFFLE_KEY_STR, "state"}, {WAFFLE_KEY_U64, "version"},     {WAFFLE_KEY_U64, "comms"},
	{WAFFLE_KEY_U64, "lost"},  {WAFFLE_KEY_U64, "lost_events"}, {WAFFLE_KEY_U64, "late"},
};

/* A task's values, and which of them it has. */
struct nccl_values {
	waffle_value_t list[KEYS];
	uint32_t has; /* bits by enum key */
};

/* Names of functions with the keys that a task has. */
#define SHAPES_MAX 256u
struct shape {
	unsigned function;
	uint32_t has;
	waffle_name_t *name;
};

static waffle_name_t *names[FUNCTIONS + 1];
static struct shape shapes[SHAPES_MAX];
static unsigned shape_count;

static waffle_name_t *name_make(int kind, const char *name, const waffle_key_t *list,
				unsigned count)
{
	return waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
						      .kind = kind,
						      .name = name,
						      .category = CATEGORY,
						      .keys = list,
						      .key_count = count});
}

/* The name of a function with these keys. NULL: there are too many. */
static waffle_name_t *name_of(unsigned function, uint32_t has)
{
	waffle_key_t list[KEYS];
	unsigned count = 0;

	for (unsigned i = 0; i < shape_count; i++)
		if (shapes[i].function == function && shapes[i].has == has)
			return shapes[i].name;
	if (shape_count == SHAPES_MAX)
		return NULL;
	for (unsigned i = 0; i < KEYS; i++)
		if (has & 1u << i)
			list[count++] = keys[i];
	shapes[shape_count] = (struct shape){
		function, has, name_make(WAFFLE_SITE_SPAN, functions[function].name, list, count)};
	return shapes[shape_count++].name;
}

unsigned nccl_spans_names(waffle_name_t *const **list)
{
	uint32_t all = (1u << KEYS) - 1;

	for (unsigned i = 0; i < FUNCTIONS && !names[i]; i++)
		names[i] = name_of(i, all & ~(1u << (functions[i].message ? KEY_SEQ : KEY_PEER)));
	if (!names[SESSION])
		names[SESSION] =
			name_make(WAFFLE_SITE_EVENT, "session", session_keys, COUNT(session_keys));
	*list = names;
	return FUNCTIONS + 1;
}

bool nccl_spans_wanted(void)
{
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (names[i] && waffle_name_armed(names[i]))
			return true;
	return false;
}

static unsigned function_of(const struct nccl_task *task)
{
	for (unsigned i = 0; i < FUNCTIONS - 2; i++)
		if (functions[i].message == task->message && !strcmp(functions[i].name, task->func))
			return i;
	return task->message ? FUNCTIONS - 2 : FUNCTIONS - 1;
}

static waffle_track_t *track_of(const struct nccl_task *task, uint64_t hash)
{
	const char *own = task->comm->name;
	char name[64], group[64];

	snprintf(name, sizeof(name), "%s%scomm %016" PRIx64, own, *own ? " " : "", hash);
	snprintf(group, sizeof(group), "NCCL rank %" PRId32, task->rank);
	return waffle_track(name, group, NULL);
}

static void value_set(struct nccl_values *values, enum key key, bool known, waffle_value_t value)
{
	values->list[key] = value;
	if (known)
		values->has |= 1u << key;
}

static void text_set(struct nccl_values *values, enum key key, const char *text)
{
	value_set(values, key, text && *text, waffle_str(text));
}

static void number_set(struct nccl_values *values, enum key key, bool known, uint64_t number)
{
	value_set(values, key, known, waffle_u64(number));
}

static const char *end_text(const struct nccl_task *task)
{
	static const char *const texts[] = {[NCCL_END_ENQUEUED] = "enqueued",
					    [NCCL_END_PROXY] = "proxy",
					    [NCCL_END_KERNEL] = "kernel"};

	return texts[nccl_task_end(task)];
}

static void values_fill(struct nccl_values *values, const struct nccl_task *task, uint64_t hash)
{
	unsigned bytes = task->datatype < 0 ? 0 : nccl_type_bytes((unsigned)task->datatype);
	const char *type = task->datatype < 0 ? NULL : nccl_type_name((unsigned)task->datatype);
	bool gpu = task->gpu_begin && task->gpu_end >= task->gpu_begin;
	static const enum key waits[NCCL_WAITS] = {[NCCL_WAIT_GPU] = KEY_GPU_WAIT,
						   [NCCL_WAIT_PEER] = KEY_PEER_WAIT,
						   [NCCL_WAIT_NETWORK] = KEY_NETWORK_WAIT,
						   [NCCL_WAIT_RECEIVE] = KEY_RECEIVE_WAIT};

	value_set(values, KEY_COMM, hash, waffle_ptr((const void *)(uintptr_t)hash));
	value_set(values, KEY_RANK, true, waffle_i64(task->rank));
	value_set(values, KEY_NRANKS, task->comm->nranks > 0, waffle_i64(task->comm->nranks));
	number_set(values, KEY_SEQ, !task->message, task->seq);
	value_set(values, KEY_PEER, task->message, waffle_i64(task->peer));
	number_set(values, KEY_BYTES, bytes, task->count * bytes);
	text_set(values, KEY_DATATYPE, type);
	text_set(values, KEY_ALGO, task->algo);
	text_set(values, KEY_PROTO, task->proto);
	number_set(values, KEY_CHANNELS, task->channels, task->channels);
	text_set(values, KEY_END, end_text(task));
	number_set(values, KEY_QUEUED, task->kernel_ns, task->kernel_ns - task->start_ns);
	number_set(values, KEY_GPU, gpu, task->gpu_end - task->gpu_begin);
	for (unsigned i = 0; i < NCCL_WAITS; i++)
		number_set(values, waits[i], task->has_steps, task->wait_ns[i]);
	/* A kernel on symmetric memory waits for its peers itself, and needs no proxy. */
	if (task->has_phases && !task->has_steps)
		number_set(values, KEY_PEER_WAIT, true, task->barrier_ns);
}

void nccl_spans_write(const struct nccl_task *task)
{
	uint64_t end_ns = nccl_task_end_ns(task);
	uint64_t hash = task->comm_hash ? task->comm_hash : task->comm->hash;
	unsigned function = function_of(task), count = 0;
	struct nccl_values values = {.has = 0};
	waffle_value_t list[KEYS];
	waffle_name_t *name;

	if (!names[function] || !waffle_name_armed(names[function]))
		return;
	values_fill(&values, task, hash);
	name = name_of(function, values.has);
	for (unsigned i = 0; i < KEYS; i++)
		if (values.has & 1u << i)
			list[count++] = values.list[i];
	if (name)
		waffle_span_complete_in(track_of(task, hash), name, (waffle_context_t){0},
					task->start_ns, end_ns - task->start_ns, list, count);
}

void nccl_spans_session(const char *state, unsigned version, unsigned comms,
			struct nccl_losses losses)
{
	if (names[SESSION])
		waffle_event_named(names[SESSION],
				   WAFFLE_VALUES(waffle_str(state), waffle_u64(version),
						 waffle_u64(comms), waffle_u64(losses.tasks),
						 waffle_u64(losses.events),
						 waffle_u64(losses.late)));
}

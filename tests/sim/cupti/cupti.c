// SPDX-License-Identifier: Apache-2.0
/*
 * The stand-in for libcupti: it keeps the callbacks that a tool registers, calls them at the calls
 * of the stand-ins of CUDA, and delivers a record for each operation that a simulated stream has
 * executed. Records have the layout of the version of CUDA that WAFFLE_SIM_CUPTI_VERSION names.
 * docs/simulation.md describes the settings.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti/layout.h"
#include "cupti/settings.h"
#include "simulation.h"

SIM_NOTE;

#define CUPTI_API __attribute__((visibility("default")))
#define KINDS 64
#define DRIVER_CALLS 1
#define RESOURCES 32

enum {
	OK = 0,
	INVALID_PARAMETER = 1,
	MAX_LIMIT_REACHED = 12,
	NOT_COMPATIBLE = 14,
	TAKEN = 39,
	MIG_NOT_SUPPORTED = 43
};

typedef void (*callback)(void *user, int domain, uint32_t cbid, const void *data);
typedef void (*requested)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			  size_t valid);

/* By this symbol libwaffle-gpu knows a stand-in. */
extern const char waffle_simulation_cupti[];
CUPTI_API const char waffle_simulation_cupti[] = "simulated CUPTI of waffle: no GPU is used";

struct call_data { /* CUpti_CallbackData */
	int site;
	const char *function;
	const void *params;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *data;
	uint32_t correlation;
};

struct graph_data { /* CUpti_GraphData */
	void *graph, *original_graph, *node, *original_node;
	int node_type;
	void *dependency, *exec;
};

struct resource_data { /* CUpti_ResourceData */
	void *context, *stream;
	const void *descriptor;
};

/* The functions of the driver that are observed, with numbers as CUPTI has. libwaffle-gpu asks for
 * their names. */
static const struct {
	uint32_t cbid;
	const char *name;
} calls[] = {
	{2, "cuDriverGetVersion"},
	{17, "cuCtxSynchronize"},
	{120, "cuEventQuery"},
	{121, "cuEventSynchronize"},
	{126, "cuStreamSynchronize"},
	{440, "cuStreamSynchronize_ptsz"},
	{305, "cuMemcpy"},
	{306, "cuMemcpyAsync"},
	{276, "cuMemcpyHtoD_v2"},
	{278, "cuMemcpyDtoH_v2"},
	{280, "cuMemcpyDtoD_v2"},
	{277, "cuMemcpyHtoDAsync_v2"},
	{279, "cuMemcpyDtoHAsync_v2"},
	{281, "cuMemcpyDtoDAsync_v2"},
	{319, "cuMemcpyPeerAsync"},
	{249, "cuMemsetD8_v2"},
	{216, "cuMemsetD8Async"},
	{220, "cuMemsetD32Async"},
	{307, "cuLaunchKernel"},
	{442, "cuLaunchKernel_ptsz"},
	{477, "cuLaunchCooperativeKernel"},
	{652, "cuLaunchKernelEx"},
	{514, "cuGraphLaunch"},
	{527, "cuLaunchHostFunc"},
	{243, "cuMemAlloc_v2"},
	{418, "cuMemcpyAsync_ptsz"},
	{421, "cuMemcpyHtoDAsync_v2_ptsz"},
	{422, "cuMemcpyDtoHAsync_v2_ptsz"},
	{423, "cuMemcpyDtoDAsync_v2_ptsz"},
	{426, "cuMemcpyPeerAsync_ptsz"},
	{397, "cuMemcpyHtoD_v2_ptds"},
	{398, "cuMemcpyDtoH_v2_ptds"},
	{399, "cuMemcpyDtoD_v2_ptds"},
	{408, "cuMemcpy_ptds"},
	{411, "cuMemsetD8_v2_ptds"},
	{428, "cuMemsetD8Async_ptsz"},
	{430, "cuMemsetD32Async_ptsz"},
	{478, "cuLaunchCooperativeKernel_ptsz"},
	{653, "cuLaunchKernelEx_ptsz"},
	{515, "cuGraphLaunch_ptsz"},
	{528, "cuLaunchHostFunc_ptsz"},
	{119, "cuEventRecord"},
	{441, "cuEventRecord_ptsz"},
	{621, "cuEventRecordWithFlags"},
	{622, "cuEventRecordWithFlags_ptsz"},
	{295, "cuStreamWaitEvent"},
	{437, "cuStreamWaitEvent_ptsz"},
	{124, "cuStreamCreate"},
	{389, "cuStreamCreateWithPriority"},
	{540, "cuStreamBeginCapture_v2"},
	{541, "cuStreamBeginCapture_v2_ptsz"},
	{519, "cuStreamEndCapture"},
	{520, "cuStreamEndCapture_ptsz"},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static struct {
	/* Protects the buffers, and all members that change after a kind was enabled. */
	pthread_mutex_t lock;
	callback callback;
	void *user;
	bool subscribed;
	bool calls_on[CALLS];
	bool resources_on[RESOURCES];
	bool enabled[KINDS];
	requested requested;
	completed completed;
	uint64_t (*now)(void);
	uint8_t *buffer;
	size_t size, used, records_max, records;
	uint64_t dropped;
	uint64_t count; /* operations so far: each N-th one has a fault */
	uint32_t correlation;
	/* A graph that is observed as a whole. */
	uint64_t graph_start;
} cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
	unsigned depth;
	uint32_t correlation;
} thread;

/* ---- clock ---- */

static uint64_t realtime_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t other_now(void)
{
	return 3 * sim_now_ns() + 1000000007; /* as a counter of the processor would be */
}

static uint64_t own_now(void)
{
	return cupti.now ? cupti.now() : realtime_now();
}

/* Returns by how much the registered clock is ahead of the simulated one. Of 100 readings, the one
 * that took the least time counts. */
static uint64_t offset_read(void)
{
	uint64_t offset = 0, least = UINT64_MAX;

	for (unsigned i = 0; i < 100; i++) {
		uint64_t before = sim_now_ns(), own = own_now(), width = sim_now_ns() - before;

		if (width < least) {
			least = width;
			offset = own - before - width / 2;
		}
	}
	return offset;
}

/* Converts simulated times into the registered clock. With the lock. */
static void times_convert(struct layout_op *op)
{
	static uint64_t (*now)(void) = other_now;
	static uint64_t offset;
	uint64_t length = op->end - op->start;

	if (cupti.now == other_now) {
		op->start = 3 * op->start + 1000000007;
		op->end = op->start + 3 * length;
		return;
	}
	if (now != cupti.now)
		offset = offset_read();
	now = cupti.now;
	op->start += offset;
	op->end = op->start + length;
}

/* ---- records ---- */

static void buffer_finish(void)
{
	uint8_t *buffer = cupti.buffer;

	cupti.buffer = NULL;
	if (buffer)
		cupti.completed(NULL, 0, buffer, cupti.size, cupti.used);
}

static bool buffer_room(size_t bytes)
{
	if (cupti.buffer && (cupti.used + bytes > cupti.size ||
			     (cupti.records_max && cupti.records >= cupti.records_max)))
		buffer_finish();
	if (!cupti.buffer) {
		cupti.requested(&cupti.buffer, &cupti.size, &cupti.records_max);
		cupti.used = cupti.records = 0;
	}
	return cupti.buffer && cupti.used + bytes <= cupti.size;
}

/* With the lock. */
static void record_append(const struct layout_record *record)
{
	if (!buffer_room(record->bytes)) {
		cupti.dropped++;
		return;
	}
	memcpy(cupti.buffer + cupti.used, record->data, record->bytes);
	/* Out of order: the record in front changes places with this one. */
	if (settings()->shuffle && cupti.records && record->bytes == layout_bytes(record->kind)) {
		uint8_t *before = cupti.buffer + cupti.used - record->bytes;
		uint8_t copy[LAYOUT_MAX];

		if (layout_kind(before) == record->kind) {
			memcpy(copy, before, record->bytes);
			memcpy(before, record->data, record->bytes);
			memcpy(before + record->bytes, copy, record->bytes);
		}
	}
	cupti.used += record->bytes;
	cupti.records++;
}

static bool every(uint64_t nth, uint64_t count)
{
	return nth && count % nth == 0;
}

/* With the lock. Returns the name of the fault, or "". */
static const char *faults_add(struct layout_op *op)
{
	const struct settings *set = settings();
	uint64_t count = ++cupti.count;
	uint64_t length = op->end - op->start;

	if (every(set->unknown, count)) {
		struct layout_record record = layout_unknown();

		record_append(&record);
	}
	if (every(set->zero, count)) {
		op->start = op->end = 0;
		return "zero";
	}
	if (every(set->reversed, count)) {
		op->end = op->start - 1;
		return "reversed";
	}
	if (!every(set->early, count))
		return "";
	op->start -= 1000000000;
	op->end = op->start + length;
	return "early";
}

/* Logs a record that was delivered, with its simulated times. The tests compare it. */
static void log_write(const struct layout_op *op, uint32_t kind, const char *fault)
{
	const struct op_about *about = &op->about;

	if (!settings()->log)
		return;
	fprintf(settings()->log,
		"{\"kind\": %u, \"name\": \"%s\", \"start\": %lu, \"end\": %lu, "
		"\"correlation\": %u, \"stream\": %u, \"bytes\": %lu, "
		"\"grid\": \"%u,%u,%u\", \"block\": \"%u,%u,%u\", \"shared\": %u, "
		"\"graph\": %u, \"node\": %lu, \"what\": %u, \"fault\": \"%s\"}\n",
		kind, about->name ? about->name : "", op->start, op->end, about->correlation,
		op->stream, about->bytes, about->grid[0], about->grid[1], about->grid[2],
		about->block[0], about->block[1], about->block[2], about->shared, about->graph,
		about->node, about->kind, fault);
	fflush(settings()->log);
}

static void op_deliver(struct layout_op *op)
{
	struct layout_op simulated = *op;
	struct layout_record record;
	const char *fault;

	pthread_mutex_lock(&cupti.lock);
	times_convert(op);
	fault = faults_add(op);
	record = layout_make(op);
	if (!record.bytes || record.kind >= KINDS || !cupti.enabled[record.kind] ||
	    !cupti.requested)
		fault = "off";
	else if (every(settings()->drop, cupti.count))
		fault = "dropped";
	log_write(&simulated, record.kind, fault);
	if (!strcmp(fault, "dropped"))
		cupti.dropped++;
	else if (strcmp(fault, "off") != 0)
		record_append(&record);
	pthread_mutex_unlock(&cupti.lock);
}

/* ---- the observer ---- */

static size_t call_find(const char *function)
{
	size_t i = 0;

	while (i < CALLS && strcmp(calls[i].name, function) != 0)
		i++;
	return i;
}

static void call_tell(int site, enum sim_domain domain, const char *function, const void *params,
		      int *result)
{
	size_t i = domain == SIM_DRIVER ? call_find(function) : CALLS;
	struct call_data data = {.site = site,
				 .function = function,
				 .params = params,
				 .result = result,
				 .context_id = 1,
				 .correlation = thread.correlation};

	if (i < CALLS && cupti.calls_on[i] && cupti.callback)
		cupti.callback(cupti.user, 1, calls[i].cbid, &data);
}

static void observer_enter(enum sim_domain domain, const char *function, const void *params)
{
	if (!thread.depth++)
		thread.correlation = __atomic_add_fetch(&cupti.correlation, 1, __ATOMIC_RELAXED);
	call_tell(0, domain, function, params, NULL);
}

static void observer_leave(enum sim_domain domain, const char *function, const void *params,
			   int result)
{
	call_tell(1, domain, function, params, &result);
	thread.depth--;
}

static uint32_t observer_correlation(void)
{
	return thread.correlation;
}

static bool observer_graphs(void)
{
	return cupti.enabled[LAYOUT_GRAPH];
}

static void observer_done(const struct op_about *about, uint32_t stream, uint64_t start_ns,
			  uint64_t end_ns)
{
	struct layout_op op = {.about = *about, .stream = stream, .start = start_ns, .end = end_ns};

	if (stream != UINT32_MAX)
		op.stream = stream + 7; /* CUPTI's numbers don't begin at 0 either */
	if (about->graph && observer_graphs()) {
		if (!cupti.graph_start)
			cupti.graph_start = start_ns;
		if (!about->graph_ends)
			return;
		op.start = cupti.graph_start;
		op.is_graph = true;
		cupti.graph_start = 0;
	}
	op_deliver(&op);
}

static void observer_graph(uint32_t what, uint32_t graph, uint64_t node, uint64_t from)
{
	struct graph_data data = {.graph = (void *)(uintptr_t)graph,
				  .node = (void *)(uintptr_t)node,
				  .original_node = (void *)(uintptr_t)from};
	struct resource_data resource = {.descriptor = &data};

	if (what == 18) {
		data.exec = data.graph;
		data.graph = (void *)(uintptr_t)from;
	}
	if (cupti.resources_on[what] && cupti.callback)
		cupti.callback(cupti.user, 3, what, &resource);
}

static const struct sim_observer observer = {observer_enter, observer_leave, observer_correlation,
					     observer_done,  observer_graph, observer_graphs};

static void observe(bool on)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct waffle_simulation *simulation = driver ? dlsym(driver, "waffle_simulation") : NULL;

	if (simulation)
		__atomic_store_n(&simulation->observer, on ? &observer : NULL, __ATOMIC_RELEASE);
}

/* ---- CUPTI's functions ---- */

#define FUNCTION(name, ...)                                                                        \
	int name(__VA_ARGS__);                                                                     \
	CUPTI_API int name(__VA_ARGS__)

FUNCTION(cuptiGetVersion, uint32_t *version)
{
	*version = settings()->version;
	return OK;
}

FUNCTION(cuptiGetResultString, int result, const char **text)
{
	*text = result == OK                  ? "CUPTI_SUCCESS"
		: result == TAKEN             ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
		: result == MIG_NOT_SUPPORTED ? "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED"
		: result == NOT_COMPATIBLE    ? "CUPTI_ERROR_NOT_COMPATIBLE"
					      : "CUPTI_ERROR_UNKNOWN";
	return OK;
}

FUNCTION(cuptiGetTimestamp, uint64_t *ns)
{
	*ns = own_now();
	return OK;
}

FUNCTION(cuptiGetCallbackName, int domain, uint32_t cbid, const char **name)
{
	for (size_t i = 0; domain == 1 && i < CALLS; i++) {
		if (calls[i].cbid == cbid) {
			*name = calls[i].name;
			return OK;
		}
	}
	return INVALID_PARAMETER;
}

FUNCTION(cuptiSubscribe, void **subscriber, callback function, void *user)
{
	if (cupti.subscribed || settings()->held)
		return TAKEN;
	cupti.callback = function;
	cupti.user = user;
	cupti.subscribed = true;
	*subscriber = &cupti;
	if (settings()->other_clock)
		cupti.now = other_now;
	observe(true);
	return OK;
}

FUNCTION(cuptiUnsubscribe, void *subscriber)
{
	(void)subscriber;
	cupti.subscribed = false;
	cupti.callback = NULL;
	memset(cupti.calls_on, 0, sizeof(cupti.calls_on));
	memset(cupti.resources_on, 0, sizeof(cupti.resources_on));
	return OK;
}

FUNCTION(cuptiEnableCallback, uint32_t on, void *subscriber, int domain, uint32_t cbid)
{
	(void)subscriber;
	for (size_t i = 0; domain == 1 && i < CALLS; i++)
		if (calls[i].cbid == cbid)
			cupti.calls_on[i] = on;
	if (domain == 3 && cbid < RESOURCES)
		cupti.resources_on[cbid] = on;
	return OK;
}

FUNCTION(cuptiActivityEnable, int kind)
{
	if (settings()->mig)
		return MIG_NOT_SUPPORTED;
	if (!layout_has(kind))
		return NOT_COMPATIBLE;
	cupti.enabled[kind] = true;
	return OK;
}

FUNCTION(cuptiActivityDisable, int kind)
{
	if (layout_has(kind))
		cupti.enabled[kind] = false;
	return OK;
}

FUNCTION(cuptiActivityRegisterCallbacks, requested request, completed complete)
{
	cupti.requested = request;
	cupti.completed = complete;
	return OK;
}

FUNCTION(cuptiActivityRegisterTimestampCallback, uint64_t (*now)(void))
{
	cupti.now = now;
	return OK;
}

FUNCTION(cuptiActivityFlushAll, uint32_t flag)
{
	if (settings()->late && !flag)
		return OK;
	pthread_mutex_lock(&cupti.lock);
	buffer_finish();
	pthread_mutex_unlock(&cupti.lock);
	return OK;
}

FUNCTION(cuptiActivityGetNextRecord, uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = *record ? *record + layout_bytes(layout_kind(*record)) : buffer;

	if (next >= buffer + valid)
		return MAX_LIMIT_REACHED;
	*record = next;
	return OK;
}

FUNCTION(cuptiActivityGetNumDroppedRecords, void *context, uint32_t stream, size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = __atomic_exchange_n(&cupti.dropped, 0, __ATOMIC_RELAXED);
	return OK;
}

FUNCTION(cuptiGetGraphId, void *graph, uint32_t *id)
{
	*id = (uint32_t)(uintptr_t)graph;
	return OK;
}

FUNCTION(cuptiGetGraphExecId, void *exec, uint32_t *id)
{
	*id = (uint32_t)(uintptr_t)exec;
	return OK;
}

FUNCTION(cuptiGetGraphNodeId, void *node, uint64_t *id)
{
	*id = (uintptr_t)node;
	return OK;
}

/* As the real one it forgets all, and counts calls from 1 again. */
FUNCTION(cuptiFinalize, void)
{
	observe(false);
	pthread_mutex_lock(&cupti.lock);
	memset(cupti.enabled, 0, sizeof(cupti.enabled));
	cupti.requested = NULL;
	cupti.completed = NULL;
	cupti.now = NULL;
	cupti.correlation = 0;
	pthread_mutex_unlock(&cupti.lock);
	return OK;
}

#ifdef SIM_CUPTI_SHARED
struct subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_name_size;
	uint8_t allow_others;
};

FUNCTION(cuptiSubscribe_v2, void **subscriber, callback function, void *user,
	 struct subscriber_params *params)
{
	if (!settings()->held || (settings()->shared && params->allow_others)) {
		cupti.callback = function;
		cupti.user = user;
		cupti.subscribed = true;
		*subscriber = &cupti;
		observe(true);
		return OK;
	}
	if (params->old_name)
		snprintf(params->old_name, params->old_name_size, "%s", settings()->holder);
	return TAKEN;
}

typedef void (*requested_2)(uint8_t **buffer, size_t *size, size_t *records_max, void *info);
typedef void (*completed_2)(uint8_t *buffer, size_t size, size_t valid, void *info);
static requested_2 request_2;
static completed_2 complete_2;

static void request(uint8_t **buffer, size_t *size, size_t *records_max)
{
	size_t info = sizeof(info);

	request_2(buffer, size, records_max, &info);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	size_t info[4] = {sizeof(info)};

	(void)context, (void)stream;
	complete_2(buffer, size, valid, info);
}

FUNCTION(cuptiActivityRegisterCallbacks_v2, void *subscriber, requested_2 one, completed_2 two)
{
	(void)subscriber;
	request_2 = one;
	complete_2 = two;
	return cuptiActivityRegisterCallbacks(request, complete);
}

FUNCTION(cuptiActivityEnable_v2, void *subscriber, int kind, void *config)
{
	(void)subscriber, (void)config;
	return cuptiActivityEnable(kind);
}

FUNCTION(cuptiActivityDisable_v2, void *subscriber, int kind, void *config)
{
	(void)subscriber, (void)config;
	return cuptiActivityDisable(kind);
}

FUNCTION(cuptiActivityGetNextRecord_v2, void *subscriber, uint8_t *buffer, size_t valid,
	 uint8_t **record)
{
	(void)subscriber;
	return cuptiActivityGetNextRecord(buffer, valid, record);
}

FUNCTION(cuptiActivityGetNumDroppedRecords_v2, void *subscriber, void *context, uint32_t stream,
	 size_t *dropped)
{
	(void)subscriber;
	return cuptiActivityGetNumDroppedRecords(context, stream, dropped);
}
#endif

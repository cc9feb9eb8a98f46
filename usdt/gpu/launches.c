// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/launches.h"

#include <errno.h>
#include <string.h>

#include "usdt/gpu/operations.h"
#include "util/clock.h"

#define CALLS_MAX 2048u /* cuda.h has 800 functions */
#define NAME_BYTES 48
#define TIMES 65536u

/*
 * The offset in bytes of a parameter among those of its call, or one of these. CUPTI passes the
 * parameters as a struct: handles, addresses, sizes and numbers in the layout of C.
 */
#define NONE 0xffu      /* the call has none, or we do not know where it is */
#define DEFAULT 0xfeu   /* the stream is the default stream */
#define BY_CONFIG 0xfdu /* the first parameter points to a CUlaunchConfig with the stream */
#define CONFIG_STREAM 32

/* CU_STREAM_PER_THREAD, which a call by a name with a suffix means by 0. */
#define STREAM_PER_THREAD 2

enum call_kind {
	NOT_WATCHED,
	LAUNCH,
	WAIT,  /* the host waits for the GPU */
	QUERY, /* the host asks whether an event is done */
	RECORD,
	STREAM_WAIT,
	/* These are reported when they return: */
	STREAM_CREATE,
	CAPTURE_BEGIN,
	CAPTURE_END,
};

struct call_row {
	const char *name; /* without _v2, _ptsz and _ptds; a `*` at the end stands for anything */
	uint8_t kind;     /* enum call_kind */
	uint8_t stream;   /* STREAM_CREATE has a pointer to the new stream here */
	uint8_t event;    /* STREAM_CREATE has its flags here */
};

/* The first row that fits counts. */
static const struct call_row rows[] = {
	{"cuLaunchKernel", LAUNCH, 40, NONE},
	{"cuLaunchKernelEx", LAUNCH, BY_CONFIG, NONE},
	{"cuLaunchCooperativeKernel", LAUNCH, 40, NONE},
	{"cuLaunchHostFunc", LAUNCH, 0, NONE},
	{"cuLaunch*", LAUNCH, NONE, NONE},
	{"cuGraphLaunch", LAUNCH, 8, NONE},
	{"cuMemcpy", LAUNCH, DEFAULT, NONE},
	{"cuMemcpyHtoD", LAUNCH, DEFAULT, NONE},
	{"cuMemcpyDtoH", LAUNCH, DEFAULT, NONE},
	{"cuMemcpyDtoD", LAUNCH, DEFAULT, NONE},
	{"cuMemcpyPeer", LAUNCH, DEFAULT, NONE},
	{"cuMemcpy2D", LAUNCH, DEFAULT, NONE},
	{"cuMemcpy2DUnaligned", LAUNCH, DEFAULT, NONE},
	{"cuMemcpy3D", LAUNCH, DEFAULT, NONE},
	{"cuMemcpy3DPeer", LAUNCH, DEFAULT, NONE},
	{"cuMemcpyAsync", LAUNCH, 24, NONE},
	{"cuMemcpyHtoDAsync", LAUNCH, 24, NONE},
	{"cuMemcpyDtoHAsync", LAUNCH, 24, NONE},
	{"cuMemcpyDtoDAsync", LAUNCH, 24, NONE},
	{"cuMemcpyPeerAsync", LAUNCH, 40, NONE},
	{"cuMemcpy2DAsync", LAUNCH, 8, NONE},
	{"cuMemcpy3DAsync", LAUNCH, 8, NONE},
	{"cuMemcpy3DPeerAsync", LAUNCH, 8, NONE},
	{"cuMemcpy*", LAUNCH, NONE, NONE},
	{"cuMemsetD8", LAUNCH, DEFAULT, NONE},
	{"cuMemsetD16", LAUNCH, DEFAULT, NONE},
	{"cuMemsetD32", LAUNCH, DEFAULT, NONE},
	{"cuMemsetD2D8", LAUNCH, DEFAULT, NONE},
	{"cuMemsetD2D16", LAUNCH, DEFAULT, NONE},
	{"cuMemsetD2D32", LAUNCH, DEFAULT, NONE},
	{"cuMemsetD8Async", LAUNCH, 24, NONE},
	{"cuMemsetD16Async", LAUNCH, 24, NONE},
	{"cuMemsetD32Async", LAUNCH, 24, NONE},
	{"cuMemsetD2D8Async", LAUNCH, 40, NONE},
	{"cuMemsetD2D16Async", LAUNCH, 40, NONE},
	{"cuMemsetD2D32Async", LAUNCH, 40, NONE},
	{"cuMemset*", LAUNCH, NONE, NONE},
	{"cuStreamSynchronize", WAIT, 0, NONE},
	{"cuEventSynchronize", WAIT, NONE, 0},
	{"cuEventQuery", QUERY, NONE, NONE},
	{"cuCtxSynchronize", WAIT, NONE, NONE},
	{"cuEventRecord", RECORD, 8, 0},
	{"cuEventRecordWithFlags", RECORD, 8, 0},
	{"cuCtxRecordEvent", RECORD, NONE, 8}, /* on all streams of the context */
	{"cuGreenCtxRecordEvent", RECORD, NONE, 8},
	{"cuStreamWaitEvent", STREAM_WAIT, 0, 8},
	{"cuCtxWaitEvent", STREAM_WAIT, NONE, 8},
	{"cuGreenCtxWaitEvent", STREAM_WAIT, NONE, 8},
	{"cuStreamCreate", STREAM_CREATE, 0, 8},
	{"cuStreamCreateWithPriority", STREAM_CREATE, 0, 8},
	{"cuGreenCtxStreamCreate", STREAM_CREATE, 0, 16},
	{"cuStreamBeginCapture", CAPTURE_BEGIN, 0, NONE},
	{"cuStreamBeginCaptureToGraph", CAPTURE_BEGIN, 0, NONE},
	{"cuStreamBeginRecaptureToGraph", CAPTURE_BEGIN, 0, NONE},
	{"cuStreamEndCapture", CAPTURE_END, 0, NONE},
};

/* The index is the number of the callback. Elements are written before the callbacks are switched
 * on. */
static struct {
	char name[NAME_BYTES];
	uint8_t kind; /* enum call_kind */
	uint8_t stream, event;
	bool per_thread; /* its default stream is the thread's own */
} calls[CALLS_MAX];
static uint32_t trigger;

#define QUERY_NS 1 /* stands for the time of a call of kind QUERY */

/* Begins of the latest calls. A writer writes the time between two versions of the number, so that
 * a reader never takes the time of another call. */
static struct {
	uint32_t correlation;
	uint64_t ns;
} times[TIMES];

/* Returns whether the name had the suffix. */
static bool suffix_cut(char *name, const char *suffix)
{
	size_t length = strlen(name), cut = strlen(suffix);

	if (length <= cut || strcmp(name + length - cut, suffix) != 0)
		return false;
	name[length - cut] = '\0';
	return true;
}

static bool is_named(const char *name, const char *row)
{
	size_t length = strlen(row);

	return row[length - 1] == '*' ? !strncmp(name, row, length - 1) : !strcmp(name, row);
}

static bool call_choose(uint32_t cbid, const char *name)
{
	char *copy = calls[cbid].name;

	calls[cbid].kind = NOT_WATCHED;
	if (!strcmp(name, "cuDriverGetVersion"))
		trigger = cbid;
	if (strlen(name) >= NAME_BYTES)
		return false;
	strcpy(copy, name);
	calls[cbid].per_thread = suffix_cut(copy, "_ptsz") || suffix_cut(copy, "_ptds");
	suffix_cut(copy, "_v2");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (is_named(copy, rows[i].name)) {
			calls[cbid].kind = rows[i].kind;
			calls[cbid].stream = rows[i].stream;
			calls[cbid].event = rows[i].event;
			return true;
		}
	}
	return false;
}

unsigned launches_find(const struct cupti *cupti)
{
	unsigned count = 0;

	trigger = 0;
	memset(times, 0, sizeof(times)); /* CUPTI may count from 1 again */
	for (uint32_t cbid = 1; cbid < CALLS_MAX; cbid++) {
		const char *name = NULL;

		calls[cbid].kind = NOT_WATCHED;
		if (cupti->call.GetCallbackName(CUPTI_DRIVER_API, cbid, &name) == CUPTI_OK && name)
			count += call_choose(cbid, name);
	}
	return count;
}

int launches_watch(const struct cupti *cupti, void *subscriber, bool on)
{
	int first = 0;

	for (uint32_t cbid = 1; cbid < CALLS_MAX; cbid++) {
		int result = 0;

		if (calls[cbid].kind != NOT_WATCHED)
			result = cupti->call.EnableCallback(on, subscriber, CUPTI_DRIVER_API, cbid);
		first = first ? first : result;
	}
	return first;
}

uint32_t launches_trigger(void)
{
	return trigger;
}

/* ---- events ---- */

/* A handle among the parameters; 0: there is none. */
static uint64_t handle_at(const void *params, uint8_t at)
{
	uint64_t handle = 0;

	if (params && at != NONE)
		memcpy(&handle, (const char *)params + at, sizeof(handle));
	return handle;
}

static bool has_stream(uint32_t cbid, const struct cupti_call *call)
{
	uint8_t at = calls[cbid].stream;

	return at == DEFAULT || (at != NONE && call->params);
}

static bool has_event(uint32_t cbid, const struct cupti_call *call)
{
	return calls[cbid].event != NONE && call->params;
}

/* The stream's handle as the program has it, for calls that have one. */
static waffle_value_t stream_of(uint32_t cbid, const void *params)
{
	uint8_t at = calls[cbid].stream;
	uint64_t handle = 0;

	if (at == BY_CONFIG) {
		const void *config = (const void *)(uintptr_t)handle_at(params, 0);

		handle = handle_at(config, CONFIG_STREAM);
	} else if (at != DEFAULT) {
		handle = handle_at(params, at);
	}
	if (!handle && calls[cbid].per_thread)
		handle = STREAM_PER_THREAD;
	return waffle_value_word_(WAFFLE_KEY_PTR, handle);
}

static waffle_value_t event_of(uint32_t cbid, const void *params)
{
	return waffle_value_word_(WAFFLE_KEY_PTR, handle_at(params, calls[cbid].event));
}

/* True: another call of the driver made this one, and CUPTI gave both the same correlation id. */
static bool is_nested(const struct cupti_call *call)
{
	uint32_t at = call->correlation % TIMES;

	return __atomic_load_n(&times[at].correlation, __ATOMIC_RELAXED) == call->correlation;
}

static void number_keep(uint32_t correlation, uint64_t ns)
{
	uint32_t at = correlation % TIMES;

	__atomic_store_n(&times[at].correlation, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&times[at].ns, ns, __ATOMIC_RELEASE);
	__atomic_store_n(&times[at].correlation, correlation, __ATOMIC_RELEASE);
}

static void launch_call(waffle_name_t *const *names, uint32_t cbid, const struct cupti_call *call)
{
	waffle_value_t number = waffle_u64(call->correlation);
	waffle_value_t function = waffle_str(calls[cbid].name);

	if (has_stream(cbid, call))
		waffle_event_named(names[GPU_NAME_LAUNCH],
				   WAFFLE_VALUES(number, function, stream_of(cbid, call->params),
						 OPERATIONS_SIMULATED));
	else
		waffle_event_named(names[GPU_NAME_LAUNCH_UNPLACED],
				   WAFFLE_VALUES(number, function, OPERATIONS_SIMULATED));
	/* After the event: an operation whose begin is moved to this time is not before its launch.
	 * The GPU gets the work later. */
	number_keep(call->correlation, clock_monotonic_ns());
}

static void wait_call(waffle_name_t *const *names, uint32_t cbid, const struct cupti_call *call)
{
	waffle_value_t number = waffle_u64(call->correlation);
	waffle_value_t function = waffle_str(calls[cbid].name);

	if (has_stream(cbid, call))
		waffle_event_named(names[GPU_NAME_WAIT_FOR_STREAM],
				   WAFFLE_VALUES(number, function, stream_of(cbid, call->params),
						 OPERATIONS_SIMULATED));
	else if (has_event(cbid, call))
		waffle_event_named(names[GPU_NAME_WAIT_FOR_EVENT],
				   WAFFLE_VALUES(number, function, event_of(cbid, call->params),
						 OPERATIONS_SIMULATED));
	else
		waffle_event_named(names[GPU_NAME_WAIT_CALL],
				   WAFFLE_VALUES(number, function, OPERATIONS_SIMULATED));
}

/* Records an event, or makes a stream wait for one. */
static void event_call(waffle_name_t *const *names, uint32_t cbid, const struct cupti_call *call)
{
	bool records = calls[cbid].kind == RECORD;
	waffle_value_t event = event_of(cbid, call->params);

	if (!has_event(cbid, call))
		return;
	if (has_stream(cbid, call))
		waffle_event_named(
			names[records ? GPU_NAME_EVENT_RECORD : GPU_NAME_STREAM_WAIT],
			WAFFLE_VALUES(event, stream_of(cbid, call->params), OPERATIONS_SIMULATED));
	else
		waffle_event_named(names[records ? GPU_NAME_CONTEXT_RECORD : GPU_NAME_CONTEXT_WAIT],
				   WAFFLE_VALUES(event, OPERATIONS_SIMULATED));
}

void launches_call(uint32_t cbid, const struct cupti_call *call)
{
	waffle_name_t *const *names = operations_names();
	int code = errno;

	if (cbid >= CALLS_MAX)
		return;
	switch (calls[cbid].kind) {
	case LAUNCH:
		if (!is_nested(call))
			launch_call(names, cbid, call);
		break;
	case WAIT:
		if (!is_nested(call))
			wait_call(names, cbid, call);
		break;
	case QUERY:
		number_keep(call->correlation, QUERY_NS);
		break;
	case RECORD:
	case STREAM_WAIT:
		event_call(names, cbid, call);
		break;
	default:
		break;
	}
	errno = code;
}

/* Records the creation of a stream. Its flags say whether it and the legacy default stream wait for
 * each other. */
static void stream_made(waffle_name_t *name, uint32_t cbid, const struct cupti_call *call)
{
	const void *made = (const void *)(uintptr_t)handle_at(call->params, calls[cbid].stream);
	uint32_t flags = 0;

	if (!made)
		return;
	memcpy(&flags, (const char *)call->params + calls[cbid].event, sizeof(flags));
	waffle_event_named(name,
			   WAFFLE_VALUES(waffle_value_word_(WAFFLE_KEY_PTR, handle_at(made, 0)),
					 waffle_u64(flags), OPERATIONS_SIMULATED));
}

static void call_returned(waffle_name_t *const *names, uint32_t cbid, const struct cupti_call *call)
{
	int result = 0;

	if (call->result)
		memcpy(&result, call->result, sizeof(result));
	if (calls[cbid].kind == CAPTURE_END)
		waffle_event_named(names[GPU_NAME_CAPTURE_END],
				   WAFFLE_VALUES(stream_of(cbid, call->params),
						 waffle_u64((uint32_t)result),
						 OPERATIONS_SIMULATED));
	else if (!result && calls[cbid].kind == CAPTURE_BEGIN)
		waffle_event_named(
			names[GPU_NAME_CAPTURE_BEGIN],
			WAFFLE_VALUES(stream_of(cbid, call->params), OPERATIONS_SIMULATED));
	else if (!result)
		stream_made(names[GPU_NAME_STREAM_CREATE], cbid, call);
}

void launches_return(uint32_t cbid, const struct cupti_call *call)
{
	int code;

	/* All launches come here. */
	if (cbid >= CALLS_MAX || calls[cbid].kind < STREAM_CREATE)
		return;
	code = errno;
	if (call->params)
		call_returned(operations_names(), cbid, call);
	errno = code;
}

/* Returns what number_keep() kept of the call with this number; 0: nothing. */
static uint64_t number_find(uint32_t correlation)
{
	uint32_t at = correlation % TIMES;
	uint64_t ns;

	if (!correlation ||
	    __atomic_load_n(&times[at].correlation, __ATOMIC_ACQUIRE) != correlation)
		return 0;
	ns = __atomic_load_n(&times[at].ns, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&times[at].correlation, __ATOMIC_ACQUIRE) == correlation ? ns : 0;
}

uint64_t launches_time(uint32_t correlation)
{
	uint64_t ns = number_find(correlation);

	return ns == QUERY_NS ? 0 : ns;
}

bool launches_is_query(uint32_t correlation)
{
	return number_find(correlation) == QUERY_NS;
}

// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/session.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/gpu/buffers.h"
#include "usdt/gpu/cupti_find.h"
#include "usdt/gpu/gpu_clock.h"
#include "usdt/gpu/graphs.h"
#include "usdt/gpu/launches.h"
#include "usdt/gpu/operations.h"
#include "usdt/say/say.h"
#include "util/clock.h"
#include "waffle_track.h"

/* How long after a refusal to ask CUPTI again. */
#define AGAIN_NS 1000000000ull
/* The thread's ring takes some megabytes, and is read 50 times a second. */
#define PAUSE_RECORDS 4096u
#define PAUSE_NS 10000000
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

static const int kinds[] = {
	CUPTI_CONTEXT, CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY,      CUPTI_MEMCPY_PEER,
	CUPTI_MEMSET,  CUPTI_SYNCHRONIZATION,   CUPTI_GRAPH_TRACE, CUPTI_HOST_LAUNCH};

enum state { OUTSIDE, UNAVAILABLE, BEGINS, ARMED };

static struct {
	enum state state;
	bool early;  /* the process had not used CUDA when it began */
	bool shared; /* with other tools, by CUPTI's newer interface */
	struct cupti cupti;
	void *subscriber;
	bool enabled[KIND_COUNT];
	char reason[CUPTI_REASON];
	char holder[CUPTI_OLD_NAME_SIZE];
	bool told;  /* the reason was printed on standard error */
	bool again; /* what was missing may come: to ask again makes sense */
	uint64_t asked_ns;
	uint64_t told_ns;   /* when the counts were last reported */
	uint64_t told_lost; /* what they were */
	uint64_t dropped, zero_times, clamped, unknown;
	/* At the end: our own call of the driver, and what CUPTI does at its return. */
	pthread_t thread;
	int end; /* ENDING, ENDED; 0 */
} session;

enum { ENDING = 1, ENDED };

/* ---- reports ---- */

/* A text that is empty is left out, as unknown. */
static waffle_value_t text_value(const char *text)
{
	return *text ? waffle_str(text) : waffle_u64(0);
}

static void tell(const char *state)
{
	waffle_event_named(
		operations_names()[GPU_NAME_SESSION],
		WAFFLE_VALUES(waffle_str(state), waffle_bool(session.cupti.simulated),
			      waffle_u64(session.cupti.version), text_value(session.reason),
			      text_value(session.holder), waffle_u64(gpu_clock_error_ns()),
			      waffle_u64(session.dropped), waffle_u64(session.zero_times),
			      waffle_u64(session.clamped), waffle_u64(session.unknown)));
}

/* Once for each reason. */
static bool refuse(void)
{
	session.state = UNAVAILABLE;
	if (session.told)
		return false;
	session.told = true;
	tell("unavailable");
	/* A program that only has ranges of NVTX misses nothing. */
	if (cuda_is_loaded())
		say_line("the GPU's own times are not recorded: %s", session.reason);
	return false;
}

static bool refuse_result(const char *what, int result)
{
	char text[128];

	cupti_say(&session.cupti, result, text, sizeof(text));
	snprintf(session.reason, sizeof(session.reason), "%s: %s", what, text);
	return refuse();
}

/* ---- CUPTI's two interfaces ---- */

static int kind_enable(int kind, bool on)
{
	const struct cupti_functions *call = &session.cupti.call;

	if (!session.shared)
		return on ? call->ActivityEnable(kind) : call->ActivityDisable(kind);
	return on ? call->ActivityEnable_v2(session.subscriber, kind, NULL)
		  : call->ActivityDisable_v2(session.subscriber, kind, NULL);
}

static int record_next(uint8_t *at, size_t valid, uint8_t **record)
{
	const struct cupti_functions *call = &session.cupti.call;

	return session.shared
		       ? call->ActivityGetNextRecord_v2(session.subscriber, at, valid, record)
		       : call->ActivityGetNextRecord(at, valid, record);
}

static void completed(void *context, uint32_t stream, uint8_t *at, size_t size, size_t valid)
{
	(void)context, (void)stream, (void)size;
	buffers_complete(at, valid);
}

static void requested_2(uint8_t **at, size_t *size, size_t *records_max, void *info)
{
	(void)info;
	buffers_request(at, size, records_max);
}

static void completed_2(uint8_t *at, size_t size, size_t valid, void *info)
{
	(void)size, (void)info;
	buffers_complete(at, valid);
}

static int buffers_register(void)
{
	const struct cupti_functions *call = &session.cupti.call;

	return session.shared ? call->ActivityRegisterCallbacks_v2(session.subscriber, requested_2,
								   completed_2)
			      : call->ActivityRegisterCallbacks(buffers_request, completed);
}

/* ---- callbacks in threads of the program ---- */

static void release(bool finalize);

/* `finalize` of CUPTI is only safe while a call of the driver returns. */
static bool may_finalize(void)
{
	return !session.shared && session.cupti.version >= CUPTI_VERSION_FINALIZES;
}

static void called(void *user, int domain, uint32_t cbid, const void *data)
{
	const struct cupti_call *call = data;

	(void)user;
	if (domain == CUPTI_RESOURCE) {
		graphs_changed(&session.cupti, operations_names()[GPU_NAME_CAPTURE], cbid, data);
		return;
	}
	if (domain != CUPTI_DRIVER_API)
		return;
	if (call->site == CUPTI_ENTER) {
		launches_call(cbid, call);
		return;
	}
	launches_return(cbid, call);
	if (__atomic_load_n(&session.end, __ATOMIC_ACQUIRE) == ENDING &&
	    cbid == launches_trigger() && pthread_equal(session.thread, pthread_self())) {
		session.end = ENDED;
		release(may_finalize());
	}
}

/* ---- begin ---- */

/* 0 or a CUptiResult. */
static int subscribe(void)
{
	const struct cupti_functions *call = &session.cupti.call;
	struct cupti_subscriber params = {.size = CUPTI_SUBSCRIBER_SIZE,
					  .name = "waffle",
					  .old_name = session.holder,
					  .old_name_size = sizeof(session.holder),
					  .allow_others = 1};
	int result = -1;

	*session.holder = '\0';
	session.shared = false;
	if (cupti_is_shared(&session.cupti)) {
		result = call->Subscribe_v2(&session.subscriber, called, NULL, &params);
		session.shared = result == CUPTI_OK;
	}
	/* The driver may be too old for that, or the holder does not share. */
	if (result != CUPTI_OK && result != CUPTI_IS_TAKEN)
		result = call->Subscribe(&session.subscriber, called, NULL);
	if (result == CUPTI_IS_TAKEN && call->Subscribe_v2 && !*session.holder) {
		/* Only for the name of the holder. */
		params.allow_others = 0;
		if (call->Subscribe_v2(&session.subscriber, called, NULL, &params) == CUPTI_OK)
			return CUPTI_OK;
	}
	session.holder[sizeof(session.holder) - 1] = '\0';
	return result;
}

/* Whether graphs are recorded as a whole, instead of each of their nodes. CUDA 13.0's CUPTI crashes
 * the program at the launch of a graph that was made before this was enabled. */
static bool graphs_are_whole(void)
{
	const char *text = getenv("WAFFLE_GPU_GRAPH");
	static bool told;

	if (!text || !strcmp(text, "nodes"))
		return false;
	if (!strcmp(text, "whole"))
		return session.early;
	if (!told)
		say_line("WAFFLE_GPU_GRAPH: '%.32s': expected nodes or whole; graphs are recorded "
			 "by "
			 "their nodes",
			 text);
	told = true;
	return false;
}

/* Enables what CUPTI can give. Without kernels there is no session. */
static int kinds_enable(void)
{
	int result = 0;

	for (size_t i = 0; i < KIND_COUNT; i++) {
		int code;

		if (kinds[i] == CUPTI_GRAPH_TRACE && !graphs_are_whole())
			continue;
		code = kind_enable(kinds[i], true);
		session.enabled[i] = code == CUPTI_OK;
		if (kinds[i] == CUPTI_CONCURRENT_KERNEL)
			result = code;
	}
	return result;
}

static void kinds_disable(void)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (session.enabled[i])
			kind_enable(kinds[i], false);
	memset(session.enabled, 0, sizeof(session.enabled));
}

/* PyTorch's profiler does not look again for a CUPTI that it could not have once. */
static void torch_warn(void)
{
	void *torch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);

	if (!torch)
		return;
	dlclose(torch);
	snprintf(session.reason, sizeof(session.reason),
		 "if torch.profiler starts before this session has ended, it gets nothing of the "
		 "GPU in "
		 "this process any more");
}

static bool begin_subscribed(void)
{
	const struct cupti *cupti = &session.cupti;
	int result = gpu_clock_begin(cupti);
	const char *what = "CUPTI's clock";

	if (!result) {
		what = "CUPTI's buffers";
		result = buffers_register();
	}
	if (!result) {
		what = "CUPTI's records of kernels";
		result = kinds_enable();
	}
	if (!result) {
		what = "CUPTI's calls of the driver";
		launches_find(cupti);
		torch_warn();
		tell("armed"); /* before the first call of this session */
		result = launches_watch(cupti, session.subscriber, true);
	}
	if (!result && !graphs_are_whole())
		graphs_watch(cupti, session.subscriber, true);
	if (!result)
		return true;
	kinds_disable();
	cupti->call.Unsubscribe(session.subscriber);
	return refuse_result(what, result);
}

static void counts_reset(void)
{
	session.dropped = session.zero_times = session.clamped = session.unknown = 0;
	buffers_discarded();
	session.told_lost = session.told_ns = 0;
	*session.reason = *session.holder = '\0';
	session.end = 0;
}

bool session_begin(bool early)
{
	int result;

	counts_reset();
	session.early = early;
	session.asked_ns = clock_monotonic_ns();
	session.thread = pthread_self();
	session.again = true;
	if (!cuda_is_loaded()) {
		snprintf(session.reason, sizeof(session.reason),
			 "the process has not loaded CUDA's driver");
		return refuse();
	}
	session.again = false;
	session.state = BEGINS;
	if (cupti_open(&session.cupti, session.reason))
		return refuse();
	if (session.cupti.simulated)
		operations_simulate();
	result = subscribe();
	session.again = result == CUPTI_IS_TAKEN;
	if (result == CUPTI_IS_TAKEN) {
		snprintf(session.reason, sizeof(session.reason),
			 "another tool has CUPTI%s%s; the calls of CUDA are recorded as without it",
			 *session.holder ? ": " : "", session.holder);
		return refuse();
	}
	if (result)
		return refuse_result("subscribing to CUPTI", result);
	if (!begin_subscribed())
		return false;
	session.state = ARMED;
	session.told = false;
	return true;
}

/* ---- records ---- */

static void operation_take(struct gpu_operation *operation)
{
	uint64_t launch = launches_time(operation->correlation);
	bool clamped;

	if (operation->op == GPU_WAIT && launches_is_query(operation->correlation))
		return;
	if (!activity_has_times(operation)) {
		session.zero_times++;
		return;
	}
	operation->start = gpu_clock_ns(operation->start);
	operation->end = gpu_clock_ns(operation->end);
	operation->queued = gpu_clock_ns(operation->queued);
	operation->submitted = gpu_clock_ns(operation->submitted);
	clamped = operation->start < launch;
	if (clamped) {
		session.clamped++;
		operation->start = launch;
		if (operation->end < launch)
			operation->end = launch;
	}
	operation->simulated = session.cupti.simulated;
	operations_write(operation, clamped);
}

static void record_take(const uint8_t *record, size_t room)
{
	struct gpu_operation operation;
	struct gpu_context context;

	switch (activity_read(record, room, &operation, &context)) {
	case ACTIVITY_OPERATION:
		operation_take(&operation);
		break;
	case ACTIVITY_CONTEXT:
		operations_context(&context);
		break;
	case ACTIVITY_UNKNOWN:
		session.unknown++;
	}
}

/* Lets the reader of our ring keep up with many records. */
static void pause_after(unsigned *count)
{
	struct timespec pause = {.tv_nsec = PAUSE_NS};

	if (++*count % PAUSE_RECORDS == 0)
		nanosleep(&pause, NULL);
}

static void buffer_read(const struct gpu_buffer *buffer, unsigned *count)
{
	uint8_t *record = NULL;

	while (record_next(buffer->at, buffer->valid, &record) == CUPTI_OK) {
		size_t at = (size_t)(record - buffer->at);

		if (at >= buffer->valid) /* not a record of this buffer */
			return;
		record_take(record, buffer->valid - at);
		pause_after(count);
	}
}

static void dropped_add(void)
{
	const struct cupti_functions *call = &session.cupti.call;
	size_t dropped = 0;
	int result = session.shared ? call->ActivityGetNumDroppedRecords_v2(session.subscriber,
									    NULL, 0, &dropped)
				    : call->ActivityGetNumDroppedRecords(NULL, 0, &dropped);

	if (result == CUPTI_OK)
		session.dropped += dropped;
	session.dropped += buffers_discarded();
}

static void records_read(void)
{
	struct gpu_buffer *buffer;
	unsigned count = 0;

	gpu_clock_pair(&session.cupti);
	while ((buffer = buffers_take())) {
		buffer_read(buffer, &count);
		buffers_give(buffer);
	}
}

/* A tracer that ends does not get the last event, so losses are reported when they change. */
static void counts_tell(void)
{
	uint64_t lost = session.dropped + session.zero_times + session.clamped + session.unknown;
	uint64_t now = clock_monotonic_ns();

	if (lost == session.told_lost || now - session.told_ns < AGAIN_NS)
		return;
	session.told_lost = lost;
	session.told_ns = now;
	tell("counts");
}

void session_poll(void)
{
	if (session.state == UNAVAILABLE && session.again &&
	    clock_monotonic_ns() - session.asked_ns > AGAIN_NS)
		session_begin(false);
	if (session.state != ARMED)
		return;
	session.cupti.call.ActivityFlushAll(0);
	dropped_add();
	records_read();
	counts_tell();
}

/* ---- end ---- */

/* Ends the subscription, after the last records were read. */
static void release(bool finalize)
{
	const struct cupti_functions *call = &session.cupti.call;

	launches_watch(&session.cupti, session.subscriber, false);
	graphs_watch(&session.cupti, session.subscriber, false);
	kinds_disable();
	call->ActivityFlushAll(1);
	dropped_add();
	records_read();
	call->Unsubscribe(session.subscriber);
	if (finalize)
		call->Finalize();
}

/* A call of the driver that does nothing, so that CUPTI calls us while it returns. */
static void driver_call(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*get)(int *version) = NULL;
	int version;

	if (!driver || !launches_trigger())
		return;
	*(void **)&get = dlsym(driver, "cuDriverGetVersion");
	if (get && session.cupti.call.EnableCallback(1, session.subscriber, CUPTI_DRIVER_API,
						     launches_trigger()) == CUPTI_OK)
		get(&version);
	dlclose(driver);
}

void session_end(bool exits)
{
	if (session.state == ARMED) {
		session.cupti.call.ActivityFlushAll(0);
		__atomic_store_n(&session.end, ENDING, __ATOMIC_RELEASE);
		if (!exits)
			driver_call();
		if (session.end != ENDED)
			release(false);
		session.end = 0;
		tell("disarmed");
		buffers_trim();
	}
	session.state = OUTSIDE;
	session.told = false;
}

bool session_leave(void)
{
	if (session.state == BEGINS || session.state == ARMED)
		return false;
	session.state = OUTSIDE;
	session.told = false;
	return true;
}

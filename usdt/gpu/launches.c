// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/launches.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

#define CALLS_MAX 2048u /* cuda.h has 800 functions */
#define NAME_BYTES 48
#define TIMES 65536u

/* `stream` of a call is the offset of the stream's handle in the call's parameters, or one of
 * these. The CUlaunchConfig that the first parameter points to has the handle at CONFIG_STREAM. */
#define NONE 0xffu      /* the parameters have no handle, or we do not know where it is */
#define BY_CONFIG 0xfeu /* the first parameter points to a CUlaunchConfig */
#define WAITS 0xfdu     /* the call waits for the GPU */
#define CONFIG_STREAM 32

static const struct {
	const char *name; /* without _v2, _ptsz and _ptds; a `*` at the end stands for anything */
	uint8_t stream;
} rows[] = {
	{"cuLaunchKernel", 40},
	{"cuLaunchKernelEx", BY_CONFIG},
	{"cuLaunchCooperativeKernel", 40},
	{"cuLaunchHostFunc", 0},
	{"cuLaunch*", NONE},
	{"cuGraphLaunch", 8},
	{"cuMemcpyAsync", 24},
	{"cuMemcpyHtoDAsync", 24},
	{"cuMemcpyDtoHAsync", 24},
	{"cuMemcpyDtoDAsync", 24},
	{"cuMemcpyPeerAsync", 40},
	{"cuMemcpy2DAsync", 8},
	{"cuMemcpy3DAsync", 8},
	{"cuMemcpy*", NONE},
	{"cuMemsetD8Async", 24},
	{"cuMemsetD16Async", 24},
	{"cuMemsetD32Async", 24},
	{"cuMemsetD2D8Async", 40},
	{"cuMemsetD2D16Async", 40},
	{"cuMemsetD2D32Async", 40},
	{"cuMemset*", NONE},
	{"cuStreamSynchronize", WAITS},
	{"cuEventSynchronize", WAITS},
	{"cuCtxSynchronize", WAITS},
};

/* The index is the number of the callback. Elements are written before the callbacks are switched
 * on. */
static struct {
	char name[NAME_BYTES]; /* "": it is not watched */
	uint8_t stream;
} calls[CALLS_MAX];
static uint32_t trigger;

/* Begins of the latest calls. A writer writes the time between two versions of the number, so that
 * a reader never takes the time of another call. */
static struct {
	uint32_t correlation;
	uint64_t ns;
} times[TIMES];

static void suffix_cut(char *name, const char *suffix)
{
	size_t length = strlen(name), cut = strlen(suffix);

	if (length > cut && !strcmp(name + length - cut, suffix))
		name[length - cut] = '\0';
}

static bool is_named(const char *name, const char *row)
{
	size_t length = strlen(row);

	return row[length - 1] == '*' ? !strncmp(name, row, length - 1) : !strcmp(name, row);
}

static bool call_choose(uint32_t cbid, const char *name)
{
	char *copy = calls[cbid].name;

	*copy = '\0';
	if (!strcmp(name, "cuDriverGetVersion"))
		trigger = cbid;
	if (strlen(name) >= NAME_BYTES)
		return false;
	strcpy(copy, name);
	suffix_cut(copy, "_ptsz");
	suffix_cut(copy, "_ptds");
	suffix_cut(copy, "_v2");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (is_named(copy, rows[i].name)) {
			calls[cbid].stream = rows[i].stream;
			return true;
		}
	}
	*copy = '\0';
	return false;
}

unsigned launches_find(const struct cupti *cupti)
{
	unsigned count = 0;

	trigger = 0;
	memset(times, 0, sizeof(times)); /* CUPTI may count from 1 again */
	for (uint32_t cbid = 1; cbid < CALLS_MAX; cbid++) {
		const char *name = NULL;

		*calls[cbid].name = '\0';
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

		if (*calls[cbid].name)
			result = cupti->call.EnableCallback(on, subscriber, CUPTI_DRIVER_API, cbid);
		first = first ? first : result;
	}
	return first;
}

uint32_t launches_trigger(void)
{
	return trigger;
}

/* The stream's handle as the program has it. 0: the default stream, or not at hand. */
static uint64_t stream_of(uint32_t cbid, const void *params)
{
	uint8_t at = calls[cbid].stream;
	const char *from = params;
	uint64_t handle;

	if (!from || at == NONE)
		return 0;
	if (at == BY_CONFIG) {
		memcpy(&from, params, sizeof(from));
		at = CONFIG_STREAM;
	}
	if (!from)
		return 0;
	memcpy(&handle, from + at, sizeof(handle));
	return handle;
}

static void launch_call(waffle_name_t *name, uint32_t cbid, const struct cupti_call *call)
{
	uint32_t at = call->correlation % TIMES;

	waffle_event_named(
		name,
		WAFFLE_VALUES(waffle_u64(call->correlation), waffle_str(calls[cbid].name),
			      waffle_value_word_(WAFFLE_KEY_PTR, stream_of(cbid, call->params))));
	/* After the event: an operation whose begin is moved to this time is not before its launch.
	 * The GPU gets the work later. */
	__atomic_store_n(&times[at].correlation, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&times[at].ns, clock_monotonic_ns(), __ATOMIC_RELEASE);
	__atomic_store_n(&times[at].correlation, call->correlation, __ATOMIC_RELEASE);
}

void launches_call(struct launches_names names, uint32_t cbid, const struct cupti_call *call)
{
	uint32_t at = call->correlation % TIMES;
	int code = errno;

	if (cbid >= CALLS_MAX || !*calls[cbid].name)
		return;
	/* Some calls of the driver make another one, with the same number. */
	if (__atomic_load_n(&times[at].correlation, __ATOMIC_RELAXED) == call->correlation)
		return;
	if (calls[cbid].stream == WAITS)
		waffle_event_named(names.wait, WAFFLE_VALUES(waffle_u64(call->correlation),
							     waffle_str(calls[cbid].name)));
	else
		launch_call(names.launch, cbid, call);
	errno = code;
}

uint64_t launches_time(uint32_t correlation)
{
	uint32_t at = correlation % TIMES;
	uint64_t ns;

	if (!correlation ||
	    __atomic_load_n(&times[at].correlation, __ATOMIC_ACQUIRE) != correlation)
		return 0;
	ns = __atomic_load_n(&times[at].ns, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&times[at].correlation, __ATOMIC_ACQUIRE) == correlation ? ns : 0;
}

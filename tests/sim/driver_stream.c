// SPDX-License-Identifier: Apache-2.0
/* The stand-in for libcuda.so.1: streams, events and graphs. */
#include <pthread.h>
#include <stdlib.h>

#include "driver.h"

/* An event marks the end of all operations in its stream when it was recorded. */
struct CUevent_st {
	pthread_mutex_t lock;
	struct stream *stream; /* NULL: never recorded */
	uint32_t ticket;
	struct op_list *list; /* not a real event: the stream was recording to this list */
	uint64_t at_ns;       /* time of the last completed record */
	struct CUevent_st *next;
};

/* Destroyed events, which are only reused for new events: a stream may still refer to them. */
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUevent_st *events_free;

struct CUgraph_st {
	struct op_list list;
};

static CUresult stream_make(CUstream *handle, unsigned int flags)
{
	CUstream stream = calloc(1, sizeof(*stream));

	if (stream && !(stream->stream = stream_new(!(flags & CU_STREAM_NON_BLOCKING)))) {
		free(stream);
		stream = NULL;
	}
	*handle = stream;
	return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	SIM_CALL_WITH(CUresult, SIM_SEEN(phStream, (void *)(uintptr_t)Flags));
	return (CUresult)sim_api_result(&sim_api, (int)stream_make(phStream, Flags));
}

SIM_API CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	SIM_CALL_WITH(CUresult, SIM_SEEN(phStream, (void *)(uintptr_t)flags));
	(void)priority;
	return (CUresult)sim_api_result(&sim_api, (int)stream_make(phStream, flags));
}

SIM_API CUresult cuStreamDestroy_v2(CUstream hStream)
{
	SIM_CALL(CUresult);
	if (!hStream || hStream == SIM_STREAM_LEGACY || hStream == SIM_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	stream_free(hStream->stream);
	free(hStream);
	return CUDA_SUCCESS;
}

static CUresult cuStreamQuery_on(CUstream handle, bool per_thread)
{
	struct stream *stream = stream_of(handle, per_thread);

	if (stream && stream_list(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return stream && stream_done(stream, stream_last(stream)) ? CUDA_SUCCESS
								  : CUDA_ERROR_NOT_READY;
}
DEFINE_TWO(cuStreamQuery, _ptsz, (CUstream hStream), SIM_SEEN(hStream), hStream)

static CUresult cuStreamSynchronize_on(CUstream handle, bool per_thread)
{
	struct stream *stream = stream_of(handle, per_thread);
	uint64_t start = sim_now_ns();

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (stream_list(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream == legacy_stream())
		streams_wait(true);
	else
		stream_wait(stream, stream_last(stream));
	wait_observed("", 3, stream, start);
	return CUDA_SUCCESS;
}
DEFINE_TWO(cuStreamSynchronize, _ptsz, (CUstream hStream), SIM_SEEN(hStream), hStream)

static uint64_t wait_run(struct op *op, uint64_t start_ns)
{
	CUevent event = (CUevent)op->words[0];
	uint64_t at_ns;

	stream_wait((struct stream *)op->words[1], (uint32_t)op->words[2]);
	at_ns = __atomic_load_n(&event->at_ns, __ATOMIC_ACQUIRE);
	return at_ns > start_ns ? at_ns : start_ns;
}

/* A stream that waits for an event of a capture joins the capture. */
static CUresult capture_join(struct stream *stream, struct op_list *list)
{
	struct op_list *own = stream_list(stream);

	if (!streams_record(list))
		return CUDA_ERROR_CAPTURED_EVENT;
	if (own && own != list)
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	if (!own)
		stream_record(stream, list);
	return CUDA_SUCCESS;
}

static CUresult cuStreamWaitEvent_on(CUstream handle, CUevent event, bool per_thread)
{
	struct op op = {.run = wait_run, .words = {(uintptr_t)event}};
	struct stream *stream = stream_of(handle, per_thread);
	struct op_list *list;

	pthread_mutex_lock(&event->lock);
	op.words[1] = (uintptr_t)event->stream;
	op.words[2] = event->ticket;
	list = event->list;
	pthread_mutex_unlock(&event->lock);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (list)
		return capture_join(stream, list);
	if (!op.words[1])
		return CUDA_SUCCESS;
	if (stream_list(stream))
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	wait_observed("", 2, stream, sim_now_ns());
	return op_submit(stream, &op, false);
}
DEFINE_TWO(cuStreamWaitEvent, _ptsz, (CUstream hStream, CUevent hEvent, unsigned int Flags),
	   SIM_SEEN(hStream, hEvent), ((void)Flags, hStream), hEvent)

static CUresult cuStreamBeginCapture_v2_on(CUstream handle, bool per_thread)
{
	struct stream *stream = stream_of(handle, per_thread);
	struct op_list *list;

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (stream == legacy_stream())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	list = calloc(1, sizeof(*list));
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list->origin = stream;
	list->id = graph_number();
	if (stream_record(stream, list))
		return CUDA_SUCCESS;
	free(list);
	return CUDA_ERROR_ILLEGAL_STATE;
}
DEFINE_TWO(cuStreamBeginCapture_v2, _ptsz, (CUstream hStream, CUstreamCaptureMode mode),
	   SIM_SEEN(hStream), ((void)mode, hStream))

static CUresult cuStreamEndCapture_on(CUstream handle, CUgraph *graph, bool per_thread)
{
	struct stream *stream = stream_of(handle, per_thread);
	struct op_list *list = stream ? stream_list(stream) : NULL;

	*graph = NULL;
	if (!list)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (list->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	streams_record_end(list);
	*graph = (CUgraph)list;
	return CUDA_SUCCESS;
}
DEFINE_TWO(cuStreamEndCapture, _ptsz, (CUstream hStream, CUgraph *phGraph),
	   SIM_SEEN(hStream, phGraph), hStream, phGraph)

/* Numbers the nodes as CUPTI does, and tells of them. */
static void graph_observed(struct op_list *list, uint32_t from)
{
	const struct sim_observer *observer = sim_observer();
	struct op *last = NULL;

	list->is_old = !observer || !observer->graphs();
	for (uint32_t i = 0; i < list->count; i++) {
		struct op *op = &list->ops[i];

		if (!op->about.op)
			continue;
		op->about.graph = list->id;
		op->about.node = (uint64_t)list->id << 32 | (i + 1);
		op->about.graph_is_old = list->is_old;
		if (observer)
			observer->graph(20, list->id, op->about.node,
					(uint64_t)from << 32 | (i + 1));
		last = op;
	}
	if (last)
		last->about.graph_ends = true;
	if (observer)
		observer->graph(18, list->id, 0, from);
}

SIM_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
					     unsigned long long flags)
{
	struct op_list *list;

	SIM_CALL(CUresult);
	(void)flags;
	list = calloc(1, sizeof(*list));
	if (list)
		list->id = graph_number();
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list->ops = calloc(hGraph->list.count + 1, sizeof(*list->ops));
	if (!list->ops) {
		free(list);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (; list->count < hGraph->list.count; list->count++)
		list->ops[list->count] = hGraph->list.ops[list->count];
	graph_observed(list, hGraph->list.id);
	*phGraphExec = (CUgraphExec)list;
	return CUDA_SUCCESS;
}

static CUresult cuGraphLaunch_on(CUgraphExec exec, CUstream handle, bool per_thread)
{
	struct op_list *list = (struct op_list *)exec;
	struct stream *stream = stream_of(handle, per_thread);
	CUresult result = CUDA_SUCCESS;

	/* So does the CUPTI of CUDA 13.0. */
	if (list->is_old && sim_observer() && sim_observer()->graphs())
		abort();
	for (uint32_t i = 0; i < list->count && result == CUDA_SUCCESS; i++) {
		struct op op = list->ops[i];

		result = op_submit(stream, &op, false);
	}
	return result;
}
DEFINE_TWO(cuGraphLaunch, _ptsz, (CUgraphExec hGraphExec, CUstream hStream),
	   SIM_SEEN(hGraphExec, hStream), hGraphExec, hStream)

static CUresult list_free(struct op_list *list)
{
	free(list->ops);
	free(list);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	SIM_CALL(CUresult);
	return list_free((struct op_list *)hGraphExec);
}

SIM_API CUresult cuGraphDestroy(CUgraph hGraph)
{
	SIM_CALL(CUresult);
	return list_free(&hGraph->list);
}

SIM_API CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	CUevent event;

	SIM_CALL(CUresult);
	(void)Flags;
	pthread_mutex_lock(&events_lock);
	event = events_free;
	if (event)
		events_free = event->next;
	pthread_mutex_unlock(&events_lock);
	if (!event) {
		event = calloc(1, sizeof(*event));
		if (event)
			pthread_mutex_init(&event->lock, NULL);
	}
	*phEvent = event;
	return event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuEventDestroy_v2(CUevent hEvent)
{
	SIM_CALL(CUresult);
	if (hEvent->stream)
		stream_wait(hEvent->stream, hEvent->ticket);
	hEvent->stream = NULL;
	hEvent->list = NULL;
	pthread_mutex_lock(&events_lock);
	hEvent->next = events_free;
	events_free = hEvent;
	pthread_mutex_unlock(&events_lock);
	return CUDA_SUCCESS;
}

static uint64_t record_run(struct op *op, uint64_t start_ns)
{
	CUevent event = (CUevent)op->words[0];

	__atomic_store_n(&event->at_ns, start_ns, __ATOMIC_RELEASE);
	return start_ns;
}

static CUresult record(CUevent event, CUstream handle, bool per_thread)
{
	struct op op = {.run = record_run, .words = {(uintptr_t)event}};
	struct stream *stream = stream_of(handle, per_thread);
	struct op_list *list = stream ? stream_list(stream) : NULL;
	bool ok = stream && (list || stream_order(stream, legacy_stream()));

	pthread_mutex_lock(&event->lock);
	if (ok && !list) {
		ok = stream_submit(stream, &op, &event->ticket);
		event->stream = stream;
	}
	event->list = list;
	pthread_mutex_unlock(&event->lock);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult cuEventRecord_on(CUevent event, CUstream stream, bool per_thread)
{
	return record(event, stream, per_thread);
}
DEFINE_TWO(cuEventRecord, _ptsz, (CUevent hEvent, CUstream hStream), SIM_SEEN(hEvent, hStream),
	   hEvent, hStream)

static CUresult cuEventRecordWithFlags_on(CUevent event, CUstream stream, bool per_thread)
{
	return record(event, stream, per_thread);
}
DEFINE_TWO(cuEventRecordWithFlags, _ptsz, (CUevent hEvent, CUstream hStream, unsigned int flags),
	   SIM_SEEN(hEvent, hStream), ((void)flags, hEvent), hStream)

/* CUPTI reports that it waited, if the event is done. */
SIM_API CUresult cuEventQuery(CUevent hEvent)
{
	uint64_t start = sim_now_ns();

	SIM_CALL_WITH(CUresult, SIM_SEEN(hEvent));
	if (hEvent->list)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (hEvent->stream && !stream_done(hEvent->stream, hEvent->ticket))
		return CUDA_ERROR_NOT_READY;
	wait_observed("cuEventQuery", 1, NULL, start);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuEventSynchronize(CUevent hEvent)
{
	uint64_t start = sim_now_ns();

	SIM_CALL_WITH(CUresult, SIM_SEEN(hEvent));
	if (hEvent->list)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (hEvent->stream)
		stream_wait(hEvent->stream, hEvent->ticket);
	wait_observed("", 1, NULL, start);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	SIM_CALL(CUresult);
	if (!hStart->stream || !hEnd->stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (cuEventQuery(hStart) != CUDA_SUCCESS || cuEventQuery(hEnd) != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_READY;
	*pMilliseconds = (float)((double)(int64_t)(hEnd->at_ns - hStart->at_ns) / 1e6);
	return CUDA_SUCCESS;
}

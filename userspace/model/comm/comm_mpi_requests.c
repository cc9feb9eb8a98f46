// SPDX-License-Identifier: Apache-2.0
/*
 * Nonblocking calls and the waits that complete them. A wait knows a request by the address of its
 * variable and by its value. A value alone is not enough: libraries give the same one to all
 * messages that were sent at once. An address alone is not enough either, since programs copy
 * requests. So first the request is looked up that was stored at this address with this value, then
 * the last one with this value.
 */
#include "model/comm/comm_mpi_internal.h"
#include "util/memory.h"

/* The largest array of requests that is searched. */
#define ARRAY_MAX 65536
#define MPICH_REQUEST_NULL 0x2c000000
#define ADDRESS_MIN 4096 /* no MPI_Status lies below: MPI_STATUS_IGNORE is 0 or 1 */

void mpi_with_nobody(struct mpi_scan *scan, const struct mpi_item *item, uint32_t count)
{
	uint32_t before = map_get(&scan->comm->with_nobody, item->span);

	if (count)
		map_put(&scan->comm->with_nobody, item->span,
			count + (before == MAP_NONE ? 0 : before));
}

void mpi_call_matched(struct mpi_call *call, uint64_t matched)
{
	int32_t source = (int32_t)matched, tag = (int32_t)(matched >> 32);

	if (!call->receives || source < 0 || tag < 0)
		return;
	if (call->peer == -1)
		call->peer = source;
	if (call->tag == -1)
		call->tag = tag;
}

/* ---- the table of requests ---- */

static void request_push(struct mpi_scan *scan, const struct mpi_item *item,
			 const struct mpi_request *request)
{
	const uint64_t address[] = {item->process, request->address};
	const uint64_t handle[] = {item->process, request->handle};
	uint32_t index = (uint32_t)scan->requests.len;

	memory_require(scan->requests.len < MODEL_NONE);
	vec_add(&scan->requests, *request);
	keymap_put(&scan->by_address, address, sizeof(address), index);
	keymap_put(&scan->by_handle, handle, sizeof(handle), index);
}

static void request_remove(struct mpi_scan *scan, const struct mpi_item *item, uint32_t index)
{
	const struct mpi_request *request = &scan->requests.data[index];
	const uint64_t address[] = {item->process, request->address};
	const uint64_t handle[] = {item->process, request->handle};

	if (keymap_get(&scan->by_address, address, sizeof(address)) == index)
		keymap_remove(&scan->by_address, address, sizeof(address));
	if (keymap_get(&scan->by_handle, handle, sizeof(handle)) == index)
		keymap_remove(&scan->by_handle, handle, sizeof(handle));
}

/* `handle` NULL: only its address is known. */
static uint32_t request_find(const struct mpi_scan *scan, const struct mpi_item *item,
			     uint64_t address, const uint64_t *handle)
{
	const uint64_t address_key[] = {item->process, address};
	uint64_t handle_key[] = {item->process, 0};
	uint32_t found = keymap_get(&scan->by_address, address_key, sizeof(address_key));

	if (!handle || (found != MAP_NONE && scan->requests.data[found].handle == *handle))
		return found;
	handle_key[1] = *handle;
	return keymap_get(&scan->by_handle, handle_key, sizeof(handle_key));
}

void mpi_request_add(struct mpi_scan *scan, const struct mpi_item *item, uint32_t call)
{
	struct mpi_request request = {.address = item->values[MPI_REQUEST],
				      .handle = item->values[MPI_HANDLE],
				      .call = call};

	if (!mpi_has(item, MPI_REQUEST) || item->failed)
		return;
	scan->calls.data[call].call.end_ts = UINT64_MAX;
	/* The value of the request is known when the call has returned. */
	if (mpi_has(item, MPI_HANDLE))
		request_push(scan, item, &request);
}

void mpi_request_add_with_nobody(struct mpi_scan *scan, const struct mpi_item *item)
{
	unsigned role = item->site->role;
	bool persistent = role == SITE_ROLE_MPI_SEND_INIT || role == SITE_ROLE_MPI_RECV_INIT;
	struct mpi_request request = {.address = item->values[MPI_REQUEST],
				      .handle = item->values[MPI_HANDLE],
				      .call = MODEL_NONE,
				      .persistent = persistent,
				      .nobody = true};

	if (!mpi_has(item, MPI_REQUEST) || !mpi_has(item, MPI_HANDLE) || item->failed)
		return;
	request_push(scan, item, &request);
	if (item->site->pointers && !persistent)
		scan->processes.data[item->process].empty_request = request.handle;
}

void mpi_request_add_persistent(struct mpi_scan *scan, const struct mpi_item *item,
				const struct mpi_call *start)
{
	struct mpi_request request = {.address = item->values[MPI_REQUEST],
				      .handle = item->values[MPI_HANDLE],
				      .call = MODEL_NONE,
				      .persistent = true,
				      .start = *start};

	if (mpi_has(item, MPI_REQUEST) && mpi_has(item, MPI_HANDLE))
		request_push(scan, item, &request);
}

/* ---- requests of a call ---- */

/* The number of requests that a call has in its array; 1 if it has one request. */
static uint32_t request_count(struct mpi_scan *scan, const struct mpi_item *item)
{
	uint64_t count = 1;

	if (mpi_has(item, MPI_REQUESTS))
		count = mpi_has(item, MPI_COUNT) && (int64_t)item->values[MPI_COUNT] > 0
				? item->values[MPI_COUNT]
				: 0;
	if (count > ARRAY_MAX)
		count = ARRAY_MAX;
	if (count > scan->steps_left)
		count = scan->steps_left;
	scan->steps_left -= count;
	return (uint32_t)count;
}

/* The request number `at` of a call. MAP_NONE: it is not known, or complete. */
static uint32_t request_at(const struct mpi_scan *scan, const struct mpi_item *item, uint32_t at)
{
	uint64_t bytes = item->site->pointers ? sizeof(uint64_t) : sizeof(uint32_t);

	if (!mpi_has(item, MPI_REQUESTS))
		return mpi_has(item, MPI_HANDLE)
			       ? request_find(scan, item, item->values[MPI_REQUEST],
					      &item->values[MPI_HANDLE])
			       : MAP_NONE;
	return request_find(scan, item, item->values[MPI_REQUESTS] + at * bytes,
			    at < MPI_FIRST && mpi_has(item, MPI_HANDLE0 + at)
				    ? &item->values[MPI_HANDLE0 + at]
				    : NULL);
}

/* The operation of a request is complete. `status`: the number of its status in the call. */
static void complete(struct mpi_scan *scan, const struct mpi_item *item, uint32_t index,
		     uint32_t status)
{
	struct mpi_request *request = &scan->requests.data[index];
	bool array = mpi_has(item, MPI_STATUSES);
	unsigned key = array ? MPI_MATCHED0 + status : MPI_MATCHED;
	struct mpi_call *call;

	if (request->call != MODEL_NONE) {
		call = &scan->calls.data[request->call];
		call->call.end_ts = item->end_ts;
		call->call.end_span = item->span;
		if (!call->call.failed && (!array || status < MPI_FIRST) && mpi_has(item, key) &&
		    mpi_has(item, array ? MPI_STATUSES : MPI_STATUS) &&
		    item->values[array ? MPI_STATUSES : MPI_STATUS] >= ADDRESS_MIN)
			mpi_call_matched(call, item->values[key]);
	}
	mpi_with_nobody(scan, item, request->nobody);
	request->call = MODEL_NONE;
	if (!request->persistent)
		request_remove(scan, item, index);
}

/* Whether the request number `at` of a call is null, or complete since it was made. What Open MPI's
 * null request is, is not known. */
static bool is_empty(const struct mpi_scan *scan, const struct mpi_item *item, uint32_t at)
{
	unsigned key = mpi_has(item, MPI_REQUESTS) ? MPI_HANDLE0 + at : MPI_HANDLE;
	uint64_t empty = item->site->pointers ? scan->processes.data[item->process].empty_request
					      : MPICH_REQUEST_NULL;

	return empty && at < MPI_FIRST && mpi_has(item, key) && item->values[key] == empty;
}

static void complete_at(struct mpi_scan *scan, const struct mpi_item *item, uint32_t at,
			uint32_t status)
{
	uint32_t index = request_at(scan, item, at);

	if (index != MAP_NONE)
		complete(scan, item, index, status);
	else
		mpi_with_nobody(scan, item, is_empty(scan, item, at));
}

/* MPI_Waitsome says which requests are complete. */
static void complete_some(struct mpi_scan *scan, const struct mpi_item *item, uint32_t count)
{
	/* It is MPI_UNDEFINED, a negative number, if all requests are null. */
	bool undefined = item->values[MPI_FINISHED] > INT32_MAX;
	uint32_t finished = undefined ? 0 : (uint32_t)item->values[MPI_FINISHED];

	mpi_with_nobody(scan, item, undefined);
	for (uint32_t i = 0; i < MPI_FIRST_SOME && i < finished; i++)
		if (mpi_has(item, MPI_INDEX0 + i) && item->values[MPI_INDEX0 + i] < count)
			complete_at(scan, item, (uint32_t)item->values[MPI_INDEX0 + i], i);
}

/* Nobody knows whether the operations of a call's requests took place. */
static void requests_fail(struct mpi_scan *scan, const struct mpi_item *item)
{
	uint32_t count = request_count(scan, item);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = request_at(scan, item, i);

		if (index != MAP_NONE && scan->requests.data[index].call != MODEL_NONE)
			scan->calls.data[scan->requests.data[index].call].call.failed = true;
	}
}

void mpi_requests_wait(struct mpi_scan *scan, const struct mpi_item *item)
{
	uint32_t count;

	if (item->failed) {
		requests_fail(scan, item);
		return;
	}
	if (item->end_ts == UINT64_MAX ||
	    (mpi_has(item, MPI_DONE) && !(int32_t)item->values[MPI_DONE]))
		return;
	if (item->site->role == SITE_ROLE_MPI_WAIT_ANY) {
		count = mpi_has(item, MPI_COUNT) ? (uint32_t)item->values[MPI_COUNT] : 0;
		if (mpi_has(item, MPI_INDEX) && item->values[MPI_INDEX] < count)
			complete_at(scan, item, (uint32_t)item->values[MPI_INDEX], 0);
		else if (mpi_has(item, MPI_INDEX)) /* MPI_UNDEFINED: all requests are null */
			mpi_with_nobody(scan, item, (int32_t)item->values[MPI_INDEX] < 0);
		return;
	}
	count = request_count(scan, item);
	if (item->site->role == SITE_ROLE_MPI_WAIT_SOME) {
		if (mpi_has(item, MPI_FINISHED))
			complete_some(scan, item, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		complete_at(scan, item, i, i);
}

void mpi_request_cancel(struct mpi_scan *scan, const struct mpi_item *item)
{
	requests_fail(scan, item);
}

void mpi_requests_start(struct mpi_scan *scan, const struct mpi_item *item)
{
	uint32_t count = request_count(scan, item);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = request_at(scan, item, i);
		struct mpi_call call;

		if (index == MAP_NONE || !scan->requests.data[index].persistent ||
		    scan->requests.data[index].nobody)
			continue;
		call = scan->requests.data[index].start;
		call.order = scan->order++;
		call.posted_ts = item->ts;
		call.returned_ts = item->end_ts;
		call.call.arrival_ts = item->ts;
		call.call.span = item->span;
		call.call.thread = item->thread;
		call.call.failed = item->failed;
		memory_require(scan->calls.len < MODEL_NONE);
		vec_add(&scan->calls, call);
		scan->requests.data[index].call = (uint32_t)scan->calls.len - 1;
	}
}

void mpi_request_free(struct mpi_scan *scan, const struct mpi_item *item)
{
	uint32_t index = item->end_ts == UINT64_MAX ? MAP_NONE : request_at(scan, item, 0);

	if (index != MAP_NONE)
		request_remove(scan, item, index);
}

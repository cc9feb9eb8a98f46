// SPDX-License-Identifier: Apache-2.0
/* The values of MPI's calls, by their keys. */
#include <stdlib.h>
#include <string.h>

#include "model/comm/comm_mpi_internal.h"
#include "util/memory.h"

/* Classes of errors (mpi.h). The first ones are arguments in both libraries. */
#define ERROR_TYPE 3
#define OMPI_ERROR_REQUEST 7
#define OMPI_ERROR_OP 10
#define MPICH_ERROR_OP 9
#define MPICH_ERROR_REQUEST 19
/* A code of MPICH has its class in the low bits, unless the program has defined it
 * (src/mpi/errhan/errutil.h). */
#define MPICH_CLASS_MASK 0x7fu
#define MPICH_DYNAMIC 0x40000000u

static const char *const key_names[] = {
	[MPI_COMM] = "comm",
	[MPI_RANK] = "rank",
	[MPI_INDEX] = "index",
	[MPI_SIZE] = "size",
	[MPI_NEW] = "new",
	[MPI_NEW_RANK] = "new_rank",
	[MPI_COLOR] = "color",
	[MPI_TYPE] = "type",
	[MPI_KEY] = "key",
	[MPI_COUNT] = "count",
	[MPI_RECEIVED] = "received",
	[MPI_ROOT] = "root",
	[MPI_DEST] = "dest",
	[MPI_SOURCE] = "source",
	[MPI_TAG] = "tag",
	[MPI_RECEIVE_TAG] = "receive_tag",
	[MPI_REQUEST] = "request",
	[MPI_HANDLE] = "handle",
	[MPI_MESSAGE_HANDLE] = "message_handle",
	[MPI_STATUS] = "status",
	[MPI_MATCHED] = "matched",
	[MPI_DONE] = "done",
	[MPI_RESULT] = "result",
	[MPI_REQUESTS] = "requests",
	[MPI_STATUSES] = "statuses",
	[MPI_FINISHED] = "finished",
	[MPI_INDEX0] = "index0",
	"index1",
	"index2",
	[MPI_HANDLE0] = "handle0",
	"handle1",
	"handle2",
	"handle3",
	"handle4",
	[MPI_MATCHED0] = "matched0",
	"matched1",
	"matched2",
	"matched3",
	"matched4",
};
_Static_assert(sizeof(key_names) / sizeof(key_names[0]) == MPI_KEY_COUNT, "a name a key");

/* In MPICH's ABI a communicator is a number; in Open MPI it is an address. */
static bool has_pointers(const struct site_info *site)
{
	static const char *const handles[] = {"comm", "handle", "handle0"};

	for (unsigned i = 0; i < site->key_count && i < WAFFLE_KEYS_MAX; i++)
		for (size_t k = 0; k < sizeof(handles) / sizeof(handles[0]); k++)
			if (!strcmp(site->keys[i].name, handles[k]))
				return site->keys[i].type == WAFFLE_KEY_PTR;
	return false;
}

static void site_set(struct mpi_site *to, const struct site_info *site)
{
	bool takes_message = false;

	to->role = site_role_is_mpi(site->role) ? site->role : SITE_ROLE_NONE;
	to->pointers = has_pointers(site);
	for (unsigned i = 0; i < WAFFLE_KEYS_MAX; i++) {
		to->keys[i] = MPI_KEY_COUNT;
		for (unsigned key = 0; i < site->key_count && key < MPI_KEY_COUNT; key++)
			if (!strcmp(site->keys[i].name, key_names[key]))
				to->keys[i] = (uint8_t)key;
		takes_message |= to->keys[i] == MPI_HANDLE;
	}
	/* MPI_Probe only looks. */
	if (to->role == SITE_ROLE_MPI_MPROBE && !takes_message)
		to->role = SITE_ROLE_NONE;
}

bool mpi_sites_make(struct mpi_scan *scan)
{
	uint32_t count = model_site_count(scan->model);
	bool any = false;

	for (uint32_t i = 0; i < count; i++)
		any |= site_role_is_mpi(model_site(scan->model, i)->role);
	if (!any)
		return false;
	scan->sites = memory_zeroed((size_t)count + 1, sizeof(*scan->sites));
	for (uint32_t i = 0; i < count; i++)
		site_set(&scan->sites[i], model_site(scan->model, i));
	return true;
}

static bool is_wait(unsigned role)
{
	return role == SITE_ROLE_MPI_WAIT || role == SITE_ROLE_MPI_WAIT_ANY ||
	       role == SITE_ROLE_MPI_WAIT_SOME;
}

static bool may_receive(unsigned role)
{
	return role == SITE_ROLE_MPI_RECV || role == SITE_ROLE_MPI_SENDRECV ||
	       role == SITE_ROLE_MPI_MRECV;
}

/* Whether a failed call has done nothing: it is MPI_Init, or an argument is invalid. MPI_ERR_ARG is
 * none of these classes, since Open MPI also returns it for errors inside of the library. */
static bool is_rejected(const struct mpi_site *site, uint32_t result)
{
	uint32_t class = site->pointers ? result : result & MPICH_CLASS_MASK;

	if (site->role == SITE_ROLE_MPI_INIT)
		return true;
	if (!site->pointers && result & MPICH_DYNAMIC)
		return false;
	if (class == (site->pointers ? OMPI_ERROR_REQUEST : MPICH_ERROR_REQUEST))
		return true;
	/* A wait returns the error of the operation that it waits for, and MPICH compares the types
	 * of a message when it arrives. */
	if (is_wait(site->role) || (class == ERROR_TYPE && may_receive(site->role)))
		return false;
	return class <= (site->pointers ? OMPI_ERROR_OP : MPICH_ERROR_OP);
}

bool mpi_item_read(const struct mpi_scan *scan, uint32_t span, struct mpi_item *item)
{
	const struct model *model = scan->model;
	const struct model_span *at = &model->spans.data[span];
	uint32_t count = model_site_count(model);
	const struct mpi_site *site = &scan->sites[at->site < count ? at->site : count];
	struct value_walk walk;
	struct value value;

	if (site->role == SITE_ROLE_NONE || at->flags & MODEL_SPAN_BEGUN_BEFORE)
		return false;
	item->site = site;
	item->span = span;
	item->thread = at->thread;
	item->pid = model->threads.data[at->thread].pid;
	item->ts = at->start_ts;
	item->end_ts =
		at->flags & (MODEL_SPAN_UNFINISHED | MODEL_SPAN_LEFT) ? UINT64_MAX : at->end_ts;
	item->has = 0;
	walk = model_values(model, at->site, at->frame);
	for (unsigned i = 0; i < WAFFLE_KEYS_MAX && value_walk_any(&walk, &value); i++) {
		unsigned key = site->keys[i];

		if (key == MPI_KEY_COUNT || value.missing || value.type == WAFFLE_KEY_STR ||
		    value.type == WAFFLE_KEY_DIM3)
			continue;
		item->has |= UINT64_C(1) << key;
		item->values[key] = value.u64;
	}
	item->failed = mpi_has(item, MPI_RESULT) && (uint32_t)item->values[MPI_RESULT];
	return !item->failed || !is_rejected(site, (uint32_t)item->values[MPI_RESULT]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the files comm_mpi*: what the calls of MPI mean in one process. A process knows its
 * communicators and requests by handles, which it uses again when they are free. So each handle
 * stands for a local communicator from its creation to its release.
 */
#ifndef WAFFLE_MODEL_COMM_COMM_MPI_INTERNAL_H
#define WAFFLE_MODEL_COMM_COMM_MPI_INTERNAL_H

#include "model/comm/comm_ids_internal.h"
#include "model/comm/comm_internal.h"
#include "util/keymap.h"

/* Handles and statuses of an array that a call of MPI_Waitall has: probes/mpi.probes. */
#define MPI_FIRST 5
#define MPI_FIRST_SOME 3

enum mpi_key {
	MPI_COMM,
	MPI_RANK,
	MPI_INDEX,
	MPI_SIZE,
	MPI_NEW,
	MPI_NEW_RANK,
	MPI_COLOR,
	MPI_TYPE,
	MPI_KEY,
	MPI_COUNT,
	MPI_RECEIVED,
	MPI_ROOT,
	MPI_DEST,
	MPI_SOURCE,
	MPI_TAG,
	MPI_RECEIVE_TAG,
	MPI_REQUEST,
	MPI_HANDLE,
	MPI_MESSAGE_HANDLE,
	MPI_STATUS,
	MPI_MATCHED,
	MPI_DONE,
	MPI_RESULT,
	MPI_REQUESTS,
	MPI_STATUSES,
	MPI_FINISHED,
	MPI_INDEX0,                                /* MPI_FIRST_SOME of them */
	MPI_HANDLE0 = MPI_INDEX0 + MPI_FIRST_SOME, /* MPI_FIRST of them */
	MPI_MATCHED0 = MPI_HANDLE0 + MPI_FIRST,
	MPI_KEY_COUNT = MPI_MATCHED0 + MPI_FIRST
};

struct mpi_site {
	uint16_t role;                 /* enum site_role; NONE if it is no call of MPI */
	bool pointers;                 /* Open MPI: handles are addresses */
	uint8_t keys[WAFFLE_KEYS_MAX]; /* enum mpi_key of each key; MPI_KEY_COUNT: another */
};

/* A call with its values. */
struct mpi_item {
	const struct mpi_site *site;
	uint32_t span, thread, pid;
	uint32_t process;    /* in scan.processes */
	uint64_t ts, end_ts; /* end_ts UINT64_MAX: it did not return */
	bool failed;         /* it returned an error, but may have done something */
	uint64_t has;        /* bit 1 << key: it has the value */
	uint64_t values[MPI_KEY_COUNT];
};
_Static_assert(MPI_KEY_COUNT <= 64, "a bit a key");

static inline bool mpi_has(const struct mpi_item *item, unsigned key)
{
	return item->has >> key & 1;
}

enum mpi_comm_kind {
	MPI_COMM_UNKNOWN, /* created before the capture, or of unknown ranks */
	MPI_COMM_WORLD,
	MPI_COMM_SELF,
	MPI_COMM_DUP,
	MPI_COMM_SPLIT,
	MPI_COMM_CREATE,
	MPI_COMM_CREATE_GROUP,
};

/* Whether the capture has all calls of a process, or of a communicator from its creation on. */
enum mpi_counted {
	MPI_UNCOUNTED,
	/* MPI_Init is not in the capture, but the process began in it, and its first call asks for
	 * its rank or the number of ranks. MPI_Init takes long, so probably nothing else was
	 * missed. */
	MPI_ASSUMED,
	MPI_COUNTED,
};

/* A communicator in one process. */
struct mpi_comm {
	uint64_t id;          /* the same on all ranks; set when all calls are known */
	uint64_t creation;    /* hash of the parent and the creating call, without the color */
	uint64_t ts;          /* of its creation */
	uint64_t seq;         /* number of the creating call on the parent */
	uint64_t collectives; /* calls of collectives so far */
	uint64_t color;
	int32_t key;
	uint32_t process;
	uint32_t thread;  /* that created it */
	uint32_t parent;  /* local communicator with a lower index, or MODEL_NONE */
	uint32_t start;   /* MPI_COMM_WORLD: which start of the job it is of */
	uint32_t depth;   /* number of ancestors */
	uint32_t rank;    /* MODEL_NONE: unknown */
	uint32_t size;    /* 0: unknown */
	uint8_t kind;     /* enum mpi_comm_kind */
	bool null;        /* the process is not in it: it called for MPI_COMM_NULL */
	uint8_t counted;  /* enum mpi_counted */
	bool maybe_world; /* it may be MPI_COMM_WORLD: nothing else is known of its handle */
	bool disturbed;   /* a collective has failed */
	/* The first send and the first receive that may not have taken place, or whose message is
	 * unknown. Later ones that could be of the same message cannot be numbered. */
	struct mpi_unresolved {
		bool any;
		int32_t peer, tag; /* -1: any */
	} unresolved[2];           /* of sends, of receives */
	/* When the next send and the next receive of that kind began; 0: there is none. */
	uint64_t unresolved_ts[2];
};

struct mpi_process {
	uint32_t pid;
	uint32_t world;  /* local communicator, or MODEL_NONE */
	uint8_t counted; /* enum mpi_counted */
	uint64_t init_ts;
	uint64_t next_ts; /* when the next process of this pid began; UINT64_MAX: there is none */
	/* Open MPI: the request of all operations that are complete at once; 0: unknown. */
	uint64_t empty_request;
};

/* One end of a message or a call of a collective; `call` is completed when all calls are known. */
struct mpi_call {
	struct comm_call call;
	uint64_t order; /* of posting */
	/* When the span began and ended that posted it: of a blocking call, the whole call. */
	uint64_t posted_ts, returned_ts;
	uint32_t comm; /* local communicator */
	/* Of a collective: whether it gives and gets elements, by its counts. */
	enum mpi_elements { MPI_UNKNOWN, MPI_EMPTY, MPI_ELEMENTS } given, got;
	/* Of a message: its direction, the other rank and the tag; -1: unknown. */
	bool message, receives;
	int32_t peer, tag;
};

/* An operation that is not complete, or a persistent request. */
struct mpi_request {
	uint64_t address, handle;
	uint32_t call; /* MODEL_NONE: not started, or `nobody` */
	bool persistent;
	bool nobody;           /* of an operation with MPI_PROC_NULL */
	struct mpi_call start; /* persistent: what each MPI_Start does */
};

/* Whether an end of a message may not have taken place, or its message is unknown. */
static inline bool mpi_call_is_unresolved(const struct mpi_call *call)
{
	return call->message && (call->call.failed || call->peer == -1 || call->tag == -1);
}

struct mpi_scan {
	struct model_comm *comm;
	const struct model *model;
	struct mpi_site *sites; /* by site index; the last one is for unknown sites */
	VEC(struct mpi_process) processes;
	VEC(struct mpi_comm) comms;
	VEC(struct mpi_call) calls;
	VEC(struct mpi_request) requests;
	struct map execs;          /* pids that executed a program during the capture → 0 */
	struct map process_at;     /* pid → process */
	struct keymap comm_at;     /* process, handle → local communicator */
	struct keymap by_handle;   /* process, handle → request */
	struct keymap by_address;  /* process, address → request */
	struct keymap message_at;  /* process, handle of MPI_Mprobe's message → call */
	struct keymap group_calls; /* local communicator, tag → calls of MPI_Comm_create_group */
	struct comm_ids ids;       /* of communicators, and of the calls that made them */
	uint64_t steps_left;       /* limit of requests of arrays that are looked up */
	uint64_t order;
};

/* ---- comm_mpi_values.c ---- */

/* Fills scan->sites. False: no site is of MPI. */
bool mpi_sites_make(struct mpi_scan *scan);
/* Reads the values of a call; false: it is no call of MPI, or it did nothing because an argument
 * was invalid. */
bool mpi_item_read(const struct mpi_scan *scan, uint32_t span, struct mpi_item *item);

/* ---- comm_mpi_comms.c ---- */

/* Index of the process of a call, made if it is new. */
uint32_t mpi_process_of(struct mpi_scan *scan, const struct mpi_item *item);
/* The local communicator of a call, made if it is new. MODEL_NONE: the handle is null. */
uint32_t mpi_comm_of(struct mpi_scan *scan, const struct mpi_item *item);
/* A call that makes a communicator from another one. */
void mpi_comm_make(struct mpi_scan *scan, const struct mpi_item *item, uint32_t parent);
void mpi_comm_free(struct mpi_scan *scan, const struct mpi_item *item);

/* ---- comm_mpi_requests.c ---- */

/* Counts operations of a call that are with nobody. */
void mpi_with_nobody(struct mpi_scan *scan, const struct mpi_item *item, uint32_t count);
/* The call at index `call` goes on after its span, which has returned a request. */
void mpi_request_add(struct mpi_scan *scan, const struct mpi_item *item, uint32_t call);
/* Adds the request of an operation with MPI_PROC_NULL. */
void mpi_request_add_with_nobody(struct mpi_scan *scan, const struct mpi_item *item);
/* Adds a persistent request. */
void mpi_request_add_persistent(struct mpi_scan *scan, const struct mpi_item *item,
				const struct mpi_call *start);
void mpi_requests_start(struct mpi_scan *scan, const struct mpi_item *item);
void mpi_requests_wait(struct mpi_scan *scan, const struct mpi_item *item);
/* MPI_Cancel: a wait does not tell whether the operation was cancelled or took place. */
void mpi_request_cancel(struct mpi_scan *scan, const struct mpi_item *item);
void mpi_request_free(struct mpi_scan *scan, const struct mpi_item *item);
/* Sets where a received message came from: source in the low half, tag in the high half. */
void mpi_call_matched(struct mpi_call *call, uint64_t matched);

/* ---- comm_mpi_scan.c ---- */

/* Collects the processes, communicators and calls. */
void mpi_scan_all(struct mpi_scan *scan);

/* ---- comm_mpi_order.c ---- */

/* Marks the calls of which nobody knows the order, since threads made them at the same time. Peers
 * and tags must be known. */
void mpi_calls_order(struct mpi_scan *scan);

/* ---- comm_mpi_worlds.c ---- */

/* Finds which communicators are MPI_COMM_WORLD, their ranks, and the start of the job that each is
 * of. Those of a job in which two processes claim one rank become unknown. */
void mpi_worlds_find(struct mpi_scan *scan);

/* ---- comm_mpi_ranks.c ---- */

/* Finds the ids of all local communicators, and the rank and size that the program did not ask
 * for. */
void mpi_comms_finish(struct mpi_scan *scan);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of MPI in captures made by hand, with the keys of probes/mpi.probes. Each call is kept
 * until mpi_write(), which puts the records of all ranks in the order of their times. Rank r is
 * process and thread 100 + r. Include it after model_capture.h and calls_capture.h.
 */
#ifndef WAFFLE_TEST_MPI_CAPTURE_H
#define WAFFLE_TEST_MPI_CAPTURE_H

#include "model/comm/comm.h"

#define MPI_PID 100
#define MPICH_WORLD 0x44000000u
#define OMPI_WORLD 0x7f0000001000ull

enum mpi_site {
	MPI_SITE_INIT,       /* -> result */
	MPI_SITE_RANK,       /* comm -> rank, result; MPICH only */
	MPI_SITE_SIZE,       /* comm -> size, result */
	MPI_SITE_BARRIER,    /* comm -> result */
	MPI_SITE_ALLREDUCE,  /* comm, count -> result */
	MPI_SITE_BCAST,      /* comm, count, root -> result */
	MPI_SITE_IALLREDUCE, /* comm, count, request -> handle, result */
	MPI_SITE_DUP,        /* comm -> new, result */
	MPI_SITE_SPLIT,      /* comm, color, key -> new, result */
	MPI_SITE_CREATE,     /* comm -> new, result */
	MPI_SITE_FREE,       /* comm -> result */
	MPI_SITE_SEND,       /* comm, dest, tag -> result */
	MPI_SITE_ISEND,      /* comm, dest, tag, request -> handle, result */
	MPI_SITE_RECV,       /* comm, source, tag, status -> matched, result */
	MPI_SITE_IRECV,      /* comm, source, tag, request -> handle, result */
	MPI_SITE_SENDRECV,   /* comm, dest, tag, source, receive_tag, status -> matched, result */
	MPI_SITE_WAIT,       /* request, handle, status -> matched, result */
	MPI_SITE_TEST,       /* request, handle, status -> done, matched, result */
	MPI_SITE_WAITALL,    /* count, requests, handle0 to 4, statuses -> matched0 to 4, result */
	MPI_SITE_WAITANY,    /* count, requests, handle0 to 4, status -> index, matched, result */
	MPI_SITE_RECV_INIT,  /* comm, source, tag, request -> handle, result */
	MPI_SITE_START,      /* request, handle -> result */
	MPI_SITE_MPROBE,     /* comm, source, tag, status -> handle, matched, result */
	MPI_SITE_MRECV,      /* handle -> result */
	MPI_SITE_CANCEL,     /* request, handle -> result */
	MPI_SITE_BCAST_C,    /* as BCAST */
	MPI_SITE_SEND_COUNT, /* comm, count, dest, tag -> result */
	MPI_SITE_ALLGATHER,  /* comm, count, received -> result */
	MPI_SITE_GATHER,     /* comm, count, received, root -> result */
	MPI_SITE_SCATTER,    /* comm, count, received, root -> result */
	MPI_SITE_ALLTOALLV,  /* comm -> result */
	MPI_SITE_GATHERV,    /* comm, count, root -> result */
	MPI_SITE_COUNT
};

/* Keys behind the communicator, which Open MPI's calls follow with rank and index. */
struct mpi_row {
	const char *name;
	enum site_role role;
	bool comm;
	unsigned begin; /* number of keys known at the begin, without those of the communicator */
	const char *keys[15]; /* the last one is NULL */
};

static const struct mpi_row mpi_rows[MPI_SITE_COUNT] = {
	[MPI_SITE_INIT] = {"MPI_Init", SITE_ROLE_MPI_INIT, false, 0, {"result"}},
	[MPI_SITE_RANK] = {"MPI_Comm_rank", SITE_ROLE_MPI_COMM_RANK, true, 0, {"rank", "result"}},
	[MPI_SITE_SIZE] = {"MPI_Comm_size", SITE_ROLE_MPI_COMM_SIZE, true, 0, {"size", "result"}},
	[MPI_SITE_BARRIER] = {"MPI_Barrier", SITE_ROLE_MPI_BARRIER, true, 0, {"result"}},
	[MPI_SITE_ALLREDUCE] = {"MPI_Allreduce", SITE_ROLE_MPI_ALL, true, 1, {"count", "result"}},
	[MPI_SITE_BCAST] =
		{"MPI_Bcast", SITE_ROLE_MPI_FROM_ROOT, true, 2, {"count", "root", "result"}},
	[MPI_SITE_IALLREDUCE] = {"MPI_Iallreduce",
				 SITE_ROLE_MPI_ALL,
				 true,
				 2,
				 {"count", "request", "handle", "result"}},
	[MPI_SITE_DUP] = {"MPI_Comm_dup", SITE_ROLE_MPI_COMM_DUP, true, 0, {"new", "result"}},
	[MPI_SITE_SPLIT] = {"MPI_Comm_split",
			    SITE_ROLE_MPI_COMM_SPLIT,
			    true,
			    2,
			    {"color", "key", "new", "result"}},
	[MPI_SITE_CREATE] =
		{"MPI_Comm_create", SITE_ROLE_MPI_COMM_CREATE, true, 0, {"new", "result"}},
	[MPI_SITE_FREE] = {"MPI_Comm_free", SITE_ROLE_MPI_COMM_FREE, true, 0, {"result"}},
	[MPI_SITE_SEND] = {"MPI_Send", SITE_ROLE_MPI_SEND, true, 2, {"dest", "tag", "result"}},
	[MPI_SITE_ISEND] = {"MPI_Isend",
			    SITE_ROLE_MPI_SEND,
			    true,
			    3,
			    {"dest", "tag", "request", "handle", "result"}},
	[MPI_SITE_RECV] = {"MPI_Recv",
			   SITE_ROLE_MPI_RECV,
			   true,
			   3,
			   {"source", "tag", "status", "matched", "result"}},
	[MPI_SITE_IRECV] = {"MPI_Irecv",
			    SITE_ROLE_MPI_RECV,
			    true,
			    3,
			    {"source", "tag", "request", "handle", "result"}},
	[MPI_SITE_SENDRECV] = {"MPI_Sendrecv",
			       SITE_ROLE_MPI_SENDRECV,
			       true,
			       5,
			       {"dest", "tag", "source", "receive_tag", "status", "matched",
				"result"}},
	[MPI_SITE_WAIT] = {"MPI_Wait",
			   SITE_ROLE_MPI_WAIT,
			   false,
			   3,
			   {"request", "handle", "status", "matched", "result"}},
	[MPI_SITE_TEST] = {"MPI_Test",
			   SITE_ROLE_MPI_WAIT,
			   false,
			   3,
			   {"request", "handle", "status", "done", "matched", "result"}},
	[MPI_SITE_WAITALL] = {"MPI_Waitall",
			      SITE_ROLE_MPI_WAIT,
			      false,
			      8,
			      {"count", "requests", "handle0", "handle1", "handle2", "handle3",
			       "handle4", "statuses", "matched0", "matched1", "matched2",
			       "matched3", "matched4", "result"}},
	[MPI_SITE_WAITANY] = {"MPI_Waitany",
			      SITE_ROLE_MPI_WAIT_ANY,
			      false,
			      8,
			      {"count", "requests", "handle0", "handle1", "handle2", "handle3",
			       "handle4", "status", "index", "matched", "result"}},
	[MPI_SITE_RECV_INIT] = {"MPI_Recv_init",
				SITE_ROLE_MPI_RECV_INIT,
				true,
				3,
				{"source", "tag", "request", "handle", "result"}},
	[MPI_SITE_START] =
		{"MPI_Start", SITE_ROLE_MPI_START, false, 2, {"request", "handle", "result"}},
	[MPI_SITE_MPROBE] = {"MPI_Mprobe",
			     SITE_ROLE_MPI_MPROBE,
			     true,
			     3,
			     {"source", "tag", "status", "handle", "matched", "result"}},
	[MPI_SITE_MRECV] = {"MPI_Mrecv", SITE_ROLE_MPI_MRECV, false, 1, {"handle", "result"}},
	[MPI_SITE_BCAST_C] =
		{"MPI_Bcast_c", SITE_ROLE_MPI_FROM_ROOT, true, 2, {"count", "root", "result"}},
	[MPI_SITE_SEND_COUNT] =
		{"MPI_Send", SITE_ROLE_MPI_SEND, true, 3, {"count", "dest", "tag", "result"}},
	[MPI_SITE_ALLGATHER] =
		{"MPI_Allgather", SITE_ROLE_MPI_ALL, true, 2, {"count", "received", "result"}},
	[MPI_SITE_GATHER] = {"MPI_Gather",
			     SITE_ROLE_MPI_TO_ROOT,
			     true,
			     3,
			     {"count", "received", "root", "result"}},
	[MPI_SITE_SCATTER] = {"MPI_Scatter",
			      SITE_ROLE_MPI_FROM_ROOT,
			      true,
			      3,
			      {"count", "received", "root", "result"}},
	[MPI_SITE_ALLTOALLV] = {"MPI_Alltoallv", SITE_ROLE_MPI_ALL_PARTS, true, 0, {"result"}},
	[MPI_SITE_GATHERV] =
		{"MPI_Gatherv", SITE_ROLE_MPI_TO_ROOT_PARTS, true, 2, {"count", "root", "result"}},
	[MPI_SITE_CANCEL] =
		{"MPI_Cancel", SITE_ROLE_MPI_CANCEL, false, 2, {"request", "handle", "result"}},
};

/* A communicator as a rank names it. */
struct mpi_name {
	uint64_t handle;
	unsigned rank, index;
};

struct mpi_record {
	uint64_t ts, id;
	uint32_t site;
	unsigned rank, count;
	unsigned thread; /* 0: the first one of the rank */
	bool end;
	uint64_t words[16];
};

struct mpi_job {
	struct capture capture;
	bool pointers; /* of Open MPI */
	unsigned count, room;
	uint64_t ids; /* ids 1 to `ids` are used */
	struct mpi_record *records;
};

static inline void mpi_add_site(struct mpi_job *job, const struct mpi_row *row)
{
	struct site_info site = {.name = row->name,
				 .category = "mpi",
				 .file = "",
				 .func = "",
				 .object = "/lib/libmpi.so",
				 .kind = WAFFLE_SITE_SPAN,
				 .role = (uint16_t)row->role,
				 .call = true};
	char handle = job->pointers ? WAFFLE_KEY_PTR : WAFFLE_KEY_U64;
	struct error err = ERROR_INIT;

	if (row->comm)
		site.keys[site.key_count++] = (struct site_key){handle, "comm"};
	if (row->comm && job->pointers && row->role != SITE_ROLE_MPI_COMM_FREE) {
		site.keys[site.key_count++] = (struct site_key){WAFFLE_KEY_I64, "rank"};
		site.keys[site.key_count++] = (struct site_key){WAFFLE_KEY_U64, "index"};
	}
	for (unsigned i = 0; row->keys[i]; i++) {
		bool is_handle =
			!strncmp(row->keys[i], "handle", 6) || !strcmp(row->keys[i], "new");

		site.keys[site.key_count++] =
			(struct site_key){is_handle ? handle : WAFFLE_KEY_I64, row->keys[i]};
	}
	capture_must(store_writer_add_site(job->capture.writer, &site, &err), err);
}

static inline void mpi_begin(struct mpi_job *job, bool pointers)
{
	*job = (struct mpi_job){.pointers = pointers};
	capture_begin(&job->capture, false);
	for (unsigned i = 0; i < MPI_SITE_COUNT; i++)
		mpi_add_site(job, &mpi_rows[i]);
}

static inline struct mpi_record *mpi_record_add(struct mpi_job *job, unsigned rank, uint64_t ts,
						enum mpi_site site, uint64_t id, bool end)
{
	if (job->count == job->room) {
		job->room = job->room ? 2 * job->room : 64;
		job->records = realloc(job->records, job->room * sizeof(*job->records));
		assert_non_null(job->records);
	}
	job->records[job->count] = (struct mpi_record){.ts = ts,
						       .id = id,
						       .site = (uint32_t)(CAPTURE_SITES + site),
						       .rank = rank,
						       .end = end};
	return &job->records[job->count++];
}

/* A call of a rank, with its values in the order of the keys, without the communicator and without
 * the result, which is 0. `to` 0: it does not return. `comm` NULL: it has none. Returns its id. */
static inline uint64_t mpi_call_of(struct mpi_job *job, unsigned rank, uint64_t from, uint64_t to,
				   enum mpi_site site, const struct mpi_name *comm, unsigned count,
				   const uint64_t *values)
{
	const struct mpi_row *row = &mpi_rows[site];
	uint64_t id = ++job->ids;
	struct mpi_record *record = mpi_record_add(job, rank, from, site, id, false);

	if (row->comm)
		record->words[record->count++] = comm->handle;
	if (row->comm && job->pointers && row->role != SITE_ROLE_MPI_COMM_FREE) {
		record->words[record->count++] = comm->rank;
		record->words[record->count++] = comm->index;
	}
	for (unsigned i = 0; i < row->begin; i++)
		record->words[record->count++] = i < count ? values[i] : 0;
	if (!to)
		return id;
	record = mpi_record_add(job, rank, to, site, id, true);
	for (unsigned i = row->begin; row->keys[i]; i++)
		record->words[record->count++] = i < count ? values[i] : 0;
	return id;
}

/* The last call that has returned, the result of which is the last value, returned an error. */
static inline void mpi_fail(struct mpi_job *job, uint64_t error)
{
	struct mpi_record *record = &job->records[job->count - 1];

	assert_true(record->end);
	record->words[record->count - 1] = error;
}

/* The process of a rank exits. */
#define MPI_EXIT UINT32_MAX
static inline void mpi_exit(struct mpi_job *job, unsigned rank, uint64_t ts)
{
	mpi_record_add(job, rank, ts, 0, 0, true)->site = MPI_EXIT;
}

/* Another thread of its rank made the last call. */
static inline void mpi_by_thread(struct mpi_job *job, unsigned thread)
{
	for (unsigned i = job->count; i-- && job->records[i].id == job->ids;)
		job->records[i].thread = thread;
}

#define mpi_call(job, rank, from, to, site, comm, ...)                                             \
	mpi_call_of(job, rank, from, to, site, comm, CALL_WORDS(__VA_ARGS__))

static inline int mpi_record_compare(const void *left, const void *right)
{
	const struct mpi_record *a = left, *b = right;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	if (a->end != b->end)
		return a->end ? 1 : -1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* Writes the records, and reads the model with its collectives. */
static inline struct model_comm *mpi_load(struct mpi_job *job, uint64_t end_ts,
					  const struct model **model)
{
	qsort(job->records, job->count, sizeof(*job->records), mpi_record_compare);
	for (unsigned i = 0; i < job->count; i++) {
		const struct mpi_record *record = &job->records[i];
		uint32_t pid = MPI_PID + record->rank;
		uint32_t tid = pid + 1000 * record->thread;
		struct waffle_rec_exit exit = {.rec = {record->ts, pid, WAFFLE_REC_EXIT, 0},
					       .tgid = pid};

		if (record->site == MPI_EXIT) {
			capture_add(&job->capture, &exit);
			continue;
		}

		(record->end ? call_return_in : call_hit_in)(&job->capture, pid, record->ts, tid,
							     record->site, record->id,
							     record->count, record->words);
	}
	*model = capture_load(&job->capture, end_ts);
	return model_comm_new(*model, NULL);
}

static inline void mpi_free(struct mpi_job *job, struct model_comm *comm)
{
	model_comm_free(comm);
	capture_free(&job->capture);
	free(job->records);
}

/* MPI_COMM_WORLD of a rank. */
static inline struct mpi_name mpi_world(const struct mpi_job *job, unsigned rank)
{
	return (struct mpi_name){job->pointers ? OMPI_WORLD + rank * 0x100000 : MPICH_WORLD, rank,
				 0};
}

/* The begin of a rank's program, which takes until from + 30. */
static inline void mpi_init(struct mpi_job *job, unsigned rank, unsigned size, uint64_t from)
{
	struct mpi_name world = mpi_world(job, rank);

	mpi_call(job, rank, from, from + 10, MPI_SITE_INIT, NULL);
	if (!job->pointers)
		mpi_call(job, rank, from + 11, from + 12, MPI_SITE_RANK, &world, rank);
	mpi_call(job, rank, from + 13, from + 14, MPI_SITE_SIZE, &world, size);
}

static inline const struct model_collective *mpi_found(const struct model *model,
						       const struct model_comm *comm, uint64_t id)
{
	return model_collective_of(comm, model_span_find(model, id));
}

/* Begins a capture of so many ranks, whose programs begin at 1100. */
static inline void mpi_begin_ranks(struct mpi_job *job, bool pointers, unsigned ranks)
{
	mpi_begin(job, pointers);
	for (unsigned rank = 0; rank < ranks; rank++)
		mpi_init(job, rank, ranks, 1100);
}

#endif

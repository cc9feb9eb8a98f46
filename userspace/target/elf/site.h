/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compile-time facts of a site. Strings are NUL-terminated, never NULL, and owned by the holder of
 * the site (an object, or the string table of a store reader).
 */
#ifndef WAFFLE_TARGET_ELF_SITE_H
#define WAFFLE_TARGET_ELF_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "waffle/abi.h"

/*
 * A key type that only the model uses: the word is a `const char *` of this process, a string of
 * the model. Walks return it as WAFFLE_KEY_STR. No file and no program can have it.
 */
#define SITE_KEY_TEXT 'T'

/* Whether a file or a program may have a key of this type. Unknown types belong to later
 * versions. */
static inline bool site_key_from_file(char type)
{
	return type != SITE_KEY_TEXT;
}

struct site_key {
	char type; /* WAFFLE_KEY_* */
	const char *name;
};

/*
 * The meaning of a call for the analysis of causes, independent of its name. Files have the numbers
 * of roles, so a new one is a row at the end. The comments list the keys of a call; others may
 * follow.
 *
 *	ROLE(identifier, name in a probe spec)
 *	WAIT(identifier, name)
 *		it may wait for a GPU or for other ranks
 *	MPI_COLLECTIVE(identifier, name, enum model_flow, synchronizes)
 *		also the creation of a communicator: it may wait, and is one of
 *		struct model_collective (model/comm/comm.h) with these members
 *
 * What analysis does for a role is in model/gpu/gpu_scan.c, model/comm/ (comm_nccl.c and
 * comm_mpi_scan.c) and analyze/why/why_await_sync.c.
 */
// clang-format off
#define SITE_ROLES(ROLE, WAIT, MPI_COLLECTIVE)                                                     \
	ROLE(NONE, "none")                                                                         \
	/* An event: kernel (code), grid, block, shared_bytes, stream. */                          \
	ROLE(LAUNCH, "launch")                                                                     \
	/* bytes, kind, stream (absent: the default stream, synchronous) */                        \
	WAIT(COPY, "copy")                                                                         \
	ROLE(SET, "set") /* bytes, stream */                                                       \
	ROLE(ALLOC, "alloc") /* bytes, address */                                                  \
	WAIT(SYNC_STREAM, "sync_stream") /* stream */                                              \
	WAIT(SYNC_EVENT, "sync_event") /* event */                                                 \
	/* No key: waits for all streams of the process's device. */                               \
	WAIT(SYNC_DEVICE, "sync_device")                                                           \
	/* event, stream (absent: all streams of a context) */                                     \
	ROLE(EVENT_RECORD, "event_record")                                                         \
	ROLE(STREAM_WAIT, "stream_wait") /* the same */                                            \
	/* count, datatype, op or root, comm, rank, nranks, seq, stream */                         \
	WAIT(COLLECTIVE, "collective")                                                             \
	ROLE(P2P, "p2p") /* comm, rank, nranks, seq, stream */                                     \
	ROLE(GROUP_START, "group_start")                                                           \
	WAIT(GROUP_END, "group_end")                                                               \
	/* rank, nranks, comm (the new one, at the return). Where comm can't be read: comm_id (the \
	 * beginning of its ncclUniqueId), and at the return comm_address. */                      \
	WAIT(COMM_INIT, "comm_init")                                                               \
	/* Names a handle: kernel (text, or its address), function (code, at the return). */       \
	ROLE(NAME, "name")                                                                         \
	/* A handle of a function: host (code), function (code, at the return). */                 \
	ROLE(HANDLE, "handle")                                                                     \
	/* Point to point: the k-th send to a peer matches the peer's k-th receive from this rank. \
	 * count, datatype, peer, comm, rank, nranks, seq, stream */                               \
	WAIT(SEND, "send")                                                                         \
	WAIT(RECV, "recv")                                                                         \
	/* stream (at the return), flags (absent: 0) */                                            \
	ROLE(STREAM_CREATE, "stream_create")                                                       \
	/* address: may wait as SYNC_DEVICE does, but also frees or locks memory */                \
	WAIT(MAY_SYNC, "may_sync")                                                                 \
	/* stream: work submitted between begin and end becomes a graph and is not executed */     \
	ROLE(CAPTURE_BEGIN, "capture_begin")                                                       \
	ROLE(CAPTURE_END, "capture_end")                                                           \
	/*                                                                                         \
	 * MPI. `comm` is the handle of a communicator: an address in Open MPI, a number in        \
	 * MPICH's ABI. `rank` (of the communicator) and `index` (0: MPI_COMM_WORLD) are absent in \
	 * MPICH. A nonblocking call has `request`, the address of a request's variable, and       \
	 * `handle`, its value.                                                                    \
	 */                                                                                        \
	ROLE(MPI_INIT, "mpi_init")                                                                 \
	MPI_COLLECTIVE(MPI_BARRIER, "mpi_barrier", FLOW_NONE, true) /* comm */                     \
	/* comm, count: all inputs reach all outputs */                                            \
	MPI_COLLECTIVE(MPI_ALL, "mpi_all", FLOW_ALL, true)                                         \
	/* comm: the same, but parts may be empty */                                               \
	MPI_COLLECTIVE(MPI_ALL_PARTS, "mpi_all_parts", FLOW_ALL, false)                            \
	MPI_COLLECTIVE(MPI_FROM_ROOT, "mpi_from_root", FLOW_FROM_ROOT, false) /* comm, root */     \
	MPI_COLLECTIVE(MPI_TO_ROOT, "mpi_to_root", FLOW_TO_ROOT, false) /* comm, root */           \
	/* comm: inputs reach the outputs of higher ranks */                                       \
	MPI_COLLECTIVE(MPI_PREFIX, "mpi_prefix", FLOW_PREFIX, false)                               \
	/* comm: inputs reach the outputs of some ranks */                                         \
	MPI_COLLECTIVE(MPI_NEIGHBORS, "mpi_neighbors", FLOW_UNKNOWN, false)                        \
	WAIT(MPI_SEND, "mpi_send") /* dest, tag, comm */                                           \
	/* source, tag, comm; status and at the return matched (source and tag) */                 \
	WAIT(MPI_RECV, "mpi_recv")                                                                 \
	/* dest, tag, source, receive_tag, comm, status, matched */                                \
	WAIT(MPI_SENDRECV, "mpi_sendrecv")                                                         \
	ROLE(MPI_SEND_INIT, "mpi_send_init") /* as SEND: a persistent request */                   \
	ROLE(MPI_RECV_INIT, "mpi_recv_init")                                                       \
	/* source, tag, comm, message, status; at the return handle (of the message), matched and, \
	 * if it does not wait, done. MPI_Probe has no message. */                                 \
	WAIT(MPI_MPROBE, "mpi_mprobe")                                                             \
	/* handle (of the message); of a nonblocking one message_handle instead */                 \
	WAIT(MPI_MRECV, "mpi_mrecv")                                                               \
	ROLE(MPI_START, "mpi_start") /* as WAIT, without status */                                 \
	/* request, handle, status, matched, or of arrays count, requests, handle0, …, statuses,   \
	 * matched0, …; at the return done, if it does not wait */                                 \
	WAIT(MPI_WAIT, "mpi_wait")                                                                 \
	/* the same for arrays, with one status; at the return index */                            \
	WAIT(MPI_WAIT_ANY, "mpi_wait_any")                                                         \
	/* the same for arrays; at the return finished (their number) and index0, … */             \
	WAIT(MPI_WAIT_SOME, "mpi_wait_some")                                                       \
	ROLE(MPI_REQUEST_FREE, "mpi_request_free") /* request, handle */                           \
	ROLE(MPI_COMM_RANK, "mpi_comm_rank") /* comm; at the return rank */                        \
	ROLE(MPI_COMM_SIZE, "mpi_comm_size") /* comm; at the return size */                        \
	/* comm; at the return new */                                                              \
	MPI_COLLECTIVE(MPI_COMM_DUP, "mpi_comm_dup", FLOW_NONE, false)                             \
	/* comm, color (absent: the host), key; at the return new */                               \
	MPI_COLLECTIVE(MPI_COMM_SPLIT, "mpi_comm_split", FLOW_NONE, false)                         \
	/* comm; at the return new: of those ranks that get one */                                 \
	MPI_COLLECTIVE(MPI_COMM_CREATE, "mpi_comm_create", FLOW_NONE, false)                       \
	/* comm; at the return new: of ranks that are not known */                                 \
	MPI_COLLECTIVE(MPI_COMM_OTHER, "mpi_comm_other", FLOW_NONE, false)                         \
	WAIT(MPI_COMM_FREE, "mpi_comm_free") /* comm */                                            \
	ROLE(MPI_CANCEL, "mpi_cancel") /* request, handle */                                       \
	/* as FROM_ROOT and TO_ROOT, but parts may be empty */                                     \
	MPI_COLLECTIVE(MPI_FROM_ROOT_PARTS, "mpi_from_root_parts", FLOW_FROM_ROOT, false)          \
	MPI_COLLECTIVE(MPI_TO_ROOT_PARTS, "mpi_to_root_parts", FLOW_TO_ROOT, false)                \
	/*                                                                                         \
	 * Wait counters of PyTorch. Their records are no spans: capture/wait_counters.c makes      \
	 * spans of them.                                                                          \
	 */                                                                                        \
	ROLE(COUNTER_NAME, "counter_name") /* name (text), counter (at the return) */              \
	ROLE(COUNTER, "counter")           /* counter */
// clang-format on

enum site_role {
#define SITE_ROLE_ID(id, ...) SITE_ROLE_##id,
	SITE_ROLES(SITE_ROLE_ID, SITE_ROLE_ID, SITE_ROLE_ID)
#undef SITE_ROLE_ID
		SITE_ROLE_COUNT
};

struct site_info {
	const char *name;
	const char *category; /* may be empty */
	const char *file;     /* source file as the compiler was given it */
	const char *func;     /* may be empty */
	const char *object;   /* path of the ELF file, as seen by the process */
	uint32_t line;
	uint16_t kind;  /* enum waffle_site_kind */
	uint16_t role;  /* enum site_role */
	bool call;      /* a call, not a macro: its parent is found by time and thread */
	bool simulated; /* in a stand-in for a real library: docs/simulation.md */
	bool keyed;     /* a pair of calls on any threads, matched by a key */
	bool laps;      /* a pair of a function with itself: from each call to the next one */
	uint16_t key_count;
	/* For a call: values of the keys from this index on are only known at its end. Not set for
	 * the calls of a file. */
	uint16_t begin_keys;
	struct site_key keys[WAFFLE_KEYS_MAX];
};

/* "span", "event", …; "?" for an unknown kind. */
const char *site_kind_name(unsigned kind);
/* "info", "warn", "error"; NULL: the hits of this kind are no log messages. */
const char *site_severity(unsigned kind);
/* True: records of the site come from a stand-in. Operations of GPUs and the events of their
 * calls say so by a key, since libwaffle-gpu names them at run time. */
bool site_is_simulated(const struct site_info *site);
/* Whether a role is that of a call of MPI. */
static inline bool site_role_is_mpi(unsigned role)
{
	return role >= SITE_ROLE_MPI_INIT && role <= SITE_ROLE_MPI_TO_ROOT_PARTS;
}
static inline bool site_role_is_nccl(unsigned role)
{
	return role == SITE_ROLE_COLLECTIVE || role == SITE_ROLE_P2P ||
	       role == SITE_ROLE_GROUP_START || role == SITE_ROLE_GROUP_END ||
	       role == SITE_ROLE_COMM_INIT || role == SITE_ROLE_SEND || role == SITE_ROLE_RECV;
}
/* Whether the hits of the site only serve to make spans of others. */
static inline bool site_is_counter(const struct site_info *site)
{
	return site->role == SITE_ROLE_COUNTER_NAME || site->role == SITE_ROLE_COUNTER;
}
/* Whether a call is only book-keeping of a library, and users do not look for it: those that the
 * compiler adds to tell the library the names of kernels, such as __cudaRegisterFunction(), of
 * which a program may make tens of thousands at its start; and those that give the handle of a
 * kernel, such as cuKernelGetFunction(), which libraries make before each launch. */
static inline bool site_is_bookkeeping(const struct site_info *site)
{
	return site->role == SITE_ROLE_HANDLE ||
	       (site->role == SITE_ROLE_NAME && site->name[0] == '_' && site->name[1] == '_');
}
/* Whether a call starts or ends a library. A program makes it once, so its time says nothing of the
 * work that the program repeats. */
static inline bool site_is_once(const struct site_info *site)
{
	return site->role == SITE_ROLE_MPI_INIT || (site->call && !strcmp(site->category, "mpi") &&
						    !strcmp(site->name, "MPI_Finalize"));
}
/* Whether it is a request that a server answers (capture/requests.h), and not a span of the program
 * that has this category: those are in a file. */
static inline bool site_is_request(const struct site_info *site)
{
	return !strcmp(site->category, "request") && !*site->file && !*site->func && !*site->object;
}
/* Whether a hit of this kind of site is a log message. */
static inline bool site_kind_is_log(unsigned kind)
{
	return kind >= WAFFLE_SITE_LOG_INFO && kind <= WAFFLE_SITE_LOG_ERROR;
}

/*
 * Walks the values of a frame (include/waffle/abi.h). The frame is not trusted: a walk ends at the
 * first value that does not fit.
 *
 *	struct value_walk walk = value_walk_begin(site, frame, frame_bytes);
 *	struct value value;
 *	while (value_walk_next(&walk, &value)) …
 */
struct value {
	const struct site_key *key;
	char type;    /* WAFFLE_KEY_*; a WAFFLE_KEY_NUMBER becomes I64, U64 or F64 */
	bool cut;     /* the string was longer */
	bool null;    /* the string was a null pointer, or is unknown */
	bool missing; /* a number without a value: only value_walk_any() */
	bool lost;    /* unknown: its address could not be read */
	union {
		int64_t i64;
		uint64_t u64; /* also bool, pointer, code, span and event ids */
		double f64;
		uint32_t dim[3]; /* DIM3: x, y, z */
	};
	const char *text; /* bytes of a string inside the frame, not terminated */
	uint32_t text_len;
};

struct value_walk {
	const struct site_info *site;
	const unsigned char *at, *end;
	unsigned key;
};

struct value_walk value_walk_begin(const struct site_info *site, const void *frame,
				   uint32_t frame_bytes);
/* The same for the values of the keys from index `first` on, which a call has at its return. */
struct value_walk value_walk_from(const struct site_info *site, unsigned first, const void *values,
				  uint32_t bytes);
bool value_walk_next(struct value_walk *walk, struct value *value);
/* The same, but also returns keys that have no value: value_walk_next() skips them. */
bool value_walk_any(struct value_walk *walk, struct value *value);

#endif

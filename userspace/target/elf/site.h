/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compile-time facts of a site. Strings are NUL-terminated, never NULL, and owned by the holder of
 * the site (an object, or the string table of a store reader).
 */
#ifndef WAFFLE_TARGET_ELF_SITE_H
#define WAFFLE_TARGET_ELF_SITE_H

#include <stdbool.h>
#include <stdint.h>

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
 * The meaning of a call for the analysis of causes, independent of its name. A call with a role has
 * the listed keys; others may follow.
 */
enum site_role {
	SITE_ROLE_NONE,
	SITE_ROLE_LAUNCH,       /* an event: kernel (code), grid, block, shared_bytes, stream */
	SITE_ROLE_COPY,         /* bytes, kind, stream (absent: the default stream, synchronous) */
	SITE_ROLE_SET,          /* bytes, stream */
	SITE_ROLE_ALLOC,        /* bytes, address */
	SITE_ROLE_SYNC_STREAM,  /* stream */
	SITE_ROLE_SYNC_EVENT,   /* event */
	SITE_ROLE_SYNC_DEVICE,  /* no key: waits for all streams of the process's device */
	SITE_ROLE_EVENT_RECORD, /* event, stream (absent: all streams of a context) */
	SITE_ROLE_STREAM_WAIT,  /* event, stream (absent: all streams of a context) */
	SITE_ROLE_COLLECTIVE,   /* count, datatype, op or root, comm, rank, nranks, seq, stream */
	SITE_ROLE_P2P,          /* comm, rank, nranks, seq, stream */
	SITE_ROLE_GROUP_START,
	SITE_ROLE_GROUP_END,
	SITE_ROLE_COMM_INIT, /* rank, nranks, comm (the new one, at the return) */
	/* Names a handle: kernel (text, or its address), function (code, at the return). */
	SITE_ROLE_NAME,
	SITE_ROLE_HANDLE, /* host (code), function (code, at the return): a handle of a function */
	/* Point to point: the k-th send to a peer matches the peer's k-th receive from this rank.
	 * count, datatype, peer, comm, rank, nranks, seq, stream */
	SITE_ROLE_SEND,
	SITE_ROLE_RECV,
	SITE_ROLE_STREAM_CREATE, /* stream (at the return), flags (absent: 0) */
	SITE_ROLE_MAY_SYNC,      /* address: may wait as SITE_ROLE_SYNC_DEVICE does */
	/* stream: work submitted between begin and end becomes a graph and is not executed */
	SITE_ROLE_CAPTURE_BEGIN,
	SITE_ROLE_CAPTURE_END,
	/*
	 * MPI. `comm` is the handle of a communicator: an address in Open MPI, a number in MPICH's
	 * ABI. `rank` (of the communicator) and `index` (0: MPI_COMM_WORLD) are absent in MPICH. A
	 * nonblocking call has `request`, the address of a request's variable, and `handle`, its
	 * value.
	 */
	SITE_ROLE_MPI_INIT,
	SITE_ROLE_MPI_BARRIER,   /* comm */
	SITE_ROLE_MPI_ALL,       /* comm, count: all inputs reach all outputs */
	SITE_ROLE_MPI_ALL_PARTS, /* comm: the same, but parts may be empty */
	SITE_ROLE_MPI_FROM_ROOT, /* comm, root */
	SITE_ROLE_MPI_TO_ROOT,   /* comm, root */
	SITE_ROLE_MPI_PREFIX,    /* comm: inputs reach the outputs of higher ranks */
	SITE_ROLE_MPI_NEIGHBORS, /* comm: inputs reach the outputs of some ranks */
	SITE_ROLE_MPI_SEND,      /* dest, tag, comm */
	/* source, tag, comm; status and at the return matched (source and tag) */
	SITE_ROLE_MPI_RECV,
	SITE_ROLE_MPI_SENDRECV,  /* dest, tag, source, receive_tag, comm, status, matched */
	SITE_ROLE_MPI_SEND_INIT, /* as SEND: a persistent request */
	SITE_ROLE_MPI_RECV_INIT,
	/* source, tag, comm, message, status; at the return handle (of the message), matched and,
	 * if it does not wait, done */
	SITE_ROLE_MPI_MPROBE,
	/* handle (of the message); of a nonblocking one message_handle instead */
	SITE_ROLE_MPI_MRECV,
	SITE_ROLE_MPI_START, /* as WAIT, without status */
	/* request, handle, status, matched, or of arrays count, requests, handle0, …, statuses,
	 * matched0, …; at the return done, if it does not wait */
	SITE_ROLE_MPI_WAIT,
	SITE_ROLE_MPI_WAIT_ANY, /* the same for arrays, with one status; at the return index */
	/* the same for arrays; at the return finished (their number) and index0, … */
	SITE_ROLE_MPI_WAIT_SOME,
	SITE_ROLE_MPI_REQUEST_FREE, /* request, handle */
	SITE_ROLE_MPI_COMM_RANK,    /* comm; at the return rank */
	SITE_ROLE_MPI_COMM_SIZE,    /* comm; at the return size */
	SITE_ROLE_MPI_COMM_DUP,     /* comm; at the return new */
	SITE_ROLE_MPI_COMM_SPLIT,   /* comm, color (absent: the host), key; at the return new */
	SITE_ROLE_MPI_COMM_CREATE,  /* comm; at the return new: of those ranks that get one */
	SITE_ROLE_MPI_COMM_OTHER,   /* comm; at the return new: of ranks that are not known */
	SITE_ROLE_MPI_COMM_FREE,    /* comm */
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
	uint16_t key_count;
	/* For a call: values of the keys from this index on are only known at its end. Not set for
	 * the calls of a file. */
	uint16_t begin_keys;
	struct site_key keys[WAFFLE_KEYS_MAX];
};

/* "span", "event", …; "?" for an unknown kind. */
const char *site_kind_name(unsigned kind);
/* Whether a role is that of a call of MPI. */
static inline bool site_role_is_mpi(unsigned role)
{
	return role >= SITE_ROLE_MPI_INIT && role < SITE_ROLE_COUNT;
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
	char type; /* WAFFLE_KEY_*; a WAFFLE_KEY_NUMBER becomes I64, U64 or F64 */
	bool cut;  /* the string was longer */
	bool null; /* the string was a null pointer, or is unknown */
	bool lost; /* unknown: its address could not be read */
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

#endif

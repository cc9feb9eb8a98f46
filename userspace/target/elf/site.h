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

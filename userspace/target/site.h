/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a site at compile time. Strings are NUL-terminated, never NULL, and belong to
 * whoever holds the site (an ELF reading, a store reader's string table).
 */
#ifndef WAFFLE_TARGET_SITE_H
#define WAFFLE_TARGET_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "waffle/abi.h"

/*
 * The model's own type of a key: the word is a `const char *` of this process, a string of the
 * model. It comes as WAFFLE_KEY_STR. No file and no program can have it.
 */
#define SITE_KEY_TEXT 'T'

/* Whether a file or a program may have a key of that type; unknown ones are of later versions. */
static inline bool site_key_from_file(char type)
{
	return type != SITE_KEY_TEXT;
}

struct site_key {
	char type; /* WAFFLE_KEY_* */
	const char *name;
};

/*
 * What a call means to those who look for its causes, whatever it is named. The keys that it has
 * then are listed; others may follow.
 */
enum site_role {
	SITE_ROLE_NONE,
	SITE_ROLE_LAUNCH,       /* an event: kernel (code), grid, block, shared_bytes, stream */
	SITE_ROLE_COPY,         /* bytes, kind, stream (absent: the default stream, synchronous) */
	SITE_ROLE_SET,          /* bytes, stream */
	SITE_ROLE_ALLOC,        /* bytes, address */
	SITE_ROLE_SYNC_STREAM,  /* stream */
	SITE_ROLE_SYNC_EVENT,   /* event */
	SITE_ROLE_SYNC_DEVICE,  /* of all streams of the process's device */
	SITE_ROLE_EVENT_RECORD, /* event, stream (absent: all of a context) */
	SITE_ROLE_STREAM_WAIT,  /* event, stream (likewise) */
	SITE_ROLE_COLLECTIVE,   /* count, datatype, op or root, comm, rank, nranks, seq, stream */
	SITE_ROLE_P2P,          /* comm, rank, nranks, seq, stream */
	SITE_ROLE_GROUP_START,
	SITE_ROLE_GROUP_END,
	SITE_ROLE_COMM_INIT, /* rank, nranks, comm (the new one, at the return) */
	/* kernel (text, or its address), function (code, at the return): names a handle */
	SITE_ROLE_NAME,
	SITE_ROLE_HANDLE, /* host (code), function (code, at the return): a handle of a function */
	/* Point to point, of which the k-th to a peer meets its k-th from this rank:
	   count, datatype, peer, comm, rank, nranks, seq, stream */
	SITE_ROLE_SEND,
	SITE_ROLE_RECV,
	SITE_ROLE_STREAM_CREATE, /* stream (at the return), flags (absent: 0) */
	SITE_ROLE_MAY_SYNC,      /* address: it may wait as SYNC_DEVICE does, or not */
	/* stream: between the two, what is put on it makes a graph and is not done */
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
	bool call;      /* not a macro's: its parents are found by time and thread */
	bool simulated; /* of a stand-in of a real library: docs/simulation.md */
	bool keyed;     /* a pair of calls that meet by a key, on any thread */
	uint16_t key_count;
	/* Of a call that is found, not of one in a file: values of the keys from this one on are
	 * known when it ends. */
	uint16_t begin_keys;
	struct site_key keys[WAFFLE_KEYS_MAX];
};

/* "span", "event", …; "?" for an unknown kind. */
const char *site_kind_name(unsigned kind);
/* Whether a hit of such a site is a log message. */
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
	char type; /* WAFFLE_KEY_*; a WAFFLE_KEY_NUMBER comes as I64, U64 or F64 */
	bool cut;  /* a string that was longer */
	bool null; /* a string that was a null pointer, or is not known */
	bool lost; /* it is not known: its address could not be read */
	union {
		int64_t i64;
		uint64_t u64; /* also bool, pointer, code, span and event ids */
		double f64;
		uint32_t dim[3]; /* DIM3: x, y, z */
	};
	const char *text; /* a string's bytes, not terminated, inside the frame */
	uint32_t text_len;
};

struct value_walk {
	const struct site_info *site;
	const unsigned char *at, *end;
	unsigned key;
};

struct value_walk value_walk_begin(const struct site_info *site, const void *frame,
				   uint32_t frame_bytes);
/* The same for the values of the keys from number `first` on, which follow a return. */
struct value_walk value_walk_from(const struct site_info *site, unsigned first, const void *values,
				  uint32_t bytes);
bool value_walk_next(struct value_walk *walk, struct value *value);

#endif

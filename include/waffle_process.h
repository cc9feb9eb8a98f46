/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libwaffle: processors. A chain of them gets each span, event, counter and log message of the
 * program as one whole record, while the program runs. docs/processors.md is the guide.
 *
 *	static bool slow(const struct waffle_record *record, void *arg)
 *	{
 *		return record->end_ns - record->start_ns > 10000000;
 *	}
 *
 *	waffle_process_callback("slow", slow, NULL);
 *	waffle_process_start("filter(kind == span),call(slow),log(json)");
 *
 * The variable WAFFLE_PROCESS starts a chain, too. Callbacks run in libwaffle's own thread, never
 * two at once. While one runs, the program's threads go on, and their records wait in the rings.
 * Sites that a callback reaches are not given to the chain.
 */
#ifndef WAFFLE_PROCESS_H
#define WAFFLE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum waffle_record_kind {
	WAFFLE_RECORD_SPAN = 1,
	WAFFLE_RECORD_EVENT,
	WAFFLE_RECORD_COUNTER, /* its value is that of its first key */
	WAFFLE_RECORD_LOG,
	WAFFLE_RECORD_KIND_COUNT
};

/* Bits of waffle_record.flags. */
#define WAFFLE_RECORD_UNFINISHED                                                                   \
	1u                     /* the span's end was not seen; end_ns is when it was given up */
#define WAFFLE_RECORD_MOVED 2u /* the span ended on the thread end_tid */
#define WAFFLE_RECORD_LEFT 4u  /* a call that did not return: longjmp() or an exception left it */

enum waffle_value_type {
	WAFFLE_VALUE_I64 = 1,
	WAFFLE_VALUE_U64,
	WAFFLE_VALUE_F64,
	WAFFLE_VALUE_BOOL,    /* in u64: 0 or 1 */
	WAFFLE_VALUE_ADDRESS, /* in u64 */
	WAFFLE_VALUE_TEXT,
	WAFFLE_VALUE_NONE, /* a null pointer, or a value that could not be read */
};

/* A key with its value. */
struct waffle_value {
	const char *key;
	enum waffle_value_type type;
	bool truncated; /* a text of which only the beginning was recorded */
	union {
		int64_t i64;
		uint64_t u64;
		double f64;
	};
	const char *text; /* any bytes, without a NUL at their end */
	size_t text_len;
};

/* A cause that is not the parent. */
struct waffle_record_link {
	bool is_event; /* else a span */
	uint64_t id;
	uint64_t trace_hi, trace_lo; /* of the cause; 0: not known */
};

/*
 * A whole record. It can't be changed, and is valid until the callback returns. Texts are never
 * NULL, but may be empty. Newer versions add members at the end.
 */
struct waffle_record {
	size_t size; /* sizeof(struct waffle_record) of the library */
	enum waffle_record_kind kind;
	uint32_t flags; /* WAFFLE_RECORD_* */
	const char *name, *category;
	const char *severity;        /* of a log message: "info", "warn", "error"; else "" */
	const char *file, *func;     /* of the site in the source, as the compiler was given it */
	uint32_t line;               /* … */
	uint32_t cpu;                /* at the begin */
	uint64_t id, parent;         /* 0: none */
	uint64_t trace_hi, trace_lo; /* the 128-bit trace id; 0: none */
	uint64_t start_ns, end_ns;   /* CLOCK_MONOTONIC; equal unless it is a span */
	int64_t unix_offset_ns;      /* to be added for the time since 1970 */
	uint32_t pid, tid, end_tid;  /* end_tid: the thread on which a span ended */
	const char *comm;            /* name of the thread at the begin */
	const struct waffle_value *values;
	size_t value_count;
	const struct waffle_record_link *links;
	size_t link_count;
	/* The track that the record is on (waffle_track.h) instead of the thread, and its group. */
	const char *track, *track_group;
};

/* True passes the record on to the next processor. */
typedef bool (*waffle_process_fn)(const struct waffle_record *record, void *arg);

/*
 * Gives a callback the name that call(NAME) in the text of a chain refers to. The chain may run
 * already: as long as there is no callback of that name, call(NAME) passes everything on. A NULL
 * callback removes the one before. The function then returns when that one runs no more, or at
 * once if a callback calls it. Returns 0, -EINVAL for a name
 * that is not made of letters, digits, '_', '-' and '.', -ENOSPC after 64 names, or -ENOMEM.
 */
int waffle_process_callback(const char *name, waffle_process_fn callback, void *arg);

/*
 * Starts a chain, and arms the sites of the program. Nothing is written to a file of
 * waffle_trace_start(). Returns 0, or a negative errno with a message on standard error: -EBUSY if
 * the process records already (waffle_trace_start() has an option for a chain), -EINVAL if the text
 * is not valid. waffle_trace_flush() and waffle_trace_stop() end it as they do a recording.
 */
int waffle_process_start(const char *text);

/* Ends the chain after everything recorded so far has passed through it. Exporters get two seconds
 * to send what they have. Returns 0, or -ESRCH if no chain runs. Not to be called by a callback
 * (-EDEADLK). */
int waffle_process_stop(void);

#ifdef __cplusplus
}
#endif

#endif

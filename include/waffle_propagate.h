/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libwaffle: takes the context of a trace out of what a program receives, and puts it into what it
 * sends: headers of any protocol, and the environment of children. Link with
 * `pkg-config --libs waffle`. docs/propagation.md is the guide.
 *
 * A server's request:
 *
 *	struct waffle_wire_context wire;
 *
 *	waffle_propagate_extract(waffle_propagators(), &received, &wire);
 *	WAFFLE_INJECT(wire.context);
 *	WAFFLE_SPAN("request");
 *	…
 *	waffle_propagate_inject(waffle_propagators(), &sent, waffle_context_extract(), &wire);
 *
 * All functions may be called by several threads at once, on different objects. They take no lock
 * and, where nothing else is said, allocate no memory.
 */
#ifndef WAFFLE_PROPAGATE_H
#define WAFFLE_PROPAGATE_H

#include <stdbool.h>
#include <stddef.h>

#include "waffle/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Formats, as bits of a set. If a message has several, the first of this list that is valid gives
 * the context; baggage is independent of them. inject writes all that are in the set.
 */
#define WAFFLE_PROPAGATE_TRACECONTEXT 1u /* traceparent, tracestate: W3C Trace Context, level 2 */
#define WAFFLE_PROPAGATE_B3 2u           /* b3: https://github.com/openzipkin/b3-propagation */
#define WAFFLE_PROPAGATE_B3MULTI 4u      /* x-b3-traceid, x-b3-spanid, x-b3-sampled, x-b3-flags */
#define WAFFLE_PROPAGATE_BAGGAGE 8u      /* baggage: https://www.w3.org/TR/baggage/ */

/*
 * Parses a set such as "tracecontext,baggage" or "b3": the values of OTEL_PROPAGATORS
 * (tracecontext, baggage, b3, b3multi, none). NULL and "" are the default, which is
 * tracecontext,baggage. Returns 0, or -EINVAL if a name is not known; then *propagators is that of
 * the known names.
 */
int waffle_propagators_parse(const char *text, unsigned *propagators);

/* The set of the variable OTEL_PROPAGATORS, at the first call. A bad value costs one line on
 * standard error. Set-user-ID programs have the default. */
unsigned waffle_propagators(void);

/* Whether the trace is to be sampled, as decided where it began. */
enum waffle_sampling {
	WAFFLE_SAMPLING_UNKNOWN, /* nobody has decided yet */
	WAFFLE_SAMPLING_DENY,
	WAFFLE_SAMPLING_ACCEPT,
	WAFFLE_SAMPLING_DEBUG, /* accept, also where a limit would apply; only B3 can tell it */
};

/* Limits in bytes, without the NUL. What these specifications require to be passed on, fits. */
#define WAFFLE_TRACESTATE_MAX 512
#define WAFFLE_BAGGAGE_MAX 8192

/*
 * What came with a message besides its context, to be sent with the messages that follow from it.
 * The program owns it, for example in its struct of a request. It is not a part of
 * waffle_context_t: that is copied with each span, and the macros know its layout. Zero bytes are
 * an empty one.
 */
struct waffle_wire_context {
	waffle_context_t context;      /* the sender's span; null if it sent none */
	enum waffle_sampling sampling; /* may be known without a context */
	unsigned flags;                /* of traceparent, besides the sampled flag */
	/* Valid members, separated by commas, with NUL. */
	char tracestate[WAFFLE_TRACESTATE_MAX + 1];
	char baggage[WAFFLE_BAGGAGE_MAX + 1];
};

/* Where headers are read from and written to. The names are in lower case. */
struct waffle_carrier {
	/*
	 * The value of the header with this name, the `index`th from 0 if there are several, and
	 * its length in bytes; NULL if there is none. Names of HTTP headers are compared without
	 * regard to case. The value is not changed, needs no NUL, and has to stay as it is until
	 * the next call.
	 */
	const char *(*get)(void *user, const char *name, size_t index, size_t *length);
	/* Sets the header, in place of those of the same name. Returns 0, or a negative errno,
	 * which ends waffle_propagate_inject(). */
	int (*set)(void *user, const char *name, const char *value);
	void *user; /* passed to both */
};

/*
 * Reads *wire from a carrier, which needs only `get`. Headers that are not valid count as missing.
 * Returns whether there is a context.
 */
bool waffle_propagate_extract(unsigned propagators, const struct waffle_carrier *carrier,
			      struct waffle_wire_context *wire);

/*
 * Writes headers to a carrier, which needs only `set`. `context` is the span that the receiver
 * shall see as its parent, usually waffle_context_extract(). If it is null, because the sites are
 * dormant, that of `wire` is passed on. `wire` is what came with the message that is being
 * handled, or NULL. Its tracestate, flags and sampling are sent only with its own trace. Returns 0
 * or what `set` returned.
 */
int waffle_propagate_inject(unsigned propagators, const struct waffle_carrier *carrier,
			    waffle_context_t context, const struct waffle_wire_context *wire);

/* ---- environment variables ---- */

/*
 * Reads *wire from the variables of this process: TRACEPARENT, TRACESTATE, BAGGAGE, B3,
 * X_B3_TRACEID, X_B3_SPANID, X_B3_PARENTSPANID, X_B3_SAMPLED and X_B3_FLAGS. Returns whether there
 * is a context. Set-user-ID programs read nothing.
 */
bool waffle_propagate_from_environment(unsigned propagators, struct waffle_wire_context *wire);

/*
 * The environment for a child: that of `envp`, without the variables above, and with those of
 * inject. Pass 0 as `propagators` only to remove them. Returns an array for execve() or
 * posix_spawn(), which the caller frees with free(); NULL with errno ENOMEM. It refers to the
 * strings of `envp`. It allocates memory, so call it before fork().
 */
char **waffle_propagate_environment(unsigned propagators, char *const envp[],
				    waffle_context_t context,
				    const struct waffle_wire_context *wire);

/* ---- members of baggage and tracestate ---- */

/*
 * Copies the decoded value of a key into `value` as far as it fits, with NUL; `size` may be 0. If
 * the key occurs several times, the last one counts. Each byte that is not UTF-8 becomes U+FFFD.
 * Returns the length of the whole value, or -ENOENT.
 */
long waffle_baggage_get(const struct waffle_wire_context *wire, const char *key, char *value,
			size_t size);

/*
 * Sets a value, or removes the key if `value` is NULL. `properties` is NULL or the text behind the
 * value, such as "secret;ttl=5", already encoded. Returns 0; -EINVAL if the key is not a token of
 * HTTP or a property is not valid; -ENOSPC if it does not fit, and then nothing has changed.
 */
int waffle_baggage_set(struct waffle_wire_context *wire, const char *key, const char *value,
		       const char *properties);

/* Copies a value as waffle_baggage_get() does. tracestate is not encoded. */
long waffle_tracestate_get(const struct waffle_wire_context *wire, const char *key, char *value,
			   size_t size);

/*
 * Sets a value, which becomes the first member, or removes the key if `value` is NULL. The last
 * members are dropped if there are more than 32 or they don't fit. Returns 0; -EINVAL if key or
 * value are not valid; -ENOSPC if this member alone does not fit.
 */
int waffle_tracestate_set(struct waffle_wire_context *wire, const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif

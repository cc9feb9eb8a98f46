/* SPDX-License-Identifier: Apache-2.0 */
/* The connection among the descriptors of a poll() or an epoll. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POLLED_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POLLED_H

#include "analyze/why/why_walk_types.h"

/* The socket of the connection for which a poll() of a list waits (why_connection_internal.h).
 * NULL: it waits for something else, or the capture does not have the socket. */
const struct store_object *why_polled_connection(const struct why_walk *walk,
						 const struct store_object *list);
/* The connection of a client that an epoll watches, if it is the only one of TCP there to another
 * process, and no socket listens. With a timer the client may wait for that. What the capture has
 * no address of is none: those of TCP have one if the epoll watches them when the capture ends.
 * NULL: it is not so. */
const struct store_object *why_epoll_connection(struct why_walk *walk,
						const struct store_object *epoll);

#endif

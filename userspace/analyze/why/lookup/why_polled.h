/* SPDX-License-Identifier: Apache-2.0 */
/* The connection among the descriptors of a poll(). */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POLLED_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POLLED_H

#include "analyze/why/why_walk_types.h"

/* The connection of a list of descriptors if all others in it are eventfds, by which only threads
 * of this machine wake the thread: the interpreter of Ruby polls one with each socket. NULL: the
 * list has others, or the capture does not have the connection. */
const struct store_object *why_polled_connection(const struct why_walk *walk,
						 const struct store_object *list);

#endif

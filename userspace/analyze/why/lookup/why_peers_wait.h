/* SPDX-License-Identifier: Apache-2.0 */
/* Whether threads wait at the other ends of all connections of an epoll instance. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_PEERS_WAIT_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_PEERS_WAIT_H

#include "analyze/why/why_walk_types.h"

/* Whether all TCP connections that an epoll instance watches have had a thread waiting at their
 * other end for a while before ts. Then nobody sent what made one of them ready. False: of more
 * than one of them, that is not known. The one may be the socket that listens. */
bool why_peers_wait(struct why_walk *walk, const struct store_object *epoll, uint64_t ts);

/* The main thread of a process at the other end of one of those connections that is stopped from
 * `from` to `to`, if at the others threads wait then. MODEL_NONE: it is not so, or not known. */
uint32_t why_peer_stopped(struct why_walk *walk, const struct store_object *epoll, uint64_t from,
			  uint64_t to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The other ends of connections on this machine. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_PEERS_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_PEERS_H

#include "analyze/why/why_walk_types.h"

void why_peers_init(struct why_walk *walk);
void why_peers_free(struct why_walk *walk);
/* Whether it is a connection, or the list of a poll() that waits for one
 * (why_connection_internal.h), which counts as that connection below. */
bool why_is_connection(const struct store_object *object);
/* The thread at the other end of a connection on this machine, of a terminal, or of a pipe of an
 * open wait; or MODEL_NONE. */
uint32_t why_socket_peer(struct why_walk *walk, const struct store_object *object);
/* Whose end of a connection it is, as far as its addresses and those of other connections show. */
enum why_tcp_side { WHY_SIDE_UNKNOWN, WHY_SIDE_CLIENT, WHY_SIDE_SERVER };
enum why_tcp_side why_socket_side(const struct why_walk *walk, const struct store_object *object);
/* Whether a thread that waits for the object waits for any client: the object is a socket that
 * listens, a server's end of a connection, a UDP socket at a known port, or the list of a poll()
 * with a socket that listens; or an epoll with one, unless its process `pid` asks others: it may
 * wait for their answers. */
bool why_is_of_server(struct why_walk *walk, const struct store_object *object, uint32_t pid);
/* Whether a process is itself the client of a connection, as a proxy is. */
bool why_is_asker(struct why_walk *walk, uint32_t pid);
/* Whether the capture has a wait of a thread at the other end. If not, why_socket_peer() knows only
 * the process, and returns its main thread. */
bool why_has_socket_waiter(struct why_walk *walk, const struct store_object *object);
/* Whether it is a terminal that the capture describes as such. */
bool why_is_terminal(const struct store_object *object);
/* Whether the other end of a connection may be on another machine. */
bool why_may_be_remote(const struct store_object *object);
/* Whether the server at the other end had not accepted the connection when the capture ended. */
bool why_is_unaccepted(struct why_walk *walk, const struct store_object *object);
/* Whether a connection within this machine had no other end any more when the capture ended. */
bool why_is_gone(struct why_walk *walk, const struct store_object *object);
/* The bytes that the process at the other end of a connection, or of a Unix socket, had got and not
 * read when the capture ended; 0: none, or unknown. */
uint32_t why_socket_unread(struct why_walk *walk, const struct store_object *object);
/* The first index in `owned` of the connections of a process; `owned.len` or those of another one:
 * it has none. */
size_t why_sockets_of(struct why_walk *walk, uint32_t pid);
/* The number of the socket at the other end; MODEL_NONE: it is not known. */
uint32_t why_socket_other_end(struct why_walk *walk, const struct store_object *object);
/* The socket of a process that is described so, but TCP may have sent its SYN again more or less
 * often; NULL: the capture has none. */
const struct store_object *why_socket_with(const struct why_walk *walk, const char *detail,
					   uint32_t pid);
/* Whether two objects are the ends of one connection. */
bool why_is_other_end(const struct why_walk *walk, const struct store_object *object,
		      const struct store_object *end);
/* Whether an object is the other end of a connection, and TCP has sent something again there during
 * a wait. */
bool why_socket_resent(const struct why_walk *walk, const struct store_object *object,
		       const struct store_object *end);

/* The thread that serves the address to which a connection leads, as other connections show that
 * the capture has, or else the socket that listens there; the main thread of its process, if that
 * has several. MODEL_NONE: the capture has none, or they are of several processes. */
uint32_t why_socket_server(struct why_walk *walk, const struct store_object *object);
/* The same for the server of a thread's connection, if that is of another process: in its own one,
 * any thread may accept. */
uint32_t why_socket_other_server(struct why_walk *walk, const struct store_object *object,
				 uint32_t thread);

/* The main thread of the only process that a process has started and that lives; MODEL_NONE: there
 * is none, or there are several. */
uint32_t why_only_child(const struct why_walk *walk, uint32_t pid);
/* The main thread of the only child of the parent of a thread's process that a signal ended; of
 * those whose parent has not waited for them yet, also before the capture. MODEL_NONE: there is
 * none, or there are several. why_killed_by() is that signal. */
uint32_t why_killed_sibling(const struct why_walk *walk, uint32_t thread);
uint32_t why_killed_by(const struct model *model, uint32_t thread);
/* A session of the same database of a PostgreSQL as a server process that has been idle in a
 * transaction from the begin of the capture to a time, by the title of its process. MODEL_NONE:
 * several were so when the capture began, or none. */
uint32_t why_idle_session(const struct why_walk *walk, uint32_t thread, uint64_t until_ts);
/* The main thread of the process of a thread, if that is traced, else the thread. */
uint32_t why_main_thread(const struct why_walk *walk, uint32_t thread);
/* The main thread of the child of a process that has this number on their host, and lives;
 * MODEL_NONE: none is known. */
uint32_t why_child_with_pid(const struct why_walk *walk, uint32_t pid, uint32_t number);

#endif

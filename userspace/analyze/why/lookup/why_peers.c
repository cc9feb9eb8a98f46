// SPDX-License-Identifier: Apache-2.0
/* The other end of a connection on this machine. A capture may have very many connections, so both
 * ends are found by search, not one by one. */
#include "analyze/why/lookup/why_peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_connection_internal.h"
#include "analyze/why/lookup/why_holder.h"
#include "analyze/why/lookup/why_postgres.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "target/process/pipe_ends.h"
#include "target/process/terminal.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/text.h"

#define NO_PEER (MODEL_NONE - 1)

/* "tcp 10.0.0.1:80 <-> 10.0.0.2:5000" in parts, without what follows. */
struct ends {
	const char *protocol, *local, *remote;
	size_t protocol_len, local_len, remote_len;
	uint32_t host; /* two hosts may both have 127.0.0.1 */
};

static bool split(const char *detail, struct ends *ends)
{
	const char *space = strchr(detail, ' ');
	const char *between = space ? strstr(space + 1, DESCRIPTOR_BETWEEN) : NULL;

	if (!between)
		return false;
	ends->protocol = detail;
	ends->protocol_len = (size_t)(space - detail);
	ends->local = space + 1;
	ends->local_len = (size_t)(between - ends->local);
	ends->remote = between + strlen(DESCRIPTOR_BETWEEN);
	ends->remote_len = strcspn(ends->remote, DESCRIPTOR_AFTER);
	return true;
}

/* The ends of the connection of an object, or of a list that polls it. */
static bool split_polled(const struct store_object *object, struct ends *ends)
{
	size_t len;
	const char *text = why_connection_of(object, &len);

	return len && split(text, ends);
}

bool why_is_connection(const struct store_object *object)
{
	struct ends ends;

	return split_polled(object, &ends);
}

static int compare_part(const char *a, size_t a_len, const char *b, size_t b_len)
{
	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	return memcmp(a, b, a_len);
}

/* Orders sockets. `swapped`: b is seen from its other end. */
static int compare(const struct ends *a, const struct ends *b, bool swapped)
{
	int order = (a->host > b->host) - (a->host < b->host);

	if (!order)
		order = compare_part(a->protocol, a->protocol_len, b->protocol, b->protocol_len);

	if (!order)
		order = compare_part(a->local, a->local_len, swapped ? b->remote : b->local,
				     swapped ? b->remote_len : b->local_len);
	return order ? order
		     : compare_part(a->remote, a->remote_len, swapped ? b->local : b->remote,
				    swapped ? b->local_len : b->remote_len);
}

static struct ends ends_of(const struct store_reader *reader, uint32_t number)
{
	const struct store_object *object = store_reader_object(reader, number);
	struct ends ends = {0};

	split(object->detail, &ends);
	ends.host = store_pid_host(object->pid);
	return ends;
}

/* The network namespace of the process of a socket; 0: unknown. */
static uint32_t network_of(const struct why_walk *walk, const struct store_object *object)
{
	uint32_t process = map_get(&walk->model->pids, object->pid);

	return process == MAP_NONE ? 0 : walk->model->processes.data[process].network;
}

/* Whether an object has only the ends of a socket, and what is said of it when the capture ends. */
static bool has_no_process(const struct store_object *socket)
{
	return !socket->pid;
}

static int by_ends(const void *left, const void *right, void *arg)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	struct ends first = ends_of(arg, a), second = ends_of(arg, b);
	int order = compare(&first, &second, false);

	if (!order)
		order = has_no_process(store_reader_object(arg, a)) -
			has_no_process(store_reader_object(arg, b));
	return order ? order : a < b ? -1 : a > b;
}

/* The process of the socket at an index of `sockets`. */
static uint32_t owner_of(const struct why_walk *walk, uint32_t index)
{
	return store_reader_object(walk->model->reader, walk->sockets.data[index])->pid;
}

static int by_owner(const void *left, const void *right, void *arg)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint32_t first = owner_of(arg, a), second = owner_of(arg, b);

	if (first != second)
		return first < second ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Sorts the sockets by their ends, and those of each process by theirs. */
static void sockets_sort(struct why_walk *walk)
{
	if (!walk->sockets.len)
		return;
	qsort_r(walk->sockets.data, walk->sockets.len, sizeof(*walk->sockets.data), by_ends,
		walk->model->reader);
	for (uint32_t i = 0; i < walk->sockets.len; i++)
		vec_add(&walk->owned, i);
	qsort_r(walk->owned.data, walk->owned.len, sizeof(*walk->owned.data), by_owner, walk);
}

/* The user of a socket is a thread that waited for it, or else its process's main thread. */
static void find_users(struct why_walk *walk)
{
	const struct model *model = walk->model;

	for (size_t i = 0; i < model->waits.len; i++) {
		const struct model_wait *wait = &model->waits.data[i];

		if (wait->object && map_get(&walk->socket_users, wait->object) == MAP_NONE)
			map_put(&walk->socket_users, wait->object, wait->thread);
	}
}

static bool has_ended(const struct model_thread *thread)
{
	return thread->exit_ts || thread->gone;
}

/* Notes the process as its parent's only child, or that there are several. */
static void note_child(struct why_walk *walk, const struct model_process *process)
{
	const struct model *model = walk->model;
	const struct model_thread *thread = process->main_thread < model->threads.len
						    ? &model->threads.data[process->main_thread]
						    : NULL;

	if (!thread || has_ended(thread))
		return;
	map_put(&walk->only_children, process->ppid,
		map_get(&walk->only_children, process->ppid) == MAP_NONE ? process->main_thread
									 : NO_PEER);
}

/* Notes the process as the only child of its parent that a signal ended, or that there are several.
 */
static void note_killed(struct why_walk *walk, const struct model_process *process)
{
	const struct model *model = walk->model;
	const struct model_thread *thread = process->main_thread < model->threads.len
						    ? &model->threads.data[process->main_thread]
						    : NULL;
	bool several = map_get(&walk->killed, process->ppid) != MAP_NONE;

	if (process->ppid && thread && model_thread_signal(thread))
		map_put(&walk->killed, process->ppid, several ? NO_PEER : process->main_thread);
}

static void note_network(struct why_walk *walk, const struct model_process *process)
{
	walk->several_networks |=
		walk->network && process->network && process->network != walk->network;
	walk->network = process->network ?: walk->network;
}

static const char *title_of(const struct why_walk *walk, const struct model_process *process)
{
	return strtab_get(walk->model->strings, process->cmdline);
}

/* The text of the database of a session; 0: the title does not say it. */
static uint32_t database_of(const struct why_walk *walk, const struct model_process *process)
{
	size_t len;
	const char *name = why_postgres_database(title_of(walk, process), &len);

	return name ? strtab_put(walk->why->texts, name, len) : 0;
}

/* The sessions of a PostgreSQL, with one database or, if that is 0, with any. */
static uint64_t sessions_key(const struct model_process *process, uint32_t database)
{
	return (uint64_t)process->ppid << 32 | database;
}

static void note_session_at(struct why_walk *walk, uint64_t key, uint32_t thread)
{
	map_put(&walk->sessions, key, map_get(&walk->sessions, key) == MAP_NONE ? thread : NO_PEER);
}

/* Notes the process, which was idle in a transaction when the capture began, as the only such one
 * of its parent and of its database, or that there are several. */
static void note_session(struct why_walk *walk, const struct model_process *process)
{
	uint32_t database;

	if (!process->ppid || !why_postgres_is_idle(title_of(walk, process)))
		return;
	database = database_of(walk, process);
	note_session_at(walk, sessions_key(process, 0), process->main_thread);
	if (database)
		note_session_at(walk, sessions_key(process, database), process->main_thread);
}

static void find_main_threads(struct why_walk *walk)
{
	const struct model *model = walk->model;

	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];

		if (map_get(&walk->main_threads, process->pid) == MAP_NONE)
			map_put(&walk->main_threads, process->pid, process->main_thread);
		note_network(walk, process);
		note_child(walk, process);
		note_killed(walk, process);
		note_session(walk, process);
	}
}

void why_peers_init(struct why_walk *walk)
{
	struct store_reader *reader = walk->model->reader;
	const struct store_object *object;
	struct ends ends;

	for (uint32_t i = 1; (object = store_reader_object(reader, i)); i++) {
		if (split(object->detail, &ends))
			vec_add(&walk->sockets, i);
		else if (descriptor_is_socket(object->name) && text_begins(object->detail, "tcp "))
			vec_add(&walk->listeners, i);
		else
			continue;
		map_put(&walk->socket_at, object->ino, i);
	}
	find_main_threads(walk);
	sockets_sort(walk);
	find_users(walk);
}

void why_peers_free(struct why_walk *walk)
{
	vec_free(&walk->sockets);
	vec_free(&walk->owned);
	vec_free(&walk->listeners);
	map_free(&walk->socket_at);
	map_free(&walk->peers);
	keymap_free(&walk->servers);
	map_free(&walk->socket_users);
	map_free(&walk->main_threads);
	map_free(&walk->only_children);
	map_free(&walk->killed);
	map_free(&walk->killed_shared);
	map_free(&walk->missing_ranks);
	map_free(&walk->sessions);
	map_free(&walk->askers);
}

/* Ends on one machine have the same address, or that of its own network. */
bool why_may_be_remote(const struct store_object *object)
{
	const char *colon, *remote;
	struct ends ends;

	if (!object || !split_polled(object, &ends))
		return false;
	colon = memrchr(ends.local, ':', ends.local_len);
	remote = memrchr(ends.remote, ':', ends.remote_len);
	if (!colon || !remote || !strncmp(ends.local, "127.", 4))
		return false;
	return compare_part(ends.local, (size_t)(colon - ends.local), ends.remote,
			    (size_t)(remote - ends.remote)) != 0;
}

/* Whether a socket may be the other end of a connection, or of the server to which it leads, as far
 * as their networks show. A connection within a network namespace has both ends there; others have
 * the same addresses and ports. Of a socket without a process not even the host is known. */
static bool may_be_reached(const struct why_walk *walk, const struct store_object *connection,
			   const struct store_object *socket)
{
	uint32_t from = network_of(walk, connection), to = network_of(walk, socket);

	if (has_no_process(socket) && (walk->model->host_count > 1 ||
				       (walk->several_networks && !why_may_be_remote(connection))))
		return false;
	return !from || !to || from == to || why_may_be_remote(connection);
}

bool why_is_other_end(const struct why_walk *walk, const struct store_object *object,
		      const struct store_object *end)
{
	struct ends near, far;

	if (!object || !end || !split(object->detail, &near) || !split(end->detail, &far))
		return false;
	near.host = store_pid_host(object->pid);
	far.host = store_pid_host(end->pid);
	return !compare(&near, &far, true) && may_be_reached(walk, object, end);
}

bool why_socket_resent(const struct why_walk *walk, const struct store_object *object,
		       const struct store_object *end)
{
	struct ends sender;

	return why_is_other_end(walk, object, end) && split(object->detail, &sender) &&
	       sender.remote[sender.remote_len];
}

static bool socket_before(struct why_walk *walk, uint32_t socket, const struct ends *wanted)
{
	struct ends ends = ends_of(walk->model->reader, socket);

	walk->why->searched++;
	return compare(&ends, wanted, true) < 0;
}

static bool is_before(const struct store_reader *reader, uint32_t socket, const struct ends *wanted)
{
	struct ends ends = ends_of(reader, socket);

	return compare(&ends, wanted, false) < 0;
}

/* Limit of the sockets to compare: a capture may describe one several times. */
#define SHARED_MAX 16
/* The same for connections of one server, all of which have to be of one process. */
#define SERVED_MAX 4096

/* The socket at the other end of a connection of which `is` holds; NULL: any. A capture may
 * describe it several times. */
static uint32_t other_end_that(struct why_walk *walk, const struct store_object *object,
			       bool (*is)(const char *detail))
{
	const struct store_reader *reader = walk->model->reader;
	struct ends wanted, ends;
	size_t first;

	if (!split_polled(object, &wanted))
		return MODEL_NONE;
	wanted.host = store_pid_host(object->pid);
	first = lower_bound(walk->sockets.len, i,
			    socket_before(walk, walk->sockets.data[i], &wanted));
	for (size_t i = first; i < walk->sockets.len && i - first < SERVED_MAX; i++) {
		uint32_t socket = walk->sockets.data[i];
		const struct store_object *end = store_reader_object(reader, socket);

		ends = ends_of(reader, socket);
		if (compare(&ends, &wanted, true))
			break;
		if (may_be_reached(walk, object, end) && (!is || is(end->detail)))
			return socket;
	}
	return MODEL_NONE;
}

uint32_t why_socket_other_end(struct why_walk *walk, const struct store_object *object)
{
	return other_end_that(walk, object, NULL);
}

bool why_is_unaccepted(struct why_walk *walk, const struct store_object *object)
{
	return object && other_end_that(walk, object, descriptor_is_unaccepted) != MODEL_NONE;
}

bool why_is_gone(struct why_walk *walk, const struct store_object *object)
{
	return object && other_end_that(walk, object, descriptor_is_gone) != MODEL_NONE;
}

static bool has_unread(const char *detail)
{
	return descriptor_unread(detail);
}

uint32_t why_socket_unread(struct why_walk *walk, const struct store_object *object)
{
	uint32_t bytes = pipe_end_unread(object->detail), other;

	if (bytes)
		return bytes;
	other = other_end_that(walk, object, has_unread);
	return other == MODEL_NONE
		       ? 0
		       : descriptor_unread(store_reader_object(walk->model->reader, other)->detail);
}

size_t why_sockets_of(struct why_walk *walk, uint32_t pid)
{
	return lower_bound(walk->owned.len, i,
			   (walk->why->searched++, owner_of(walk, walk->owned.data[i]) < pid));
}

/* Whether the socket at an index of `owned` comes before those of a process with these ends. */
static bool owned_before(const struct why_walk *walk, size_t at, uint32_t pid,
			 const struct ends *wanted)
{
	uint32_t index = walk->owned.data[at], owner = owner_of(walk, index);

	walk->why->searched++;
	return owner != pid ? owner < pid
			    : is_before(walk->model->reader, walk->sockets.data[index], wanted);
}

const struct store_object *why_socket_with(const struct why_walk *walk, const char *detail,
					   uint32_t pid)
{
	const struct store_reader *reader = walk->model->reader;
	const struct store_object *found = NULL;
	struct ends wanted;
	size_t first;

	if (!split(detail, &wanted))
		return NULL;
	wanted.host = store_pid_host(pid);
	first = lower_bound(walk->owned.len, i, owned_before(walk, i, pid, &wanted));
	for (size_t i = first; i < walk->owned.len && i - first < SHARED_MAX; i++) {
		uint32_t socket = walk->sockets.data[walk->owned.data[i]];
		const struct store_object *object = store_reader_object(reader, socket);
		struct ends ends = ends_of(reader, socket);

		walk->why->searched++;
		if (object->pid != pid || compare(&ends, &wanted, false))
			break;
		if (!strcmp(object->detail, detail))
			return object;
		if (descriptor_is_connecting(object->detail) == descriptor_is_connecting(detail))
			found = object;
	}
	return found;
}

/* Ports that Linux gives to clients begin here, unless it is told otherwise. */
#define CLIENT_PORTS 32768ul

static unsigned long port_of(const char *end, size_t len)
{
	const char *colon = memrchr(end, ':', len);

	return colon ? strtoul(colon + 1, NULL, 10) : 0;
}

static bool has_local_of(const struct why_walk *walk, size_t at, const struct ends *wanted)
{
	struct ends ends;

	if (at >= walk->sockets.len)
		return false;
	ends = ends_of(walk->model->reader, walk->sockets.data[at]);
	return ends.host == wanted->host &&
	       !compare_part(ends.protocol, ends.protocol_len, wanted->protocol,
			     wanted->protocol_len) &&
	       !compare_part(ends.local, ends.local_len, wanted->local, wanted->local_len);
}

/* Whether several connections of the network of `object` have this local end: a server has one for
 * each client. */
static bool is_shared(const struct why_walk *walk, const struct store_object *object,
		      const struct ends *wanted)
{
	const struct store_reader *reader = walk->model->reader;
	size_t at =
		lower_bound(walk->sockets.len, i, is_before(reader, walk->sockets.data[i], wanted));
	struct ends first = {0}, other;

	for (unsigned n = 0; n <= SHARED_MAX && has_local_of(walk, at, wanted); n++) {
		uint32_t socket = walk->sockets.data[at++];

		if (!may_be_reached(walk, object, store_reader_object(reader, socket)))
			continue;
		other = ends_of(reader, socket);
		if (first.local && compare(&first, &other, false) != 0)
			return true;
		first = other;
	}
	return false;
}

enum why_tcp_side why_socket_side(const struct why_walk *walk, const struct store_object *object)
{
	struct ends own, other;
	bool low, other_low;

	if (!split_polled(object, &own))
		return strncmp(object->detail, "tcp", strlen("tcp")) ? WHY_SIDE_UNKNOWN
								     : WHY_SIDE_SERVER;
	own.host = store_pid_host(object->pid);
	other = own;
	other.local = own.remote;
	other.local_len = own.remote_len;
	own.remote_len = other.remote_len = 0;
	if (is_shared(walk, object, &own))
		return WHY_SIDE_SERVER;
	if (is_shared(walk, object, &other))
		return WHY_SIDE_CLIENT;
	low = port_of(own.local, own.local_len) < CLIENT_PORTS;
	other_low = port_of(other.local, other.local_len) < CLIENT_PORTS;
	return low == other_low ? WHY_SIDE_UNKNOWN : low ? WHY_SIDE_SERVER : WHY_SIDE_CLIENT;
}

bool why_is_asker(struct why_walk *walk, uint32_t pid)
{
	for (size_t i = 0; !walk->askers_known && i < walk->sockets.len; i++) {
		const struct store_object *object =
			store_reader_object(walk->model->reader, walk->sockets.data[i]);

		if (why_socket_side(walk, object) == WHY_SIDE_CLIENT)
			map_put(&walk->askers, object->pid, 1);
	}
	walk->askers_known = true;
	return map_get(&walk->askers, pid) != MAP_NONE;
}

/* Whether the text of a socket, of `len` bytes, is "tcp 127.0.0.1:80", which listens, or
 * "udp 127.0.0.1:53", at a port that no client is given. */
static bool is_of_any_client(const char *text, size_t len)
{
	if (memmem(text, len, DESCRIPTOR_BETWEEN, strlen(DESCRIPTOR_BETWEEN)))
		return false;
	return text_begins(text, "tcp ") || (text_begins(text, "udp ") && port_of(text, len) &&
					     port_of(text, len) < CLIENT_PORTS);
}

/* Whether one of the sockets that an epoll watches listens, as far as the capture has them. */
static bool watches_listener(const struct why_walk *walk, const char *watched)
{
	const char *name = DESCRIPTOR_SOCKET "[";

	/* The inodes in the text are those of the host. */
	while (walk->model->host_count <= 1 && (watched = strstr(watched, name))) {
		const struct store_object *object;
		uint32_t socket;

		watched += strlen(name);
		socket = map_get(&walk->socket_at, strtoull(watched, NULL, 10));
		object = store_reader_object(walk->model->reader, socket);
		if (socket != MAP_NONE && is_of_any_client(object->detail, strlen(object->detail)))
			return true;
	}
	return false;
}

bool why_is_of_server(struct why_walk *walk, const struct store_object *object, uint32_t pid)
{
	const char *list = descriptor_list(object->name) ?: "";

	if (descriptor_is_epoll(object->name))
		return watches_listener(walk, object->detail) && !why_is_asker(walk, pid);
	/* A Unix socket with a name is most often the server's end: few clients bind theirs. */
	if (descriptor_is_socket(object->name))
		return text_begins(object->detail, "unix ") ||
		       is_of_any_client(object->detail, strlen(object->detail)) ||
		       why_socket_side(walk, object) == WHY_SIDE_SERVER;
	while (*list) {
		size_t len = strcspn(list, ",");

		if (is_of_any_client(list, len))
			return true;
		list += len + strspn(list + len, ", ");
	}
	return false;
}

bool why_is_terminal(const struct store_object *object)
{
	return object && text_begins(object->detail, TERMINAL_TEXT);
}

static uint32_t user_of(const struct why_walk *walk, uint32_t socket)
{
	uint32_t user = map_get(&walk->socket_users, socket);

	if (user != MAP_NONE)
		return user;
	return map_get(&walk->main_threads, store_reader_object(walk->model->reader, socket)->pid);
}

/* Whether a socket listens for the server's end of a connection: at its address, or at its port of
 * all addresses of this machine. */
static bool listens_for(const struct store_object *listener, const struct ends *server, bool here)
{
	static const char *const all[] = {"0.0.0.0", "[::]"};
	const char *local = listener->detail + strlen("tcp "), *port;
	size_t len = strlen(local);

	if (store_pid_host(listener->pid) != server->host)
		return false;
	if (!compare_part(local, len, server->local, server->local_len))
		return true;
	port = memrchr(server->local, ':', server->local_len);
	/* "0.0.0.0" is of IPv4 only. */
	for (size_t i = *server->local == '['; port && here && i < sizeof(all) / sizeof(all[0]);
	     i++)
		if (text_begins(local, all[i]) &&
		    !compare_part(local + strlen(all[i]), len - strlen(all[i]), port,
				  server->local_len - (size_t)(port - server->local)))
			return true;
	return false;
}

/* One of two threads of a process that serve the same address: the first one, or else its main
 * thread. NO_PEER: they are of two processes. */
static uint32_t server_of_both(const struct why_walk *walk, uint32_t found, uint32_t user)
{
	const struct model_thread *threads = walk->model->threads.data;
	uint32_t main;

	if (user >= walk->model->threads.len || user == found)
		return found;
	if (found == MODEL_NONE)
		return user;
	main = threads[user].pid == threads[found].pid
		       ? map_get(&walk->main_threads, threads[user].pid)
		       : NO_PEER;
	return main < walk->model->threads.len ? main : NO_PEER;
}

/* The thread that uses the connections of a server, of which `object` is a client's end. */
static uint32_t server_of_connections(struct why_walk *walk, const struct store_object *object,
				      const struct ends *server)
{
	const struct store_reader *reader = walk->model->reader;
	uint32_t found = MODEL_NONE;
	size_t at =
		lower_bound(walk->sockets.len, i, is_before(reader, walk->sockets.data[i], server));

	for (unsigned n = 0; found != NO_PEER && has_local_of(walk, at, server); n++) {
		uint32_t socket = walk->sockets.data[at++];

		walk->why->searched++;
		if (n == SERVED_MAX)
			return NO_PEER;
		if (may_be_reached(walk, object, store_reader_object(reader, socket)))
			found = server_of_both(walk, found, user_of(walk, socket));
	}
	return found;
}

/* The thread that uses the socket at which a server listens for such connections. */
static uint32_t server_that_listens(struct why_walk *walk, const struct store_object *object,
				    const struct ends *server)
{
	bool here = !why_may_be_remote(object);
	uint32_t found = MODEL_NONE;

	for (size_t i = 0; found != NO_PEER && i < walk->listeners.len && i < SERVED_MAX; i++) {
		uint32_t socket = walk->listeners.data[i];
		const struct store_object *listener =
			store_reader_object(walk->model->reader, socket);

		walk->why->searched++;
		if (listens_for(listener, server, here) && may_be_reached(walk, object, listener))
			found = server_of_both(walk, found, user_of(walk, socket));
	}
	return found;
}

static uint32_t server_find(struct why_walk *walk, const struct store_object *object,
			    const struct ends *server)
{
	uint32_t found = server_of_connections(walk, object, server);

	if (found == MODEL_NONE)
		found = server_that_listens(walk, object, server);
	return found == MODEL_NONE ? NO_PEER : found;
}

/* A client may have very many connections to a server, which has as many clients. So the server is
 * looked for once for all connections that lead to it. */
uint32_t why_socket_server(struct why_walk *walk, const struct store_object *object)
{
	char key[sizeof(((struct descriptor *)NULL)->detail) + 32];
	struct ends ends;
	uint32_t found;
	size_t len;

	if (!object || !split_polled(object, &ends) || !ends.remote_len)
		return MODEL_NONE;
	ends.host = store_pid_host(object->pid);
	ends.local = ends.remote;
	ends.local_len = ends.remote_len;
	ends.remote_len = 0;
	len = (size_t)snprintf(key, sizeof(key), "%u %u %d %.*s %.*s", ends.host,
			       network_of(walk, object), why_may_be_remote(object),
			       (int)ends.protocol_len, ends.protocol, (int)ends.local_len,
			       ends.local);
	if (len >= sizeof(key))
		return MODEL_NONE;
	found = keymap_get(&walk->servers, key, len);
	if (found == MAP_NONE) {
		found = server_find(walk, object, &ends);
		(void)keymap_set(&walk->servers, key, len, found);
	}
	return found == NO_PEER ? MODEL_NONE : found;
}

uint32_t why_socket_other_server(struct why_walk *walk, const struct store_object *object,
				 uint32_t thread)
{
	const struct model_thread *threads = walk->model->threads.data;
	uint32_t server = why_socket_server(walk, object);

	return server == MODEL_NONE || threads[server].pid == threads[thread].pid ? MODEL_NONE
										  : server;
}

/* The number of a process on the host of another one, as the model has it. */
static uint32_t pid_on_host_of(const struct model *model, uint32_t pid, uint32_t real)
{
	return model->host_count > 1 ? why_pid_on_host(store_pid_host(pid), real) : real;
}

static uint32_t peer_find(struct why_walk *walk, const struct store_object *object)
{
	uint32_t pid = why_is_terminal(object) ? pid_on_host_of(walk->model, object->pid,
								terminal_process(object->detail))
					       : why_holder_pid(object);
	uint32_t socket = pid ? MODEL_NONE : why_socket_other_end(walk, object);

	if (pid)
		return map_get(&walk->main_threads, pid);
	return socket == MODEL_NONE ? MODEL_NONE : user_of(walk, socket);
}

bool why_has_socket_waiter(struct why_walk *walk, const struct store_object *object)
{
	uint32_t socket = why_socket_other_end(walk, object);

	return socket != MODEL_NONE && map_get(&walk->socket_users, socket) != MAP_NONE;
}

uint32_t why_socket_peer(struct why_walk *walk, const struct store_object *object)
{
	uint32_t peer;

	if (!object || (!*object->detail && !why_is_connection(object)))
		return MODEL_NONE;
	peer = map_get(&walk->peers, (uintptr_t)object);
	if (peer == MAP_NONE) {
		peer = peer_find(walk, object);
		map_put(&walk->peers, (uintptr_t)object, peer == MODEL_NONE ? NO_PEER : peer);
	}
	return peer == NO_PEER ? MODEL_NONE : peer;
}

uint32_t why_main_thread(const struct why_walk *walk, uint32_t thread)
{
	uint32_t pid = walk->model->threads.data[thread].pid;
	uint32_t found = map_get(&walk->main_threads, pid);

	return found != MAP_NONE && model_is_traced(walk->model, found) ? found : thread;
}

uint32_t why_child_with_pid(const struct why_walk *walk, uint32_t pid, uint32_t number)
{
	const struct model *model = walk->model;
	uint32_t child = map_get(&walk->main_threads, pid_on_host_of(model, pid, number));
	const struct model_process *process =
		child < model->threads.len ? model_process_of(model, child) : NULL;

	return process && process->ppid == pid && !has_ended(&model->threads.data[child])
		       ? child
		       : MODEL_NONE;
}

uint32_t why_only_child(const struct why_walk *walk, uint32_t pid)
{
	uint32_t child = map_get(&walk->only_children, pid);

	return child < walk->model->threads.len ? child : MODEL_NONE;
}

uint32_t why_killed_sibling(const struct why_walk *walk, uint32_t thread)
{
	const struct model_process *process = model_process_of(walk->model, thread);
	uint32_t found = process ? map_get(&walk->killed, process->ppid) : MAP_NONE;

	return found < walk->model->threads.len ? found : MODEL_NONE;
}

uint32_t why_killed_by(const struct model *model, uint32_t thread)
{
	return model_thread_signal(&model->threads.data[thread]);
}

uint32_t why_idle_session(const struct why_walk *walk, uint32_t thread, uint64_t until_ts)
{
	const struct model_process *process = model_process_of(walk->model, thread);
	uint32_t found = process ? map_get(&walk->sessions,
					   sessions_key(process, database_of(walk, process)))
				 : MAP_NONE;
	const struct why_thread *of;

	if (found >= walk->model->threads.len || found == thread ||
	    !model_is_traced(walk->model, found))
		return MODEL_NONE;
	of = &walk->intervals.threads[found];
	return of->intervals.len && of->intervals.data[0].state == WAFFLE_THREAD_BLOCKED &&
			       (of->intervals.data[0].open ||
				of->intervals.data[0].to_ts >= until_ts)
		       ? found
		       : MODEL_NONE;
}

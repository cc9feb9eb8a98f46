// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_polled.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_connection_internal.h"
#include "analyze/why/lookup/why_peers.h"
#include "target/process/descriptors.h"

const struct store_object *why_polled_connection(const struct why_walk *walk,
						 const struct store_object *list)
{
	char connection[sizeof(((struct descriptor *)NULL)->detail)] = "";
	size_t len;
	const char *text = why_connection_of(list, &len);

	if (text == list->detail || !len || len >= sizeof(connection))
		return NULL;
	memcpy(connection, text, len);
	return why_socket_with(walk, connection, list->pid);
}

/* Limit of the text of an epoll that is known to be whole: it may lack what does not fit into
 * descriptor.detail. */
#define WATCHED_MAX 220

/* Whether both ends of a connection are of one process, which wakes itself by it. */
static bool is_to_itself(struct why_walk *walk, const struct store_object *object)
{
	uint32_t other = why_socket_other_end(walk, object);

	return other != MODEL_NONE &&
	       store_reader_object(walk->model->reader, other)->pid == object->pid;
}

const struct store_object *why_epoll_connection(struct why_walk *walk,
						const struct store_object *epoll)
{
	const struct store_object *found = NULL, *object;
	const char *at = epoll->detail, *name = DESCRIPTOR_SOCKET "[";

	/* The inodes in the text are those of the host. */
	if (walk->model->host_count > 1 || strlen(at) > WATCHED_MAX ||
	    strstr(at, DESCRIPTOR_TIMER_KIND))
		return NULL;
	while ((at = strstr(at, name))) {
		uint32_t number;

		at += strlen(name);
		number = map_get(&walk->socket_at, strtoull(at, NULL, 10));
		if (number == MAP_NONE)
			continue;
		object = store_reader_object(walk->model->reader, number);
		if (is_to_itself(walk, object))
			continue;
		if (found || !strstr(object->detail, DESCRIPTOR_BETWEEN))
			return NULL;
		found = object;
	}
	return found && why_socket_side(walk, found) == WHY_SIDE_CLIENT ? found : NULL;
}

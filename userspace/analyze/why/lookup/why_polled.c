// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_polled.h"

#include <stdio.h>
#include <string.h>

#include "analyze/why/lookup/why_peers.h"
#include "target/process/descriptors.h"
#include "util/text.h"

#define SEPARATOR ", "
#define EVENTFD "anon_inode:[eventfd]"

/* Copies the connection of the names in a list, with what TCP has sent again. False: there is none,
 * or something else. */
static bool connection_copy(char *text, size_t size, const char *names)
{
	size_t len = 0;

	for (size_t part; *names; names += part + strspn(names + part, SEPARATOR)) {
		bool after = text_begins(names, "SYN ");

		part = strcspn(names, ",");
		if (part == strlen(EVENTFD) && text_begins(names, EVENTFD))
			continue;
		if (after != !!len || (!after && !text_begins(names, "tcp ")))
			return false;
		if (len + part + strlen(SEPARATOR) >= size)
			return false;
		len += (size_t)snprintf(text + len, size - len, "%s%.*s", after ? SEPARATOR : "",
					(int)part, names);
	}
	return len;
}

const struct store_object *why_polled_connection(const struct why_walk *walk,
						 const struct store_object *list)
{
	const char *names = strstr(list->name, DESCRIPTOR_LIST);
	char connection[sizeof(((struct descriptor *)NULL)->detail)];

	if (!names || text_begins(list->name, DESCRIPTOR_MANY) ||
	    !connection_copy(connection, sizeof(connection), names + strlen(DESCRIPTOR_LIST)))
		return NULL;
	return why_socket_with(walk, connection, list->pid);
}

// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_connection_internal.h"

#include <string.h>

#include "target/process/descriptors.h"
#include "util/text.h"

#define SEPARATOR ", "
#define EVENTFD "anon_inode:" DESCRIPTOR_EVENT_KIND
#define SENT_AGAIN "SYN " /* what follows a connection, after a separator */

struct listed {
	const char *text;
	size_t len;
};

/* Takes a part of a list: a descriptor, or what follows a connection. False: the list has something
 * else than one connection and eventfds. */
static bool part_take(struct listed *connection, const char *part, size_t len)
{
	if (len == strlen(EVENTFD) && text_begins(part, EVENTFD))
		return true;
	if (!connection->text) {
		*connection = (struct listed){part, len};
		return memmem(part, len, DESCRIPTOR_BETWEEN, strlen(DESCRIPTOR_BETWEEN));
	}
	if (part != connection->text + connection->len + strlen(SEPARATOR) ||
	    !text_begins(part, SENT_AGAIN))
		return false;
	connection->len += strlen(SEPARATOR) + len;
	return true;
}

const char *why_connection_of(const struct store_object *object, size_t *len)
{
	const char *part = descriptor_list(object->name);
	struct listed connection = {0};

	*len = 0;
	if (!part) {
		*len = strlen(object->detail);
		return object->detail;
	}
	if (text_begins(object->name, DESCRIPTOR_MANY))
		return "";
	while (*part) {
		size_t part_len = strcspn(part, ",");

		if (!part_take(&connection, part, part_len))
			return "";
		part += part_len + strspn(part + part_len, SEPARATOR);
	}
	*len = connection.len;
	return connection.text ?: "";
}

// SPDX-License-Identifier: Apache-2.0
/* Connections of a client: each has a socket and a port of its own, but all lead to the same
 * address and port. */
#include "analyze/why/parts/why_connections.h"

#include <stdio.h>
#include <string.h>

#include "target/process/descriptors.h"
#include "util/memory.h"

static bool begins(const char **text, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(*text, prefix, len) != 0)
		return false;
	*text += len;
	return true;
}

/* Skips the number of "socket:[4711]", whose "socket:[" is gone. */
static bool skip_number(const char **text)
{
	size_t len = strspn(*text, "0123456789");

	*text += len;
	return len && begins(text, "]");
}

/* The text of a socket of TCP or UDP, "socket:[4711] (tcp 10.0.0.1:5000 <-> 10.0.0.2:80, SYN sent
 * again once)", in parts. */
struct connection {
	const char *protocol, *local, *remote, *after; /* after: ", SYN sent again once)", or ")" */
	int local_len, remote_len, after_len;
};

static bool connection_split(struct connection *connection, const char *text)
{
	const char *between;

	if (!begins(&text, "socket:[") || !skip_number(&text))
		return false;
	connection->protocol = begins(&text, " (tcp ")   ? "tcp"
			       : begins(&text, " (udp ") ? "udp"
							 : NULL;
	between = connection->protocol ? strstr(text, DESCRIPTOR_BETWEEN) : NULL;
	if (!between)
		return false;
	connection->local = text;
	connection->local_len = (int)(between - text);
	connection->remote = between + strlen(DESCRIPTOR_BETWEEN);
	connection->remote_len = (int)strcspn(connection->remote, " ,)");
	connection->after = connection->remote + connection->remote_len;
	connection->after_len = (int)strcspn(connection->after, ")");
	return !strcmp(connection->after + connection->after_len, ")");
}

/* "10.0.0.2:80 (tcp)", or "10.0.0.2:80 (tcp, SYN sent again once)": with the number, a connection
 * has one text for each server, and counts once. */
static bool server_of_socket(char *server, size_t size, const char *text)
{
	struct connection connection;

	return connection_split(&connection, text) &&
	       snprintf(server, size, "%.*s (%s%.*s)", connection.remote_len, connection.remote,
			connection.protocol, connection.after_len, connection.after) < (int)size;
}

#define DNS_PREFIX "DNS server "

/* The server of "DNS server 10.0.0.2:53 (socket:[4711])". */
static bool server_of_dns(char *server, size_t size, const char *text)
{
	const char *dns = text, *rest;
	size_t len;

	if (!begins(&dns, DNS_PREFIX))
		return false;
	len = strcspn(dns, " ");
	rest = dns + len;
	if (!begins(&rest, " (socket:[") || !skip_number(&rest) || strcmp(rest, ")") != 0)
		return false;
	return snprintf(server, size, "%.*s", (int)(dns + len - text), text) < (int)size;
}

/* UDP has no connections. */
static const char *plural_of(const char *text)
{
	bool udp = strstr(text, "udp") || !strncmp(text, DNS_PREFIX, strlen(DNS_PREFIX));

	return udp ? "sockets" : "connections";
}

uint32_t why_connections_to(struct strtab *texts, uint32_t object)
{
	const char *text = strtab_get(texts, object);
	char server[128], all[160];
	int len;

	if (!server_of_socket(server, sizeof(server), text) &&
	    !server_of_dns(server, sizeof(server), text))
		return 0;
	len = snprintf(all, sizeof(all), "%s to %s", plural_of(server), server);
	return strtab_put(texts, all, (size_t)len);
}

uint32_t why_connections_at(struct strtab *texts, uint32_t object)
{
	struct connection connection;
	char all[160];
	int len;

	if (!connection_split(&connection, strtab_get(texts, object)))
		return 0;
	len = snprintf(all, sizeof(all), "%s at %.*s (%s%.*s)", plural_of(connection.protocol),
		       connection.local_len, connection.local, connection.protocol,
		       connection.after_len, connection.after);
	return len < (int)sizeof(all) ? strtab_put(texts, all, (size_t)len) : 0;
}

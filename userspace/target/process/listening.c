// SPDX-License-Identifier: Apache-2.0
#include "target/process/listening.h"

#include <inttypes.h>
#include <stdio.h>

#define STATE_LISTEN 0x0a /* TCP_LISTEN of include/net/tcp_states.h */
#define LINES_MAX 1000000 /* of a file: a busy host has as many connections */

/* "  0: 0100007F:18EB 00000000:0000 0A …": number, local address, remote address, state. */
static bool line_read(const char *line, uint16_t *port)
{
	unsigned local, state;

	if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%4x %*[0-9A-Fa-f]:%*4x %2x", &local, &state) != 2 ||
	    state != STATE_LISTEN)
		return false;
	*port = (uint16_t)local;
	return true;
}

static void file_read(struct listening *listening, pid_t pid, const char *name)
{
	char path[64], line[512];
	FILE *file;
	uint16_t port;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, name);
	file = fopen(path, "re");
	for (unsigned i = 0; file && i < LINES_MAX && fgets(line, sizeof(line), file); i++)
		if (line_read(line, &port) && !vec_push(&listening->ports, port))
			break;
	if (file)
		fclose(file);
}

void listening_read(struct listening *listening, pid_t pid)
{
	file_read(listening, pid, "tcp");
	file_read(listening, pid, "tcp6");
}

bool listening_has(const struct listening *listening, uint16_t port)
{
	for (size_t i = 0; i < listening->ports.len; i++)
		if (listening->ports.data[i] == port)
			return true;
	return false;
}

void listening_free(struct listening *listening)
{
	vec_free(&listening->ports);
}

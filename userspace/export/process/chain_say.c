// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/process/chain.h"
#include "util/terminal.h"

void chain_say(const char *program, const char *line)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	terminal_message(out, "%s: %s", program, line);
	fclose(out);
	/* A pipe has room for PIPE_BUF bytes then, which is more than any line has. */
	if (poll(&room, 1, 0) == 1 && room.revents == POLLOUT)
		(void)!write(STDERR_FILENO, text, len);
	free(text);
}

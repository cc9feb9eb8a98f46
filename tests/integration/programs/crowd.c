// SPDX-License-Identifier: Apache-2.0
/* crowd COUNT: so many child processes at once, each of which makes an event, lives until the
 * standard input ends, and makes another one then. */
#include "log.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "waffle.h"

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10, ends[2], made = 0;
	char text[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pipe(ends))
		return 1;
	printf("ready pid=%d\n", getpid());
	if (!fgets(text, sizeof(text), stdin))
		return 1;
	for (; made < count; made++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid)
			continue;
		close(ends[1]);
		WAFFLE_EVENT("born", KV_I64("n", made));
		if (read(ends[0], text, 1) == 0)
			WAFFLE_EVENT("dying", KV_I64("n", made));
		_exit(0);
	}
	printf("made=%d\n", made);
	while (fgets(text, sizeof(text), stdin))
		;
	close(ends[1]);
	while (wait(NULL) > 0)
		;
	WAFFLE_EVENT("alone");
	return 0;
}

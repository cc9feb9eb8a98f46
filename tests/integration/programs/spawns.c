// SPDX-License-Identifier: Apache-2.0
/* spawns PROGRAM: in the span "spawn", runs PROGRAM as a child and waits for its end; once for each
 * line of its input. */
#include "log.h"

#include <spawn.h>
#include <sys/wait.h>

#include "waffle_macros.h"

extern char **environ;

int main(int argc, char **argv)
{
	char line[16];
	int status;
	pid_t pid;

	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		long long begin = now_ns();

		{
			SPAN("spawn");
			if (posix_spawn(&pid, argv[1], NULL, NULL, &argv[1], environ) ||
			    waitpid(pid, &status, 0) != pid || status)
				return 1;
		}
		printf("spawned pid=%d ns=%lld\n", pid, now_ns() - begin);
	}
	return 0;
}

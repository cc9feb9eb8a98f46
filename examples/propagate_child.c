// SPDX-License-Identifier: Apache-2.0
/*
 * Continues the trace of its parent, and gives it to a child (docs/propagation.md). Parent and
 * child may be any programs that know TRACEPARENT, or B3 as OTEL_PROPAGATORS chooses.
 *
 *	WAFFLE_TRACE=step.waffle build/examples/propagate_child make
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <waffle.h>
#include <waffle_propagate.h>

extern char **environ;

int main(int argc, char **argv)
{
	struct waffle_wire_context wire;
	char **environment;
	int error, status;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: propagate_child COMMAND [ARGUMENT…]\n");
		return 2;
	}
	waffle_propagate_from_environment(waffle_propagators(), &wire);
	WAFFLE_INJECT(wire.context);
	WAFFLE_SPAN("child", KV_STR("command", argv[1]));
	environment = waffle_propagate_environment(waffle_propagators(), environ,
						   waffle_context_extract(), &wire);
	if (!environment) {
		perror("propagate_child");
		return 1;
	}
	error = posix_spawnp(&child, argv[1], NULL, NULL, argv + 1, environment);
	free(environment);
	if (error) {
		fprintf(stderr, "propagate_child: %s: %s\n", argv[1], strerror(error));
		return 1;
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

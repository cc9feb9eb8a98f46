/* SPDX-License-Identifier: Apache-2.0 */
/* How the programs that make each call once begin and end: NAME [--log FILE] [--pause]. With
 * --pause they wait for a line on stdin before the first call and after the last one. */
#ifndef SIM_SESSION_H
#define SIM_SESSION_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static inline void line_wait(bool pause)
{
	char line[16];

	if (pause && !fgets(line, sizeof(line), stdin))
		exit(0);
}

/* Reads the options and says that the program is ready. Returns whether --pause was given; a wrong
 * option ends the program with 2. */
static inline bool session_begin(int argc, char **argv, const char *name)
{
	bool pause = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--pause")) {
			pause = true;
		} else if (!strcmp(argv[i], "--log") && i + 1 < argc) {
			log_open(argv[++i]);
		} else {
			fprintf(stderr, "usage: %s [--log FILE] [--pause]\n", name);
			exit(2);
		}
	}
	puts("simulated calls: ready");
	fflush(stdout);
	line_wait(pause);
	return pause;
}

/* Returns the program's exit status. */
static inline int session_end(bool pause)
{
	if (log_file && fclose(log_file))
		return 1;
	puts("simulated calls: done");
	fflush(stdout);
	line_wait(pause);
	return 0;
}

#endif

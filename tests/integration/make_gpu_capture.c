// SPDX-License-Identifier: Apache-2.0
/*
 * make_gpu_capture FILE COUNT SEED [WHAT]: writes the capture of a random CUDA program of COUNT
 * calls (tests/unit/gpu_program.h), and prints as JSON what its GPU did. WHAT changes it:
 *
 *	faster  all kernels take half of their time
 *	slower  each kernel takes 10 ns more
 *	long    all takes a thousand times as long, as on a real GPU
 *	other   the tenth kernel is another one
 *	early   an operation begins 1 ns before what it waits for on another stream has ended
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model_capture.h"

#include "gpu_program.h"

static void program_change(struct program *program, const char *what)
{
	unsigned kernels = 0;

	for (unsigned i = 0; i < program->count; i++) {
		struct program_action *action = &program->actions[i];

		if (!strcmp(what, "long")) {
			action->gap_ns *= 1000;
			action->dur_ns *= 1000;
		}
		if (action->kind != PROGRAM_KERNEL)
			continue;
		if (!strcmp(what, "faster"))
			action->dur_ns /= 2;
		else if (!strcmp(what, "slower"))
			action->dur_ns += 10;
		else if (!strcmp(what, "other") && ++kernels == 10)
			action->name = (action->name + 1) % 3;
	}
}

/* Makes the first operation that waited for another stream alone begin 1 ns too early. False: there
 * is none. */
static bool program_hurry(struct program *program)
{
	uint64_t end_ts[PROGRAM_THREADS][PROGRAM_STREAMS] = {{0}};

	for (unsigned i = 0; i < program->count; i++) {
		struct program_action *action = &program->actions[i];

		if (action->kind > PROGRAM_COPY)
			continue;
		if (action->start_ts > action->call_ts + 1 &&
		    action->start_ts > end_ts[action->thread][action->stream]) {
			action->start_ts--;
			return true;
		}
		end_ts[action->thread][action->stream] = action->end_ts;
	}
	return false;
}

static void program_print(const struct program *program)
{
	unsigned operations = 0;

	for (unsigned i = 0; i < program->count; i++)
		operations += program->actions[i].kind <= PROGRAM_COPY;
	printf("{\"operations\": %u, \"makespan_ns\": %llu}\n", operations,
	       (unsigned long long)program->makespan_ns);
}

int main(int argc, char **argv)
{
	struct program program;
	struct capture capture;

	if (argc < 4)
		return 2;
	program_seed = strtoull(argv[3], NULL, 10);
	program_make(&program, (unsigned)strtoul(argv[2], NULL, 10) % (PROGRAM_ACTIONS_MAX + 1));
	/* Copies of one stream only: test_replay_capture.c says why. */
	for (unsigned i = 0; i < program.count; i++)
		if (program.actions[i].kind == PROGRAM_COPY &&
		    (program.actions[i].thread || program.actions[i].stream))
			program.actions[i].kind = PROGRAM_KERNEL;
	program_change(&program, argc > 4 ? argv[4] : "");
	program_go(&program);
	if (argc > 4 && !strcmp(argv[4], "early") && !program_hurry(&program))
		return 3;
	program_capture(&program, &capture);
	if (rename(capture.path, argv[1])) {
		perror(argv[1]);
		return 1;
	}
	program_print(&program);
	capture_free(&capture);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "cmd/workers_internal.h"

#include <stdio.h>

#include "capture/enrich/handles.h"
#include "target/dwarf/cfi_remote.h"
#include "target/elf/demangle.h"
#include "target/elf/object_remote.h"
#include "target/elf/symbols_remote.h"
#include "target/process/opener.h"
#include "target/process/program_facts.h"
#include "target/worker/worker.h"
#include "util/terminal.h"

enum exit_code workers_start(const struct command *command, struct call_set *calls)
{
	/* Used only in the workers, which are copies of this process. */
	static struct symbols_service symbols;
	const struct worker_table table = {
		.handlers =
			{
				[WORKER_OBJECT] = {object_serve, NULL},
				[WORKER_FRAMES] = {symbols_serve_frames, &symbols},
				[WORKER_BEFORE] = {symbols_serve_before, &symbols},
				[WORKER_VARIABLE] = {symbols_serve_variable, &symbols},
				[WORKER_MODULE] = {symbols_serve_module, &symbols},
				[WORKER_GO] = {symbols_serve_go, &symbols},
				[WORKER_UNWIND] = {cfi_serve, NULL},
				[WORKER_PROGRAM] = {program_facts_serve, NULL},
				[WORKER_CALLS] = {call_set_serve, calls},
				[WORKER_HANDLES] = {handles_serve, NULL},
				[WORKER_NAME] = {demangle_serve, NULL},
			},
	};
	struct error err = ERROR_INIT;

	if (!worker_start(&table, &err))
		return EXIT_DONE;
	return command_fail(command, &err, EXIT_FAILED);
}

static void tell(const char *line, void *arg)
{
	(void)arg;
	terminal_message(stderr, "waffle-bpf: %s", line);
}

void workers_end(void)
{
	worker_notices(tell, NULL);
	worker_stop();
	opener_stop();
}

// SPDX-License-Identifier: Apache-2.0
#include "cmd/process_options_internal.h"

#include <stdlib.h>
#include <unistd.h>

#include "export/process/chain_host.h"
#include "store/store.h"
#include "util/privileges.h"

/* A finished file is not read faster than its records can be sent, but a server that is down for so
 * long after its last record ends it. */
#define FILE_WAIT_NS 60000000000ull

static void say(const char *line, void *arg)
{
	char program[64];

	snprintf(program, sizeof(program), "waffle-bpf: %s", ((const struct command *)arg)->name);
	chain_say(program, line);
}

int process_options_open(struct chain **chain, const struct command *command, const char *origin,
			 const char *text, const char *service, int64_t unix_offset_ns,
			 bool finished, struct error *err)
{
	const char *named = getenv("OTEL_SERVICE_NAME");
	struct chain_host host = {
		.origin = origin,
		.service = named && *named ? named : service,
		.pid = (uint32_t)getpid(),
		.unix_offset_ns = unix_offset_ns,
		.finished = finished,
		.say = say,
		.thread_begin = privileges_keep_files, /* before the tracer gives up its own */
		.arg = (void *)(uintptr_t)command,
	};

	return chain_open(chain, text, &host, err);
}

int process_options_file(struct chain *chain, struct store_reader *reader,
			 struct store_window window, struct error *err)
{
	const struct waffle_rec *rec;
	uint64_t last_ts = 0;
	int result = store_reader_seek(reader, window, err);

	while (!result && (result = store_reader_next(reader, &rec, err)) > 0) {
		const struct site_info *site = NULL;

		if (rec->kind == WAFFLE_REC_HIT)
			site = store_reader_site(reader,
						 ((const struct waffle_rec_hit *)rec)->site);
		chain_record(chain, rec, site);
		last_ts = rec->ts > last_ts ? rec->ts : last_ts;
		result = 0;
	}
	if (!result && last_ts < window.from_ts)
		result = error_set(err, EINVAL,
				   "no record is within these times; waffle-bpf info shows how "
				   "long the capture is");
	if (chain_close(chain, last_ts, FILE_WAIT_NS) && !result)
		result = error_set(err, EIO, "--process: records were lost on their way out");
	return result;
}

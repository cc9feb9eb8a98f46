// SPDX-License-Identifier: Apache-2.0
/* The flight recorder as a part of a capture. */
#include <stdio.h>
#include <string.h>

#include "capture/session_internal.h"
#include "util/units.h"

#define SUFFIX ".waffle"

static int state_add(const struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;

	return store_writer_append_head(session->writer, rec, session->err);
}

static int states_read(void *arg)
{
	struct session *session = arg;

	return session_wants_sched(session->options)
		       ? kernel_snapshot(session->kernel, false, state_add, session, session->err)
		       : 0;
}

/* The numbers of records that came through rings. */
static void ways_tell(void *arg)
{
	struct session *session = arg;

	if (session->transport)
		transport_finish(session->transport);
}

static void flight_say(const char *line, bool failed, void *arg)
{
	if (failed)
		session_report(arg, line);
	else
		session_notify(arg, line);
}

/* A folder that can't be written to is an error now, not when the first file is wanted. */
static int folder_try(struct session *session, const struct store_meta *meta, const char *stem)
{
	char path[sizeof(session->result->output) + 16];
	struct store_writer *writer;
	int result;

	snprintf(path, sizeof(path), "%s-1" SUFFIX, stem);
	result =
		store_writer_open_apart(&writer, path, false, session->signals, meta, session->err);
	if (!result)
		store_writer_discard(writer);
	return result;
}

int flight_open(struct session *session, const struct store_meta *meta)
{
	char *stem = session->result->output;
	size_t len = strlen(stem), suffix = strlen(SUFFIX);
	struct recorder_uses uses = {
		.options = &session->options->recorder,
		.meta = *meta,
		.stem = stem,
		.states = states_read,
		.describe = ways_tell,
		.say = flight_say,
		.arg = session,
	};
	int result;

	if (len > suffix && !strcmp(stem + len - suffix, SUFFIX))
		stem[len - suffix] = '\0';
	result = folder_try(session, meta, stem)
			 ?: store_writer_open_memory(&session->writer, session->err);
	uses.writer = session->writer;
	return result ?: recorder_open(&session->recorder, &uses, session->err);
}

void flight_request(struct session *session)
{
	if (session->recorder && session->armed_ts)
		recorder_request(session->recorder, clock_monotonic_ns());
}

/* Other captures report this at their end. */
static void tables_report(struct session *session)
{
	if (session->tables_reported || !store_writer_left_out(session->writer))
		return;
	session->tables_reported = true;
	session_notify(session, "the tables of stacks, files and names are full: files have no new "
				"ones from now on; start waffle-bpf again");
}

int flight_turn(struct session *session)
{
	/* The first records are written when all is armed. */
	if (!session->recorder || !session->armed_ts)
		return 0;
	tables_report(session);
	return recorder_turn(session->recorder, drain_delivered_ts(session->drain),
			     clock_monotonic_ns(), session->err);
}

bool flight_is_over(const struct session *session)
{
	return session->recorder && recorder_is_done(session->recorder);
}

bool flight_is_writing(struct session *session)
{
	return session->recorder && recorder_is_writing(session->recorder);
}

void flight_flush(struct session *session)
{
	if (session->recorder)
		recorder_finish(session->recorder, session->end_ts);
}

int flight_close(struct session *session, bool done)
{
	unsigned failures = recorder_failures(session->recorder);

	if (session->recorder && session->armed_ts)
		recorder_summary(session->recorder);
	recorder_close(session->recorder);
	session->recorder = NULL;
	if (!done)
		return error_set(session->err, ETIMEDOUT,
				 "the file system of the last file does not answer; a process "
				 "called waffle-writer waits for it");
	return failures ? error_set(session->err, EIO, "%u %s not written", failures,
				    units_plural(failures, "file was", "files were"))
			: 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Three processes in a row: reader, scaler and writer. Each passes records on through a pipe, with
 * the context as W3C traceparent. The reader finds one record broken, and the writer sees the
 * result. From the symptom in the writer, waffle-bpf finds the event in the reader:
 *
 *	sudo waffle-bpf run -o pipeline.waffle -- build/examples/pipeline
 *	waffle-bpf why --event "result is NaN" pipeline.waffle
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <waffle_macros.h>

#define RECORDS 12
#define BROKEN 7

struct message {
	char traceparent[WAFFLE_TRACEPARENT_SIZE];
	int record;
	double value;
};

static void message_send(int fd, int record, double value)
{
	struct message message = {.record = record, .value = value};

	waffle_context_to_traceparent(waffle_context_extract(), message.traceparent);
	if (write(fd, &message, sizeof(message)) != sizeof(message)) {
		perror("pipeline: write");
		exit(1);
	}
}

static void reader_run(int out)
{
	for (int record = 0; record < RECORDS; record++) {
		waffle_event_id_t broken = {0};
		double value = record;

		if (record == BROKEN) {
			broken = WAFFLE_EVENT("broken record", KV_I64("record", record));
			value = NAN;
		}
		SPAN("send", KV_CAUSE_EVENT(broken), KV_I64("record", record));
		message_send(out, record, value);
	}
}

static void scaler_run(int in, int out)
{
	struct message message;

	while (read(in, &message, sizeof(message)) == sizeof(message)) {
		waffle_context_t context;

		waffle_context_from_traceparent(message.traceparent, &context);
		WAFFLE_INJECT(context);
		SPAN("scale", KV_I64("record", message.record));
		message_send(out, message.record, 2 * message.value);
	}
}

static void writer_run(int in)
{
	struct message message;

	while (read(in, &message, sizeof(message)) == sizeof(message)) {
		waffle_context_t context;

		waffle_context_from_traceparent(message.traceparent, &context);
		WAFFLE_INJECT(context);
		SPAN("write", KV_I64("record", message.record));
		if (isnan(message.value))
			EVENT("result is NaN", KV_I64("record", message.record));
	}
}

/* Begins a stage between two pipes, whose other ends it must not keep open. */
static void stage_begin(const char *name, int in, int out, const int fds[4])
{
	if (fork())
		return;
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < 4; i++)
		if (fds[i] != in && fds[i] != out)
			close(fds[i]);
	if (out < 0)
		writer_run(in);
	else
		scaler_run(in, out);
	exit(0);
}

int main(void)
{
	int fds[4];

	if (pipe(fds) || pipe(fds + 2)) {
		perror("pipeline: pipe");
		return 1;
	}
	prctl(PR_SET_NAME, "reader");
	stage_begin("writer", fds[2], -1, fds);
	stage_begin("scaler", fds[0], fds[3], fds);
	/* waffle-bpf records a forked child only some milliseconds after the fork. */
	usleep(500000);
	reader_run(fds[1]);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	while (wait(NULL) > 0)
		;
	return 0;
}

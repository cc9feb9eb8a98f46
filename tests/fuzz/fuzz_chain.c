// SPDX-License-Identifier: Apache-2.0
/*
 * Any text as a chain of processors. A rejected one has a message that is safe for a terminal, and
 * an accepted one has values within their bounds. The same bytes are also the answer of a server
 * and names in a JSON log.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/process/bytes_internal.h"
#include "export/process/chain_text_internal.h"
#include "export/process/grpc_internal.h"
#include "export/process/http_sender.h"
#include "util/source.h"
#include "util/terminal.h"
#include "util/utf8.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A line, or a line followed by the source and carets below it. */
static void check_message(const char *message)
{
	size_t lines = 0;

	require(*message && utf8_valid(message, strlen(message)) == strlen(message));
	for (; *message; message++) {
		lines += *message == '\n';
		require(*message == '\n' || !terminal_control(message, strlen(message)));
	}
	require(lines == 0 || lines == 2);
}

static void check_stage(const struct chain_stage *stage)
{
	for (size_t i = 0; i < stage->type->option_count; i++) {
		const struct processor_option *option = &stage->type->options[i];
		const void *at = (const char *)stage->config + option->at;

		switch (option->type) {
		case PROCESSOR_TIME:
		case PROCESSOR_SIZE:
		case PROCESSOR_NUMBER:
			require(*(const uint64_t *)at >= option->min &&
				*(const uint64_t *)at <= option->max);
			break;
		case PROCESSOR_FRACTION:
			require(((const struct processor_fraction *)at)->keep &&
				((const struct processor_fraction *)at)->keep <=
					((const struct processor_fraction *)at)->of);
			break;
		case PROCESSOR_CHOICE:
			for (unsigned j = 0; j <= *(const unsigned *)at; j++)
				require(option->choices[j]);
			break;
		default:
			require(!option->required || *(char *const *)at);
		}
	}
}

static void check_text(const char *text)
{
	struct chain_stages stages = {0};
	struct error err = ERROR_INIT;

	if (chain_text_parse(&stages, "--process", text, &err)) {
		check_message(err.message);
		source_fault_one_line(&err);
		require(!strchr(err.message, '\n'));
		check_message(err.message);
	} else {
		require(stages.stages.len && stages.stages.len <= CHAIN_PROCESSORS_MAX);
		for (size_t i = 0; i < stages.stages.len; i++)
			check_stage(&stages.stages.data[i]);
	}
	chain_stages_free(&stages);
}

static void check_json(const char *data, size_t size)
{
	struct out_bytes out = {0};

	bytes_json_string(&out, data, size);
	require(!out.failed && out.len >= 2 && utf8_valid(out.data, out.len) == out.len);
	for (size_t i = 0; i < out.len; i++)
		require(!terminal_control(out.data + i, out.len - i) && out.data[i]);
	bytes_free(&out);
}

/* A line of headers, and a body. */
static void check_grpc(const char *data, size_t size)
{
	struct grpc_result result = {0};
	struct sender_reply reply = {0};
	const char *message;
	size_t len = 0;

	grpc_header_take(&result, data, size);
	require(result.after_ns <= BACKOFF_ASKED_MAX_NS + 1000000000);
	grpc_failed(&result, &reply);
	require(memchr(reply.why, 0, sizeof(reply.why)));
	message = grpc_answer(data, size, &len);
	require(!message || (message >= data && message + len <= data + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct http_partial partial;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_text(text);
	check_json(text, size);
	check_grpc(text, size);
	partial = http_partial_read(text, size, false);
	require(partial.rejected <= INT64_MAX && memchr(partial.why, 0, sizeof(partial.why)));
	partial = http_partial_read(text, size, true);
	require(partial.rejected <= INT64_MAX && memchr(partial.why, 0, sizeof(partial.why)));
	free(text);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Sleeps after a failed request. A program whose server answers "503 Service Unavailable", or does
 * not listen, sleeps and tries again. The sleep is its own choice, so the thread stays the culprit.
 * The text says what came before it.
 */
#include "analyze/why/cause/why_blocked_internal.h"

#include <stdio.h>
#include <string.h>

#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/memory.h"

/* A thread that does something else for longer before it sleeps need not sleep because of it. */
#define BEFORE_MAX_NS 20000000ull

/* Where a connection leads: "10.0.0.2:80" of "tcp 10.0.0.1:5000 <-> 10.0.0.2:80"; "": unknown. */
static const char *remote_of(const struct store_object *object)
{
	const char *between = object ? strstr(object->detail, DESCRIPTOR_BETWEEN) : NULL;

	return between ? between + strlen(DESCRIPTOR_BETWEEN) : "";
}

#define ADDRESS_MAX 80

/* "ingest (4720) at 10.0.0.2:80", as far as it is known, behind `link`. */
static int server_put(char *text, size_t size, struct why_walk *walk, const char *link,
		      const struct store_object *object)
{
	const struct model *model = walk->model;
	uint32_t server = why_socket_server(walk, object);
	const char *remote = remote_of(object);
	size_t remote_len = strcspn(remote, DESCRIPTOR_AFTER);

	if (!remote_len || remote_len > ADDRESS_MAX)
		return 0;
	if (server == MODEL_NONE)
		return snprintf(text, size, " %s %.*s", link, (int)remote_len, remote);
	return snprintf(
		text, size, " %s %.64s (%u) at %.*s", link, model_thread_name(model, server),
		model_pid_real(model, model->threads.data[server].tid), (int)remote_len, remote);
}

static uint32_t failure_text(struct why_walk *walk, const struct model_request_failure *failure)
{
	const struct store_object *object =
		store_reader_object(walk->model->reader, failure->object);
	char text[256];
	int len = failure->status
			  ? snprintf(text, sizeof(text), "after HTTP status %u", failure->status)
			  : snprintf(text, sizeof(text), "after a refused connection");

	len += server_put(text + len, sizeof(text) - (size_t)len, walk,
			  failure->status ? "from" : "to", object);
	return strtab_put(walk->why->texts, text, (size_t)len);
}

uint32_t why_failed_request(struct why_walk *walk, const struct why_blocked *blocked)
{
	uint64_t from_ts = blocked->interval->from_ts;
	const struct model_request_failure *failure =
		model_request_failure_before(walk->model, blocked->thread, from_ts);

	if (!failure || from_ts - failure->ts > BEFORE_MAX_NS ||
	    why_has_waited_since(walk, blocked, failure->ts, true))
		return 0;
	return failure_text(walk, failure);
}

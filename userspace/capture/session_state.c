// SPDX-License-Identifier: Apache-2.0
/* Functions that all parts of a capture use: messages, queries of the options, a round of the
 * drain. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "capture/session_internal.h"
#include "capture/sources_internal.h"

int session_fail(struct session *session, const char *what)
{
	return error_set(session->err, errno, "%s: %s", what, strerror(errno));
}

/* Names and paths in the line are untrusted. */
static void say(const struct session *session, void (*to)(const char *line, void *arg),
		const char *line)
{
	char *text = strdup(line);

	if (text)
		error_one_line(text);
	to(text ? text : "out of memory", session->events->arg);
	free(text);
}

void session_notify(struct session *session, const char *line)
{
	if (session->events->notify)
		say(session, session->events->notify, line);
}

void session_report(struct session *session, const char *line)
{
	say(session, session->events->tell, line);
}

bool session_wants_sched(const struct session_options *options)
{
	return (options->sources & CAPTURE_SCHED) &&
	       (!options->filter || filter_wants_sched(options->filter));
}

bool session_wants_node_stacks(const struct session_options *options)
{
	return stack_choice_has_nodes(options->stacks) ||
	       (options->calls && call_set_wants_stacks(options->calls));
}

bool session_wants_stacks(const struct session_options *options)
{
	return session_wants_node_stacks(options) || stack_choice_has_waits(options->stacks);
}

bool session_wants_probes(const struct session_options *options)
{
	return options->sources & CAPTURE_SPANS || options->calls;
}

struct armed_counts session_armed(const struct session *session)
{
	struct armed_counts counts = arming_counts(session->arming);

	if (session->stages.functions)
		counts.functions = python_calls_functions(session->stages.functions);
	return counts;
}

uint32_t session_sources(const struct session *session)
{
	uint32_t sources = session->options->sources & CAPTURE_PROBES;

	if (session_wants_sched(session->options))
		sources |= CAPTURE_SCHED;
	return sources | sources_of_waits(kernel_wait_sources(session->kernel));
}

int session_publish(struct session *session)
{
	int result;

	if (session->published)
		return 0;
	result = store_writer_publish(session->writer, session->err);
	session->published = true;
	if (!result && session->options->warn_of_root)
		session_notify(session, "the command runs as root; --user NAME runs it as another "
					"user, --user root silences this notice");
	return result;
}

int session_drain(struct session *session)
{
	int result;

	if (session->named)
		name_set_poll(session->named);
	result = drain_round(session->drain, false);
	result = session_filter_losses(session) ?: result;
	session_counts(session);
	session->busy = session->busy || result > 0;
	if (result == -ECANCELED)
		result = 0; /* it is full, so the capture ends */
	return result < 0 ? result : code_names_write(session->names, session->err);
}

int session_watch(struct session *session, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = {.events = events, .data.u64 = tag};

	return epoll_ctl(session->epoll, EPOLL_CTL_ADD, fd, &event) ? session_fail(session, "epoll")
								    : 0;
}

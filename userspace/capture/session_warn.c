// SPDX-License-Identifier: Apache-2.0
/* What a capture says on the way: that it can see less than it was asked for. */
#include <stdio.h>

#include "capture/session_internal.h"

void warn_of_arming(struct session *session)
{
	const char *warning = arming_warning(session->arming);

	if (warning && !session->warned)
		session_notify(session, warning);
	session->warned |= warning != NULL;
}

static void filter_say(const char *line, void *arg)
{
	session_notify(arg, line);
}

void warn_of_filter(struct session *session)
{
	const struct filter_expr *filter = session->options->filter;
	char names[400], line[600];

	plan_warn(session->plan, filter_say, session);
	if (arming_match_count(session->arming) ||
	    (filter_uses(filter, FILTER_KIND) && filter_wants_sched(filter)))
		return;
	arming_names(session->arming, names, sizeof(names));
	snprintf(line, sizeof(line), "no site can match the filter; there are sites named %s",
		 names);
	session_notify(session, line);
}

/* Sources that were wanted and that this kernel does not have. */
static void warn_of_sources(struct session *session)
{
	uint32_t wanted = session->options->sources, missing = wanted & ~session_sources(session);
	char names[SOURCES_TEXT], line[300];

	if (wanted == CAPTURE_DEFAULT)
		missing &= ~CAPTURE_OF_MACHINE;
	if (!missing || !session_wants_sched(session->options))
		return;
	snprintf(line, sizeof(line),
		 "this kernel, or container, does not tell of: %s; not recorded",
		 sources_text(names, missing));
	session_notify(session, line);
}

void warn_after_arming(struct session *session)
{
	warn_of_sources(session);
	warn_of_arming(session);
	if (!session->options->command && session_wants_spans(session) &&
	    !arming_site_count(session->arming))
		session_notify(
			session,
			"no sites in the target's files: it was built without waffle.h, or its "
			"notes were stripped; only the scheduler is recorded");
	if (session->plan && !session->options->command && arming_site_count(session->arming))
		warn_of_filter(session);
}

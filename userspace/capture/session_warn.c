// SPDX-License-Identifier: Apache-2.0
/* Warnings of a capture that records less than the options request. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/session_internal.h"
#include "target/process/process.h"
#include "target/process/process_set.h"
#include "util/units.h"

static void line_report(const char *line, void *arg)
{
	session_notify(arg, line);
}

void warn_of_arming(struct session *session)
{
	const char *warning = arming_warning(session->arming);

	if (warning && !session->warned)
		session_notify(session, warning);
	session->warned |= warning != NULL;
	arming_notices(session->arming, line_report, session);
}

static void warn_of_filter(struct session *session)
{
	const struct filter_expr *filter = session->options->filter;
	char names[400], line[600];

	plan_warn(session->plan, line_report, session);
	if (arming_match_count(session->arming) || session->options->function_count ||
	    (filter_uses(filter, FILTER_KIND) && filter_wants_sched(filter)))
		return;
	arming_names(session->arming, NULL, true, names, sizeof(names));
	snprintf(line, sizeof(line), "no site can match the filter; there are sites named %s",
		 names);
	session_notify(session, line);
}

static void stacks_report(const char *word, const char *name, void *arg)
{
	const struct session *session = arg;
	char names[400] = "", line[700];

	if (name)
		arming_names(session->arming, name, false, names, sizeof(names));
	if (names[0]) {
		snprintf(line, sizeof(line), "--stacks: there is no '%s'; did you mean %s?", word,
			 names);
	} else {
		arming_names(session->arming, NULL, false, names, sizeof(names));
		snprintf(line, sizeof(line),
			 "--stacks: no span or event matches '%s'; there are %s", word,
			 names[0] ? names : "none at all");
	}
	session_notify(arg, line);
}

void warn_of_names(struct session *session)
{
	if (session->plan && arming_site_count(session->arming))
		warn_of_filter(session);
	stack_choice_unfound(session->options->stacks, stacks_report, session);
}

struct warn_unfound {
	struct session *session;
	bool strict;
	int result;
};

static void unfound_report(const char *line, bool missing, void *arg)
{
	struct warn_unfound *unfound = arg;
	struct session *session = unfound->session;
	/* At the end the same message lacks this suffix, so the key excludes it. */
	const char *hope = strstr(line, CALL_MAY_COME);
	size_t len = hope ? (size_t)(hope - line) : strlen(line);

	if (missing && unfound->strict && !unfound->result)
		unfound->result = error_set(session->err, ENOENT, "%s", line);
	else if (keymap_get(&session->reported, line, len) != MAP_NONE)
		return;
	else if (missing) /* may come from source_fault(), which escapes its text */
		session->events->tell(line, session->events->arg);
	else if (session->events->notify)
		session->events->notify(line, session->events->arg);
	else
		return;
	keymap_set(&session->reported, line, len, 1);
}

/* A misspelt name would leave the value in the capture. */
void warn_of_redaction(struct session *session)
{
	const struct redaction *redaction = session->options->redaction;

	for (size_t i = 0; redaction && i < redaction->keys.len; i++) {
		char line[300];

		if (redaction->keys.data[i].found)
			continue;
		snprintf(line, sizeof(line),
			 "--redact: no site that was armed has a key '%s': nothing was left out",
			 redaction->keys.data[i].name);
		session_report(session, line);
	}
}

int warn_of_unfound(struct session *session, bool strict)
{
	struct warn_unfound unfound = {.session = session, .strict = strict};
	enum call_scope scope = strict && session->options->kernel.config.follow_children
					? CALL_SCOPE_FOLLOWED
					: CALL_SCOPE_TRACED;

	if (session->options->calls)
		call_set_unfound(session->options->calls, scope, unfound_report, &unfound);
	return unfound.result;
}

static void warn_of_targets(struct session *session)
{
	uint64_t refused = kernel_targets_refused(session->kernel);
	char line[160];

	if (!refused)
		return;
	snprintf(line, sizeof(line),
		 "%" PRIu64
		 " child %s not followed: no more than %d processes are traced at a time",
		 refused, units_plural(refused, "process was", "processes were"),
		 WAFFLE_MAX_TARGETS);
	session_notify(session, line);
}

static void warn_of_stacks(struct session *session)
{
	uint64_t left_out = enrich_stacks_left_out(session->enrich);
	uint64_t late = enrich_stacks_late(session->enrich);
	char line[160];

	if (left_out) {
		snprintf(line, sizeof(line),
			 "%" PRIu64 " %s left out: there were too many different ones", left_out,
			 units_plural(left_out, "stack was", "stacks were"));
		session_notify(session, line);
	}
	if (late) {
		snprintf(line, sizeof(line),
			 "%" PRIu64 " %s too late, as when a hypervisor takes a CPU away: some "
			 "waits have no stack",
			 late, units_plural(late, "stack came", "stacks came"));
		session_notify(session, line);
	}
}

static void warn_of_unparsed(struct session *session)
{
	uint64_t count = address_spaces_unparsed(session->spaces);
	char line[200];

	if (!count)
		return;
	snprintf(line, sizeof(line),
		 "%" PRIu64
		 " %s recorded without a build-id, since parsing took too long: functions there "
		 "have names only while the same files are at their paths",
		 count, units_plural(count, "mapping was", "mappings were"));
	session_notify(session, line);
}

static void warn_of_tables(struct session *session)
{
	uint64_t count = store_writer_left_out(session->writer);
	char line[160], text[UNITS_TEXT];

	if (!count)
		return;
	snprintf(line, sizeof(line),
		 "the file's tables of stacks and names are full: %s %s left out",
		 units_format_count(text, count), units_plural(count, "entry was", "entries were"));
	session_notify(session, line);
}

#define UNREPORTED_PARTS 100 /* fewer than this part of all switches are no reason for a line */

/* Virtual machines may hide a few wake-ups (docs/internals.md, "The scheduler"). */
static void warn_of_wakes(struct session *session)
{
	uint64_t count = kernel_wakes_unreported(session->kernel);
	uint64_t switches = session->result->counts[WAFFLE_SOURCE_SCHED].produced;
	char line[200], text[UNITS_TEXT];

	if (!count || count < switches / UNREPORTED_PARTS)
		return;
	snprintf(line, sizeof(line),
		 "the kernel did not report %s %s: why says `unknown` for what ended %s",
		 units_format_count(text, count), units_plural(count, "wake-up", "wake-ups"),
		 units_plural(count, "that wait", "these waits"));
	session_notify(session, line);
}

/* A process that was missed is not traced, and counts as one that is not recorded. */
static void warn_of_tasks(struct session *session)
{
	uint64_t count = kernel_tasks_skipped(session->kernel);
	char line[200], text[UNITS_TEXT];

	if (!count)
		return;
	snprintf(line, sizeof(line),
		 "the kernel skipped %s %s of threads: some may not be traced, or have an old name",
		 units_format_count(text, count),
		 units_plural(count, "begin, end, exec or rename",
			      "begins, ends, execs or renames"));
	session_notify(session, line);
}

void warn_of_faults(struct session *session)
{
	uint64_t faults = kernel_call_faults(session->kernel);
	uint64_t deep = kernel_calls_too_deep(session->kernel);
	char line[240];

	warn_of_targets(session);
	warn_of_wakes(session);
	warn_of_tasks(session);
	warn_of_stacks(session);
	warn_of_tables(session);
	warn_of_unparsed(session);
	if (deep) {
		snprintf(line, sizeof(line),
			 "%" PRIu64
			 " %s lost, inside %d others of the same thread that are probed: "
			 "describe fewer functions, or those of the outermost calls",
			 deep, units_plural(deep, "call was", "calls were"), WAFFLE_CALL_DEPTH_MAX);
		session_notify(session, line);
	}
	if (!faults)
		return;
	snprintf(line, sizeof(line),
		 "%" PRIu64
		 " %s nowhere, or to what is not in memory yet; in the capture each is 0 or "
		 "left out",
		 faults,
		 units_plural(faults, "argument of calls could not be read: it points",
			      "arguments of calls could not be read: they point"));
	session_notify(session, line);
}

/* Reports requested sources that this kernel does not have. */
static void warn_of_sources(struct session *session)
{
	uint32_t wanted = session->options->sources, missing = wanted & ~session_sources(session);
	char names[SOURCES_TEXT], line[300];

	if ((wanted | CAPTURE_SAMPLES) == CAPTURE_DEFAULT) /* --sample-rate=0 removes that one */
		missing &= ~CAPTURE_OF_MACHINE;
	if (!missing || !session_wants_sched(session->options))
		return;
	snprintf(line, sizeof(line),
		 "this kernel or container does not provide these sources, so they are not "
		 "recorded: %s",
		 sources_text(names, missing));
	session_notify(session, line);
}

void warn_of_events(struct session *session)
{
	int problem;
	uint32_t refused = kernel_events_refused(session->kernel, &problem);
	char line[200];

	if (!refused)
		return;
	snprintf(line, sizeof(line),
		 "the kernel refused perf events of %u of %u CPUs: samples and page faults of "
		 "these may be missing: %s",
		 refused, kernel_cpu_count(session->kernel), strerror(problem));
	session_notify(session, line);
}

static void warn_of_requests(struct session *session)
{
	int problem = kernel_requests_problem(session->kernel);
	char line[200];

	if (!problem)
		return;
	snprintf(
		line, sizeof(line),
		"requests are not recorded: this kernel has no tracepoints of sockets, which Linux "
		"6.3 and later have: %s",
		strerror(problem));
	session_notify(session, line);
}

static void warn_of_no_sites(struct session *session)
{
	const pid_t *pids = session->options->pids;
	bool kernel = session->options->pid_count == 1 && process_is_kernel_thread(pids[0]);
	char line[200];

	snprintf(line, sizeof(line), "%s; %s",
		 kernel ? "the target is a thread of the kernel, which has no sites"
			: "no sites in the target's files: it was built without waffle.h, or its "
			  "notes were stripped",
		 session_wants_sched(session->options)
			 ? "only the scheduler is recorded"
			 : "without the scheduler nothing is recorded");
	session_notify(session, line);
}

/* Children that exist already are easily forgotten: those of a server or of a data loader do most
 * of the work. */
static void warn_of_children(struct session *session)
{
	const struct session_options *options = session->options;
	pid_list pids = {0};
	char line[200];
	long count = 0;

	for (size_t i = 0; i < session->targets.len; i++)
		if (!vec_push(&pids, session->targets.data[i].pid))
			count = -ENOMEM;
	if (!count)
		count = process_set_descendants(&pids);
	vec_free(&pids);
	if (count <= 0)
		return;
	snprintf(line, sizeof(line), "%ld %s not traced; use --tree%s", count,
		 units_plural((uint64_t)count, "child process is", "child processes are"),
		 options->kernel.config.follow_children ? ", since --follow takes new ones only"
							: "");
	session_notify(session, line);
}

void warn_of_early_stacks(struct session *session)
{
	uint64_t early = enrich_stacks_early(session->enrich);
	char line[200];

	if (!early)
		return;
	snprintf(line, sizeof(line),
		 "stacks: %" PRIu64 " %s cut, and may lack frames: taken before the unwinding "
		 "tables of large files were ready",
		 early, units_plural(early, "stack is", "stacks are"));
	session_notify(session, line);
}

void warn_after_arming(struct session *session)
{
	if (!session->options->command && !session->options->find)
		warn_of_children(session);
	warn_of_sources(session);
	warn_of_requests(session);
	warn_of_arming(session);
	if (!session->options->command && session->options->sources & CAPTURE_SPANS &&
	    !session->options->kernel.requests && !session->options->function_count &&
	    !arming_site_count(session->arming) && !arming_unread(session->arming))
		warn_of_no_sites(session);
	if (!session->options->command)
		warn_of_names(session);
}

void warn_of_holders(struct session *session, int result)
{
	char line[256];

	if (!result)
		return;
	snprintf(line, sizeof(line),
		 "not all processes that hold the other ends of pipes and sockets, and locks of "
		 "files, are known: %s",
		 result == -ETIME   ? "the time was too short"
		 : result == -E2BIG ? "there are too many"
				    : strerror(-result));
	session_notify(session, line);
}

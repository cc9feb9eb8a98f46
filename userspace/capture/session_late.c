// SPDX-License-Identifier: Apache-2.0
/* Programs and children that ran before they were armed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/session_internal.h"
#include "target/process/process.h"
#include "util/units.h"

static void name_add(char names[NAMES_MAX], const char *name)
{
	size_t len = strlen(names);

	if (!strstr(names, name))
		snprintf(names + len, NAMES_MAX - len, "%s%s", len ? ", " : "", name);
}

void program_was_late(struct session *session, struct target *target, struct hold *hold)
{
	uint64_t exec_ts = hold ? hold->exec_ts : target->holds.exec_ts;
	const struct hold_sum held = holds_sum(&target->holds, exec_ts);
	struct unarmed *unarmed = &session->unarmed;
	char comm[16] = "?";

	if (held.counted)
		return;
	if (hold)
		hold->counted = true;
	else
		holds_count(&target->holds);
	if (exec_ts && exec_ts == target->holds.exec_ts) { /* the program that runs now */
		target->begun_first = false;
		process_comm(target->pid, comm);
	}
	/* Without a record, the holds before may be those of the program before. */
	if (!strcmp(comm, "?"))
		snprintf(comm, sizeof(comm), "%s", exec_ts || !hold ? held.name : hold->name);
	unarmed->programs++;
	name_add(unarmed->names, comm);
}

void program_ended(struct session *session, const struct target *target)
{
	const struct hold_sum held = holds_sum(&target->holds, target->holds.exec_ts);
	struct unarmed *unarmed = &session->unarmed;

	/* Without holds, a message at the start or the documentation says that programs are not
	 * held. */
	if (!held.any || held.ready || held.counted)
		return;
	unarmed->ended++;
	name_add(unarmed->ended_names, held.name);
}

void child_was_late(struct session *session, uint64_t fork_ts)
{
	uint64_t ns = clock_monotonic_ns() - fork_ts;

	session->unarmed.forks++;
	if (ns > session->unarmed.fork_ns)
		session->unarmed.fork_ns = ns;
}

void programs_report(struct session *session)
{
	const struct unarmed *unarmed = &session->unarmed;
	char line[400];

	if (unarmed->programs) {
		snprintf(line, sizeof(line),
			 "%" PRIu64 " %s began before being armed: calls at the begin are "
			 "missing (%s)",
			 unarmed->programs, units_plural(unarmed->programs, "program", "programs"),
			 unarmed->names);
		session_report(session, line);
	}
	/* If no program had probes, these programs hardly had any. Another message says that
	 * nothing was armed. */
	if (unarmed->ended && arming_site_count(session->arming)) {
		snprintf(line, sizeof(line),
			 "%" PRIu64 " %s began before being armed and ended before waffle looked "
			 "for probes: any calls are missing (%s)",
			 unarmed->ended, units_plural(unarmed->ended, "program", "programs"),
			 unarmed->ended_names);
		session_report(session, line);
	}
	if (unarmed->forks) {
		snprintf(line, sizeof(line),
			 "%" PRIu64 " %s forked from armed processes: what each did before it was "
			 "armed, up to %.1f ms, is missing (--machine-wide records it)",
			 unarmed->forks, units_plural(unarmed->forks, "child was", "children were"),
			 (double)unarmed->fork_ns / 1e6);
		session_report(session, line);
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Arms the processes that exist at the start, and the command's own program. Nothing is held
 * yet, so we may wait until files are parsed, while the loop runs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/session_internal.h"

#define SCRIPTS_MAX 5 /* nesting of interpreters: BINPRM_... of the kernel */

/* Reads the interpreter of a script into `line`. False: the file is not a script. */
static bool script_interpreter(int fd, char line[PATH_MAX])
{
	ssize_t len = pread(fd, line, PATH_MAX - 1, 0);
	char *begin, *end;

	line[len > 0 ? len : 0] = '\0';
	if (strncmp(line, "#!", 2))
		return false;
	begin = line + 2 + strspn(line + 2, " \t");
	end = begin + strcspn(begin, " \t\n");
	if (end == begin || !*end)
		return false;
	memmove(line, begin, (size_t)(end - begin));
	line[end - begin] = '\0';
	return true;
}

/* Finds a command as execvp() does. False: there is none. */
static bool command_find(const char *command, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	struct stat status;

	if (strchr(command, '/'))
		return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX;
	for (folders = folders ? folders : "/bin:/usr/bin"; folders;) {
		int len = (int)strcspn(folders, ":");

		if (snprintf(path, PATH_MAX, "%.*s%s%s", len, folders, len ? "/" : "", command) <
			    PATH_MAX &&
		    !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK))
			return true;
		folders = folders[len] ? folders + len + 1 : NULL;
	}
	return false;
}

/* Nothing is held yet, so parsing may take longer than during a hold. Returns 1 if everything is
 * armed, 0 if the time ran out, or a negative errno. */
static int first_arm(struct session *session, int fd)
{
	uint64_t now = clock_monotonic_ns(), duration = session->options->duration_ns;
	uint64_t most = duration && duration < PARSE_START_NS ? duration : PARSE_START_NS;
	int result = 0;

	do {
		arming_left_out(session->arming);
		arming_program(session->arming, session->launch.pid, fd, file_prepare, session);
		if (arming_left_out(session->arming) == ARMING_COMPLETE)
			return 1;
		result = loop_await(session, now + most);
	} while (result > 0);
	return result;
}

int programs_first(struct session *session)
{
	struct target *target = target_find(session, session->launch.pid);
	struct error ignored = ERROR_INIT;
	struct hold *hold;
	char path[PATH_MAX];
	int result = 0;

	/* Do whatever takes long before anything is held. */
	if (session->options->calls && call_set_is_described(session->options->calls))
		kernel_calls_ready(session->kernel);
	if (!session_wants_probes(session->options) || !target ||
	    !command_find(session->options->command[0], path))
		return 0;
	for (unsigned i = 0; i < SCRIPTS_MAX; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		bool more;

		if (fd < 0)
			return 0;
		more = script_interpreter(fd, path);
		if (!more)
			result = first_arm(session, fd);
		close(fd);
		if (!more)
			break;
	}
	enrich_tables(session->enrich, false, &ignored);
	target = target_find(session, session->launch.pid);
	hold = target && result > 0 ? holds_add(&target->holds, 0, clock_monotonic_ns()) : NULL;
	if (hold)
		hold->ready = true;
	warn_of_arming(session);
	return result < 0 ? result : 0;
}

/* Arms the files that the processes have mapped, or with `expected` those that they may map
 * later. */
static int pids_arm(struct session *session, bool expected)
{
	int result = 0;

	for (size_t i = 0; i < session->targets.len && !result; i++) {
		struct target *target = &session->targets.data[i];

		if (target->exit_ts)
			continue;
		if (expected)
			arming_expect(session->arming, target->pid);
		else
			result = process_arm(session, target->pid, session->err);
		if (result == -ESRCH && session->targets.len > 1)
			result = 0; /* the others go on */
		if (arming_left_out(session->arming) != ARMING_COMPLETE)
			target->parsing = true;
	}
	return result;
}

static bool any_is_parsing(const struct session *session)
{
	for (size_t i = 0; i < session->targets.len; i++)
		if (session->targets.data[i].parsing)
			return true;
	return false;
}

/* Waits until all omitted files have been parsed. */
static int pids_arm_all(struct session *session, bool expected, uint64_t until_ns)
{
	int result = pids_arm(session, expected);

	while (!result && any_is_parsing(session)) {
		result = loop_await(session, until_ns);
		if (result <= 0)
			return result;
		result = pids_arm(session, expected);
	}
	return result;
}

/* Unwinding tables are made while the files are armed. */
int targets_arm(struct session *session)
{
	uint64_t until_ns = clock_monotonic_ns() + PARSE_START_NS;
	int result = 0;

	if (session->options->command)
		return 0;
	for (size_t i = 0; i < session->targets.len && !result; i++)
		if (session_wants_stacks(session->options))
			result = enrich_process(session->enrich, session->targets.data[i].pid,
						false, session->err);
	return result ?: pids_arm_all(session, false, until_ns)
		      ?: enrich_tables_soon(session->enrich, session->err)
		      ?: pids_arm_all(session, true, until_ns);
}

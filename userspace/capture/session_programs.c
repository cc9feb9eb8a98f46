// SPDX-License-Identifier: Apache-2.0
/*
 * New programs and children of the targets. They are armed before they begin, if the kernel
 * permits:
 *
 *	the command      its process is our child and waits for us before its exec
 *	a later exec     the gate holds it (probe/gate.h)
 *	a forked child   runs at once: it is armed as soon as its FORK record is taken
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/session_internal.h"
#include "target/execve.h"
#include "target/process.h"
#include "target/root.h"
#include "util/units.h"

#define SCRIPTS_MAX 5       /* nesting of interpreters: BINPRM_... of the kernel */
#define HELD_NS 20000000ull /* per round: programs may start faster */

int programs_open(struct session *session)
{
	const struct session_options *options = session->options;
	struct gate_options gate = {.pids = options->pids, .pid_count = options->pid_count};
	struct error why = ERROR_INIT;
	char line[1200];

	if (!session_wants_probes(options) || (!options->command && !options->follow))
		return 0;
	if (options->machine_wide && options->follow)
		session_notify(session, "--machine-wide: all programs that run the traced files "
					"reach their probes, too, and are slowed down by each");
	gate.targets = kernel_targets(session->kernel, &gate.bits);
	if (!gate_open(&session->gate, &gate, &why))
		return 0;
	snprintf(line, sizeof(line),
		 "new programs are not held until they are armed (%s): calls at their begin may "
		 "be missing",
		 why.message);
	session_notify(session, line);
	return 0;
}

static void file_prepare(int fd, const char *path, void *arg)
{
	struct session *session = arg;

	details_file(session->details, fd, path);
}

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

/* Nothing is held yet, so parsing may take longer than during a hold. */
static int first_arm(struct session *session, int fd)
{
	uint64_t now = clock_monotonic_ns(), duration = session->options->duration_ns;
	uint64_t most = duration && duration < PARSE_START_NS ? duration : PARSE_START_NS;
	int result = 0;

	do {
		arming_left_out(session->arming);
		arming_program(session->arming, session->launch.pid, fd, file_prepare, session);
		if (arming_left_out(session->arming) == ARMING_COMPLETE)
			return 0;
		result = loop_await(session, now + most);
	} while (result > 0);
	return result;
}

int programs_first(struct session *session)
{
	struct target *target = target_find(session, session->launch.pid);
	struct error ignored = ERROR_INIT;
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
	details_tables(session->details, false, &ignored);
	target = target_find(session, session->launch.pid);
	if (target)
		target->exec_ready = target->first_armed = true;
	warn_of_arming(session);
	return result;
}

/* Whether a process opened the file at that path. Otherwise the kernel opened it, as the layer
 * below a file of an overlay, for which the process was held before. */
static bool opened_by(pid_t pid, int fd, const char *path)
{
	struct stat file, found;
	struct root root;
	bool same = false;
	int other;

	if (fstat(fd, &file) || root_open(&root, pid))
		return false;
	other = root_file(&root, root_inside(&root, path));
	if (other >= 0) {
		same = !fstat(other, &found) && found.st_dev == file.st_dev &&
		       found.st_ino == file.st_ino;
		close(other);
	}
	root_close(&root);
	return same;
}

static void target_name(struct target *target, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(target->program, sizeof(target->program), "%.15s", slash ? slash + 1 : path);
}

/* Arms a held program. True: all is armed that will be, so it may continue. */
static bool exec_arm(struct session *session, const struct gate_event *event)
{
	struct target *target = target_find(session, event->pid);
	struct error ignored = ERROR_INIT;
	enum arming_lack lack;
	bool is_main, any;
	uint64_t armed;

	if (!target)
		return true;
	is_main = execve_is_main(event->pid);
	arming_left_out(session->arming);
	armed = arming_arm_count(session->arming);
	any = arming_program(session->arming, event->pid, event->fd, file_prepare, session);
	lack = arming_left_out(session->arming);
	if (is_main && lack == ARMING_LACKS_FILES)
		return false;
	details_tables(session->details, true, &ignored);
	if (is_main) {
		target->exec_ready = true;
		target->hold = event->id;
		/* The command's own program was armed before its exec, so it is not late, however
		 * long this takes. */
		target->hold_armed =
			any && (!target->first_armed || arming_arm_count(session->arming) > armed);
	} else {
		target->exec_missed = true;
		if (any && !target->exec_told)
			program_was_late(session, event->pid);
		target->exec_told |= any;
	}
	/* Also hold it until files are parsed that it may open later. */
	return !is_main || lack == ARMING_COMPLETE;
}

static void exec_go(struct session *session, const struct gate_event *event)
{
	gate_answer(session->gate, event->id);
	close(event->fd);
}

/* Handles a held program. True: it may continue. */
static bool exec_held(struct session *session, const struct gate_event *event)
{
	char link[64], path[PATH_MAX];
	struct target *target;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", event->fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	/* A file system may have been mounted since the last program. */
	gate_mark(session->gate, event->pid);
	/* Its FORK record may not have been read yet. */
	if (!opened_by(event->pid, event->fd, path) || target_add(session, event->pid))
		return true;
	target = target_find(session, event->pid);
	if (!target)
		return true;
	if (!target->exec_ready && !target->exec_missed) /* the first of its files */
		target_name(target, path);
	return exec_arm(session, event);
}

static void held_remove(struct session *session, size_t row)
{
	exec_go(session, &session->held.data[row]);
	session->held.data[row] = session->held.data[--session->held.len];
}

void programs_again(struct session *session)
{
	for (size_t i = session->held.len; i > 0; i--)
		if (exec_arm(session, &session->held.data[i - 1]))
			held_remove(session, i - 1);
}

/* The gate let an exec pass without holding it. */
static void exec_passed(struct session *session, const struct gate_event *event)
{
	struct target *target = target_find(session, event->pid);

	if (target)
		target->exec_missed = true;
}

static void exec_late(struct session *session, const struct gate_event *event)
{
	struct target *target = target_find(session, event->pid);

	for (size_t i = session->held.len; i > 0; i--) {
		if (session->held.data[i - 1].id != event->id)
			continue;
		/* The answer is late, but shows that we are not stuck. */
		held_remove(session, i - 1);
		if (target && target->hold != event->id)
			target->exec_missed = true;
		return;
	}
	if (!target || target->hold != event->id || !target->hold_armed)
		return;
	program_was_late(session, event->pid);
	target->exec_told |= target->exec_ready; /* its EXEC record is pending */
}

void programs_let_go(struct session *session)
{
	while (session->held.len)
		held_remove(session, session->held.len - 1);
	vec_free(&session->held);
	gate_close(session->gate);
	session->gate = NULL;
}

int programs_held(struct session *session)
{
	uint64_t end = clock_monotonic_ns() + HELD_NS;

	while (session->gate && clock_monotonic_ns() < end) {
		struct gate_event event = gate_next(session->gate);

		switch (event.kind) {
		case GATE_EXEC:
			if (exec_held(session, &event) || !vec_push(&session->held, event))
				exec_go(session, &event);
			break;
		case GATE_PASSED:
			exec_passed(session, &event);
			break;
		case GATE_LATE:
			exec_late(session, &event);
			break;
		case GATE_ENDED:
			programs_let_go(session);
			session_notify(session, "the process that holds new programs was killed or "
						"stopped: calls at their begin may be missing from "
						"now on");
			break;
		case GATE_NOTHING:
			return 0;
		default:
			break;
		}
	}
	return 0;
}

void program_was_late(struct session *session, pid_t pid)
{
	struct unarmed *unarmed = &session->unarmed;
	const struct target *target = target_find(session, pid);
	size_t len = strlen(unarmed->names);
	char comm[16];

	process_comm(pid, comm);
	if (!strcmp(comm, "?") && target && target->program[0])
		snprintf(comm, sizeof(comm), "%s", target->program);
	unarmed->programs++;
	if (!strstr(unarmed->names, comm))
		snprintf(unarmed->names + len, sizeof(unarmed->names) - len, "%s%s",
			 len ? ", " : "", comm);
}

void child_was_late(struct session *session, uint64_t fork_ts)
{
	uint64_t ns = clock_monotonic_ns() - fork_ts;

	session->unarmed.forks++;
	if (ns > session->unarmed.fork_ns)
		session->unarmed.fork_ns = ns;
}

/* Arms a child like its parent. False: the parent is unknown. */
static bool child_arm(struct session *session, const struct waffle_rec_fork *fork, pid_t pid)
{
	const struct target *child = target_find(session, pid);
	int count;

	arming_changed(session->arming); /* remove probes of files that have changed */
	/* A child that was held at its exec has its new program's probes, not its parent's. */
	if (child && child->exec_ready)
		count = arming_has(session->arming, (pid_t)fork->tgid);
	else
		count = arming_fork(session->arming, (pid_t)fork->tgid, pid);
	if (count && count != -ENOENT)
		child_was_late(session, fork->rec.ts);
	return count != -ENOENT;
}

void program_forked(struct session *session, const struct waffle_rec_fork *fork)
{
	const struct session_options *options = session->options;
	pid_t pid = (pid_t)(fork->child_tgid & ~WAFFLE_FORK_SHARES);
	/* As after vfork(): until its exec the child only runs its parent's code. */
	bool shares_memory = fork->child_tgid & WAFFLE_FORK_SHARES, known = true;
	const struct target *parent;
	struct target *child;

	if (target_find(session, pid)) /* the pid may be reused */
		target_add(session, pid);
	/* The child is running already, so arm it before anything else. */
	if (session_wants_probes(options) && !options->machine_wide && !shares_memory &&
	    !session->end_ts)
		known = child_arm(session, fork, pid);
	target_add(session, pid);
	child = target_find(session, pid);
	if (!child) /* it ended while it was armed */
		arming_forget(session->arming, pid);
	parent = target_find(session, (pid_t)fork->tgid);
	if (child && parent && parent->parsing)
		child->parsing = true;
	if (!known && child) {
		child->maps_changed = true;
		child->fork_ts = fork->rec.ts;
	}
}

void programs_say(struct session *session)
{
	const struct unarmed *unarmed = &session->unarmed;
	char line[400];

	if (unarmed->programs) {
		snprintf(line, sizeof(line),
			 "%" PRIu64 " %s began before being armed: calls at the begin are "
			 "missing (%s)",
			 unarmed->programs, units_plural(unarmed->programs, "program", "programs"),
			 unarmed->names);
		session_tell(session, line);
	}
	if (unarmed->forks) {
		snprintf(line, sizeof(line),
			 "%" PRIu64 " %s forked from armed processes: what each did before it was "
			 "armed, up to %.1f ms, is missing (--machine-wide records it)",
			 unarmed->forks, units_plural(unarmed->forks, "child was", "children were"),
			 (double)unarmed->fork_ns / 1e6);
		session_tell(session, line);
	}
}

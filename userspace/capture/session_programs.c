// SPDX-License-Identifier: Apache-2.0
/*
 * New programs and children of the targets. They are armed before they begin, if the kernel
 * permits:
 *
 *	the command      its process is our child and waits for us before its exec
 *	a later exec     the gate holds it (kernel/gate.h)
 *	a forked child   runs at once: it is armed as soon as its FORK record is taken
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/input.h"

#include "capture/session_internal.h"
#include "target/process/execve.h"
#include "target/process/process.h"
#include "target/process/root.h"

#define HELD_NS 20000000ull /* per round: programs may start faster */

int programs_open(struct session *session)
{
	const struct session_options *options = session->options;
	struct gate_options gate = {.pids = options->pids, .pid_count = options->pid_count};
	struct error why = ERROR_INIT;
	char line[1200];

	if (!session_wants_probes(options) ||
	    (!options->command && !options->kernel.config.follow_children))
		return 0;
	if (options->machine_wide && options->kernel.config.follow_children)
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

void file_prepare(int fd, const char *path, void *arg)
{
	struct session *session = arg;

	enrich_file(session->enrich, fd, path);
}

/* Whether a process opened the file at that path, as far as is known once it has ended. Otherwise
 * the kernel opened it, as the layer below a file of an overlay, for which the process was held
 * before. */
static bool opened_by(pid_t pid, int fd, const char *path)
{
	struct stat file, found;
	struct root root;
	bool same = false;
	int other;

	if (input_stat(fd, &file))
		return false;
	if (root_open(&root, pid))
		return true;
	other = root_file(&root, root_inside(&root, path));
	if (other >= 0) {
		same = !input_stat(other, &found) && found.st_dev == file.st_dev &&
		       found.st_ino == file.st_ino;
		close(other);
	}
	root_close(&root);
	return same;
}

/* Arms a held program. True: all is armed that will be, so it may continue. */
static bool exec_arm(struct session *session, const struct gate_event *event)
{
	struct target *target = target_find(session, event->pid);
	struct hold *hold = target ? holds_find(&target->holds, event->id) : NULL;
	struct error ignored = ERROR_INIT;
	enum arming_lack lack;
	bool is_main, any;
	uint64_t armed;

	if (!hold)
		return true;
	is_main = execve_is_main(event->pid);
	arming_confine(session->arming, event->pid);
	arming_left_out(session->arming);
	armed = arming_arm_count(session->arming);
	any = arming_program(session->arming, event->pid, event->fd, file_prepare, session);
	lack = arming_left_out(session->arming);
	if (is_main && lack == ARMING_LACKS_FILES)
		return false;
	enrich_tables(session->enrich, true, &ignored);
	hold->ready = is_main;
	hold->missed = !is_main;
	/* The command's own program was armed before its exec. So it is not late, even if the
	 * gate holds it for too long. */
	hold->needed = any && (arming_arm_count(session->arming) > armed ||
			       !holds_sum(&target->holds, hold->exec_ts).prepared);
	if (any && !is_main)
		program_was_late(session, target, hold);
	/* Also hold it until files are parsed that it may open later. */
	return !is_main || lack == ARMING_COMPLETE;
}

static void exec_go(struct session *session, const struct gate_event *event)
{
	gate_answer(session->gate, event->id);
	close(event->fd);
}

static struct hold *hold_add(struct session *session, const struct gate_event *event)
{
	char link[64], path[PATH_MAX];
	struct target *target;
	const char *slash;
	struct hold *hold;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", event->fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	/* Its FORK record may not have been read yet. */
	if (!opened_by(event->pid, event->fd, path) || target_add(session, event->pid))
		return NULL;
	target = target_find(session, event->pid);
	hold = target ? holds_add(&target->holds, event->id, event->begin_ts) : NULL;
	slash = strrchr(path, '/');
	if (hold)
		snprintf(hold->name, sizeof(hold->name), "%.15s", slash ? slash + 1 : path);
	return hold;
}

/* Handles a held program. True: it may continue. */
static bool exec_held(struct session *session, const struct gate_event *event)
{
	const struct hold *hold;

	/* A file system may have been mounted since the last program. */
	gate_mark(session->gate, event->pid);
	hold = hold_add(session, event);
	return !hold || hold->missed || exec_arm(session, event);
}

static struct hold *hold_find(struct session *session, const struct gate_event *event)
{
	struct target *target = target_find(session, event->pid);

	return target ? holds_find(&target->holds, event->id) : NULL;
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
	struct hold *hold = hold_add(session, event);

	if (hold)
		hold->missed = true;
	close(event->fd);
}

/* A program begins while some of its files are still being parsed. It counts as late even if
 * these are only files that it may open later, since they may be mapped before they are armed. */
static void held_miss(struct session *session, size_t row)
{
	struct hold *hold = hold_find(session, &session->held.data[row]);

	if (hold)
		hold->missed = true;
	held_remove(session, row);
}

static void exec_late(struct session *session, const struct gate_event *event)
{
	struct hold *hold = hold_find(session, event);

	for (size_t i = session->held.len; i > 0; i--) {
		if (session->held.data[i - 1].id != event->id)
			continue;
		/* The answer is late, but shows that we are not stuck. */
		held_miss(session, i - 1);
		return;
	}
	if (hold && hold->needed)
		program_was_late(session, target_find(session, event->pid), hold);
}

void programs_let_go(struct session *session)
{
	while (session->held.len)
		held_miss(session, session->held.len - 1);
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

/* Arms a child like its parent. False: the parent is unknown. */
static bool child_arm(struct session *session, const struct waffle_rec_fork *fork, pid_t pid)
{
	const struct target *child = target_find(session, pid);
	int count;

	arming_changed(session->arming); /* remove probes of files that have changed */
	/* A child that was held at its exec has its new program's probes, not its parent's. */
	if (child && holds_any_ready(&child->holds))
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
	/* After vfork(), for example, the child runs only its parent's code until its exec. */
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

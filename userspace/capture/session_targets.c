// SPDX-License-Identifier: Apache-2.0
/* The processes of a capture. They are followed until they exit, and armed when they map new
 * files. */
#include <dirent.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "capture/session_internal.h"
#include "target/process/cgroup.h"
#include "target/process/cpu_limits.h"
#include "target/process/descriptor_limit.h"
#include "target/process/process.h"

/* Minimum interval between scans of a process that maps often: a multiple of a scan's duration. */
#define RESCAN_MIN_NS 2000000ull
#define RESCAN_MAX_NS 50000000ull
#define RESCAN_TIMES 4
/* Limit of scanning processes before records are drained again. */
#define REARM_NS 20000000ull
#define LOOK_NS 1000000000ull /* between two checks for unreported exits */
#define EXITED_WAIT_MS 3      /* until the last records of a process have settled */

void target_exited(struct session *session, pid_t pid)
{
	struct target *target = target_find(session, pid);

	if (target)
		target->exit_ts = clock_monotonic_ns();
}

/* Checks the targets without a descriptor for exits. */
static void exits_look(struct session *session)
{
	uint64_t now = clock_monotonic_ns();

	if (!session->unwatched || now - session->look_ts < LOOK_NS)
		return;
	session->look_ts = now;
	for (size_t i = 0; i < session->targets.len; i++) {
		struct target *target = &session->targets.data[i];

		if (target->pidfd < 0 && !target->exit_ts && kill(target->pid, 0) && errno == ESRCH)
			target->exit_ts = now;
	}
}

void targets_remove(struct session *session)
{
	uint64_t delivered_ts = drain_delivered_ts(session->drain);

	exits_look(session);

	for (size_t i = session->targets.len; i > 0; i--) {
		struct target *target = &session->targets.data[i - 1];

		if (target->exit_ts && target->exit_ts < delivered_ts)
			target_remove(session, target);
	}
}

int targets_prepare(struct session *session)
{
	const struct session_options *options = session->options;

	return options->command ? launch_prepare(&session->launch, options->command,
						 options->account, &session->files, session->err)
				: 0;
}

/* Limit of the processes that ended before the capture and are recorded. */
#define ENDED_MAX 256

/* Records that a process has ended before the capture, unless its parent has waited for it: others
 * may still wait for what it had. */
static int ended_pass(struct session *session, pid_t pid)
{
	struct waffle_rec_task task = {.rec = {.tid = (uint32_t)pid, .kind = WAFFLE_REC_TASK},
				       .tgid = (uint32_t)pid,
				       .flags = WAFFLE_TASK_TRACED_FLAG};
	struct waffle_rec_exit end = {.rec = {.tid = (uint32_t)pid, .kind = WAFFLE_REC_EXIT},
				      .tgid = (uint32_t)pid};
	int result;

	if (session->ended.len >= ENDED_MAX ||
	    map_get(&session->ended, (uint64_t)pid) != MAP_NONE ||
	    !process_is_zombie(pid, &end.code))
		return 0;
	(void)map_set(&session->ended, (uint64_t)pid, 0);
	process_comm(pid, task.comm);
	task.rec.ts = end.rec.ts = clock_monotonic_ns();
	result = target_describe(session, pid) ?: stages_pass(&session->stages, &task.rec);
	return result ?: stages_pass(&session->stages, &end.rec);
}

/* Processes that we found ourselves may have ended since: these are left out. `begin`: nothing is
 * recorded yet, so what has ended did so before the capture. */
static int targets_add(struct session *session, const pid_t *pids, size_t count, bool begin)
{
	bool found = session->options->find;
	int result = 0;

	for (size_t i = 0; i < count && !result; i++) {
		if (target_find(session, pids[i]))
			continue;
		result = process_check(pids[i], session->err);
		if (result == -ESRCH && found) {
			result = begin ? ended_pass(session, pids[i]) : 0;
			continue;
		}
		result = result ?: kernel_target_add(session->kernel, pids[i], session->err)
				?: target_add(session, pids[i]);
	}
	if (!result && found && !session->targets.len)
		result = error_set(session->err, ESRCH, "all processes have ended");
	return result;
}

int targets_open(struct session *session)
{
	const struct session_options *options = session->options;

	if (!options->command)
		return targets_add(session, options->pids, options->pid_count, true);
	return kernel_target_add(session->kernel, session->launch.pid, session->err)
		       ?: target_add(session, session->launch.pid);
}

int targets_find(struct session *session)
{
	const struct session_options *options = session->options;
	pid_list pids = {0};
	int result;

	if (!options->find)
		return 0;
	result = options->find(&pids, options->find_arg, session->err);
	if (result == -ESRCH) /* the targets that we have are those that were left */
		result = 0;
	result = result ?: targets_add(session, pids.data, pids.len, false);
	vec_free(&pids);
	return result;
}

/* For so long they are looked for at the end: the targets may be very many. */
#define LIMITS_NS 200000000ull

/* What the limits of a process are passed to, and until when they are looked for. */
struct limit_pass {
	int (*pass)(struct waffle_rec *rec, void *arg);
	void *arg;
	uint64_t ts, until_ns;
	long online; /* CPUs */
	bool cut;    /* the time was too short for all threads of a process */
};

static int limit_pass(const struct limit_pass *to, pid_t tid, const struct cgroup_io_limit *limit)
{
	struct waffle_rec_io_limit rec = {
		.rec = {.ts = to->ts, .tid = (uint32_t)tid, .kind = WAFFLE_REC_IO_LIMIT},
		.cgroup = limit->cgroup,
		.limit = limit->limit,
		.dev = limit->dev,
		.kind = limit->kind};

	return to->pass(&rec.rec, to->arg);
}

/* The threads that may not run on all CPUs, or that others go before. */
static int threads_pass(struct limit_pass *to, pid_t pid)
{
	struct cgroup_io_limit cpus = {.kind = WAFFLE_IO_LIMIT_CPUS};
	struct cgroup_io_limit nice = {.kind = WAFFLE_IO_LIMIT_NICE};
	const struct dirent *entry;
	char path[40];
	DIR *threads;
	int result = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && !result && (entry = readdir(threads))) {
		pid_t tid = (pid_t)process_number(entry->d_name);

		to->cut = clock_monotonic_ns() >= to->until_ns;
		if (to->cut)
			break;
		if (tid && cpus_are_limited(&cpus.limit, &cpus.dev, tid, to->online))
			result = limit_pass(to, tid, &cpus);
		if (!result && tid && thread_is_nice(&nice.limit, &nice.dev, tid))
			result = limit_pass(to, tid, &nice);
	}
	if (threads)
		closedir(threads);
	return result;
}

static int target_limits_pass(struct limit_pass *to, pid_t pid)
{
	struct cgroup_io_limit files = {.kind = WAFFLE_IO_LIMIT_DESCRIPTORS}, pids, weight;
	int result = 0;

	if (descriptors_are_used_up(&files.limit, pid))
		result = limit_pass(to, pid, &files);
	if (!result && cgroup_pids_are_used_up(&pids, pid))
		result = limit_pass(to, pid, &pids);
	if (!result && cgroup_weight_is_low(&weight, pid))
		result = limit_pass(to, pid, &weight);
	return result ?: threads_pass(to, pid);
}

int targets_pass_limits(struct session *session, int (*pass)(struct waffle_rec *rec, void *arg),
			void *arg)
{
	struct limit_pass to = {
		.pass = pass,
		.arg = arg,
		.ts = session->end_ts,
		.until_ns = clock_monotonic_ns() + LIMITS_NS,
		.online = sysconf(_SC_NPROCESSORS_ONLN),
	};
	char line[160];
	int result = 0;

	for (size_t i = 0; i < session->targets.len && !result && !to.cut; i++) {
		result = target_limits_pass(&to, session->targets.data[i].pid);
		if (!to.cut)
			continue;
		snprintf(line, sizeof(line),
			 "the time was too short to look in more than %zu of %zu processes for "
			 "what limits them",
			 i, session->targets.len);
		session_notify(session, line);
	}
	return result;
}

int targets_name_peers(struct session *session, bool at_end)
{
	pid_list pids = {0};
	int result = 0;

	for (size_t i = 0; i < session->targets.len; i++)
		if (!vec_push(&pids, session->targets.data[i].pid))
			result = error_set(session->err, ENOMEM, "out of memory");
	result = result ?: enrich_peers(session->enrich, pids.data, pids.len, at_end, session->err);
	vec_free(&pids);
	return result;
}

void targets_notice(const struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;
	struct target *target;

	if (rec->kind == WAFFLE_REC_FORK && session->options->kernel.config.follow_children) {
		program_forked(session, (const struct waffle_rec_fork *)rec);
	} else if (rec->kind == WAFFLE_REC_EXEC) {
		const struct waffle_rec_exit *exec = (const struct waffle_rec_exit *)rec;

		target = target_find(session, (pid_t)exec->tgid);
		if (target && target->is_waker) {
			target->maps_changed = true;
		} else if (target) {
			target->exec_pending = true;
			target->exec_moved |= (exec->code & ~WAFFLE_EXEC_PRIVILEGED) != 0;
			holds_exec(&target->holds, rec->ts);
			if (session->transport)
				transport_exec(session->transport, target->pid);
		}
	} else if (rec->kind == WAFFLE_REC_EXIT && session->unwatched) {
		session->look_ts = 0;
	}
}

static void mapping_notice(const struct mmap_event *event, void *arg)
{
	struct session *session = arg;
	struct target *target = target_find(session, event->pid);

	/* Just-in-time compilers map code without a file, which has no probes. */
	if (target && event->kind == MMAP_MAPPED && event->mapping.ino) {
		target->maps_changed = true;
		if (session->transport)
			transport_mapped(session->transport, event->pid, event->mapping.start,
					 event->mapping.end, event->ts);
	}
	for (size_t i = 0; event->kind == MMAP_LOST && i < session->targets.len; i++)
		session->targets.data[i].maps_changed = true;
	stages_mapping(&session->stages, event, target);
}

int targets_mappings(uint64_t before_ts, void *arg)
{
	struct session *session = arg;

	mmap_watch_read(session->watch, mapping_notice, session);
	return stages_round(&session->stages, before_ts);
}

int process_arm(struct session *session, pid_t pid, struct error *err)
{
	int result = 0;

	if (session_wants_probes(session->options))
		result = arming_scan(session->arming, pid, err);
	if (!result && arming_concerns_functions(session->arming))
		code_names_process(session->names, pid);
	return result;
}

void targets_parsed(struct session *session)
{
	for (size_t i = 0; i < session->targets.len; i++) {
		struct target *target = &session->targets.data[i];

		if (!target->parsing)
			continue;
		target->parsing = false;
		target->maps_changed = true;
		target->scan_ts = target->scan_ns = 0; /* at once */
	}
}

static uint64_t rescan_ts(const struct target *target)
{
	uint64_t gap = RESCAN_TIMES * target->scan_ns;

	gap = gap < RESCAN_MIN_NS ? RESCAN_MIN_NS : gap > RESCAN_MAX_NS ? RESCAN_MAX_NS : gap;
	return target->scan_ts + gap;
}

/* Rounded up, and at most `most`. */
static int ms_until(uint64_t ts, uint64_t now, int most)
{
	uint64_t ms = ts > now ? (ts - now + 999999) / 1000000 : 0;

	return ms < (uint64_t)most ? (int)ms : most;
}

int targets_wait_ms(const struct session *session, int most)
{
	uint64_t now = clock_monotonic_ns();

	most = arming_loading_ms(session->arming, most);
	for (size_t i = 0; i < session->targets.len; i++) {
		const struct target *target = &session->targets.data[i];

		if (target->maps_changed)
			most = ms_until(rescan_ts(target), now, most);
		if (target->exit_ts && most > EXITED_WAIT_MS)
			most = EXITED_WAIT_MS;
	}
	return most;
}

/* A program counts as late once the first of its files is armed, which may require that the file is
 * parsed first. */
static void begun_first_report(struct session *session, struct target *target, uint64_t armed)
{
	if (arming_arm_count(session->arming) == armed)
		return;
	target->begun_first = false;
	program_was_late(session, target, NULL);
}

/* On failure `gone` has the reason; -ESRCH: the process is gone. */
static int target_rearm(struct session *session, struct target *target, struct error *gone)
{
	bool exec = target->exec_pending, ready;
	const struct hold_sum held = holds_sum(&target->holds, target->holds.exec_ts);
	uint64_t now = clock_monotonic_ns(), armed = arming_arm_count(session->arming);
	int result;

	ready = held.ready && !target->exec_moved;
	if (exec && target->exec_moved) {
		arming_forget(session->arming, target->pid);
		holds_disarmed(&target->holds);
	}
	target->exec_pending = target->maps_changed = false;
	arming_left_out(session->arming);
	if (exec) {
		arming_confine(session->arming, target->pid);
		arming_began(session->arming, target->pid, holds_next_ts(&target->holds));
		enrich_program(session->enrich, target->pid, target->holds.exec_ts);
	}
	if (enrich_process(session->enrich, target->pid, true, session->err))
		return -EIO;
	result = process_arm(session, target->pid, gone);
	if (exec && result == -ESRCH)
		program_ended(session, target);
	target->scan_ts = clock_monotonic_ns();
	target->scan_ns = target->scan_ts - now;
	if (exec) {
		target->exec_moved = false;
		if (!ready && !result && session_wants_probes(session->options))
			arming_scan_needed(session->arming, target->pid);
		target->begun_first = !ready && !held.counted;
		if (held.armed || arming_is_late(session->arming, target->pid)) {
			program_was_late(session, target, NULL);
			target->begun_first = false; /* already counted */
		} else if (target->begun_first) {
			begun_first_report(session, target, armed);
		}
		if (!result)
			arming_expect(session->arming, target->pid);
		if (!ready && !result) {
			enrich_needed(session->enrich, target->pid);
			if (enrich_tables(session->enrich, true, session->err))
				return -EIO;
		}
		if (!result)
			result = target_describe(session, target->pid);
	} else if (!result) {
		if (target->begun_first)
			begun_first_report(session, target, armed);
		if (arming_arm_count(session->arming) > armed)
			holds_armed(&target->holds);
		if (target->fork_ts && arming_arm_count(session->arming) > armed)
			child_was_late(session, target->fork_ts);
		target->fork_ts = 0;
		arming_expect(session->arming, target->pid);
	}
	target->parsing = arming_left_out(session->arming) != ARMING_COMPLETE;
	/* Files that are armed from here on were opened late. */
	target->begun_first &= target->parsing;
	return result;
}

/* A target that is not armed has a new program or mapping. */
static int waker_again(struct session *session, struct target *target)
{
	uint64_t now = clock_monotonic_ns();
	int result = enrich_process(session->enrich, target->pid, true, session->err);

	target->maps_changed = false;
	target->scan_ts = clock_monotonic_ns();
	target->scan_ns = target->scan_ts - now;
	return result ? -EIO : 0;
}

int targets_rearm(struct session *session)
{
	uint64_t begin = clock_monotonic_ns();
	bool looked = false; /* at least one, however many forks there are */

	/* The gate's messages about an exec precede its record, which may have been read since. */
	if (programs_held(session))
		return -EIO;
	arming_changed(session->arming);
	arming_loaded(session->arming);
	arming_retry(session->arming, begin + REARM_NS);
	for (size_t i = 0; i < session->targets.len; i++) {
		struct target *target =
			&session->targets.data[session->next_target++ % session->targets.len];
		uint64_t now = clock_monotonic_ns();
		struct error gone = ERROR_INIT;
		int result;

		if (!target->exec_pending && (!target->maps_changed || now < rescan_ts(target)))
			continue;
		if (now - begin >= REARM_NS || (looked && drain_fork_waits(session->drain))) {
			session->next_target--; /* start with it the next time */
			session->busy = true;
			break;
		}
		looked = true;
		result = target->is_waker ? waker_again(session, target)
					  : target_rearm(session, target, &gone);
		if (result && result != -ESRCH)
			return error_set(session->err, -result, "%s", gone.message);
	}
	warn_of_arming(session);
	return 0;
}

void targets_watch(struct session *session)
{
	struct error problem = ERROR_INIT;

	if (mmap_watch_open(&session->watch, &problem))
		session_notify(session, problem.message);
	else
		session_watch(session, mmap_watch_fd(session->watch), EPOLLIN, TAG_MMAP);
	if (session->gate)
		session_watch(session, gate_fd(session->gate), EPOLLIN, TAG_GATE);
	if (arming_changes_fd(session->arming) >= 0)
		session_watch(session, arming_changes_fd(session->arming), EPOLLIN, TAG_FILE);
}

void targets_close(struct session *session)
{
	for (size_t i = 0; i < session->targets.len; i++) {
		holds_free(&session->targets.data[i].holds);
		if (session->targets.data[i].pidfd >= 0)
			close(session->targets.data[i].pidfd);
	}
	vec_free(&session->targets);
	map_free(&session->target_at);
	map_free(&session->ended);
	vec_free(&session->waker_states);
}

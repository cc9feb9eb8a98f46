// SPDX-License-Identifier: Apache-2.0
#include "capture/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture/session_internal.h"
#include "capture/wakers_internal.h"
#include "store/this_host.h"
#include "target/process/opener.h"
#include "target/process/output_name.h"
#include "target/process/rank.h"
#include "target/worker/worker.h"
#include "target/worker/worker_queue.h"
#include "util/privileges.h"
#include "util/units.h"

#define NAMES_NS 5000000000ull /* limit of the wait for names at the end of a capture */
#define NAMES_PAUSE_NS 100000000ull
/* The limit of the wait until the probes are off, and that after a signal. It takes some 0.1 s. */
#define DISARM_NS 5000000000ull
#define DISARM_PATIENT_NS 1000000000ull
#define DISARM_MS 2

/* The name may contain the pid and rank of the command, which waits for its program. */
static int output_name(struct session *session, uint32_t *target_rank)
{
	const struct session_options *options = session->options;
	pid_t pid = options->command ? session->launch.pid : options->pids[0];

	*target_rank = PROCESS_RANK_NONE;
	if (!options->output_expands) {
		snprintf(session->result->output, sizeof(session->result->output), "%s",
			 options->output);
		return 0;
	}
	return output_name_expand(session->result->output, sizeof(session->result->output), "-o",
				  options->output, pid, target_rank, session->err);
}

/* A process that says which rank it is must not choose which file of the caller is replaced. */
static int file_open(struct session *session, const struct store_meta *meta)
{
	uint32_t rank;
	struct error err = ERROR_INIT;
	int ret = output_name(session, &rank);

	if (ret)
		return ret;
	ret = store_writer_open_apart(&session->writer, session->result->output,
				      rank != PROCESS_RANK_NONE, session->signals, meta, &err);
	if (ret == -EEXIST && rank != PROCESS_RANK_NONE)
		return error_set(session->err, EEXIST,
				 "%s exists: another process says that it is rank %u; remove the "
				 "file, or write %%p into the name",
				 session->result->output, rank);
	return ret ? error_set(session->err, -ret, "%s", err.message) : 0;
}

static int writer_open(struct session *session)
{
	struct this_host host;
	struct store_meta meta = this_host_meta(&host);
	char sources[SOURCES_TEXT];

	meta.command = session->options->label;
	meta.filter = session->options->filter ? filter_source(session->options->filter) : "";
	meta.cpu_count = kernel_cpu_count(session->kernel);
	meta.sched = session_wants_sched(session->options);
	meta.sources = sources_text(sources, session_sources(session));
	session->start_ts = session->flush_ts = meta.start_ts;
	if (session->options->recorder.window_ns)
		return output_name(session, &(uint32_t){0}) ?: flight_open(session, &meta);
	return file_open(session, &meta);
}

/* Space that is reserved for the end of the file: unfinished chunks, the last states of threads,
 * tables and the index. */
#define END_BYTES (1u << 20)

/* Whether the file has reached its limit. Then no more records are written. */
static bool is_full(struct session *session)
{
	uint64_t max = session->options->max_bytes;
	char line[128], text[UNITS_TEXT];

	if (session->full || !max || store_writer_bytes(session->writer) + END_BYTES < max)
		return session->full;
	session->full = true;
	snprintf(line, sizeof(line), "the file has reached its --max-size of %s: the capture ends",
		 units_format_bytes(text, max));
	session_notify(session, line);
	return true;
}

static int record_drained(struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;

	int result = is_full(session) ? -ECANCELED : stages_pass(&session->stages, rec);

	if (session->wakers)
		wakers_record(session->wakers, rec, session->armed_ts ?: rec->ts);
	if (rec->kind == WAFFLE_REC_EXIT && session->rings)
		ring_set_thread_ended(session->rings,
				      (pid_t)((const struct waffle_rec_exit *)rec)->tgid, rec->tid);
	return result;
}

static int state_store(const struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;
	struct waffle_rec_state state;

	if (rec->kind == WAFFLE_REC_HALTED) {
		enrich_halted(session->enrich, (const struct waffle_rec_halted *)rec);
		return 0;
	}
	state = *(const struct waffle_rec_state *)rec;
	if (session->wakers)
		wakers_record(session->wakers, rec, session->armed_ts ?: rec->ts);
	return stages_pass(&session->stages, &state.rec);
}

static bool is_recorded(pid_t pid, void *arg)
{
	return target_find(arg, pid);
}

static int last_pass(struct waffle_rec *rec, void *arg)
{
	struct session *session = arg;
	int result = stages_pass(&session->stages, rec);

	return result == -EINVAL ? 0 : result; /* the file has no room for a stack */
}

/* The final wait for names is bounded, since a program may have many functions in files that
 * take minutes to parse. */
static int names_rest(struct session *session)
{
	uint64_t now = clock_monotonic_ns(), end = now + NAMES_NS;
	bool done;

	do {
		done = code_names_wait(session->names, now + NAMES_PAUSE_NS);
		now = clock_monotonic_ns();
	} while (!done && now < end && !loop_impatient(session));
	if (!done)
		session_notify(session,
			       "some functions have no names: to look them up takes longer "
			       "than the end of a capture waits");
	return code_names_write(session->names, session->err);
}

/* Drains all records from before the end. Only another signal stops this, however long it takes. */
static int drain_rest(struct session *session)
{
	int result = 1;

	while (result > 0) {
		result = drain_round(session->drain, true);
		result = session_filter_losses(session) ?: result;
		if (session->gave_up)
			continue;
		session->gave_up =
			!loop_await_writer(session, WRITER_BEHIND_BYTES) || loop_impatient(session);
		if (session->gave_up) {
			drain_give_up(session->drain);
			session_notify(session, "what was not written yet is counted as lost");
		}
	}
	session_counts(session);
	if (result == -ECANCELED)
		return 0;
	return result ?: names_rest(session);
}

int session_configure(struct kernel_options *kernel, struct plan **plan,
		      const struct session_options *options, struct error *err)
{
	const struct filter_expr *filter = options->filter;
	struct waffle_config *config = &kernel->config;
	const struct call_tracepoint *points;
	int result;

	*plan = NULL;
	*kernel = options->kernel;
	config->sched_slots = (uint32_t)(options->sched_bytes / sizeof(struct waffle_rec_switch));
	if (kernel->ring_bytes == SESSION_RING_BYTES)
		kernel->ring_total = SESSION_TOTAL_BYTES;
	if (options->sched_bytes == SESSION_SCHED_BYTES)
		kernel->sched_total = SESSION_TOTAL_BYTES;
	kernel->sched = session_wants_sched(options);
	config->wait_sources = sources_to_waits(options->sources);
	kernel->stacks = session_wants_node_stacks(options);
	config->stack_tables = stack_choice_has_waits(options->stacks);
	kernel->calls = options->calls != NULL;
	config->call_points = options->calls && call_set_tracepoints(options->calls, &points);
	if (!filter)
		return 0;
	result = plan_open(plan, filter, config->keep_children, err);
	if (result)
		return result;
	kernel->filtered = !(*plan)->is_static;
	config->filter_tracks = (*plan)->tracks;
	kernel->defers = filter_uses(filter, FILTER_DUR);
	config->rate_count = filter->rate.count;
	config->rate_unit_ns = filter->rate.unit_ns;
	return 0;
}

static int session_kernel_open(struct session *session)
{
	struct kernel_options kernel;

	return session_configure(&kernel, &session->plan, session->options, session->err)
		       ?: kernel_open(&session->kernel, &kernel, session->err);
}

/* Opens what records pass on their path from the drain to the file. */
static int stages_open(struct session *session)
{
	struct stages *stages = &session->stages;
	struct store_writer *writer = session->writer;
	struct error *err = session->err;
	int result = address_spaces_open(&session->spaces, session->kernel, writer, err)
			     ?: enrich_open(&session->enrich, session->kernel, session->spaces,
					    writer, err)
			     ?: code_names_open(&session->names, session->kernel, session->spaces,
						writer, err)
			     ?: arming_open(&session->arming, session->kernel, session->spaces,
					    writer, session->options, session->plan, err);

	stages->arming = session->arming;
	stages->spaces = session->spaces;
	stages->enrich = session->enrich;
	stages->names = session->names;
	stages->writer = writer;
	stages->recorder = session->recorder;
	stages->tap = session->options->tap;
	stages->redacts = session->options->redaction;
	stages->err = err;
	return result;
}

static int requests_begin(struct session *session)
{
	struct requests_options options = {.arming = session->arming,
					   .filter = session->stages.filter,
					   .deliver = stages_deliver_track,
					   .arg = &session->stages};

	return session->options->kernel.requests
		       ? requests_open(&session->stages.requests, &options, session->err)
		       : 0;
}

static int counters_begin(struct session *session)
{
	struct wait_counters_options options = {.arming = session->arming,
						.filter = session->stages.filter,
						.deliver = stages_deliver_track,
						.arg = &session->stages};

	return wait_counters_open(&session->stages.counters, &options, session->err);
}

static void functions_notify(const char *line, void *arg)
{
	session_notify(arg, line);
}

static int functions_begin(struct session *session)
{
	struct python_calls_options options = {
		.specs = session->options->functions,
		.spec_count = session->options->function_count,
		.kernel = session->kernel,
		.arming = session->arming,
		.filter = session->stages.filter,
		.follow = session->options->kernel.config.follow_children,
		.deliver = stages_deliver_track,
		.arg = &session->stages,
		.notify = functions_notify,
		.notify_arg = session};

	return session->options->function_count
		       ? python_calls_open(&session->stages.functions, &options, session->err)
		       : 0;
}

#define FIND_NS 5000000 /* between two looks at whether all is searched */

/* Searches the processes of `attach` before the capture counts as ready. */
static int functions_find(struct session *session)
{
	uint64_t until = clock_monotonic_ns() + PARSE_START_NS;
	int result = 0;

	if (!session->stages.functions)
		return 0;
	for (size_t i = 0; i < session->targets.len; i++)
		python_calls_add(session->stages.functions, session->targets.data[i].pid);
	if (session->options->command)
		return 0;
	while (result >= 0 && !session->interrupts && clock_monotonic_ns() < until &&
	       python_calls_searches(session->stages.functions))
		result = loop_await(session, clock_monotonic_ns() + FIND_NS);
	return result < 0 ? result : 0;
}

/* Delivers the spans that are open at the end, of requests, of functions of Python and of wait
 * counters. What is malformed is left out. */
static int open_spans_deliver(struct session *session)
{
	int result = session->stages.requests ? requests_finish(session->stages.requests) : 0;

	if (!result && session->stages.functions)
		result = python_calls_finish(session->stages.functions);
	if (!result && session->stages.counters)
		result = wait_counters_finish(session->stages.counters);
	return result == -EINVAL ? 0 : result;
}

static uint64_t tracer_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + worker_cpu_ns();
}

static int start(struct session *session)
{
	const struct session_options *options = session->options;
	struct drain_callbacks callbacks = {record_drained, targets_notice, session_ring,
					    targets_mappings, session};
	int result = loop_open(session)
			     ?: session_kernel_open(session)
			     ?: programs_open(session)
			     ?: drain_open(&session->drain, session->kernel, &callbacks, session->err)
			     ?: targets_prepare(session)
			     ?: writer_open(session)
			     ?: stages_open(session)
			     ?: session_transport_open(session)
			     ?: requests_begin(session)
			     ?: counters_begin(session)
			     ?: functions_begin(session)
			     ?: wakers_begin(session)
			     ?: targets_open(session);

	privileges_keep_tracing(); /* the command was forked before this */
	for (uint32_t i = 0; !result && i < kernel_ring_count(session->kernel); i++)
		result = session_watch(session, kernel_ring_fd(session->kernel, i),
				       EPOLLIN | EPOLLET, TAG_RING);
	if (result)
		return result;
	session->interval = drain_interval_begin(
		kernel_ring_bytes(session->kernel), kernel_ring_count(session->kernel),
		session_wants_sched(options)
			? kernel_slot_count(session->kernel) * sizeof(struct waffle_rec_switch)
			: 0,
		kernel_cpu_count(session->kernel));
	targets_watch(session);
	/* Attach the user's tracepoints before our own of the same name, which forget a process at
	 * its exit. */
	result = arming_tracepoints(session->arming, session->err)
			 ?: kernel_attach(session->kernel, session->err);
	if (result)
		return result;
	warn_of_events(session);
	result = targets_find(session)
			 ?: kernel_snapshot(session->kernel, false, state_store, session,
					    session->err)
			 ?: targets_arm(session)
			 ?: functions_find(session)
			 ?: (options->command ? 0 : warn_of_unfound(session, true))
			 ?: (options->command ? 0 : session_transport_check(session));
	session->result->ready_cpu_ns = tracer_cpu_ns();
	session->armed_ts = clock_monotonic_ns();
	session->result->ready_ns = session->armed_ts - session->begin_ts;
	if (options->duration_ns)
		opener_until(session->armed_ts + options->duration_ns);
	return result;
}

/* Waits until all probes are off. The kernel waits for processes that keep their mmap_lock, which
 * may be for ever. False: they are not off yet. */
static bool disarm_await(struct session *session)
{
	uint64_t begin = clock_monotonic_ns(), now = begin;

	while (!kernel_is_disarmed(session->kernel)) {
		if (now > begin + DISARM_NS ||
		    (now > begin + DISARM_PATIENT_NS && loop_impatient(session))) {
			session_notify(
				session,
				"the kernel does not take the probes off: a process keeps "
				"the lock of its mappings, and every fork() of the machine "
				"waits with it, as does the end of waffle-bpf, but not its "
				"capture; if it waits for a FUSE server, end that or write 1 "
				"to its /sys/fs/fuse/connections/*/abort");
			kernel_disarm_give_up(session->kernel);
			return false;
		}
		poll(NULL, 0, DISARM_MS);
		now = clock_monotonic_ns();
	}
	return true;
}

/* Results of queued parsing are useless now, and a new queue can read the last mappings at once.
 * This forks. */
static void workers_renew(struct session *session)
{
	struct error err = ERROR_INIT;

	worker_queue_close();
	if (worker_queue_open(&err))
		session_notify(session, err.message);
}

/*
 * Recording ends at one moment for all sites. Disarming takes the kernel some milliseconds. During
 * that time it would still report ends of spans, but no longer all begins.
 */
static int finish(struct session *session)
{
	struct error ignored = ERROR_INIT;
	uint64_t cpu_ns;
	bool disarmed;
	int result;

	kernel_snapshot(session->kernel, true, state_store, session, &ignored);
	kernel_finish(session->kernel);
	session->end_ts = clock_monotonic_ns();
	if (session_wants_sched(session->options))
		warn_of_holders(session, enrich_halted_examine(session->enrich));
	enrich_names_look(session->enrich, true);
	programs_let_go(session);
	if (session->rings)
		ring_set_finish(session->rings, session->end_ts);
	session->result->duration_ns = session->end_ts - session->start_ts;
	session->result->recorded_ns = session->end_ts - session->armed_ts;
	cpu_ns = tracer_cpu_ns(); /* less than before, if a worker ended in the wrong moment */
	if (cpu_ns > session->result->ready_cpu_ns)
		session->result->tracer_cpu_ns = cpu_ns - session->result->ready_cpu_ns;
	arming_release(session->arming);
	disarmed = disarm_await(session);
	if (session->stages.functions)
		python_calls_disarm(session->stages.functions);
	if (session->named)
		name_set_disarm(session->named);
	kernel_detach(session->kernel);
	if (disarmed)
		workers_renew(session);
	worker_queue_wait_until(session->end_ts + PARSE_END_NS);
	result = drain_rest(session)
			 ?: stages_names(&session->stages)
			 ?: open_spans_deliver(session);
	if (!result && session_wants_sched(session->options) && !session->full)
		result = enrich_pipes(session->enrich, session->err)
				 ?: enrich_last_each(session->enrich, session->end_ts,
						     is_recorded, last_pass, session)
				 ?: targets_pass_limits(session, last_pass, session)
				 ?: targets_name_peers(session, true);
	result = result ?: address_spaces_finish(session->spaces, session->err);
	if (session->transport)
		transport_finish(session->transport);
	warn_of_faults(session);
	programs_report(session);
	if (enrich_stack_warning(session->enrich))
		session_notify(session, enrich_stack_warning(session->enrich));
	warn_of_early_stacks(session);
	if (code_names_warning(session->names))
		session_notify(session, code_names_warning(session->names));
	session->result->sites = arming_site_count(session->arming);
	session->result->armed = session_armed(session);
	return result;
}

static void close_all(struct session *session)
{
	keymap_free(&session->reported);
	arming_close(session->arming);
	worker_give_up(WORKER_FOR_NAMES, true); /* pending lookups are useless now */
	code_names_close(session->names);
	mmap_watch_close(session->watch);
	requests_close(session->stages.requests);
	python_calls_close(session->stages.functions);
	wait_counters_close(session->stages.counters);
	wakers_close(session->wakers);
	session_transport_close(session);
	drain_close(session->drain);
	enrich_close(session->enrich);
	address_spaces_close(session->spaces);
	worker_give_up(WORKER_FOR_NAMES, false);
	launch_abort(
		/* The child holds a copy of the pipe for whose end kernel_close() waits. */
		&session->launch);
	programs_let_go(session);
	if (session->kernel)
		disarm_await(session);
	kernel_close(session->kernel);
	plan_free(session->plan);
	targets_close(session);
	loop_close(session);
}

/* If nothing was captured, an existing file of that name stays. `failed`: the error is already
 * set. */
static int writer_close(struct session *session, bool started, int failed)
{
	struct session_result *result = session->result;
	struct error problem = ERROR_INIT;
	struct stat file;
	int written;

	if (!session->writer)
		return 0;
	if (session->options->recorder.window_ns) {
		written = flight_close(session, !started || loop_await_flight(session));
		store_writer_discard(session->writer);
		return failed ? 0 : written;
	}
	if (!session->published && (!started || result->exec_errno)) {
		store_writer_discard(session->writer);
		return 0;
	}
	session_publish(session); /* if it fails, closing fails, too */
	store_writer_finish(session->writer, session->end_ts, result->counts);
	result->file_stuck = !loop_await_writer(session, 0);
	result->file_written = store_writer_is_published(session->writer);
	written = store_writer_close(session->writer, session->end_ts, result->counts, &problem);
	result->file_written |= !written;
	if (result->file_stuck) /* nor would it answer others */
		result->file_written = false;
	else if (!stat(session->result->output, &file))
		result->file_bytes = (uint64_t)file.st_size;
	return written && !failed ? error_set(session->err, -written, "%s", problem.message) : 0;
}

int session_run(const struct session_options *options, const struct session_events *events,
		struct session_result *result, struct error *err)
{
	struct session session = {.options = options,
				  .events = events,
				  .result = result,
				  .err = err,
				  .launch = {-1, -1, -1},
				  .epoll = -1,
				  .timer = -1,
				  .signals = -1,
				  .begin_ts = clock_monotonic_ns()};
	int code, closed = 0;
	bool started;

	*result = (struct session_result){.exit_status = -1};
	code = start(&session) ?: (options->command ? 0 : session_publish(&session));
	if (!code)
		warn_after_arming(&session);
	if (!code && options->command)
		code = programs_first(&session) ?: session_transport_check(&session);
	started = !code;
	if (started) {
		if (options->command)
			launch_go(&session.launch);
		code = loop_run(&session);
		/* The files that the command uses are known only now. */
		if (options->command)
			warn_of_names(&session);
		warn_of_unfound(&session, false);
		warn_of_redaction(&session);
		closed = finish(&session);
	}
	closed = writer_close(&session, started, code ?: closed) ?: closed;
	close_all(&session);
	return code ?: closed;
}

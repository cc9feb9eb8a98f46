// SPDX-License-Identifier: Apache-2.0
#include "capture/stages_internal.h"

#include "capture/address_space/processes.h"
#include "capture/redact.h"
#include "util/clock.h"

/* A record on its path, and the results of the first stages for the later ones. */
struct stage_record {
	struct waffle_rec *rec;
	uint32_t number;                /* arming's number of its site */
	const struct arming_site *site; /* of a hit or a return; NULL: unknown */
	bool privileged;                /* an exec gave the program privileges */
};

/* Marks that the kernel adds to members of a record for the tracer alone. */
static int marks_remove(const struct stages *stages, struct stage_record *record)
{
	(void)stages;
	if (record->rec->kind == WAFFLE_REC_FORK) {
		((struct waffle_rec_fork *)record->rec)->child_tgid &= ~WAFFLE_FORK_SHARES;
	} else {
		struct waffle_rec_exit *exec = (struct waffle_rec_exit *)record->rec;

		record->privileged = exec->code & WAFFLE_EXEC_PRIVILEGED;
		exec->code &= ~WAFFLE_EXEC_PRIVILEGED;
	}
	return 0;
}

static int site_resolve(const struct stages *stages, struct stage_record *record)
{
	struct arming *arming = stages->arming;
	const struct waffle_rec_span_end *end = (const struct waffle_rec_span_end *)record->rec;

	if (record->rec->kind == WAFFLE_REC_SPAN_END) {
		/* The site is known if the record is of a ring. */
		record->number =
			end->site != WAFFLE_SITE_UNKNOWN
				? end->site
				: arming_site_at(arming, (pid_t)end->tgid, end->probe_addr);
		return 0;
	}
	record->number = record->rec->kind == WAFFLE_REC_HIT
				 ? ((const struct waffle_rec_hit *)record->rec)->site
				 : ((const struct waffle_rec_return *)record->rec)->site;
	record->site = arming_site(arming, record->number);
	return 0;
}

/* The result of a stage that has taken the record over. */
#define STAGE_TAKEN 1

static int threads_follow(const struct stages *stages, struct stage_record *record)
{
	if (stages->filter)
		record_filter_thread(stages->filter, record->rec);
	return 0;
}

static int track_expand(const struct stages *stages, struct stage_record *record)
{
	const struct waffle_rec_track_hit *hit = (const struct waffle_rec_track_hit *)record->rec;

	return stages->tracks ? track_stage_pass(stages->tracks, hit) ?: STAGE_TAKEN : -EINVAL;
}

static int request_follow(const struct stages *stages, struct stage_record *record)
{
	const struct waffle_rec_socket *rec = (const struct waffle_rec_socket *)record->rec;

	return stages->requests ? requests_pass(stages->requests, rec) ?: STAGE_TAKEN : -EINVAL;
}

static int function_follow(const struct stages *stages, struct stage_record *record)
{
	const struct waffle_rec_watched *rec = (const struct waffle_rec_watched *)record->rec;

	if (rec->rec.kind != WAFFLE_REC_WATCHED)
		return stages->functions ? python_calls_process(stages->functions, &rec->rec) : 0;
	return stages->functions ? python_calls_pass(stages->functions, rec) ?: STAGE_TAKEN
				 : -EINVAL;
}

/* The thread may end next, so its name is passed on at once. */
static int thread_name_follow(const struct stages *stages, struct stage_record *record)
{
	enrich_threads(stages->enrich, record->rec);
	return stages_names(stages) ?: STAGE_TAKEN;
}

/* The values of these sites are written to no file, so redaction does not concern them. */
static int counter_follow(const struct stages *stages, struct stage_record *record)
{
	const struct waffle_rec *rec = record->rec;

	if (!stages->counters)
		return 0;
	if (rec->kind == WAFFLE_REC_EXEC || rec->kind == WAFFLE_REC_EXIT)
		return wait_counters_process(stages->counters, (const struct waffle_rec_exit *)rec);
	if (!record->site || !site_is_counter(record->site->original))
		return 0;
	return wait_counters_pass(stages->counters, record->site->original, rec) ?: STAGE_TAKEN;
}

/* Asks for values that may be redacted next, as the filter in the kernel does. */
static int hits_filter(const struct stages *stages, struct stage_record *record)
{
	if (!stages->filter || !record_filter_takes(stages->filter, record->rec))
		return 0;
	if (record->rec->kind == WAFFLE_REC_SPAN_END)
		((struct waffle_rec_span_end *)record->rec)->site = record->number;
	return record_filter_pass(stages->filter, record->rec) ?: STAGE_TAKEN;
}

/* Must run before anything else but the filter reads the values. */
static int values_redact(const struct stages *stages, struct stage_record *record)
{
	const struct arming_site *site = record->site;

	if (stages->redacts)
		redact_record(record->rec, site ? site->original : NULL, site ? site->redacted : 0);
	return 0;
}

/* The mapping events that precede the record. */
static int mappings_follow(const struct stages *stages, struct stage_record *record)
{
	return address_spaces_advance(stages->spaces, record->rec->ts, stages->err);
}

static int tracks_forget(const struct stages *stages, struct stage_record *record)
{
	if (stages->tracks)
		track_stage_forget(stages->tracks,
				   ((const struct waffle_rec_exit *)record->rec)->tgid);
	return 0;
}

static int process_follow(const struct stages *stages, struct stage_record *record)
{
	processes_record(address_spaces_processes(stages->spaces), record->rec, record->privileged);
	return 0;
}

static int address_space_follow(const struct stages *stages, struct stage_record *record)
{
	return address_spaces_record(stages->spaces, record->rec, record->privileged, stages->err);
}

static int unwinding_follow(const struct stages *stages, struct stage_record *record)
{
	return enrich_unwinding(stages->enrich, record->rec, stages->err);
}

static int names_follow(const struct stages *stages, struct stage_record *record)
{
	enrich_threads(stages->enrich, record->rec);
	return 0;
}

/* The open calls of a program that is gone will never return, so nobody names their values. */
static int calls_forget(const struct stages *stages, struct stage_record *record)
{
	const struct waffle_rec_exit *end = (const struct waffle_rec_exit *)record->rec;

	if (end->rec.kind == WAFFLE_REC_EXEC || end->rec.tid == end->tgid)
		code_names_forget(stages->names, (pid_t)end->tgid);
	return 0;
}

static int object_name(const struct stages *stages, struct stage_record *record)
{
	return enrich_object(stages->enrich, record->rec, stages->err);
}

static int addresses_map(const struct stages *stages, struct stage_record *record)
{
	return enrich_addresses(stages->enrich, record->rec, stages->err);
}

static int stacks_number(const struct stages *stages, struct stage_record *record)
{
	return enrich_stacks(stages->enrich, record->rec, stages->err);
}

static int interrupt_mark(const struct stages *stages, struct stage_record *record)
{
	enrich_interrupt(stages->enrich, record->rec);
	return 0;
}

/* Names functions that are values of a call, while the process lives. */
static int functions_name(const struct stages *stages, struct stage_record *record)
{
	const struct arming_site *site = record->site;

	if (!site || !site->concerns)
		return 0;
	return code_names_record(stages->names, site->info, site->info->begin_keys, record->rec,
				 stages->err);
}

/* Replaces the kernel's number of a site by the file's. */
static int site_renumber(const struct stages *stages, struct stage_record *record)
{
	uint32_t number = arming_number(stages->arming, record->number);

	if (record->rec->kind == WAFFLE_REC_HIT)
		((struct waffle_rec_hit *)record->rec)->site = number;
	else if (record->rec->kind == WAFFLE_REC_RETURN)
		((struct waffle_rec_return *)record->rec)->site = number;
	else
		((struct waffle_rec_span_end *)record->rec)->site = number;
	return 0;
}

static int record_tap(const struct stages *stages, struct stage_record *record)
{
	const struct session_tap *tap = stages->tap;

	if (tap)
		tap->record(record->rec, record->site ? record->site->info : NULL, tap->arg);
	return 0;
}

static int trigger_follow(const struct stages *stages, struct stage_record *record)
{
	if (stages->recorder)
		recorder_look(stages->recorder, record->rec,
			      record->site ? record->site->info : NULL, stages->now);
	return 0;
}

/* Frames of a wait are kept for its record, and are not written themselves. */
static int record_write(const struct stages *stages, struct stage_record *record)
{
	if (stages->recorder)
		store_writer_set_now(stages->writer, stages->now);
	return record->rec->kind < WAFFLE_REC_KIND_COUNT
		       ? store_writer_append(stages->writer, record->rec, stages->err)
		       : 0;
}

#define KIND(name) (1ull << WAFFLE_REC_##name)
#define ALL_KINDS ((1ull << WAFFLE_REC_RING_COUNT) - 1)

_Static_assert(WAFFLE_REC_RING_COUNT < 64, "a bit for each kind");

void stages_mapping(const struct stages *stages, const struct mmap_event *event, bool traced)
{
	if (address_spaces_are_written(stages->spaces) || arming_concerns_functions(stages->arming))
		address_spaces_push(stages->spaces, event, traced);
}

/* The lists are code rather than tables of functions, so that the compiler can inline the stages. A
 * table takes 5 to 10 ns more per record. */
#define STAGE(pass, kinds) result = result ?: (kind & (kinds) ? pass(stages, record) : 0)

/* The stages behind the filter. `kind` is the bit of the record's kind. */
static inline int record_finish(const struct stages *stages, struct stage_record *record,
				uint64_t kind)
{
	int result = 0;

	STAGE(values_redact, KIND(HIT) | KIND(RETURN));
	STAGE(process_follow, KIND(TASK) | KIND(STATE) | KIND(FORK) | KIND(EXEC) | KIND(EXIT));
	STAGE(address_space_follow, KIND(FORK) | KIND(EXEC) | KIND(EXIT));
	STAGE(names_follow, KIND(TASK) | KIND(EXEC) | KIND(EXIT));
	STAGE(unwinding_follow, KIND(FORK) | KIND(EXEC) | KIND(EXIT));
	STAGE(calls_forget, KIND(EXEC) | KIND(EXIT));
	STAGE(object_name, KIND(ENDPOINTS) | KIND(WAIT) | KIND(IO) | KIND(QUOTA) | KIND(MEMORY) |
				   KIND(LOCK_REFUSAL) | KIND(REQUEST_FAILURE) | KIND(IO_LIMIT));
	STAGE(addresses_map, KIND(WAIT) | KIND(FAULT));
	STAGE(stacks_number, KIND(TRACE) | KIND(FRAMES) | KIND(CODE) | KIND(WAIT) | KIND(WAKE) |
				     KIND(EXIT) | KIND(STACK) | KIND(SAMPLE) | KIND(OPEN_WAIT));
	STAGE(interrupt_mark, KIND(WAKE) | KIND(SWITCH));
	STAGE(functions_name, KIND(HIT) | KIND(RETURN));
	STAGE(site_renumber, KIND(HIT) | KIND(RETURN) | KIND(SPAN_END));
	STAGE(record_tap, ALL_KINDS);
	STAGE(trigger_follow,
	      KIND(HIT) | KIND(RETURN) | KIND(SPAN_END) | KIND(TASK) | KIND(EXEC) | KIND(EXIT));
	STAGE(record_write, ALL_KINDS & ~(KIND(TRACE) | KIND(CODE) | KIND(ENDPOINTS)));
	return result;
}

static int name_deliver(struct waffle_rec *rec, void *arg)
{
	struct stage_record record = {.rec = rec};

	return record_finish(arg, &record, KIND(THREAD_NAME));
}

int stages_names(const struct stages *stages)
{
	return enrich_names_each(stages->enrich, name_deliver, (void *)(uintptr_t)stages);
}

int stages_round(const struct stages *stages, uint64_t before_ts)
{
	int result = stages->requests ? requests_round(stages->requests, before_ts) : 0;

	if (stages->tap)
		stages->tap->round(stages->tap->arg);
	if (result && result != -EINVAL) /* of one request */
		return result;
	enrich_names_look(stages->enrich, false);
	return enrich_round(stages->enrich, stages->err)
		       ?: stages_names(stages)
		       ?: address_spaces_begin_round(stages->spaces, before_ts, stages->err);
}

int stages_pass(struct stages *stages, struct waffle_rec *rec)
{
	struct stage_record of = {.rec = rec}, *record = &of;
	uint64_t kind = rec->kind < WAFFLE_REC_RING_COUNT ? 1ull << rec->kind : 0;
	int result = kind ? 0 : -EINVAL;

	stages->now = rec->ts > stages->now ? rec->ts : stages->now;
	STAGE(marks_remove, KIND(FORK) | KIND(EXEC));
	STAGE(mappings_follow, ALL_KINDS);
	STAGE(site_resolve, KIND(HIT) | KIND(RETURN) | KIND(SPAN_END));
	STAGE(tracks_forget, KIND(EXEC));
	STAGE(threads_follow, KIND(TASK) | KIND(EXEC) | KIND(EXIT));
	STAGE(track_expand, KIND(TRACK_HIT));
	STAGE(request_follow, KIND(SOCKET));
	STAGE(function_follow, KIND(WATCHED) | KIND(FORK) | KIND(EXEC) | KIND(EXIT));
	STAGE(thread_name_follow, KIND(PYTHON_NAME));
	STAGE(counter_follow, KIND(HIT) | KIND(RETURN) | KIND(EXEC) | KIND(EXIT));
	STAGE(hits_filter, KIND(HIT) | KIND(SPAN_END));
	result = result ?: record_finish(stages, record, kind);
	return result == STAGE_TAKEN ? 0 : result;
}

int stages_deliver_track(struct waffle_rec *rec, void *arg)
{
	const struct stages *stages = arg;
	struct stage_record record = {.rec = rec};

	if (rec->kind == WAFFLE_REC_HIT) {
		record.number = ((const struct waffle_rec_hit *)rec)->site;
		record.site = arming_site(stages->arming, record.number);
	} else if (rec->kind == WAFFLE_REC_SPAN_END) {
		record.number = ((const struct waffle_rec_span_end *)rec)->site;
	} else if (rec->kind == WAFFLE_REC_RETURN) {
		record.number = ((const struct waffle_rec_return *)rec)->site;
		record.site = arming_site(stages->arming, record.number);
	}
	return record_finish(stages, &record, 1ull << rec->kind);
}

int stages_deliver(struct waffle_rec *rec, void *arg)
{
	const struct stages *stages = arg;

	return stages->tracks ? track_stage_kept(stages->tracks, rec)
			      : stages_deliver_track(rec, arg);
}
#undef STAGE

void stages_forget(const struct stages *stages, pid_t pid)
{
	if (stages->filter)
		record_filter_forget(stages->filter, pid);
	if (stages->tracks)
		track_stage_forget(stages->tracks, (uint32_t)pid);
	if (stages->functions)
		python_calls_forget(stages->functions, pid);
	if (stages->counters)
		wait_counters_forget(stages->counters, (uint32_t)pid);
	address_spaces_forget(stages->spaces, pid);
	enrich_forget(stages->enrich, pid);
	code_names_forget(stages->names, pid);
	store_writer_forget(stages->writer, (uint32_t)pid, clock_monotonic_ns());
}

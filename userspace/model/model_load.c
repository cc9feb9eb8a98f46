// SPDX-License-Identifier: Apache-2.0
/* Makes a model of the records of a file, and frees it. */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "model/captures_internal.h"
#include "model/comm/comm.h"
#include "model/gpu/gpu.h"
#include "model/gpu/gpu_op_kind.h"
#include "model/gpu/gpu_records.h"
#include "util/memory.h"

static void add_loss(struct builder *builder, const struct waffle_rec_loss *loss)
{
	struct model *model = builder->model;

	if (loss->source >= WAFFLE_SOURCE_COUNT || loss->from_ts > loss->rec.ts) {
		model->bad_records++;
		return;
	}
	vec_add(&model->losses, (struct model_loss){.from_ts = loss->from_ts,
						    .to_ts = loss->rec.ts,
						    .count = loss->count,
						    .source = loss->source,
						    .cpu = loss->rec.cpu});
}

/* What threads waited for, and what they ran. */
static void add_wait_record(struct builder *builder, const struct waffle_rec *rec)
{
	switch (rec->kind) {
	case WAFFLE_REC_WAIT:
		waits_add(builder, (const struct waffle_rec_wait *)rec);
		break;
	case WAFFLE_REC_OPEN_WAIT:
		waits_add_open(builder, (const struct waffle_rec_open_wait *)rec);
		break;
	case WAFFLE_REC_WAKE:
		waits_add_wake(builder, (const struct waffle_rec_wake *)rec);
		break;
	case WAFFLE_REC_FAULT:
		waits_add_fault(builder, (const struct waffle_rec_fault *)rec);
		break;
	case WAFFLE_REC_IO:
		waits_add_io(builder, (const struct waffle_rec_io *)rec);
		break;
	case WAFFLE_REC_SIGNAL:
		waits_add_signal(builder, (const struct waffle_rec_signal *)rec);
		break;
	case WAFFLE_REC_QUOTA:
		waits_add_quota(builder, (const struct waffle_rec_quota *)rec);
		break;
	case WAFFLE_REC_MEMORY:
		waits_add_memory(builder, (const struct waffle_rec_memory *)rec);
		break;
	case WAFFLE_REC_IO_LIMIT:
		waits_add_io_limit(builder, (const struct waffle_rec_io_limit *)rec);
		break;
	case WAFFLE_REC_REQUEST_FAILURE:
		waits_add_request_failure(builder, (const struct waffle_rec_request_failure *)rec);
		break;
	case WAFFLE_REC_LATE_SLEEP:
		waits_add_late_sleep(builder, (const struct waffle_rec_late_sleep *)rec);
		break;
	case WAFFLE_REC_LOCK_REFUSAL:
		waits_add_lock_refusal(builder, (const struct waffle_rec_lock_refusal *)rec);
		break;
	case WAFFLE_REC_STOLEN:
		waits_add_stolen(builder, (const struct waffle_rec_stolen *)rec);
		break;
	case WAFFLE_REC_SAMPLE:
		waits_add_sample(builder, (const struct waffle_rec_sample *)rec);
		break;
	case WAFFLE_REC_FREQUENCY:
		waits_add_frequency(builder, (const struct waffle_rec_frequency *)rec);
		break;
	default:
		builder->model->bad_records++;
		break;
	}
}

static void add_record(struct builder *builder, const struct waffle_rec *rec)
{
	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		spans_add_hit(builder, (const struct waffle_rec_hit *)rec);
		break;
	case WAFFLE_REC_SPAN_END:
		spans_add_end(builder, (const struct waffle_rec_span_end *)rec);
		break;
	case WAFFLE_REC_RETURN:
		spans_add_return(builder, (const struct waffle_rec_return *)rec);
		break;
	case WAFFLE_REC_STACK:
		stacks_add(builder, (const struct waffle_rec_stack *)rec);
		break;
	case WAFFLE_REC_TRACK:
		tracks_add(builder, (const struct waffle_rec_track *)rec);
		break;
	case WAFFLE_REC_ON_TRACK:
		tracks_expect(builder, (const struct waffle_rec_on_track *)rec);
		builder->was_track = true;
		break;
	case WAFFLE_REC_SWITCH:
		switches_add(builder, (const struct waffle_rec_switch *)rec);
		break;
	case WAFFLE_REC_STATE:
		switches_add_state(builder, (const struct waffle_rec_state *)rec);
		break;
	case WAFFLE_REC_TASK:
		threads_add_task(builder, (const struct waffle_rec_task *)rec);
		break;
	case WAFFLE_REC_THREAD_NAME:
		threads_add_name(builder, (const struct waffle_rec_thread_name *)rec);
		break;
	case WAFFLE_REC_FORK:
		threads_add_fork(builder, (const struct waffle_rec_fork *)rec);
		break;
	case WAFFLE_REC_EXEC:
		threads_add_exec(builder, (const struct waffle_rec_exit *)rec);
		break;
	case WAFFLE_REC_EXIT:
		threads_add_exit(builder, (const struct waffle_rec_exit *)rec);
		break;
	case WAFFLE_REC_LOSS:
		add_loss(builder, (const struct waffle_rec_loss *)rec);
		break;
	default:
		add_wait_record(builder, rec);
		break;
	}
}

/* Scheduler records, which are skipped if nothing of the model is computed from them. */
static bool is_sched(unsigned kind)
{
	return kind == WAFFLE_REC_SWITCH || kind == WAFFLE_REC_STATE;
}

static bool site_has_role(const struct builder *builder, uint32_t site)
{
	return model_site(builder->model, site)->role != SITE_ROLE_NONE;
}

/* Whether a record is part of a call with a role, or of what all spans need. */
static bool is_of_role(const struct builder *builder, const struct waffle_rec *rec)
{
	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		return site_has_role(builder, ((const struct waffle_rec_hit *)rec)->site);
	case WAFFLE_REC_SPAN_END:
		return site_has_role(builder, ((const struct waffle_rec_span_end *)rec)->site);
	case WAFFLE_REC_RETURN:
		return site_has_role(builder, ((const struct waffle_rec_return *)rec)->site);
	case WAFFLE_REC_TASK:
	case WAFFLE_REC_THREAD_NAME:
	case WAFFLE_REC_TRACK:
	case WAFFLE_REC_ON_TRACK:
	case WAFFLE_REC_FORK:
	case WAFFLE_REC_EXEC:
	case WAFFLE_REC_EXIT:
	case WAFFLE_REC_LOSS:
		return true;
	default:
		return false;
	}
}

/* `read`: number of records in the file, per source. */
static void set_counts(struct model *model, const struct store_reader *reader, const uint64_t *read)
{
	uint64_t ignored;
	bool cut = store_reader_truncated(reader, &ignored);

	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		struct store_counts *counts = &model->sources[i];

		*counts = model->meta->counts[i];
		if (cut) {
			counts->delivered =
				read[i] > counts->delivered ? read[i] : counts->delivered;
			counts->produced = counts->delivered + counts->lost;
		}
		model->counts.produced += counts->produced;
		model->counts.delivered += counts->delivered;
		model->counts.lost += counts->lost;
	}
}

/* Tells how far it came when memory runs out. */
static void memory_message(void *arg, struct error *err)
{
	const struct model *model = arg;

	error_set(err, ENOMEM,
		  "out of memory after %zu spans and %zu events; read a part of the file with "
		  "--from and --to",
		  model->spans.len, model->events.len);
}

/* Records that neither only_roles nor only_declared needs: those about waits, and stacks. */
#define KIND(name) (1u << WAFFLE_REC_##name)
#define KINDS_NEEDED                                                                               \
	(KIND(HIT) | KIND(SPAN_END) | KIND(RETURN) | KIND(TASK) | KIND(THREAD_NAME) | KIND(FORK) | \
	 KIND(EXEC) | KIND(EXIT) | KIND(LOSS) | KIND(TRACK) | KIND(ON_TRACK))

static bool is_call_of_ranks(const struct site_info *site)
{
	return site_role_is_mpi(site->role) || site_role_is_nccl(site->role);
}

/* Makes the reader leave out what add_records() would ignore, so that it need not be merged. */
static int leave_out(const struct builder *builder, struct store_reader *reader, struct error *err)
{
	struct store_leave_out what = {
		.kinds = ~KINDS_NEEDED,
		.leaves_if = builder->only_leading ? is_call_of_ranks : NULL,
	};
	bool wanted = builder->only_roles || builder->only_declared;

	return wanted ? store_reader_leave_out(reader, &what, err) : 0;
}

/* Counts the records that were left out as if they had been read. */
static void count_left_out(struct builder *builder, const struct store_reader *reader,
			   uint64_t *read)
{
	struct store_left_out left_out;

	store_reader_left_out(reader, &left_out);
	for (unsigned kind = 0; kind < WAFFLE_REC_KIND_COUNT; kind++) {
		read[record_source(kind)] += left_out.records[kind];
		if (!is_sched(kind) && left_out.last_ts[kind] > builder->last_ts)
			builder->last_ts = left_out.last_ts[kind];
	}
}

/*
 * A part of a capture may lack the events that say whether the GPU is a stand-in. Reads the file
 * from its begin to the first event of each of their sites, which the recorder writes when it
 * begins.
 */
static int simulated_find(struct builder *builder, struct store_reader *reader,
			  struct store_window window, struct error *err)
{
	bool *seen = memory_zeroed(builder->sites.len, sizeof(*seen));
	const struct waffle_rec *rec;
	size_t left = 0;
	int result = 0;

	for (size_t i = 0; i < builder->sites.len; i++)
		left += builder->sites.data[i].session;
	if (window.from_ts || window.to_ts != UINT64_MAX)
		result = left ? store_reader_seek(reader, STORE_ALL, err) : 0;
	else
		left = 0;
	while (!result && left && (result = store_reader_next(reader, &rec, err)) > 0) {
		const struct waffle_rec_hit *hit = (const struct waffle_rec_hit *)rec;

		result = 0;
		if (rec->kind != WAFFLE_REC_HIT || hit->site >= builder->sites.len ||
		    !builder->sites.data[hit->site].session || seen[hit->site])
			continue;
		seen[hit->site] = true;
		left--;
		builder->model->gpu_simulated |= spans_hit_is_simulated(builder, hit);
	}
	free(seen);
	return result;
}

static int add_records(struct builder *builder, struct store_reader *reader,
		       struct store_window window, struct error *err)
{
	uint64_t read[WAFFLE_SOURCE_COUNT + 1] = {0};
	const struct waffle_rec *rec;
	int result = leave_out(builder, reader, err) ?: store_reader_seek(reader, window, err);

	if (result < 0)
		return result;
	while ((result = store_reader_next(reader, &rec, err)) > 0) {
		/* Names of threads and tracks count from before the window, too. */
		if ((rec->ts < window.from_ts && !record_names(rec->kind)) ||
		    rec->ts > window.to_ts)
			continue;
		read[record_source(rec->kind)]++;
		if (builder->no_sched && is_sched(rec->kind))
			continue;
		if (builder->only_roles && !is_of_role(builder, rec))
			continue;
		builder->record = store_reader_number(reader);
		builder->was_track = false;
		add_record(builder, rec);
		if (rec->ts > builder->last_ts && !builder->was_track)
			builder->last_ts = rec->ts;
	}
	count_left_out(builder, reader, read);
	set_counts(builder->model, reader, read);
	if (builder->model->gpu_records)
		builder->model->bad_records += builder->model->gpu_records->bad_records;
	return result ?: store_reader_leave_out(reader, NULL, err);
}

/* The clocks of the hosts are those that the reader has by now (model/clock/clock.h). */
static void add_hosts(struct model *model, const struct store_reader *reader)
{
	uint32_t count = store_reader_host_count(reader);
	const struct store_host **hosts = memory_zeroed(count, sizeof(const struct store_host *));

	model->aligned = true;
	for (uint32_t i = 0; i < count; i++) {
		hosts[i] = store_reader_host(reader, i);
		model->aligned &= count == 1 || hosts[i]->clock.kind == STORE_CLOCK_REFERENCE ||
				  hosts[i]->clock.kind == STORE_CLOCK_ALIGNED;
	}
	model->hosts = hosts;
	model->host_count = count;
}

static bool site_is_plain(const struct site_info *site)
{
	if (site->kind != WAFFLE_SITE_SPAN || site->call || site->role != SITE_ROLE_NONE ||
	    !strcmp(site->category, GPU_CATEGORY))
		return false;
	for (unsigned key = 0; key < site->key_count && key < WAFFLE_KEYS_MAX; key++)
		if (site->keys[key].type == WAFFLE_KEY_CAUSE_SPAN ||
		    site->keys[key].type == WAFFLE_KEY_CAUSE_EVENT ||
		    site->keys[key].type == WAFFLE_KEY_CODE)
			return false;
	return true;
}

/* Adds what the reader knows before the first record: sites and processes. */
static void prepare(struct builder *builder, const struct store_reader *reader)
{
	add_hosts(builder->model, reader);
	captures_add(builder->model, reader);
	for (uint32_t i = 0; i < store_reader_site_count(reader); i++) {
		const struct site_info *site = store_reader_site(reader, i);
		struct site_build build = {.kind = site->kind,
					   .has_keys = site->key_count > 0,
					   .call = site->call,
					   .plain = site_is_plain(site)};

		build.session = site->kind == WAFFLE_SITE_EVENT &&
				!strcmp(site->category, GPU_CATEGORY) &&
				!strcmp(site->name, "session");
		for (unsigned key = 0; key < site->key_count && key < WAFFLE_KEYS_MAX; key++)
			build.has_links |= site->keys[key].type == WAFFLE_KEY_CAUSE_SPAN ||
					   site->keys[key].type == WAFFLE_KEY_CAUSE_EVENT;
		vec_add(&builder->sites, build);
		vec_add(&builder->model->sites, *site);
		builder->has_calls |= site->call;
	}
	for (uint32_t i = 0; i < store_reader_process_count(reader); i++) {
		const struct store_process *process = store_reader_process(reader, i);

		threads_add_process(builder, process->pid, process->ppid, process->cmdline);
	}
	for (uint32_t i = 0; i < store_reader_rank_count(reader); i++)
		threads_add_rank(builder, store_reader_rank(reader, i));
	for (uint32_t i = 0; i < store_reader_attribute_count(reader); i++)
		threads_add_attribute(builder, store_reader_attribute(reader, i));
	for (uint32_t i = 0; i < store_reader_transport_count(reader); i++)
		threads_add_transport(builder, store_reader_transport(reader, i));
}

static void set_times(struct builder *builder, struct store_window window)
{
	struct model *model = builder->model;
	uint64_t end = model->meta->end_ts;

	/* An unfinished file has no end time, and a record may lie behind it. Nothing in a model is
	 * later than its end. */
	if (end < builder->last_ts)
		end = builder->last_ts;
	model->end_ts = end < window.to_ts ? end : window.to_ts;
	if (model->end_ts < model->start_ts)
		model->end_ts = model->start_ts;
	model->threads_start_ts = model->start_ts;
	model->threads_end_ts = model->end_ts;
	if (builder->tracks_first_ts < model->start_ts &&
	    builder->tracks_first_ts >= window.from_ts)
		model->start_ts = builder->tracks_first_ts;
	if (builder->tracks_last_ts > model->end_ts)
		model->end_ts = builder->tracks_last_ts < window.to_ts ? builder->tracks_last_ts
								       : window.to_ts;
}

/* Adds the links that follow from what calls of CUDA, NCCL and MPI do. */
static void link_calls(struct model *model)
{
	struct model_gpu *gpu = model_gpu_new(model);
	struct model_comm *comm = model_comm_new(model, gpu);

	gpu_links_add(model, gpu);
	comm_links_add(model, comm);
	model_comm_free(comm);
	model_gpu_free(gpu);
}

/* Makes the model of all that the records said. Each step needs the results of those before it. */
static void finish(struct builder *builder)
{
	struct model *model = builder->model;

	tracks_finish(builder);
	threads_finish(builder);
	waits_finish(model);
	spans_finish(builder);
	stacks_finish(model);
	if (builder->has_calls)
		calls_find_parents(model);
	names_resolve(model);
	if (builder->has_calls && !builder->only_declared)
		link_calls(model);
	links_order(model);
	if (builder->keep)
		filter_apply(builder);
	if (builder->where)
		filter_select(builder);
	if (builder->has_calls)
		templates_fill(model);
	if (builder->compact) {
		id_index_free(&model->span_ids);
		vec_free(&model->contexts);
	}
	switches_finish(model);
	walk_account(model);
}

static void builder_free(struct builder *builder)
{
	vec_free(&builder->threads);
	vec_free(&builder->sites);
	vec_free(&builder->names);
	vec_free(&builder->orphans);
	map_free(&builder->returned);
	map_free(&builder->tids);
	map_free(&builder->tracks);
	map_free(&builder->on_track);
}

void model_free(struct model *model)
{
	if (!model)
		return;
	gpu_records_free(model->gpu_records);
	strtab_free(model->strings);
	vec_free(&model->sites);
	vec_free(&model->threads);
	vec_free(&model->processes);
	vec_free(&model->spans);
	vec_free(&model->contexts);
	vec_free(&model->events);
	vec_free(&model->links);
	vec_free(&model->switches);
	vec_free(&model->states);
	vec_free(&model->waits);
	vec_free(&model->open_waits);
	vec_free(&model->wakes);
	vec_free(&model->faults);
	vec_free(&model->ios);
	vec_free(&model->signals);
	vec_free(&model->quotas);
	vec_free(&model->memories);
	vec_free(&model->io_limits);
	vec_free(&model->lock_refusals);
	vec_free(&model->late_sleeps);
	vec_free(&model->request_failures);
	vec_free(&model->stolen);
	vec_free(&model->frequencies);
	vec_free(&model->samples);
	vec_free(&model->stacks);
	vec_free(&model->losses);
	vec_free(&model->execs);
	vec_free(&model->recorded);
	vec_free(&model->frames);
	vec_free(&model->syscall_args);
	free((void *)model->hosts);
	free(model->selected);
	map_free(&model->pids);
	id_index_free(&model->span_ids);
	map_free(&model->event_ids);
	free(model);
}

int model_load(struct model **model, struct store_reader *reader, struct store_window window,
	       const struct model_filter *keep, struct error *err)
{
	struct builder builder = {.model = memory_zeroed(1, sizeof(**model)),
				  .keep = keep && keep->filter ? keep : NULL,
				  .where = keep ? keep->where : NULL,
				  .tracks_first_ts = UINT64_MAX};
	struct memory_guard guard = {.call = memory_message, .arg = builder.model};
	int result;

	*model = NULL;
	builder.model->reader = reader;
	builder.model->meta = store_reader_meta(reader);
	builder.model->strings = strtab_make();
	builder.model->start_ts = builder.model->meta->start_ts > window.from_ts
					  ? builder.model->meta->start_ts
					  : window.from_ts;
	builder.model->threads_start_ts = builder.model->start_ts;
	builder.want_names = (builder.keep && filter_uses(keep->filter, FILTER_COMM)) ||
			     (builder.where && filter_uses(builder.where, FILTER_COMM));
	builder.only_roles = keep && keep->only_roles;
	builder.only_declared = keep && keep->only_declared;
	builder.compact = keep && keep->compact;
	builder.only_leading = builder.only_declared && keep->from_event && !builder.keep;
	builder.no_sched = builder.only_roles || builder.only_declared ||
			   (builder.keep && !filter_wants_sched(keep->filter));
	builder.model->sched = builder.model->meta->sched && !builder.no_sched;
	memory_guard_set(&guard);
	prepare(&builder, reader);
	builder.no_values = builder.compact && !builder.keep && !builder.where;
	/* Calls take over the context of the span around them. */
	builder.no_contexts = builder.no_values && !builder.has_calls;
	if (keep && keep->gpu_apart && !keep->filter && !keep->where)
		builder.model->gpu_records = gpu_records_new(builder.model);
	result = simulated_find(&builder, reader, window, err)
			 ?: add_records(&builder, reader, window, err);
	if (!result) {
		set_times(&builder, window);
		finish(&builder);
		*model = builder.model;
	} else {
		model_free(builder.model);
	}
	memory_guard_remove(&guard);
	builder_free(&builder);
	return result;
}

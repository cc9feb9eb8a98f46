// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/why/lookup/why_wait.h"
#include "analyze/why/parts/why_connections.h"
#include "analyze/why/why_whole_internal.h"
#include "util/hash.h"
#include "util/keymap.h"
#include "util/memory.h"

/* Causes of a group while collecting: more than in the result, as a culprit that comes late may
 * turn out large. */
#define CAUSES_ROOM 1024

/* Cache: where a group's causes were found last, by the hash of their key. A hash has two slots,
 * the latest first, since two causes that take turns would evict each other. */
#define SLOT_BITS 12
struct slots {
	uint16_t at[1u << SLOT_BITS];
};
_Static_assert(CAUSES_ROOM <= UINT16_MAX, "a slot holds the number of any cause");

/* Causes by group: of one slice of the capture, or of all. */
struct aggregate_gather {
	const struct why_aggregate *aggregate;
	const struct strtab *texts; /* of a slice; NULL: it is of all */
	struct why_group *groups;
	struct slots **slots; /* per group */
	uint64_t stretches, stretches_max;
	struct map servers; /* cache: text of a slice → text of connections to its server, or 0 */
	bool any, cut; /* it has instances; there were more, but they would have taken too long */
};

static uint32_t group_of(const struct why_aggregate *aggregate, uint32_t site)
{
	return aggregate->group_of[site < aggregate->site_count ? site : aggregate->site_count];
}

const struct why_group *why_aggregate_group(const struct why_aggregate *aggregate, uint32_t site)
{
	return &aggregate->groups.data[group_of(aggregate, site)];
}

/* ---- groups ---- */

/* Sites of the same name and category share a group. */
static uint32_t group_make(struct why_aggregate *aggregate, struct keymap *groups,
			   const struct site_info *site)
{
	size_t name_len = strlen(site->name) + 1, len = name_len + strlen(site->category);
	char *key = memory_get(len);
	uint32_t group;

	memcpy(key, site->name, name_len);
	memcpy(key + name_len, site->category, len - name_len);
	group = keymap_get(groups, key, len);
	if (group == MAP_NONE) {
		group = (uint32_t)aggregate->groups.len;
		vec_add(&aggregate->groups,
			(struct why_group){.name = site->name, .category = site->category});
		keymap_put(groups, key, len, group);
	}
	free(key);
	return group;
}

static void groups_make(struct why_aggregate *aggregate)
{
	struct keymap groups = {0}; /* name and category → group */

	aggregate->site_count = model_site_count(aggregate->model);
	aggregate->group_of =
		memory_get(((size_t)aggregate->site_count + 1) * sizeof(*aggregate->group_of));
	for (uint32_t i = 0; i <= aggregate->site_count; i++)
		aggregate->group_of[i] = group_make(
			aggregate, &groups,
			model_site(aggregate->model, i < aggregate->site_count ? i : MODEL_NONE));
	keymap_free(&groups);
}

static uint64_t percentile(uint64_t *durations, uint64_t count, unsigned percent)
{
	return select_rank(durations, count, select_percentile_rank(count, percent));
}

static void unfinished_add(struct why_aggregate *aggregate, const struct model_span *span)
{
	const struct model *model = aggregate->model;
	struct why_group *group = &aggregate->groups.data[group_of(aggregate, span->site)];

	if (!(span->flags & MODEL_SPAN_UNFINISHED) || span->flags & MODEL_SPAN_MAY_BE_LOST ||
	    !why_can_explain(model, span) ||
	    !model_is_selected(model, (size_t)(span - model->spans.data)))
		return;
	group->unfinished++;
	group->unfinished_ns += span->end_ts - span->start_ts;
}

/* Finds each group's counts and the limits of slow and median. */
static void percentiles_find(struct why_aggregate *aggregate)
{
	const struct model *model = aggregate->model;
	uint64_t *durations = memory_get((model->spans.len + 1) * sizeof(*durations));
	size_t *ends = memory_zeroed(aggregate->groups.len + 1, sizeof(*ends)), at = 0;

	for (size_t i = 0; i < model->spans.len; i++)
		if (why_is_counted(model, &model->spans.data[i]))
			aggregate->groups.data[group_of(aggregate, model->spans.data[i].site)]
				.count++;
	for (size_t i = 0; i < aggregate->groups.len; i++) {
		ends[i] = at;
		at += aggregate->groups.data[i].count;
	}
	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint32_t group = group_of(aggregate, span->site);

		unfinished_add(aggregate, span);
		if (!why_is_counted(model, span))
			continue;
		durations[ends[group]++] = span->end_ts - span->start_ts;
		aggregate->groups.data[group].total_ns += span->end_ts - span->start_ts;
	}
	for (size_t i = 0; i < aggregate->groups.len; i++) {
		struct why_group *group = &aggregate->groups.data[i];
		uint64_t *of = durations + ends[i] - group->count;

		if (!group->count)
			continue;
		group->p40_ns = percentile(of, group->count, 40);
		group->p60_ns = percentile(of, group->count, 60);
		group->p99_ns = percentile(of, group->count, 99);
	}
	free(durations);
	free(ends);
}

/* ---- causes ---- */

static bool same_culprit(const struct why_group_cause *a, const struct why_group_cause *b)
{
	return a->cause == b->cause && a->object == b->object && a->span == b->span &&
	       a->own == b->own && !a->merged == !b->merged && (a->own || a->comm == b->comm);
}

static void add_sums(struct why_group_cause *to, struct why_group_cause *from)
{
	for (size_t i = 0; i < from->places.len; i++)
		sample_counts_add(&to->places, &from->places.data[i]);
	vec_free(&from->places);
	why_shares_add_all(&to->processes, &from->processes);
	vec_free(&from->processes);
	to->total_ns += from->total_ns;
	to->ran_ns += from->ran_ns;
	to->slow_ns += from->slow_ns;
	to->median_ns += from->median_ns;
	to->spans = to->spans > from->spans ? to->spans : from->spans;
	to->merged += from->merged ? from->merged : 1;
	for (unsigned i = 0; i <= WHY_GRADE_CERTAIN; i++)
		to->grade_ns[i] += from->grade_ns[i];
	if (to->own && to->comm != from->comm)
		to->comm = MODEL_NONE;
}

/* The key under which a culprit is merged with others: without its object, or if it has none, by
 * its cause alone. */
static struct why_group_cause widened(const struct why_group_cause *cause)
{
	struct why_group_cause wide = *cause;

	wide.merged = cause->merged ? cause->merged : 1;
	if (cause->object) {
		wide.object = 0;
		return wide;
	}
	wide.own = false;
	wide.comm = MODEL_NONE;
	wide.span = MODEL_NONE;
	return wide;
}

static uint16_t *slots_of(struct slots *slots, const struct why_group_cause *key)
{
	uint64_t hash = key->cause + ((uint64_t)key->object << 8) + ((uint64_t)key->span << 36);

	hash = hash_number(hash ^ (key->own ? 0 : (uint64_t)key->comm << 16));
	return &slots->at[hash >> (64 - SLOT_BITS) & ~1u];
}

static void slot_put(uint16_t *slot, size_t cause)
{
	slot[1] = slot[0];
	slot[0] = (uint16_t)cause;
}

static struct why_group_cause *cause_find(struct why_group *group, struct slots *slots,
					  const struct why_group_cause *key)
{
	uint16_t *slot = slots_of(slots, key);

	for (unsigned i = 0; i < 2; i++)
		if (slot[i] < group->causes.len && same_culprit(&group->causes.data[slot[i]], key))
			return &group->causes.data[slot[i]];
	for (size_t i = 0; i < group->causes.len; i++)
		if (same_culprit(&group->causes.data[i], key)) {
			slot_put(slot, i);
			return &group->causes.data[i];
		}
	return NULL;
}

/* The numbers of a slice's texts depend on the slices that its thread explained before, so then the
 * texts themselves decide. `texts` NULL: the numbers do. */
static int cause_compare(const void *left, const void *right, void *arg)
{
	const struct why_group_cause *a = left, *b = right;
	const struct strtab *texts = arg;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (texts)
		return strcmp(strtab_get(texts, a->object), strtab_get(texts, b->object));
	return a->object < b->object ? -1 : a->object > b->object;
}

/* Merges the smallest culprits until at most `room` are left. */
static void causes_fold(const struct aggregate_gather *gather, uint32_t number, size_t room)
{
	struct why_group *group = &gather->groups[number];
	struct slots *slots = gather->slots[number];

	while (group->causes.len > room) {
		size_t all = group->causes.len;

		/* More than WHY_CAUSE_COUNT causes follow here. At most that many are already
		 * merged by cause alone, so each round widens at least one and the loop ends. */
		group->causes.len = room - WHY_CAUSE_COUNT;
		qsort_r(group->causes.data, all, sizeof(*group->causes.data), cause_compare,
			(void *)gather->texts);
		for (size_t i = group->causes.len; i < all; i++) {
			struct why_group_cause cause = group->causes.data[i], *to, wide;

			map_free(&cause.sockets);
			wide = widened(&cause);
			to = cause_find(group, slots, &wide);
			if (to)
				add_sums(to, &cause);
			else
				group->causes.data[group->causes.len++] = wide;
		}
	}
}

static struct why_group_cause *cause_add(struct aggregate_gather *gather, uint32_t number,
					 const struct why_group_cause *key)
{
	struct why_group *group = &gather->groups[number];
	struct why_group_cause *cause;

	if (!gather->slots[number])
		gather->slots[number] = memory_zeroed(1, sizeof(**gather->slots));
	cause = cause_find(group, gather->slots[number], key);
	if (cause)
		return cause;
	if (group->causes.len >= CAUSES_ROOM)
		causes_fold(gather, number, CAUSES_ROOM / 2);
	vec_add(&group->causes, *key);
	slot_put(slots_of(gather->slots[number], key), group->causes.len - 1);
	return &group->causes.data[group->causes.len - 1];
}

/* ---- processes ---- */

static int process_compare(const void *left, const void *right)
{
	const struct why_group_process *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

static void processes_sort(struct why_group *group)
{
	if (group->processes.len)
		qsort(group->processes.data, group->processes.len, sizeof(*group->processes.data),
		      process_compare);
}

static void process_add(struct why_group *group, const struct why_group_process *more)
{
	size_t at = 0;

	while (at < group->processes.len && group->processes.data[at].process != more->process)
		at++;
	if (at == WHY_GROUP_PROCESSES_MAX) {
		processes_sort(group);
		at = group->processes.len = WHY_GROUP_PROCESSES_MAX / 2;
	}
	if (at == group->processes.len) {
		vec_add(&group->processes, *more);
		return;
	}
	group->processes.data[at].ns += more->ns;
	group->processes.data[at].others_ns += more->others_ns;
}

static void process_add_part(struct why_group *group, struct why_group_cause *cause,
			     const struct model *model, const struct why_instance *instance,
			     const struct why_part *part)
{
	const struct model_process *process = model_process_of(model, part->thread);
	bool other = process != model_process_of(model, instance->thread);
	uint32_t number = MODEL_NONE;

	if (process && process->main_thread != MODEL_NONE && model_is_traced(model, part->thread)) {
		number = (uint32_t)(process - model->processes.data);
		process_add(group,
			    &(struct why_group_process){number, part->ns, other ? part->ns : 0});
	}
	why_shares_add(&cause->processes, &(struct why_share){.of = number, .ns = part->ns});
}

static uint32_t name_of(const struct model *model, uint32_t process)
{
	return model->threads.data[model->processes.data[process].main_thread].comm;
}

const struct model_process *why_group_cause_process(const struct why_aggregate *aggregate,
						    const struct why_group *group,
						    const struct why_group_cause *cause)
{
	const struct model *model = aggregate->model;
	uint32_t found = cause->process;

	if (found == MODEL_NONE)
		return NULL;
	for (size_t i = 0; i < group->processes.len; i++) {
		uint32_t process = group->processes.data[i].process;

		if (process != found && name_of(model, process) == name_of(model, found))
			return &model->processes.data[found];
	}
	return NULL;
}

/* A client may have another connection for each span. The text of all to one server; 0: the object
 * is no connection. */
static uint32_t server_of(struct aggregate_gather *gather, const struct why *why, uint32_t object)
{
	uint32_t server = map_get(&gather->servers, object);

	if (server == MAP_NONE) {
		server = why_connections_to(why->texts, object);
		map_put(&gather->servers, object, server);
	}
	return server;
}

static struct why_group_cause part_key(const struct why_aggregate *aggregate,
				       const struct why_instance *instance,
				       const struct why_part *part, uint32_t object)
{
	const struct model *model = aggregate->model;
	struct why_group_cause key = {.cause = part->cause,
				      .own = part->thread == instance->thread,
				      .comm = MODEL_NONE,
				      .span = MODEL_NONE,
				      .object = object,
				      .last = MODEL_NONE};

	if (part->thread < model->threads.len)
		key.comm = model_thread_kind(model, part->thread);
	if (part->span < model->spans.len)
		key.span = group_of(aggregate, model->spans.data[part->span].site);
	return key;
}

static void add_part(struct aggregate_gather *gather, const struct why *why, uint32_t number,
		     const struct why_instance *instance, const struct why_part *part)
{
	struct why_group *group = &gather->groups[number];
	uint32_t server = server_of(gather, why, part->object);
	struct why_group_cause key = part_key(gather->aggregate, instance, part,
					      server ? server : part->object),
			       *cause;
	uint64_t ns = instance->to_ts - instance->from_ts;

	cause = cause_add(gather, number, &key);
	if (cause->comm != key.comm)
		cause->comm = MODEL_NONE;
	cause->spans += cause->last != instance->span;
	cause->last = instance->span;
	if (server)
		map_put(&cause->sockets, part->object, 1);
	cause->total_ns += part->ns;
	cause->ran_ns += part->ran_ns;
	cause->grade_ns[part->grade] += part->ns;
	for (uint32_t i = 0; i < part->place_count; i++)
		sample_counts_add(&cause->places, &why->places.data[part->place + i]);
	if (ns >= group->p99_ns)
		cause->slow_ns += part->ns;
	if (ns >= group->p40_ns && ns <= group->p60_ns)
		cause->median_ns += part->ns;
	gather->stretches += part->stretches;
	process_add_part(group, cause, gather->aggregate->model, instance, part);
}

static bool is_enough(const struct aggregate_gather *gather)
{
	return gather->stretches_max && gather->stretches >= gather->stretches_max;
}

static int add_instance(const struct why *why, const struct why_instance *instance, void *arg)
{
	struct aggregate_gather *gather = arg;
	uint32_t number = group_of(gather->aggregate, why->model->spans.data[instance->span].site);
	struct why_group *group = &gather->groups[number];
	uint64_t ns = instance->to_ts - instance->from_ts;

	gather->texts = why->texts;
	gather->any = true;
	gather->cut = is_enough(gather);
	if (gather->cut)
		return 1;
	group->explained++;
	group->explained_ns += ns;
	if (ns >= group->p99_ns) {
		group->slow_count++;
		group->slow_total_ns += ns;
	}
	if (ns >= group->p40_ns && ns <= group->p60_ns) {
		group->median_count++;
		group->median_total_ns += ns;
	}
	for (uint32_t i = 0; i < instance->part_count; i++)
		add_part(gather, why, number, instance, &why->parts.data[instance->part + i]);
	return 0;
}

/* ---- slices ---- */

static struct aggregate_gather *gather_new(const struct why_aggregate *aggregate,
					   const struct why_aggregate_options *options)
{
	struct aggregate_gather *gather = memory_zeroed(1, sizeof(*gather));
	size_t count = aggregate->groups.len;

	gather->aggregate = aggregate;
	gather->stretches_max = options->stretches;
	gather->groups = memory_zeroed(count, sizeof(*gather->groups));
	gather->slots = memory_zeroed(count, sizeof(*gather->slots));
	if (count)
		memcpy(gather->groups, aggregate->groups.data, count * sizeof(*gather->groups));
	return gather;
}

static void group_free(struct why_group *group)
{
	for (size_t i = 0; i < group->causes.len; i++) {
		vec_free(&group->causes.data[i].places);
		vec_free(&group->causes.data[i].processes);
		map_free(&group->causes.data[i].sockets);
	}
	vec_free(&group->causes);
	vec_free(&group->processes);
}

static void slice_free(void *arg)
{
	struct aggregate_gather *gather = arg;

	for (size_t i = 0; i < gather->aggregate->groups.len; i++) {
		group_free(&gather->groups[i]);
		free(gather->slots[i]);
	}
	free(gather->groups);
	free(gather->slots);
	map_free(&gather->servers);
	free(gather);
}

/* What the slices of one aggregate share. */
struct slices {
	struct why_aggregate *made;
	const struct why_aggregate_options *options;
	struct aggregate_gather *all;
};

static void *slice_begin(void *arg)
{
	struct slices *slices = arg;

	return gather_new(slices->made, slices->options);
}

/* Adds the places of a slice, and all texts of the first slice, so that texts have the same numbers
 * with any number of threads. Returns the numbers of the places, or NULL if there are none; the
 * caller frees them. */
static uint32_t *texts_take(const struct slices *slices, const struct why *from)
{
	struct why *to = slices->made->why;

	for (uint32_t i = 0; !slices->all->any && i < strtab_count(from->texts); i++)
		strtab_take(to->texts, from->texts, i);
	slices->all->any = true;
	if (!from->sample_places)
		return NULL;
	if (!to->sample_places)
		to->sample_places = sample_places_new(to->model, slices->options->names, to->texts);
	return sample_places_take(to->sample_places, from->sample_places);
}

/* Adds a cause of a slice, whose texts are those of `why`. */
static void cause_take(struct slices *slices, uint32_t number, const struct why *why,
		       const struct why_group_cause *from, const uint32_t *places)
{
	struct why_group_cause key = {.cause = from->cause,
				      .own = from->own,
				      .comm = from->comm,
				      .span = from->span,
				      .merged = from->merged,
				      .last = MODEL_NONE};
	struct why_group_cause *cause;

	key.object = strtab_take(slices->made->why->texts, why->texts, from->object);
	cause = cause_add(slices->all, number, &key);
	if (cause->total_ns)
		cause->merged += from->merged;
	if (cause->comm != from->comm)
		cause->comm = MODEL_NONE;
	why_shares_add_all(&cause->processes, &from->processes);
	cause->total_ns += from->total_ns;
	cause->ran_ns += from->ran_ns;
	cause->slow_ns += from->slow_ns;
	cause->median_ns += from->median_ns;
	cause->spans += from->spans;
	for (unsigned i = 0; i <= WHY_GRADE_CERTAIN; i++)
		cause->grade_ns[i] += from->grade_ns[i];
	for (size_t i = 0; i < from->places.len; i++) {
		struct sample_count count = from->places.data[i];

		count.place = places[count.place];
		sample_counts_add(&cause->places, &count);
	}
	for (size_t i = 0; i < from->sockets.cap; i++)
		if (from->sockets.slots[i].value != MAP_NONE)
			map_put(&cause->sockets,
				strtab_take(slices->made->why->texts, why->texts,
					    (uint32_t)from->sockets.slots[i].key),
				1);
}

static int slice_end(const struct why *why, void *slice, void *arg)
{
	struct aggregate_gather *from = slice;
	struct slices *slices = arg;
	uint32_t *places;

	slices->made->partial = from->any && is_enough(slices->all);
	if (slices->made->partial)
		return 1;
	places = texts_take(slices, why);
	for (uint32_t i = 0; i < slices->made->groups.len; i++) {
		const struct why_group *group = &from->groups[i];
		struct why_group *to = &slices->all->groups[i];

		to->explained += group->explained;
		to->explained_ns += group->explained_ns;
		to->slow_count += group->slow_count;
		to->slow_total_ns += group->slow_total_ns;
		to->median_count += group->median_count;
		to->median_total_ns += group->median_total_ns;
		for (size_t k = 0; k < group->causes.len; k++)
			cause_take(slices, i, why, &group->causes.data[k], places);
		for (size_t k = 0; k < group->processes.len; k++)
			process_add(to, &group->processes.data[k]);
	}
	free(places);
	slices->all->stretches += from->stretches;
	slices->made->partial = from->cut;
	return from->cut;
}

static const struct why_slice_fns slice_fns = {slice_begin, add_instance, slice_end, slice_free};

/* ---- the end ---- */

/* Counts the connections. If there is only one, it is the object itself. */
static void cause_finish_sockets(struct why_group_cause *cause)
{
	if (cause->sockets.len > 1)
		cause->connections = (uint32_t)cause->sockets.len;
	for (size_t i = 0; cause->sockets.len == 1 && i < cause->sockets.cap; i++)
		if (cause->sockets.slots[i].value != MAP_NONE)
			cause->object = (uint32_t)cause->sockets.slots[i].key;
	map_free(&cause->sockets);
}

/* A program may make a futex for each span, as Python does for a wait at a queue, or a pipe, as for
 * a child. More objects of such a kind than UNNAMED_APART with one culprit are put together, except
 * each with more than one part in UNNAMED_SHARE of their time. */
#define UNNAMED_APART 4
#define UNNAMED_SHARE 3

static uint32_t unnamed_of(const struct slices *slices, const struct why_group_cause *cause)
{
	return wait_unnamed(slices->made->why->texts, cause->object, why_is_lock(cause->cause));
}

/* Whether two causes differ only in which object of their kind, which has no name, it is. */
static bool same_but_number(const struct slices *slices, const struct why_group_cause *a,
			    const struct why_group_cause *b)
{
	struct why_group_cause other = *b;

	other.object = a->object;
	return same_culprit(a, &other) && unnamed_of(slices, a) == unnamed_of(slices, b);
}

/* How objects without a name are put together: if they are more than `apart`, those with at most
 * `most_ns` each. */
struct unnamed_limits {
	size_t apart;
	uint64_t most_ns;
};

/* `ns`: the time of all. If a thread is known to make others wait, and the futex is no lock, each
 * futex tells nothing more. Of numbered files, the one slow file is told apart. */
static struct unnamed_limits unnamed_limits_of(const struct slices *slices,
					       const struct why_group_cause *cause, uint64_t ns)
{
	const char *object = strtab_get(slices->made->why->texts, cause->object);

	if (*object == '/')
		return (struct unnamed_limits){1, ns - ns / UNNAMED_SHARE};
	if (!cause->own && cause->comm != MODEL_NONE && !why_is_lock(cause->cause) &&
	    wait_is_unnamed_futex(object))
		return (struct unnamed_limits){1, ns};
	return (struct unnamed_limits){UNNAMED_APART, ns / UNNAMED_SHARE};
}

/* Puts those of the causes from `first` on together that differ from it only in the number of their
 * object. False: they are few. */
static bool unnamed_fold(const struct slices *slices, struct why_group *group, size_t first)
{
	struct why_group_cause all = {0}, like = group->causes.data[first];
	struct unnamed_limits limits;
	uint64_t ns = 0, most_ns = 0;
	size_t count = 0, large = 0, kept = first;

	for (size_t i = first; i < group->causes.len; i++)
		if (same_but_number(slices, &like, &group->causes.data[i])) {
			ns += group->causes.data[i].total_ns;
			count++;
		}
	limits = unnamed_limits_of(slices, &like, ns);
	for (size_t i = first; i < group->causes.len; i++)
		large += group->causes.data[i].total_ns > limits.most_ns &&
			 same_but_number(slices, &like, &group->causes.data[i]);
	if (count <= limits.apart + large)
		return false;
	for (size_t i = first; i < group->causes.len; i++) {
		struct why_group_cause *cause = &group->causes.data[i];

		if (cause->total_ns > limits.most_ns || !same_but_number(slices, &like, cause)) {
			group->causes.data[kept++] = *cause;
			continue;
		}
		if (!all.merged)
			all = (struct why_group_cause){.cause = cause->cause,
						       .own = cause->own,
						       .comm = cause->comm,
						       .span = cause->span};
		if (cause->total_ns > most_ns) {
			most_ns = cause->total_ns;
			all.object = cause->object;
		}
		add_sums(&all, cause);
	}
	group->causes.len = kept;
	all.object = wait_unnamed_text(slices->made->why->texts, all.object, all.merged);
	vec_add(&group->causes, all);
	return true;
}

static void cause_finish_processes(struct why_group_cause *cause)
{
	struct why_share most = why_shares_most(&cause->processes);

	cause->process =
		most.ns && most.ns >= cause->total_ns - cause->total_ns / 4 ? most.of : MODEL_NONE;
	vec_free(&cause->processes);
}

/* Moves the causes of a group to the aggregate. */
static void group_finish(struct slices *slices, uint32_t number)
{
	struct why_group *group = &slices->all->groups[number];

	for (size_t i = 0; i < group->causes.len;)
		i += !unnamed_of(slices, &group->causes.data[i]) || !unnamed_fold(slices, group, i);
	causes_fold(slices->all, number, WHY_GROUP_CAUSES_MAX);
	if (group->causes.len)
		qsort_r(group->causes.data, group->causes.len, sizeof(*group->causes.data),
			cause_compare, NULL);
	for (size_t i = 0; i < group->causes.len; i++) {
		struct why_group_cause *cause = &group->causes.data[i];

		cause->grade = why_grade_of(cause->grade_ns, cause->total_ns);
		sample_counts_finish(&cause->places);
		cause_finish_processes(cause);
		cause_finish_sockets(cause);
	}
	processes_sort(group);
	slices->made->groups.data[number] = *group;
	memset(&group->causes, 0, sizeof(group->causes));
	memset(&group->processes, 0, sizeof(group->processes));
}

int why_aggregate_new(struct why_aggregate **aggregate, const struct model *model,
		      const struct why_aggregate_options *options, struct error *err)
{
	struct why_aggregate *made = memory_zeroed(1, sizeof(*made));
	struct slices slices = {.made = made, .options = options};
	int result;

	*aggregate = NULL;
	made->model = model;
	made->why = memory_zeroed(1, sizeof(*made->why));
	made->why->model = model;
	made->why->texts = strtab_make();
	groups_make(made);
	percentiles_find(made);
	slices.all = gather_new(made, options);
	result = why_slices(model, options->names, options->timeline, &slice_fns, &slices, err);
	for (uint32_t i = 0; i < made->groups.len; i++)
		group_finish(&slices, i);
	slice_free(slices.all);
	if (result < 0) {
		why_aggregate_free(made);
		return result;
	}
	*aggregate = made;
	return 0;
}

void why_aggregate_free(struct why_aggregate *aggregate)
{
	if (!aggregate)
		return;
	for (size_t i = 0; i < aggregate->groups.len; i++)
		group_free(&aggregate->groups.data[i]);
	vec_free(&aggregate->groups);
	free(aggregate->group_of);
	why_free(aggregate->why);
	free(aggregate);
}

/* ---- what is different ---- */

uint64_t why_group_mean(uint64_t sum_ns, uint64_t count)
{
	return count ? sum_ns / count : 0;
}

int64_t why_group_difference(const struct why_group *group, const struct why_group_cause *cause)
{
	return (int64_t)why_group_mean(cause->slow_ns, group->slow_count) -
	       (int64_t)why_group_mean(cause->median_ns, group->median_count);
}

/* With fewer spans a 99th percentile means nothing. We also ignore slow spans that take less than
 * 10 % longer. */
#define COUNT_MIN 10

size_t why_group_different(const struct why_group *group, uint32_t *causes, size_t max)
{
	uint64_t slow = why_group_mean(group->slow_total_ns, group->slow_count);
	uint64_t median = why_group_mean(group->median_total_ns, group->median_count);
	size_t count = 0;

	if (group->explained < COUNT_MIN || slow < median + median / 10)
		return 0;
	for (uint32_t i = 0; i < group->causes.len; i++) {
		int64_t difference = why_group_difference(group, &group->causes.data[i]);
		size_t at = count;

		/* Takes causes that make up at least 5 % of the whole difference. */
		if (difference <= 0 || (uint64_t)difference < (slow - median) / 20)
			continue;
		while (at && why_group_difference(group, &group->causes.data[causes[at - 1]]) <
				     difference)
			at--;
		if (at == max)
			continue;
		count += count < max;
		for (size_t j = count - 1; j > at; j--)
			causes[j] = causes[j - 1];
		causes[at] = i;
	}
	return count;
}

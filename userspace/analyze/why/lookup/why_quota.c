// SPDX-License-Identifier: Apache-2.0
/*
 * Who used up the CPU time of a cgroup. The scheduler throttles whichever thread wants to run when
 * the quota of a period is used up, so the throttled thread need not be the one that used it. The
 * switches of the period show how long each recorded thread of the cgroup ran. Of other processes
 * of the cgroup, we know how long they ran in most of the capture (WAFFLE_IO_LIMIT_CPU_USER).
 */
#include "analyze/why/lookup/why_quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_cpus.h"
#include "analyze/why/why_walk_types.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/units.h"

/* Limit of the switches of a CPU to examine in a period, and of the periods that a thread may be
 * throttled for. Beyond them, nobody is named. */
#define SWITCHES_MAX 4096
#define PERIODS_MAX 16u
#define NAMED_MAX 3
/* How long they ran in fewer periods says little about one. */
#define OUTSIDE_PERIODS 5

static uint64_t process_of(const struct model *model, uint32_t thread)
{
	return (uint64_t)model_host_of(model, thread) << 32 | model->threads.data[thread].pid;
}

static int by_cgroup(const void *left, const void *right)
{
	const struct why_quota_user *a = left, *b = right;

	if (a->cgroup != b->cgroup)
		return a->cgroup < b->cgroup ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (int)a->maybe - (int)b->maybe;
}

#define SEVERAL (MAP_NONE - 1)

/* Adds the threads that have no record of their cgroup, of processes whose throttled threads are
 * all of one. With version 1 of cgroups, threads of a process may be in several: so nobody blames
 * them.
 */
static void add_siblings(struct why_walk *walk)
{
	const struct model *model = walk->model;
	struct map rows = {0}; /* host and pid → index in model.quotas, or SEVERAL */

	for (uint32_t i = 0; i < model->quotas.len; i++) {
		const struct model_quota *quota = &model->quotas.data[i];
		uint64_t process = process_of(model, quota->thread);
		uint32_t row = map_get(&rows, process);

		if (row == MAP_NONE)
			map_put(&rows, process, i);
		else if (row != SEVERAL && model->quotas.data[row].cgroup != quota->cgroup)
			map_put(&rows, process, SEVERAL);
	}
	for (uint32_t i = 0; rows.len && i < model->threads.len; i++) {
		uint32_t row = map_get(&rows, process_of(model, i));

		if (row != MAP_NONE && row != SEVERAL)
			vec_add(&walk->quota_users,
				((struct why_quota_user){.cgroup = model->quotas.data[row].cgroup,
							 .thread = i,
							 .maybe = true}));
	}
	map_free(&rows);
}

/* Processes that are not traced, summed by cgroup and name. */
struct outside_names {
	VEC(struct why_quota_user) list;
	struct keymap rows; /* cgroup and name → index in `list` */
};

static struct why_quota_user *outside_row(struct outside_names *names, uint64_t cgroup,
					  uint32_t comm)
{
	const uint64_t key[] = {cgroup, comm};
	uint32_t row = keymap_get(&names->rows, key, sizeof(key));

	if (row == MAP_NONE) {
		row = (uint32_t)names->list.len;
		keymap_put(&names->rows, key, sizeof(key), row);
		vec_add(&names->list, ((struct why_quota_user){.cgroup = cgroup}));
	}
	return &names->list.data[row];
}

/* Adds those of the name that used most of each cgroup. */
static void add_most(struct why_walk *walk, const struct outside_names *names)
{
	const struct why_quota_user *list = names->list.data;
	struct map most = {0}; /* cgroup → index in `list` */

	for (uint32_t i = 0; i < names->list.len; i++) {
		uint32_t at = map_get(&most, list[i].cgroup);

		if (at == MAP_NONE || list[at].outside_ns < list[i].outside_ns)
			map_put(&most, list[i].cgroup, i);
	}
	for (uint32_t i = 0; i < names->list.len; i++)
		if (map_get(&most, list[i].cgroup) == i)
			vec_add(&walk->quota_users, list[i]);
	map_free(&most);
}

static void add_outside(struct why_walk *walk)
{
	const struct model *model = walk->model;
	struct outside_names names = {0};

	for (size_t i = 0; i < model->io_limits.len; i++) {
		const struct model_io_limit *limit = &model->io_limits.data[i];
		struct why_quota_user *user;

		if (limit->kind != WAFFLE_IO_LIMIT_CPU_USER || !limit->limit ||
		    model_is_traced(model, limit->thread))
			continue;
		user = outside_row(&names, limit->cgroup, model->threads.data[limit->thread].comm);
		user->outside_count++;
		user->outside_ns += limit->limit;
		user->outside_ms = limit->dev;
		if (limit->limit <= user->longest_ns)
			continue;
		user->longest_ns = limit->limit;
		user->thread = limit->thread;
	}
	add_most(walk, &names);
	vec_free(&names.list);
	keymap_free(&names.rows);
}

/* The threads of each cgroup, as far as the records show them. */
void why_quota_init(struct why_walk *walk)
{
	const struct model *model = walk->model;
	struct why_quota_user *users;
	size_t kept = 0;

	for (size_t i = 0; i < model->quotas.len; i++) {
		const struct model_quota *quota = &model->quotas.data[i];

		if (!i || quota->thread != quota[-1].thread || quota->cgroup != quota[-1].cgroup)
			vec_add(&walk->quota_users,
				((struct why_quota_user){.cgroup = quota->cgroup,
							 .thread = quota->thread}));
	}
	add_siblings(walk);
	add_outside(walk);
	users = walk->quota_users.data;
	if (walk->quota_users.len)
		qsort(users, walk->quota_users.len, sizeof(*users), by_cgroup);
	for (size_t i = 0; i < walk->quota_users.len; i++) {
		if (!kept || users[kept - 1].cgroup != users[i].cgroup ||
		    users[kept - 1].thread != users[i].thread)
			users[kept++] = users[i];
	}
	walk->quota_users.len = kept;
}

void why_quota_free(struct why_walk *walk)
{
	vec_free(&walk->quota_users);
}

/* The users of one cgroup, and a time. */
struct period {
	struct why_quota_user *users;
	size_t count;
	uint64_t from_ts, to_ts;
	uint64_t quota_ns; /* how long the cgroup may run in that time */
	uint64_t rest_ns;  /* of that: how long nobody ran who is recorded */
};

static void add_running(const struct period *period, uint32_t thread, uint64_t from, uint64_t to)
{
	struct why_quota_user *users = period->users;
	size_t at = lower_bound(period->count, i, users[i].thread < thread);

	if (at == period->count || users[at].thread != thread)
		return;
	if (from < period->from_ts)
		from = period->from_ts;
	if (to > period->to_ts)
		to = period->to_ts;
	if (from < to)
		users[at].ran_ns += to - from;
}

/* Adds what ran on one CPU in the period. False: too many switches. */
static bool add_cpu(struct why_walk *walk, const struct period *period, uint16_t cpu)
{
	size_t first = why_cpu_after(walk, cpu, period->from_ts);
	const struct model_switch *last = why_cpu_switch(walk, cpu, first - 1), *sw;

	for (size_t at = first; at - first < SWITCHES_MAX; at++) {
		sw = why_cpu_switch(walk, cpu, at);
		/* Only switches of traced threads and of their CPUs are recorded. */
		if (last && last->next != MODEL_NONE && (!sw || sw->prev == last->next))
			add_running(period, last->next, last->ts, sw ? sw->ts : period->to_ts);
		else if (sw && sw->prev != MODEL_NONE && !last)
			add_running(period, sw->prev, 0, sw->ts);
		if (!sw || sw->ts >= period->to_ts)
			return true;
		last = sw;
	}
	return false;
}

/* The period in which the quota was used up. It ends when the thread may run again, which is when
 * the kernel refills the quota. */
static bool find_period(struct why_walk *walk, const struct model_quota *quota, uint64_t from_ts,
			uint64_t to_ts, struct period *period)
{
	struct why_quota_user *users = walk->quota_users.data;
	size_t len = walk->quota_users.len;
	size_t first = lower_bound(len, i, users[i].cgroup < quota->cgroup);
	uint64_t periods;

	/* A group without a quota has the largest one (RUNTIME_INF). */
	if (!quota->period_ns || !quota->quota_ns || quota->quota_ns > UINT64_MAX / PERIODS_MAX)
		return false;
	periods = (to_ts - from_ts + quota->period_ns - 1) / quota->period_ns;
	if (!periods || periods > PERIODS_MAX || to_ts < periods * quota->period_ns)
		return false;
	*period = (struct period){.users = &users[first],
				  .from_ts = to_ts - periods * quota->period_ns,
				  .to_ts = to_ts,
				  .quota_ns = quota->quota_ns * periods};
	for (; first + period->count < len && period->users[period->count].cgroup == quota->cgroup;
	     period->count++)
		period->users[period->count].ran_ns = 0;
	for (uint32_t cpu = 0; cpu < walk->cpu_count; cpu++)
		if (!add_cpu(walk, period, (uint16_t)cpu))
			return false;
	return true;
}

/* The user that ran longest of those that `named` does not contain; NULL: none ran. */
static const struct why_quota_user *
longest(const struct period *period, const struct why_quota_user *const *named, unsigned count)
{
	const struct why_quota_user *found = NULL;

	for (size_t i = 0; i < period->count; i++) {
		const struct why_quota_user *user = &period->users[i];
		bool known = false;

		for (unsigned k = 0; k < count; k++)
			known |= named[k] == user;
		if (!known && !user->maybe && !user->outside_ns && user->ran_ns &&
		    (!found || user->ran_ns > found->ran_ns))
			found = user;
	}
	return found;
}

/* The processes of one name that used at least half of what the cgroup may use at all; NULL: there
 * are none. If they ran far longer than it may, they did so in other cgroups. */
static const struct why_quota_user *outside_most(const struct model_quota *quota,
						 const struct period *period)
{
	const struct why_quota_user *most = NULL;
	double may_ns;

	for (size_t i = 0; i < period->count; i++)
		if (period->users[i].outside_ns > (most ? most->outside_ns : 0))
			most = &period->users[i];
	if (!most || most->outside_ms * 1000000ull / OUTSIDE_PERIODS < quota->period_ns)
		return NULL;
	may_ns =
		(double)most->outside_ms * 1e6 * (double)quota->quota_ns / (double)quota->period_ns;
	return (double)most->outside_ns >= may_ns / 2 && (double)most->outside_ns <= may_ns * 2
		       ? most
		       : NULL;
}

/* Adds "; others, not recorded, about 11 ms, in the capture mostly hog (4711)". */
static size_t rest_text(const struct why_walk *walk, char *text, size_t size,
			const struct period *period, const struct why_quota_user *most)
{
	const struct model *model = walk->model;
	char rest[UNITS_TEXT], more[UNITS_TEXT];
	size_t len = (size_t)snprintf(text, size, "; others, not recorded, about %s",
				      units_format_duration(rest, period->rest_ns));

	if (len < size && most)
		len += (size_t)snprintf(
			text + len, size - len, ", in the capture mostly %.32s (%u)%s",
			model_thread_name(model, most->thread),
			model_pid_real(model, model->threads.data[most->thread].pid),
			units_format_more(more, most->outside_count - 1));
	return len;
}

/* "its cgroup may use 30 ms of each 100 ms; sibling (8043) ran 14.2 ms, victim (8038) 5 ms; others,
 * not recorded, about 11 ms" */
static uint32_t usage_text(struct why_walk *walk, const struct model_quota *quota,
			   const struct period *period, const struct why_quota_user *most)
{
	const struct why_quota_user *named[NAMED_MAX];
	char text[512], of[UNITS_TEXT], each[UNITS_TEXT], ran[UNITS_TEXT], more[UNITS_TEXT];
	unsigned count = 0, others = 0;
	size_t len;

	for (size_t i = 0; i < period->count; i++)
		others += !period->users[i].maybe && !period->users[i].outside_ns &&
			  period->users[i].ran_ns > 0;
	len = (size_t)snprintf(text, sizeof(text), "its cgroup may use %s of each %s",
			       units_format_duration(of, quota->quota_ns),
			       units_format_duration(each, quota->period_ns));
	while (count < NAMED_MAX && len < sizeof(text)) {
		const struct why_quota_user *user = longest(period, named, count);
		const char *name;

		if (!user)
			break;
		name = model_thread_name(walk->model, user->thread);
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s %.32s (%u)%s %s", count ? "," : ";",
			name, walk->model->threads.data[user->thread].tid, count ? "" : " ran",
			units_format_duration(ran, user->ran_ns));
		named[count++] = user;
	}
	if (len < sizeof(text))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
					units_format_more(more, others - count));
	/* A CPU may keep some milliseconds of the quota that nobody uses. */
	if (len < sizeof(text) && period->rest_ns >= period->quota_ns / 4)
		len += rest_text(walk, text + len, sizeof(text) - len, period, most);
	return strtab_put(walk->why->texts, text, len < sizeof(text) ? len : sizeof(text) - 1);
}

/* What the recorded threads have left of the quota; 0: it is not known. */
static uint64_t rest_of(const struct why_walk *walk, const struct period *period, uint64_t used_ns)
{
	if (used_ns >= period->quota_ns || period->from_ts < walk->model->start_ts ||
	    windows_touch(&walk->losses, period->from_ts, period->to_ts))
		return 0;
	return period->quota_ns - used_ns;
}

void why_quota_users(struct why_walk *walk, const struct model_quota *quota, uint64_t from_ts,
		     uint64_t to_ts, struct why_throttled *throttled)
{
	const struct why_quota_user *own = NULL, *most = NULL;
	uint64_t own_ns = 0, others_ns = 0, maybe_ns = 0;
	struct period period;

	if (from_ts >= to_ts || windows_touch(&walk->losses, from_ts, to_ts) ||
	    !find_period(walk, quota, from_ts, to_ts, &period))
		return;
	for (size_t i = 0; i < period.count; i++) {
		if (period.users[i].thread == quota->thread)
			own = &period.users[i];
		else if (period.users[i].maybe)
			maybe_ns += period.users[i].ran_ns;
		else if (!period.users[i].outside_ns)
			others_ns += period.users[i].ran_ns;
	}
	if (own)
		own_ns = own->ran_ns;
	period.rest_ns = rest_of(walk, &period, own_ns + others_ns + maybe_ns);
	if (period.rest_ns)
		most = outside_most(quota, &period);
	throttled->meaning = usage_text(walk, quota, &period, most);
	throttled->unsure = own_ns < period.quota_ns / 2;
	if (period.rest_ns > own_ns && period.rest_ns > others_ns)
		throttled->culprit = most ? most->thread : MODEL_NONE;
	else if (others_ns > own_ns) {
		throttled->culprit = longest(&period, &own, own ? 1 : 0)->thread;
		throttled->unsure = true;
	}
}

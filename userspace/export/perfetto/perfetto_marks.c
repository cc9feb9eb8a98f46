// SPDX-License-Identifier: Apache-2.0
/* The first and last packets of a trace, its losses, and the counters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/model_node.h"
#include "export/perfetto/perfetto_internal.h"
#include "render/clock_text.h"
#include "render/text/notices.h"
#include "util/memory.h"

/* One attribute a host, since their number is not bounded. */
static void put_hosts(struct perfetto *p)
{
	for (uint32_t i = 0; p->model->host_count > 1 && i < p->model->host_count; i++) {
		const struct store_host *host = p->model->hosts[i];
		char key[32], clock[CLOCK_TEXT], value[CLOCK_TEXT + 256];

		snprintf(key, sizeof(key), "waffle.host.%" PRIu32, i);
		snprintf(value, sizeof(value), "%.200s: %s", host->name,
			 clock_text(clock, &host->clock));
		about_attribute(&p->encoder, key, value);
	}
}

void perfetto_head(struct perfetto *p)
{
	about_begin(&p->encoder, p->model->meta, p->model->filtered.expression);
	put_hosts(p);
	about_bound(&p->encoder, false);
}

/* ---- the end: bounds and losses ---- */

/* Counts the lost records of a source: all, and those with a known time. */
static void count_losses(const struct model *m, unsigned source, uint64_t *all, uint64_t *marked)
{
	*marked = 0;
	for (size_t i = 0; i < m->losses.len; i++) {
		if (m->losses.data[i].source == source)
			*marked += m->losses.data[i].count;
	}
	*all = m->sources[source].lost;
	if (*all < *marked)
		*all = *marked;
}

static void put_losses(struct perfetto *p)
{
	const struct model *m = p->model;
	uint64_t all[WAFFLE_SOURCE_COUNT], marked[WAFFLE_SOURCE_COUNT], lost = 0;
	struct sequence sequence;

	for (unsigned source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		count_losses(m, source, &all[source], &marked[source]);
		lost += all[source];
	}
	if (!lost)
		return;
	sequence = about_losses_begin(&p->encoder);
	for (size_t i = 0; i < m->losses.len; i++) {
		const struct model_loss *loss = &m->losses.data[i];
		struct lost_window window = {loss->from_ts, loss->to_ts, loss->cpu};

		about_loss(&p->encoder, &sequence, loss->source, loss->count, &window);
	}
	/* Losses outside the exported window, or at the end of a truncated file. */
	for (unsigned source = 0; source < WAFFLE_SOURCE_COUNT; source++) {
		if (all[source] > marked[source])
			about_loss(&p->encoder, &sequence, source, all[source] - marked[source],
				   NULL);
	}
}

void perfetto_tail(struct perfetto *p)
{
	uint64_t all[WAFFLE_SOURCE_COUNT], marked;

	for (unsigned source = 0; source < WAFFLE_SOURCE_COUNT; source++)
		count_losses(p->model, source, &all[source], &marked);
	about_bounds(&p->encoder, &p->model->counts, notice_simulated(p->model));
	put_losses(p);
	about_bound(&p->encoder, true);
	about_stats(&p->encoder, all);
}

/* ---- counters ---- */

/* The track of a process's counter. It is described at the counter's first value. */
static uint64_t counter_track(struct perfetto *p, struct map *tracks,
			      const struct model_event *event)
{
	uint64_t process = tracks_process_uuid(p, event->thread);
	uint32_t name = perfetto_names(p, event->site)->name;
	uint32_t uuid = map_get(tracks, process << 32 | name);

	if (uuid != MAP_NONE)
		return uuid;
	uuid = (uint32_t)++p->encoder.next_uuid;
	map_put(tracks, process << 32 | name, uuid);
	track_describe(&p->encoder, uuid, process, strtab_get(p->encoder.names.text, name), true,
		       p->encoder.start_ts);
	return uuid;
}

void perfetto_counters(struct perfetto *p)
{
	const struct model *m = p->model;
	struct sequence sequence = {0};
	struct map tracks = {0};

	for (size_t i = 0; i < m->events.len; i++) {
		const struct model_event *event = &m->events.data[i];
		struct export_node node;
		uint64_t uuid;

		if (model_site(m, event->site)->kind != WAFFLE_SITE_COUNTER)
			continue;
		uuid = counter_track(p, &tracks, event);
		if (!sequence.id)
			sequence = sequence_begin(&p->encoder, 0, true);
		node = model_event_node(m, (uint32_t)i);
		counter_put(&p->encoder, &sequence, uuid, &node);
	}
	map_free(&tracks);
}

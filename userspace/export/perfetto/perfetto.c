// SPDX-License-Identifier: Apache-2.0
/* Exporter for Perfetto's native trace format. Its parts are in perfetto_*.c. */
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/formats.h"
#include "export/perfetto/node_stacks_internal.h"
#include "export/perfetto/perfetto_internal.h"
#include "export/perfetto/slice_causes_internal.h"
#include "model/gpu/gpu_timeline.h"
#include "symbolize/stack_names.h"
#include "util/memory.h"

static void prepare(struct perfetto *p, const struct model *model, FILE *out)
{
	uint32_t sites = model_site_count(model);

	p->model = model;
	pf_encoder_begin(&p->encoder, out, model->meta);
	p->encoder.start_ts = model->start_ts;
	p->encoder.end_ts = model->end_ts > model->start_ts ? model->end_ts : model->start_ts;
	p->names = stack_names_open(model->reader, true);
	p->timeline = gpu_timeline_new(model);
	p->stacks = node_stacks_open(model, p->names);
	p->causes = slice_causes_open(model, p->names, p->timeline);
	for (uint32_t i = 0; i <= sites; i++)
		names_add_site(&p->encoder, model_site(model, i < sites ? i : MODEL_NONE));
}

static void write_all(struct perfetto *p)
{
	perfetto_head(p);
	tracks_begin(p);
	flows_begin(p);
	gpu_timeline_free(p->timeline);
	perfetto_spans(p);
	perfetto_strays(p);
	perfetto_waits(p);
	perfetto_counters(p);
	perfetto_sched(p);
	perfetto_tail(p);
}

int perfetto_write(const struct model *model, FILE *out, struct error *err)
{
	struct perfetto *p = memory_zeroed(1, sizeof(*p));
	int code;

	prepare(p, model, out);
	write_all(p);
	code = pf_encoder_end(&p->encoder);
	flows_end(p);
	tracks_end(p);
	vec_free(&p->strays);
	for (unsigned i = 0; i < TEXT_TABLE_COUNT; i++)
		vec_free(&p->text_sequences[i].list);
	node_stacks_close(p->stacks);
	slice_causes_close(p->causes);
	stack_names_close(p->names);
	free(p->has_child);
	free(p);
	if (code)
		return error_set(err, -code, "perfetto: %s", strerror(-code));
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Exporter for Perfetto's native trace format. Its parts are in perfetto_*.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/formats.h"
#include "export/perfetto/node_stacks_internal.h"
#include "export/perfetto/perfetto_internal.h"

static int prepare(struct perfetto *p, const struct model *model, FILE *out)
{
	p->model = model;
	p->start_ts = model->start_ts;
	p->end_ts = model->end_ts > model->start_ts ? model->end_ts : model->start_ts;
	event_init(&p->event);
	p->trace_iids = calloc(TRACE_CACHE, sizeof(*p->trace_iids));
	p->trace_ids = calloc(TRACE_CACHE, sizeof(*p->trace_ids));
	if (!packet_writer_begin(&p->writer, out) || !p->event.scratch || !p->trace_iids ||
	    !p->trace_ids)
		return -ENOMEM;
	return node_stacks_open(&p->stacks, model) ?: names_begin(p);
}

static int write_all(struct perfetto *p)
{
	int err = 0;

	perfetto_head(p);
	err = tracks_begin(p);
	err = err ?: flows_begin(p);
	err = err ?: perfetto_spans(p);
	err = err ?: perfetto_strays(p);
	err = err ?: perfetto_counters(p);
	err = err ?: perfetto_sched(p);
	if (!err)
		perfetto_tail(p);
	return err;
}

int perfetto_write(const struct model *model, FILE *out, struct error *err)
{
	struct perfetto *p = calloc(1, sizeof(*p));
	int code, written;

	if (!p)
		return error_set(err, ENOMEM, "perfetto: out of memory");
	code = prepare(p, model, out);
	code = code ?: write_all(p);
	written = packet_writer_end(&p->writer);
	code = code ?: written;
	flows_end(p);
	tracks_end(p);
	names_end(p);
	event_free(&p->event);
	vec_free(&p->strays);
	vec_free(&p->stack_sequences);
	node_stacks_close(p->stacks);
	free(p->trace_iids);
	free(p->trace_ids);
	free(p->has_child);
	free(p);
	if (code)
		return error_set(err, -code, "perfetto: %s", strerror(-code));
	return 0;
}

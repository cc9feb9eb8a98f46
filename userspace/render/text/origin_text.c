// SPDX-License-Identifier: Apache-2.0
#include "render/text/origin_text.h"

#include <inttypes.h>
#include <string.h>

#include "render/text/notices.h"
#include "render/text/values_text_internal.h"
#include "render/text/why_node.h"
#include "util/terminal.h"

/* Limit of the steps shown at each end of a way. */
#define STEPS_SHOWN 20

#define DECLARE_TEXT                                                                               \
	"to declare a cause, record it as an event and give its id to the span that it affected: " \
	"SPAN(…, KV_CAUSE_EVENT(id))\n"

static uint32_t node_site(const struct why_printer *printer, const struct origin_node *node,
			  uint32_t *frame)
{
	const struct model *model = printer->model;

	*frame = MODEL_NONE;
	if (node->index == MODEL_NONE)
		return MODEL_NONE;
	*frame = node->kind == MODEL_NODE_SPAN ? model->spans.data[node->index].frame
					       : model->events.data[node->index].frame;
	return node->kind == MODEL_NODE_SPAN ? model->spans.data[node->index].site
					     : model->events.data[node->index].site;
}

/* Prints ", train.c:41" if the site has a place in the source. */
static void put_place(const struct why_printer *printer, uint32_t site)
{
	const struct site_info *info = model_site(printer->model, site);

	if (!*info->file || !info->line)
		return;
	fputs(", ", printer->out);
	why_put(printer, strrchr(info->file, '/') ? strrchr(info->file, '/') + 1 : info->file);
	fprintf(printer->out, ":%u", info->line);
}

static void put_node(const struct why_printer *printer, const struct origin_node *node, bool bold)
{
	uint32_t frame, site = node_site(printer, node, &frame);

	why_paint(printer, bold ? TERMINAL_BOLD : TERMINAL_END);
	why_put_node(printer, node->kind, node->index, node->id);
	why_paint(printer, TERMINAL_END);
	if (node->index == MODEL_NONE)
		return;
	put_place(printer, site);
	if (node->record)
		fprintf(printer->out, ", record %" PRIu64, node->record);
	if (bold)
		values_put(printer->out, printer->model, site, frame);
}

/* ---- steps ---- */

static const struct model_rank_call *call_of(const struct model_collective *collective,
					     uint32_t span)
{
	for (uint32_t i = 0; i < collective->count; i++)
		if (collective->calls[i].span == span)
			return &collective->calls[i];
	return NULL;
}

static void put_rank(const struct why_printer *printer, const struct model_rank_call *call)
{
	if (call && call->rank != MODEL_NONE)
		fprintf(printer->out, "rank %u", call->rank);
	else
		fputs("a rank", printer->out);
}

/* Names a node without its thread, time and place. */
static void put_name(const struct why_printer *printer, const struct origin_node *node)
{
	uint32_t frame, site = node_site(printer, node, &frame);

	fputs(node->kind == MODEL_NODE_SPAN ? "span " : "event ", printer->out);
	if (node->index != MODEL_NONE) {
		why_put(printer, model_site(printer->model, site)->name);
		fputc(' ', printer->out);
	}
	fprintf(printer->out, "%016" PRIx64, node->id);
}

/* Two spans of one name. If the data was on the thread since an earlier span, the step leaves that
 * span: it is the one that overlaps with the other rank's. */
static void put_common(const struct why_printer *printer, const struct origin_step *step)
{
	uint32_t span = step->from_call;

	if (span != step->from.index || step->from.kind != MODEL_NODE_SPAN) {
		fputs("after ", printer->out);
		put_name(printer, &(struct origin_node){.id = printer->model->spans.data[span].id,
							.index = span,
							.kind = MODEL_NODE_SPAN});
		fputs(", ", printer->out);
	}
	fputs("together with, by its name and time, ", printer->out);
}

/* Whether a step leads to a span around the receiving call itself, which has ended since. */
static bool is_at_receiver(const struct model_collective *collective,
			   const struct origin_step *step, const struct model_rank_call *to)
{
	if (step->from_call != step->to_call || !to)
		return false;
	return collective->flow == FLOW_PAIR ||
	       (collective->flow == FLOW_FROM_ROOT && to->rank != collective->root);
}

/* Prints "through MPI_Allreduce number 3 of 4 ranks, to rank 0 from rank 1: ". */
static void put_collective(const struct why_printer *printer, const struct origin *origin,
			   const struct origin_step *step)
{
	const struct model_collective *collective;
	const struct model_rank_call *from, *to;

	if (step->collective == MODEL_NONE) {
		put_common(printer, step);
		return;
	}
	collective = model_collective_at(origin->comm, step->collective);
	from = call_of(collective, step->from_call);
	to = call_of(collective, step->to_call);
	if (is_at_receiver(collective, step, to))
		fputs("received ", printer->out);
	fputs("through ", printer->out);
	why_put(printer, model_site(printer->model, collective->site)->name);
	fprintf(printer->out, " number %" PRIu64, collective->seq);
	if (collective->nranks && collective->flow != FLOW_PAIR)
		fprintf(printer->out, " of %u ranks", collective->nranks);
	if (is_at_receiver(collective, step, to)) {
		fputs(" in ", printer->out);
		return;
	}
	fputs(", to ", printer->out);
	put_rank(printer, from);
	fputs(" from ", printer->out);
	put_rank(printer, to);
	fputs(": ", printer->out);
}

/* Prints a step; `last`: it leads to the origin. */
static void put_step(const struct why_printer *printer, const struct origin *origin,
		     const struct origin_step *step, bool last)
{
	fputs("      ", printer->out);
	switch (step->via) {
	case ORIGIN_VIA_LINK:
		fputs("caused by ", printer->out);
		break;
	case ORIGIN_VIA_INSIDE:
		fputs("inside of ", printer->out);
		break;
	case ORIGIN_VIA_CONTEXT:
		fputs("with the context of ", printer->out);
		break;
	default:
		put_collective(printer, origin, step);
		break;
	}
	if (last)
		put_name(printer, &step->to);
	else
		put_node(printer, &step->to, false);
	if (step->grade != WHY_GRADE_CERTAIN)
		fprintf(printer->out, " (%s)", why_grade_names[step->grade]);
	fputc('\n', printer->out);
}

static void put_way(const struct why_printer *printer, const struct origin *origin,
		    const struct origin_end *end)
{
	struct origin_way way;
	size_t count;

	origin_way_find(&way, origin, end);
	count = way.steps.len;
	for (size_t i = 0; i < count; i++) {
		if (count > 2 * STEPS_SHOWN + 1 && i == STEPS_SHOWN) {
			i = count - STEPS_SHOWN;
			fprintf(printer->out, "      … %zu more steps\n",
				count + way.left_out - (size_t)(2 * STEPS_SHOWN));
		}
		put_step(printer, origin, &way.steps.data[i], i + 1 == count);
	}
	origin_way_free(&way);
}

/* ---- origins ---- */

static void put_end(const struct why_printer *printer, const struct origin *origin, size_t at)
{
	const struct origin_end *end = &origin->ends.data[at];

	fprintf(printer->out, "%3zu.  %-8s  ", at + 1, why_grade_names[end->grade]);
	put_node(printer, &end->node, true);
	fputc('\n', printer->out);
	put_way(printer, origin, end);
}

static bool is_filtered(const struct model *model)
{
	return model->filtered.expression || *model->meta->filter;
}

/* Says what kind of origins follow, if that changes. */
static void put_basis(const struct why_printer *printer, const struct origin *origin, size_t at)
{
	const struct origin_end *end = &origin->ends.data[at];
	const char *none = is_filtered(printer->model) ? "the filter left no declared cause"
						       : "no cause is declared";

	if (at && end[-1].basis == end->basis)
		return;
	if (end->basis == ORIGIN_FLOW)
		fprintf(printer->out, "  where its data came from; %s there:\n", none);
	if (end->basis == ORIGIN_ANY_RANK)
		fprintf(printer->out, "  %s; any of these ranks may have given the data:\n", none);
}

static void put_filter(const struct why_printer *printer, const char *how, const char *expression)
{
	if (!*expression)
		return;
	fprintf(printer->out, "  the filter%s may have removed the cause: ", how);
	notice_put_expression(printer->out, expression);
	fputc('\n', printer->out);
}

/* A declared cause that was found needs no doubt. Anything else may be due to a filter. */
static void put_filters(const struct why_printer *printer, const struct origin *origin)
{
	const struct model *model = printer->model;

	if (origin->ends.len && origin->ends.data[0].basis == ORIGIN_DECLARED &&
	    origin->ends.data[0].node.index != MODEL_NONE && origin->incomplete == MODEL_NONE)
		return;
	put_filter(printer, " of the recording", model->meta->filter);
	if (model->filtered.expression)
		put_filter(printer, "", model->filtered.expression);
}

/* Prints "rank 1 called MPI_Bcast". */
static void put_caller(const struct why_printer *printer, uint32_t rank, uint32_t span)
{
	if (rank == MODEL_NONE)
		fputs("a rank", printer->out);
	else
		fprintf(printer->out, "rank %u", rank);
	fputs(" called ", printer->out);
	why_put(printer, model_site(printer->model, printer->model->spans.data[span].site)->name);
}

static void put_disorder(const struct why_printer *printer, const struct model_disorder *disorder)
{
	fprintf(printer->out,
		"  origins may be missing: collective %" PRIu64
		" of a communicator differs between ranks: ",
		disorder->seq);
	put_caller(printer, disorder->other_rank, disorder->other_span);
	fputs("; ", printer->out);
	put_caller(printer, disorder->rank, disorder->span);
	fputc('\n', printer->out);
}

static void put_unmatched(const struct why_printer *printer, const struct origin *origin)
{
	if (!origin->unmatched)
		return;
	fprintf(printer->out,
		"  origins may be missing: %" PRIu64
		" call%s not matched, in the whole capture; see docs/mpi.md\n",
		origin->unmatched, origin->unmatched == 1 ? " is" : "s are");
}

/* Says that origins may be missing. */
static void put_incomplete(const struct why_printer *printer, const struct origin *origin)
{
	const struct model_collective *collective;

	if (origin->incomplete == MODEL_NONE)
		return;
	if (origin->disorder != MODEL_NONE) {
		put_disorder(printer, model_disorder_at(origin->comm, origin->disorder));
		return;
	}
	collective = model_collective_at(origin->comm, origin->incomplete);
	fputs("  origins may be missing: of ", printer->out);
	why_put(printer, model_site(printer->model, collective->site)->name);
	fprintf(printer->out, " number %" PRIu64 ", the calls of only %u of %u ranks are known\n",
		collective->seq, collective->count, collective->nranks);
}

void origin_print_story(const struct origin *origin, const struct why_view *view, FILE *out)
{
	const struct why_printer printer = {.model = origin->model, .view = view, .out = out};
	size_t shown = origin->ends.len;

	if (view->causes && shown > view->causes)
		shown = view->causes;
	put_node(&printer, &origin->symptom, true);
	fputc('\n', out);
	if (!shown)
		fputs("  nothing says what caused it\n", out);
	for (size_t i = 0; i < shown; i++) {
		put_basis(&printer, origin, i);
		put_end(&printer, origin, i);
	}
	if (shown < origin->ends.len)
		fprintf(out, "  %zu more origins; --json has all\n", origin->ends.len - shown);
	put_incomplete(&printer, origin);
	put_unmatched(&printer, origin);
	put_filters(&printer, origin);
	if (!is_filtered(origin->model) && !origin->unmatched &&
	    (!shown || origin->ends.data[0].basis == ORIGIN_ANY_RANK))
		fputs("  " DECLARE_TEXT, out);
}

void origin_print_text(const struct origin *origin, const struct why_view *view, FILE *out)
{
	const struct why_printer printer = {.model = origin->model, .view = view, .out = out};

	origin_print_story(origin, view, out);
	why_print_records(&printer);
}

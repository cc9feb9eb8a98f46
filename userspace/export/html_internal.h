/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the page's data. Each writes members of the object that is open. */
#ifndef WAFFLE_EXPORT_HTML_INTERNAL_H
#define WAFFLE_EXPORT_HTML_INTERNAL_H

#include <stddef.h>

#include "analyze/report.h"
#include "analyze/why.h"
#include "export/stack_text.h"
#include "util/json.h"
#include "util/strtab.h"

/* Bytes that are kept of one name, and of all in the table of texts. */
#define HTML_NAME_MAX 240
#define HTML_TEXTS_MAX (1u << 20)
/* Names in the table of spans. */
#define HTML_SPANS_MAX 200

struct html_page {
	const struct report *report;
	const struct model *model;
	struct json *json;
	struct strtab *texts; /* written last; items refer to it */
	size_t text_bytes;
	struct stack_names *names;
	struct html_causes *causes;
	size_t rows;      /* of the report's names that are shown */
	uint32_t sites;   /* their number, which stands for unknown ones */
	uint32_t *row_of; /* of each site, or MODEL_NONE */
};

/* The number of a text, cut where it is too long; 0, the empty one, for "". */
uint32_t html_text(struct html_page *page, const char *text);
/* A string member, cut where it is too long. */
void html_field_text(struct html_page *page, const char *key, const char *text);

#define HTML_THREAD_TEXT 64
/* "loader (4711)" */
const char *html_thread(const struct model *model, uint32_t thread, char text[HTML_THREAD_TEXT]);

#define HTML_STATE_TEXT 512
/* What an interval's thread did or waited for, without its state: "in read of /data/shard-7",
 * "woken by loader (4711)", "on CPU 3". */
const char *html_state_text(const struct model *model, const struct model_interval *interval,
			    char text[HTML_STATE_TEXT]);

/* The row of a span, or MODEL_NONE. */
uint32_t html_row_of(const struct html_page *page, uint32_t span);

/* ---- causes ---- */

/* Why spans took long; of a capture without the scheduler nothing. NULL: out of memory. */
struct html_causes *html_causes_new(struct html_page *page);
void html_causes_free(struct html_causes *causes);
/* Why a slow span of the report took so long, and of what that is a part; NULL: not known. */
const struct why_instance *html_causes_of(const struct html_causes *causes, uint32_t span,
					  const struct why **why);
/* Of a row: "causes", sums over all its spans, of which "causes_spans" took "causes_ns"; and what
 * the slow ones have more of, "differences", "slow_spans", "slow_ns" and "median_ns". */
void html_causes_row(struct html_page *page, uint32_t row);
/* "causes" and "chain" of a slow span. */
void html_causes_slow(struct html_page *page, uint32_t span);

/* All false: out of memory. */
bool html_spans(struct html_page *page);   /* "spans", "spans_left_out" */
bool html_slowest(struct html_page *page); /* "slowest", each with its time line */
bool html_flame(struct html_page *page);   /* "flame" */

/* ---- time lines ---- */

struct html_views;

/* Of every slow span of the report. NULL: out of memory. */
struct html_views *html_views_new(struct html_page *page);
void html_views_free(struct html_views *views);
/* The member "view" of the slow span `index`. */
void html_view_write(struct html_page *page, const struct html_views *views, size_t index);

#endif

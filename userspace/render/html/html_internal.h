/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the data of the HTML page. Each function writes members of the JSON object that is
 * open. */
#ifndef WAFFLE_RENDER_HTML_HTML_INTERNAL_H
#define WAFFLE_RENDER_HTML_HTML_INTERNAL_H

#include <stddef.h>

#include "analyze/report.h"
#include "analyze/why/why.h"
#include "symbolize/stack_names.h"
#include "util/json.h"
#include "util/strtab.h"

/* Limits in bytes of one name, and of all names in the table of texts. */
#define HTML_NAME_MAX 240
#define HTML_TEXTS_MAX (1u << 20)
/* Limit of names in the table of spans. */
#define HTML_SPANS_MAX 200

struct html_page {
	const struct report *report;
	const struct model *model;
	struct json *json;
	struct strtab *texts; /* written last; other data refers to its numbers */
	size_t text_bytes;
	struct stack_names *names;
	struct html_causes *causes;
	size_t rows;      /* number of the report's names that are shown */
	uint32_t sites;   /* number of sites, also used for an unknown site */
	uint32_t *row_of; /* row of each site, or MODEL_NONE */
};

/* Adds a text, truncated if it is too long, and returns its number. "" has number 0. */
uint32_t html_text(struct html_page *page, const char *text);
/* Writes a string member, truncated if it is too long. */
void html_field_text(struct html_page *page, const char *key, const char *text);

#define HTML_THREAD_TEXT 448
/* Formats a thread as "loader (4711)". */
const char *html_thread(const struct model *model, uint32_t thread, char text[HTML_THREAD_TEXT]);

#define HTML_STATE_TEXT 512
/* Describes what the thread of an interval did or waited for, without its state: "in read of
 * /data/shard-7", "woken by loader (4711)", "on CPU 3". */
const char *html_state_text(const struct model *model, const struct model_interval *interval,
			    char text[HTML_STATE_TEXT]);

/* The row of a span's name, or MODEL_NONE. */
uint32_t html_row_of(const struct html_page *page, uint32_t span);

/* ---- causes ---- */

/* Computes why spans took long. The result is empty if the capture has no scheduler data. */
struct html_causes *html_causes_new(struct html_page *page);
void html_causes_free(struct html_causes *causes);
/* Why a slow span of the report took long. *why is the object that contains the result. NULL:
 * unknown. */
const struct why_instance *html_causes_of(const struct html_causes *causes, uint32_t span,
					  const struct why **why);
/* Writes members of a row: "causes" has sums over "causes_spans" spans, which took "causes_ns".
 * "differences" is what the slow spans have more of, with "slow_spans", "slow_ns" and
 * "median_ns". */
void html_causes_row(struct html_page *page, uint32_t row);
/* Writes "causes" and "chain" of a slow span. */
void html_causes_slow(struct html_page *page, uint32_t span);

void html_spans(struct html_page *page);   /* "spans", "spans_left_out" */
void html_slowest(struct html_page *page); /* "slowest", each with its timeline */
void html_flame(struct html_page *page);   /* "flame" */
void html_oncpu(struct html_page *page);   /* "oncpu", if there are samples */

/* The 64 innermost frames of a stack, and one for "[cut]" in place of the others. */
#define HTML_FRAMES_MAX 65
/* Fills in the frames of a stack as numbers in the page's texts, the outermost first. Returns the
 * number of frames. */
uint32_t html_frames(struct html_page *page, uint32_t stack, uint64_t ts,
		     uint32_t texts[HTML_FRAMES_MAX]);
/* Both write an array of numbers in the page's texts: html_stack() the frames of a stack, the
 * outermost first, and html_call() a system call in place of a kernel stack (-1: "[no stack]"). */
void html_stack(struct html_page *page, uint32_t stack, uint64_t ts);
void html_call(struct html_page *page, int32_t number);

/* Writes "hosts" and "hosts_left_out", if the job has several hosts. */
void html_hosts(struct html_page *page);
/* Writes "stragglers" and "collectives", if any collective has calls of two ranks. */
void html_stragglers(struct html_page *page);

/* Writes "deadlocks" and "open_waits" as texts, if there are any. */
void html_hangs(struct html_page *page);

/* Writes "symptoms": events whose origin is declared, each with the way to it. */
void html_origins(struct html_page *page);

/* ---- timelines ---- */

struct html_views;

/* Makes the timelines of all slow spans of the report. */
struct html_views *html_views_new(struct html_page *page);
void html_views_free(struct html_views *views);
/* Writes the member "view" of the slow span `index`. */
void html_view_write(struct html_page *page, const struct html_views *views, size_t index);

#endif

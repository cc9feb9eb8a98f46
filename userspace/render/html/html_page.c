// SPDX-License-Identifier: Apache-2.0
/* What all parts of the page write: texts, rows of names, threads and their states. */
#include <inttypes.h>
#include <string.h>

#include "render/html/html_internal.h"
#include "render/place.h"
#include "util/memory.h"
#include "util/syscall_names.h"
#include "util/utf8.h"

/* ---- texts ---- */

uint32_t html_text(struct html_page *page, const char *text)
{
	size_t len = utf8_cut(text, HTML_NAME_MAX);
	char cut[HTML_NAME_MAX + sizeof("…")];
	uint32_t count = strtab_count(page->texts), number;

	memcpy(cut, text, len);
	if (text[len]) {
		memcpy(cut + len, "…", strlen("…"));
		len += strlen("…");
	}
	if (page->text_bytes > HTML_TEXTS_MAX) {
		len = strlen("(more names than a page holds)");
		memcpy(cut, "(more names than a page holds)", len);
	}
	number = strtab_put(page->texts, cut, len);
	if (strtab_count(page->texts) > count)
		page->text_bytes += len + 3;
	return number;
}

void html_field_text(struct html_page *page, const char *key, const char *text)
{
	json_key(page->json, key);
	json_string_len(page->json, text, utf8_cut(text, HTML_NAME_MAX));
}

uint32_t html_row_of(const struct html_page *page, uint32_t span)
{
	uint32_t site = page->model->spans.data[span].site;

	return page->row_of[site < page->sites ? site : page->sites];
}

/* ---- threads and states ---- */

const char *html_thread(const struct model *model, uint32_t thread, char text[HTML_THREAD_TEXT])
{
	const char *comm = model_thread_name(model, thread);
	char place[PLACE_TEXT];

	if (thread >= model->threads.len)
		return strcpy(text, "(not known)");
	snprintf(text, HTML_THREAD_TEXT, "%.*s (%s)", 2 * WAFFLE_TRACK_NAME, comm,
		 place_thread(place, model, thread));
	return text;
}

/* Describes a call and its object: "in read of /data/shard-7". */
static int call_text(const struct model *model, const struct model_interval *interval,
		     char text[HTML_STATE_TEXT])
{
	const struct model_wait *wait = model_wait_at(model, interval->thread, interval->from_ts);
	const struct store_object *object = model_wait_object(model, wait);
	const char *name = interval->syscall < 0
				   ? NULL
				   : syscall_name(model->meta->machine, interval->syscall);
	int len = 0;

	if (name)
		len = snprintf(text, HTML_STATE_TEXT, "in %s", name);
	else if (interval->syscall >= 0)
		len = snprintf(text, HTML_STATE_TEXT, "in system call %d", interval->syscall);
	else if (wait && wait->address)
		len = snprintf(text, HTML_STATE_TEXT, "in a page fault at 0x%" PRIx64,
			       wait->address);
	if (object)
		len += snprintf(text + len, HTML_STATE_TEXT - (size_t)len, "%s%.180s%s%.100s",
				len ? " of " : "", object->name, *object->detail ? ", " : "",
				object->detail);
	return len;
}

const char *html_state_text(const struct model *model, const struct model_interval *interval,
			    char text[HTML_STATE_TEXT])
{
	char thread[HTML_THREAD_TEXT];
	int len = 0;

	*text = 0;
	switch (interval->state) {
	case WAFFLE_THREAD_RUNNING:
		if (interval->cpu != MODEL_CPU_NONE)
			snprintf(text, HTML_STATE_TEXT, "on CPU %u", interval->cpu);
		break;
	case WAFFLE_THREAD_RUNNABLE:
		if (interval->interrupt)
			strcpy(text, "woken by an interrupt");
		else if (interval->by != MODEL_NONE)
			snprintf(text, HTML_STATE_TEXT, "%s by %s",
				 interval->woken ? "woken" : "preempted",
				 html_thread(model, interval->by, thread));
		break;
	case WAFFLE_THREAD_BLOCKED:
		len = call_text(model, interval, text);
		if (interval->task_state &
		    (WAFFLE_TASK_UNINTERRUPTIBLE | WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
			snprintf(text + len, HTML_STATE_TEXT - (size_t)len, "%s%s", len ? ", " : "",
				 model_blocked_text(interval->task_state));
		break;
	}
	return text;
}

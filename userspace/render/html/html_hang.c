// SPDX-License-Identifier: Apache-2.0
/* Deadlocks and open waits on the page, in the words of `waffle-bpf why`. */
#include <stdlib.h>

#include "render/html/html_internal.h"
#include "render/text/hang_text.h"
#include "util/memory.h"
#include "util/utf8.h"

/* Limit of each text in bytes. A capture may have many thousands of threads. */
#define TEXT_BYTES_MAX (1u << 18)

static void text_json(struct html_page *page, const char *key,
		      void (*print)(struct html_page *, FILE *))
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = memory_stream(&text, &len);

	print(page, out);
	memory_require(!fclose(out));
	if (len) {
		json_key(page->json, key);
		json_string_len(page->json, text, utf8_cut(text, TEXT_BYTES_MAX));
	}
	free(text);
}

static struct hang_view view_of(const struct html_page *page)
{
	return (struct hang_view){.model = page->model, .names = page->names};
}

static void print_deadlocks(struct html_page *page, FILE *out)
{
	const struct hang_view view = view_of(page);

	hang_print_deadlocks(&page->report->hangs, &view, out);
}

static void print_waits(struct html_page *page, FILE *out)
{
	const struct hang_view view = view_of(page);

	hang_print_waits(&page->report->hangs, &view, out);
}

void html_hangs(struct html_page *page)
{
	text_json(page, "deadlocks", print_deadlocks);
	text_json(page, "open_waits", print_waits);
}

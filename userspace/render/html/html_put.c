// SPDX-License-Identifier: Apache-2.0
#include "render/html/html_put_internal.h"

#include <string.h>

#include "util/memory.h"
#include "util/output.h"

/* Defined in html/files.S. */
extern const char html_style[], html_style_hash[], html_common[], html_common_hash[];
extern const char html_report_page[], html_report_script[], html_report_hash[];
extern const char html_gpu_page[], html_gpu_script[], html_gpu_hash[];

static const struct {
	const char *page, *script, *hash;
} kinds[HTML_PAGE_COUNT] = {
	[HTML_PAGE_REPORT] = {html_report_page, html_report_script, html_report_hash},
	[HTML_PAGE_GPU] = {html_gpu_page, html_gpu_script, html_gpu_hash},
};

/* Writes JSON into an HTML element. Only strings can contain a '<', which could end the element, so
 * it is escaped. */
static void put_data(const char *data, size_t len, FILE *out)
{
	const char *end = data + len;

	while (data < end) {
		const char *angle = memchr(data, '<', (size_t)(end - data));

		fwrite(data, 1, (size_t)((angle ? angle : end) - data), out);
		if (!angle)
			return;
		fputs("\\u003c", out);
		data = angle + 1;
	}
}

/* Replaces the {{names}} of the page. */
void html_put(enum html_page_kind kind, const char *data, size_t len, FILE *out)
{
	const struct {
		const char *name, *text;
	} rows[] = {
		{"{{common-hash}}", html_common_hash},
		{"{{script-hash}}", kinds[kind].hash},
		{"{{style-hash}}", html_style_hash},
		{"{{style}}", html_style},
		{"{{common}}", html_common},
		{"{{script}}", kinds[kind].script},
		{"{{data}}", NULL},
	};
	const char *at = kinds[kind].page, *mark;

	for (; (mark = strstr(at, "{{")); at = mark) {
		fwrite(at, 1, (size_t)(mark - at), out);
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			if (strncmp(mark, rows[i].name, strlen(rows[i].name)))
				continue;
			if (rows[i].text)
				fputs(rows[i].text, out);
			else
				put_data(data, len, out);
			mark += strlen(rows[i].name);
			break;
		}
	}
	fputs(at, out);
}

int html_put_path(const char *path, void (*write)(const void *arg, FILE *out), const void *arg,
		  struct error *err)
{
	struct output output;
	struct memory_guard guard = {.call = output_abandon, .arg = &output};
	int result = output_open(&output, path, err);

	if (result)
		return result;
	memory_guard_set(&guard);
	write(arg, output.file);
	memory_guard_remove(&guard);
	return output_commit(&output, err);
}

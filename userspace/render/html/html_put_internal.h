/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a page together: its markup, style, scripts and data. */
#ifndef WAFFLE_RENDER_HTML_HTML_PUT_INTERNAL_H
#define WAFFLE_RENDER_HTML_HTML_PUT_INTERNAL_H

#include <stdio.h>

#include "util/error.h"

enum html_page_kind { HTML_PAGE_REPORT, HTML_PAGE_GPU, HTML_PAGE_COUNT };

/* `data` is a JSON object. */
void html_put(enum html_page_kind kind, const char *data, size_t len, FILE *out);

/* Has write() write a page to a path through util/output.h, so that a failure leaves the old
 * file. */
int html_put_path(const char *path, void (*write)(const void *arg, FILE *out), const void *arg,
		  struct error *err);

#endif

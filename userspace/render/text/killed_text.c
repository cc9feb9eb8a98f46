// SPDX-License-Identifier: Apache-2.0
#include "render/text/killed_text_internal.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/killed.h"
#include "render/place.h"
#include "util/signal_names.h"
#include "util/terminal.h"
#include "util/units.h"

/* Limit of the groups that are printed; the others are summed up. */
#define SHOWN_MAX 3

static void put(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

static void put_process(FILE *out, const struct model *model, uint32_t thread)
{
	char text[PLACE_TEXT];

	put(out, model_thread_name(model, thread));
	fputs(" (", out);
	put(out, place_process(text, model, thread));
	fputc(')', out);
}

/* Prints ", children of server (4711)," with the comma behind it. */
static void put_parent(FILE *out, const struct model *model, const struct killed *killed)
{
	if (!killed->ppid)
		return;
	fputs(killed->count > 1 ? ", children of " : ", child of ", out);
	if (killed->parent < model->threads.len)
		put_process(out, model, killed->parent);
	else
		fprintf(out, "process %" PRIu32, model_pid_real(model, killed->ppid));
	fputc(',', out);
}

static void put_signal(FILE *out, uint32_t signo)
{
	const char *name = signal_name(signo);

	if (name)
		fputs(name, out);
	else
		fprintf(out, "signal %" PRIu32, signo);
}

static void print_group(FILE *out, const struct model *model, const struct killed *killed)
{
	char time[UNITS_TEXT];

	if (killed->count > 1) {
		fprintf(out, "%" PRIu32 " processes named ", killed->count);
		put(out, model_thread_name(model, killed->thread));
	} else {
		put_process(out, model, killed->thread);
	}
	put_parent(out, model, killed);
	fputs(killed->count > 1 ? " were ended by " : " was ended by ", out);
	put_signal(out, killed->signo);
	if (killed->lived_ns)
		fprintf(out, killed->count > 1 ? "; the longest of them lived for %s" : " after %s",
			units_format_duration(time, killed->lived_ns));
	fputc('\n', out);
}

bool killed_print(const struct model *model, bool colour, FILE *out)
{
	killed_list list = {0};
	uint64_t more = 0;
	bool any;

	killed_find(&list, model);
	any = list.len;
	terminal_paint(out, colour, any ? TERMINAL_WARN : "");
	for (size_t i = 0; i < list.len; i++) {
		if (i < SHOWN_MAX)
			print_group(out, model, &list.data[i]);
		else
			more += list.data[i].count;
	}
	if (more)
		fprintf(out, "%" PRIu64 " other %s ended by a signal\n", more,
			units_plural(more, "process was", "processes were"));
	terminal_paint(out, colour, any ? TERMINAL_END : "");
	vec_free(&list);
	return any;
}

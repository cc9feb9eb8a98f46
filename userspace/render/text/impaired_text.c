// SPDX-License-Identifier: Apache-2.0
#include "render/text/impaired_text_internal.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/impaired.h"
#include "analyze/why/lookup/why_roots.h"
#include "render/place.h"
#include "util/terminal.h"
#include "util/units.h"

/* Limit of the processes that are printed; the others are counted. */
#define SHOWN_MAX 3

/* "is in cgroup /sys/fs/cgroup/app, which has all 64 processes and threads that it may have". */
static void print_pids(FILE *out, const struct model *model, const struct impaired *impaired)
{
	const char *cgroup = impaired_cgroup(model, impaired);

	fputs(cgroup ? "is in cgroup " : "is in a cgroup", out);
	if (cgroup)
		terminal_put(out, cgroup, strlen(cgroup));
	fprintf(out,
		", which has all %" PRIu64 " processes and threads that it may have (pids.max): "
		"fork(), clone() and the like fail with EAGAIN",
		impaired->pids);
}

static void print_one(FILE *out, const struct model *model, const struct impaired *impaired)
{
	const char *name = model_thread_name(model, impaired->thread);
	char text[PLACE_TEXT];

	terminal_put(out, name, strlen(name));
	fprintf(out, " (%s) ", place_process(text, model, impaired->thread));
	if (impaired->stopped)
		fprintf(out, "has been stopped since before %s%s",
			why_recorded_text(model, impaired->thread),
			impaired->descriptors || impaired->pids ? ", and " : "");
	if (impaired->pids)
		print_pids(out, model, impaired);
	if (impaired->pids && impaired->descriptors)
		fputs(", and ", out);
	if (impaired->descriptors)
		fprintf(out,
			"has all %" PRIu64 " descriptors open that it may have (RLIMIT_NOFILE): "
			"accept(), open() and the like fail with EMFILE",
			impaired->descriptors);
	fputc('\n', out);
}

bool impaired_print(const struct model *model, bool colour, FILE *out)
{
	impaired_list list = {0};
	bool any;

	impaired_find(&list, model);
	any = list.len;
	terminal_paint(out, colour, any ? TERMINAL_WARN : "");
	for (size_t i = 0; i < list.len && i < SHOWN_MAX; i++)
		print_one(out, model, &list.data[i]);
	if (list.len > SHOWN_MAX)
		fprintf(out, "%zu more %s stopped, or at a limit of files or processes\n",
			list.len - SHOWN_MAX,
			units_plural(list.len - SHOWN_MAX, "process is", "processes are"));
	terminal_paint(out, colour, any ? TERMINAL_END : "");
	vec_free(&list);
	return any;
}

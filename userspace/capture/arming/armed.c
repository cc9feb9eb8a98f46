// SPDX-License-Identifier: Apache-2.0
#include "capture/arming/armed.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/units.h"
#include <string.h>

void armed_count(struct armed_counts *counts, const struct site_info *site)
{
	counts->simulated += site->simulated;
	if (!site->call)
		counts->sites++;
	else if (!strcmp(site->category, "cuda"))
		counts->cuda++;
	else if (!strcmp(site->category, "nccl"))
		counts->nccl++;
	else
		counts->probes++;
}

char *armed_text(char text[ARMED_TEXT], const struct armed_counts *counts)
{
	const char *calls = counts->cuda && counts->nccl ? "CUDA and NCCL call"
			    : counts->cuda               ? "CUDA call"
							 : "NCCL call";
	const char *simulated = counts->simulated ? "simulated " : "";
	const struct {
		uint64_t count;
		const char *how, *name;
	} rows[] = {{counts->sites, "", "site"},
		    {counts->cuda + counts->nccl, simulated, calls},
		    {counts->probes, "", "probe"}};
	size_t len = 0;

	snprintf(text, ARMED_TEXT, "nothing");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].count)
			len += (size_t)snprintf(text + len, ARMED_TEXT - len,
						"%s%" PRIu64 " %s%s%s", len ? ", " : "",
						rows[i].count, rows[i].how, rows[i].name,
						units_plural(rows[i].count, "", "s"));
	return text;
}

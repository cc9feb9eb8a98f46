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
	else if (!strcmp(site->category, "hip"))
		counts->hip++;
	else if (!strcmp(site->category, "nccl"))
		counts->nccl++;
	else
		counts->probes++;
}

char *armed_text(char text[ARMED_TEXT], const struct armed_counts *counts)
{
	const struct {
		uint64_t count;
		const char *name;
	} kinds[] = {{counts->cuda, "CUDA"}, {counts->hip, "HIP"}, {counts->nccl, "NCCL"}};
	char calls[32] = "";
	const char *simulated = counts->simulated ? "simulated " : "";
	const struct {
		uint64_t count;
		const char *how, *name;
	} rows[] = {{counts->sites, "", "site"},
		    {counts->cuda + counts->hip + counts->nccl, simulated, calls},
		    {counts->probes, "", "probe"},
		    {counts->functions, "Python ", "function"}};
	size_t len = 0;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].count)
			snprintf(calls + strlen(calls), sizeof(calls) - strlen(calls), "%s%s",
				 *calls ? " and " : "", kinds[i].name);
	strcat(calls, " call");
	snprintf(text, ARMED_TEXT, "nothing");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].count)
			len += (size_t)snprintf(text + len, ARMED_TEXT - len,
						"%s%" PRIu64 " %s%s%s", len ? ", " : "",
						rows[i].count, rows[i].how, rows[i].name,
						units_plural(rows[i].count, "", "s"));
	return text;
}

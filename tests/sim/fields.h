/* SPDX-License-Identifier: Apache-2.0 */
/* Parses settings with several numbers: "RANK:FACTOR:FROM:TO". */
#ifndef SIM_FIELDS_H
#define SIM_FIELDS_H

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>

#define SIM_FIELDS_MAX 4

/* Parses the numbers and returns how many there are. -1: malformed. */
static inline int sim_fields(const char *text, double fields[SIM_FIELDS_MAX])
{
	char *end;

	for (int count = 0; count < SIM_FIELDS_MAX && isdigit((unsigned char)*text); count++) {
		fields[count] = strtod(text, &end);
		if (!(fields[count] <= 1e15))
			return -1;
		if (!*end)
			return count + 1;
		if (*end != ':')
			return -1;
		text = end + 1;
	}
	return -1;
}

static inline bool sim_is_whole(double field)
{
	return field == (double)(long)field;
}

#endif

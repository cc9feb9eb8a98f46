// SPDX-License-Identifier: Apache-2.0
#include "cupti/settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SIM_CUPTI_SHARED
#define VERSION_USUAL "13.5"
#else
#define VERSION_USUAL "13.0"
#endif

static struct settings set;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Noreturn void wrong(const char *name, const char *text, const char *form)
{
	fprintf(stderr, "simulated CUPTI: %s=%s makes no sense: it is %s\n", name, text, form);
	exit(2);
}

static void version_read(void)
{
	static const struct {
		const char *name;
		uint32_t version;
	} versions[] = {{"12.4", 22}, {"12.9", 28}, {"13.0", 130001}, {"13.5", 130500}};
	const char *text = getenv("WAFFLE_SIM_CUPTI_VERSION");

	for (unsigned i = 0; i < 4; i++) {
		if (strcmp(text && *text ? text : VERSION_USUAL, versions[i].name) != 0)
			continue;
		set.version = versions[i].version;
		set.row = i;
		return;
	}
	wrong("WAFFLE_SIM_CUPTI_VERSION", text, "12.4, 12.9, 13.0 or 13.5");
}

static bool fault_read(const char *word)
{
	const struct {
		const char *name;
		uint64_t *every;
		bool *is;
	} rows[] = {
		{"zero", &set.zero, NULL},       {"reversed", &set.reversed, NULL},
		{"early", &set.early, NULL},     {"drop", &set.drop, NULL},
		{"unknown", &set.unknown, NULL}, {"shuffle", NULL, &set.shuffle},
		{"late", NULL, &set.late},       {"held", NULL, &set.held},
		{"shared", NULL, &set.shared},   {"clock", NULL, &set.other_clock},
		{"mig", NULL, &set.mig},
	};
	const char *colon = strchr(word, ':');
	size_t length = colon ? (size_t)(colon - word) : strlen(word);

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strlen(rows[i].name) != length || strncmp(rows[i].name, word, length) != 0)
			continue;
		if (rows[i].is)
			*rows[i].is = true;
		else
			*rows[i].every = colon ? strtoull(colon + 1, NULL, 10) : 0;
		if (colon && rows[i].is == &set.held)
			snprintf(set.holder, sizeof(set.holder), "%s", colon + 1);
		return rows[i].is || *rows[i].every;
	}
	return false;
}

static void settings_read(void)
{
	const char *text = getenv("WAFFLE_SIM_CUPTI"), *log = getenv("WAFFLE_SIM_CUPTI_LOG");
	char copy[256], *next = NULL;

	version_read();
	if (log)
		set.log = fopen(log, "ae");
	if (!text)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, ",", &next); word; word = strtok_r(NULL, ",", &next))
		if (!fault_read(word))
			wrong("WAFFLE_SIM_CUPTI", text,
			      "a list of zero:N, reversed:N, early:N, drop:N, unknown:N, shuffle, "
			      "late, held[:NAME], shared, clock and mig");
}

const struct settings *settings(void)
{
	pthread_once(&once, settings_read);
	return &set;
}

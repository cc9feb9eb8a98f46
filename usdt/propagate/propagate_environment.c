// SPDX-License-Identifier: Apache-2.0
/*
 * Environment variables as a carrier. A variable's name is that of the header in upper case, with
 * '_' for what a name can't have (OpenTelemetry, "Environment Variables as Context Propagation
 * Carriers").
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/propagate/propagate_formats.h"

#define NAME_SIZE 32

static void variable_name(const char *header, char name[NAME_SIZE])
{
	size_t i;

	for (i = 0; header[i] && i < NAME_SIZE - 1; i++)
		name[i] = header[i] == '-'                       ? '_'
			  : header[i] >= 'a' && header[i] <= 'z' ? (char)(header[i] - 'a' + 'A')
								 : header[i];
	name[i] = '\0';
}

/* ---- reading ---- */

static const char *variable_get(void *user, const char *header, size_t index, size_t *length)
{
	char name[NAME_SIZE];
	const char *value;

	(void)user;
	if (index)
		return NULL;
	variable_name(header, name);
	value = secure_getenv(name);
	if (value)
		*length = strlen(value);
	return value;
}

PROPAGATE_API bool waffle_propagate_from_environment(unsigned propagators,
						     struct waffle_wire_context *wire)
{
	static const struct waffle_carrier environment = {variable_get, NULL, NULL};

	return waffle_propagate_extract(propagators, &environment, wire);
}

/* ---- writing ---- */

/* Is called twice by inject: first to count, then to write. */
struct variables {
	size_t count, bytes; /* with the NULs */
	char **array;        /* NULL: only count */
	char *strings;
};

static int variable_set(void *user, const char *header, const char *value)
{
	size_t len = strlen(value) + 1, name_len;
	struct variables *variables = user;
	char name[NAME_SIZE];

	variable_name(header, name);
	name_len = strlen(name);
	if (variables->array) {
		char *at = variables->strings + variables->bytes;

		variables->array[variables->count] = at;
		memcpy(at, name, name_len);
		at[name_len] = '=';
		memcpy(at + name_len + 1, value, len);
	}
	variables->count++;
	variables->bytes += name_len + 1 + len;
	return 0;
}

static bool is_ours(const char *variable)
{
	char name[NAME_SIZE];

	for (size_t i = 0; propagate_names[i]; i++) {
		size_t len;

		variable_name(propagate_names[i], name);
		len = strlen(name);
		if (!strncmp(variable, name, len) && variable[len] == '=')
			return true;
	}
	return false;
}

PROPAGATE_API char **waffle_propagate_environment(unsigned propagators, char *const envp[],
						  waffle_context_t context,
						  const struct waffle_wire_context *wire)
{
	struct variables variables = {0, 0, NULL, NULL};
	const struct waffle_carrier carrier = {NULL, variable_set, &variables};
	size_t entries = 0, array_bytes;
	char **array;

	while (envp && envp[entries])
		entries++;
	waffle_propagate_inject(propagators, &carrier, context, wire);
	array_bytes = (entries + variables.count + 1) * sizeof(*array);
	array = malloc(array_bytes + variables.bytes);
	if (!array)
		return NULL;
	variables = (struct variables){0, 0, array, (char *)array + array_bytes};
	for (size_t i = 0; i < entries; i++)
		if (!is_ours(envp[i]))
			array[variables.count++] = envp[i];
	waffle_propagate_inject(propagators, &carrier, context, wire);
	array[variables.count] = NULL;
	return array;
}

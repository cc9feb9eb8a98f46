// SPDX-License-Identifier: Apache-2.0
#include "render/json/samples_json.h"

#include <stdio.h>

#include "util/syscall_names.h"

static void field_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && *text)
		json_string(json, text);
	else
		json_null(json);
}

/* A function that most samples are within; NULL: none. */
static void within_json(struct json *json, const char *key, const struct why *why,
			const struct sample_count *within)
{
	const struct sample_place *place;

	if (!within)
		return;
	place = sample_places_get(why->sample_places, within->place);
	json_key(json, key);
	json_object_begin(json);
	json_field_u64(json, "count", within->within);
	field_text(json, "function", strtab_get(why->texts, place->text));
	field_text(json, "module", strtab_get(why->texts, place->module));
	json_object_end(json);
}

static void phase_json(struct json *json, const struct why *why, const struct sample_count *phase)
{
	if (!phase)
		return;
	json_key(json, "runtime_work");
	json_object_begin(json);
	json_field_u64(json, "count", phase->within);
	json_field_string(json, "name", sample_place_phase(why->sample_places, phase->place));
	json_object_end(json);
}

static void place_json(struct json *json, const struct why *why, const struct sample_count *count)
{
	const struct sample_place *place = sample_places_get(why->sample_places, count->place);
	const char *name = NULL;
	char number[16];

	if (place->syscall >= 0) {
		snprintf(number, sizeof(number), "%d", place->syscall);
		name = syscall_name(why->model->meta->machine, place->syscall) ?: number;
	}
	json_object_begin(json);
	json_field_u64(json, "count", count->count);
	json_field_string(json, "mode", place->kernel ? "kernel" : "user");
	field_text(json, "function", strtab_get(why->texts, place->text));
	field_text(json, "module", strtab_get(why->texts, place->module));
	if (place->generator)
		json_field_string(json, "generator", strtab_get(why->texts, place->generator));
	field_text(json, "syscall", name);
	field_text(json, "spins", sample_spin_names[place->spin]);
	json_object_end(json);
}

void samples_json(struct json *json, const struct why *why, const struct sample_count *counts,
		  size_t len)
{
	if (!len)
		return;
	json_key(json, "samples");
	json_object_begin(json);
	json_field_u64(json, "count", sample_counts_total(counts, len));
	json_key(json, "places");
	json_array_begin(json);
	for (size_t i = 0; i < len && counts[i].count; i++)
		place_json(json, why, &counts[i]);
	json_array_end(json);
	within_json(json, "within", why, sample_counts_within(why->sample_places, counts, len));
	within_json(json, "part", why, sample_counts_part(why->sample_places, counts, len));
	within_json(json, "own", why, sample_counts_own(why->sample_places, counts, len));
	phase_json(json, why, sample_counts_phase(why->sample_places, counts, len));
	json_object_end(json);
}

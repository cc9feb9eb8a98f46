// SPDX-License-Identifier: Apache-2.0
/* Symptoms on the page: events whose origin the program declared, with the way to it. */
#include <inttypes.h>
#include <stdlib.h>

#include "analyze/origin/origin_symptoms.h"
#include "render/html/html_internal.h"
#include "render/text/origin_text.h"
#include "util/memory.h"

#define SYMPTOMS_MAX 20
#define ENDS_SHOWN 5
#define STORY_BYTES_MAX 16384

/* A long story ends with a whole line, and says that it is cut. */
static void story_print(const struct origin *origin, FILE *out)
{
	const struct why_view view = {.causes = ENDS_SHOWN};
	char *text = NULL;
	size_t len = 0;
	FILE *whole = memory_stream(&text, &len);

	origin_print_story(origin, &view, whole);
	memory_require(!fclose(whole));
	if (len > STORY_BYTES_MAX) {
		for (len = STORY_BYTES_MAX; len && text[len - 1] != '\n';)
			len--;
		fwrite(text, 1, len, out);
		fprintf(out, "  … shortened: why --event %016" PRIx64 " prints it whole\n",
			origin->symptom.id);
	} else {
		fwrite(text, 1, len, out);
	}
	free(text);
}

static void story_json(struct html_page *page, const struct origin *origin)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = memory_stream(&text, &len);

	story_print(origin, out);
	memory_require(!fclose(out));
	json_key(page->json, "story");
	json_string_len(page->json, text, len);
	free(text);
}

static void symptom_json(struct html_page *page, const struct origin *origin)
{
	const struct model_event *event = &page->model->events.data[origin->symptom.index];

	json_object_begin(page->json);
	html_field_text(page, "name", model_site(page->model, event->site)->name);
	json_field_hex64(page->json, "id", event->id);
	json_key(page->json, "origins");
	json_array_begin(page->json);
	for (size_t i = 0; i < origin->ends.len && i < ENDS_SHOWN; i++)
		json_hex64(page->json, origin->ends.data[i].node.id);
	json_array_end(page->json);
	story_json(page, origin);
	json_object_end(page->json);
}

void html_origins(struct html_page *page)
{
	struct origin_symptoms *symptoms = origin_symptoms_new(page->model, false, SYMPTOMS_MAX);

	json_key(page->json, "symptoms");
	json_array_begin(page->json);
	for (size_t i = 0; i < symptoms->origins.len; i++)
		symptom_json(page, symptoms->origins.data[i]);
	json_array_end(page->json);
	origin_symptoms_free(symptoms);
}

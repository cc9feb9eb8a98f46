/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a capture by the names of OpenTelemetry's resources
 * (opentelemetry.io/docs/specs/semconv/resource). */
#ifndef WAFFLE_EXPORT_BACKEND_PROCESSES_INTERNAL_H
#define WAFFLE_EXPORT_BACKEND_PROCESSES_INTERNAL_H

#include "export/process/full_record.h"
#include "model/model.h"

/* What an unfinished list of attributes is completed with; `text` lives as long as the list. */
struct attribute_list {
	struct waffle_value *values;
	size_t count, max;
};

/* An attribute with an empty text is left out, and so are those beyond `max`. */
void attribute_text(struct attribute_list *list, const char *key, const char *text);
void attribute_number(struct attribute_list *list, const char *key, uint64_t value);
void attribute_flag(struct attribute_list *list, const char *key, bool value);

struct process_facts;

struct process_facts *process_facts_open(const struct model *model);
void process_facts_close(struct process_facts *facts);
/* The attributes of a thread's process; they stay until process_facts_close(). */
const struct waffle_value *process_facts_of(struct process_facts *facts, uint32_t thread,
					    size_t *count);

#endif

// SPDX-License-Identifier: Apache-2.0
/* Arguments with long texts that many slices share. A sequence defines a text once. */
#include "export/perfetto/node_stacks_internal.h"
#include "export/perfetto/perfetto_internal.h"
#include "export/perfetto/slice_causes_internal.h"
#include "util/memory.h"

/* Numbers of stacks begin after those of traces, and those of causes after these. */
static const uint64_t first_iid[TEXT_TABLE_COUNT] = {
	[TEXT_STACKS] = 1ull << 40,
	[TEXT_CAUSES] = 1ull << 41,
};

static const char *text_get(const struct perfetto *p, enum text_table table, uint32_t number,
			    size_t *len)
{
	return table == TEXT_STACKS ? node_stacks_text(p->stacks, number, len)
				    : slice_causes_text(p->causes, number, len);
}

void event_refer(struct perfetto *p, struct sequence *sequence, uint32_t key, enum text_table table,
		 uint32_t number)
{
	struct text_sequences *defined = &p->text_sequences[table];
	Pf__Annotation *annotation;
	const char *text;
	size_t len;

	if (!number)
		return;
	annotation = event_annotate(&p->encoder, sequence, key);
	annotation->value_case = PF__ANNOTATION__VALUE_STRING_VALUE_IID;
	annotation->string_value_iid = first_iid[table] + number;
	while (defined->list.len <= number)
		vec_add(&defined->list, 0);
	if (defined->list.data[number] == sequence->id)
		return;
	defined->list.data[number] = sequence->id;
	text = text_get(p, table, number, &len);
	event_define_text(&p->encoder, first_iid[table] + number,
			  perfetto_text(&p->encoder, text, len));
}

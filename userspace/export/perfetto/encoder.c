// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto/encoder.h"

#include "util/memory.h"

void pf_encoder_begin(struct pf_encoder *p, FILE *out, const struct store_meta *meta)
{
	*p = (struct pf_encoder){
		.start_ts = meta->start_ts,
		.end_ts = UINT64_MAX,
		.to_boot = meta->boot_ns - meta->start_ts,
	};
	event_init(&p->event);
	packet_writer_begin(&p->writer, out);
	p->names.text = strtab_make();
	p->trace.id = ++p->sequences;
}

int pf_encoder_end(struct pf_encoder *p)
{
	int code = packet_writer_end(&p->writer);

	strtab_free(p->names.text);
	vec_free(&p->names.sites);
	for (int list = 0; list < NAME_LIST_COUNT; list++)
		vec_free(&p->names.defined[list]);
	event_free(&p->event);
	return code;
}

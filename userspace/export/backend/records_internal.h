/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans and events of a model as the encoders of chains take them (export/process/), with what
 * only a finished capture knows: links to other processes, scheduler times and causes.
 *
 *	struct model_records *records = model_records_open(model, service, err);
 *	while ((count = model_records_next(records, &pending, &list))) …
 *	model_records_close(records);
 */
#ifndef WAFFLE_EXPORT_BACKEND_RECORDS_INTERNAL_H
#define WAFFLE_EXPORT_BACKEND_RECORDS_INTERNAL_H

#include "export/process/full_record.h"
#include "export/process/pending_events.h"
#include "model/model.h"

#define MODEL_RECORDS_BATCH 512
/* Events inside of one span; the others become spans without duration, as those without a span do.
 * Servers limit the size of a span. */
#define MODEL_RECORDS_EVENTS_MAX 2048

struct model_records;

/* With `causes`, spans have their first cause. NULL with a message on failure. */
struct model_records *model_records_open(const struct model *model, bool causes, struct error *err);
void model_records_close(struct model_records *records);
/*
 * Makes the next records, at most MODEL_RECORDS_BATCH: spans in order of their begins, then events
 * that are in no span. The events of the spans are added to `pending`. All are valid until the next
 * call, before which `pending` must be empty. Counters are left out. Returns 0 at the end.
 */
size_t model_records_next(struct model_records *records, struct pending_events *pending,
			  struct full_record *const **list);
/* The same for the values of counters. */
size_t model_records_next_counters(struct model_records *records, struct full_record *const **list);
/* An event, log message or counter by its index in the model; valid until the next call of any of
 * these functions. */
const struct full_record *model_records_event(struct model_records *records, uint32_t event);
/* The number of records, with those inside of spans and without values of counters. */
uint64_t model_records_count(const struct model_records *records);

#endif

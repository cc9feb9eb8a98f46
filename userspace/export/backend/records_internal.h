/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spans and events of a model as the encoders of chains take them (export/process/), with what
 * only a finished capture knows: links to other processes, scheduler times and causes.
 *
 *	struct model_records *records = model_records_open(model);
 *	result = model_records_each(records, true, &pending, batch_send, arg, err);
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

struct model_records *model_records_open(const struct model *model);
void model_records_close(struct model_records *records);
/* Takes records, which are valid during the call, and empties `pending`. Non-zero: take no others.
 */
typedef int (*model_records_fn)(struct full_record *const *list, size_t count, void *arg);
/*
 * Makes all records, in batches of at most MODEL_RECORDS_BATCH: spans in order of their begins,
 * then events that are in no span. The events of the spans are added to `pending`. Counters are
 * left out.
 *
 * With `causes`, spans have their first cause. To find the causes takes longer than all the rest,
 * so a batch is taken as soon as its own spans are explained. That way a server works on it while
 * later spans are explained. Returns 0, also if `take` ended it, or a negative errno with a
 * message.
 */
int model_records_each(struct model_records *records, bool causes, struct pending_events *pending,
		       model_records_fn take, void *arg, struct error *err);
/* Makes the next values of counters, at most MODEL_RECORDS_BATCH; valid until the next call.
 * Returns 0 at the end. */
size_t model_records_next_counters(struct model_records *records, struct full_record *const **list);
/* An event, log message or counter by its index in the model; valid until the next call of any of
 * these functions. */
const struct full_record *model_records_event(struct model_records *records, uint32_t event);
/* The number of records, with those inside of spans and without values of counters. */
uint64_t model_records_count(const struct model_records *records);

#endif

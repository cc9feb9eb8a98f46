/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_EXPORT_PROCESS_RECORD_JSON_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_RECORD_JSON_INTERNAL_H

#include "export/process/bytes_internal.h"
#include "export/process/full_record.h"

/* The text of a second, which records of the same second share. Zero-initialised it is empty. */
struct record_json_time {
	uint64_t second;
	char text[32];
};

/* Appends a record as one line of JSON, with the keys of docs/ndjson.md and "time", the time of the
 * begin as RFC 3339 in UTC. Safe for terminals. */
void record_json(struct out_bytes *out, const struct full_record *full,
		 struct record_json_time *cache);

#endif

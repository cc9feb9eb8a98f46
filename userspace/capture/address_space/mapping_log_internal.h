/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the mappings of processes to the capture, each once, so that addresses can be named later.
 * A mapping of code has the facts of its file: the build-id and the segments. It waits while its
 * file is being parsed.
 */
#ifndef WAFFLE_CAPTURE_ADDRESS_SPACE_MAPPING_LOG_INTERNAL_H
#define WAFFLE_CAPTURE_ADDRESS_SPACE_MAPPING_LOG_INTERNAL_H

#include "store/store.h"
#include "target/process/process.h"

struct mapping_log;

/* The known mappings of a process, in lists that address_space_map() changes. */
struct known_mappings {
	struct mappings now;      /* as read last, with what the kernel reported since */
	struct mappings reported; /* only what the kernel reported */
	uint64_t read_ts;         /* time of the last read; 0: never */
	uint64_t last_ts;         /* time of the last read or later report; 0: none */
};

/* When and how a mapping was seen. */
struct sighting {
	pid_t pid;
	uint64_t ts;
	bool reported; /* by the kernel, not read from /proc */
};

int mapping_log_open(struct mapping_log **log, struct store_writer *writer, struct error *err);
void mapping_log_close(struct mapping_log *log);

/*
 * Writes a mapping, unless the capture has it already, and notes that in mapping->written. `known`:
 * of the process, before the mapping is added to it. The file of a report may be inaccessible, for
 * example in a mount namespace whose processes are gone. Then the mapping is written without a
 * path, which might name another file here. Such mappings and anonymous code are only written where
 * they replace a file.
 */
int mapping_log_add(struct mapping_log *log, const struct known_mappings *known,
		    struct mapping *mapping, struct sighting seen, struct error *err);

/* Writes mappings that waited until their files were parsed. With `all`, also writes the others,
 * without the facts of their files. */
int mapping_log_late(struct mapping_log *log, bool all, struct error *err);
/* Number of mappings that were written without the facts of their files, since these were not
 * parsed in time, or too many waited for that. */
uint64_t mapping_log_unparsed(const struct mapping_log *log);

#endif

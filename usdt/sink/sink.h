/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the collector delivers what it records: a file in one of the formats, or a stage in front
 * of another sink. Only the collector's thread calls it after it has been opened.
 *
 *	rings ──→ gather ──→ filter ──→ sink ──→ (sink …) ──→ file
 *
 * All functions that return an int return 0 or a negative errno with a message. After an error
 * other than -EINVAL of sink_record(), the collector records no more and only discards or closes.
 */
#ifndef WAFFLE_USDT_SINK_SINK_H
#define WAFFLE_USDT_SINK_SINK_H

#include <stdint.h>

#include "store/store.h"
#include "util/error.h"

struct sink;

struct sink_type {
	/* Sites are numbered 0, 1, … in the order of adding. The site lives as long as the sink. */
	int (*add_site)(struct sink *sink, const struct site_info *site, struct error *err);
	/* Takes a record, in the order of time. It is copied if needed. -EINVAL: the sink has no
	 * use for this one, and is as it was. */
	int (*record)(struct sink *sink, const struct waffle_rec *rec, struct error *err);
	/* Everything so far is to survive a kill soon. `counts` has a row for each source
	 * of records. */
	int (*flush)(struct sink *sink, const struct store_counts *counts, struct error *err);
	/* Waits until what was flushed survives a kill, as far as the file system answers. NULL: it
	 * does as soon as it is flushed. */
	int (*settle)(struct sink *sink, struct error *err);
	/* Completes the output and frees the sink, also on an error. */
	int (*close)(struct sink *sink, uint64_t end_ts, const struct store_counts *counts,
		     struct error *err);
	/* Frees the sink and leaves what was written so far. */
	void (*discard)(struct sink *sink);
};

/* The first member of each sink. */
struct sink {
	const struct sink_type *type;
};

static inline int sink_add_site(struct sink *sink, const struct site_info *site, struct error *err)
{
	return sink->type->add_site(sink, site, err);
}

static inline int sink_record(struct sink *sink, const struct waffle_rec *rec, struct error *err)
{
	return sink->type->record(sink, rec, err);
}

static inline int sink_flush(struct sink *sink, const struct store_counts *counts,
			     struct error *err)
{
	return sink->type->flush(sink, counts, err);
}

static inline int sink_settle(struct sink *sink, struct error *err)
{
	return sink->type->settle ? sink->type->settle(sink, err) : 0;
}

static inline int sink_close(struct sink *sink, uint64_t end_ts, const struct store_counts *counts,
			     struct error *err)
{
	return sink->type->close(sink, end_ts, counts, err);
}

static inline void sink_discard(struct sink *sink)
{
	sink->type->discard(sink);
}

/* What a file says of the process that writes it. Strings and structs are only read while it is
 * opened. */
struct sink_origin {
	struct store_meta meta;
	struct store_process process;
};

/* Creates a file in the format of its extension. From then on a file of that name is left, however
 * the program ends. */
int sink_open(struct sink **sink, const char *path, const struct sink_origin *origin,
	      struct error *err);

/* Opens a chain of processors (export/process/chain.h) as a sink. The chain gets all records except
 * those of the collector's own thread. `name` is what messages call the chain; it has to stay. */
int sink_process_open(struct sink **sink, const char *text, const char *name,
		      const uint32_t *collector_tid, const struct sink_origin *origin,
		      struct error *err);
/* Adds a file to a chain's sink, which then owns the file. The file gets every record, whatever the
 * chain passes on. */
void sink_process_add_file(struct sink *chain, struct sink *file);

/* In the handler of a signal that ends the program, or may: the next settle also writes the metrics
 * and sends the batches of the chain. */
void sink_process_hurry(void);

/* The sink of each format. */
int sink_store_open(struct sink **sink, const char *path, const struct sink_origin *origin,
		    struct error *err);

#endif

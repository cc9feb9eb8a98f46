/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: a capture that keeps its last seconds in memory, and writes them to a file
 * when something happens.
 *
 *	records ──→ stages ──→ store_writer (in memory) ──→ segment │ segment │ current segment
 *	               └─────→ trigger ──→ waits for --after ──→ a process writes the file
 *
 * A segment is an eighth of the window. At its begin the states of all threads are read, so that a
 * file can begin with each of them. The file is written by a forked process, which has a copy of
 * the memory: the capture goes on, also if a file system does not answer.
 */
#ifndef WAFFLE_CAPTURE_RECORDER_INTERNAL_H
#define WAFFLE_CAPTURE_RECORDER_INTERNAL_H

#include "bpf/record.h"
#include "capture/session_options.h"
#include "store/store.h"
#include "target/elf/site.h"
#include "util/error.h"

struct recorder;

/* What the recorder needs of its capture. */
struct recorder_uses {
	const struct recorder_options *options;
	struct store_writer *writer; /* of store_writer_open_memory() */
	/* Of the files, but for their times and the facts of the host. The strings outlive the
	 * recorder, except `sources`. */
	struct store_meta meta;
	const char *stem; /* names of files begin with it: STEM-1.waffle */
	/* Reads the states of threads and calls store_writer_append_head() with each. */
	int (*states)(void *arg);
	/* Called before a file is written: adds what its tables are to have of this moment. */
	void (*describe)(void *arg);
	/* Prints a line. `failed`: also if the user wants no notices. */
	void (*say)(const char *line, bool failed, void *arg);
	void *arg;
};

int recorder_open(struct recorder **recorder, const struct recorder_uses *uses, struct error *err);
void recorder_close(struct recorder *recorder);

/* Follows a record that is written, as trigger_look(). */
void recorder_look(struct recorder *recorder, struct waffle_rec *rec, const struct site_info *site,
		   uint64_t now);
/* The user asks for a file. */
void recorder_request(struct recorder *recorder, uint64_t now);

/* Call it after each round of the drain. All records before `delivered_ts` were written. */
int recorder_turn(struct recorder *recorder, uint64_t delivered_ts, uint64_t now,
		  struct error *err);
/* Whether all files that may be written are. */
bool recorder_is_done(const struct recorder *recorder);
/* At the end of the capture: writes the file that is waiting for its time. */
void recorder_finish(struct recorder *recorder, uint64_t end_ts);
/* Whether a file is still being written. */
bool recorder_is_writing(struct recorder *recorder);
/* Prints what was triggered, at the end. */
void recorder_summary(struct recorder *recorder);
/* Number of files that could not be written. */
unsigned recorder_failures(const struct recorder *recorder);

#endif

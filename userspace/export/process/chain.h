/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain of processors: takes the records of a capture in the order of time, while they come or
 * from a file. One thread uses it. docs/processors.md is the guide.
 *
 *	records ──→ joiner ──→ processor ──→ processor ──→ …
 */
#ifndef WAFFLE_EXPORT_PROCESS_CHAIN_H
#define WAFFLE_EXPORT_PROCESS_CHAIN_H

#include <stdio.h>

#include "bpf/record.h"
#include "export/process/chain_host.h"
#include "target/elf/site.h"
#include "util/error.h"

struct chain;

/* Parses the text and opens what its processors write to. -EINVAL with a message that points at the
 * place for a text that is not valid. The host is copied; its strings too. */
int chain_open(struct chain **chain, const char *text, const struct chain_host *host,
	       struct error *err);
/* Checks the text and opens the libraries that its processors need. That takes the loader's lock.
 * So a caller that holds locks during chain_open() calls this first, without the locks. */
int chain_prepare(const char *text, const char *origin, struct error *err);
/* Whether processes can have this chain at once: no file of a fixed name is replaced by each of
 * them. False also for a text that is not valid. */
bool chain_is_shareable(const char *text);
/* Takes a record. `site`: that of a hit; NULL if a hit with the same number had it before. */
void chain_record(struct chain *chain, const struct waffle_rec *rec, const struct site_info *site);
/* To be called about once a second. */
void chain_tick(struct chain *chain, uint64_t now_ns);
/* What came so far is to survive the end of the program. Takes a moment at most. */
void chain_flush(struct chain *chain);
/* The program dies by a signal, and may not: writes metrics and sends what is ready, but waits at
 * most `wait_ns` for that. Spans that are open stay so. */
void chain_save(struct chain *chain, uint64_t wait_ns);
/* Spans that are open at `end_ts` are unfinished. Waits at most `wait_ns` for exporters, says what
 * was lost, and frees. Returns 0, or -EIO: records were lost. */
int chain_close(struct chain *chain, uint64_t end_ts, uint64_t wait_ns);

/* Prints "PROGRAM: LINE" on standard error, safe for a terminal. A full pipe that nobody reads gets
 * nothing, rather than hold up the caller. For `say` of a host. */
void chain_say(const char *program, const char *line);

/* The name of each processor, with its help; NULL: there are no more. For the help of an option. */
const char *chain_processor(size_t index, const char **help);
/* Writes the tables of docs/processors.md. */
void chain_help_markdown(FILE *out);

#endif

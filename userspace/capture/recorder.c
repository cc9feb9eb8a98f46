// SPDX-License-Identifier: Apache-2.0
#include "capture/recorder_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/trigger_internal.h"
#include "filter/filter.h"
#include "store/this_host.h"
#include "util/clock.h"
#include "util/privileges.h"
#include "util/units.h"

#define SEGMENTS 8 /* of the window, and of the memory */
#define SEGMENT_NS_MIN 1000000000ull
#define NUMBER_MAX 100000 /* of a file */

/* What the process that writes a file tells, in memory that it shares. */
struct outcome {
	int code; /* errno; 0: the file is complete */
	char message[sizeof(((struct error *)0)->message)];
	char path[PATH_MAX];
	uint64_t records, lost, bytes, from_ts, to_ts;
	unsigned number;
};

struct recorder {
	struct recorder_uses uses;
	struct trigger *trigger; /* NULL: only the user triggers */
	char sources[SOURCES_TEXT];
	struct this_host host;
	struct outcome *outcome;
	pid_t writing;       /* 0: no file is being written */
	bool pending;        /* a file will be written … */
	uint64_t pending_ts; /* … for what happened then … */
	char reason[TRIGGER_TEXT + 256];
	uint64_t quiet_until; /* end of the cool-down */
	uint64_t missed;      /* matches in it that were not reported yet */
	uint64_t missed_all;
	uint64_t segment_ns; /* when the current segment began */
	unsigned files, failures, number;
};

int recorder_open(struct recorder **result, const struct recorder_uses *uses, struct error *err)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	int code = 0;

	*result = recorder;
	if (!recorder)
		return error_set(err, ENOMEM, "out of memory");
	recorder->uses = *uses;
	snprintf(recorder->sources, sizeof(recorder->sources), "%s", uses->meta.sources);
	recorder->segment_ns = clock_monotonic_ns();
	recorder->outcome = mmap(NULL, sizeof(*recorder->outcome), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (recorder->outcome == MAP_FAILED) {
		recorder->outcome = NULL;
		return error_set(err, ENOMEM, "out of memory");
	}
	if (uses->options->trigger)
		code = trigger_open(&recorder->trigger, uses->options->trigger, err);
	return code ?: store_writer_begin_segment(uses->writer, uses->meta.start_ts, err);
}

void recorder_close(struct recorder *recorder)
{
	if (!recorder)
		return;
	trigger_free(recorder->trigger);
	if (recorder->outcome)
		munmap(recorder->outcome, sizeof(*recorder->outcome));
	free(recorder);
}

static void say(struct recorder *recorder, bool failed, const char *line)
{
	recorder->uses.say(line, failed, recorder->uses.arg);
}

/* ---- triggers ---- */

bool recorder_is_done(const struct recorder *recorder)
{
	return recorder->files >= recorder->uses.options->max_files && !recorder->pending &&
	       !recorder->writing;
}

static void pending_set(struct recorder *recorder, uint64_t ts)
{
	char line[sizeof(recorder->reason) + 64];

	recorder->pending = true;
	recorder->pending_ts = ts;
	recorder->quiet_until = ts + recorder->uses.options->cooldown_ns;
	recorder->files++;
	snprintf(line, sizeof(line), "triggered by %s", recorder->reason);
	say(recorder, false, line);
}

void recorder_look(struct recorder *recorder, struct waffle_rec *rec, const struct site_info *site,
		   uint64_t now)
{
	const struct recorder_options *options = recorder->uses.options;
	const struct trigger_match *match =
		recorder->trigger ? trigger_look(recorder->trigger, rec, site, now) : NULL;

	if (!match || recorder->files >= options->max_files)
		return;
	if (recorder->pending || match->ts < recorder->quiet_until) {
		recorder->missed++;
		recorder->missed_all++;
		return;
	}
	snprintf(recorder->reason, sizeof(recorder->reason), "%s: %.200s", match->text,
		 filter_source(options->trigger));
	pending_set(recorder, match->ts);
}

void recorder_request(struct recorder *recorder, uint64_t now)
{
	if (recorder->pending || recorder->files >= recorder->uses.options->max_files)
		return;
	snprintf(recorder->reason, sizeof(recorder->reason), "SIGUSR1");
	pending_set(recorder, now);
}

/* ---- the process that writes a file ---- */

/* Closes all descriptors of the tracer: probes must be released when the tracer ends, also while
 * this process waits for a file system. */
static void become_writer(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "waffle-writer");
	privileges_keep_files();
	close_range(0, ~0u, 0);
	/* Descriptors 0 to 2 are opened, so that no file gets their numbers. */
	if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2)
		_exit(1);
}

/* The first name that no file has. */
static int file_open(struct store_writer **file, struct outcome *outcome, const char *stem,
		     const struct store_meta *meta, struct error *err)
{
	int code = -EEXIST;

	for (; code == -EEXIST && outcome->number < NUMBER_MAX; outcome->number++) {
		if (snprintf(outcome->path, sizeof(outcome->path), "%s-%u.waffle", stem,
			     outcome->number) >= (int)sizeof(outcome->path))
			return error_set(err, ENAMETOOLONG, "%s: the name is too long", stem);
		code = store_writer_open_new(file, outcome->path, meta, err);
	}
	return code;
}

static int file_write(struct recorder *recorder, const struct store_meta *meta, uint64_t end_ts,
		      struct error *err)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct outcome *outcome = recorder->outcome;
	struct store_writer *file;
	int code = file_open(&file, outcome, recorder->uses.stem, meta, err);

	if (code)
		return code;
	code = store_writer_dump(recorder->uses.writer, file, counts, err);
	if (code) {
		store_writer_discard(file);
		return code;
	}
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		outcome->records += counts[i].delivered;
		outcome->lost += counts[i].lost;
	}
	store_writer_finish(file, end_ts, counts);
	outcome->bytes = store_writer_bytes(file);
	return store_writer_close(file, end_ts, counts, err);
}

/* The META of a file that begins at `from_ts`. The three clocks are read now, since the machine may
 * have been suspended or its wall clock been set since the start. */
static struct store_meta meta_make(struct recorder *recorder, uint64_t from_ts)
{
	const struct store_meta *all = &recorder->uses.meta;
	struct store_meta meta = this_host_meta(&recorder->host);
	uint64_t ago = meta.start_ts > from_ts ? meta.start_ts - from_ts : 0;

	meta.start_ts -= ago;
	meta.boot_ns -= ago;
	meta.real_ns -= ago;
	meta.command = all->command;
	meta.filter = all->filter;
	meta.sources = recorder->sources;
	meta.cpu_count = all->cpu_count;
	meta.sched = all->sched;
	meta.trigger = recorder->reason;
	meta.trigger_ts = recorder->pending_ts;
	return meta;
}

static _Noreturn void writer_run(struct recorder *recorder, uint64_t end_ts)
{
	struct outcome *outcome = recorder->outcome;
	struct store_meta meta = meta_make(recorder, outcome->from_ts);
	struct error err = ERROR_INIT;

	become_writer();
	outcome->code = -file_write(recorder, &meta, end_ts, &err);
	memcpy(outcome->message, err.message, sizeof(outcome->message));
	_exit(0);
}

static void file_begin(struct recorder *recorder, uint64_t end_ts)
{
	struct outcome *outcome = recorder->outcome;
	char line[128];

	*outcome = (struct outcome){
		.code = EPIPE,
		.from_ts = store_writer_kept(recorder->uses.writer).from_ts,
		.to_ts = end_ts,
		.number = recorder->number ?: 1,
	};
	recorder->pending = false;
	recorder->uses.describe(recorder->uses.arg);
	recorder->writing = fork();
	if (!recorder->writing)
		writer_run(recorder, end_ts);
	if (recorder->writing < 0) {
		recorder->writing = 0;
		recorder->failures++;
		snprintf(line, sizeof(line), "fork: %s; the file was not written", strerror(errno));
		say(recorder, true, line);
	}
}

static void file_report(struct recorder *recorder)
{
	const struct outcome *outcome = recorder->outcome;
	char line[PATH_MAX + 512], records[UNITS_TEXT], lost[UNITS_TEXT], duration[UNITS_TEXT],
		bytes[UNITS_TEXT], missed[64] = "";

	recorder->number = outcome->number;
	if (outcome->code) {
		recorder->failures++;
		snprintf(line, sizeof(line), "%s",
			 outcome->message[0] ? outcome->message
					     : "the process that writes the file was killed");
		say(recorder, true, line);
		return;
	}
	if (recorder->missed)
		snprintf(missed, sizeof(missed), "; %s more matched meanwhile",
			 units_format_count(records, recorder->missed));
	recorder->missed = 0;
	snprintf(line, sizeof(line), "%s: %s records of %s, %s lost, %s%s", outcome->path,
		 units_format_count(records, outcome->records),
		 units_format_duration(duration, outcome->to_ts > outcome->from_ts
							 ? outcome->to_ts - outcome->from_ts
							 : 0),
		 units_format_count(lost, outcome->lost), units_format_bytes(bytes, outcome->bytes),
		 missed);
	say(recorder, false, line);
}

bool recorder_is_writing(struct recorder *recorder)
{
	int status;

	if (!recorder->writing)
		return false;
	if (waitpid(recorder->writing, &status, WNOHANG) != recorder->writing)
		return true;
	recorder->writing = 0;
	file_report(recorder);
	return false;
}

void recorder_summary(struct recorder *recorder)
{
	const struct recorder_options *options = recorder->uses.options;
	unsigned written = recorder->files - recorder->failures - (recorder->writing != 0);
	char line[256], missed[UNITS_TEXT];

	if (!recorder->files)
		snprintf(line, sizeof(line), "%s; no file was written",
			 options->trigger ? "nothing matched the trigger" : "no SIGUSR1 arrived");
	else
		snprintf(line, sizeof(line), "%u %s written; %s more %s in a cool-down", written,
			 units_plural(written, "file was", "files were"),
			 units_format_count(missed, recorder->missed_all),
			 units_plural(recorder->missed_all, "match was", "matches were"));
	say(recorder, false, line);
}

unsigned recorder_failures(const struct recorder *recorder)
{
	return recorder ? recorder->failures : 0;
}

/* ---- segments ---- */

static int segment_begin(struct recorder *recorder, uint64_t delivered_ts, uint64_t now,
			 struct error *err)
{
	int code = store_writer_begin_segment(recorder->uses.writer, delivered_ts, err);

	recorder->segment_ns = now;
	return code ?: recorder->uses.states(recorder->uses.arg);
}

static int segments_turn(struct recorder *recorder, uint64_t delivered_ts, uint64_t now,
			 struct error *err)
{
	const struct recorder_options *options = recorder->uses.options;
	struct store_kept kept = store_writer_kept(recorder->uses.writer);
	uint64_t length = options->window_ns / SEGMENTS;
	uint64_t last = recorder->pending ? recorder->pending_ts : delivered_ts;
	int code = 0;

	length = length > SEGMENT_NS_MIN ? length : SEGMENT_NS_MIN;
	if (now - recorder->segment_ns >= length ||
	    kept.segment_bytes > options->memory_bytes / SEGMENTS)
		code = segment_begin(recorder, delivered_ts, now, err);
	store_writer_drop(recorder->uses.writer,
			  last > options->window_ns ? last - options->window_ns : 0,
			  options->memory_bytes);
	store_writer_compact(recorder->uses.writer);
	return code;
}

int recorder_turn(struct recorder *recorder, uint64_t delivered_ts, uint64_t now, struct error *err)
{
	const struct recorder_options *options = recorder->uses.options;

	if (!recorder_is_writing(recorder) && recorder->pending &&
	    delivered_ts >= recorder->pending_ts + options->after_ns)
		file_begin(recorder, delivered_ts);
	return segments_turn(recorder, delivered_ts, now, err);
}

void recorder_finish(struct recorder *recorder, uint64_t end_ts)
{
	if (recorder->pending && !recorder_is_writing(recorder))
		file_begin(recorder, end_ts);
}

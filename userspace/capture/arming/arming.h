/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arms sites and calls in the targets of a session. It keeps one entry per file, identified by
 * device and inode, and numbers the file's sites for the capture. It arms a file separately in each
 * process, so that other programs never hit its probes.
 */
#ifndef WAFFLE_CAPTURE_ARMING_ARMING_H
#define WAFFLE_CAPTURE_ARMING_ARMING_H

#include "capture/address_space/address_spaces.h"
#include "capture/arming/armed.h"
#include "capture/session_options.h"
#include "store/store.h"

struct arming;

/* `options` outlive the result. `plan` decides how each site is recorded; NULL: all are armed,
 * without a filter. */
int arming_open(struct arming **arming, struct kernel *kernel, struct address_spaces *spaces,
		struct store_writer *writer, const struct session_options *options,
		struct plan *plan, struct error *err);

/* From now on processes with libwaffle are told by which way their hits are to come. `transport`
 * outlives the result. */
struct transport;
void arming_use_transport(struct arming *arming, struct transport *transport);

/* Arms the tracepoints among the calls. They are in no file. */
int arming_tracepoints(struct arming *arming, struct error *err);

/*
 * Arms the files that a process has mapped, unless they are armed already. -ESRCH: it is gone. A
 * single file that cannot be armed stays dormant, and arming_warning() reports it. A file that is
 * still being parsed is omitted: see arming_left_out().
 */
int arming_scan(struct arming *arming, pid_t pid, struct error *err);

/* Arms the libraries that a new program will load, before it maps them. Best effort. */
void arming_scan_needed(struct arming *arming, pid_t pid);

/*
 * Arms libraries that a process may open later, so that their first calls are recorded. These are
 * the libraries of descriptions, found where its loader would find them. They count once they are
 * mapped, or called. Best effort; a file that is written to is disarmed again.
 */
void arming_expect(struct arming *arming, pid_t pid);
/* Readable when a file changes on disk that is armed or that a known program loads. Then call
 * arming_changed(). -1: nothing is watched. */
int arming_changes_fd(const struct arming *arming);
void arming_changed(struct arming *arming);
/* Reports messages about such changes, each line once. */
void arming_notices(struct arming *arming, void (*say)(const char *line, void *arg), void *arg);

/*
 * Arms a program, open as `fd`, and the libraries that it will load, in a process that is about to
 * execute it. Calls `each`, unless it is NULL, with each of these files the first time. Best
 * effort: other files are armed when they are mapped. Returns whether there is anything to arm.
 */
typedef void (*arming_file_fn)(int fd, const char *path, void *arg);
bool arming_program(struct arming *arming, pid_t pid, int fd, arming_file_fn each, void *arg);

/* Arms a forked child like its parent. -ESRCH: the child is gone; -ENOENT: the parent is unknown,
 * so scan the child. Otherwise returns the number of files. */
int arming_fork(struct arming *arming, pid_t parent, pid_t child);

/* Returns what was omitted since the last call because it is still being parsed. Repeat the
 * operation when worker_queue_fd() is readable. */
enum arming_lack {
	ARMING_COMPLETE,
	ARMING_LACKS_EXPECTED, /* only files that may be mapped later: arming_expect() */
	ARMING_LACKS_FILES,
};
enum arming_lack arming_left_out(struct arming *arming);

/*
 * Arms files whose loader had not finished at the last check, in processes where it has now. Call
 * it once per round, and at the latest after arming_loading_ms().
 */
void arming_loaded(struct arming *arming);
/* Arms files that were refused while some process kept its mmap_lock, until `until_ns`, but at
 * least one. arming_loading_ms() is 0 if some are left. */
void arming_retry(struct arming *arming, uint64_t until_ns);
int arming_loading_ms(const struct arming *arming, int most);
/* Reports that a process executes a new program. Call it before scanning the process. What was
 * armed from next_ns on is for the program after it. */
void arming_began(struct arming *arming, pid_t pid, uint64_t next_ns);
/* Whether the arming of a process waits until its loader has finished. */
bool arming_is_late(const struct arming *arming, pid_t pid);

/* Whether a file is armed in this process alone. */
bool arming_has(const struct arming *arming, pid_t pid);

/* Number of times that a file was armed in a process. */
uint64_t arming_arm_count(const struct arming *arming);

/* Forgets a process that is gone, or that has lost its probes. An exec by a thread other than the
 * main thread removes them. */
void arming_forget(struct arming *arming, pid_t pid);

/* A process executes another program, now or next. If that one is in a sandbox, which could end it
 * for making a ring, libwaffle's probes in it are armed again for the kernel's way by the next
 * arming_scan() or arming_program(). */
void arming_confine(struct arming *arming, pid_t pid);

/* Begins to disarm everything: kernel_is_disarmed() tells when that is done. */
void arming_release(struct arming *arming);
void arming_close(struct arming *arming);

/* Given the address of a span's begin probe, returns the internal number of its site.
 * WAFFLE_SITE_UNKNOWN if unknown. */
uint32_t arming_site_at(struct arming *arming, pid_t pid, uint64_t probe_addr);

/* Adds a site that is in no file, and returns its internal number. It lives as long as `arming`.
 * WAFFLE_SITE_UNKNOWN: there are too many, or out of memory. */
uint32_t arming_add_name(struct arming *arming, const struct site_info *site);

/* The number of a site in the capture. */
uint32_t arming_number(struct arming *arming, uint32_t site);

/* A site by its internal number, which the kernel's records use. */
struct arming_site {
	const struct site_info *info;     /* as written to the capture */
	const struct site_info *original; /* as in the file and in the kernel's records */
	struct site_info *kept;           /* allocated `info` if keys are omitted */
	uint32_t redacted;                /* mask of the omitted keys: redact_record() */
	uint32_t number;                  /* in the capture; WAFFLE_SITE_UNKNOWN: not written yet */
	bool concerns;                    /* code_names_concern() */
};
const struct arming_site *arming_site(const struct arming *arming, uint32_t number);
/* Whether any site concerns functions. */
bool arming_concerns_functions(const struct arming *arming);

/* Counts of what is armed. */
struct armed_counts arming_counts(const struct arming *arming);

/* Number of sites of the mapped files and of tracepoints, and how many of them are armed because
 * they can match. */
uint64_t arming_site_count(const struct arming *arming);
uint64_t arming_match_count(const struct arming *arming);
/* The first names of sites, in quotes: "'a', 'b', …". `near`: if not NULL, only names similar to
 * it. Names of counters only if `counters`. */
void arming_names(const struct arming *arming, const char *near, bool counters, char *text,
		  size_t size);
/* Whether a file could not be read for lack of a permission, or since its file system does not
 * answer. So it may have sites. arming_warning() may name the reason. */
bool arming_unread(const struct arming *arming);
/* The first file that could not be armed, and why. NULL: none. */
const char *arming_warning(const struct arming *arming);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sites and calls of which files are armed for the targets of a session. Knows every file
 * once, by device and inode, gives its sites their numbers in the capture, and arms it in each
 * process of its own, so that other programs never hit its probes.
 */
#ifndef WAFFLE_CAPTURE_ARMING_H
#define WAFFLE_CAPTURE_ARMING_H

#include "call/call.h"
#include "capture/armed.h"
#include "capture/stack_choice.h"
#include "filter/plan.h"
#include "probe/kernel.h"
#include "store/store.h"

struct arming;

struct arming_options {
	struct plan *plan; /* what is done with each site; NULL: all are armed, nothing is decided
			    */
	struct call_set *calls;      /* NULL: none are looked for */
	struct stack_choice *stacks; /* whose stacks are taken; NULL: none's */
	struct redaction *redaction; /* keys that are left out of sites; NULL: none */
	bool sites;                  /* those of macros are armed */
	bool follow;     /* many processes may come, of which most have nothing to arm */
	bool everywhere; /* files are armed in all processes of the machine */
	bool may_widen;  /* functions, too, where they can't be armed in one process alone */
};

int arming_open(struct arming **arming, struct kernel *kernel, struct store_writer *writer,
		const struct arming_options *options, struct error *err);

/* Arms the tracepoints among the calls, which are in no file. */
int arming_tracepoints(struct arming *arming, struct error *err);

/*
 * Arms what a process has mapped and is not armed yet. -ESRCH: it is gone. A single file that can't
 * be armed is remembered in arming_warning() and left dormant. One that is still being parsed is
 * left out: see arming_left_out().
 */
int arming_scan(struct arming *arming, pid_t pid, struct error *err);

/* Arms the libraries that a new program will load, before it maps them. Best effort. */
void arming_scan_needed(struct arming *arming, pid_t pid);

/*
 * Arms libraries that a process may open later, so that their first calls are seen: those that
 * descriptions name, where its loader would find them. They count when they are mapped, or called.
 * Best effort; a file that is written to is disarmed again.
 */
void arming_expect(struct arming *arming, pid_t pid);
/* Readable when a file that is armed, or that a known program loads, changes on disk; then
 * arming_changed() is to be called. -1: none. */
int arming_changes_fd(const struct arming *arming);
void arming_changed(struct arming *arming);
/* What is to be said of that, each line once. */
void arming_notices(struct arming *arming, void (*say)(const char *line, void *arg), void *arg);

/*
 * Arms a program, open as fd, and the libraries that it will load, in a process that is about to
 * execute it. Calls `each`, unless NULL, with each of these files the first time. Best effort:
 * what is not found here is armed when it is mapped. Whether there is anything to arm.
 */
typedef void (*arming_file_fn)(int fd, const char *path, void *arg);
bool arming_program(struct arming *arming, pid_t pid, int fd, arming_file_fn each, void *arg);

/* Arms in a forked child what is armed in its parent. -ESRCH: the child is gone; -ENOENT: nothing
 * is known of the parent, so the child is to be scanned. Otherwise how many files. */
int arming_fork(struct arming *arming, pid_t parent, pid_t child);

/* What was left out since the last call, as it is still being parsed. The same is to be done again
 * when worker_queue_fd() is readable. */
enum arming_lack {
	ARMING_COMPLETE,
	ARMING_LACKS_EXPECTED, /* only files that may be mapped later: arming_expect() */
	ARMING_LACKS_FILES,
};
enum arming_lack arming_left_out(struct arming *arming);

/*
 * Arms files whose loader was not done when they were looked at, in processes where it is now. Once
 * a round, and at the latest after arming_loading_ms().
 */
void arming_loaded(struct arming *arming);
int arming_loading_ms(const struct arming *arming, int most);
/* A process has executed a program: to be called before the process is scanned. */
void arming_began(struct arming *arming, pid_t pid);
/* Whether a process waits to be armed until its loader is done. */
bool arming_is_late(const struct arming *arming, pid_t pid);

/* Whether something is armed in it alone. */
bool arming_has(const struct arming *arming, pid_t pid);

/* How often a file was armed in a process. */
uint64_t arming_arm_count(const struct arming *arming);

/* Forgets a process that is gone, or whose probes have ended: an exec by another thread than the
 * main one ends them. */
void arming_forget(struct arming *arming, pid_t pid);

/* Disarms everything. */
void arming_release(struct arming *arming);
void arming_close(struct arming *arming);

/* The number here of the site of the span whose begin has its probe at an address;
 * WAFFLE_SITE_UNKNOWN if not known. */
uint32_t arming_site_at(struct arming *arming, pid_t pid, uint64_t probe_addr);

/* The number that a site has in the capture. */
uint32_t arming_number(struct arming *arming, uint32_t site);

/* What is known of a site by its number here, which is that of the kernel's records. */
struct arming_site {
	const struct site_info *info;     /* as it is in the capture */
	const struct site_info *original; /* as it is in the file, and in the kernel's records */
	struct site_info *kept;           /* info, if keys are left out */
	uint32_t redacted;                /* these: redact_record() */
	uint32_t number; /* in the capture; WAFFLE_SITE_UNKNOWN: it is not there yet */
	bool concerns;   /* functions_concern() */
};
const struct arming_site *arming_site(const struct arming *arming, uint32_t number);
/* Whether there is a site that concerns functions. */
bool arming_concerns_functions(const struct arming *arming);

/* What is armed. */
struct armed_counts arming_counts(const struct arming *arming);

/* All sites of the files that are mapped and of tracepoints, and those of them that are armed
 * because they can match. */
uint64_t arming_site_count(const struct arming *arming);
uint64_t arming_match_count(const struct arming *arming);
/* Names of the first of them, in quotes: "'a', 'b', …"; `near`: of those that it may be a slip of.
 */
void arming_names(const struct arming *arming, const char *near, char *text, size_t size);
/* The first file that could not be armed and why; NULL: none. */
/* Whether a file could not be read for want of a right; arming_warning() may say which. */
bool arming_denied(const struct arming *arming);
const char *arming_warning(const struct arming *arming);

#endif

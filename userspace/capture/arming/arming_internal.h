/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parts of arming:
 *
 *	arming.c            processes
 *	arming_files.c      the tables of files, of what is armed or waits for it, and of processes
 *	arming_file.c       one file: examined, armed
 *	arming_calls.c      calls
 *	arming_doubled.c    files that must not be armed before their loader is done
 *	arming_refused.c    files that could not be armed
 *	arming_loading.c    ends of waits for loaders, and of refusals
 *	arming_expect.c     files that may be mapped later
 *	arming_programs.c   files that a program will map
 *	arming_changes.c    changes of files on disk
 *	arming_transport.c  the probes by which libwaffle is told to use rings
 */
#ifndef WAFFLE_CAPTURE_ARMING_ARMING_INTERNAL_H
#define WAFFLE_CAPTURE_ARMING_ARMING_INTERNAL_H

#include <time.h>

#include "capture/arming/arming.h"
#include "target/process/process.h"
#include "util/keymap.h"
#include "util/map.h"

/* A file that was examined. */
struct armed_file {
	dev_t dev;
	ino_t ino;
	int fd;             /* open while armed or about to be; an open file keeps its mount busy */
	uint32_t arm_count; /* number of rows in `arms` */
	struct object *object; /* NULL: it has no sites */
	uint32_t first_site;
	struct arm_use *uses; /* one per site; NULL: all are armed without a filter */
	bool *stacks;         /* one per site: record stacks; NULL: none */
	struct map by_offset; /* file offset of a probe → site number */
	char *runpath;        /* see loader.h */
	uint64_t matching;    /* number of sites that the plan does not exclude */
	bool checked;         /* functions that cannot be probed were reported */
	bool armed_everywhere;
	char *path;                   /* as processes see it */
	bool expected;                /* it was armed before a process mapped it */
	bool mapped;                  /* a process has mapped it, so its sites are in the capture */
	struct call_pending *pending; /* search results of an expected file */
	int watch;                    /* inotify watch; 0: none */
	bool reachable;               /* its path leads to the file for us, too */
	bool lost;                    /* its path leads to another file now */
	bool reported;                /* and that was reported */
};

/* The armed sites of a file in a process (pid -1: in all processes). */
struct arm {
	pid_t pid;
	uint32_t file;
	struct armed *armed;
	bool control;    /* a probe of libwaffle instead of the sites */
	bool unfiltered; /* as of struct arm_request */
};

struct file_list {
	VEC(uint32_t) list; /* indexes of files */
};

/* A process whose mapped files were armed. */
struct arming_process {
	pid_t pid;
	struct file_list files; /* the mapped files */
	uint64_t folders;       /* search_hash() at the last arming_expect() */
	bool injected;          /* libwaffle-gpu, if its environment names it, was armed ahead */
};

/* An executed program with all files that it loads. Valid until one of the files changes. */
struct arming_program {
	uint64_t key; /* see program_key() */
	struct file_list files;
};

/* Why a file is armed later in a process. */
enum loading_reason {
	LOADING_LOADER,  /* the loader has not finished */
	LOADING_AHEAD,   /* the process is about to execute a program that maps it */
	LOADING_REFUSED, /* some process keeps its mmap_lock, or may (arming_refused.c) */
};

/* A file that is armed later in a process that has mapped it, or is about to: arming_loading.c. */
struct loading {
	pid_t pid;
	uint32_t file;
	enum loading_reason reason;
	uint64_t begin_ns, next_ns; /* start of the wait; time of the next check */
};

struct arming {
	struct kernel *kernel;
	struct address_spaces *spaces;
	struct store_writer *writer;
	const struct session_options *options;
	struct plan *plan;           /* NULL: no filter */
	struct transport *transport; /* NULL: libwaffle is not looked for */
	VEC(struct armed_file) files;
	struct keymap file_at; /* device and inode → index of a file */
	VEC(struct arm) arms;
	VEC(struct arming_process) processes;
	VEC(struct loading) loading;
	VEC(struct arming_site) sites; /* indexed by site number */
	uint64_t matching;
	bool concerns_functions;
	struct armed_counts counts;
	struct armed_counts expected; /* counts in files that are armed ahead */
	uint64_t announced;           /* number of sites in the capture */
	int changes;                  /* inotify descriptor for files and links; -1: no watches */
	VEC(struct arming_program) programs;
	uint64_t arm_count;
	VEC(char *) notices;      /* pending messages */
	uint32_t reported_holder; /* the thread reported to keep a lock; 0: none */
	struct keymap dismissed;  /* device and inode of files where a search ahead found nothing */
	char warning[1200];
	bool unread; /* see arming_unread() */
	/* The mappings that arming_scan() looks at; NULL: it is not running. */
	const struct mappings *scanned;
	enum arming_lack lack;
};

/* Whether files are armed in all processes of the machine. */
static inline bool arming_is_everywhere(const struct arming *arming)
{
	return arming->options->kernel.config.follow_children && arming->options->machine_wide;
}

/* arming_files.c */
/* NULL: it was not scanned. */
struct arming_process *process_of(struct arming *arming, pid_t pid);
/* -1: unknown. */
int file_find(const struct arming *arming, dev_t dev, ino_t ino);
/* Duplicates `fd` to keep the file open for arming, if there is something to arm. */
void file_open(struct armed_file *file, int fd);
/* Closes the file if nothing is armed in it. */
void file_rest(struct armed_file *file);
/* Removes a row from the list and returns its links, which the caller frees. */
struct armed *arm_remove(struct arming *arming, size_t row);
bool file_is_armed(const struct arming *arming, pid_t pid, uint32_t file);
/* Adds a wait. One for the same replaces the one that is there. -ENOMEM. */
int loading_keep(struct arming *arming, const struct loading *loading, struct error *err);
void loading_remove(struct arming *arming, size_t row);
/* Cancels all waits of a process. */
void loading_forget(struct arming *arming, pid_t pid);
void notice_add(struct arming *arming, const char *line);
/* Reports a message about a file, once per path. */
void file_report(struct arming *arming, struct armed_file *file, const char *what);
/* An expected file was mapped: writes its sites to the capture and counts them. */
int file_mapped(struct arming *arming, struct armed_file *file, struct error *err);
/* Forgets all programs, since their files may have been replaced. */
void programs_forget(struct arming *arming);

/* arming_file.c */
/* Returns the index of a file, which is read now if it is new. A negative errno means a broken
 * session, with two exceptions. -EAGAIN: the file is still being parsed. -ENOENT, only if
 * `expected`: nothing was found in it, or there is no room. */
int file_add(struct arming *arming, int fd, const char *shown_path, bool expected,
	     struct error *err);
/* Arms the file in our own process for a moment. The kernel reports functions that it cannot probe
 * only for processes that have mapped the file. */
void file_check(struct arming *arming, uint32_t index, int fd);
/* Arms a file in a process. -ESRCH: the process is gone. Any other failure becomes a warning. */
int file_arm(struct arming *arming, uint32_t index, pid_t pid, struct error *err);
void file_free(struct armed_file *file);

/* arming_transport.c */
/* Names the addresses of probes in a process that has rings, whose records have only these. */
void control_sites(struct arming *arming, pid_t pid, const struct mappings *mappings);
/* Whether nothing is left to arm of libwaffle in a file and a process. */
bool control_is_armed(const struct arming *arming, pid_t pid, uint32_t file);
/* Arms it. `request` would arm the sites of the file in the process. Results are those of
 * file_arm(). */
int control_arm(struct arming *arming, uint32_t index, struct arm_request request,
		struct error *err);
/* Whether hits of a process are filtered in userspace, because they come through rings. */
bool control_filters(const struct arming *arming, pid_t pid);
/* Whether a process in which nothing is armed yet is not to be armed before libwaffle, if it has
 * mapped that. */
bool control_awaits(const struct arming *arming, pid_t pid);

/* arming_doubled.c */
/* Number of mappings that a process has of the page. */
struct doubled {
	uint32_t mappings, writable;
};
struct doubled doubled_look(const struct armed_file *file, pid_t pid);
bool doubled_is_loaded(const struct armed_file *file, struct doubled found);
/* Whether semaphores of the file lie in a page that is mapped twice (struct object_page). */
bool file_is_doubled(const struct armed_file *file);
/* Whether the loader of a process has finished with such a file. */
bool file_is_loaded(const struct armed_file *file, pid_t pid);
/* Whether a process is about to execute a program that maps the file. */
bool file_is_ahead(const struct arming *arming, uint32_t index, pid_t pid);
/* Arms the file when the loader has finished. -ENOMEM. */
int file_await(struct arming *arming, uint32_t index, pid_t pid, struct error *err);
#define LOOK_MIN_NS 1000000ull /* until the first check whether the loader has finished */
/* Adds a wait of a process for the loader of a file. -ENOMEM. */
int loading_add(struct arming *arming, uint32_t index, pid_t pid, enum loading_reason reason,
		struct error *err);

/* arming_refused.c */
/* Adds a wait until no process keeps its mmap_lock. -ENOMEM. */
int loading_add_refused(struct arming *arming, uint32_t index, pid_t pid, struct error *err);
/* What file_arm() does for a `result` of kernel_arm() that is not 0, and its message. A file that
 * is refused for a time is armed later. */
int file_arm_failed(struct arming *arming, uint32_t index, pid_t pid, int result,
		    const struct error *problem, struct error *err);

/* arming_loading.c */
/* Does what file_arm() does for a file that the process has not mapped yet. */
int file_arm_early(struct arming *arming, uint32_t index, pid_t pid, struct error *err);

/* arming_calls.c */
/* Gives a site the next number. `fetch program` NULL: not a call. */
int arming_register(struct arming *arming, const struct site_info *site,
		    const struct waffle_fetch_program *fetch_program, struct error *err);
/* Writes sites to the capture. Those for which a file has no room are left out, with a warning. */
int arming_announce(struct arming *arming, uint32_t first, size_t count, struct error *err);
/* Loads the BPF programs that the plan requires by now. */
int arming_classes(struct arming *arming, struct error *err);
/* Loads the fetch programs of the armed calls of a file into the kernel. */
int arming_fetch_programs(struct arming *arming, struct armed_file *file, struct error *err);

/* Warns of probes at positions where a process no longer has the file mapped. */
void arming_warn_moved(struct arming *arming, const struct arming_process *process,
		       const struct mappings *mappings);

/* arming_changes.c */
/* Starts to watch a file, if that is useful. Call it before reading the file, since probes are
 * placed by the contents read. Negative errno. */
int file_watch(struct arming *arming, struct armed_file *file, int fd);
/* Stops to watch for writes while nothing is armed in the file. */
void file_watch_less(struct arming *arming, struct armed_file *file, int fd);
void file_unwatch(struct arming *arming, struct armed_file *file);
/* Watches the symbolic links of a path, since they may be changed to lead to another file. */
void arming_watch_links(struct arming *arming, const char *path);
/* A new file was found at a path. */
void file_replaces(struct arming *arming, const char *path);

/* arming_expect.c */
/* Does what arming_expect() does for a program before its exec. `files` holds the files that it
 * will map, and receives those that it may open. */
void program_expect(struct arming *arming, pid_t pid, const char *path, char *const *environment,
		    struct file_list *files);

#endif

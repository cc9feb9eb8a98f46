/* SPDX-License-Identifier: Apache-2.0 */
/* Between arming.c, which knows files and processes, arming_calls.c, which knows calls,
 * arming_loading.c, which waits for loaders, arming_expect.c, which knows what may be mapped later,
 * arming_programs.c, which knows what a program will map, and arming_changes.c, which knows what
 * becomes of files on disk. */
#ifndef WAFFLE_CAPTURE_ARMING_INTERNAL_H
#define WAFFLE_CAPTURE_ARMING_INTERNAL_H

#include <time.h>

#include "capture/arming.h"
#include "target/process.h"
#include "util/map.h"

/* A file that was looked at. */
struct file {
	dev_t dev;
	ino_t ino;
	int fd;                /* open while it is armed, or about to be: it keeps a mount busy */
	uint32_t arm_count;    /* of rows in `arms` */
	struct object *object; /* NULL: no sites in it */
	uint32_t first_site;
	struct arm_use *uses; /* a row a site; NULL: all are armed plainly */
	bool *stacks;         /* a row a site: they are taken; NULL: none are */
	struct map by_offset; /* probe's offset in the file → site number */
	char *runpath;        /* loader.h */
	uint64_t matching;    /* sites that the plan lets pass */
	bool checked;         /* functions that can't be probed were told of */
	bool armed_everywhere;
	struct timespec change;   /* of its inode, when it was read */
	char *path;               /* as processes see it */
	bool expected;            /* it was armed before a process had it mapped */
	bool came;                /* a process has it mapped: its sites are in the capture */
	struct call_ahead *ahead; /* of one that was expected */
	int watch;                /* tells when it changes; 0: none */
	bool reachable;           /* its path leads to it for us, too */
	bool lost;                /* no more: it has lost that name */
	bool told;                /* of that */
};

/* Sites of a file that are armed in a process (pid -1: in all). */
struct arm {
	pid_t pid;
	uint32_t file;
	struct armed *armed;
};

struct file_list {
	VEC(uint32_t) list; /* indexes */
};

/* What was last seen of a process's memory, to name addresses. */
struct memory {
	pid_t pid;
	struct mappings mappings;
	struct file_list files; /* that are mapped */
	struct map addresses;   /* of probes → site numbers */
	uint64_t folders;       /* search_hash() when files were last expected */
};

/* A program that was executed, with all files that it loads. So it is until a file changes. */
struct program {
	uint64_t key; /* see program_key() */
	struct file_list files;
};

/* A file that a process has mapped, or is about to, and whose loader is not done:
 * arming_loading.c. */
struct loading {
	pid_t pid;
	uint32_t file;
	bool ahead;                 /* the process is about to execute what maps it */
	uint64_t begin_ns, next_ns; /* of the waiting; of the next look */
};

struct arming {
	struct kernel *kernel;
	struct store_writer *writer;
	struct arming_options options;
	VEC(struct file) files;
	struct map file_at; /* hash of device and inode, or the next free one → index of a file */
	VEC(struct arm) arms;
	VEC(struct memory) memories;
	VEC(struct loading) loading;
	VEC(struct arming_site) sites; /* by their numbers */
	uint64_t matching;
	bool concerns_functions;
	struct armed_counts counts;
	struct armed_counts expected; /* in files that are armed ahead */
	uint64_t announced;           /* sites that are in the capture */
	int changes;                  /* inotify, of files and links; -1: none are watched */
	VEC(struct program) programs;
	uint64_t arm_count;
	VEC(char *) notices;  /* what is to be said */
	struct map dismissed; /* file_hash() of files in which nothing was found ahead */
	char warning[1200];
	bool denied; /* a file could not be read for want of a right */
	enum arming_lack lack;
};

/* arming.c */
struct memory *memory_of(struct arming *arming, pid_t pid);
uint64_t file_hash(dev_t dev, ino_t ino);
/* -1: not known. */
int file_find(const struct arming *arming, dev_t dev, ino_t ino);
/* The index of a file, looked at now if it is new; a negative errno only for a broken session. Of
 * one that is `expected` also -ENOENT: nothing is in it, or there is no room. -EAGAIN: it is still
 * being parsed. */
int file_add(struct arming *arming, int fd, const char *shown_path, bool expected,
	     struct error *err);
/* Arms it in ourselves for a moment: of a process that has not mapped a file yet, the kernel does
 * not say that it can't probe some of its functions. */
void file_check(struct arming *arming, uint32_t index, int fd);
/* Arms a file in a process. -ESRCH: the process is gone; other failures leave a
 * warning. */
int file_arm(struct arming *arming, uint32_t index, pid_t pid, struct error *err);
/* The same for a file that the process has not mapped yet: arming_loading.c. */
int file_arm_ahead(struct arming *arming, uint32_t index, pid_t pid, struct error *err);
/* Keeps it open to be armed, if there is something to arm; fd is the caller's. */
void file_open(struct file *file, int fd);
/* Nothing is armed in it, perhaps: then it is closed. */
void file_rest(struct file *file);
/* Takes a row off the list; its links are the caller's. */
struct armed *arm_remove(struct arming *arming, size_t row);
bool file_is_armed(const struct arming *arming, pid_t pid, uint32_t file);

/* arming_loading.c */
/* Whether semaphores of the file lie in a page that is mapped twice (struct object_page). */
bool file_is_doubled(const struct file *file);
/* Whether a process has such a file mapped as it stays. */
bool file_is_loaded(const struct file *file, pid_t pid);
/* Whether a process is about to execute a program that maps it. */
bool file_is_ahead(const struct arming *arming, uint32_t index, pid_t pid);
/* It is armed when the loader is done. -ENOMEM. */
int file_await(struct arming *arming, uint32_t index, pid_t pid, struct error *err);
/* Nothing is awaited any more for a process. */
void loading_forget(struct arming *arming, pid_t pid);

/* arming_programs.c */
/* What programs load may be another file now. */
void programs_forget(struct arming *arming);

/* arming_calls.c */
/* Gives a site its number, the next one; recipe NULL: not a call. */
int arming_register(struct arming *arming, const struct site_info *site,
		    const struct waffle_recipe *recipe, struct error *err);
/* Tells the capture about sites. */
int arming_announce(struct arming *arming, uint32_t first, size_t count, struct error *err);
/* Loads the programs of what the plan has come to. */
int arming_classes(struct arming *arming, struct error *err);
/* Tells the kernel how the values of those calls of a file are found that are armed. */
int arming_recipes(struct arming *arming, struct file *file, struct error *err);

/* Warns of probes that stand where a process has no more of their file mapped. */
void arming_warn_moved(struct arming *arming, const struct memory *memory);

/* arming_changes.c */
/* Says of a file what it is, once of each path. */
void file_tell(struct arming *arming, struct file *file, const char *what);
/* Begins to watch a file, if that is of use. Its probes stand where its functions are when it is
 * read, so this comes before. Negative errno. */
int file_watch(struct arming *arming, struct file *file, int fd);
/* Nothing in it is armed: it may be written to as often as it likes until that is done. */
void file_watch_less(struct arming *arming, struct file *file, int fd);
void file_unwatch(struct arming *arming, struct file *file);
/* The symbolic links of a path, which may be made to lead to another file. */
void arming_watch_links(struct arming *arming, const char *path);
/* A new file was found at a path. */
void file_replaces(struct arming *arming, const char *path);

/* arming_expect.c */
/* As arming_expect(), for a program that has not begun: with `files`, which it will map, and which
 * get those that it may open. */
void program_expect(struct arming *arming, pid_t pid, const char *path, char *const *environment,
		    struct file_list *files);
/* A file that was expected is there: its sites are in the capture from now on, and count. */
int file_came(struct arming *arming, struct file *file, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes hold the other end of a pipe, named or not, or of a Unix socket, or the lock of a
 * file. The kernel keeps no list of them, so the descriptors of all processes are searched. A
 * descriptor that is only on its way in a socket's message, or registered with io_uring, is not
 * seen.
 */
#ifndef WAFFLE_TARGET_PROCESS_PIPE_ENDS_H
#define WAFFLE_TARGET_PROCESS_PIPE_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/process/descriptors.h"
#include "target/process/file_lock.h"

#define PIPE_HOLDERS 16 /* so many are known */

/* An end of a pipe, a Unix socket, or the lock of a file, and who holds it. */
struct pipe_end {
	struct file_key key;
	struct awaited_lock lock; /* if it has a kind, this is no end of a pipe */
	bool socket;
	uint32_t unread; /* of a socket: bytes that it has got and that were not read */
	bool write;      /* the end to write to; otherwise the one to read from */
	/* Of a lock: the first holder is an ancestor of all others, which have inherited it. False
	 * as well if there was no time to look. */
	bool family;
	bool stopped;   /* a signal or a freezer has stopped all of them, when they are found */
	uint32_t count; /* of processes that hold it */
	struct pipe_holder {
		pid_t pid;
		bool by_file; /* one of its open files has a lock, FILE_LOCK_OFD */
		char comm[16];
	} holders[PIPE_HOLDERS];
	pid_t last; /* the one found last */
};

/* Gets the end opposite to an open descriptor of a process. False: that is no pipe, or one that is
 * open for both, and no Unix socket that is connected (unix_peer_internal.h). */
bool pipe_end_opposite(struct pipe_end *end, pid_t pid, int fd);

/* Finds the processes that hold these ends. Holders may be missing after an error: -ETIME if not
 * all processes were read until then. A thread with descriptors of its own, and a process that our
 * /proc does not show, are missing all the same. */
int pipe_ends_find(struct pipe_end *ends, size_t count, uint64_t until_ns);

/* Takes a process out of the holders of an end, unless one of its open files has a lock, or there
 * are too many holders to know all. The others are looked at again, until `until_ns`. */
void pipe_end_leave_out(struct pipe_end *end, pid_t pid, uint64_t until_ns);

/* Writes "write end of process 4711, sh", "other end of process 4711, sh", "write end of 2
 * processes: sh (4711), cat (4712)", "locked by process 4711, sh", or "locked by process 4711,
 * flock, and its descendants sh (4712)", with ", which is stopped" or ", which are stopped", or of
 * a socket ", with 12 bytes unread" behind it; "": nobody holds it. */
void pipe_end_describe(char *text, size_t size, const struct pipe_end *end);

/* The same for the pipes among the descriptors that a thread polls: "other ends of process 4711,
 * sh" if these are `all` of them and the same processes hold them; otherwise each by itself:
 * "pipe:[12]: write end of process 4711, sh; pipe:[13]: …". */
void pipe_ends_describe(char *text, size_t size, const struct pipe_end *ends, size_t count,
			bool all);

/* Whether the text is that of one end, or of several that the same processes hold. */
bool pipe_end_is_described(const char *text);

/* The only process in such a text, which may follow the type of the file: "ext4, locked by process
 * 4711, sh"; 0: none. */
uint32_t pipe_end_process(const char *text);
/* Whether that process has descendants that hold the same. */
bool pipe_end_is_shared(const char *text);
/* Whether all processes in such a text are stopped, known or not. */
bool pipe_end_is_stopped(const char *text);
/* The bytes that those of a socket have got and not read; 0: none, or it is another text. */
uint32_t pipe_end_unread(const char *text);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "target/process/pipe_ends.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target/process/process.h"
#include "target/process/unix_peer_internal.h"
#include "util/clock.h"
#include "util/text.h"

/* The clock is read after so many descriptors. */
#define CLOCK_DESCRIPTORS 256

#define OF_PROCESS "process "
#define WRITE_END "write end of "
#define READ_END "read end of "
#define SOCKET_END "other end of "
#define SEVERAL_ENDS "other ends of "
#define LOCKED_BY "locked by "
#define AND_DESCENDANTS ", and its descendants "
/* A process's name before it, which may be any, has at most 15 bytes, so it cannot look like these.
 */
#define IS_STOPPED ", which is stopped"
#define ARE_STOPPED ", which are stopped"

#define NAMED 3 /* so many holders are named */
#define ANCESTORS_MAX 64

static const char *end_text(const struct pipe_end *end)
{
	return end->lock.kind ? LOCKED_BY
	       : end->socket  ? SOCKET_END
	       : end->write   ? WRITE_END
			      : READ_END;
}

/* An open file of a process. */
struct open_file {
	struct file_key key;
	bool pipe, socket;
	mode_t mode; /* of a pipe: how it is open, as the permissions of its link in /proc show */
};

/* Reads what a link of /proc/PID/fd leads to. False: it is closed. */
static bool open_file_read(struct open_file *open, int folder, const char *name)
{
	const int quiet = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
	struct statx file, link = {.stx_mode = 0};

	if (statx(folder, name, quiet, STATX_TYPE | STATX_INO, &file))
		return false;
	open->key = (struct file_key){.ino = file.stx_ino,
				      .dev = file.stx_dev_major << 20 | file.stx_dev_minor};
	open->pipe = S_ISFIFO(file.stx_mode);
	open->socket = S_ISSOCK(file.stx_mode);
	if (open->pipe && statx(folder, name, quiet | AT_SYMLINK_NOFOLLOW, STATX_MODE, &link))
		return false;
	open->mode = link.stx_mode;
	return true;
}

static bool socket_opposite(struct pipe_end *end, const struct file_key *key)
{
	struct unix_peer peer;

	if (!unix_peer_find(&peer, key->ino))
		return false;
	*end = (struct pipe_end){
		.key = {.ino = peer.ino, .dev = key->dev}, .socket = true, .unread = peer.unread};
	return true;
}

bool pipe_end_opposite(struct pipe_end *end, pid_t pid, int fd)
{
	struct open_file open;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (!open_file_read(&open, AT_FDCWD, path))
		return false;
	if (open.socket)
		return socket_opposite(end, &open.key);
	*end = (struct pipe_end){.key = open.key, .write = open.mode & S_IRUSR};
	return open.pipe && !(open.mode & S_IRUSR) != !(open.mode & S_IWUSR);
}

/* A process may have several descriptors. */
static void holder_add(struct pipe_end *end, pid_t pid, enum file_lock_kind kind)
{
	bool first = !end->count || end->last != pid;
	struct pipe_holder *holder;

	end->last = pid;
	end->count += first;
	if (end->count > PIPE_HOLDERS)
		return;
	holder = &end->holders[end->count - 1];
	if (first) {
		*holder = (struct pipe_holder){.pid = pid};
		process_comm(pid, holder->comm);
	}
	holder->by_file |= kind == FILE_LOCK_OFD;
}

/* Adds a process if the open file of a thread's descriptor holds an end. */
static void holder_look(struct pipe_end *end, pid_t pid, pid_t tid, int fd,
			const struct open_file *open)
{
	enum file_lock_kind kind = FILE_LOCK_NONE;

	if (end->key.ino != open->key.ino || end->key.dev != open->key.dev)
		return;
	if (end->lock.kind)
		kind = file_lock_in_way(&end->lock, tid, fd);
	if (kind ||
	    (!end->lock.kind && (end->socket || open->mode & (end->write ? S_IWUSR : S_IRUSR))))
		holder_add(end, pid, kind);
}

/* Searches the descriptors of a thread of the process, unless it is gone. */
static int thread_search(struct pipe_end *ends, size_t count, pid_t pid, pid_t tid,
			 uint64_t until_ns, bool *any)
{
	unsigned left = CLOCK_DESCRIPTORS;
	struct dirent *entry;
	struct open_file open;
	bool late = false;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", tid);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	while (!late && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		*any = true;
		if (open_file_read(&open, dirfd(folder), entry->d_name))
			for (size_t i = 0; i < count; i++)
				holder_look(&ends[i], pid, tid, atoi(entry->d_name), &open);
		if (!--left) {
			left = CLOCK_DESCRIPTORS;
			late = clock_monotonic_ns() >= until_ns;
		}
	}
	closedir(folder);
	return late ? -ETIME : 0;
}

/* A main thread that has exited shows none. */
static int process_search(struct pipe_end *ends, size_t count, pid_t pid, uint64_t until_ns)
{
	bool any = false;
	int result = thread_search(ends, count, pid, pid, until_ns, &any);
	pid_t live = result || any ? pid : process_live_task(pid);

	if (live > 0 && live != pid)
		result = thread_search(ends, count, pid, live, until_ns, &any);
	return result;
}

static bool is_below(pid_t pid, pid_t ancestor)
{
	for (unsigned i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
		pid = process_parent(pid);
		if (pid == ancestor)
			return true;
	}
	return false;
}

/* Finds the holder that is an ancestor of all others, and puts it first. */
static void family_find(struct pipe_end *end, uint64_t until_ns)
{
	struct pipe_holder *holders = end->holders, head;

	end->family = false;
	if (end->count < 2 || end->count > PIPE_HOLDERS)
		return;
	for (uint32_t i = 0; i < end->count && !end->family; i++) {
		end->family = true;
		for (uint32_t k = 0; k < end->count && end->family; k++)
			end->family = k == i || (clock_monotonic_ns() < until_ns &&
						 is_below(holders[k].pid, holders[i].pid));
		if (!end->family)
			continue;
		head = holders[i];
		memmove(holders + 1, holders, i * sizeof(*holders));
		holders[0] = head;
	}
}

static bool are_stopped(const struct pipe_end *end)
{
	bool all = end->count && end->count <= PIPE_HOLDERS;

	for (uint32_t i = 0; i < end->count && all; i++)
		all = process_is_stopped_by_signal(end->holders[i].pid) ||
		      process_is_frozen(end->holders[i].pid);
	return all;
}

static void holders_judge(struct pipe_end *end, uint64_t until_ns)
{
	if (end->lock.kind)
		family_find(end, until_ns);
	end->stopped = are_stopped(end);
}

int pipe_ends_find(struct pipe_end *ends, size_t count, uint64_t until_ns)
{
	DIR *proc = opendir("/proc");
	int result = proc ? 0 : -errno;
	struct dirent *entry;

	while (!result && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0)
			result = clock_monotonic_ns() < until_ns
					 ? process_search(ends, count, pid, until_ns)
					 : -ETIME;
	}
	if (proc)
		closedir(proc);
	for (size_t i = 0; i < count; i++)
		holders_judge(&ends[i], until_ns);
	return result;
}

void pipe_end_leave_out(struct pipe_end *end, pid_t pid, uint64_t until_ns)
{
	uint32_t at = 0;

	while (at < end->count && at < PIPE_HOLDERS && end->holders[at].pid != pid)
		at++;
	if (at == end->count || end->count > PIPE_HOLDERS || end->holders[at].by_file)
		return;
	end->count--;
	memmove(&end->holders[at], &end->holders[at + 1],
		(end->count - at) * sizeof(*end->holders));
	holders_judge(end, until_ns);
}

/* Prints "sh (4711), cat (4712), …", from one on. */
static void holders_list(char *text, size_t size, const struct pipe_end *end, uint32_t from)
{
	uint32_t named = end->count < NAMED ? end->count : NAMED;
	int len = 0;

	for (uint32_t i = from; i < named && len < (int)size; i++)
		len += snprintf(text + len, size - (size_t)len, "%s%s (%d)", i > from ? ", " : "",
				end->holders[i].comm, end->holders[i].pid);
	if (end->count > named && len < (int)size)
		snprintf(text + len, size - (size_t)len, ", …");
}

/* Prints "write end of process 4711, sh, which is stopped"; `what` is the "write end of ". */
static void holders_put(char *text, size_t size, const struct pipe_end *end, const char *what)
{
	bool one = end->count == 1 || end->family;
	int len = 0;

	text[0] = '\0';
	if (one)
		len = snprintf(text, size, "%s" OF_PROCESS "%d, %s%s", what, end->holders[0].pid,
			       end->holders[0].comm, end->family ? AND_DESCENDANTS : "");
	else if (end->count)
		len = snprintf(text, size, "%s%u processes: ", what, end->count);
	if (end->count > 1 && len < (int)size)
		holders_list(text + len, size - (size_t)len, end, one);
	len = (int)strlen(text);
	if (end->stopped)
		len += snprintf(text + len, size - (size_t)len, "%s",
				end->count > 1 ? ARE_STOPPED : IS_STOPPED);
	if (end->unread && end->count && len < (int)size)
		snprintf(text + len, size - (size_t)len,
			 DESCRIPTOR_WITH "%" PRIu32 DESCRIPTOR_UNREAD, end->unread);
}

void pipe_end_describe(char *text, size_t size, const struct pipe_end *end)
{
	holders_put(text, size, end, end_text(end));
}

/* Whether the same processes hold two ends, all of which are known. */
static bool same_holders(const struct pipe_end *a, const struct pipe_end *b)
{
	bool same = a->count == b->count && a->count && a->count <= PIPE_HOLDERS;

	for (uint32_t i = 0; same && i < a->count; i++)
		same = a->holders[i].pid == b->holders[i].pid;
	return same;
}

void pipe_ends_describe(char *text, size_t size, const struct pipe_end *ends, size_t count,
			bool all)
{
	bool same = all && count;
	char one[128];
	size_t len = 0;

	for (size_t i = 1; same && i < count; i++)
		same = same_holders(&ends[0], &ends[i]);
	text[0] = '\0';
	if (same)
		holders_put(text, size, ends, count > 1 ? SEVERAL_ENDS : end_text(&ends[0]));
	for (size_t i = 0; !same && i < count; i++) {
		pipe_end_describe(one, sizeof(one), &ends[i]);
		if (*one && len < size)
			len += (size_t)snprintf(text + len, size - len, "%spipe:[%" PRIu64 "]: %s",
						len ? "; " : "", ends[i].key.ino, one);
	}
}

/* What follows the "write end of " of a text, also behind the type of the file; NULL: it is none.
 */
static const char *holders_in(const char *text)
{
	static const char *const begins[] = {WRITE_END, READ_END, SOCKET_END, SEVERAL_ENDS,
					     LOCKED_BY};
	size_t type = strcspn(text, ",: /");

	if (text_begins(text + type, DESCRIPTOR_AFTER " "))
		text += type + strlen(DESCRIPTOR_AFTER " ");
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (text_begins(text, begins[i]))
			return text + strlen(begins[i]);
	return NULL;
}

bool pipe_end_is_described(const char *text)
{
	return holders_in(text);
}

bool pipe_end_is_shared(const char *text)
{
	const char *holders = holders_in(text);

	return holders && strstr(holders, AND_DESCENDANTS);
}

bool pipe_end_is_stopped(const char *text)
{
	const char *holders = holders_in(text);

	return holders && (strstr(holders, IS_STOPPED) || strstr(holders, ARE_STOPPED));
}

uint32_t pipe_end_unread(const char *text)
{
	const char *holders = holders_in(text);

	return holders ? descriptor_unread(holders) : 0;
}

uint32_t pipe_end_process(const char *text)
{
	const char *holders = holders_in(text);

	return holders && text_begins(holders, OF_PROCESS)
		       ? process_number(holders + strlen(OF_PROCESS))
		       : 0;
}

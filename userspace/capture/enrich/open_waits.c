// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/open_waits_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "bpf/wait.h"
#include "capture/enrich/halted_stack_internal.h"
#include "capture/enrich/lock_owner_internal.h"
#include "target/process/address_space.h"
#include "target/process/descriptors.h"
#include "target/process/epoll_files.h"
#include "target/process/file_lock.h"
#include "target/process/image.h"
#include "target/process/opened_fifo.h"
#include "target/process/process.h"
#include "target/process/python_frames.h"
#include "util/clock.h"
#include "util/vec.h"

/* Limits of the threads that are looked at, and of the times for the owners of locks and for
 * unwinding tables of their files. The owner's number may be any, and in a container all threads
 * are searched for it. */
#define WAITS_MAX 4096
#define OWNERS_NS 2000000000ull
#define TABLES_NS 2000000000ull
/* Limits of the pipes whose other ends are searched, with the locks of files whose holders are, of
 * the Unix sockets, and of the time for both. */
#define PIPES_MAX 256
#define PIPES_NS 200000000ull

#define NO_PIPE UINT32_MAX

/* The descriptors that a thread waits for. */
struct awaited_files {
	uint32_t count; /* of all; the arrays have only the first ones */
	uint32_t own;   /* eventfds, if the process has no other thread that could write to them */
	int fds[WAFFLE_POLLED_MAX];
	/* Index in `pipes`; NO_PIPE: it is no pipe, lock, or Unix socket without others. */
	uint32_t pipes[WAFFLE_POLLED_MAX];
};

struct open_wait {
	struct waffle_rec_halted halted;
	struct lock_owner lock;
	/* As the kernel would give it; rec.kind 0: it waits for no file. */
	struct waffle_rec_wait file;
	struct awaited_files awaited;
	char *fifo;             /* path of the named pipe that it opens; NULL: none */
	const char *fifo_lacks; /* what it waits for there */
	bool wanted;            /* it waits for a lock with an owner, or owns such a lock */
	pid_t tracer;           /* that has stopped it; 0: none */
	char tracer_comm[WAFFLE_COMM_BYTES];
	uint32_t kernel_count, user_count;
	uint64_t kernel[WAFFLE_STACK_DEPTH], user[WAFFLE_STACK_DEPTH];
	/* Frames of Python, in two words each; python_cut: there are more. */
	uint64_t *python;
	uint32_t python_count;
	bool python_cut;
};

struct open_waits {
	struct kernel *kernel;
	struct processes *processes;
	struct stacks *stacks;             /* NULL: frames of Python and Java are not named */
	struct epoll_networks networks;    /* for sockets that are being connected */
	struct lock_namespaces namespaces; /* for owners of locks that have ended */
	VEC(struct open_wait) list;
	VEC(struct pipe_end) pipes; /* other ends of what they wait for, and locks */
	bool too_many;              /* of them: some had no room in the list */
};

struct open_waits *open_waits_open(struct kernel *kernel, struct processes *processes,
				   struct stacks *stacks)
{
	struct open_waits *waits = calloc(1, sizeof(*waits));

	if (waits)
		*waits = (struct open_waits){
			.kernel = kernel, .processes = processes, .stacks = stacks};
	return waits;
}

void open_waits_close(struct open_waits *waits)
{
	if (!waits)
		return;
	for (size_t i = 0; i < waits->list.len; i++) {
		free(waits->list.data[i].python);
		free(waits->list.data[i].fifo);
	}
	vec_free(&waits->list);
	vec_free(&waits->pipes);
	epoll_networks_free(&waits->networks);
	free(waits);
}

void open_waits_add(struct open_waits *waits, const struct waffle_rec_halted *halted)
{
	struct open_wait wait = {.halted = *halted};

	if (waits->list.len >= WAITS_MAX || halted->kernel_bytes > sizeof(wait.kernel))
		return;
	wait.kernel_count = halted->kernel_bytes / (uint32_t)sizeof(uint64_t);
	memcpy(wait.kernel, halted + 1, wait.kernel_count * sizeof(uint64_t));
	(void)vec_push(&waits->list, wait); /* without memory the wait has no record */
}

#define SEEN_ARGS 4

/* Whether a thread is still in the system call in which it was, with the same stack pointer; then
 * with its arguments. */
static bool is_still_in_call(const struct waffle_rec_halted *halted, uint64_t args[SEEN_ARGS])
{
	char path[64], line[256];
	uint64_t sp;
	bool same = false;
	int number;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/syscall", halted->tgid, halted->rec.tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fgets(line, sizeof(line), file) &&
	    sscanf(line,
		   "%d 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " %*s %*s 0x%" SCNx64,
		   &number, &args[0], &args[1], &args[2], &args[3], &sp) == 6)
		same = number == halted->syscall && args[0] == halted->args[0] && sp == halted->sp;
	fclose(file);
	return same;
}

static bool is_still_there(const struct waffle_rec_halted *halted)
{
	uint64_t args[SEEN_ARGS];

	return is_still_in_call(halted, args);
}

/* A process whose threads are looked at, which follow each other in the list. */
struct examined {
	pid_t pid;
	size_t first, end;
	struct image image;
	bool open; /* we may read its memory */
	/* Read when they are needed. */
	bool has_mappings;
	struct mappings mappings;
};

/* Reading the mappings of a process that keeps its mmap_lock may take for ever. */
static bool may_read_mappings(const struct open_waits *waits, const struct examined *process)
{
	return !kernel_lock_may_be_kept(waits->kernel, (uint32_t)process->pid);
}

/* Whether memory is of the process alone. Shared memory always has a file, also if it is anonymous
 * for the program (mmap(2), shmget(2)). */
static bool is_own_memory(const struct open_waits *waits, struct examined *process,
			  uint64_t address)
{
	struct error err = ERROR_INIT;
	const struct mapping *mapping;

	if (!process->has_mappings && may_read_mappings(waits, process)) {
		process_mappings_all(&process->mappings, process->pid, &err);
		process->has_mappings = true;
	}
	mapping = address_space_at(&process->mappings, address);
	/* The first segment of shmget(2) has 0 as its inode, and "/SYSV…" as its path. */
	return mapping && !mapping->ino && *mapping->path != '/';
}

/* Whether only another thread of the process can end the wait, or a signal. The futex of a
 * pthread_join() is not private, since the kernel itself wakes the waiter; those of libstdc++'s
 * std::future and std::call_once are not, although their memory is. */
static bool ends_inside(const struct open_waits *waits, struct examined *process,
			const struct waffle_rec_halted *halted, const struct lock_owner *lock)
{
	bool joins = lock->flags & WAFFLE_OPEN_WAIT_JOIN;
	uint64_t args[SEEN_ARGS];
	uint32_t command;

	if (halted->syscall != SYS_futex || !is_still_in_call(halted, args))
		return false;
	command = (uint32_t)args[1] & FUTEX_CMD_MASK;
	return !args[3] &&
	       (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
		command == FUTEX_LOCK_PI) &&
	       (joins || args[1] & FUTEX_PRIVATE_FLAG || is_own_memory(waits, process, args[0]));
}

static bool is_same_end(const struct pipe_end *a, const struct pipe_end *b)
{
	return a->key.ino == b->key.ino && a->key.dev == b->key.dev && a->write == b->write &&
	       a->lock.kind == b->lock.kind && a->lock.shared == b->lock.shared;
}

/* The number of an end in the list of pipes, of which many threads may wait for the same. The
 * sockets of a server's idle processes leave room for pipes and locks. */
static uint32_t pipe_add(struct open_waits *waits, const struct pipe_end *end)
{
	unsigned alike = 0;

	for (uint32_t i = 0; i < waits->pipes.len; i++) {
		if (is_same_end(&waits->pipes.data[i], end))
			return i;
		alike += waits->pipes.data[i].socket == end->socket;
	}
	if (alike >= PIPES_MAX || !vec_push(&waits->pipes, *end)) {
		waits->too_many = true;
		return NO_PIPE;
	}
	return (uint32_t)waits->pipes.len - 1;
}

/* Lists of poll(2) up to this length are read. */
#define POLL_LIST_MAX 16

static bool is_poll(int syscall)
{
#ifdef SYS_poll /* not on aarch64 */
	if (syscall == SYS_poll)
		return true;
#endif
	return syscall == SYS_ppoll;
}

static uint32_t awaited_known(const struct awaited_files *awaited)
{
	return awaited->count < WAFFLE_POLLED_MAX ? awaited->count : WAFFLE_POLLED_MAX;
}

static void awaited_add(struct awaited_files *awaited, int fd)
{
	if (awaited->count < WAFFLE_POLLED_MAX) {
		awaited->fds[awaited->count] = fd;
		awaited->pipes[awaited->count] = NO_PIPE;
	}
	awaited->count++;
}

/* The descriptors that a thread waits for: that of its call, or those of poll(2). Longer lists, and
 * those of select(2), are not read. */
static void awaited_read(struct awaited_files *awaited, const struct waffle_rec_halted *halted,
			 const struct image *image)
{
	struct pollfd polled[POLL_LIST_MAX];
	uint64_t args[SEEN_ARGS];

	awaited->count = 0;
	if (kernel_waits_for_descriptor(halted->syscall)) {
		if ((int)halted->args[0] >= 0)
			awaited_add(awaited, (int)halted->args[0]);
		return;
	}
	if (!is_poll(halted->syscall) || !is_still_in_call(halted, args) ||
	    args[1] > POLL_LIST_MAX ||
	    !image_read(image, args[0], polled, args[1] * sizeof(*polled)))
		return;
	for (uint64_t i = 0; i < args[1]; i++)
		if (polled[i].fd >= 0)
			awaited_add(awaited, polled[i].fd);
}

/* Of an epoll, a socket that is being connected counts, as in bpf/epoll.bpf.h. */
static void epoll_examine(struct open_waits *waits, pid_t tid, int descriptor,
			  struct waffle_rec_wait *file)
{
	struct epoll_connecting found;

	if (!epoll_connecting(&found, &waits->networks, tid, descriptor))
		return;
	file->ino = found.key.ino;
	file->dev = found.key.dev;
	file->object = (uint32_t)found.descriptor;
	file->address = found.among ? WAFFLE_WAIT_RESENT | WAFFLE_RESENT_AMONG : 0;
}

/* The file of the only descriptor. */
static bool file_read(struct open_waits *waits, struct waffle_rec_wait *file, pid_t tid,
		      int descriptor)
{
	char kind[64];
	struct file_key key;

	if (!descriptor_key(&key, kind, sizeof(kind), tid, descriptor))
		return false;
	file->object = (uint32_t)descriptor;
	file->ino = key.ino;
	file->dev = key.dev;
	memcpy(&file->address, kind, strnlen(kind, sizeof(file->address)));
	if (!strcmp(kind, DESCRIPTOR_EPOLL_KIND))
		epoll_examine(waits, tid, descriptor, file);
	return true;
}

/* As wait_polled() of bpf/wait.bpf.c. */
static void list_put(struct waffle_rec_wait *file, const struct awaited_files *awaited)
{
	uint32_t fds[WAFFLE_POLLED_MAX];

	for (uint32_t i = 0; i < WAFFLE_POLLED_MAX; i++)
		fds[i] = i < awaited->count ? (uint32_t)awaited->fds[i] : UINT32_MAX;
	file->dev = WAFFLE_WAIT_POLLED;
	file->object = fds[0];
	file->ino = (uint64_t)fds[2] << 32 | fds[1];
	file->address = (uint64_t)fds[3] << 32 | awaited->count;
}

/* Gets the other end of the pipe or Unix socket that a thread waits for at a descriptor, or the
 * lock of the file. False: it is neither. */
static bool end_find(struct pipe_end *end, const struct waffle_rec_halted *halted, int fd,
		     const struct image *image)
{
	pid_t tid = (pid_t)halted->rec.tid;
	struct awaited_lock lock;
	char kind[64];

	if (!file_lock_awaited(&lock, tid, halted->syscall, halted->args, image))
		return pipe_end_opposite(end, tid, fd);
	*end = (struct pipe_end){.lock = lock};
	return descriptor_key(&end->key, kind, sizeof(kind), tid, fd);
}

/* The number of eventfds among the descriptors of a list, if the process has one thread. */
static uint32_t own_events(const struct waffle_rec_halted *halted,
			   const struct awaited_files *awaited)
{
	uint32_t count = 0;
	struct file_key key;
	char kind[64];

	if (awaited->count < 2 || process_thread_count((pid_t)halted->tgid) != 1)
		return 0;
	for (uint32_t i = 0; i < awaited_known(awaited); i++)
		count += descriptor_key(&key, kind, sizeof(kind), (pid_t)halted->rec.tid,
					awaited->fds[i]) &&
			 !strcmp(kind, DESCRIPTOR_EVENT_KIND);
	return count;
}

/* Reads which files the thread waits for, from its own descriptors: a thread may have others than
 * its process. */
static void file_examine(struct open_waits *waits, struct open_wait *wait,
			 const struct image *image)
{
	const struct waffle_rec_halted *halted = &wait->halted;
	struct waffle_rec_wait file = {.rec = halted->rec,
				       .from_ts = halted->from_ts ?: halted->rec.ts};
	struct awaited_files *awaited = &wait->awaited;
	struct pipe_end ends[WAFFLE_POLLED_MAX];
	bool pipes[WAFFLE_POLLED_MAX];
	pid_t tid = (pid_t)halted->rec.tid;

	awaited_read(awaited, halted, image);
	if (awaited->count > 1)
		list_put(&file, awaited);
	else if (!awaited->count || !file_read(waits, &file, tid, awaited->fds[0]))
		return;
	for (uint32_t i = 0; i < awaited_known(awaited); i++)
		pipes[i] = end_find(&ends[i], halted, awaited->fds[i], image) &&
			   (!ends[i].socket || awaited->count == 1);
	awaited->own = own_events(halted, awaited);
	if (!is_still_there(halted))
		return;
	for (uint32_t i = 0; i < awaited_known(awaited); i++)
		if (pipes[i])
			awaited->pipes[i] = pipe_add(waits, &ends[i]);
	file.rec.kind = WAFFLE_REC_WAIT;
	wait->file = file;
}

/* A named pipe is opened when its other end is: until then, no descriptor shows it. */
static void fifo_examine(struct open_wait *wait, const struct image *image)
{
	const struct waffle_rec_halted *halted = &wait->halted;
	struct waffle_rec_wait file = {.rec = halted->rec,
				       .from_ts = halted->from_ts ?: halted->rec.ts,
				       .object = UINT32_MAX};
	uint64_t args[SEEN_ARGS];
	struct opened_fifo fifo;

	if (!is_open_call(halted->syscall) || !is_still_in_call(halted, args) ||
	    !opened_fifo_find(&fifo, (pid_t)halted->rec.tid, image, halted->syscall, args) ||
	    !is_still_there(halted))
		return;
	wait->fifo = strdup(fifo.path);
	wait->fifo_lacks = fifo.lacks;
	file.rec.kind = WAFFLE_REC_WAIT;
	file.ino = fifo.key.ino;
	file.dev = fifo.key.dev;
	wait->file = file;
}

static struct open_wait *wait_of(struct open_waits *waits, uint32_t tid)
{
	for (size_t i = 0; i < waits->list.len; i++)
		if (waits->list.data[i].halted.rec.tid == tid)
			return &waits->list.data[i];
	return NULL;
}

static void owner_examine(struct open_waits *waits, struct open_wait *wait,
			  const struct image *image)
{
	struct lock_owner lock;
	struct open_wait *owner;

	if (!lock_owner_find(&lock, image, &wait->halted, &waits->namespaces))
		return;
	wait->lock.address = lock.address;
	/* The owner counts only if the thread has not got the lock meanwhile. */
	if ((!lock.tid && !lock.ended) || !is_still_there(&wait->halted))
		return;
	wait->lock = lock;
	wait->wanted = true;
	owner = lock.tid ? wait_of(waits, lock.tid) : NULL;
	if (owner)
		owner->wanted = true;
}

/* Threads of a process mostly have the same tracer. */
static void tracer_examine(struct open_wait *wait, const struct open_wait *before)
{
	wait->tracer = process_tracer((pid_t)wait->halted.rec.tid);
	if (!wait->tracer)
		return;
	if (before && before->tracer == wait->tracer)
		memcpy(wait->tracer_comm, before->tracer_comm, sizeof(wait->tracer_comm));
	else
		process_comm(wait->tracer, wait->tracer_comm);
	if (!is_still_there(&wait->halted))
		wait->tracer = 0;
}

static void awaited_examine(struct open_waits *waits, struct open_wait *wait,
			    struct examined *process)
{
	owner_examine(waits, wait, &process->image);
	if (ends_inside(waits, process, &wait->halted, &wait->lock))
		wait->lock.flags |= WAFFLE_OPEN_WAIT_INSIDE;
	if (!(kernel_wait_sources(waits->kernel) & WAFFLE_WAIT_FILES))
		return;
	file_examine(waits, wait, &process->image);
	fifo_examine(wait, &process->image);
}

static struct examined next_process(struct open_waits *waits, size_t first)
{
	uint32_t tgid = waits->list.data[first].halted.tgid;
	uint32_t tid = waits->list.data[first].halted.rec.tid;
	struct examined process = {.pid = (pid_t)tgid, .first = first, .end = first};

	while (process.end < waits->list.len && waits->list.data[process.end].halted.tgid == tgid)
		process.end++;
	process.open = processes_readable(waits->processes, tid) == tgid &&
		       !image_open(&process.image, process.pid);
	return process;
}

/* Keeps the frames of Python of a thread. Without memory it has none. */
static void python_examine(struct open_wait *wait, const struct python_frames *frames)
{
	uint64_t words[2 * WAFFLE_FRAMES_PYTHON_MAX];
	uint32_t count =
		python_frames_read(frames, wait->halted.python_key, words, &wait->python_cut);

	wait->python = count ? malloc(2 * count * sizeof(*words)) : NULL;
	if (!wait->python)
		return;
	wait->python_count = count;
	memcpy(wait->python, words, 2 * count * sizeof(*words));
}

/* Unwinds the stacks of the threads that are wanted, or of the others that have no stack yet. */
static void stacks_unwind(struct open_waits *waits, const struct examined *process,
			  struct halted_code *code, const struct python_frames *python, bool wanted,
			  uint64_t until_ns)
{
	for (size_t i = process->first; i < process->end && clock_monotonic_ns() < until_ns; i++) {
		struct open_wait *wait = &waits->list.data[i];

		if (wait->wanted != wanted ||
		    (wait->halted.user_stack && !wanted && !halted_code_has_jvm(code)))
			continue;
		wait->user_count = halted_stack_walk(wait->user, WAFFLE_STACK_DEPTH, &wait->halted,
						     &process->image, code);
		python_examine(wait, python);
		/* A thread that has moved on has another stack by now. */
		if (!is_still_there(&wait->halted))
			wait->user_count = wait->python_count = 0;
	}
}

/* One time limit holds for all threads, so the wanted ones come first. */
static void stacks_examine(struct open_waits *waits, const struct examined *process,
			   uint64_t until_ns)
{
	struct halted_code *code =
		halted_code_open(process->pid, &process->image, waits->stacks, until_ns);
	struct python_frames python;

	if (!code)
		return;
	python_frames_begin(
		&python,
		waits->stacks ? stacks_interpreter(waits->stacks, (uint32_t)process->pid) : NULL,
		&process->image);
	stacks_unwind(waits, process, code, &python, true, until_ns);
	stacks_unwind(waits, process, code, &python, false, until_ns);
	python_frames_end(&python);
	halted_code_close(code);
}

static int process_compare(const void *left, const void *right)
{
	const struct open_wait *a = left, *b = right;

	if (a->halted.tgid != b->halted.tgid)
		return a->halted.tgid < b->halted.tgid ? -1 : 1;
	return a->halted.rec.tid < b->halted.rec.tid ? -1 : 1;
}

int open_waits_examine(struct open_waits *waits)
{
	uint64_t owners_ns = clock_monotonic_ns() + OWNERS_NS, until_ns = owners_ns + TABLES_NS;
	int result = 0;

	waits->namespaces.until_ns = owners_ns;
	if (waits->list.len)
		qsort(waits->list.data, waits->list.len, sizeof(*waits->list.data),
		      process_compare);
	for (size_t first = 0; first < waits->list.len;) {
		struct examined process = next_process(waits, first);

		for (size_t i = first; i < process.end && clock_monotonic_ns() < owners_ns; i++)
			tracer_examine(&waits->list.data[i], i ? &waits->list.data[i - 1] : NULL);
		for (size_t i = first;
		     process.open && i < process.end && clock_monotonic_ns() < owners_ns; i++)
			awaited_examine(waits, &waits->list.data[i], &process);
		if (process.open && may_read_mappings(waits, &process))
			stacks_examine(waits, &process, until_ns);
		if (process.open)
			image_close(&process.image);
		mappings_free(&process.mappings);
		first = process.end;
	}
	if (waits->pipes.len)
		result = pipe_ends_find(waits->pipes.data, waits->pipes.len,
					clock_monotonic_ns() + PIPES_NS);
	/* A holder that was not seen may be the one that is to end the wait. */
	if (result)
		waits->pipes.len = 0;
	return result ?: waits->too_many ? -E2BIG : 0;
}

/* Copies the other ends of the pipes among the descriptors of a wait that have holders. Returns
 * their number. If the process asks for a lock of its own, one that it has already is not in its
 * way: it asks for more of the file, or to write as well. */
static uint32_t ends_of(const struct open_waits *waits, const struct open_wait *wait,
			uint64_t until_ns, struct pipe_end ends[WAFFLE_POLLED_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < awaited_known(&wait->awaited); i++) {
		uint32_t pipe = wait->awaited.pipes[i];

		if (pipe >= waits->pipes.len)
			continue;
		ends[count] = waits->pipes.data[pipe];
		if (ends[count].lock.kind == FILE_LOCK_POSIX)
			pipe_end_leave_out(&ends[count], (pid_t)wait->halted.tgid, until_ns);
		count += ends[count].count > 0;
	}
	return count;
}

int open_waits_pipes(const struct open_waits *waits,
		     int (*found)(const struct open_wait_pipes *pipes, void *arg), void *arg)
{
	uint64_t until_ns = clock_monotonic_ns() + PIPES_NS;
	int result = 0;

	for (size_t i = 0; i < waits->list.len && !result; i++) {
		const struct open_wait *wait = &waits->list.data[i];
		struct pipe_end ends[WAFFLE_POLLED_MAX];
		struct open_wait_pipes pipes = {.pid = (pid_t)wait->halted.tgid,
						.tid = (pid_t)wait->halted.rec.tid,
						.key = {wait->file.ino, wait->file.dev},
						.fds = wait->awaited.fds,
						.count = wait->awaited.count,
						.own_count = wait->awaited.own,
						.ends = ends,
						.end_count = ends_of(waits, wait, until_ns, ends)};

		/* Else it may have got the lock before that was searched. */
		if (wait->file.rec.kind == WAFFLE_REC_WAIT && pipes.end_count &&
		    is_still_there(&wait->halted))
			result = found(&pipes, arg);
	}
	return result;
}

int open_waits_fifos(const struct open_waits *waits,
		     int (*found)(pid_t pid, const struct file_key *key, const char *path,
				  const char *lacks, void *arg),
		     void *arg)
{
	int result = 0;

	for (size_t i = 0; i < waits->list.len && !result; i++) {
		const struct open_wait *wait = &waits->list.data[i];
		const struct file_key key = {.ino = wait->file.ino, .dev = wait->file.dev};

		if (wait->fifo)
			result = found((pid_t)wait->halted.tgid, &key, wait->fifo, wait->fifo_lacks,
				       arg);
	}
	return result;
}

/* ---- the records ---- */

struct trace_record {
	struct waffle_rec_trace rec;
	uint64_t addresses[WAFFLE_STACK_DEPTH];
};

/* Passes a stack on; *number is the one by which a record may refer to it. tgid 0: of the kernel */
static int stack_pass(struct open_waits *waits, const struct open_wait *wait, uint32_t tgid,
		      uint32_t *number, int (*pass)(struct waffle_rec *rec, void *arg), void *arg)
{
	const uint64_t *addresses = tgid ? wait->user : wait->kernel;
	uint32_t count = tgid ? wait->user_count : wait->kernel_count;
	struct trace_record trace = {.rec.rec = wait->halted.rec};

	if (!count)
		return 0;
	*number = kernel_stack_number(waits->kernel);
	trace.rec.rec.kind = WAFFLE_REC_TRACE;
	trace.rec.number = *number;
	trace.rec.tgid = tgid;
	trace.rec.frame_bytes = count * (uint32_t)sizeof(uint64_t);
	memcpy(trace.addresses, addresses, trace.rec.frame_bytes);
	return pass(&trace.rec.rec, arg);
}

struct frames_record {
	struct waffle_rec_frames rec;
	uint64_t words[WAFFLE_FRAMES_USER_MAX + 2 * WAFFLE_FRAMES_PYTHON_MAX];
};
_Static_assert(WAFFLE_STACK_DEPTH <= WAFFLE_FRAMES_USER_MAX, "a stack fits into a FRAMES record");

/* Passes the user stack of a wait on, as stack_pass() does. */
static int user_pass(struct open_waits *waits, const struct open_wait *wait, uint32_t *number,
		     int (*pass)(struct waffle_rec *rec, void *arg), void *arg)
{
	uint32_t words = 2 * wait->python_count;
	struct frames_record frames = {.rec.rec = wait->halted.rec};

	if (!wait->python_count)
		return stack_pass(waits, wait, wait->halted.tgid, number, pass, arg);
	*number = WAFFLE_STACK_BY_FRAMES;
	frames.rec.rec.kind = WAFFLE_REC_FRAMES;
	frames.rec.rec.ts = wait->halted.from_ts ?: wait->halted.rec.ts;
	frames.rec.tgid = wait->halted.tgid;
	frames.rec.frame_bytes = (wait->user_count + words) * (uint32_t)sizeof(uint64_t);
	frames.rec.python_count = wait->python_count;
	frames.rec.cut = wait->python_cut ? WAFFLE_CUT_PYTHON : 0;
	memcpy(frames.words, wait->user, wait->user_count * sizeof(uint64_t));
	memcpy(frames.words + wait->user_count, wait->python, words * sizeof(uint64_t));
	return pass(&frames.rec.rec, arg);
}

/* A wait has one record at its end, which has its file. So this one has that of a wait that goes
 * on. */
static int file_pass(const struct open_wait *wait, int (*pass)(struct waffle_rec *rec, void *arg),
		     void *arg)
{
	struct waffle_rec_wait file = wait->file;

	return file.rec.kind == WAFFLE_REC_WAIT ? pass(&file.rec, arg) : 0;
}

static int wait_pass(struct open_waits *waits, const struct open_wait *wait,
		     int (*pass)(struct waffle_rec *rec, void *arg), void *arg)
{
	struct waffle_rec_open_wait rec = {.rec = wait->halted.rec,
					   .from_ts = wait->halted.from_ts,
					   .kernel_stack = wait->halted.kernel_stack,
					   .user_stack = wait->halted.user_stack,
					   .lock = wait->lock.address,
					   .owner_tid = wait->lock.tid,
					   .ended_tid = wait->lock.ended,
					   .flags = wait->lock.flags,
					   .tracer_pid = (uint32_t)wait->tracer};
	int result;

	memcpy(rec.tracer_comm, wait->tracer_comm, sizeof(rec.tracer_comm));
	rec.rec.kind = WAFFLE_REC_OPEN_WAIT;
	result = file_pass(wait, pass, arg)
			 ?: stack_pass(waits, wait, 0, &rec.kernel_stack, pass, arg)
			 ?: user_pass(waits, wait, &rec.user_stack, pass, arg);
	return result ?: pass(&rec.rec, arg);
}

int open_waits_each(struct open_waits *waits, int (*pass)(struct waffle_rec *rec, void *arg),
		    void *arg)
{
	int result = 0;

	for (size_t i = 0; i < waits->list.len && !result; i++)
		result = wait_pass(waits, &waits->list.data[i], pass, arg);
	return result;
}

// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_wait.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/why/lookup/why_meaning.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/syscall_names.h"
#include "util/text.h"

static const struct {
	enum wait_call call;
	const char *names; /* each followed by a space */
} calls[] = {
	{WAIT_CALL_FUTEX, "futex "},
	{WAIT_CALL_FUTEX2, "futex_wait futex_waitv "},
	{WAIT_CALL_READ, "read pread64 readv preadv preadv2 sendfile splice copy_file_range "},
	{WAIT_CALL_WRITE, "write pwrite64 writev pwritev pwritev2 "},
	{WAIT_CALL_IOCTL, "ioctl "},
	{WAIT_CALL_SOCKET, "recvfrom recvmsg recvmmsg accept accept4 connect "},
	{WAIT_CALL_SEND, "sendto sendmsg sendmmsg "},
	{WAIT_CALL_POLL, "epoll_wait epoll_pwait epoll_pwait2 io_uring_enter io_getevents "},
	{WAIT_CALL_POLL_LIST, "poll ppoll "},
	{WAIT_CALL_SELECT, "select pselect6 "},
	{WAIT_CALL_SLEEP, "nanosleep clock_nanosleep "},
	{WAIT_CALL_SIGNAL, "pause rt_sigtimedwait rt_sigsuspend "},
	{WAIT_CALL_CHILD, "wait4 waitid "},
	{WAIT_CALL_FILE_READ, "open openat openat2 stat lstat newfstatat statx getdents getdents64 "
			      "access faccessat2 execve execveat readlink readahead "},
	{WAIT_CALL_FILE_WRITE,
	 "sync syncfs sync_file_range close truncate ftruncate fallocate "
	 "rename renameat renameat2 unlink unlinkat mkdir mkdirat creat link linkat "},
	{WAIT_CALL_FSYNC, "fsync fdatasync "},
	{WAIT_CALL_MSYNC, "msync "},
	{WAIT_CALL_FILE_LOCK, "flock fcntl "},
	{WAIT_CALL_QUEUE_READ, "mq_timedreceive "},
	{WAIT_CALL_QUEUE_WRITE, "mq_timedsend "},
};

enum wait_call wait_call_of(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	if (!name)
		return WAIT_CALL_NONE;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (const char *at = calls[i].names; *at; at = strchr(at, ' ') + 1)
			if (!strncmp(at, name, len) && at[len] == ' ')
				return calls[i].call;
	return WAIT_CALL_OTHER;
}

bool wait_call_is_for_work(const char *name)
{
	enum wait_call call = wait_call_of(name);

	return call == WAIT_CALL_SIGNAL || call == WAIT_CALL_SLEEP || call == WAIT_CALL_CHILD ||
	       syscall_name_is_epoll(name) || (name && text_begins(name, "accept"));
}

bool wait_call_is_never_idle(const char *name)
{
	switch (wait_call_of(name)) {
	case WAIT_CALL_WRITE:
	case WAIT_CALL_SEND:
	case WAIT_CALL_QUEUE_WRITE:
	case WAIT_CALL_FILE_READ:
	case WAIT_CALL_FILE_WRITE:
	case WAIT_CALL_FSYNC:
	case WAIT_CALL_MSYNC:
	case WAIT_CALL_FILE_LOCK:
		return true;
	case WAIT_CALL_SOCKET:
		return !strcmp(name, "connect");
	default:
		return false;
	}
}

bool wait_call_gets_data(enum wait_call call)
{
	return call == WAIT_CALL_READ || call == WAIT_CALL_SOCKET || call == WAIT_CALL_QUEUE_READ ||
	       call == WAIT_CALL_POLL || call == WAIT_CALL_POLL_LIST || call == WAIT_CALL_SELECT;
}

bool wait_has_descriptor(const struct wait_facts *facts)
{
	return facts->call == WAIT_CALL_READ || facts->call == WAIT_CALL_WRITE ||
	       facts->call == WAIT_CALL_IOCTL || facts->call == WAIT_CALL_SOCKET ||
	       facts->call == WAIT_CALL_SEND || facts->call == WAIT_CALL_FSYNC ||
	       facts->call == WAIT_CALL_QUEUE_READ || facts->call == WAIT_CALL_QUEUE_WRITE;
}

bool wait_is_for_room(const struct wait_facts *facts, enum wait_kind kind)
{
	return (kind == WAIT_PIPE || kind == WAIT_SOCKET) &&
	       (facts->call == WAIT_CALL_WRITE || facts->call == WAIT_CALL_SEND ||
		facts->call == WAIT_CALL_QUEUE_WRITE);
}

bool wait_is_for_connecting(const struct store_object *object)
{
	return object && descriptor_is_connecting(object->detail);
}

bool wait_has_mapping(const struct wait_facts *facts)
{
	return facts->call == WAIT_CALL_MSYNC;
}

static const struct {
	const char *prefix;
	enum wait_kind kind;
} object_kinds[] = {
	{"pipe:", WAIT_PIPE},
	{DESCRIPTOR_SOCKET, WAIT_SOCKET},
	{"anon_inode:[timerfd", WAIT_TIMER},
	{"anon_inode:[signalfd", WAIT_SIGNAL},
	{"anon_inode:", WAIT_POLL},
	{"/dev/nvidia", WAIT_GPU},
	{"/dev/dri/", WAIT_GPU},
	{"/dev/kfd", WAIT_GPU},
	{"/dev/accel", WAIT_GPU},
	{"/dev/", WAIT_OTHER},
};

/* File systems whose files lie on no device. A wait there is for a lock or for work of the kernel,
 * such as RCU after a write to cgroup.procs. */
static const char memory_file_systems[] =
	"bpf cgroup cgroup2 configfs debugfs devpts devtmpfs hugetlbfs mqueue proc pstore ramfs "
	"securityfs selinuxfs sysfs tmpfs tracefs ";

/* `file`: what a wait for a device in this call is. */
static enum wait_kind kind_by_state(const struct wait_facts *facts, enum wait_kind file)
{
	bool disk = facts->task_state & WAFFLE_TASK_UNINTERRUPTIBLE;

	if (facts->object && meaning_is_listed(facts->object->detail, memory_file_systems))
		return WAIT_OTHER;
	return disk ? file : WAIT_OTHER;
}

static bool is_fifo(const struct wait_facts *facts)
{
	return facts->object && text_begins(facts->object->detail, DESCRIPTOR_FIFO);
}

static enum wait_kind kind_by_object(const struct wait_facts *facts, enum wait_kind file)
{
	if (facts->pipe || is_fifo(facts))
		return WAIT_PIPE;
	for (size_t i = 0; facts->object && i < sizeof(object_kinds) / sizeof(object_kinds[0]); i++)
		if (text_begins(facts->object->name, object_kinds[i].prefix))
			return object_kinds[i].kind;
	return kind_by_state(facts, file);
}

/* Size of the two adjacent futexes of a condition variable in the C library. */
#define CONDITION_BYTES 8u

/* Whether a variable, such as "_PyRuntime+0x1b0", belongs to the interpreter's state. */
static bool is_python_state(const char *variable)
{
	size_t len = strlen(WAIT_PYTHON_STATE);

	return variable && !strncmp(variable, WAIT_PYTHON_STATE, len) &&
	       (!variable[len] || variable[len] == '+');
}

/* The lock of a `critical` section of OpenMP, as GCC (gcc/omp-low.cc) and Clang name it. */
static bool is_openmp_lock(const char *variable)
{
	return variable && text_begins(variable, ".gomp_critical_");
}

/* Only its holder can release a priority-inheriting lock, whatever the program uses it for. */
static bool is_pi(const struct wait_facts *facts)
{
	return facts->args && facts->syscall && facts->call == WAIT_CALL_FUTEX &&
	       wait_takes_pi_lock(facts->args);
}

/* Mutexes of Rust, and others built to the same pattern. */
static bool is_own_mutex(const struct wait_facts *facts)
{
	return facts->futex == FUTEX_USE_OWN && facts->args &&
	       ((uint32_t)facts->args[1] & WAIT_FUTEX_COMMAND) == WAIT_FUTEX_WAIT_BITSET &&
	       (uint32_t)facts->args[2] == WAIT_MUTEX_CONTENDED;
}

bool futex_use_is_lock(enum futex_use use)
{
	return use == FUTEX_USE_LOCK || use == FUTEX_USE_SHARED;
}

bool wait_is_guess(const struct wait_facts *facts, enum wait_kind kind)
{
	bool unknown = facts->futex == FUTEX_USE_UNKNOWN || facts->futex == FUTEX_USE_OWN;

	switch (kind) {
	case WAIT_GIL:
		return true;
	case WAIT_MUTEX:
		/* Any other futex may have the value of a mutex. */
		return unknown && wait_has_futex(facts, kind) && !is_pi(facts);
	case WAIT_FUTEX:
		return unknown || facts->futex == FUTEX_USE_LIBC;
	default:
		return false;
	}
}

/*
 * Finds out what a futex is, preferably by the program's functions. Otherwise by its use: the C
 * library waits for mutexes by FUTEX_WAIT, and for all else by FUTEX_WAIT_BITSET.
 *
 * Python's interpreter lock (a mutex and condition variables) lies in the interpreter's state. If
 * the address of that state is unknown, we rely on a rule that can be wrong. Python waits for the
 * lock at a condition variable with a timeout of CLOCK_MONOTONIC, but programs also use these.
 */
static enum wait_kind futex_kind(const struct wait_facts *facts)
{
	uint32_t op, command;

	if (!facts->args || facts->call != WAIT_CALL_FUTEX)
		return WAIT_FUTEX;
	if (is_python_state(facts->variable))
		return WAIT_GIL;
	op = (uint32_t)facts->args[1];
	command = op & WAIT_FUTEX_COMMAND;
	if (is_pi(facts))
		return WAIT_MUTEX;
	if (futex_use_is_lock(facts->futex) || is_own_mutex(facts) ||
	    is_openmp_lock(facts->variable))
		return WAIT_MUTEX;
	if (facts->futex != FUTEX_USE_OTHER && facts->futex != FUTEX_USE_ENDS &&
	    command == WAIT_FUTEX_WAIT && (uint32_t)facts->args[2] == WAIT_MUTEX_CONTENDED)
		return WAIT_MUTEX;
	if (facts->python == WAIT_PYTHON && !facts->variable && command == WAIT_FUTEX_WAIT_BITSET &&
	    !(op & WAIT_FUTEX_CLOCK_REALTIME))
		return WAIT_GIL;
	return WAIT_FUTEX;
}

enum wait_kind wait_kind_of(const struct wait_facts *facts)
{
	if (facts->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
		return WAIT_STOPPED;
	if (facts->fault)
		return WAIT_FAULT;
	switch (facts->call) {
	case WAIT_CALL_NONE:
		return WAIT_NONE;
	case WAIT_CALL_FUTEX:
	case WAIT_CALL_FUTEX2:
		return futex_kind(facts);
	case WAIT_CALL_READ:
		return kind_by_object(facts, WAIT_FILE_READ);
	case WAIT_CALL_WRITE:
		return kind_by_object(facts, WAIT_FILE_WRITE);
	case WAIT_CALL_IOCTL:
		return kind_by_object(facts, WAIT_OTHER);
	case WAIT_CALL_SOCKET:
	case WAIT_CALL_SEND:
		return WAIT_SOCKET;
	case WAIT_CALL_POLL:
		return WAIT_POLL;
	case WAIT_CALL_POLL_LIST:
		return facts->args && !(uint32_t)facts->args[1] ? WAIT_SLEEP : WAIT_POLL;
	case WAIT_CALL_SELECT:
		return facts->args && !(uint32_t)facts->args[0] ? WAIT_SLEEP : WAIT_POLL;
	case WAIT_CALL_SLEEP:
		return WAIT_SLEEP;
	case WAIT_CALL_SIGNAL:
		return WAIT_SIGNAL;
	case WAIT_CALL_CHILD:
		return WAIT_CHILD;
	case WAIT_CALL_FILE_READ:
		return is_fifo(facts) ? WAIT_PIPE : kind_by_state(facts, WAIT_FILE_READ);
	case WAIT_CALL_FILE_WRITE:
	case WAIT_CALL_FSYNC:
	case WAIT_CALL_MSYNC:
		return kind_by_state(facts, WAIT_FILE_WRITE);
	case WAIT_CALL_FILE_LOCK:
		return WAIT_MUTEX;
	case WAIT_CALL_QUEUE_READ:
	case WAIT_CALL_QUEUE_WRITE:
		return WAIT_PIPE;
	case WAIT_CALL_OTHER:
		break;
	}
	return WAIT_OTHER;
}

bool wait_has_futex(const struct wait_facts *facts, enum wait_kind kind)
{
	return (kind == WAIT_MUTEX || kind == WAIT_FUTEX || kind == WAIT_GIL) && facts->args &&
	       (facts->call == WAIT_CALL_FUTEX || facts->call == WAIT_CALL_FUTEX2);
}

uint64_t wait_futex_address(const struct wait_facts *facts)
{
	bool bitset = ((uint32_t)facts->args[1] & WAIT_FUTEX_COMMAND) == WAIT_FUTEX_WAIT_BITSET;

	if (facts->call != WAIT_CALL_FUTEX || !bitset || futex_use_is_lock(facts->futex) ||
	    (uint32_t)facts->args[2] == WAIT_MUTEX_CONTENDED)
		return facts->args[0];
	return facts->args[0] & ~(uint64_t)(CONDITION_BYTES - 1);
}

bool wait_is_unnamed_futex(const char *text)
{
	return text_begins(text, WAIT_FUTEX_BEGIN) && !strchr(text, '(');
}

/* The end of wait_unnamed_text(). */
#define MORE " more"

/* Whether the text of an object says nothing behind its number. */
static bool is_plain_end(const char *end)
{
	const char *more = strstr(end, MORE);

	return !*end || !strcmp(end, "]") || !strcmp(end, "] (unix)") ||
	       (text_begins(end, " of ") && !strchr(end, ',') && !(more && !more[strlen(MORE)]));
}

static bool has_letter(const char *text)
{
	while (*text && !isalpha((unsigned char)*text))
		text++;
	return *text;
}

const char *wait_file_system(const char *text)
{
	const char *at = *text == '/' ? strstr(text, " (") : NULL;

	for (; at; at = strstr(at + 1, " (")) {
		const char *end = at + 2 + strcspn(at + 2, " ,()");

		if (*end == ')' && (!end[1] || end[1] == ',' || text_begins(end + 1, " and ")))
			return at;
	}
	return NULL;
}

/* "/data/seg.N" of "/data/seg.7 (ext4)", with what is said of it behind a comma. Files of one
 * folder whose names differ only in numbers are parts of one thing. A name without letters, such as
 * that of a table of PostgreSQL, is a thing of its own, and so are devices. 0: it is no such file.
 */
static uint32_t numbered_file(struct strtab *texts, const char *text)
{
	static const char *const apart[] = {"/dev/", "/proc/", "/sys/"};
	const char *end = wait_file_system(text);
	char kind[1024], *name;
	size_t len;
	int more;

	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
		if (text_begins(text, apart[i]))
			return 0;
	if (!end || strchr(end, ')')[1] == ' ' || end - text >= (ptrdiff_t)sizeof(kind))
		return 0;
	memcpy(kind, text, (size_t)(end - text));
	kind[end - text] = '\0';
	name = strrchr(kind, '/') + 1;
	if (!strpbrk(name, "0123456789") || !has_letter(name))
		return 0;
	len = (size_t)(name - kind);
	len += text_without_numbers(name, sizeof(kind) - len, name);
	more = snprintf(kind + len, sizeof(kind) - len, "%s", strchr(end, ')') + 1);
	return more < (int)(sizeof(kind) - len) ? strtab_put(texts, kind, len + (size_t)more) : 0;
}

uint32_t wait_unnamed(struct strtab *texts, uint32_t object, bool lock)
{
	static const char *const begins[] = {WAIT_FUTEX_BEGIN, "pipe:[", DESCRIPTOR_SOCKET "[",
					     DESCRIPTOR_INODE};
	const char *text = strtab_get(texts, object);
	char kind[256];

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		const char *number = text + strlen(begins[i]), *end;
		int len;

		if (!text_begins(text, begins[i]))
			continue;
		end = number + strspn(number, "0123456789abcdef");
		len = snprintf(kind, sizeof(kind), "%sN%s", begins[i], end);
		return is_plain_end(end) && len < (int)sizeof(kind)
			       ? strtab_put(texts, kind, (size_t)len)
			       : 0;
	}
	return lock ? 0 : numbered_file(texts, text);
}

uint32_t wait_unnamed_text(struct strtab *texts, uint32_t object, size_t count)
{
	const char *one = strtab_get(texts, object), *file = wait_file_system(one);
	size_t at = file ? (size_t)(strchr(file, ')') + 1 - one) : strlen(one);
	char text[1024];
	int len = wait_is_unnamed_futex(one)
			  ? snprintf(text, sizeof(text), "%zu" WAIT_FUTEXES_END, count)
			  : snprintf(text, sizeof(text), "%.*s and %zu" MORE "%s", (int)at, one,
				     count - 1, one + at);

	return len < (int)sizeof(text) ? strtab_put(texts, text, (size_t)len) : object;
}

static int put_futex(char *text, size_t size, const struct wait_facts *facts)
{
	uint64_t address = wait_futex_address(facts);

	if (is_python_state(facts->variable))
		return snprintf(text, size, WAIT_GIL_BEGIN " (" WAIT_PYTHON_STATE ")");
	if (facts->variable)
		return snprintf(text, size, WAIT_FUTEX_BEGIN "%" PRIx64 " (%s)", address,
				facts->variable);
	return snprintf(text, size, WAIT_FUTEX_BEGIN "%" PRIx64, address);
}

/* The port of name servers, and what systemd's resolver listens to for programs of this machine. */
#define DNS_PORT ":53"
#define DNS_UNIX "/run/systemd/resolve/io.systemd.Resolve"

/* The name server at the other end of a socket, such as "127.0.0.53:53"; NULL: it is none. */
static const char *dns_server(const struct store_object *object)
{
	const char *between = strstr(object->detail, DESCRIPTOR_BETWEEN);
	const char *remote = between ? between + strlen(DESCRIPTOR_BETWEEN) : "";
	size_t len = strcspn(remote, DESCRIPTOR_AFTER), port = strlen(DNS_PORT);

	if (!descriptor_is_socket(object->name))
		return NULL;
	if (len > port && !strncmp(remote + len - port, DNS_PORT, port))
		return remote;
	return strstr(object->detail, DNS_UNIX);
}

uint32_t wait_object_text(struct strtab *texts, const struct wait_facts *facts, enum wait_kind kind)
{
	char text[1024];
	int len;

	if (facts->object) {
		const struct store_object *object = facts->object;
		const char *dns = dns_server(object);

		if (dns)
			len = snprintf(text, sizeof(text), "DNS server %s (%s)", dns, object->name);
		else
			len = snprintf(text, sizeof(text), *object->detail ? "%s (%s)" : "%s",
				       facts->name ?: object->name, object->detail);
	} else if (wait_has_futex(facts, kind)) {
		len = put_futex(text, sizeof(text), facts);
	} else {
		return 0;
	}
	if (len >= (int)sizeof(text))
		len = sizeof(text) - 1;
	return strtab_put(texts, text, (size_t)len);
}

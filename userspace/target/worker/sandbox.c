// SPDX-License-Identifier: Apache-2.0
#include "target/worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOBODY 65534
/* No real user has an id from here on. The processes must not run as "nobody", since services do: a
 * process of the same user could stop and kill them. */
#define STRANGERS 0xf0000000u
#define FILES_MAX 1024 /* split DWARF may have a file per unit */
#define MEMORY_MAX (4ull << 30)
#define MEMORY_MIN (1ull << 30)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

size_t sandbox_memory(void)
{
#ifdef SANITIZED
	return 0; /* AddressSanitizer reserves more address space than any limit */
#else
	struct sysinfo info;
	uint64_t half;

	if (sysinfo(&info))
		return MEMORY_MIN;
	half = (uint64_t)info.totalram * info.mem_unit / 2;
	return half > MEMORY_MAX ? MEMORY_MAX : half < MEMORY_MIN ? MEMORY_MIN : half;
#endif
}

void sandbox_seconds(unsigned seconds)
{
	struct rlimit limit;
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used) || getrlimit(RLIMIT_CPU, &limit))
		return;
	limit.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + seconds;
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_cur <= limit.rlim_max)
		setrlimit(RLIMIT_CPU, &limit);
}

/* Leaves /dev/null as descriptors 0 to 2, then the two sockets, and closes all others. */
static int descriptors_close(int socket, int control)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int from[] = {null, null, null, socket, control};

	if (null < 0)
		return -errno;
	/* Move all of them to high numbers first: one may occupy the target number of another. */
	for (int fd = 0; fd <= SANDBOX_CONTROL; fd++) {
		from[fd] = fcntl(from[fd], F_DUPFD_CLOEXEC, SANDBOX_CONTROL + 1);
		if (from[fd] < 0)
			return -errno;
	}
	for (int fd = 0; fd <= SANDBOX_CONTROL; fd++)
		if (dup3(from[fd], fd, fd < SANDBOX_SOCKET ? 0 : O_CLOEXEC) < 0)
			return -errno;
	return syscall(SYS_close_range, SANDBOX_CONTROL + 1, UINT_MAX, 0) ? -errno : 0;
}

static bool become(unsigned id)
{
	return !setresgid(id, id, id) && !setresuid(id, id, id);
}

/* Errors are ignored if a process without privileges has none to drop. */
static int capabilities_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2];

	memset(none, 0, sizeof(none));
	for (unsigned long cap = 0; cap < 64; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (geteuid() == 0) {
		/* This fails if the user namespace lacks these ids (even that of nobody), or if the
		 * capability to change ids is missing. Then the process stays root, without
		 * capabilities. */
		if (!setgroups(0, NULL) && !become(STRANGERS + (unsigned)getpid()))
			(void)become(NOBODY);
	}
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

/* Lowers a limit to `max`. A limit that is already lower stays, since it cannot be raised. */
static int limit_lower(int resource, rlim_t max)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return -errno;
	limit.rlim_max = limit.rlim_max < max ? limit.rlim_max : max;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) ? -errno : 0;
}

static int limits_set(void)
{
	const rlim_t memory = sandbox_memory();

	return limit_lower(RLIMIT_CORE, 0)
		       ?: limit_lower(RLIMIT_FSIZE, 0)
		       ?: limit_lower(RLIMIT_NOFILE, FILES_MAX)
			  ?: (memory ? limit_lower(RLIMIT_AS, memory) : 0);
}

static int signals_reset(void)
{
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < SIGRTMIN; number++)
		if (number != SIGKILL && number != SIGSTOP)
			sigaction(number, &normal, NULL);
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) ? -errno : 0;
}

int sandbox_drop(int socket, int control)
{
	int result = descriptors_close(socket, control);

	/* Use a session of its own, since Ctrl-C is meant for the tracer, which still needs this
	 * process. */
	setsid();
	result = result ?: signals_reset();
	result = result ?: limits_set();
	result = result ?: capabilities_drop();
	if (!result &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)))
		result = -errno;
	return result;
}

/* ---- open() and readlink(), which the filter traps ---- */

#define NAMES_MAX 256

/* The path of an opened file. Its key is device and inode, since libraries duplicate
 * descriptors. */
struct name {
	dev_t dev;
	ino_t ino;
	char path[PATH_MAX];
};

/* Global, since a signal handler takes no argument. The process has a single thread, and only
 * parses. */
static struct {
	sandbox_open_fn open;
	struct name *names; /* a ring of the last NAMES_MAX names */
	unsigned next;
	sigjmp_buf late;
	volatile sig_atomic_t limited;
} sandbox;

void sandbox_name(int fd, const char *path)
{
	struct name *name = &sandbox.names[sandbox.next % NAMES_MAX];
	size_t len = strnlen(path, PATH_MAX);
	struct stat status;

	if (!sandbox.names || !len || len == PATH_MAX || fstat(fd, &status))
		return;
	name->dev = status.st_dev;
	name->ino = status.st_ino;
	memcpy(name->path, path, len + 1);
	sandbox.next++;
}

/* The descriptor N of a path "/proc/self/fd/N". -1: it is another path. */
static int own_descriptor(const char *path)
{
	static const char before[] = "/proc/self/fd/";
	const char *digits = path + sizeof(before) - 1;
	int fd = 0;

	if (strncmp(path, before, sizeof(before) - 1) != 0 || !*digits)
		return -1;
	for (; *digits >= '0' && *digits <= '9' && fd < FILES_MAX; digits++)
		fd = fd * 10 + (*digits - '0');
	return *digits ? -1 : fd;
}

static long opened(const char *path)
{
	char real[PATH_MAX] = "";
	int fd = own_descriptor(path);

	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -ENOENT : fd;
	}
	fd = sandbox.open(path, real, sizeof(real));
	if (fd >= 0)
		sandbox_name(fd, real);
	return fd;
}

/* Emulates readlink() of /proc/self/fd/N, from which libdw gets a file's path through realpath().
 * Any other path is not a link, since the tracer sends resolved paths. */
static long link_read(const char *path, char *to, size_t size)
{
	int fd = own_descriptor(path);
	struct stat status;

	if (fd < 0)
		return -EINVAL;
	if (fstat(fd, &status))
		return -ENOENT;
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		const struct name *name = &sandbox.names[i];
		size_t len = strnlen(name->path, PATH_MAX);

		if (!len || name->dev != status.st_dev || name->ino != status.st_ino)
			continue;
		len = len < size ? len : size;
		memcpy(to, name->path, len);
		return (long)len;
	}
	return -ENOENT;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define REGISTER(context, name) ((context)->uc_mcontext.gregs[name])
#define RESULT(context) REGISTER(context, REG_RAX)
#define ARGUMENT_0(context) REGISTER(context, REG_RDI)
#define ARGUMENT_1(context) REGISTER(context, REG_RSI)
#define ARGUMENT_2(context) REGISTER(context, REG_RDX)
#define ARGUMENT_3(context) REGISTER(context, REG_R10)
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#define REGISTER(context, number) ((context)->uc_mcontext.regs[number])
#define RESULT(context) REGISTER(context, 0)
#define ARGUMENT_0(context) REGISTER(context, 0)
#define ARGUMENT_1(context) REGISTER(context, 1)
#define ARGUMENT_2(context) REGISTER(context, 2)
#define ARGUMENT_3(context) REGISTER(context, 3)
#else
#error "no seccomp filter for this machine"
#endif

#define POINTER(value) ((char *)(uintptr_t)(value))

static void call_trapped(int number, siginfo_t *info, void *arg)
{
	ucontext_t *context = arg;
	int before = errno;
	long result = -EPERM;

	(void)number;
	switch (info->si_syscall) {
#ifdef SYS_open
	case SYS_open:
		result = opened(POINTER(ARGUMENT_0(context)));
		break;
	case SYS_readlink:
		result = link_read(POINTER(ARGUMENT_0(context)), POINTER(ARGUMENT_1(context)),
				   (size_t)ARGUMENT_2(context));
		break;
#endif
	case SYS_openat:
		result = opened(POINTER(ARGUMENT_1(context)));
		break;
	case SYS_readlinkat:
		result = link_read(POINTER(ARGUMENT_1(context)), POINTER(ARGUMENT_2(context)),
				   (size_t)ARGUMENT_3(context));
		break;
	default:
		break;
	}
	errno = before;
	RESULT(context) = (__typeof__(RESULT(context)))result;
}

/* ---- work with a time limit ---- */

static void time_over(int number)
{
	(void)number;
	if (!sandbox.limited)
		return;
	sandbox.limited = 0;
	siglongjmp(sandbox.late, 1);
}

static void timer_set(unsigned milliseconds)
{
	const struct itimerval end = {
		.it_value = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}};

	setitimer(ITIMER_VIRTUAL, &end, NULL);
}

bool sandbox_limited(unsigned milliseconds, void (*work)(void *arg), void *arg)
{
	bool limited = sandbox.names;

	if (limited && sigsetjmp(sandbox.late, 1))
		return false;
	if (limited) {
		sandbox.limited = 1;
		timer_set(milliseconds);
	}
	work(arg);
	if (limited) {
		sandbox.limited = 0;
		timer_set(0);
	}
	return true;
}

/* ---- the filter ---- */

#define AT(field) ((uint32_t)offsetof(struct seccomp_data, field))
/* The low half of an argument. Both supported machines are little-endian. */
#define LOW(number) (AT(args) + 8 * (number))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define SKIP_UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(call) SKIP_UNLESS(SYS_##call, 1), RETURN(SECCOMP_RET_ALLOW)
#define TRAP(call) SKIP_UNLESS(SYS_##call, 1), RETURN(SECCOMP_RET_TRAP)
#define DENY RETURN(SECCOMP_RET_ERRNO | EPERM)
/* Allows the call if none of these bits is set in the argument. */
#define ALLOW_IF_CLEAR(call, argument, bits)                                                       \
	SKIP_UNLESS(SYS_##call, 4), LOAD(LOW(argument)),                                           \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0), RETURN(SECCOMP_RET_ALLOW), DENY
#define ALLOW_IF_IS(call, argument, value)                                                         \
	SKIP_UNLESS(SYS_##call, 4), LOAD(LOW(argument)), SKIP_UNLESS(value, 1),                    \
		RETURN(SECCOMP_RET_ALLOW), DENY
#define EXECUTABLE 4u /* PROT_EXEC */

static const struct sock_filter filter[] = {
	LOAD(AT(arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(AT(nr)),
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(fstat),
	ALLOW(close),
	ALLOW(fcntl),
	ALLOW(dup),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(madvise),
	ALLOW(brk),
	ALLOW(futex),
	ALLOW(clock_gettime),
	ALLOW(getrandom),
	ALLOW(sysinfo), /* called by qsort() */
	ALLOW(uname),   /* chooses return probes by kernel version: probe/find/find_end.c */
	ALLOW(getrusage),
	ALLOW(setitimer),
#ifdef SANITIZED
	ALLOW(sigaltstack), /* called by AddressSanitizer in siglongjmp() */
#endif
	ALLOW(getpid),
	ALLOW(gettid),
	ALLOW(sched_yield),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(restart_syscall),
	ALLOW(exit),
	ALLOW(exit_group),
	ALLOW_IF_IS(sendmsg, 0, SANDBOX_SOCKET),
	ALLOW_IF_IS(recvmsg, 0, SANDBOX_SOCKET),
	/* assert() writes to standard error, which is /dev/null. */
	ALLOW_IF_IS(write, 0, STDERR_FILENO),
	ALLOW_IF_IS(writev, 0, STDERR_FILENO),
	/* Only for the process itself: each request sets a new limit of CPU time. */
	ALLOW_IF_IS(prlimit64, 0, 0),
	/* Newer C libraries call it for fstat(). */
	ALLOW_IF_IS(newfstatat, 3, AT_EMPTY_PATH),
	ALLOW_IF_CLEAR(mprotect, 2, EXECUTABLE),
	/* Anonymous memory only: the owner of a mapped file could change it. And no executable
	 * memory. */
	SKIP_UNLESS(SYS_mmap, 6),
	LOAD(LOW(3)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 3),
	LOAD(LOW(2)),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, EXECUTABLE, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	DENY,
#ifdef SYS_open
	TRAP(open),
	TRAP(readlink),
#endif
	TRAP(openat),
	TRAP(readlinkat),
	DENY,
};

int sandbox_shut(sandbox_open_fn open)
{
	struct sigaction action = {.sa_sigaction = call_trapped, .sa_flags = SA_SIGINFO};
	struct sigaction late = {.sa_handler = time_over};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
				     .filter = (struct sock_filter *)(uintptr_t)filter};
	void *names = mmap(NULL, NAMES_MAX * sizeof(struct name), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (names == MAP_FAILED || sigaction(SIGSYS, &action, NULL) ||
	    sigaction(SIGVTALRM, &late, NULL))
		return -errno;
	sandbox.open = open;
	sandbox.names = names;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}

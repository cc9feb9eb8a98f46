// SPDX-License-Identifier: Apache-2.0
#include "target/process/process.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/process/opener.h"

#define DELETED " (deleted)"
#define PF_KTHREAD 0x00200000u /* include/linux/sched.h */
/* Limit of the paths of a process's mappings: it may map a file with a long path 65530 times. */
#define PATHS_BYTES_MAX (8u << 20)

void mapping_path_trim(char *path)
{
	size_t len = strlen(path);

	if (len > strlen(DELETED) && !strcmp(path + len - strlen(DELETED), DELETED))
		path[len - strlen(DELETED)] = '\0';
}

static bool is_octal(const char *digits)
{
	return digits[0] >= '0' && digits[0] <= '3' && digits[1] >= '0' && digits[1] <= '7' &&
	       digits[2] >= '0' && digits[2] <= '7';
}

void process_unescape(char *path)
{
	char *to = path;

	for (const char *at = path; *at; to++) {
		if (at[0] == '\\' && is_octal(at + 1)) {
			*to = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
}

/* Parses a line of /proc/PID/maps (proc(5)). */
static bool mapping_parse(char *line, struct mapping *mapping)
{
	unsigned high, low;
	char permissions[5];
	int path_at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &mapping->start, &mapping->end, permissions, &mapping->offset, &high, &low,
		   &mapping->ino, &path_at) < 7 ||
	    !path_at || strlen(permissions) != 4)
		return false;
	mapping->dev = high << 20 | low;
	mapping->writable = permissions[1] == 'w';
	mapping->executable = permissions[2] == 'x';
	mapping->path = line + path_at;
	mapping->path[strcspn(mapping->path, "\n")] = '\0';
	mapping_path_trim(mapping->path);
	return true;
}

bool mapping_is_program(const struct mapping *mapping)
{
	return mapping->executable && mapping->ino && mapping->path[0] == '/';
}

/* Reads the state and the kernel's flags of the main thread from /proc/PID/stat (proc(5)). */
static bool stat_read(pid_t pid, char *state, unsigned *flags)
{
	char path[64], line[512] = "";
	const char *end;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return false;
	(void)!fgets(line, sizeof(line), stat);
	fclose(stat);
	end = strrchr(line, ')'); /* the name, which the process chooses, may have ')', too */
	return end && sscanf(end, ") %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

bool process_has_ended(pid_t tid)
{
	unsigned flags;
	char state;

	errno = 0;
	if (stat_read(tid, &state, &flags))
		return state == 'Z' || state == 'X';
	return errno == ENOENT || errno == ESRCH;
}

uint32_t process_number(const char *text)
{
	unsigned long pid = strtoul(text, NULL, 10);

	return pid <= INT_MAX ? (uint32_t)pid : 0;
}

pid_t process_live_task(pid_t pid)
{
	char path[64], state;
	struct dirent *entry;
	pid_t found = pid;
	unsigned flags;
	DIR *tasks;

	if (!stat_read(pid, &state, &flags) || (state != 'Z' && state != 'X'))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && found == pid && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		/* A thread that has exited has no memory, so its link "exe" is unreadable. */
		snprintf(path, sizeof(path), "/proc/%d/exe", tid);
		if (tid > 0 && tid != pid && readlink(path, (char[1]){0}, 1) > 0)
			found = tid;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* The mappings of a thread are those of its process. */
static int task_mappings(struct mappings *mappings, pid_t pid, bool all, struct error *err)
{
	char name[64], *line = NULL;
	size_t size = 0, paths = 0;
	int result = 0;
	FILE *maps;

	*mappings = (struct mappings){0};
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	if (!maps)
		return error_set(err, errno == ENOENT ? ESRCH : errno, "pid %d: %s", pid,
				 errno == ENOENT ? "no such process" : strerror(errno));
	while (!result && getline(&line, &size, maps) > 0) {
		struct mapping mapping;

		if (!mapping_parse(line, &mapping) || (!all && !mapping_is_program(&mapping)) ||
		    strlen(mapping.path) > PATHS_BYTES_MAX - paths)
			continue;
		paths += strlen(mapping.path);
		mapping.path = strdup(mapping.path);
		if (!mapping.path || !vec_push(&mappings->list, mapping)) {
			free(mapping.path);
			result = error_set(err, ENOMEM, "pid %d: out of memory", pid);
		}
	}
	free(line);
	fclose(maps);
	if (result)
		mappings_free(mappings);
	return result;
}

static int mappings_read(struct mappings *mappings, pid_t pid, bool all, struct error *err)
{
	int result = task_mappings(mappings, pid, all, err);
	pid_t task;

	if (result || mappings->list.len)
		return result;
	task = process_live_task(pid);
	return task == pid ? 0 : task_mappings(mappings, task, all, err);
}

int process_mappings(struct mappings *mappings, pid_t pid, struct error *err)
{
	return mappings_read(mappings, pid, false, err);
}

int process_mappings_all(struct mappings *mappings, pid_t pid, struct error *err)
{
	return mappings_read(mappings, pid, true, err);
}

void mappings_free(struct mappings *mappings)
{
	for (size_t i = 0; i < mappings->list.len; i++)
		free(mappings->list.data[i].path);
	vec_free(&mappings->list);
}

uint32_t process_thread_count(pid_t pid)
{
	struct stat tasks;
	char path[64];

	/* The folder has two links, plus one per thread. */
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return !stat(path, &tasks) && tasks.st_nlink > 2 ? (uint32_t)tasks.st_nlink - 2 : 0;
}

long process_status_field(pid_t pid, const char *field)
{
	char name[64], line[256];
	long value = -1;
	FILE *status;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	status = fopen(name, "re");
	if (!status)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), status))
		if (!strncmp(line, field, strlen(field)) && line[strlen(field)] == ':')
			value = strtol(line + strlen(field) + 1, NULL, 10);
	fclose(status);
	return value;
}

/* Fields of /proc/PID/stat behind the name: the state is the first. */
#define STAT_EXIT_CODE 49

const char *process_stat(pid_t pid, char line[PROCESS_STAT_BYTES])
{
	char path[64];
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return NULL;
	line[0] = '\0';
	(void)!fgets(line, PROCESS_STAT_BYTES, stat);
	fclose(stat);
	return strrchr(line, ')');
}

bool process_is_zombie(pid_t pid, int *status)
{
	char line[PROCESS_STAT_BYTES];
	const char *at = process_stat(pid, line);

	if (!at || strncmp(at, ") Z", 3) != 0 || process_live_task(pid) != pid)
		return false;
	at += 2;
	for (unsigned field = 0; at && field < STAT_EXIT_CODE; field++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	*status = at ? (int)strtol(at, NULL, 10) : 0;
	return true;
}

int process_check(pid_t pid, struct error *err)
{
	long tgid = process_status_field(pid, "Tgid");
	unsigned flags;
	char state;

	if (tgid < 0)
		return error_set(err, ESRCH, "pid %d: no such process", pid);
	if (tgid != pid)
		return error_set(err, EINVAL, "pid %d: is a thread of process %ld; use --pid %ld",
				 pid, tgid, tgid);
	if (stat_read(pid, &state, &flags) && state == 'Z' && process_live_task(pid) == pid)
		return error_set(
			err, ESRCH,
			"pid %d: it has ended, and its parent has not waited for it yet (zombie)",
			pid);
	return 0;
}

bool process_is_kernel_thread(pid_t pid)
{
	unsigned flags;
	char state;

	return stat_read(pid, &state, &flags) && flags & PF_KTHREAD;
}

bool process_is_privileged(pid_t pid)
{
	uint64_t pair[2]; /* getauxval(3): a type and its value */
	bool is = true;
	char name[64];
	FILE *auxv;

	snprintf(name, sizeof(name), "/proc/%d/auxv", pid);
	auxv = fopen(name, "re");
	if (!auxv)
		return true;
	while (fread(pair, sizeof(pair), 1, auxv) == 1)
		if (pair[0] == AT_SECURE)
			is = pair[1] != 0;
	fclose(auxv);
	return is;
}

int process_find(pid_list *pids, const char *name, struct error *err)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int result = 0;

	if (!proc)
		return error_set(err, errno, "/proc: %s", strerror(errno));
	while (!result && (entry = readdir(proc))) {
		char comm[16];
		pid_t pid;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		pid = (pid_t)strtol(entry->d_name, NULL, 10);
		process_comm(pid, comm);
		if (pid != getpid() && !strcmp(comm, name) && !vec_push(pids, pid))
			result = error_set(err, ENOMEM, "out of memory");
	}
	closedir(proc);
	if (!result && !pids->len)
		result = error_set(
			err, ESRCH,
			"--comm %s: no process of that name (names are cut at 15 characters)",
			name);
	return result;
}

/* `memory`: the file shows memory of the process. */
static ssize_t proc_read(pid_t pid, const char *file, bool memory, char *text, size_t size)
{
	char name[64];
	ssize_t len;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/%s", pid, file);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = memory ? opener_read(fd, text, size - 1, 0) : read(fd, text, size - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len;
}

void process_comm(pid_t pid, char comm[16])
{
	char text[64];
	ssize_t len = proc_read(pid, "comm", false, text, sizeof(text));

	if (len <= 0) {
		memcpy(comm, "?", 2);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	snprintf(comm, 16, "%.15s", text);
}

/* The value of a line such as "State:\tt (tracing stop)"; "": there is no such line. */
static const char *status_value(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	return line ? line + strlen(key) : "";
}

/* Reads the first lines of a thread's status, and returns its state: 'T' if a signal has stopped
 * it, 't' if its tracer has; 0: unknown. */
static char status_read(pid_t tid, char text[1024])
{
	return proc_read(tid, "status", false, text, 1024) > 0 ? *status_value(text, "\nState:\t")
							       : 0;
}

bool process_is_stopped(pid_t tid)
{
	char text[1024], state = status_read(tid, text);

	return state == 'T' || state == 't';
}

bool process_is_stopped_by_signal(pid_t tid)
{
	char text[1024];

	return status_read(tid, text) == 'T';
}

bool process_is_frozen(pid_t tid)
{
	char text[64];

	/* The functions of cgroup v1 and v2, kernel/freezer.c and kernel/signal.c. */
	return proc_read(tid, "wchan", false, text, sizeof(text)) > 0 &&
	       (!strcmp(text, "__refrigerator") || !strcmp(text, "do_freezer_trap"));
}

pid_t process_tracer(pid_t tid)
{
	char text[1024];
	uint32_t tracer;

	if (status_read(tid, text) != 't')
		return 0;
	/* The kernel gives the number of the thread that traces. */
	tracer = process_number(status_value(text, "\nTracerPid:\t"));
	if (!tracer || !status_read((pid_t)tracer, text)) /* it has ended, and let go */
		return 0;
	return (pid_t)process_number(status_value(text, "\nTgid:\t"));
}

void process_cmdline(pid_t pid, char *text, size_t size)
{
	ssize_t len = proc_read(pid, "cmdline", true, text, size);
	char comm[16];

	/* A process may have overwritten its arguments, even with NULs only. */
	while (len > 0 && !text[len - 1])
		len--;
	if (len <= 0) {
		process_comm(pid, comm);
		snprintf(text, size, "[%s]", comm);
		return;
	}
	for (ssize_t i = 0; i < len; i++)
		if (!text[i])
			text[i] = ' ';
}

pid_t process_parent(pid_t pid)
{
	long parent = process_status_field(pid, "PPid");

	return parent > 0 ? (pid_t)parent : 0;
}

long process_user(pid_t pid)
{
	return process_status_field(pid, "Uid");
}

uint64_t process_network(pid_t pid)
{
	char path[64];
	struct stat info;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return stat(path, &info) ? 0 : info.st_ino;
}

const char *environment_value(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

const char *process_own_namespace(void)
{
	/* PROC_PID_INIT_INO and PROC_TIME_INIT_INO of include/linux/proc_ns.h */
	static const struct {
		const char *path, *name;
		ino_t first;
	} rows[] = {
		{"/proc/self/ns/pid", "PID", 0xEFFFFFFC},
		{"/proc/self/ns/time", "time", 0xEFFFFFFA},
	};
	struct stat own;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!stat(rows[i].path, &own) && own.st_ino != rows[i].first)
			return rows[i].name;
	return NULL;
}

bool process_link(pid_t pid, const char *name, char path[PATH_MAX])
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/%s", pid, name);
	len = readlink(link, path, PATH_MAX - 1);
	path[len > 0 ? len : 0] = '\0';
	return len > 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "target/needed.h"

#include <fcntl.h>
#include <gelf.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/needed_elsewhere.h"
#include "target/process.h"
#include "util/input.h"

/* Whether something in the process's folder of /proc is the same as in ours. */
static bool same(pid_t pid, const char *what)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/%s", what);
	if (stat(path, &ours))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return !stat(path, &theirs) && ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* Whether a path leads the process to the same file as us. */
static bool same_files(pid_t pid)
{
	return same(pid, "ns/mnt") && same(pid, "root/.");
}

/* The interpreter that an ELF file names; false: none, or not an ELF file. */
static bool interpreter_of(const char *program, char *name, size_t size)
{
	int fd = input_open(program);
	bool found = false;
	size_t segments;
	Elf *elf;

	if (fd < 0)
		return false;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && !elf_getphdrnum(elf, &segments)) {
		for (size_t i = 0; i < segments && !found; i++) {
			GElf_Phdr segment;

			if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_INTERP &&
			    segment.p_filesz > 1 && segment.p_filesz < size) {
				ssize_t len =
					pread(fd, name, segment.p_filesz, (off_t)segment.p_offset);

				found = len == (ssize_t)segment.p_filesz && !name[len - 1] &&
					name[0] == '/';
			}
		}
	}
	elf_end(elf);
	close(fd);
	return found;
}

/* Lines are "\tlibfoo.so.1 => /path/libfoo.so.1 (0x…)" or "\t/path/libbar.so (0x…)". A path that
 * was given as a relative one is in the process's working directory. */
static void line_parse(char *line, const char *folder, needed_each_fn each, void *arg)
{
	char *path = strstr(line, "=> "), *end, whole[2 * PATH_MAX];
	struct stat status;

	path = path ? path + 3 : line + strspn(line, "\t ");
	end = strstr(path, " (0x");
	if (!end)
		return;
	*end = '\0';
	if (!strchr(path, '/'))
		return; /* the kernel's own */
	if (path[0] == '/')
		snprintf(whole, sizeof(whole), "%s", path);
	else
		snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	/* A loader may say anything. */
	if (!stat(whole, &status) && S_ISREG(status.st_mode))
		each(whole, whole, arg);
}

#define GROUPS_MAX 1024

/* Whose process it is: the real ones, as a program with the set-user-ID bit is not asked with the
 * rights of that. */
struct owner {
	uid_t uid;
	gid_t gid, groups[GROUPS_MAX];
	size_t group_count;
};

static bool owner_read(pid_t pid, struct owner *owner)
{
	char path[64], *line = NULL;
	unsigned found = 0;
	size_t size = 0;
	FILE *lines;

	*owner = (struct owner){.uid = (uid_t)-1, .gid = (gid_t)-1};
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	lines = fopen(path, "re");
	while (lines && getline(&line, &size, lines) > 0) {
		if (!strncmp(line, "Uid:", 4)) {
			owner->uid = (uid_t)strtoul(line + 4, NULL, 10);
			found++;
		} else if (!strncmp(line, "Gid:", 4)) {
			owner->gid = (gid_t)strtoul(line + 4, NULL, 10);
			found++;
		} else if (!strncmp(line, "Groups:", 7)) {
			char *at = line + 7, *end;
			unsigned long group = strtoul(at, &end, 10);

			for (; end != at && owner->group_count < GROUPS_MAX;
			     at = end, group = strtoul(at, &end, 10))
				owner->groups[owner->group_count++] = (gid_t)group;
			found++;
		}
	}
	free(line);
	if (lines)
		fclose(lines);
	return found == 3;
}

static bool owner_become(const struct owner *owner)
{
	bool is = owner->uid == getuid() && owner->uid == geteuid();

	/* Who has no right to become others may still ask for his own programs. */
	return (is || (!setgroups(owner->group_count, owner->groups) &&
		       !setresgid(owner->gid, owner->gid, owner->gid) &&
		       !setresuid(owner->uid, owner->uid, owner->uid))) &&
	       !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* What is run: a program, in its own working directory and with its own environment. `owner`: whose
 * it is; NULL: ours. */
struct subject {
	const char *program, *folder;
	char **environment;
	const struct owner *owner;
};

/* The program names its loader, so that is run with no rights but those that the program has. */
static pid_t lister_start(const char *loader, const struct subject *subject, int *output)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		alarm(5);
		if (chdir(subject->folder) || (subject->owner && !owner_become(subject->owner)))
			_exit(127);
		execle(loader, loader, "--list", subject->program, (char *)NULL,
		       subject->environment);
		_exit(127);
	}
	close(ends[1]);
	*output = ends[0];
	return child;
}

static void list(const struct subject *subject, needed_each_fn each, void *arg)
{
	char loader[256], *line = NULL;
	size_t size = 0;
	int output = -1;
	FILE *lines;
	pid_t child;

	if (!interpreter_of(subject->program, loader, sizeof(loader)))
		return;
	child = lister_start(loader, subject, &output);
	if (output < 0)
		return;
	lines = child > 0 ? fdopen(output, "r") : NULL;
	while (lines && getline(&line, &size, lines) > 0)
		line_parse(line, subject->folder, each, arg);
	if (lines)
		fclose(lines);
	else
		close(output);
	if (child > 0)
		waitpid(child, NULL, 0);
	free(line);
}

void needed_each_of(const char *program, char **environment, needed_each_fn each, void *arg)
{
	char folder[PATH_MAX];
	struct subject subject = {program, folder, environment, NULL};

	if (getcwd(folder, sizeof(folder)))
		list(&subject, each, arg);
}

void needed_each(pid_t pid, needed_each_fn each, void *arg)
{
	char program[PATH_MAX], folder[PATH_MAX], *text, **environment;
	struct owner owner;
	struct subject subject = {program, folder, NULL, &owner};

	if (!process_link(pid, "exe", program) || !process_link(pid, "cwd", folder) ||
	    !owner_read(pid, &owner))
		return;
	environment = subject.environment = process_environment(pid, &text);
	if (environment && same_files(pid))
		list(&subject, each, arg);
	else if (environment)
		needed_elsewhere(pid, environment, each, arg);
	free(environment);
	free(text);
}

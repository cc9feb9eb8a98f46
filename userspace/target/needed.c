// SPDX-License-Identifier: Apache-2.0
#include "target/needed.h"

#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process.h"

static bool same_namespace(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return !stat("/proc/self/ns/mnt", &ours) && !stat(path, &theirs) &&
	       ours.st_ino == theirs.st_ino;
}

/* The interpreter that an ELF file names; false: none, or not an ELF file. */
static bool interpreter_of(const char *program, char *name, size_t size)
{
	int fd = open(program, O_RDONLY | O_CLOEXEC);
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

/* Lines are "\tlibfoo.so.1 => /path/libfoo.so.1 (0x…)" or "\t/path/libbar.so (0x…)". */
static void line_parse(char *line, void (*each)(const char *path, void *arg), void *arg)
{
	char *path = strstr(line, "=> /"), *end;

	path = path ? path + 3 : strchr(line, '/');
	end = path ? strstr(path, " (0x") : NULL;
	if (!end)
		return;
	*end = '\0';
	each(path, arg);
}

static pid_t lister_start(const char *loader, const char *program, char **environment, int *output)
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
		execle(loader, loader, "--list", program, (char *)NULL, environment);
		_exit(127);
	}
	close(ends[1]);
	*output = ends[0];
	return child;
}

void needed_each_of(const char *program, char **environment,
		    void (*each)(const char *path, void *arg), void *arg)
{
	char loader[256], *line = NULL;
	size_t size = 0;
	int output = -1;
	FILE *lines;
	pid_t child;

	if (!interpreter_of(program, loader, sizeof(loader)))
		return;
	child = lister_start(loader, program, environment, &output);
	if (output < 0)
		return;
	lines = child > 0 ? fdopen(output, "r") : NULL;
	while (lines && getline(&line, &size, lines) > 0)
		line_parse(line, each, arg);
	if (lines)
		fclose(lines);
	else
		close(output);
	if (child > 0)
		waitpid(child, NULL, 0);
	free(line);
}

void needed_each(pid_t pid, void (*each)(const char *path, void *arg), void *arg)
{
	char link[64], program[4096], *text, **environment;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, program, sizeof(program) - 1);
	if (len <= 0 || !same_namespace(pid))
		return;
	program[len] = '\0';
	environment = process_environment(pid, &text);
	if (environment)
		needed_each_of(program, environment, each, arg);
	free(environment);
	free(text);
}

// SPDX-License-Identifier: Apache-2.0
#include "target/inject/inject.h"

#include <string.h>

#include "target/inject/inject_internal.h"

#ifdef __x86_64__

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"

/* More than both calls may take, each of which has time to find a thread and to return. */
#define ANSWER_MS 40000
#define LEAVE_NS 1000000000ull
#define PAUSE_NS 1000000

/* Where a library is mapped, by its name alone: one of another place serves as well. 0: nowhere. */
static uint64_t library_find(const struct mappings *mappings, const char *library)
{
	const char *name = strrchr(library, '/') ? strrchr(library, '/') + 1 : library;

	for (size_t i = 0; i < mappings->list.len; i++) {
		const struct mapping *one = &mappings->list.data[i];
		const char *slash = strrchr(one->path, '/');

		if (slash && !strcmp(slash + 1, name) && inject_is_loaded(mappings, i))
			return one->start;
	}
	return 0;
}

/* Whether a process has a thread with this name, as a library names its own. */
static bool thread_find(pid_t pid, const char *name)
{
	char path[320], comm[32];
	struct dirent *entry;
	bool found = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", pid, entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		found = fgets(comm, sizeof(comm), file) && !strncmp(comm, name, strlen(name)) &&
			comm[strlen(name)] == '\n';
		fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* *function: that of the library with which it starts. 0: the library is not loaded. */
static int library_look(pid_t pid, const struct image *image, const struct inject_target *target,
			uint64_t *function, struct error *err)
{
	struct mappings mappings;
	int result = process_mappings_all(&mappings, pid, err);
	uint64_t base;

	*function = 0;
	if (result)
		return result;
	base = library_find(&mappings, target->library);
	if (base)
		*function = inject_symbol(image, base, target->start);
	if (base && !inject_is_code(&mappings, *function))
		result = error_set(err, ENOENT, "%s has no function %s", target->library,
				   target->start);
	mappings_free(&mappings);
	return result;
}

static int libc_look(pid_t pid, const struct image *image, struct inject_libc *libc,
		     struct error *err)
{
	struct mappings mappings;
	int result = process_mappings_all(&mappings, pid, err);

	if (result)
		return result;
	result = inject_libc_find(libc, image, &mappings, err);
	mappings_free(&mappings);
	return result;
}

/* Loads it, which has been checked. */
static int library_load(pid_t pid, const struct image *image, const struct inject_libc *libc,
			const struct inject_target *target, uint64_t *function, struct error *err)
{
	struct inject_call call = {
		.function = libc->open, .text = target->library, .second = (uint32_t)libc->flags};
	int result = inject_run(pid, image, libc, &call, err);

	if (!result)
		result = library_look(pid, image, target, function, err);
	if (!result && !*function)
		result =
			error_set(err, EIO,
				  "its loader rejected %s: a library that it needs is missing, or "
				  "room for thread-local storage, for which the program has to be "
				  "started with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096",
				  target->library);
	return result;
}

static int library_use(pid_t pid, const struct image *image, const struct inject_target *target,
		       struct error *err)
{
	struct inject_call call = {0};
	struct inject_libc libc;
	int result = libc_look(pid, image, &libc, err);

	if (!result)
		result = library_look(pid, image, target, &call.function, err);
	if (!result && !call.function)
		result = inject_check_file(pid, target->library, err)
				 ?: library_load(pid, image, &libc, target, &call.function, err);
	return result ?: inject_run(pid, image, &libc, &call, err);
}

static int process_use(pid_t pid, const struct inject_target *target, struct error *err)
{
	struct image image;
	int result = inject_check_process(pid, err);

	if (!result) {
		result = image_open(&image, pid);
		if (result)
			error_set(err, -result,
				  result == -EACCES ? "its program may not be read"
						    : "no such process");
	}
	if (!result) {
		result = library_use(pid, &image, target, err);
		image_close(&image);
	}
	return result;
}

/* What the process that does it tells waffle-bpf. */
struct answer {
	int result;
	struct error err;
};

/* Ends the child that loads the library. While it waits for a file system that does not answer, it
 * can't be killed, and is left behind. */
static void child_end(pid_t child)
{
	uint64_t until = clock_monotonic_ns() + LEAVE_NS;

	kill(child, SIGKILL);
	while (!waitpid(child, NULL, WNOHANG) && clock_monotonic_ns() < until)
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Waits for the answer. False: there is none within the time. */
static bool answer_read(int from, struct answer *answer)
{
	struct pollfd answered = {.fd = from, .events = POLLIN};

	return poll(&answered, 1, ANSWER_MS) == 1 &&
	       read(from, answer, sizeof(*answer)) == sizeof(*answer);
}

/*
 * A process of its own does it, since only its end lets go a thread that has not stopped yet when
 * there is no time left to wait for it.
 */
int inject_library(pid_t pid, const struct inject_target *target, struct error *err)
{
	struct answer answer = {0};
	int pipe[2];
	pid_t child;

	if (thread_find(pid, target->thread))
		return 0;
	if (pipe2(pipe, O_CLOEXEC))
		return error_set(err, errno, "pipe: %s", strerror(errno));
	child = fork();
	if (!child) {
		answer.result = process_use(pid, target, &answer.err);
		_exit(write(pipe[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	close(pipe[1]);
	if (child > 0 && !answer_read(pipe[0], &answer))
		answer.result = error_set(&answer.err, ETIMEDOUT, "no answer within %d s",
					  ANSWER_MS / 1000);
	else if (child < 0)
		answer.result = error_set(&answer.err, errno, "fork: %s", strerror(errno));
	close(pipe[0]);
	if (child > 0)
		child_end(child);
	if (answer.result)
		error_set(err, -answer.result, "loading the library into process %d: %s", pid,
			  answer.err.message);
	return answer.result;
}

#else

int inject_library(pid_t pid, const struct inject_target *target, struct error *err)
{
	(void)target;
	return inject_check_process(pid, err);
}

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * The libraries that a program will load, against what the loader of this machine says
 * (ld.so --list): for the machine's own programs, and for programs that are made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/loader/loader.h"
#include "target/loader/needed.h"
#include "util/vec.h"

#define PROGRAMS_MAX 250

struct files {
	VEC(struct stat) list;
	VEC(char *) paths;
};

static void files_add(struct files *files, const struct stat *status, const char *path)
{
	assert_true(vec_push(&files->list, *status));
	assert_true(vec_push(&files->paths, strdup(path)));
}

static void files_free(struct files *files)
{
	for (size_t i = 0; i < files->paths.len; i++)
		free(files->paths.data[i]);
	vec_free(&files->paths);
	vec_free(&files->list);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* The loader is no library: it stands elsewhere in the lists. */
static void needed_see(int fd, const char *path, bool ours, void *arg)
{
	struct stat status, there;

	assert_int_equal(fstat(fd, &status), 0);
	assert_true(ours);
	assert_int_equal(stat(path, &there), 0);
	assert_true(is_same(&status, &there));
	files_add(arg, &status, path);
}

static void drop(struct files *files, const char *interpreter)
{
	struct stat status;

	assert_int_equal(stat(interpreter, &status), 0);
	for (size_t i = 0; i < files->list.len; i++) {
		if (!is_same(&files->list.data[i], &status))
			continue;
		free(files->paths.data[i]);
		for (size_t k = i; k + 1 < files->list.len; k++) {
			files->list.data[k] = files->list.data[k + 1];
			files->paths.data[k] = files->paths.data[k + 1];
		}
		files->list.len--;
		files->paths.len--;
		return;
	}
	fail_msg("%s is not listed", interpreter);
}

/* "\tlibm.so.6 => /lib/libm.so.6 (0x…)", "\t/lib64/ld-linux-x86-64.so.2 (0x…)"; false: it says that
 * something is missing. */
static bool line_see(char *line, struct files *files)
{
	char *path = strstr(line, "=> "), *end = strstr(line, " (0x");
	struct stat status;

	if (strstr(line, "not found"))
		return false;
	path = path ? path + 3 : line + 1;
	if (!end || !strncmp(path, "linux-vdso", 10))
		return true; /* the kernel's own */
	*end = '\0';
	if (stat(path, &status))
		fail_msg("%s: no such file", path);
	files_add(files, &status, path);
	return true;
}

static pid_t loader_run(const char *interpreter, const char *program, char **environment,
			int output)
{
	pid_t child = fork();

	if (!child) {
		int null = open("/dev/null", O_RDWR);

		dup2(output, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		alarm(20);
		execle(interpreter, interpreter, "--list", program, (char *)NULL, environment);
		_exit(127);
	}
	return child;
}

/* False: the loader can't load the program. */
static bool loader_list(struct files *files, const char *interpreter, const char *program,
			char **environment)
{
	int ends[2], status;
	char *line = NULL;
	bool good = true;
	size_t size = 0;
	FILE *lines;
	pid_t child;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = loader_run(interpreter, program, environment, ends[1]);
	close(ends[1]);
	assert_true(child > 0);
	lines = fdopen(ends[0], "r");
	assert_non_null(lines);
	while (getline(&line, &size, lines) > 0)
		good = line_see(line, files) && good;
	free(line);
	fclose(lines);
	assert_int_equal(waitpid(child, &status, 0), child);
	return good && status == 0;
}

static bool has(const struct files *files, const struct stat *status)
{
	for (size_t i = 0; i < files->list.len; i++)
		if (is_same(&files->list.data[i], status))
			return true;
	return false;
}

/* The order may differ: a filter may come before or after the library that it filters. */
static void check_same(const struct files *found, const struct files *listed, const char *program)
{
	for (size_t i = 0; i < found->list.len; i++)
		if (!has(listed, &found->list.data[i]))
			fail_msg("%s: %s is not loaded", program, found->paths.data[i]);
	for (size_t i = 0; i < listed->list.len; i++)
		if (!has(found, &listed->list.data[i]))
			fail_msg("%s: %s is not found", program, listed->paths.data[i]);
	assert_int_equal(found->list.len, listed->list.len);
}

/* Compares, and returns how many libraries there are; -1: it is no program with a loader, or one
 * that can't be loaded. */
static int check_program(const char *program, char **environment)
{
	struct files found = {0}, listed = {0};
	struct loader_file file = {0};
	int fd = open(program, O_RDONLY | O_CLOEXEC), count = -1;

	if (fd >= 0 && loader_file_read(&file, fd) && file.interpreter &&
	    loader_list(&listed, file.interpreter, program, environment)) {
		needed_each_of(program, environment, needed_see, &found);
		drop(&found, file.interpreter);
		drop(&listed, file.interpreter);
		check_same(&found, &listed, program);
		count = (int)found.list.len;
	}
	files_free(&found);
	files_free(&listed);
	loader_file_free(&file);
	if (fd >= 0)
		close(fd);
	return count;
}

static int check_folder(const char *folder)
{
	char *no_environment[] = {NULL};
	DIR *entries = opendir(folder);
	const struct dirent *entry;
	char path[PATH_MAX];
	struct stat status;
	int programs = 0;

	assert_non_null(entries);
	while (programs < PROGRAMS_MAX && (entry = readdir(entries))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (!stat(path, &status) && S_ISREG(status.st_mode) && status.st_mode & S_IXUSR &&
		    !(status.st_mode & (S_ISUID | S_ISGID)))
			programs += check_program(path, no_environment) > 0;
	}
	closedir(entries);
	return programs;
}

static void test_libraries_of_the_machines_programs_are_those_that_the_loader_lists(void **state)
{
	(void)state;
	assert_in_range(check_folder("/usr/bin"), 20, PROGRAMS_MAX);
	check_folder("/usr/sbin");
}

/* ---- programs that are made here ---- */

static int set_up(void **state)
{
	static char folder[PATH_MAX];
	char typed[] = "/tmp/test_needed.XXXXXX";

	assert_non_null(mkdtemp(typed));
	assert_non_null(realpath(typed, folder));
	assert_int_equal(chdir(folder), 0);
	*state = folder;
	return 0;
}

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(command, sizeof(command), format, args), 1, sizeof(command) - 1);
	va_end(args);
	assert_int_equal(system(command), 0); // NOLINT(bugprone-command-processor,cert-env33-c)
}

static int tear_down(void **state)
{
	assert_int_equal(chdir("/"), 0);
	shell("rm -rf %s", (const char *)*state);
	return 0;
}

/* A library FOLDER/libNAME.so, a program; $ in options is for the shell. */
static void library(const char *path, const char *options)
{
	shell("mkdir -p $(dirname %s) && echo 'int x;' | "
	      "cc -shared -fPIC -xc - -xnone -Wl,--no-as-needed -o %s %s",
	      path, path, options);
}

static void program(const char *path, const char *options)
{
	shell("mkdir -p $(dirname %s) && echo 'int main(void) { return 0; }' | "
	      "cc -xc - -xnone -Wl,--no-as-needed,--allow-shlib-undefined -o %s %s",
	      path, path, options);
}

#define NOT_LOADED (-2)

/* There are the named libraries, and libc. */
static void check(const char *name, const char *setting, int count)
{
	char *environment[] = {(char *)(uintptr_t)setting, NULL}, path[PATH_MAX];

	assert_non_null(realpath(name, path));
	assert_int_equal(check_program(path, environment), count + 1);
}

#define OLD "-Wl,--disable-new-dtags"
#define NEW "-Wl,--enable-new-dtags"

static void test_rpath_is_inherited_and_runpath_is_not(void **state)
{
	(void)state;
	library("deep/libdeep.so", "");
	library("mid/libmid.so", "-Ldeep -ldeep");
	library("other/libdeep.so", "");
	library("other/libmid.so", "-Ldeep -ldeep " OLD " -Wl,-rpath,'$ORIGIN'");
	program("old", "-Lmid -lmid " OLD " -Wl,-rpath,'$ORIGIN/mid:${ORIGIN}/deep'");
	check("old", NULL, 2);
	program("new",
		"-Lmid -lmid -Wl,-rpath-link,deep " NEW " -Wl,-rpath,'$ORIGIN/mid:$ORIGIN/deep'");
	check("new", NULL, NOT_LOADED); /* its loader does not find libdeep either */
	check("new", "LD_LIBRARY_PATH=deep", 2);
	/* The library's own comes before the program's. */
	program("both", "-Lother -lmid " OLD " -Wl,-rpath,'$ORIGIN/other:$ORIGIN/deep'");
	check("both", NULL, 2);
	/* Before a RPATH the environment has nothing to say, before a RUNPATH it has. */
	check("old", "LD_LIBRARY_PATH=other", 2);
	check("new", "LD_LIBRARY_PATH=other", 2);
}

static void test_folders_of_the_environment_may_be_relative_or_empty(void **state)
{
	(void)state;
	library("lib1/libone.so", "");
	library("libtwo.so", "");
	program("plain", "-Llib1 -lone -L. -ltwo");
	check("plain", "LD_LIBRARY_PATH=lib1:", 2);
	check("plain", "LD_LIBRARY_PATH=:lib1", 2);
	check("plain", "LD_LIBRARY_PATH=./lib1;.", 2);
	check("plain", "LD_LIBRARY_PATH=$ORIGIN/lib1:$ORIGIN", 2);
	check("plain", "LD_LIBRARY_PATH=lib1", NOT_LOADED);
	check("plain", "LD_LIBRARY_PATH=", NOT_LOADED);
}

static void test_preloaded_library_stands_for_one_that_is_needed(void **state)
{
	(void)state;
	library("odd/libfirst.so", "-Wl,-soname,libnamed.so.1");
	library("libnamed.so", "-Wl,-soname,libnamed.so.1");
	library("libother.so", "");
	program("user", "-L. -lnamed");
	check("user", "LD_PRELOAD=odd/libfirst.so", 1);
	check("user", "LD_PRELOAD=./libother.so:odd/libfirst.so", 2);
	check("user", "LD_PRELOAD=./libother.so  $ORIGIN/odd/libfirst.so ./nothing.so", 2);
	/* A name without a slash is searched for in the same way as a needed library. */
	program("user2", "-Wl,-rpath,'$ORIGIN/odd'");
	check("user2", "LD_PRELOAD=libfirst.so", 1);
	check("user2", "LD_PRELOAD=libm.so.6 libfirst.so", 2);
}

static void injected_see(int fd, const char *path, bool ours, void *arg)
{
	(void)fd;
	(void)ours;
	*(unsigned *)arg += strstr(path, "/injected/") != NULL;
}

static unsigned injected_count(const char *setting)
{
	char *environment[] = {(char *)(uintptr_t)setting, NULL};
	unsigned count = 0;

	needed_each_of("bare", environment, injected_see, &count);
	return count;
}

static void test_libwaffle_gpu_is_taken_where_the_environment_names_it(void **state)
{
	(void)state;
	library("injected/libwaffle-gpu.so", "");
	library("injected/libother.so", "");
	program("bare", "");
	assert_int_equal(injected_count("CUDA_INJECTION64_PATH=./injected/libwaffle-gpu.so"), 1);
	assert_int_equal(injected_count("NVTX_INJECTION64_PATH=./injected/libwaffle-gpu.so"), 1);
	assert_int_equal(injected_count("NCCL_PROFILER_PLUGIN=./injected/libwaffle-gpu.so"), 1);
	/* That is another tool's. */
	assert_int_equal(injected_count("CUDA_INJECTION64_PATH=./injected/libother.so"), 0);
	assert_int_equal(injected_count("CUDA_INJECTION64_PATH=./nowhere/libwaffle-gpu.so"), 0);
	assert_int_equal(injected_count("CUDA_INJECTION64_PATH=libwaffle-gpu.so"), 0);
}

static void test_needed_path_and_filters_are_taken(void **state)
{
	(void)state;
	library("a/libpath.so", "");
	library("a/libfilter.so", "-Wl,-f,libpath2.so");
	library("a/libpath2.so", "");
	program("paths", "./a/libpath.so");
	check("paths", NULL, 1);
	program("filters", "-La -lfilter -Wl,-rpath,'$ORIGIN/a'");
	check("filters", "LD_LIBRARY_PATH=a", 2);
}

/* "$LIB" contains the folder in which glibc is installed: lib/x86_64-linux-gnu, lib64, … */
static void test_lib_is_where_the_loader_is_installed(void **state)
{
	(void)state;
	program("plain", "-Wl,-rpath,'/usr/$LIB' -lm");
	check("plain", NULL, 1);
	check("plain", "LD_PRELOAD=/usr/${LIB}/libdl.so.2", 2);
	check("plain", "LD_PRELOAD=/$LIB/libdl.so.2", 2);
}

static void test_variant_for_the_processor_comes_first(void **state)
{
	(void)state;
	library("v/libkind.so", "");
	program("user", "-Lv -lkind -Wl,-rpath,'$ORIGIN/v'");
	check("user", NULL, 1);
	for (int level = 2; level <= 4; level++) {
		char path[64];

		snprintf(path, sizeof(path), "v/glibc-hwcaps/x86-64-v%d/libkind.so", level);
		library(path, "");
		check("user", NULL, 1);
	}
	shell("rm v/glibc-hwcaps/x86-64-v3/libkind.so");
	check("user", NULL, 1);
}

/* musl's loader can't be run here; the rules are those of ldso/dynlink.c. */
static void test_loader_of_musl_has_its_own_rules(void **state)
{
	static const char *const expected[] = {"lib/ld-musl-x86_64.so.1", "env/libenv.so",
					       "odd/libodd.so", "run/librun.so"};
	char options[PATH_MAX], setting[PATH_MAX], *environment[] = {setting, NULL};
	const char *folder = *state;
	struct files found = {0};

	library("lib/ld-musl-x86_64.so.1", "-nostdlib");
	library("env/libenv.so", "-nostdlib -Wl,-soname,libenv.so");
	library("run/libenv.so", "-nostdlib");
	library("run/librun.so", "-nostdlib");
	/* It is found in the directories of the program, which
	 * requested it, though they are RUNPATH. */
	library("odd/libodd.so", "-nostdlib -Lrun -lrun");
	snprintf(options, sizeof(options),
		 "-nostdlib -e main -Wl,--dynamic-linker=%s/lib/ld-musl-x86_64.so.1 "
		 "-Lenv -lenv -Lodd -lodd " NEW " -Wl,-rpath,'$ORIGIN/run' -lc",
		 folder);
	program("user", options);
	shell("mkdir etc && printf '/nowhere\n%s/odd\n' > etc/ld-musl-x86_64.path", folder);
	snprintf(setting, sizeof(setting), "LD_LIBRARY_PATH=%s/env", folder);
	snprintf(options, sizeof(options), "%s/user", folder);
	needed_each_of(options, environment, needed_see, &found);
	assert_int_equal(found.paths.len, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < found.paths.len; i++) {
		assert_memory_equal(found.paths.data[i], folder, strlen(folder));
		assert_string_equal(found.paths.data[i] + strlen(folder) + 1, expected[i]);
	}
	files_free(&found);
}

/* Many names in many folders: the search ends. */
static void test_search_is_bounded(void **state)
{
	char *setting = malloc(128 * 1024), *environment[] = {setting, NULL};
	struct files found = {0};
	char path[PATH_MAX];
	size_t at = 0;

	(void)state;
	assert_non_null(setting);
	library("libx.so", "-nostdlib");
	shell("n=''; for i in $(seq 900); do cp libx.so lib$i.so; n=\"$n ./lib$i.so\"; done; "
	      "echo 'int main(void) { return 0; }' > p.c; "
	      "cc -Wl,--no-as-needed p.c $(for i in $(seq 900); do echo -l:lib$i.so; done) -L. "
	      "-o many");
	at = (size_t)sprintf(setting, "LD_LIBRARY_PATH=");
	for (unsigned i = 0; i < 250; i++)
		at += (size_t)sprintf(setting + at, "/usr/../usr/../usr/../tmp/nothing%u:", i);
	assert_non_null(realpath("many", path));
	needed_each_of(path, environment, needed_see, &found);
	assert_in_range(found.list.len, 1, 902);
	files_free(&found);
	free(setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_libraries_of_the_machines_programs_are_those_that_the_loader_lists),
		cmocka_unit_test_setup_teardown(test_rpath_is_inherited_and_runpath_is_not, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			test_folders_of_the_environment_may_be_relative_or_empty, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_preloaded_library_stands_for_one_that_is_needed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_libwaffle_gpu_is_taken_where_the_environment_names_it, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_needed_path_and_filters_are_taken, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_lib_is_where_the_loader_is_installed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_variant_for_the_processor_comes_first, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_loader_of_musl_has_its_own_rules, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_search_is_bounded, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "target/loader/needed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/loader/loader.h"
#include "target/process/image.h"
#include "target/process/injection.h"
#include "target/process/mounts.h"
#include "target/process/opener.h"
#include "target/process/path_at.h"
#include "target/process/process.h"
#include "target/process/root.h"
#include "util/input.h"
#include "util/vec.h"

#define LIBRARIES_MAX 1024
#define TRIES_MAX 65536 /* file lookups; that many take a tenth of a second */
#define CACHED_MAX 16   /* variants of one library in the cache */
#define PRELOAD_FILE "/etc/ld.so.preload"
#define PRELOAD_FILE_MAX 65536
#define MUSL_PATH_MAX 65536 /* size of the file that lists its directories */

/* A file that the loader would load. */
struct library {
	char *path; /* as the process sees it */
	size_t by;  /* index of the library that needs it; the program has its own index */
	dev_t dev;
	ino_t ino;
	struct loader_file file;
};

struct looking {
	struct root root;
	bool ours;                   /* a path leads to the same file for us and for the process */
	bool musl;                   /* the loader is musl's, not glibc's */
	bool injected_only;          /* look for libwaffle-gpu alone */
	bool privileged;             /* the loader ignores the environment (AT_SECURE) */
	const char *const *variants; /* glibc's processor variants */
	uint16_t machine;
	unsigned tries;
	char lib[PATH_MAX];           /* value of $LIB; "": unknown */
	const char *environment_path; /* LD_LIBRARY_PATH; NULL: unset */
	char *usual; /* default directories of musl's loader; NULL: it is glibc's */
	char *cache; /* ld.so.cache of glibc's loader; NULL: none */
	size_t cache_bytes;
	VEC(char *) names;             /* names searched so far, each once */
	VEC(struct library) libraries; /* the first one is the program */
	needed_each_fn each;
	void *arg;
};

/* ---- files ---- */

static bool has_file(const struct looking *looking, const struct stat *status)
{
	for (size_t i = 0; i < looking->libraries.len; i++)
		if (looking->libraries.data[i].ino == status->st_ino &&
		    looking->libraries.data[i].dev == status->st_dev)
			return true;
	return false;
}

/* Whether the file open at `fd` is a new library that can be loaded. If so, it is reported and its
 * own needed libraries will be searched. */
static bool take_fd(struct looking *looking, int fd, const char *path, size_t by)
{
	struct library library = {.by = by};
	struct stat status;

	if (input_stat(fd, &status) || !loader_file_read(&library.file, fd))
		return false;
	if (library.file.machine != looking->machine) {
		loader_file_free(&library.file);
		return false;
	}
	library.dev = status.st_dev;
	library.ino = status.st_ino;
	library.path = has_file(looking, &status) ? NULL : strdup(path);
	if (library.path && looking->libraries.len < LIBRARIES_MAX &&
	    vec_push(&looking->libraries, library)) {
		looking->each(fd, path, looking->ours, looking->arg);
		return true;
	}
	loader_file_free(&library.file);
	free(library.path);
	return true;
}

static bool take(struct looking *looking, const char *path, size_t by)
{
	bool is;
	int fd;

	if (looking->tries++ >= TRIES_MAX)
		return false;
	fd = root_file(&looking->root, path);
	if (fd < 0)
		return false;
	is = take_fd(looking, fd, path, by);
	close(fd);
	return is;
}

/* ---- search order of one library ---- */

/* A search for one library. */
struct needed_asked {
	struct looking *looking;
	const char *name;
	size_t by;
	struct {
		const char *path;
		unsigned variant; /* index in `variants`; that of the NULL: for all processors */
	} cached[CACHED_MAX];
	unsigned cached_count;
};

static bool take_from(const char *folder, void *arg)
{
	struct needed_asked *asked = arg;
	char path[PATH_MAX];

	for (const char *const *variant = asked->looking->variants; *variant; variant++)
		if (snprintf(path, sizeof(path), "%s/glibc-hwcaps/%s/%s", folder, *variant,
			     asked->name) < (int)sizeof(path) &&
		    take(asked->looking, path, asked->by))
			return true;
	return snprintf(path, sizeof(path), "%s/%s", folder, asked->name) < (int)sizeof(path) &&
	       take(asked->looking, path, asked->by);
}

/* The cache may list a variant of a library for each kind of processor. */
static void cached_add(const char *path, void *arg)
{
	static const char kinds[] = "/glibc-hwcaps/";
	struct needed_asked *asked = arg;
	const char *kind, *const *variants = asked->looking->variants;
	unsigned variant = 0;
	size_t len;

	if (strcmp(strrchr(path, '/') + 1, asked->name) || asked->cached_count == CACHED_MAX)
		return;
	kind = strstr(path, kinds);
	kind = kind ? kind + strlen(kinds) : "";
	len = strcspn(kind, "/");
	while (variants[variant] &&
	       (!len || strncmp(variants[variant], kind, len) != 0 || variants[variant][len]))
		variant++;
	if (len && !variants[variant])
		return; /* for another kind of processor */
	asked->cached[asked->cached_count].path = path;
	asked->cached[asked->cached_count++].variant = variant;
}

static bool take_cached(struct needed_asked *asked)
{
	const struct looking *looking = asked->looking;

	if (!looking->cache)
		return false;
	loader_cache_each(looking->cache, looking->cache_bytes, cached_add, asked);
	for (unsigned variant = 0;; variant++) {
		for (unsigned i = 0; i < asked->cached_count; i++)
			if (asked->cached[i].variant == variant &&
			    take(asked->looking, asked->cached[i].path, asked->by))
				return true;
		if (!looking->variants[variant])
			return false;
	}
}

/* Searches a list of directories that library number `named_by` names. 0 is the program or the
 * environment. */
static bool take_from_list(struct needed_asked *asked, const char *list, size_t named_by)
{
	const struct looking *looking = asked->looking;
	const struct loader_base base = {
		/* Any user may make a hard link to a privileged program, so $ORIGIN is not
		 * trustworthy. */
		.origin = looking->privileged ? "" : looking->libraries.data[named_by].path,
		.folder = looking->root.folder,
		.lib = looking->lib[0] ? looking->lib : NULL,
	};

	return list && loader_folders_each(list, &base, take_from, asked);
}

/* Searches the directories of the library that needs this one, then those of its ancestors. */
static bool take_from_rpaths(struct needed_asked *asked)
{
	const struct looking *looking = asked->looking;
	size_t at = asked->by;

	for (;;) {
		const struct library *library = &looking->libraries.data[at];
		const struct loader_file *file = &library->file;
		size_t next = library->by;

		if (take_from_list(asked,
				   looking->musl && file->runpath ? file->runpath
				   : file->runpath                ? NULL
								  : file->rpath,
				   at))
			return true;
		if (!at)
			return false;
		at = next;
	}
}

/* Search order of ld.so(8), or of musl's ldso/dynlink.c. */
static void look_in_folders(struct looking *looking, const char *name, size_t by)
{
	struct needed_asked asked = {.looking = looking, .name = name, .by = by};
	bool has_runpath = looking->libraries.data[by].file.runpath;

	if (looking->musl) {
		(void)(take_from_list(&asked, looking->environment_path, 0) ||
		       take_from_rpaths(&asked) || take_from_list(&asked, looking->usual, 0));
		return;
	}
	if ((!has_runpath && take_from_rpaths(&asked)) ||
	    take_from_list(&asked, looking->environment_path, 0) ||
	    take_from_list(&asked, looking->libraries.data[by].file.runpath, by) ||
	    take_cached(&asked))
		return;
	take_from_list(&asked, loader_usual, 0);
}

/* ---- needed libraries ---- */

/* musl's loader itself provides the libraries with these names. */
static bool is_musl_itself(const char *name)
{
	static const char *const names[] = {"libc.",  "libpthread.", "librt.",  "libm.",
					    "libdl.", "libutil.",    "libxnet."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Whether this name was searched before, or is loaded. */
static bool is_known(const struct looking *looking, const char *name)
{
	for (size_t i = 0; i < looking->names.len; i++)
		if (!strcmp(looking->names.data[i], name))
			return true;
	for (size_t i = 1; i < looking->libraries.len && !looking->musl; i++) {
		const char *soname = looking->libraries.data[i].file.soname;

		if (soname && !strcmp(soname, name))
			return true;
	}
	return looking->musl && is_musl_itself(name);
}

static void look_for(struct looking *looking, const char *name, size_t by)
{
	struct loader_base base = {looking->privileged ? "" : looking->libraries.data[by].path,
				   looking->root.folder, looking->lib[0] ? looking->lib : NULL};
	char *copy, path[PATH_MAX];

	if (is_known(looking, name) || looking->names.len == LIBRARIES_MAX)
		return;
	copy = strdup(name);
	if (!copy || !vec_push(&looking->names, copy)) {
		free(copy);
		return;
	}
	if (!strchr(name, '/'))
		look_in_folders(looking, name, by);
	else if (loader_expand(path, name, strlen(name), &base))
		take(looking, path, by);
}

static void look_for_list(struct looking *looking, const char *list, const char *separators)
{
	while (list && *list) {
		size_t len = strcspn(list, separators);
		char library[PATH_MAX];

		if (len && len < sizeof(library)) {
			snprintf(library, sizeof(library), "%.*s", (int)len, list);
			look_for(looking, library, 0);
		}
		list += len + (list[len] != '\0');
	}
}

static void look_for_preload_file(struct looking *looking)
{
	size_t bytes;
	char *text = root_read(&looking->root, PRELOAD_FILE, PRELOAD_FILE_MAX - 1, &bytes);
	char *list = text ? strndup(text, bytes) : NULL;

	for (char *comment = list; comment && (comment = strchr(comment, '#'));)
		memset(comment, ' ', strcspn(comment, "\n"));
	look_for_list(looking, list, ": \t\n");
	free(list);
	free(text);
}

/* libwaffle-gpu, which CUDA's driver and others load when the program first uses them. So it is
 * armed before that, and records the first call of CUDA. */
static void look_for_injected(struct looking *looking, char *const *environment)
{
	for (size_t i = 0; i < INJECTION_VARIABLES; i++) {
		const char *value = environment_value(environment, injection_variables[i]);

		if (value && injection_is_ours(value))
			look_for(looking, value, 0);
	}
}

/* ---- loaders ---- */

/* glibc and its loader are installed in the directory of $LIB, for example as
 * "/usr/lib64/ld-linux-x86-64.so.2". */
static void lib_find(struct looking *looking, const char *interpreter)
{
	char real[PATH_MAX];
	const char *folder, *end;

	if (!root_follow(&looking->root, interpreter, real))
		return;
	folder = root_inside(&looking->root, real);
	folder += strncmp(folder, "/usr/", 5) ? 1 : 5;
	end = strrchr(folder, '/');
	if (end)
		snprintf(looking->lib, sizeof(looking->lib), "%.*s", (int)(end - folder), folder);
}

/* Reads the directories of musl's loader: "/opt/lib/ld-musl-x86_64.so.1" has them in
 * "/opt/etc/ld-musl-x86_64.path". */
static void musl_path_read(struct looking *looking, const char *interpreter, const char *name)
{
	size_t prefix = (size_t)(name - interpreter), stem = strcspn(name, "."), bytes;
	char path[PATH_MAX], *text;

	for (int slashes = 0; prefix && slashes < 2;)
		slashes += interpreter[--prefix] == '/';
	snprintf(path, sizeof(path), "%.*s/etc/%.*s.path", (int)prefix, interpreter, (int)stem,
		 name);
	text = root_read(&looking->root, path, MUSL_PATH_MAX, &bytes);
	looking->usual = text ? strndup(text, bytes) : strdup("/lib:/usr/local/lib:/usr/lib");
	free(text);
	for (char *at = looking->usual; at && (at = strchr(at, '\n'));)
		*at = at[1] ? ':' : '\0';
}

static void interpreter_see(struct looking *looking, const char *interpreter)
{
	static const char *const no_variants[] = {NULL};
	const char *name = strrchr(interpreter, '/');

	name = name ? name + 1 : interpreter;
	looking->musl = !strncmp(name, "ld-musl-", 8);
	looking->variants = looking->musl ? no_variants : loader_variants();
	if (looking->musl) {
		musl_path_read(looking, interpreter, name);
		return;
	}
	lib_find(looking, interpreter);
	looking->cache =
		root_read(&looking->root, LOADER_CACHE, LOADER_CACHE_MAX, &looking->cache_bytes);
}

/* ---- the whole search ---- */

static void look_for_all(struct looking *looking, const char *preload)
{
	/* glibc splits at spaces and colons, musl at colons and white space. */
	look_for_list(looking, preload, looking->musl ? ": \t\n\v\f\r" : ": ");
	if (!looking->musl)
		look_for_preload_file(looking);
	for (size_t i = 0; i < looking->libraries.len; i++)
		/* The list of libraries grows and moves meanwhile, but the names that a library
		 * needs do not. */
		for (size_t n = 0; n < looking->libraries.data[i].file.needed.len; n++)
			look_for(looking, looking->libraries.data[i].file.needed.data[n], i);
}

static void look(struct looking *looking, int program, char *const *environment)
{
	struct library first = {0};
	struct stat status;
	const char *preload;

	if (input_stat(program, &status) || !loader_file_read(&first.file, program))
		return;
	first.path = strdup(looking->root.program);
	first.dev = status.st_dev;
	first.ino = status.st_ino;
	looking->machine = first.file.machine;
	if (!first.file.interpreter || !first.path || !vec_push(&looking->libraries, first)) {
		loader_file_free(&first.file);
		free(first.path);
		return;
	}
	preload = environment_value(environment, "LD_PRELOAD");
	if (!looking->privileged)
		looking->environment_path = environment_value(environment, "LD_LIBRARY_PATH");
	interpreter_see(looking, first.file.interpreter);
	/* Take the loader first: then a library that needs it by name finds it, wherever it is. */
	take(looking, first.file.interpreter, 0);
	if (!looking->injected_only)
		look_for_all(looking, looking->privileged ? NULL : preload);
	if (!looking->privileged)
		look_for_injected(looking, environment);
}

static void looking_free(struct looking *looking)
{
	for (size_t i = 0; i < looking->names.len; i++)
		free(looking->names.data[i]);
	for (size_t i = 0; i < looking->libraries.len; i++) {
		free(looking->libraries.data[i].path);
		loader_file_free(&looking->libraries.data[i].file);
	}
	vec_free(&looking->names);
	vec_free(&looking->libraries);
	free(looking->usual);
	free(looking->cache);
	root_close(&looking->root);
}

/* Whether a namespace or the root of the process is also ours. */
static bool same(pid_t pid, const char *what)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/%s", what);
	if (input_stat_link(path, &ours))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return !input_stat_link(path, &theirs) && ours.st_ino == theirs.st_ino &&
	       ours.st_dev == theirs.st_dev;
}

void needed_each_of(const char *program, char *const *environment, needed_each_fn each, void *arg)
{
	struct looking looking = {.each = each, .arg = arg, .ours = true};
	int fd = input_open(program);
	struct stat status;

	if (fd >= 0 && !root_open(&looking.root, getpid())) {
		looking.privileged = !input_stat(fd, &status) &&
				     ((status.st_mode & S_ISUID && status.st_uid != getuid()) ||
				      (status.st_mode & S_ISGID && status.st_gid != getgid()));
		snprintf(looking.root.program, sizeof(looking.root.program), "%s", program);
		look(&looking, fd, environment);
		looking_free(&looking);
	}
	if (fd >= 0)
		close(fd);
}

static int program_open(pid_t pid)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	return mounts_are_local(pid, MOUNTS_ANY) ? path_at_file(-1, link) : opener_file(-1, link);
}

static void process_look(pid_t pid, bool injected_only, needed_each_fn each, void *arg)
{
	struct looking looking = {.each = each, .arg = arg, .injected_only = injected_only};
	char *text = NULL, *none[] = {NULL}, **environment = NULL;
	struct image image;
	int result = image_open(&image, pid), program;

	if (result && result != -EACCES)
		return;
	looking.privileged = result;
	if (!result)
		environment = image_environment(&image, &text);
	program = program_open(pid);
	if (program >= 0 && !root_open(&looking.root, pid)) {
		looking.ours = same(pid, "ns/mnt") && same(pid, "root/.");
		/* A still valid image proves that all of this was read from one program. */
		if (looking.privileged || (environment && image_is_there(&image)))
			look(&looking, program, environment ?: none);
		looking_free(&looking);
	}
	if (program >= 0)
		close(program);
	if (!result)
		image_close(&image);
	free(environment);
	free(text);
}

void needed_each(pid_t pid, needed_each_fn each, void *arg)
{
	process_look(pid, false, each, arg);
}

void needed_injected(pid_t pid, needed_each_fn each, void *arg)
{
	process_look(pid, true, each, arg);
}

void needed_each_exec(pid_t pid, int fd, char *const *environment, needed_each_fn each, void *arg)
{
	struct looking looking = {.each = each, .arg = arg};
	char link[64], path[PATH_MAX];
	struct stat status;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	if (len <= 0 || input_stat(fd, &status) || root_open(&looking.root, pid))
		return;
	path[len] = '\0';
	snprintf(looking.root.program, sizeof(looking.root.program), "%s",
		 root_inside(&looking.root, path));
	looking.ours = same(pid, "ns/mnt") && same(pid, "root/.");
	looking.privileged = status.st_mode & (S_ISUID | S_ISGID);
	look(&looking, fd, environment);
	looking_free(&looking);
}

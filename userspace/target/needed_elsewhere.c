// SPDX-License-Identifier: Apache-2.0
/*
 * The libraries of a program that has another root or mount namespace, as one in a container: its
 * loader is not to be run out of that, so its libraries are looked for as a loader does it
 * (ld.so(8)), but for ld.so.cache: in the folders that the files and the environment name, and the
 * usual ones. What is found and not loaded then costs nothing; what is not found is armed when it
 * is mapped.
 */
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/needed_elsewhere.h"
#include "util/vec.h"

#define LIBRARIES_MAX 256

struct search {
	int root; /* the process's, O_PATH */
	GElf_Half machine;
	const char *environment_path; /* LD_LIBRARY_PATH; NULL: none */
	VEC(char *) found;            /* names, each looked for once */
	VEC(char *) paths;            /* the files, as the process sees them, still to be read */
	needed_each_fn each;
	void *arg;
};

/* Folders of most distributions. */
static const char usual[] = "/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib"
#ifdef __x86_64__
			    ":/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu";
#else
			    ":/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu";
#endif

/* A regular file below the process's root, to be read; -1: none. Nothing else is opened. */
static int open_below(const struct search *search, const char *path, char name[32])
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int place = (int)syscall(SYS_openat2, search->root, path, &how, sizeof(how)), fd = -1;
	struct stat status;

	if (place < 0)
		return -1;
	snprintf(name, 32, "/proc/self/fd/%d", place);
	if (!fstat(place, &status) && S_ISREG(status.st_mode))
		fd = open(name, O_RDONLY | O_CLOEXEC);
	close(place);
	if (fd >= 0)
		snprintf(name, 32, "/proc/self/fd/%d", fd);
	return fd;
}

/* Whether it is one that the program can load; then it is told of, and will be read. */
static bool take(struct search *search, const char *path)
{
	char name[32], *copy;
	int fd = open_below(search, path, name);
	GElf_Ehdr header;
	bool is;
	Elf *elf;

	if (fd < 0)
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	is = elf && gelf_getehdr(elf, &header) && header.e_machine == search->machine;
	elf_end(elf);
	if (is) {
		search->each(name, path, search->arg);
		copy = strdup(path);
		if (!copy || !vec_push(&search->paths, copy))
			free(copy);
	}
	close(fd);
	return is;
}

/* Of folders with ':' between them: the first one that has the library. $ORIGIN is where the file
 * is that asks for it. */
static bool take_from(struct search *search, const char *folders, const char *origin,
		      const char *library)
{
	while (folders && *folders) {
		size_t len = strcspn(folders, ":;"), skip = 0, at = strlen(origin);
		char path[PATH_MAX];
		int written;

		if (len >= 7 && !strncmp(folders, "$ORIGIN", 7))
			skip = 7;
		else if (len >= 9 && !strncmp(folders, "${ORIGIN}", 9))
			skip = 9;
		while (at && origin[at - 1] != '/')
			at--;
		written = snprintf(path, sizeof(path), "%.*s%.*s/%s", skip ? (int)at : 0, origin,
				   (int)(len - skip), folders + skip, library);
		if (written > 0 && (size_t)written < sizeof(path) && path[0] == '/' &&
		    take(search, path))
			return true;
		folders += len + (folders[len] != '\0');
	}
	return false;
}

/* What a file says of where its libraries are. */
struct said {
	const char *rpath, *runpath; /* before and behind those of the environment; NULL: none */
	const char *origin;          /* the file */
};

static void look_for(struct search *search, const char *library, const struct said *said)
{
	const char *const folders[] = {said->runpath ? NULL : said->rpath, search->environment_path,
				       said->runpath, usual};

	char *copy;

	for (size_t i = 0; i < search->found.len; i++)
		if (!strcmp(search->found.data[i], library))
			return;
	copy = search->found.len < LIBRARIES_MAX ? strdup(library) : NULL;
	if (!copy || !vec_push(&search->found, copy)) {
		free(copy);
		return;
	}
	if (strchr(library, '/'))
		take(search, library);
	else
		for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
			if (take_from(search, folders[i], said->origin, library))
				break;
}

/* What the file asks for. `path` is the file as the process sees it. */
static void read_file(struct search *search, int fd, const char *path)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	struct said said = {.origin = path};
	Elf_Scn *section = NULL;
	GElf_Shdr header = {0};
	Elf_Data *data;
	GElf_Dyn entry;

	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			break;
	data = section ? elf_getdata(section, NULL) : NULL;
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		if (entry.d_tag == DT_RUNPATH)
			said.runpath = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
		else if (entry.d_tag == DT_RPATH)
			said.rpath = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
	}
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		const char *library = entry.d_tag == DT_NEEDED
					      ? elf_strptr(elf, header.sh_link, entry.d_un.d_val)
					      : NULL;

		if (library && *library)
			look_for(search, library, &said);
	}
	elf_end(elf);
}

static void look_for_preloaded(struct search *search, const char *list)
{
	const struct said nothing = {.origin = ""};

	while (list && *list) {
		size_t len = strcspn(list, ": ");
		char library[PATH_MAX];

		if (len && len < sizeof(library)) {
			snprintf(library, sizeof(library), "%.*s", (int)len, list);
			look_for(search, library, &nothing);
		}
		list += len + (list[len] != '\0');
	}
}

static const char *value_of(char **environment, const char *name)
{
	size_t len = strlen(name);

	for (; *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

static void search_run(struct search *search, int program, const char *path, char **environment)
{
	Elf *elf = elf_begin(program, ELF_C_READ, NULL);
	GElf_Ehdr header;
	bool is = elf && gelf_getehdr(elf, &header);

	elf_end(elf);
	if (!is)
		return;
	search->machine = header.e_machine;
	search->environment_path = value_of(environment, "LD_LIBRARY_PATH");
	look_for_preloaded(search, value_of(environment, "LD_PRELOAD"));
	read_file(search, program, path);
	for (size_t i = 0; i < search->paths.len; i++) {
		char name[32];
		int fd = open_below(search, search->paths.data[i], name);

		if (fd < 0)
			continue;
		read_file(search, fd, search->paths.data[i]);
		close(fd);
	}
}

void needed_elsewhere(pid_t pid, char **environment, needed_each_fn each, void *arg)
{
	struct search search = {.each = each, .arg = arg};
	char link[64], path[PATH_MAX], root[PATH_MAX];
	ssize_t len, root_len;
	int program;

	snprintf(link, sizeof(link), "/proc/%d/root", pid);
	search.root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root_len = readlink(link, root, sizeof(root));
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	program = open(link, O_RDONLY | O_CLOEXEC);
	len = readlink(link, path, sizeof(path) - 1);
	if (search.root >= 0 && program >= 0 && len > 0 && root_len > 0) {
		path[len] = '\0';
		/* In a chroot its own path is the one that we see. */
		if (root_len > 1 && len > root_len && !memcmp(path, root, (size_t)root_len))
			memmove(path, path + root_len, (size_t)(len - root_len) + 1);
		elf_version(EV_CURRENT);
		search_run(&search, program, path, environment);
	}
	for (size_t i = 0; i < search.found.len; i++)
		free(search.found.data[i]);
	for (size_t i = 0; i < search.paths.len; i++)
		free(search.paths.data[i]);
	vec_free(&search.found);
	vec_free(&search.paths);
	if (search.root >= 0)
		close(search.root);
	if (program >= 0)
		close(program);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Values that stand for one function after another. "reused handles": a handle, got again by other
 * names. "reused plugins FILE:FUNCTION...": addresses, of libraries that are opened, called and
 * closed in turn. "reused execs PROGRAM": NAMED's address in this program and then in that one,
 * which has a function of another name there. Each use is logged: "use id=N name=NAME".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define ROUNDS 4

__attribute__((noipa)) int NAMED(int x)
{
	return usleep((unsigned)x) + 1;
}

__attribute__((noipa)) void use(const void *function, int id)
{
	__asm__ volatile("" : : "r"(function), "r"(id) : "memory");
}

__attribute__((noipa)) int get(void **function, const char *name)
{
	static char handle;

	*function = name ? &handle : NULL;
	return 0;
}

static void use_logged(const void *function, int id, const char *name)
{
	use(function, id);
	printf("use id=%d name=%s\n", id, name);
}

static void handles(void)
{
	static const char *const names[] = {"first", "second", "third"};

	for (int i = 0; i < ROUNDS * 3; i++) {
		void *function;

		get(&function, names[i % 3]);
		use_logged(function, 2 * i, names[i % 3]);
		use_logged(function, 2 * i + 1, names[i % 3]);
	}
}

static void plugins(char **list, int count)
{
	for (int i = 0; i < ROUNDS * count; i++) {
		char *path = strdup(list[i % count]), *name = strchr(path, ':');
		void *library, *function;

		*name++ = '\0';
		library = dlopen(path, RTLD_NOW);
		if (!library)
			exit(1);
		function = dlsym(library, name);
		use_logged(function, i, name);
		((int (*)(int))function)(i);
		dlclose(library);
		free(path);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "handles"))
		handles();
	else if (argc > 2 && !strcmp(argv[1], "plugins"))
		plugins(argv + 2, argc - 2);
	else
		use_logged((const void *)NAMED, argc, TEXT(NAMED));
	fflush(stdout);
	if (argc > 2 && !strcmp(argv[1], "execs"))
		execl(argv[2], argv[2], NULL);
	return 0;
}

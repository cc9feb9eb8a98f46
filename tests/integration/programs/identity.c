// SPDX-License-Identifier: Apache-2.0
/* Logs, in a span, its identity as the kernel and the environment report it. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <waffle_macros.h>

static void variable(const char *name)
{
	const char *value = getenv(name);

	printf("%s=%s\n", name, value ? value : "(unset)");
}

int main(void)
{
	uid_t ids[3];
	gid_t gids[3], groups[256];
	int count = getgroups(256, groups);
	struct rlimit core, files;
	char folder[4096];

	SPAN("identity");
	getresuid(&ids[0], &ids[1], &ids[2]);
	getresgid(&gids[0], &gids[1], &gids[2]);
	printf("uids=%u %u %u\ngids=%u %u %u\ngroups=", ids[0], ids[1], ids[2], gids[0], gids[1],
	       gids[2]);
	for (int i = 0; i < count; i++)
		printf("%u ", groups[i]);
	getrlimit(RLIMIT_CORE, &core);
	getrlimit(RLIMIT_NOFILE, &files);
	printf("\ncwd=%s\ncore=%llu\nfiles=%llu %llu\nsid=%d\npgid=%d\n",
	       getcwd(folder, sizeof(folder)), (unsigned long long)core.rlim_cur,
	       (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max, getsid(0),
	       getpgid(0));
	variable("HOME");
	variable("USER");
	variable("LOGNAME");
	variable("SHELL");
	variable("XDG_RUNTIME_DIR");
	variable("SUDO_UID");
	variable("KEPT");
	return 0;
}

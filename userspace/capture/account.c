// SPDX-License-Identifier: Apache-2.0
#include "capture/account_internal.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/output.h"
#include "util/units.h"

static int groups_read(struct account *account, struct error *err)
{
	int count = 64, room;

	do {
		gid_t *groups = reallocarray(account->groups, (size_t)count, sizeof(*groups));

		if (!groups)
			return error_set(err, ENOMEM, "out of memory");
		account->groups = groups;
		room = count;
		/* On overflow getgrouplist() sets `count` to the required number. */
	} while (getgrouplist(account->name, account->gid, account->groups, &count) < 0 &&
		 count > room);
	account->group_count = (size_t)count;
	return 0;
}

static int account_new(struct account **result, const struct passwd *entry, gid_t gid,
		       struct error *err)
{
	struct account *account = calloc(1, sizeof(*account));
	int code;

	if (!account)
		return error_set(err, ENOMEM, "out of memory");
	account->uid = entry->pw_uid;
	account->gid = gid;
	account->name = strdup(entry->pw_name);
	account->home = strdup(entry->pw_dir);
	account->shell = strdup(*entry->pw_shell ? entry->pw_shell : "/bin/sh");
	code = account->name && account->home && account->shell
		       ? groups_read(account, err)
		       : error_set(err, ENOMEM, "out of memory");
	if (code)
		account_free(account);
	else
		*result = account;
	return code;
}

/* getpwnam() does not treat "not found" as an error, but sets errno to various values
 * (getpwnam(3)). */
static const char *lookup_problem(int code)
{
	return !code || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM
		       ? "there is no such user"
		       : strerror(code);
}

int account_by_name(struct account **account, const char *name, struct error *err)
{
	const struct passwd *entry;
	uint64_t uid;

	errno = 0;
	entry = getpwnam(name);
	if (!entry && units_parse_number(name, &uid) && uid < (uid_t)-1) {
		errno = 0;
		entry = getpwuid((uid_t)uid);
	}
	if (!entry)
		return error_set(err, EINVAL, "--user: '%s': %s", name, lookup_problem(errno));
	return account_new(account, entry, entry->pw_gid, err);
}

int account_of_caller(struct account **account, struct error *err)
{
	const struct passwd *entry;
	unsigned uid, gid;

	*account = NULL;
	if (geteuid() != 0)
		return 0;
	if (!output_caller(&uid, &gid)) {
		const char *text = getenv("SUDO_UID");

		/* A number that cannot be parsed is not assumed to be root's. */
		if (text && *text)
			return error_set(err, EINVAL,
					 "the user who called sudo: SUDO_UID is '%s', which is no "
					 "number; name the command's user with --user",
					 text);
		return 0;
	}
	errno = 0;
	entry = getpwuid(uid);
	if (!entry)
		return error_set(err, EINVAL,
				 "the user who called sudo (SUDO_UID is %u): %s; name the "
				 "command's user with --user",
				 uid, lookup_problem(errno));
	return account_new(account, entry, gid == (gid_t)-1 ? entry->pw_gid : gid, err);
}

void account_free(struct account *account)
{
	if (!account)
		return;
	free(account->groups);
	free(account->name);
	free(account->home);
	free(account->shell);
	free(account);
}

/* Sets the directory that a login creates for the user (pam_systemd(8)), if there is one. */
static int runtime_folder_set(const struct account *account)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/run/user/%u", account->uid);
	if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != account->uid)
		return unsetenv("XDG_RUNTIME_DIR");
	return setenv("XDG_RUNTIME_DIR", path, 1);
}

static int environment_set(const struct account *account)
{
	static const char *const of_sudo[] = {"SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND",
					      "SUDO_HOME"};

	for (size_t i = 0; i < sizeof(of_sudo) / sizeof(of_sudo[0]); i++)
		unsetenv(of_sudo[i]);
	if (setenv("HOME", account->home, 1) || setenv("USER", account->name, 1) ||
	    setenv("LOGNAME", account->name, 1) || setenv("SHELL", account->shell, 1) ||
	    runtime_folder_set(account))
		return -ENOMEM;
	return 0;
}

int account_become(const struct account *account)
{
	/* Set the groups first: after the user id has changed, this is not permitted. */
	if (setgroups(account->group_count, account->groups) ||
	    setresgid(account->gid, account->gid, account->gid) ||
	    setresuid(account->uid, account->uid, account->uid))
		return -errno;
	return environment_set(account);
}

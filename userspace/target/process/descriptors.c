// SPDX-License-Identifier: Apache-2.0
#include "target/process/descriptors.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/process/mounts.h"
#include "target/process/process.h"
#include "target/process/terminal.h"
#include "util/clock.h"
#include "util/text.h"

uint32_t dev_of_kernel(dev_t dev)
{
	return (uint32_t)(major(dev) << 20 | minor(dev));
}

/* ---- mounts ---- */

/*
 * Type and first mount point of the file system on a device. Format, see proc(5), mountinfo:
 * "36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw".
 */
static bool mount_find(const char *table, uint32_t dev, char *type, size_t type_size, char *point,
		       size_t point_size)
{
	char *line = NULL, place[PATH_MAX];
	size_t size = 0;
	bool found = false;
	FILE *mounts = fopen(table, "re");

	if (!mounts)
		return false;
	while (!found && getline(&line, &size, mounts) > 0) {
		unsigned high, low;
		const char *rest = strstr(line, " - ");

		if (!rest || sscanf(line, "%*u %*u %u:%u %*s %4095s", &high, &low, place) != 3 ||
		    (high << 20 | low) != dev)
			continue;
		rest += strlen(" - ");
		snprintf(type, type_size, "%.*s", (int)strcspn(rest, " \n"), rest);
		process_unescape(place);
		snprintf(point, point_size, "%s", place);
		found = true;
	}
	free(line);
	fclose(mounts);
	return found;
}

/* ---- sockets ---- */

/* Parses "0100007F:1F90", or four such words. Each word is in the machine's byte order. */
static bool address_text(const char *hex, char *text, size_t size)
{
	size_t digits = strcspn(hex, ":");
	char ip[INET6_ADDRSTRLEN];
	uint32_t words[4] = {0};
	unsigned port;

	if ((digits != 8 && digits != 32) || !hex[digits] ||
	    sscanf(hex + digits + 1, "%x", &port) != 1)
		return false;
	for (size_t i = 0; i < digits / 8; i++) {
		char word[9];

		snprintf(word, sizeof(word), "%.8s", hex + 8 * i);
		words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	if (digits == 32 && !words[0] && !words[1] && words[2] == htonl(0xffff)) {
		digits = 8; /* an IPv4 address in an IPv6 socket */
		words[0] = words[3];
	}
	inet_ntop(digits == 8 ? AF_INET : AF_INET6, words, ip, sizeof(ip));
	snprintf(text, size, digits == 8 ? "%s:%u" : "[%s]:%u", ip, port);
	return true;
}

/* Of include/net/tcp_states.h. */
#define STATE_ESTABLISHED 1
#define STATE_SYN_SENT 2
#define STATE_SYN_RECV 3
#define STATE_CLOSE_WAIT 8

/* Whether a connection without a file waits to be accepted. One whose file is closed is in none of
 * these states. If the queue is full, its client has the answer to its SYN, and the kernel drops
 * what the client sends: then it stays in STATE_SYN_RECV. */
static bool is_unaccepted(const char *kind, unsigned state)
{
	return !strcmp(kind, "tcp") &&
	       (state == STATE_ESTABLISHED || state == STATE_SYN_RECV || state == STATE_CLOSE_WAIT);
}

/* Prints ", SYN sent again 2 times" or ", SYN not answered" if nobody has answered yet, or nothing.
 */
static void syn_put(char *text, size_t size, const char *kind, unsigned state, unsigned resent)
{
	text[0] = '\0';
	if (strcmp(kind, "tcp") != 0 || state != STATE_SYN_SENT)
		return;
	if (!resent)
		snprintf(text, size, DESCRIPTOR_UNANSWERED);
	else if (resent == 1)
		snprintf(text, size, DESCRIPTOR_AFTER " SYN sent again once");
	else
		snprintf(text, size, DESCRIPTOR_AFTER " SYN sent again %u times", resent);
}

/* Fields, see proc_net_tcp(5): "sl local rem st tx:rx tr:when retrnsmt uid timeout inode". */
static bool inet_parse(const char *line, const char *kind, uint64_t ino, char *detail, size_t size)
{
	char local[80], remote[80], here[80], there[80], after[48];
	unsigned state, resent;
	uint64_t inode;

	if (sscanf(line, " %*[^:]: %79s %79s %x %*s %*s %x %*s %*s %" SCNu64, local, remote, &state,
		   &resent, &inode) != 5 ||
	    inode != ino || (!ino && !is_unaccepted(kind, state)) ||
	    !address_text(local, here, sizeof(here)) || !address_text(remote, there, sizeof(there)))
		return false;
	syn_put(after, sizeof(after), kind, state, resent);
	if (!ino)
		snprintf(after, sizeof(after), DESCRIPTOR_UNACCEPTED);
	if (strspn(strchr(remote, ':'), ":0") == strlen(strchr(remote, ':'))) /* port 0: no peer */
		snprintf(detail, size, "%s %s", kind, here);
	else
		snprintf(detail, size, "%s %s" DESCRIPTOR_BETWEEN "%s%s", kind, here, there, after);
	return true;
}

/* Fields: "Num RefCount Protocol Flags Type St Inode Path". */
static bool unix_parse(const char *line, const char *kind, uint64_t ino, char *detail, size_t size)
{
	char path[200] = "";
	uint64_t inode;

	if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %199[^\n]", &inode, path) < 1 ||
	    inode != ino)
		return false;
	snprintf(detail, size, "%s%s%s", kind, *path ? " " : "", path);
	return true;
}

typedef bool (*socket_parse_fn)(const char *line, const char *kind, uint64_t ino, char *detail,
				size_t size);

/* Counts the lines of a table that describe the socket. `detail` receives the first one. */
static unsigned socket_lines(const char *path, socket_parse_fn parse, const char *kind,
			     uint64_t ino, char *detail, size_t size)
{
	FILE *table = fopen(path, "re");
	char *line = NULL, other[256];
	size_t line_size = 0;
	unsigned found = 0;

	while (table && getline(&line, &line_size, table) > 0)
		found += parse(line, kind, ino, found ? other : detail,
			       found ? sizeof(other) : size);
	free(line);
	if (table)
		fclose(table);
	return found;
}

/*
 * Sockets are listed per network namespace, so we read the tables of the process. The path of a
 * unix socket may contain a line feed, and so may forge a line for any other socket. Therefore unix
 * sockets are read last, and a unix socket with two matching lines stays unknown.
 */
static void socket_detail(pid_t pid, uint64_t ino, char *detail, size_t size)
{
	static const struct {
		const char *file, *kind;
		socket_parse_fn parse;
	} tables[] = {
		{"tcp", "tcp", inet_parse},   {"tcp6", "tcp", inet_parse},
		{"udp", "udp", inet_parse},   {"udp6", "udp", inet_parse},
		{"unix", "unix", unix_parse},
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char path[64];
		unsigned found;

		snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, tables[i].file);
		found = socket_lines(path, tables[i].parse, tables[i].kind, ino, detail, size);
		if (found > 1)
			detail[0] = '\0';
		if (found)
			return;
	}
}

bool descriptor_of_unix(struct descriptor *found, pid_t pid, uint64_t ino)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/net/unix", pid);
	snprintf(found->name, sizeof(found->name), DESCRIPTOR_SOCKET "[%" PRIu64 "]", ino);
	return socket_lines(path, unix_parse, "unix", ino, found->detail, sizeof(found->detail)) ==
	       1;
}

/* Limit of the lines of a table, most of which may be of connections that are closed. */
#define CONNECTION_LINES_MAX 200000

/* Returns false if `found` does. */
static bool line_pass(const char *line, const char *kind, inet_socket_fn found, void *arg)
{
	struct inet_socket socket;
	char detail[256];
	unsigned state;

	if (sscanf(line, " %*[^:]: %*s %*s %x %*x:%" SCNx32 " %*s %*s %*s %*s %" SCNu64, &state,
		   &socket.unread, &socket.ino) != 3 ||
	    !inet_parse(line, kind, socket.ino, detail, sizeof(detail)))
		return true;
	socket.detail = detail;
	socket.established = !strcmp(kind, "tcp") && state == STATE_ESTABLISHED;
	return found(&socket, arg);
}

/* Whether all lines of a table have passed. */
static bool table_each(FILE *table, const char *kind, inet_socket_fn found, void *arg)
{
	unsigned left = CONNECTION_LINES_MAX;
	size_t size = 0;
	char *line = NULL;
	bool all = true;

	while (all && getline(&line, &size, table) > 0)
		all = left-- && line_pass(line, kind, found, arg);
	free(line);
	return all && feof(table);
}

/* A kernel without IPv6 has no table of it. One of a process that is gone is missing as well, but
 * then so is that of IPv4, which is read after it. */
static bool inet_sockets_each(pid_t pid, const char *kind, inet_socket_fn found, void *arg)
{
	static const char *const versions[] = {"6", ""};
	bool all = true;

	for (size_t i = 0; all && i < sizeof(versions) / sizeof(versions[0]); i++) {
		char path[64];
		FILE *table;

		snprintf(path, sizeof(path), "/proc/%d/net/%s%s", pid, kind, versions[i]);
		table = fopen(path, "re");
		all = table ? table_each(table, kind, found, arg) : errno == ENOENT && *versions[i];
		if (table)
			fclose(table);
	}
	return all;
}

bool tcp_sockets_each(pid_t pid, inet_socket_fn found, void *arg)
{
	return inet_sockets_each(pid, "tcp", found, arg);
}

bool udp_sockets_each(pid_t pid, inet_socket_fn found, void *arg)
{
	return inet_sockets_each(pid, "udp", found, arg);
}

/* ---- descriptors ---- */

/* Reads cached attributes only. A request to a file server may hang, and may be the very thing that
 * the process waits for. */
static int file_know(int folder, const char *path, struct statx *info)
{
	return statx(folder, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		     STATX_TYPE | STATX_INO | STATX_BTIME, info)
		       ? -errno
		       : 0;
}

static uint32_t dev_of_file(const struct statx *info)
{
	return info->stx_dev_major << 20 | info->stx_dev_minor;
}

/* Reads the name of an open descriptor, and its type into `info`. */
static int descriptor_read(struct descriptor *found, pid_t pid, int fd, struct statx *info)
{
	char path[64];
	ssize_t len;
	int result;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	result = file_know(AT_FDCWD, path, info);
	if (result)
		return result;
	len = readlink(path, found->name, sizeof(found->name) - 1);
	if (len < 0)
		return -errno;
	found->name[len] = '\0';
	found->detail[0] = '\0';
	return 0;
}

bool descriptor_key(struct file_key *key, char *kind, size_t size, pid_t pid, int fd)
{
	const char *anonymous = "anon_inode:";
	struct descriptor found;
	struct statx info;

	kind[0] = '\0';
	if (descriptor_read(&found, pid, fd, &info))
		return false;
	*key = (struct file_key){.ino = info.stx_ino, .dev = dev_of_file(&info)};
	if (!strncmp(found.name, anonymous, strlen(anonymous)))
		snprintf(kind, size, "%s", found.name + strlen(anonymous));
	return true;
}

/* A chroot directory that is not a mount point is missing from the table of a process inside it. So
 * we read our own table, and in case we run in such a chroot, too, that of process 1. */
static void file_system_detail(pid_t pid, uint32_t dev, char *detail, size_t size)
{
	const pid_t pids[] = {pid, getpid(), 1};
	char table[64], point[PATH_MAX];

	for (size_t i = 0; i < sizeof(pids) / sizeof(pids[0]); i++) {
		snprintf(table, sizeof(table), "/proc/%d/mountinfo", pids[i]);
		if (mount_find(table, dev, detail, size, point, sizeof(point)))
			return;
	}
}

static void descriptor_detail(struct descriptor *found, pid_t pid, const struct statx *info)
{
	const struct terminal_file file = {found->name, info->stx_rdev_major, info->stx_rdev_minor};

	if (S_ISCHR(info->stx_mode) &&
	    terminal_describe(found->detail, sizeof(found->detail), pid, &file))
		return;
	if (S_ISCHR(info->stx_mode) || S_ISBLK(info->stx_mode)) {
		snprintf(found->detail, sizeof(found->detail), "%s device %u:%u",
			 S_ISCHR(info->stx_mode) ? "character" : "block", info->stx_rdev_major,
			 info->stx_rdev_minor);
	} else if (S_ISSOCK(info->stx_mode)) {
		socket_detail(pid, info->stx_ino, found->detail, sizeof(found->detail));
	} else if (S_ISFIFO(info->stx_mode) && found->name[0] == '/') {
		snprintf(found->detail, sizeof(found->detail), DESCRIPTOR_FIFO);
	} else if (found->name[0] == '/') {
		file_system_detail(pid, dev_of_file(info), found->detail, sizeof(found->detail));
	}
}

void sockets_each(pid_t pid, void (*found)(const struct file_key *key, void *arg), void *arg)
{
	struct dirent *entry;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		struct statx info = {0};

		if (isdigit((unsigned char)entry->d_name[0]) &&
		    !file_know(dirfd(folder), entry->d_name, &info) && S_ISSOCK(info.stx_mode))
			found(&(struct file_key){.ino = info.stx_ino, .dev = dev_of_file(&info)},
			      arg);
	}
	if (folder)
		closedir(folder);
}

static int descriptor_search(struct descriptor *found, pid_t pid, const struct file_key *key,
			     struct statx *info)
{
	int result = -ENOENT;
	struct dirent *entry;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? -ESRCH : -errno;
	while (result && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    file_know(dirfd(folder), entry->d_name, info) || info->stx_ino != key->ino ||
		    dev_of_file(info) != key->dev)
			continue;
		result = descriptor_read(found, pid, atoi(entry->d_name), info);
	}
	closedir(folder);
	return result;
}

int descriptor_is_open(pid_t pid, const struct file_key *key, uint64_t until_ns)
{
	struct dirent *entry;
	struct statx info;
	int result = 0, unknown = 0;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", process_live_task(pid));
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT ? 0 : -errno;
	while (!result && (entry = readdir(folder))) {
		int error;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		error = file_know(dirfd(folder), entry->d_name, &info);
		if (error && error != -ENOENT) /* such as a FUSE file of another user */
			unknown = error;
		if (!error && info.stx_ino == key->ino && dev_of_file(&info) == key->dev)
			result = 1;
		else if (clock_monotonic_ns() >= until_ns)
			result = -ETIME;
	}
	closedir(folder);
	return result ?: unknown;
}

int descriptor_find(struct descriptor *found, pid_t pid, int fd, const struct file_key *key)
{
	struct statx info = {0};
	int result = -ENOENT;

	/* Some file systems (btrfs, overlayfs) report another device number, so here the inode must
	 * suffice. */
	if (fd >= 0)
		result = descriptor_read(found, pid, fd, &info);
	if (result || info.stx_ino != key->ino) {
		result = descriptor_search(found, pid, key, &info);
		/* All eventfds, epolls, timers, … share one inode, so it does not identify the
		 * file. */
		if (!result && text_begins(found->name, "anon_inode:"))
			return -ENOENT;
	}
	if (result)
		return result;
	descriptor_detail(found, pid, &info);
	/* A server gives the time of its own clock. */
	found->born_s = info.stx_mask & STATX_BTIME && mounts_type_is_local(found->detail)
				? info.stx_btime.tv_sec
				: 0;
	return 0;
}

bool descriptor_is_connecting(const char *detail)
{
	return text_begins(detail, "tcp ") && (strstr(detail, DESCRIPTOR_AFTER " SYN sent again") ||
					       strstr(detail, DESCRIPTOR_UNANSWERED));
}

bool descriptor_is_unaccepted(const char *detail)
{
	return text_begins(detail, "tcp ") && strstr(detail, DESCRIPTOR_UNACCEPTED);
}

bool descriptor_is_gone(const char *detail)
{
	return text_begins(detail, "tcp ") && strstr(detail, DESCRIPTOR_GONE);
}

uint32_t descriptor_unread(const char *text)
{
	unsigned long bytes;
	char *rest;

	while ((text = strstr(text, DESCRIPTOR_WITH))) {
		bytes = strtoul(text + strlen(DESCRIPTOR_WITH), &rest, 10);
		if (bytes <= UINT32_MAX && text_begins(rest, DESCRIPTOR_UNREAD))
			return (uint32_t)bytes;
		text = rest;
	}
	return 0;
}

bool descriptor_is_among(const char *detail)
{
	return text_begins(detail, "tcp ") && strstr(detail, DESCRIPTOR_AMONG);
}

const char *descriptor_list(const char *name)
{
	const char *text = name + strspn(name, "0123456789");

	if (text_begins(name, DESCRIPTOR_MANY))
		return name + strlen(DESCRIPTOR_MANY);
	return text > name && text_begins(text, " " DESCRIPTOR_LIST)
		       ? text + strlen(" " DESCRIPTOR_LIST)
		       : NULL;
}

bool descriptor_is_epoll(const char *name)
{
	return text_begins(name, DESCRIPTOR_EPOLL);
}

bool descriptor_is_socket(const char *name)
{
	return text_begins(name, DESCRIPTOR_SOCKET);
}

/* A socket is named by its endpoints, if it has any. */
static bool descriptor_short(char *text, size_t size, pid_t pid, int fd)
{
	char path[64], detail[256] = "";
	struct statx info;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (file_know(AT_FDCWD, path, &info))
		return false;
	if (S_ISSOCK(info.stx_mode))
		socket_detail(pid, info.stx_ino, detail, sizeof(detail));
	if (*detail) {
		snprintf(text, size, "%s", detail);
		return true;
	}
	len = readlink(path, text, size - 1);
	text[len > 0 ? len : 0] = '\0';
	return len > 0;
}

int descriptors_list(char *text, size_t size, pid_t pid, const int *fds, unsigned count)
{
	char one[256];
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < count; i++)
		if (fds[i] >= 0 && descriptor_short(one, sizeof(one), pid, fds[i]) &&
		    len + strlen(one) + sizeof(", ") <= size)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
						one);
	return len ? 0 : -ENOENT;
}

/* The device number of a kind of files that is the same in all processes (pipes, sockets). */
static uint32_t dev_of_fd(int fd)
{
	struct stat info;

	return fd >= 0 && !fstat(fd, &info) ? dev_of_kernel(info.st_dev) : 0;
}

static uint32_t dev_of_sockets(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint32_t dev = dev_of_fd(fd);

	if (fd >= 0)
		close(fd);
	return dev;
}

static uint32_t dev_of_pipes(void)
{
	int ends[2];
	uint32_t dev;

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	dev = dev_of_fd(ends[0]);
	close(ends[0]);
	close(ends[1]);
	return dev;
}

bool descriptor_of_inode(struct descriptor *found, const struct file_key *key)
{
	char point[PATH_MAX];

	found->detail[0] = '\0';
	if (key->dev == dev_of_pipes()) {
		snprintf(found->name, sizeof(found->name), "pipe:[%" PRIu64 "]", key->ino);
	} else if (key->dev == dev_of_sockets()) {
		snprintf(found->name, sizeof(found->name), "socket:[%" PRIu64 "]", key->ino);
	} else if (mount_find("/proc/self/mountinfo", key->dev, found->detail,
			      sizeof(found->detail), point, sizeof(point))) {
		int cut = snprintf(found->name, sizeof(found->name),
				   DESCRIPTOR_INODE "%" PRIu64 " of %.4000s", key->ino, point);

		return cut > 0;
	} else {
		return false;
	}
	return true;
}

/* ---- devices ---- */

bool block_device_name(char *name, size_t size, uint32_t dev)
{
	char path[64], line[256];
	bool found = false;
	FILE *uevent;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/uevent", dev >> 20, dev & 0xfffff);
	uevent = fopen(path, "re");
	while (uevent && !found && fgets(line, sizeof(line), uevent)) {
		if (strncmp(line, "DEVNAME=", strlen("DEVNAME=")) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(name, size, "/dev/%s", line + strlen("DEVNAME="));
		found = true;
	}
	if (uevent)
		fclose(uevent);
	return found;
}

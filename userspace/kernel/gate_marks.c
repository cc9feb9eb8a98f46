// SPDX-License-Identifier: Apache-2.0
/*
 * Which file systems the gate watches: those of a local disk or of memory. The kernel opens each
 * executed file for the gate. The open of a file on a network or FUSE file system waits for its
 * server, which may itself be about to exec, so these are left out: their programs are not held.
 * A server that a user runs may even answer nothing. Then the gate can't be killed, and no program
 * of the machine starts. So a file system's type must not be a guess: the line of its mount is read
 * while the mount is held open, since a mount and a device get the numbers of those that went.
 */
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel/gate_internal.h"
#include "target/process/mounts.h"
#include "target/process/process.h"
#include "util/clock.h"
#include "util/map.h"

#define PLACES_MAX 64 /* file systems examined at a time */
#define TRIES_MAX 4
/* Limit of our CPU time to read the mounts of a process: a user may make 100,000, stacked so that
 * reading them takes minutes. */
#define READ_NS 50000000ull

/* A line of mountinfo. */
struct mount {
	uint64_t id, device;
	char *path;
	bool overlay;
};

/* A mount that is held open. */
struct mark_place {
	int fd;
	uint64_t mount;
};

struct places {
	int process, root; /* its folder in /proc, and its root */
	struct mark_place list[PLACES_MAX];
	size_t count;
	struct map known; /* devices that are watched or in the list */
};

/* proc(5): "36 35 98:0 /root /path rw,noatime shared:1 - ext3 /dev/root rw,errors=continue". False:
 * it can't be watched. */
static bool mount_parse(char *line, struct mount *mount)
{
	unsigned major, minor;
	char *fields[6], *rest = line, *type;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fields[i] = strsep(&rest, " ");
	type = rest ? strstr(rest, "- ") : NULL;
	if (!type || sscanf(fields[2], "%u:%u", &major, &minor) != 2)
		return false;
	type += 2;
	type = strsep(&type, " ");
	process_unescape(fields[4]);
	*mount = (struct mount){.id = strtoul(fields[0], NULL, 10),
				.device = (uint64_t)major << 20 | minor,
				.path = fields[4],
				.overlay = !strcmp(type, "overlay")};
	return mounts_type_is_local(type) && !strstr(fields[5], "noexec");
}

static void mounts_each(struct places *places,
			void (*each)(struct places *places, const struct mount *mount, void *arg),
			void *arg)
{
	int fd = openat(places->process, "mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(fd, "re") : NULL;
	char *line = NULL;
	size_t size = 0;
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + READ_NS;

	while (file && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end && getline(&line, &size, file) > 0) {
		struct mount mount;

		if (mount_parse(line, &mount))
			each(places, &mount, arg);
	}
	free(line);
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
}

/*
 * Opens a mount by its path in the process. If another mount lies over it, that one is opened.
 * RESOLVE_CACHED limits the walk to what the kernel has in memory, since the path may lead through
 * a file system whose server does not answer. It may fail with EAGAIN.
 */
static int mount_open(const struct places *places, const struct mount *mount)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
			       .resolve = RESOLVE_CACHED | RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd = -1;

	for (unsigned i = 0; i < TRIES_MAX && fd < 0; i++)
		fd = syscall(SYS_openat2, places->root, mount->path, &how, sizeof(how));
	return (int)fd;
}

static void place_add(struct places *places, const struct mount *mount, void *arg)
{
	struct statx status;
	int fd;

	(void)arg;
	if (places->count == PLACES_MAX || map_get(&places->known, mount->device) != MAP_NONE)
		return;
	fd = mount_open(places, mount);
	if (fd < 0)
		return;
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &status) ||
	    !(status.stx_mask & STATX_MNT_ID) || status.stx_mnt_id != mount->id ||
	    !map_set(&places->known, mount->device, 1)) {
		close(fd);
		return;
	}
	places->list[places->count++] = (struct mark_place){.fd = fd, .mount = mount->id};
}

/*
 * Whether only privileged users have mounted what the process sees. In a user namespace anybody may
 * put an overlay on a FUSE file system. A process that has entered such a namespace does not leave
 * it, so we check after its mounts were read.
 */
static bool are_mounts_trusted(const struct places *places)
{
	int mounts = openat(places->process, "ns/mnt", O_RDONLY | O_CLOEXEC);
	int owner = mounts >= 0 ? ioctl(mounts, NS_GET_USERNS) : -1;
	struct stat theirs, ours;
	bool same = owner >= 0 && !fstat(owner, &theirs) && !stat("/proc/self/ns/user", &ours) &&
		    theirs.st_ino == ours.st_ino;

	if (owner >= 0)
		close(owner);
	if (mounts >= 0)
		close(mounts);
	return same;
}

/* For each place that is held open: whether a local mount or an overlay was found there. */
struct verified {
	bool local[PLACES_MAX], overlay[PLACES_MAX];
};

static void place_verify(struct places *places, const struct mount *mount, void *arg)
{
	struct verified *verified = arg;

	for (size_t i = 0; i < places->count; i++)
		if (places->list[i].mount == mount->id) {
			verified->local[i] = true;
			verified->overlay[i] = mount->overlay;
		}
}

static unsigned places_send(struct places *places, const struct gate *gate)
{
	const struct gate_answer nothing = {0};
	struct verified verified = {0};
	unsigned sent = 0;
	bool trusted;

	if (!places->count)
		return 0;
	mounts_each(places, place_verify, &verified);
	trusted = are_mounts_trusted(places);
	for (size_t i = 0; i < places->count; i++) {
		int fd = places->list[i].fd;

		sent += verified.local[i] && (trusted || !verified.overlay[i]) &&
			gate_send(gate->socket, &nothing, sizeof(nothing), fd);
		close(fd);
	}
	return sent;
}

/* Reads the watched devices. An unmounted file system loses
 * its mark, and the next one may get its number. */
static void known_read(const struct gate *gate, struct map *known)
{
	char path[64], *line = NULL;
	unsigned device;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", gate->pid, gate->group);
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0)
		if (sscanf(line, "fanotify sdev:%x ", &device) == 1)
			map_set(known, device, 1);
	free(line);
	if (file)
		fclose(file);
}

unsigned gate_mark(struct gate *gate, pid_t pid)
{
	struct places places = {.root = -1};
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + READ_NS;
	unsigned sent = 0;
	char path[32];
	bool is_full;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	places.process = gate->pid ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (places.process >= 0)
		places.root = openat(places.process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (places.root >= 0) {
		known_read(gate, &places.known);
		do {
			places.count = 0;
			mounts_each(&places, place_add, NULL);
			is_full = places.count == PLACES_MAX;
			sent += places_send(&places, gate);
		} while (is_full && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
		map_free(&places.known);
		close(places.root);
	}
	if (places.process >= 0)
		close(places.process);
	return sent;
}

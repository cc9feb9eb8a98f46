/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the open files of a process are called: a path, "pipe:[4711]", "socket:[4712]",
 * "anon_inode:[eventfd]". The kernel's records name a file by device and inode, and by the
 * descriptor that was used, which may be another file's by now.
 */
#ifndef WAFFLE_TARGET_DESCRIPTORS_H
#define WAFFLE_TARGET_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file as the kernel numbers it: major << 20 | minor (include/linux/kdev_t.h). */
struct file_key {
	uint64_t ino;
	uint32_t dev;
};

struct descriptor {
	char name[4096];
	/*
	 * A socket's ends, "tcp 10.0.0.1:80 <-> 10.0.0.2:5000", "udp 0.0.0.0:53", "unix /run/x"; a
	 * file system's type, "ext4"; "fifo" of a pipe with a path; "character device 195:0"; else
	 * "".
	 */
	char detail[256];
};

#define DESCRIPTOR_FIFO "fifo"

uint32_t dev_of_kernel(dev_t dev);

/*
 * Looks at descriptor `fd` of a process (-1: not known) and then, unless the file is one that has
 * no name but by its descriptor, at all others. -ENOENT: it is open no more; -ESRCH: no such
 * process; other negative errno: it can't be looked at.
 */
int descriptor_find(struct descriptor *found, pid_t pid, int fd, const struct file_key *key);

/* What an epoll descriptor watches, "anon_inode:[timerfd], socket:[4712]", as far as there is room.
 * Empty: nothing, or it can't be looked at. */
void epoll_watched(char *text, size_t size, pid_t pid, int fd);

/* What the name of a file tells without a process: "pipe:[4711]" or "socket:[4712]", whose devices
 * are the same for all; else "inode 4711 of /data". False: nothing is known of the device. */
bool descriptor_of_inode(struct descriptor *found, const struct file_key *key);

/* "/dev/vda1"; false: there is no such block device. */
bool block_device_name(char *name, size_t size, uint32_t dev);

/* The folder of a cgroup, by inode, among those of a thread. */
bool cgroup_path(char *path, size_t size, pid_t tid, uint64_t ino);

#endif

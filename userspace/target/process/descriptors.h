/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of a process's open files: a path, "pipe:[4711]", "socket:[4712]", "anon_inode:[eventfd]".
 * The kernel's records identify a file by device and inode and by the descriptor used. That
 * descriptor may refer to another file by now.
 */
#ifndef WAFFLE_TARGET_PROCESS_DESCRIPTORS_H
#define WAFFLE_TARGET_PROCESS_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file's key. `dev` has the kernel's encoding: major << 20 | minor (include/linux/kdev_t.h). */
struct file_key {
	uint64_t ino;
	uint32_t dev;
};

struct descriptor {
	char name[4096];
	/*
	 * A socket's endpoints, "tcp 10.0.0.1:80 <-> 10.0.0.2:5000", "udp 0.0.0.0:53", "unix
	 * /run/x"; with what TCP has sent again, "tcp … <-> 10.0.0.2:80, SYN sent again 2 times",
	 * or that nobody has answered, "tcp … <-> 10.0.0.2:80, SYN not answered", and in both cases
	 * of an epoll with others, "…, SYN not answered, among other sockets"; the server's end of
	 * a connection "tcp … <-> 10.0.0.1:5000, not accepted yet"; the other end "tcp … <->
	 * 10.0.0.1:5000, which is gone" or "…, with 12 bytes unread"; a file system's type, "ext4";
	 * "fifo" for a named pipe, "fifo, nobody has opened it to read" while it is being opened;
	 * "character device 195:0"; "terminal of process 4711, sshd" (terminal.h); "write end of
	 * process 4711, sh" (pipe_ends.h), and of a list of pipes "other ends of process 4711, sh";
	 * "ext4, locked by process 4711, sh" while a thread waits for the lock; or "".
	 */
	char detail[256];
	/* When the file was made, in the time of the host's clock; 0: unknown, also if that is the
	 * time of a server's clock. */
	int64_t born_s;
};

#define DESCRIPTOR_FIFO "fifo"
/* How the detail of a cgroup begins: "cgroup cpu" if it is named as one with that controller. In
 * captures of older versions it is all of it. */
#define DESCRIPTOR_CGROUP "cgroup"
/* How the name of a file begins of which only the inode is known. */
#define DESCRIPTOR_INODE "inode "
/* The detail of an object in the capture that has its name, for waits before that was known. */
#define DESCRIPTOR_EARLIER "of earlier waits"
#define DESCRIPTOR_EPOLL "anon_inode:" DESCRIPTOR_EPOLL_KIND
#define DESCRIPTOR_EPOLL_KIND "[eventpoll]"
#define DESCRIPTOR_EVENT_KIND "[eventfd]"
#define DESCRIPTOR_TIMER_KIND "[timerfd]"
#define DESCRIPTOR_SOCKET "socket:"
#define DESCRIPTOR_BETWEEN " <-> " /* both ends of a socket */
#define DESCRIPTOR_AFTER ","       /* the remote end, if more follows */
#define DESCRIPTOR_UNANSWERED DESCRIPTOR_AFTER " SYN not answered"
/* The server's end of a connection that is in the queue of the socket that listens. */
#define DESCRIPTOR_UNACCEPTED DESCRIPTOR_AFTER " not accepted yet"
/* The other end of a connection that has none any more. */
#define DESCRIPTOR_GONE DESCRIPTOR_AFTER " which is gone"
/* "tcp …, with 12 bytes unread": its process has not read so much of what has arrived. */
#define DESCRIPTOR_WITH DESCRIPTOR_AFTER " with "
#define DESCRIPTOR_UNREAD " bytes unread"
/* At the end: the socket is that of an epoll that watches others of a network as well. */
#define DESCRIPTOR_AMONG DESCRIPTOR_AFTER " among other sockets"
/* What the name of a list has before its descriptors: "3 descriptors: tcp 10.0.0.1:80, pipe:[4]".
 */
#define DESCRIPTOR_LIST "descriptors: "
/* How the name of a list begins of which only the first descriptors are known. */
#define DESCRIPTOR_MANY "many " DESCRIPTOR_LIST

/* The descriptors in the name of a list, separated by ", ". NULL: it is no list: the name of a file
 * may contain the same words. */
const char *descriptor_list(const char *name);

/* Reads the key of an open descriptor of a process, and of an anonymous inode the name:
 * "[eventfd]". `kind` is empty for other files. False: it is not open. */
bool descriptor_key(struct file_key *key, char *kind, size_t size, pid_t pid, int fd);

/* Whether the detail is that of a socket of TCP whose SYN nobody has answered, or which has sent it
 * again: nobody had answered. */
bool descriptor_is_connecting(const char *detail);
/* Whether whoever waits for the socket also waits for others, which are not named. */
bool descriptor_is_among(const char *detail);
/* Whether it is the server's end of a connection that the server has not accepted. */
bool descriptor_is_unaccepted(const char *detail);
/* Whether it is the other end of a connection, and no socket has that end any more. */
bool descriptor_is_gone(const char *detail);
/* The bytes that the process of a socket has not read, as such a text says; 0: it does not. */
uint32_t descriptor_unread(const char *text);
bool descriptor_is_epoll(const char *name);
bool descriptor_is_socket(const char *name);

/* Converts a device number of stat() to the encoding of struct file_key. */
uint32_t dev_of_kernel(dev_t dev);

/*
 * Checks descriptor `fd` of a process (-1: unknown), then all others. The second step is skipped
 * for files that only their descriptor identifies. -ENOENT: the file is no longer open; -ESRCH: no
 * such process; other negative errno: the process cannot be read.
 */
int descriptor_find(struct descriptor *found, pid_t pid, int fd, const struct file_key *key);

/* Whether a process has a file open: 1, 0, or a negative errno if that is not known. -ETIME: not
 * all its descriptors were read until then. A thread with descriptors of its own is not seen. */
int descriptor_is_open(pid_t pid, const struct file_key *key, uint64_t until_ns);

/* Lists descriptors, "udp 10.0.0.2:5353 <-> 10.0.0.1:53, pipe:[4711]", as far as it fits; closed
 * and negative ones are left out. -ENOENT: all of them are closed, or the process is gone. */
int descriptors_list(char *text, size_t size, pid_t pid, const int *fds, unsigned count);

/* A socket of TCP or UDP. */
struct inet_socket {
	uint64_t ino;       /* 0: it is not accepted yet, and no file */
	const char *detail; /* its ends, as above */
	uint32_t unread;    /* bytes that have arrived and that its process has not read */
	bool established;
};
typedef bool (*inet_socket_fn)(const struct inet_socket *socket, void *arg);

/* Calls `found` for each open socket of TCP in the network namespace of a process until it returns
 * false. Whether it has got all: a host may have millions, of which the first ones pass, and the
 * process may end. */
bool tcp_sockets_each(pid_t pid, inet_socket_fn found, void *arg);
/* The same of UDP. */
bool udp_sockets_each(pid_t pid, inet_socket_fn found, void *arg);
/* Calls `found` for each open socket of a process. */
void sockets_each(pid_t pid, void (*found)(const struct file_key *key, void *arg), void *arg);

/* Names a socket that is known to be a Unix socket, in the network namespace of a process. False:
 * it is not there, or a forged line hides which it is. */
bool descriptor_of_unix(struct descriptor *found, pid_t pid, uint64_t ino);

/* Names a file without its process: "pipe:[4711]" or "socket:[4712]", whose device numbers are the
 * same everywhere; otherwise "inode 4711 of /data". False: the device is unknown. */
bool descriptor_of_inode(struct descriptor *found, const struct file_key *key);

/* Writes a name such as "/dev/vda1". False: there is no such block device. */
bool block_device_name(char *name, size_t size, uint32_t dev);

#endif

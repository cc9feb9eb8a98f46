// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/object_names_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/record.h"
#include "target/process/cgroup.h"
#include "target/process/epoll_files.h"
#include "target/process/process.h"
#include "target/process/tcp_peer.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/keymap.h"
#include "util/map.h"
#include "util/text.h"
#include "util/vec.h"

#define ADDRESS_TEXT (INET6_ADDRSTRLEN + 16)
#define OBJECTS_MAX (1u << 20)
#define AGAIN_NS 100000000ull /* minimum interval of lookups for names that may change */
/* Lookups may take so much time at once, and this share of the total time. */
#define BUDGET_NS 200000000ull
#define BUDGET_PART 20
/* Limits of the connections of which the other end is searched, and of the time for one search. */
#define CONNECTIONS_MAX (1u << 16)
#define PEERS_NS 200000000ull
/* Limit of the time for files that were closed before they were looked up. */
#define CLOSED_NS 200000000ull

/* Kinds of objects whose names change with time or may improve. */
enum object_kind {
	OBJECT_FIXED,
	/* Many objects share an inode, so the key has process and descriptor. */
	OBJECT_BY_DESCRIPTOR,
	OBJECT_WEAK, /* the process was gone: only the inode is known */
	/* A list of descriptors with the holders of pipes, searched at the end of the capture. */
	OBJECT_PIPES,
};

struct object_row {
	struct file_key key;
	/* For objects known by their descriptor only, else 0; see also resent_row() and
	 * object_names_cgroup(). */
	uint32_t pid, fd;
	uint32_t number;
	uint64_t name_hash;
	uint64_t looked_ts;
	enum object_kind kind;
	bool nameless; /* an object has only the inode of a file that has a path */
	bool opposed;  /* the name of a Unix socket has who holds the other end */
};

struct object_names {
	struct store_writer *writer;
	uint32_t count;      /* number of objects written */
	uint32_t highest;    /* number that one of them has */
	struct keymap index; /* inode, device, descriptor and process → index in `rows` */
	VEC(struct object_row) rows;
	/* "tcp A <-> B" of sockets whose ends are known, and "tcp B" where a server may listen that
	 * has not answered */
	struct keymap connections;
	struct map watched; /* inodes of sockets in epolls */
	struct map halted;  /* stopped processes whose connections are known */
	size_t searched;    /* number of both when they were searched last */
	uint64_t start_ts, spent_ns;
	int64_t start_s;         /* start_ts in the time of the host's clock */
	struct descriptor found; /* too large for the stack */
};

int object_names_open(struct object_names **names, struct store_writer *writer, struct error *err)
{
	*names = calloc(1, sizeof(**names));
	if (!*names)
		return error_set(err, ENOMEM, "out of memory");
	(*names)->writer = writer;
	(*names)->start_ts = clock_monotonic_ns();
	(*names)->start_s = time(NULL);
	return 0;
}

void object_names_close(struct object_names *names)
{
	if (!names)
		return;
	keymap_free(&names->index);
	keymap_free(&names->connections);
	map_free(&names->watched);
	map_free(&names->halted);
	vec_free(&names->rows);
	free(names);
}

/* Returns the row of a key. A new row has number 0 and looked_ts 0. NULL: there is no room. */
static struct object_row *row_get(struct object_names *names, const struct file_key *key,
				  uint32_t pid, uint32_t fd)
{
	const uint64_t words[] = {key->ino, key->dev, pid, fd};
	struct object_row row = {.key = *key, .pid = pid, .fd = fd};
	uint32_t index = keymap_get(&names->index, words, sizeof(words));

	if (index != MAP_NONE)
		return &names->rows.data[index];
	if (names->rows.len >= OBJECTS_MAX || !vec_push(&names->rows, row))
		return NULL;
	if (!keymap_set(&names->index, words, sizeof(words), (uint32_t)names->rows.len - 1)) {
		names->rows.len--;
		return NULL;
	}
	return &names->rows.data[names->rows.len - 1];
}

/* Adds where a server may listen: at "127.0.0.1:80" itself, or at this port of all addresses. */
static void server_add(struct object_names *names, const char *remote)
{
	static const char *const addresses[] = {NULL, "0.0.0.0", "[::]"};
	int len = (int)strcspn(remote, DESCRIPTOR_AFTER);
	const char *port = memrchr(remote, ':', (size_t)len);
	char text[256];

	for (size_t i = 0; port && i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		int port_len = (int)(remote + len - port);
		int text_len = addresses[i] ? snprintf(text, sizeof(text), "tcp %s%.*s",
						       addresses[i], port_len, port)
					    : snprintf(text, sizeof(text), "tcp %.*s", len, remote);

		/* "0.0.0.0" is of IPv4 only. */
		if ((i != 1 || *remote != '[') && text_len < (int)sizeof(text))
			keymap_set(&names->connections, text, (size_t)text_len, 1);
	}
}

static void connection_add(struct object_names *names, const char *detail)
{
	const char *between = strstr(detail, DESCRIPTOR_BETWEEN);
	size_t len = strcspn(detail, DESCRIPTOR_AFTER);

	if (!text_begins(detail, "tcp ") || !between || between > detail + len ||
	    names->connections.len >= CONNECTIONS_MAX)
		return;
	keymap_set(&names->connections, detail, len, 1);
	if (descriptor_is_connecting(detail))
		server_add(names, between + strlen(DESCRIPTOR_BETWEEN));
}

/* Adds the connections of a list of descriptors. */
static void polled_add(struct object_names *names, const char *list)
{
	for (; *list; list += strspn(list, ", ")) {
		connection_add(names, list);
		list += strcspn(list, ",");
	}
}

_Static_assert(sizeof(((struct descriptor *)NULL)->name) == STORE_OBJECT_NAME_MAX + 1 &&
		       sizeof(((struct descriptor *)NULL)->detail) == STORE_OBJECT_DETAIL_MAX + 1,
	       "a reader takes what is written");

/* Writes an object, if there is room; `number` stays otherwise. */
static int object_write(struct object_names *names, const struct store_object *object,
			uint32_t *number, struct error *err)
{
	uint32_t next = store_writer_next(names->writer, STORE_OBJECTS);
	int result;

	if (names->count >= OBJECTS_MAX || !store_writer_has_room(names->writer))
		return 0;
	result = store_writer_add_object(names->writer, object, err);
	if (result)
		return result;
	*number = next;
	names->count++;
	names->highest = next > names->highest ? next : names->highest;
	return 0;
}

static int row_write(struct object_names *names, struct object_row *row, uint32_t pid,
		     struct error *err)
{
	/* A changed detail makes a different object, even with the same name. */
	const struct hash_secret secret = hash_secret();
	uint64_t name_hash =
		hash_keyed(secret.begin, names->found.name, strlen(names->found.name), &secret);
	uint64_t hash =
		hash_keyed(name_hash, names->found.detail, strlen(names->found.detail), &secret);
	struct store_object object = {.ino = row->key.ino,
				      .dev = row->key.dev,
				      .pid = pid,
				      .name = names->found.name,
				      .detail = names->found.detail};
	uint32_t number = 0;
	int result;

	if (row->number && row->name_hash == hash)
		return 0;
	result = object_write(names, &object, &number, err);
	if (result || !number)
		return result;
	connection_add(names, names->found.detail);
	row->name_hash = hash;
	row->number = number;
	return 0;
}

/* Writes the name of a file for the waits of which only the inode was known. An inode may be used
 * again for another file, but not that of a file that is older than the capture. */
static int earlier_write(struct object_names *names, struct object_row *row, struct error *err)
{
	const struct descriptor *found = &names->found;
	struct store_object object = {.ino = row->key.ino,
				      .dev = row->key.dev,
				      .name = found->name,
				      .detail = DESCRIPTOR_EARLIER};
	uint32_t number;

	if (!row->nameless || found->name[0] != '/' || !found->born_s ||
	    found->born_s >= names->start_s)
		return 0;
	row->nameless = false;
	return object_write(names, &object, &number, err);
}

struct object_sweep {
	struct object_names *names;
	uint32_t *row_of; /* by number: index of its row + 1; 0: none has it any more */
};

/* Records refer to devices and cgroups by themselves, and not by a number. */
static bool number_drop(uint32_t number, void *arg)
{
	struct object_sweep *sweep = arg;
	uint32_t index = sweep->row_of[number];
	struct object_row *row = index ? &sweep->names->rows.data[index - 1] : NULL;

	if (row && (!row->key.ino || !row->key.dev))
		return false;
	if (row)
		row->number = 0;
	sweep->names->count--;
	return true;
}

static void row_remove(struct object_names *names, size_t index)
{
	const struct object_row *row = &names->rows.data[index];
	const uint64_t words[] = {row->key.ino, row->key.dev, row->pid, row->fd};
	const struct object_row *last = &names->rows.data[names->rows.len - 1];
	const uint64_t moved[] = {last->key.ino, last->key.dev, last->pid, last->fd};

	keymap_remove(&names->index, words, sizeof(words));
	if (row != last)
		keymap_set(&names->index, moved, sizeof(moved), (uint32_t)index);
	names->rows.data[index] = *last;
	names->rows.len--;
}

void object_names_sweep(struct object_names *names)
{
	struct object_sweep sweep = {names, NULL};

	if (!store_writer_should_sweep(names->writer, STORE_OBJECTS))
		return;
	sweep.row_of = calloc((size_t)names->highest + 1, sizeof(*sweep.row_of));
	if (!sweep.row_of)
		return;
	for (size_t i = 0; i < names->rows.len; i++)
		sweep.row_of[names->rows.data[i].number] = (uint32_t)i + 1;
	store_writer_sweep(names->writer, STORE_OBJECTS, number_drop, &sweep);
	free(sweep.row_of);
	/* What has no name yet is looked up again if it comes again. */
	for (size_t i = names->rows.len; i > 0; i--)
		if (!names->rows.data[i - 1].number)
			row_remove(names, i - 1);
}

static bool is_by_descriptor(const char *name)
{
	return text_begins(name, "anon_inode:");
}

static bool too_dear(const struct object_names *names, uint64_t now)
{
	return names->spent_ns >= BUDGET_NS + (now - names->start_ts) / BUDGET_PART;
}

/* Looks up a file and charges the time to the budget. */
static int look_up(struct object_names *names, pid_t pid, int fd, const struct file_key *key)
{
	uint64_t begin = clock_monotonic_ns();
	int result = -EAGAIN;

	if (!too_dear(names, begin))
		result = pid ? descriptor_find(&names->found, pid, fd, key) : -ESRCH;
	names->spent_ns += clock_monotonic_ns() - begin;
	return result;
}

/* Writes a name that is found once: later lookups give the same. */
static int row_fix(struct object_names *names, struct object_row *row, uint32_t pid,
		   struct error *err)
{
	row->kind = OBJECT_FIXED;
	row->looked_ts = clock_monotonic_ns();
	return row_write(names, row, pid, err);
}

/* Kinds of anonymous inodes that threads wait for, by their names in the kernel's sources. */
static const char *anonymous_name(const char *kind)
{
	static const char *const names[] = {
		"[eventpoll]", "[eventfd]",     "[timerfd]",    "[signalfd]", "[io_uring]",
		"[fanotify]",  "[userfaultfd]", "[perf_event]", "[pidfd]",    "inotify"};

	for (size_t i = 0; *kind && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(kind, names[i], 8))
			return names[i];
	return NULL;
}

/* Notes the sockets among "socket:[4711], pipe:[4712]". */
static void watched_note(struct object_names *names, const char *list)
{
	const char *name = DESCRIPTOR_SOCKET "[";

	while ((list = strstr(list, name)) && names->watched.len < CONNECTIONS_MAX) {
		list += strlen(name);
		map_set(&names->watched, strtoull(list, NULL, 10), 1);
	}
}

/* An anonymous file has a name even if its process is gone. */
static int64_t anonymous_file(struct object_names *names, pid_t pid, int fd,
			      const struct file_key *key, const char *name, struct error *err)
{
	struct object_row *row = row_get(names, key, (uint32_t)pid, (uint32_t)fd);
	uint64_t now = clock_monotonic_ns();
	int result;

	if (!row)
		return 0;
	snprintf(names->found.name, sizeof(names->found.name), "anon_inode:%s", name);
	names->found.detail[0] = '\0';
	if (!strcmp(name, "[eventpoll]")) {
		if (row->number && (now - row->looked_ts < AGAIN_NS || too_dear(names, now)))
			return row->number;
		if (!too_dear(names, now))
			epoll_watched(names->found.detail, sizeof(names->found.detail), pid, fd);
		names->spent_ns += clock_monotonic_ns() - now;
		row->looked_ts = now;
		if (row->number && !names->found.detail[0]) /* the process is gone */
			return row->number;
		watched_note(names, names->found.detail);
	}
	result = row_write(names, row, (uint32_t)pid, err);
	return result ? result : (int64_t)row->number;
}

/* `other`: a process that has the file open as well; 0: none is known. */
static int64_t file_number(struct object_names *names, pid_t pid, int fd, pid_t other,
			   const struct file_key *key, struct error *err)
{
	struct object_row *row = row_get(names, key, 0, 0);
	uint64_t now = clock_monotonic_ns();
	int result;

	if (row && row->kind == OBJECT_BY_DESCRIPTOR)
		row = row_get(names, key, (uint32_t)pid, (uint32_t)fd);
	if (!row)
		return 0;
	if (row->looked_ts && (row->kind == OBJECT_FIXED || now - row->looked_ts < AGAIN_NS) &&
	    !(row->pid && now - row->looked_ts >= AGAIN_NS))
		return row->number;
	result = look_up(names, pid, fd, key);
	if (result && result != -EAGAIN && other)
		result = look_up(names, other, -1, key);
	if (result == -EAGAIN)
		return row->number;
	if (!result && !row->pid && is_by_descriptor(names->found.name)) {
		row->kind = OBJECT_BY_DESCRIPTOR;
		row = row_get(names, key, (uint32_t)pid, (uint32_t)fd);
		if (!row)
			return 0;
	}
	row->looked_ts = now;
	if (result) {
		if (row->pid || row->number)
			return row->number;
		row->kind = OBJECT_WEAK;
		if (!descriptor_of_inode(&names->found, key))
			return 0;
		row->nameless = text_begins(names->found.name, DESCRIPTOR_INODE);
	} else {
		row->kind = OBJECT_FIXED;
	}
	result = row_write(names, row, (uint32_t)pid, err);
	if (!result && row->kind == OBJECT_FIXED)
		result = earlier_write(names, row, err);
	return result ? result : (int64_t)row->number;
}

int64_t object_names_file(struct object_names *names, pid_t pid, int fd, const struct file_key *key,
			  const char *kind, struct error *err)
{
	const char *anonymous = anonymous_name(kind);

	return anonymous ? anonymous_file(names, pid, fd, key, anonymous, err)
			 : file_number(names, pid, fd, 0, key, err);
}

int64_t object_names_locked(struct object_names *names, pid_t pid, int fd, pid_t holder,
			    const struct file_key *key, struct error *err)
{
	return file_number(names, pid, fd, holder, key, err);
}

/* Prints "127.0.0.1:80" or "[::1]:80". */
static void address_put(char text[ADDRESS_TEXT], const uint8_t address[16], unsigned version,
			uint16_t port)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	char ip[INET6_ADDRSTRLEN];

	if (version == 6 && !memcmp(address, mapped, sizeof(mapped))) {
		address += sizeof(mapped); /* an IPv4 address in an IPv6 socket */
		version = 4;
	}
	inet_ntop(version == 4 ? AF_INET : AF_INET6, address, ip, sizeof(ip));
	snprintf(text, ADDRESS_TEXT, version == 4 ? "%s:%u" : "[%s]:%u", ip, port);
}

/* Waits during which a socket has sent something again differ in their text, so each of them has a
 * row of its own beside that of the socket. */
static struct object_row *resent_row(struct object_names *names, const struct file_key *key,
				     uint16_t resent)
{
	return row_get(names, key, 0, resent);
}

uint32_t object_names_resent(struct object_names *names, const struct file_key *key,
			     uint16_t resent)
{
	const struct object_row *row = resent_row(names, key, resent);

	return row ? row->number : 0;
}

int64_t object_names_among(struct object_names *names, pid_t pid, int fd,
			   const struct file_key *key, struct error *err)
{
	struct object_row *row = resent_row(names, key, WAFFLE_RESENT_AMONG);
	char *detail = names->found.detail;
	size_t len;
	int result;

	if (!row || row->number)
		return row ? row->number : 0;
	if (look_up(names, pid, fd, key) || !descriptor_is_connecting(detail))
		return 0;
	len = strlen(detail);
	snprintf(detail + len, sizeof(names->found.detail) - len, DESCRIPTOR_AMONG);
	result = row_fix(names, row, (uint32_t)pid, err);
	return result ? result : (int64_t)row->number;
}

/* Prints ", SYN sent again 2 times", ", SYN not answered", or nothing. */
static void resent_put(char *text, size_t size, uint16_t resent)
{
	const char *what = resent & WAFFLE_RESENT_SYN ? "SYN" : "data";
	const char *among = resent & WAFFLE_RESENT_AMONG ? DESCRIPTOR_AMONG : "";
	unsigned count = resent & ~(WAFFLE_RESENT_SYN | WAFFLE_RESENT_AMONG);

	text[0] = '\0';
	if (resent & WAFFLE_RESENT_SYN && !count)
		snprintf(text, size, DESCRIPTOR_UNANSWERED "%s", among);
	else if (count == 1)
		snprintf(text, size, DESCRIPTOR_AFTER " %s sent again once%s", what, among);
	else if (count)
		snprintf(text, size, DESCRIPTOR_AFTER " %s sent again %u times%s%s", what, count,
			 count >= WAFFLE_RESENT_MAX ? " or more" : "", among);
}

int64_t object_names_endpoints(struct object_names *names,
			       const struct waffle_rec_endpoints *endpoints, struct error *err)
{
	const struct file_key key = {.ino = endpoints->ino, .dev = endpoints->dev};
	const char *kind = endpoints->protocol == IPPROTO_TCP   ? "tcp"
			   : endpoints->protocol == IPPROTO_UDP ? "udp"
								: NULL;
	struct object_row *row = kind ? resent_row(names, &key, endpoints->resent) : NULL;
	char local[ADDRESS_TEXT], remote[ADDRESS_TEXT], resent[80];
	int result;

	if (!row)
		return 0;
	address_put(local, endpoints->local, endpoints->version, endpoints->local_port);
	address_put(remote, endpoints->remote, endpoints->version, endpoints->remote_port);
	resent_put(resent, sizeof(resent), endpoints->resent);
	snprintf(names->found.name, sizeof(names->found.name), "socket:[%" PRIu64 "]", key.ino);
	snprintf(names->found.detail, sizeof(names->found.detail), "%s %s%s%s%s", kind, local,
		 endpoints->remote_port ? DESCRIPTOR_BETWEEN : "",
		 endpoints->remote_port ? remote : "", resent);
	result = row_fix(names, row, endpoints->tgid, err);
	return result ? result : (int64_t)row->number;
}

/* The row of a list of descriptors; NULL: there is no room. */
static struct object_row *polled_row(struct object_names *names, pid_t pid, const int *fds,
				     uint32_t count)
{
	struct file_key key = {.ino = count, .dev = WAFFLE_WAIT_POLLED};

	for (uint32_t i = 0; i < count && i < WAFFLE_POLLED_MAX; i++)
		key.ino = hash_number(key.ino ^ (uint32_t)fds[i]);
	return row_get(names, &key, (uint32_t)pid, (uint32_t)fds[0]);
}

/* Names the connection in a list of descriptors, and all else in it that its descriptor does not
 * identify, as objects of their own: the records of a wait for several have none. */
static int polled_name_each(struct object_names *names, pid_t pid, const int *fds, uint32_t count,
			    struct error *err)
{
	int64_t number = 0;

	for (uint32_t i = 0; i < count && number >= 0; i++) {
		struct file_key key;
		char kind[64];

		if (fds[i] >= 0 && descriptor_key(&key, kind, sizeof(kind), pid, fds[i]) && !*kind)
			number = file_number(names, pid, fds[i], 0, &key, err);
	}
	return number < 0 ? (int)number : 0;
}

static int64_t polled_write(struct object_names *names, struct object_row *row, pid_t pid,
			    const int *fds, uint32_t count, const char *detail, struct error *err)
{
	uint32_t known = count < WAFFLE_POLLED_MAX ? count : WAFFLE_POLLED_MAX;
	uint64_t now = clock_monotonic_ns();
	bool connection;
	int64_t number;
	int result, len;

	if (count > known)
		len = snprintf(names->found.name, sizeof(names->found.name), DESCRIPTOR_MANY);
	else
		len = snprintf(names->found.name, sizeof(names->found.name), "%u " DESCRIPTOR_LIST,
			       count);
	result = descriptors_list(names->found.name + len, sizeof(names->found.name) - (size_t)len,
				  pid, fds, known);
	snprintf(names->found.detail, sizeof(names->found.detail), "%s", detail);
	row->looked_ts = now;
	names->spent_ns += clock_monotonic_ns() - now;
	if (result) /* the process is gone */
		return row->number;
	polled_add(names, names->found.name + len);
	if (*detail)
		row->kind = OBJECT_PIPES;
	connection = strstr(names->found.name, DESCRIPTOR_BETWEEN);
	number = row_write(names, row, (uint32_t)pid, err) ?: (int64_t)row->number;
	/* Naming them may move the row. */
	result = number > 0 && connection ? polled_name_each(names, pid, fds, known, err) : 0;
	return result ? result : number;
}

int64_t object_names_polled(struct object_names *names, pid_t pid, const int *fds, uint32_t count,
			    struct error *err)
{
	struct object_row *row = polled_row(names, pid, fds, count);
	uint64_t now = clock_monotonic_ns();

	if (!row)
		return 0;
	if (row->kind == OBJECT_PIPES || (row->looked_ts && now - row->looked_ts < AGAIN_NS) ||
	    too_dear(names, now))
		return row->number;
	return polled_write(names, row, pid, fds, count, "", err);
}

int object_names_polled_pipes(struct object_names *names, pid_t pid, const int *fds, uint32_t count,
			      const char *text, struct error *err)
{
	struct object_row *row = polled_row(names, pid, fds, count);
	int64_t number;

	if (!row || row->kind == OBJECT_PIPES || too_dear(names, clock_monotonic_ns()))
		return 0;
	number = polled_write(names, row, pid, fds, count, text, err);
	return number < 0 ? (int)number : 0;
}

static int64_t named_once(struct object_names *names, struct object_row *row, bool found,
			  struct error *err)
{
	int result = found ? row_write(names, row, 0, err) : 0;

	row->looked_ts = clock_monotonic_ns();
	return result ? result : (int64_t)row->number;
}

int64_t object_names_device(struct object_names *names, uint32_t dev, struct error *err)
{
	struct descriptor *found = &names->found;
	struct object_row *row = row_get(names, &(struct file_key){.dev = dev}, 0, 0);

	if (!row || row->looked_ts)
		return row ? row->number : 0;
	strcpy(found->detail, "block device");
	return named_once(names, row, block_device_name(found->name, sizeof(found->name), dev),
			  err);
}

int64_t object_names_cgroup(struct object_names *names, pid_t tid, uint64_t ino,
			    const char *controller, struct error *err)
{
	struct descriptor *found = &names->found;
	struct object_row *row = row_get(names, &(struct file_key){.ino = ino}, 0,
					 (uint32_t)hash_text(HASH_BEGIN, controller));

	if (!row || row->looked_ts)
		return row ? row->number : 0;
	snprintf(found->detail, sizeof(found->detail), DESCRIPTOR_CGROUP " %s", controller);
	return named_once(names, row,
			  cgroup_path(found->name, sizeof(found->name), tid, ino, controller), err);
}

/* Adds to what was found who holds the other end. */
static int opposite_write(struct object_names *names, struct object_row *row, pid_t pid,
			  const char *text, struct error *err)
{
	char *detail = names->found.detail;
	size_t len = strlen(detail);

	snprintf(detail + len, sizeof(names->found.detail) - len, "%s%s",
		 len ? DESCRIPTOR_AFTER " " : "", text);
	return row_fix(names, row, (uint32_t)pid, err);
}

int object_names_pipe(struct object_names *names, pid_t pid, pid_t tid, int fd,
		      const struct file_key *key, const char *text, struct error *err)
{
	struct object_row *row = row_get(names, key, 0, 0);

	if (!row || descriptor_find(&names->found, tid, fd, key))
		return 0;
	return opposite_write(names, row, pid, text, err);
}

int object_names_unix(struct object_names *names, pid_t pid, pid_t tid, const struct file_key *key,
		      const char *text, struct error *err)
{
	struct object_row *row = row_get(names, key, 0, 0);

	if (!row || row->opposed || !descriptor_of_unix(&names->found, tid, key->ino))
		return 0;
	row->opposed = true;
	return opposite_write(names, row, pid, text, err);
}

int object_names_fifo(struct object_names *names, pid_t pid, const struct file_key *key,
		      const char *path, const char *lacks, struct error *err)
{
	struct object_row *row = row_get(names, key, 0, 0);

	if (!row || row->number)
		return 0;
	snprintf(names->found.name, sizeof(names->found.name), "%s", path);
	snprintf(names->found.detail, sizeof(names->found.detail),
		 DESCRIPTOR_FIFO DESCRIPTOR_AFTER " %s", lacks);
	return row_fix(names, row, (uint32_t)pid, err);
}

/* ---- files that were closed too early ---- */

int object_names_closed(struct object_names *names, const pid_t *pids, size_t count,
			struct error *err)
{
	uint64_t begin_ns = clock_monotonic_ns(), until_ns = begin_ns + CLOSED_NS;
	int result = 0;

	for (size_t i = 0; i < names->rows.len && !result; i++) {
		struct object_row *row = &names->rows.data[i];

		for (size_t k = 0;
		     k < count && !result && row->nameless && clock_monotonic_ns() < until_ns; k++)
			if (!descriptor_find(&names->found, pids[k], -1, &row->key))
				result = earlier_write(names, row, err);
	}
	names->spent_ns += clock_monotonic_ns() - begin_ns;
	return result;
}

/* ---- other ends of connections ---- */

/* The sockets at the other ends of known connections, on this machine, those that listen where a
 * known socket is being connected to, and those that epolls watch. */
struct peers {
	struct object_names *names;
	struct map at; /* inode → index in `details` */
	VEC(struct { char text[256]; }) details;
	pid_t pid; /* whose descriptors are searched */
	uint64_t until_ns;
	struct error *err;
	int result;
};

/* Whether it is the other end of a connection of which one end is known. */
static bool is_other_end(const struct keymap *known, const char *detail)
{
	char turned[256];

	return tcp_connection_turn(turned, sizeof(turned), detail) &&
	       keymap_get(known, turned, strlen(turned)) != MAP_NONE &&
	       keymap_get(known, detail, strlen(detail)) == MAP_NONE;
}

/* Whether the socket is wanted that has this detail. */
static bool is_wanted(const struct object_names *names, uint64_t ino, const char *detail)
{
	return is_other_end(&names->connections, detail) ||
	       map_get(&names->watched, ino) != MAP_NONE ||
	       (!strstr(detail, DESCRIPTOR_BETWEEN) &&
		keymap_get(&names->connections, detail, strlen(detail)) != MAP_NONE);
}

static bool peer_want(const struct inet_socket *socket, void *arg)
{
	struct peers *peers = arg;

	if (peers->details.len >= CONNECTIONS_MAX || clock_monotonic_ns() >= peers->until_ns)
		return false;
	if (!is_wanted(peers->names, socket->ino, socket->detail) ||
	    !vec_reserve(&peers->details, 1))
		return true;
	snprintf(peers->details.data[peers->details.len].text, sizeof(peers->details.data->text),
		 "%s", socket->detail);
	if (map_set(&peers->at, socket->ino, (uint32_t)peers->details.len))
		peers->details.len++;
	return true;
}

static void peer_found(const struct file_key *key, void *arg)
{
	struct peers *peers = arg;
	struct descriptor *found = &peers->names->found;
	uint32_t at = map_get(&peers->at, key->ino);
	struct object_row *row;

	if (at == MAP_NONE || peers->result)
		return;
	row = row_get(peers->names, key, 0, 0);
	if (!row || row->number)
		return;
	snprintf(found->name, sizeof(found->name), "socket:[%" PRIu64 "]", key->ino);
	snprintf(found->detail, sizeof(found->detail), "%s", peers->details.data[at].text);
	peers->result = row_fix(peers->names, row, (uint32_t)peers->pid, peers->err);
}

/* Calls `found` for the sockets of TCP in the network namespaces of processes, each of which is
 * read once. Whether all have passed. */
static bool networks_each(const pid_t *pids, size_t count, uint64_t until_ns, inet_socket_fn found,
			  void *arg)
{
	struct map networks = {0};
	bool all = true;

	for (size_t i = 0; i < count && clock_monotonic_ns() < until_ns; i++) {
		uint64_t network = process_network(pids[i]); /* 0: it has ended */

		if (!network || map_get(&networks, network) != MAP_NONE)
			continue;
		(void)map_set(&networks, network, 1);
		all &= tcp_sockets_each(pids[i], found, arg);
	}
	map_free(&networks);
	return all && clock_monotonic_ns() < until_ns;
}

/* The connections of processes that are stopped. */
struct halted_sockets {
	struct object_names *names;
	struct map at; /* inode → a process that has it */
	uint32_t dev;  /* that they have all */
	pid_t pid;     /* whose descriptors are listed */
	struct error *err;
	int result;
};

static void halted_found(const struct file_key *key, void *arg)
{
	struct halted_sockets *sockets = arg;

	sockets->dev = key->dev;
	(void)map_set(&sockets->at, key->ino, (uint32_t)sockets->pid);
}

static bool halted_name(const struct inet_socket *socket, void *arg)
{
	struct halted_sockets *sockets = arg;
	const struct file_key key = {.ino = socket->ino, .dev = sockets->dev};
	struct descriptor *found = &sockets->names->found;
	uint32_t pid = map_get(&sockets->at, socket->ino);
	struct object_row *row;

	if (sockets->result)
		return false;
	if (pid == MAP_NONE || !strstr(socket->detail, DESCRIPTOR_BETWEEN))
		return true;
	row = row_get(sockets->names, &key, 0, 0);
	if (!row || row->number)
		return row != NULL;
	snprintf(found->name, sizeof(found->name), "socket:[%" PRIu64 "]", socket->ino);
	snprintf(found->detail, sizeof(found->detail), "%s", socket->detail);
	sockets->result = row_fix(sockets->names, row, pid, sockets->err);
	return !sockets->result;
}

/* Adds the connections of processes that are stopped: they wait at none, and others may wait for
 * them. */
static int halted_add(struct object_names *names, const pid_t *pids, size_t count,
		      uint64_t until_ns, struct error *err)
{
	struct halted_sockets sockets = {.names = names, .err = err};
	uint64_t now = clock_monotonic_ns();
	/* The other half of the time is for the tables of the network. */
	uint64_t list_ns = now + (until_ns > now ? (until_ns - now) / 2 : 0);
	pid_list halted = {0};

	for (size_t i = 0; i < count && clock_monotonic_ns() < list_ns; i++) {
		if (map_get(&names->halted, (uint64_t)pids[i]) != MAP_NONE ||
		    !process_is_stopped(pids[i]) || !vec_push(&halted, pids[i]))
			continue;
		sockets.pid = pids[i];
		sockets_each(pids[i], halted_found, &sockets);
	}
	(void)networks_each(halted.data, halted.len, until_ns, halted_name, &sockets);
	for (size_t i = 0; i < halted.len && clock_monotonic_ns() < until_ns; i++)
		(void)map_set(&names->halted, (uint64_t)halted.data[i], 1);
	names->spent_ns += clock_monotonic_ns() - now;
	vec_free(&halted);
	map_free(&sockets.at);
	return sockets.result;
}

void object_names_peers_again(struct object_names *names)
{
	names->searched = 0;
}

int object_names_peers(struct object_names *names, const pid_t *pids, size_t count,
		       struct error *err)
{
	uint64_t begin_ns = clock_monotonic_ns(), until_ns = begin_ns + PEERS_NS;
	struct peers peers = {.names = names, .until_ns = until_ns, .err = err};
	size_t known;

	peers.result = halted_add(names, pids, count, until_ns, err);
	if (peers.result)
		return peers.result;
	/* The other end of a connection is searched once. */
	known = names->connections.len + names->watched.len;
	if (known == names->searched || too_dear(names, begin_ns))
		return 0;
	(void)networks_each(pids, count, until_ns, peer_want, &peers);
	for (size_t i = 0; i < count && peers.details.len && !peers.result; i++) {
		peers.pid = pids[i];
		if (clock_monotonic_ns() < until_ns)
			sockets_each(pids[i], peer_found, &peers);
	}
	map_free(&peers.at);
	vec_free(&peers.details);
	names->searched = known; /* the next call searches for the other ends of what was found */
	names->spent_ns += clock_monotonic_ns() - begin_ns;
	return peers.result;
}

/* ---- other ends as they are when the capture ends ---- */

#define FIRST_WALK 1u
#define SECOND_WALK 2u

struct far_ends {
	struct object_names *names;
	struct keymap remotes; /* addresses and ports to which sockets are connected */
	/* Known connections "tcp A <-> B" within the machine → the walks through the tables that
	 * show them established. A table is no snapshot, so we need two walks. */
	struct keymap near;
	uint32_t walk; /* FIRST_WALK or SECOND_WALK */
	uint64_t until_ns;
	struct error *err;
	int result;
};

/* Another row may have the socket, so its text is the key. No list of descriptors has process
 * 0. */
static struct object_row *far_end_row(struct object_names *names, const char *detail)
{
	const struct hash_secret secret = hash_secret();
	const struct file_key key = {
		.ino = hash_keyed(secret.begin, detail, strlen(detail), &secret),
		.dev = WAFFLE_WAIT_POLLED};

	return row_get(names, &key, 0, 0);
}

/* Adds the other end of a known connection with its state behind it: it has no process. */
static bool far_end_write(struct far_ends *far, const char *ends, const char *state)
{
	struct object_names *names = far->names;
	struct object_row *row;

	snprintf(names->found.name, sizeof(names->found.name), DESCRIPTOR_SOCKET);
	snprintf(names->found.detail, sizeof(names->found.detail), "%s%s", ends, state);
	row = far_end_row(names, names->found.detail);
	if (row && !row->number)
		far->result = row_fix(names, row, 0, far->err);
	return row && !far->result;
}

/* Whether a socket is the other end of a known connection, which is then `turned`. */
static bool is_far_end(const struct far_ends *far, const char *ends, char *turned, size_t size)
{
	return tcp_connection_turn(turned, size, ends) &&
	       keymap_get(&far->names->connections, turned, strlen(turned)) != MAP_NONE;
}

static bool unaccepted_found(const struct inet_socket *socket, void *arg)
{
	struct far_ends *far = arg;
	char turned[256], ends[256];

	if (far->result || clock_monotonic_ns() >= far->until_ns)
		return false;
	snprintf(ends, sizeof(ends), "%.*s", (int)strcspn(socket->detail, DESCRIPTOR_AFTER),
		 socket->detail);
	if (socket->ino || !is_far_end(far, ends, turned, sizeof(turned)))
		return true;
	server_add(far->names, strstr(turned, DESCRIPTOR_BETWEEN) + strlen(DESCRIPTOR_BETWEEN));
	return far_end_write(far, ends, DESCRIPTOR_UNACCEPTED);
}

int object_names_unaccepted(struct object_names *names, const pid_t *pids, size_t count,
			    struct error *err)
{
	uint64_t begin_ns = clock_monotonic_ns();
	struct far_ends far = {.names = names, .until_ns = begin_ns + PEERS_NS, .err = err};

	if (!names->connections.len || too_dear(names, begin_ns))
		return 0;
	(void)networks_each(pids, count, far.until_ns, unaccepted_found, &far);
	names->spent_ns += clock_monotonic_ns() - begin_ns;
	return far.result;
}

/* An address and port "127.0.0.1:80" that only the machine itself reaches. */
static bool is_within(const char *address)
{
	return text_begins(address, "127.") || text_begins(address, "[::1]:");
}

/* Notes to what a socket is connected, whatever its own address is: a server at any address of the
 * machine has clients at 127.0.0.1. */
static bool remote_note(struct far_ends *far, const char *detail)
{
	const char *between = strstr(detail, DESCRIPTOR_BETWEEN);
	const char *remote = between ? between + strlen(DESCRIPTOR_BETWEEN) : "";

	return !is_within(remote) ||
	       (far->remotes.len < CONNECTIONS_MAX &&
		keymap_set(&far->remotes, remote, strcspn(remote, DESCRIPTOR_AFTER), 1));
}

/* Notes that this walk shows a known connection within the machine. */
static bool near_note(struct far_ends *far, const struct inet_socket *socket)
{
	size_t len = strlen(socket->detail);
	uint32_t walks;

	if (!socket->ino || !socket->established || !is_within(socket->detail + strlen("tcp ")) ||
	    keymap_get(&far->names->connections, socket->detail, len) == MAP_NONE)
		return true;
	walks = keymap_get(&far->near, socket->detail, len);
	return keymap_set(&far->near, socket->detail, len,
			  far->walk | (walks == MAP_NONE ? 0 : walks));
}

static bool ends_note(const struct inet_socket *socket, void *arg)
{
	struct far_ends *far = arg;

	return !far->result && clock_monotonic_ns() < far->until_ns &&
	       remote_note(far, socket->detail) && near_note(far, socket);
}

/* The same, and adds the socket if it is a known connection's other end with something unread. */
static bool far_end_note(const struct inet_socket *socket, void *arg)
{
	struct far_ends *far = arg;
	char turned[256], state[64];

	if (!ends_note(socket, far))
		return false;
	if (!socket->established || !socket->unread ||
	    !is_far_end(far, socket->detail, turned, sizeof(turned)))
		return true;
	snprintf(state, sizeof(state), DESCRIPTOR_WITH "%" PRIu32 DESCRIPTOR_UNREAD,
		 socket->unread);
	return far_end_write(far, socket->detail, state);
}

/* Adds the other ends that both walks lack. A rule of NAT may lead the connection to another port
 * than its client knows, so any socket that is connected with the client's port may be the other
 * end. */
static void gone_write(struct far_ends *far)
{
	for (size_t i = 0; i < far->near.entries.len && !far->result; i++) {
		const struct keymap_entry *near = &far->near.entries.data[i];
		const char *local = near->key + strlen("tcp ");
		char turned[256];

		if (near->value == (FIRST_WALK | SECOND_WALK) &&
		    keymap_get(&far->remotes, local, strcspn(local, " ")) == MAP_NONE &&
		    tcp_connection_turn(turned, sizeof(turned), near->key))
			(void)far_end_write(far, turned, DESCRIPTOR_GONE);
	}
}

int object_names_far_ends(struct object_names *names, const pid_t *pids, size_t count,
			  struct error *err)
{
	uint64_t begin_ns = clock_monotonic_ns();
	struct far_ends far = {
		.names = names, .walk = FIRST_WALK, .until_ns = begin_ns + PEERS_NS, .err = err};
	bool all;

	if (!names->connections.len || too_dear(names, begin_ns))
		return 0;
	all = networks_each(pids, count, far.until_ns, far_end_note, &far);
	far.walk = SECOND_WALK;
	if (all && networks_each(pids, count, far.until_ns, ends_note, &far))
		gone_write(&far);
	keymap_free(&far.remotes);
	keymap_free(&far.near);
	names->spent_ns += clock_monotonic_ns() - begin_ns;
	return far.result;
}

// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/sites.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/record.h"
#include "target/elf/object_parse.h"
#include "usdt/frame/mode.h"
#include "usdt/name/names.h"
#include "usdt/ring/ticks.h"
#include "usdt/say/say.h"
#include "util/map.h"
#include "util/vec.h"

/* What tells a file from another one at the same path. All 0: it could not be asked for. */
struct identity {
	uint64_t device, inode, size, changed_ns;
};

/* A file with its sites. It is read once, however often it is mapped, and its sites have numbers as
 * long as the process records. */
struct sites_file {
	struct identity identity;
	struct object *object; /* NULL: the file has no sites, or can't be read */
	uint32_t *numbers;     /* of its sites */
};

/* A file at an address. */
struct sites_image {
	uintptr_t base;
	const ElfW(Phdr) * headers; /* with the base it identifies a mapping of a file */
	uint32_t file;
	uintptr_t *probes;     /* addresses of those of its sites; 0: none */
	uintptr_t *semaphores; /* addresses of those of wanted sites */
	size_t semaphore_count;
	/* Of the last call of sites_arm() that saw it. */
	uint64_t round;
	uint64_t seen_ns;
	unsigned long long subs; /* number of files that had been unloaded by then */
};

/* An image that has been gone for so long is forgotten. By then all its records have been
 * delivered. */
#define GONE_NS 2000000000ull

/* The site at an address. Records of those that were there before may still be in a ring. */
struct sites_probe {
	uint32_t number;
	uint32_t older; /* index of the one before `since`; MAP_NONE: none */
	uint64_t since; /* ticks */
	uint64_t since_ns;
};

/* The probes by their addresses. */
struct probe_table {
	struct map places; /* address → index in `all` of the latest one */
	VEC(struct sites_probe) all;
	VEC(uint32_t) unused; /* indices in `all` */
};

struct sites {
	struct sites_callbacks callbacks;
	uint32_t clock; /* enum ticks_kind, of `since` */
	bool listening; /* to names that are made at run time */
	/* Taken inside dl_iterate_phdr(), or for a moment by those who don't take the loader's lock
	 * meanwhile. So the order of the two is always the same. */
	pthread_mutex_t lock;
	bool off;
	uint64_t round;
	unsigned long long adds; /* number of files that had been loaded at the last walk */
	VEC(struct sites_file) files;
	VEC(struct sites_image) images;
	struct probe_table probes;
	uint64_t changes; /* of `probes`; read without the lock */
	/* Only the thread that calls sites_number() uses what follows: what it has looked up since
	 * the last change. */
	struct probe_table cache;
	uint64_t cache_changes;
};

struct sites *sites_new(const struct sites_callbacks *callbacks, uint32_t clock)
{
	struct sites *sites = calloc(1, sizeof(*sites));

	if (!sites)
		return NULL;
	sites->callbacks = *callbacks;
	sites->clock = clock;
	pthread_mutex_init(&sites->lock, NULL);
	return sites;
}

static void probes_free(struct probe_table *probes)
{
	map_free(&probes->places);
	vec_free(&probes->all);
	vec_free(&probes->unused);
}

static void image_free(struct sites_image *image)
{
	free(image->probes);
	free(image->semaphores);
}

void sites_free(struct sites *sites)
{
	if (!sites)
		return;
	for (size_t i = 0; i < sites->files.len; i++) {
		object_free(sites->files.data[i].object);
		free(sites->files.data[i].numbers);
	}
	for (size_t i = 0; i < sites->images.len; i++)
		image_free(&sites->images.data[i]);
	vec_free(&sites->files);
	vec_free(&sites->images);
	probes_free(&sites->probes);
	probes_free(&sites->cache);
	pthread_mutex_destroy(&sites->lock);
	free(sites);
}

/* ---- probes ---- */

/* Makes a probe the latest one at an address. False: out of memory. */
static bool probe_add(struct probe_table *table, uint64_t at, struct sites_probe probe)
{
	uint32_t index = (uint32_t)table->all.len;

	if (table->unused.len) {
		index = table->unused.data[--table->unused.len];
		table->all.data[index] = probe;
	} else if (!vec_push(&table->all, probe)) {
		return false;
	}
	if (map_set(&table->places, at, index))
		return true;
	(void)vec_push(&table->unused, index); /* or it is never used again */
	return false;
}

/* Drops a probe and all that are older. */
static void probe_drop(struct probe_table *table, uint32_t index)
{
	while (index != MAP_NONE) {
		uint32_t older = table->all.data[index].older;

		(void)vec_push(&table->unused, index);
		index = older;
	}
}

/* Drops what was at an address before its records have been delivered. */
static void probe_prune(struct probe_table *table, uint32_t index, uint64_t now)
{
	while (index != MAP_NONE) {
		struct sites_probe *probe = &table->all.data[index];

		if (now - probe->since_ns > GONE_NS) {
			probe_drop(table, probe->older);
			probe->older = MAP_NONE;
		}
		index = probe->older;
	}
}

/* With the lock. Says which site is at an address from now on. */
static bool probe_set(struct sites *sites, uint64_t at, uint32_t number)
{
	uint32_t index = map_get(&sites->probes.places, at);
	struct sites_probe probe = {.number = number, .older = index};

	if (index == MAP_NONE && number == WAFFLE_SITE_UNKNOWN)
		return true;
	if (index != MAP_NONE) {
		if (sites->probes.all.data[index].number == number)
			return true;
		probe.since = ticks_now(sites->clock);
		probe.since_ns = clock_monotonic_ns();
		probe_prune(&sites->probes, index, probe.since_ns);
	}
	__atomic_add_fetch(&sites->changes, 1, __ATOMIC_RELEASE);
	return probe_add(&sites->probes, at, probe);
}

/* With the lock. Forgets that a site was at an address, if no other one is there. */
static void probe_forget(struct sites *sites, uint64_t at, uint32_t number)
{
	uint32_t index = map_get(&sites->probes.places, at);

	if (index == MAP_NONE || sites->probes.all.data[index].number != number)
		return;
	__atomic_add_fetch(&sites->changes, 1, __ATOMIC_RELEASE);
	map_remove(&sites->probes.places, at);
	probe_drop(&sites->probes, index);
}

/* ---- files ---- */

/* Maps an offset in the file to its address. `flag` is what the segment has to allow: other
 * segments may map the same page. 0: nothing does. */
static uintptr_t address_of(const struct dl_phdr_info *info, uint64_t offset, unsigned flag)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *load = &info->dlpi_phdr[i];

		if (load->p_type == PT_LOAD && load->p_flags & flag && offset >= load->p_offset &&
		    offset - load->p_offset < load->p_filesz)
			return info->dlpi_addr + load->p_vaddr + (offset - load->p_offset);
	}
	return 0;
}

static struct identity identity_of(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return (struct identity){0};
	return (struct identity){
		.device = status.st_dev,
		.inode = status.st_ino,
		.size = (uint64_t)status.st_size,
		.changed_ns = (uint64_t)status.st_ctim.tv_sec * 1000000000ull +
			      (uint64_t)status.st_ctim.tv_nsec,
	};
}

static bool bytes_are_mapped(int fd, uint64_t offset, const void *mapped, size_t size)
{
	const unsigned char *at = mapped;
	unsigned char bytes[256];

	while (size) {
		size_t part = size < sizeof(bytes) ? size : sizeof(bytes);

		if (pread(fd, bytes, part, (off_t)offset) != (ssize_t)part ||
		    memcmp(bytes, at, part))
			return false;
		offset += part;
		at += part;
		size -= part;
	}
	return true;
}

/* Whether an open file is the one that is mapped: a package may have replaced it since, and then
 * its semaphores are elsewhere. The headers tell, and the notes, which have the build id. */
static bool file_is_mapped(int fd, const struct dl_phdr_info *info)
{
	ElfW(Ehdr) header;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    header.e_phnum != info->dlpi_phnum || header.e_phentsize != sizeof(ElfW(Phdr)) ||
	    !bytes_are_mapped(fd, header.e_phoff, info->dlpi_phdr,
			      info->dlpi_phnum * sizeof(ElfW(Phdr))))
		return false;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *note = &info->dlpi_phdr[i];
		uintptr_t first, last;

		if (note->p_type != PT_NOTE || !note->p_filesz)
			continue;
		first = address_of(info, note->p_offset, PF_R);
		last = address_of(info, note->p_offset + note->p_filesz - 1, PF_R);
		if (first && last == first + note->p_filesz - 1 &&
		    !bytes_are_mapped(fd, note->p_offset, (const void *)first, note->p_filesz))
			return false;
	}
	return true;
}

/* Reads the sites of a file, which `name` is the name of. */
static struct object *file_read(const char *path, const char *name, const struct dl_phdr_info *info,
				struct error *err)
{
	struct object *object = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		error_set(err, errno, "%s: can't be read: %s", name, strerror(errno));
		return NULL;
	}
	if (!file_is_mapped(fd, info))
		error_set(err, ESTALE, "%s: was replaced since the program began", name);
	else if (object_parse(&object, fd, name, err))
		object = NULL;
	close(fd);
	return object;
}

/*
 * The program's own file, to which the loader gives no name. The link in /proc leads to it also
 * where its path does not. Without /proc the name that execve() was called with has to do.
 */
static struct object *program_read(const struct dl_phdr_info *info, struct error *err)
{
	static const char link[] = "/proc/self/exe";
	const char *executed = (const char *)getauxval(AT_EXECFN) ?: "";
	char path[4096];
	ssize_t len = readlink(link, path, sizeof(path) - 1);

	path[len > 0 ? len : 0] = '\0';
	return len > 0 ? file_read(link, path, info, err)
		       : file_read(executed, executed, info, err);
}

static bool is_program(const struct dl_phdr_info *info)
{
	return !info->dlpi_name || !*info->dlpi_name;
}

/* Other files may be unreadable or no files at all (the vDSO), but the program's own matters. */
static struct object *object_of(const struct dl_phdr_info *info)
{
	struct error err = ERROR_INIT;
	struct object *object;

	if (!is_program(info))
		return strchr(info->dlpi_name, '/')
			       ? file_read(info->dlpi_name, info->dlpi_name, info, &err)
			       : NULL;
	object = program_read(info, &err);
	if (!object)
		say_line("%s; its sites are not recorded", err.message);
	return object;
}

/* The program's own file is the only one without an identity that has sites. */
static struct identity identity_get(const struct dl_phdr_info *info)
{
	return is_program(info) ? (struct identity){0} : identity_of(info->dlpi_name);
}

/* Asks for the number of each site. False: out of memory. */
static bool file_number(struct sites *sites, struct sites_file *file)
{
	size_t count = file->object ? file->object->sites.len : 0;

	if (!count)
		return true;
	file->numbers = calloc(count, sizeof(*file->numbers));
	if (!file->numbers)
		return false;
	for (size_t i = 0; i < count; i++)
		file->numbers[i] =
			sites->callbacks.found(&file->object->sites.data[i], sites->callbacks.arg);
	return true;
}

/* The index of a file, which is read if it is new. MAP_NONE: out of memory. */
static uint32_t file_get(struct sites *sites, const struct dl_phdr_info *info)
{
	struct sites_file file = {.identity = identity_get(info)};

	for (size_t i = 0; i < sites->files.len; i++)
		if (file.identity.inode &&
		    !memcmp(&file.identity, &sites->files.data[i].identity, sizeof(file.identity)))
			return (uint32_t)i;
	if (!vec_reserve(&sites->files, 1))
		return MAP_NONE;
	file.object = object_of(info);
	if (file.object && file.object->other_version)
		say_line("%s: was compiled with the headers of another version of libwaffle, and "
			 "is not recorded; compile it again",
			 file.object->path);
	if (!file_number(sites, &file)) {
		object_free(file.object);
		return MAP_NONE;
	}
	sites->files.data[sites->files.len++] = file;
	return (uint32_t)sites->files.len - 1;
}

/* ---- images ---- */

/* Remembers the probes of all sites, and the semaphores of those wanted. False: out of memory. */
static bool image_locate(struct sites *sites, struct sites_image *image,
			 const struct dl_phdr_info *info)
{
	const struct sites_file *file = &sites->files.data[image->file];
	const struct object *object = file->object;
	bool ok = true;

	if (!object || !object->sites.len)
		return true;
	image->probes = calloc(object->probes.len + 1, sizeof(*image->probes));
	image->semaphores = calloc(object->probes.len + 1, sizeof(*image->semaphores));
	ok = image->probes && image->semaphores;
	for (size_t i = 0; ok && i < object->probes.len; i++) {
		const struct object_probe *probe = &object->probes.data[i];
		uintptr_t at = address_of(info, probe->offset, PF_X), semaphore;

		if (probe->site == OBJECT_SPAN_END || !at)
			continue;
		/* Another file may have been at this address before. */
		ok = probe_set(sites, at, file->numbers[probe->site]);
		if (file->numbers[probe->site] == WAFFLE_SITE_UNKNOWN)
			continue;
		image->probes[i] = at;
		semaphore = address_of(info, probe->semaphore_offset, PF_W);
		if (ok && probe->semaphore_offset && semaphore)
			image->semaphores[image->semaphore_count++] = semaphore;
	}
	return ok;
}

/* Forgets an image that has been gone for long. */
static void image_forget(struct sites *sites, struct sites_image *image)
{
	const struct sites_file *file = &sites->files.data[image->file];

	for (size_t i = 0; image->probes && i < file->object->probes.len; i++)
		if (image->probes[i])
			probe_forget(sites, image->probes[i],
				     file->numbers[file->object->probes.data[i].site]);
	image_free(image);
}

static struct sites_image *image_find(struct sites *sites, const struct dl_phdr_info *info)
{
	for (size_t i = 0; i < sites->images.len; i++)
		if (sites->images.data[i].base == info->dlpi_addr &&
		    sites->images.data[i].headers == info->dlpi_phdr)
			return &sites->images.data[i];
	return NULL;
}

/* A place for a new image. NULL: out of memory. */
static struct sites_image *image_place(struct sites *sites, uint64_t now)
{
	for (size_t i = 0; i < sites->images.len; i++) {
		struct sites_image *image = &sites->images.data[i];

		if (image->round + 1 >= sites->round || now - image->seen_ns < GONE_NS)
			continue;
		image_forget(sites, image);
		return image;
	}
	return vec_push(&sites->images, (struct sites_image){0})
		       ? &sites->images.data[sites->images.len - 1]
		       : NULL;
}

/* Whether an image is still that of the same file: others are at its address after it was closed.
 */
static bool image_is_same(const struct sites *sites, const struct sites_image *image,
			  const struct dl_phdr_info *info)
{
	struct identity now;

	if (info->dlpi_subs == image->subs || is_program(info))
		return true;
	now = identity_get(info);
	return !memcmp(&now, &sites->files.data[image->file].identity, sizeof(now));
}

/* The image of a file, which is read if it is new. NULL: out of memory. */
static struct sites_image *image_get(struct sites *sites, const struct dl_phdr_info *info)
{
	struct sites_image *known = image_find(sites, info);
	uint64_t now = clock_monotonic_ns();
	uint32_t file;

	if (!known || !image_is_same(sites, known, info)) {
		file = file_get(sites, info);
		if (file == MAP_NONE)
			return NULL;
		if (known)
			known->headers = NULL; /* it is gone */
		known = image_place(sites, now);
		if (!known)
			return NULL;
		*known = (struct sites_image){
			.base = info->dlpi_addr, .headers = info->dlpi_phdr, .file = file};
		if (!image_locate(sites, known, info))
			known->semaphore_count = 0; /* its sites stay dormant */
	}
	known->round = sites->round;
	known->seen_ns = now;
	known->subs = info->dlpi_subs;
	return known;
}

static void semaphores_set(const struct sites_image *image, uint8_t value)
{
	/* The high byte: both machines are little endian. */
	for (size_t i = 0; i < image->semaphore_count; i++) {
		volatile uint8_t *high = (volatile uint8_t *)image->semaphores[i] + 1;

		if (*high != value)
			*high = value;
	}
}

/*
 * Held while the loader's files are walked. The loader has a lock of its own meanwhile, which the
 * child of a fork() would never get, since glibc does not free it there.
 *
 * A thread of the program may have the loader's lock: it is in a callback of dl_iterate_phdr(), and
 * forks or exits there. Whoever waits for a walk must not wait for that thread then.
 */
static struct {
	pthread_mutex_t lock;
	bool waits; /* for the loader's lock */
	bool lent;  /* to the fork() in progress */
} walk = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define NAP_NS 50000
#define NAPS_STUCK 2000

bool sites_wait_for_loader(void)
{
	return __atomic_load_n(&walk.waits, __ATOMIC_SEQ_CST);
}

/* A thread in a sandbox may wait by a futex, but not sleep. */
static void nap(void)
{
	static uint32_t never;

	syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){.tv_nsec = NAP_NS},
		NULL, 0);
}

static void walk_waits_set(bool waits)
{
	if (walk.waits != waits)
		__atomic_store_n(&walk.waits, waits, __ATOMIC_SEQ_CST);
}

bool sites_lock(pthread_mutex_t *lock)
{
	unsigned naps = 0;
	int code = errno;
	bool locked;

	while (!(locked = !pthread_mutex_trylock(lock)) && naps < NAPS_STUCK) {
		nap();
		naps = sites_wait_for_loader() ? naps + 1 : 0;
	}
	errno = code;
	return locked;
}

void sites_fork_before(void)
{
	walk.lent = sites_lock(&walk.lock);
}

void sites_fork_parent(void)
{
	if (walk.lent)
		pthread_mutex_unlock(&walk.lock);
}

void sites_fork_child(void)
{
	pthread_mutex_init(&walk.lock, NULL);
	walk.waits = false;
}

static void files_walk(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	pthread_mutex_lock(&walk.lock);
	walk_waits_set(true);
	dl_iterate_phdr(each, arg);
	walk_waits_set(false);
	pthread_mutex_unlock(&walk.lock);
}

struct arm_walk {
	struct sites *sites;
	bool only_new; /* nothing to do if no file was loaded since the last walk */
	bool begun;
};

static int walk_arm(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct arm_walk *arming = arg;
	struct sites *sites = arming->sites;
	struct sites_image *image;

	(void)size; /* all libcs since 2005 have dlpi_adds */
	walk_waits_set(false);
	if (!arming->begun && arming->only_new && sites->round && info->dlpi_adds == sites->adds)
		return 1;
	pthread_mutex_lock(&sites->lock);
	sites->adds = info->dlpi_adds;
	/* Like the rest of a walk this is inside the loader's lock, so walks do not mix. */
	sites->round += !arming->begun;
	arming->begun = true;
	image = sites->off ? NULL : image_get(sites, info);
	if (image)
		semaphores_set(image, mode_arms() ? SITES_ARMED_INSIDE : 0);
	pthread_mutex_unlock(&sites->lock);
	return 0;
}

/* A name is a site that is at no place of a file. */
static bool name_found(const struct name_site *name, void *arg)
{
	struct sites *sites = arg;
	uint32_t number = WAFFLE_SITE_UNKNOWN;
	bool ok;

	pthread_mutex_lock(&sites->lock);
	if (!sites->off)
		number = sites->callbacks.found(&name->site, sites->callbacks.arg);
	ok = number != WAFFLE_SITE_UNKNOWN && probe_set(sites, (uint64_t)(uintptr_t)name, number);
	pthread_mutex_unlock(&sites->lock);
	return ok;
}

void sites_arm_names(struct sites *sites)
{
	if (!__atomic_exchange_n(&sites->listening, true, __ATOMIC_ACQ_REL))
		names_listen(&(struct names_listener){name_found, sites});
}

void sites_arm(struct sites *sites)
{
	names_follow_mode();
	files_walk(walk_arm, &(struct arm_walk){.sites = sites});
}

void sites_arm_new(struct sites *sites)
{
	files_walk(walk_arm, &(struct arm_walk){.sites = sites, .only_new = true});
}

static int object_disarm(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct sites *sites = arg;
	struct sites_image *image;

	(void)size;
	walk_waits_set(false);
	pthread_mutex_lock(&sites->lock);
	sites->off = true;
	image = image_find(sites, info);
	if (image)
		semaphores_set(image, 0);
	pthread_mutex_unlock(&sites->lock);
	return 0;
}

void sites_disarm(struct sites *sites)
{
	if (__atomic_exchange_n(&sites->listening, false, __ATOMIC_ACQ_REL))
		names_unlisten();
	files_walk(object_disarm, sites);
}

/* Looks a probe up, and copies the latest one at its address into the cache. */
static uint32_t probe_look_up(struct sites *sites, uint64_t at, uint64_t ticks)
{
	struct sites_probe latest = {.number = WAFFLE_SITE_UNKNOWN, .older = MAP_NONE};
	uint32_t index, number;

	pthread_mutex_lock(&sites->lock);
	index = map_get(&sites->probes.places, at);
	if (index != MAP_NONE)
		latest = sites->probes.all.data[index];
	while (index != MAP_NONE && ticks < sites->probes.all.data[index].since)
		index = sites->probes.all.data[index].older;
	number = index == MAP_NONE ? WAFFLE_SITE_UNKNOWN : sites->probes.all.data[index].number;
	pthread_mutex_unlock(&sites->lock);
	if (map_get(&sites->cache.places, at) == MAP_NONE)
		(void)probe_add(&sites->cache, at, latest); /* or it is looked up again */
	return number;
}

uint32_t sites_number(struct sites *sites, uint64_t probe, uint64_t ticks)
{
	uint64_t changes = __atomic_load_n(&sites->changes, __ATOMIC_ACQUIRE);
	uint32_t index;

	if (changes != sites->cache_changes) {
		map_free(&sites->cache.places);
		sites->cache.all.len = 0;
		sites->cache_changes = changes;
	}
	index = map_get(&sites->cache.places, probe);
	if (index == MAP_NONE || ticks < sites->cache.all.data[index].since)
		return probe_look_up(sites, probe, ticks);
	return sites->cache.all.data[index].number;
}

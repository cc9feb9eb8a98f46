// SPDX-License-Identifier: Apache-2.0
#include "usdt/sites.h"
#include "usdt/mode.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "bpf/record.h"
#include "target/elf/object_parse.h"
#include "usdt/names.h"
#include "util/map.h"
#include "util/vec.h"

/* A file at an address. Its sites have numbers as long as the process records, even if it is
 * unmapped: records of it may still be in a ring. */
struct sites_image {
	uintptr_t base;
	const ElfW(Phdr) * headers; /* with the base it identifies a mapping of a file */
	struct object *object;      /* NULL: the file has no sites, or can't be read */
	uintptr_t *semaphores;      /* addresses of those of wanted sites */
	size_t semaphore_count;
	uint64_t round; /* of sites_arm() that saw it last */
};

struct sites {
	struct sites_callbacks callbacks;
	bool listening; /* to names that are made at run time */
	/* Taken inside dl_iterate_phdr(), or for a moment by those who don't take the loader's lock
	 * meanwhile. So the order of the two is always the same. */
	pthread_mutex_t lock;
	bool off;
	uint64_t round;
	unsigned long long adds; /* number of files that had been loaded at the last walk */
	VEC(struct sites_image) images;
	struct map numbers; /* address of a probe → number of its site */
};

struct sites *sites_new(const struct sites_callbacks *callbacks)
{
	struct sites *sites = calloc(1, sizeof(*sites));

	if (!sites)
		return NULL;
	sites->callbacks = *callbacks;
	pthread_mutex_init(&sites->lock, NULL);
	return sites;
}

void sites_free(struct sites *sites)
{
	if (!sites)
		return;
	for (size_t i = 0; i < sites->images.len; i++) {
		object_free(sites->images.data[i].object);
		free(sites->images.data[i].semaphores);
	}
	vec_free(&sites->images);
	map_free(&sites->numbers);
	pthread_mutex_destroy(&sites->lock);
	free(sites);
}

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

/* Reads the sites of a file, which `name` is the name of. */
static struct object *file_read(const char *path, const char *name, struct error *err)
{
	struct object *object = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		error_set(err, errno, "%s: can't be read: %s", name, strerror(errno));
		return NULL;
	}
	if (object_parse(&object, fd, name, err))
		object = NULL;
	close(fd);
	return object;
}

/*
 * The program's own file, to which the loader gives no name. The link in /proc leads to it also
 * where its path does not. Without /proc the name that execve() was called with has to do.
 */
static struct object *program_read(struct error *err)
{
	static const char link[] = "/proc/self/exe";
	const char *executed = (const char *)getauxval(AT_EXECFN) ?: "";
	char path[4096];
	ssize_t len = readlink(link, path, sizeof(path) - 1);

	path[len > 0 ? len : 0] = '\0';
	return len > 0 ? file_read(link, path, err) : file_read(executed, executed, err);
}

/* Other files may be unreadable or no files at all (the vDSO), but the program's own matters. */
static struct object *image_read(const struct dl_phdr_info *info)
{
	struct error err = ERROR_INIT;
	struct object *object;

	if (info->dlpi_name && *info->dlpi_name)
		return file_read(info->dlpi_name, info->dlpi_name, &err);
	object = program_read(&err);
	if (!object)
		fprintf(stderr, "waffle: %s; its sites are not recorded\n", err.message);
	return object;
}

/* Asks for the number of each site, and remembers the probes and semaphores of those wanted. */
static bool image_number(struct sites *sites, struct sites_image *image,
			 const struct dl_phdr_info *info)
{
	struct object *object = image->object;
	uint32_t *numbers = calloc(object->sites.len + 1, sizeof(*numbers));
	bool ok = numbers != NULL;

	image->semaphores = calloc(object->probes.len + 1, sizeof(*image->semaphores));
	ok = ok && image->semaphores;
	for (size_t i = 0; ok && i < object->sites.len; i++)
		numbers[i] = sites->callbacks.found(&object->sites.data[i], sites->callbacks.arg);
	for (size_t i = 0; ok && i < object->probes.len; i++) {
		const struct object_probe *probe = &object->probes.data[i];
		uintptr_t at = address_of(info, probe->offset, PF_X), semaphore;

		if (probe->site == OBJECT_SPAN_END || !at)
			continue;
		/* Another file may have been at this address before. */
		if (numbers[probe->site] == WAFFLE_SITE_UNKNOWN) {
			map_remove(&sites->numbers, at);
			continue;
		}
		ok = map_set(&sites->numbers, at, numbers[probe->site]);
		semaphore = address_of(info, probe->semaphore_offset, PF_W);
		if (ok && probe->semaphore_offset && semaphore)
			image->semaphores[image->semaphore_count++] = semaphore;
	}
	free(numbers);
	return ok;
}

static struct sites_image *image_find(struct sites *sites, const struct dl_phdr_info *info)
{
	struct sites_image *image = NULL;

	for (size_t i = 0; i < sites->images.len; i++)
		if (sites->images.data[i].base == info->dlpi_addr &&
		    sites->images.data[i].headers == info->dlpi_phdr)
			image = &sites->images.data[i]; /* the latest one */
	return image;
}

/* The image of a file, which is read if it is new. NULL: out of memory. */
static struct sites_image *image_get(struct sites *sites, const struct dl_phdr_info *info)
{
	struct sites_image *known = image_find(sites, info), image = {
								     .base = info->dlpi_addr,
								     .headers = info->dlpi_phdr,
							     };

	/* One that was not there in the last round is another file at its address. */
	if (known && known->round + 1 >= sites->round)
		return known;
	if (!vec_reserve(&sites->images, 1))
		return NULL;
	image.object = image_read(info);
	if (image.object && image.object->sites.len)
		image_number(sites, &image, info);
	sites->images.data[sites->images.len++] = image;
	return &sites->images.data[sites->images.len - 1];
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

struct arm_walk {
	struct sites *sites;
	bool only_new; /* nothing to do if no file was loaded since the last walk */
	bool begun;
};

static int walk_arm(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct arm_walk *walk = arg;
	struct sites *sites = walk->sites;
	struct sites_image *image;

	(void)size; /* all libcs since 2005 have dlpi_adds */
	if (!walk->begun && walk->only_new && sites->round && info->dlpi_adds == sites->adds)
		return 1;
	pthread_mutex_lock(&sites->lock);
	sites->adds = info->dlpi_adds;
	/* Like the rest of a walk this is inside the loader's lock, so walks do not mix. */
	sites->round += !walk->begun;
	walk->begun = true;
	image = sites->off ? NULL : image_get(sites, info);
	if (image) {
		image->round = sites->round;
		semaphores_set(image, mode_arms() ? SITES_ARMED_INSIDE : 0);
	}
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
	ok = number != WAFFLE_SITE_UNKNOWN &&
	     map_set(&sites->numbers, (uint64_t)(uintptr_t)name, number);
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
	dl_iterate_phdr(walk_arm, &(struct arm_walk){.sites = sites});
}

void sites_arm_new(struct sites *sites)
{
	dl_iterate_phdr(walk_arm, &(struct arm_walk){.sites = sites, .only_new = true});
}

static int object_disarm(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct sites *sites = arg;
	struct sites_image *image;

	(void)size;
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
	dl_iterate_phdr(object_disarm, sites);
}

uint32_t sites_number(struct sites *sites, uint64_t probe)
{
	uint32_t number;

	pthread_mutex_lock(&sites->lock);
	number = map_get(&sites->numbers, probe);
	pthread_mutex_unlock(&sites->lock);
	return number == MAP_NONE ? WAFFLE_SITE_UNKNOWN : number;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that traced processes with libwaffle make at run time (usdt/name/name_chunk.h): finds
 * them, numbers those that are wanted as sites of the capture, and arms these. Their hits come
 * through rings, as those of other sites.
 *
 * The memory is not trusted. A process that writes nonsense into it loses its own names, and what a
 * process may define is limited. Equal definitions are one site, in whatever processes they are.
 */
#ifndef WAFFLE_CAPTURE_TRANSPORT_NAME_SET_H
#define WAFFLE_CAPTURE_TRANSPORT_NAME_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/record.h"
#include "capture/transport/ring_set.h"
#include "target/elf/site.h"
#include "util/error.h"

struct name_set;

struct name_set_options {
	struct ring_set *rings; /* gets the sites; outlives the names */
	/* Numbers a site, which lives as long as the names. WAFFLE_SITE_UNKNOWN: it is not wanted,
	 * or there is no room. */
	uint32_t (*found)(const struct site_info *site, void *arg);
	/* Names or tracks are left out, since there are too many. Called once. May be NULL. */
	void (*full)(void *arg);
	void *arg;
};

int name_set_open(struct name_set **set, const struct name_set_options *options, struct error *err);
/* Disarms all names. */
void name_set_close(struct name_set *set);

/* Reads the names at an address of a process from now on. Returns 0 also if it does so already.
 * -EACCES: there are none. -ENOSPC: there are too many. Other negative errno: they can't be read.
 */
int name_set_add(struct name_set *set, pid_t pid, uint64_t address, uint64_t bytes);
/* Finds what was defined since the last call. */
void name_set_poll(struct name_set *set);
/* Disarms all names. Those that are found from now on are not armed. */
void name_set_disarm(struct name_set *set);
/* The site of a name by its address. WAFFLE_SITE_UNKNOWN: there is none. RING_SITE_UNWANTED:
 * found() did not want it. */
uint32_t name_set_site(struct name_set *set, pid_t pid, uint64_t probe);
/* Name and group of a track of a process, valid until the next call of any function. False: it is
 * not known. */
struct name_set_track {
	const char *name, *group;
};
bool name_set_track(struct name_set *set, pid_t pid, uint32_t number, struct name_set_track *track);
/* The process has ended, or runs another program. */
void name_set_ended(struct name_set *set, pid_t pid);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that the program makes at run time (waffle_named.h). A name is a site without an ELF
 * file: its address identifies it as a probe's address identifies a site of a file, so hits of both
 * travel in the same way. Names are never freed, since a hit may refer to one at any time.
 */
#ifndef WAFFLE_USDT_NAMES_H
#define WAFFLE_USDT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf/site.h"
#include "waffle_named.h"

struct name_site {
	struct waffle_name use;  /* what the program has */
	struct name_site *next;  /* of the same bucket */
	struct name_site *older; /* the one that was made before */
	uint64_t hash;
	struct site_info site; /* its strings follow in the same memory */
};

/* Who records names in this process. At most one at a time. */
struct names_listener {
	/* Whether the name is to be armed. It is called once for each name, by the thread that
	 * makes it or that listens, and never by two at once. */
	bool (*found)(const struct name_site *name, void *arg);
	void *arg;
};

/* Offers all names there are, and from now on each new one. */
void names_listen(const struct names_listener *listener);
/* Disarms all names. `found` is not called any more. */
void names_unlisten(void);

/* Around fork(): the child begins with all names, of which none is armed. */
void names_fork_before(void);
void names_fork_parent(void);
void names_fork_child(void);

#endif

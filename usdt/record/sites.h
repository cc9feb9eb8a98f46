/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sites of all files that are mapped into this process, and which of them are armed from
 * inside. Names that are made at run time are sites, too.
 *
 * A site is armed while its semaphore, a 16-bit counter, is not 0. The kernel adds and subtracts 1
 * for each tracer, without an atomic instruction. So libwaffle writes only the high byte, and the
 * kernel's count in the low byte is never disturbed. If the kernel's read-modify-write races with
 * ours and restores the old high byte, sites_arm() writes it again in the next round.
 *
 * A file may be unmapped at any time (dlclose). Semaphores are accessed only inside
 * dl_iterate_phdr(), which excludes that.
 */
#ifndef WAFFLE_USDT_RECORD_SITES_H
#define WAFFLE_USDT_RECORD_SITES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/elf/site.h"
#include "util/error.h"

#define SITES_ARMED_INSIDE 0x40

struct sites;

struct sites_callbacks {
	/* Called once for each site of each file, however often it is loaded, by any thread, but
	 * never by two at once. The strings live as long as the sites. Returns its number, which
	 * hits of it get, or WAFFLE_SITE_UNKNOWN if it is not wanted and stays dormant. */
	uint32_t (*found)(const struct site_info *site, void *arg);
	void *arg;
};

/* `clock` is that of the records (enum ticks_kind). NULL: out of memory. */
struct sites *sites_new(const struct sites_callbacks *callbacks, uint32_t clock);
/* The strings of all sites are freed, too. The sites must have been disarmed. */
void sites_free(struct sites *sites);

/* Finds files that are new since the last call, and arms all wanted sites, or disarms them if the
 * mode of the process is off (usdt/frame/mode.h). Any thread may call it. */
void sites_arm(struct sites *sites);
/* The same if files were loaded since the last call; cheap if not, since each source file with
 * sites calls it when its library is loaded. */
void sites_arm_new(struct sites *sites);
/* Arms the names that the program has made (usdt/name/names.h), and from now on each that it makes.
 * One struct sites at a time may do so. */
void sites_arm_names(struct sites *sites);
/* Disarms all sites and names. From now on sites_arm() does nothing. */
void sites_disarm(struct sites *sites);

/* A fork() waits until no thread walks the loader's files, and none does so meanwhile. Call them in
 * the handlers of pthread_atfork(). */
void sites_fork_before(void);
void sites_fork_parent(void);
void sites_fork_child(void);
/* Whether a thread that walks the files waits for the loader's lock. Async-signal-safe. */
bool sites_wait_for_loader(void);
/* Takes a lock whose holder may walk the files, and so wait for the loader's lock. False: it has
 * waited for 0.1 s. The calling thread may itself hold the loader's lock, so to wait on would be a
 * deadlock: it must go on without `lock`. */
bool sites_lock(pthread_mutex_t *lock);

/* The number of the site that had this probe at this time; WAFFLE_SITE_UNKNOWN if it is not wanted.
 * Only one thread may call it. It takes no lock unless files or names were added since. */
uint32_t sites_number(struct sites *sites, uint64_t probe, uint64_t ticks);

#endif

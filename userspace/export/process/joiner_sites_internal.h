/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the sites of a stream of records, by number: they outlive the process that had them. */
#ifndef WAFFLE_EXPORT_PROCESS_JOINER_SITES_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_JOINER_SITES_INTERNAL_H

#include "target/elf/site.h"

struct joiner_sites;

struct joiner_sites *joiner_sites_new(void);
void joiner_sites_free(struct joiner_sites *sites);
/* The copy of a site, which is made now if the number is new. NULL: unknown, or out of memory. */
const struct site_info *joiner_sites_add(struct joiner_sites *sites, uint32_t number,
					 const struct site_info *site);
/* The site of a number that joiner_sites_add() has accepted. */
const struct site_info *joiner_sites_get(const struct joiner_sites *sites, uint32_t number);

#endif

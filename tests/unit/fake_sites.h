/* SPDX-License-Identifier: Apache-2.0 */
/* A file that has room for all sites but those of one name. Link with --wrap. */
#ifndef WAFFLE_TESTS_UNIT_FAKE_SITES_H
#define WAFFLE_TESTS_UNIT_FAKE_SITES_H

#include <errno.h>
#include <string.h>

#include "store/store.h"

#define FAKE_SITE_REFUSED "one too many"

int __wrap_store_writer_add_site(struct store_writer *writer, const struct site_info *site,
				 struct error *err);

int __wrap_store_writer_add_site(struct store_writer *writer, const struct site_info *site,
				 struct error *err)
{
	(void)writer;
	return strcmp(site->name, FAKE_SITE_REFUSED) ? 0 : error_set(err, E2BIG, "no room");
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Omits the values of all keys, or of some. Sites are written without these keys. The values are
 * removed from records before anything else reads them, so they are in no table either. Links and
 * the values of counters are not arguments: they are omitted only if they are named.
 */
#ifndef WAFFLE_CAPTURE_REDACT_H
#define WAFFLE_CAPTURE_REDACT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/record.h"
#include "target/elf/site.h"
#include "util/error.h"
#include "util/vec.h"

struct redaction {
	bool args; /* omit all keys and command lines */
	VEC(struct redacted_key {
		char *name;
		bool found; /* a site has such a key */
	})
	keys;
};

/* Adds the names of a list such as "user,token". */
int redaction_add(struct redaction *redaction, const char *list, struct error *err);
void redaction_free(struct redaction *redaction);

/* The keys of a site to omit: bit i for keys[i]. */
uint32_t redact_keys(struct redaction *redaction, const struct site_info *site);
/* Copies the site without these keys. */
void redact_site(struct site_info *to, const struct site_info *site, uint32_t keys);
/* Removes their values from a hit or a return of the site. `site` NULL: removes all values, since
 * the keys are unknown. */
void redact_record(struct waffle_rec *rec, const struct site_info *site, uint32_t keys);

#endif

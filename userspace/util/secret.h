/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts in which a user may have written a secret, on their way into a message: a command line or a
 * variable has URLs, headers and options. Messages end up in logs that others read.
 */
#ifndef WAFFLE_UTIL_SECRET_H
#define WAFFLE_UTIL_SECRET_H

#include <stddef.h>

/*
 * Replaces by '*', so that all places stay the same:
 *
 *	http://user:password@host   the user and the password
 *	http://host/path?token=t    all behind the '?'
 *	Bearer t, Basic t           the word behind
 *	api-key=t, Authorization: t the value of a name that ends with authorization, cookie, key,
 *	                            password, secret or token
 *	headers=Name: t             what an option for a file of headers has behind a colon
 */
void secret_mask(char *text, size_t len);

/* A masked copy for a message. NULL: out of memory; free() it. */
char *secret_masked(const char *text);

#endif

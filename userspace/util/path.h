/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_UTIL_PATH_H
#define WAFFLE_UTIL_PATH_H

#include <stdbool.h>
#include <string.h>

/* What follows the last slash of a path; the path itself if nothing does. */
static inline const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The length of what is before that, with the slash. */
static inline size_t path_folder_length(const char *path)
{
	return (size_t)(path_base(path) - path);
}

/* Whether a path is in the folder of another one, or in one below it. */
static inline bool path_is_in_folder_of(const char *path, const char *other)
{
	return !strncmp(path, other, path_folder_length(other));
}

#endif

// SPDX-License-Identifier: Apache-2.0
#include "target/process/container_name_internal.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "util/input.h"

#define STATE_BYTES_MAX (64u << 20)

/* Docker: a folder for each container. Podman: one file with all. */
#define DOCKER_FOLDER "var/lib/docker/containers"
#define PODMAN_FILE "var/lib/containers/storage/overlay-containers/containers.json"

/* Reads a file that only its owner, root or ourselves, may write. The caller frees the value. */
static yajl_val state_read(const char *path, bool *too_large)
{
	struct stat status;
	yajl_val value = NULL;
	int fd = input_open(path);
	char *text;
	ssize_t len;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && status.st_size > STATE_BYTES_MAX)
		*too_large = true;
	else if (!fstat(fd, &status) && (status.st_uid == 0 || status.st_uid == geteuid()) &&
		 !(status.st_mode & (S_IWGRP | S_IWOTH)) &&
		 (text = malloc((size_t)status.st_size + 1))) {
		len = input_read_fd(fd, text, (size_t)status.st_size);
		text[len > 0 ? len : 0] = '\0';
		value = yajl_tree_parse(text, NULL, 0);
		free(text);
	}
	close(fd);
	return value;
}

static const char *member_text(yajl_val object, const char *key)
{
	const char *path[] = {key, NULL};

	return YAJL_GET_STRING(yajl_tree_get(object, path, yajl_t_string)) ?: "";
}

static bool id_take(const char *text, char id[CONTAINER_ID_BYTES])
{
	if (strlen(text) != CONTAINER_ID_BYTES - 1 ||
	    strspn(text, "0123456789abcdef") != strlen(text))
		return false;
	memcpy(id, text, CONTAINER_ID_BYTES);
	return true;
}

/* Docker writes names with a slash in front. */
static bool docker_id(const char *root, const char *name, char id[CONTAINER_ID_BYTES],
		      bool *too_large)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/%s", root, DOCKER_FOLDER);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		const char *its;
		yajl_val state;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s/config.v2.json", root, DOCKER_FOLDER,
			 entry->d_name);
		state = state_read(path, too_large);
		its = state ? member_text(state, "Name") : "";
		found = !strcmp(its + (*its == '/'), name) && id_take(member_text(state, "ID"), id);
		yajl_tree_free(state);
	}
	if (folder)
		closedir(folder);
	return found;
}

static bool podman_has_name(yajl_val container, const char *name)
{
	const char *key[] = {"names", NULL};
	yajl_val names = yajl_tree_get(container, key, yajl_t_array);

	for (size_t i = 0; names && i < YAJL_GET_ARRAY(names)->len; i++) {
		const char *text = YAJL_GET_STRING(YAJL_GET_ARRAY(names)->values[i]);

		if (text && !strcmp(text, name))
			return true;
	}
	return false;
}

static bool podman_id(const char *root, const char *name, char id[CONTAINER_ID_BYTES],
		      bool *too_large)
{
	char path[PATH_MAX];
	bool found = false;
	yajl_val state;

	snprintf(path, sizeof(path), "%s/%s", root, PODMAN_FILE);
	state = state_read(path, too_large);
	for (size_t i = 0; YAJL_IS_ARRAY(state) && !found && i < YAJL_GET_ARRAY(state)->len; i++) {
		yajl_val container = YAJL_GET_ARRAY(state)->values[i];

		found = podman_has_name(container, name) &&
			id_take(member_text(container, "id"), id);
	}
	yajl_tree_free(state);
	return found;
}

void container_by_name(const char *root, const char *name, struct container_ids *found)
{
	*found = (struct container_ids){.count = 0};
	if (!*name)
		return;
	if (docker_id(root, name, found->ids[found->count], &found->too_large))
		found->count++;
	if (podman_id(root, name, found->ids[found->count], &found->too_large))
		found->count++;
}

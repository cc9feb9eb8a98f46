// SPDX-License-Identifier: Apache-2.0
/* The tables of a capture's arming: examined files, what is armed in them or
 * will be, processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/arming/arming_internal.h"

int file_find(const struct arming *arming, dev_t dev, ino_t ino)
{
	const uint64_t key[] = {dev, ino};
	uint32_t index = keymap_get(&arming->file_at, key, sizeof(key));

	/* A retired file has no inode. */
	return index != MAP_NONE && arming->files.data[index].ino ? (int)index : -1;
}

void file_open(struct armed_file *file, int fd)
{
	if (file->object && file->fd < 0)
		file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void file_rest(struct armed_file *file)
{
	if (file->fd >= 0 && !file->arm_count)
		file->fd = (close(file->fd), -1);
}

bool file_is_armed(const struct arming *arming, pid_t pid, uint32_t file)
{
	if (arming->files.data[file].armed_everywhere)
		return true;
	for (size_t i = 0; i < arming->arms.len; i++)
		if (arming->arms.data[i].pid == pid && arming->arms.data[i].file == file &&
		    !arming->arms.data[i].control)
			return true;
	return false;
}

struct armed *arm_remove(struct arming *arming, size_t row)
{
	struct arm *arm = &arming->arms.data[row];
	struct armed *armed = arm->armed;
	struct armed_file *file = &arming->files.data[arm->file];

	*arm = arming->arms.data[--arming->arms.len];
	file->arm_count--;
	file_rest(file);
	return armed;
}

int loading_keep(struct arming *arming, const struct loading *loading, struct error *err)
{
	for (size_t i = 0; i < arming->loading.len; i++) {
		struct loading *row = &arming->loading.data[i];

		if (row->pid == loading->pid && row->file == loading->file &&
		    row->reason == loading->reason) {
			*row = *loading;
			return 0;
		}
	}
	if (!vec_push(&arming->loading, *loading))
		return error_set(err, ENOMEM, "out of memory");
	arming->files.data[loading->file].arm_count++; /* keeps the file open */
	return 0;
}

void loading_remove(struct arming *arming, size_t row)
{
	struct armed_file *file = &arming->files.data[arming->loading.data[row].file];

	arming->loading.data[row] = arming->loading.data[--arming->loading.len];
	file->arm_count--;
	file_rest(file);
}

void loading_forget(struct arming *arming, pid_t pid)
{
	for (size_t i = arming->loading.len; i > 0; i--)
		if (arming->loading.data[i - 1].pid == pid)
			loading_remove(arming, i - 1);
}

struct arming_process *process_of(struct arming *arming, pid_t pid)
{
	for (size_t i = 0; i < arming->processes.len; i++)
		if (arming->processes.data[i].pid == pid)
			return &arming->processes.data[i];
	return NULL;
}

enum arming_lack arming_left_out(struct arming *arming)
{
	enum arming_lack lack = arming->lack;

	arming->lack = ARMING_COMPLETE;
	return lack;
}

void notice_add(struct arming *arming, const char *line)
{
	char *copy = strdup(line);

	if (copy && !vec_push(&arming->notices, copy))
		free(copy);
}

void file_report(struct arming *arming, struct armed_file *file, const char *what)
{
	char line[4400];

	for (size_t i = 0; i < arming->files.len; i++)
		if (arming->files.data[i].reported &&
		    !strcmp(arming->files.data[i].path, file->path))
			return;
	file->reported = true;
	snprintf(line, sizeof(line), "%s %s", file->path, what);
	notice_add(arming, line);
}

int file_mapped(struct arming *arming, struct armed_file *file, struct error *err)
{
	size_t count = file->object ? file->object->sites.len : 0;

	if (file->mapped)
		return 0;
	file->mapped = true;
	if (file->pending)
		call_set_mapped(arming->options->calls, file->pending);
	arming->matching += file->matching;
	for (size_t i = 0; i < count; i++)
		if (!file->uses || file->uses[i].use != PLAN_DORMANT)
			armed_count(&arming->counts, &file->object->sites.data[i]);
	return arming_announce(arming, file->first_site, count, err);
}

void programs_forget(struct arming *arming)
{
	for (size_t i = 0; i < arming->programs.len; i++)
		vec_free(&arming->programs.data[i].files.list);
	arming->programs.len = 0;
}

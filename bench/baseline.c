// SPDX-License-Identifier: Apache-2.0
/*
 * What waffle-bpf is compared with: attaches an empty program to every site of a process, or a bare
 * counter to sched_switch, until it is killed or its input ends.
 *
 *	baseline empty PID FILE		all sites of FILE, in process PID
 *	baseline offset PID FILE OFFSET	the instruction there, in process PID
 *	baseline count			sched_switch
 */
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "empty.skel.h"
#include "target/elf/object_read.h"

static struct bpf_link *attach_empty(struct empty_bpf *bpf, int pid, const char *path)
{
	struct error err = ERROR_INIT;
	struct object *object = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned long *offsets, *semaphores;
	LIBBPF_OPTS(bpf_uprobe_multi_opts, options);
	struct bpf_link *link = NULL;

	if (fd < 0 || object_read(&object, fd, path, &err))
		return NULL;
	offsets = calloc(object->probes.len, sizeof(*offsets));
	semaphores = calloc(object->probes.len, sizeof(*semaphores));
	for (size_t i = 0; offsets && semaphores && i < object->probes.len; i++) {
		offsets[i] = object->probes.data[i].offset;
		semaphores[i] = object->probes.data[i].semaphore_offset;
	}
	options.offsets = offsets;
	options.ref_ctr_offsets = semaphores;
	options.cnt = object->probes.len;
	if (offsets && semaphores)
		link = bpf_program__attach_uprobe_multi(bpf->progs.empty, pid, path, NULL,
							&options);
	free(offsets);
	free(semaphores);
	object_free(object);
	close(fd);
	return link;
}

static struct bpf_link *attach_offset(struct empty_bpf *bpf, int pid, const char *path,
				      unsigned long offset)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, options, .offsets = &offset, .cnt = 1);

	return bpf_program__attach_uprobe_multi(bpf->progs.empty, pid, path, NULL, &options);
}

int main(int argc, char **argv)
{
	struct empty_bpf *bpf = empty_bpf__open_and_load();
	struct bpf_link *link = NULL;
	char byte;

	if (bpf && argc == 4 && !strcmp(argv[1], "empty"))
		link = attach_empty(bpf, atoi(argv[2]), argv[3]);
	else if (bpf && argc == 5 && !strcmp(argv[1], "offset"))
		link = attach_offset(bpf, atoi(argv[2]), argv[3], strtoul(argv[4], NULL, 0));
	else if (bpf && argc == 2 && !strcmp(argv[1], "count"))
		link = bpf_program__attach(bpf->progs.count);
	if (!link) {
		fprintf(stderr, "baseline: could not attach\n");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	bpf_link__destroy(link);
	empty_bpf__destroy(bpf);
	return 0;
}

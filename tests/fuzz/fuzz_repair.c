// SPDX-License-Identifier: Apache-2.0
/*
 * Any file, given to `waffle-bpf repair`. The first byte chooses the format. What is kept, with its
 * tail, must be a file that needs no repair and has as many events or packets; a JSON array must be
 * JSON then.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "export/repair/repair.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int (*scan_fn)(struct repair_plan *plan, int fd, const char *path, struct error *err);

static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("input", 0);

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

static void json_check(const void *data, size_t size)
{
	yajl_handle parser = yajl_alloc(NULL, NULL, NULL);

	require(yajl_parse(parser, data, size) == yajl_status_ok);
	require(yajl_complete_parse(parser) == yajl_status_ok);
	yajl_free(parser);
}

static void repaired_check(scan_fn scan, const struct repair_plan *plan, const uint8_t *data)
{
	size_t tail = strlen(plan->tail), size = plan->kept + tail;
	char *repaired = malloc(size + 1);
	struct error err = ERROR_INIT;
	struct repair_plan again;
	int fd;

	require(repaired);
	memcpy(repaired, data, plan->kept);
	memcpy(repaired + plan->kept, plan->tail, tail);
	fd = file_of(repaired, size);
	require(!scan(&again, fd, "repaired", &err));
	require(repair_is_whole(&again) && again.items == plan->items);
	if (scan == repair_scan_chrome)
		json_check(repaired, size);
	close(fd);
	free(repaired);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scan_fn scan;
	struct repair_plan plan;
	struct error err = ERROR_INIT;
	int fd, code;

	if (!size)
		return 0;
	scan = data[0] % 2 ? repair_scan_perfetto : repair_scan_chrome;
	fd = file_of(data + 1, size - 1);
	code = scan(&plan, fd, "input", &err);
	close(fd);
	if (code) {
		require(*err.message && !strchr(err.message, '\n'));
		return 0;
	}
	require(plan.kept + plan.dropped == size - 1);
	repaired_check(scan, &plan, data + 1);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/cfi_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/worker/worker.h"
#include "util/input.h"

static const struct file_cache_key unwind = {.kind = FILE_CACHE_UNWIND};

static int read_here(struct cfi_table *table, struct elf_segments *segments, int fd,
		     const char *path)
{
	struct elf_file file;
	int result = elf_file_open_fd(&file, fd, path);

	*table = (struct cfi_table){0};
	*segments = (struct elf_segments){0};
	if (result)
		return result == -ENOMEM ? result : -ENOEXEC;
	elf_file_segments(&file, segments);
	result = cfi_table_read(table, &file);
	if (!result && elf_file_changed(&file)) {
		cfi_table_free(table);
		result = -ENOEXEC;
	}
	elf_file_close(&file);
	return result;
}

int cfi_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	const char *path = wire_get_text(request);
	struct elf_segments segments;
	struct cfi_table table;
	int result, own;

	(void)arg;
	if (!path || !wire_in_done(request))
		return -EINVAL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	result = own < 0 ? -errno : read_here(&table, &segments, own, path);
	if (result)
		return result;
	wire_put_u32(reply, segments.count);
	wire_put(reply, segments.list, segments.count * sizeof(segments.list[0]));
	wire_put_u64(reply, table.base);
	wire_put_u32(reply, table.cut);
	wire_put_u64(reply, table.functions);
	wire_put_u64(reply, table.bad);
	wire_put_u32(reply, (uint32_t)table.count);
	wire_put(reply, table.rows, table.count * sizeof(table.rows[0]));
	cfi_table_free(&table);
	return 0;
}

/* The rows stay in the message's memory. False: they are not aligned there. */
static bool rows_take(struct cfi_table *table, struct wire_in *in, struct wire_out *owner)
{
	unsigned char *at = owner->bytes.data + (in->at - owner->bytes.data);

	if ((uintptr_t)at % _Alignof(struct waffle_unwind_row))
		return false;
	table->rows = (struct waffle_unwind_row *)(void *)at;
	table->memory = owner->bytes.data;
	in->at += table->count * sizeof(table->rows[0]);
	*owner = (struct wire_out){0};
	return true;
}

static int rows_get(struct cfi_table *table, struct wire_in *in, struct wire_out *owner)
{
	if (!table->count)
		return 0;
	if (owner && rows_take(table, in, owner))
		return 0;
	table->rows = calloc(table->count, sizeof(table->rows[0]));
	if (!table->rows)
		return -ENOMEM;
	wire_get(in, table->rows, table->count * sizeof(table->rows[0]));
	return 0;
}

int cfi_decode(struct cfi_table *table, struct elf_segments *segments, struct wire_in *in,
	       struct wire_out *owner)
{
	*table = (struct cfi_table){0};
	*segments = (struct elf_segments){.count = wire_get_u32(in)};
	if (segments->count > ELF_SEGMENTS_MAX) {
		*segments = (struct elf_segments){0};
		return -EPROTO;
	}
	wire_get(in, segments->list, segments->count * sizeof(segments->list[0]));
	table->base = wire_get_u64(in);
	table->cut = wire_get_u32(in) & 1;
	table->functions = wire_get_u64(in);
	table->bad = wire_get_u64(in);
	table->count = wire_get_count(in, sizeof(table->rows[0]));
	if (in->bad || table->count > CFI_ROWS_MAX)
		table->count = 0;
	if (rows_get(table, in, owner))
		return -ENOMEM;
	for (size_t i = 1; i < table->count && !in->bad; i++)
		in->bad = table->rows[i].pc <= table->rows[i - 1].pc;
	if (wire_in_done(in))
		return 0;
	cfi_table_free(table);
	*segments = (struct elf_segments){0};
	return -EPROTO;
}

int cfi_file_recall(struct cfi_table *table, struct elf_segments *segments, int fd,
		    const struct file_cache *cache)
{
	struct wire_out reply = {0};
	struct file_cache_file file;
	int result = -ENOENT;

	*table = (struct cfi_table){0};
	*segments = (struct elf_segments){0};
	if (file_cache_may_have(cache, fd, &file) &&
	    file_cache_get(cache, &file, &unwind, &reply)) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		result = cfi_decode(table, segments, &in, &reply);
	}
	wire_out_free(&reply);
	return result;
}

static int read_remote(struct cfi_table *table, struct elf_segments *segments, int fd,
		       const char *path, const struct file_cache *cache)
{
	struct wire_out request = {0}, reply = {0};
	struct error problem = ERROR_INIT;
	struct file_cache_file file;
	bool keep = file_cache_may_have(cache, fd, &file);
	int result;

	wire_put_text(&request, path);
	result = worker_call(WORKER_FOR_NAMES, WORKER_UNWIND, &request, fd, path, &reply, &problem);
	if (!result) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		result = cfi_decode(table, segments, &in, NULL);
		if (result == -EPROTO)
			worker_reply_bad(path, &problem);
	}
	if (!result && keep && file_cache_is_unchanged(fd, &file))
		file_cache_put(cache, &file, &unwind, &reply);
	wire_out_free(&request);
	wire_out_free(&reply);
	return result;
}

int cfi_file_read(struct cfi_table *table, struct elf_segments *segments, int fd, const char *path,
		  const struct file_cache *cache)
{
	int result;

	*table = (struct cfi_table){0};
	*segments = (struct elf_segments){0};
	if (!worker_is_there())
		return read_here(table, segments, fd, path);
	result = read_remote(table, segments, fd, path, cache);
	close(fd);
	return result;
}

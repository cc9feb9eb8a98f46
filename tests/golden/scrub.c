// SPDX-License-Identifier: Apache-2.0
/*
 * Copies a capture and removes what identifies the machine of the recording: scrub FROM TO. The
 * names of other programs, the paths outside of /mnt and of the system's folders, and the kernel's
 * release are replaced. All else is the same, but in chunks of CHUNK_RECORDS. With scrub FROM TO
 * late, every second hit comes after the record that follows it, as late records do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/record.h"
#include "store/store.h"

#define CHUNK_RECORDS 3000

struct copy {
	struct store_reader *reader;
	struct store_writer *writer;
	bool late;
	_Alignas(8) unsigned char held[RECORD_BYTES_MAX]; /* a hit that is to come late */
	size_t held_bytes;
	struct error err;
};

static void check(struct copy *c, int code)
{
	if (code >= 0)
		return;
	fprintf(stderr, "scrub: %s\n", c->err.message);
	exit(1);
}

static const char *path_shown(const char *path)
{
	static const char *const kept[] = {"/mnt/", "/usr/",   "/lib", "/proc",
					   "/dev/", "/memfd:", "/sys/"};
	const char *slash = strrchr(path, '/');
	static char shown[256];

	if (*path != '/')
		return path;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!strncmp(path, kept[i], strlen(kept[i])))
			return path;
	snprintf(shown, sizeof(shown), "/elsewhere%s", slash);
	return shown;
}

/* Threads of the kernel and of waffle have the same names everywhere. */
static bool comm_kept(const char *comm)
{
	static const char *const kept[] = {"kworker",  "ksoftirqd", "rcu_",
					   "jbd2",     "migration", "swapper",
					   "kthreadd", "waffle",    "kcompactd"};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!strncmp(comm, kept[i], strlen(kept[i])))
			return true;
	return false;
}

static void copy_tables(struct copy *c)
{
	const struct store_stack *stack;
	const struct store_object *object;

	for (uint32_t i = 0; i < store_reader_site_count(c->reader); i++)
		check(c,
		      store_writer_add_site(c->writer, store_reader_site(c->reader, i), &c->err));
	for (uint32_t i = 0; i < store_reader_process_count(c->reader); i++)
		check(c, store_writer_add_process(c->writer, store_reader_process(c->reader, i),
						  &c->err));
	for (uint32_t i = 1; (stack = store_reader_stack(c->reader, i)); i++)
		check(c, store_writer_add_stack(c->writer, stack, &c->err));
	for (uint32_t i = 1; (object = store_reader_object(c->reader, i)); i++) {
		struct store_object shown = *object;

		shown.name = path_shown(object->name);
		check(c, store_writer_add_object(c->writer, &shown, &c->err));
	}
	for (uint32_t i = 0; i < store_reader_mapping_count(c->reader); i++) {
		struct store_mapping shown = *store_reader_mapping(c->reader, i);

		shown.path = path_shown(shown.path);
		check(c, store_writer_add_mapping(c->writer, &shown, &c->err));
	}
	for (uint32_t i = 0; i < store_reader_symbol_count(c->reader); i++)
		check(c, store_writer_add_symbol(c->writer, store_reader_symbol(c->reader, i),
						 &c->err));
	for (uint32_t i = 0; i < store_reader_name_count(c->reader); i++)
		check(c,
		      store_writer_add_name(c->writer, store_reader_name(c->reader, i), &c->err));
}

static void copy_task(struct copy *c, const struct waffle_rec *rec)
{
	struct waffle_rec_task task = *(const struct waffle_rec_task *)rec;

	if (!(task.flags & WAFFLE_TASK_TRACED_FLAG) && !comm_kept(task.comm)) {
		memset(task.comm, 0, sizeof(task.comm));
		memcpy(task.comm, "neighbour", sizeof("neighbour"));
	}
	check(c, store_writer_append(c->writer, &task.rec, &c->err));
}

static void append(struct copy *c, const struct waffle_rec *rec, uint64_t number)
{
	if (c->late && rec->kind == WAFFLE_REC_HIT && !c->held_bytes && number % 2) {
		c->held_bytes = record_size(rec, RECORD_BYTES_MAX);
		memcpy(c->held, rec, c->held_bytes);
		return;
	}
	check(c, store_writer_append(c->writer, rec, &c->err));
	if (c->held_bytes)
		check(c,
		      store_writer_append(c->writer, (const struct waffle_rec *)c->held, &c->err));
	c->held_bytes = 0;
}

static void copy_records(struct copy *c, const struct store_meta *meta)
{
	const struct waffle_rec *rec;
	uint64_t count = 0;
	int more;

	check(c, store_reader_seek(c->reader, STORE_ALL, &c->err));
	while ((more = store_reader_next(c->reader, &rec, &c->err)) > 0) {
		if (rec->kind == WAFFLE_REC_TASK)
			copy_task(c, rec);
		else
			append(c, rec, count);
		if (++count % CHUNK_RECORDS == 0)
			check(c, store_writer_flush(c->writer, meta->counts, &c->err));
	}
	check(c, more);
}

int main(int argc, char **argv)
{
	struct copy c = {.err = ERROR_INIT};
	struct store_meta meta;

	if (argc < 3) {
		fprintf(stderr, "scrub FROM TO [late]\n");
		return 2;
	}
	c.late = argc > 3;
	check(&c, store_reader_open(&c.reader, argv[1], &c.err));
	meta = *store_reader_meta(c.reader);
	meta.kernel = "6.18.0";
	check(&c, store_writer_open(&c.writer, argv[2], &meta, &c.err));
	copy_tables(&c);
	copy_records(&c, &meta);
	check(&c, store_writer_close(c.writer, meta.end_ts, meta.counts, &c.err));
	store_reader_close(c.reader);
	return 0;
}

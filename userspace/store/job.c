// SPDX-License-Identifier: Apache-2.0
/* Makes one of several files: their hosts, their clocks, and the numbers of their tables. */
#include <stdlib.h>
#include <string.h>

#include "store/job_internal.h"
#include "util/map.h"

static int no_memory(struct error *err)
{
	return error_set(err, ENOMEM, "out of memory");
}

/* ---- hosts ---- */

/* Clocks of two captures of one boot differ by no more, unless somebody set the time. */
#define SAME_BOOT_NS 2000000000

static bool realtime_agrees(const struct store_host *a, const struct store_host *b)
{
	int64_t apart = (int64_t)((a->real_ns - a->boot_ns) - (b->real_ns - b->boot_ns));

	return apart < SAME_BOOT_NS && apart > -SAME_BOOT_NS;
}

/* Whether two captures were made on one boot of one machine. Copies of a virtual machine have the
 * same boot id; containers of one have different names. */
static bool host_is_same(const struct store_host *a, const struct store_host *b)
{
	bool same_name = *a->name && !strcmp(a->name, b->name);

	if (*a->boot_id && *b->boot_id)
		return !strcmp(a->boot_id, b->boot_id) && (same_name || realtime_agrees(a, b));
	return same_name && realtime_agrees(a, b);
}

static int host_of_file(struct store_reader *reader, struct job_file *file, struct error *err)
{
	const struct store_host *own = &file->reader.dictionary.hosts.data[0];
	uint32_t host = 0;

	if (file->reader.dictionary.hosts.len > 1)
		return error_set(err, EINVAL,
				 "%s: was merged from files of %zu hosts, and can't be joined with "
				 "others; give the files that it was made of",
				 file->reader.file.path, file->reader.dictionary.hosts.len);
	while (host < reader->hosts.len && !host_is_same(&reader->hosts.data[host], own))
		host++;
	if (host == STORE_HOSTS_MAX)
		return error_set(err, E2BIG, "%s: is of one host too many: a job has at most %u",
				 file->reader.file.path, STORE_HOSTS_MAX);
	if (host == reader->hosts.len && !vec_push(&reader->hosts, *own))
		return no_memory(err);
	if (reader->hosts.data[host].cpu_count < own->cpu_count)
		reader->hosts.data[host].cpu_count = own->cpu_count;
	file->renumber.host = host;
	return 0;
}

/* Each host has one CPU more, for records of a CPU that it does not have. */
static int cpus_number(struct store_reader *reader, struct error *err)
{
	uint32_t base = 0;

	for (size_t i = 0; i < reader->hosts.len; i++) {
		struct store_host *host = &reader->hosts.data[i];

		if (host->cpu_count >= UINT16_MAX - base)
			return error_set(err, E2BIG,
					 "the hosts of the job have more than %u CPUs together, "
					 "which is the most that can be read at a time; give fewer "
					 "files",
					 UINT16_MAX);
		host->cpu_base = base;
		base += host->cpu_count + 1;
	}
	return 0;
}

static int hosts_find(struct store_reader *reader, struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < reader->count; i++)
		ret = host_of_file(reader, &reader->files[i], err);
	for (size_t i = 1; !ret && i < reader->hosts.len; i++)
		reader->hosts.data[i].clock =
			store_clock_by_wall(&reader->hosts.data[i], &reader->hosts.data[0]);
	return ret ?: cpus_number(reader, err);
}

/* ---- sites ---- */

/* What the numbers of sites are found by. A site has a name, a category, a file, a function and an
 * object, and its keys have names. */
#define SITE_KEY_WORDS (8 + 5 + 2 * WAFFLE_KEYS_MAX)

struct site_number_key {
	uint32_t words[SITE_KEY_WORDS];
	uint32_t count;
};

/* The strings of one file have one address each, and any number of sites may refer to one. So each
 * is hashed once, however long it is. */
struct site_strings {
	struct strtab *numbers; /* of all files */
	struct map by_address;
};

/* False: out of memory. */
static bool key_add_text(struct site_number_key *key, struct site_strings *strings,
			 const char *text)
{
	uint32_t number = map_get(&strings->by_address, (uintptr_t)text);

	if (number == MAP_NONE) {
		number = strtab_add(strings->numbers, text, strlen(text));
		if (number == STRTAB_NONE ||
		    !map_set(&strings->by_address, (uintptr_t)text, number))
			return false;
	}
	key->words[key->count++] = number;
	return true;
}

/* Everything that a file says about a site. */
static bool key_make(struct site_number_key *key, struct site_strings *strings,
		     const struct site_info *site)
{
	const uint32_t numbers[] = {site->line,      site->kind,  site->role, site->call,
				    site->simulated, site->keyed, site->laps, site->key_count};
	bool done;

	memcpy(key->words, numbers, sizeof(numbers));
	key->count = sizeof(numbers) / sizeof(numbers[0]);
	done = key_add_text(key, strings, site->name) &&
	       key_add_text(key, strings, site->category) &&
	       key_add_text(key, strings, site->file) && key_add_text(key, strings, site->func) &&
	       key_add_text(key, strings, site->object);
	for (unsigned i = 0; done && i < site->key_count; i++) {
		key->words[key->count++] = (unsigned char)site->keys[i].type;
		done = key_add_text(key, strings, site->keys[i].name);
	}
	return done;
}

static int site_add(struct store_reader *reader, struct site_strings *strings,
		    const struct site_info *site, uint32_t *number)
{
	struct site_number_key key;
	size_t len;

	if (!key_make(&key, strings, site))
		return -ENOMEM;
	len = key.count * sizeof(key.words[0]);
	*number = keymap_get(&reader->site_numbers, key.words, len);
	if (*number != MAP_NONE)
		return 0;
	if (reader->sites.len == STORE_SITES_MAX)
		return -E2BIG;
	*number = (uint32_t)reader->sites.len;
	return keymap_set(&reader->site_numbers, key.words, len, *number) &&
			       vec_push(&reader->sites, *site)
		       ? 0
		       : -ENOMEM;
}

/* The sites of a file get the numbers of the job. Its own table is not needed any more. */
static int sites_take(struct store_reader *reader, struct job_file *file, struct error *err)
{
	struct dictionary *dictionary = &file->reader.dictionary;
	uint32_t count = (uint32_t)dictionary->sites.len;
	struct site_strings strings = {.numbers = reader->site_strings};
	int ret = 0;

	file->sites = calloc(count + 1u, sizeof(*file->sites));
	if (!file->sites)
		return no_memory(err);
	for (uint32_t i = 0; !ret && i < count; i++)
		ret = site_add(reader, &strings, &dictionary->sites.data[i], &file->sites[i]);
	map_free(&strings.by_address);
	vec_free(&dictionary->sites);
	file->renumber.sites = file->sites;
	file->renumber.site_count = count;
	if (ret == -E2BIG)
		return error_set(err, E2BIG, "the files have more than %u sites together",
				 STORE_SITES_MAX);
	return ret ? no_memory(err) : 0;
}

/* A single file may have a site twice, and its numbers stay. */
static int sites_keep(struct store_reader *reader, struct job_file *file, struct error *err)
{
	struct dictionary *dictionary = &file->reader.dictionary;

	for (size_t i = 0; i < dictionary->sites.len; i++)
		if (!vec_push(&reader->sites, dictionary->sites.data[i]))
			return no_memory(err);
	return 0;
}

/* Gives the files pointers to their sites, when the job's table does not move any more. */
static int sites_give(struct store_reader *reader, struct error *err)
{
	size_t count = 0;

	for (uint32_t i = 0; i < reader->count; i++)
		count += reader->files[i].sites ? reader->files[i].renumber.site_count
						: reader->sites.len;
	if (!vec_reserve(&reader->site_lists, count + 1))
		return no_memory(err);
	for (uint32_t i = 0; i < reader->count; i++) {
		struct job_file *file = &reader->files[i];
		uint32_t own =
			file->sites ? file->renumber.site_count : (uint32_t)reader->sites.len;

		file->reader.sites = reader->site_lists.data + reader->site_lists.len;
		file->reader.site_count = own;
		for (uint32_t site = 0; site < own; site++)
			reader->site_lists.data[reader->site_lists.len++] =
				&reader->sites.data[file->sites ? file->sites[site] : site];
	}
	return 0;
}

/* ---- tables ---- */

static size_t table_len(const struct dictionary *dictionary, enum job_table table)
{
	switch (table) {
	case JOB_PROCESSES:
		return dictionary->processes.len;
	case JOB_STACKS:
		return dictionary->stacks.len;
	case JOB_OBJECTS:
		return dictionary->objects.len;
	case JOB_MAPPINGS:
		return dictionary->mappings.len;
	case JOB_SYMBOLS:
		return dictionary->symbols.len;
	case JOB_NAMES:
		return dictionary->names.len;
	case JOB_ATTRIBUTES:
		return dictionary->attributes.len;
	case JOB_TRANSPORTS:
		return dictionary->transports.len;
	default:
		return dictionary->ranks.len;
	}
}

static int tables_number(struct store_reader *reader, struct error *err)
{
	for (uint32_t i = 0; i < reader->count; i++) {
		struct job_file *file = &reader->files[i];

		for (enum job_table table = 0; table < JOB_TABLE_COUNT; table++) {
			size_t len = table_len(&file->reader.dictionary, table);

			if (len > UINT32_MAX - 1 - reader->totals[table])
				return error_set(
					err, E2BIG,
					"%s: the tables of the files are too long together",
					file->reader.file.path);
			file->first[table] = reader->totals[table];
			reader->totals[table] += (uint32_t)len;
		}
		file->renumber.stack_base = file->first[JOB_STACKS];
		file->renumber.object_base = file->first[JOB_OBJECTS];
	}
	return 0;
}

static int captures_collect(struct store_reader *reader, struct error *err)
{
	for (uint32_t i = 0; i < reader->count; i++) {
		const struct job_file *file = &reader->files[i];
		const struct dictionary *dictionary = &file->reader.dictionary;

		for (size_t at = 0; at < dictionary->captures.len; at++) {
			struct store_capture capture = dictionary->captures.data[at];

			if (!file->renumber.keeps_all)
				capture.host = file->renumber.host;
			capture.first_process += file->first[JOB_PROCESSES];
			if (!vec_push(&reader->captures, capture))
				return no_memory(err);
		}
	}
	return 0;
}

/* ---- facts about the job ---- */

static uint64_t in_job(const struct job_file *file, uint64_t ts)
{
	return ts ? store_clock_apply(file->renumber.clock, ts) : 0;
}

/* The three clocks when the job began, as the first host's were or would have been. */
static void meta_begin(struct store_meta *meta, uint64_t first_ts, uint64_t start_ts)
{
	uint64_t earlier = first_ts - start_ts;

	meta->start_ts = start_ts;
	meta->boot_ns -= meta->boot_ns > earlier ? earlier : meta->boot_ns;
	meta->real_ns -= meta->real_ns > earlier ? earlier : meta->real_ns;
}

static void meta_add(struct store_meta *meta, const struct job_file *file)
{
	const struct store_meta *of = &file->reader.meta;
	uint64_t end_ts = in_job(file, of->end_ts);

	if (end_ts > meta->end_ts)
		meta->end_ts = end_ts;
	meta->sched |= of->sched;
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		meta->counts[i].produced += of->counts[i].produced;
		meta->counts[i].delivered += of->counts[i].delivered;
		meta->counts[i].lost += of->counts[i].lost;
	}
}

/* Most facts are those of the first file. */
static void meta_make(struct store_reader *reader)
{
	struct store_meta *meta = &reader->meta;
	uint64_t first_ts = in_job(&reader->files[0], reader->files[0].reader.meta.start_ts);
	uint64_t start_ts = first_ts;

	*meta = reader->files[0].reader.meta;
	if (reader->count == 1)
		return;
	meta->end_ts = 0;
	memset(meta->counts, 0, sizeof(meta->counts));
	for (uint32_t i = 0; i < reader->count; i++) {
		uint64_t ts = in_job(&reader->files[i], reader->files[i].reader.meta.start_ts);

		meta_add(meta, &reader->files[i]);
		start_ts = ts < start_ts ? ts : start_ts;
	}
	meta_begin(meta, first_ts, start_ts);
	meta->cpu_count = 0;
	for (size_t i = 0; i < reader->hosts.len; i++)
		meta->cpu_count += reader->hosts.data[i].cpu_count;
}

/* The times of the captures in the job. */
static void captures_time(struct store_reader *reader)
{
	size_t at = 0;

	for (uint32_t i = 0; i < reader->count; i++) {
		const struct job_file *file = &reader->files[i];
		const struct dictionary *dictionary = &file->reader.dictionary;

		for (size_t own = 0; own < dictionary->captures.len; own++, at++) {
			const struct store_capture *from = &dictionary->captures.data[own];
			struct store_capture *to = &reader->captures.data[at];

			to->start_ts = in_job(file, from->start_ts);
			to->end_ts = in_job(file, from->end_ts);
			to->last_ts = in_job(file, from->last_ts);
		}
	}
}

int job_clock_apply(struct store_reader *reader, uint32_t host, struct error *err)
{
	for (uint32_t i = 0; i < reader->count; i++) {
		struct job_file *file = &reader->files[i];

		if ((host == JOB_ALL_HOSTS || host == file->renumber.host) &&
		    !renumber_table_times(&file->renumber, &file->reader.dictionary, &file->kept))
			return no_memory(err);
	}
	captures_time(reader);
	meta_make(reader);
	return 0;
}

/* ---- opening ---- */

/* Only needed while files are opened. */
static void site_numbers_free(struct store_reader *reader)
{
	keymap_free(&reader->site_numbers);
	strtab_free(reader->site_strings);
	reader->site_strings = NULL;
}

static int files_open(struct store_reader *reader, const char *const *paths, uint32_t count,
		      struct error *err)
{
	reader->files = calloc(count, sizeof(*reader->files));
	reader->site_strings = strtab_new();
	if (!reader->files || !reader->site_strings)
		return no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		struct job_file *file = &reader->files[i];
		int ret = file_reader_open(&file->reader, paths[i], &reader->scratch, err);

		if (ret)
			return ret;
		reader->count++;
		file->renumber.keeps_all = count == 1;
		if (count > 1)
			chunk_file_rest(&file->reader.file);
		ret = count == 1 ? sites_keep(reader, file, err) : sites_take(reader, file, err);
		if (ret)
			return ret;
	}
	return 0;
}

static int sources_make(struct store_reader *reader, struct error *err)
{
	uint64_t records = 0;

	if (reader->count == 1)
		return 0;
	reader->sources = calloc(reader->count, sizeof(*reader->sources));
	if (!reader->sources)
		return no_memory(err);
	for (uint32_t i = 0; i < reader->count; i++) {
		struct job_file *file = &reader->files[i];

		reader->sources[i] = (struct merge_source){&file->reader, &file->renumber, records};
		records += file->reader.data_records;
	}
	return 0;
}

/* A file of a job that was merged has several hosts, and its numbers are right already. */
static int hosts_take(struct store_reader *reader, struct error *err)
{
	const struct dictionary *only = &reader->files[0].reader.dictionary;

	if (reader->count > 1)
		return hosts_find(reader, err);
	for (size_t i = 0; i < only->hosts.len; i++)
		if (!vec_push(&reader->hosts, only->hosts.data[i]))
			return no_memory(err);
	return 0;
}

int job_open(struct store_reader *reader, const char *const *paths, uint32_t count,
	     struct error *err)
{
	static const struct store_clock no_clock = {.kind = STORE_CLOCK_REFERENCE};
	int ret = files_open(reader, paths, count, err)
			  ?: sites_give(reader, err)
			  ?: hosts_take(reader, err)
			  ?: tables_number(reader, err)
			  ?: captures_collect(reader, err)
			  ?: sources_make(reader, err);

	site_numbers_free(reader);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < count; i++) {
		struct renumber *renumber = &reader->files[i].renumber;
		const struct store_host *host = &reader->hosts.data[renumber->host];

		renumber->cpu_base = host->cpu_base;
		renumber->cpu_count = host->cpu_count;
		renumber->clock = renumber->keeps_all ? &no_clock : &host->clock;
		renumber_tables(renumber, &reader->files[i].reader.dictionary);
	}
	return job_clock_apply(reader, JOB_ALL_HOSTS, err);
}

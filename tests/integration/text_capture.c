// SPDX-License-Identifier: Apache-2.0
/*
 * Writes a .waffle file from lines of text, for tests that make captures up (text_capture.py):
 *
 *	text_capture FILE START END < LINES
 *
 * The fields of a line are separated by tabs. Numbers are decimal. TYPES are pairs TYPE:KEY, such
 * as u:bytes, in the letters of include/waffle/abi.h. Values follow in their order.
 *
 *	site KIND ROLE CALL CATEGORY NAME TYPES…	the next number of a site, from 0
 *	process PID
 *	task TS TID PID NAME
 *	track TS PID NUMBER NAME GROUP
 *	hit TS TID PID SITE ID PARENT TRACK VALUES…	TRACK 0: none
 *	end TS TID PID SITE ID
 *	return TS TID PID SITE ID FIRST VALUES…		of the keys from FIRST on
 *	switch TS CPU PREV NEXT STATE WAKE_TS WAKER SYSCALL	all threads are traced
 *	state TS TID PID CPU STATE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define FIELDS_MAX 40

static struct store_writer *writer;
static struct error err;
static struct store_counts counts[WAFFLE_SOURCE_COUNT];
static struct site_info *sites;
static size_t site_count;
static char *fields[FIELDS_MAX];
static unsigned field_count, field;

static void check(int code)
{
	if (code >= 0)
		return;
	fprintf(stderr, "text_capture: %s\n", err.message);
	exit(1);
}

static void append(const void *rec)
{
	check(store_writer_append(writer, rec, &err));
	counts[WAFFLE_SOURCE_SPANS].produced++;
	counts[WAFFLE_SOURCE_SPANS].delivered++;
}

static const char *text(void)
{
	if (field < field_count)
		return fields[field++];
	fprintf(stderr, "text_capture: a field is missing\n");
	exit(1);
}

static uint64_t number(void)
{
	return strtoull(text(), NULL, 10);
}

static uint16_t role_of(const char *name)
{
	static const char *const names[] = {
#define NAME(id, name, ...) name,
		SITE_ROLES(NAME, NAME, NAME)
#undef NAME
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return (uint16_t)i;
	fprintf(stderr, "text_capture: no role %s\n", name);
	exit(1);
}

static void add_site(void)
{
	struct site_info site = {.file = "", .func = "", .object = "/bin/made-up"};

	site.kind = (uint16_t)number();
	site.role = role_of(text());
	site.call = number();
	site.category = strdup(text());
	site.name = strdup(text());
	while (field < field_count) {
		const char *key = text();

		site.keys[site.key_count].type = key[0];
		site.keys[site.key_count++].name = strdup(key + 2);
	}
	sites = realloc(sites, (site_count + 1) * sizeof(*sites));
	sites[site_count++] = site;
	check(store_writer_add_site(writer, &site, &err));
}

/* The values of the keys from `first` on. Returns their bytes. */
static uint32_t values(const struct site_info *site, unsigned first, uint64_t *words)
{
	uint64_t *at = words;

	for (unsigned i = first; i < site->key_count && field < field_count; i++) {
		const char *value = text();
		size_t len = strlen(value);

		if (site->keys[i].type == WAFFLE_KEY_STR) {
			*at++ = len;
			memset(at, 0, (len + 7) & ~7ul);
			memcpy(at, value, len);
			at += (len + 7) / 8;
		} else {
			*at++ = strtoull(value, NULL, 10);
		}
	}
	return (uint32_t)((char *)at - (char *)words);
}

static void add_hit(void)
{
	static struct {
		struct waffle_rec_hit head;
		struct waffle_frame frame;
		uint64_t words[1024];
	} rec;
	struct waffle_rec_on_track on = {.rec = {.kind = WAFFLE_REC_ON_TRACK}};

	memset(&rec.head, 0, sizeof(rec.head));
	rec.head.rec.kind = WAFFLE_REC_HIT;
	rec.head.rec.ts = on.rec.ts = number();
	rec.head.rec.tid = on.rec.tid = (uint32_t)number();
	rec.head.tgid = on.tgid = (uint32_t)number();
	rec.head.site = (uint32_t)number();
	rec.frame.id = on.id = number();
	rec.frame.parent = number();
	rec.frame.trace_hi = rec.frame.trace_lo = 0;
	on.track = (uint32_t)number();
	rec.head.frame_bytes =
		(uint32_t)sizeof(rec.frame) + values(&sites[rec.head.site], 0, rec.words);
	if (on.track)
		append(&on);
	append(&rec);
}

static void add_end(void)
{
	struct waffle_rec_span_end rec = {.rec = {.kind = WAFFLE_REC_SPAN_END}};

	rec.rec.ts = number();
	rec.rec.tid = (uint32_t)number();
	rec.tgid = (uint32_t)number();
	rec.site = (uint32_t)number();
	rec.span_id = number();
	append(&rec);
}

static void add_return(void)
{
	static struct {
		struct waffle_rec_return head;
		uint64_t words[1024];
	} rec;

	memset(&rec.head, 0, sizeof(rec.head));
	rec.head.rec.kind = WAFFLE_REC_RETURN;
	rec.head.rec.ts = number();
	rec.head.rec.tid = (uint32_t)number();
	rec.head.tgid = (uint32_t)number();
	rec.head.site = (uint32_t)number();
	rec.head.span_id = number();
	rec.head.frame_bytes = values(&sites[rec.head.site], (unsigned)number(), rec.words);
	append(&rec);
}

static void add_task(void)
{
	struct waffle_rec_task rec = {.rec = {.kind = WAFFLE_REC_TASK},
				      .flags = WAFFLE_TASK_TRACED_FLAG};

	rec.rec.ts = rec.start_ts = number();
	rec.rec.tid = (uint32_t)number();
	rec.tgid = (uint32_t)number();
	strncpy(rec.comm, text(), sizeof(rec.comm) - 1);
	append(&rec);
}

static void add_track(void)
{
	struct waffle_rec_track rec = {.rec = {.kind = WAFFLE_REC_TRACK}};

	rec.rec.ts = number();
	rec.tgid = (uint32_t)number();
	rec.track = (uint32_t)number();
	strncpy(rec.name, text(), sizeof(rec.name) - 1);
	strncpy(rec.group, text(), sizeof(rec.group) - 1);
	append(&rec);
}

static void add_switch(void)
{
	struct waffle_rec_switch rec = {.rec = {.kind = WAFFLE_REC_SWITCH}};

	rec.rec.ts = number();
	rec.rec.cpu = (uint16_t)number();
	rec.rec.tid = (uint32_t)number();
	rec.next_tid = (uint32_t)number();
	rec.prev_state = (uint16_t)number();
	rec.wake_ts = number();
	rec.waker_tid = (uint32_t)number();
	rec.syscall = (int32_t)strtol(text(), NULL, 10);
	rec.flags = (uint8_t)((rec.rec.tid ? WAFFLE_SWITCH_PREV_TRACED : 0) |
			      (rec.next_tid ? WAFFLE_SWITCH_NEXT_TRACED : 0) |
			      (rec.wake_ts ? WAFFLE_SWITCH_WOKEN : 0));
	append(&rec);
}

static void add_state(void)
{
	struct waffle_rec_state rec = {.rec = {.kind = WAFFLE_REC_STATE}, .syscall = -1};

	rec.rec.ts = number();
	rec.rec.tid = (uint32_t)number();
	rec.tgid = (uint32_t)number();
	rec.rec.cpu = (uint16_t)number();
	rec.state = (uint16_t)number();
	rec.task_state = rec.state == WAFFLE_THREAD_BLOCKED ? 1 : 0;
	append(&rec);
}

static void add_process(void)
{
	struct store_process process = {.ppid = 1, .cmdline = "made-up"};

	process.pid = (uint32_t)number();
	check(store_writer_add_process(writer, &process, &err));
}

static const struct {
	const char *name;
	void (*add)(void);
} lines[] = {
	{"site", add_site},   {"hit", add_hit},       {"end", add_end},
	{"task", add_task},   {"track", add_track},   {"return", add_return},
	{"state", add_state}, {"switch", add_switch}, {"process", add_process},
};

static void add_line(char *line)
{
	size_t i = 0;

	line[strcspn(line, "\n")] = 0;
	for (field = field_count = 0; line && field_count < FIELDS_MAX;)
		fields[field_count++] = strsep(&line, "\t");
	while (i < sizeof(lines) / sizeof(lines[0]) && strcmp(lines[i].name, fields[0]))
		i++;
	if (i == sizeof(lines) / sizeof(lines[0])) {
		fprintf(stderr, "text_capture: what is %s?\n", fields[0]);
		exit(1);
	}
	field = 1;
	lines[i].add();
}

int main(int argc, char **argv)
{
	struct store_meta meta = {.boot_ns = 5000000000ull,
				  .real_ns = 1700000000000000000ull,
				  .hostname = "host",
				  .kernel = "6.1.0",
				  .machine = "x86_64",
				  .version = "0",
				  .command = "made-up",
				  .cpu_count = 4,
				  .sched = true};
	char *line = NULL;
	size_t room = 0;

	if (argc != 4)
		return 2;
	meta.start_ts = strtoull(argv[2], NULL, 10);
	check(store_writer_open(&writer, argv[1], &meta, &err));
	while (getline(&line, &room, stdin) > 0)
		add_line(line);
	check(store_writer_close(writer, strtoull(argv[3], NULL, 10), counts, &err));
	return 0;
}

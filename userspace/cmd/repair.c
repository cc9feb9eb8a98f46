// SPDX-License-Identifier: Apache-2.0
/* waffle-bpf repair: completes a file that was cut off. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/command_internal.h"
#include "export/repair/repair.h"
#include "store/store.h"
#include "util/input.h"
#include "util/memory_limit.h"
#include "util/privileges.h"
#include "util/terminal.h"
#include "util/units.h"

struct repair_cli {
	const char *output;
	uint64_t memory_limit;
};

static const struct option_row rows[] = {
	{"output", 'o', "OUT", "Write to another file, and leave this one as it is.",
	 .type = OPTION_PATH, .at = offsetof(struct repair_cli, output)},
	MEMORY_OPTION_ROW(struct repair_cli, memory_limit),
};

/* A format, by the first byte of its files and, if that is ambiguous, by their extension. */
static const struct repair_format {
	const char *extension;
	unsigned char first[3]; /* 0: no further ones */
	int (*scan)(struct repair_plan *plan, int fd, const char *path, struct error *err);
	const char *item, *items;
} formats[] = {
	{".json", "[ {", repair_scan_chrome, "event", "events"},
	{".pftrace", "\n", repair_scan_perfetto, "packet", "packets"},
	{".waffle", "\x89", NULL, NULL, NULL},
};

static const struct repair_format *format_find(const char *path, unsigned char first)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (dot && !strcmp(dot, formats[i].extension))
			return &formats[i];
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (first && memchr(formats[i].first, first, sizeof(formats[i].first)))
			return &formats[i];
	return NULL;
}

/* Begins the line about the file. */
static void put_name(const char *path)
{
	terminal_put(stdout, path, strlen(path));
	fputs(": ", stdout);
}

static void put_repaired(const struct repair_format *format, const struct repair_plan *plan,
			 const char *written)
{
	char items[UNITS_TEXT], bytes[UNITS_TEXT];

	put_name(written);
	printf("%s %s", units_format_count(items, plan->items),
	       units_plural(plan->items, format->item, format->items));
	if (plan->dropped)
		printf(", %s of an incomplete one were dropped",
		       units_format_bytes(bytes, plan->dropped));
	if (*plan->tail)
		fputs(", the closing bracket was added", stdout);
	putchar('\n');
}

/* Whether a program is still writing the file: it would go on to write the old one. Only the owner
 * of a file may ask, and not all file systems can tell. */
static bool is_being_written(int fd)
{
	bool written = fcntl(fd, F_SETLEASE, F_RDLCK) && errno == EAGAIN;

	fcntl(fd, F_SETLEASE, F_UNLCK);
	return written;
}

/* What may not be replaced. */
static int check_replaceable(const char *path, int fd, struct error *err)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		return error_set(err, ELOOP,
				 "%s: is a symbolic link; name the file itself, or another one "
				 "with --output",
				 path);
	if (is_being_written(fd))
		return error_set(err, EBUSY,
				 "%s: is still being written; repair it when its program has "
				 "ended, or write another file with --output",
				 path);
	return 0;
}

static int repair_viewers(const struct repair_format *format, const struct repair_cli *cli,
			  const char *path, int fd, struct error *err)
{
	const char *written = cli->output ? cli->output : path;
	struct repair_plan plan;
	int result = format->scan(&plan, fd, path, err);

	if (result)
		return result;
	if (repair_is_whole(&plan) && !cli->output) {
		char items[UNITS_TEXT];

		put_name(path);
		printf("is complete, with %s %s\n", units_format_count(items, plan.items),
		       units_plural(plan.items, format->item, format->items));
		return 0;
	}
	result = (cli->output ? 0 : check_replaceable(path, fd, err))
			 ?: repair_write(&plan, fd, path, written, err);
	if (!result)
		put_repaired(format, &plan, written);
	return result;
}

/* All commands read a .waffle file that was cut off. Only a copy of it is complete. */
static int repair_capture(const struct repair_cli *cli, const char *path, struct error *err)
{
	struct store_reader *reader = NULL;
	struct store_written written;
	char records[UNITS_TEXT], bytes[UNITS_TEXT];
	uint64_t cut = 0;
	bool unfinished;
	int result = store_reader_open(&reader, path, err);

	if (result)
		return result;
	/* A complete copy still says that its capture was cut off, but it has an end. */
	unfinished = store_reader_truncated(reader, &cut) && !store_reader_meta(reader)->end_ts;
	if (cli->output)
		result = store_reader_write(reader, cli->output, &written, err);
	store_reader_close(reader);
	if (result)
		return result;
	put_name(cli->output ? cli->output : path);
	if (cli->output)
		printf("%s records, %s", units_format_count(records, written.records),
		       units_format_bytes(bytes, written.bytes));
	else
		fputs(unfinished
			      ? "was cut off; all commands read it as it is, and --output writes a "
				"complete file"
			      : "is complete",
		      stdout);
	if (cut)
		printf("; %s at the end are unusable", units_format_bytes(bytes, cut));
	putchar('\n');
	return 0;
}

static int repair_file(const struct repair_cli *cli, const char *path, struct error *err)
{
	const struct repair_format *format;
	unsigned char first = 0;
	int fd = input_open(path), result;

	if (fd < 0)
		return error_set(err, -fd, "%s: %s", path, input_error(-fd));
	if (pread(fd, &first, 1, 0) < 0)
		first = 0;
	format = format_find(path, first);
	if (!format)
		result = error_set(
			err, EINVAL,
			"%s: is no .json, .pftrace or .waffle file; repair knows no others", path);
	else if (format->scan)
		result = repair_viewers(format, cli, path, fd, err);
	else
		result = repair_capture(cli, path, err);
	close(fd);
	return result;
}

static int repair_run(const struct command *command, int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct repair_cli cli = {0};
	int first, result = options_parse(command, argc, argv, false, &cli, &first, &err);

	if (result)
		return command_parse_failed(command, result, &err);
	privileges_keep_files();
	if (cli.memory_limit)
		memory_limit_set(cli.memory_limit);
	if (argc - first != 1) {
		error_set(&err, EINVAL, "give one .json, .pftrace or .waffle file");
		return command_fail(command, &err, EXIT_USAGE);
	}
	result = repair_file(&cli, argv[first], &err);
	return result ? command_fail(command, &err, EXIT_FAILED) : EXIT_DONE;
}

const struct command command_repair = {
	.name = "repair",
	.arguments = "FILE",
	.summary = "Complete a file that was cut off",
	.details =
		"A program that records itself into a .json or .pftrace file may be killed while "
		"it "
		"writes. The file then has all but the last second. Viewers open it, but other "
		"readers of JSON miss the closing bracket. This command drops an event or packet "
		"that is incomplete, and adds the bracket. The new file replaces the old one when "
		"it is complete.\n\nA .waffle file needs no repair: all commands read it as far as "
		"it was written. With --output a complete one is written.",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.reads_captures = true,
	.run = repair_run,
};

// SPDX-License-Identifier: Apache-2.0
#include "cmd/help_internal.h"

#include <string.h>

#define HELP_COLUMNS 90

static const char about[] =
	"waffle-bpf shows why a running program is slow. It arms the spans and events that "
	"waffle.h put into a process, and records them with what the kernel did to the process's "
	"threads. Then it shows where the time of each span went, and what caused it.";

static const char naming[] =
	"Without -o, attach and run name the file after the program and the time. Write times as "
	"10s, 500ms or 1m30s, and sizes as 64MiB or 512k.";

struct example {
	const char *command, *what;
};

static const struct example examples[] = {
	{"sudo waffle-bpf attach --pid 4711 --duration 10s",
	 "Trace a running process for ten seconds and print the report."},
	{"sudo waffle-bpf run -o job.waffle -- ./train --epochs 1",
	 "Trace a command from its first instruction."},
	{"waffle-bpf report job.waffle", "Print the report again, from the file."},
	{"waffle-bpf export job.waffle --format perfetto -o job.pftrace",
	 "Write a trace for Perfetto's user interface."},
	{"waffle-bpf report job.*.waffle",
	 "Report a job from the files of all its ranks or hosts."},
	{"waffle-bpf why job.*.waffle --span MPI_Allreduce --slowest 3",
	 "Find out which rank the others waited for, and why it was late."},
	{"waffle-bpf merge -o all.waffle job.*.waffle", "Make one file of those of a job."},
	{"waffle-bpf list ./train", "List the spans and events in a program."},
};

struct status {
	enum exit_code code;
	const char *meaning;
};

static const struct status statuses[] = {
	{EXIT_DONE, "done"},
	{EXIT_FAILED, "failed; one line on standard error says what, why, and what to do"},
	{EXIT_USAGE, "wrong usage: an unknown command or option, a bad value"},
};

struct help_variable {
	const char *name, *meaning;
};

/* Those for tests alone are in docs/internals.md. */
static const struct help_variable variables[] = {
	{"WAFFLE_FILTER", "the filter if --filter is not given"},
	{"WAFFLE_DEBUG_DIR", "the folder of debug files, instead of /usr/lib/debug"},
	{"WAFFLE_CACHE", "the folder in which root's captures keep what they found in large "
			 "files, instead of /var/cache/waffle; off: none"},
	{"DEBUGINFOD_URLS", "servers from which missing debug files are fetched, by the commands "
			    "that read captures"},
	{"WAFFLE_LIBBPF", "if set, attach and run print libbpf's messages and the verifier's"},
	{"NO_COLOR", "if not empty, no colours"},
	{"COLUMNS", "the width of view, instead of the terminal's"},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Formats an option as "-o, --output FILE". */
static void option_synopsis(char *text, size_t size, const struct option_row *row)
{
	char letter[8] = "    ";

	if (row->letter)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	snprintf(text, size, "%s--%s%s%s", letter, row->name, row->argument ? " " : "",
		 row->argument ? row->argument : "");
}

/* Number of columns of a UTF-8 text: its bytes that do not continue a character. */
static int text_columns(const char *text, size_t len)
{
	int columns = 0;

	for (size_t i = 0; i < len; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

/* Prints the words of one or more paragraphs, wrapped at HELP_COLUMNS. The cursor is at `indent` at
 * first. */
static void print_wrapped(FILE *out, const char *text, int indent)
{
	int column = indent;

	while (*text) {
		size_t len = strcspn(text, " \n");
		int width = text_columns(text, len);

		if (column > indent && column + 1 + width > HELP_COLUMNS) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent && len) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, len, out);
		column += width;
		text += len;
		if (*text == '\n') {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		}
		text += *text != '\0';
	}
	fputc('\n', out);
}

#define OPTION_HELP 2048

/* The help of an option, with that of each of its values. */
static char *option_help_text(char text[OPTION_HELP], const struct option_row *row)
{
	int len = snprintf(text, OPTION_HELP, "%s", row->help);
	const char *name, *help;

	for (size_t i = 0; row->choice && (name = row->choice(i, &help)); i++)
		len += help ? snprintf(text + len, OPTION_HELP - (size_t)len, " %s: %s", name, help)
			    : 0;
	return text;
}

static void print_option(FILE *out, const struct option_row *row, int width)
{
	char synopsis[64], text[OPTION_HELP];

	option_synopsis(synopsis, sizeof(synopsis), row);
	fprintf(out, "  %-*s  ", width, synopsis);
	print_wrapped(out, option_help_text(text, row), width + 4);
}

static const struct option_row option_help = {
	.name = "help", .letter = 'h', .help = "Show this help."};

static int option_width(const struct command *command)
{
	size_t width = 0;
	char synopsis[64];

	for (size_t i = 0; i < command->option_count; i++) {
		option_synopsis(synopsis, sizeof(synopsis), &command->options[i]);
		if (strlen(synopsis) > width)
			width = strlen(synopsis);
	}
	return (int)(width > 10 ? width : 10);
}

static void print_usage(FILE *out, const struct command *command)
{
	fprintf(out, "waffle-bpf %s [OPTION…]%s%s\n", command->name, *command->arguments ? " " : "",
		command->arguments);
}

void help_command(FILE *out, const struct command *command)
{
	int width = option_width(command);

	fprintf(out, "Usage: ");
	print_usage(out, command);
	fprintf(out, "%s.\n", command->summary);
	if (*command->details) {
		fputc('\n', out);
		print_wrapped(out, command->details, 0);
	}
	fprintf(out, "\nOptions:\n");
	for (size_t i = 0; i < command->option_count; i++)
		print_option(out, &command->options[i], width);
	print_option(out, &option_help, width);
}

void help_overview(FILE *out, const struct command_table *table)
{
	fprintf(out, "Usage: waffle-bpf COMMAND [OPTION…] [ARGUMENT…]\n\n");
	print_wrapped(out, about, 0);
	fprintf(out, "\nCommands:\n");
	for (size_t i = 0; i < table->count; i++)
		fprintf(out, "  %-8s %s\n", table->commands[i]->name, table->commands[i]->summary);
	fprintf(out, "\nExamples:\n");
	for (size_t i = 0; i < COUNT_OF(examples); i++)
		fprintf(out, "  %s\n", examples[i].command);
	fprintf(out, "\n'waffle-bpf help COMMAND' shows the options of a command.\n");
}

/* Escapes text for roff: backslashes, hyphens that mean minus signs, and lines that look like
 * requests. */
static void print_roff(FILE *out, const char *text)
{
	bool line_start = true;

	if (!*text)
		return;
	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\n')
			fputs(text[1] == '\n' ? "\n.P" : "\n", out);
		else
			fputc(*text, out);
		line_start = *text == '\n';
	}
	fputc('\n', out);
}

static void man_command(FILE *out, const struct command *command)
{
	fprintf(out, ".SS ");
	print_roff(out, command->name);
	fprintf(out, ".B waffle\\-bpf %s\n[OPTION…]%s", command->name,
		*command->arguments ? " " : "\n");
	print_roff(out, command->arguments);
	fprintf(out, ".P\n");
	print_roff(out, command->summary);
	if (*command->details)
		fprintf(out, ".P\n");
	print_roff(out, command->details);
	for (size_t i = 0; i < command->option_count; i++) {
		char synopsis[64], text[OPTION_HELP];

		option_synopsis(synopsis, sizeof(synopsis), &command->options[i]);
		fprintf(out, ".TP\n.B ");
		print_roff(out, synopsis + strspn(synopsis, " "));
		print_roff(out, option_help_text(text, &command->options[i]));
	}
}

void help_man(FILE *out, const struct command_table *table)
{
	fprintf(out, ".TH WAFFLE\\-BPF 8 \"\" \"waffle %s\" \"System Administration\"\n",
		WAFFLE_VERSION);
	fprintf(out, ".SH NAME\nwaffle\\-bpf \\- show why a running program is slow\n");
	fprintf(out, ".SH SYNOPSIS\n.B waffle\\-bpf\nCOMMAND [OPTION…] [ARGUMENT…]\n");
	fprintf(out, ".SH DESCRIPTION\n");
	print_roff(out, about);
	fprintf(out, ".P\n");
	print_roff(out, naming);
	fprintf(out, ".SH COMMANDS\n");
	for (size_t i = 0; i < table->count; i++)
		man_command(out, table->commands[i]);
	fprintf(out, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < COUNT_OF(statuses); i++) {
		fprintf(out, ".TP\n.B %d\n", statuses[i].code);
		print_roff(out, statuses[i].meaning);
	}
	fprintf(out, ".P\n.B run\nexits with the status of its command.\n.SH ENVIRONMENT\n");
	for (size_t i = 0; i < COUNT_OF(variables); i++) {
		fprintf(out, ".TP\n.B %s\n", variables[i].name);
		print_roff(out, variables[i].meaning);
	}
	fprintf(out, ".SH EXAMPLES\n");
	for (size_t i = 0; i < COUNT_OF(examples); i++) {
		fprintf(out, ".TP\n.B ");
		print_roff(out, examples[i].command);
		print_roff(out, examples[i].what);
	}
	fprintf(out, ".SH SEE ALSO\n.BR perf (1),\n.BR bpftrace (8)\n");
}

static void markdown_command(FILE *out, const struct command *command)
{
	fprintf(out, "\n## %s\n\n    ", command->name);
	print_usage(out, command);
	fprintf(out, "\n%s.\n", command->summary);
	if (*command->details)
		fprintf(out, "\n%s\n", command->details);
	if (command->option_count)
		fprintf(out, "\n| option | |\n|---|---|\n");
	for (size_t i = 0; i < command->option_count; i++) {
		char synopsis[64], text[OPTION_HELP];

		option_synopsis(synopsis, sizeof(synopsis), &command->options[i]);
		fprintf(out, "| `%s` | %s |\n", synopsis + strspn(synopsis, " "),
			option_help_text(text, &command->options[i]));
	}
}

void help_markdown(FILE *out, const struct command_table *table)
{
	fprintf(out,
		"<!-- Made by `make docs` from the tables in userspace/cmd; edit those. -->\n");
	fprintf(out, "# Commands\n\n%s\n\n%s\n", about, naming);
	for (size_t i = 0; i < table->count; i++)
		markdown_command(out, table->commands[i]);
	fprintf(out, "\n## Exit status\n\n");
	for (size_t i = 0; i < COUNT_OF(statuses); i++)
		fprintf(out, "- %d: %s\n", statuses[i].code, statuses[i].meaning);
	fprintf(out, "\n`run` exits with the status of its command.\n\n## Environment\n\n");
	for (size_t i = 0; i < COUNT_OF(variables); i++)
		fprintf(out, "- `%s`: %s\n", variables[i].name, variables[i].meaning);
	fprintf(out, "\n## Examples\n");
	for (size_t i = 0; i < COUNT_OF(examples); i++)
		fprintf(out, "\n%s\n\n    %s\n", examples[i].what, examples[i].command);
}

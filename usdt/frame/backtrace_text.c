// SPDX-License-Identifier: Apache-2.0
/* Backtraces as text. Without stdio, which is not async-signal-safe. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/frame/backtrace.h"
#include "usdt/say/standard_error.h"

/* A text of limited size. What does not fit is left out. */
struct trace_text {
	char *at;
	size_t len, size;
};

static void text_put(struct trace_text *text, const char *part)
{
	while (*part && text->len < text->size) {
		/* No name breaks the line. */
		text->at[text->len++] = (unsigned char)*part < ' ' ? ' ' : *part;
		part++;
	}
}

static void text_put_number(struct trace_text *text, unsigned long long number, unsigned base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = "0123456789abcdef"[number % base];
	while (number /= base);
	text_put(text, digits + at);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "main+0x1d", or "app+0x11d0" if the function is not known. */
static void text_put_code(struct trace_text *text, const waffle_entry_t *entry)
{
	const char *file = entry->file ? name_of(entry->file) : NULL;

	if (entry->name || file) {
		text_put(text, entry->name ? entry->name : file);
		text_put(text, "+");
	}
	text_put(text, "0x");
	text_put_number(text, entry->offset, 16);
}

/* Names that are made at run time may have neither file nor line. */
static void text_put_place(struct trace_text *text, const char *between,
			   const waffle_entry_t *entry, const char *file)
{
	if (!*file)
		return;
	text_put(text, between);
	text_put(text, file);
	if (!entry->line)
		return;
	text_put(text, ":");
	text_put_number(text, entry->line, 10);
}

/* ---- lines ---- */

struct writer {
	int fd, number, error;
};

static int entry_write(const waffle_entry_t *entry, void *arg)
{
	struct writer *writer = arg;
	char line[512];
	struct trace_text text = {line, 0, sizeof(line) - 1};

	text_put(&text, "#");
	text_put_number(&text, (unsigned)writer->number++, 10);
	text_put(&text, "  ");
	if (entry->kind == WAFFLE_ENTRY_MACHINE) {
		text_put_code(&text, entry);
		if (entry->name && entry->file) {
			text_put(&text, " in ");
			text_put(&text, name_of(entry->file));
		}
		text_put(&text, " (machine frame)");
	} else {
		bool span = entry->kind == WAFFLE_ENTRY_SPAN;

		text_put(&text, span ? "span \"" : "");
		text_put(&text, entry->name);
		text_put(&text, span ? "\"" : "");
		text_put_place(&text, " at ", entry, entry->file);
	}
	text_put(&text, entry->carried ? " (carried)" : "");
	line[text.len++] = '\n';
	if (write(writer->fd, line, text.len) < 0)
		writer->error = -errno;
	return writer->error;
}

static int cut_write(int fd)
{
	static const char text[] = "(the stack was not followed further)\n";

	return write(fd, text, sizeof(text) - 1) < 0 ? -errno : 0;
}

int backtrace_write(const struct backtrace *trace, int fd)
{
	struct writer writer = {.fd = fd};
	int code = errno, count = backtrace_walk(trace, entry_write, &writer);

	if (trace->machine_cut && !writer.error)
		writer.error = cut_write(fd);
	errno = code;
	return writer.error ?: count;
}

static const char *fault_name(int signo)
{
	static const struct {
		int signo;
		const char *name;
	} names[] = {
		{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
		{SIGFPE, "SIGFPE"},   {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].signo == signo)
			return names[i].name;
	return "another";
}

/* The stack of the handler may be small, so nothing large is on it. */
void backtrace_tell(int signo, const void *context)
{
	static struct backtrace trace;
	static char line[128];
	static bool told;
	struct trace_text text = {line, 0, sizeof(line)};

	if (waffle_mode_here_() != WAFFLE_MODE_FULL || !standard_error_is_there() ||
	    __atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		return;
	text_put(&text, "waffle: signal ");
	text_put_number(&text, (unsigned)signo, 10);
	text_put(&text, " (");
	text_put(&text, fault_name(signo));
	text_put(&text, ") in thread ");
	text_put_number(&text, (unsigned long)syscall(SYS_gettid), 10);
	text_put(&text, "; frames and spans, innermost first:");
	text.len -= text.len == text.size;
	line[text.len++] = '\n';
	if (write(STDERR_FILENO, line, text.len) < 0)
		return;
	backtrace_take(&trace, 0, context);
	backtrace_write(&trace, STDERR_FILENO);
}

/* ---- one line ---- */

struct liner {
	struct trace_text text;
	size_t keep; /* the length up to the last entry that is no machine frame */
	bool carried;
};

static int entry_join(const waffle_entry_t *entry, void *arg)
{
	struct liner *liner = arg;
	struct trace_text *text = &liner->text;

	/* What is outside of all frames of this thread matters less than where its context is from.
	 */
	if (entry->carried && !liner->carried && liner->keep)
		text->len = liner->keep;
	liner->carried = entry->carried;
	text_put(text, text->len ? " < " : "");
	if (entry->kind == WAFFLE_ENTRY_MACHINE) {
		text_put_code(text, entry);
		text_put(text, " (machine frame)");
	} else {
		bool span = entry->kind == WAFFLE_ENTRY_SPAN;

		text_put(text, span ? "span \"" : "");
		text_put(text, entry->name);
		text_put(text, span ? "\"" : "");
		text_put_place(text, " ", entry, name_of(entry->file));
		liner->keep = text->len;
	}
	return text->len == text->size;
}

size_t backtrace_line(const struct backtrace *trace, char *text, size_t size)
{
	struct liner liner = {.text = {text, 0, size}};

	backtrace_walk(trace, entry_join, &liner);
	return liner.keep ?: liner.text.len;
}

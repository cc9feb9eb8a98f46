// SPDX-License-Identifier: Apache-2.0
#include "usdt/frame/mode.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "usdt/frame/backtrace.h"
#include "waffle/frame.h"

static const struct mode_row {
	const char *name;
	waffle_mode_t mode;
} modes[] = {
	{"off", WAFFLE_MODE_OFF},
	{"fast", WAFFLE_MODE_FAST},
	{"full", WAFFLE_MODE_FULL},
};

/* ---- what the macros call; they test the mode ---- */

static __attribute__((noinline)) size_t line_make(char *text, size_t size)
{
	struct backtrace trace;

	backtrace_take(&trace, backtrace_caller(), NULL);
	return backtrace_line(&trace, text, size);
}

static __attribute__((noinline)) int entries_list(int (*each)(const waffle_entry_t *, void *),
						  void *arg)
{
	struct backtrace trace;

	backtrace_take(&trace, backtrace_caller(), NULL);
	return backtrace_walk(&trace, each, arg);
}

static __attribute__((noinline)) int lines_write(int fd)
{
	struct backtrace trace;

	backtrace_take(&trace, backtrace_caller(), NULL);
	return backtrace_write(&trace, fd);
}

static struct waffle_full_ full = {
	.opened_ = backtrace_span_opened,
	.extracted_ = backtrace_extracted,
	.line_ = line_make,
	.backtrace_ = entries_list,
	.backtrace_fd_ = lines_write,
};

/* ---- the mode ---- */

static unsigned mode_of_process(void)
{
	return __atomic_load_n(&waffle_process_get_()->mode_, __ATOMIC_RELAXED);
}

bool mode_is_full(void)
{
	return mode_of_process() == WAFFLE_MODE_FULL;
}

int mode_load(void (*changed)(void), struct error *err)
{
	struct waffle_process_ *process = waffle_process_get_();
	const char *text = getauxval(AT_SECURE) ? NULL : getenv("WAFFLE_MODE");

	/* Another copy of libwaffle may have been first. */
	if (!process->full_) {
		machine_prime();
		full.mode_changed_ = changed;
		__atomic_store_n(&process->full_, &full, __ATOMIC_RELEASE);
	}
	if (!text || !*text)
		return 0;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(text, modes[i].name)) {
			waffle_mode_set(modes[i].mode);
			return 0;
		}
	return error_set(err, EINVAL, "WAFFLE_MODE: '%.32s': expected off, fast or full", text);
}

// SPDX-License-Identifier: Apache-2.0
#include "usdt/mode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "waffle/mode.h"

static const struct mode_row {
	const char *name;
	waffle_mode_t mode;
} modes[] = {
	{"off", WAFFLE_MODE_OFF},
	{"fast", WAFFLE_MODE_FAST},
	{"full", WAFFLE_MODE_FULL},
};

static struct waffle_full_ full;

bool mode_arms(void)
{
	return waffle_mode_process_() != WAFFLE_MODE_OFF;
}

bool mode_is_full(void)
{
	return waffle_mode_process_() == WAFFLE_MODE_FULL;
}

int mode_load(void (*changed)(void), struct error *err)
{
	struct waffle_process_ *process = waffle_process_get_();
	const char *text = getauxval(AT_SECURE) ? NULL : getenv("WAFFLE_MODE");

	/* Another copy of libwaffle may have been first. */
	if (!process->full_) {
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

// SPDX-License-Identifier: Apache-2.0
/* Reads the settings of the stand-ins from the environment. Linked into each of them, so nothing
 * here is exported. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fields.h"
#include "simulation.h"

static const struct sim_observer *nobody;
const struct sim_observer **sim_observer_at = &nobody;
enum sim_domain sim_domain;

static struct sim_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

uint64_t sim_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static _Noreturn void config_wrong(const char *name, const char *text, const char *form)
{
	fprintf(stderr, "simulated CUDA: %s=%s makes no sense: it is %s\n", name, text, form);
	exit(2);
}

static double number_get(const char *name, double otherwise)
{
	const char *text = getenv(name);
	char *end;
	double value;

	if (!text || !*text)
		return otherwise;
	value = strtod(text, &end);
	if (*end || !(value >= 0 && value <= 1e9))
		config_wrong(name, text, "a number from 0 on");
	return value;
}

static void slow_get(const char *name, struct sim_slow *slow)
{
	const char *text = getenv(name);
	double fields[SIM_FIELDS_MAX] = {[2] = 1, [3] = 1e15};

	if (!text || !*text)
		return;
	if (sim_fields(text, fields) < 2 || !sim_is_whole(fields[0]) || !sim_is_whole(fields[2]) ||
	    !sim_is_whole(fields[3]) || fields[2] < 1 || fields[3] < fields[2])
		config_wrong(name, text, "RANK:FACTOR[:FROM[:TO]], counted from 1");
	*slow = (struct sim_slow){.on = fields[0] == config.rank,
				  .factor = fields[1],
				  .from = (uint64_t)fields[2],
				  .to = (uint64_t)fields[3]};
}

/* Whether any loaded stand-in has that function. */
static bool function_is_known(const char *function)
{
	static const struct {
		const char *prefix, *libraries[2];
	} owners[] = {
		{"cuda", {"libcudart.so.12", "libcudart.so.13"}},
		{"cu", {"libcuda.so.1"}},
		{"hip", {"libamdhip64.so.6", "libamdhip64.so.7"}},
		{"nccl", {"libnccl.so.2", "librccl.so.1"}},
		{"pnccl", {"libnccl.so.2", "librccl.so.1"}},
	};
	bool loaded = false, known = false;
	unsigned i = 0;

	while (strncmp(function, owners[i].prefix, strlen(owners[i].prefix)) != 0)
		if (++i == sizeof(owners) / sizeof(owners[0]))
			return false;
	for (unsigned k = 0; k < 2 && owners[i].libraries[k]; k++) {
		void *library = dlopen(owners[i].libraries[k], RTLD_LAZY | RTLD_NOLOAD);

		if (!library)
			continue;
		loaded = true;
		known = known || dlsym(library, function);
		dlclose(library);
	}
	return known || !loaded;
}

static void fails_get(const char *name)
{
	const char *text = getenv(name), *at = text;

	while (at && *at) {
		struct sim_fail *fail = &config.fails[config.fail_count];
		int length = 0;

		if (config.fail_count == SIM_FAILS_MAX ||
		    sscanf(at, "%63[A-Za-z0-9_]:%lu:%d%n", fail->function, &fail->nth, &fail->code,
			   &length) != 3 ||
		    (at[length] && at[length] != ',') || !fail->nth || fail->nth > INT64_MAX ||
		    fail->code < 1)
			config_wrong(name, text,
				     "FUNCTION:N:CODE,… with at most 8 of them, N and CODE from 1");
		if (!function_is_known(fail->function))
			config_wrong(name, text,
				     "FUNCTION:N:CODE,… with functions that the stand-ins have");
		config.fail_count++;
		at += length + (at[length] == ',');
	}
}

static void sync_get(const char *name)
{
	static const char *const names[] = {"block", "spin", "yield"};
	const char *text = getenv(name);

	if (!text || !*text)
		return;
	for (unsigned i = 0; i < 3; i++) {
		if (!strcmp(text, names[i])) {
			config.sync = (enum sim_sync)i;
			return;
		}
	}
	config_wrong(name, text, "block, spin or yield");
}

static void config_read(void)
{
	config.rank = (int)number_get("RANK", 0);
	config.devices = (int)number_get("WAFFLE_SIM_DEVICES", 8);
	config.init_ns = (uint64_t)(1e6 * number_get("WAFFLE_SIM_INIT_MS", 100));
	config.kernel_ns = (uint64_t)(1e3 * number_get("WAFFLE_SIM_KERNEL_US", 20));
	config.launch_ns = (uint64_t)number_get("WAFFLE_SIM_LAUNCH_NS", 2000);
	config.copy_latency_ns = (uint64_t)(1e3 * number_get("WAFFLE_SIM_COPY_US", 5));
	config.copy_bytes_per_ns = number_get("WAFFLE_SIM_COPY_GBPS", 12);
	config.collective_latency_ns = (uint64_t)(1e3 * number_get("WAFFLE_SIM_COLLECTIVE_US", 20));
	config.collective_bytes_per_ns = number_get("WAFFLE_SIM_COLLECTIVE_GBPS", 40);
	sync_get("WAFFLE_SIM_SYNC");
	slow_get("WAFFLE_SIM_SLOW_KERNEL", &config.slow_kernel);
	slow_get("WAFFLE_SIM_SLOW_COPY", &config.slow_copy);
	fails_get("WAFFLE_SIM_FAIL");
}

const struct sim_config *sim_config(void)
{
	pthread_once(&config_once, config_read);
	return &config;
}

double sim_slow_factor(const struct sim_slow *slow, uint64_t nth)
{
	return slow->on && nth >= slow->from && nth <= slow->to ? slow->factor : 1;
}

int sim_call_error(const char *function, uint64_t *calls)
{
	/* pncclX is the same as ncclX. */
	const char *name = function + (*function == 'p');
	uint64_t nth = __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < config.fail_count; i++) {
		const struct sim_fail *fail = &config.fails[i];

		if (fail->nth == nth &&
		    (!strcmp(fail->function, function) || !strcmp(fail->function, name)))
			return fail->code;
	}
	return 0;
}

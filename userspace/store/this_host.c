// SPDX-License-Identifier: Apache-2.0
#include "store/this_host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"

static void boot_id_read(char *text, size_t size)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(text, (int)size, file))
		*text = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (file)
		fclose(file);
}

struct store_meta this_host_meta(struct this_host *host)
{
	*host = (struct this_host){0};
	uname(&host->name);
	gethostname(host->hostname, sizeof(host->hostname) - 1);
	boot_id_read(host->boot_id, sizeof(host->boot_id));
	/* The three clocks are read as close together as possible. */
	return (struct store_meta){
		.start_ts = clock_monotonic_ns(),
		.boot_ns = clock_ns(CLOCK_BOOTTIME),
		.real_ns = clock_ns(CLOCK_REALTIME),
		.hostname = host->hostname,
		.kernel = host->name.release,
		.machine = host->name.machine,
		.version = WAFFLE_VERSION,
		.boot_id = host->boot_id,
	};
}

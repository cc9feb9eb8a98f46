// SPDX-License-Identifier: Apache-2.0
/* Spends a second in bpf() system calls: each copies a large value into an array. Meanwhile the
 * kernel skips the BPF programs of perf events on this CPU, for instance in its interrupts. */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define VALUE_BYTES (8u << 20)

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
			       .key_size = 4,
			       .value_size = VALUE_BYTES,
			       .max_entries = 1};
	long map = syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	char *value = calloc(1, VALUE_BYTES);
	double end = seconds() + 1;
	__u32 key = 0;

	if (map < 0 || !value) {
		perror("bpf");
		return 1;
	}
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (__u32)map;
	attr.key = (__u64)(unsigned long)&key;
	attr.value = (__u64)(unsigned long)value;
	while (seconds() < end)
		if (syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)))
			return 1;
	return 0;
}

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Names of the kernel's functions. A program that userspace runs takes 1 µs for a name. Reading all
 * of /proc/kallsyms takes 50 ms of CPU time. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/*
 * Userspace sets the address, runs the program and reads the text: "vfs_read+0x12/0x340" or
 * "ext4_map_blocks+0x5/0x620 [ext4]". Longer texts are cut (names have up to 127 bytes up to Linux
 * 6.0, 511 since). An address without a symbol is "0xffffffff81000000".
 */
__u64 symbol_address;
char symbol_text[256];

SEC("syscall")
int symbolize(void *ctx)
{
	static const char format[] = "%pS";
	__u64 address = symbol_address;

	bpf_snprintf(symbol_text, sizeof(symbol_text), format, &address, sizeof(address));
	return 0;
}

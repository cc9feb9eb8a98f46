// SPDX-License-Identifier: Apache-2.0
#include "util/privileges.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1ull << (capability))

#define OF_FILES                                                                                   \
	(BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN) | BIT(CAP_FOWNER))

/* BPF programs are loaded and attached throughout a capture, when a library is opened or a process
 * forks. Worker processes drop more privileges themselves. */
static const uint64_t of_tracing = BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) |
				   BIT(CAP_KILL) | BIT(CAP_CHECKPOINT_RESTORE) |
				   BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_RESOURCE) | BIT(CAP_IPC_LOCK) |
				   BIT(CAP_SYS_NICE) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
				   BIT(CAP_SETPCAP) | BIT(CAP_SYS_CHROOT) | OF_FILES;

static void keep(uint64_t wanted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capget, &header, sets))
		return;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(wanted >> 32 * i);

		sets[i].effective &= mask;
		sets[i].permitted &= mask;
		sets[i].inheritable &= mask;
	}
	syscall(SYS_capset, &header, sets);
}

void privileges_keep_tracing(void)
{
	keep(of_tracing);
}

void privileges_keep_files(void)
{
	keep(OF_FILES);
}

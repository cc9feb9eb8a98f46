// SPDX-License-Identifier: Apache-2.0
#include "util/syscall_names.h"

#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/text.h"

#define CALLS_MAX 512 /* Linux 6.15 has numbers below 468 */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *name;
	uint32_t arch;
} machines[] = {{"x86_64", SCMP_ARCH_X86_64}, {"aarch64", SCMP_ARCH_AARCH64}};

/* What libseccomp 2.5.4 lacks (Linux 6.15, scripts/syscall.tbl). Numbers from 424 on are the same
 * on all machines. */
static const char *newer_name(uint32_t arch, int number)
{
	static const struct {
		int number;
		const char *name;
	} rows[] = {
		{457, "statmount"},         {458, "listmount"},        {459, "lsm_get_self_attr"},
		{460, "lsm_set_self_attr"}, {461, "lsm_list_modules"}, {462, "mseal"},
		{463, "setxattrat"},        {464, "getxattrat"},       {465, "listxattrat"},
		{466, "removexattrat"},     {467, "open_tree_attr"},
	};

	if (number == 335 && arch == SCMP_ARCH_X86_64)
		return "uretprobe";
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].number == number)
			return rows[i].name;
	return NULL;
}

const char *syscall_name(const char *machine, int number)
{
	static struct {
		const char *name; /* libseccomp's, never freed */
		bool asked;
	} known[COUNT(machines)][CALLS_MAX];

	for (size_t i = 0; number >= 0 && number < CALLS_MAX && i < COUNT(machines); i++) {
		if (strcmp(machines[i].name, machine) != 0)
			continue;
		if (!known[i][number].asked) {
			known[i][number].asked = true;
			known[i][number].name =
				seccomp_syscall_resolve_num_arch(machines[i].arch, number)
					?: newer_name(machines[i].arch, number);
		}
		return known[i][number].name;
	}
	return NULL;
}

bool syscall_name_is_epoll(const char *name)
{
	return name && text_begins(name, "epoll_");
}

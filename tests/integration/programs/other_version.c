// SPDX-License-Identifier: Apache-2.0
/* An event of headers that are older than libwaffle: neither the notes nor the struct that sites
 * share have its number. */
#include <waffle/abi.h>

#undef WAFFLE_SITE_VERSION
#define WAFFLE_SITE_VERSION 1
#define waffle_program_6_ waffle_program_1_
#define waffle_process_6_ waffle_process_1_
#include <waffle.h>

int main(void)
{
	WAFFLE_EVENT("old");
	return 0;
}

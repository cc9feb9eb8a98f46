// SPDX-License-Identifier: Apache-2.0
/* Fields of many types, in a struct that programs/parts_other.c has as well. */
#include "parts.h"
#include "kept.h"

KEPT int look(part_t *part)
{
	__asm__ volatile("" ::"r"(part));
	return part->color;
}

int main(void)
{
	char path[8] = "/a/path";
	struct inner other = {-5, {.text = "union"}, "other"};
	part_t last = {.magic = 42, .in.name = "last"};
	/* Texts that fill their arrays without a NUL, so that a read beyond their end shows in the
	 * value. */
	part_t part = {43,
		       {-3, {.number = 99}, "twelve bytes"},
		       &other,
		       path,
		       RED,
		       5,
		       &last,
		       {"rows", "two"},
		       {"word", "s"},
		       "bytes",
		       {1, 2, 3},
		       true};

	return look(&part) + look_other(&part) + 2;
}

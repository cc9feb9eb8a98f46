/* SPDX-License-Identifier: Apache-2.0 */
/* The C program of the site matrix: every shape, and main. Comments as in inline.h. */
// clang-format off
#include "shapes.h"

/* IN constructed */
static __attribute__((constructor)) void constructed(void)
{
	WAFFLE_EVENT("constructor"); /* SITE event "constructor" */
}

/* IN destructed */
static __attribute__((destructor)) void destructed(void)
{
	WAFFLE_SPAN("destructor"); /* SITE span "destructor" */
	sink = sink + 1;
}

/* IN main */
int main(int argc, char **argv)
{
	WAFFLE_SPAN("main", KV_STR("program", argv[0])); /* SITE span "main" "program":str */
	return shapes(argc) < 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "symbolize/stack_java.h"

#include <string.h>

/* The packages of the JDK:
 * https://docs.oracle.com/en/java/javase/21/docs/api/allpackages-index.html and those that are not
 * documented. */
static const char *const own_packages[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

static bool is_javas_own(const char *method)
{
	for (size_t i = 0; i < sizeof(own_packages) / sizeof(own_packages[0]); i++)
		if (!strncmp(method, own_packages[i], strlen(own_packages[i])))
			return true;
	return false;
}

/* The length of the first two parts of a method's package: a class and a method come after it. 0:
 * its class is in no package. */
static size_t packages_length(const char *method)
{
	size_t ends[4], count = 0;

	for (size_t i = 0; method[i] && count < 4; i++)
		if (method[i] == '.')
			ends[count++] = i;
	/* The last two dots are before the class and the method. */
	return count < 2 ? 0 : ends[count == 4 ? 1 : count - 2];
}

static bool is_of_same_packages(const char *a, const char *b)
{
	size_t len = packages_length(a);

	return len == packages_length(b) && !strncmp(a, b, len);
}

static void frame_take(const struct stack_frame *frame, void *arg)
{
	struct stack_java *java = arg;

	if (java->caller || frame->cut || !stack_frame_is_java_method(frame) ||
	    is_javas_own(frame->function))
		return;
	if (!java->inner)
		java->inner = frame->function;
	else if (is_of_same_packages(frame->function, java->inner))
		java->entry = frame->function;
	else
		java->caller = frame->function;
}

bool stack_java_find(struct stack_names *names, uint32_t stack, uint64_t ts,
		     struct stack_java *java)
{
	*java = (struct stack_java){0};
	stack_names_each(names, stack, ts, frame_take, java);
	/* Without a caller, the last one is only where the thread began. */
	if (!java->caller || (java->entry && !strcmp(java->entry, java->inner)))
		java->entry = NULL;
	return java->inner;
}

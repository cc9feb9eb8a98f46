// SPDX-License-Identifier: Apache-2.0
/* A library with a site and data around its semaphore, of two forms: -DMORE has other offsets. */
#include <waffle.h>

void library_work(int i);
int library_changed(void);

static volatile unsigned char data[65536] = {1};

void library_work(int i)
{
#ifdef MORE
	WAFFLE_EVENT("more", KV_I64("i", i));
	WAFFLE_EVENT("and more", KV_I64("i", i + data[1]));
#endif
	WAFFLE_EVENT("work", KV_I64("i", i + data[2]));
}

/* Bytes that differ from what they were compiled as. */
int library_changed(void)
{
	int changed = 0;

	for (unsigned i = 0; i < sizeof(data); i++)
		changed += data[i] != (i == 0);
	return changed;
}

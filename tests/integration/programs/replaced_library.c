// SPDX-License-Identifier: Apache-2.0
/* A library with sites and data, of two forms. The semaphores of -DMORE are where the other form
 * has its data. */
#include <waffle.h>

void library_work(int i);
int library_changed(void);

/* The code is followed by the data, so both forms need much of it. */
#ifdef MORE
#define DATA_BYTES 16384
__asm__(".pushsection .text,\"ax\"\n.skip 65536\n.popsection\n");
#else
#define DATA_BYTES 65536
__asm__(".pushsection .text,\"ax\"\n.skip 65536 + 4096\n.popsection\n");
#endif

static volatile unsigned char data[DATA_BYTES] = {1};

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

// SPDX-License-Identifier: Apache-2.0
/* Functions with parameters and fields of all kinds, each called a few times with other values. */
#include <stdbool.h>
#include <stdio.h>

enum color { RED, GREEN, BLUE };
enum side { BELOW = -2, ABOVE = 2 };
enum mask { LOWEST = 1, HIGHEST = 0xc0000000 };

struct inner {
	unsigned short port;
	char tag[8]; /* without a NUL if it is full */
	double weight;
};

struct outer {
	int id;
	const char *path;
	struct inner inner;
	struct inner *peer;
	enum color color;
	enum side side;
	enum mask mask;
	bool ok;
	void (*done)(void);
	signed char low;
	unsigned char high;
};

int numbers(int i, unsigned u, long l, char c, bool b, const char *s, double skipped, const void *p,
	    short sh, unsigned char uc);
long fields(struct outer *outer, char text[16]);
void finished(void);

__attribute__((noinline)) int numbers(int i, unsigned u, long l, char c, bool b, const char *s,
				      double skipped, const void *p, short sh, unsigned char uc)
{
	__asm__ volatile("" ::"r"(u), "r"(l), "r"((int)c), "r"((int)b), "r"(s), "x"(skipped),
			 "r"(p), "r"((int)sh), "r"((int)uc)
			 : "memory");
	return i * 2;
}

__attribute__((noinline)) long fields(struct outer *outer, char text[16])
{
	__asm__ volatile("" ::"r"(text) : "memory");
	return ++outer->id;
}

void finished(void)
{
	__asm__ volatile("");
}

int main(void)
{
	struct inner peer = {443, "peer", 2.5};
	struct outer outer = {
		.id = 1,
		.path = "/x",
		.inner = {80, "full tag", 1.5},
		.peer = &peer,
		.color = BLUE,
		.side = BELOW,
		.mask = HIGHEST,
		.ok = true,
		.done = finished,
		.low = -3,
		.high = 200,
	};
	char line[16], text[16] = "hello";

	puts("ready");
	fflush(stdout);
	/* From here on the pages of the arguments are in memory. */
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = -2; i < 3; i++) {
		numbers(i, 4000000000u, -5000000000l, (char)('c' + i), i & 1,
			i % 2 ? "odd" : "even", 1.5, &peer, (short)(i - 7),
			(unsigned char)(200 + i));
		outer.inner.weight += 1;
		fields(&outer, text);
	}
	puts("done");
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin); /* until it has been looked at */
}

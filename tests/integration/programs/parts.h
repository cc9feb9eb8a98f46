/* SPDX-License-Identifier: Apache-2.0 */
/* Types that programs/parts.c and parts_other.c share, so that dwz moves them to a common file. */
#ifndef PROGRAMS_PARTS_H
#define PROGRAMS_PARTS_H

#include <stdbool.h>

enum color { RED = -1, GREEN = 7 };
typedef char word_t[4];

struct inner {
	short level;
	union {
		int number;
		char text[6];
	};
	char name[12];
};

typedef struct part {
	long magic;
	struct inner in;
	struct inner *other;
	const char *path;
	enum color color;
	unsigned bits : 3;
	struct part *next;
	char rows[2][4];
	word_t words[2];
	unsigned char bytes[300];
	int numbers[3];
	bool ready;
	char open[];
} part_t;

int look(part_t *part);
int look_other(part_t *part);

#endif

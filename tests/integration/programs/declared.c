// SPDX-License-Identifier: Apache-2.0
/* A field of a struct that this file only declares. */
struct far;
struct near {
	int x;
	struct far *far;
};

int look(struct near *near);

__attribute__((noinline)) int look(struct near *near)
{
	__asm__ volatile("" ::"r"(near));
	return near->x;
}

int main(void)
{
	struct near near = {.far = 0};

	return look(&near);
}

// SPDX-License-Identifier: Apache-2.0
/* A library that knows nothing of waffle; its functions are probed. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct called_dim {
	unsigned x, y, z;
};

struct called_peer {
	unsigned short port;
	char tag[8];
};
struct called_request {
	int id;
	const char *path;
	struct called_peer *peer;
	struct called_peer inner;
};

long called_add(int a, long b);
void called_submit(long id, const char *name);
void called_complete(int status, long id);
int called_serve(struct called_request *request);
unsigned long called_text(const char *text, unsigned short n);
int called_make(void **out, size_t bytes);
int called_nest(int depth);
int called_launch(const void *kernel, struct called_dim grid, struct called_dim block, void *args,
		  size_t shared, void *stream);
int called_handle(void **handle, const void *host);
int called_name(void **handle, void *module, const char *name);

__attribute__((noinline)) long called_add(int a, long b)
{
	return a + b;
}

__attribute__((noinline)) void called_submit(long id, const char *name)
{
	__asm__ volatile("" : : "r"(id), "r"(name) : "memory");
}

__attribute__((noinline)) void called_complete(int status, long id)
{
	__asm__ volatile("" : : "r"(id), "r"(status) : "memory");
}

__attribute__((noinline)) int called_serve(struct called_request *request)
{
	request->inner.port++; /* read at the return */
	return request->id * 2;
}

/* Does not read it, so it may be an invalid address. */
__attribute__((noinline)) unsigned long called_text(const char *text, unsigned short n)
{
	return (unsigned long)(size_t)text % 7 + n;
}

__attribute__((noinline)) int called_make(void **out, size_t bytes)
{
	if (bytes > 1u << 30)
		return -12;
	*out = malloc(bytes);
	free(*out); /* only its address is wanted */
	return 0;
}

__attribute__((noinline)) int called_nest(int depth)
{
	struct timespec wait = {0, 100000};

	nanosleep(&wait, NULL);
	return depth > 0 ? called_nest(depth - 1) + 1 : 0;
}

__attribute__((noinline)) int called_launch(const void *kernel, struct called_dim grid,
					    struct called_dim block, void *args, size_t shared,
					    void *stream)
{
	__asm__ volatile("" : : "r"(kernel), "r"(args), "r"(stream) : "memory");
	return (int)(grid.x + block.z + shared);
}

__attribute__((noinline)) int called_handle(void **handle, const void *host)
{
	*handle = (void *)((size_t)host ^ 0x5a5a00000000);
	return 0;
}

__attribute__((noinline)) int called_name(void **handle, void *module, const char *name)
{
	*handle = (void *)((size_t)module + strlen(name));
	return 0;
}

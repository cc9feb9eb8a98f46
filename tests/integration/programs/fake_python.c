// SPDX-License-Identifier: Apache-2.0
/*
 * Is no Python, but has in its memory what CPython 3.12 has of threads. Each of its made-up threads
 * claims a name:
 *
 *	its own second thread, which is true
 *	its main thread, process 1, and the process of the argument
 *	one whose frames go round in a circle; and so do all thread states
 *
 * usage: fake-python PID
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t _PyRuntime[64];
uint64_t Py_Version = 0x030c01f0;

static unsigned char *memory(void)
{
	return calloc(1, 1024);
}

static void put(unsigned char *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void put_pointer(unsigned char *at, const void *value)
{
	put(at, (uint64_t)(uintptr_t)value);
}

static unsigned char *text(const char *from)
{
	unsigned char *object = memory();

	put(object + 16, strlen(from));
	put(object + 32, 1 << 2 | 1 << 5 | 1 << 6);
	strcpy((char *)object + 40, from);
	return object;
}

static unsigned char *number(uint32_t value)
{
	unsigned char *object = memory();

	put(object + 16, 1 << 3);
	put(object + 24, value);
	return object;
}

static unsigned char *thread_object(uint32_t tid, const char *name)
{
	unsigned char *object = memory() + 64, *dict = memory(), *keys = memory(), *type = memory();

	put(type + 168, 1 << 4);
	put_pointer(object + 8, type);
	put_pointer(object - 24, dict);
	put_pointer(dict + 32, keys);
	keys[9] = 3;
	keys[10] = 1;
	put(keys + 24, 2);
	put_pointer(keys + 40, text("_name"));
	put_pointer(keys + 48, text(name));
	put_pointer(keys + 56, text("_native_id"));
	put_pointer(keys + 64, number(tid));
	return object;
}

static unsigned char *thread_state(uint32_t tid, const char *name, int circle)
{
	unsigned char *state = memory(), *cframe = memory(), *frame = memory(), *code = memory();

	put_pointer(state + 56, cframe);
	put_pointer(cframe, frame);
	put_pointer(frame, code);
	put_pointer(frame + 8, circle ? frame : NULL);
	put_pointer(frame + 72, thread_object(tid, name));
	put_pointer(code + 112, text("/usr/lib/python3.12/threading.py"));
	put_pointer(code + 120, text("_bootstrap"));
	return state;
}

static void *thread(void *arg)
{
	unsigned char *interpreter = memory(),
		      *states[] = {
			      thread_state((uint32_t)syscall(SYS_gettid), "\033[31mfake", 0),
			      thread_state((uint32_t)getpid(), "main", 0),
			      thread_state(1, "init", 0),
			      thread_state((uint32_t)atoi(arg), "other", 0),
			      thread_state((uint32_t)syscall(SYS_gettid), "circle", 1),
		      };
	size_t count = sizeof(states) / sizeof(states[0]);

	for (size_t i = 0; i < count; i++)
		put_pointer(states[i] + 8, states[(i + 1) % count]);
	put_pointer(interpreter + 72, states[0]);
	put_pointer((unsigned char *)_PyRuntime + 48, interpreter);
	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	getchar();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t made;

	if (argc < 2 || pthread_create(&made, NULL, thread, argv[1]))
		return 1;
	pthread_join(made, NULL);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Functions that are left by an exception, and a thread that is cancelled while it waits. What it
// prints shows whether everything was cleaned up.
#include <cstdio>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile bool waits;

extern "C" __attribute__((noinline)) int thrower(int n)
{
	if (n % 2)
		throw n;
	return n + 1;
}

extern "C" __attribute__((noinline)) int catcher(int n)
{
	try {
		return thrower(n);
	} catch (int thrown) {
		return thrown + 100;
	}
}

struct guard {
	~guard()
	{
		pthread_mutex_unlock(&outer);
		puts("cleaned up");
	}
};

static void *wait_for_ever(void *)
{
	pthread_mutex_lock(&outer);
	guard held;
	pthread_mutex_lock(&lock);
	waits = true;
	for (;;)
		pthread_cond_wait(&never, &lock);
	return nullptr;
}

int main()
{
	pthread_t thread;
	int sum = 0;

	for (int i = 0; i < 50; i++)
		sum += catcher(i);
	printf("sum %d\n", sum);
	if (pthread_create(&thread, nullptr, wait_for_ever, nullptr))
		return 1;
	while (!waits)
		;
	pthread_mutex_lock(&lock); /* free as soon as it waits */
	pthread_mutex_unlock(&lock);
	pthread_cancel(thread);
	pthread_join(thread, nullptr);
	printf("free %d\n", pthread_mutex_trylock(&outer) == 0);
	return 0;
}

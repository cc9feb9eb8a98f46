// SPDX-License-Identifier: Apache-2.0
/* Temporary stand-in for cupti's. */
#include "usdt/gpu/control.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include "usdt/gpu/nvtx.h"
#include "usdt/ring/rings.h"
static int started;
static void *control(void *x)
{
	bool armed = false;
	for (;;) {
		bool want = rings_gate.ring || rings_gate.collector;
		if (want != armed) { armed = want; armed ? nvtx_arm() : nvtx_disarm(); }
		nvtx_poll();
		nanosleep(&(struct timespec){0, 50000000}, NULL);
	}
	return x;
}
void gpu_control_start(void)
{
	pthread_t t; sigset_t all, before;
	if (__atomic_exchange_n(&started, 1, __ATOMIC_SEQ_CST)) return;
	sigfillset(&all); pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&t, NULL, control, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
__attribute__((visibility("default"))) int InitializeInjection(void);
int InitializeInjection(void) { gpu_control_start(); return 1; }

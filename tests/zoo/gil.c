// SPDX-License-Identifier: Apache-2.0
/*
 * Functions that gil.py calls. Those of ctypes.PyDLL keep the GIL, those of ctypes.CDLL give it
 * away before they begin and must have it back before they return.
 */
#include "zoo.h"

void gil_seed(int seed);
void gil_name(const char *role);
void gil_await(int i);
void gil_hold(int i);
void gil_compute(int i, int said);
void gil_victim_begin(int i, int stalled);
void gil_victim_end(int i, int stalled);

static atomic_int ready = -1, holding = -1;
static waffle_span_t span;
static struct zoo_time span_time;

void gil_seed(int seed)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	zoo_seed = seed;
	zoo_go();
}

void gil_name(const char *role)
{
	zoo_introduce(role);
}

/* CDLL: waits until the victim is where it needs no GIL any more but for its return. */
void gil_await(int i)
{
	while (ready < i)
		usleep(100);
}

/* PyDLL: computes with the GIL in hand. */
void gil_hold(int i)
{
	struct zoo_time t;

	zoo_time_begin(&t);
	{
		SPAN("hold", KV_I64("i", i));
		holding = i;
		zoo_burn(zoo_vary(i, 80, 200));
	}
	zoo_time_end(&t);
	zoo_say_cause(i, "gil", t.running, zoo_self(), "hold", NULL);
}

/* CDLL: begins the span, if asked when the other thread has the GIL; returning waits for it. */
void gil_victim_begin(int i, int stalled)
{
	ready = i;
	while (stalled && holding < i)
		usleep(100);
	zoo_time_begin(&span_time);
	span = SPAN_BEGIN("victim", KV_I64("i", i));
}

/* PyDLL */
void gil_victim_end(int i, int stalled)
{
	SPAN_END(span);
	zoo_time_end(&span_time);
	zoo_say_victim(i, &span_time);
	if (!stalled)
		zoo_say_cause(i, "running", span_time.running, zoo_self(), "victim", NULL);
}

/* CDLL: computes without the GIL; `said`: the victim waits for it, 2: at a socket. */
void gil_compute(int i, int said)
{
	struct zoo_time t;

	zoo_time_begin(&t);
	{
		SPAN("decode", KV_I64("i", i));
		zoo_burn(said ? zoo_vary(i, 80, 200) : zoo_vary(i, 20, 60));
	}
	zoo_time_end(&t);
	if (said)
		zoo_say_cause(i, said == 2 ? "socket" : "user-work", t.running, zoo_self(),
			      "decode", NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Keys of every type, sixteen of them, parents, traces, links, counters, logs, other threads. */
#include "log.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "waffle_macros.h"

static char of_256[257], of_257[258], of_10000[10001];

static void fill(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i % 26);
	text[len] = '\0';
}

static void types(void)
{
	int64_t least = INT64_MIN;
	short negative = -5;
	uint64_t most = UINT64_MAX;
	uint32_t half = 0x80000000u;

	WAFFLE_EVENT("integers", KV_I64("negative", negative), KV_I64("least", least),
		     KV_U64("most", most), KV_U64("half", half), KV_I64("char", 'x'));
	WAFFLE_EVENT("reals", KV_F64("tenth", 0.1), KV_F64("float", 1.5f), KV_F64("huge", -1e300),
		     KV_F64("int", 7), KV_F64("nan", NAN), KV_F64("infinity", -INFINITY));
	WAFFLE_EVENT("truths", KV_BOOL("yes", true), KV_BOOL("no", false), KV_BOOL("many", 42),
		     KV_BOOL("null", (char *)NULL));
	WAFFLE_EVENT("pointers", KV_PTR("main", (void *)0x7fff12345678ull), KV_PTR("null", NULL));
	WAFFLE_EVENT("strings", KV_STR("empty", ""), KV_STR("null", (const char *)NULL),
		     KV_STR("plain", "hello"), KV_STR("eight", "12345678"),
		     KV_STR("quotes", "a\"b\\c\n\t\x01"), KV_STR("utf8", "Grüße 漢字"),
		     KV_STR("not utf8", "a\xff\xc3"
					"b"));
	WAFFLE_EVENT("long strings", KV_STR("256", of_256), KV_STR("257", of_257),
		     KV_STR("10000", of_10000));
}

static void sixteen(void)
{
	waffle_event_id_t event = WAFFLE_EVENT("a cause");

	WAFFLE_SPAN("sixteen", KV_STR("k1", of_256), KV_I64("k2", -2), KV_STR("k3", of_256),
		    KV_CAUSE_EVENT(event), KV_F64("k5", 5.5), KV_STR("k6", of_256),
		    KV_BOOL("k7", true), KV_PTR("k8", (void *)8), KV_STR("k9", of_256),
		    KV_U64("k10", 10), KV_STR("k11", ""), KV_STR("k12", of_256), KV_I64("k13", 13),
		    KV_STR("k14", NULL), KV_STR("k15", of_10000), KV_I64("k16", 16));
	WAFFLE_EVENT("all strings", KV_STR("s1", of_256), KV_STR("s2", of_256),
		     KV_STR("s3", of_256), KV_STR("s4", of_256), KV_STR("s5", of_256),
		     KV_STR("s6", of_256), KV_STR("s7", of_256), KV_STR("s8", of_256),
		     KV_STR("s9", of_256), KV_STR("s10", of_256), KV_STR("s11", of_256),
		     KV_STR("s12", of_256), KV_STR("s13", of_256), KV_STR("s14", of_256),
		     KV_STR("s15", of_256), KV_STR("s16", of_257));
}

static void nested(void)
{
	WAFFLE_SPAN("outer", KV_I64("depth", 0));
	for (int i = 0; i < 3; i++) {
		WAFFLE_SPAN("middle", KV_I64("i", i));
		for (int j = 0; j < 2; j++) {
			WAFFLE_SPAN("inner", KV_I64("i", i), KV_I64("j", j));
			WAFFLE_EVENT("leaf", KV_I64("i", i), KV_I64("j", j));
		}
	}
	WAFFLE_EVENT("after", KV_U64("span", WAFFLE_SPAN_ID().value));
}

static void links(void)
{
	waffle_event_id_t event, no_event = {0};
	waffle_span_t span = WAFFLE_BEGIN("cause span");
	waffle_span_id_t span_id = {span.id};

	event = WAFFLE_EVENT("cause event", KV_CAUSE_SPAN(span_id));
	WAFFLE_END(span);
	{
		WAFFLE_SPAN("effect", KV_CAUSE_EVENT(event), KV_CAUSE_SPAN(span_id),
			    KV_CAUSE_EVENT(no_event));
		WAFFLE_EVENT("effect event", KV_CAUSE_EVENT(event));
	}
	printf("links event=%llu span=%llu\n", event.value, span_id.value);
}

/* The example of the issue that asked for this. */
static void nan_example(int rank)
{
	float recv_buf[1] = {rank == 1 ? NAN : 0};
	waffle_event_id_t cause_id = {0};
	if (rank == 1)
		cause_id = WAFFLE_EVENT("Creating NaN on purpose", KV_I64("rank", rank));
	SPAN("MPI_Allreduce_op", KV_CAUSE_EVENT(cause_id), KV_I64("rank", rank));
	if (isnan(recv_buf[0]))
		WAFFLE_EVENT("MPI_Allreduce result is NaN");
}

static void counters(void)
{
	int8_t small = -8;
	uint64_t large = UINT64_MAX;
	unsigned char byte = 200;

	WAFFLE_COUNTER("signed", small);
	WAFFLE_COUNTER("signed", -3);
	WAFFLE_COUNTER("unsigned", large);
	WAFFLE_COUNTER("byte", byte);
	WAFFLE_COUNTER("double", 2.25);
	WAFFLE_COUNTER("float", 0.5f);
	for (int i = 0; i < 10; i++)
		WAFFLE_COUNTER("series", i * i);
}

static void *end_elsewhere(void *arg)
{
	printf("moved end_tid=%d\n", thread_id());
	sleep_ms(2);
	WAFFLE_END(*(waffle_span_t *)arg);
	printf("moved_end ts=%lld\n", now_ns());
	return NULL;
}

static void *inject(void *arg)
{
	{
		WAFFLE_INJECT(*(waffle_context_t *)arg);
		WAFFLE_SPAN("injected");
		printf("injected tid=%d\n", thread_id());
	}
	WAFFLE_SPAN("not injected");
	return NULL;
}

static void on_thread(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, function, arg);
	pthread_join(thread, NULL);
}

static void threads(void)
{
	waffle_span_t moved;
	waffle_context_t context;

	printf("moved_begin tid=%d ts=%lld\n", thread_id(), now_ns());
	moved = WAFFLE_BEGIN("moved", KV_I64("n", 1));
	on_thread(end_elsewhere, &moved);
	WAFFLE_SPAN("giver");
	context = waffle_context_extract();
	printf("giver span=%llu\n", context.span_id);
	on_thread(inject, &context);
}

static void logs(void)
{
	WAFFLE_LOG_INFO("it goes on", KV_I64("n", 1));
	WAFFLE_LOG_WARN("it slows", KV_I64("n", 2));
	WAFFLE_LOG_ERROR("it stopped", KV_I64("n", 3));
}

static void timed(void)
{
	for (int i = 0; i < 5; i++) {
		long long begin = now_ns(), inside_end, inside;

		{
			WAFFLE_SPAN("timed", KV_I64("i", i));
			inside = now_ns();
			if (i % 2)
				sleep_ms(3);
			else
				spin_ms(3);
			inside_end = now_ns();
		}
		printf("timed i=%d before=%lld inside=%lld inside_end=%lld after=%lld tid=%d\n", i,
		       begin, inside, inside_end, now_ns(), thread_id());
	}
}

int main(void)
{
	fill(of_256, 256);
	fill(of_257, 257);
	fill(of_10000, 10000);
	types();
	sixteen();
	nested();
	links();
	nan_example(0);
	nan_example(1);
	counters();
	threads();
	logs();
	timed();
	for (int i = 0; i < 1000; i++)
		WAFFLE_EVENT("thousand", KV_I64("i", i));
	return 0;
}

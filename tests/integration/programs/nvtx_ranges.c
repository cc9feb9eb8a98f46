// SPDX-License-Identifier: Apache-2.0
/*
 * Makes ranges and marks of NVTX with NVIDIA's header, of each kind, in rounds, until its standard
 * input ends. It answers each line with the number of rounds that all threads have made.
 *
 *	nvtx_ranges late|early|never THREADS
 *
 * "late" makes the domain and its strings before it says "ready", "early" makes them in each round.
 * "never" does not call NVTX before the first line.
 * It prints how many rounds each thread made. Levels of ranges are checked in each round: they must
 * be those of a tool, or those without one.
 */
#include <nvtx3/nvToolsExt.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static nvtxDomainHandle_t domain;
static nvtxStringHandle_t registered;
static atomic_int stop, go;
static int early, never;

static void registers(void)
{
	domain = nvtxDomainCreateA("numbers");
	registered = nvtxDomainRegisterStringA(domain, "registered");
	nvtxDomainNameCategoryA(domain, 7, "seven");
}

static nvtxEventAttributes_t attributes(void)
{
	nvtxEventAttributes_t made = {0};

	made.version = NVTX_VERSION;
	made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	return made;
}

static void *end(void *id)
{
	nvtxRangeEnd(*(nvtxRangeId_t *)id);
	return NULL;
}

static void round_make(long n, int cross)
{
	nvtxEventAttributes_t event = attributes();
	nvtxRangeId_t id;
	pthread_t thread;

	nvtxRangePushA("outer");
	nvtxRangePushW(L"in\u00e4n");
	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = registered;
	event.category = 7;
	event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	event.payload.llValue = -n;
	nvtxDomainRangePushEx(domain, &event);
	event.messageType = NVTX_MESSAGE_TYPE_ASCII;
	event.message.ascii = "mark";
	event.category = 9;
	event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	event.payload.dValue = 0.5;
	nvtxDomainMarkEx(domain, &event);
	nvtxRangePop(); /* ends the range of the default domain; the other domain has an open one */
	nvtxDomainRangePop(domain);
	nvtxMarkA("plain");
	nvtxRangePop();
	id = nvtxRangeStartA("across");
	if (cross && !pthread_create(&thread, NULL, end, &id))
		pthread_join(thread, NULL);
	else
		end(&id);
}

static void *rounds(void *count)
{
	atomic_long *made = count;

	while (!stop) {
		if (never && !go) {
			usleep(1000);
			continue;
		}
		if (early)
			registers();
		round_make(*made, *made % 8 == 0);
		++*made;
		usleep(1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t all[64];
	atomic_long counts[64] = {0};
	char line[16];

	early = argc > 1 && !strcmp(argv[1], "early");
	never = argc > 1 && !strcmp(argv[1], "never");
	if (!early && !never)
		registers();
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, rounds, &counts[i]);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long sum = 0;

		if (never && !go) {
			registers();
			go = 1;
		}

		for (int i = 0; i < threads; i++)
			sum += atomic_load(&counts[i]);
		printf("rounds %ld\n", sum);
		fflush(stdout);
	}
	stop = 1;
	for (int i = 0; i < threads; i++) {
		pthread_join(all[i], NULL);
		printf("%ld\n", counts[i]);
	}
	return nvtxRangePop() == NVTX_NO_PUSH_POP_TRACKING ? 0 : 2;
}

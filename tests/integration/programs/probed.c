// SPDX-License-Identifier: Apache-2.0
/*
 * Functions to be probed: structs, jobs that begin on one thread and end on another, recursion.
 * "go" runs them, each with a line that shows its arguments.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct connection {
	char pad[5];
	short port;
	int fd;
};

struct request {
	const char *path;
	struct connection *connection;
	char method[8];
	union {
		unsigned long bytes;
		void *data;
	};
	double weight;
};

struct job {
	long id;
	int status;
};

int handle_request(struct request *request, int turn);
void job_begin(long id, const char *name);
void job_end(struct job *job);
int climb(int depth);
void climb_enter(int depth);
void climb_leave(void);
void fill(long *sum, char *text, double skipped, int by);

__attribute__((noinline)) int handle_request(struct request *request, int turn)
{
	__asm__ volatile("" ::"r"(request) : "memory"); /* the caller must have written all of it */
	request->bytes += (unsigned long)turn;
	return turn * 3 - 1;
}

__attribute__((noinline)) void job_begin(long id, const char *name)
{
	__asm__ volatile("" ::"r"(id), "r"(name));
}

__attribute__((noinline)) void job_end(struct job *job)
{
	__asm__ volatile("" ::"r"(job) : "memory");
}

__attribute__((noinline)) void climb_enter(int depth)
{
	__asm__ volatile("" ::"r"(depth));
}

__attribute__((noinline)) void climb_leave(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) int climb(int depth)
{
	int above;

	climb_enter(depth);
	above = depth ? climb(depth - 1) : 0;
	climb_leave();
	return above + 1;
}

__attribute__((noinline)) void fill(long *sum, char *text, double skipped, int by)
{
	*sum += by;
	text[0] += (char)by;
	__asm__ volatile("" ::"x"(skipped) : "memory");
}

static void *end_jobs(void *arg)
{
	struct job *jobs = arg;

	for (int i = 2; i >= 0; i--)
		job_end(&jobs[i]);
	return NULL;
}

static void run(void)
{
	struct connection connection = {.port = 443, .fd = 17};
	struct request request = {.connection = &connection, .weight = 1.5};
	struct job jobs[3] = {{900, 0}, {901, -1}, {902, 7}};
	char path[32], text[16] = "abc";
	pthread_t thread;
	long sum = 40;

	strcpy(request.method, "POST");
	request.path = path;
	for (int turn = 0; turn < 5; turn++) {
		snprintf(path, sizeof(path), "/page/%d", turn);
		printf("request path=%s fd=17 port=443 method=POST bytes=%lu turn=%d result=%d\n",
		       path, request.bytes, turn, turn * 3 - 1);
		handle_request(&request, turn);
	}
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "job %d", i);
		job_begin(jobs[i].id, path);
	}
	pthread_create(&thread, NULL, end_jobs, jobs);
	pthread_join(thread, NULL);
	climb(4);
	for (int by = 1; by <= 3; by++)
		fill(&sum, text, 0.5, by);
}

int main(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		run();
		puts("done");
		fflush(stdout);
	}
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What the parts of `replay FILE` cost, for the benchmarks: prints the seconds of CPU time for
 * reading the file, for its time line, and for the replay itself, which makes the graph, checks it
 * and schedules it. All of it is one thread.
 *
 *	replay_bench FILE
 */
#include <inttypes.h>
#include <stdio.h>

#include "analyze/gpu/replay_report.h"
#include "store/store.h"
#include "util/clock.h"
#include "util/memory.h"

static double cpu_s(void)
{
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
}

static int fail(const struct error *err)
{
	fprintf(stderr, "replay_bench: %s\n", err->message);
	return 1;
}

static int replay(const struct gpu_timeline *timeline, struct error *err)
{
	const struct replay_part all = REPLAY_PART_ALL;
	double begin = cpu_s();
	struct replay_build *build = replay_build_new(timeline);
	struct replay_report report;
	int result = replay_report_run(&report, build, &all, false, NULL, 0, err);

	printf("replay %.6f\noperations %" PRIu64 "\n", cpu_s() - begin,
	       report.result.operations_executed);
	replay_report_free(&report);
	replay_build_free(build);
	return result;
}

int main(int argc, char **argv)
{
	const struct model_filter keep = {.gpu_apart = true};
	struct store_reader *reader;
	struct gpu_timeline *timeline;
	struct error err = ERROR_INIT;
	struct model *model;
	double read;
	int result;

	if (argc != 2) {
		fprintf(stderr, "usage: replay_bench FILE\n");
		return 2;
	}
	memory_return_large();
	if (store_reader_open(&reader, argv[1], &err) ||
	    model_load(&model, reader, STORE_ALL, &keep, &err))
		return fail(&err);
	read = cpu_s();
	timeline = model->gpu_records ? gpu_timeline_take(model) : gpu_timeline_new(model);
	printf("read %.6f\ntimeline %.6f\n", read, cpu_s() - read);
	result = replay(timeline, &err);
	gpu_timeline_free(timeline);
	model_free(model);
	store_reader_close(reader);
	return result ? fail(&err) : 0;
}

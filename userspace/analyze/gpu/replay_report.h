/* SPDX-License-Identifier: Apache-2.0 */
/* What waffle-bpf replay shows: an unmodified replay, the check of the order, and what-ifs. */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_REPORT_H
#define WAFFLE_ANALYZE_GPU_REPLAY_REPORT_H

#include "analyze/gpu/replay_device.h"
#include "analyze/gpu/replay_select.h"
#include "analyze/gpu/replay_what_if.h"

/* A replay that is off by more than this part of the measured time answers no what-ifs. */
#define REPLAY_ERROR_MAX 0.1

enum replay_mode { REPLAY_FULL, REPLAY_PARTIAL, REPLAY_STREAM, REPLAY_DRY_RUN, REPLAY_MODE_COUNT };
extern const char *const replay_mode_names[REPLAY_MODE_COUNT];

/* The answer to a what-if. */
struct replay_row {
	const struct replay_what_if *what_if;
	uint64_t matched, untimed; /* as in struct replay_answer */
	uint64_t replayed_ns;
	uint64_t low_ns, high_ns; /* the replay's own error around replayed_ns */
	double change;            /* against unmodified_ns, as a part of it */
	/* The unmodified replay of what the answer is about, which may leave out a rank. */
	uint64_t unmodified_ns;
};

struct replay_report {
	const struct replay_build *build;
	enum replay_mode mode;
	bool *selected;              /* of each node; NULL: all */
	struct replay_result result; /* of a dry run, only the totals */
	double error;
	uint64_t dependencies; /* that were checked */
	replay_violations violations;
	VEC(struct replay_row) rows;
	bool on_gpu; /* device is set: the schedule was issued again on a GPU */
	struct replay_device_result device;
};

/*
 * Replays the part. A dry run only checks. Returns 0 or a negative errno with a message: -EDOM if
 * the error is too large for the what-ifs, with everything but `rows`. replay_report_free() is
 * needed in any case.
 */
int replay_report_run(struct replay_report *report, const struct replay_build *build,
		      const struct replay_part *part, bool dry_run,
		      const struct replay_what_if *what_ifs, size_t count, struct error *err);
void replay_report_free(struct replay_report *report);

/* Issues the part of the report on a GPU, and sets on_gpu and device. */
int replay_report_on_gpu(struct replay_report *report, struct error *err);
/* Its time as a part of the measured one, minus 1. */
double replay_report_device_error(const struct replay_report *report);

/* Whether the dependencies alone fix the order: none was violated, and everything was executed. */
bool replay_report_deterministic(const struct replay_report *report);

#endif

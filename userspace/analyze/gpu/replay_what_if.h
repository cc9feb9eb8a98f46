/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What-ifs: changes of a recording, as text.
 *
 *	WHAT: CHANGE
 *	kernel ~ "*gemm*": 2x                   twice as fast
 *	copies: 0                               they take no time
 *	name ~ "copy" && kv.bytes > 1MiB: 10us  each takes that long
 *	launches: 0                             calls of the host
 *	rank 2: not late                        no other rank waits for it in a collective
 *
 * WHAT is `copies`, `kernels`, `sets`, `graphs`, `launches`, `rank N` or a filter expression
 * (docs/filter.md) of operations. There `kernel` at the begin means the name of a kernel.
 */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_WHAT_IF_H
#define WAFFLE_ANALYZE_GPU_REPLAY_WHAT_IF_H

#include "analyze/gpu/replay_build.h"
#include "filter/filter.h"
#include "util/error.h"

enum replay_effect {
	REPLAY_EFFECT_FASTER, /* the duration is divided by `factor` */
	REPLAY_EFFECT_TAKES,  /* the duration is `ns` */
	REPLAY_EFFECT_NOT_LATE,
};

struct replay_what_if {
	const char *text;           /* as the user wrote it */
	struct filter_expr *filter; /* that operations of this kind have to pass, or NULL */
	unsigned kind;              /* enum gpu_op_kind, or REPLAY_WHAT_* */
	uint32_t rank;              /* of REPLAY_WHAT_RANK */
	uint8_t effect;             /* enum replay_effect */
	double factor;
	uint64_t ns;
};

/* -EINVAL with a message: the text is no what-if. `text` must outlive it. */
int replay_what_if_parse(struct replay_what_if *what_if, const char *text, struct error *err);
void replay_what_if_free(struct replay_what_if *what_if);

/* Whether it needs the spans of the operations. A model that keeps the operations apart has none
 * (model_filter.gpu_apart). */
bool replay_what_if_needs_spans(const struct replay_what_if *what_if);

struct replay_answer {
	uint64_t matched; /* operations, calls or collectives that the what-if changes */
	uint64_t untimed; /* launches that it does not, since nobody knows how long they took */
	struct replay_result result;
};

/*
 * Replays with the change. `selected` is as in struct replay_change. -ENOENT with a message: the
 * what-if matches nothing. `answer` needs replay_result_free() after a return of 0.
 */
int replay_what_if_run(const struct replay_build *build, const struct replay_what_if *what_if,
		       const bool *selected, struct replay_answer *answer, struct error *err);

#endif

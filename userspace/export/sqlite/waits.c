// SPDX-License-Identifier: Apache-2.0
/* Waits: the blocked intervals of traced threads. Who ended one is known from the next interval of
 * the thread, so each is kept until that. */
#include <stdlib.h>
#include <string.h>

#include "export/sqlite/rows_internal.h"
#include "util/syscall_names.h"

struct wait_state {
	struct database_rows rows;
	const struct model *model;
	struct model_interval *blocked; /* by thread; from_ts 0: none */
};

static void wait_row(struct wait_state *state, const struct model_interval *blocked,
		     const struct model_interval *next)
{
	const struct model *model = state->model;
	const struct model_wait *wait = model_wait_at(model, blocked->thread, blocked->from_ts);
	const struct store_object *object = model_wait_object(model, wait);
	const char *machine = model->hosts[model_host_of(model, blocked->thread)]->machine;
	bool woken = next && next->state == WAFFLE_THREAD_RUNNABLE && next->woken;

	database_put_int(&state->rows, blocked->thread);
	database_put_int(&state->rows, (int64_t)blocked->from_ts);
	database_put_int(&state->rows, (int64_t)blocked->to_ts);
	database_put_text(&state->rows, model_blocked_text(blocked->task_state));
	database_put_text(&state->rows,
			  blocked->syscall >= 0 ? syscall_name(machine, blocked->syscall) : NULL);
	database_put_text(&state->rows, object ? object->name : NULL);
	database_put_text(&state->rows, object ? object->detail : NULL);
	database_put_index(&state->rows, woken && !next->interrupt ? next->by : MODEL_NONE,
			   MODEL_NONE);
	database_put_int(&state->rows, woken && next->interrupt);
	database_row_end(&state->rows);
}

static int interval_take(const struct model_interval *interval, void *arg)
{
	struct wait_state *state = arg;
	struct model_interval *blocked = &state->blocked[interval->thread];

	if (blocked->from_ts)
		wait_row(state, blocked, interval);
	blocked->from_ts = 0;
	if (interval->state == WAFFLE_THREAD_BLOCKED)
		*blocked = *interval;
	return state->rows.failed;
}

int wait_rows(struct database *database, const struct model *model, struct error *err)
{
	struct wait_state state = {.model = model};
	int result;

	if (database_rows_begin(&state.rows, database, "wait", 9, err))
		return -EIO;
	state.blocked = memory_zeroed(model->threads.len + 1, sizeof(*state.blocked));
	result = model_each_interval(model, interval_take, &state);
	for (size_t i = 0; i < model->threads.len; i++)
		if (state.blocked[i].from_ts)
			wait_row(&state, &state.blocked[i], NULL);
	free(state.blocked);
	if (result < 0)
		error_set(err, -result, "sqlite: %s", strerror(-result));
	return database_rows_end(&state.rows, err) ?: result < 0 ? result : 0;
}

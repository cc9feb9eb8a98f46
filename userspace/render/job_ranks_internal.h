/* SPDX-License-Identifier: Apache-2.0 */
/* The files and ranks of a job, for `info`. Ranks that no file has are named, since nothing says
 * what they did. */
#ifndef WAFFLE_RENDER_JOB_RANKS_INTERNAL_H
#define WAFFLE_RENDER_JOB_RANKS_INTERNAL_H

#include <stdio.h>

#include "model/model.h"
#include "util/json.h"

/* Lines of `info`: the files if there are several, and the ranks of each job. */
void job_ranks_put(FILE *out, const struct model *model);
/* Adds members to the open object: "captures" if there are several, "jobs" if there are ranks. */
void job_ranks_json(struct json *json, const struct model *model);

#endif

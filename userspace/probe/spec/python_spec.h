/* SPDX-License-Identifier: Apache-2.0 */
/* A description of a function of Python: python:FILE:FUNCTION (docs/probes.md). */
#ifndef WAFFLE_PROBE_SPEC_PYTHON_SPEC_H
#define WAFFLE_PROBE_SPEC_PYTHON_SPEC_H

#include <stdbool.h>

#include "target/process/python.h"
#include "util/error.h"

#define PYTHON_SPECS_MAX 16 /* in a command */

struct python_spec {
	char file[PYTHON_FILE_MAX];     /* the end of a path: "train.py", "app/train.py" */
	char function[PYTHON_NAME_MAX]; /* "step", "Trainer.step" */
};

/* Whether a description is of this kind. */
bool python_spec_is(const char *text);
/* -EINVAL with a message: it is malformed. */
int python_spec_parse(struct python_spec *spec, const char *text, struct error *err);

/* The function's name without what qualifies it: "step". */
const char *python_spec_name(const struct python_spec *spec);

/* Whether a function is the described one. `qualified`: its name is, as since Python 3.11. */
bool python_spec_matches(const struct python_spec *spec, const struct python_frame *function,
			 bool qualified);

#endif

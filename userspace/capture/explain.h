/* SPDX-License-Identifier: Apache-2.0 */
/* What a session would do: its plan is made and its programs are loaded, but nothing is armed. */
#ifndef WAFFLE_CAPTURE_EXPLAIN_H
#define WAFFLE_CAPTURE_EXPLAIN_H

#include "capture/session.h"
#include "filter/explain.h"

/*
 * Looks at the sites of the processes, or of the command and the libraries it will load, and calls
 * `show` with what was found. `notify` gets lines on what may be a mistake, such as a key that no
 * site declares. The options have a filter.
 */
int session_explain(const struct session_options *options, const struct session_events *events,
		    int (*show)(const struct explain *explain, void *arg), void *arg,
		    struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Explains what a session would do. It makes the plan and loads the BPF programs, but arms
 * nothing. */
#ifndef WAFFLE_CAPTURE_EXPLAIN_H
#define WAFFLE_CAPTURE_EXPLAIN_H

#include "capture/session.h"
#include "filter/explain.h"

/*
 * Reads the sites of the processes, or of the command and the libraries that it will load, and
 * passes them to `show`. `notify` receives hints at possible mistakes, such as a key that no site
 * declares. The options must have a filter.
 */
int session_explain(const struct session_options *options, const struct session_events *events,
		    int (*show)(const struct explain *explain, void *arg), void *arg,
		    struct error *err);

#endif

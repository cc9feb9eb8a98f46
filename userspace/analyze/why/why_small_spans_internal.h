/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that nobody asked for, and that take too little time to show why a program is slow. */
#ifndef WAFFLE_ANALYZE_WHY_WHY_SMALL_SPANS_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_WHY_SMALL_SPANS_INTERNAL_H

#include "model/model.h"

/* Whether all spans come with libraries (docs/torch.md, docs/mpi.md, docs/cuda.md) and take a small
 * part of their threads' time, or are requests (docs/requests.md), which together take a small part
 * of the time of a thread that has other things to do, or are few and quick. */
bool why_has_only_small_spans(const struct model *model);

#endif

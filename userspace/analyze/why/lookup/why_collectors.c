// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_collectors_internal.h"

#include <stddef.h>
#include <string.h>

/* By the beginning of their names: compilers and closures add suffixes. */
static const struct {
	const char *runtime, *beginning;
} rows[] = {
	/* src/runtime of Go: mgc.go */
	{"Go", "runtime.gcBgMarkWorker"},
	{"Go", "runtime.gcStart"},
	{"Go", "runtime.gcMark"},
	{"Go", "runtime.gcSweep"},
	{"Go", "runtime.gcResetMarkState"},
	/* mgcmark.go */
	{"Go", "runtime.gcDrain"},
	{"Go", "runtime.gcAssistAlloc"},
	{"Go", "runtime.gcFlushBgCredit"},
	{"Go", "runtime.gcmarknewobject"},
	{"Go", "runtime.deductAssistCredit"},
	{"Go", "runtime.markroot"},
	{"Go", "runtime.scanstack"},
	{"Go", "runtime.scanblock"},
	{"Go", "runtime.scanobject"},
	{"Go", "runtime.scanConservative"},
	{"Go", "runtime.greyobject"},
	/* mgcmark_greenteagc.go */
	{"Go", "runtime.tryDeferToSpanScan"},
	{"Go", "runtime.scanSpan"},
	{"Go", "runtime.scanObject"},
	{"Go", "runtime.spanSetScans"},
	{"Go", "runtime.(*spanInlineMarkBits)"},
	{"Go", "runtime.(*mspan).moveInlineMarks"},
	{"Go", "internal/runtime/gc/scan."},
	/* mgcwork.go */
	{"Go", "runtime.(*gcWork)"},
	/* mgcsweep.go */
	{"Go", "runtime.bgsweep"},
	{"Go", "runtime.sweepone"},
	{"Go", "runtime.(*sweepLocked)"},
	{"Go", "runtime.deductSweepCredit"},
	/* mwbbuf.go, asm_*.s: the program tells of pointers while objects are marked. */
	{"Go", "runtime.wbBufFlush"},
	{"Go", "runtime.gcWriteBarrier"},
	{"Go", "gcWriteBarrier"},
	/* src/heap of V8: heap.cc and the files of these classes */
	{"V8", "v8::internal::Heap::CollectGarbage"},
	{"V8", "v8::internal::Heap::PerformGarbageCollection"},
	{"V8", "v8::internal::MarkCompactCollector::"},
	{"V8", "v8::internal::MinorMarkSweepCollector::"},
	{"V8", "v8::internal::MinorMarkCompactCollector::"},
	{"V8", "v8::internal::Scavenger::"},
	{"V8", "v8::internal::ScavengerCollector::"},
	{"V8", "v8::internal::ConcurrentMarking::"},
	{"V8", "v8::internal::IncrementalMarking::"},
	{"V8", "v8::internal::Sweeper::"},
};

const char *collector_of(const char *function)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(function, rows[i].beginning, strlen(rows[i].beginning)))
			return rows[i].runtime;
	return NULL;
}

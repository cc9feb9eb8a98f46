// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_phases_internal.h"

#include <stddef.h>
#include <string.h>

#include "util/path.h"

#define GO "the garbage collection of Go"
#define V8 "the garbage collection of V8"
#define JVM "the garbage collection of the JVM"
#define CLASSES "the loading of classes by the JVM"
#define HISTOGRAM "a heap histogram of the JVM, as jcmd and jmap ask for"
#define DUMP "a heap dump of the JVM, as jcmd and jmap ask for"
#define TRACEMALLOC "tracemalloc"
#define EXCEPTIONS "the throwing of exceptions"
#define REGEX "the construction of std::regex"

struct phase_row {
	const char *phase;
	const char *beginning; /* of the function's name: compilers and closures add suffixes */
};

static const struct phase_row rows[] = {
	/* src/runtime of Go: mgc.go */
	{GO, "runtime.gcBgMarkWorker"},
	{GO, "runtime.gcStart"},
	{GO, "runtime.gcMark"},
	{GO, "runtime.gcSweep"},
	{GO, "runtime.gcResetMarkState"},
	/* mgcmark.go */
	{GO, "runtime.gcDrain"},
	{GO, "runtime.gcAssistAlloc"},
	{GO, "runtime.gcFlushBgCredit"},
	{GO, "runtime.gcmarknewobject"},
	{GO, "runtime.deductAssistCredit"},
	{GO, "runtime.markroot"},
	{GO, "runtime.scanstack"},
	{GO, "runtime.scanblock"},
	{GO, "runtime.scanobject"},
	{GO, "runtime.scanConservative"},
	{GO, "runtime.greyobject"},
	/* mgcmark_greenteagc.go */
	{GO, "runtime.tryDeferToSpanScan"},
	{GO, "runtime.scanSpan"},
	{GO, "runtime.scanObject"},
	{GO, "runtime.spanSetScans"},
	{GO, "runtime.(*spanInlineMarkBits)"},
	{GO, "runtime.(*mspan).moveInlineMarks"},
	{GO, "internal/runtime/gc/scan."},
	/* mgcwork.go */
	{GO, "runtime.(*gcWork)"},
	/* mgcsweep.go */
	{GO, "runtime.bgsweep"},
	{GO, "runtime.sweepone"},
	{GO, "runtime.(*sweepLocked)"},
	{GO, "runtime.deductSweepCredit"},
	/* mwbbuf.go, asm_*.s: the program tells of pointers while objects are marked. */
	{GO, "runtime.wbBufFlush"},
	{GO, "runtime.gcWriteBarrier"},
	{GO, "gcWriteBarrier"},
	/* src/heap of V8: heap.cc and the files of these classes */
	{V8, "v8::internal::Heap::CollectGarbage"},
	{V8, "v8::internal::Heap::PerformGarbageCollection"},
	{V8, "v8::internal::MarkCompactCollector::"},
	{V8, "v8::internal::MinorMarkSweepCollector::"},
	{V8, "v8::internal::MinorMarkCompactCollector::"},
	{V8, "v8::internal::Scavenger::"},
	{V8, "v8::internal::ScavengerCollector::"},
	{V8, "v8::internal::ConcurrentMarking::"},
	{V8, "v8::internal::IncrementalMarking::"},
	{V8, "v8::internal::Sweeper::"},
	/* Modules/_tracemalloc.c of CPython; since 3.13, Python/tracemalloc.c */
	{TRACEMALLOC, "tracemalloc_"},
	{TRACEMALLOC, "_PyTraceMalloc_"},
	/* The C++ ABI (libsupc++, libc++abi) and the unwinder below it (libgcc, libunwind) */
	{EXCEPTIONS, "__cxa_throw"},
	{EXCEPTIONS, "__cxa_rethrow"},
	{EXCEPTIONS, "__cxa_allocate_exception"},
	{EXCEPTIONS, "__gxx_personality_"},
	{EXCEPTIONS, "_Unwind_RaiseException"},
	{EXCEPTIONS, "_Unwind_Resume"},
	/* bits/regex_compiler.h of libstdc++. Functions that are templates have a type in front. */
	{REGEX, "std::__detail::_Compiler<"},
	{REGEX, "void std::__detail::_Compiler<"},
	{REGEX, "bool std::__detail::_Compiler<"},
};

/* Only in libjvm.so, since other programs have such names, too. */
static const struct phase_row jvm_rows[] = {
	/* src/hotspot/share of the JVM: classfile and oops */
	{CLASSES, "SystemDictionary::"},
	{CLASSES, "ClassFileParser::"},
	{CLASSES, "ClassLoader::load_class"},
	{CLASSES, "ClassVerifier::"},
	{CLASSES, "Verifier::"},
	{CLASSES, "Rewriter::"},
	{CLASSES, "KlassFactory::"},
	{CLASSES, "InstanceKlass::link_class"},
	{CLASSES, "JVM_DefineClass"},
	{CLASSES, "JVM_FindLoadedClass"},
	{CLASSES, "jvm_define_class_common"},
	/* gc/serial, parallel, g1, shenandoah and z */
	{JVM, "GenCollectedHeap::do_collection"},
	{JVM, "GenCollectedHeap::do_full_collection"},
	{JVM, "GenCollectedHeap::collect_generation"},
	{JVM, "SerialHeap::do_collection"},
	{JVM, "SerialHeap::do_full_collection"},
	{JVM, "SerialHeap::collect_generation"},
	{JVM, "DefNewGeneration::collect"},
	{JVM, "TenuredGeneration::collect"},
	{JVM, "GenMarkSweep::"},
	{JVM, "PSScavenge::"},
	{JVM, "PSPromotionManager::"},
	{JVM, "PSMarkSweep::"},
	{JVM, "PSParallelCompact::"},
	{JVM, "ParCompactionManager::"},
	{JVM, "G1CollectedHeap::do_collection_pause"},
	{JVM, "G1CollectedHeap::do_full_collection"},
	{JVM, "G1YoungCollector::"},
	{JVM, "G1ParScanThreadState::"},
	{JVM, "G1ParEvacuateFollowersClosure::"},
	{JVM, "G1FullCollector::"},
	{JVM, "G1FullGC"},
	{JVM, "G1CMTask::"},
	{JVM, "G1ConcurrentMark"},
	{JVM, "G1ConcurrentRefine"},
	{JVM, "ShenandoahConcurrentGC::"},
	{JVM, "ShenandoahDegenGC::"},
	{JVM, "ShenandoahFullGC::"},
	{JVM, "ShenandoahControlThread::"},
	{JVM, "ZMark::"},
	{JVM, "ZRelocate::"},
	{JVM, "ZDriver::"},
};

/* They say what an inner function is for: that objects are marked for a histogram. The sources:
 * gc/shared/gcVMOperations.cpp and services/heapDumper.cpp. */
static const struct phase_row jvm_purposes[] = {
	{HISTOGRAM, "VM_GC_HeapInspection::"},
	{HISTOGRAM, "HeapInspection::heap_inspection"},
	{DUMP, "VM_HeapDumper::"},
};

#define LOOK_UP(table, function) look_up(table, sizeof(table) / sizeof(*(table)), function)

/* NULL: it is in no row. */
static const char *look_up(const struct phase_row *table, size_t count, const char *function)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(function, table[i].beginning, strlen(table[i].beginning)))
			return table[i].phase;
	return NULL;
}

void phase_add(const char **phase, const struct stack_frame *frame)
{
	const char *function = frame->function, *purpose;

	if (!frame->module || strcmp(path_base(frame->module), "libjvm.so") != 0) {
		*phase = *phase ?: LOOK_UP(rows, function);
		return;
	}
	purpose = LOOK_UP(jvm_purposes, function);
	*phase = purpose ?: *phase ?: LOOK_UP(jvm_rows, function);
}

// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_jvm.h"

#include <string.h>

/* How the names of the threads begin that HotSpot makes for itself, as the kernel has them, which
 * keeps 15 bytes. The source: os::Linux and the constructors of JavaThread and NamedThread in
 * src/hotspot/share of JDK 8 to 25, and jstack of such programs. */
static const char *const own_names[] = {
	"VM Thread",       "VM Periodic Tas", "G1 ",
	"GC Thread",       "GC task thread",  "Gang worker#",
	"ParGC Thread",    "Shenandoah",      "ZDirector",
	"ZDriver",         "ZStat",           "ZUncommitter",
	"ZWorker",         "ZUnmapper",       "XDirector",
	"XDriver",         "XStat",           "XUncommitter",
	"XWorker",         "XUnmapper",       "C1 CompilerThre",
	"C2 CompilerThre", "Reference Hand",  "Finalizer",
	"Signal Dispatch", "Service Thread",  "Monitor Deflati",
	"Sweeper thread",  "Notification Th", "Common-Cleaner",
	"Attach Listener", "Concurrent Mark", "JFR ",
};

/* The entry of the library of the program `java`, in java.c of src/java.base/share/native/libjli.
 */
#define LAUNCHER_FUNCTION "JLI_Launch"

static void launcher_frame(const struct stack_frame *frame, void *arg)
{
	bool *found = arg;

	*found |= frame->function && !frame->cut && !strcmp(frame->function, LAUNCHER_FUNCTION);
}

bool why_jvm_is_launcher(const struct model *model, struct stack_names *names, uint32_t thread)
{
	const struct model_thread *launcher = &model->threads.data[thread];
	const struct model_open_wait *wait = model_open_wait_of(model, thread);
	bool found = false;

	if (launcher->tid != launcher->pid || !wait || !wait->user_stack ||
	    !stack_names_has_jvm(names, launcher->pid))
		return false;
	stack_names_each(names, wait->user_stack, wait->ts, launcher_frame, &found);
	return found;
}

bool why_jvm_is_own_thread(const struct model *model, struct stack_names *names, uint32_t thread)
{
	const char *name = model_thread_name(model, thread);

	if (why_jvm_is_launcher(model, names, thread))
		return true;
	for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
		if (!strncmp(name, own_names[i], strlen(own_names[i])))
			return stack_names_has_jvm(names, model->threads.data[thread].pid);
	return false;
}

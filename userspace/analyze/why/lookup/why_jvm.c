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

bool why_jvm_is_own_thread(const struct model *model, struct stack_names *names, uint32_t thread)
{
	const char *name = model_thread_name(model, thread);

	for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
		if (!strncmp(name, own_names[i], strlen(own_names[i])))
			return stack_names_has_jvm(names, model->threads.data[thread].pid);
	return false;
}

// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nvtx.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "usdt/gpu/control.h"
#include "usdt/gpu/nvtx_find.h"
#include "usdt/gpu/nvtx_ranges.h"
#include "usdt/gpu/nvtx_text.h"
#include "usdt/say/say.h"

#define VARIABLE "NVTX_INJECTION64_PATH="
#define ALL_PURPOSES (NVTX_RECORDS | NVTX_ENDS | NVTX_REGISTERS)
/* How long ranges that are open at the end may take to end. */
#define DRAIN_NS 2000000000ull
/* How often all objects are searched at most, while the program loads and unloads some. */
#define FIND_NS 1000000000ull

static struct {
	/* Sets of enum nvtx_purpose, which threads read that initialise NVTX: functions whose
	 * pointers are set, and those that are while nobody records. */
	unsigned purposes, dormant;
	/* Only the thread that arms uses what follows. */
	uint64_t drain_ns; /* since when; 0: nothing is drained */
	struct nvtx_found found;
	uint64_t found_ns;
	bool armed_before;
	bool may_initialise; /* no other tool waits for that */
	bool blind;          /* this process can't search its memory */
	bool told_held;      /* that another tool has some */
} nvtx;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- pointers ---- */

/* NULL: it is none of another tool's. */
static nvtx_function table_holder(nvtx_function *const *table, const struct nvtx_tool *tools,
				  unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		nvtx_function now = __atomic_load_n(table[i], __ATOMIC_RELAXED);

		if (now && now != tools[i].function)
			return now;
	}
	return NULL;
}

/* Sets the pointers of a table of an object whose NVTX is initialised. Threads of the program may
 * be calling these functions: each pointer is read once for a call, and what it pointed to stays.
 */
static void table_set(nvtx_function *const *table, const struct nvtx_tool *tools, unsigned count,
		      unsigned purposes)
{
	for (unsigned i = 1; i < count; i++)
		if (tools[i].function)
			__atomic_store_n(table[i],
					 tools[i].purpose & purposes ? tools[i].function : NULL,
					 __ATOMIC_RELEASE);
}

/* Tells of the first object that another tool has. */
static void holder_tell(nvtx_function holder)
{
	Dl_info tool;

	if (nvtx.told_held)
		return;
	nvtx.told_held = true;
	say_line("NVTX is used by another tool%s%s: its ranges are not recorded",
		 dladdr((const void *)holder, &tool) && tool.dli_fname ? ", " : "",
		 dladdr((const void *)holder, &tool) && tool.dli_fname ? tool.dli_fname : "");
}

/*
 * Initialises NVTX of an object that has not called it yet, as its first call would do, so that we
 * see the domains and strings that it registers. False: a thread of the program is doing it, and
 * would overwrite what we set; nvtx_poll() comes again.
 */
static bool globals_initialise(char *globals, uint32_t *state)
{
	uint32_t fresh = NVTX_STATE_FRESH;

	if (!nvtx.may_initialise ||
	    !__atomic_compare_exchange_n(state, &fresh, NVTX_STATE_STARTED, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return false;
	/* They are functions that initialise. */
	for (size_t at = NVTX_AT_FUNCTIONS; at < NVTX_AT_CORE; at += sizeof(nvtx_function))
		__atomic_store_n((nvtx_function *)(globals + at), NULL, __ATOMIC_RELAXED);
	return true;
}

/* `holder` gets a function of another tool, if there is one. */
static void globals_set(char *globals, void *arg)
{
	nvtx_function *const *core = (nvtx_function *const *)(globals + NVTX_AT_CORE);
	nvtx_function *const *core2 = (nvtx_function *const *)(globals + NVTX_AT_CORE2);
	nvtx_function *holder = arg, held;
	unsigned purposes = __atomic_load_n(&nvtx.purposes, __ATOMIC_RELAXED);
	uint32_t *state = (uint32_t *)(globals + NVTX_AT_STATE);
	bool initialised = __atomic_load_n(state, __ATOMIC_ACQUIRE) == NVTX_STATE_COMPLETE;

	if (!initialised && (!(purposes & NVTX_RECORDS) || !globals_initialise(globals, state)))
		return;
	held = table_holder(core, nvtx_core_tools, NVTX_CORE_COUNT)
		       ?: table_holder(core2, nvtx_core2_tools, NVTX_CORE2_COUNT);
	if (held) {
		*holder = held;
		return;
	}
	table_set(core, nvtx_core_tools, NVTX_CORE_COUNT, purposes);
	table_set(core2, nvtx_core2_tools, NVTX_CORE2_COUNT, purposes);
	if (!initialised)
		__atomic_store_n(state, NVTX_STATE_COMPLETE, __ATOMIC_RELEASE);
}

/* Sets the pointers of all objects, for these purposes and those that they have when dormant. */
static void pointers_set(unsigned purposes)
{
	nvtx_function holder = NULL;

	purposes |= __atomic_load_n(&nvtx.dormant, __ATOMIC_SEQ_CST);
	__atomic_store_n(&nvtx.purposes, purposes, __ATOMIC_SEQ_CST);
	nvtx_found_each(&nvtx.found, globals_set, &holder);
	if (holder)
		holder_tell(holder);
}

/* Searches all objects again, if there may be others. */
static void objects_find(void)
{
	int result;

	if (nvtx.blind || !nvtx_find_is_old(&nvtx.found))
		return;
	result = nvtx_find(&nvtx.found);
	nvtx.found_ns = now_ns();
	if (result) {
		nvtx.blind = true;
		say_line("ranges of NVTX are not recorded: this process may not read its own "
			 "memory: %s",
			 strerror(-result));
	}
}

/* ---- states ---- */

waffle_name_t *nvtx_watch(void)
{
	return nvtx_name(NULL, true, 0);
}

/*
 * Whether an object that initialises NVTX would load another tool: the variable is in the
 * environment with which the program began, or the program has a tool linked in. NVTX looks at the
 * same places. (The environment of now may be changing in another thread.)
 */
static bool tool_is_expected(void)
{
	void *const *linked = dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2_fnptr");
	char before = '\0', text[4096];
	size_t matched = 0;
	bool found = linked && *linked;
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	while (fd >= 0 && !found && (got = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < got && !found; before = text[i++]) {
			if (matched || !before)
				matched = text[i] == VARIABLE[matched] ? matched + 1 : 0;
			found = matched == sizeof(VARIABLE) - 1;
		}
	if (fd >= 0)
		close(fd);
	return found;
}

void nvtx_arm(void)
{
	if (!nvtx.armed_before)
		nvtx.may_initialise = !tool_is_expected();
	nvtx.armed_before = true;
	nvtx.drain_ns = 0;
	objects_find();
	pointers_set(ALL_PURPOSES);
}

void nvtx_disarm(void)
{
	uint64_t left_out = nvtx_ranges_left_out();

	objects_find();
	nvtx.drain_ns = now_ns();
	pointers_set(NVTX_ENDS);
	if (left_out)
		say_line("%llu ranges of NVTX were not recorded: more than %d were open in a "
			 "thread, or %d in the process",
			 (unsigned long long)left_out, NVTX_DEPTH_MAX, NVTX_STARTED_MAX);
}

bool nvtx_poll(void)
{
	uint64_t now = now_ns();

	if (nvtx.drain_ns) {
		if (nvtx_ranges_are_open() && now - nvtx.drain_ns < DRAIN_NS)
			return true;
		nvtx.drain_ns = 0;
		objects_find();
		pointers_set(0);
		nvtx_ranges_forget();
	}
	if (!(__atomic_load_n(&nvtx.purposes, __ATOMIC_RELAXED) & NVTX_RECORDS))
		return false;
	if (now - nvtx.found_ns >= FIND_NS)
		objects_find();
	pointers_set(ALL_PURPOSES);
	return true;
}

/* ---- injection ---- */

/* Sets the pointers of a table that an object gives us while it initialises. Those that we leave it
 * sets to NULL itself. */
static void module_set(const struct nvtx_callbacks *callbacks, int module,
		       const struct nvtx_tool *tools, unsigned tool_count, unsigned purposes)
{
	nvtx_function **table;
	unsigned count;

	if (!callbacks->table(module, &table, &count))
		return;
	for (unsigned i = 1; i < count && i < tool_count; i++) {
		if (!table[i] || !tools[i].function)
			continue;
		if (tools[i].purpose & purposes)
			__atomic_store_n(table[i], tools[i].function, __ATOMIC_RELEASE);
		else if (*table[i] == tools[i].function)
			__atomic_store_n(table[i], NULL, __ATOMIC_RELEASE);
	}
}

/*
 * NVTX calls it in each object that uses it, at the first call there, if the variable
 * NVTX_INJECTION64_PATH names this library. Returns 1: a tool is there.
 */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_export_table get);
int InitializeInjectionNvtx2(nvtx_export_table get)
{
	const struct nvtx_callbacks *callbacks = get(NVTX_EXPORT_CALLBACKS);
	unsigned purposes;

	if (!callbacks || callbacks->size < sizeof(*callbacks) || !callbacks->table)
		return 0;
	__atomic_store_n(&nvtx.dormant, NVTX_REGISTERS, __ATOMIC_SEQ_CST);
	/* The first range of a program that is traced from its start counts, too. */
	if (*waffle_named_gate() && waffle_name_armed(nvtx_watch()))
		__atomic_or_fetch(&nvtx.purposes, ALL_PURPOSES, __ATOMIC_SEQ_CST);
	/* There is no lock: the child of a fork() could find it locked. So look again whether the
	 * other thread has armed or disarmed meanwhile. It leaves this object alone as long as it
	 * initialises, and comes again at its next poll. */
	do {
		purposes = __atomic_or_fetch(&nvtx.purposes, NVTX_REGISTERS, __ATOMIC_SEQ_CST);
		module_set(callbacks, NVTX_MODULE_CORE, nvtx_core_tools, NVTX_CORE_COUNT, purposes);
		module_set(callbacks, NVTX_MODULE_CORE2, nvtx_core2_tools, NVTX_CORE2_COUNT,
			   purposes);
	} while (purposes != __atomic_load_n(&nvtx.purposes, __ATOMIC_SEQ_CST));
	gpu_control_start();
	return 1;
}

/*
 * NVTX calls it in each object that uses an extension, at the first call of that, if the variable
 * names this library. Returns 1: the slots are set. They stay, since what schemas the program
 * registers has to be known when a tracer attaches; each function does nothing while nobody
 * records.
 */
__attribute__((visibility("default"))) int
InitializeInjectionNvtxExtension(const struct nvtx_extension *extension);
int InitializeInjectionNvtxExtension(const struct nvtx_extension *extension)
{
	if (extension->size < sizeof(*extension) || extension->module != NVTX_EXTENSION_PAYLOAD ||
	    !extension->segment_count)
		return 0;
	for (unsigned i = 0; i < NVTX_SLOTS && i < extension->segments[0].count; i++)
		__atomic_store_n(&extension->segments[0].slots[i],
				 (intptr_t)nvtx_extension_tools[i], __ATOMIC_RELEASE);
	return 1;
}

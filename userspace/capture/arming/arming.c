// SPDX-License-Identifier: Apache-2.0
#include "capture/arming/arming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/arming/arming_internal.h"
#include "capture/transport/transport.h"
#include "target/loader/needed.h"
#include "target/process/address_space.h"
#include "target/process/mapping_file.h"
#include "util/clock.h"
#include "util/suggest.h"

int arming_open(struct arming **arming, struct kernel *kernel, struct address_spaces *spaces,
		struct store_writer *writer, const struct session_options *options,
		struct plan *plan, struct error *err)
{
	*arming = calloc(1, sizeof(**arming));
	if (!*arming)
		return error_set(err, ENOMEM, "out of memory");
	(*arming)->kernel = kernel;
	(*arming)->spaces = spaces;
	(*arming)->writer = writer;
	(*arming)->options = options;
	(*arming)->plan = plan;
	(*arming)->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return 0;
}

/* Time between two reads of a process's mappings for sites that are not there: a multiple of how
 * long a read takes. */
#define SCAN_TIMES 32

/* How the names of libwaffle's files begin. Another name costs a moment in which nothing is
 * recorded: the sites are armed again when it is found. */
#define LIBWAFFLE "libwaffle.so"

/* Takes ownership of the list of files. */
static void process_keep(struct arming *arming, struct arming_process *seen)
{
	struct arming_process *process = process_of(arming, seen->pid);

	if (process) {
		seen->folders = process->folders;
		seen->injected = process->injected;
		vec_free(&process->files.list);
		*process = *seen;
	} else if (!vec_push(&arming->processes, *seen)) {
		vec_free(&seen->files.list);
	}
}

/* Resolves the paths of descriptions as this process sees them. */
static void look_at(struct arming *arming, pid_t pid)
{
	if (arming->options->calls)
		call_set_process(arming->options->calls, pid);
}

/* Records that a file could not be read, which does not mean that it has no sites. */
static void denied_note(struct arming *arming, const struct mapping *mapping, pid_t pid, int code)
{
	arming->unread = true;
	if (!arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning),
			 "%s: %s; its sites could not be read and are not armed; that needs %s",
			 mapping->path, strerror(code), mapping_open_needs(pid));
}

static void stuck_note(struct arming *arming, const struct mapping *mapping, int code)
{
	arming->unread = true;
	if (!arming->warning[0])
		snprintf(arming->warning, sizeof(arming->warning),
			 "%s: %s; its sites are not armed", mapping->path,
			 code == ETIMEDOUT ? "its file system does not answer"
					   : "too many file systems do not answer");
}

/* A process has mapped a file. If it was armed ahead (arming_expect()), it may never have been
 * loaded, so nothing was told of it until now. */
static void file_loaded(struct arming *arming, uint32_t index, pid_t pid)
{
	const struct object *object = arming->files.data[index].object;

	if (arming->transport && object && object->transport.version)
		transport_loaded(arming->transport, pid);
}

/* Arms what a process has mapped. -EAGAIN: the file is still being parsed. */
static int mapping_arm(struct arming *arming, struct arming_process *seen,
		       const struct mapping *mapping, struct error *err)
{
	char path[4096];
	int fd = mapping_open(mapping, seen->pid, path, sizeof(path)), index, result = 0;

	if (fd == -EACCES || fd == -EPERM)
		denied_note(arming, mapping, seen->pid, -fd);
	if (fd == -ETIMEDOUT || fd == -EBUSY)
		stuck_note(arming, mapping, -fd);
	if (fd < 0)
		return 0; /* unmapped meanwhile, or inaccessible */
	index = file_add(arming, fd, mapping->path, false, err);
	result = index < 0 ? index : file_arm(arming, (uint32_t)index, seen->pid, err);
	if (index >= 0)
		file_loaded(arming, (uint32_t)index, seen->pid);
	if (index >= 0)
		file_rest(&arming->files.data[index]);
	close(fd);
	if (index >= 0 && !result && !vec_push(&seen->files.list, (uint32_t)index))
		result = error_set(err, ENOMEM, "out of memory");
	return result;
}

/* Whether the mapping may be of libwaffle. */
static bool mapping_is_libwaffle(const struct mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');

	return slash && !strncmp(slash + 1, LIBWAFFLE, strlen(LIBWAFFLE));
}

/* Arms the programs and libraries that are, or are not, libwaffle. */
static int mappings_arm(struct arming *arming, struct arming_process *seen,
			const struct mappings *mappings, bool libwaffle, struct error *err)
{
	bool pending = false;
	int result = 0;

	for (size_t i = 0; !result && i < mappings->list.len; i++) {
		const struct mapping *mapping = &mappings->list.data[i];

		if (!mapping_is_program(mapping) || mapping_is_libwaffle(mapping) != libwaffle)
			continue;
		result = mapping_arm(arming, seen, mapping, err);
		pending |= result == -EAGAIN;
		result = result == -EAGAIN ? 0 : result;
	}
	return result ?: pending ? -EAGAIN : 0;
}

int arming_scan(struct arming *arming, pid_t pid, struct error *err)
{
	struct arming_process seen = {.pid = pid};
	const struct mappings *now;
	int result = address_spaces_scan(arming->spaces, pid, &now, err);

	look_at(arming, pid);
	/* libwaffle comes first, since the programs for the other sites depend on the transport. */
	arming->scanned = now;
	result = result ?: mappings_arm(arming, &seen, now, true, err);
	arming->scanned = NULL;
	if (result == -EAGAIN && control_awaits(arming, pid)) {
		vec_free(&seen.files.list);
		return 0; /* again when it has been parsed */
	}
	result = result == -EAGAIN ? 0 : result;
	result = result ?: mappings_arm(arming, &seen, now, false, err);
	if (result && result != -EAGAIN) {
		vec_free(&seen.files.list);
		return result;
	}
	arming_warn_moved(arming, &seen, now);
	control_sites(arming, pid, now);
	process_keep(arming, &seen);
	return 0;
}

static void arm_needed(int fd, const char *path, bool ours, void *arg)
{
	const struct {
		struct arming *arming;
		pid_t pid;
	} *context = arg;
	struct error ignored = ERROR_INIT;
	int index;

	if (ours)
		arming_watch_links(context->arming, path);
	index = file_add(context->arming, fd, path, false, &ignored);
	if (index >= 0)
		file_arm(context->arming, (uint32_t)index, context->pid, &ignored);
	if (index >= 0)
		file_rest(&context->arming->files.data[index]);
}

void arming_scan_needed(struct arming *arming, pid_t pid)
{
	struct {
		struct arming *arming;
		pid_t pid;
	} context = {arming, pid};

	look_at(arming, pid);
	needed_each(pid, arm_needed, &context);
}

void arming_forget(struct arming *arming, pid_t pid)
{
	struct arming_process *process = process_of(arming, pid);
	VEC(struct armed *) list = {0};

	loading_forget(arming, pid);
	if (process) {
		vec_free(&process->files.list);
		*process = arming->processes.data[--arming->processes.len];
	}
	for (size_t i = arming->arms.len; i > 0; i--) {
		struct armed *armed;

		if (arming->arms.data[i - 1].pid != pid)
			continue;
		armed = arm_remove(arming, i - 1);
		if (!vec_push(&list, armed))
			armed_release(armed);
	}
	kernel_disarm_later(arming->kernel, list.data, list.len);
	vec_free(&list);
}

uint64_t arming_arm_count(const struct arming *arming)
{
	return arming->arm_count;
}

void arming_release(struct arming *arming)
{
	VEC(struct armed *) list = {0};

	for (size_t i = 0; i < arming->arms.len; i++)
		if (!vec_push(&list, arming->arms.data[i].armed))
			armed_release(arming->arms.data[i].armed);
	kernel_disarm_later(arming->kernel, list.data, list.len);
	vec_free(&list);
	vec_free(&arming->arms);
}

void arming_close(struct arming *arming)
{
	if (!arming)
		return;
	arming_release(arming);
	for (size_t i = 0; i < arming->files.len; i++)
		file_free(&arming->files.data[i]);
	for (size_t i = 0; i < arming->processes.len; i++)
		vec_free(&arming->processes.data[i].files.list);
	programs_forget(arming);
	vec_free(&arming->programs);
	if (arming->changes >= 0)
		close(arming->changes);
	for (size_t i = 0; i < arming->notices.len; i++)
		free(arming->notices.data[i]);
	vec_free(&arming->notices);
	keymap_free(&arming->dismissed);
	keymap_free(&arming->file_at);
	vec_free(&arming->files);
	vec_free(&arming->processes);
	vec_free(&arming->loading);
	for (size_t i = 0; i < arming->sites.len; i++)
		free(arming->sites.data[i].kept);
	vec_free(&arming->sites);
	free(arming);
}

/* Looks up an address in the last known mappings. */
static uint32_t site_lookup(struct arming *arming, pid_t pid, uint64_t addr)
{
	const struct mappings *now = address_spaces_now(arming->spaces, pid);
	const struct mapping *mapping = now ? address_space_at(now, addr) : NULL;

	for (size_t i = 0; mapping && i < arming->files.len; i++) {
		const struct armed_file *file = &arming->files.data[i];

		if (file->object && file->ino == mapping->ino &&
		    !strcmp(file->object->path, mapping->path)) {
			uint32_t site =
				map_get(&file->by_offset, addr - mapping->start + mapping->offset);

			return site == MAP_NONE ? WAFFLE_SITE_UNKNOWN : site;
		}
	}
	return WAFFLE_SITE_UNKNOWN;
}

/* Whether the mappings of a process may be read for an unknown site. This may be a child that was
 * not scanned yet, or a file that was armed before it was mapped. */
static bool may_scan(const struct arming *arming, const struct address_space_notes *notes,
		     pid_t pid)
{
	if (!address_spaces_now(arming->spaces, pid))
		return true;
	return arming->announced < arming->sites.len && notes &&
	       clock_monotonic_ns() >= notes->sites_ns;
}

/* Reads the mappings for an unknown site. A process may hit any number of probes that are nowhere,
 * so this takes a small part of the time. */
static uint32_t site_scan(struct arming *arming, pid_t pid, uint64_t addr)
{
	uint64_t begin = clock_monotonic_ns(), end;
	struct error ignored = ERROR_INIT;
	struct address_space_notes *notes;
	const struct mappings *now;
	uint32_t site;

	address_spaces_scan(arming->spaces, pid, &now, &ignored);
	site = site_lookup(arming, pid, addr);
	end = clock_monotonic_ns();
	notes = address_spaces_notes(arming->spaces, pid);
	if (notes && site == WAFFLE_SITE_UNKNOWN)
		notes->sites_ns = end + (end - begin) * SCAN_TIMES;
	return site;
}

uint32_t arming_site_at(struct arming *arming, pid_t pid, uint64_t probe_addr)
{
	struct address_space_notes *notes = address_spaces_notes(arming->spaces, pid);
	uint32_t site = notes ? map_get(&notes->sites, probe_addr) : MAP_NONE;

	if (site != MAP_NONE)
		return site;
	site = site_lookup(arming, pid, probe_addr);
	if (site == WAFFLE_SITE_UNKNOWN && may_scan(arming, notes, pid))
		site = site_scan(arming, pid, probe_addr);
	notes = address_spaces_notes(arming->spaces, pid);
	if (site != WAFFLE_SITE_UNKNOWN && notes)
		map_set(&notes->sites, probe_addr, site);
	return site;
}

uint64_t arming_site_count(const struct arming *arming)
{
	return arming->announced;
}

const struct arming_site *arming_site(const struct arming *arming, uint32_t number)
{
	return number < arming->sites.len ? &arming->sites.data[number] : NULL;
}

bool arming_concerns_functions(const struct arming *arming)
{
	return arming->concerns_functions;
}

struct armed_counts arming_counts(const struct arming *arming)
{
	return arming->counts;
}

uint64_t arming_match_count(const struct arming *arming)
{
	return arming->matching;
}

void arming_names(const struct arming *arming, const char *near, bool counters, char *text,
		  size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < arming->sites.len; i++) {
		const struct arming_site *site = &arming->sites.data[i];
		const char *name = site->info->name;
		char quoted[200];
		int len = snprintf(quoted, sizeof(quoted), "'%s'", name);

		if (len < 0 || site->number == WAFFLE_SITE_UNKNOWN ||
		    (!counters && site->info->kind == WAFFLE_SITE_COUNTER) ||
		    (near && !suggest_similar(near, name)) || strstr(text, quoted))
			continue;
		if (used + (size_t)len + sizeof(", , …") > size) {
			snprintf(text + used, size - used, "%s", used ? ", …" : "");
			return;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
					 quoted);
	}
}

bool arming_unread(const struct arming *arming)
{
	return arming->unread;
}

const char *arming_warning(const struct arming *arming)
{
	return arming->warning[0] ? arming->warning : NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel/cpus_internal.h"
#include "kernel/kernel_internal.h"
#include "target/process/process.h"
#include "util/terminal.h"
#include "waffle.skel.h"

static int quiet_print(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int verbose_print(enum libbpf_print_level level, const char *format, va_list args)
{
	char *text;

	if (level == LIBBPF_DEBUG || vasprintf(&text, format, args) < 0)
		return 0;
	terminal_log(stderr, text);
	free(text);
	return 0;
}

/* Of the programs, their maps and their places; with some for the files of the capture. */
#define DESCRIPTORS_MIN 200

/* The message when the kernel refuses: nearly always a capability is missing. */
static int load_failed(struct error *err, int code)
{
	/* EACCES may also be the verifier's. */
	if (code == EPERM || (code == EACCES && geteuid()))
		return error_set(
			err, code,
			"loading BPF programs: %s; run as root (sudo), or with CAP_BPF and "
			"CAP_PERFMON, see 'waffle-bpf check'",
			strerror(code));
	if (code == EMFILE)
		return error_set(err, code,
				 "loading BPF programs: %s; at least %d descriptors are needed, "
				 "raise 'ulimit -n'",
				 strerror(code), DESCRIPTORS_MIN);
	if (code == ESRCH || code == ENOENT)
		return error_set(
			err, code,
			"loading BPF programs: the kernel's type information (BTF) is missing "
			"or too old; a kernel with CONFIG_DEBUG_INFO_BTF is needed, see "
			"'waffle-bpf check'");
	return error_set(err, code,
			 "loading BPF programs: %s; 'waffle-bpf check' says what is missing, "
			 "WAFFLE_LIBBPF=1 shows the kernel's messages",
			 strerror(code));
}

#define SLOTS_MIN 4096u /* of a CPU, with very many CPUs */

static uint32_t online_count(const struct kernel *kernel)
{
	uint32_t count = 0;

	for (uint32_t cpu = 0; cpu < kernel->cpus; cpu++)
		count += kernel->online[cpu];
	return count ? count : 1;
}

/* There is a row of slots for each CPU that is online, and a few more for CPUs that come online
 * later. There is none for each possible CPU, since virtual machines have many that never come. */
static void slots_choose(struct kernel *kernel, const struct kernel_options *options)
{
	uint32_t online = online_count(kernel), spare = online / 4 > 2 ? online / 4 : 2;

	kernel->rows = online + spare < kernel->cpus ? online + spare : kernel->cpus;
	kernel->config.sched_slots =
		options->sched ? (uint32_t)power_of_two(options->config.sched_slots, 16) : 1;
	while (options->sched_total && kernel->config.sched_slots > SLOTS_MIN &&
	       (uint64_t)kernel->rows * kernel->config.sched_slots *
			       sizeof(struct waffle_rec_switch) >
		       options->sched_total)
		kernel->config.sched_slots /= 2;
}

static void row_take(struct kernel *kernel, uint32_t cpu)
{
	uint32_t *row = &kernel->tail_memory[cpu].row;

	if (*row == WAFFLE_NO_ROW && kernel->rows_used < kernel->rows)
		__atomic_store_n(row, kernel->rows_used++, __ATOMIC_RELEASE);
}

static int configure(struct kernel *kernel, const struct kernel_options *options)
{
	struct waffle_bpf *bpf = kernel->bpf;
	uint32_t cpus = kernel->cpus;

	kernel->cpus_folder = options->cpus_folder ? options->cpus_folder : CPUS_FOLDER;
	cpus_online(kernel->online, cpus, kernel->cpus_folder);
	slots_choose(kernel, options);
	kernel->multi = uprobe_multi_try() > 0;
	kernel->config.tracer_tgid = (__u32)getpid();
	kernel->config.storage_is_old = getenv("WAFFLE_STORAGE_OLD") != NULL;
	kernel->config.task_struct_number = kernel_types_struct(&kernel->types, "task_struct");
	bpf_program__set_autoload(bpf->progs.on_switch, options->sched);
	bpf_program__set_autoload(bpf->progs.on_waking, options->sched);
	bpf_program__set_autoload(bpf->progs.on_migrate, options->sched);
	bpf_program__set_autoload(bpf->progs.hit_stack, options->stacks);
	kernel_site_programs_configure(kernel, bpf);
	return waits_configure(kernel, options)
		       ?: classes_configure(kernel, options)
		       ?: requests_configure(kernel, options)
		       ?: python_configure(kernel, options)
		       ?: calls_configure(kernel, options)
		       ?: bpf_map__set_max_entries(bpf->maps.targets,
						   options->targets_max ?: WAFFLE_MAX_TARGETS)
		       ?: bpf_map__set_max_entries(bpf->maps.cpus, cpus)
		       ?: bpf_map__set_max_entries(bpf->maps.sched_tails, cpus)
		       ?: bpf_map__set_max_entries(bpf->maps.waiting, cpus)
			  ?: bpf_map__set_max_entries(bpf->maps.sched_ring,
							      kernel->rows * kernel->config.sched_slots)
			     ?: rings_configure(kernel);
}

static int memory_map(struct kernel *kernel, struct error *err)
{
	kernel->cpu_bytes = sizeof(struct waffle_cpu) * kernel->cpus;
	kernel->slot_bytes =
		sizeof(struct waffle_rec_switch) * kernel->rows * kernel->config.sched_slots;
	kernel->cpu_memory = map_memory(kernel->bpf->maps.cpus, kernel->cpu_bytes, true);
	kernel->tail_memory = map_memory(kernel->bpf->maps.sched_tails,
					 sizeof(struct waffle_tail) * kernel->cpus, true);
	kernel->slot_memory = map_memory(kernel->bpf->maps.sched_ring, kernel->slot_bytes, false);
	if (!kernel->cpu_memory || !kernel->tail_memory || !kernel->slot_memory)
		return error_set(err, errno, "mapping BPF maps: %s", strerror(errno));
	for (uint32_t cpu = 0; cpu < kernel->cpus; cpu++) {
		kernel->tail_memory[cpu].row = WAFFLE_NO_ROW;
		if (kernel->online[cpu])
			row_take(kernel, cpu);
	}
	return 0;
}

void kernel_cpus_check(struct kernel *kernel, void (*cpu_online)(uint32_t cpu, void *arg),
		       void *arg)
{
	bool *online = calloc(kernel->cpus, sizeof(*online));

	if (!online)
		return; /* the next time */
	cpus_online(online, kernel->cpus, kernel->cpus_folder);
	for (uint32_t cpu = 0; cpu < kernel->cpus; cpu++) {
		if (online[cpu] == kernel->online[cpu])
			continue;
		kernel->online[cpu] = online[cpu];
		waits_cpu(kernel, cpu, online[cpu]);
		if (!online[cpu])
			continue;
		row_take(kernel, cpu);
		if (cpu_online)
			cpu_online(cpu, arg);
	}
	free(online);
}

static int kernel_load(struct kernel *kernel, const struct kernel_options *options,
		       struct error *err)
{
	int result;

	kernel_types_open(&kernel->types, KERNEL_TYPES_FILE); /* libbpf tells if it has none */
	kernel->bpf = kernel_programs_open(kernel);
	if (!kernel->bpf)
		return load_failed(err, errno);
	result = configure(kernel, options);
	if (result)
		return load_failed(err, -result);
	kernel->bpf->rodata->config = kernel->config;
	result = waffle_bpf__load(kernel->bpf);
	kernel_types_close(&kernel->types);
	if (result)
		return load_failed(err, -result);
	result = rings_open(kernel, options, err);
	if (!result)
		result = memory_map(kernel, err);
	if (!result)
		result = classes_open(kernel, err);
	return result;
}

int kernel_open(struct kernel **kernel, const struct kernel_options *options, struct error *err)
{
	struct kernel *made = calloc(1, sizeof(*made));
	const char *namespace = process_own_namespace();
	int cpus = libbpf_num_possible_cpus(), result;

	*kernel = NULL;
	if (namespace) {
		free(made);
		return error_set(err, EINVAL,
				 "this is a %s namespace of its own, whose numbers are not the "
				 "kernel's; start waffle-bpf in the host's (docker run --pid=host, "
				 "nsenter -t 1 -p -T)",
				 namespace);
	}
	if (made && cpus > 0)
		made->online = calloc((size_t)cpus, sizeof(*made->online));
	if (!made || !made->online) {
		free(made);
		return error_set(err, ENOMEM, "out of memory");
	}
	libbpf_set_print(getenv("WAFFLE_LIBBPF") ? verbose_print : quiet_print);
	made->types_fd = -1;
	made->sched = options->sched;
	made->config = options->config;
	made->stacks = options->stacks || options->config.stack_tables;
	made->cpus = (uint32_t)cpus;
	result = kernel_load(made, options, err);
	if (result)
		kernel_close(made);
	else
		*kernel = made;
	return result;
}

void kernel_close(struct kernel *kernel)
{
	if (!kernel)
		return;
	if (kernel->cpu_memory)
		munmap(kernel->cpu_memory, kernel->cpu_bytes);
	if (kernel->tail_memory)
		munmap(kernel->tail_memory, sizeof(struct waffle_tail) * kernel->cpus);
	if (kernel->slot_memory)
		munmap((void *)(uintptr_t)kernel->slot_memory, kernel->slot_bytes);
	rings_close(kernel);
	classes_close(kernel);
	calls_detach(kernel);
	vec_free(&kernel->fetch_programs);
	vec_free(&kernel->ended);
	map_free(&kernel->watched);
	waits_detach(kernel);
	stacks_close(kernel);
	closer_free(kernel->closer);
	waffle_bpf__destroy(kernel->bpf);
	kernel_types_close(&kernel->types);
	if (kernel->types_fd >= 0)
		close(kernel->types_fd);
	free(kernel->online);
	free(kernel);
}

/* `value`: WAFFLE_TARGET_… */
static int target_add(struct kernel *kernel, pid_t pid, uint32_t value, struct error *err)
{
	uint32_t key = (uint32_t)pid;
	struct waffle_program program = {0};
	__u64 *word = &kernel->bpf->bss->tgid_bits[(key >> 6) & (WAFFLE_TGID_WORDS - 1)];

	/* The kernel may already follow it, as a child of a target. */
	if (bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.targets), &key, &value,
				value == WAFFLE_TARGET_ALONE ? BPF_NOEXIST : BPF_ANY) &&
	    errno != EEXIST)
		return error_set(err, errno, "pid %d: too many processes (at most %d)", pid,
				 WAFFLE_MAX_TARGETS);
	/* If that fails, nothing of its memory is read. */
	bpf_map_update_elem(bpf_map__fd(kernel->bpf->maps.programs), &key, &program, BPF_NOEXIST);
	__atomic_fetch_or(word, 1ull << (key & 63), __ATOMIC_SEQ_CST);
	return 0;
}

int kernel_target_add(struct kernel *kernel, pid_t pid, struct error *err)
{
	return target_add(kernel, pid, WAFFLE_TARGET, err);
}

uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	struct waffle_program program;

	if (bpf_map_lookup_elem(bpf_map__fd(kernel->bpf->maps.programs), &key, &program) ||
	    program.privileged)
		return UINT64_MAX;
	return program.since;
}

bool kernel_program_is_privileged(const struct kernel *kernel, pid_t pid)
{
	return __atomic_load_n(&kernel->bpf->bss->privileged_seen, __ATOMIC_RELAXED) &&
	       kernel_program_since(kernel, pid) == UINT64_MAX;
}

uint64_t kernel_targets_refused(const struct kernel *kernel)
{
	return __atomic_load_n(&kernel->bpf->bss->targets_refused, __ATOMIC_RELAXED);
}

void kernel_skipped(const struct kernel *kernel, uint64_t counts[WAFFLE_SOURCE_COUNT])
{
	memcpy(counts, kernel->skipped, sizeof(kernel->skipped));
	skipped_add(kernel->bpf->obj, counts);
	if (kernel->call_bpf && !kernel->call_loading)
		skipped_add(kernel->call_bpf->obj, counts);
	for (size_t i = 0; i < kernel->classes.len; i++)
		if (kernel->classes.data[i].own)
			counts[WAFFLE_SOURCE_SPANS] += skipped_program(kernel->classes.data[i].hit);
}

uint64_t kernel_tasks_skipped(const struct kernel *kernel)
{
	return skipped_tasks(kernel->bpf->obj);
}

uint64_t kernel_wakes_unreported(const struct kernel *kernel)
{
	return __atomic_load_n(&kernel->bpf->bss->wakes_unreported, __ATOMIC_RELAXED);
}

uint64_t *kernel_rate_windows(struct kernel *kernel)
{
	return (uint64_t *)kernel->bpf->bss->rate_windows;
}

uint64_t kernel_fork_count(const struct kernel *kernel)
{
	return __atomic_load_n(&kernel->bpf->bss->forks, __ATOMIC_RELAXED);
}

/* Programs of the tracepoints; those of the scheduler only if it is recorded. */
static int attach_all(struct kernel *kernel, bool attach)
{
	struct waffle_bpf *bpf = kernel->bpf;
	const struct {
		struct bpf_program *program;
		struct bpf_link **link;
		bool wanted;
	} rows[] = {
		{bpf->progs.on_rename, &bpf->links.on_rename, true},
		{bpf->progs.on_exec, &bpf->links.on_exec, true},
		{bpf->progs.on_exit, &bpf->links.on_exit, true},
		{bpf->progs.on_fork, &bpf->links.on_fork, true},
		{bpf->progs.on_free, &bpf->links.on_free, true},
		{bpf->progs.on_waking, &bpf->links.on_waking, kernel->sched},
		{bpf->progs.on_migrate, &bpf->links.on_migrate, kernel->sched},
		{bpf->progs.on_wakeup_new, &bpf->links.on_wakeup_new, true}, /* names */
		{bpf->progs.on_switch, &bpf->links.on_switch, kernel->sched},
		{bpf->progs.filter_thread_exit, &bpf->links.filter_thread_exit,
		 kernel->config.keep_children},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!attach) {
			bpf_link__destroy(*rows[i].link);
			*rows[i].link = NULL;
		} else if (rows[i].wanted) {
			*rows[i].link = bpf_program__attach(rows[i].program);
			if (!*rows[i].link)
				return -errno;
		}
	}
	return 0;
}

void kernel_finish(struct kernel *kernel)
{
	__atomic_store_n(&kernel->bpf->bss->finished, true, __ATOMIC_SEQ_CST);
}

void kernel_detach(struct kernel *kernel)
{
	waits_detach(kernel);
	requests_detach(kernel);
	calls_detach(kernel);
	attach_all(kernel, false);
}

/* Largest record of a snapshot. */
#define SNAPSHOT_BYTES (sizeof(struct waffle_rec_halted) + WAFFLE_STACK_DEPTH * sizeof(uint64_t))

/* Calls `each` for all whole records in the buffer, and moves the rest to its begin. */
static int snapshot_each(char *bytes, size_t *have,
			 int (*each)(const struct waffle_rec *rec, void *arg), void *arg)
{
	size_t at = 0;
	int result = 0;

	while (!result && *have - at >= sizeof(struct waffle_rec_state)) {
		const struct waffle_rec *rec = (const struct waffle_rec *)(bytes + at);
		size_t size = sizeof(struct waffle_rec_state);

		if (rec->kind == WAFFLE_REC_HALTED) {
			size = sizeof(struct waffle_rec_halted);
			if (*have - at < size)
				break;
			size += ((const struct waffle_rec_halted *)rec)->kernel_bytes;
			if (size > SNAPSHOT_BYTES)
				return -EPROTO;
		}
		if (*have - at < size)
			break;
		result = each(rec, arg);
		at += size;
	}
	memmove(bytes, bytes + at, *have - at);
	*have -= at;
	return result;
}

static int snapshot_read(int fd, int (*each)(const struct waffle_rec *rec, void *arg), void *arg)
{
	union {
		uint64_t aligned;
		char bytes[4 * SNAPSHOT_BYTES];
	} buffer;
	size_t have = 0;
	ssize_t len;

	while ((len = read(fd, buffer.bytes + have, sizeof(buffer.bytes) - have)) != 0) {
		int result;

		if (len < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		have += len > 0 ? (size_t)len : 0;
		result = snapshot_each(buffer.bytes, &have, each, arg);
		if (result)
			return result;
	}
	return 0;
}

int kernel_snapshot(struct kernel *kernel, bool at_end,
		    int (*each)(const struct waffle_rec *rec, void *arg), void *arg,
		    struct error *err)
{
	int fd, result;

	kernel->bpf->bss->snapshot_at_end = at_end;
	fd = iterator_open(kernel->bpf->progs.snapshot);
	if (fd < 0)
		return load_failed(err, -fd);
	result = snapshot_read(fd, each, arg);
	close(fd);
	return result ? error_set(err, -result, "reading the threads' states: %s",
				  strerror(-result))
		      : 0;
}

int kernel_target_add_alone(struct kernel *kernel, pid_t pid,
			    int (*each)(const struct waffle_rec *rec, void *arg), void *arg,
			    struct error *err)
{
	/* The snapshot also makes the states of its threads, see kernel_attach(). */
	return target_add(kernel, pid, WAFFLE_TARGET_ALONE, err)
		       ?: kernel_snapshot(kernel, false, each, arg, err);
}

uint32_t kernel_stack_number(struct kernel *kernel)
{
	/* As trace_emit() of bpf/wait.h numbers them. */
	return kernel->bpf->bss->stack_numbers++ % (WAFFLE_STACK_BY_FRAMES - 1) + 1;
}

static int record_ignore(const struct waffle_rec *rec, void *arg)
{
	(void)rec;
	(void)arg;
	return 0;
}

int kernel_attach(struct kernel *kernel, struct error *err)
{
	/* A snapshot makes the states of threads, which the scheduler's programs may not be able to
	 * do (bpf/shared.h: scheduler_allocates()). */
	int result = kernel_snapshot(kernel, false, record_ignore, NULL, err);

	if (result)
		return result;
	result = attach_all(kernel, true) ?: waits_attach(kernel);
	if (result)
		return load_failed(err, -result);
	requests_attach(kernel);
	calls_load_soon(kernel);
	return 0;
}

uint32_t kernel_cpu_count(const struct kernel *kernel)
{
	return kernel->cpus;
}

const struct waffle_cpu *kernel_cpu(const struct kernel *kernel, uint32_t cpu)
{
	return &kernel->cpu_memory[cpu];
}

struct waffle_tail *kernel_tail(const struct kernel *kernel, uint32_t cpu)
{
	return &kernel->tail_memory[cpu];
}

const struct waffle_rec_switch *kernel_slot(const struct kernel *kernel, uint32_t cpu,
					    uint64_t position)
{
	return &kernel->slot_memory[(uint64_t)kernel->tail_memory[cpu].row *
					    kernel->config.sched_slots +
				    (position & (kernel->config.sched_slots - 1))];
}

uint32_t kernel_slot_count(const struct kernel *kernel)
{
	return kernel->config.sched_slots;
}

int kernel_targets(const struct kernel *kernel, const uint64_t **bits)
{
	_Static_assert(sizeof(kernel->bpf->bss->tgid_bits[0]) == sizeof(**bits), "words");
	*bits = (const uint64_t *)kernel->bpf->bss->tgid_bits;
	return bpf_map__fd(kernel->bpf->maps.targets);
}

void kernel_probes_widen(struct kernel *kernel)
{
	__atomic_store_n(&kernel->bpf->bss->probes_wide, true, __ATOMIC_SEQ_CST);
}

// SPDX-License-Identifier: Apache-2.0
/* Decides which of the programs for details of waits (bpf/wait.bpf.c) this kernel can load. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/wait.h"
#include "kernel/cpus_internal.h"
#include "kernel/kernel_internal.h"
#include "kernel/types_internal.h"
#include "waffle.skel.h"

/* A program of a source. Sources that the kernel does not have are left out. */
struct wait_program {
	const char *name;       /* of the program */
	const char *tracepoint; /* required; NULL: attached to a software event instead */
	uint32_t source;        /* enum waffle_wait_source */
	uint64_t event;         /* PERF_COUNT_SW_* */
	bool optional;          /* the source is useful without it */
};

static const struct wait_program programs[] = {
	/* Ends first: a begin without its end would look like an endless fault. */
	{"on_fault_minor", NULL, WAFFLE_WAIT_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN, false},
	{"on_fault_major", NULL, WAFFLE_WAIT_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MAJ, false},
	{"on_fault", "page_fault_user", WAFFLE_WAIT_FAULTS, 0, false},
	{"on_fault_kernel", "page_fault_kernel", WAFFLE_WAIT_FAULTS, 0, false},
	{"on_io_complete", "block_rq_complete", WAFFLE_WAIT_IO, 0, false},
	{"on_io_merge", "block_rq_merge", WAFFLE_WAIT_IO, 0, true},
	{"on_io_issue", "block_rq_issue", WAFFLE_WAIT_IO, 0, false},
	{"on_io_start", "block_io_start", WAFFLE_WAIT_IO, 0, true},
	{"on_datagram", "sock_send_length", WAFFLE_WAIT_FILES, 0, true},
	{"on_resent", "tcp_retransmit_skb", WAFFLE_WAIT_FILES, 0, true},
	{"on_flock", "flock_lock_inode", WAFFLE_WAIT_FILES, 0, true},
	{"on_posix_lock", "posix_lock_inode", WAFFLE_WAIT_FILES, 0, true},
	{"on_signal", "signal_generate", WAFFLE_WAIT_SIGNALS, 0, false},
	{"on_frequency", "cpu_frequency", WAFFLE_WAIT_FREQUENCY, 0, false},
	{"on_sample", NULL, WAFFLE_WAIT_SAMPLES, PERF_COUNT_SW_CPU_CLOCK, false},
};
#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))

/* The sources whose records refer to stacks. */
#define STACK_SOURCES (WAFFLE_WAIT_STACKS | WAFFLE_WAIT_SAMPLES)

/* System calls that can wait and whose first argument is a descriptor. */
static const int descriptor_calls[] = {
	SYS_read,
	SYS_write,
	SYS_pread64,
	SYS_pwrite64,
	SYS_readv,
	SYS_writev,
	SYS_preadv,
	SYS_pwritev,
	SYS_preadv2,
	SYS_pwritev2,
	SYS_close,
	SYS_fsync,
	SYS_fdatasync,
	SYS_sync_file_range,
	SYS_syncfs,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_flock,
	SYS_fcntl,
	SYS_ioctl,
	SYS_getdents64,
	SYS_lseek,
	SYS_readahead,
	SYS_fadvise64,
	SYS_sendfile,
	SYS_splice,
	SYS_tee,
	SYS_vmsplice,
	SYS_copy_file_range,
	SYS_epoll_pwait,
	SYS_epoll_pwait2,
	SYS_io_uring_enter,
	SYS_mq_timedsend,
	SYS_mq_timedreceive,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_getdents
	SYS_getdents,
#endif
};

/* The subset of these system calls whose descriptor is always a socket. */
static const int socket_calls[] = {
	SYS_accept,   SYS_accept4, SYS_connect, SYS_recvfrom, SYS_recvmsg,
	SYS_recvmmsg, SYS_sendto,  SYS_sendmsg, SYS_sendmmsg, SYS_shutdown,
};

static bool is_listed(int number, const int *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (calls[i] == number)
			return true;
	return false;
}

bool kernel_waits_for_descriptor(int syscall)
{
	return is_listed(syscall, descriptor_calls,
			 sizeof(descriptor_calls) / sizeof(descriptor_calls[0])) ||
	       is_listed(syscall, socket_calls, sizeof(socket_calls) / sizeof(socket_calls[0]));
}

static void set_call(__u64 *calls, int number)
{
	if (number / 64 < WAFFLE_SYSCALLS_MAX / 64)
		calls[number / 64] |= 1ull << (number % 64);
}

static void set_calls(struct waffle_config *config)
{
	for (size_t i = 0; i < sizeof(descriptor_calls) / sizeof(descriptor_calls[0]); i++)
		set_call(config->descriptor_calls, descriptor_calls[i]);
	for (size_t i = 0; i < sizeof(socket_calls) / sizeof(socket_calls[0]); i++) {
		set_call(config->descriptor_calls, socket_calls[i]);
		set_call(config->socket_calls, socket_calls[i]);
	}
}

static bool has_tracepoint(const struct kernel_types *types, const char *name)
{
	char type[128];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return kernel_types_has(types, type);
}

/* Opens a software event on one CPU for all processes. It is reported every `period` occurrences,
 * or nanoseconds of a clock. Negative errno on failure. */
static int event_open(uint64_t event, uint64_t period, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = event,
		.sample_period = period,
		.exclude_idle = event == PERF_COUNT_SW_CPU_CLOCK,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The kernel may lack them, and a container may forbid them. */
static bool has_event(uint64_t event)
{
	int fd = event_open(event, 1000000000, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool has_frequency(const struct kernel *kernel)
{
	struct cpu_frequency frequency;

	for (uint32_t cpu = 0; cpu < kernel->cpus; cpu++)
		if (cpu_frequency_read(&frequency, kernel->cpus_folder, cpu))
			return true;
	return false;
}

/* Removes the sources that this machine does not have. Returns a bit for each program that it can't
 * load. */
static uint32_t sources_possible(const struct kernel *kernel, uint32_t sources, uint32_t *missing,
				 enum cpus_steal *steal)
{
	const struct kernel_types *types = &kernel->types;
	bool known = sources && types->bytes;

	*missing = 0;
	for (size_t i = 0; known && i < PROGRAMS; i++) {
		const struct wait_program *row = &programs[i];

		if (!(sources & row->source) ||
		    (row->tracepoint ? has_tracepoint(types, row->tracepoint)
				     : has_event(row->event)))
			continue;
		*missing |= 1u << i;
		if (!row->optional)
			sources &= ~row->source;
	}
	*steal = known ? cpus_steal(types) : CPUS_STEAL_NONE;
	if (*steal == CPUS_STEAL_NONE)
		sources &= ~WAFFLE_WAIT_STEAL;
	if (sources & WAFFLE_WAIT_FREQUENCY && !has_frequency(kernel))
		sources &= ~WAFFLE_WAIT_FREQUENCY;
	return sources;
}

static bool is_wanted(const struct kernel *kernel, size_t program)
{
	return kernel->config.wait_sources & programs[program].source &&
	       !(kernel->wait_missing >> program & 1);
}

int waits_configure(struct kernel *kernel, const struct kernel_options *options)
{
	struct waffle_config *config = &kernel->config;
	struct waffle_bpf *bpf = kernel->bpf;
	enum cpus_steal steal;

	config->wait_sources = sources_possible(kernel, options->sched ? config->wait_sources : 0,
						&kernel->wait_missing, &steal);
	bpf_program__set_autoload(bpf->progs.symbolize,
				  kernel->stacks || kernel->config.wait_sources & STACK_SOURCES);
	if (!config->sample_ns)
		config->wait_sources &= ~(uint32_t)WAFFLE_WAIT_SAMPLES;
	config->steal_by_tick = steal == CPUS_STEAL_TICK;
	config->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	set_calls(config);
	if (!config->wait_sources)
		config->wait_min_ns = UINT64_MAX;
	for (size_t i = 0; i < PROGRAMS; i++)
		bpf_program__set_autoload(
			bpf_object__find_program_by_name(bpf->obj, programs[i].name),
			is_wanted(kernel, i));
	/* Kernel stacks of calls at tracepoints use the same map. */
	return (kernel->config.wait_sources & STACK_SOURCES || (options->calls && options->stacks)
			? 0
			: bpf_map__set_max_entries(bpf->maps.stacks, 1))
		       ?: bpf_map__set_max_entries(bpf->maps.frequencies, kernel->cpus);
}

static int event_attach(struct kernel *kernel, struct bpf_program *program, uint64_t event, int cpu)
{
	uint64_t period = event == PERF_COUNT_SW_CPU_CLOCK ? kernel->config.sample_ns : 1;
	int fd = event_open(event, period, cpu);
	struct bpf_link *link;

	if (fd < 0)
		return fd == -ENODEV ? 0 : fd; /* a CPU that is offline */
	link = bpf_program__attach_perf_event(program, fd);
	if (!link) {
		int result = -errno;

		close(fd);
		return result;
	}
	if (!vec_push(&kernel->wait_links, link)) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	return 0;
}

/* Attaches a program to its tracepoint. Those of software events are attached for each CPU. */
static int program_attach(struct kernel *kernel, const struct wait_program *row)
{
	struct bpf_program *program = bpf_object__find_program_by_name(kernel->bpf->obj, row->name);
	struct bpf_link *link;

	if (!row->tracepoint)
		return 0;
	link = bpf_program__attach(program);
	if (!link)
		return -errno;
	if (!vec_push(&kernel->wait_links, link)) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	return 0;
}

/* Runs the program of the frequency tracepoint with a frequency that was read. */
static int frequency_record(struct kernel *kernel, uint32_t cpu,
			    const struct cpu_frequency *frequency)
{
	struct waffle_frequency last = {.max_khz = frequency->max_khz,
					.flags = WAFFLE_FREQUENCY_READ};
	__u64 arguments[2] = {frequency->khz, cpu};
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = arguments, .ctx_size_in = sizeof(arguments));
	int map = bpf_map__fd(kernel->bpf->maps.frequencies);
	int program = bpf_program__fd(kernel->bpf->progs.on_frequency);
	int result = bpf_map_update_elem(map, &cpu, &last, BPF_ANY)
			     ?: bpf_prog_test_run_opts(program, &run);

	last.khz = frequency->khz;
	last.flags = 0;
	return result ?: bpf_map_update_elem(map, &cpu, &last, BPF_ANY);
}

/* The tracepoint reports changes only, so the first frequencies are read. */
static int frequencies_begin(struct kernel *kernel)
{
	struct cpu_frequency frequency;
	int result = 0;

	if (!(kernel->config.wait_sources & WAFFLE_WAIT_FREQUENCY))
		return 0;
	for (uint32_t cpu = 0; cpu < kernel->cpus && !result; cpu++)
		if (cpu_frequency_read(&frequency, kernel->cpus_folder, cpu))
			result = frequency_record(kernel, cpu, &frequency);
	return result;
}

static void faults_counted(struct kernel *kernel, uint32_t cpu, bool counted)
{
	__u64 *word = &kernel->bpf->bss->fault_cpus[cpu / 64 % WAFFLE_CPU_WORDS];

	if (counted)
		__atomic_fetch_or(word, 1ull << (cpu % 64), __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(word, ~(1ull << (cpu % 64)), __ATOMIC_SEQ_CST);
}

/* Attaches the programs of a source's software events on a CPU. */
static int events_attach(struct kernel *kernel, uint32_t source, uint32_t cpu)
{
	int result = 0;

	for (size_t i = 0; i < PROGRAMS && !result; i++)
		if (programs[i].source == source && !programs[i].tracepoint && is_wanted(kernel, i))
			result = event_attach(kernel,
					      bpf_object__find_program_by_name(kernel->bpf->obj,
									       programs[i].name),
					      programs[i].event, (int)cpu);
	return result;
}

/* Attaches the software events of one CPU. Negative errno: it lacks some of them. */
static int cpu_attach(struct kernel *kernel, uint32_t cpu, bool online)
{
	int faults, samples;

	faults_counted(kernel, cpu, false);
	if (!online)
		return 0;
	/* Ends of faults first: a begin without its end would look like an endless fault. */
	faults = events_attach(kernel, WAFFLE_WAIT_FAULTS, cpu);
	if (kernel->config.wait_sources & WAFFLE_WAIT_FAULTS)
		faults_counted(kernel, cpu, !faults);
	samples = events_attach(kernel, WAFFLE_WAIT_SAMPLES, cpu);
	return faults ?: samples;
}

/* A CPU that goes offline loses its counters, and gets new ones when it comes back. */
void waits_cpu(struct kernel *kernel, uint32_t cpu, bool online)
{
	(void)cpu_attach(kernel, cpu, online);
}

int waits_attach(struct kernel *kernel)
{
	int result = frequencies_begin(kernel);

	for (size_t i = 0; i < PROGRAMS && !result; i++)
		if (is_wanted(kernel, i))
			result = program_attach(kernel, &programs[i]);
	for (uint32_t cpu = 0; cpu < kernel->cpus && !result; cpu++) {
		int problem = cpu_attach(kernel, cpu, kernel->online[cpu]);

		if (!problem)
			continue;
		kernel->events_refused++;
		kernel->events_problem = -problem;
	}
	return result;
}

uint32_t kernel_events_refused(const struct kernel *kernel, int *problem)
{
	*problem = kernel->events_problem;
	return kernel->events_refused;
}

void waits_detach(struct kernel *kernel)
{
	for (size_t i = kernel->wait_links.len; i > 0; i--)
		bpf_link__destroy(kernel->wait_links.data[i - 1]);
	vec_free(&kernel->wait_links);
}

uint32_t kernel_wait_sources(const struct kernel *kernel)
{
	return kernel->config.wait_sources;
}

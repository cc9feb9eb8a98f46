/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of userspace/kernel: the contents of
 * struct kernel, and what they call of each other. */
#ifndef WAFFLE_KERNEL_KERNEL_INTERNAL_H
#define WAFFLE_KERNEL_KERNEL_INTERNAL_H

#include <linux/bpf.h>
#include <pthread.h>

#include "bpf/mmap_lock.h"
#include "kernel/kernel.h"
#include "kernel/types_internal.h"
#include "util/map.h"
#include "util/vec.h"

struct bpf_link;
struct closer;
struct bpf_map;
struct bpf_object;
struct bpf_program;
struct ring_buffer;
struct waffle_bpf;

/* The programs of a class of sites. */
struct loaded_class {
	int hit;  /* attached to its sites */
	bool own; /* a program of its own, not one of the skeleton's */
	bool is_span;
	uint64_t cookie; /* calls: WAFFLE_COOKIE_ENTRY_FILTER, WAFFLE_COOKIE_RETURN_FILTER */
	uint32_t hit_jited, end_jited; /* bytes of machine code; 0: no program of its own */
};

#define MMAP_LOCK_WAITS_MAX 64

struct mmap_lock_waits {
	struct waffle_mmap_lock_wait list[MMAP_LOCK_WAITS_MAX];
	unsigned looks[MMAP_LOCK_WAITS_MAX]; /* for each, the number of looks that it has lasted */
	size_t count;
};

/* A thread that keeps the mmap_lock of its process while it is blocked. */
struct mmap_lock_state {
	uint64_t until_ts;            /* so long this is taken to be so; 0: not looked yet */
	unsigned looks;               /* that were taken so far, if it is not decided yet */
	struct mmap_lock_waits waits; /* of the last look */
	uint32_t pid, tid;            /* 0: there is none */
	const char *call;             /* the system call that it is in; NULL: another */
	char comm[WAFFLE_COMM_BYTES];
};

struct kernel {
	struct waffle_config config; /* what the programs were told */
	struct kernel_types types;   /* valid while programs are loaded */
	int types_fd;                /* a file with the excerpt of types that they need; -1: none */
	struct waffle_bpf *bpf;
	struct waffle_bpf *call_bpf; /* the programs at calls; NULL: not loaded yet */
	int call_result;             /* result of loading them */
	pthread_t call_loader;       /* loads them in the background, if call_loading */
	bool call_loading, call_cancelled;
	int call_wake; /* an eventfd that ends the loader's wait */
	bool multi;    /* one link arms many sites */
	bool sched;
	bool filtered;
	bool stacks; /* stacks of spans are requested */
	VEC(struct loaded_class) classes;
	uint32_t wait_missing; /* a bit for each of their programs that can't be loaded here */
	VEC(struct bpf_link *) wait_links;
	uint32_t events_refused; /* see kernel_events_refused() */
	int events_problem;
	bool requests;        /* those of servers are followed */
	int requests_problem; /* errno: why they are not; 0: they are, or nobody asked for them */
	bool calls;
	VEC(uint32_t) fetch_programs; /* the site of each fetch program that was set */
	struct closer *closer;        /* NULL: none yet */
	struct mmap_lock_state locks; /* of the last look at them */
	bool drained;                 /* see kernel_looks_briefly() */
	VEC(int) point_fds;           /* perf events and links of tracepoints */
	const char *cpus_folder;
	bool *online;             /* for each CPU, as of the last check */
	uint32_t rows, rows_used; /* rows of slots for switches */
	uint32_t cpus, ring_count;
	int *ring_fds;
	uint64_t ring_bytes;
	struct ring_buffer *rings; /* reads all rings */
	/* State of the current kernel_queue_take(). */
	kernel_take_fn *take;
	void *take_arg;
	size_t take_left; /* bytes */
	struct waffle_cpu *cpu_memory;
	struct waffle_tail *tail_memory;
	const struct waffle_rec_switch *slot_memory;
	size_t cpu_bytes, slot_bytes;
	VEC(void *) slabs;     /* mapped slabs (bpf/unwind.h) */
	uint64_t unwind_pages; /* in use */
	struct map watched;    /* number of watches at each address (bpf/python.h) */
	VEC(uint32_t) ended;   /* ended processes whose entries are not swept yet */
	uint64_t sweep_ts;     /* time of the last sweep */
	uint64_t skipped[WAFFLE_SOURCE_COUNT]; /* runs of programs that are closed now */
};

/* memory.c */

/* The smallest `min` times a power of two that is at least `value`. */
uint64_t power_of_two(uint64_t value, uint64_t min);
/* Maps the memory of a BPF map. NULL, with errno, on failure. */
void *map_memory(const struct bpf_map *map, size_t bytes, bool writable);

/* programs.c */

/* Opens the BPF object with all programs; the caller selects those to load. NULL, with errno, on
 * failure. */
struct waffle_bpf *kernel_programs_open(struct kernel *kernel);

/* Sets the attach type of the programs at sites, before loading. */
void kernel_site_programs_configure(const struct kernel *kernel, struct waffle_bpf *bpf);

/* Loads a program of a filter. Returns a descriptor, which the caller closes. */
int code_load(const struct kernel *kernel, const struct filter_code *code,
	      enum waffle_deferred_size deferred, bool at_tracepoint, struct error *err);
/* Size of its machine code in bytes; 0: the kernel does not tell. */
uint32_t jited_bytes(int program);
/* The map that holds spans of a size. */
struct bpf_map *deferred_map(const struct kernel *kernel, enum waffle_deferred_size size);

/* Sets the sizes of the filter's maps and the constants of its programs, before loading. */
int classes_configure(struct kernel *kernel, const struct kernel_options *options);
/* Fills the program array, after loading. */
int classes_open(struct kernel *kernel, struct error *err);
void classes_close(struct kernel *kernel);

/* The programs for details of waits: chosen before loading, attached, detached. */
int waits_configure(struct kernel *kernel, const struct kernel_options *options);
int waits_attach(struct kernel *kernel);
void waits_detach(struct kernel *kernel);
/* A CPU has come online, or has gone. */
void waits_cpu(struct kernel *kernel, uint32_t cpu, bool online);

/* The programs for requests: chosen before loading, attached, detached. */
int requests_configure(struct kernel *kernel, const struct kernel_options *options);
void requests_attach(struct kernel *kernel);
void requests_detach(struct kernel *kernel);

/* Chooses the program for watches of Python, before loading. */
int python_configure(struct kernel *kernel, const struct kernel_options *options);

/* Calls: sets up their programs and maps, before loading; detaches tracepoints. */
int calls_configure(struct kernel *kernel, const struct kernel_options *options);
void calls_detach(struct kernel *kernel);
/* Starts a thread that loads the programs at calls. */
void calls_load_soon(struct kernel *kernel);
/* The program to attach to a call's probe of a type (enum object_probe_type), and its cookie. -1:
 * its fetch program is not set, or there is no such class. `use` counts in a filtered session. */
struct arm_use;
int call_program(const struct kernel *kernel, uint32_t site, uint8_t type,
		 const struct arm_use *use, uint64_t *cookie);
/* Ring buffers: sets their number before loading, and creates them after it. */
int rings_configure(struct kernel *kernel);
int rings_open(struct kernel *kernel, const struct kernel_options *options, struct error *err);
void rings_close(struct kernel *kernel);
/* Loads the programs of a class of calls. */
int call_class_load(const struct kernel *kernel, struct loaded_class *loaded, uint32_t index,
		    const struct plan_class *class, struct error *err);

/* The runs that the kernel has skipped, in skipped.c: of one program; of those programs of an
 * object that write records, added to the counts of their sources; and of those at forks and the
 * like. */
uint64_t skipped_program(int fd);
void skipped_add(const struct bpf_object *object, uint64_t counts[WAFFLE_SOURCE_COUNT]);
uint64_t skipped_tasks(const struct bpf_object *object);

/* Creates an iterator, from which userspace reads what the program writes: a descriptor, or a
 * negative errno. */
int iterator_open(const struct bpf_program *program);

/* Waits until all links are closed, and frees. */
void closer_free(struct closer *closer);
void stacks_close(struct kernel *kernel);

#endif

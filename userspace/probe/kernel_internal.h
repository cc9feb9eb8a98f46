/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of struct kernel, for probe/ only. */
#ifndef WAFFLE_PROBE_KERNEL_INTERNAL_H
#define WAFFLE_PROBE_KERNEL_INTERNAL_H

#include <linux/bpf.h>
#include <pthread.h>

#include "probe/kernel.h"
#include "util/vec.h"

struct bpf_link;
struct closer;
struct bpf_map;
struct ring_buffer;
struct waffle_bpf;

/* The programs of a class of sites. */
struct loaded_class {
	int hit;  /* attached to its sites */
	bool own; /* a program of its own, not one of the skeleton's */
	bool is_span;
	uint64_t cookie; /* of calls: WAFFLE_COOKIE_ASKED or WAFFLE_COOKIE_HELD if it has a program
			  */
	uint32_t hit_jited, end_jited; /* bytes of machine code; 0: no program of its own */
};

/* A recipe that the kernel has and, for a plain call, how its hits are made. */
struct loaded_recipe {
	uint32_t site;
	bool is_plain;
	bool outer, inner; /* WAFFLE_CALL_OUTER, WAFFLE_CALL_INNER */
	uint8_t word_count;
	uint8_t stack_first, stack_count; /* words of the stack in the record */
	uint16_t word_bytes;
	struct waffle_word words[WAFFLE_FETCHES_MAX];
};

struct kernel {
	struct waffle_bpf *bpf;
	struct waffle_bpf *call_bpf; /* the programs at calls; NULL: not loaded yet */
	int call_result;             /* of loading them */
	pthread_t call_loader;       /* loads them in advance while call_loading */
	bool call_loading, call_cancelled;
	int call_wake; /* an eventfd that ends the loader's wait */
	bool multi;    /* one link arms many sites */
	bool sched;
	bool filtered;
	bool keep_children;
	bool stacks; /* of spans are wanted */
	VEC(struct loaded_class) classes;
	uint32_t wait_sources; /* enum waffle_wait_source */
	uint32_t wait_missing; /* a bit for each of their programs that this kernel can't load */
	VEC(struct bpf_link *) wait_links;
	bool calls;
	VEC(struct loaded_recipe) recipes;    /* by number */
	struct waffle_plain_ends *plain_ends; /* NULL: no calls */
	const struct waffle_plain_slot *plain_slots;
	struct closer *closer; /* NULL: none yet */
	uint32_t plain_cpus;   /* the first ones have slots; those of others come by the rings */
	VEC(int) point_fds;    /* of tracepoints: perf events and links */
	const char *cpus_folder;
	bool *online;             /* of each CPU, as of the last look */
	uint32_t rows, rows_used; /* of switches' slots */
	uint32_t cpus, slots, ring_count;
	int *ring_fds;
	uint64_t ring_bytes;
	struct ring_buffer *rings; /* reads all of them */
	/* Of kernel_queue_take() under way. */
	kernel_take_fn *take;
	void *take_arg;
	size_t take_left; /* bytes */
	struct waffle_cpu *cpu_memory;
	struct waffle_tail *tail_memory;
	const struct waffle_rec_switch *slot_memory;
	size_t cpu_bytes, slot_bytes;
	VEC(void *) slabs;     /* memory of bpf/unwind.h */
	uint64_t unwind_pages; /* in use */
	VEC(uint32_t) ended;   /* processes whose entries were not swept yet */
	uint64_t sweep_ts;     /* of the last sweep */
};

/* The attach type of all programs at sites: the kernel requires the same one for tail calls between
 * them. */
enum bpf_attach_type kernel_site_attach_type(const struct kernel *kernel);
/* Sets it, before loading. */
void kernel_site_programs_configure(const struct kernel *kernel, struct waffle_bpf *bpf);

/* Sizes of the filter's maps and constants of its programs, before loading. */
int classes_configure(struct kernel *kernel, const struct kernel_options *options);
/* Fills the program array, after loading. */
int classes_open(struct kernel *kernel, struct error *err);
void classes_close(struct kernel *kernel);

/* The programs that explain waits: chosen before loading, attached, detached. */
int waits_configure(struct kernel *kernel, const struct kernel_options *options);
int waits_attach(struct kernel *kernel);
void waits_detach(struct kernel *kernel);
/* A CPU has come online, or has gone. */
void waits_cpu(struct kernel *kernel, uint32_t cpu, bool online);

/* Calls: their programs and maps, before loading; what was attached to tracepoints. */
int calls_configure(struct kernel *kernel, const struct kernel_options *options);
void calls_detach(struct kernel *kernel);
/* Begins to load the programs at calls in a thread of its own. */
void calls_load_soon(struct kernel *kernel);
/* After loading. */
int calls_open(struct kernel *kernel, struct error *err);
/*
 * The program that is attached to a call's probe of a type (enum object_probe_type), and its
 * cookie; -1: its recipe was not set, or there is no such class. `use` counts in a filtered
 * session.
 */
struct arm_use;
int call_program(const struct kernel *kernel, uint32_t site, uint8_t type,
		 const struct arm_use *use, uint64_t *cookie);
/* Ring buffers: their number and the programs' table of them, before loading; made after it. */
int rings_configure(struct kernel *kernel);
int rings_open(struct kernel *kernel, const struct kernel_options *options, struct error *err);
void rings_close(struct kernel *kernel);
/* The least power of two times `min` that is not below `value`. */
uint64_t power_of_two(uint64_t value, uint64_t min);
/* Maps the slots of plain calls, after loading. */
int plain_map(struct kernel *kernel, struct error *err);
void plain_unmap(struct kernel *kernel);
/* Hands over a plain call, as a hit. */
void plain_take(const struct kernel *kernel, const struct waffle_rec_plain *plain);
/* The slots of a CPU, until `take_left` is used up; whether none is left. */
bool plain_slots_take(struct kernel *kernel, uint32_t cpu);
/* Sets how a plain call's hits are made, if the call is one. */
void plain_load(struct loaded_recipe *loaded, const struct waffle_recipe *recipe);
/* The programs of a class of calls. */
int call_class_load(const struct kernel *kernel, struct loaded_class *loaded, uint32_t index,
		    const struct plan_class *class, struct error *err);

/* Waits until everything is closed, and frees. */
void closer_free(struct closer *closer);
/* NULL: it can't be mapped, errno says why. */
void *map_memory(const struct bpf_map *map, size_t bytes, bool writable);
/* Bytes of its machine code; 0: the kernel does not show it. */
uint32_t jited_bytes(int program);
/* A program of a filter, in classes.c; a descriptor of its own. */
int code_load(const struct kernel *kernel, const struct filter_code *code,
	      enum waffle_held_size held, bool at_tracepoint, struct error *err);
void stacks_close(struct kernel *kernel);
/* The map of held spans of a size. */
struct bpf_map *held_map(const struct kernel *kernel, enum waffle_held_size size);

#endif

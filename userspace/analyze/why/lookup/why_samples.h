/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads ran: samples of threads that have a CPU, summed up by place. A place is a function
 * of the program, or what the kernel did for the thread, such as a system call. Samples are
 * statistics: they describe running time, and change no duration.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SAMPLES_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "symbolize/stack_names.h"
#include "util/strtab.h"

/* The kind of lock for which a thread spins, or otherwise works instead of the program. The
 * innermost functions of its stack tell. */
enum sample_spin {
	SAMPLE_SPIN_NONE,
	SAMPLE_SPIN_USER,        /* a spin lock of the program */
	SAMPLE_SPIN_PI,          /* a mutex with priority inheritance whose holder runs */
	SAMPLE_SPIN_KERNEL,      /* a mutex or rwsem of the kernel whose holder runs */
	SAMPLE_SPIN_KERNEL_SPIN, /* a spin lock of the kernel */
	SAMPLE_SPIN_PAUSE,       /* a loop of the program that executes PAUSE */
	SAMPLE_SPIN_ALLOCATOR,   /* in futex(2) for a lock of the memory allocator; it may sleep */
	SAMPLE_SPIN_COUNT
};
/* The texts are for people, such as "spins for a lock", and the names for JSON, such as
 * "user-lock". NULL for SAMPLE_SPIN_NONE. */
extern const char *const sample_spin_texts[SAMPLE_SPIN_COUNT];
extern const char *const sample_spin_names[SAMPLE_SPIN_COUNT];

struct sample_place {
	bool kernel;
	uint8_t spin;    /* enum sample_spin */
	int16_t syscall; /* in the kernel; -1: none */
	/* The function of the program; in the kernel without a system call, what the kernel did, or
	 * its function. Numbers in the caller's table; 0: unknown. */
	uint32_t text;
	uint32_t function; /* the same without what the interpreter did for it */
	uint32_t module;   /* base name of the function's file; 0: none */
	/* The path of the source of a function of Python, unless it is in Python's own library;
	 * 0: none. */
	uint32_t source;
	/* In no known file: what may have generated the code, such as "the JVM"; 0: unknown. */
	uint32_t generator;
	/* Not a place: what a run-time does while samples are taken, such as "the garbage
	 * collection of Go"; 0: it is a place. */
	uint32_t phase;
};

/* A place, and how many samples show it. */
struct sample_count {
	uint32_t place;
	uint32_t count;  /* of samples that were taken there */
	uint32_t within; /* of samples that have this function anywhere on their stack */
	/* Summed up over `within`: how many functions of the stack are outside of this one. */
	uint64_t depth;
};
typedef VEC(struct sample_count) sample_counts;

/* The places of a model's samples. `texts` is the table of all texts, and belongs to the caller.
 * `names` is used by sample_counts_add_samples() only. */
struct sample_places;
struct sample_places *sample_places_new(const struct model *model, struct stack_names *names,
					struct strtab *texts);
void sample_places_free(struct sample_places *places);
const struct sample_place *sample_places_get(const struct sample_places *places, uint32_t place);
/* Adds all places of `from`. Returns their numbers, which the caller frees. */
uint32_t *sample_places_take(struct sample_places *places, const struct sample_places *from);
/* "gemm_kernel", "step (train.py)"; "" if it is unknown. */
const char *sample_place_function(const struct sample_places *places, uint32_t place);
/* What sample_counts_phase() found: "the garbage collection of Go". */
const char *sample_place_phase(const struct sample_places *places, uint32_t place);
/* "gemm_kernel, user", "kernel, write()"; the caller frees it. */
char *sample_place_text(const struct sample_places *places, uint32_t place);

/* Adds counts to a list. Equal places are summed up when the list would grow, and at the end by
 * sample_counts_finish(). */
void sample_counts_add(sample_counts *counts, const struct sample_count *more);
/* Adds the place of model.samples.data[sample], and the functions that it is within, for `count`
 * samples that are the same. */
void sample_counts_add_samples(sample_counts *counts, struct sample_places *places, size_t sample,
			       uint32_t count);
/* Whether two samples have the same place and stack, as mostly those have that follow each other.
 */
bool sample_places_match(const struct sample_places *places, size_t left, size_t right);
/* Sums up equal places, and sorts by falling count. Those that samples are only within come last,
 * with a count of 0. */
void sample_counts_finish(sample_counts *counts);
/* Number of samples. */
uint64_t sample_counts_total(const struct sample_count *counts, size_t len);
/* The innermost function that at least half of the samples are within. NULL: there is none, or it
 * is the function of the first place. */
const struct sample_count *sample_counts_within(const struct sample_places *places,
						const struct sample_count *counts, size_t len);

/* The innermost function that at least three tenths of the samples, and ten, are within, if less
 * than half of them are, and no place with a name has half of the samples: in a program whose work
 * is scattered, it says more than what all of that is within. A function of the program itself, as
 * sample_counts_own() knows it, goes first if sample_counts_within() is in a library. NULL: there
 * is none, or a place shows it already. */
const struct sample_count *sample_counts_part(const struct sample_places *places,
					      const struct sample_count *counts, size_t len);

/* The innermost function of Python that at least half of the samples are within, and that is of the
 * program itself: its source is in the folder, or in one below it, of the outermost such function
 * that is in no folder for libraries. If there is no such folder, functions of installed packages
 * count. If the samples are in a library of CUDA or HIP and there is no Python, it is the innermost
 * function outside of that. NULL: there is none, or it is the function of the first place or that
 * of sample_counts_within(). */
const struct sample_count *sample_counts_own(const struct sample_places *places,
					     const struct sample_count *counts, size_t len);

/* What a run-time does besides the program's own work in most samples, and in how many. NULL: none
 * is known to show such work. The place has only its `phase`. */
const struct sample_count *sample_counts_phase(const struct sample_places *places,
					       const struct sample_count *counts, size_t len);

/* With fewer samples, nothing is printed for people. */
#define SAMPLE_COUNT_MIN 10
/* A share in percent. It is rounded, since few samples are not exact: to 10 % below 100 samples, to
 * 5 % below 1,000, otherwise to 1 %. */
unsigned sample_percent(uint64_t count, uint64_t total);

#endif

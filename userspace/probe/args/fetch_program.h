/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a description to the fetch program by which BPF fetches the values. The locations of
 * arguments are known by now, from the platform's calling convention or from a USDT note.
 */
#ifndef WAFFLE_PROBE_ARGS_FETCH_PROGRAM_H
#define WAFFLE_PROBE_ARGS_FETCH_PROGRAM_H

#include "probe/args/abi_internal.h"
#include "probe/spec/spec.h"

#define PLACE_ARGS_MAX 24

/* An argument at a probe. */
struct place_arg {
	struct abi_place at; /* at.count 0: neither in a register nor in memory */
	/* For USDT arguments: the type in the note, and why the argument cannot be read. */
	uint8_t bytes;
	bool is_signed, is_float;
	const char *unread; /* NULL: it can be read */
};

/* Locations of values at a probe. */
struct call_at {
	const struct abi *abi;
	unsigned count;
	struct place_arg args[PLACE_ARGS_MAX];
};

/* Locations of the arguments of a function with the parameters of this side. */
void call_at_function(struct call_at *at, const struct abi *abi, const struct spec_side *side);

/* Callbacks for facts that only the file has. */
struct fetch_program_lookup {
	/*
	 * Resolves the fields of a value's steps, from step `first` on: replaces them by additions
	 * and loads and sets value->type and value->in_memory. `where` is the struct that the value
	 * points to. 0 or an error with a message.
	 */
	int (*fields)(void *arg, const struct call_spec *spec, const char *where,
		      struct call_value *value, unsigned first, struct error *err);
	/* An offset by its name ("$rank"). False: the file does not have it. */
	bool (*offset)(void *arg, const char *name, int32_t *offset);
	void *arg;
};

/* A fetch program and the keys of its site. */
struct fetch_program_made {
	struct waffle_fetch_program fetch_program;
	uint16_t key_count;
	uint16_t begin_keys; /* how many of them are known at the begin */
	struct site_key keys[WAFFLE_KEYS_MAX];
};

/*
 * Makes the fetch program of a call, or of the begin of a pair. A value whose offset ("$rank") is
 * unknown is omitted. Returns 0, or -EINVAL with a message: too many values for a fetch program, or
 * a field that does not exist.
 */
int fetch_program_make(struct fetch_program_made *made, const struct call_spec *spec,
		       const struct call_at *at, const struct fetch_program_lookup *lookup,
		       struct error *err);
/* The fetch program for the end of a pair. Its keys are added to those of the begin. */
int fetch_program_make_end(struct fetch_program_made *made, const struct call_spec *spec,
			   const struct call_at *at, const struct fetch_program_lookup *lookup,
			   struct fetch_program_made *begin, struct error *err);

#endif

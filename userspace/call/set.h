/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of a set: the descriptions, and what became of each. */
#ifndef WAFFLE_CALL_SET_H
#define WAFFLE_CALL_SET_H

#include "call/call.h"
#include "call/place.h"
#include "call/recipe.h"
#include "call/spec.h"
#include "util/map.h"

#define SET_NEAR_MAX 3
#define SET_INSIDES 2 /* libraries that are known if they are linked into a stripped program */

/* Names like one that was not found, the nearest one first. */
struct set_near {
	uint32_t count;
	const char *names[SET_NEAR_MAX];
};

/* What became of one name of a description. */
struct set_named {
	bool matched; /* something has it */
	bool ifunc;   /* that function is chosen when the file is loaded */
	struct set_near near;
};

/* Why a description found nothing, or not all that it names. */
struct spec_state {
	uint32_t found;      /* probes */
	const char *looked;  /* the last file that has some of it, else that was searched; NULL */
	bool stripped;       /* that file has only the symbols that it exports */
	bool provider;       /* that file has USDT probes of the provider */
	const char *trouble; /* a message, said once */
	const char *ahead;   /* a file that it was found in before a process has it */
	const char *refusal; /* another one: of functions that can't be probed */
	uint32_t probed;     /* functions */
	struct {             /* of the file at hand, how many, and the name of the first one */
		uint32_t count;
		const char *first;
	} refused, endless, no_room; /* by the kernel; whose end is not seen; beyond the limit */
	bool endless_could;          /* it would be seen of some by a return probe */
	struct {                     /* arguments that were not asked for by a name */
		uint32_t count;
		const char *first; /* "argument 2 of NAME" */
		const char *why;
	} unread;                                  /* of the file at hand */
	struct set_near providers;                 /* where `provider` is false */
	struct set_named names[2][SPEC_NAMES_MAX]; /* as spec.sides[].names */
};

struct set_entry {
	struct call_spec spec;
	struct spec_state state;
};

/* Which name: alternative `at` of a description's side. */
struct set_which {
	uint32_t entry;
	uint8_t side, at;
};

/* A function that descriptions name as it is, without a pattern. */
struct set_name {
	const char *name;
	struct set_which which;
	uint32_t next; /* with the same hash; MAP_NONE: none */
};

/* Descriptions that belong together. */
struct set_group {
	const char *name; /* of a set that ships with waffle; NULL: none */
	bool table;       /* of CUDA or NCCL */
	bool found;
};

struct call_set {
	struct spec_tables tables;
	VEC(struct set_entry *) entries;
	VEC(struct set_name) names;
	struct map heads; /* hash of a name → the last such index of `names` */
	VEC(struct call_tracepoint) tracepoints;
	VEC(struct set_group) groups;
	VEC(struct call_library) libraries; /* made when they are asked for */
	uint32_t calls;                     /* recipes made so far */
	/* Messages: a library is in a stripped program (find_static.c); NULL. */
	const char *stripped[SET_INSIDES];
	struct place_kernel kernel;
	pid_t process; /* whose files are looked at; 0: no one's */
};

/* Keeps a text as long as the set; never NULL. */
const char *set_keep(struct call_set *set, const char *text);
/* A file that libraries of descriptions are compared with, one after the other. */
struct set_file {
	const char *path; /* as it is shown */
	bool is_exe;
	pid_t process;                   /* that has it; 0: none */
	const struct spec_pattern *last; /* that was followed, and whether it led here */
	bool last_leads;
};
/* Whether a description's library is that file. */
bool set_lib_matches(const struct call_spec *spec, struct set_file *file);
/* The same of one name: "libcudart" is libcudart.so.12 and libcudart-80664282.so.10.2. */
bool set_name_is(const char *name, const char *path);
const char *path_base(const char *path);
/* In find.c: searches a file whose descriptions have blank states. -EAGAIN: as call_set_find(). */
int find_alone(struct call_set *set, struct object *object, int fd, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a set: the descriptions, and the state of each. */
#ifndef WAFFLE_PROBE_SPEC_CALL_SET_H
#define WAFFLE_PROBE_SPEC_CALL_SET_H

#include <string.h>

#include "probe/args/fetch_program.h"
#include "probe/find/probe_site.h"
#include "probe/spec/call.h"
#include "probe/spec/spec.h"
#include "util/keymap.h"

#define SET_SUGGESTIONS_MAX 3
#define SET_INSIDES 2 /* libraries that are recognised inside a stripped program */

/* Names similar to one that was not found, most similar first. */
struct set_suggestions {
	uint32_t count;
	const char *names[SET_SUGGESTIONS_MAX];
};

/* The state of one name in a description. */
struct set_named {
	bool matched; /* a file has this name */
	bool ifunc;   /* an ifunc: the loader chooses the function when it loads the file */
	struct set_suggestions similar;
};

/* Results of the search for a description, to explain what was not found. */
struct spec_state {
	uint32_t found;      /* probes */
	const char *looked;  /* last file with a match, else last file searched; NULL */
	bool stripped;       /* that file has only exported symbols */
	bool provider;       /* that file has USDT probes of the provider */
	const char *trouble; /* the first message about a problem; later ones are not shown */
	const char *pending; /* a file with a match that no process has mapped yet */
	const char *refusal; /* another message: functions that cannot be probed */
	uint32_t probed;     /* functions */
	struct {             /* for the current file: how many, and the name of the first one */
		uint32_t count;
		const char *first;
	} refused, endless, no_room; /* by the kernel; end not observable; limit reached */
	bool endless_could;          /* for some of them a return probe would work */
	struct {                     /* unreadable arguments that the user did not name */
		uint32_t count;
		const char *first; /* "argument 2 of NAME" */
		const char *why;
	} unread;                                  /* for the current file */
	struct set_suggestions providers;          /* suggestions if `provider` is false */
	struct set_named names[2][SPEC_NAMES_MAX]; /* parallel to spec.sides[].names */
};

struct set_entry {
	struct call_spec spec;
	struct spec_state state;
};

/* Identifies a name: alternative `at` of a side of a description. */
struct set_which {
	uint32_t entry;
	uint8_t side, at;
};

/* A function that descriptions name literally, without a pattern. */
struct set_name {
	struct set_which which;
	uint32_t next; /* index of the next occurrence of the same name; MAP_NONE: none */
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
	VEC(struct set_entry *) blocks; /* the memory of the entries, in arrays */
	VEC(struct set_name) names;
	struct keymap heads; /* name → the last such index in `names` */
	tracepoint_list tracepoints;
	VEC(struct set_group) groups;
	VEC(struct call_library) libraries; /* made at the first call of call_set_libraries() */
	uint32_t calls;                     /* number of fetch programs made so far */
	/* Messages about libraries inside a stripped program (find_static.c), or NULL. */
	const char *stripped[SET_INSIDES];
	struct probe_site_kernel kernel;
	/* A hash of all descriptions, and how many there were (find_remote.c). */
	uint64_t fingerprint;
	size_t fingerprinted;
	pid_t process; /* whose files are searched; 0: none */
};

/* Copies a text into the set. Never returns NULL. */
static inline const char *set_keep(struct call_set *set, const char *text)
{
	return strtab_get(set->tables.strings, strtab_add(set->tables.strings, text, strlen(text)));
}
/* A file that is compared with the libraries of descriptions, one after the other. */
struct set_file {
	const char *path; /* as shown in messages */
	bool is_exe;
	pid_t process;                   /* the process that has the file; 0: none */
	const struct spec_pattern *last; /* cache: last resolved library; whether it leads here */
	bool last_leads;
};
/* Whether the library of a description is that file. */
bool set_lib_matches(const struct call_spec *spec, struct set_file *file);
/* Whether a name means that file: "libcudart" is libcudart.so.12 and libcudart-80664282.so.10.2. */
bool set_name_is(const char *name, const char *path);
/* In find.c: searches a file whose descriptions have blank states. -EAGAIN: as call_set_find(). */
int find_alone(struct call_set *set, struct object *object, int fd, struct error *err);

#endif

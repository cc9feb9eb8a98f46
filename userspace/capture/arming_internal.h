/* SPDX-License-Identifier: Apache-2.0 */
/* Between arming.c, which knows files and processes, and arming_calls.c, which knows calls. */
#ifndef WAFFLE_CAPTURE_ARMING_INTERNAL_H
#define WAFFLE_CAPTURE_ARMING_INTERNAL_H

#include "capture/arming.h"
#include "target/process.h"
#include "util/map.h"

/* A file that was looked at. */
struct file {
	dev_t dev;
	ino_t ino;
	struct object *object; /* NULL: no sites in it */
	uint32_t first_site;
	struct arm_use *uses; /* a row a site; NULL: all are armed plainly */
	bool *stacks;         /* a row a site: they are taken; NULL: none are */
	struct map by_offset; /* probe's offset in the file → site number in the capture */
	bool armed_everywhere;
};

/* Sites of a file that are armed in a process (pid -1: in all). */
struct arm {
	pid_t pid;
	uint32_t file;
	struct armed *armed;
};

/* What was last seen of a process's memory, to name addresses. */
struct memory {
	pid_t pid;
	struct mappings mappings;
};

struct arming {
	struct kernel *kernel;
	struct store_writer *writer;
	struct arming_options options;
	VEC(struct file) files;
	VEC(struct arm) arms;
	VEC(uint32_t) scanned; /* files that arming_programs_known() is to make known */
	VEC(struct memory) memories;
	struct map addresses;          /* hash of (pid, address) → site number */
	VEC(struct arming_site) sites; /* by their numbers */
	uint64_t matching;
	bool concerns_functions;
	struct armed_counts counts;
	char warning[1200];
};

/* arming_calls.c */
/* Gives a site its number, the next one, and tells the capture about it; recipe NULL: not a call.
 */
int arming_register(struct arming *arming, const struct site_info *site,
		    const struct waffle_recipe *recipe, struct error *err);
/* Loads the programs of what the plan has come to. */
int arming_classes(struct arming *arming, struct error *err);
/* Tells the kernel how the values of those calls of a file are found that are armed. */
int arming_recipes(struct arming *arming, struct file *file, struct error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that HotSpot, the JVM of OpenJDK, compiles while a process runs. libjvm.so has tables of
 * its own types for debuggers (gHotSpotVMStructs and gHotSpotVMTypes, in
 * src/hotspot/share/runtime/vmStructs.hpp), which hold in each version where the fields are. With
 * these, the method that was compiled to the code at an address is found in the memory of the
 * process, as jhsdb does it. The process is not trusted, so all that is read is checked against
 * bounds.
 */
#ifndef WAFFLE_TARGET_PROCESS_JVM_H
#define WAFFLE_TARGET_PROCESS_JVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/process/image.h"
#include "target/process/process.h"

/* The fields that are used, as jvm.c lists them. */
#define JVM_FIELDS 23

struct jvm {
	uint64_t structs, types; /* addresses of the pointers to its tables; 0: no JVM */
	bool known;              /* the following was read */
	uint64_t fields[JVM_FIELDS];
};

/* Searches the mappings of a process for libjvm.so. 0: jvm->structs tells whether it is there.
 * -EAGAIN: the file is still being parsed. */
int jvm_find(struct jvm *jvm, pid_t pid, const struct mappings *mappings);

/* Reads the tables. False: the JVM has not started yet, or is of a version with other fields:
 * before JDK 9. 25 is the latest that was tried. */
bool jvm_read(struct jvm *jvm, const struct image *image);

/* The addresses between which it places code. False: unknown. */
bool jvm_code_range(const struct jvm *jvm, const struct image *image, uint64_t *from, uint64_t *to);

#define JVM_NAME_MAX 256

/* Writes what the code at an address is: "com.acme.OrderBook.match", "the JVM's interpreter", "a
 * stub of the JVM". A name that does not fit is cut. False: there is no code, or it cannot be
 * read. */
bool jvm_code_name(const struct jvm *jvm, const struct image *image, uint64_t address,
		   char name[JVM_NAME_MAX]);

/* A frame of a thread that is blocked. */
struct jvm_frame {
	uint64_t pc; /* in the call that has not returned */
	uint64_t sp, fp;
};

/* Names a frame in code of the JVM, as jvm_code_name() does, but with the method that the
 * interpreter runs. Then steps to its caller, for which frame->pc becomes the return address.
 * False: the caller cannot be found; the name is "" if it is unknown. */
bool jvm_step(const struct jvm *jvm, const struct image *image, struct jvm_frame *frame,
	      char name[JVM_NAME_MAX]);

#endif

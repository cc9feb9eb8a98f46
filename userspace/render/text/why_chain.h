/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the chains of an instance as text. */
#ifndef WAFFLE_RENDER_TEXT_WHY_CHAIN_H
#define WAFFLE_RENDER_TEXT_WHY_CHAIN_H

#include "render/text/why_put_internal.h"

/* Prints `before` and the innermost function of the program in a wait of the model, with its line
 * if it is one of Python. False: it is not known, and nothing is printed. */
bool why_put_function(const struct why_printer *printer, uint32_t wait, const char *before);
/* Prints `before` and the functions of Python that say most of a wait: the program's own, and that
 * of the package which it called. Prints nothing if it is no wait in Python. */
void why_put_python_function(const struct why_printer *printer, uint32_t wait, const char *before);
/* For running on a CPU below its maximum frequency: ", at 1.2 of 3.5 GHz". */
void why_put_frequency(const struct why_printer *printer, const struct why_step *step);
/* Prints `glue` and "disk shared with backup", if there is a neighbour. */
void why_put_neighbour(const struct why_printer *printer, const char *glue,
		       const struct why_neighbour *neighbour);

/* Prints the first step of a part's chain without its duration: "blocked on futex 0x7f01". */
void why_put_first_step(const struct why_printer *printer, const struct why_part *part);

/* Prints the chains of the first `shown` parts. Parts with a common beginning share its lines. */
void why_print_chains(const struct why_printer *printer, const struct why_instance *instance,
		      uint32_t shown);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of a number_test. */
#ifndef WAFFLE_FILTER_CODEGEN_CODEGEN_NUMBER_INTERNAL_H
#define WAFFLE_FILTER_CODEGEN_CODEGEN_NUMBER_INTERNAL_H

#include "filter/codegen/asm_internal.h"
#include "filter/number_test.h"

/* Emits code that jumps to `yes` if the test is true for the number in r1, and falls through
 * otherwise. It overwrites r2 and r3. */
void number_test_emit(struct assembler *as, const struct number_test *test, uint32_t yes);

#endif

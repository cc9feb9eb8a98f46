/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_TEXT_REPORT_VIEW_H
#define WAFFLE_RENDER_TEXT_REPORT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* How to print a report. `rows` is the limit for each table, and a line below tells how many are
 * left out. 0: all. */
struct report_view {
	uint32_t rows;
	bool colour;
};

#endif

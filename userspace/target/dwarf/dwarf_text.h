/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings of entries. libdw returns a string that stands in the entry itself (DW_FORM_string)
 * without looking whether it ends before the section does: in elfutils 0.188 dwarf_formstring() and
 * dwarf_diename(). In a damaged file whoever reads it reads on behind the section.
 */
#ifndef WAFFLE_TARGET_DWARF_DWARF_TEXT_H
#define WAFFLE_TARGET_DWARF_DWARF_TEXT_H

#include <elfutils/libdw.h>
#include <stdbool.h>

/* A string of an entry, or of the one that it completes. NULL: there is none, or it has no end.
 * It is libdw's, and lives as long as the file's Dwarf. */
const char *dwarf_text(Dwarf_Die *die, unsigned name);
/* Whether the strings end that libdw itself reads for a unit's source files and split unit. */
bool dwarf_unit_texts_end(Dwarf_Die *unit);

#endif

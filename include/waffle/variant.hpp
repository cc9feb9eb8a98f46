/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WAFFLE_DISABLE leaves classes without their members and functions without their code. A program
 * may have units of both kinds, of which the linker would take one definition for all. So each kind
 * has names of its own: what has something of waffle's in its signature links only if both sides
 * are of one kind, and all else is unaffected.
 */
#ifndef WAFFLE_VARIANT_HPP
#define WAFFLE_VARIANT_HPP

#ifdef WAFFLE_DISABLE
#define WAFFLE_VARIANT_ Disabled_
#else
#define WAFFLE_VARIANT_ Recorded_
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
/* Checks what hit_layout.h says. */
#include "usdt/ring/hit_layout.h"

#include <stddef.h>

#include "usdt/ring/ring_write.h"
#include "usdt/ring/rings.h"
#include "waffle/abi.h"
#include "waffle/context.h"
#include "waffle/mode.h"

#define IS_AT(at, type, member)                                                                    \
	_Static_assert((at) == offsetof(struct type, member), "the offset of " #member)
#define IS(number, value) _Static_assert((number) == (value), "the value of " #number)

IS(GATE_COLLECTOR, RINGS_GATE_COLLECTOR);
IS(GATE_TRACER, RINGS_GATE_TRACER);
IS_AT(THREAD_COLLECTOR, rings_thread, fast[RINGS_COLLECTOR]);
IS_AT(THREAD_TRACER, rings_thread, fast[RINGS_TRACER]);
IS_AT(THREAD_OWN, rings_thread, own);

IS_AT(WRITER_SHARED, ring_writer, shared);
IS_AT(WRITER_MASK, ring_writer, mask);
IS_AT(WRITER_LIMIT, ring_writer, limit);
IS_AT(WRITER_NEAR, ring_writer, near);
IS_AT(WRITER_CLOCK, ring_writer, clock);
IS(TWO_BYTES, RING_SHORT);
_Static_assert(END_BYTES <= RING_SHORT, "an end is a short record");
IS(CLOCK_COUNTER, TICKS_COUNTER);
IS_AT(RSEQ_CPU_ID, ring_rseq, cpu_id);
IS_AT(RSEQ_CS, ring_rseq, rseq_cs);
IS(RSEQ_SIGNATURE, RING_RSEQ_SIGNATURE);
IS_AT(SHARED_HEAD, ring_shared, head);
IS_AT(SHARED_READER, ring_shared, reader);
IS(SHARED_DATA, RING_DATA_AT);

IS_AT(RECORD_BYTES, ring_record, bytes);
IS(RECORD_BYTES + 2, offsetof(struct ring_record, kind));
IS_AT(RECORD_CPU, ring_record, cpu);
IS_AT(RECORD_TICKS, ring_record, ticks);
IS(RECORD_PROBE, sizeof(struct ring_record));
IS(RECORD_ID, RECORD_PROBE + 8 + offsetof(struct waffle_frame, id));
IS(RECORD_PARENT, RECORD_PROBE + 8 + offsetof(struct waffle_frame, parent));
IS(RECORD_HI, RECORD_PROBE + 8 + offsetof(struct waffle_frame, trace_hi));
IS(RECORD_LO, RECORD_HI + 8);
IS(RECORD_KEYS, RECORD_PROBE + 8 + sizeof(struct waffle_frame));
IS(RECORD_END_ID, sizeof(struct ring_record));
IS(RECORD_END_PROBE, RECORD_END_ID + 8);
IS(END_BYTES, RECORD_END_PROBE + 8);
IS(KIND_HIT, RING_HIT);
IS(KIND_END, RING_SPAN_END);
IS(HIT_EXTRA, RECORD_PROBE + 8);
IS(TWO_BYTES, HIT_EXTRA + TWO_KEYS * 8);
IS(FRAME_KEYS, sizeof(struct waffle_frame));

IS_AT(OF_HI, waffle_thread_, context_.trace_hi);
IS(OF_LO, OF_HI + 8);
IS_AT(OF_SPAN, waffle_thread_, context_.span_id);
IS_AT(OF_BASE, waffle_thread_, id_base_);
IS_AT(OF_COUNT, waffle_thread_, id_count_);
IS_AT(OF_DEPTH, waffle_thread_, depth_);
IS_AT(OF_MODE, waffle_thread_, mode_);
IS(OF_MODE, OF_DEPTH + 4);
IS_AT(OF_PLACES, waffle_thread_, places_);
IS(MODE_FULL, WAFFLE_MODE_FULL);
IS_AT(OF_LINKS, waffle_thread_, links_);
IS_AT(LINK_HI, waffle_link_, context_.trace_hi);
IS_AT(LINK_SPAN, waffle_link_, context_.span_id);
IS_AT(LINK_DEPTH, waffle_link_, depth_);
IS(LINK_DEPTH + 4, offsetof(struct waffle_link_, mode_));
IS(1 << LINK_SHIFT, sizeof(struct waffle_link_));
IS(LINKS, WAFFLE_LINKS_);
IS_AT(OUTER_HI, waffle_scope_, outer_.trace_hi);
IS_AT(OUTER_SPAN, waffle_scope_, outer_.span_id);
IS_AT(SCOPE_ID, waffle_scope_, id_);
IS_AT(SCOPE_PROBE, waffle_scope_, probe_);
IS_AT(SCOPE_DEPTH, waffle_scope_, depth_);
IS(SCOPE_DEPTH + 4, offsetof(struct waffle_scope_, outer_mode_));
IS(SCOPE_BYTES, sizeof(struct waffle_scope_));

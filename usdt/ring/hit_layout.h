/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets and other numbers for hit_x86.S, since the assembler knows no structs. hit_layout.c
 * checks them.
 */
#ifndef WAFFLE_USDT_RING_HIT_LAYOUT_H
#define WAFFLE_USDT_RING_HIT_LAYOUT_H

/* struct rings_gate as one word, and struct rings_thread */
#define GATE_COLLECTOR 1
#define GATE_TRACER 0x10000
#define THREAD_COLLECTOR 16
#define THREAD_TRACER 24
#define THREAD_OWN 40

/* struct ring_writer, struct ring_rseq and struct ring_shared */
#define WRITER_SHARED 0
#define WRITER_MASK 16
#define WRITER_LIMIT 24
#define WRITER_NEAR 32
#define WRITER_CLOCK 40
#define CLOCK_COUNTER 2
#define RSEQ_CPU_ID 4
#define RSEQ_CS 8
#define RSEQ_SIGNATURE 0x53053053
#define SHARED_HEAD 64
#define SHARED_READER 196
#define SHARED_DATA 4096
#define DATA_AHEAD 2048 /* bytes between a record and what is prefetched */
#define CACHE_LINE 64

/* struct ring_record. A hit has the probe, the frame's first words, and the keys. An end has the
 * id and the probe. */
#define RECORD_BYTES 0 /* the kind follows */
#define RECORD_CPU 4
#define RECORD_TICKS 8
#define RECORD_PROBE 16
#define RECORD_ID 24
#define RECORD_PARENT 32
#define RECORD_HI 40
#define RECORD_LO 48
#define RECORD_KEYS 56
#define RECORD_END_ID 16
#define RECORD_END_PROBE 24
#define KIND_HIT 2
#define KIND_END 3
#define HIT_EXTRA 24 /* bytes of a hit beside its frame */
#define END_BYTES 32
#define TWO_KEYS 6 /* words of a frame with two keys */
#define TWO_BYTES 72

/* A frame as a site passes it (WAFFLE_STEP_ in waffle.h) */
#define FRAME_KEYS 32

/* struct waffle_thread_, struct waffle_link_ and struct waffle_scope_ */
#define OF_HI 0
#define OF_LO 8
#define OF_SPAN 16
#define OF_BASE 24
#define OF_COUNT 32
#define OF_DEPTH 48
#define OF_MODE 52
#define OF_PLACES 56
#define OF_LINKS 120
#define MODE_FULL 3
#define LINK_HI 0
#define LINK_SPAN 16
#define LINK_DEPTH 24 /* the mode follows, as in the thread */
#define LINK_SHIFT 5
#define LINKS 8
#define OUTER_HI 0
#define OUTER_SPAN 16
#define SCOPE_ID 24
#define SCOPE_PROBE 32
#define SCOPE_DEPTH 40 /* the outer mode follows */
#define SCOPE_BYTES 48

/* From a probe, which is a nop, over a return to the distance of its semaphore (site.h) */
#define PROBE_DISTANCE 2
#define TRACE_FACTOR 0x9e3779b97f4a7c15 /* waffle_number_span_() */

#endif

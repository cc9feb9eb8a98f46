# SPDX-License-Identifier: Apache-2.0
"""Spans that never end leave room for others."""

from tracer import named


def test_filter_on_duration_sees_spans_after_a_program_has_left_too_many(waffle, built):
    capture = waffle.run(
        built("left_spans.c"), 40000, options=("--filter", "dur > 50us", "--no-sched")
    )
    records = capture.check_sums()
    rows = capture.rows()
    assert [row["args"]["number"] for row in named(rows, "work")] == list(range(100))
    # 32,768 can be held; each that was not, or was left to make room, is counted.
    assert records["lost"] >= 40000 - 32768
    assert not named(rows, "left")

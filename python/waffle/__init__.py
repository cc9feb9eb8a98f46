# SPDX-License-Identifier: Apache-2.0
"""Spans, events and counters of a Python program, which cost next to nothing while nobody records them.

    import waffle

    @waffle.instrument
    def load(path):
        with waffle.span("parse", path=path):
            ...

Record a run with WAFFLE_TRACE=out.waffle, or a running process with `sudo waffle-bpf attach`.
docs/python.md is the guide.
"""

from . import _follow
from ._instrument import instrument
from ._native import Context, Event, Span, counter, current, event, is_recorded, log, span
from ._trace import trace, trace_flush, trace_start, trace_stop

__all__ = [
    "Context", "Event", "Span", "bind", "counter", "current", "event", "instrument", "is_recorded", "log",
    "span", "trace", "trace_flush", "trace_start", "trace_stop",
]

bind = _follow.bind
_follow.install()

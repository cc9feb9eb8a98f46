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

import importlib

from . import _follow
from ._instrument import instrument
from ._native import Context, Event, Received, Span, counter, current, event, is_recorded, log, span
from ._trace import trace, trace_flush, trace_start, trace_stop

__all__ = [
    "Capture", "ChromeExporter", "CommandError", "Context", "Event", "Exporter", "FileExporter",
    "JaegerExporter", "LogExporter", "LoggingHandler", "OTLPExporter", "PerfettoExporter",
    "PrometheusExporter", "Received", "Span", "Table", "ZipkinExporter", "bind", "counter",
    "current", "environment", "event", "extract", "from_environment", "inject", "instrument",
    "is_recorded", "log", "read", "set_exporter", "span", "trace", "trace_flush", "trace_start",
    "trace_stop", "why",
]

bind = _follow.bind
_follow.install()

# What a program may not need is imported when it is used first.
_LATE = {
    "_captures": ("Capture", "CommandError", "Table", "read", "why"),
    "_exporters": ("ChromeExporter", "Exporter", "FileExporter", "JaegerExporter", "LogExporter", "OTLPExporter",
                   "PerfettoExporter", "PrometheusExporter", "ZipkinExporter", "set_exporter"),
    "_logging": ("LoggingHandler",),
    "_propagate": ("environment", "extract", "from_environment", "inject"),
}
_MODULES = ("gpu", "jax", "otel", "perfetto", "torch")


def __dir__():
    return sorted({*globals(), *__all__, *_MODULES})


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    for module, names in _LATE.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

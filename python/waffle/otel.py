# SPDX-License-Identifier: Apache-2.0
"""Spans of OpenTelemetry's instrumentation, as spans of waffle.

    from opentelemetry.sdk.trace import TracerProvider
    provider = TracerProvider()
    provider.add_span_processor(waffle.otel.SpanProcessor())

The spans have the parents, links and times that they have in OpenTelemetry, and waffle's own spans and
events are inside of them where they are current. With `waffle-bpf attach`, `why` explains their waits.
"""

import threading

from opentelemetry import context as _context
from opentelemetry import trace as _trace
from opentelemetry.sdk.trace import SpanProcessor as _Base

from . import _native

_KEYS_MAX = 14


def _keys(attributes):
    """Attributes as keys: those of OpenTelemetry may have any text as a name."""
    return dict(list((attributes or {}).items())[:_KEYS_MAX])


def _follow(processor):
    """OpenTelemetry makes spans current apart from their begin. Where it does so, the span of waffle becomes
    current, too."""
    runtime = getattr(_context, "_RUNTIME_CONTEXT", None)
    if runtime is None:
        return
    attach, detach, entered = runtime.attach, runtime.detach, {}

    def attach_too(context):
        token = attach(context)
        found = processor._find(_trace.get_current_span(context).get_span_context())
        if found:
            holder = found[0].context
            holder.__enter__()
            entered[id(token)] = token, holder
        return token

    def detach_too(token):
        _, holder = entered.pop(id(token), (None, None))
        if holder:
            holder.__exit__(None, None, None)
        detach(token)

    runtime.attach, runtime.detach = attach_too, detach_too


class SpanProcessor(_Base):
    """Begins and ends a span of waffle with each span of OpenTelemetry. Attributes and events that are added
    while it is open become an event `attributes`, and events of the same names."""

    def __init__(self):
        self._open = {}
        self._lock = threading.Lock()
        _follow(self)

    def _find(self, context):
        with self._lock:
            return self._open.get((context.trace_id, context.span_id))

    def on_start(self, span, parent_context=None):
        if not _native.is_recorded():
            return
        parent = _trace.get_current_span(parent_context).get_span_context()
        known = self._find(parent) if parent.is_valid else None
        causes = [found[0] for found in (self._find(link.context) for link in span.links or ()) if found]
        attributes = _keys(span.attributes)
        if known:
            holder = known[0].context
        elif parent.is_valid:
            holder = _native.Context(f"00-{parent.trace_id:032x}-{parent.span_id:016x}-01")
        else:
            holder = _native.current()
        with holder:
            attributes.pop("caused_by", None)
            begun = _native.span(span.name, caused_by=causes, **attributes)
        if begun:
            with self._lock:
                context = span.get_span_context()
                self._open[context.trace_id, context.span_id] = begun, attributes

    def on_end(self, span):
        context = span.get_span_context()
        with self._lock:
            begun, before = self._open.pop((context.trace_id, context.span_id), (None, None))
        if not begun:
            return
        later = {name: value for name, value in _keys(span.attributes).items() if before.get(name) != value}
        with begun.context:
            for event in span.events:
                keys = _keys(event.attributes)
                keys.pop("caused_by", None)
                _native.event(event.name, **keys)
            if later:
                later.pop("caused_by", None)
                _native.event("attributes", **later)
            if not span.status.is_ok:
                _native.log(2, "failed", description=span.status.description)
        begun.end()

    def shutdown(self):
        with self._lock:
            left, self._open = list(self._open.values()), {}
        for begun, _ in left:
            begun.end()

    def force_flush(self, timeout_millis=30000):
        try:
            _native.trace_flush()
        except OSError:
            return False
        return True

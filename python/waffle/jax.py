# SPDX-License-Identifier: Apache-2.0
"""What JAX does, as spans: when it traces, lowers and compiles a function, and when it dispatches one.

    import waffle
    waffle.jax.hooks()

All of it comes from what JAX offers: listeners of jax.monitoring, profiler annotations, and jax.jit.
docs/python.md says what it records.
"""

import functools
import threading
import types

import jax
import jax.monitoring
import jax.profiler

from . import _native
from ._instrument import _site

_TRACING = "/jax/core/compile/jaxpr_trace_duration"
# The phases of a compilation, which begin with a scalar of this name and end with a duration of it.
_PHASES = {
    _TRACING: "jax trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "jax lower",
    "/jax/core/compile/backend_compile_duration": "jax compile",
}
_CAUSED_BY = "caused_by"


class _Phases(threading.local):
    """The phases that this thread is in, the innermost last: (event, span)."""

    def __init__(self):
        self.open = []
        self.functions = 0  # the functions of jax.jit that it is in

    def begin(self, event, function):
        span = _native.span(_PHASES[event], function=function)
        self.open.append((event, span))
        span.__enter__()
        self.mark()

    def end(self, event):
        """Ends the phase, and those in it. False: it has not begun on this thread."""
        if not any(event == one for one, _ in self.open):
            return False
        while True:
            one, span = self.open.pop()
            span.__exit__(None, None, None)
            if one == event:
                break
        self.mark()
        return True

    def mark(self):
        """Records that begin while JAX traces a function get the key "traced"; others do not."""
        traces = self.functions or any(event == _TRACING for event, _ in self.open)
        _native.mark("traced" if traces else None)


_phases = _Phases()


def _keys(given):
    return {name: value for name, value in given.items() if name != _CAUSED_BY}


def _on_scalar(event, value, **keys):
    if event in _PHASES:
        _phases.begin(event, keys.get("fun_name"))
    else:
        _native.counter(event, value)


def _on_duration(event, seconds, **keys):
    """With a version of JAX that does not report the begin, there is an event instead of a span."""
    if event in _PHASES and _phases.end(event):
        return
    _native.event(_PHASES.get(event, event), seconds=seconds, **_keys(keys))


def _on_event(event, **keys):
    _native.event(event, **_keys(keys))


def _annotation(base):
    """An annotation of the profiler that is also a span."""

    class Annotation(base):
        def __init__(self, name, *args, **keys):
            super().__init__(name, *args, **keys)
            self._waffle = name, _keys(keys), []

        def __enter__(self):
            name, keys, spans = self._waffle
            spans.append(_native.span(name, **keys).__enter__())
            return super().__enter__()

        def __exit__(self, *error):
            spans = self._waffle[2]
            try:
                return super().__exit__(*error)
            finally:
                if spans:
                    spans.pop().__exit__(*error)

    return functools.update_wrapper(Annotation, base, updated=())


def _traced(function):
    """A function whose spans get the key "traced". Within jax.grad and jax.vmap, JAX does not report that it
    traces the function. The same function always gets the same wrapper, since JAX finds compiled code by it."""
    if not isinstance(function, (types.FunctionType, _native.Instrumented)):
        return function
    made = getattr(function, "_waffle_traced", None)
    if made is None or made.__wrapped__ is not function:

        @functools.wraps(function)
        def made(*args, **kwargs):
            if jax.config.jax_disable_jit:
                return function(*args, **kwargs)
            _phases.functions += 1
            _phases.mark()
            try:
                return function(*args, **kwargs)
            finally:
                _phases.functions -= 1
                _phases.mark()

        function._waffle_traced = made
    return made


def _recorded(function, original, arguments):
    """A function of jax.jit whose calls are spans. It has the methods of the original: lower(), trace()."""
    name = f"jit({getattr(function, '__name__', type(function).__name__)})"
    made = _site(function, name, arguments, frozenset())
    for method in dir(type(function)):
        if not method.startswith("__"):
            setattr(made, method, getattr(function, method))
    made.__wrapped__ = original
    return made


def _follow_jit(arguments):
    jit = jax.jit

    @functools.wraps(jit)
    def jit_recorded(*functions, **options):
        if "fun" in options and not functions:  # some versions of JAX allow that
            function = options.pop("fun")
            return _recorded(jit(fun=_traced(function), **options), function, arguments)
        if not functions:  # jit(static_argnums=…) is a decorator
            return lambda function: jit_recorded(function, **options)
        return _recorded(jit(*map(_traced, functions), **options), functions[0], arguments)

    jax.jit = jit_recorded


def _follow_annotations():
    # annotate_function(), with which JAX annotates its own dispatch, looks the class up there.
    places = [vars(jax.profiler), getattr(jax.profiler.annotate_function, "__globals__", {})]
    for name in ("TraceAnnotation", "StepTraceAnnotation"):
        made = _annotation(getattr(jax.profiler, name))
        for place in places:
            if name in place:
                place[name] = made


_lock = threading.Lock()
_installed = False


def hooks(*, arguments=True):
    """Records from now on, while anybody records the program, what JAX traces, lowers, compiles and
    dispatches. Call it before the functions are decorated with jax.jit. A second call does nothing.

    `arguments`: the shapes of a dispatched function's arguments are keys of its span.
    """
    global _installed
    with _lock:
        if _installed:
            return
        _installed = True
    jax.monitoring.register_event_listener(_on_event)
    jax.monitoring.register_event_duration_secs_listener(_on_duration)
    if hasattr(jax.monitoring, "register_scalar_listener"):
        jax.monitoring.register_scalar_listener(_on_scalar)
    _follow_annotations()
    _follow_jit(arguments)

# SPDX-License-Identifier: Apache-2.0
"""Contexts that follow work to threads, pools and processes. asyncio needs nothing: its tasks have the
context variables of the code that made them.

The methods that start work get a wrapper. While no span is current, it only calls the original.
"""

import functools
import importlib.abc
import importlib.util
import os
import sys
import threading

from . import _native, _trace


class _Bound:
    """A function that is called in a context. It can be pickled if the function can be."""

    def __init__(self, context, function):
        self._context = context
        self._function = function

    def __call__(self, *args, **kwargs):
        with self._context.copy():
            return self._function(*args, **kwargs)


def bind(function):
    """A function that calls `function` in the context that is current now: for pools and callbacks of
    other libraries."""
    context = _native.current()
    return _Bound(context, function) if context else function


def _context():
    """What new work has to be given: None if there is nothing."""
    if not _native.is_recorded():
        return None
    return _native.current() or None


# The arguments of trace_start() with which a child process that multiprocessing spawns begins to record as this
# process does. None: it does not. set_exporter() sets it.
recording = None


class _Run:
    """run() of a thread or process, as an attribute of the object. It removes itself, since the object
    refers to it."""

    def __init__(self, context, owner, recording=None):
        self._context = context
        self._owner = owner
        self._recording = recording

    def __call__(self):
        global recording
        owner, self._owner = self._owner, None
        owner.__dict__.pop("run", None)
        if self._recording and not _native.is_recorded():
            try:
                _trace.trace_start(**self._recording)
                recording = self._recording
            except OSError:  # libwaffle has said why. The work is done all the same
                pass
        with self._context or _native.no_context():
            return owner.run()


def _follow_start(kind, is_process):
    start = kind.start

    @functools.wraps(start)
    def start_in_context(self):
        context = _context()
        passed = recording if is_process and _native.is_recorded() else None
        if (context or passed) and "run" not in self.__dict__:
            self.run = _Run(context, self, passed)
        return start(self)

    kind.start = start_in_context


def _follow_calls(kind, names):
    """Methods that give a pool a function to call."""

    def follow(method):
        @functools.wraps(method)
        def call_in_context(self, /, *args, **kwargs):
            context = _context()
            function = args[0] if args else kwargs.get("func")
            # map() of a pool may call its submit(). Without a function, the method itself complains.
            if not context or function is None or isinstance(function, _Bound):
                return method(self, *args, **kwargs)
            if args:
                args = (_Bound(context, function), *args[1:])
            else:
                kwargs["func"] = _Bound(context, function)
            # The threads and processes of a pool outlive the span in which they are started.
            with _native.no_context():
                return method(self, *args, **kwargs)

        return call_in_context

    for name in names:
        setattr(kind, name, follow(getattr(kind, name)))


def _follow_pool(kind):
    _follow_calls(kind, ("apply_async", "map", "map_async", "starmap", "starmap_async", "imap", "imap_unordered"))
    make = kind.__init__

    @functools.wraps(make)
    def make_without_context(self, *args, **kwargs):
        if not _context():
            return make(self, *args, **kwargs)
        with _native.no_context():
            return make(self, *args, **kwargs)

    kind.__init__ = make_without_context


def _follow_exit():
    """Makes os._exit() finish the recording first, as libwaffle's _exit() does in programs that are linked with
    it. Children of fork() end by os._exit(), also those of multiprocessing."""
    leave = os._exit

    @functools.wraps(leave)
    def finish_and_exit(status):
        if _native.is_recorded():
            try:
                _native.trace_stop()
            except OSError:  # it is a tracer that records
                pass
        leave(status)

    os._exit = finish_and_exit


# What is imported late gets its wrapper then.
_LATE = {
    "concurrent.futures.thread": lambda module: _follow_calls(module.ThreadPoolExecutor, ["submit"]),
    "concurrent.futures.process": lambda module: _follow_calls(module.ProcessPoolExecutor, ["submit"]),
    "multiprocessing.pool": lambda module: _follow_pool(module.Pool),
    "multiprocessing.process": lambda module: _follow_start(module.BaseProcess, True),
}


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, patch):
        self._loader = loader
        self._patch = patch

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._patch(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname not in _LATE:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, _LATE.pop(fullname))
                return spec
        return None


def install():
    """Once, when waffle is imported."""
    _follow_exit()
    _follow_start(threading.Thread, False)
    for name in list(_LATE):
        if name in sys.modules:
            _LATE.pop(name)(sys.modules[name])
    if _LATE:
        sys.meta_path.insert(0, _Finder())

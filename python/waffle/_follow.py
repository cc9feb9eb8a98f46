# SPDX-License-Identifier: Apache-2.0
"""Contexts that follow work to threads, pools and processes. asyncio needs nothing: its tasks have the
context variables of the code that made them.

The methods that start work get a wrapper. While no span is current, it only calls the original.
"""

import functools
import importlib.abc
import importlib.util
import sys
import threading

from . import _native


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


class _Run:
    """run() of a thread or process, as an attribute of the object. It removes itself, since the object
    refers to it."""

    def __init__(self, context, owner):
        self._context = context
        self._owner = owner

    def __call__(self):
        owner, self._owner = self._owner, None
        owner.__dict__.pop("run", None)
        with self._context:
            return owner.run()


def _follow_start(kind):
    start = kind.start

    @functools.wraps(start)
    def start_in_context(self):
        context = _context()
        if context and "run" not in self.__dict__:
            self.run = _Run(context, self)
        return start(self)

    kind.start = start_in_context


def _follow_submit(kind):
    submit = kind.submit

    @functools.wraps(submit)
    def submit_in_context(self, function, /, *args, **kwargs):
        context = _context()
        if not context:
            return submit(self, function, *args, **kwargs)
        # The threads and processes of a pool outlive the span in which they are started.
        with _native.no_context():
            return submit(self, _Bound(context, function), *args, **kwargs)

    kind.submit = submit_in_context


def _follow_process(kind):
    _follow_start(kind)
    bootstrap = kind._bootstrap

    @functools.wraps(bootstrap)
    def bootstrap_and_flush(self, *args, **kwargs):
        try:
            return bootstrap(self, *args, **kwargs)
        finally:
            # A process made by fork() ends by os._exit(), which writes no files.
            try:
                _native.trace_flush()
            except OSError:
                pass

    kind._bootstrap = bootstrap_and_flush


# What is imported late gets its wrapper then.
_LATE = {
    "concurrent.futures.thread": lambda module: _follow_submit(module.ThreadPoolExecutor),
    "concurrent.futures.process": lambda module: _follow_submit(module.ProcessPoolExecutor),
    "multiprocessing.process": lambda module: _follow_process(module.BaseProcess),
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
    _follow_start(threading.Thread)
    for name in list(_LATE):
        if name in sys.modules:
            _LATE.pop(name)(sys.modules[name])
    if _LATE:
        sys.meta_path.insert(0, _Finder())

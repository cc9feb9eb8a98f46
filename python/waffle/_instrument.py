# SPDX-License-Identifier: Apache-2.0
"""The decorator waffle.instrument."""

import functools
import inspect

from . import _native


def _code(function):
    function = inspect.unwrap(function)
    return getattr(function, "__code__", None)


def _parameters(code, skip):
    """The keys of positional arguments. The object of a method and what `skip` names have none."""
    if code is None:
        return ()
    names = code.co_varnames[: code.co_argcount]
    return tuple(None if name in skip or (place == 0 and name in ("self", "cls")) else name
                 for place, name in enumerate(names))


def _site(function, name, arguments, skip):
    """What records the calls of a function."""
    code = _code(function)
    qualified = getattr(function, "__qualname__", None) or type(function).__qualname__
    made = _native.Instrumented(
        function, name or qualified, code.co_filename if code else "", qualified,
        code.co_firstlineno if code else 0, _parameters(code, skip), skip, bool(arguments))
    return functools.update_wrapper(made, function)


class _Steps:
    """Runs a generator or coroutine step by step, with its span current only within the steps: what
    runs between them does not belong to it. This is what `yield from` does (PEP 380)."""

    def __init__(self, span, generator):
        self._span = span
        self._generator = generator

    def __iter__(self):
        return self

    __await__ = __iter__

    def _step(self, function, *values):
        span = self._span
        span.__enter__()
        try:
            result = function(*values)
        except StopIteration:
            span.__exit__(None, None, None)
            raise
        except BaseException as error:
            span.__exit__(type(error), error, None)
            raise
        span.suspend()
        return result

    def __next__(self):
        return self._step(self._generator.send, None)

    def send(self, value):
        return self._step(self._generator.send, value)

    def throw(self, *error):
        return self._step(self._generator.throw, *error)

    def close(self):
        self._span.__enter__()
        try:
            self._generator.close()
        finally:
            self._span.__exit__(None, None, None)


class _AsyncSteps:
    """The same for an asynchronous generator: its steps are awaited, and each is one of a coroutine."""

    def __init__(self, span, generator):
        self._span = span
        self._generator = generator

    async def step(self, awaitable):
        """One step. The span stays open behind it, unless the generator has ended."""
        try:
            return await _Between(self._span, awaitable)
        except StopAsyncIteration:
            self._span.end()
            raise
        except BaseException as error:
            with self._span:
                if isinstance(error, Exception):
                    _native.log(2, "exception", type=type(error).__name__, message=str(error))
            raise


class _Between:
    """Awaits one step of an asynchronous generator with the span current while it runs."""

    def __init__(self, span, awaitable):
        self._span = span
        self._awaitable = awaitable

    def __await__(self):
        iterator = self._awaitable.__await__()
        send, value = iterator.send, None
        while True:
            self._span.__enter__()
            try:
                result = send(value)
            except StopIteration as stop:
                return stop.value
            finally:
                self._span.suspend()
            try:
                send, value = iterator.send, (yield result)
            except BaseException as error:
                send, value = iterator.throw, error


def _of_generator(site, function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        span = site.begin(*args, **kwargs)
        if not span:
            return (yield from function(*args, **kwargs))
        return (yield from _Steps(span, function(*args, **kwargs)))

    return wrapper


def _of_coroutine(site, function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        span = site.begin(*args, **kwargs)
        if not span:
            return await function(*args, **kwargs)
        return await _Steps(span, function(*args, **kwargs))

    return wrapper


def _of_async_generator(site, function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        span = site.begin(*args, **kwargs)
        generator = function(*args, **kwargs)
        steps = _AsyncSteps(span, generator)
        try:
            value = await steps.step(generator.__anext__())
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    await steps.step(generator.aclose())
                    raise
                except BaseException as error:
                    value = await steps.step(generator.athrow(error))
                else:
                    value = await steps.step(generator.asend(sent))
        except StopAsyncIteration:
            return
        finally:
            span.end()

    return wrapper


def _decorate(function, name, arguments, skip):
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorate(function.__func__, name, arguments, skip))
    if isinstance(function, property):
        return property(*(_decorate(part, name, arguments, skip) if part else None
                          for part in (function.fget, function.fset, function.fdel)), doc=function.__doc__)
    if not callable(function):
        raise TypeError(f"waffle.instrument decorates functions, not {type(function).__name__}")
    site = _site(function, name, arguments, skip)
    if inspect.isasyncgenfunction(function):
        return _of_async_generator(site, function)
    if inspect.iscoroutinefunction(function):
        return _of_coroutine(site, function)
    if inspect.isgeneratorfunction(function):
        return _of_generator(site, function)
    return site


def instrument(function=None, *, name=None, arguments=True, skip=()):
    """Records each call of a function as a span.

    `name` is that of the span; the default is the qualified name of the function. Its arguments are keys
    of the span, unless `arguments` is false; `skip` names those that are not to be recorded, such as
    secrets. It works for functions, methods, generators, coroutines and asynchronous generators, with or
    without parentheses:

        @waffle.instrument
        def load(path): ...

        @waffle.instrument(name="db query", skip=("password",))
        async def query(sql, password): ...
    """
    skip = frozenset((skip,) if isinstance(skip, str) else skip)
    if function is None:
        return lambda decorated: _decorate(decorated, name, arguments, skip)
    return _decorate(function, name, arguments, skip)

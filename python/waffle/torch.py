# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does, as spans: forward and backward of modules, steps of optimizers, the next batch of a
DataLoader, and ranges of record_function.

    import waffle
    waffle.torch.hooks()

Nothing of it changes the graph of autograd or a result. docs/python.md says what it records.
"""

import functools
import itertools
import sys
import threading
import weakref

import torch
from torch.autograd.graph import get_gradient_edge
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from . import _native

_is_compiling = torch.compiler.is_compiling if hasattr(torch, "compiler") else lambda: False


class _Forwards(threading.local):
    """The modules whose forward this thread is in, the innermost last: (module, span, nodes of its inputs)."""

    def __init__(self):
        self.open = []


class _Pass:
    """A backward pass: the context that is the parent of the spans of its modules, and its _ModuleBackward."""

    def __init__(self, context):
        self.context = context
        self.modules = []


class _Backwards:
    """The backward passes that run now, in any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.open = []
        self.of_thread = threading.local()

    def begin(self, context):
        running = _Pass(context)
        self.of_thread.__dict__.setdefault("open", []).append(running)
        with self.lock:
            self.open.append(running)
        return running

    def end(self, running):
        self.of_thread.open.remove(running)
        with self.lock:
            self.open.remove(running)

    def current(self):
        """The pass that this thread works for. None: nobody can tell. Work on a CPU is done by the thread that
        has called backward(). Work on a GPU is done by a thread of torch, which may serve several passes."""
        own = self.of_thread.__dict__.get("open")
        if own:
            return own[-1]
        with self.lock:
            return self.open[0] if len(self.open) == 1 else None


_forwards = _Forwards()
_backwards = _Backwards()
_names = weakref.WeakKeyDictionary()


def _name_of(module):
    """The module's name in the outermost module that runs, such as "encoder.0". None: it is the outermost."""
    try:
        name = _names.get(module)
        if name is None and _forwards.open:
            for inner_name, inner in _forwards.open[0][0].named_modules():
                _names[inner] = inner_name
            name = _names.get(module)
    except TypeError:  # a module with an __eq__() of its own may have no hash
        return None
    return name or None


# So many values of what a module gets or returns are looked at: it may also be a list of a million numbers.
_VALUES_MAX = 1000


def _tensors(values):
    """The tensors in what a module gets or returns, in their order. It looks into lists, tuples and dicts, not into
    other objects."""
    found = []
    pending = [values]
    left = _VALUES_MAX
    while pending and left:
        left -= 1
        value = pending.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple, dict)):
            inner = value.values() if isinstance(value, dict) else value
            pending.extend(reversed(list(itertools.islice(inner, max(0, left - len(pending))))))
    return found


def _nodes(tensors):
    """The nodes of autograd that made the tensors. None: there is no graph, or autograd can't tell the nodes."""
    if not torch.is_grad_enabled():
        return None
    try:
        return {get_gradient_edge(tensor).node for tensor in tensors if tensor.requires_grad}
    except RuntimeError:
        return None


# ---- forward ----


def _before_forward(module, inputs):
    if _is_compiling() or not _native.is_recorded():
        return
    tensors = _tensors(inputs)
    keys = {"input": tensors[0]} if tensors else {}
    name = _name_of(module)
    if name is not None:
        keys["module"] = name
    span = _native.span(sys.intern(f"{type(module).__name__}.forward"), **keys)
    # Asked before the module runs, since it may change its input in place.
    _forwards.open.append((module, span, _nodes(tensors)))
    span.__enter__()


def _after_forward(module, inputs, output):
    if _is_compiling() or not any(module is one for one, _, _ in _forwards.open):
        return
    while True:
        one, span, nodes = _forwards.open.pop()
        span.__exit__(None, None, None)
        if one is module:
            break
    if nodes is not None:
        _follow_backward(module, span, nodes, output)


# ---- backward ----


class _ModuleBackward:
    """The span from when the gradient of a module's output is known until the gradients of all its inputs are,
    or until the pass ends."""

    def __init__(self, module, forward, inputs):
        self.name = sys.intern(f"{type(module).__name__}.backward")
        self.keys = {"caused_by": forward}
        name = _name_of(module)
        if name is not None:
            self.keys["module"] = name
        self.inputs = inputs
        self.lock = threading.Lock()
        self.span = None
        self.left = 0

    def begin(self, _):
        with self.lock:
            if self.span is not None or not _native.is_recorded():
                return
            self.left = self.inputs
            running = _backwards.current()
            if running:
                with running.context.copy():
                    self.span = _native.span(self.name, **self.keys)
                running.modules.append(self)
            else:
                self.span = _native.span(self.name, **self.keys)

    def end_input(self, _):
        with self.lock:
            self.left -= 1
            if self.left == 0:
                self._end()

    def end(self):
        with self.lock:
            self._end()

    def _end(self):
        if self.span is not None:
            self.span.end()
        self.span = None  # autograd may go through the same graph again (retain_graph)


def _follow_backward(module, forward, ends, output):
    begin = next((tensor.grad_fn for tensor in _tensors(output) if tensor.grad_fn is not None), None)
    if begin is None or begin in ends:
        return
    made = _ModuleBackward(module, forward, len(ends))
    # The node of a parameter may outlive all graphs, as DistributedDataParallel keeps it. Only the graph keeps
    # what was made here, and with it the hooks go.
    end_input = weakref.WeakMethod(made.end_input)

    def input_done(gradients):
        end = end_input()
        if end is not None:
            end(gradients)

    handles = []
    try:
        for node in ends:
            handles.append(node.register_prehook(input_done))
        begin.register_prehook(made.begin)
    except (AttributeError, NotImplementedError, RuntimeError):  # a node of a kind that has no such hooks
        _remove(handles)
        return
    weakref.finalize(made, _remove, handles).atexit = False


def _remove(handles):
    for handle in handles:
        handle.remove()


def _recorded_pass(function, name):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if _is_compiling() or not _native.is_recorded():
            return function(*args, **kwargs)
        with _native.span(name) as span:
            running = _backwards.begin(span.context)
            try:
                return function(*args, **kwargs)
            finally:
                _backwards.end(running)
                for module in running.modules:
                    module.end()

    return wrapper


# ---- record_function, which torch itself uses for optimizers and DataLoaders ----

# What its names begin with, the span's name, and the key of the rest.
_RANGES = (
    ("Optimizer.step#", "optimizer step", "optimizer"),
    ("Optimizer.zero_grad#", "optimizer zero_grad", "optimizer"),
    ("enumerate(DataLoader)#", "DataLoader next", "iterator"),
)


def _range(name, args):
    for start, known, key in _RANGES:
        if name.startswith(start):
            return _native.span(known, **{key: name[len(start):].split(".")[0]})
    return _native.span(name, args=args) if args is not None else _native.span(name)


class _Ranges(threading.local):
    """The ranges that this thread is in, the innermost last: (object, span). As a decorator, one object is in
    several calls of its function, and in several threads."""

    def __init__(self):
        self.open = []

    def leave(self, entered):
        for place in reversed(range(len(self.open))):
            if self.open[place][0] is entered:
                return self.open.pop(place)[1]
        return None


_ranges = _Ranges()


def _follow_ranges():
    kind = torch.autograd.profiler.record_function
    enter, leave = kind.__enter__, kind.__exit__

    @functools.wraps(enter)
    def enter_recorded(self):
        if not _is_compiling() and _native.is_recorded():
            span = _range(self.name, self.args)
            span.__enter__()
            _ranges.open.append((self, span))
        return enter(self)

    @functools.wraps(leave)
    def leave_recorded(self, *error):
        try:
            return leave(self, *error)
        finally:
            span = _ranges.leave(self)
            if span is not None:  # that a DataLoader has no more batches is no error
                span.__exit__(*(error if error[0] is not StopIteration else (None, None, None)))

    kind.__enter__, kind.__exit__ = enter_recorded, leave_recorded


_lock = threading.Lock()
_installed = False


def hooks():
    """Records from now on, while anybody records the program, what modules, optimizers and DataLoaders do.
    A second call does nothing."""
    global _installed
    with _lock:
        if _installed:
            return
        _installed = True
    register_module_forward_pre_hook(_before_forward)
    register_module_forward_hook(_after_forward, always_call=True)
    torch.autograd.backward = _recorded_pass(torch.autograd.backward, "backward")
    torch.autograd.grad = _recorded_pass(torch.autograd.grad, "autograd.grad")
    _follow_ranges()

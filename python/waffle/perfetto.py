# SPDX-License-Identifier: Apache-2.0
"""Files for https://ui.perfetto.dev, for programs that want nothing else: simulators, converters, tests.

    with waffle.perfetto.Trace("x.pftrace") as trace:
        with trace.slice("load", path="a.csv"):
            ...
        queue = trace.track("queue", group="disk 0")
        queue.complete("read", start_ns=1000, end_ns=2500, sector=7)

Nothing here uses libwaffle's recording, and both can be used at once. All methods may be called from any
thread. They encode what they get and hand it to a writer, which never makes them wait.
"""

import functools
import inspect
import itertools
import os
import queue
import shutil
import struct
import subprocess
import sys
import threading
import time
import weakref


def now_ns():
    """The time of what has no time of its own: CLOCK_BOOTTIME, as Perfetto's traces and waffle's have."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


# ---- protobuf: https://protobuf.dev/programming-guides/encoding/ ----


def _varint(number):
    number &= (1 << 64) - 1
    if number < 0x80:
        return bytes((number,))
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field, value):
    return _bytes(field, str(value).encode("utf-8", "backslashreplace"))


def _fixed64(field, value):
    return _varint(field << 3 | 1) + struct.pack("<Q", value)


def _double(field, value):
    return _varint(field << 3 | 1) + struct.pack("<d", value)


# Fields of perfetto/trace/*.proto that have no name of their own below.
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_CLEARED, _NEEDED = 1, 2  # TracePacket.SequenceFlags
_BOOTTIME, _MONOTONIC, _REALTIME = 6, 3, 1  # BuiltinClock
_UNITS = {"ns": 1, "count": 2, "bytes": 3}  # CounterDescriptor.Unit
_CATEGORIES, _NAMES, _ARGUMENTS, _STRINGS = 1, 2, 3, 29  # InternedData
_INTERNED_MAX = 1 << 20  # beyond that, texts are written where they are used
_STRING_INTERNED_MAX = 128


# ---- where the bytes go ----


class _Compressed:
    """A file, and what compresses it."""

    def __init__(self, file, compressor):
        self._file = file
        self._compressor = compressor
        self.fileno = file.fileno
        self.write = compressor.write

    def flush(self):
        self._compressor.flush()
        self._file.flush()

    def close(self):
        self._compressor.close()
        self._file.close()


class _Piped:
    """A program that gets the bytes and writes the file."""

    def __init__(self, command, file):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file)
        if file:
            file.close()
        self.fileno = self._process.stdin.fileno
        self.write = self._process.stdin.write
        self.flush = self._process.stdin.flush

    def close(self):
        self._process.stdin.close()
        if self._process.wait():
            raise OSError(f"waffle: {self._process.args[0]} failed with exit status {self._process.returncode}")


def _open_gzip(path):
    import gzip

    file = open(path, "wb")
    return _Compressed(file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0))


def _open_zstd(path):
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        try:
            import zstandard as zstd
        except ImportError:
            zstd = None
    if zstd:
        file = open(path, "wb")
        return _Compressed(file, zstd.open(file, "wb"))
    if not shutil.which("zstd"):
        raise ImportError("waffle: to write a .zst file, Python 3.14, the package zstandard or the program zstd is "
                          "needed")
    return _Piped(["zstd", "-q", "-c"], open(path, "wb"))


def _open(path):
    if path.endswith(".gz"):
        return _open_gzip(path)
    return _open_zstd(path) if path.endswith(".zst") else open(path, "wb")


class _Writer:
    """A thread that writes what is put into its queue. With `process`, it passes that on to a process,
    which compresses and writes it, so that only copying takes time of this one."""

    def __init__(self, path, process):
        if process:
            # The file is made here, so that an error is raised here.
            open(path, "wb").close()
            command = [sys.executable, "-S", "-c", "import runpy, sys; runpy.run_path(sys.argv[1])['_receive']"
                       "(sys.argv[2])", os.path.abspath(__file__), path]
            self._file = _Piped(command, None)
        else:
            self._file = _open(path)
        self.error = None
        self.left = False
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="waffle-perfetto", daemon=True)
        self._thread.start()

    def put(self, piece):
        self._queue.put(piece)

    def leave(self):
        """In a child of fork(): the file is the parent's."""
        self.left = True
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.dup2(nowhere, self._file.fileno(), inheritable=False)
        except (OSError, ValueError):  # it is closed
            pass
        os.close(nowhere)

    def _run(self):
        while True:
            piece = self._queue.get()
            if isinstance(piece, bytes):
                self._try(self._file.write, piece)
                continue
            self._try(self._file.flush)
            if piece is None:
                break
            piece.set()
        error = self.error
        self.error = None
        self._try(self._file.close)
        self.error = error or self.error

    def _try(self, function, *arguments):
        """The first error ends the writing. flush() and close() report it."""
        if self.error:
            return
        try:
            function(*arguments)
        except Exception as error:
            self.error = error

    def wait(self, timeout):
        if self.left:
            return True
        done = threading.Event()
        self.put(done)
        if not done.wait(timeout):
            return False
        if self.error:
            raise self.error
        return True

    def close(self):
        if self.left:
            return
        self.put(None)
        self._thread.join()
        if self.error:
            raise self.error


def _receive(path):
    """Main program of the process that writes."""
    file = _open(path)
    shutil.copyfileobj(sys.stdin.buffer, file)
    file.close()


# ---- tracks ----


class Track:
    """A lane of slices. Slices of a track are nested: one that begins last ends first."""

    def __init__(self, trace, uuid):
        self._trace = trace
        self.uuid = uuid

    def begin(self, name, *, ns=None, flow=None, category=None, **arguments):
        """Begins a slice, now or at a given time."""
        self._trace._event(_BEGIN, self.uuid, ns, name, category, flow, arguments)

    def end(self, *, ns=None, flow=None, **arguments):
        """Ends the slice that began last."""
        self._trace._event(_END, self.uuid, ns, None, None, flow, arguments)

    def complete(self, name, start_ns, end_ns, *, flow=None, category=None, **arguments):
        """A slice of which both times are known."""
        self.begin(name, ns=start_ns, flow=flow, category=category, **arguments)
        self.end(ns=end_ns)

    def instant(self, name, *, ns=None, flow=None, category=None, **arguments):
        """A moment."""
        self._trace._event(_INSTANT, self.uuid, ns, name, category, flow, arguments)

    def slice(self, name=None, **arguments):
        """A slice for a block or, as a decorator, for each call of a function."""
        return _Slice(lambda: self, name, arguments)


class Counter:
    """A value over time."""

    def __init__(self, trace, uuid):
        self._trace = trace
        self.uuid = uuid

    def set(self, value, *, ns=None):
        """The value from now on, or from a given time on."""
        self._trace._count(self.uuid, ns, value)


class _Slice:
    """A slice for a block and for functions, on the track that `track()` returns where it begins."""

    def __init__(self, track, name, arguments, done=None, for_steps=None):
        self._track = track
        self._name = name
        self._arguments = arguments
        self._done = done
        # The slice of a coroutine or generator, between whose steps others run on the same thread.
        self._for_steps = for_steps or self._again
        self._open = []

    def __enter__(self):
        track = self._track()
        track.begin(self._name or "slice", **self._arguments)
        self._open.append(track)
        return track

    def __exit__(self, kind, *_):
        track = self._open.pop()
        track.end(**({"exception": kind.__name__} if kind else {}))
        if self._done:
            self._done(track)

    def _again(self, name):
        return _Slice(self._track, name, self._arguments, self._done)

    def __call__(self, function):
        name = self._name or getattr(function, "__qualname__", repr(function))

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self._again(name):
                return function(*args, **kwargs)

        @functools.wraps(function)
        async def run(*args, **kwargs):
            with self._for_steps(name):
                return await function(*args, **kwargs)

        @functools.wraps(function)
        def generate(*args, **kwargs):
            with self._for_steps(name):
                return (yield from function(*args, **kwargs))

        if inspect.iscoroutinefunction(function):
            return run
        return generate if inspect.isgeneratorfunction(function) else call


# ---- the trace ----

_traces = weakref.WeakSet()


def _leave_traces():
    """A child of fork() has no writing thread. It must not write the copies of its parent's buffers either."""
    for trace in _traces:
        trace._leave()


os.register_at_fork(after_in_child=_leave_traces)


class Trace:
    """A Perfetto trace that is being written.

    The extension .gz or .zst after .pftrace compresses it. `writer` is "thread" or "process": who writes the
    file. Times are those of now_ns(), or what the program gives: a simulator's may begin with 0, but then all
    have to be given.
    """

    def __init__(self, path, *, writer="thread", process_name=None):
        if writer not in ("thread", "process"):
            raise ValueError(f"waffle: the writer is a thread or a process, not {writer!r}")
        self.path = os.fspath(path)
        self._writer = _Writer(self.path, writer == "process")
        self._lock = threading.Lock()
        self._sequence = int.from_bytes(os.urandom(3), "little") | 1 << 24
        self._interned = {}
        self._counts = {kind: itertools.count(1) for kind in (_CATEGORIES, _NAMES, _ARGUMENTS, _STRINGS)}
        self._fresh = []
        self._cleared = False
        self._uuids = itertools.count(int.from_bytes(os.urandom(6), "little") << 16)
        self._flows = itertools.count(int.from_bytes(os.urandom(6), "little") << 16)
        self._known = {}
        self._lanes = {}
        self._threads = threading.local()
        self._closed = False
        self._process_name = process_name
        # A trace that nobody closes is finished when it is no longer used, or when the program ends.
        self._end = weakref.finalize(self, self._writer.close)
        _traces.add(self)
        clocks = (_BOOTTIME, now_ns()), (_MONOTONIC, time.monotonic_ns()), (_REALTIME, time.time_ns())
        self._packet(_bytes(6, b"".join(_bytes(1, _number(1, clock) + _number(2, ns)) for clock, ns in clocks)))

    # ---- life ----

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def flush(self, timeout=None):
        """Waits until all that was recorded before is in the file. False: not within `timeout` seconds."""
        return self._writer.wait(timeout)

    def close(self):
        """Waits for the writer and finishes the file. What is recorded later is ignored."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._end()

    def _leave(self):
        """In a child of fork(): the file is the parent's, and what is recorded is ignored."""
        self._lock = threading.Lock()
        self._closed = True
        self._writer.leave()

    # ---- packets ----

    def _packet(self, body):
        """With the lock, or before anybody else has the trace."""
        flags = _NEEDED if self._cleared else _CLEARED | _NEEDED
        self._cleared = True
        head = _number(10, self._sequence) + _number(13, flags)
        if self._fresh:
            head += _bytes(12, b"".join(self._fresh))
            self._fresh.clear()
        if not self._closed:
            self._writer.put(_bytes(1, head + body))

    def _intern(self, kind, text):
        """The number of a text, which the next packet tells; 0: there are too many. With the lock."""
        found = self._interned.get((kind, text))
        if found is None:
            if len(self._interned) >= _INTERNED_MAX:
                return 0
            found = self._interned[kind, text] = next(self._counts[kind])
            self._fresh.append(_bytes(kind, _number(1, found) + _text(2, text)))
        return found

    def _named(self, kind, iid_field, text_field, text):
        number = self._intern(kind, text)
        return _number(iid_field, number) if number else _text(text_field, text)

    def _value(self, value):
        """The value of a DebugAnnotation."""
        if isinstance(value, bool):
            return _number(2, value)
        if isinstance(value, int):
            return _number(4, value) if -1 << 63 <= value < 1 << 63 else (
                _number(3, value) if 0 <= value < 1 << 64 else _text(6, value))
        if isinstance(value, float):
            return _double(5, value)
        if isinstance(value, dict):
            return b"".join(_bytes(11, self._annotation(name, item)) for name, item in value.items())
        if isinstance(value, (list, tuple)):
            return b"".join(_bytes(12, self._value(item)) for item in value)
        text = "null" if value is None else str(value)
        if len(text) <= _STRING_INTERNED_MAX:
            return self._named(_STRINGS, 17, 6, text)
        return _text(6, text)

    def _annotation(self, name, value):
        return self._named(_ARGUMENTS, 1, 10, str(name)) + self._value(value)

    def _event(self, kind, uuid, ns, name, category, flow, arguments):
        ns = now_ns() if ns is None else int(ns)
        with self._lock:
            body = _number(9, kind) + _number(11, uuid)
            if name is not None:
                body += self._named(_NAMES, 10, 23, str(name))
            if category is not None:
                body += self._named(_CATEGORIES, 3, 22, str(category))
            for one in flow if isinstance(flow, (list, tuple)) else () if flow is None else (flow,):
                body += _fixed64(47, one)
            for key, value in arguments.items():
                body += _bytes(4, self._annotation(key, value))
            self._packet(_number(8, ns) + _bytes(11, body))

    def _count(self, uuid, ns, value):
        ns = now_ns() if ns is None else int(ns)
        number = _double(44, value) if isinstance(value, float) else _number(30, int(value))
        with self._lock:
            self._packet(_number(8, ns) + _bytes(11, _number(9, _COUNTER) + _number(11, uuid) + number))

    def _describe(self, key, make):
        """The uuid of a track, which is described when it is asked for first."""
        with self._lock:
            uuid = self._known.get(key)
            if uuid is None:
                uuid = self._known[key] = next(self._uuids)
                self._packet(_number(8, 1) + _bytes(60, _number(1, uuid) + make))
            return uuid

    # ---- tracks ----

    def process(self, name, pid=None):
        """A group that is shown as a process: of a simulation, for example. For `group=` of others."""
        pid = os.getpid() if pid is None else pid
        return self._describe(("process", pid), _bytes(3, _number(1, pid) + _text(6, name)))

    def thread(self, name, tid=None, pid=None):
        """A track that is shown as a thread of a process."""
        pid = os.getpid() if pid is None else pid
        tid = threading.get_native_id() if tid is None else tid
        return Track(self, self._describe(("thread", pid, tid), _bytes(
            4, _number(1, pid) + _number(2, tid) + _text(5, name))))

    def _parent(self, group):
        if group is None:
            return b""
        if not isinstance(group, int):
            group = group.uuid if isinstance(group, Track) else self._describe(("group", group), _text(2, group))
        return _number(5, group)

    def track(self, name, group=None):
        """A track. Those of a group, which is a name, a process or another track, are shown together."""
        parent = self._parent(group)
        return Track(self, self._describe(("track", name, parent), _text(2, name) + parent))

    def counter(self, name, unit=None, group=None):
        """A counter; the unit is "ns", "count", "bytes" or any other text."""
        parent = self._parent(group)
        described = _number(3, _UNITS[unit]) if unit in _UNITS else _text(6, unit) if unit else b""
        return Counter(self, self._describe(("counter", name, parent), _text(2, name) + parent + _bytes(8, described)))

    def flow(self):
        """A number that slices and instants share, for an arrow from each to the next."""
        return next(self._flows)

    def _own_track(self):
        """That of the calling thread."""
        track = getattr(self._threads, "track", None)
        if track is None:
            if self._process_name is not None:
                self.process(self._process_name)
            track = self._threads.track = self.thread(threading.current_thread().name)
        return track

    # ---- on the track of the calling thread ----

    def slice(self, name=None, **arguments):
        """A slice for a block or, as a decorator, for each call of a function. `category`, `flow` and `ns`
        are as for Track.begin(); all else are arguments. A coroutine or generator has a lane of its own."""
        return _Slice(self._own_track, name, arguments, for_steps=lambda name: self.async_slice(name, **arguments))

    def call(self, function, /, *args, **kwargs):
        """Calls a function, with a slice of its name."""
        return self.slice()(function)(*args, **kwargs)

    def instant(self, name, **arguments):
        """A moment on the track of the calling thread."""
        self._own_track().instant(name, **arguments)

    def async_slice(self, name, group=None, **arguments):
        """As slice(), for what may overlap: requests, coroutines. It has a lane that no other one uses."""

        def take():
            with self._lock:
                free, _ = self._lanes.setdefault((name, group), ([], itertools.count()))
                if free:
                    return free.pop()
            parent = self._parent(group)
            number = next(self._lanes[name, group][1])
            return Track(self, self._describe(("lane", name, parent, number), _text(2, name) + parent))

        def give_back(track):
            with self._lock:
                self._lanes[name, group][0].append(track)

        return _Slice(take, name, arguments, give_back)

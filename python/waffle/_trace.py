# SPDX-License-Identifier: Apache-2.0
"""Recording from inside the program."""

import atexit
import contextlib
import os

from . import _native


def trace_start(path=None, *, filter=None, ring_bytes=0, keep_children=False, overwrite=False, process=None):
    """Begins to record into a file, whose extension chooses the format: .waffle, .json or .pftrace. In the
    name, %p stands for the pid, %h for the host and %r for the rank. `filter` is an expression of
    docs/filter.md, and `process` a chain of processors (docs/processors.md). With `overwrite`, threads keep
    their latest records in memory until trace_flush() or trace_stop(). An OSError says that it failed;
    libwaffle has printed why: EBUSY means that the process records already."""
    _native.trace_start(None if path is None else os.fspath(path), filter, ring_bytes, keep_children, overwrite,
                        process)


def trace_stop():
    """Ends the recording and finishes the file."""
    _native.trace_stop()


def trace_flush():
    """Waits until all that was recorded before the call is in the file, for at most a second."""
    _native.trace_flush()


@atexit.register
def _flush_at_exit():
    """After Ctrl-C, Python ends itself by a signal. Then libwaffle can't finish the file at the end."""
    with contextlib.suppress(OSError):  # nothing is recorded
        _native.trace_flush()


@contextlib.contextmanager
def trace(path=None, **options):
    """Records a block, with the options of trace_start()."""
    trace_start(path, **options)
    try:
        yield
    finally:
        trace_stop()

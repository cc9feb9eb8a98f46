# SPDX-License-Identifier: Apache-2.0
"""A handler of Python's logging that records messages as events of the current span."""

import logging

from . import _native


class LoggingHandler(logging.Handler):
    """Records each message as an event with its severity, inside of the current span.

        logging.getLogger().addHandler(waffle.LoggingHandler())

    The name of the event is the message without its values ("%s retries"), so that equal messages can be
    counted and filtered. Its keys are the logger, the whole message, and what `extra=` has. While nobody
    records, it formats nothing.
    """

    # What every record has; all else came by extra=.
    _OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def emit(self, record):
        if not _native.is_recorded():
            return
        try:
            severity = 2 if record.levelno >= logging.ERROR else 1 if record.levelno >= logging.WARNING else 0
            keys = {"logger": record.name, "message": record.getMessage(), "file": record.pathname,
                    "line": record.lineno}
            if record.exc_info and record.exc_info[0]:
                keys["exception"] = record.exc_info[0].__name__
            keys.update((name, value) for name, value in vars(record).items() if name not in self._OWN)
            _native.log(severity, str(record.msg), **keys)
        except Exception:  # as logging wants it: the program goes on
            self.handleError(record)

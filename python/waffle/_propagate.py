# SPDX-License-Identifier: Apache-2.0
"""Contexts in headers of any protocol, and in the environment of children. docs/propagation.md says what
is sent when."""

import os

from . import _native

_VARIABLES = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", "B3", "X_B3_TRACEID", "X_B3_SPANID", "X_B3_PARENTSPANID",
              "X_B3_SAMPLED", "X_B3_FLAGS")


def _bytes(value):
    return value if isinstance(value, bytes) else str(value).encode("latin-1", "replace")


def _collected(headers):
    """Names in lower case, each with all its values."""
    found = {}
    pairs = headers.items() if hasattr(headers, "items") else headers
    for name, value in pairs:
        name = name.decode("latin-1") if isinstance(name, bytes) else str(name)
        values = value if isinstance(value, (list, tuple)) else [value]
        found.setdefault(name.lower(), []).extend(_bytes(one) for one in values)
    return found


def extract(headers, propagators=None):
    """What a message brought: a waffle.Received, whose `context` is the sender's span.

    `headers` is a mapping, or pairs of names and values, of str or bytes: headers of HTTP, of ASGI, metadata
    of gRPC, properties of a message. `propagators` is a text such as "b3,baggage"; the default is the
    variable OTEL_PROPAGATORS, or tracecontext and baggage.
    """
    return _native.Received(_collected(headers), propagators)


def inject(headers, received=None, context=None, propagators=None):
    """Sets the headers that make the receiver's spans children of the current span, and returns `headers`: a
    mapping, or a list to which pairs are added. `received` is what came with the message that is being
    handled: its baggage goes on, and its context if nobody records."""
    received = received or _native.Received()
    made = received._inject(context or _native.current(), propagators)
    if hasattr(headers, "append"):
        headers.extend(made.items())
    else:
        for name, value in made.items():
            headers[name] = value
    return headers


def from_environment(propagators=None):
    """What the parent process has put into the environment of this one: a waffle.Received."""
    return extract({name.lower().replace("_", "-"): os.environ[name] for name in _VARIABLES if name in os.environ},
                   propagators)


def environment(base=None, received=None, propagators=None):
    """The environment for a child, as a dict: that of `base`, or of this process, with the current context
    and without that of an earlier one. For subprocess.Popen(…, env=waffle.environment())."""
    made = {name: value for name, value in (os.environ if base is None else base).items() if name not in _VARIABLES}
    for name, value in inject({}, received, None, propagators).items():
        made[name.upper().replace("-", "_")] = value
    return made

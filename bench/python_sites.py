# SPDX-License-Identifier: Apache-2.0
"""Runs in the interpreter that is measured: the CPU time of spans, decorated calls and events of Python,
those of waffle and of OpenTelemetry's SDK in turn. Prints one JSON object: for each, the time in ns of each
round, beyond an empty loop.

OpenTelemetry has what costs it least: a sampler that drops everything, or a processor that drops each span
when it ends."""

import json
import sys
import time
import timeit

import waffle


def plain(a, b=2):
    return a


decorated = waffle.instrument(plain)

STATEMENTS = {
    "span": "with waffle.span('x'): pass",
    "span with a key": "with waffle.span('x', a=1): pass",
    "event": "waffle.event('x', a=1)",
    "plain call": "plain(1)",
    "decorated call": "decorated(1)",
}


def of_opentelemetry(armed):
    """Statements that do the same with OpenTelemetry."""
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider, sampling

    provider = TracerProvider(sampler=sampling.ALWAYS_ON if armed else sampling.ALWAYS_OFF, shutdown_on_exit=False)
    provider.add_span_processor(SpanProcessor())
    tracer = provider.get_tracer("bench")
    other = tracer.start_as_current_span("decorated")(plain)
    globals().update(tracer=tracer, other=other)
    return {
        "OpenTelemetry: span": "with tracer.start_as_current_span('x'): pass",
        "OpenTelemetry: span with a key": "with tracer.start_as_current_span('x', attributes={'a': 1}): pass",
        "OpenTelemetry: decorated call": "other(1)",
    }


def main():
    rounds, armed = int(sys.argv[1]), waffle.is_recorded()
    statements = {"empty": "pass", **STATEMENTS, **of_opentelemetry(armed)}
    timers = {name: timeit.Timer(text, globals=globals(), timer=time.thread_time)
              for name, text in statements.items()}
    counts = {name: 3000 if "OpenTelemetry" in name else 20000 for name in statements}
    costs = {name: [] for name in statements}
    for name, timer in timers.items():
        timer.timeit(counts[name] // 10)
    for _ in range(rounds):
        for name, timer in timers.items():
            costs[name].append(timer.timeit(counts[name]) / counts[name] * 1e9)
            if armed:
                time.sleep(0.02)  # the ring is emptied
    for name in statements:
        if name != "empty":
            costs[name] = [cost - empty for cost, empty in zip(costs[name], costs["empty"])]
    print(json.dumps({"armed": armed, "costs": costs}))


if __name__ == "__main__":
    main()

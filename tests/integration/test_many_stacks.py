# SPDX-License-Identifier: Apache-2.0
"""Stacks without end: none is taken for another one, and waits are explained to the last."""

import collections
import json

from tracer import parse_log

TABLE = 16384  # stacks that the kernel's programs keep in mind: bpf/wait.h


def number_of(stack, code):
    """What a stack's frames spell, the outermost call first; None: it does not reach so far."""
    bits = []
    for address in reversed([int(x, 16) for x in stack]):
        if code["zero"] <= address < code["one"]:
            bits.append(0)
        elif code["one"] <= address < code["last"]:
            bits.append(1)
    if len(bits) != code["bits"]:
        return None
    return sum(bit << place for place, bit in enumerate(reversed(bits)))


def test_waits_have_their_own_stacks_when_there_are_more_than_the_kernel_keeps(waffle, built):
    flags = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-toplevel-reorder")
    capture = waffle.run(built("many_stacks.c", *flags), 8, options=("--sources", "sched,stacks"))
    records = capture.info()["records"]
    assert records["produced"] == records["delivered"] + records["lost"]
    [code] = parse_log(capture.result.stdout.splitlines())
    threads = collections.defaultdict(list)
    with open(capture.export("ndjson"), encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.startswith('{"kind":"wait"')]
    for row in rows:
        number = number_of(row["args"].get("user_stack", []), code)
        if number is not None:
            threads[row["tid"]].append((row["end_ns"], number))
    # Each thread counts up: a stack of another moment would stand out.
    for waits in threads.values():
        numbers = [number for _, number in sorted(waits)]
        assert all(a < b for a, b in zip(numbers, numbers[1:]))
    times = sorted(ts for waits in threads.values() for ts, _ in waits)
    assert len(times) > TABLE, "too few for the test to tell anything"
    # As many of the last quarter as of the first: the budget is one of time.
    quarter = (times[-1] - times[0]) // 4
    first = sum(ts < times[0] + quarter for ts in times)
    last = sum(ts >= times[-1] - quarter for ts in times)
    assert last > first / 2, (first, last)

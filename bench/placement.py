# SPDX-License-Identifier: Apache-2.0
"""What a probe costs by the instruction that it stands on, and where waffle sets it."""

import functools
import os
import subprocess

from lib import Row, Skipped, Workload, baseline, interleave, nothing, program, ratio, typical


def heads():
    """Of every function: name, offset, cost at its entry, and shift and cost where waffle goes."""
    for line in subprocess.check_output([program("heads_bench"), "list"], text=True).splitlines():
        name, offset, cost, shift, placed = line.split()
        yield name, int(offset), cost, int(shift), placed


def placement(scale):
    if not os.path.exists(program("heads_bench")):
        raise Skipped("the functions are written for x86-64")
    path, push = program("heads_bench"), None
    for name, offset, cost, shift, placed in heads():
        if placed == "refused":
            continue
        where = {} if cost == "refused" else {"entry": offset}
        if shift:
            where["placed"] = offset + shift
        with Workload([path, name, "0", "600"]) as load:
            tracers = {"untraced": nothing}
            for key, place in where.items():
                tracers[key] = functools.partial(baseline, "offset", load.pid, path, place)
            costs = interleave(load, tracers, max(scale.rounds // 3, 1), scale.seconds)
        ns = {k: typical(v) - typical(costs["untraced"]) for k, v in costs.items()}
        if "entry" in where:
            push = push or ns["entry"]
            stepped = cost == "stepped"
            yield Row(f"probe on {name} / on push", ns["entry"] / push, "x", 2 if stepped else 1.3,
                      stepped, f"{cost}: {ns['entry']:.0f} ns")
            if shift:
                yield Row(f"{name}, probed at +{shift} / at the entry",
                          ratio(costs, "placed", "entry"), "x", 0.5,
                          note=f"{placed}: {ns['placed']:.0f} ns")
        else:
            stepped = placed == "stepped"
            yield Row(f"{name}, {cost}, probed at +{shift} / on push", ns["placed"] / push, "x",
                      2 if stepped else 1.3, stepped, f"{placed}: {ns['placed']:.0f} ns")

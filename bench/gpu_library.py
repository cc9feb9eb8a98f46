# SPDX-License-Identifier: Apache-2.0
"""What libwaffle-gpu costs the thread that launches, on the stand-in of CUPTI (docs/simulation.md). It
delivers a record and calls back for each launch as the real one does, so what remains is waffle's."""

import contextlib
import functools
import pathlib
import statistics

from lib import BUILD, SCRATCH, Row, Workload, interleave, nothing, typical, waffle

SIM = BUILD / "sim"
DORMANT_RATE = 50_000
ARMED_RATE = 20_000


def workload(rate, library=None, **variables):
    argv = ["env", *[f"{name}={value}" for name, value in variables.items()]]
    argv += [f"CUDA_INJECTION64_PATH={library}"] if library else []
    return Workload([*argv, str(SIM / "launches"), "driver", str(rate), "600"])


def alone(scale, library=None):
    """ns of a launch, as fast as possible."""
    with workload(0, library) as load:
        return typical(interleave(load, {"alone": nothing}, scale.few, scale.seconds)["alone"])


@contextlib.contextmanager
def plain_armed(path):
    path.touch()
    try:
        yield
    finally:
        path.unlink()


def over(load, tracer, scale):
    """ns that a launch takes longer."""
    # A window has several batches of launches, with computing in between.
    costs = interleave(load, {"untraced": nothing, "armed": tracer}, max(scale.few, 2), max(scale.seconds, 0.6))
    return typical([a - b for a, b in zip(costs["armed"], costs["untraced"])])


def armed_once(scale):
    """What a launch takes longer by libwaffle-gpu, and by a tool that only switches CUPTI on."""
    path = pathlib.Path(SCRATCH.path("plain"))
    with workload(ARMED_RATE, BUILD / "libwaffle-gpu.so") as load:
        ours = over(load, functools.partial(waffle, load.pid, "--sources", "spans"), scale)
    with workload(ARMED_RATE, BUILD / "bench/cupti_plain.so", CUPTI_PLAIN_FILE=path,
                  CUPTI_PLAIN_LIBRARY=SIM / "libcupti.so.12") as load:
        plain = over(load, functools.partial(plain_armed, path), scale)
    return ours, plain


def gpu_library(scale):
    share = 100 * DORMANT_RATE / 1e9
    lost = [(alone(scale, BUILD / "libwaffle-gpu.so") - alone(scale)) * share for _ in range(scale.processes)]
    yield Row(f"libwaffle-gpu, dormant, {DORMANT_RATE:,} launches a second, speed lost", abs(statistics.median(lost)),
              "%", 0.3, note=f"{len(lost)} pairs of processes: {statistics.median(lost):.3f} ({min(lost):.3f} to "
              f"{max(lost):.3f}) %")
    share = 100 * ARMED_RATE / 1e9
    took = [armed_once(scale) for _ in range(scale.processes)]
    beyond = [(ours - plain) * share for ours, plain in took]
    yield Row(f"libwaffle-gpu, armed, {ARMED_RATE:,} launches a second, speed lost beyond CUPTI's cost",
              statistics.median(beyond), "%", 3,
              note=f"{len(beyond)} pairs of processes: {statistics.median(beyond):.2f} ({min(beyond):.2f} to "
              f"{max(beyond):.2f}) %; a launch takes {statistics.median(ours for ours, _ in took):.0f} ns longer, by a "
              f"tool that only switches the simulated CUPTI on {statistics.median(plain for _, plain in took):.0f} ns")

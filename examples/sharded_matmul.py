#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a matrix product that JAX shards over four devices with a local one. The devices are made of the
CPU, so that it runs everywhere.

    python examples/sharded_matmul.py                                   # prints both times
    python examples/sharded_matmul.py --jaeger http://localhost:4318    # and sends its spans to Jaeger
    WAFFLE_TRACE=matmul.waffle python examples/sharded_matmul.py        # or into a file

In the trace are, for both, the first call with what JAX traces, lowers and compiles in it, and the calls
after it, each with the time to dispatch it and the wait for its result.
"""

import argparse
import os
import time

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import waffle  # noqa: E402

waffle.jax.hooks()  # before jax.jit is used

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402


@jax.jit
def product(a, b):
    with waffle.span("in product"):  # once for each shape and sharding: while JAX traces the function
        return jnp.matmul(a, b)


def measure(name, a, b, calls):
    """The shortest time of a call, in seconds, and the result."""
    times = []
    with waffle.span("measure", what=name, devices=len(a.devices())):
        for call in range(calls + 1):
            begin = time.perf_counter()
            with waffle.span("compile and call" if call == 0 else "call", n=call):
                result = product(a, b)
                with waffle.span("wait"):
                    result.block_until_ready()
            times.append(time.perf_counter() - begin)
    return min(times[1:]), result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", type=int, default=512, help="rows and columns of the matrices, 512")
    parser.add_argument("--calls", type=int, default=5, help="calls after the first, 5")
    parser.add_argument("--jaeger", metavar="URL", help="where Jaeger takes OTLP, such as http://localhost:4318")
    options = parser.parse_args()
    if options.jaeger:
        waffle.set_exporter(waffle.JaegerExporter(options.jaeger, service_name="sharded_matmul"))

    with waffle.span("sharded_matmul", size=options.size) as root:
        keys = jax.random.split(jax.random.key(0))
        a, b = (jax.random.normal(key, (options.size, options.size)) for key in keys)
        mesh = Mesh(jax.devices(), ("rows",))
        by_rows = NamedSharding(mesh, PartitionSpec("rows", None))
        everywhere = NamedSharding(mesh, PartitionSpec())
        local_s, local = measure("local", a, b, options.calls)
        sharded_s, sharded = measure("sharded", jax.device_put(a, by_rows), jax.device_put(b, everywhere), options.calls)
        same = bool(jnp.allclose(local, jax.device_put(sharded, local.sharding), rtol=1e-4, atol=1e-4))
    print(f"local    {local_s * 1e3:8.3f} ms on 1 device")
    print(f"sharded  {sharded_s * 1e3:8.3f} ms on {len(sharded.devices())} devices")
    print("the results are the same" if same else "THE RESULTS DIFFER")
    if root:
        print(f"trace    {root.context.trace_id:032x}")


if __name__ == "__main__":
    main()

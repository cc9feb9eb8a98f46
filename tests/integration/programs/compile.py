# SPDX-License-Identifier: Apache-2.0
"""Compiles a function of PyTorch for three new shapes, forward and backward, for each line of input. Then prints what
PyTorch itself measured: the seconds of each compilation, and of the calls that they were in."""

import json
import sys
import time

import torch
from torch._dynamo.utils import compilation_time_metrics

torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 1000
weights = torch.ones(8, 8, requires_grad=True)


@torch.compile(backend="aot_eager", dynamic=False)
def layer(batch):
    return (batch @ weights).relu().sum()


def step(rows):
    begin = time.monotonic()
    loss = layer(torch.ones(rows, 8))
    end = time.monotonic()
    loss.backward()
    return end - begin


rows = 2
step(rows)  # imports what it needs
print("ready", flush=True)
for line in sys.stdin:
    compilation_time_metrics.clear()
    calls = []
    for _ in range(3):
        rows += 1
        calls.append(step(rows))
        for _ in range(5):
            step(rows)
    print("measured", json.dumps({"forward": compilation_time_metrics["_compile.compile_inner"], "calls": calls,
                                  "backward": compilation_time_metrics["backward._backward_impl"]}), flush=True)

# SPDX-License-Identifier: Apache-2.0
"""A small network trained for a fixed number of steps on a GPU. With the argument `profile` it prints
what PyTorch's own profiler counted of these steps: {name of kernel: count}."""

import json
import sys

import torch
from torch import nn

STEPS = 20


def make():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 30 * 30, 10)
    net = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    images, labels = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))

    def step():
        with torch.cuda.nvtx.range("step"):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
            loss.backward()
            optimizer.step()
            return loss.item()

    return step


def train(step):
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()


def profiled(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        train(step)
    counts = {}
    for event in profiler.events():
        if str(event.device_type).endswith("CUDA") and not event.name.startswith("Mem"):
            counts[event.name] = counts.get(event.name, 0) + 1
    return counts


one = make()
if sys.argv[1:] == ["profile"]:
    print(json.dumps(profiled(one)))
else:
    train(one)

# SPDX-License-Identifier: Apache-2.0
"""Two ranks of gloo that call each of its collectives five times, once the file "go" is there. Rank 1 compiles a
function before each barrier."""

import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

torch.set_num_threads(1)


@torch.compile(backend="eager", dynamic=False)
def layer(batch):
    return batch.relu().sum()


def halves():
    return [torch.ones(2), torch.ones(2)]


def collectives(rank, number):
    whole, parts = torch.ones(2), halves() if rank == 0 else None
    if rank == 1:
        layer(torch.ones(number + 3))
    dist.barrier()
    dist.broadcast(whole, 0)
    dist.all_reduce(whole)
    dist.all_gather(halves(), whole)
    dist.all_to_all(halves(), halves())
    dist.gather(whole, parts, 0)
    dist.reduce(whole, 0)
    dist.scatter(whole, parts, 0)


def say(text):
    os.write(1, text + b"\n")  # print() writes the newline by itself, so that two ranks' lines can mix


def work(rank, folder):
    layer(torch.ones(2))  # imports what it needs
    say(b"ready")
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.01)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    dist.new_group([0, 1])
    for number in range(5):
        collectives(rank, number)
    say(b"done")
    time.sleep(600)


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (os.getcwd(),), nprocs=2)

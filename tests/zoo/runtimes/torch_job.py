# SPDX-License-Identifier: Apache-2.0
"""torch_job.py WAY SEED: the victim is the first thread of a job of PyTorch on the CPU.
	loader	the next batch comes late, because a DataLoader's worker sleeps
	ddp	rank 0 waits in an all-reduce of gloo for rank 1, which sleeps before it comes
Who sleeps tells from when to when it did in the tensor itself."""

import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed

import said

ROUNDS = 5


def doze(number):
    """Sleeps, and returns from when to when. A worker begins before anybody asks."""
    begin = said.now()
    time.sleep(0.1 + (said.seed() * 7 + number * 13) % 50 / 1000)
    return torch.tensor([begin, said.now()])


def say(i, begin, slept, comm, pid):
    end = said.now()
    said.victim(i, begin, end)
    first, last = slept.flatten().tolist()
    said.cause(i, "sleep", max(0, min(end, last) - max(begin, first)), comm, pid)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return ROUNDS + 2

    def __getitem__(self, number):
        return doze(number)


def loader():
    batches = iter(torch.utils.data.DataLoader(Samples(), num_workers=1, prefetch_factor=1))
    worker = batches._workers[0].pid
    next(batches)
    said.go(worker)
    next(batches)  # is there since long
    for i in range(ROUNDS):
        begin = said.now()
        say(i, begin, next(batches), "pt_data_worker", worker)


def join(rank, store):
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.distributed.barrier()


def late(store):
    """Rank 1."""
    said.name("late")
    join(1, store)
    while torch.distributed.broadcast(number := torch.zeros(1, dtype=torch.int64), 0) or number.item() >= 0:
        torch.distributed.all_reduce(doze(number.item()))


def ddp():
    with tempfile.TemporaryDirectory() as folder:
        other = subprocess.Popen([sys.executable, __file__, "late", f"{folder}/store", sys.argv[-1]])
        join(0, f"{folder}/store")
        said.go(other.pid)
        for i in range(ROUNDS):
            torch.distributed.broadcast(torch.tensor([i]), 0)
            slept = torch.zeros(2, dtype=torch.int64)
            begin = said.now()
            torch.distributed.all_reduce(slept)
            say(i, begin, slept, "late", other.pid)
        torch.distributed.broadcast(torch.tensor([-1]), 0)
        other.wait()


torch.set_num_threads(1)
if sys.argv[1] == "late":
    late(sys.argv[2])
else:
    said.name("victim")
    loader() if sys.argv[1] == "loader" else ddp()

# SPDX-License-Identifier: Apache-2.0
"""A training loop of PyTorch. Each sample whose number ends in 9 waits for 100 ms in the DataLoader's worker. With
"ddp" two ranks of gloo instead, of which rank 1 waits for 100 ms before each tenth step."""

import os
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing

torch.set_num_threads(1)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, number):
        time.sleep(0.1 if number % 10 == 9 else 0.005)
        return torch.ones(8)


def train(model, batches, optimizer):
    """Says "ready" after the first step, for which PyTorch imports modules, on a busy machine for seconds."""
    for number, batch in enumerate(batches):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if not number:
            os.write(1, b"ready\n")  # print() writes the newline by itself, so that two ranks' lines can mix


def late(rank):
    step = 0
    while True:
        step += 1
        time.sleep(0.1 if rank == 1 and step % 10 == 0 else 0.005)
        yield torch.ones(1, 8)


def ddp(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    os.write(1, b"ready\n")  # print() writes the newline by itself, so that two ranks' lines can mix
    train(model, late(rank), torch.optim.SGD(model.parameters(), 0.1))


if __name__ == "__main__":
    if sys.argv[1] == "ddp":
        torch.multiprocessing.spawn(ddp, (os.getcwd(),), nprocs=2)
    linear = torch.nn.Linear(8, 8)
    loader = torch.utils.data.DataLoader(Samples(), batch_size=1, num_workers=1)
    train(linear, loader, torch.optim.SGD(linear.parameters(), 0.1))

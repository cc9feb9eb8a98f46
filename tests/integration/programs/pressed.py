# SPDX-License-Identifier: Apache-2.0
"""Uses a disk or memory until it is killed, as a thread of this name and in this cgroup, if any:
pressed.py NAME CGROUP read FILE BYTES | again FILE | write FILE | touch FILE |
hold BYTES."""

import mmap
import os
import random
import sys
import time


def read(path, size):
    size = int(size)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer, blocks = mmap.mmap(-1, size), os.fstat(file).st_size // size
    while True:
        os.preadv(file, [buffer], random.randrange(blocks) * size)


def again(path):
    file = os.open(path, os.O_RDONLY)
    size = os.fstat(file).st_size
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)  # no other cgroup has its pages
    while True:
        for at in range(0, size, 1 << 20):
            os.pread(file, 1 << 20, at)


def write(path):
    file, block, count = os.open(path, os.O_RDWR | os.O_CREAT), bytes(1 << 20), 0
    while True:
        os.pwrite(file, block, count % 128 << 20)
        count += 1


def touch(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # no other cgroup has its pages
        pages.madvise(mmap.MADV_RANDOM)  # a fault brings one page
        while True:
            for at in range(0, len(pages), mmap.PAGESIZE):
                pages[at]


def hold(size):
    held = bytearray(int(size))
    while True:
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(0.05)


name, cgroup, mode, *arguments = sys.argv[1:]
with open("/proc/self/comm", "w", encoding="utf-8") as comm:
    comm.write(name)
if cgroup:
    with open(f"{cgroup}/cgroup.procs", "w", encoding="utf-8") as procs:
        procs.write(str(os.getpid()))
print("ready", flush=True)
{"read": read, "again": again, "write": write, "touch": touch, "hold": hold}[mode](*arguments)

# SPDX-License-Identifier: Apache-2.0
"""Uses a disk or memory until it is killed, as a thread of this name and in this cgroup, if any:
pressed.py NAME CGROUP read FILE BYTES | ring FILE BYTES | again FILE | write FILE |
touch FILE | hold BYTES."""

import ctypes
import mmap
import os
import random
import struct
import sys
import time


def read(path, size):
    size = int(size)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer, blocks = mmap.mmap(-1, size), os.fstat(file).st_size // size
    while True:
        os.preadv(file, [buffer], random.randrange(blocks) * size)


IO_URING_SETUP, IO_URING_ENTER = 425, 426
SQ_TAIL, SQ_ARRAY, CQ_HEAD, CQES, WORDS = 11, 16, 20, 25, 30  # words of struct io_uring_params
OP_READ, GETEVENTS = 22, 1


def ring(path, size):
    """The same by io_uring, one request at a time. What waits for it names no file."""
    size, libc, params = int(size), ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * WORDS)()
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer, blocks = mmap.mmap(-1, size), os.fstat(file).st_size // size
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    fd = libc.syscall(IO_URING_SETUP, 1, params)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    submitted, completed, entries = (mmap.mmap(fd, length, offset=offset)
                                     for length, offset in ((params[SQ_ARRAY] + 4, 0),
                                                            (params[CQES] + 32, 0x8000000), (64, 0x10000000)))
    count = 0
    while True:
        offset = random.randrange(blocks) * size
        struct.pack_into("BBHiQQIIQ24x", entries, 0, OP_READ, 0, 0, file, offset, address, size, 0, 0)
        count += 1
        struct.pack_into("I", submitted, params[SQ_TAIL], count)
        assert libc.syscall(IO_URING_ENTER, fd, 1, 1, GETEVENTS, None, 0) == 1
        struct.pack_into("I", completed, params[CQ_HEAD], count)


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
{"read": read, "ring": ring, "again": again, "write": write, "touch": touch, "hold": hold}[mode](*arguments)

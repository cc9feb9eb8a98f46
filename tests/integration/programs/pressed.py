# SPDX-License-Identifier: Apache-2.0
"""Uses a disk, memory or a CPU until it is killed, as a thread of this name and in this cgroup, if any:
pressed.py NAME CGROUP read FILE BYTES | ring FILE BYTES | ring-sync FILE | submit FILE BYTES |
again FILE | write FILE |
touch FILE | hold BYTES | spin MS PAUSE_MS."""

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
OP_FSYNC, OP_READ, GETEVENTS = 3, 22, 1


def ring_open():
    """Returns a function that gives a request to io_uring, and waits for it."""
    libc, params = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * WORDS)()
    fd = libc.syscall(IO_URING_SETUP, 1, params)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    submitted, completed, entries = (mmap.mmap(fd, length, offset=offset)
                                     for length, offset in ((params[SQ_ARRAY] + 4, 0),
                                                            (params[CQES] + 32, 0x8000000), (64, 0x10000000)))
    count = 0

    def request(operation, file, offset=0, address=0, size=0):
        nonlocal count
        struct.pack_into("BBHiQQIIQ24x", entries, 0, operation, 0, 0, file, offset, address, size, 0, 0)
        count += 1
        struct.pack_into("I", submitted, params[SQ_TAIL], count)
        assert libc.syscall(IO_URING_ENTER, fd, 1, 1, GETEVENTS, None, 0) == 1
        struct.pack_into("I", completed, params[CQ_HEAD], count)

    return request


def ring(path, size):
    """The same by io_uring, one request at a time. What waits for it names no file."""
    size, request = int(size), ring_open()
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer, blocks = mmap.mmap(-1, size), os.fstat(file).st_size // size
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    while True:
        request(OP_READ, file, random.randrange(blocks) * size, address, size)


def ring_sync(path):
    """A worker of io_uring waits for the file."""
    request, file, block = ring_open(), os.open(path, os.O_RDWR), os.urandom(65536)
    while True:
        os.pwrite(file, block, 0)
        request(OP_FSYNC, file)


IO_SETUP, IO_GETEVENTS, IO_SUBMIT, COMMAND_WRITE = 206, 208, 209, 1


def submit(path, size):
    """Writes that extend a file, by io_submit(), which waits for them."""
    size, libc, context = int(size), ctypes.CDLL(None, use_errno=True), ctypes.c_uint64()
    file, buffer, count = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_TRUNC), mmap.mmap(-1, size), 0
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    request, event = ctypes.create_string_buffer(64), ctypes.create_string_buffer(32)
    requests = ctypes.c_void_p(ctypes.addressof(request))
    assert libc.syscall(IO_SETUP, 1, ctypes.byref(context)) == 0
    while True:
        if count % 64 == 0:
            os.ftruncate(file, 0)
        struct.pack_into("QIIHhIQQq", request, 0, 0, 0, 0, COMMAND_WRITE, 0, file, address, size, count % 64 * size)
        assert libc.syscall(IO_SUBMIT, context, 1, ctypes.byref(requests)) == 1, os.strerror(ctypes.get_errno())
        assert libc.syscall(IO_GETEVENTS, context, 1, 1, event, None) == 1
        count += 1


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


def spin(busy, pause):
    while True:
        end = time.monotonic() + int(busy) / 1000
        while time.monotonic() < end:
            pass
        time.sleep(int(pause) / 1000)


name, cgroup, mode, *arguments = sys.argv[1:]
with open("/proc/self/comm", "w", encoding="utf-8") as comm:
    comm.write(name)
if cgroup:
    with open(f"{cgroup}/cgroup.procs", "w", encoding="utf-8") as procs:
        procs.write(str(os.getpid()))
print("ready", flush=True)
{"read": read, "ring": ring, "ring-sync": ring_sync, "submit": submit, "again": again, "write": write,
 "touch": touch, "hold": hold, "spin": spin}[mode](*arguments)

# SPDX-License-Identifier: Apache-2.0
"""A file system with one file, whose server reads slowly and then stops answering requests for
attributes, like a file server whose network has gone. With a third argument, the file has the
contents of that one and is read without delay, and in the end the server answers nothing at all.
Speaks FUSE to the kernel itself: include/uapi/linux/fuse.h."""

import ctypes
import os
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 26, 36, 42
ENOSYS, ENOENT = 38, 2
DIRECT_IO = 1
READ_S = 0.02
TEXT = b"slow\n"


def attributes(node, size=5):
    mode = 0o40755 if node == 1 else 0o100755
    return struct.pack("<6Q10I", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body, is_hung):
    """The answer's body, an errno as a negative number, or None: there is none."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 4, 4, 4096, 1, 1, 0, *[0] * 8)
    if opcode == LOOKUP:
        if body.rstrip(b"\0") != b"file":
            return -ENOENT
        return struct.pack("<4Q2I", 2, 0, 60, 0, 0, 0) + attributes(2)
    if opcode == GETATTR:
        return None if is_hung() else struct.pack("<Q2I", 0, 0, 0) + attributes(node)
    if opcode == OPEN:
        return struct.pack("<Q2I", 0, DIRECT_IO, 0)
    if opcode == READ:
        time.sleep(READ_S)
        return TEXT if struct.unpack_from("<2Q", body)[1] == 0 else b""
    return None if opcode in (FORGET, BATCH_FORGET, INTERRUPT) else -ENOSYS


def answer_file(opcode, node, body, is_hung, text):
    """As answer(), of a file with that text."""
    if opcode not in (FORGET, BATCH_FORGET, INTERRUPT) and is_hung():
        return None
    if opcode == LOOKUP and body.rstrip(b"\0") == b"file":
        return struct.pack("<4Q2I", 2, 0, 60, 0, 0, 0) + attributes(2, len(text))
    if opcode == GETATTR:
        return struct.pack("<Q2I", 0, 0, 0) + attributes(node, len(text))
    if opcode == OPEN:
        return struct.pack("<Q2I", 0, 0, 0)
    if opcode == READ:
        _, offset, size = struct.unpack_from("<2QI", body)
        return text[offset : offset + size]
    return answer(opcode, node, body, is_hung)


def serve(folder, hung, source=None):
    """Until it is unmounted; `hung`: a path that is there when no more attributes are told."""
    text = open(source, "rb").read() if source else None
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"slow", os.fsencode(folder), b"fuse", 6, options.encode()):
        print(f"mount: {os.strerror(ctypes.get_errno())}", flush=True)
        return
    print("ready", flush=True)
    while True:
        try:
            request = os.read(device, 1 << 17)
        except OSError:
            return
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        arguments = (opcode, node, request[40:], lambda: os.path.exists(hung))
        said = answer(*arguments) if text is None else answer_file(*arguments, text)
        if isinstance(said, int):
            os.write(device, struct.pack("<IiQ", 16, said, unique))
        elif said is not None:
            os.write(device, struct.pack("<IiQ", 16 + len(said), 0, unique) + said)


if __name__ == "__main__":
    serve(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""`stuck_fuse.py FOLDER STUCK [mapped]`: mounts at FOLDER a file system that keeps files in memory,
which can be mapped for writing with `mapped`. While the path STUCK exists, it does not answer
writes. Speaks FUSE to the kernel itself: include/uapi/linux/fuse.h."""

import ctypes
import os
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, SETATTR, UNLINK, RENAME, OPEN = 1, 2, 3, 4, 10, 12, 14
READ, WRITE, RELEASE, FLUSH, INIT, CREATE = 15, 16, 18, 25, 26, 35
INTERRUPT, BATCH_FORGET, RENAME2 = 36, 42, 45
ENOSYS, ENOENT = 38, 2
DIRECT_IO = 0 if "mapped" in sys.argv[3:] else 1
ROOT = 1


class Files:
    """The files of the one folder, by their numbers."""

    def __init__(self):
        self.contents = {}
        self.names = {}

    def attributes(self, node):
        mode = 0o40777 if node == ROOT else 0o100600
        size = len(self.contents.get(node, b""))
        return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def create(self, name):
        node = ROOT + 1 + len(self.contents)
        self.contents[node] = bytearray()
        self.names[name] = node
        return self.entry(node) + struct.pack("<Q2I", 0, DIRECT_IO, 0)

    def write(self, node, body):
        _, offset, size = struct.unpack_from("<2QI", body)
        self.contents[node][offset:offset + size] = body[40:40 + size]
        return struct.pack("<2I", size, 0)

    def rename(self, body, header):
        old, new = body[header:].rstrip(b"\0").split(b"\0")
        self.names[new] = self.names.pop(old)
        return b""

    def set_size(self, node, body):
        valid, _, _, size = struct.unpack_from("<2I2Q", body)
        if valid & 8:
            del self.contents[node][size:]
        return struct.pack("<Q2I", 0, 0, 0) + self.attributes(node)


def answer(files, opcode, node, body):
    """The answer's body, an errno as a negative number, or None: there is none."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 4, 4, 1 << 17, 1, 1, 0, *[0] * 8)
    if opcode == LOOKUP:
        name = body.rstrip(b"\0")
        return files.entry(files.names[name]) if name in files.names else -ENOENT
    if opcode == READ:
        _, offset, size = struct.unpack_from("<2QI", body)
        return bytes(files.contents[node][offset:offset + size])
    known = {
        GETATTR: lambda: struct.pack("<Q2I", 0, 0, 0) + files.attributes(node),
        SETATTR: lambda: files.set_size(node, body),
        CREATE: lambda: files.create(body[16:].rstrip(b"\0")),
        OPEN: lambda: struct.pack("<Q2I", 0, DIRECT_IO, 0),
        WRITE: lambda: files.write(node, body),
        RENAME: lambda: files.rename(body, 8),
        RENAME2: lambda: files.rename(body, 16),
        UNLINK: lambda: b"" if files.names.pop(body.rstrip(b"\0"), None) else -ENOENT,
        RELEASE: lambda: b"",
        FLUSH: lambda: b"",
        FORGET: lambda: None,
        BATCH_FORGET: lambda: None,
        INTERRUPT: lambda: None,
    }
    return known.get(opcode, lambda: -ENOSYS)()


def serve(folder, stuck):
    """Until it is unmounted."""
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"stuck", os.fsencode(folder), b"fuse", 6, options.encode()):
        print(f"mount: {os.strerror(ctypes.get_errno())}", flush=True)
        return
    print("ready", flush=True)
    files = Files()
    while True:
        try:
            request = os.read(device, 1 << 18)
        except OSError:
            return
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        while opcode == WRITE and os.path.exists(stuck):
            time.sleep(0.01)
        said = answer(files, opcode, node, request[40:])
        try:
            if isinstance(said, int):
                os.write(device, struct.pack("<IiQ", 16, said, unique))
            elif said is not None:
                os.write(device, struct.pack("<IiQ", 16 + len(said), 0, unique) + said)
        except OSError:  # nobody waits for it any more
            pass


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])

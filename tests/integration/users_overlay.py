# SPDX-License-Identifier: Apache-2.0
"""What any user can do in a user namespace: an overlay on a FUSE file system, whose server waits
before it answers an open. Prints "ready", and executes the program of the overlay for each line.
Arguments: the user's number, the FUSE device, a folder of the user's own, seconds. Speaks FUSE to
the kernel itself: include/uapi/linux/fuse.h."""

import ctypes
import os
import platform
import signal
import struct
import subprocess
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, INIT = 1, 2, 3, 14, 15, 17, 26
INTERRUPT, BATCH_FORGET = 36, 42
ENOSYS, ENOENT = 38, 2
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
PR_SET_DUMPABLE = 4
MS_REC, MS_PRIVATE, MNT_DETACH = 0x4000, 0x40000, 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[platform.machine()]


class Server:
    def __init__(self, device, program, wait_s):
        self.device, self.wait_s = device, wait_s
        with open(program, "rb") as file:
            self.bytes = file.read()

    def attributes(self, node):
        mode = 0o40755 if node == 1 else 0o100755
        return struct.pack("<6Q10I", node, len(self.bytes), 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0,
                           4096, 0)

    def answer(self, opcode, node, body):
        """The answer's body, an errno as a negative number, or None: there is none."""
        if opcode == INIT:
            return struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 4, 4, 4096, 1, 1, 0, *[0] * 8)
        if opcode == LOOKUP:
            if body.rstrip(b"\0") != b"program":
                return -ENOENT
            return struct.pack("<4Q2I", 2, 0, 60, 60, 0, 0) + self.attributes(2)
        if opcode == GETATTR:
            return struct.pack("<Q2I", 60, 0, 0) + self.attributes(node)
        if opcode == OPEN:
            time.sleep(self.wait_s)
            return struct.pack("<Q2I", 0, 0, 0)
        if opcode == READ:
            offset, size = struct.unpack_from("<8xQI", body)
            return self.bytes[offset : offset + size]
        if opcode == STATFS:
            return struct.pack("<5Q10I", 0, 0, 0, 0, 0, 4096, 255, 4096, *[0] * 7)
        return None if opcode in (FORGET, BATCH_FORGET, INTERRUPT) else -ENOSYS

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 17)
            except OSError:
                return
            _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
            said = self.answer(opcode, node, request[40:])
            if isinstance(said, int):
                os.write(self.device, struct.pack("<IiQ", 16, said, unique))
            elif said is not None:
                os.write(self.device, struct.pack("<IiQ", 16 + len(said), 0, unique) + said)


def must(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def become(libc, user):
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    must(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))


def leave_chroot(libc):
    """In a chroot the kernel makes no user namespace (user_namespaces(7)): its folder becomes the
    root of a mount namespace instead."""
    must(libc.unshare(CLONE_NEWNS))
    must(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    here = os.open("/", os.O_PATH)
    os.chroot("/tmp")
    os.fchdir(here)
    while not os.path.samestat(os.stat("."), os.stat("..")):
        os.chdir("..")
    os.chroot(".")
    if not os.path.samestat(os.stat("/"), os.fstat(here)):
        os.fchdir(here)
        must(libc.syscall(PIVOT_ROOT, b".", b"."))
        must(libc.umount2(b".", MNT_DETACH))
    os.chdir("/")
    os.close(here)


def main(user, path, folder, wait_s):
    libc = ctypes.CDLL(None, use_errno=True)
    leave_chroot(libc)
    become(libc, int(user))
    for name in ("fuse", "other", "all"):
        os.mkdir(f"{folder}/{name}")
    must(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    for name in ("setgroups", "uid_map", "gid_map"):
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write("deny" if name == "setgroups" else f"0 {user} 1")
    device = os.open(path, os.O_RDWR)  # in the namespace where it is mounted
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    must(libc.mount(b"users", f"{folder}/fuse".encode(), b"fuse", 0, options.encode()))
    server = os.fork()
    if not server:
        Server(device, "/bin/true", float(wait_s)).serve()
        os._exit(0)
    os.close(device)
    options = f"lowerdir={folder}/fuse:{folder}/other"
    must(libc.mount(b"users", f"{folder}/all".encode(), b"overlay", 0, options.encode()))
    print("ready", flush=True)
    for _ in sys.stdin:
        print("exit", subprocess.run([f"{folder}/all/program"], check=False).returncode, flush=True)
    os.kill(server, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])

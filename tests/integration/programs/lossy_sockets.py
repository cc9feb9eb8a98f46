# SPDX-License-Identifier: Apache-2.0
"""Waits for sockets whose peers drop packets for some time. Prints for each wait which one it was, the
peer's port, and what the kernel says of segments that were sent again."""

import ctypes
import socket
import struct
import threading
import time

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27  # include/uapi/asm-generic/socket.h
TOTAL_RETRANS = 100  # offset of tcpi_total_retrans in struct tcp_info
DROP_ALL = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # BPF_RET | BPF_K: 0 bytes


def drop(made, seconds=None):
    """Drops all that comes for a socket, for ever or for some time."""
    program = struct.pack("HP", 1, ctypes.addressof(DROP_ALL))
    made.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    if seconds:
        timer = threading.Timer(seconds, made.setsockopt, (socket.SOL_SOCKET, SO_DETACH_FILTER, 0))
        timer.daemon = True
        timer.start()


def say(what, made, server):
    info = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    [count] = struct.unpack_from("I", info, TOTAL_RETRANS)
    print(what, server.getsockname()[1], count, flush=True)


def connect(what, server, timeout=None):
    made = socket.socket()
    made.settimeout(timeout)
    try:
        made.connect(server.getsockname())
    except TimeoutError:
        pass
    say(what, made, server)
    return made


def answer(peer):
    while peer.recv(1):
        time.sleep(0.03)
        peer.sendall(b"x")


dead, late, server = (socket.create_server(("127.0.0.1", 0)) for _ in range(3))
drop(dead)
connect("dead", dead, 3.5)
drop(late, 0.5)
connect("late", late)
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
drop(peer, 0.7)
threading.Thread(target=answer, args=(peer,), daemon=True).start()
for what in "data", "quick":
    client.send(b"q")
    client.recv(1)
    say(what, client, server)

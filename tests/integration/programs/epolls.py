# SPDX-License-Identifier: Apache-2.0
"""epolls.py WAY: prints its process ID, waits in epoll_wait() for several descriptors, and prints for each wait what it
was for: a file, "several", or "none". Another process answers after 30 ms, over the connections or the pipe that an
order names. WAY says which of them become ready:

    plain    one of them, none before the timeout, one that another epoll watches
    several  two of them, and the process that waits can't run in between
    asyncio  one of them, for asyncio's loop
"""

import asyncio
import os
import select
import socket
import sys
import time

ANSWER_MS, TIMEOUT_MS = 30, 60
PIPE = "pipe"


def said(what):
    print(os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else what, flush=True)


def alone_on_cpu(of_everyone):
    """Runs on one CPU with the other process. With `of_everyone`, the other one cannot run meanwhile."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if of_everyone:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def answer(server, orders, answers):
    peers = {str(i): server.accept()[0] for i in range(3)}
    for line in os.fdopen(orders):
        time.sleep(ANSWER_MS / 1000)
        for word in line.split():
            if word == PIPE:
                os.write(answers, b"x")
            else:
                peers[word].sendall(b"x")


def start(way):
    """Returns three connections, the descriptor for orders, and the pipe for answers."""
    server = socket.create_server(("127.0.0.1", 0))
    orders, answers = os.pipe(), os.pipe()
    if not os.fork():
        os.close(orders[1])
        if way == "several":
            alone_on_cpu(True)
        answer(server, orders[0], answers[1])
        os._exit(0)
    os.close(orders[0])
    return [socket.create_connection(server.getsockname()) for _ in range(3)], orders[1], answers[0]


def plain(connections, order, pipe):
    inner, outer = select.epoll(), select.epoll()
    for made in (*connections[:2], pipe, inner):
        outer.register(made, select.EPOLLIN)
    inner.register(connections[2], select.EPOLLIN)
    for which in ("0", "1", "0", PIPE, "2"):
        order(which)
        [(ready, _)] = outer.poll()
        said(ready)
        os.read(pipe if which == PIPE else connections[int(which)].fileno(), 1)
    outer.poll(TIMEOUT_MS / 1000)
    said("none")


def several(connections, order, pipe):
    alone_on_cpu(False)
    epoll = select.epoll()
    for made in (*connections, pipe):
        epoll.register(made, select.EPOLLIN)
    order(f"1 {PIPE}")
    assert len(epoll.poll()) == 2
    said("several")


async def asynchronous(connections, order):
    streams = [await asyncio.open_connection(sock=made) for made in connections]
    for which in (1, 0):
        order(str(which))
        await streams[which][0].read(1)
        said(connections[which].fileno())


print(os.getpid(), flush=True)
way = sys.argv[1]
connections, orders, pipe = start(way)


def order(words):
    os.write(orders, f"{words}\n".encode())


if way == "asyncio":
    asyncio.run(asynchronous(connections, order))
else:
    {"plain": plain, "several": several}[way](connections, order, pipe)

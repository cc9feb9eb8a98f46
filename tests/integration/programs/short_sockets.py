# SPDX-License-Identifier: Apache-2.0
"""Asks a server over sockets that are closed as soon as the answer is there, and prints the ports. The
name server waits for answers of an unconnected UDP socket; select() has a descriptor above 63."""

import os
import select
import socket
import threading
import time


def serve(server):
    while True:
        peer, _ = server.accept()
        time.sleep(0.03)
        peer.sendall(b"x")
        peer.close()


def answer(server):
    while True:
        _, to = server.recvfrom(100)
        time.sleep(0.03)
        server.sendto(b"y", to)


def ask(name_server):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.sendto(b"q", name_server)
    return made


stream = socket.create_server(("127.0.0.1", 0))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 0))
threading.Thread(target=serve, args=(stream,), daemon=True).start()
threading.Thread(target=answer, args=(datagrams,), daemon=True).start()
print(stream.getsockname()[1], datagrams.getsockname()[1], flush=True)
for _ in range(5):
    with socket.create_connection(stream.getsockname()) as client:
        client.recv(1)
    with ask(datagrams.getsockname()) as asked:
        asked.recv(10)
    with ask(datagrams.getsockname()) as asked:
        high = os.dup2(asked.fileno(), 900)
        select.select([high], [], [])
        os.close(high)

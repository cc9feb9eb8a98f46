# SPDX-License-Identifier: Apache-2.0
"""redis_server.py WAY SEED: the victim is a client of redis.
	slow	another client has the server sleep (DEBUG SLEEP) before it comes to the victim's command
	blpop	the victim waits for a list's item, which another client pushes once it has computed
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile

import said

ROUNDS = 6


def command(*words):
    return f"*{len(words)}\r\n".encode() + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words)


def client(path):
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    return made


def ask(connection, *words):
    connection.send(command(*words))
    return connection.recv(4096)


def pusher(path, reader):
    said.name("pusher")
    connection = client(path)
    while (line := reader.readline()):
        ask(connection, "RPUSH", "items", str(said.compute(int(line))))


def start_pusher(path):
    ends = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ends[1])
        pusher(path, os.fdopen(ends[0]))
        os._exit(0)
    return pid, ends[1]


def round_(way, i, path, server):
    pause = said.pause_ms(i)
    begin = said.now()
    if way == "slow":
        other.send(command("DEBUG", "SLEEP", str(pause / 1000)))
        ask(victim, "GET", "key")
        said.victim(i, begin, said.now())
        other.recv(4096)
        said.cause(i, "sleep", pause * said.MS, "redis-server", server)
    else:
        os.write(orders, b"%d\n" % pause)
        ran = int(ask(victim, "BLPOP", "items", "0").split()[-1])
        said.victim(i, begin, said.now())
        said.cause(i, "socket", ran, "pusher", pushes)


with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/redis.sock"
    server = subprocess.Popen([shutil.which("redis-server"), "--port", "0", "--unixsocket", path, "--save", "", "--dir",
                               folder, "--enable-debug-command", "yes"], stdout=subprocess.PIPE, text=True)
    while "ready to accept" not in server.stdout.readline().lower():
        pass
    victim, other = client(path), client(path)
    said.name("victim")
    pushes, orders = start_pusher(path)
    said.go(server.pid, pushes)
    for number in range(ROUNDS):
        round_(sys.argv[1], number, path, server.pid)
    os.close(orders)
    os.waitpid(pushes, 0)
    server.terminate()
    server.wait()

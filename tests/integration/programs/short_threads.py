"""Threads that live for some milliseconds, of all kinds. Waits for a line of input, and prints which names Python knew them
by: short_threads.py [fork]. With "fork", a child has the threads."""

import _thread
import concurrent.futures
import http.server
import json
import os
import socketserver
import sys
import threading
import time
import urllib.request

names = {}


def note():
    names[threading.get_native_id()] = threading.current_thread().name


def short(seconds):
    note()
    time.sleep(seconds)


def renames_itself():
    threading.current_thread().name = f"was {threading.current_thread().name}"
    short(0.003)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        short(0.002)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


class Job(threading.Thread):
    """Its attributes are set before those of threading, and there are more of them."""

    def __init__(self, number):
        self.number = number
        self.other = {"name": "of no thread"}
        super().__init__(name=f"job {number}")
        self.result = None

    def run(self):
        short(0.001)


def run(thread):
    thread.start()
    thread.join()


def nested():
    note()
    run(threading.Thread(target=short, args=(0.001,), name="child of " + threading.current_thread().name))


def all_kinds():
    for i in range(15):
        run(threading.Thread(target=short, args=(0.001 * (i % 3 + 1),), name=f"short {i}"))
        run(threading.Thread(target=short, args=(0.001,)))
        run(threading.Thread(target=short, args=(0.001,), name=f"größer Ωμέγα 😀 {i}"))
        run(threading.Thread(target=short, args=(0.001,), name=f"{i} " + "x" * 80))
        run(threading.Thread(target=renames_itself, name=f"name {i}"))
        run(threading.Thread(target=nested, name=f"nested {i}"))
        run(Job(i))
        with concurrent.futures.ThreadPoolExecutor(3, f"pool {i}", note) as pool:
            for _ in range(6):
                pool.submit(short, 0.001)
        many = [threading.Thread(target=short, args=(0.002,), name=f"one of many {i}.{j}") for j in range(8)]
        for thread in many:
            thread.start()
        for thread in many:
            thread.join()
        _thread.start_new_thread(time.sleep, (0.002,))


def serve(server):
    note()
    server.serve_forever(0.01)


def requests():
    with Server(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=serve, args=(server,), name="server")
        serving.start()
        for _ in range(10):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/"):
                pass
        server.shutdown()
        serving.join()


def work():
    all_kinds()
    requests()
    print("names", json.dumps({"pid": os.getpid(), "names": names}), flush=True)


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    if sys.argv[1:] == ["fork"]:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        else:
            work()
            os._exit(0)
    else:
        work()
    sys.stdin.readline()


main()

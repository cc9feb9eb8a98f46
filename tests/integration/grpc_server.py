# SPDX-License-Identifier: Apache-2.0
"""A server of gRPC with answers that no real one gives on demand: HTTP/2 (RFC 9113) as far as one client needs
it. It does not look at the requests' headers, which real servers check."""

import base64
import socket
import struct
import threading
import time

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def header_block(headers):
    """HPACK (RFC 7541): literals without Huffman codes, none of which is indexed."""
    def text(value):
        data = value if isinstance(value, bytes) else value.encode()
        assert len(data) < 127 + 128
        return (bytes([len(data)]) if len(data) < 127 else bytes([127, len(data) - 127])) + data
    return b"".join(b"\0" + text(key) + text(value) for key, value in headers)


def retry_info(seconds, nanos=0):
    """grpc-status-details-bin with a RetryInfo."""
    def message(field, body):
        return bytes([field << 3 | 2, len(body)]) + body
    delay = message(1, bytes([8, seconds, 16]) + (bytes([nanos]) if nanos < 128 else b"\0"))
    detail = (message(1, b"type.googleapis.com/google.rpc.RetryInfo") + message(2, delay))
    return base64.b64encode(b"\x08\x0e" + message(3, detail)).rstrip(b"=")


class Call:
    def __init__(self, body):
        assert body[0] == 0 and struct.unpack(">I", body[1:5])[0] == len(body) - 5
        self.body = body[5:]
        self.time = time.monotonic()

    def spans(self):
        message = trace_service_pb2.ExportTraceServiceRequest.FromString(self.body)
        return [s for r in message.resource_spans for scope in r.scope_spans for s in scope.spans]


class GrpcServer:
    """answers: a list of (trailers, message); the last one is repeated. `cut`: the number of requests whose
    connection breaks in the middle of the answer."""

    def __init__(self, answers, cut=0, context=None):
        self.answers, self.cut, self.context = answers, cut, context
        self.calls, self.lock = [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        scheme = "grpcs" if context else "grpc"
        self.url = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.guarded, args=(connection,), daemon=True).start()

    def guarded(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection:
                self.serve(connection)
        except (OSError, EOFError):
            pass  # the client has gone, or does not trust the certificate

    def serve(self, connection):
        stream = connection.makefile("rb")
        if stream.read(len(PREFACE)) != PREFACE:
            return
        # Windows that no request fills.
        connection.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**30)) +
                           frame(WINDOW, 0, 0, struct.pack(">I", 2**30)))
        bodies = {}
        while True:
            head = stream.read(9)
            if len(head) < 9:
                return
            length, (kind, flags) = int.from_bytes(head[:3], "big"), head[3:5]
            number = int.from_bytes(head[5:], "big")
            body = stream.read(length)
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                connection.sendall(frame(PING, ACK, 0, body))
            elif kind == DATA:
                bodies[number] = bodies.get(number, b"") + (
                    body[1:len(body) - body[0]] if flags & PADDED else body)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                if not self.answer(connection, number, Call(bodies.pop(number))):
                    return

    def answer(self, connection, stream, call):
        with self.lock:
            number = len(self.calls)
            self.calls.append(call)
        trailers, message = self.answers[min(number, len(self.answers) - 1)]
        data = b"\0" + struct.pack(">I", len(message)) + message
        head = frame(HEADERS, END_HEADERS, stream, header_block(
            [(":status", "200"), ("content-type", "application/grpc")]))
        if number < self.cut:
            connection.sendall(head + frame(DATA, 0, stream, data)[:-1])
            return False
        connection.sendall(head + frame(DATA, 0, stream, data) + frame(
            HEADERS, END_HEADERS | END_STREAM, stream, header_block(trailers)))
        return True

    def close(self):
        try:
            # Wakes accept(), which would keep the port open.
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it was closed before
        self.listener.close()

# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that waits before it answers /slow/MS, and between header and body of /body/MS.
/never closes the connection without an answer. Prints its port."""

import http.server
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pause(self, kind):
        if self.path.startswith(f"/{kind}/"):
            time.sleep(int(self.path.split("?")[0].split("/")[2]) / 1000)

    def do_GET(self):
        if self.path == "/never":
            self.close_connection = True
            return
        self.pause("slow")
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.pause("body")
        self.wfile.write(b"done")

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()

# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over its DevTools pipe: NUL-ended JSON on descriptors 3 and 4."""

import base64
import json
import os
import select
import shutil
import subprocess
import time


class Chromium:
    """One page at a time. What the page logs or asks of a network is kept."""

    def __init__(self, folder):
        program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        assert program, "chromium-headless-shell is not installed; run make setup"
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()

        def descriptors():
            # Out of the way first: either may be 3 or 4 already.
            a, b = os.dup(to_read), os.dup(back_write)
            a, b = [os.dup(fd) if fd in (3, 4) else fd for fd in (a, b)]
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-dev-shm-usage",
             "--disable-background-networking", "--no-first-run",
             f"--user-data-dir={folder}/chromium"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=descriptors, close_fds=False, env={**os.environ, "HOME": str(folder)})
        os.close(to_read)
        os.close(back_write)
        self.number, self.session, self.buffer = 0, None, b""
        self.errors, self.requests, self.events = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _receive(self, timeout):
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            more = os.read(self.back, 1 << 20)
            assert more, "Chromium ended"
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(message)
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled":
            self.errors.append(params["args"])
        elif method == "Log.entryAdded":
            self.errors.append(params["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method:
            self.events.append(method)
        return message

    def call(self, method, timeout=30, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(timeout)
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, url):
        self.errors, self.requests, self.events = [], [], []
        self.call("Page.navigate", url=str(url))
        while "Page.loadEventFired" not in self.events:
            self._receive(30)

    def evaluate(self, expression):
        """The value of a JavaScript expression, through JSON."""
        result = self.call("Runtime.evaluate", expression=f"JSON.stringify({expression})",
                           returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        value = result["result"].get("value")
        return None if value is None else json.loads(value)

    def click(self, expression):
        """Clicks an element as a mouse does, in its middle."""
        x, y = self.evaluate(
            f"(() => {{ const e = {expression}; e.scrollIntoView({{block: 'center'}});"
            "const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                      clickCount=1)

    def screenshot(self, path, width=1280, height=2400, scheme="light"):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)


def open_page(browser, path):
    """Opens a page of waffle, which draws all of itself without an error or a request."""
    browser.open(f"file://{path}")
    assert browser.errors == []
    assert browser.requests == [f"file://{path}"]
    assert browser.evaluate("document.documentElement.dataset.drawn") == "all"

# SPDX-License-Identifier: Apache-2.0
"""docs/python.md as a new user follows it: each block of Python and each command runs as it is, in order, in one
folder, with `import waffle` in front."""

import re
import subprocess
import sys

import pytest

from test_python import Script, python, script  # noqa: F401  (fixtures)
from test_python_frameworks import frameworks, with_frameworks  # noqa: F401  (fixtures)
from test_replay import gpu_maker  # noqa: F401  (a fixture)
from tracer import ROOT, wait_until

TEXT = (ROOT / "docs/python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)
COMMANDS = re.findall(r"^    ((?:WAFFLE_TRACE=|waffle-bpf |sudo waffle-bpf run ).*?)(?: +#.*)?$", TEXT, re.M)

# A network of its own, in which nobody listens on the ports that the text names, and no other process has them.
ALONE = """
import ctypes, fcntl, os, socket, struct, sys
ctypes.CDLL(None).unshare(0x40000000)  # CLONE_NEWNET
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def reader(script, with_frameworks, waffle_program, tmp_path):  # noqa: F811
    """Runs a command in the folder, as somebody who has installed waffle and the frameworks."""
    links = tmp_path / "bin"
    links.mkdir()
    (links / "python").symlink_to(script.python)
    (links / "waffle-bpf").symlink_to(waffle_program)
    (links / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (links / "sudo").chmod(0o755)
    others = [path for path in sys.path if "site-packages" in path]
    environment = script.environment(**with_frameworks)
    environment["PATH"] = f"{links}:{environment['PATH']}"
    environment["PYTHONPATH"] += ":" + ":".join(others)

    def run(*command):
        return subprocess.run([sys.executable, "-c", ALONE, *command], cwd=tmp_path, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)

    return run


def test_blocks_and_commands_run_as_they_are(reader, script, gpu_maker, tmp_path):  # noqa: F811
    assert len(BLOCKS) >= 8 and len(COMMANDS) >= 4
    (tmp_path / "headers.txt").write_text("key: value\n")
    subprocess.run([gpu_maker, tmp_path / "gpu.waffle", "150", "1"], stdout=subprocess.DEVNULL, check=True)
    first, *others = BLOCKS
    assert first.startswith("# app.py\n")
    (tmp_path / "app.py").write_text(first)
    alone, report, run, why = COMMANDS[:4]
    said = {}

    def follow(*commands):
        for command in commands:
            done = reader("/bin/sh", "-c", command)
            assert done.returncode == 0 or command == why, f"{command}: {done.stderr}"
            said[command] = done.stdout

    follow(alone, report)
    assert "bad record" in said[report]
    # The tracer may learn of the name when a short program has nearly ended, on a busy machine.
    wait_until(lambda: follow(run, why) or "sleep" in said[why], "a run with the span parse")
    for number, block in enumerate(others):
        path = tmp_path / f"block{number}.py"
        path.write_text("import waffle\n" + block)
        done = reader(script.python, path)
        assert done.returncode == 0 and "Traceback" not in done.stderr, f"{block}: {done.stderr}"
    assert (tmp_path / "x.pftrace.gz").stat().st_size > 0

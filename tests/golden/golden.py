# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of cases.py on the committed captures, and compares their outputs with the
committed ones.

Nothing of the machine may be in the output. So the commands run in a chroot that holds waffle-bpf,
the libraries that it is linked with (in a folder that no capture names), the captures, and the
programs of programs.tar.xz at the paths where they were recorded. The environment is ENVIRONMENT and
nothing else. Standard output is a pipe, or a terminal of a fixed size.

What is committed per capture: expected/NAME.txt, a transcript in which long outputs stand as size
and hash, and expected/NAME.xz with these long outputs, so that a difference can be shown.
"""

import collections
import contextlib
import difflib
import fcntl
import hashlib
import json
import lzma
import os
import pathlib
import pickle
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import threading
from concurrent.futures import ThreadPoolExecutor

import cases

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CAPTURES, EXPECTED = HERE / "captures", HERE / "expected"
PROGRAMS = HERE / "programs.tar.xz"

ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TZ": "UTC0", "LD_LIBRARY_PATH": "/waffle/lib"}
TERMINAL = {"TERM": "xterm-256color"}
ROWS, COLUMNS = 40, 120
SHORT = 1800  # bytes of an output that stands in the transcript; one of a program: SHORT_DATA
SHORT_DATA = 400
KEPT = 40_000  # bytes of a longer one that is kept to show differences; of others a summary is
SUMMARY_PARTS = 8
CASE_SECONDS = 60
DIFFERENCE_LINES = 60


def all_cases():
    return cases.cases(sorted(path.stem for path in CAPTURES.glob("*.waffle")))


def default_program():
    return pathlib.Path(os.environ.get("WAFFLE_BPF") or ROOT / "build" / "waffle-bpf").resolve()


# ---- the root folder ----


def make_root(folder, program):
    """All that a command can see."""
    root = pathlib.Path(folder)
    for name in ("waffle/lib", "captures", "proc", "case", "gcov", "dev"):
        (root / name).mkdir(parents=True)
    (root / "dev/null").touch()  # bound over
    shutil.copy(program, root / "waffle/waffle-bpf")
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        found = re.search(r"=> (/\S+)", line) or re.match(r"\s*(/\S+)", line)
        if not found:
            continue
        path = pathlib.Path(found[1])
        if "=>" in line:
            shutil.copy(path, root / "waffle/lib" / path.name)
        else:  # the loader, where the program names it
            (root / path.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to("/"))
    for path in sorted(CAPTURES.glob("*.waffle")):
        shutil.copy(path, root / "captures" / path.name)
    for name, make in cases.DERIVED.items():
        (root / "captures" / f"{name}.waffle").write_bytes(
            make(lambda base: (CAPTURES / f"{base}.waffle").read_bytes()))
    with tarfile.open(PROGRAMS) as archive:
        archive.extractall(root)
    return root


# ---- one command ----


def words_of(line):
    """A line of cases.py: (environment, on a terminal, arguments)."""
    environment, arguments = {}, shlex.split(line)
    terminal = arguments[0] == "@tty"
    if terminal:
        del arguments[0]
    while re.match(r"[A-Z_]+=", arguments[0]):
        name, _, value = arguments.pop(0).partition("=")
        environment[name] = value
    return environment, terminal, arguments


def read_all(fd):
    data = b""
    with contextlib.suppress(OSError):  # a terminal whose other end is closed
        while part := os.read(fd, 65536):
            data += part
    return data


def run_case(root, number, line):
    """Runs one command in a folder of its own, where the captures that it names are links."""
    environment, terminal, arguments = words_of(line)
    folder = f"/case/{number}"
    inside = root / folder.lstrip("/")
    inside.mkdir()
    links = set()
    for word in arguments:
        if word.endswith(".waffle") and (root / "captures" / word).exists() and word not in links:
            (inside / word).symlink_to(f"/captures/{word}")
            links.add(word)
    environment = {**ENVIRONMENT, **(TERMINAL if terminal else {}), **environment,
                   **json.loads(os.environ.get("WAFFLE_GOLDEN_MORE", "{}"))}

    def enter():
        os.chroot(root)
        os.chdir(folder)

    ours, theirs = pty.openpty() if terminal else os.pipe()
    if terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(["/waffle/waffle-bpf", *arguments], env=environment,
                               stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
                               preexec_fn=enter)
    os.close(theirs)
    late = threading.Timer(CASE_SECONDS, process.kill)
    late.start()
    said = []
    reader = threading.Thread(target=lambda: said.append(read_all(ours)))
    reader.start()
    errors = process.stderr.read()
    reader.join()
    process.wait()
    late.cancel()
    os.close(ours)
    files = {path.name: path.read_bytes() for path in sorted(inside.iterdir())
             if path.name not in links}
    shutil.rmtree(inside)
    return {"exit": process.returncode, "stdout": said[0], "stderr": errors, **files}


def run_all(program, lines):
    """{line: result} of command lines, run in a mount namespace that ends with them."""
    with tempfile.TemporaryDirectory(prefix="waffle-golden-") as folder:
        root = make_root(pathlib.Path(folder) / "root", program)
        task, answer = pathlib.Path(folder) / "task", pathlib.Path(folder) / "answer"
        task.write_bytes(pickle.dumps((root, list(lines))))
        script = ('mount -t proc proc "$1/proc" && mount --bind /dev/null "$1/dev/null" && '
                  'shift && exec "$@"')
        subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", root, sys.executable, __file__,
             task, answer], check=True)
        if os.environ.get("WAFFLE_GOLDEN_GCOV"):
            shutil.copytree(root / "gcov", os.environ["WAFFLE_GOLDEN_GCOV"], dirs_exist_ok=True)
        return pickle.loads(answer.read_bytes())


def worker(task, answer):
    root, lines = pickle.loads(pathlib.Path(task).read_bytes())
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = list(pool.map(lambda item: run_case(root, *item), enumerate(lines)))
    pathlib.Path(answer).write_bytes(pickle.dumps(dict(zip(lines, results))))


# ---- the committed expectations ----


def is_short(label, data):
    if label == "stderr":
        return True
    return is_text(data) and len(data) <= (SHORT_DATA if data[:1] in b"{[<" else SHORT)


def is_kept(label, data):
    """Whether update.py can show a difference itself. A page is mostly its script and style, and files
    that are written for other tools are long."""
    return (label == "stdout" and is_text(data) and len(data) <= KEPT
            and not data.startswith(b"<!DOCTYPE html>"))


def is_text(data):
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def summary(data):
    """What helps to see what has changed in an output that is not kept: how many objects there are
    of a kind, and the hash of each eighth, by lines or bytes."""
    kinds = collections.Counter(re.findall(rb'"(?:kind|ph|cause)": ?"([\w-]+)"', data))
    said = " ".join(f"{kind.decode()}={count}" for kind, count in sorted(kinds.items()))
    pieces = data.splitlines(keepends=True)
    if not is_text(data) or len(pieces) < SUMMARY_PARTS:
        pieces = [data[i:i + 256] for i in range(0, len(data), 256)]
    size = -(-len(pieces) // SUMMARY_PARTS)
    hashes = [hashlib.sha256(b"".join(pieces[i:i + size])).hexdigest()[:4]
              for i in range(0, len(pieces), size)]
    return (f"  {said}\n" if said else "") + f"  {' '.join(hashes)}\n"


def part_text(label, data):
    """A part of a result in the transcript, and whether it stands there whole."""
    if label == "exit":
        return (f"[exit {data}]\n" if data else ""), True
    if not data:
        return ("" if label in ("stdout", "stderr") else f"[{label}: empty]\n"), True
    if is_short(label, data):
        text = data.decode("utf-8")
        head = "" if label == "stdout" else f"[{label}]\n"
        return head + text + ("" if text.endswith("\n") else "\n[no newline]\n"), True
    lines = f", {data.count(bytes([10]))} lines" if is_text(data) else ""
    digest = hashlib.sha256(data).hexdigest()
    text = f"[{label}: {len(data)} bytes{lines}, sha256 {digest}]\n"
    return text + ("" if is_kept(label, data) else summary(data)), False


def transcript(results):
    """The text of expected/NAME.txt, and {"line\\tpart": bytes} of longer outputs."""
    text, long = [], {}
    for line, result in results.items():
        text.append(f"$ waffle-bpf {line}\n")
        for label, data in result.items():
            part, whole = part_text(label, data)
            text.append(part)
            if not whole and is_kept(label, data):
                long[f"{line}\t{label}"] = data
        text.append("\n")
    return "".join(text), long


def long_read(name):
    path = EXPECTED / f"{name}.xz"
    return pickle.loads(lzma.decompress(path.read_bytes())) if path.exists() else {}


def expectation_write(name, results):
    EXPECTED.mkdir(exist_ok=True)
    text, long = transcript(results)
    (EXPECTED / f"{name}.txt").write_text(text, encoding="utf-8")
    (EXPECTED / f"{name}.xz").write_bytes(lzma.compress(pickle.dumps(long), preset=9))


def expectation_sections(name):
    """{line: its part of the transcript}"""
    path = EXPECTED / f"{name}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.split(r"^\$ waffle-bpf (.*)\n", text, flags=re.M)[1:]
    return dict(zip(found[::2], found[1::2]))


# ---- differences ----


def readable(data):
    """Lines to compare. Binary data is split at its strings; each line ends with a string."""
    if is_text(data):
        return data.decode("utf-8").splitlines()
    return [part.decode("latin-1").encode("unicode_escape").decode()
            for part in re.split(rb"(?<=[\x20-\x7e]{4})(?![\x20-\x7e])", data)]


def difference(before, after, label):
    lines = list(difflib.unified_diff(readable(before), readable(after), f"expected {label}",
                                      f"now {label}", lineterm="", n=1))
    more = len(lines) - DIFFERENCE_LINES
    return "\n".join(lines[:DIFFERENCE_LINES] + ([f"… {more} more lines"] if more > 0 else []))


def problem(name, line, result, sections=None):
    """What is different about a command's result; an empty string if it is as committed."""
    sections = expectation_sections(name) if sections is None else sections
    if line not in sections:
        return f"{name}.txt does not have it: run tests/golden/update.py"
    text, long = transcript({line: result})
    text = text.split("\n", 1)[1]
    if text == sections[line]:
        return ""
    said = [difference(sections[line].encode(), text.encode(), "transcript")]
    old = long_read(name)
    for key, data in long.items():
        if key in old and old[key] != data:
            said.append(difference(old[key], data, key.partition("\t")[2]))
    return "\n".join(said)


if __name__ == "__main__":
    worker(*sys.argv[1:])

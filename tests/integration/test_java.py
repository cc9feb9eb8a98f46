# SPDX-License-Identifier: Apache-2.0
"""Code that the JVM makes while it runs has the names of its methods, as its own tools tell them."""

import json
import re
import subprocess

import pytest
from tracer import PROGRAMS, find_tool
from why_json import asker


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("java")
    subprocess.run([find_tool("javac"), "-d", folder, PROGRAMS / "Ledger.java"], check=True)
    return folder


@pytest.fixture
def places(waffle, ledger, tmp_path):
    """places(*options): the functions of the samples of a program, by their share, and the methods
    that the JVM itself says it compiled."""

    def ask(*options):
        program = subprocess.Popen(
            [find_tool("java"), "-XX:+UseSerialGC", *options, "-cp", ledger, "Ledger"], stdout=subprocess.PIPE)
        try:
            assert program.stdout.readline()
            path = tmp_path / "x.waffle"
            waffle.ok("why", f"--pid={program.pid}", "--duration=2s", "-o", path)
            listed = subprocess.run([find_tool("jcmd"), str(program.pid), "Compiler.codelist"], check=True,
                                    capture_output=True, text=True).stdout
        finally:
            program.kill()
            program.wait()
        [instance] = asker(waffle)(path)["instances"]
        [running] = [cause for cause in instance["causes"] if cause["cause"] == "running"][:1]
        samples = running["samples"]
        assert samples["count"] >= 20
        shares = {place["function"]: place["count"] / samples["count"] for place in samples["places"]}
        return shares, set(re.findall(r"Ledger\.\w+", listed))

    return ask


@pytest.mark.parametrize("options", ((), ("-XX:TieredStopAtLevel=1",), ("-XX:-SegmentedCodeCache",)))
def test_a_compiled_method_has_its_name(places, options):
    shares, compiled = places(*options)
    named = {function for function in shares if function and function.startswith("Ledger.")}
    assert named and named <= compiled
    assert sum(shares[function] for function in named) >= 0.8


def test_interpreted_code_is_called_so(places):
    shares, compiled = places("-Xint")
    assert shares["the JVM's interpreter"] >= 0.8
    assert not compiled


def is_subsequence(some, of):
    rest = iter(of)
    return all(one in rest for one in some)


@pytest.mark.parametrize("compiled", (False, True))
def test_a_method_that_waits_has_its_callers(waffle, tmp_path, tmp_path_factory, compiled):
    """Compiled ones lack those that were inlined into others."""
    folder = tmp_path_factory.mktemp("java")
    subprocess.run([find_tool("javac"), "-d", folder, PROGRAMS / "Kiosk.java"], check=True)
    program = subprocess.Popen([find_tool("java"), *(["-Xcomp"] if compiled else ["-Xint"]), "-cp", folder, "Kiosk"], stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline()
        path = tmp_path / "x.waffle"
        waffle.ok("why", f"--pid={program.pid}", "--duration=1s", "-o", path)
        dump = subprocess.run([find_tool("jstack"), str(program.pid)], check=True, capture_output=True, text=True).stdout
    finally:
        program.kill()
        program.wait()
    waits = json.loads(waffle.ok("report", "--json", path).stdout)["open_waits"]
    for thread in ("clerk", "boss"):
        [wait] = [wait for wait in waits if wait["thread"]["comm"] == thread]
        methods = [frame["function"] for frame in wait["user_stack"] if frame.get("module") == "[JVM]"]
        [text] = re.findall(rf'^"{thread}" .*?(?:\n\n|\Z)', dump, re.MULTILINE | re.DOTALL)
        expected = re.findall(r"at ([\w.$<>]+)\(", text)
        assert any(name.startswith("Kiosk") for name in expected), text
        methods = [name for name in methods if "." in name]
        assert is_subsequence(methods, expected) if compiled else methods[: len(expected)] == expected, thread
        assert any(name.startswith("Kiosk") for name in methods), methods


POOL = """
package com.store;
import java.util.concurrent.*;

public class Pool {
    static final ArrayBlockingQueue<String> free = new ArrayBlockingQueue<>(1);

    public static String take() throws Exception {
        return free.poll(300, TimeUnit.MILLISECONDS);
    }
}
"""
BUYERS = """
public class Buyers {
    static void buy() throws Exception {
        com.store.Pool.take();
    }

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 3; i++)
            new Thread("buyer-" + i) {
                public void run() {
                    try {
                        while (true)
                            buy();
                    } catch (Exception e) {
                        System.exit(1);
                    }
                }
            }.start();
        Thread.sleep(500);
        System.out.println("ready");
    }
}
"""


@pytest.mark.parametrize("options", ((), ("-Xint",)))
def test_a_wait_for_a_pool_says_where_its_thread_waits_at_the_end(waffle, tmp_path, options):
    """The stacks of the waits before end in LockSupport."""
    for name, text in (("Pool.java", POOL), ("Buyers.java", BUYERS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run([find_tool("javac"), "-d", tmp_path, *tmp_path.glob("*.java")], check=True)
    program = subprocess.Popen([find_tool("java"), *options, "-cp", tmp_path, "Buyers"], stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline()
        path = tmp_path / "x.waffle"
        waffle.ok("why", f"--pid={program.pid}", "--duration=2s", "-o", path)
    finally:
        program.kill()
        program.wait()
    [instance] = asker(waffle)(path, "--thread", "buyer-1")["instances"]
    waits = [cause for cause in instance["causes"] if cause["cause"] == "timer"]
    assert waits and all(
        cause["at_end"] == {"function": "com.store.Pool.take", "from": "Buyers.buy"} for cause in waits)
    text = waffle.ok("why", "--thread=buyer-1", path).stdout
    assert re.search(r"timer .* buyer-\d .*, at the end in com\.store\.Pool\.take, from Buyers\.buy(,|$)", text, re.MULTILINE)

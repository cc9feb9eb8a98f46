# SPDX-License-Identifier: Apache-2.0
"""Calls the functions of placed.c when it gets a line. Argument: the library."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
NAMES = ("push", "nop5", "je", "stack", "loop", "changed", "deep")

print("ready", flush=True)
sys.stdin.readline()
for turn in range(4):
    for name in NAMES:
        function = getattr(library, f"placed_{name}")
        function.restype = ctypes.c_long
        count = 7 if name == "stack" else 2
        arguments = [turn * 10 + i for i in range(count)]
        assert function(*map(ctypes.c_long, arguments)) == sum(arguments), name
print("done", flush=True)
sys.stdin.read()

# SPDX-License-Identifier: Apache-2.0
"""Opens CUDA's runtime when it is told to, and launches at once. Each line of its input is a path,
of a library, and how many launches."""

import ctypes
import os
import sys


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


def launches(path, count):
    runtime = ctypes.CDLL(path)
    launch = runtime.cudaLaunchKernel
    launch.argtypes = (ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t,
                       ctypes.c_void_p)  # fmt: skip
    for i in range(count):
        zero = ctypes.c_uint64(0)
        arguments = (ctypes.c_void_p * 3)(*[ctypes.addressof(zero)] * 3)
        launch(ctypes.cast(os_kernel, ctypes.c_void_p), Dim3(i + 1, 1, 1), Dim3(32, 1, 1),
               arguments, 0, None)  # fmt: skip
    return runtime.cudaDeviceSynchronize()


os_kernel = ctypes.CDLL(None).getpid
print(f"ready pid={os.getpid()}", flush=True)
for line in sys.stdin:
    library, number = line.split()
    print(f"launched {number} result={launches(library, int(number))}", flush=True)

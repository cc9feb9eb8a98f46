# SPDX-License-Identifier: Apache-2.0
"""Calls functions of NVIDIA's libraries, which fail properly where there is no GPU, and prints what
it passed and got, a JSON object a call. Arguments: libraries. Begins when it gets a line, ends with its
input."""

import ctypes
import json
import sys

LIBRARIES = {path.rpartition("/")[2]: ctypes.CDLL(path) for path in sys.argv[1:]}


class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def ptr(value):
    return ctypes.c_void_p(value)


def size(value):
    return ctypes.c_size_t(value)


def call(library, name, *arguments, out=None, **told):
    """`told`: what the call's values must be by name; `out`: an argument that is read after it."""
    told["result"] = getattr(library, name)(*arguments)
    if out is not None:
        told[out[0]] = out[1].value
    print(json.dumps({"name": name, "args": told}), flush=True)


def cuda(lib):
    address, number = ctypes.c_void_p(0xABC0), ctypes.c_int(-7)
    call(lib, "cudaRuntimeGetVersion", ctypes.byref(number), out=("version", number))
    call(lib, "cudaGetDeviceCount", ctypes.byref(number), out=("count", number))
    call(lib, "cudaMalloc", ctypes.byref(address), size(4096), bytes=4096, out=("address", address))
    call(lib, "cudaMemcpyAsync", ptr(0x1000), ptr(0x2000), size(123), 1, ptr(0x77), bytes=123,
         kind="HtoD", stream=0x77)
    call(lib, "cudaMemcpy2DAsync", ptr(0x1000), size(1), ptr(0x2000), size(2), size(3), size(4), 2,
         ptr(0x78), width=3, height=4, kind="DtoH", stream=0x78)
    call(lib, "cudaMemsetAsync", ptr(0x1000), 5, size(1 << 33), ptr(0x79), bytes=1 << 33,
         stream=0x79)
    call(lib, "cudaLaunchKernel", ptr(0x5000), Dim3(1, 2, 3), Dim3(4, 5, 6), None, size(7),
         ptr(0x88), kernel=0x5000, grid=[1, 2, 3], block=[4, 5, 6], shared_bytes=7, stream=0x88)
    call(lib, "cudaEventRecord", ptr(0x11), ptr(0x22), event=0x11, stream=0x22)
    call(lib, "cudaStreamWaitEvent", ptr(0x23), ptr(0x12), 0, stream=0x23, event=0x12)
    if hasattr(lib, "cudaExecutionCtxRecordEvent"):  # since CUDA 13
        contexts(lib)
    call(lib, "cudaStreamSynchronize", ptr(0x99), stream=0x99)
    call(lib, "cudaDeviceSynchronize")
    call(lib, "cudaFree", ptr(0x6000), address=0x6000)


def contexts(lib):
    call(lib, "cudaExecutionCtxRecordEvent", ptr(0x31), ptr(0x13), context=0x31, event=0x13)
    call(lib, "cudaExecutionCtxWaitEvent", ptr(0x32), ptr(0x14), context=0x32, event=0x14)
    stream = ctypes.c_void_p(0xABC0)
    call(lib, "cudaExecutionCtxStreamCreate", ctypes.byref(stream), ptr(0x33), 1, -2, context=0x33,
         flags=1, priority=-2, out=("stream", stream))


def nccl(lib):
    comm, version = ctypes.c_void_p(), ctypes.c_int(-7)
    call(lib, "ncclGetVersion", ctypes.byref(version), out=("version", version))
    call(lib, "ncclGroupStart")
    call(lib, "ncclAllReduce", ptr(1), ptr(2), size(1 << 20), 9, 4, None, ptr(0x33), count=1 << 20,
         datatype="bfloat16", op="avg", stream=0x33, seq=0)
    call(lib, "ncclReduce", ptr(1), ptr(2), size(8), 7, 9, 3, None, ptr(0x34), count=8,
         datatype="float32", op="#9", root=3, stream=0x34, seq=1)
    call(lib, "ncclSend", ptr(1), size(16), 0, 5, None, ptr(0x35), count=16, datatype="int8",
         peer=5, stream=0x35, seq=0)
    call(lib, "ncclGroupEnd")
    call(lib, "ncclCommInitRank", ctypes.byref(comm), 2, UniqueId(b"x" * 127), 1, nranks=2, rank=1)


print("ready", flush=True)
sys.stdin.readline()
for key, loaded in LIBRARIES.items():
    (cuda if key.startswith("libcudart") else nccl)(loaded)
print("done", flush=True)
sys.stdin.read()

# SPDX-License-Identifier: Apache-2.0
"""A CUDA and NCCL program without a compiler: libcuda, libcudart and libnccl by ctypes, kernels as
PTX. Prints each call with its arguments and times, a JSON object a line, and checks what the GPU
computed unless it is simulated. Arguments: the three libraries. Begins when it gets a line."""

import ctypes
import json
import sys
import time

COUNT, BLOCKS, THREADS = 1 << 16, (64, 2, 1), (256, 2, 1)

# out[i] = in[i] + 1 for all i below 65,536.
PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry waffle_increment(.param .u64 out_param, .param .u64 in_param)
{
	.reg .b32 %r<10>;
	.reg .b64 %rd<6>;
	.reg .f32 %f<3>;
	mov.u32 %r1, %ctaid.y;
	mov.u32 %r2, %nctaid.x;
	mov.u32 %r3, %ctaid.x;
	mad.lo.s32 %r4, %r1, %r2, %r3;
	mov.u32 %r5, %tid.y;
	mov.u32 %r6, %ntid.x;
	mov.u32 %r7, %tid.x;
	mad.lo.s32 %r8, %r5, %r6, %r7;
	mad.lo.s32 %r9, %r4, 512, %r8;
	ld.param.u64 %rd1, [out_param];
	ld.param.u64 %rd2, [in_param];
	mul.wide.u32 %rd3, %r9, 4;
	add.s64 %rd4, %rd2, %rd3;
	add.s64 %rd5, %rd1, %rd3;
	ld.global.f32 %f1, [%rd4];
	add.f32 %f2, %f1, 0f3F800000;
	st.global.f32 [%rd5], %f2;
	ret;
}
"""


class Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


driver, runtime, nccl = (ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in sys.argv[1:4])
simulated = hasattr(driver, "waffle_simulation")
size = ctypes.c_size_t


def must(library, name, *arguments):
    result = getattr(library, name)(*arguments)
    if result:
        sys.exit(f"{name}: error {result}")


def call(library, name, *arguments, out=None, **told):
    """As must(), and told: `out` is (key, variable that the call sets)."""
    begin = time.monotonic_ns()
    must(library, name, *arguments)
    row = {"name": name, "begin": begin, "end": time.monotonic_ns(), "args": told}
    if out:
        told[out[0]] = out[1].value
    print(json.dumps(row), flush=True)


def new(library, name):
    handle = ctypes.c_void_p()
    must(library, name, ctypes.byref(handle))
    return handle


def launch_by_driver(out, data, stream):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    must(driver, "cuModuleLoadData", ctypes.byref(module), PTX)
    must(driver, "cuModuleGetFunction", ctypes.byref(function), module, b"waffle_increment")
    values = (ctypes.c_void_p * 2)(out.value, data.value)
    arguments = (ctypes.c_void_p * 2)(*(ctypes.addressof(values) + 8 * i for i in range(2)))
    call(driver, "cuLaunchKernel", function, *BLOCKS, *THREADS, 0, stream, arguments, None,
         kernel="waffle_increment", grid=list(BLOCKS), block=list(THREADS), shared_bytes=0,
         stream=stream.value)


def launch_by_runtime(out, data, stream):
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    must(runtime, "cudaLibraryLoadData", ctypes.byref(library), PTX, None, None, 0, None, None, 0)
    must(runtime, "cudaLibraryGetKernel", ctypes.byref(kernel), library, b"waffle_increment")
    values = (ctypes.c_void_p * 2)(out.value, data.value)
    arguments = (ctypes.c_void_p * 2)(*(ctypes.addressof(values) + 8 * i for i in range(2)))
    call(runtime, "cudaLaunchKernel", kernel, Dim3(*BLOCKS), Dim3(*THREADS), arguments, size(0),
         stream, kernel="waffle_increment", grid=list(BLOCKS), block=list(THREADS),
         shared_bytes=0, stream=stream.value)


def compute():
    bytes_, host = 4 * COUNT, (ctypes.c_float * COUNT)(*range(COUNT))
    back, data, out = (ctypes.c_float * COUNT)(), ctypes.c_void_p(), ctypes.c_void_p()
    stream, other = new(runtime, "cudaStreamCreate"), new(runtime, "cudaStreamCreate")
    event = new(runtime, "cudaEventCreate")
    for address in (data, out):
        call(runtime, "cudaMalloc", ctypes.byref(address), size(bytes_), bytes=bytes_,
             out=("address", address))
    call(runtime, "cudaMemsetAsync", out, 0, size(bytes_), stream, bytes=bytes_,
         stream=stream.value)
    call(runtime, "cudaMemcpyAsync", data, host, size(bytes_), 1, stream, bytes=bytes_,
         kind="HtoD", stream=stream.value)
    launch_by_driver(out, data, stream)
    if hasattr(runtime, "cudaLibraryLoadData"):
        launch_by_runtime(out, data, stream)
    call(runtime, "cudaEventRecord", event, stream, event=event.value, stream=stream.value)
    call(runtime, "cudaStreamWaitEvent", other, event, 0, stream=other.value, event=event.value)
    call(runtime, "cudaEventSynchronize", event, event=event.value)
    call(runtime, "cudaStreamSynchronize", stream, stream=stream.value)
    call(runtime, "cudaMemcpy", back, out, size(bytes_), 2, bytes=bytes_, kind="DtoH")
    assert simulated or list(back) == [i + 1 for i in range(COUNT)]
    reduce(out, data, stream)
    call(runtime, "cudaDeviceSynchronize")
    must(runtime, "cudaMemcpy", back, data, size(bytes_), 2)
    assert simulated or list(back) == [i + 1 for i in range(COUNT)]
    for address in (data, out):
        call(runtime, "cudaFree", address, address=address.value)


def reduce(out, data, stream):
    """An all-reduce of one rank: a copy."""
    comm, unique, rank, count = ctypes.c_void_p(), UniqueId(), ctypes.c_int(), ctypes.c_int()
    must(nccl, "ncclGetUniqueId", ctypes.byref(unique))
    call(nccl, "ncclCommInitRank", ctypes.byref(comm), 1, unique, 0, nranks=1, rank=0)
    must(nccl, "ncclCommUserRank", comm, ctypes.byref(rank))
    must(nccl, "ncclCommCount", comm, ctypes.byref(count))
    for turn in range(3):
        call(nccl, "ncclAllReduce", out, data, size(COUNT), 7, 0, comm, stream, count=COUNT,
             datatype="float32", op="sum", rank=rank.value, nranks=count.value, seq=turn,
             stream=stream.value)
    must(runtime, "cudaStreamSynchronize", stream)
    call(nccl, "ncclCommDestroy", comm, rank=rank.value, nranks=count.value)


print("ready", flush=True)
sys.stdin.readline()
must(driver, "cuInit", 0)
must(runtime, "cudaSetDevice", 0)
must(runtime, "cudaFree", None)
compute()
print("done", flush=True)
sys.stdin.read()

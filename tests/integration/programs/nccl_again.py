# SPDX-License-Identifier: Apache-2.0
"""Makes communicators of one rank, one after the other, until one lies where an earlier one was;
with each of them some all-reduces. Prints their addresses."""

import ctypes
import sys

COLLECTIVES = int(sys.argv[1])
MOST = 100
FLOAT32, SUM = 7, 0

nccl, cuda = ctypes.CDLL("libnccl.so.2"), ctypes.CDLL("libcudart.so.12")
values = ctypes.create_string_buffer(64)
seen = []
while len(seen) < MOST and len(seen) == len(set(seen)):
    comm = ctypes.c_void_p()
    assert nccl.ncclCommInitAll(ctypes.byref(comm), 1, None) == 0
    for _ in range(COLLECTIVES):
        result = nccl.ncclAllReduce(
            values, values, ctypes.c_size_t(16), FLOAT32, SUM, comm, None
        )
        assert result == 0
    assert cuda.cudaDeviceSynchronize() == 0
    seen.append(comm.value)
    assert nccl.ncclCommDestroy(comm) == 0
print(*seen)

# SPDX-License-Identifier: Apache-2.0
"""Keeps a GPU busy for a known part of the time: gpu_load.py DRIVER COUNT KERNEL_NS PAUSE_NS [NVML].

Each kernel reads the GPU's clock until its time is over; then the GPU pauses. Prints a line of JSON:
for how long the loop ran, the times from each launch until the thread knew that the kernel was done,
and the mean of the utilisation that NVML reported meanwhile, in percent."""

import ctypes
import json
import sys
import threading
import time

PTX = b"""\
.version 7.0
.target sm_75
.address_size 64
.visible .entry waffle_spin(.param .u64 ns)
{
	.reg .u64 %rd<5>;
	.reg .pred %p<2>;
	ld.param.u64 %rd1, [ns];
	mov.u64 %rd2, %globaltimer;
	add.u64 %rd3, %rd2, %rd1;
again:
	mov.u64 %rd4, %globaltimer;
	setp.lt.u64 %p1, %rd4, %rd3;
	@%p1 bra again;
	ret;
}
"""
NVML_PERIOD_S = 1  # NVML's values are of up to so much time before

driver = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
kernels, kernel_ns, pause_ns = map(int, sys.argv[2:5])


def must(library, name, *arguments):
    result = getattr(library, name)(*arguments)
    if result:
        sys.exit(f"{name}: error {result}")


class Utilisation(threading.Thread):
    """Asks NVML ten times a second."""

    class Rates(ctypes.Structure):
        _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]

    def __init__(self, name):
        super().__init__(daemon=True)
        self.library, self.device = ctypes.CDLL(name), ctypes.c_void_p()
        must(self.library, "nvmlInit_v2")
        must(self.library, "nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self.device))
        self.values, self.ended = [], threading.Event()

    def run(self):
        rates = self.Rates()
        if self.ended.wait(NVML_PERIOD_S):
            return
        while not self.ended.wait(0.1):
            must(self.library, "nvmlDeviceGetUtilizationRates", self.device, ctypes.byref(rates))
            self.values.append(rates.gpu)

    def mean(self):
        self.ended.set()
        self.join()
        return sum(self.values) / len(self.values)


def begin():
    device, context = ctypes.c_int(), ctypes.c_void_p()
    module, function, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    must(driver, "cuInit", 0)
    must(driver, "cuDeviceGet", ctypes.byref(device), 0)
    must(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    must(driver, "cuCtxSetCurrent", context)
    must(driver, "cuModuleLoadData", ctypes.byref(module), PTX)
    must(driver, "cuModuleGetFunction", ctypes.byref(function), module, b"waffle_spin")
    must(driver, "cuStreamCreate", ctypes.byref(stream), 0)
    return function, stream


def load(function, stream):
    """Returns how long each kernel took at most."""
    value, times = ctypes.c_uint64(kernel_ns), []
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(value))
    for _ in range(kernels):
        start = time.monotonic_ns()
        must(driver, "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)
        must(driver, "cuStreamSynchronize", stream)
        times.append(time.monotonic_ns() - start)
        time.sleep(pause_ns / 1e9)
    return times


made = begin()
nvml = Utilisation(sys.argv[5]) if len(sys.argv) > 5 else None
if nvml:
    nvml.start()
first = time.monotonic_ns()
found = load(*made)
print(json.dumps({"loop_ns": time.monotonic_ns() - first, "kernel_ns": found,
                  "nvml": nvml.mean() if nvml else None}))

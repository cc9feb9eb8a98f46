// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "analyze/gpu/replay_cuda_internal.h"
#include "util/library.h"

#define CU_STREAM_NON_BLOCKING 1

/* Enough kernels, long enough, that launching them is not what takes the time. */
#define CALIBRATION_KERNELS 100
#define CALIBRATION_NS 30000
#define CALIBRATION_RUNS 3

/*
 * The kernel, as text that the driver compiles for any GPU: it reads the GPU's clock of nanoseconds
 * until the time is over. The stand-in of CUDA knows it by its first parameter, and takes that
 * time.
 */
static const char spin_ptx[] = ".version 6.0\n"
			       ".target sm_50\n"
			       ".address_size 64\n"
			       ".visible .entry waffle_spin(.param .u64 ns)\n"
			       "{\n"
			       "	.reg .u64 %rd<5>;\n"
			       "	.reg .pred %p<2>;\n"
			       "	ld.param.u64 %rd1, [ns];\n"
			       "	mov.u64 %rd2, %globaltimer;\n"
			       "	add.u64 %rd3, %rd2, %rd1;\n"
			       "again:\n"
			       "	mov.u64 %rd4, %globaltimer;\n"
			       "	setp.lt.u64 %p1, %rd4, %rd3;\n"
			       "	@%p1 bra again;\n"
			       "	ret;\n"
			       "}\n";

#define ROW(member, symbol)                                                                        \
	{                                                                                          \
		symbol, offsetof(struct replay_cuda, member)                                       \
	}

static const struct library_function functions[] = {
	ROW(init, "cuInit"),
	ROW(device_get, "cuDeviceGet"),
	ROW(device_get_name, "cuDeviceGetName"),
	ROW(context_retain, "cuDevicePrimaryCtxRetain"),
	ROW(context_release, "cuDevicePrimaryCtxRelease_v2"),
	ROW(context_set, "cuCtxSetCurrent"),
	ROW(context_synchronize, "cuCtxSynchronize"),
	ROW(module_load, "cuModuleLoadData"),
	ROW(module_function, "cuModuleGetFunction"),
	ROW(stream_create, "cuStreamCreate"),
	ROW(stream_destroy, "cuStreamDestroy_v2"),
	ROW(stream_wait_event, "cuStreamWaitEvent"),
	ROW(event_create, "cuEventCreate"),
	ROW(event_destroy, "cuEventDestroy_v2"),
	ROW(event_record, "cuEventRecord"),
	ROW(event_synchronize, "cuEventSynchronize"),
	ROW(launch, "cuLaunchKernel"),
	ROW(error_name, "cuGetErrorName"),
};

uint64_t replay_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *replay_cuda_error(const struct replay_cuda *cuda, int error)
{
	const char *name = NULL;

	return cuda->error_name(error, &name) || !name ? "an unknown error" : name;
}

static int cuda_fail(const struct replay_cuda *cuda, int error, const char *what, struct error *err)
{
	return error_set(err, ENODEV, "--on-gpu: %s failed: %s", what,
			 replay_cuda_error(cuda, error));
}

int replay_cuda_enter(const struct replay_cuda *cuda)
{
	return cuda->context_set(cuda->context);
}

int replay_cuda_spin(const struct replay_cuda *cuda, void *stream, uint64_t ns)
{
	void *params[] = {&ns};

	return cuda->launch(cuda->spin, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* The time of some kernels on a stream, one after the other. */
static int calibration_run(const struct replay_cuda *cuda, void *stream, uint64_t *ns)
{
	uint64_t start_ns = replay_now_ns();
	int result = 0;

	for (unsigned i = 0; i < CALIBRATION_KERNELS && !result; i++)
		result = replay_cuda_spin(cuda, stream, CALIBRATION_NS);
	if (!result)
		result = cuda->context_synchronize();
	*ns = (replay_now_ns() - start_ns) / CALIBRATION_KERNELS;
	return result;
}

/* The shortest run counts, since others were delayed. */
static int overhead_measure(struct replay_cuda *cuda)
{
	void *stream;
	uint64_t ns, least = UINT64_MAX;
	int result = cuda->stream_create(&stream, CU_STREAM_NON_BLOCKING);

	if (result)
		return result;
	for (unsigned i = 0; i < CALIBRATION_RUNS && !result; i++) {
		result = calibration_run(cuda, stream, &ns);
		least = ns < least ? ns : least;
	}
	cuda->overhead_ns = least > CALIBRATION_NS ? least - CALIBRATION_NS : 0;
	cuda->stream_destroy(stream);
	return result;
}

static int gpu_open(struct replay_cuda *cuda, struct error *err)
{
	void *module;
	int result = cuda->init(0);

	if (result)
		return cuda_fail(cuda, result, "cuInit", err);
	result = cuda->device_get(&cuda->device, 0);
	if (result)
		return cuda_fail(cuda, result, "cuDeviceGet", err);
	cuda->device_get_name(cuda->name, sizeof(cuda->name) - 1, cuda->device);
	result = cuda->context_retain(&cuda->context, cuda->device);
	if (result)
		return cuda_fail(cuda, result, "cuDevicePrimaryCtxRetain", err);
	cuda->retained = true;
	result = replay_cuda_enter(cuda) ?: cuda->module_load(&module, spin_ptx);
	if (result)
		return cuda_fail(cuda, result, "cuModuleLoadData", err);
	result = cuda->module_function(&cuda->spin, module, "waffle_spin");
	if (result)
		return cuda_fail(cuda, result, "cuModuleGetFunction", err);
	result = overhead_measure(cuda);
	return result ? cuda_fail(cuda, result, "a kernel", err) : 0;
}

int replay_cuda_open(struct replay_cuda *cuda, struct error *err)
{
	const char *missing;

	*cuda = (struct replay_cuda){0};
	cuda->library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda->library)
		return error_set(err, ENODEV,
				 "--on-gpu: there is no CUDA driver (libcuda.so.1); without a GPU, "
				 "leave --on-gpu out");
	missing = library_find(cuda->library, functions, sizeof(functions) / sizeof(functions[0]),
			       cuda);
	if (missing)
		return error_set(err, ENODEV, "--on-gpu: libcuda.so.1 has no %s", missing);
	cuda->simulated = dlsym(cuda->library, "waffle_simulation") != NULL;
	return gpu_open(cuda, err);
}

/* The module goes with the context, and the library stays, since the driver has threads. */
void replay_cuda_close(struct replay_cuda *cuda)
{
	if (cuda->retained)
		cuda->context_release(cuda->device);
	cuda->retained = false;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The stand-in for libcudart: registration, launches, devices, errors. As the real one it has no
 * implementation of its own: it loads the driver at its first use, and calls the driver's exports.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

SIM_NOTE;

#ifndef SIM_RUNTIME_VERSION
#define SIM_RUNTIME_VERSION 12090
#endif

static struct driver drivers[2];
static CUresult driver_error;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static __thread cudaError_t last_error;
static __thread int device;

extern const struct waffle_simulation waffle_simulation;
SIM_API const struct waffle_simulation waffle_simulation = {
	.text = "simulated CUDA runtime of waffle: no GPU is used",
};

typedef __typeof__(cuGetProcAddress_v2) *address_get;

static bool function_get(address_get get, const char *name, bool per_thread, void *at)
{
	uint64_t flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0;

	return get(name, at, SIM_RUNTIME_VERSION, flags, NULL) == CUDA_SUCCESS;
}

static void driver_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	address_get get = library ? (address_get)dlsym(library, "cuGetProcAddress_v2") : NULL;

	struct waffle_simulation *simulation = library ? dlsym(library, "waffle_simulation") : NULL;

	driver_error = (CUresult)35; /* the driver is missing or too old */
	if (!get)
		return;
	if (simulation) {
		sim_observer_at = &simulation->observer;
		sim_domain = SIM_RUNTIME;
	}
	for (int i = 0; i < 2; i++) {
#define DRIVER_LOOKUP(name)                                                                        \
	if (!function_get(get, #name, i == 1, &drivers[i].name))                                   \
		return;
		DRIVER_FUNCTIONS(DRIVER_LOOKUP)
#undef DRIVER_LOOKUP
	}
	driver_error = drivers[0].cuInit(0);
}

cudaError_t runtime_result(CUresult result)
{
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		last_error = (cudaError_t)result;
	return (cudaError_t)result;
}

const struct driver *driver_get(bool per_thread)
{
	pthread_once(&driver_once, driver_open);
	if (driver_error == CUDA_SUCCESS)
		return &drivers[per_thread];
	runtime_result(driver_error);
	return NULL;
}

/*
 * Kernels, which the program's constructors register by the address of the host function. A kernel
 * is loaded into the driver at its first launch.
 */
struct fatbin {
	const void *code;
	CUlibrary library;
};

struct kernel {
	const void *host;
	const char *name;
	struct fatbin *fatbin;
	CUkernel handle;
};

static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels;
static size_t kernel_count, kernel_room;

SIM_API void **__cudaRegisterFatBinary(void *fatCubin)
{
	struct fatbin *fatbin = calloc(1, sizeof(*fatbin));

	if (fatbin)
		fatbin->code = fatCubin;
	return (void **)fatbin;
}

SIM_API void __cudaRegisterFatBinaryEnd(void **fatCubinHandle)
{
	(void)fatCubinHandle;
}

SIM_API void __cudaUnregisterFatBinary(void **fatCubinHandle)
{
	(void)fatCubinHandle; /* the process exits */
}

SIM_API void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
				    const char *deviceName, int thread_limit, uint3 *tid,
				    uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize)
{
	(void)deviceFun, (void)thread_limit, (void)tid, (void)bid, (void)bDim, (void)gDim;
	(void)wSize;
	pthread_mutex_lock(&kernels_lock);
	if (kernel_count == kernel_room) {
		size_t room = kernel_room ? 2 * kernel_room : 16;
		struct kernel *more = realloc(kernels, room * sizeof(*more));

		if (!more)
			abort();
		kernels = more;
		kernel_room = room;
	}
	kernels[kernel_count++] =
		(struct kernel){hostFun, strdup(deviceName), (struct fatbin *)fatCubinHandle, NULL};
	pthread_mutex_unlock(&kernels_lock);
}

static CUkernel kernel_load(const struct driver *driver, struct kernel *kernel)
{
	struct fatbin *fatbin = kernel->fatbin;

	if (!fatbin->library && driver->cuLibraryLoadData(&fatbin->library, fatbin->code, NULL,
							  NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS)
		return NULL;
	if (driver->cuLibraryGetKernel(&kernel->handle, fatbin->library, kernel->name) !=
	    CUDA_SUCCESS)
		return NULL;
	return kernel->handle;
}

/* `func` is a host function, or a handle from __cudaGetKernel(). */
static CUkernel kernel_find(const struct driver *driver, const void *func)
{
	CUkernel handle = NULL;

	pthread_mutex_lock(&kernels_lock);
	for (size_t i = 0; i < kernel_count && !handle; i++) {
		if (kernels[i].handle && (const void *)kernels[i].handle == func)
			handle = kernels[i].handle;
		else if (kernels[i].host == func)
			handle = kernels[i].handle ? kernels[i].handle
						   : kernel_load(driver, &kernels[i]);
	}
	pthread_mutex_unlock(&kernels_lock);
	return handle;
}

SIM_API cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *func)
{
	const struct driver *driver = driver_get(false);

	SIM_CALL(cudaError_t);
	*handle = driver ? (cudaKernel_t)kernel_find(driver, func) : NULL;
	return *handle ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

static CUresult kernel_launch(const struct driver *driver, const void *func, dim3 grid, dim3 block,
			      void **args, size_t shared, cudaStream_t stream)
{
	CUkernel kernel = kernel_find(driver, func);

	if (!kernel)
		return (CUresult)cudaErrorInvalidDeviceFunction;
	return driver->cuLaunchKernel((CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y,
				      block.z, (unsigned int)shared, stream, args, NULL);
}

#define LAUNCH_PARAMS                                                                              \
	(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,             \
	 cudaStream_t stream)
DEFINE_TWO(cudaLaunchKernel, _ptsz, LAUNCH_PARAMS,
	   kernel_launch(driver, func, gridDim, blockDim, args, sharedMem, stream))

static CUresult kernel_launch_together(const struct driver *driver, const void *func, dim3 grid,
				       dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	CUkernel kernel = kernel_find(driver, func);

	if (!kernel)
		return (CUresult)cudaErrorInvalidDeviceFunction;
	return driver->cuLaunchCooperativeKernel((CUfunction)kernel, grid.x, grid.y, grid.z,
						 block.x, block.y, block.z, (unsigned int)shared,
						 stream, args);
}
DEFINE_TWO(cudaLaunchCooperativeKernel, _ptsz, LAUNCH_PARAMS,
	   kernel_launch_together(driver, func, gridDim, blockDim, args, sharedMem, stream))

static CUresult kernel_launch_config(const struct driver *driver, const cudaLaunchConfig_t *config,
				     const void *func, void **args)
{
	CUkernel kernel = kernel_find(driver, func);
	CUlaunchConfig to = {
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned int)config->dynamicSmemBytes,
		.hStream = config->stream,
	};

	if (!kernel)
		return (CUresult)cudaErrorInvalidDeviceFunction;
	return driver->cuLaunchKernelEx(&to, (CUfunction)kernel, args, NULL);
}
DEFINE_TWO(cudaLaunchKernelExC, _ptsz,
	   (const cudaLaunchConfig_t *config, const void *func, void **args),
	   kernel_launch_config(driver, config, func, args))

/* Called by the stubs of CUDA 13. The real one also is a jump to cudaLaunchKernel. */
SIM_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim,
				       void **args, size_t sharedMem, cudaStream_t stream)
{
	return cudaLaunchKernel((const void *)kernel, gridDim, blockDim, args, sharedMem, stream);
}

SIM_API cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim,
					    void **args, size_t sharedMem, cudaStream_t stream)
{
	return cudaLaunchKernel_ptsz((const void *)kernel, gridDim, blockDim, args, sharedMem,
				     stream);
}

/* Holds the values between <<< and >>> for the stub. */
static __thread struct {
	dim3 grid, block;
	size_t shared;
	void *stream;
} pushed;

SIM_API unsigned int __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
						 struct CUstream_st *stream)
{
	pushed.grid = gridDim;
	pushed.block = blockDim;
	pushed.shared = sharedMem;
	pushed.stream = stream;
	return 0;
}

SIM_API cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
					       void *stream)
{
	*gridDim = pushed.grid;
	*blockDim = pushed.block;
	*sharedMem = pushed.shared;
	*(void **)stream = pushed.stream;
	return cudaSuccess;
}

DEFINE_TWO(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t fn, void *userData),
	   driver->cuLaunchHostFunc(stream, fn, userData))
DEFINE_TWO(cudaStreamAddCallback, _ptsz,
	   (cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned int flags),
	   driver->cuStreamAddCallback(stream, (CUstreamCallback)callback, userData, flags))
DEFINE_ONE(cudaGetDeviceCount, (int *count), driver->cuDeviceGetCount(count))
DEFINE_ONE(cudaDeviceSynchronize, (void), driver->cuCtxSynchronize())

SIM_API cudaError_t cudaGetDevice(int *at)
{
	SIM_CALL(cudaError_t);
	*at = device;
	return cudaSuccess;
}

SIM_API cudaError_t cudaSetDevice(int to)
{
	const struct driver *driver = driver_get(false);
	int count = 0;

	SIM_CALL(cudaError_t);
	if (!driver || driver->cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return cudaPeekAtLastError();
	if (to < 0 || to >= count)
		return runtime_result((CUresult)cudaErrorInvalidDevice);
	device = to;
	return cudaSuccess;
}

SIM_API cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

SIM_API cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{0, "cudaSuccess", "no error"},
	{1, "cudaErrorInvalidValue", "invalid argument"},
	{2, "cudaErrorMemoryAllocation", "out of memory"},
	{3, "cudaErrorInitializationError", "initialization error"},
	{35, "cudaErrorInsufficientDriver",
	 "CUDA driver version is insufficient for CUDA runtime version"},
	{98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
	{100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
	{101, "cudaErrorInvalidDevice", "invalid device ordinal"},
	{400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
	{600, "cudaErrorNotReady", "device not ready"},
	{700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
};

SIM_API const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)error)
			return errors[i].name;
	}
	return "cudaErrorUnknown";
}

SIM_API const char *cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)error)
			return errors[i].text;
	}
	return "unrecognized error code";
}

DEFINE_ONE(cudaDriverGetVersion, (int *driverVersion), driver->cuDriverGetVersion(driverVersion))

SIM_API cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	SIM_CALL(cudaError_t);
	*runtimeVersion = SIM_RUNTIME_VERSION;
	return cudaSuccess;
}

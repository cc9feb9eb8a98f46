// SPDX-License-Identifier: Apache-2.0
/* The stand-in for libcuda.so.1: modules, launches, streams, events, graphs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

SIM_NOTE;

#define DRIVER_VERSION 12090 /* CUDA 12.9 */

static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *default_stream;
static __thread struct stream *thread_stream;
static bool initialised;

static struct stream *default_get(struct stream **at)
{
	pthread_mutex_lock(&default_lock);
	if (!*at)
		*at = stream_new(true);
	pthread_mutex_unlock(&default_lock);
	return *at;
}

struct stream *stream_of(CUstream handle, bool per_thread)
{
	if (handle == SIM_STREAM_PER_THREAD || (!handle && per_thread))
		return default_get(&thread_stream);
	if (!handle || handle == SIM_STREAM_LEGACY)
		return default_get(&default_stream);
	return handle->stream;
}

struct stream *legacy_stream(void)
{
	return __atomic_load_n(&default_stream, __ATOMIC_ACQUIRE);
}

CUresult op_submit(struct stream *stream, struct op *op, bool wait)
{
	uint32_t ticket;

	if (op->about.op && sim_observer())
		op->about.correlation = sim_observer()->correlation();
	if (stream && wait && stream_list(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!stream || !stream_order(stream, legacy_stream()) ||
	    !stream_submit(stream, op, &ticket))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (wait)
		stream_wait(stream, ticket);
	return CUDA_SUCCESS;
}

static void kernel_code(CUfunction function, sim_kernel_run run)
{
	function->run = run;
}

extern struct waffle_simulation waffle_simulation;
SIM_API struct waffle_simulation waffle_simulation = {
	.text = "simulated CUDA driver of waffle: no GPU is used",
	.kernel_code = kernel_code,
};

static __attribute__((constructor)) void observer_set(void)
{
	sim_observer_at = &waffle_simulation.observer;
	sim_domain = SIM_DRIVER;
}

/* The library of CUDA_INJECTION64_PATH, as the real driver loads it. */
static void injection_load(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialize)(void) = NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
}

SIM_API CUresult cuInit(unsigned int Flags)
{
	SIM_CALL(CUresult);
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	/* Once per process, as in the real driver. This gives a tracer the time to attach. */
	if (!__atomic_exchange_n(&initialised, true, __ATOMIC_SEQ_CST)) {
		sim_sleep_until(sim_now_ns() + sim_config()->init_ns);
		injection_load();
	}
	return sim_config()->devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

SIM_API CUresult cuDriverGetVersion(int *driverVersion)
{
	SIM_CALL(CUresult);
	*driverVersion = DRIVER_VERSION;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetCount(int *count)
{
	SIM_CALL(CUresult);
	*count = sim_config()->devices;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	SIM_CALL(CUresult);
	if (ordinal < 0 || ordinal >= sim_config()->devices)
		return (CUresult)101;
	*device = ordinal;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	SIM_CALL(CUresult);
	snprintf(name, (size_t)len, "simulated GPU %d (waffle)", dev);
	return CUDA_SUCCESS;
}

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{0, "CUDA_SUCCESS", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{600, "CUDA_ERROR_NOT_READY", "device not ready"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted in a capture"},
	{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would merge two captures"},
	{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was begun on another stream"},
	{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency on uncaptured work"},
	{907, "CUDA_ERROR_CAPTURED_EVENT", "event was recorded in a capture"},
	{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult error_find(CUresult error, const char **name, const char **text)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].code == (int)error) {
			*name = errors[i].name;
			*text = errors[i].text;
			return CUDA_SUCCESS;
		}
	}
	*name = *text = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	const char *text;

	return error_find(error, pStr, &text);
}

SIM_API CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	const char *name;

	return error_find(error, &name, pStr);
}

/* As in the real driver: a plain name yields the newest version, for the per-thread stream if
 * requested. */
SIM_API CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
				     cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
	static const char *const suffixes[] = {"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds", "_v2", ""};
	unsigned i = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? 0 : 4;
	void *self = dlopen(SIM_DRIVER_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	char name[128];

	(void)cudaVersion;
	*pfn = NULL;
	for (; self && !*pfn && i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", symbol, suffixes[i]);
		*pfn = dlsym(self, name);
	}
	if (self)
		dlclose(self);
	if (symbolStatus)
		*symbolStatus =
			*pfn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

void wait_observed(const char *name, uint32_t kind, const struct stream *stream, uint64_t start_ns)
{
	const struct sim_observer *observer = sim_observer();
	struct op_about about = {.op = SIM_WAIT, .name = name, .kind = kind};

	if (!observer)
		return;
	about.correlation = observer->correlation();
	observer->done(&about, stream ? stream_number(stream) : UINT32_MAX, start_ns, sim_now_ns());
}

SIM_API CUresult cuCtxSynchronize(void)
{
	uint64_t start = sim_now_ns();

	SIM_CALL(CUresult);
	streams_wait(false);
	wait_observed("", 4, NULL, start);
	return CUDA_SUCCESS;
}

/* There is one context, and every thread has it. */
SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	SIM_CALL(CUresult);
	(void)dev;
	*pctx = (CUcontext)&initialised;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	SIM_CALL(CUresult);
	(void)dev;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuCtxSetCurrent(CUcontext ctx)
{
	SIM_CALL(CUresult);
	(void)ctx;
	return CUDA_SUCCESS;
}

/* Modules and libraries only know whether their kernels have a duration. */
struct CUmod_st {
	bool timed;
};

/* A text in PTX, whose kernel has its duration as its first parameter. */
static bool is_timed_ptx(const char *image)
{
	return image && !strncmp(image, ".version", 8) && strstr(image, "(.param .u64 ns)");
}

static struct CUmod_st *module_new(const void *image)
{
	const struct sim_fatbin *fatbin = image;
	struct CUmod_st *module = calloc(1, sizeof(*module));

	if (module && fatbin && fatbin->magic == SIM_FATBIN_MAGIC && fatbin->image &&
	    !memcmp(fatbin->image->magic, SIM_IMAGE_MAGIC, sizeof(SIM_IMAGE_MAGIC)))
		module->timed = fatbin->image->timed;
	else if (module)
		module->timed = is_timed_ptx(image);
	return module;
}

static struct CUfunc_st *function_new(const struct CUmod_st *module, const char *name)
{
	struct CUfunc_st *function = calloc(1, sizeof(*function));

	if (function) {
		function->name = strdup(name);
		function->timed = module && module->timed;
	}
	return function;
}

SIM_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	SIM_CALL(CUresult);
	*module = module_new(image);
	return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuModuleUnload(CUmodule hmod)
{
	SIM_CALL(CUresult);
	free(hmod);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	SIM_CALL(CUresult);
	*hfunc = function_new(hmod, name);
	return *hfunc ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
				   void **jitOptionsValues, unsigned int numJitOptions,
				   CUlibraryOption *libraryOptions, void **libraryOptionValues,
				   unsigned int numLibraryOptions)
{
	SIM_CALL(CUresult);
	(void)jitOptions, (void)jitOptionsValues, (void)numJitOptions;
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	*library = (CUlibrary)module_new(code);
	return *library ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuLibraryUnload(CUlibrary library)
{
	SIM_CALL(CUresult);
	free(library);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	SIM_CALL(CUresult);
	*pKernel = (CUkernel)function_new((struct CUmod_st *)library, name);
	return *pKernel ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	SIM_CALL(CUresult);
	*pFunc = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

static uint64_t code_run(struct op *op, uint64_t start_ns)
{
	sim_kernel_run run = (sim_kernel_run)op->words[0];

	return run((void *)op->words[1], start_ns);
}

/* The CPU time of a launch, spent as in the real driver. */
static void launch_spend(uint64_t from_ns)
{
	uint64_t until = from_ns + sim_config()->launch_ns;

	while (sim_now_ns() < until)
		;
}

struct shape {
	uint32_t grid[3], block[3], shared;
};

static CUresult launch(CUfunction f, const struct shape *shape, CUstream handle, void **params,
		       bool per_thread)
{
	const struct sim_config *config = sim_config();
	struct stream *stream = stream_of(handle, per_thread);
	struct op op = {.duration_ns = config->kernel_ns, .about.op = SIM_KERNEL};
	uint64_t nth;

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (config->launch_ns)
		launch_spend(sim_now_ns());
	memcpy(op.about.grid, shape->grid, sizeof(shape->grid));
	memcpy(op.about.block, shape->block, sizeof(shape->block));
	op.about.shared = shape->shared;
	op.about.name = f->name;
	nth = __atomic_add_fetch(&f->launches, 1, __ATOMIC_RELAXED);
	if (f->timed && params && params[0])
		op.duration_ns = *(const uint64_t *)params[0];
	op.duration_ns =
		(uint64_t)((double)op.duration_ns * sim_slow_factor(&config->slow_kernel, nth));
	if (f->run) {
		op.run = code_run;
		op.words[0] = (uintptr_t)f->run;
		op.words[1] = *(const uintptr_t *)params[0];
		op.prompt = true;
	}
	return op_submit(stream, &op, false);
}

#define LAUNCH_PARAMS                                                                              \
	(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,        \
	 unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,                   \
	 unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)

#define LAUNCH_SHAPE                                                                               \
	{                                                                                          \
		{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes  \
	}

/* The parameters as CUPTI shows them. */
struct launch_params {
	CUfunction f;
	uint32_t sizes[7];
	CUstream hStream;
	void **kernelParams, **extra;
};

#define DEFINE_LAUNCH(name, per_thread)                                                            \
	CUresult name LAUNCH_PARAMS;                                                               \
	SIM_API CUresult name LAUNCH_PARAMS                                                        \
	{                                                                                          \
		const struct shape shape = LAUNCH_SHAPE;                                           \
		struct launch_params params = {f, {0}, hStream, kernelParams, extra};              \
                                                                                                   \
		SIM_CALL_WITH(CUresult, &params);                                                  \
		return launch(f, &shape, hStream, kernelParams, per_thread);                       \
	}
DEFINE_LAUNCH(cuLaunchKernel, false)
DEFINE_LAUNCH(cuLaunchKernel_ptsz, true)

static CUresult config_launch(const CUlaunchConfig *config, CUfunction f, void **params,
			      bool per_thread)
{
	const struct shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
				    {config->blockDimX, config->blockDimY, config->blockDimZ},
				    config->sharedMemBytes};

	return launch(f, &shape, config->hStream, params, per_thread);
}

#define DEFINE_CONFIG_LAUNCH(name, per_thread)                                                     \
	CUresult name(const CUlaunchConfig *config, CUfunction f, void **kernelParams,             \
		      void **extra);                                                               \
	SIM_API CUresult name(const CUlaunchConfig *config, CUfunction f, void **kernelParams,     \
			      void **extra)                                                        \
	{                                                                                          \
		const void *params[] = {config, f, kernelParams, extra};                           \
                                                                                                   \
		SIM_CALL_WITH(CUresult, params);                                                   \
		return config_launch(config, f, kernelParams, per_thread);                         \
	}
DEFINE_CONFIG_LAUNCH(cuLaunchKernelEx, false)
DEFINE_CONFIG_LAUNCH(cuLaunchKernelEx_ptsz, true)

static CUresult cuLaunchCooperativeKernel_on(CUfunction f, const struct shape *shape,
					     CUstream stream, void **params, bool per_thread)
{
	return launch(f, shape, stream, params, per_thread);
}
DEFINE_TWO(cuLaunchCooperativeKernel, _ptsz,
	   (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
	    unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
	    unsigned int sharedMemBytes, CUstream hStream, void **kernelParams),
	   SIM_SEEN(f, NULL, NULL, NULL, NULL, hStream), f, &(const struct shape)LAUNCH_SHAPE,
	   hStream, kernelParams)

static uint64_t host_run(struct op *op, uint64_t start_ns)
{
	(void)start_ns;
	((CUhostFn)op->words[0])((void *)op->words[1]);
	return sim_now_ns();
}

static CUresult cuLaunchHostFunc_on(CUstream stream, CUhostFn fn, void *data, bool per_thread)
{
	struct op op = {.run = host_run, .prompt = true, .about.op = SIM_HOST};

	op.words[0] = (uintptr_t)fn;
	op.words[1] = (uintptr_t)data;
	return op_submit(stream_of(stream, per_thread), &op, false);
}
DEFINE_TWO(cuLaunchHostFunc, _ptsz, (CUstream hStream, CUhostFn fn, void *userData),
	   SIM_SEEN(hStream), hStream, fn, userData)

static uint64_t callback_run(struct op *op, uint64_t start_ns)
{
	(void)start_ns;
	((CUstreamCallback)op->words[0])((CUstream)op->words[2], CUDA_SUCCESS,
					 (void *)op->words[1]);
	return sim_now_ns();
}

static CUresult cuStreamAddCallback_on(CUstream stream, CUstreamCallback fn, void *data,
				       unsigned int flags, bool per_thread)
{
	struct op op = {.run = callback_run, .prompt = true};

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	op.words[0] = (uintptr_t)fn;
	op.words[1] = (uintptr_t)data;
	op.words[2] = (uintptr_t)stream;
	return op_submit(stream_of(stream, per_thread), &op, false);
}
DEFINE_TWO(cuStreamAddCallback, _ptsz,
	   (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
	   SIM_SEEN(hStream), hStream, callback, userData, flags)

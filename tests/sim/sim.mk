# SPDX-License-Identifier: Apache-2.0
# The stand-ins of CUDA and NCCL, and the programs that use them, built into $(BUILD)/sim
# (docs/simulation.md).

SIM := $(BUILD)/sim
SIM_LIBS := $(SIM)/libcuda.so.1 $(SIM)/libcudart.so.12 $(SIM)/libcudart.so.13 $(SIM)/libnccl.so.2
# CUPTI without and with the functions of CUDA 13.3, by which tools share it.
SIM_CUPTI := $(SIM)/libcupti.so.12 $(SIM)/libcupti.so.13 $(SIM)/cupti-13.5/libcupti.so.13
SIM_PROGRAMS := $(patsubst tests/sim/programs/%.c,$(SIM)/%,$(wildcard tests/sim/programs/*.c))
SIM_HEADERS := $(wildcard tests/sim/*.h)
# Functions begin with `push %rbp`, as the real ones mostly do, and calls inside a library don't go
# through its own jump table.
SIM_CFLAGS := -D_GNU_SOURCE -std=gnu17 $(WARN) -O2 -g -fPIC -fvisibility=hidden -fno-omit-frame-pointer \
	$(if $(filter x86_64,$(ARCH)),-fcf-protection=none) -fno-shrink-wrap -Itests/sim $(SIM_INCLUDES)
SIM_LINK := -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,-rpath,'$$ORIGIN' -ldl -lpthread -lrt

$(SIM)/libcuda.so.1: $(addprefix tests/sim/,driver.c driver_memory.c driver_stream.c stream.c simulation.c) $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $(filter %.c,$^) $(SIM_LINK) -Wl,-soname,$(@F)

$(SIM)/libcudart.so.%: tests/sim/runtime.c tests/sim/runtime_memory.c tests/sim/simulation.c tests/sim/libcudart.%.map $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -DSIM_RUNTIME_VERSION=$(if $(filter 12,$*),12090,13000) -o $@ $(filter %.c,$^) \
		$(SIM_LINK) -Wl,-soname,$(@F) -Wl,--version-script,$(filter %.map,$^)

$(SIM)/libnccl.so.2: tests/sim/nccl.c tests/sim/nccl_work.c tests/sim/nccl_comm.c tests/sim/simulation.c $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $(filter %.c,$^) $(SIM_LINK) -Wl,-soname,$(@F)

# The same with code from which the layout of a communicator can't be derived, for tests.
$(SIM)/opaque/libnccl.so.2: tests/sim/nccl.c tests/sim/nccl_work.c tests/sim/nccl_comm.c tests/sim/simulation.c $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -DSIM_NCCL_OPAQUE -o $@ $(filter %.c,$^) $(SIM_LINK) -Wl,-soname,$(@F)

# HIP, RCCL and roctx. The numbers are those of ROCm 6 and 7; both are the same code.
SIM_ROCM := $(addprefix $(SIM)/,libamdhip64.so.6 libamdhip64.so.7 librccl.so.1 libroctx64.so.4 librocprofiler-sdk-roctx.so.1)
$(SIM)/libamdhip64.so.%: $(addprefix tests/sim/,driver.c driver_memory.c driver_stream.c stream.c simulation.c) \
		tests/sim/hip/hip.c tests/sim/hip/sim_hip.h tests/sim/hip/libamdhip64.map $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -Itests/sim/hip -DSIM_DRIVER_LIBRARY='"$(@F)"' -o $@ $(filter %.c,$^) \
		$(SIM_LINK) -Wl,-soname,$(@F) -Wl,--version-script,$(filter %.map,$^)
$(SIM)/librccl.so.1: tests/sim/nccl.c tests/sim/nccl_work.c tests/sim/nccl_comm.c tests/sim/simulation.c $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -DSIM_RCCL -DSIM_DRIVER_LIBRARY='"libamdhip64.so.7"' -o $@ $(filter %.c,$^) \
		$(SIM_LINK) -Wl,-soname,$(@F)
$(SIM)/libroctx64.so.4 $(SIM)/librocprofiler-sdk-roctx.so.1: tests/sim/hip/roctx.c
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $< $(SIM_LINK) -Wl,-soname,$(@F)
$(SIM)/hip-calls: tests/sim/hip/hip_calls.c $(SIM_ROCM) tests/sim/hip/sim_hip.h tests/sim/programs/log.h tests/sim/programs/session.h $(SIM_HEADERS)
	$(CC) -D_GNU_SOURCE -std=gnu17 $(WARN) -O2 -g -fno-omit-frame-pointer -I. -Itests/sim -Itests/sim/hip -o $@ $< \
		-L$(SIM) -l:libamdhip64.so.7 -l:librccl.so.1 -l:libroctx64.so.4 -Wl,-rpath,'$$ORIGIN' -lpthread

$(SIM_CUPTI): $(wildcard tests/sim/cupti/*.[ch]) tests/sim/simulation.c $(SIM_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(if $(findstring 13.5,$@),-DSIM_CUPTI_SHARED) -o $@ $(filter %.c,$^) $(SIM_LINK) -Wl,-soname,$(@F)

# Programs, as an application would be built against the real ones.
$(SIM)/%: tests/sim/programs/%.c $(SIM_LIBS) $(SIM_HEADERS) bench/window.h $(wildcard tests/sim/programs/*.h include/*.h include/waffle/*.h)
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=gnu17 $(WARN) -O2 -g -fno-omit-frame-pointer -I. -Itests/sim -Iinclude -o $@ $< \
		-L$(SIM) -l:libcudart.so.12 -l:libnccl.so.2 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -lpthread

# The same program with the runtime of CUDA 13, and with the runtime linked into it, as nvcc does.
$(SIM)/calls-13: tests/sim/programs/calls.c $(SIM)/calls
	$(CC) -D_GNU_SOURCE -std=gnu17 $(WARN) -O2 -g -fno-omit-frame-pointer -I. -Itests/sim -Iinclude -o $@ $< \
		-L$(SIM) -l:libcudart.so.13 -l:libnccl.so.2 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -lpthread
$(SIM)/calls-static: tests/sim/programs/calls.c tests/sim/runtime.c tests/sim/runtime_memory.c tests/sim/simulation.c $(SIM)/calls
	$(CC) $(SIM_CFLAGS) -DSIM_RUNTIME_VERSION=12090 -I. -Iinclude -o $@ $(filter %.c,$^) \
		-L$(SIM) -l:libnccl.so.2 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -ldl -lpthread

# With NCCL linked into it.
$(SIM)/calls-nccl: tests/sim/programs/calls.c tests/sim/nccl.c tests/sim/nccl_work.c tests/sim/nccl_comm.c tests/sim/simulation.c $(SIM)/calls
	$(CC) $(SIM_CFLAGS) -I. -Iinclude -o $@ $(filter %.c,$^) \
		-L$(SIM) -l:libcudart.so.12 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -ldl -lpthread -lrt

SIM_VARIANTS := $(SIM)/calls-13 $(SIM)/calls-static $(SIM)/calls-nccl

sim: $(SIM_LIBS) $(SIM)/opaque/libnccl.so.2 $(SIM_CUPTI) $(SIM_PROGRAMS) $(SIM_VARIANTS) $(SIM_ROCM) $(SIM)/hip-calls

.PHONY: sim

# SPDX-License-Identifier: Apache-2.0
# Programs of the benchmarks, built into $(BUILD)/bench.

BENCH_PROGRAMS := $(BUILD)/bench/emit $(BUILD)/bench/pingpong $(BUILD)/bench/turns $(BUILD)/bench/touch $(BUILD)/bench/compute $(BUILD)/bench/load \
	$(BUILD)/bench/inside $(BUILD)/bench/baseline $(BUILD)/bench/store_bench $(BUILD)/bench/plain_bench $(BUILD)/bench/origin_bench $(BUILD)/bench/gpu_bench $(BUILD)/bench/replay_bench \
	$(BUILD)/bench/rate $(BUILD)/bench/threads $(BUILD)/bench/drain $(BUILD)/bench/sink $(BUILD)/bench/cupti_plain.so \
	$(if $(wildcard /usr/include/opentelemetry/sdk/trace/tracer_provider_factory.h),$(BUILD)/bench/cpp_sites) \
	$(if $(filter x86_64,$(ARCH)),$(BUILD)/bench/heads_bench) \
	$(if $(filter x86_64,$(ARCH)),$(if $(shell pkg-config --exists lttng-ust && echo yes),$(BUILD)/bench/lttng))

$(BUILD)/bench/emit $(BUILD)/bench/pingpong $(BUILD)/bench/turns $(BUILD)/bench/touch $(BUILD)/bench/compute $(BUILD)/bench/load: $(BUILD)/bench/%: bench/%.c bench/window.h $(wildcard include/*.h include/waffle/*.h)
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARN) -Iinclude -Ibench -o $@ $< -lpthread

# Linked with libwaffle, as a program would be by its waffle.pc.
$(BUILD)/bench/inside $(BUILD)/bench/rate $(BUILD)/bench/threads: $(BUILD)/bench/%: bench/%.c bench/window.h $(BUILD)/libwaffle.so $(wildcard include/*.h include/waffle/*.h)
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARN) -Iinclude -Ibench -o $@ $< \
		-L$(BUILD) -Wl,--no-as-needed -lwaffle -Wl,-rpath,'$$ORIGIN/..' -lpthread

# With those parts of libwaffle that take records out of rings.
$(BUILD)/bench/drain: bench/drain.c bench/window.h $(patsubst %,$(BUILD)/obj/usdt/%.o,ring/ring ring/ring_write ring/rings ring/shared_memory record/gather ring/ticks) $(BUILD)/libwaffle-bpf.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ibench $(CFLAGS_ALL) -o $@ $(filter %.c %.o %.a,$^) $(LIBS)

# Spans in C++ beside those of OpenTelemetry's SDK, where it is installed.
$(BUILD)/bench/cpp_sites: bench/cpp_sites.cpp $(BUILD)/libwaffle.so $(wildcard include/*.h include/*.hpp include/waffle/*)
	@mkdir -p $(@D)
	$(CXX) -std=gnu++17 -O2 -g -Wall -Wextra -Iinclude -o $@ $< -lopentelemetry_trace -lopentelemetry_resources \
		-lopentelemetry_common -L$(BUILD) -Wl,--no-as-needed -lwaffle -Wl,-rpath,'$$ORIGIN/..' -lpthread

# A tool that only switches CUPTI on.
$(BUILD)/bench/cupti_plain.so: bench/cupti_plain.c
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARN) -fPIC -shared -o $@ $< -ldl -lpthread

# A server that only answers.
$(BUILD)/bench/sink: bench/sink.c
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=gnu11 -O2 -g $(WARN) -o $@ $<

# The event of another tracer, where it is installed.
$(BUILD)/bench/lttng: bench/lttng.c bench/lttng_event.h bench/window.h
	@mkdir -p $(@D)
	$(CC) -D_GNU_SOURCE -std=gnu11 -O2 -g -Ibench -o $@ $< -llttng-ust -ldl

$(BUILD)/gen/empty.skel.h: bench/empty.bpf.c vmlinux/vmlinux.h
	@mkdir -p $(@D) $(BUILD)/bpf
	$(CLANG) -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Ivmlinux -c -o $(BUILD)/bpf/empty.bpf.o $<
	$(BPFTOOL) gen skeleton $(BUILD)/bpf/empty.bpf.o name empty_bpf > $@

$(BUILD)/bench/baseline: bench/baseline.c $(BUILD)/gen/empty.skel.h $(BUILD)/libwaffle-bpf.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -o $@ $< $(BUILD)/libwaffle-bpf.a $(LIBS)

$(BUILD)/bench/%_bench: bench/%_bench.c bench/window.h $(BUILD)/libwaffle-bpf.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ibench $(CFLAGS_ALL) -o $@ $< $(BUILD)/libwaffle-bpf.a $(LIBS)

bench-programs: $(BENCH_PROGRAMS)

# Half a minute: shows that every benchmark runs, not what it measures.
bench-quick: all python bench-programs
	@BUILD=$(BUILD) bench/run.py --quick

.PHONY: bench-programs bench-quick

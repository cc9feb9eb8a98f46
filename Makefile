# SPDX-License-Identifier: Apache-2.0
# waffle's one makefile: setup all demo check kernels hosts zoo gpu sites bench fuzz lint docs install clean
# `make setup` installs what a build needs, `make demo` and `make check` install what they need.
# make STATIC=1 links one static binary; SANITIZE=address,undefined builds with sanitizers, best
# with a BUILD of its own.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SECONDARY:

BUILD ?= build
# One name for one folder, however it was given: dependency files have it in them.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG ?= clang
BPFTOOL ?= bpftool
PROTOC_C ?= protoc-c
OBJCOPY ?= objcopy

ARCH := $(shell uname -m)
BPF_ARCH := $(if $(filter x86_64,$(ARCH)),x86,$(if $(filter aarch64,$(ARCH)),arm64,$(ARCH)))
VERSION := 0.1.0

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
# Code with sanitizers is compiled twice as fast with -O1, and its reports are easier to read.
CFLAGS ?= $(if $(SANITIZE),-O1,-O3) -g
PREFIX ?= /usr/local
DESTDIR ?=
CPPFLAGS_ALL := -D_GNU_SOURCE -DWAFFLE_VERSION='"$(VERSION)"' -I. -Iuserspace -Iinclude -I$(BUILD)/gen
SANITIZE_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# As in distributions: what reads foreign files as root ends at an overrun, instead of obeying it.
# FORTIFY needs optimisation, and hides from the sanitizers what they look for.
HARDEN_ARCH := $(if $(filter x86_64,$(ARCH)),-fcf-protection=full,$(if $(filter aarch64,$(ARCH)),-mbranch-protection=standard))
HARDEN := -fstack-protector-strong -fstack-clash-protection $(HARDEN_ARCH) \
	$(if $(SANITIZE)$(filter -O0,$(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
HARDEN_LINK := -Wl,-z,relro,-z,now,-z,noexecstack $(if $(STATIC),-static-pie,-pie)
# By default, gcc clears structures of more than 64 bytes by `rep stos`, which takes dozens of cycles
# to begin. The tuning for this processor has vector instructions of any x86-64 do that.
TUNE := $(if $(filter x86_64,$(ARCH)),-mtune=icelake-server)
CFLAGS_ALL := -std=gnu17 $(WARN) $(CFLAGS) -fPIE $(HARDEN) $(SANITIZE_FLAGS)
LIBS := -lbpf -lelf -ldw -lcapstone -lprotobuf-c -lzstd -lyajl -lseccomp -lz -lm -lpthread -lsupc++
# One archive may need another that stands before it, hence the group.
STATIC_SRC := $(wildcard userspace/static/*.c)
STATIC_LIBS := -Wl,--start-group $(LIBS:-lyajl=-lyajl_s) -llzma -lbz2 -Wl,--end-group
LINK_LIBS := $(if $(STATIC),$(STATIC_SRC:%.c=$(BUILD)/obj/%.o) $(STATIC_LIBS),$(LIBS))

# A build that lacks something ends before it begins, with one line.
INSTALLS := setup setup-check demo check clean
ifneq ($(filter-out $(INSTALLS),$(or $(MAKECMDGOALS),all)),)
MISSING := $(shell scripts/setup.sh missing)
ifneq ($(MISSING),)
$(error not installed: $(MISSING). `make setup` installs what a build needs)
endif
endif

FOLDERS := util target probe filter kernel store capture model symbolize analyze render export
LIB_SRC := $(foreach d,$(FOLDERS),$(wildcard userspace/$(d)/*.c userspace/$(d)/*/*.c userspace/$(d)/*/*/*.c)) usdt/name/name_chunk_read.c usdt/ring/ring.c usdt/ring/ticks.c
CMD_SRC := $(wildcard userspace/cmd/*.c)
PROTO := $(wildcard userspace/export/perfetto/*.proto)
PROTO_C := $(PROTO:userspace/export/perfetto/%.proto=$(BUILD)/gen/%.pb-c.c)
# task.bpf.c first: it defines what the others declare extern, and the linker wants it so.
BPF_SRC := bpf/task.bpf.c $(filter-out bpf/task.bpf.c,$(wildcard bpf/*.bpf.c))
SKEL := $(if $(BPF_SRC),$(BUILD)/gen/waffle.skel.h)

HTML := $(addprefix userspace/render/html/,style.css common.js report.html report.js gpu.html gpu.js)

LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/userspace/render/html/files.o $(PROTO_C:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o)
CMD_OBJ := $(CMD_SRC:%.c=$(BUILD)/obj/%.o)

all: $(BUILD)/waffle-bpf $(BUILD)/libwaffle.so $(BUILD)/libwaffle.a $(BUILD)/libwaffle-gpu.so $(BUILD)/waffle.pc sim

$(BUILD)/waffle-bpf: $(CMD_OBJ) $(BUILD)/libwaffle-bpf.a $(BUILD)/link $(if $(STATIC),$(STATIC_SRC:%.c=$(BUILD)/obj/%.o))
	$(CC) $(CFLAGS_ALL) $(HARDEN_LINK) $(LDFLAGS) -o $@ $(CMD_OBJ) $(BUILD)/libwaffle-bpf.a $(LINK_LIBS)

# How the binary was linked and compiled last, so that it is made anew after a change of STATIC or of
# flags.
$(BUILD)/link $(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(HOW_$(@F))' | cmp -s - $@ || echo '$(HOW_$(@F))' > $@
$(BUILD)/link: HOW_link = $(HARDEN_LINK) $(LINK_LIBS)
$(BUILD)/flags: HOW_flags = $(CC) $(CFLAGS_ALL) $(TUNE)

$(BUILD)/libwaffle-bpf.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(SKEL) $(PROTO_C)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(TUNE) -MMD -MP -c -o $@ $<

# libwaffle, for programs that record themselves. It has those parts of userspace/ that write files,
# evaluate filters and find sites, compiled anew as position-independent code. Only the symbols of
# usdt/libwaffle.map are visible, also in the archive, which is one object for that.
PIC_SRC := $(filter-out usdt/gpu/%,$(wildcard usdt/*/*.c)) $(addprefix userspace/, \
	util/error.c util/glob.c util/input.c util/json.c util/keymap.c util/library.c util/map.c util/memory.c util/output.c util/own_thread.c util/secret.c util/privileges.c \
	util/source.c util/strtab.c util/suggest.c util/terminal.c util/units.c util/utf8.c util/vec.c \
	target/worker/filecopy.c target/process/container_id.c target/process/output_name.c target/process/rank.c target/elf/elflimits.c target/elf/object.c target/elf/object_parse.c target/elf/site.c \
	$(addprefix filter/,eval.c expr.c fields.c filter.c lexer.c literal.c number_test.c parser.c predicate.c split.c \
		syntax_error.c $(addprefix stream/,children.c names.c process.c spans.c stream.c)) \
	$(addprefix store/,dictionary.c encode.c file_process.c format.c keep.c keep_rows.c lengths.c predict.c record.c record_schema.c this_host.c writer.c writer_chunks.c writer_tables.c) \
	render/json/value_json.c export/chrome_encode.c \
	$(addprefix export/perfetto/,encoder.c encoder_about.c encoder_event.c encoder_names.c encoder_packet.c track_pools.c)) \
	$(wildcard userspace/export/process/*.c)
PIC_ASM := $(wildcard usdt/*/*.S)
PIC_OBJ := $(PIC_SRC:%.c=$(BUILD)/pic/%.o) $(PIC_ASM:%.S=$(BUILD)/pic/%.o) $(PROTO_C:$(BUILD)/gen/%.c=$(BUILD)/pic/gen/%.o)
PIC_CFLAGS := $(filter-out -fPIE,$(CFLAGS_ALL)) -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -DWAFFLE_THREAD_EXTERN_
PIC_LIBS := -lelf -lzstd -lz -lprotobuf-c -lm -lpthread

$(BUILD)/pic/%.o: %.c $(BUILD)/flags | $(PROTO_C)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(PIC_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/%.o: %.S $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) -I. $(PIC_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/pic/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu17 $(filter -O% -g% -f% -D% -U%,$(PIC_CFLAGS)) -c -o $@ $<

$(BUILD)/libwaffle.so: $(PIC_OBJ) usdt/libwaffle.map
	$(CC) $(PIC_CFLAGS) -shared -Wl,-soname,libwaffle.so.0 -Wl,--version-script=usdt/libwaffle.map -Wl,--gc-sections \
		-Wl,-z,defs,-z,relro,-z,now,-z,noexecstack,-z,nodelete $(LDFLAGS) -o $@ $(PIC_OBJ) $(PIC_LIBS)
	@ln -sf libwaffle.so $@.0

# The functions that Debian's libelf.a misses are weak, so that a program may have them as well.
$(BUILD)/pic/userspace/static/eu_search.o: PIC_CFLAGS += -fvisibility=default
$(BUILD)/libwaffle.a: $(PIC_OBJ) $(BUILD)/pic/userspace/static/eu_search.o
	@rm -f $@
	$(CC) -r -nostdlib -o $(BUILD)/pic/libwaffle.o $^
	$(OBJCOPY) --localize-hidden --wildcard --weaken-symbol='eu_*' $(BUILD)/pic/libwaffle.o
	ar rcs $@ $(BUILD)/pic/libwaffle.o

# The wheel of the Python package (docs/python.md). Its libwaffle contains the libraries that it needs.
PYTHON ?= $(firstword $(wildcard $(BUILD)/venv/bin/python) python3)
PYTHON_SRC := $(wildcard python/*.* python/native/* python/waffle/*.py)
PYTHON_OBJ := $(addprefix $(BUILD)/pic/,python/native/elf_error.o userspace/static/eu_search.o)
PYTHON_LIBS := -Wl,--exclude-libs,ALL -Wl,-Bstatic $(filter-out -lm -lpthread,$(PIC_LIBS:-lyajl=-lyajl_s)) -Wl,-Bdynamic -lm -lpthread
$(BUILD)/python/libwaffle.so.0: $(PIC_OBJ) $(PYTHON_OBJ) usdt/libwaffle.map
	@mkdir -p $(@D)
	$(CC) $(PIC_CFLAGS) -shared -s -Wl,-soname,libwaffle.so.0 -Wl,--version-script=usdt/libwaffle.map -Wl,--gc-sections \
		-Wl,-z,defs,-z,relro,-z,now,-z,noexecstack,-z,nodelete $(LDFLAGS) -o $@ $(PIC_OBJ) \
		$(PYTHON_OBJ) $(PYTHON_LIBS)

# libwaffle-gpu, which collects what GPUs did (docs/gpu.md). It contains libwaffle, of which nothing is
# visible, so that a program may have its own. It is loaded into programs of any machine and container, so
# it contains the libraries that it needs, too, where the machine that builds it has their archives.
GPU_SRC := $(wildcard usdt/gpu/*.c)
# usdt/gpu/thread_own.c replaces usdt/record/thread_own.c, which needs more static thread-local storage.
GPU_OBJ := $(GPU_SRC:%.c=$(BUILD)/pic/%.o) $(BUILD)/pic/userspace/target/process/tracer_id.o $(filter-out $(BUILD)/pic/usdt/record/thread_own.o,$(PIC_OBJ))
GPU_ARCHIVES = $(foreach l,$(patsubst -l%,%,$(filter-out -lm -lpthread,$(PIC_LIBS))),$(filter /%,$(shell $(CC) -print-file-name=lib$(l).a)))
GPU_LIBS = $(if $(word $(words $(filter-out -lm -lpthread,$(PIC_LIBS))),$(GPU_ARCHIVES)),$(PYTHON_LIBS),$(PIC_LIBS))
$(BUILD)/libwaffle-gpu.so: $(GPU_OBJ) $(PYTHON_OBJ) usdt/libwaffle-gpu.map
	$(CC) $(PIC_CFLAGS) -shared -static-libgcc -Wl,-soname,$(@F) -Wl,--version-script=usdt/libwaffle-gpu.map -Wl,--gc-sections \
		-Wl,-z,defs,-z,relro,-z,now,-z,noexecstack,-z,nodelete $(LDFLAGS) -o $@ $(GPU_OBJ) $(PYTHON_OBJ) $(GPU_LIBS) -ldl

$(BUILD)/python/wheel: $(BUILD)/python/libwaffle.so.0 $(PYTHON_SRC) $(wildcard include/*.h include/waffle/*.h)
	@rm -rf $@ python/build
	WAFFLE_CFLAGS=-Werror WAFFLE_LIBRARY=$(CURDIR)/$< $(PYTHON) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w $@ ./python
	@touch $@

python: $(BUILD)/python/wheel

$(BUILD)/waffle.pc: usdt/waffle.pc.in Makefile
	@mkdir -p $(@D)
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' $< > $@

# The pages. Their Content-Security-Policy names the scripts and the style by their hashes.
csp_hash = sha256-$$(sha256sum < $(1) | head -c 64 | sed 's/../\\x&/g' | xargs -0 printf '%b' | base64)
$(BUILD)/obj/userspace/render/html/files.o: userspace/render/html/files.S $(HTML) $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(HARDEN_ARCH) -DSTYLE_HASH="\"$(call csp_hash,userspace/render/html/style.css)\"" \
		-DCOMMON_HASH="\"$(call csp_hash,userspace/render/html/common.js)\"" \
		-DREPORT_HASH="\"$(call csp_hash,userspace/render/html/report.js)\"" \
		-DGPU_HASH="\"$(call csp_hash,userspace/render/html/gpu.js)\"" -c -o $@ $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu17 $(CFLAGS) -fPIE $(HARDEN) -c -o $@ $<

$(BUILD)/gen/%.pb-c.c: userspace/export/perfetto/%.proto
	@mkdir -p $(@D)
	$(PROTOC_C) --proto_path=userspace/export/perfetto --c_out=$(BUILD)/gen $<

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) vmlinux/vmlinux.h include/waffle/abi.h
	@mkdir -p $(@D)
	$(CLANG) -g -O2 -Wall -Wextra -Wno-unused-parameter -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Ivmlinux -Iinclude -Ibpf -c -o $@ $<

$(BUILD)/gen/waffle.skel.h: $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
	@mkdir -p $(@D)
	$(BPFTOOL) gen object $(BUILD)/bpf/waffle.o $^
	{ echo '// NOLINTBEGIN'; $(BPFTOOL) gen skeleton $(BUILD)/bpf/waffle.o name waffle_bpf && echo '// NOLINTEND'; } > $@

# Its assembler takes them in.
$(BUILD)/obj/userspace/probe/spec/builtin_specs.o: $(wildcard probes/*.probes)

$(BUILD)/waffle-bpf.8: $(BUILD)/waffle-bpf
	$< help --man > $@

# Unit tests: one program a file of tests/unit, built twice, the second time with ASan and UBSan.
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
$(BUILD)/unit/test_options: $(BUILD)/obj/userspace/cmd/options.o $(BUILD)/obj/userspace/cmd/help.o

$(BUILD)/unit/test_timeline $(BUILD)/bin/fuzz_timeline: $(addprefix $(BUILD)/obj/usdt/sink/timeline,.o _window.o)
$(BUILD)/unit/test_attempt: $(BUILD)/obj/usdt/record/attempt.o
$(BUILD)/unit/test_ring $(BUILD)/unit/test_ring_reader $(BUILD)/bin/fuzz_ring: $(BUILD)/obj/usdt/ring/ring.o $(BUILD)/obj/usdt/ring/ring_write.o
$(BUILD)/unit/test_ring $(BUILD)/unit/test_ring_reader $(BUILD)/unit/test_ticks: $(BUILD)/obj/usdt/ring/ticks.o
$(BUILD)/unit/test_propagate $(BUILD)/bin/fuzz_propagate: \
	$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard usdt/propagate/*.c) usdt/say/say.c usdt/say/standard_error.c)
$(BUILD)/unit/test_named: $(addprefix $(BUILD)/obj/usdt/,$(addprefix name/,names.o name_chunk.o values.o) ring/shared_memory.o say/say.o say/standard_error.o)
$(BUILD)/unit/test_ring_reader $(BUILD)/unit/test_name_set: $(BUILD)/obj/usdt/ring/shared_memory.o
$(BUILD)/unit/test_name_set: $(BUILD)/obj/usdt/name/name_chunk.o
$(BUILD)/unit/test_nvtx: $(addprefix $(BUILD)/obj/usdt/gpu/nvtx_,text.o find.o reserve.o)
$(BUILD)/unit/test_clock_pairs: $(BUILD)/obj/usdt/record/clock_pairs.o
$(BUILD)/unit/test_known_spans: $(BUILD)/obj/usdt/record/known_spans.o
$(BUILD)/unit/test_gpu_activity $(BUILD)/bin/fuzz_gpu_activity: $(addprefix $(BUILD)/obj/usdt/gpu/,activity.o fields.o)
$(BUILD)/unit/test_gpu_buffers: $(BUILD)/obj/usdt/gpu/buffers.o
$(BUILD)/unit/test_gpu_control: $(addprefix $(BUILD)/obj/usdt/gpu/,control.o tracer_wait.o)
$(BUILD)/unit/test_per_thread: $(BUILD)/obj/usdt/gpu/per_thread.o
$(BUILD)/unit/test_code: $(addprefix $(BUILD)/obj/usdt/,frame/code.o ring/ticks.o)

# These have a symbolizer of their own (tests/unit/fake_names.h).
FAKE_NAMES := -Wl,--wrap=stack_names_variable,--wrap=stack_names_has_variable,--wrap=stack_names_is_go,--wrap=stack_names_has_jvm,--wrap=stack_names_functions,--wrap=stack_names_each
$(addprefix $(BUILD)/unit/test_,why why_wait why_go why_python why_hang why_waiters why_full_pool why_growth) $(BUILD)/bin/fuzz_analyze: \
	private CFLAGS_ALL += $(FAKE_NAMES)

# These have rings of a process that is not there (tests/unit/fake_rings.h).
FAKE_RINGS := -Wl,--wrap=ring_mount_open,--wrap=ring_memory_open,--wrap=ring_memory_read,--wrap=ring_memory_unmap,--wrap=process_has_tid,--wrap=process_tids_each,--wrap=process_has_other_time
$(BUILD)/unit/test_ring_set $(BUILD)/bin/fuzz_ring_set: private CFLAGS_ALL += $(FAKE_RINGS)
$(BUILD)/unit/test_arming_sites: private CFLAGS_ALL += -Wl,--wrap=address_spaces_scan,--wrap=store_writer_add_site
$(BUILD)/unit/test_thread_names: private CFLAGS_ALL += -Wl,--wrap=hit_image_open,--wrap=stacks_interpreter,--wrap=python_threads_begin,--wrap=python_threads_step,--wrap=python_threads_end,--wrap=image_is_there,--wrap=process_has_tid,--wrap=process_seen_tid
$(BUILD)/unit/test_limits: private CFLAGS_ALL += -Wl,--wrap=clock_gettime,--wrap=cgroup_path,--wrap=cgroup_memory_user,--wrap=cgroup_io_limits
$(BUILD)/unit/test_cpu_users: private CFLAGS_ALL += -Wl,--wrap=clock_gettime,--wrap=cgroup_path,--wrap=cgroup_processes_each,--wrap=process_cpu_time,--wrap=process_comm
$(BUILD)/unit/test_far_ends: private CFLAGS_ALL += -Wl,--wrap=tcp_sockets_each,--wrap=store_writer_next,--wrap=store_writer_has_room,--wrap=store_writer_add_object
$(BUILD)/unit/test_session_target: private CFLAGS_ALL += -Wl,--wrap=address_spaces_processes,--wrap=processes_is_privileged,--wrap=store_writer_add_process,--wrap=store_writer_add_attribute
$(BUILD)/unit/test_mmap_lock: private CFLAGS_ALL += -Wl,--wrap=iterator_open
$(BUILD)/unit/test_arming_refused: private CFLAGS_ALL += -Wl,--wrap=kernel_arm,--wrap=armed_release,--wrap=armed_refused,--wrap=armed_unsupported,--wrap=kernel_probes_widen
$(BUILD)/unit/test_requests $(BUILD)/unit/test_wait_counters: private CFLAGS_ALL += -Wl,--wrap=store_writer_add_site
$(BUILD)/unit/test_transport: private CFLAGS_ALL += -Wl,--wrap=ring_set_add,--wrap=name_set_add,--wrap=image_may_be_read,--wrap=process_is_confined

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libwaffle-bpf.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Itests/unit $(CFLAGS_ALL) -MMD -MP -o $@ $(filter %.c %.o,$^) $(BUILD)/libwaffle-bpf.a -lcmocka $(LIBS)

unit-programs: $(UNIT_BIN)

unit: unit-programs
	@for t in $(UNIT_BIN); do $$t || exit 1; done

asan:
	$(MAKE) BUILD=$(BUILD)/asan SANITIZE=address,undefined unit

# The same for aarch64, by a cross-compiler. That machine's libraries and headers are only unpacked;
# the compiler's own headers of the kernel may be too old.
ARM64_ROOT := $(CURDIR)/$(BUILD)/arm64/root
ARM64_GCC := aarch64-linux-gnu-gcc
arm64:
	@scripts/arm64.sh $(ARM64_ROOT)
	$(MAKE) BUILD=$(BUILD)/arm64 ARCH=aarch64 CFLAGS="-O1 -g" OBJCOPY=aarch64-linux-gnu-objcopy \
		CC="$(ARM64_GCC) --sysroot=$(ARM64_ROOT) -nostdinc -isystem $$($(ARM64_GCC) -print-file-name=include) \
		-isystem $(ARM64_ROOT)/usr/include/aarch64-linux-gnu -isystem $(ARM64_ROOT)/usr/include" \
		$(or $(ARM64_TARGETS),all examples unit-programs)

# Fuzzers: one program a file of tests/fuzz, with its inputs in tests/fuzz/corpus. The library is
# built anew, with clang and its coverage counters.
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/bin/%)
FUZZ_SECONDS ?= 600

$(BUILD)/bin/%: tests/fuzz/%.c $(BUILD)/libwaffle-bpf.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fsanitize=fuzzer -MMD -MP -o $@ $(filter %.c %.o,$^) $(filter %.a,$^) $(LIBS)

# A program that fuzz_call has in itself.
$(BUILD)/fuzz_subject: tests/fuzz/subject.cpp
	@mkdir -p $(@D)
	$(CC) -O2 -g -Wall -Wextra -Werror -fno-exceptions -nostdlib -e main -o $@ $<

$(BUILD)/bin/fuzz_call: $(BUILD)/fuzz_subject
$(BUILD)/bin/fuzz_call: private CPPFLAGS_ALL += -DSUBJECT='"$(BUILD)/fuzz_subject"'

fuzz-bin: $(FUZZ_BIN)

fuzz-programs:
	$(MAKE) BUILD=$(BUILD)/fuzz CC=$(CLANG) CFLAGS="-O1 -g -DPREDICT_THREADS_MAX=64" SANITIZE=address,undefined,fuzzer-no-link fuzz-bin

fuzz: fuzz-programs
	@for t in $(FUZZ_SRC:tests/fuzz/%.c=%); do BUILD=$(BUILD) scripts/fuzz.sh $$t $(FUZZ_SECONDS) || exit 1; done

# Examples are written as an application would be: C11, only include/ in the path.
# Those for MPI need its compiler (examples/mpi_*.c), and their tests build them.
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(filter-out examples/mpi_%,$(wildcard examples/*.c)))

$(BUILD)/examples/%: examples/%.c $(wildcard include/*.h include/waffle/*.h)
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -o $@ $< -lpthread

# Those that use libwaffle.
$(BUILD)/examples/simulator: examples/simulator.c $(wildcard include/*.h include/waffle/*.h) $(BUILD)/libwaffle.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -o $@ $< -L$(BUILD) -lwaffle -Wl,-rpath,'$$ORIGIN/..'

$(BUILD)/examples/propagate_%: examples/propagate_%.c $(wildcard include/*.h include/waffle/*.h) $(BUILD)/libwaffle.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -O2 -g -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -o $@ $< \
		-L$(BUILD) -lwaffle -Wl,-rpath,'$$ORIGIN/..'

examples: $(EXAMPLES)

# Lint. gcc's warnings come with every build; here clang's, clang-tidy's and clang-format's.
FORMAT_SRC := $(shell find bpf include usdt userspace tests bench examples python -name '*.[ch]' -o -name '*.cpp' 2>/dev/null)
TIDY_SRC := $(wildcard usdt/*/*.c) $(LIB_SRC) $(CMD_SRC) $(UNIT_SRC) $(STATIC_SRC)
TIDY_OK := $(TIDY_SRC:%.c=$(BUILD)/lint/%.ok)
# clang's analyzer gives up a function after so many steps; its own limit takes four times as long. Of
# faults put into waffle's code for a trial (lost free() and close(), lost initial values), it found
# the same ones with both.
ANALYZER := -Xclang -analyzer-config -Xclang max-nodes=40000
CLANG_FLAGS := $(subst -I$(BUILD)/gen,-isystem $(BUILD)/gen,$(CPPFLAGS_ALL)) -Itests/unit -std=gnu17 $(WARN)

$(BUILD)/lint/%.ok: %.c .clang-tidy | $(SKEL) $(PROTO_C)
	@mkdir -p $(@D)
	@$(CLANG) $(CLANG_FLAGS) -fsyntax-only -MMD -MP -MT $@ -MF $(@:.ok=.d) $<
	@clang-tidy --quiet --warnings-as-errors='*' $< -- $(CLANG_FLAGS) $(ANALYZER) 2> $(@:.ok=.log) || { cat $(@:.ok=.log) >&2; false; }
	@touch $@

lint-includes:
	@scripts/lint_includes.py $(FOLDERS) cmd

lint-format:
	@clang-format --dry-run -Werror $(FORMAT_SRC)

lint-code: $(TIDY_OK) all

lint-docs: $(BUILD)/waffle-bpf
	@$< help --markdown | diff -u docs/commands.md - || { echo "docs/commands.md is old: make docs" >&2; false; }

lint: lint-includes lint-format lint-code lint-docs

docs: $(BUILD)/waffle-bpf $(BUILD)/waffle-bpf.8 $(addprefix $(BUILD)/unit/,test_why_meaning test_why_causes test_record_schema test_chain_text)
	$< help --markdown > docs/commands.md
	$(BUILD)/unit/test_why_meaning print > docs/why-meanings.md
	$(BUILD)/unit/test_why_causes print > $(BUILD)/causes.md
	sed -i -e '/^| Cause |/r $(BUILD)/causes.md' -e '/^| Cause |/,/^$$/{/./d}' docs/why.md
	$(BUILD)/unit/test_record_schema print > docs/records.md
	$(BUILD)/unit/test_chain_text print > docs/processor-options.md

setup:
	@scripts/setup.sh build

setup-check:
	@scripts/setup.sh check

check:
	@scripts/check.sh

# Other kernels, in QEMU (docs/kernels.md); KERNELS="6.1 6.12" for some of them.
kernels: all unit-programs
	@tests/kernels/setup.sh
	@BUILD=$(BUILD) tests/kernels/run.py $(KERNELS)

# Two guests with clocks of their own run one MPI job, whose clocks waffle aligns (docs/kernels.md).
hosts: all
	@tests/kernels/setup.sh
	@BUILD=$(BUILD) tests/kernels/hosts.py

# Programs that are slow for a known reason, with five seeds each (docs/why.md); make check has one.
zoo: all
	WAFFLE_ZOO_SEEDS=$(or $(SEEDS),5) WAFFLE_BPF=$(BUILD)/waffle-bpf $(BUILD)/venv/bin/pytest -q -p no:cacheprovider \
		tests/integration/test_zoo.py

# An hour of all that a tracer could keep something of, or MINUTES; make check has some seconds of it.
soak: all
	WAFFLE_SOAK_SECONDS=$$(( $(or $(MINUTES),60) * 30 )) WAFFLE_BPF=$(BUILD)/waffle-bpf $(BUILD)/venv/bin/pytest -q -p no:cacheprovider \
		tests/integration/test_soak.py

# How well the processor's counter becomes CLOCK_MONOTONIC, for ten minutes.
soak-clock: $(BUILD)/unit/test_ticks
	CLOCK_SECONDS=$(or $(SECONDS),600) $<

# On a machine with a GPU: a CUDA program and an NCCL all-reduce, decoded against their own log;
# utilisation against NVML, kernels against CUPTI alone and nsys; and a schedule that the GPU runs again.
gpu: all
	@[ -e /dev/nvidiactl ] || [ -n "$$WAFFLE_GPU" ] || \
		echo "make gpu: no GPU here (no /dev/nvidiactl): only the simulation is tested" >&2
	WAFFLE_BPF=$(BUILD)/waffle-bpf $(BUILD)/venv/bin/pytest -q -rs -p no:cacheprovider \
		tests/integration/test_gpu.py tests/integration/test_replay.py

# Sites compiled in every way; a check tries a third of the ways.
sites: all
	WAFFLE_ALL_SITES=1 WAFFLE_BPF=$(BUILD)/waffle-bpf $(BUILD)/venv/bin/pytest -q -p no:cacheprovider \
		tests/integration/test_sites.py

demo: setup
	@echo "== Building"
	@$(MAKE) -s --no-print-directory -j$$(nproc) all examples
	@BUILD=$(BUILD) scripts/demo.sh

include tests/sim/sim.mk
include bench/programs.mk

bench: all python examples bench-programs
	@BUILD=$(BUILD) $(firstword $(wildcard bench/run.py bench/run.sh))

install: all $(BUILD)/waffle-bpf.8
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include/waffle
	install -d $(DESTDIR)$(PREFIX)/share/man/man8 $(DESTDIR)$(PREFIX)/share/doc/waffle $(DESTDIR)$(PREFIX)/share/waffle/probes
	install -m 755 $(BUILD)/waffle-bpf $(DESTDIR)$(PREFIX)/bin/
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 755 $(BUILD)/libwaffle.so $(DESTDIR)$(PREFIX)/lib/libwaffle.so.0
	ln -sf libwaffle.so.0 $(DESTDIR)$(PREFIX)/lib/libwaffle.so
	install -m 644 $(BUILD)/libwaffle.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(BUILD)/libwaffle-gpu.so $(DESTDIR)$(PREFIX)/lib/
	sed 's|^prefix=.*|prefix=$(PREFIX)|' $(BUILD)/waffle.pc > $(DESTDIR)$(PREFIX)/lib/pkgconfig/waffle.pc
	install -d $(DESTDIR)$(PREFIX)/libexec/waffle
	install -m 755 $(SIM_LIBS) $(SIM_PROGRAMS) $(DESTDIR)$(PREFIX)/libexec/waffle/
	install -m 644 $(wildcard include/*.h include/*.hpp) $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(wildcard include/waffle/*) $(DESTDIR)$(PREFIX)/include/waffle/
	install -m 644 $(BUILD)/waffle-bpf.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	install -m 644 $(wildcard probes/*.probes) $(DESTDIR)$(PREFIX)/share/waffle/probes/
	install -m 644 README.md SECURITY.md LICENSE $(wildcard LICENSES/* docs/*.md docs/*.json) $(DESTDIR)$(PREFIX)/share/doc/waffle/
	@[ -n "$(DESTDIR)" ] || DIRECTORY=$(PREFIX)/lib scripts/loader_cache.sh

clean:
	rm -rf $(BUILD)

-include $(LIB_OBJ:.o=.d) $(wildcard $(BUILD)/obj/usdt/*/*.d) $(PIC_OBJ:.o=.d) $(GPU_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(UNIT_BIN:=.d) $(FUZZ_BIN:=.d) $(TIDY_OK:.ok=.d)
FORCE:
.PHONY: all sites python soak-clock unit-programs unit asan arm64 fuzz-bin fuzz-programs fuzz examples lint lint-includes lint-format lint-code lint-docs \
	docs setup setup-check check kernels hosts zoo soak gpu demo bench install clean FORCE

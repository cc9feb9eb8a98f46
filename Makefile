# SPDX-License-Identifier: Apache-2.0
# waffle's one makefile: setup all check demo bench fuzz lint install clean

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SECONDARY:

BUILD ?= build
CC ?= gcc
CLANG ?= clang
BPFTOOL ?= bpftool
PROTOC_C ?= protoc-c

ARCH := $(shell uname -m)
BPF_ARCH := $(if $(filter x86_64,$(ARCH)),x86,$(if $(filter aarch64,$(ARCH)),arm64,$(ARCH)))
VERSION := 0.1.0

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
CFLAGS ?= -O2 -g
CPPFLAGS_ALL := -D_GNU_SOURCE -DWAFFLE_VERSION='"$(VERSION)"' -I. -Iuserspace -Iinclude -I$(BUILD)/gen
CFLAGS_ALL := -std=gnu17 $(WARN) $(CFLAGS)
LIBS := -lbpf -lelf -ldw -lprotobuf-c -lzstd -lyajl -lz -lm -lpthread

FOLDERS := util target probe capture store model analyze export
LIB_SRC := $(foreach d,$(FOLDERS),$(wildcard userspace/$(d)/*.c))
CMD_SRC := $(wildcard userspace/cmd/*.c)
PROTO := $(wildcard userspace/export/*.proto)
PROTO_C := $(PROTO:userspace/export/%.proto=$(BUILD)/gen/%.pb-c.c)
# task.bpf.c first: it defines what the others declare extern, and the linker wants it so.
BPF_SRC := bpf/task.bpf.c $(filter-out bpf/task.bpf.c,$(wildcard bpf/*.bpf.c))
SKEL := $(if $(BPF_SRC),$(BUILD)/gen/waffle.skel.h)

LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(PROTO_C:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o)
CMD_OBJ := $(CMD_SRC:%.c=$(BUILD)/obj/%.o)

all: $(BUILD)/waffle-bpf

$(BUILD)/waffle-bpf: $(CMD_OBJ) $(BUILD)/libwaffle-bpf.a
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libwaffle-bpf.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/obj/%.o: %.c | $(SKEL) $(PROTO_C)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu17 $(CFLAGS) -c -o $@ $<

$(BUILD)/gen/%.pb-c.c: userspace/export/%.proto
	@mkdir -p $(@D)
	$(PROTOC_C) --proto_path=userspace/export --c_out=$(BUILD)/gen $<

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) vmlinux/vmlinux.h include/waffle/abi.h
	@mkdir -p $(@D)
	$(CLANG) -g -O2 -Wall -Wextra -Wno-unused-parameter -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -Ivmlinux -Iinclude -Ibpf -c -o $@ $<

$(BUILD)/gen/waffle.skel.h: $(BPF_SRC:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
	@mkdir -p $(@D)
	$(BPFTOOL) gen object $(BUILD)/bpf/waffle.o $^
	$(BPFTOOL) gen skeleton $(BUILD)/bpf/waffle.o name waffle_bpf > $@

# Unit tests: one program a file of tests/unit, built twice, the second time with ASan and UBSan.
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)

$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libwaffle-bpf.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Itests/unit $(CFLAGS_ALL) -o $@ $^ -lcmocka $(LIBS)

unit: $(UNIT_BIN)
	@for t in $(UNIT_BIN); do $$t || exit 1; done

clean:
	rm -rf $(BUILD)

-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d)
.PHONY: all unit clean

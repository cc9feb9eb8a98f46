gpu_timeline_values.o: userspace/model/gpu/gpu_timeline_values.c \
 userspace/model/gpu/gpu_timeline_internal.h \
 userspace/model/gpu/gpu_timeline.h userspace/model/model.h \
 userspace/filter/filter.h userspace/filter/expr_internal.h \
 userspace/util/glob.h userspace/util/vec.h userspace/util/error.h \
 userspace/model/windows.h userspace/store/host.h userspace/store/store.h \
 userspace/store/record.h bpf/record.h userspace/target/elf/site.h \
 include/waffle/abi.h userspace/util/map.h userspace/util/strtab.h \
 userspace/util/keymap.h userspace/util/hash.h userspace/util/memory.h
userspace/model/gpu/gpu_timeline_internal.h:
userspace/model/gpu/gpu_timeline.h:
userspace/model/model.h:
userspace/filter/filter.h:
userspace/filter/expr_internal.h:
userspace/util/glob.h:
userspace/util/vec.h:
userspace/util/error.h:
userspace/model/windows.h:
userspace/store/host.h:
userspace/store/store.h:
userspace/store/record.h:
bpf/record.h:
userspace/target/elf/site.h:
include/waffle/abi.h:
userspace/util/map.h:
userspace/util/strtab.h:
userspace/util/keymap.h:
userspace/util/hash.h:
userspace/util/memory.h:

// SPDX-License-Identifier: Apache-2.0
#include "symbolize/stack_names.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/stack_generators_internal.h"
#include "symbolize/stack_library_internal.h"
#include "symbolize/stack_mappings.h"
#include "target/elf/symbol_module.h"
#include "target/elf/symbols.h"
#include "util/map.h"
#include "util/memory.h"
#include "util/path.h"
#include "util/strtab.h"
#include "util/terminal.h"
#include "util/text.h"
#include "util/vec.h"

/* Limit of the frames of one stack, including inlined ones; further frames are dropped. */
#define FRAMES_MAX 1024

/* Maximum distance of a file's uninitialised variables (.bss) from its mapping. */
#define BSS_MAX (1ull << 30)
/* Limit of the mappings tried to find where a file was loaded. */
#define BIAS_TRIES_MAX 64

/* The variable at an address of a mapping. At another time the address may have another mapping. */
struct names_variable {
	const struct store_mapping *mapping;
	const char *name; /* NULL: there is none */
};

/* The address of a file's link-time address 0 in a process. */
struct bias {
	uint64_t bias;
	bool known;
};

#define PYTHON_MODULE "[python]"
#define JVM_MODULE "[JVM]"

struct stack_names {
	const struct store_reader *reader;
	struct symbolizer *symbolizer;
	struct stack_mappings *mappings;
	struct map modules; /* address of the mapping in the reader → module */
	struct map bias_at; /* the same → index in `biases` */
	VEC(struct bias) biases;
	struct map kernel_symbols; /* address → index */
	struct map named_frames;   /* named_key() → index in the table of names */
	struct stack_generators generators;
	VEC(struct names_variable) variables;
	struct map variable_at; /* address → last entry looked up there */
	struct strtab *texts;
	/* Protects all of it in the functions that several threads may call. */
	pthread_mutex_t lock;
};

static void index_kernel(struct stack_names *names)
{
	uint32_t count = store_reader_symbol_count(names->reader);

	for (uint32_t i = 0; i < count; i++)
		map_put(&names->kernel_symbols, store_reader_symbol(names->reader, i)->address, i);
}

static uint64_t named_key(uint32_t pid, uint64_t value)
{
	return (uint64_t)pid << 32 ^ (value & ~STORE_NAMED);
}

static void index_named(struct stack_names *names)
{
	uint32_t count = store_reader_name_count(names->reader);

	for (uint32_t i = 0; i < count; i++) {
		const struct store_name *name = store_reader_name(names->reader, i);

		if (name->value & STORE_NAMED)
			map_put(&names->named_frames, named_key(name->pid, name->value), i);
	}
}

struct stack_names *stack_names_open(const struct store_reader *reader, bool fetch)
{
	const struct symbolizer_options options = {.fetch = fetch};
	struct stack_names *made = memory_zeroed(1, sizeof(*made));

	made->reader = reader;
	made->texts = strtab_make();
	memory_require(!pthread_mutex_init(&made->lock, NULL));
	memory_require(!symbolizer_open(&made->symbolizer, &options));
	made->mappings = stack_mappings_open(reader);
	index_kernel(made);
	index_named(made);
	return made;
}

void stack_names_close(struct stack_names *names)
{
	if (!names)
		return;
	symbolizer_close(names->symbolizer);
	stack_mappings_close(names->mappings);
	map_free(&names->modules);
	map_free(&names->bias_at);
	vec_free(&names->biases);
	map_free(&names->kernel_symbols);
	map_free(&names->named_frames);
	stack_generators_free(&names->generators);
	vec_free(&names->variables);
	map_free(&names->variable_at);
	strtab_free(names->texts);
	pthread_mutex_destroy(&names->lock);
	free(names);
}

static void set_segments(struct elf_segments *segments, const struct store_mapping *mapping)
{
	for (uint32_t i = 0; i < mapping->segment_count && i < ELF_SEGMENTS_MAX; i++)
		segments->list[segments->count++] =
			(struct elf_segment){.offset = mapping->segments[i].offset,
					     .address = mapping->segments[i].address,
					     .size = mapping->segments[i].size};
}

static uint32_t module_of(struct stack_names *names, const struct store_mapping *mapping)
{
	uint32_t known = map_get(&names->modules, (uintptr_t)mapping);
	const struct store_mapping *file;
	struct symbol_module wanted = {.path = mapping->path};

	if (known != MAP_NONE)
		return known;
	file = stack_mappings_described(names->mappings, mapping);
	if (file->build_id_bytes <= sizeof(file->build_id))
		build_id_set(&wanted.build_id, file->build_id, file->build_id_bytes);
	set_segments(&wanted.segments, file);
	memory_require(!symbolizer_add(names->symbolizer, &wanted, &known));
	map_put(&names->modules, (uintptr_t)mapping, known);
	return known;
}

static uint32_t user_frames(struct stack_names *names, uint32_t pid, uint64_t address, bool caller,
			    uint64_t ts, struct stack_frame *frames, uint32_t room)
{
	/* A return address follows the call, so it may belong to the next function. */
	const struct store_mapping *mapping =
		stack_mappings_find(names->mappings, pid, address - caller, ts);
	struct symbol_frames found = {0};
	uint64_t offset;

	frames[0] = (struct stack_frame){.offset = address};
	if (!mapping)
		return 1;
	offset = address - mapping->start + mapping->offset;
	frames[0].module = mapping->path;
	frames[0].offset = offset;
	if (symbolizer_offset(names->symbolizer, module_of(names, mapping), offset - caller,
			      &found) ||
	    !found.count)
		return 1;
	for (uint32_t i = 0; i < found.count && i < room; i++)
		frames[i] = (struct stack_frame){
			.function = found.list[i].function,
			.module = mapping->path,
			.file = found.list[i].file,
			.line = found.list[i].line,
			.offset = found.list[i].function ? found.list[i].offset : offset,
			.inlined = found.list[i].inlined};
	return found.count < room ? found.count : room;
}

static uint32_t kernel_frame(const struct stack_names *names, uint64_t address,
			     struct stack_frame *frame)
{
	const struct store_symbol *symbol;

	symbol = store_reader_symbol(names->reader, map_get(&names->kernel_symbols, address));
	*frame = (struct stack_frame){.function = symbol ? symbol->name : NULL,
				      .module = "[kernel]",
				      .offset = symbol ? symbol->offset : address,
				      .kernel = true};
	return 1;
}

/* Parses a name that capture/ wrote: see STORE_NAMED. */
static uint32_t named_frame(struct stack_names *names, uint32_t pid, uint64_t address,
			    struct stack_frame *frame)
{
	uint32_t index = map_get(&names->named_frames, named_key(pid, address));
	const struct store_name *name =
		index == MAP_NONE ? NULL : store_reader_name(names->reader, index);
	const char *file = name ? strstr(name->name, " (") : NULL, *line;

	if (name && text_begins(name->name, STORE_JVM)) {
		*frame = (struct stack_frame){.module = JVM_MODULE,
					      .function = name->name + strlen(STORE_JVM)};
		return 1;
	}
	*frame = (struct stack_frame){.module = PYTHON_MODULE, .offset = address & ~STORE_NAMED};
	line = file ? strrchr(file, ':') : NULL;
	if (!line)
		return 1;
	frame->offset = 0;
	frame->function = strtab_get(
		names->texts, strtab_put(names->texts, name->name, (size_t)(file - name->name)));
	frame->file = strtab_get(names->texts,
				 strtab_put(names->texts, file + 2, (size_t)(line - file - 2)));
	frame->line = (uint32_t)strtoul(line + 1, NULL, 10);
	return 1;
}

/* Symbolizes the address at index `at`. */
static uint32_t frames_at(struct stack_names *names, const struct store_stack *stack, uint32_t at,
			  uint64_t ts, struct stack_frame *frames, uint32_t room)
{
	if (!stack->pid)
		return kernel_frame(names, stack->addresses[at], frames);
	if (stack->addresses[at] & STORE_NAMED)
		return named_frame(names, stack->pid, stack->addresses[at], frames);
	return user_frames(names, stack->pid, stack->addresses[at], at > 0, ts, frames, room);
}

/* What the instruction before an address of a mapping is. */
static enum callsite before(struct stack_names *names, const struct store_mapping *mapping,
			    uint64_t address)
{
	return symbolizer_before(names->symbolizer, module_of(names, mapping),
				 address - mapping->start + mapping->offset);
}

/*
 * Stacks are unwound by frame pointers. Code compiled without them uses that register for other
 * values, so the supposed return address is rarely one. The stack ends there.
 */
static bool can_be_caller(struct stack_names *names, const struct store_stack *stack, uint32_t at,
			  uint64_t ts)
{
	uint64_t address = stack->addresses[at];
	const struct store_mapping *mapping;
	enum callsite site;

	if (!stack->pid || !at || address & STORE_NAMED)
		return true;
	mapping = stack_mappings_find(names->mappings, stack->pid, address - 1, ts);
	site = mapping ? before(names, mapping, address) : CALLSITE_UNKNOWN;
	return site == CALLSITE_UNKNOWN || site == CALLSITE_CALL;
}

bool stack_names_pauses(struct stack_names *names, uint32_t pid, uint64_t ts, uint64_t address)
{
	const struct store_mapping *mapping;
	bool pauses;

	if (!names)
		return false;
	pthread_mutex_lock(&names->lock);
	mapping = stack_mappings_find(names->mappings, pid, address - 1, ts);
	pauses = mapping && before(names, mapping, address) == CALLSITE_PAUSE;
	pthread_mutex_unlock(&names->lock);
	return pauses;
}

/* Functions of waffle.h, which lead from a site to its probe. Their names end with an underscore,
 * before any suffix of the compiler (".cold"). */
static bool is_site(const struct stack_frame *frame)
{
	size_t len = frame->function ? strcspn(frame->function, ".") : 0;

	return len > 7 && !strncmp(frame->function, "waffle_", 7) &&
	       frame->function[len - 1] == '_';
}

/* The outermost functions of programs and threads. Not all C libraries mark them in their unwind
 * tables. */
static bool is_outermost(const struct stack_frame *frame)
{
	static const char *const names[] = {"_start", "clone", "__clone", "clone3", "__clone3"};

	for (size_t i = 0; frame->function && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(frame->function, names[i]))
			return true;
	return false;
}

static uint32_t each_frame(struct stack_names *names, uint32_t number, uint64_t ts, bool sure,
			   stack_frame_fn each, void *arg)
{
	const struct store_stack *stack = names ? store_reader_stack(names->reader, number) : NULL;
	static const struct stack_frame cut = {.function = "[cut]", .cut = true};
	struct stack_frame frames[64];
	uint32_t total = 0, i = 0;
	bool outermost = false;

	if (!stack)
		return 0;
	pthread_mutex_lock(&names->lock);
	for (;
	     i < stack->count && total < FRAMES_MAX && (sure || can_be_caller(names, stack, i, ts));
	     i++) {
		uint32_t count =
			frames_at(names, stack, i, ts, frames, sizeof(frames) / sizeof(frames[0]));

		outermost = stack->pid && is_outermost(&frames[count - 1]);
		for (uint32_t k = 0; k < count; k++) {
			if (!total && is_site(&frames[k]))
				continue;
			each(&frames[k], arg);
			total++;
		}
	}
	if (!outermost && (stack->cut || i < stack->count))
		each(&cut, arg);
	pthread_mutex_unlock(&names->lock);
	return total;
}

uint32_t stack_names_each(struct stack_names *names, uint32_t number, uint64_t ts,
			  stack_frame_fn each, void *arg)
{
	return each_frame(names, number, ts, false, each, arg);
}

uint32_t stack_names_all(struct stack_names *names, uint32_t number, uint64_t ts,
			 stack_frame_fn each, void *arg)
{
	return each_frame(names, number, ts, true, each, arg);
}

/* Libraries in which every program waits, or through which it calls others. */
static const char *const common_modules[] = {"libc.so",    "libc-",      "libpthread",  "ld-linux",
					     "ld-musl",    "libstdc++.", "libc++.",     "libgcc_s.",
					     "[vdso]",     "libm.so",    "libm-",       "libc.musl",
					     "libasan.so", "libtsan.",   "libubsan.so", "libffi."};

/* The headers of libstdc++ and libc++, as /usr/include/c++/14/bits/stl_algo.h. The compiler may
 * give an inlined function a name without its namespace. The source of other functions says less:
 * without inlined functions in the debug information, it is that of the line. */
static bool is_inlined_from_cpp_library(const struct stack_frame *frame)
{
	return frame->inlined && frame->file && strstr(frame->file, "/include/c++/");
}

bool stack_frame_is_java(const struct stack_frame *frame)
{
	return frame->function && frame->module && !strcmp(frame->module, JVM_MODULE);
}

/* Methods have a class and a dot before them. */
bool stack_frame_is_java_method(const struct stack_frame *frame)
{
	return stack_frame_is_java(frame) && strchr(frame->function, '.');
}

/* Code of the JVM itself, such as its interpreter. */
static bool is_of_jvm(const struct stack_frame *frame)
{
	return stack_frame_is_java(frame) && !stack_frame_is_java_method(frame);
}

bool stack_frame_is_common(const struct stack_frame *frame)
{
	const char *module = frame->module ? path_base(frame->module) : "";

	for (size_t i = 0; i < sizeof(common_modules) / sizeof(common_modules[0]); i++)
		if (!strncmp(module, common_modules[i], strlen(common_modules[i])))
			return true;
	return frame->function && (is_of_jvm(frame) || stack_function_is_library(frame->function) ||
				   is_inlined_from_cpp_library(frame));
}

bool stack_frame_is_interpreter(const struct stack_frame *frame)
{
	const char *name = frame->module ? path_base(frame->module) : "";

	return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9) ||
	       (frame->module && strstr(frame->module, "/lib-dynload/"));
}

bool stack_frame_is_python(const struct stack_frame *frame)
{
	return frame->module && !strcmp(frame->module, PYTHON_MODULE);
}

bool stack_frame_is_in(const struct stack_frame *frame, const char *source)
{
	size_t file = frame->file ? strlen(frame->file) : 0, len = strlen(source);

	return file >= len && !strcmp(frame->file + file - len, source);
}

const char *stack_frame_plain_name(const struct stack_frame *frame)
{
	const char *dot = frame->function ? strrchr(frame->function, '.') : NULL;

	return dot ? dot + 1 : frame->function;
}

bool stack_frame_is_of_runtime(const struct stack_frame *frame)
{
	return stack_frame_is_python(frame) || stack_frame_is_java_method(frame);
}

const char *stack_source_in_packages(const char *file)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *found = strstr(file, folders[i]);

		if (found)
			return found + strlen(folders[i]);
	}
	return NULL;
}

/* "<frozen importlib._bootstrap>" is Python's own as well, and what an installer puts into bin/
 * only starts a package. */
bool stack_source_is_library(const char *file)
{
	size_t folder = path_folder_length(file);

	return *file == '<' || stack_source_in_packages(file) || strstr(file, "/lib/python") ||
	       strstr(file, "/lib64/python") ||
	       (folder >= 5 && !strncmp(file + folder - 5, "/bin/", 5));
}

struct inner_search {
	struct stack_frame *inner;
	bool found;
	bool interpreter; /* `inner` is only a frame of the interpreter so far */
};

static void inner_frame(const struct stack_frame *frame, void *arg)
{
	struct inner_search *search = arg;

	if (search->found || !frame->function || frame->cut || stack_frame_is_common(frame) ||
	    (search->interpreter && stack_frame_is_interpreter(frame)))
		return;
	search->interpreter = stack_frame_is_interpreter(frame);
	search->found = !search->interpreter;
	*search->inner = *frame;
}

bool stack_names_inner(struct stack_names *names, uint32_t stack, uint64_t ts,
		       struct stack_frame *inner)
{
	struct inner_search search = {.inner = inner};

	stack_names_each(names, stack, ts, inner_frame, &search);
	return search.found || search.interpreter;
}

struct package_search {
	struct stack_frame *package;
	bool found, ended; /* ended: the function outside of Python's own library was met */
};

static void package_frame(const struct stack_frame *frame, void *arg)
{
	struct package_search *search = arg;
	bool packaged = frame->file && stack_source_in_packages(frame->file);

	if (search->ended || !frame->function || !frame->file || !stack_frame_is_python(frame) ||
	    (stack_source_is_library(frame->file) && !packaged))
		return;
	search->ended = true;
	search->found = packaged;
	*search->package = *frame;
}

bool stack_names_package(struct stack_names *names, uint32_t stack, uint64_t ts,
			 struct stack_frame *package)
{
	struct package_search search = {.package = package};
	struct stack_frame inner;

	if (!stack_names_inner(names, stack, ts, &inner) || !inner.file ||
	    !stack_frame_is_python(&inner) || !stack_source_is_library(inner.file) ||
	    stack_source_in_packages(inner.file))
		return false;
	stack_names_each(names, stack, ts, package_frame, &search);
	return search.found;
}

struct own_search {
	const char *outermost; /* source of the outermost function that is in no library */
	struct stack_frame *own;
	bool found;
};

static bool has_own_source(const struct stack_frame *frame)
{
	return frame->function && frame->file && stack_frame_is_python(frame) &&
	       !stack_source_is_library(frame->file);
}

static void outermost_frame(const struct stack_frame *frame, void *arg)
{
	struct own_search *search = arg;

	if (has_own_source(frame))
		search->outermost = frame->file;
}

static void own_frame(const struct stack_frame *frame, void *arg)
{
	struct own_search *search = arg;

	if (search->found || !has_own_source(frame) ||
	    !path_is_in_folder_of(frame->file, search->outermost))
		return;
	*search->own = *frame;
	search->found = true;
}

bool stack_names_own(struct stack_names *names, uint32_t stack, uint64_t ts,
		     struct stack_frame *own)
{
	struct own_search search = {.own = own};
	struct stack_frame inner;

	stack_names_each(names, stack, ts, outermost_frame, &search);
	if (!search.outermost)
		return false;
	if (path_folder_length(search.outermost))
		stack_names_each(names, stack, ts, own_frame, &search);
	return search.found && (!stack_names_inner(names, stack, ts, &inner) ||
				inner.function != own->function || inner.line != own->line);
}

const char *stack_names_generator(struct stack_names *names, uint32_t pid, uint64_t address,
				  uint64_t ts)
{
	const char *name;

	if (!names)
		return NULL;
	pthread_mutex_lock(&names->lock);
	name = stack_generators_find(&names->generators, names->mappings, pid, address, ts);
	pthread_mutex_unlock(&names->lock);
	return name;
}

bool stack_names_has_jvm(struct stack_names *names, uint32_t pid)
{
	bool has;

	if (!names)
		return false;
	pthread_mutex_lock(&names->lock);
	has = stack_generators_has_jvm(&names->generators, names->mappings, pid);
	pthread_mutex_unlock(&names->lock);
	return has;
}

/* ---- variables ---- */

/* The mapping that contains an address, or the last one before it. */
static const struct store_mapping *mapping_before(const struct stack_names *names, uint32_t pid,
						  uint64_t address, uint64_t ts)
{
	const struct store_mapping *found = stack_mappings_find(names->mappings, pid, address, ts);

	if (!found)
		found = stack_mappings_before(names->mappings, pid, address);
	return found && address - found->start < BSS_MAX ? found : NULL;
}

/* By the first function that is found near the begin of a mapping: code need not begin at the start
 * of its page. */
static bool bias_by(const struct stack_names *names, const struct store_mapping *code,
		    uint32_t module, uint64_t *bias)
{
	static const uint64_t tries[] = {0, 0x800, 0xff0};

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct symbol_frames found = {0};

		if (!symbolizer_offset(names->symbolizer, module, code->offset + tries[i],
				       &found) &&
		    found.located) {
			*bias = code->start + tries[i] - found.address;
			return true;
		}
	}
	return false;
}

static bool is_same_file(const struct store_mapping *a, const struct store_mapping *b)
{
	return a->ino == b->ino && a->dev == b->dev && !strcmp(a->path, b->path);
}

/* Whether `a` is more likely loaded together with `file` than `b`: code lies before data, and
 * nothing between them. */
static bool is_nearer(const struct store_mapping *a, const struct store_mapping *b,
		      const struct store_mapping *file)
{
	bool a_before = a->start <= file->start, b_before = b->start <= file->start;

	if (a_before != b_before)
		return a_before;
	return a_before ? a->start > b->start : a->start < b->start;
}

/*
 * Finds the address of a file's link-time address 0 in a process. Variables are in segments of
 * which only the distance to the code is known. A file may be mapped several times, at once or in
 * turn.
 */
static struct bias find_bias(const struct stack_names *names, const struct store_mapping *file,
			     uint32_t module)
{
	uint32_t count = stack_mappings_count(names->mappings), tried = 0;
	const struct store_mapping *best = NULL;
	struct bias bias = {0};

	for (uint32_t i = stack_mappings_of(names->mappings, file->pid); i < count; i++) {
		const struct store_mapping *mapping = stack_mappings_at(names->mappings, i);
		uint64_t value;

		if (mapping->pid != file->pid || tried == BIAS_TRIES_MAX)
			break;
		if (!is_same_file(mapping, file) ||
		    stack_mappings_find(names->mappings, file->pid, mapping->start, file->ts) !=
			    mapping)
			continue;
		tried++;
		if ((!best || is_nearer(mapping, best, file)) &&
		    bias_by(names, mapping, module, &value)) {
			best = mapping;
			bias = (struct bias){value, true};
		}
	}
	return bias;
}

/* The same, with a cache. */
static struct bias bias_of(struct stack_names *names, const struct store_mapping *file,
			   uint32_t module)
{
	uint32_t known = map_get(&names->bias_at, (uintptr_t)file);
	struct bias bias;

	if (known != MAP_NONE)
		return names->biases.data[known];
	bias = find_bias(names, file, module);
	map_put(&names->bias_at, (uintptr_t)file, (uint32_t)names->biases.len);
	vec_add(&names->biases, bias);
	return bias;
}

static const char *look_up_variable(struct stack_names *names, const struct store_mapping *mapping,
				    uint64_t address)
{
	uint64_t offset = 0;
	struct bias bias;
	const char *name;
	char text[256];
	uint32_t module;
	int len;

	module = module_of(names, mapping);
	bias = bias_of(names, mapping, module);
	if (!bias.known)
		return NULL;
	name = symbolizer_variable(names->symbolizer, module, address - bias.bias, &offset);
	if (!name || !offset)
		return name;
	len = snprintf(text, sizeof(text), "%.200s+0x%" PRIx64, name, offset);
	return strtab_get(names->texts, strtab_put(names->texts, text, (size_t)len));
}

static const char *find_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
				 uint64_t address)
{
	struct names_variable variable = {.mapping = mapping_before(names, pid, address, ts)};
	uint32_t known;

	if (!variable.mapping)
		return NULL;
	known = map_get(&names->variable_at, address);
	if (known != MAP_NONE && names->variables.data[known].mapping == variable.mapping)
		return names->variables.data[known].name;
	variable.name = look_up_variable(names, variable.mapping, address);
	map_put(&names->variable_at, address, (uint32_t)names->variables.len);
	vec_add(&names->variables, variable);
	return variable.name;
}

const char *stack_names_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
				 uint64_t address)
{
	const char *name;

	if (!names)
		return NULL;
	pthread_mutex_lock(&names->lock);
	name = find_variable(names, pid, ts, address);
	pthread_mutex_unlock(&names->lock);
	return name;
}

bool stack_names_has_variable(struct stack_names *names, const struct store_mapping *mapping,
			      const char *name)
{
	return names && bias_of(names, mapping, module_of(names, mapping)).known &&
	       symbolizer_has_variable(names->symbolizer, module_of(names, mapping), name);
}

bool stack_names_is_go(struct stack_names *names, const struct store_mapping *mapping)
{
	return names && symbolizer_is_go(names->symbolizer, module_of(names, mapping));
}

struct function_list {
	const char **names;
	uint32_t count, max;
};

static void add_function(const struct stack_frame *frame, void *arg)
{
	struct function_list *list = arg;

	if (frame->function && !frame->cut && list->count < list->max)
		list->names[list->count++] = frame->function;
}

uint32_t stack_names_functions(struct stack_names *names, uint32_t stack, uint64_t ts,
			       const char **functions, uint32_t max)
{
	struct function_list list = {.names = functions, .max = max};

	stack_names_each(names, stack, ts, add_function, &list);
	return list.count;
}

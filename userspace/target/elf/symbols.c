// SPDX-License-Identifier: Apache-2.0
#include "target/elf/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/dwarf/callsite.h"
#include "target/dwarf/dwarf_index.h"
#include "target/elf/debuginfod.h"
#include "target/elf/demangle.h"
#include "target/elf/symbols_remote.h"
#include "target/elf/symtab.h"
#include "target/worker/worker.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

/* The cached result for an address. */
struct resolved {
	uint32_t count;
	enum symbol_source source;
	struct symbol_frame frames[];
};

struct symbols_module {
	char *path;
	struct build_id recorded;
	struct build_id build_id; /* as recorded, else the file's */
	struct elf_segments segments;
	bool opened, program_opened;
	enum symbol_file file;
	struct elf_file program, debug;  /* those in use */
	enum symbol_source table_source; /* source of `code` */
	struct symtab code, data;
	bool data_read;
	struct dwarf_index *dwarf;
	struct map cache; /* address → index in `resolved` */
	VEC(struct resolved *) resolved;
};

struct symbolizer {
	struct symbols_remote *remote; /* the worker does all lookups; NULL: this process does */
	char *debug_dir;
	bool fetch, in_worker;
	struct debuginfod *debuginfod;
	struct strtab *strings;
	VEC(struct symbols_module *) modules;
	struct map module_at; /* symbol_module_hash() or the next free key → index */
};

static char *debug_dir_of(const struct symbolizer_options *options)
{
	const char *dir = options->debug_dir ? options->debug_dir : getenv("WAFFLE_DEBUG_DIR");

	return strdup(dir && *dir ? dir : "/usr/lib/debug");
}

int symbolizer_open(struct symbolizer **result, const struct symbolizer_options *options)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	*result = NULL;
	if (!symbolizer)
		return -ENOMEM;
	symbolizer->fetch = options->fetch;
	symbolizer->in_worker = options->in_worker;
	symbolizer->debug_dir = debug_dir_of(options);
	symbolizer->strings = strtab_new();
	if (!symbolizer->debug_dir || !symbolizer->strings ||
	    (worker_is_there() &&
	     symbols_remote_open(&symbolizer->remote, symbolizer->debug_dir, symbolizer->fetch))) {
		symbolizer_close(symbolizer);
		return -ENOMEM;
	}
	*result = symbolizer;
	return 0;
}

static void module_free(struct symbols_module *module)
{
	for (size_t i = 0; i < module->resolved.len; i++)
		free(module->resolved.data[i]);
	vec_free(&module->resolved);
	map_free(&module->cache);
	symtab_free(&module->code);
	symtab_free(&module->data);
	dwarf_index_close(module->dwarf);
	elf_file_close(&module->debug);
	elf_file_close(&module->program);
	free(module->path);
	free(module);
}

void symbolizer_close(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	for (size_t i = 0; i < symbolizer->modules.len; i++)
		module_free(symbolizer->modules.data[i]);
	vec_free(&symbolizer->modules);
	map_free(&symbolizer->module_at);
	symbols_remote_close(symbolizer->remote);
	debuginfod_close(symbolizer->debuginfod);
	strtab_free(symbolizer->strings);
	free(symbolizer->debug_dir);
	free(symbolizer);
}

int symbolizer_add(struct symbolizer *symbolizer, const struct symbol_module *like,
		   uint32_t *number)
{
	struct symbols_module **modules = symbolizer->modules.data, *module;
	uint64_t key;

	if (symbolizer->remote)
		return symbols_remote_add(symbolizer->remote, like, number);
	for (key = symbol_module_hash(like);
	     (*number = map_get(&symbolizer->module_at, key)) != MAP_NONE; key++)
		if (symbol_module_is(like, modules[*number]->path, &modules[*number]->recorded))
			return 0;
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	module->program = module->debug = (struct elf_file)ELF_FILE_INIT;
	module->recorded = module->build_id = like->build_id;
	module->segments = like->segments;
	if (like->path)
		module->path = strdup(like->path);
	if ((like->path && !module->path) || !vec_push(&symbolizer->modules, module)) {
		module_free(module);
		return -ENOMEM;
	}
	*number = (uint32_t)(symbolizer->modules.len - 1);
	return map_set(&symbolizer->module_at, key, *number) ? 0 : -ENOMEM;
}

static int open_program(struct symbols_module *module)
{
	int err = -ENOENT;

	if (module->program_opened)
		return 0;
	module->program_opened = true;
	if (module->path)
		err = elf_file_open(&module->program, module->path);
	if (err == -ENOMEM)
		return err;
	if (err) {
		module->file = err == -ENOEXEC ? SYMBOL_FILE_BAD : SYMBOL_FILE_MISSING;
		return 0;
	}
	if (!module->build_id.size) {
		module->file = SYMBOL_FILE_UNCHECKED;
		module->build_id = module->program.build_id;
	} else if (build_id_equal(&module->build_id, &module->program.build_id)) {
		module->file = SYMBOL_FILE_USED;
	} else {
		module->file = SYMBOL_FILE_OTHER;
		elf_file_close(&module->program);
		return 0;
	}
	if (!module->segments.count)
		elf_file_segments(&module->program, &module->segments);
	return 0;
}

static void fetch_debug(struct symbolizer *symbolizer, struct symbols_module *module)
{
	char name[sizeof(WORKER_DEBUGINFOD) + BUILD_ID_TEXT] = WORKER_DEBUGINFOD;
	int fd;

	if (!symbolizer->fetch || !module->build_id.size)
		return;
	build_id_text(name + strlen(name), &module->build_id);
	if (!symbolizer->in_worker && !symbolizer->debuginfod)
		symbolizer->debuginfod = debuginfod_open();
	if (symbolizer->in_worker)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	else if (symbolizer->debuginfod)
		fd = debuginfod_fetch(symbolizer->debuginfod, &module->build_id);
	else
		fd = -1;
	symbolizer->fetch = symbolizer->in_worker || symbolizer->debuginfod;
	if (fd < 0 || elf_file_open_fd(&module->debug, fd, "debuginfod"))
		return;
	if (!build_id_equal(&module->debug.build_id, &module->build_id))
		elf_file_close(&module->debug);
}

static int open_debug(struct symbolizer *symbolizer, struct symbols_module *module)
{
	const struct elf_file *file = &module->program;
	int err;

	if (!file->elf || !elf_file_has_debug(file)) {
		if (elf_file_find_debug(&module->debug, file, &module->build_id,
					symbolizer->debug_dir))
			fetch_debug(symbolizer, module);
		file = &module->debug;
	}
	if (!file->elf)
		return 0;
	err = dwarf_index_open(&module->dwarf, file, symbolizer->debug_dir, symbolizer->strings);
	return err == -ENOMEM ? err : 0;
}

#define TABLE_OF_GO SHT_NULL /* symtab_read_go() */

static int table_read(struct symtab *symtab, Elf *elf, uint32_t type, enum symtab_kind kind)
{
	if (!elf)
		return -ENOENT;
	if (type != TABLE_OF_GO)
		return symtab_read(symtab, elf, type, kind);
	return kind == SYMTAB_CODE ? symtab_read_go(symtab, elf) : -ENOENT;
}

/* Opens the best symbol table available. */
static int open_table(struct symbols_module *module, struct symtab *symtab, enum symtab_kind kind,
		      enum symbol_source *source)
{
	const struct {
		Elf *elf;
		uint32_t type;
		enum symbol_source source;
	} tables[] = {
		{module->program.elf, SHT_SYMTAB, SYMBOL_SYMTAB},
		{module->debug.elf, SHT_SYMTAB, SYMBOL_SYMTAB},
		{module->program.elf, TABLE_OF_GO, SYMBOL_SYMTAB},
		{module->program.elf, SHT_DYNSYM, SYMBOL_DYNSYM},
	};

	*source = SYMBOL_NONE;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		int err = table_read(symtab, tables[i].elf, tables[i].type, kind);

		if (!err)
			*source = tables[i].source;
		if (err != -ENOENT)
			return err;
	}
	return 0;
}

/* Discards the names of a file that changed while it was read, since they may be wrong. */
static void module_forget(struct symbols_module *module)
{
	symtab_free(&module->code);
	dwarf_index_close(module->dwarf);
	module->dwarf = NULL;
	elf_file_close(&module->debug);
	elf_file_close(&module->program);
	module->table_source = SYMBOL_NONE;
	module->file = SYMBOL_FILE_BAD;
}

static int module_open(struct symbolizer *symbolizer, uint32_t number,
		       struct symbols_module **result)
{
	struct symbols_module *module;
	int err = 0;

	if (number >= symbolizer->modules.len)
		return -EINVAL;
	module = *result = symbolizer->modules.data[number];
	if (module->opened)
		return 0;
	module->opened = true;
	err = err ?: open_program(module);
	err = err ?: open_debug(symbolizer, module);
	err = err ?: open_table(module, &module->code, SYMTAB_CODE, &module->table_source);
	if (!err && (elf_file_changed(&module->program) || elf_file_changed(&module->debug)))
		module_forget(module);
	return err;
}

static const char *keep(struct symbolizer *symbolizer, const char *text, size_t len)
{
	uint32_t number = strtab_add(symbolizer->strings, text, len);

	return number == STRTAB_NONE ? NULL : strtab_get(symbolizer->strings, number);
}

static const char *keep_symbol(struct symbolizer *symbolizer, const char *symbol)
{
	char text[DEMANGLE_MAX];
	const char *name = demangle(symbol, text);
	size_t len = strlen(symbol), plain = strcspn(symbol, "@");

	/* Linkers append a symbol's version: "fopen@@GLIBC_2.2.5". */
	if (!name && plain && plain < len)
		return keep(symbolizer, symbol, plain);
	return name ? keep(symbolizer, name, strlen(name)) : keep(symbolizer, symbol, len);
}

/*
 * For some functions the symbol table has a better name than DWARF. File-local C++ functions have
 * no mangled name in DWARF, and DWARF calls some functions of the C library ___pthread_mutex_lock.
 */
static bool symbol_is_better(const struct dwarf_frame *frame, const char *symbol)
{
	if (!frame->function)
		return true;
	if (frame->mangled)
		return false;
	return !strncmp(symbol, "_Z", 2) ||
	       symbol_underscores(symbol) < symbol_underscores(frame->function);
}

static struct resolved *resolve_symbol(struct symbolizer *symbolizer, struct symbols_module *module,
				       uint64_t address, const struct dwarf_place *place)
{
	struct resolved *resolved = calloc(1, sizeof(*resolved) + sizeof(resolved->frames[0]));
	uint64_t start;
	const char *symbol = symtab_find(&module->code, address, &start);

	if (!resolved || !symbol)
		return resolved;
	resolved->count = 1;
	resolved->source = module->table_source;
	resolved->frames[0] = (struct symbol_frame){
		.function = keep_symbol(symbolizer, symbol),
		.file = place->file,
		.line = place->line,
		.offset = address - start,
	};
	return resolved;
}

static struct resolved *resolve_dwarf(struct symbolizer *symbolizer, struct symbols_module *module,
				      uint64_t address, const struct dwarf_place *place)
{
	struct resolved *resolved =
		malloc(sizeof(*resolved) + place->count * sizeof(resolved->frames[0]));
	const char *symbol;
	uint64_t start;

	if (!resolved)
		return NULL;
	resolved->count = place->count;
	resolved->source = SYMBOL_DWARF;
	for (uint32_t i = 0; i < place->count; i++) {
		resolved->frames[i] = (struct symbol_frame){
			.function = place->frames[i].function,
			.file = place->frames[i].file,
			.line = place->frames[i].line,
			.inlined = place->frames[i].inlined,
			.offset = address - place->start,
		};
	}
	symbol = symtab_find(&module->code, address, &start);
	if (symbol && start == place->start && !place->frames[place->count - 1].inlined &&
	    symbol_is_better(&place->frames[place->count - 1], symbol))
		resolved->frames[place->count - 1].function = keep_symbol(symbolizer, symbol);
	return resolved;
}

static int resolve(struct symbolizer *symbolizer, struct symbols_module *module, uint64_t address,
		   struct resolved **result)
{
	struct dwarf_place place = {.count = 0};
	struct resolved *resolved;
	uint32_t number = map_get(&module->cache, address);
	int err = 0;

	if (number != MAP_NONE) {
		*result = module->resolved.data[number];
		return 0;
	}
	if (module->dwarf)
		err = dwarf_index_find(module->dwarf, address, &place);
	if (err)
		return err;
	resolved = place.count ? resolve_dwarf(symbolizer, module, address, &place)
			       : resolve_symbol(symbolizer, module, address, &place);
	if (!resolved || !vec_push(&module->resolved, resolved)) {
		free(resolved);
		return -ENOMEM;
	}
	/* If the map cannot grow, the next lookup computes the result again. */
	map_set(&module->cache, address, (uint32_t)(module->resolved.len - 1));
	*result = resolved;
	return 0;
}

static int module_address(struct symbolizer *symbolizer, struct symbols_module *module,
			  uint64_t address, struct symbol_frames *frames)
{
	struct resolved *resolved;
	int err = resolve(symbolizer, module, address, &resolved);

	if (err)
		return err;
	*frames = (struct symbol_frames){
		.list = resolved->frames,
		.count = resolved->count,
		.source = resolved->source,
		.located = true,
		.address = address,
	};
	return 0;
}

int symbolizer_address(struct symbolizer *symbolizer, uint32_t number, uint64_t address,
		       struct symbol_frames *frames)
{
	struct symbols_module *module;
	int err;

	if (symbolizer->remote)
		return symbols_remote_frames(symbolizer->remote, number, address, false, frames);
	err = module_open(symbolizer, number, &module);
	*frames = (struct symbol_frames){.address = address};
	return err ? err : module_address(symbolizer, module, address, frames);
}

int symbolizer_offset(struct symbolizer *symbolizer, uint32_t number, uint64_t offset,
		      struct symbol_frames *frames)
{
	struct symbols_module *module;
	uint64_t address;
	int err;

	if (symbolizer->remote)
		return symbols_remote_frames(symbolizer->remote, number, offset, true, frames);
	err = module_open(symbolizer, number, &module);
	*frames = (struct symbol_frames){.address = offset};
	if (err || !elf_segments_address(&module->segments, offset, &address))
		return err;
	return module_address(symbolizer, module, address, frames);
}

enum callsite symbolizer_before(struct symbolizer *symbolizer, uint32_t number, uint64_t offset)
{
	uint8_t before[CALLSITE_BYTES];
	struct symbols_module *module;
	GElf_Ehdr header;

	if (symbolizer->remote)
		return symbols_remote_before(symbolizer->remote, number, offset);
	if (module_open(symbolizer, number, &module) || !module->program.elf ||
	    offset < sizeof(before) || !gelf_getehdr(module->program.elf, &header) ||
	    pread(module->program.fd, before, sizeof(before), (off_t)(offset - sizeof(before))) !=
		    sizeof(before))
		return CALLSITE_UNKNOWN;
	if (callsite_is_pause(before, header.e_machine))
		return CALLSITE_PAUSE;
	return callsite_is_call(before, header.e_machine) ? CALLSITE_CALL : CALLSITE_OTHER;
}

/* The variables of a module. NULL: unavailable. */
static const struct symtab *variables_of(struct symbolizer *symbolizer, uint32_t number)
{
	enum symbol_source source;
	struct symbols_module *module;

	if (module_open(symbolizer, number, &module))
		return NULL;
	if (!module->data_read && open_table(module, &module->data, SYMTAB_DATA, &source))
		return NULL;
	module->data_read = true;
	return &module->data;
}

bool symbolizer_has_variable(struct symbolizer *symbolizer, uint32_t number, const char *name)
{
	const struct symtab *variables;

	if (symbolizer->remote)
		return symbols_remote_has_variable(symbolizer->remote, number, name);
	variables = variables_of(symbolizer, number);
	return variables && symtab_has(variables, name);
}

bool symbolizer_is_go(struct symbolizer *symbolizer, uint32_t number)
{
	struct symbols_module *module;

	if (symbolizer->remote)
		return symbols_remote_is_go(symbolizer->remote, number);
	if (number >= symbolizer->modules.len)
		return false;
	module = symbolizer->modules.data[number];
	return !open_program(module) && module->program.elf && elf_file_is_go(&module->program) &&
	       !elf_file_changed(&module->program);
}

const char *symbolizer_variable(struct symbolizer *symbolizer, uint32_t number, uint64_t address,
				uint64_t *offset)
{
	const struct symtab *variables;
	const char *symbol;
	uint64_t start;

	if (symbolizer->remote)
		return symbols_remote_variable(symbolizer->remote, number, address, offset);
	variables = variables_of(symbolizer, number);
	if (!variables)
		return NULL;
	symbol = symtab_find(variables, address, &start);
	if (!symbol)
		return NULL;
	*offset = address - start;
	return keep_symbol(symbolizer, symbol);
}

int symbolizer_module(struct symbolizer *symbolizer, uint32_t number,
		      struct symbol_module_state *state)
{
	struct symbols_module *module;
	int err;

	if (symbolizer->remote)
		return symbols_remote_module(symbolizer->remote, number, state);
	err = module_open(symbolizer, number, &module);
	*state = (struct symbol_module_state){.file = SYMBOL_FILE_MISSING};
	if (err)
		return err;
	state->file = module->file;
	state->source = module->dwarf ? SYMBOL_DWARF : module->table_source;
	state->debug_path = module->debug.path;
	state->build_id = module->build_id;
	return 0;
}

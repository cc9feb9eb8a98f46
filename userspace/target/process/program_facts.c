// SPDX-License-Identifier: Apache-2.0
#include "target/process/program_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "target/worker/worker_queue.h"

static int read_here(struct program_facts *facts, int fd, const char *path)
{
	struct elf_file file;
	GElf_Shdr section;
	GElf_Sym symbol;
	int result = elf_file_open_fd(&file, fd, path);

	*facts = (struct program_facts){0};
	if (result)
		return result == -ENOMEM ? result : -ENOEXEC;
	facts->build_id = file.build_id;
	elf_file_segments(&file, &facts->segments);
	if (elf_section_named(file.elf, ".PyRuntime", &section))
		facts->python_runtime = section.sh_addr;
	if (elf_file_dynamic_symbol(&file, "_PyRuntime", &symbol)) { /* 3.9 has no such section */
		facts->python_runtime = symbol.st_value;
		facts->python_runtime_bytes = symbol.st_size;
	}
	if (facts->python_runtime && elf_file_dynamic_symbol(&file, "Py_Version", &symbol))
		facts->python_version = symbol.st_value;
	if (facts->python_runtime && elf_file_dynamic_symbol(&file, "PyCode_Type", &symbol))
		facts->python_code_type = symbol.st_value;
	if (facts->python_runtime &&
	    elf_file_dynamic_symbol(&file, "_PyEval_EvalFrameDefault", &symbol)) {
		facts->python_eval = symbol.st_value;
		facts->python_eval_bytes = symbol.st_size;
	}
	if (elf_file_dynamic_symbol(&file, "gHotSpotVMStructs", &symbol))
		facts->jvm_structs = symbol.st_value;
	if (facts->jvm_structs && elf_file_dynamic_symbol(&file, "gHotSpotVMTypes", &symbol))
		facts->jvm_types = symbol.st_value;
	elf_file_close(&file);
	return 0;
}

int program_facts_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	const char *path = wire_get_text(request);
	struct program_facts facts;
	int result, own;

	(void)arg;
	if (!path || !wire_in_done(request))
		return -EINVAL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	result = own < 0 ? -errno : read_here(&facts, own, path);
	if (result)
		return result;
	wire_put(reply, &facts.build_id, sizeof(facts.build_id));
	wire_put(reply, &facts.segments, sizeof(facts.segments));
	wire_put_u64(reply, facts.python_runtime);
	wire_put_u64(reply, facts.python_runtime_bytes);
	wire_put_u64(reply, facts.python_version);
	wire_put_u64(reply, facts.python_code_type);
	wire_put_u64(reply, facts.python_eval);
	wire_put_u64(reply, facts.python_eval_bytes);
	wire_put_u64(reply, facts.jvm_structs);
	wire_put_u64(reply, facts.jvm_types);
	return 0;
}

bool program_facts_decode(struct program_facts *facts, struct wire_in *in)
{
	wire_get(in, &facts->build_id, sizeof(facts->build_id));
	wire_get(in, &facts->segments, sizeof(facts->segments));
	facts->python_runtime = wire_get_u64(in);
	facts->python_runtime_bytes = wire_get_u64(in);
	facts->python_version = wire_get_u64(in);
	facts->python_code_type = wire_get_u64(in);
	facts->python_eval = wire_get_u64(in);
	facts->python_eval_bytes = wire_get_u64(in);
	facts->jvm_structs = wire_get_u64(in);
	facts->jvm_types = wire_get_u64(in);
	if (wire_in_done(in) && facts->build_id.size <= BUILD_ID_MAX &&
	    facts->segments.count <= ELF_SEGMENTS_MAX)
		return true;
	*facts = (struct program_facts){0};
	return false;
}

int program_facts_read(struct program_facts *facts, int fd, const char *path)
{
	struct wire_out request = {0}, reply = {0};
	struct error problem = ERROR_INIT;
	bool quiet;
	int result;

	if (!worker_is_there())
		return read_here(facts, fd, path);
	*facts = (struct program_facts){0};
	/* Not the path, which may name a process: no other process would find the reply that is
	 * kept for the file. */
	wire_put_text(&request, "");
	quiet = worker_queue_quiet(true);
	result = worker_ask(WORKER_PROGRAM, &request, fd, path, &reply, &problem);
	worker_queue_quiet(quiet);
	if (!result) {
		struct wire_in in = wire_in(reply.bytes.data, reply.bytes.len);

		if (!program_facts_decode(facts, &in))
			result = worker_reply_bad(path, &problem);
	}
	wire_out_free(&request);
	wire_out_free(&reply);
	close(fd);
	return result;
}

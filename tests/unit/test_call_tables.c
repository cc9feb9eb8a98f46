// SPDX-License-Identifier: Apache-2.0
/* The rows of CUDA and NCCL: what their roles promise, and which registers they read. That they
 * agree with NVIDIA's headers is tested by tests/integration/test_cuda_headers.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "probe/args/fetch_program.h"
#include "probe/spec/call_set.h"
#include "probe/spec/builtin_specs_internal.h"

struct fixture {
	struct call_set *set;
};

static int open_tables(void **state)
{
	static struct fixture fixture;
	struct error err = ERROR_INIT;

	assert_int_equal(call_set_open(&fixture.set, &err), 0);
	for (unsigned i = 0; i < CALL_TABLE_COUNT; i++)
		if (call_set_add_table(fixture.set, (enum call_table)i, &err))
			fail_msg("%s", err.message);
	*state = &fixture;
	return 0;
}

static int close_tables(void **state)
{
	struct fixture *fixture = *state;

	call_set_free(fixture->set);
	return 0;
}

static const struct call_spec *row_of(const struct fixture *fixture, const char *name)
{
	for (size_t i = 0; i < fixture->set->entries.len; i++)
		if (spec_names_match(&fixture->set->entries.data[i]->spec.sides[0].names, name))
			return &fixture->set->entries.data[i]->spec;
	fail_msg("no row has %s", name);
	return NULL;
}

static bool some_offset(void *arg, const char *name, int32_t *offset)
{
	(void)arg;
	*offset = !strcmp(name, "comm_hash") ? 0x100 : !strcmp(name, "rank") ? 0x108 : 0x10c;
	return true;
}

static struct fetch_program_made make_with(const struct call_spec *spec, uint16_t machine,
					   bool offsets_known)
{
	const struct fetch_program_lookup lookup = {.offset = offsets_known ? some_offset : NULL};
	struct error err = ERROR_INIT;
	struct fetch_program_made made;
	struct call_at at;

	call_at_function(&at, abi_find(machine), &spec->sides[0]);
	if (fetch_program_make(&made, spec, &at, &lookup, &err))
		fail_msg("%s", err.message);
	return made;
}

static struct fetch_program_made make(const struct call_spec *spec, uint16_t machine)
{
	return make_with(spec, machine, true);
}

static bool has_key(const struct fetch_program_made *made, const char *name)
{
	for (unsigned i = 0; i < made->key_count; i++)
		if (!strcmp(made->keys[i].name, name))
			return true;
	return false;
}

/* Events of all streams of a context are recorded and waited for without one. */
static bool is_of_context(const struct call_spec *spec, const struct fetch_program_made *made)
{
	return (spec->role == SITE_ROLE_EVENT_RECORD || spec->role == SITE_ROLE_STREAM_WAIT) &&
	       has_key(made, "context");
}

/* Its counts are arrays. */
static bool has_many_counts(const struct call_spec *spec)
{
	return spec_names_match(&spec->sides[0].names, "ncclAllToAllv");
}

/* Parameters of the calls of a role, as target/elf/site.h lists them. */
static void test_calls_have_the_keys_of_their_role(void **state)
{
	static const char *const keys[SITE_ROLE_COUNT][8] = {
		[SITE_ROLE_SYNC_STREAM] = {"stream"},
		[SITE_ROLE_SYNC_EVENT] = {"event"},
		[SITE_ROLE_EVENT_RECORD] = {"event", "stream"},
		[SITE_ROLE_STREAM_WAIT] = {"stream", "event"},
		[SITE_ROLE_COLLECTIVE] = {"count", "datatype", "comm", "rank", "nranks", "seq",
					  "stream"},
		[SITE_ROLE_P2P] = {"comm", "rank", "nranks", "seq", "stream"},
		[SITE_ROLE_COMM_INIT] = {"nranks", "comm"},
		[SITE_ROLE_NAME] = {"kernel", "function"},
		[SITE_ROLE_HANDLE] = {"host", "function"},
		[SITE_ROLE_SEND] = {"count", "datatype", "peer", "comm", "rank", "nranks", "seq",
				    "stream"},
		[SITE_ROLE_RECV] = {"count", "datatype", "peer", "comm", "rank", "nranks", "seq",
				    "stream"},
		[SITE_ROLE_STREAM_CREATE] = {"stream"},
		[SITE_ROLE_MAY_SYNC] = {"address"},
		[SITE_ROLE_CAPTURE_BEGIN] = {"stream"},
		[SITE_ROLE_CAPTURE_END] = {"stream"},
	};
	const struct fixture *fixture = *state;
	unsigned roles[SITE_ROLE_COUNT] = {0};

	for (size_t i = 0; i < fixture->set->entries.len; i++) {
		const struct call_spec *spec = &fixture->set->entries.data[i]->spec;
		struct fetch_program_made made = make(spec, EM_X86_64);
		bool of_context = is_of_context(spec, &made);

		roles[spec->role]++;
		assert_false(of_context && has_key(&made, "stream"));
		if (spec->role == SITE_ROLE_MPI_MPROBE && !strstr(spec->source.text, "MPI_Probe("))
			assert_true(has_key(&made, "handle") && has_key(&made, "status") &&
				    has_key(&made, "matched"));
		for (unsigned k = 0; k < 8 && keys[spec->role][k]; k++)
			if (!has_key(&made, keys[spec->role][k]) &&
			    !(of_context && !strcmp(keys[spec->role][k], "stream")) &&
			    !(has_many_counts(spec) && !strcmp(keys[spec->role][k], "count")))
				fail_msg("%s: no %s", spec->source.text, keys[spec->role][k]);
	}
	for (unsigned role = SITE_ROLE_LAUNCH; role < SITE_ROLE_MPI_INIT; role++)
		assert_true(roles[role] > 0);
}

/* The same for MPI, with both kinds of handles. */
static void test_calls_of_mpi_have_the_keys_of_their_role(void **state)
{
	static const char *const keys[SITE_ROLE_COUNT][8] = {
		[SITE_ROLE_MPI_INIT] = {"result"},
		[SITE_ROLE_MPI_BARRIER] = {"comm", "result"},
		[SITE_ROLE_MPI_ALL] = {"comm", "count", "result"},
		[SITE_ROLE_MPI_ALL_PARTS] = {"comm", "result"},
		[SITE_ROLE_MPI_FROM_ROOT] = {"comm", "count", "root", "result"},
		[SITE_ROLE_MPI_TO_ROOT] = {"comm", "count", "root", "result"},
		[SITE_ROLE_MPI_FROM_ROOT_PARTS] = {"comm", "root", "result"},
		[SITE_ROLE_MPI_TO_ROOT_PARTS] = {"comm", "root", "result"},
		[SITE_ROLE_MPI_PREFIX] = {"comm", "count", "result"},
		[SITE_ROLE_MPI_NEIGHBORS] = {"comm", "result"},
		[SITE_ROLE_MPI_SEND] = {"count", "dest", "tag", "comm", "result"},
		[SITE_ROLE_MPI_RECV] = {"source", "tag", "comm", "result"},
		/* Also status and matched, or request. */
		[SITE_ROLE_MPI_SENDRECV] = {"dest", "tag", "source", "receive_tag", "comm",
					    "result"},
		[SITE_ROLE_MPI_SEND_INIT] = {"dest", "tag", "comm", "request", "handle"},
		[SITE_ROLE_MPI_RECV_INIT] = {"source", "tag", "comm", "request", "handle"},
		/* Except for MPI_Probe, which takes no message: also handle, status, matched. */
		[SITE_ROLE_MPI_MPROBE] = {"source", "tag", "comm", "result"},
		[SITE_ROLE_MPI_MRECV] = {"handle", "result"},
		[SITE_ROLE_MPI_WAIT_SOME] = {"count", "requests", "handle0", "statuses", "matched0",
					     "finished", "index0", "index2"},
		[SITE_ROLE_MPI_REQUEST_FREE] = {"request", "handle"},
		[SITE_ROLE_MPI_COMM_RANK] = {"comm", "rank"},
		[SITE_ROLE_MPI_COMM_SIZE] = {"comm", "size"},
		[SITE_ROLE_MPI_COMM_DUP] = {"comm", "new", "result"},
		[SITE_ROLE_MPI_COMM_SPLIT] = {"comm", "key", "new", "result"},
		[SITE_ROLE_MPI_COMM_CREATE] = {"comm", "new", "result"},
		[SITE_ROLE_MPI_COMM_OTHER] = {"comm", "new", "result"},
		[SITE_ROLE_MPI_COMM_FREE] = {"comm", "result"},
		[SITE_ROLE_MPI_CANCEL] = {"request", "handle", "result"},
	};
	unsigned roles[SITE_ROLE_COUNT] = {0};
	struct error err = ERROR_INIT;
	struct call_set *set;

	(void)state;
	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add_file(set, "mpi", &err), 0);
	for (size_t i = 0; i < set->entries.len; i++) {
		const struct call_spec *spec = &set->entries.data[i]->spec;
		struct fetch_program_made made = make(spec, EM_X86_64);

		make(spec, EM_AARCH64);
		roles[spec->role]++;
		if (spec->role == SITE_ROLE_MPI_SENDRECV)
			assert_true(has_key(&made, "request") ||
				    (has_key(&made, "status") && has_key(&made, "matched")));
		if (spec->role == SITE_ROLE_MPI_MPROBE && !strstr(spec->source.text, "MPI_Probe("))
			assert_true(has_key(&made, "handle") && has_key(&made, "status") &&
				    has_key(&made, "matched"));
		for (unsigned k = 0; k < 8 && keys[spec->role][k]; k++)
			if (!has_key(&made, keys[spec->role][k]))
				fail_msg("%s: no %s", spec->source.text, keys[spec->role][k]);
	}
	for (unsigned role = SITE_ROLE_MPI_INIT; site_role_is_mpi(role); role++)
		assert_true(roles[role] >= 2);
	call_set_free(set);
}

/* The row of a function of one library: Open MPI with its own handles, or MPICH. */
static const struct call_spec *mpi_row_of(const struct call_set *set, const char *name, bool mpich)
{
	for (size_t i = 0; i < set->entries.len; i++) {
		const struct call_spec *spec = &set->entries.data[i]->spec;

		if (spec_names_match(&spec->libs, "libmpich") == mpich &&
		    spec_names_match(&spec->sides[0].names, name))
			return spec;
	}
	fail_msg("no row has %s", name);
	return NULL;
}

static unsigned count_bytes(const struct call_spec *spec)
{
	const struct spec_side *side = &spec->sides[0];

	for (unsigned i = 0; i < side->param_count; i++)
		if (side->params[i].name && !strcmp(side->params[i].name, "count"))
			return side->params[i].type.bytes;
	return 0;
}

/* A call that is not probed would not count among the messages or collectives of its rank. */
static void test_calls_of_mpi_with_large_counts_are_probed(void **state)
{
	static const char *const names[] = {
		"Send",
		"Ssend",
		"Bsend",
		"Rsend",
		"Isend",
		"Recv",
		"Irecv",
		"Send_init",
		"Recv_init",
		"Mrecv",
		"Imrecv",
		"Sendrecv",
		"Bcast",
		"Ibcast",
		"Reduce",
		"Ireduce",
		"Allreduce",
		"Iallreduce",
		"Scan",
		"Exscan",
		"Gather",
		"Scatter",
		"Allgather",
		"Alltoall",
		"Gatherv",
		"Scatterv",
		"Allgatherv",
		"Igatherv",
		"Iscatterv",
		"Iallgatherv",
		"Iscan",
		"Iexscan",
		"Igather",
		"Iscatter",
		"Iallgather",
		"Ialltoall",
		"Reduce_scatter_block",
		"Ireduce_scatter_block",
		"Neighbor_allgather",
		"Neighbor_alltoall",
		"Neighbor_allgatherv",
		"Sendrecv_replace",
	};
	static const char *const arrays[] = {
		"Alltoallv",      "Alltoallw",       "Ialltoallv",         "Ialltoallw",
		"Reduce_scatter", "Ireduce_scatter", "Neighbor_alltoallv", "Neighbor_alltoallw"};
	struct error err = ERROR_INIT;
	struct call_set *set;
	char name[64];

	(void)state;
	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add_file(set, "mpi", &err), 0);
	for (unsigned mpich = 0; mpich < 2; mpich++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			const struct call_spec *small;

			snprintf(name, sizeof(name), "MPI_%s", names[i]);
			small = mpi_row_of(set, name, mpich);
			assert_int_equal(count_bytes(small), 4);
			strcat(name, "_c");
			assert_int_equal(count_bytes(mpi_row_of(set, name, mpich)), 8);
			assert_int_equal(mpi_row_of(set, name, mpich)->role, small->role);
		}
		for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
			snprintf(name, sizeof(name), "MPI_%s_c", arrays[i]);
			mpi_row_of(set, name, mpich);
		}
	}
	call_set_free(set);
}

static bool has_row(const struct call_set *set, const char *name)
{
	for (size_t i = 0; i < set->entries.len; i++)
		if (spec_names_match(&set->entries.data[i]->spec.sides[0].names, name))
			return true;
	return false;
}

/* `why` records MPI without being asked. The set for --probes has all calls. */
static void test_calls_of_mpi_that_programs_make_in_loops_are_only_in_the_set(void **state)
{
	static const char *const polls[] = {"MPI_Test",     "MPI_Testall", "MPI_Testany",
					    "MPI_Testsome", "MPI_Iprobe",  "MPI_Improbe"};
	const struct fixture *fixture = *state;
	struct error err = ERROR_INIT;
	struct call_set *set;

	assert_int_equal(call_set_open(&set, &err), 0);
	assert_int_equal(call_set_add_file(set, "mpi", &err), 0);
	for (size_t i = 0; i < sizeof(polls) / sizeof(polls[0]); i++) {
		assert_false(has_row(fixture->set, polls[i]));
		assert_true(has_row(set, polls[i]));
	}
	assert_true(has_row(fixture->set, "MPI_Waitsome") && has_row(set, "MPI_Waitsome"));
	assert_true(has_row(fixture->set, "MPI_Allreduce") && has_row(set, "MPI_Allreduce"));
	call_set_free(set);
}

static void test_runtime_is_outer_driver_is_inner_and_launches_have_no_return(void **state)
{
	/* By the begin of the library's name. */
	static const struct {
		const char *lib, *category;
	} categories[] = {{"libcuda", "cuda"},
			  {"libamdhip64", "hip"},
			  {"libnccl", "nccl"},
			  {"librccl", "nccl"}};
	const struct fixture *fixture = *state;

	for (size_t i = 0; i < fixture->set->entries.len; i++) {
		const struct call_spec *spec = &fixture->set->entries.data[i]->spec;
		const char *lib = spec->libs.list[0].text;
		bool names = spec->role == SITE_ROLE_NAME || spec->role == SITE_ROLE_HANDLE;
		uint32_t nesting = spec->flags & (WAFFLE_CALL_OUTER | WAFFLE_CALL_INNER);

		if (!strncmp(lib, "libcudart", 9))
			assert_int_equal(nesting, names ? 0 : WAFFLE_CALL_OUTER);
		else if (!strcmp(lib, "libcuda"))
			assert_int_equal(nesting, names ? 0 : WAFFLE_CALL_INNER);
		else
			assert_int_equal(nesting, 0);
		if (spec->role == SITE_ROLE_LAUNCH)
			assert_true(spec->event &&
				    make(spec, EM_X86_64).fetch_program.returns == 0);
		for (size_t k = 0; k < sizeof(categories) / sizeof(categories[0]); k++)
			if (!strncmp(lib, categories[k].lib, strlen(categories[k].lib)))
				assert_string_equal(spec->category, categories[k].category);
	}
}

static bool libs_meet(const struct call_spec *a, const struct call_spec *b)
{
	for (unsigned i = 0; i < a->libs.count; i++)
		for (unsigned k = 0; k < b->libs.count; k++)
			if (!strcmp(a->libs.list[i].text, b->libs.list[k].text))
				return true;
	return false;
}

static void test_no_function_of_a_library_is_in_two_rows(void **state)
{
	const struct fixture *fixture = *state;

	for (size_t i = 0; i < fixture->set->entries.len; i++) {
		const struct call_spec *a = &fixture->set->entries.data[i]->spec;

		for (unsigned n = 0; n < a->sides[0].names.count; n++)
			for (size_t k = 0; k < i; k++) {
				const struct call_spec *b = &fixture->set->entries.data[k]->spec;

				if (libs_meet(a, b) &&
				    spec_names_match(&b->sides[0].names,
						     a->sides[0].names.list[n].text))
					fail_msg("%s is in two rows",
						 a->sides[0].names.list[n].text);
			}
	}
}

static const char *const x86_names[] = {"r15", "r14", "r13", "r12", "bp", "bx", "r11",
					"r10", "r9",  "r8",  "ax",  "cx", "dx", "si",
					"di",  "-",   "ip",  "-",   "-",  "sp"};

/* Appends how a value is found: "di", "[sp+8]", "[saved0+0]+256". */
static void describe(char *text, size_t size, const struct waffle_fetch *fetch, uint16_t machine)
{
	char place[64];

	if (fetch->from == WAFFLE_FETCH_SAVED)
		snprintf(place, sizeof(place), "saved%u", fetch->reg);
	else if (machine == EM_X86_64)
		snprintf(place, sizeof(place), "%s", x86_names[fetch->reg]);
	else
		snprintf(place, sizeof(place), fetch->reg == 31 ? "sp" : "x%u", fetch->reg);
	for (unsigned i = 0; i < fetch->loads; i++) {
		char inner[40];

		snprintf(inner, sizeof(inner), "%.39s", place);
		snprintf(place, sizeof(place), "[%s+%d]", inner, fetch->offset[i]);
	}
	snprintf(text + strlen(text), size - strlen(text), "%s%s%s",
		 !text[0]                              ? ""
		 : fetch->format == WAFFLE_FORMAT_HIGH ? "|"
						       : " ",
		 place, fetch->format == WAFFLE_FORMAT_SEQUENCE ? "#" : "");
	if (fetch->offset[fetch->loads])
		snprintf(text + strlen(text), size - strlen(text), "+%d",
			 fetch->offset[fetch->loads]);
}

/*
 * The locations of arguments, by the calling conventions and the prototypes. On x86-64 most were
 * also checked against NVIDIA's code. A dim3 has two words. After a ';' is what the entry saves for
 * the return, and what the return reads.
 */
static const struct expected {
	const char *name, *x86, *arm64;
} expected[] = {
	{"cudaLaunchKernel", "di si dx cx r8 [sp+8] [sp+16]", "x0 x1 x2 x3 x4 x6 x7"},
	{"cudaLaunchKernelExC", "si [di+0] [di+8] [di+12] [di+20] [di+24] [di+32]",
	 "x1 [x0+0] [x0+8] [x0+12] [x0+20] [x0+24] [x0+32]"},
	{"cuLaunchKernel", "di si|dx cx r8|r9 [sp+8] [sp+16] [sp+24]",
	 "x0 x1|x2 x3 x4|x5 x6 x7 [sp+0]"},
	{"cuLaunchKernelEx", "si [di+0] [di+8] [di+12] [di+20] [di+24] [di+32]",
	 "x1 [x0+0] [x0+8] [x0+12] [x0+20] [x0+24] [x0+32]"},
	{"cudaGraphLaunch", "di si", "x0 x1"},
	{"cudaMemcpyAsync", "dx cx r8; ax", "x2 x3 x4; x0"},
	{"cudaMemcpy2DAsync", "r8 r9 [sp+8] [sp+16]; ax", "x4 x5 x6 x7; x0"},
	{"cudaMemcpyPeerAsync", "si cx r8 r9; ax", "x1 x3 x4 x5; x0"},
	{"cuMemcpyHtoDAsync_v2", "dx cx; ax", "x2 x3; x0"},
	{"cudaMemsetAsync", "dx cx; ax", "x2 x3; x0"},
	{"cudaMemset3DAsync", "si; ax", "x3; x0"},
	{"cudaMalloc", "si; di; [saved0+0] ax", "x1; x0; [saved0+0] x0"},
	{"cudaStreamSynchronize", "di; ax", "x0; x0"},
	{"cudaEventRecord", "di si", "x0 x1"},
	{"cuModuleGetFunction", "; di dx; [saved0+0] saved1", "; x0 x2; [saved0+0] saved1"},
	{"hipLaunchKernel", "di si dx cx r8 [sp+8] [sp+16]", "x0 x1 x2 x3 x4 x6 x7"},
	{"hipExtLaunchKernel", "di si dx cx r8 [sp+8] [sp+16]", "x0 x1 x2 x3 x4 x6 x7"},
	{"hipLaunchCooperativeKernel", "di si dx cx r8 [sp+8] [sp+16]", "x0 x1 x2 x3 x4 x6 x7"},
	{"hipExtModuleLaunchKernel", "di si|dx cx r8|r9 [sp+8] [sp+16] [sp+24]",
	 "x0 x1|x2 x3 x4|x5 x6 x7 [sp+0]"},
	{"hipMemcpyPeerAsync", "si cx r8 r9; ax", "x1 x3 x4 x5; x0"},
	{"hipMemcpyDtoHAsync", "dx cx; ax", "x2 x3; x0"},
	{"ncclAllToAllv", "[sp+8] [sp+24] [[sp+16]+256] [[sp+16]+264] [[sp+16]+268] [sp+16]#; ax",
	 "x6 [sp+0] [x7+256] [x7+264] [x7+268] x7#; x0"},
	{"ncclAllReduce", "dx cx r8 [sp+8] [r9+256] [r9+264] [r9+268] r9#; ax",
	 "x2 x3 x4 x6 [x5+256] [x5+264] [x5+268] x5#; x0"},
	{"ncclAllGather", "dx cx r9 [r8+256] [r8+264] [r8+268] r8#; ax",
	 "x2 x3 x5 [x4+256] [x4+264] [x4+268] x4#; x0"},
	{"ncclBroadcast", "dx cx r8 [sp+8] [r9+256] [r9+264] [r9+268] r9#; ax",
	 "x2 x3 x4 x6 [x5+256] [x5+264] [x5+268] x5#; x0"},
	{"ncclReduce", "dx cx r8 r9 [sp+16] [[sp+8]+256] [[sp+8]+264] [[sp+8]+268] [sp+8]#; ax",
	 "x2 x3 x4 x5 x7 [x6+256] [x6+264] [x6+268] x6#; x0"},
	{"ncclSend", "si dx cx r9 [r8+256] [r8+264] [r8+268] r8#; ax",
	 "x1 x2 x3 x5 [x4+256] [x4+264] [x4+268] x4#; x0"},
	/* The id, 128 bytes by value, is on the stack of x86-64, and on aarch64 a pointer to it. */
	{"ncclCommInitRank", "si dx; di; [[saved0+0]+256] ax", "x1 x3; x0; [[saved0+0]+256] x0"},
	{"ncclCommInitRankConfig", "si dx; di; [[saved0+0]+256] ax",
	 "x1 x3; x0; [[saved0+0]+256] x0"},
	{"ncclCommInitRankScalable", "si dx cx; di; [[saved0+0]+256] ax",
	 "x1 x2 x3; x0; [[saved0+0]+256] x0"},
	{"ncclCommSplit", "si dx; cx; [[saved0+0]+256] [[saved0+0]+264] [[saved0+0]+268] ax",
	 "x1 x2; x3; [[saved0+0]+256] [[saved0+0]+264] [[saved0+0]+268] x0"},
};

static void check_place(const struct fixture *fixture, const struct expected *row, uint16_t machine,
			bool offsets_known)
{
	struct fetch_program_made made =
		make_with(row_of(fixture, row->name), machine, offsets_known);
	const struct waffle_fetch_program *fetch_program = &made.fetch_program;
	unsigned parts[3] = {fetch_program->begins, fetch_program->saves, fetch_program->returns};
	const char *want = machine == EM_X86_64 ? row->x86 : row->arm64;
	unsigned at = 0;
	char all[512] = "";

	for (unsigned part = 0; part < 3; part++) {
		char text[400] = "";

		for (unsigned k = 0; k < parts[part]; k++)
			describe(text, sizeof(text), &fetch_program->fetches[at++], machine);
		if (part &&
		    (text[0] || (part == 1 && fetch_program->returns && fetch_program->saves)))
			snprintf(all + strlen(all), sizeof(all) - strlen(all), "; ");
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s", text);
	}
	if (strcmp(all, want) != 0)
		fail_msg("%s: \"%s\", expected \"%s\"", row->name, all, want);
}

static void check_places(const struct fixture *fixture, uint16_t machine)
{
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		check_place(fixture, &expected[i], machine, true);
}

static void test_arguments_are_where_x86_64_passes_them(void **state)
{
	check_places(*state, EM_X86_64);
}

static void test_arguments_are_where_aarch64_passes_them(void **state)
{
	check_places(*state, EM_AARCH64);
}

/* Without the offsets of struct ncclComm what needs them is left out, and only that. */
static void test_unknown_offsets_leave_out_their_keys(void **state)
{
	const struct call_spec *spec = row_of(*state, "ncclAllReduce");
	struct error err = ERROR_INIT;
	struct fetch_program_made made;
	struct call_at at;

	call_at_function(&at, abi_find(EM_X86_64), &spec->sides[0]);
	assert_int_equal(fetch_program_make(&made, spec, &at, NULL, &err), 0);
	assert_false(has_key(&made, "comm") || has_key(&made, "rank") || has_key(&made, "nranks"));
	assert_true(has_key(&made, "count") && has_key(&made, "seq") && has_key(&made, "stream"));
}

/* Then the address tells which communicator a call is on, and its creation has what is the same on
 * all ranks: the first word of the ncclUniqueId, which is 128 bytes by value. */
static void test_unknown_offsets_add_keys_that_replace_them(void **state)
{
	static const struct expected places[] = {
		{"ncclAllReduce", "dx cx r8 [sp+8] r9# r9; ax", "x2 x3 x4 x6 x5# x5; x0"},
		{"ncclCommInitRank", "si dx [sp+8]; di; [saved0+0] ax",
		 "x1 x3 [x2+0]; x0; [saved0+0] x0"},
		{"ncclCommInitRankScalable", "si dx cx [r8+0]; di; [saved0+0] ax",
		 "x1 x2 x3 [x4+0]; x0; [saved0+0] x0"},
		{"ncclCommSplit", "si dx; cx; [saved0+0] ax", "x1 x2; x3; [saved0+0] x0"},
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		check_place(*state, &places[i], EM_X86_64, false);
		check_place(*state, &places[i], EM_AARCH64, false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_have_the_keys_of_their_role),
		cmocka_unit_test(test_calls_of_mpi_have_the_keys_of_their_role),
		cmocka_unit_test(test_calls_of_mpi_with_large_counts_are_probed),
		cmocka_unit_test(test_calls_of_mpi_that_programs_make_in_loops_are_only_in_the_set),
		cmocka_unit_test(test_runtime_is_outer_driver_is_inner_and_launches_have_no_return),
		cmocka_unit_test(test_no_function_of_a_library_is_in_two_rows),
		cmocka_unit_test(test_arguments_are_where_x86_64_passes_them),
		cmocka_unit_test(test_arguments_are_where_aarch64_passes_them),
		cmocka_unit_test(test_unknown_offsets_leave_out_their_keys),
		cmocka_unit_test(test_unknown_offsets_add_keys_that_replace_them),
	};

	return cmocka_run_group_tests(tests, open_tables, close_tables);
}

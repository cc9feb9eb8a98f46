// SPDX-License-Identifier: Apache-2.0
#include "probe/find/probe_site.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Since 6.18 arch/x86/kernel/uprobes.c emulates all nops, not only 0x90. */
#define X86_ALL_NOPS 6018
/* Since 6.18 the kernel also replaces nops by calls of a trampoline. */
#define X86_OPTIMISED 6018
/* Since 6.13 arch/arm64/kernel/probes/simulate-insn.c has simulate_nop(). */
#define ARM64_NOP 6013
#define PAGE_BYTES 4096
#define SYSCALL_UPROBE 336 /* on x86-64, since 6.18 */
#define X86_PREFIXES_MAX 14

/*
 * Determines which nop the kernel replaces by a call. uprobe(2) may only be called by the kernel's
 * own trampoline, and its error tells the version. It became EPROTO with "uprobes/x86: Allow to
 * copy uprobe trampolines on fork". Since then the kernel replaces a nop of ten bytes rather than
 * five, and children get the trampoline, too.
 */
static uint8_t optimised_nop(uint32_t version)
{
#ifdef __x86_64__
	if (syscall(SYSCALL_UPROBE) < 0 && errno == EPROTO)
		return 10;
	/* A seccomp filter may forbid the system call. Then assume the answer that does no harm. */
	return errno == ENXIO || version >= X86_OPTIMISED ? 5 : 0;
#else
	(void)version;
	return 0;
#endif
}

struct probe_site_kernel probe_site_kernel_running(void)
{
	struct probe_site_kernel kernel = {0};
	struct utsname name;
	unsigned major, minor;

	if (!uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2)
		kernel.version = major * 1000 + minor;
	kernel.optimised_nop = optimised_nop(kernel.version);
	return kernel;
}

/* Jumps inside a function. */
struct jumps {
	bool to_entry;  /* a loop back to the entry, where every round looks like a call */
	bool computed;  /* by a table or a pointer, to an unknown target */
	bool all;       /* the whole function could be decoded */
	uint64_t first; /* lowest target after the entry */
};

static void jumps_add(struct jumps *jumps, uint64_t entry, uint64_t target)
{
	jumps->to_entry |= target == entry;
	if (target > entry && target < jumps->first)
		jumps->first = target;
}

/*
 * Whether no jump in the function leads into (entry, place]. Otherwise a loop might hit the probe
 * several times per call. A computed jump is assumed not to lead before a push.
 */
static bool passed_once(const struct jumps *jumps, bool push, uint64_t place)
{
	return jumps->all && (push || !jumps->computed) && jumps->first > place;
}

/* ---- x86-64 ---- */

struct probe_site_decoder {
	csh handle;
	cs_insn *insn;
};

static bool decoder_open(struct probe_site_decoder *decoder)
{
	*decoder = (struct probe_site_decoder){0};
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->handle))
		return false;
	cs_option(decoder->handle, CS_OPT_DETAIL, CS_OPT_ON);
	decoder->insn = cs_malloc(decoder->handle);
	if (!decoder->insn)
		cs_close(&decoder->handle);
	return decoder->insn;
}

static void decoder_close(struct probe_site_decoder *decoder)
{
	cs_free(decoder->insn, 1);
	cs_close(&decoder->handle);
}

static bool decode(struct probe_site_decoder *decoder, const uint8_t **code, size_t *bytes,
		   uint64_t *address)
{
	return cs_disasm_iter(decoder->handle, code, bytes, address, decoder->insn);
}

/*
 * Detects AVX instructions whose opcode, read without their prefix, is a jump, nop, call or return.
 * The kernel misreads those (seen on 6.18; branch_setup_xol_ops() and arch_uprobe_analyze_insn() of
 * arch/x86/kernel/uprobes.c). It skips vpcmpeqd and vpor, and the program computes wrong results.
 * `code`: after other prefixes.
 */
static bool x86_mistaken(const uint8_t *code, size_t bytes)
{
	size_t prefix = code[0] == 0xc5 ? 2 : code[0] == 0xc4 ? 3 : code[0] == 0x62 ? 4 : 0;

	if (!prefix || prefix >= bytes)
		return false;
	switch (code[prefix]) {
	case 0x70 ... 0x7f: /* conditional jumps */
	case 0x90:          /* nop */
	case 0x9a:          /* far call */
	case 0x9d:          /* popf */
	case 0xc2:          /* returns */
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xe8 ... 0xeb: /* call, jumps */
	case 0xff:          /* calls and jumps through a register */
		return true;
	default:
		return false;
	}
}

/* Instructions that fail when they are single-stepped out of line. System calls return to the
 * address of the copy, and interrupts do similar. */
static bool x86_leaves(const uint8_t *code, size_t bytes)
{
	switch (code[0]) {
	case 0x0f: /* syscall, sysenter */
		return bytes > 1 && (code[1] == 0x05 || code[1] == 0x34);
	case 0xcc ... 0xcf: /* int3, int, into, iret */
	case 0xf1:          /* int1 */
		return true;
	default:
		return false;
	}
}

/* If repeated, every round counts as a hit. */
static bool x86_repeats(uint8_t opcode)
{
	return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
	       (opcode >= 0xaa && opcode <= 0xaf);
}

/* `code`: after all prefixes except REX. */
static bool x86_refused_opcode(const uint8_t *code, size_t bytes, bool repeated)
{
	size_t rex = bytes > 1 && (code[0] & 0xf0) == 0x40;

	/* In single-step mode `pushf` saves the trap flag, and the matching `popf` then ends the
	 * program. */
	return code[rex] == 0x9c || (repeated && x86_repeats(code[rex])) ||
	       x86_leaves(code + rex, bytes - rex) || x86_mistaken(code, bytes);
}

/*
 * Instructions that must not be probed. For prefixes this mirrors is_prefix_bad() of
 * arch/x86/kernel/uprobes.c: there the kernel sets no probe, or one that never fires.
 */
static bool x86_refused(const uint8_t *code, size_t bytes)
{
	bool repeated = false;

	for (size_t i = 0; i < bytes && i < X86_PREFIXES_MAX; i++) {
		switch (code[i]) {
		case 0x26: /* es */
		case 0x2e: /* cs */
		case 0x36: /* ss */
		case 0x3e: /* ds, notrack */
		case 0xf0: /* lock */
			return true;
		case 0xf2:
		case 0xf3:
			repeated = true;
			continue;
		case 0x64: /* fs */
		case 0x65: /* gs */
		case 0x66:
		case 0x67:
			continue;
		default:
			return x86_refused_opcode(code + i, bytes - i, repeated);
		}
	}
	return false;
}

static bool x86_push(const cs_insn *insn)
{
	const uint8_t *b = insn->bytes;

	return (insn->size == 1 && (b[0] & 0xf8) == 0x50) ||
	       (insn->size == 2 && b[0] == 0x41 && (b[1] & 0xf8) == 0x50);
}

static bool x86_nop(const struct probe_site_kernel *kernel, const cs_insn *insn)
{
	const uint8_t *opcode = insn->detail->x86.opcode;

	if (insn->id != X86_INS_NOP)
		return false;
	return opcode[0] == 0x90 ||
	       (opcode[0] == 0x0f && opcode[1] == 0x1f && kernel->version >= X86_ALL_NOPS);
}

/* Direct jumps and calls. The kernel does not emulate those with an operand-size prefix either. */
static bool x86_branch(const cs_insn *insn)
{
	const uint8_t *opcode = insn->detail->x86.opcode;

	if (memchr(insn->detail->x86.prefix, 0x66, sizeof(insn->detail->x86.prefix)))
		return false;
	return opcode[0] == 0xe8 || opcode[0] == 0xe9 || opcode[0] == 0xeb ||
	       (opcode[0] & 0xf0) == 0x70 || (opcode[0] == 0x0f && (opcode[1] & 0xf0) == 0x80);
}

/*
 * Whether insn_is_nop() of arch/x86/lib/insn-eval.c may treat an instruction of five bytes as a
 * nop. Besides `nop` these are `jmp .+5` and `lea (%rsi,%riz),%rsi`.
 */
static bool x86_like_nop(const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *operands = x86->operands;

	switch (x86->opcode[0]) {
	case 0x0f:
		return x86->opcode[1] == 0x1f;
	case 0x90:
		return true;
	case 0x89: /* mov */
		return operands[0].type == X86_OP_REG && operands[1].type == X86_OP_REG &&
		       operands[0].reg == operands[1].reg;
	case 0x8d: /* lea */
		return operands[0].reg == operands[1].mem.base && !operands[1].mem.disp;
	case 0xe9: /* jmp */
	case 0xeb:
		return (uint64_t)operands[0].imm == insn->address + insn->size;
	default:
		return false;
	}
}

/*
 * Whether the kernel replaces the instruction by a call after its first hit. For five bytes this is
 * harmful: the call overwrites data of a leaf function below the stack pointer. In children it
 * jumps to unmapped memory, because fork() does not copy the trampoline. For ten bytes it is
 * correct (check `forks` of tests/kernels).
 */
static bool x86_optimised(const struct probe_site_kernel *kernel, const cs_insn *insn)
{
	static const uint8_t nop10[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84};

	if (!kernel->optimised_nop || insn->size != kernel->optimised_nop ||
	    insn->address % PAGE_BYTES + insn->size > PAGE_BYTES)
		return false;
	return insn->size == 5 ? x86_like_nop(insn) : !memcmp(insn->bytes, nop10, sizeof(nop10));
}

static enum object_probe_cost x86_cost(const struct probe_site_kernel *kernel, const cs_insn *insn)
{
	if (x86_optimised(kernel, insn))
		return insn->size == 5 ? OBJECT_COST_REFUSED : OBJECT_COST_OPTIMISED;
	if (x86_refused(insn->bytes, insn->size))
		return OBJECT_COST_REFUSED;
	if (x86_push(insn) || x86_nop(kernel, insn) || x86_branch(insn))
		return OBJECT_COST_EMULATED;
	return OBJECT_COST_STEPPED;
}

/* Registers with arguments (System V ABI), and the stack pointer. */
static bool x86_holds_argument(unsigned reg)
{
	static const x86_reg general[] = {
		X86_REG_RDI, X86_REG_EDI, X86_REG_DI,  X86_REG_DIL, X86_REG_RSI, X86_REG_ESI,
		X86_REG_SI,  X86_REG_SIL, X86_REG_RDX, X86_REG_EDX, X86_REG_DX,  X86_REG_DL,
		X86_REG_DH,  X86_REG_RCX, X86_REG_ECX, X86_REG_CX,  X86_REG_CL,  X86_REG_CH,
		X86_REG_R8,  X86_REG_R8D, X86_REG_R8W, X86_REG_R8B, X86_REG_R9,  X86_REG_R9D,
		X86_REG_R9W, X86_REG_R9B, X86_REG_RSP, X86_REG_ESP, X86_REG_SP,  X86_REG_SPL,
	};

	for (size_t i = 0; i < sizeof(general) / sizeof(*general); i++)
		if (reg == (unsigned)general[i])
			return true;
	return false;
}

/* Instructions that write no memory, and no register except a first operand that is one. */
static bool x86_simple(unsigned id)
{
	static const x86_insn simple[] = {
		X86_INS_MOV, X86_INS_MOVABS, X86_INS_MOVZX, X86_INS_MOVSX, X86_INS_MOVSXD,
		X86_INS_LEA, X86_INS_XOR,    X86_INS_AND,   X86_INS_OR,    X86_INS_ADD,
		X86_INS_SUB, X86_INS_SHL,    X86_INS_SHR,   X86_INS_SAR,   X86_INS_INC,
		X86_INS_DEC, X86_INS_NEG,    X86_INS_NOT,   X86_INS_SBB,   X86_INS_ADC,
	};

	for (size_t i = 0; i < sizeof(simple) / sizeof(*simple); i++)
		if (id == (unsigned)simple[i])
			return true;
	return false;
}

/*
 * Whether a probe after this instruction sees the same as at the entry. Unknown instructions fail,
 * because decoders' tables of written operands have had gaps.
 */
static bool x86_passes(const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;

	if (insn->id == X86_INS_ENDBR64 || insn->id == X86_INS_NOP || insn->id == X86_INS_TEST ||
	    insn->id == X86_INS_CMP)
		return true;
	return x86_simple(insn->id) && x86->op_count && x86->operands[0].type == X86_OP_REG &&
	       !x86_holds_argument(x86->operands[0].reg);
}

static struct jumps x86_jumps_of(struct probe_site_decoder *decoder, const uint8_t *code,
				 size_t bytes, uint64_t entry)
{
	struct jumps jumps = {.first = UINT64_MAX};
	uint64_t address = entry;

	while (bytes && decode(decoder, &code, &bytes, &address)) {
		const cs_x86 *x86 = &decoder->insn->detail->x86;

		if (!cs_insn_group(decoder->handle, decoder->insn, X86_GRP_JUMP))
			continue;
		if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
			jumps.computed = true;
		else
			jumps_add(&jumps, entry, (uint64_t)x86->operands[0].imm);
	}
	jumps.all = !bytes;
	return jumps;
}

/*
 * Searches for a better place after an expensive first instruction, or one that must not be probed.
 * A push usually comes before all loops of a function. For any other instruction all jumps must be
 * known.
 */
static struct probe_site x86_place(const struct probe_site_kernel *kernel,
				   struct probe_site_decoder *decoder, const uint8_t *code,
				   size_t bytes, bool whole, uint64_t entry)
{
	/* The decoder does not know all instructions. */
	bool refused = x86_refused(code, bytes);
	struct probe_site place = {0, refused ? OBJECT_COST_REFUSED : OBJECT_COST_UNKNOWN};
	const uint8_t *at = code;
	size_t left = bytes;
	uint64_t next = entry;
	struct jumps jumps = {.to_entry = false};

	if (whole)
		jumps = x86_jumps_of(decoder, code, bytes, entry);
	if (jumps.to_entry)
		return (struct probe_site){0, OBJECT_COST_REFUSED};
	while (decode(decoder, &at, &left, &next)) {
		uint64_t address = decoder->insn->address;
		enum object_probe_cost cost = x86_cost(kernel, decoder->insn);
		bool cheap = cost == OBJECT_COST_OPTIMISED || cost == OBJECT_COST_EMULATED;
		bool push = x86_push(decoder->insn);
		bool passes = x86_passes(decoder->insn);
		bool once = address == entry || (whole ? passed_once(&jumps, push, address) : push);
		struct probe_site here = {(uint16_t)(address - entry), (uint8_t)cost};

		if (cheap && once)
			return here;
		if (address == entry ||
		    (once && cost == OBJECT_COST_STEPPED && place.cost == OBJECT_COST_REFUSED))
			place = here;
		if (!passes || next - entry > PROBE_SITE_SHIFT_MAX)
			break;
	}
	return place;
}

/* ---- aarch64 ---- */

#define ARM64_BYTES 4
#define ARM64_NOP_WORD 0xd503201fu

struct place_pattern {
	uint32_t mask, value;
};

static bool matches(uint32_t word, const struct place_pattern *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((word & patterns[i].mask) == patterns[i].value)
			return true;
	return false;
}

static uint32_t arm64_word(const uint8_t *code)
{
	return (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 |
	       (uint32_t)code[3] << 24;
}

/* Encodings that arch/arm64/kernel/probes/decode-insn.c simulates (Arm ARM, C4.1). */
static enum object_probe_cost arm64_cost(const struct probe_site_kernel *kernel, uint32_t word)
{
	static const struct place_pattern simulated[] = {
		{0x1f000000, 0x10000000}, /* adr, adrp */
		{0x7c000000, 0x14000000}, /* b, bl */
		{0xff000010, 0x54000000}, /* b.cond */
		{0x7e000000, 0x34000000}, /* cbz, cbnz */
		{0x7e000000, 0x36000000}, /* tbz, tbnz */
		{0xff9ffc1f, 0xd61f0000}, /* br, blr, ret */
		{0xbf000000, 0x18000000}, /* ldr literal, 32 and 64 bits */
		{0xff000000, 0x98000000}, /* ldrsw literal */
	};

	if (word == ARM64_NOP_WORD && kernel->version >= ARM64_NOP)
		return OBJECT_COST_EMULATED;
	return matches(word, simulated, sizeof(simulated) / sizeof(*simulated))
		       ? OBJECT_COST_EMULATED
		       : OBJECT_COST_STEPPED;
}

/* Passes `bti`, but not `paciasp`: after it the return address is signed, and a return probe cannot
 * replace it. */
static bool arm64_passes(uint32_t word)
{
	return (word & 0xffffff3f) == 0xd503241f || word == ARM64_NOP_WORD;
}

/* Addresses start at 0, since all branches are relative. */
static struct jumps arm64_jumps_of(const uint8_t *code, size_t bytes)
{
	static const struct place_pattern branch = {0xfc000000, 0x14000000};
	static const struct place_pattern imm19[] = {{0xff000010, 0x54000000},
						     {0x7e000000, 0x34000000}};
	static const struct place_pattern tests = {0x7e000000, 0x36000000};
	static const struct place_pattern indirect = {0xfffffc1f, 0xd61f0000};
	struct jumps jumps = {.all = true, .first = UINT64_MAX};

	for (size_t at = 0; at + ARM64_BYTES <= bytes; at += ARM64_BYTES) {
		uint32_t word = arm64_word(code + at);
		int64_t words;

		jumps.computed |= matches(word, &indirect, 1);
		if (matches(word, &branch, 1))
			words = (int32_t)(word << 6) >> 6;
		else if (matches(word, imm19, 2))
			words = (int32_t)(word << 8) >> 13;
		else if (matches(word, &tests, 1))
			words = (int32_t)(word << 13) >> 18;
		else
			continue;
		jumps_add(&jumps, 0, at + (uint64_t)(words * ARM64_BYTES));
	}
	return jumps;
}

static struct probe_site arm64_place(const struct probe_site_kernel *kernel, const uint8_t *code,
				     size_t bytes, bool whole)
{
	struct probe_site entry = {0, OBJECT_COST_UNKNOWN};
	struct jumps jumps = {.to_entry = false};

	if (whole)
		jumps = arm64_jumps_of(code, bytes);
	if (jumps.to_entry)
		return (struct probe_site){0, OBJECT_COST_REFUSED};
	for (size_t at = 0; at + ARM64_BYTES <= bytes && at <= PROBE_SITE_SHIFT_MAX;
	     at += ARM64_BYTES) {
		uint32_t word = arm64_word(code + at);
		enum object_probe_cost cost = arm64_cost(kernel, word);

		if (!at)
			entry.cost = (uint8_t)cost;
		if (cost == OBJECT_COST_EMULATED && (!at || passed_once(&jumps, false, at)))
			return (struct probe_site){(uint16_t)at, (uint8_t)cost};
		if (!arm64_passes(word))
			break;
	}
	return entry;
}

struct probe_site probe_site_function(const struct probe_site_kernel *kernel, uint16_t machine,
				      const uint8_t *code, size_t bytes, bool whole,
				      uint64_t address)
{
	struct probe_site place = {0, OBJECT_COST_UNKNOWN};
	struct probe_site_decoder decoder;

	if (machine == EM_AARCH64)
		return arm64_place(kernel, code, bytes, whole);
	if (machine != EM_X86_64 || !decoder_open(&decoder))
		return place;
	place = x86_place(kernel, &decoder, code, bytes, whole, address);
	decoder_close(&decoder);
	return place;
}

enum object_probe_cost probe_site_cost(const struct probe_site_kernel *kernel, uint16_t machine,
				       const uint8_t *code, size_t bytes, uint64_t address)
{
	enum object_probe_cost cost = OBJECT_COST_UNKNOWN;
	struct probe_site_decoder decoder;

	if (machine == EM_AARCH64 && bytes >= ARM64_BYTES)
		return arm64_cost(kernel, arm64_word(code));
	if (machine != EM_X86_64 || !decoder_open(&decoder))
		return cost;
	if (decode(&decoder, &code, &bytes, &address))
		cost = x86_cost(kernel, decoder.insn);
	decoder_close(&decoder);
	return cost;
}

/* Whether this compares the stack pointer, or a value computed from it, with the limit in Go's `g`,
 * to which r14 points. */
static bool x86_compares_limit(const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;

	return insn->id == X86_INS_CMP && x86->op_count == 2 &&
	       x86->operands[0].type == X86_OP_REG && x86->operands[1].type == X86_OP_MEM &&
	       x86->operands[1].mem.base == X86_REG_R14;
}

/* Instructions that may precede the comparison in functions with large frames. */
#define GO_BEFORE_LIMIT 4

static struct probe_site x86_place_go(const struct probe_site_kernel *kernel,
				      struct probe_site_decoder *decoder, const uint8_t *code,
				      size_t bytes, uint64_t entry)
{
	struct probe_site first = {0,
				   (uint8_t)probe_site_cost(kernel, EM_X86_64, code, bytes, entry)};
	struct probe_site place = {0, OBJECT_COST_UNKNOWN};
	uint64_t next = entry;
	bool compared = false;

	for (int i = 0; i < GO_BEFORE_LIMIT && decode(decoder, &code, &bytes, &next); i++) {
		if (compared && decoder->insn->id != X86_INS_JBE)
			return first;
		if (compared) {
			place.shift = (uint16_t)(next - entry);
			place.cost = (uint8_t)probe_site_cost(kernel, EM_X86_64, code, bytes, next);
			return place.cost == OBJECT_COST_REFUSED || !bytes ? first : place;
		}
		compared = x86_compares_limit(decoder->insn);
		if (!compared && decoder->insn->id != X86_INS_LEA)
			return first;
	}
	return first;
}

struct probe_site probe_site_go(const struct probe_site_kernel *kernel, uint16_t machine,
				const uint8_t *code, size_t bytes, uint64_t address)
{
	struct probe_site place = {0,
				   (uint8_t)probe_site_cost(kernel, machine, code, bytes, address)};
	struct probe_site_decoder decoder;

	if (machine != EM_X86_64 || !decoder_open(&decoder))
		return place;
	place = x86_place_go(kernel, &decoder, code, bytes, address);
	decoder_close(&decoder);
	return place;
}

// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf/cfi_program_internal.h"

#include <dwarf.h>
#include <string.h>

#define REMEMBERED_MAX 16 /* limit of states that a program may save; compilers nest one */

/* ---- bytes ---- */

uint64_t cfi_fixed(struct cfi_bytes *bytes, unsigned size)
{
	uint64_t value = 0;

	if (size > sizeof(value) || (size_t)(bytes->end - bytes->at) < size) {
		bytes->bad = true;
		bytes->at = bytes->end;
		return 0;
	}
	memcpy(&value, bytes->at, size);
	bytes->at += size;
	return value;
}

uint64_t cfi_uleb(struct cfi_bytes *bytes)
{
	uint64_t value = 0, byte = 0x80;

	for (unsigned shift = 0; byte & 0x80; shift += 7) {
		byte = cfi_fixed(bytes, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
	}
	return value;
}

int64_t cfi_sleb(struct cfi_bytes *bytes)
{
	uint64_t value = 0, byte = 0x80;
	unsigned shift = 0;

	for (; byte & 0x80; shift += 7) {
		byte = cfi_fixed(bytes, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
	}
	if (shift < 64 && byte & 0x40)
		value |= ~0ull << shift;
	return (int64_t)value;
}

void cfi_skip(struct cfi_bytes *bytes, uint64_t count)
{
	if (count > (size_t)(bytes->end - bytes->at)) {
		bytes->bad = true;
		bytes->at = bytes->end;
	} else {
		bytes->at += count;
	}
}

/* ---- converting states to rows ---- */

static bool fits(int64_t value, int64_t min, int64_t max)
{
	return value >= min && value <= max && value % 8 == 0;
}

static struct waffle_unwind_row bad_row(void)
{
	return (struct waffle_unwind_row){.rule = WAFFLE_UNWIND_BAD};
}

static bool row_cfa(const struct cfi_state *state, struct waffle_unwind_row *row)
{
	static const uint8_t rules[] = {
		[CFI_CFA_NONE] = WAFFLE_UNWIND_BAD, [CFI_CFA_SP] = WAFFLE_UNWIND_SP,
		[CFI_CFA_FP] = WAFFLE_UNWIND_FP,    [CFI_CFA_FP_DEREF] = WAFFLE_UNWIND_FP_DEREF,
		[CFI_CFA_PLT] = WAFFLE_UNWIND_PLT,
	};

	row->rule = rules[state->kind];
	switch (state->kind) {
	case CFI_CFA_PLT:
		row->cfa = (uint16_t)state->offset;
		return true;
	case CFI_CFA_FP_DEREF:
		row->cfa = (uint16_t)(state->offset / 8);
		return fits(state->offset, 8 * INT16_MIN, 8 * INT16_MAX);
	case CFI_CFA_SP:
	case CFI_CFA_FP:
		row->cfa = (uint16_t)(state->offset / 8);
		return fits(state->offset, 0, 8 * UINT16_MAX);
	default:
		return false;
	}
}

static bool row_fp_at(struct waffle_unwind_row *row, unsigned flag, int64_t offset)
{
	row->rule |= flag;
	row->fp = (int8_t)(offset / 8);
	return fits(offset, 8 * INT8_MIN, 8 * INT8_MAX);
}

static bool row_fp(const struct cfi_machine *machine, const struct cfi_state *state,
		   struct waffle_unwind_row *row)
{
	int64_t offset = state->fp.offset;

	switch (state->fp.kind) {
	case CFI_AT_CFA:
		if (!machine->ra_in_register || offset >= 8 * INT8_MIN)
			return row_fp_at(row, WAFFLE_UNWIND_FP_SAVED, offset);
		/* aarch64 saves the frame pointer at the low end of a large frame. */
		if (state->kind != CFI_CFA_SP && state->kind != CFI_CFA_FP)
			return false;
		return row_fp_at(row, WAFFLE_UNWIND_FP_AT_REGISTER, offset + state->offset);
	case CFI_AT_FP:
		if (machine->ra_in_register && state->kind != CFI_CFA_FP)
			return false;
		return row_fp_at(row, WAFFLE_UNWIND_FP_AT_REGISTER, offset);
	case CFI_SAME:
		return true;
	default:
		row->rule |= WAFFLE_UNWIND_FP_LOST;
		return true;
	}
}

/* Records where the return address is. False: a row cannot express the location. */
static bool row_ra(const struct cfi_machine *machine, const struct cfi_state *state,
		   struct waffle_unwind_row *row)
{
	if (!machine->ra_in_register)
		return state->ra.kind == CFI_AT_CFA && state->ra.offset == -8;
	if (state->ra.kind == CFI_SAME)
		return true;
	if (state->ra.kind != CFI_AT_CFA)
		return false;
	if (row->rule & (WAFFLE_UNWIND_FP_SAVED | WAFFLE_UNWIND_FP_AT_REGISTER)) {
		if (state->fp.kind != CFI_AT_CFA || state->ra.offset != state->fp.offset + 8)
			return false;
	} else {
		row->fp = (int8_t)(state->ra.offset / 8);
		if (!fits(state->ra.offset, 8 * INT8_MIN, 8 * INT8_MAX))
			return false;
	}
	row->rule |= WAFFLE_UNWIND_RA_SAVED;
	return true;
}

static struct waffle_unwind_row row_of(const struct cfi_common *common,
				       const struct cfi_state *state)
{
	struct waffle_unwind_row row = {0};

	if (state->ra.kind == CFI_UNDEFINED)
		return (struct waffle_unwind_row){.rule = WAFFLE_UNWIND_END};
	if (common->signal)
		return common->machine->ra_in_register
			       ? bad_row()
			       : (struct waffle_unwind_row){.rule = WAFFLE_UNWIND_SIGNAL};
	if (!row_cfa(state, &row) || !row_fp(common->machine, state, &row) ||
	    !row_ra(common->machine, state, &row))
		return bad_row();
	return row;
}

/* ---- expressions: only those that compilers and linkers write ---- */

static bool is_base_register(uint64_t operation, uint64_t number)
{
	return number < 32 && operation == DW_OP_breg0 + number;
}

/* "stack pointer + 8 + ((instruction & 15) >= n) * 8": the rule of ld, gold and lld for .plt. */
static bool is_plt(const struct cfi_machine *machine, struct cfi_bytes bytes, int64_t *from)
{
	static const unsigned char begin[] = {DW_OP_lit15, DW_OP_and},
				   end[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	const unsigned char *at = bytes.at;

	if (machine->ra_in_register || bytes.end - at != 11 || at[0] != DW_OP_breg0 + machine->sp ||
	    at[1] != 8 || at[2] != DW_OP_breg0 + machine->ra || at[3] != 0 ||
	    memcmp(at + 4, begin, sizeof(begin)) != 0 || memcmp(at + 7, end, sizeof(end)) != 0 ||
	    at[6] < DW_OP_lit0 || at[6] > DW_OP_lit15)
		return false;
	*from = at[6] - DW_OP_lit0;
	return true;
}

/* Reads "register + offset" and leaves `bytes` after it. */
static bool expression_base(const struct cfi_machine *machine, struct cfi_bytes *bytes, bool *is_fp,
			    int64_t *offset)
{
	uint64_t operation = cfi_fixed(bytes, 1);

	*is_fp = is_base_register(operation, machine->fp);
	if (!*is_fp && !is_base_register(operation, machine->sp))
		return false;
	*offset = cfi_sleb(bytes);
	return !bytes->bad;
}

static void set_cfa_expression(const struct cfi_machine *machine, struct cfi_state *state,
			       struct cfi_bytes bytes)
{
	int64_t offset;
	bool is_fp;

	state->kind = CFI_CFA_NONE;
	if (is_plt(machine, bytes, &offset)) {
		state->kind = CFI_CFA_PLT;
		state->offset = offset;
	} else if (expression_base(machine, &bytes, &is_fp, &offset)) {
		state->offset = offset;
		if (bytes.at == bytes.end)
			state->kind = is_fp ? CFI_CFA_FP : CFI_CFA_SP;
		else if (is_fp && bytes.end - bytes.at == 1 && *bytes.at == DW_OP_deref)
			state->kind = CFI_CFA_FP_DEREF;
	}
}

static struct cfi_place place_of_expression(const struct cfi_machine *machine,
					    struct cfi_bytes bytes)
{
	struct cfi_place place = {.kind = CFI_AT_FP};
	bool is_fp;

	if (!expression_base(machine, &bytes, &is_fp, &place.offset) || !is_fp ||
	    bytes.at != bytes.end)
		place.kind = CFI_LOST;
	return place;
}

/* ---- instructions ---- */

struct cfi_run {
	const struct cfi_common *common;
	struct cfi_bytes bytes;
	struct cfi_state state, remembered[REMEMBERED_MAX];
	unsigned depth;
	uint64_t pc, to; /* FDE: current address and end */
	cfi_row_fn row;  /* NULL: the program of a CIE */
	void *arg;
	bool stopped;
};

static void put_row(struct cfi_run *run, uint64_t next)
{
	struct waffle_unwind_row row;

	if (next <= run->pc || !run->row)
		return;
	row = row_of(run->common, &run->state);
	run->stopped = run->stopped || !run->row(run->pc, &row, run->arg);
	run->pc = next;
}

static void advance(struct cfi_run *run, uint64_t units)
{
	uint64_t room = run->to - run->pc, align = run->common->code_align;

	if (align && units > room / align)
		run->bytes.bad = true;
	else
		put_row(run, run->pc + units * align);
}

static void set_cfa_register(struct cfi_run *run, uint64_t reg)
{
	const struct cfi_machine *machine = run->common->machine;

	run->state.kind = reg == machine->sp   ? CFI_CFA_SP
			  : reg == machine->fp ? CFI_CFA_FP
					       : CFI_CFA_NONE;
}

static void set_place(struct cfi_run *run, uint64_t reg, struct cfi_place place)
{
	if (reg == run->common->machine->fp)
		run->state.fp = place;
	else if (reg == run->common->machine->ra)
		run->state.ra = place;
}

static void set_saved(struct cfi_run *run, uint64_t reg, int64_t units)
{
	int64_t offset;

	if (__builtin_mul_overflow(units, run->common->data_align, &offset))
		run->bytes.bad = true;
	else
		set_place(run, reg, (struct cfi_place){CFI_AT_CFA, offset});
}

static void set_initial(struct cfi_run *run, uint64_t reg)
{
	if (reg == run->common->machine->fp)
		run->state.fp = run->common->initial.fp;
	else if (reg == run->common->machine->ra)
		run->state.ra = run->common->initial.ra;
}

static void remember(struct cfi_run *run, bool restore)
{
	if (restore ? !run->depth : run->depth == REMEMBERED_MAX)
		run->bytes.bad = true;
	else if (restore)
		run->state = run->remembered[--run->depth];
	else
		run->remembered[run->depth++] = run->state;
}

static struct cfi_bytes take_block(struct cfi_run *run)
{
	uint64_t len = cfi_uleb(&run->bytes);
	struct cfi_bytes block = {.at = run->bytes.at};

	cfi_skip(&run->bytes, len);
	block.end = run->bytes.at;
	if (run->bytes.bad)
		block.at = block.end;
	return block;
}

static void run_cfa(struct cfi_run *run, unsigned code)
{
	struct cfi_bytes *bytes = &run->bytes;

	switch (code) {
	case DW_CFA_def_cfa:
		set_cfa_register(run, cfi_uleb(bytes));
		run->state.offset = (int64_t)cfi_uleb(bytes);
		break;
	case DW_CFA_def_cfa_sf:
		set_cfa_register(run, cfi_uleb(bytes));
		if (__builtin_mul_overflow(cfi_sleb(bytes), run->common->data_align,
					   &run->state.offset))
			bytes->bad = true;
		break;
	case DW_CFA_def_cfa_register:
		set_cfa_register(run, cfi_uleb(bytes));
		break;
	case DW_CFA_def_cfa_offset:
		run->state.offset = (int64_t)cfi_uleb(bytes);
		break;
	case DW_CFA_def_cfa_offset_sf:
		if (__builtin_mul_overflow(cfi_sleb(bytes), run->common->data_align,
					   &run->state.offset))
			bytes->bad = true;
		break;
	default:
		set_cfa_expression(run->common->machine, &run->state, take_block(run));
	}
}

static void run_place(struct cfi_run *run, unsigned code)
{
	uint64_t reg = cfi_uleb(&run->bytes);

	switch (code) {
	case DW_CFA_offset_extended:
		set_saved(run, reg, (int64_t)cfi_uleb(&run->bytes));
		break;
	case DW_CFA_offset_extended_sf:
		set_saved(run, reg, cfi_sleb(&run->bytes));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set_saved(run, reg, -(int64_t)(cfi_uleb(&run->bytes) & INT64_MAX));
		break;
	case DW_CFA_restore_extended:
		set_initial(run, reg);
		break;
	case DW_CFA_undefined:
		set_place(run, reg, (struct cfi_place){.kind = CFI_UNDEFINED});
		break;
	case DW_CFA_same_value:
		set_place(run, reg, (struct cfi_place){.kind = CFI_SAME});
		break;
	case DW_CFA_expression:
		set_place(run, reg, place_of_expression(run->common->machine, take_block(run)));
		break;
	case DW_CFA_val_expression:
		take_block(run);
		set_place(run, reg, (struct cfi_place){.kind = CFI_LOST});
		break;
	default: /* a register or a value: has a further operand */
		cfi_uleb(&run->bytes);
		set_place(run, reg, (struct cfi_place){.kind = CFI_LOST});
	}
}

static void run_one(struct cfi_run *run)
{
	struct cfi_bytes *bytes = &run->bytes;
	unsigned code = (unsigned)cfi_fixed(bytes, 1), low = code & 0x3f;

	switch (code & 0xc0) {
	case DW_CFA_advance_loc:
		advance(run, low);
		return;
	case DW_CFA_offset:
		set_saved(run, low, (int64_t)cfi_uleb(bytes));
		return;
	case DW_CFA_restore:
		set_initial(run, low);
		return;
	default:
		break;
	}
	switch (code) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* on aarch64: the return address is signed from here on */
		break;
	case DW_CFA_advance_loc1:
		advance(run, cfi_fixed(bytes, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(run, cfi_fixed(bytes, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(run, cfi_fixed(bytes, 4));
		break;
	case DW_CFA_remember_state:
	case DW_CFA_restore_state:
		remember(run, code == DW_CFA_restore_state);
		break;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		run_cfa(run, code);
		break;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		run_place(run, code);
		break;
	case DW_CFA_GNU_args_size:
		cfi_uleb(bytes);
		break;
	default: /* DW_CFA_set_loc or an unknown instruction */
		bytes->bad = true;
	}
}

static bool run_all(struct cfi_run *run)
{
	while (run->bytes.at < run->bytes.end && !run->bytes.bad && !run->stopped)
		run_one(run);
	return !run->bytes.bad;
}

bool cfi_run_common(struct cfi_common *common, struct cfi_bytes program)
{
	struct cfi_run run = {.common = common, .bytes = program};

	common->initial = run.state;
	if (!run_all(&run))
		return false;
	common->initial = run.state;
	return true;
}

bool cfi_run(const struct cfi_common *common, struct cfi_bytes program, uint64_t from, uint64_t to,
	     cfi_row_fn row, void *arg)
{
	struct cfi_run run = {.common = common,
			      .bytes = program,
			      .state = common->initial,
			      .pc = from,
			      .to = to,
			      .row = row,
			      .arg = arg};
	bool good = run_all(&run);

	if (!good) /* the rules after a malformed instruction are unknown */
		run.state = (struct cfi_state){0};
	put_row(&run, to);
	return good;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Operands of USDT probes, in the syntax of the compiler's assembler: "-4@%edi", "8@16(%rsp)",
 * "8@(%rax,%rcx,8)", "4@$5", "8@count+4(%rip)"; on aarch64 "-4@x0", "8@[sp, 16]", "8@16". The
 * number before '@' is the size in bytes, negative if the value is signed, followed by 'f' if it is
 * a floating-point value. Without a size the operand is a word.
 */
#include "probe/find/usdt_internal.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct usdt_scan {
	const char *at;
	const struct call_at *place;
	const struct usdt_note *note;
	usdt_symbol *symbol;
	void *arg;
};

/* A parsed operand: a fetch, or marked as unreadable. */
struct usdt_operand {
	bool readable;
	struct waffle_fetch fetch;
};

static const struct x86_name {
	char name[5];
	uint8_t reg;
} x86_names[] = {
	{"rax", X86_AX}, {"eax", X86_AX}, {"ax", X86_AX},  {"al", X86_AX},  {"rbx", X86_BX},
	{"ebx", X86_BX}, {"bx", X86_BX},  {"bl", X86_BX},  {"rcx", X86_CX}, {"ecx", X86_CX},
	{"cx", X86_CX},  {"cl", X86_CX},  {"rdx", X86_DX}, {"edx", X86_DX}, {"dx", X86_DX},
	{"dl", X86_DX},  {"rsi", X86_SI}, {"esi", X86_SI}, {"si", X86_SI},  {"sil", X86_SI},
	{"rdi", X86_DI}, {"edi", X86_DI}, {"di", X86_DI},  {"dil", X86_DI}, {"rbp", X86_BP},
	{"ebp", X86_BP}, {"bp", X86_BP},  {"bpl", X86_BP}, {"rsp", X86_SP}, {"esp", X86_SP},
	{"sp", X86_SP},  {"spl", X86_SP}, {"rip", X86_IP},
};

/* Parses %r8 … %r15 and their parts. */
static bool x86_numbered(const char *name, size_t len, uint8_t *reg)
{
	unsigned number = 0;
	size_t at = 1;

	if (len < 2 || name[0] != 'r')
		return false;
	while (at < len && isdigit((unsigned char)name[at]) && at < 3)
		number = number * 10 + (unsigned)(name[at++] - '0');
	if (number < 8 || number > 15 || (at < len && (at + 1 != len || !strchr("dwb", name[at]))))
		return false;
	/* In struct pt_regs, rbp and rbx stand between r12 and r11. */
	*reg = (uint8_t)(number >= 12 ? X86_R12 + 12 - number : X86_R11 + 11 - number);
	return true;
}

static bool x86_register(struct usdt_scan *scan, uint8_t *reg)
{
	const char *name = scan->at + 1;
	size_t len = 0;

	if (*scan->at != '%')
		return false;
	while (isalnum((unsigned char)name[len]))
		len++;
	scan->at = name + len;
	for (unsigned i = 0; i < sizeof(x86_names) / sizeof(x86_names[0]); i++)
		if (strlen(x86_names[i].name) == len && !memcmp(name, x86_names[i].name, len)) {
			*reg = x86_names[i].reg;
			return true;
		}
	return x86_numbered(name, len, reg);
}

/* Parses "12" or "-0x8". */
static bool scan_number(struct usdt_scan *scan, int64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)scan->at[0]) &&
	    !((scan->at[0] == '-' || scan->at[0] == '+') && isdigit((unsigned char)scan->at[1])))
		return false;
	errno = 0;
	*number = strtoll(scan->at, &end, 0);
	scan->at = end;
	return !errno;
}

static bool symbol_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '.' || byte == '@' ||
	       byte == '$';
}

/* Parses the displacement before a "(": a sum of numbers and symbols. *symbols: how many
 * symbols. */
static bool scan_displacement(struct usdt_scan *scan, int64_t *sum, unsigned *symbols)
{
	bool minus = false;

	*sum = 0;
	*symbols = 0;
	while (*scan->at && *scan->at != '(' && *scan->at != ' ') {
		const char *from = scan->at;
		int64_t number;
		uint64_t address;

		if (scan_number(scan, &number)) {
			*sum = (int64_t)((uint64_t)*sum +
					 (minus ? -(uint64_t)number : (uint64_t)number));
			minus = false;
			continue;
		}
		if (*scan->at == '+' || *scan->at == '-') {
			minus = *scan->at++ == '-';
			continue;
		}
		while (symbol_byte(*scan->at))
			scan->at++;
		if (scan->at == from || minus || !scan->symbol ||
		    !scan->symbol(from, (size_t)(scan->at - from), &address, scan->arg))
			return false;
		*sum = (int64_t)((uint64_t)*sum + address);
		(*symbols)++;
	}
	return true;
}

static bool fits(int64_t number)
{
	return number >= INT32_MIN && number <= INT32_MAX;
}

/* Makes the operand a word in memory at register + offset. */
static void in_memory(struct usdt_operand *operand, uint8_t reg, int64_t offset)
{
	operand->fetch = abi_register(reg);
	operand->fetch.loads = 1;
	operand->fetch.offset[0] = (int32_t)offset;
	operand->readable = fits(offset);
}

/* Parses "(%rax)", "(%rax,%rcx,8)" or "(,%rcx,8)". */
static bool x86_address(struct usdt_scan *scan, struct usdt_operand *operand, int64_t offset,
			bool symbol)
{
	uint8_t base = 0, index = 0;
	int64_t scale = 1;
	bool indexed = false, based;

	scan->at++;
	based = *scan->at != ',';
	if (based && !x86_register(scan, &base))
		return false;
	if (*scan->at == ',') {
		scan->at++;
		indexed = true;
		if (!x86_register(scan, &index))
			return false;
		if (*scan->at == ',') {
			scan->at++;
			if (!scan_number(scan, &scale) || scale < 1 || scale > 8)
				return false;
		}
	}
	if (*scan->at++ != ')')
		return false;
	/* ip points to the probe, so the symbol's address relative to the probe is known. */
	if (base == X86_IP && based && symbol)
		offset -= (int64_t)scan->note->address;
	in_memory(operand, based ? base : index, offset);
	operand->fetch.index = index;
	operand->fetch.scale = indexed ? (uint8_t)scale : 0;
	operand->readable &= based && (base != X86_IP || symbol) && (base == X86_IP || !symbol);
	return true;
}

static bool x86_operand(struct usdt_scan *scan, struct usdt_operand *operand)
{
	int64_t number;
	unsigned symbols;
	uint8_t reg;

	if (*scan->at == '%') {
		operand->readable = x86_register(scan, &reg) && *scan->at != ':';
		if (operand->readable)
			operand->fetch = abi_register(reg);
		scan->at += strcspn(scan->at, " ");
		return true;
	}
	if (*scan->at == '$') {
		scan->at++;
		operand->readable = scan_number(scan, &number);
		operand->fetch = (struct waffle_fetch){.from = WAFFLE_FETCH_CONSTANT,
						       .format = WAFFLE_FORMAT_WORD,
						       .bytes = 8,
						       .constant = (uint64_t)number};
		scan->at += strcspn(scan->at, " ");
		return true;
	}
	if (!scan_displacement(scan, &number, &symbols)) {
		scan->at += strcspn(scan->at, " ");
		return true;
	}
	if (*scan->at == '(')
		return x86_address(scan, operand, number, symbols);
	/* "8@sym": the value at the symbol's address, which is known relative to the probe. */
	if (symbols)
		in_memory(operand, X86_IP, number - (int64_t)scan->note->address);
	return true;
}

/* Parses x0, w0, sp, xzr, fp or lr. */
static bool arm64_register(struct usdt_scan *scan, uint8_t *reg, bool *zero)
{
	const char *name = scan->at;
	unsigned number = 0;
	size_t len = 0;

	*zero = false;
	while (isalnum((unsigned char)name[len]))
		len++;
	scan->at += len;
	if (len == 2 && !memcmp(name, "sp", 2)) {
		*reg = ARM64_SP;
		return true;
	}
	if (len == 3 && !memcmp(name + 1, "zr", 2)) {
		*zero = true;
		return true;
	}
	if (len < 2 || len > 3 || (name[0] != 'x' && name[0] != 'w'))
		return false;
	for (size_t i = 1; i < len; i++) {
		if (!isdigit((unsigned char)name[i]))
			return false;
		number = number * 10 + (unsigned)(name[i] - '0');
	}
	*reg = (uint8_t)number;
	return number <= 30;
}

/* Parses "[sp, 16]", "[x0]" or "[x0, x1]". */
static bool arm64_address(struct usdt_scan *scan, struct usdt_operand *operand)
{
	int64_t offset = 0;
	uint8_t base, index;
	bool zero, ok;

	scan->at++;
	ok = arm64_register(scan, &base, &zero) && !zero;
	if (!ok)
		return false;
	in_memory(operand, base, 0);
	if (*scan->at == ',') {
		scan->at++;
		scan->at += strspn(scan->at, " ");
		if (scan_number(scan, &offset)) {
			in_memory(operand, base, offset);
		} else if (arm64_register(scan, &index, &zero)) {
			operand->fetch.index = index;
			operand->fetch.scale = !zero;
		} else {
			return false;
		}
	}
	if (*scan->at != ']') { /* a shifted index */
		operand->readable = false;
		scan->at += strcspn(scan->at, "]");
	}
	return *scan->at++ == ']';
}

static bool arm64_operand(struct usdt_scan *scan, struct usdt_operand *operand)
{
	int64_t number;
	bool zero;
	uint8_t reg;

	if (*scan->at == '[')
		return arm64_address(scan, operand);
	if (scan_number(scan, &number)) {
		operand->readable = true;
		operand->fetch = (struct waffle_fetch){.from = WAFFLE_FETCH_CONSTANT,
						       .format = WAFFLE_FORMAT_WORD,
						       .bytes = 8,
						       .constant = (uint64_t)number};
		return true;
	}
	operand->readable = arm64_register(scan, &reg, &zero);
	if (operand->readable && zero)
		operand->fetch = (struct waffle_fetch){
			.from = WAFFLE_FETCH_CONSTANT, .format = WAFFLE_FORMAT_WORD, .bytes = 8};
	else if (operand->readable)
		operand->fetch = abi_register(reg);
	scan->at += strcspn(scan->at, " ");
	return true;
}

/* Parses "-4@". False: it is malformed. Without it the operand is a word. */
static bool scan_size(struct usdt_scan *scan, struct place_arg *arg)
{
	const char *sign = scan->at;
	int64_t size;

	*arg = (struct place_arg){.bytes = 8};
	if (!strchr(scan->at, '@') || !scan_number(scan, &size)) {
		scan->at = sign;
		return true;
	}
	arg->is_float = *scan->at == 'f';
	scan->at += arg->is_float;
	if (*scan->at != '@') { /* "16(%rsp)" */
		scan->at = sign;
		return true;
	}
	scan->at++;
	arg->is_signed = size < 0;
	size = size < 0 ? -size : size;
	arg->bytes = (uint8_t)size;
	return size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
}

/* The load has the size of the operand. A value in a register is truncated by its user. */
static void set_size(struct place_arg *arg, const struct usdt_operand *operand)
{
	struct waffle_fetch *fetch = &arg->at.pieces[0];

	*fetch = operand->fetch;
	fetch->bytes = arg->bytes;
	fetch->flags |= arg->is_signed && !arg->is_float ? WAFFLE_FETCH_SIGNED : 0;
	arg->at.count = 1;
}

/* Why the operand cannot be read; NULL: it can. A double is read as its eight bytes. */
static const char *why_unread(const struct place_arg *arg, const struct usdt_operand *operand)
{
	if (!operand->readable)
		return "is in no place that the kernel can read";
	if (arg->bytes > 8)
		return "has 16 bytes, and a value at most 8";
	if (arg->is_float && arg->bytes != 8)
		return "is a float, which the kernel can't widen; a double can be read";
	return NULL;
}

int usdt_arguments(struct call_at *at, const struct usdt_note *note, usdt_symbol *symbol, void *arg)
{
	struct usdt_scan scan = {note->arguments, at, note, symbol, arg};
	int unreadable = 0;

	at->count = 0;
	scan.at += strspn(scan.at, " ");
	while (*scan.at && at->count < PLACE_ARGS_MAX) {
		struct place_arg *made = &at->args[at->count];
		struct usdt_operand operand = {.readable = false};
		bool ok;

		if (!scan_size(&scan, made))
			return -EINVAL;
		ok = at->abi->machine == EM_AARCH64 ? arm64_operand(&scan, &operand)
						    : x86_operand(&scan, &operand);
		if (!ok || (*scan.at && *scan.at != ' '))
			return -EINVAL;
		made->unread = why_unread(made, &operand);
		if (made->unread)
			unreadable++;
		else
			set_size(made, &operand);
		at->count++;
		scan.at += strspn(scan.at, " ");
	}
	return unreadable;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The error number of libelf, for the libwaffle.so that a wheel brings along. It contains libelf,
 * so that a wheel works where nothing else is installed. Debian compiles its libelf.a for programs:
 * its own thread-local variable for this can't be in a shared library. The texts of errors are not
 * used.
 */
static __thread int elf_error_number;

void __libelf_seterrno(int value);
int elf_errno(void);
const char *elf_errmsg(int error);

void __libelf_seterrno(int value)
{
	elf_error_number = value;
}

int elf_errno(void)
{
	int value = elf_error_number;

	elf_error_number = 0;
	return value;
}

const char *elf_errmsg(int error)
{
	(void)error;
	return "damaged ELF file";
}

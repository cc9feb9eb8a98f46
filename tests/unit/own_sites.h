/* SPDX-License-Identifier: Apache-2.0 */
/* Arms and disarms the sites of a test program from inside, by writing their semaphores. */
#ifndef WAFFLE_TESTS_OWN_SITES_H
#define WAFFLE_TESTS_OWN_SITES_H

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static inline int own_sites_first(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr; /* the program is the first */
	return 1;
}

/* Sets all semaphores of this program, which are what its section .probes holds. */
static inline void semaphores_set(uint16_t value)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const Elf64_Shdr *sections;
	const Elf64_Ehdr *header;
	uintptr_t base = 0;
	bool found = false;
	struct stat status;
	const char *names;
	const char *file;

	assert_true(fd >= 0);
	assert_return_code(fstat(fd, &status), 0);
	file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	close(fd);
	dl_iterate_phdr(own_sites_first, &base);
	header = (const void *)file;
	sections = (const void *)(file + header->e_shoff);
	names = file + sections[header->e_shstrndx].sh_offset;
	for (unsigned i = 0; i < header->e_shnum; i++) {
		uint16_t *semaphores = (uint16_t *)(base + sections[i].sh_addr);

		if (strcmp(names + sections[i].sh_name, ".probes") != 0)
			continue;
		found = true;
		for (size_t s = 0; s < sections[i].sh_size / sizeof(*semaphores); s++)
			((volatile uint16_t *)semaphores)[s] = value;
	}
	munmap((void *)(uintptr_t)file, (size_t)status.st_size);
	assert_true(found);
}

#endif

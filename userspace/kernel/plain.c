// SPDX-License-Identifier: Apache-2.0
/*
 * Plain calls (bpf/call.h). Their records have the registers and stack words that hold the
 * arguments; this turns them into hits with values, by the words of their recipes.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/kernel_internal.h"
#include "probe/args/abi.h"
#include "waffle.skel.h"
#include "waffle/abi.h"

/* The positions of registers among the words of recipes. */
static const struct abi *abi_here(void)
{
#if defined(__x86_64__)
	return abi_find(EM_X86_64);
#else
	return abi_find(EM_AARCH64);
#endif
}

/* Whether the record has all words of a recipe. Sets the words of the stack that it has. */
static bool words_are_plain(struct loaded_recipe *loaded, const struct waffle_recipe *recipe)
{
	unsigned first = WAFFLE_CALL_WORDS, end = WAFFLE_CALL_REGS;
	const struct abi *abi = abi_here();

	/* The word at the stack pointer shows whether a call is nested in it (bpf/call_nest.bpf.h).
	 */
	if (recipe->flags & WAFFLE_CALL_OUTER) {
		first = WAFFLE_CALL_REGS;
		end = first + 1;
	}
	for (unsigned i = 0; i < recipe->word_count; i++) {
		unsigned from = recipe->words[i].from;

		if (from >= WAFFLE_CALL_REGS) {
			first = from < first ? from : first;
			end = from < end ? end : from + 1;
		} else if (!memchr(abi->registers, (int)from, WAFFLE_PLAIN_REGS)) {
			return false;
		}
	}
	loaded->stack_first = first < end ? (uint8_t)(first - WAFFLE_CALL_REGS) : 0;
	loaded->stack_count = first < end ? (uint8_t)(end - first) : 0;
	return loaded->stack_count <= WAFFLE_PLAIN_STACK;
}

void plain_load(struct loaded_recipe *loaded, const struct waffle_recipe *recipe)
{
	/* These flags only concern ends and stacks, which a plain call does not have. */
	const uint32_t not_asked = WAFFLE_CALL_NOUNWIND | WAFFLE_CALL_FUNCTION;
	const uint32_t flags =
		WAFFLE_CALL_OUTER | WAFFLE_CALL_INNER | WAFFLE_CALL_TABLE | not_asked;

	if (recipe->flags & ~flags || recipe->saves || recipe->returns ||
	    recipe->word_count != recipe->begins || !words_are_plain(loaded, recipe))
		return;
	loaded->is_plain = true;
	loaded->outer = recipe->flags & WAFFLE_CALL_OUTER;
	loaded->inner = recipe->flags & WAFFLE_CALL_INNER;
	loaded->word_count = recipe->word_count;
	loaded->word_bytes = recipe->word_bytes;
	memcpy(loaded->words, recipe->words, sizeof(loaded->words));
}

static size_t ends_bytes(const struct kernel *kernel)
{
	return sizeof(*kernel->plain_ends) * kernel->cpus;
}

static size_t slots_bytes(const struct kernel *kernel)
{
	return sizeof(*kernel->plain_slots) * kernel->plain_cpus * WAFFLE_PLAIN_SLOTS;
}

int plain_map(struct kernel *kernel, struct error *err)
{
	kernel->plain_ends = map_memory(kernel->bpf->maps.plain_ends, ends_bytes(kernel), true);
	kernel->plain_slots = map_memory(kernel->bpf->maps.plain_slots, slots_bytes(kernel), false);
	if (!kernel->plain_ends || !kernel->plain_slots)
		return error_set(err, errno, "mapping BPF maps: %s", strerror(errno));
	return 0;
}

void plain_unmap(struct kernel *kernel)
{
	if (kernel->plain_ends)
		munmap(kernel->plain_ends, ends_bytes(kernel));
	if (kernel->plain_slots)
		munmap((void *)(uintptr_t)kernel->plain_slots, slots_bytes(kernel));
}

uint64_t kernel_plain_count(const struct kernel *kernel, uint32_t cpu)
{
	return kernel->plain_ends ? __atomic_load_n(&kernel->plain_ends[cpu].head, __ATOMIC_RELAXED)
				  : 0;
}

struct plain_hit {
	struct waffle_rec_hit rec;
	uint64_t frame[(WAFFLE_WORD_ROOM + 7) / 8];
};

/* False: its recipe was never set. */
static bool hit_make(const struct kernel *kernel, const struct waffle_rec_plain *plain,
		     struct plain_hit *hit)
{
	const struct abi *abi = abi_here();
	const struct loaded_recipe *recipe;
	__u64 words[WAFFLE_WORD_NUMBERS] = {0};

	if (plain->recipe >= kernel->recipes.len)
		return false;
	recipe = &kernel->recipes.data[plain->recipe];
	if (!recipe->is_plain)
		return false;
	for (unsigned i = 0; i < WAFFLE_PLAIN_REGS; i++)
		words[abi->registers[i]] = plain->words[i];
	memcpy(words + WAFFLE_CALL_REGS + recipe->stack_first, plain->words + WAFFLE_PLAIN_REGS,
	       recipe->stack_count * sizeof(*words));
	*hit = (struct plain_hit){
		.rec = {.rec = plain->rec,
			.tgid = plain->tgid,
			.site = recipe->site,
			.frame_bytes = recipe->word_bytes},
		.frame = {waffle_call_id(plain->rec.ts, plain->rec.tid, kernel->config.call_seed)},
	};
	hit->rec.rec.kind = WAFFLE_REC_HIT;
	waffle_words_make((uint8_t *)hit->frame, recipe->words, recipe->word_count, words);
	return true;
}

void plain_take(const struct kernel *kernel, const struct waffle_rec_plain *plain)
{
	struct plain_hit hit;

	if (hit_make(kernel, plain, &hit))
		kernel->take(&hit, sizeof(hit), kernel->take_arg);
	else
		kernel->take(plain, sizeof(*plain), kernel->take_arg);
}

/* Takes at most as many calls as there are slots, since new calls arrive meanwhile. A slot that is
 * being written ends the round. */
bool plain_slots_take(struct kernel *kernel, uint32_t cpu)
{
	const struct waffle_plain_slot *slots =
		&kernel->plain_slots[(uint64_t)cpu * WAFFLE_PLAIN_SLOTS];
	struct waffle_plain_ends *ends = &kernel->plain_ends[cpu];
	uint64_t from = ends->tail, at = from;
	size_t room = kernel->take_left / sizeof(slots->rec);

	room = room < WAFFLE_PLAIN_SLOTS ? room : WAFFLE_PLAIN_SLOTS;
	for (; at - from < room; at++) {
		const struct waffle_plain_slot *slot = &slots[at & (WAFFLE_PLAIN_SLOTS - 1)];

		if (__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE) != at + 1)
			break;
		plain_take(kernel, &slot->rec);
	}
	if (at != from)
		__atomic_store_n(&ends->tail, at, __ATOMIC_RELEASE);
	return at - from < room;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Plain calls (bpf/call.h): the kernel tells them as the registers and words of the stack that
 * their arguments are in, and the values are made of them here, by the words of their recipes.
 */
#include <elf.h>
#include <string.h>

#include "call/abi.h"
#include "probe/kernel_internal.h"
#include "waffle/abi.h"
#include "waffle.skel.h"

/* Where the registers are among the words of recipes. */
static const struct abi *abi_here(void)
{
#if defined(__x86_64__)
	return abi_find(EM_X86_64);
#else
	return abi_find(EM_AARCH64);
#endif
}

/* Whether the words are told, with those of the stack that are. */
static bool words_are_plain(struct loaded_recipe *loaded, const struct waffle_recipe *recipe)
{
	unsigned first = WAFFLE_CALL_WORDS, end = WAFFLE_CALL_REGS;
	const struct abi *abi = abi_here();

	/* What tells whether a call is nested in it lies at the stack pointer. */
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
	const uint32_t not_asked = WAFFLE_CALL_NOUNWIND; /* of what is no span */
	const uint32_t flags = WAFFLE_CALL_OUTER | WAFFLE_CALL_INNER | not_asked;

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

bool kernel_plain_hit(const struct kernel *kernel, const struct waffle_rec_plain *plain,
		      struct kernel_plain_hit *hit)
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
	*hit = (struct kernel_plain_hit){
		.rec = {.rec = plain->rec,
			.tgid = plain->tgid,
			.site = recipe->site,
			.frame_bytes = recipe->word_bytes},
		.frame = {waffle_call_id(plain->rec.ts, plain->rec.tid,
					 kernel->bpf->rodata->call_seed)},
	};
	hit->rec.rec.kind = WAFFLE_REC_HIT;
	waffle_words_make((uint8_t *)hit->frame, recipe->words, recipe->word_count, words);
	return true;
}

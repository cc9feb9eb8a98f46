// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/nvtx_text.h"

#include <errno.h>
#include <string.h>

#include "usdt/gpu/nvtx_reserve.h"
#include "usdt/name/text.h"
#include "util/hash.h"

/* At most half of the index is used, so that searches are short. */
#define INDEX_SLOTS (2u * NVTX_TEXTS_MAX)
#define CATEGORY_SLOTS (2u * NVTX_CATEGORIES_MAX)
_Static_assert(NVTX_TEXTS_MAX < UINT16_MAX, "the index has numbers of 16 bits");

struct nvtx_text {
	uint64_t hash;
	/* Of marks and of ranges, by their keys. NULL: nobody has needed it yet. */
	waffle_name_t *names[2][NVTX_KEY_SETS];
	uint16_t bytes;
	char text[NVTX_TEXT_BYTES + 1];
};

/*
 * A text is complete before its number is in the index, and neither ever changes. Two threads may
 * add the same text at once; one of the copies is then not in the index and serves nobody.
 */
static struct {
	struct nvtx_text *all; /* NVTX_TEXTS_MAX of them, of which memory has those that are used */
	uint32_t count;
	uint16_t index[INDEX_SLOTS]; /* number + 1; 0: free */
	/* "nvtx", for messages beyond the limit. */
	waffle_name_t *others[2][NVTX_KEY_SETS];
} texts;

static struct {
	struct nvtx_text *domains[NVTX_DOMAINS_MAX];
	struct {
		uint64_t key; /* domain << 32 | category; 0: free, since category 0 means none */
		struct nvtx_text *name;
	} categories[CATEGORY_SLOTS];
	uint32_t category_count;
} domains;

/* ---- texts ---- */

/* The program may pass on messages that somebody else chose. */
static uint64_t hash_of(const struct text *text)
{
	static struct hash_secret secret;
	struct hash_secret known = {.factor = __atomic_load_n(&secret.factor, __ATOMIC_ACQUIRE)};

	known.begin = __atomic_load_n(&secret.begin, __ATOMIC_RELAXED);
	if (!known.factor) {
		/* Threads that come at once store the same. Whoever sees the factor, sees both. */
		known = hash_secret();
		__atomic_store_n(&secret.begin, known.begin, __ATOMIC_RELAXED);
		__atomic_store_n(&secret.factor, known.factor, __ATOMIC_RELEASE);
	}
	return hash_keyed(known.begin, text->at, text->len, &known);
}

/* Reserves the memory of all texts. NULL: there is none. */
static struct nvtx_text *all_map(void)
{
	return nvtx_reserve((void **)&texts.all, sizeof(struct nvtx_text) * NVTX_TEXTS_MAX);
}

/* A copy of the text that nobody else knows yet. NULL: there are too many. */
static struct nvtx_text *text_new(const struct text *text, uint64_t hash)
{
	struct nvtx_text *all = all_map(), *made;
	uint32_t number = __atomic_load_n(&texts.count, __ATOMIC_RELAXED);

	if (!all || number >= NVTX_TEXTS_MAX)
		return NULL;
	number = __atomic_fetch_add(&texts.count, 1, __ATOMIC_RELAXED);
	if (number >= NVTX_TEXTS_MAX) {
		__atomic_store_n(&texts.count, NVTX_TEXTS_MAX, __ATOMIC_RELAXED);
		return NULL;
	}
	made = &all[number];
	made->hash = hash;
	made->bytes = (uint16_t)text->len;
	memcpy(made->text, text->at, text->len); /* the memory was 0 */
	return made;
}

static bool text_is(const struct nvtx_text *kept, uint64_t hash, const struct text *text)
{
	return kept->hash == hash && kept->bytes == text->len &&
	       !memcmp(kept->text, text->at, text->len);
}

struct nvtx_text *nvtx_text_of(const char *text)
{
	struct text cut = text_of(text, NVTX_TEXT_BYTES);
	uint64_t hash = hash_of(&cut);
	struct nvtx_text *made = NULL;
	/* The upper bits, as hash_word() leaves them the best mixed. */
	uint32_t at = (uint32_t)(hash >> 40) % INDEX_SLOTS;

	for (uint32_t i = 0; text && i < INDEX_SLOTS; i++, at = (at + 1) % INDEX_SLOTS) {
		uint16_t number = __atomic_load_n(&texts.index[at], __ATOMIC_ACQUIRE);

		if (!number) {
			made = made ?: text_new(&cut, hash);
			if (!made)
				return NULL;
			if (__atomic_compare_exchange_n(&texts.index[at], &number,
							(uint16_t)(made - texts.all + 1), false,
							__ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
				return made;
		}
		if (text_is(&texts.all[number - 1], hash, &cut))
			return &texts.all[number - 1];
	}
	return made;
}

/* Writes one character. Returns its length; 0: there is no room. */
static size_t utf8_put(char *to, size_t room, uint32_t character)
{
	size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	if (length > room)
		return 0;
	for (size_t i = length; i-- > 1; character >>= 6)
		to[i] = (char)(0x80 | (character & 0x3f));
	to[0] = (char)(first[length] | character);
	return length;
}

void nvtx_text_narrow(char *to, size_t size, const wchar_t *wide)
{
	size_t at = 0, length = 1;

	for (; wide && *wide && length; wide++, at += length) {
		uint32_t character = (uint32_t)*wide;

		if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
			character = 0xfffd; /* what replaces what is no character */
		length = utf8_put(to + at, size - 1 - at, character);
	}
	to[at] = '\0';
}

struct nvtx_text *nvtx_text_of_handle(const void *handle)
{
	struct nvtx_text *all = __atomic_load_n(&texts.all, __ATOMIC_ACQUIRE);
	uint32_t count = __atomic_load_n(&texts.count, __ATOMIC_ACQUIRE);
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)all;

	if (!all || offset % sizeof(*all) || offset / sizeof(*all) >= count)
		return NULL;
	return &all[offset / sizeof(*all)];
}

const char *nvtx_text_string(const struct nvtx_text *text)
{
	return text->text;
}

/* ---- names ---- */

unsigned nvtx_text_number(const struct nvtx_text *text)
{
	return (unsigned)(text - texts.all);
}

waffle_name_t *nvtx_name_make(const struct nvtx_text *text, bool span, unsigned keys,
			      const waffle_key_t *more, unsigned more_count)
{
	static const waffle_key_t all[NVTX_KEYS_MAX] = {{WAFFLE_KEY_STR, "domain"},
							{WAFFLE_KEY_STR, "category"},
							{WAFFLE_KEY_NUMBER, "payload"},
							{WAFFLE_KEY_STR, "message"}};
	waffle_key_t some[WAFFLE_KEYS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < NVTX_KEYS_MAX; i++)
		if (keys >> i & 1)
			some[count++] = all[i];
	for (unsigned i = 0; i < more_count && count < WAFFLE_KEYS_MAX; i++)
		some[count++] = more[i];
	return waffle_name(
		&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
					   .kind = span ? WAFFLE_SITE_SPAN : WAFFLE_SITE_EVENT,
					   .name = text && *text->text ? text->text : "nvtx",
					   .category = "nvtx",
					   .keys = some,
					   .key_count = count});
}

waffle_name_t *nvtx_name(struct nvtx_text *text, bool span, unsigned keys)
{
	waffle_name_t **kept = text ? &text->names[span][keys] : &texts.others[span][keys];
	waffle_name_t *name = __atomic_load_n(kept, __ATOMIC_ACQUIRE);

	if (!name) {
		name = nvtx_name_make(text, span, text ? keys : keys | NVTX_KEY_MESSAGE, NULL, 0);
		__atomic_store_n(kept, name, __ATOMIC_RELEASE);
	}
	return name;
}

/* ---- domains ---- */

const void *nvtx_domain(const char *name)
{
	struct nvtx_text *text = nvtx_text_of(name), *none;

	for (uint32_t i = 0; text && i < NVTX_DOMAINS_MAX; i++) {
		none = NULL;
		if (__atomic_compare_exchange_n(&domains.domains[i], &none, text, false,
						__ATOMIC_RELEASE, __ATOMIC_ACQUIRE) ||
		    none == text)
			return &domains.domains[i];
	}
	return NULL;
}

unsigned nvtx_domain_number(const void *domain)
{
	uintptr_t offset = (uintptr_t)domain - (uintptr_t)domains.domains;

	if (offset >= sizeof(domains.domains) || offset % sizeof(domains.domains[0]))
		return 0;
	offset /= sizeof(domains.domains[0]);
	return __atomic_load_n(&domains.domains[offset], __ATOMIC_ACQUIRE) ? (unsigned)offset + 1
									   : 0;
}

const char *nvtx_domain_name(unsigned number)
{
	return __atomic_load_n(&domains.domains[number - 1], __ATOMIC_ACQUIRE)->text;
}

/* The slot of a category, or the free one where it belongs; -1: all are used. */
static int category_find(uint64_t key)
{
	uint32_t at = (uint32_t)(hash_number(key) >> 40) % CATEGORY_SLOTS;

	for (uint32_t i = 0; i < CATEGORY_SLOTS; i++, at = (at + 1) % CATEGORY_SLOTS) {
		uint64_t found = __atomic_load_n(&domains.categories[at].key, __ATOMIC_ACQUIRE);

		if (!found || found == key)
			return (int)at;
	}
	return -1;
}

void nvtx_category_set(unsigned domain, uint32_t category, const char *name)
{
	uint64_t key = (uint64_t)domain << 32 | category, free = 0;
	struct nvtx_text *text = category ? nvtx_text_of(name) : NULL;
	int at = text ? category_find(key) : -1;

	while (at >= 0) {
		free = __atomic_load_n(&domains.categories[at].key, __ATOMIC_ACQUIRE);
		if (free == key)
			break;
		if (__atomic_load_n(&domains.category_count, __ATOMIC_RELAXED) >=
		    NVTX_CATEGORIES_MAX)
			return;
		if (!free &&
		    __atomic_compare_exchange_n(&domains.categories[at].key, &free, key, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_fetch_add(&domains.category_count, 1, __ATOMIC_RELAXED);
			break;
		}
		at = category_find(key); /* another thread has taken the slot */
	}
	if (at >= 0)
		__atomic_store_n(&domains.categories[at].name, text, __ATOMIC_RELEASE);
}

const char *nvtx_category_name(unsigned domain, uint32_t category)
{
	uint64_t key = (uint64_t)domain << 32 | category;
	int at = category_find(key);
	struct nvtx_text *text = NULL;

	if (at >= 0 && __atomic_load_n(&domains.categories[at].key, __ATOMIC_ACQUIRE) == key)
		text = __atomic_load_n(&domains.categories[at].name, __ATOMIC_ACQUIRE);
	return text ? text->text : NULL;
}

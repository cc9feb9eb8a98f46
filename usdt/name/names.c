// SPDX-License-Identifier: Apache-2.0
#include "usdt/name/names.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/frame/mode.h"
#include "usdt/ring/rings.h"
#include "usdt/ring/signals.h"
#include "usdt/say/say.h"
#include "usdt/name/text.h"
#include "usdt/ring/tracer.h"
#include "util/hash.h"

#define API __attribute__((visibility("default")))
#define BUCKETS 4096u
/* Enough for as many of the longest names as there may be. */
#define CHUNKS_MAX 4096u

/*
 * Threads look names up without the lock: a name is complete before it is in its bucket, and stays
 * there for ever.
 */
static struct {
	/* Protects the members behind the buckets. It is taken before that of struct sites, with
	 * signals blocked (usdt/ring/signals.h). */
	pthread_mutex_t lock;
	struct name_site *buckets[BUCKETS];
	struct name_site *newest;
	uint32_t count;
	struct name_chunk *chunks[CHUNKS_MAX];
	uint32_t chunk_count;
	struct names_listener listener; /* `found` NULL: nobody listens */
	bool told;                      /* of a name that was refused */
	bool lent;                      /* a child may have borrowed names */
	bool off;                       /* the mode is off, so the listener's names are not armed */
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool names_are_borrowed;

_Static_assert(offsetof(struct name_entry, armed) == offsetof(struct waffle_name_, armed_),
	       "what the program tests is what is armed");

/* What is returned instead of a name that can't be made. */
static struct name_site refused;

static bool tracer_is_there(void)
{
	return rings_gate.ring && !rings_gate.usdt;
}

/* ---- borrowing ---- */

/* With the lock. */
static void own(void)
{
	int code = errno;

	if (!names_are_borrowed)
		return;
	for (uint32_t i = 0; i < names.chunk_count; i++)
		if (!name_chunk_own(names.chunks[i]))
			return; /* out of memory: again at the next use */
	for (struct name_site *name = names.newest; name; name = name->older)
		__atomic_store_n(&name->entry.armed, tracer_is_there() ? NAME_ARMED_TRACER : 0,
				 __ATOMIC_RELAXED);
	for (uint32_t i = 0; tracer_is_there() && i < names.chunk_count; i++)
		tracer_announce(names.chunks[i], NAME_CHUNK_BYTES, 0);
	__atomic_store_n(&names_are_borrowed, false, __ATOMIC_RELEASE);
	errno = code;
}

void names_make_own(void)
{
	uint64_t before = signals_block();

	if (!pthread_mutex_trylock(&names.lock)) {
		own();
		pthread_mutex_unlock(&names.lock);
	}
	signals_restore(before);
}

void names_disarm_one(const struct name_site *name)
{
	if (!names.lent && !names_are_borrowed)
		__atomic_and_fetch((uint32_t *)&name->entry.armed, ~NAME_ARMED_TRACER,
				   __ATOMIC_RELAXED);
}

/* ---- making ---- */

/* The parts of a definition, in the order in which they are compared and stored; the
 * first three as in the meta of a site of a file (waffle/site.h). */
struct parts {
	struct text text[4 + WAFFLE_KEYS_MAX]; /* name, file, category, function, keys */
	char types[WAFFLE_KEYS_MAX + 1];
	unsigned keys;
	unsigned line;
	uint16_t kind;
	uint64_t hash;
	size_t bytes; /* of all texts with their NULs */
};

static bool key_type_is_known(char type)
{
	return type && strchr("iudbpnsSE", type);
}

/* NULL, or what is wrong with the spec. */
static const char *parts_make(struct parts *parts, const struct waffle_name_spec *spec)
{
	static const waffle_key_t counter_key = {WAFFLE_KEY_NUMBER, "value"};
	const waffle_key_t *keys = spec->keys;
	unsigned count = spec->key_count;

	if (spec->kind < WAFFLE_SITE_SPAN || spec->kind >= WAFFLE_SITE_KIND_COUNT ||
	    spec->kind == WAFFLE_SITE_SPAN_END)
		return "its kind is not known";
	if (!spec->name || !*spec->name)
		return "it has no text";
	if (count > WAFFLE_KEYS_MAX || (count && !keys))
		return "it has more than 16 keys, or none at the given place";
	if (spec->kind == WAFFLE_SITE_COUNTER) {
		keys = &counter_key;
		count = 1;
	}
	*parts = (struct parts){.keys = count, .line = spec->line, .kind = (uint16_t)spec->kind};
	parts->text[0] = text_of(spec->name, WAFFLE_NAME_MAX);
	parts->text[1] = text_of(spec->file, WAFFLE_FILE_MAX);
	parts->text[2] = text_of(spec->category, WAFFLE_NAME_MAX);
	parts->text[3] = text_of(spec->function, WAFFLE_NAME_MAX);
	for (unsigned i = 0; i < count; i++) {
		bool cause = keys[i].type == WAFFLE_KEY_CAUSE_SPAN ||
			     keys[i].type == WAFFLE_KEY_CAUSE_EVENT;

		if (keys != &counter_key && !key_type_is_known(keys[i].type))
			return "the type of a key is not known";
		if (!cause && (!keys[i].name || !*keys[i].name))
			return "a key has no text";
		parts->types[i] = keys[i].type;
		parts->text[4 + i] = text_of(cause ? "cause" : keys[i].name, WAFFLE_NAME_MAX);
	}
	return NULL;
}

static void parts_measure(struct parts *parts)
{
	const struct hash_secret secret = hash_secret();
	uint64_t numbers = (uint64_t)parts->line << 32 | parts->keys << 16 | parts->kind;

	parts->hash = hash_word(secret.begin, numbers, &secret);
	parts->hash = hash_keyed(parts->hash, parts->types, parts->keys, &secret);
	for (unsigned i = 0; i < 4 + parts->keys; i++) {
		parts->hash =
			hash_keyed(parts->hash, parts->text[i].at, parts->text[i].len, &secret);
		parts->bytes += parts->text[i].len + 1;
	}
}

static const char *site_text(const struct site_info *site, unsigned i)
{
	const char *const first[] = {site->name, site->file, site->category, site->func};

	return i < 4 ? first[i] : site->keys[i - 4].name;
}

static bool name_has(const struct name_site *name, const struct parts *parts)
{
	const struct site_info *site = &name->site;

	if (name->hash != parts->hash || site->kind != parts->kind || site->line != parts->line ||
	    site->key_count != parts->keys)
		return false;
	for (unsigned i = 0; i < parts->keys; i++)
		if (site->keys[i].type != parts->types[i])
			return false;
	for (unsigned i = 0; i < 4 + parts->keys; i++) {
		const char *text = site_text(site, i);

		if (strncmp(text, parts->text[i].at, parts->text[i].len) ||
		    text[parts->text[i].len])
			return false;
	}
	return true;
}

static struct name_site *name_find(const struct parts *parts)
{
	struct name_site *name =
		__atomic_load_n(&names.buckets[parts->hash % BUCKETS], __ATOMIC_ACQUIRE);

	while (name && !name_has(name, parts))
		name = name->next;
	return name;
}

/* Memory for a name, in the last chunk or in a new one. NULL: out of memory. */
static struct name_site *name_take(size_t bytes)
{
	struct name_chunk *last = names.chunk_count ? names.chunks[names.chunk_count - 1] : NULL;
	struct name_entry *entry = last ? name_chunk_take(last, (uint32_t)bytes) : NULL;
	bool shared;

	if (entry || names.chunk_count == CHUNKS_MAX)
		return (struct name_site *)entry;
	last = name_chunk_new(sizeof(struct name_site), &shared);
	if (!last)
		return NULL;
	/* A tracer that comes later looks for it. */
	if (shared && tracer_is_there())
		tracer_announce(last, NAME_CHUNK_BYTES, 0);
	names.chunks[names.chunk_count++] = last;
	return (struct name_site *)name_chunk_take(last, (uint32_t)bytes);
}

/* NULL: out of memory. */
static struct name_site *name_new(const struct parts *parts)
{
	struct name_site *name = name_take(sizeof(*name) + parts->bytes);
	const char *copies[4 + WAFFLE_KEYS_MAX];
	char *to = (char *)(name + 1);

	if (!name)
		return NULL;
	name->entry.line = parts->line;
	name->entry.kind = parts->kind;
	name->entry.key_count = (uint16_t)parts->keys;
	memcpy(name->entry.types, parts->types, sizeof(name->entry.types));
	for (unsigned i = 0; i < 4 + parts->keys; i++) {
		copies[i] = to;
		memcpy(to, parts->text[i].at, parts->text[i].len);
		to += parts->text[i].len + 1;
	}
	name->hash = parts->hash;
	name->site = (struct site_info){
		.name = copies[0],
		.file = copies[1],
		.category = copies[2],
		.func = copies[3],
		.object = "",
		.line = parts->line,
		.kind = parts->kind,
		.key_count = (uint16_t)parts->keys,
	};
	for (unsigned i = 0; i < parts->keys; i++)
		name->site.keys[i] = (struct site_key){parts->types[i], copies[4 + i]};
	return name;
}

static void name_arm(struct name_site *name, bool armed)
{
	if (armed)
		__atomic_or_fetch(&name->entry.armed, NAME_ARMED_INSIDE, __ATOMIC_RELAXED);
	else
		__atomic_and_fetch(&name->entry.armed, ~NAME_ARMED_INSIDE, __ATOMIC_RELAXED);
}

void names_wake(struct name_site *name)
{
	__atomic_store_n(&name->wakes, true, __ATOMIC_RELAXED);
}

static void name_offer(struct name_site *name)
{
	name->wanted = names.listener.found && names.listener.found(name, names.listener.arg);
	if (name->wanted && !names.off)
		name_arm(name, true);
}

/* With the lock. The name is armed before others can find it, so no use of it is missed. */
static void name_publish(struct name_site *name)
{
	struct name_site **bucket = &names.buckets[name->hash % BUCKETS];

	name->older = names.newest;
	names.newest = name;
	names.count++;
	name_offer(name);
	/* A tracer has yet to decide. What it does not want is only some hits that it rejects. */
	if (tracer_is_there())
		__atomic_or_fetch(&name->entry.armed, NAME_ARMED_TRACER, __ATOMIC_RELAXED);
	name_chunk_publish(names.chunks[names.chunk_count - 1], &name->entry);
	name->next = *bucket;
	__atomic_store_n(bucket, name, __ATOMIC_RELEASE);
}

/* Adds a name that was not found without the lock. NULL: *why says what prevents it. */
static struct name_site *name_add(const struct parts *parts, const char **why)
{
	struct name_site *name;
	uint64_t signals = signals_lock(&names.lock);

	own();
	name = name_find(parts);
	if (!name && names.count >= WAFFLE_NAMES_MAX) {
		*why = "there are 65536 names already; put what varies into a key";
	} else if (!name) {
		name = name_new(parts);
		if (name)
			name_publish(name);
		else
			*why = "out of memory";
	}
	signals_unlock(&names.lock, signals);
	return name;
}

API waffle_name_t *waffle_name(const struct waffle_name_spec *spec)
{
	struct waffle_name_spec all = {0};
	struct parts parts;
	struct name_site *name = NULL;
	const char *why;
	int code = errno;

	/* A program that was compiled with an older header has fewer members. */
	memcpy(&all, spec, spec->size < sizeof(all) ? spec->size : sizeof(all));
	why = all.size ? parts_make(&parts, &all)
		       : "its .size is not sizeof(struct waffle_name_spec)";
	if (!why) {
		parts_measure(&parts);
		name = name_find(&parts) ?: name_add(&parts, &why);
	}
	if (!name && !__atomic_exchange_n(&names.told, true, __ATOMIC_RELAXED))
		say_line("the name '%.64s' is not recorded: %s", spec->name ?: "", why);
	errno = code;
	return (waffle_name_t *)(name ? &name->entry : &refused.entry);
}

void names_add_track(uint32_t number, const char *name, const char *group)
{
	size_t bytes = strlen(name) + strlen(group) + 4;
	struct name_site *track;
	uint64_t signals = signals_lock(&names.lock);

	own();
	track = name_take(sizeof(*track) + bytes);
	if (track) {
		char *to = (char *)(track + 1);

		track->entry.kind = NAME_KIND_TRACK;
		track->entry.line = number;
		/* Name, no file, group, no function. */
		to = stpcpy(to, name) + 2;
		stpcpy(to, group);
		name_chunk_publish(names.chunks[names.chunk_count - 1], &track->entry);
	}
	signals_unlock(&names.lock, signals);
}

/* ---- arming ---- */

/* Wakes those who wait for a name, when all names that they may look at are armed. */
static void names_wake_waiters(void)
{
	for (struct name_site *name = names.newest; name; name = name->older)
		if (name->wakes && name->entry.armed)
			syscall(SYS_futex, &name->entry.armed, FUTEX_WAKE, INT32_MAX, NULL, NULL,
				0);
}

static void names_offer(void)
{
	for (struct name_site *name = names.newest; name; name = name->older)
		name_offer(name);
	names_wake_waiters();
}

static void names_disarm(void)
{
	for (struct name_site *name = names.newest; name; name = name->older)
		name_arm(name, false);
}

void names_follow_mode(void)
{
	bool off = !mode_arms();
	uint64_t signals = signals_lock(&names.lock);

	for (struct name_site *name = names.off != off ? names.newest : NULL; name;
	     name = name->older)
		if (name->wanted && names.listener.found)
			name_arm(name, !off);
	names.off = off;
	names_wake_waiters();
	signals_unlock(&names.lock, signals);
}

void names_listen(const struct names_listener *listener)
{
	uint64_t signals = signals_lock(&names.lock);

	own();
	names.listener = *listener;
	names.off = !mode_arms();
	names_offer();
	signals_unlock(&names.lock, signals);
}

void names_unlisten(void)
{
	uint64_t signals = signals_lock(&names.lock);

	names.listener = (struct names_listener){0};
	names_disarm();
	signals_unlock(&names.lock, signals);
}

void names_fork_before(void)
{
	pthread_mutex_lock(&names.lock);
}

void names_fork_parent(void)
{
	names.lent = names.chunk_count != 0;
	pthread_mutex_unlock(&names.lock);
}

void names_fork_child(void)
{
	pthread_mutex_init(&names.lock, NULL);
	names.listener = (struct names_listener){0};
	names.lent = false;
	names_are_borrowed = names.chunk_count != 0;
}

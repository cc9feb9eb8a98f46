// SPDX-License-Identifier: Apache-2.0
#include "capture/stack_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/glob.h"
#include "util/near.h"
#include "util/vec.h"

#define BY_NAME "span:"

struct stack_choice {
	uint32_t words; /* a bit for each of `words` */
	VEC(struct glob *) names;
};

static bool of_cuda(const struct site_info *site)
{
	return site->call && !strcmp(site->category, "cuda");
}

static bool of_nccl(const struct site_info *site)
{
	return site->call && !strcmp(site->category, "nccl");
}

static bool of_probes(const struct site_info *site)
{
	return site->call && !of_cuda(site) && !of_nccl(site);
}

static bool of_macros(const struct site_info *site)
{
	return !site->call;
}

static bool of_none(const struct site_info *site)
{
	(void)site;
	return false;
}

static const struct {
	const char *name;
	bool (*has)(const struct site_info *site);
} words[] = {
	{"cuda", of_cuda},    {"nccl", of_nccl},  {"probes", of_probes},
	{"spans", of_macros}, {"sched", of_none},
};
#define WORDS (sizeof(words) / sizeof(words[0]))
#define WORD_SCHED (WORDS - 1)

static int add_word(struct stack_choice *choice, const char *text, size_t len, struct error *err)
{
	char word[64];

	for (size_t i = 0; i < WORDS; i++)
		if (strlen(words[i].name) == len && !memcmp(words[i].name, text, len)) {
			choice->words |= 1u << i;
			return 0;
		}
	snprintf(word, sizeof(word), "%.*s", (int)len, text);
	for (size_t i = 0; i < WORDS; i++)
		if (len && near_name(word, words[i].name))
			return error_set(err, EINVAL,
					 "--stacks: there is no '%s'; did you mean %s?", word,
					 words[i].name);
	return error_set(err, EINVAL,
			 "--stacks: there is no '%s'; there are cuda, nccl, probes, spans, "
			 "span:NAME and sched",
			 word);
}

static int add_name(struct stack_choice *choice, const char *text, size_t len, struct error *err)
{
	struct glob *glob;
	size_t at;

	glob = glob_new(text, len, &at);
	if (!glob && at < len)
		return error_set(err, EINVAL, "--stacks: '%.*s': what is wrong begins at '%.*s'",
				 (int)len, text, (int)(len - at), text + at);
	if (!glob || !vec_push(&choice->names, glob)) {
		glob_free(glob);
		return error_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

int stack_choice_add(struct stack_choice **choice, const char *text, struct error *err)
{
	int result = 0;

	if (!*choice)
		*choice = calloc(1, sizeof(**choice));
	if (!*choice)
		return error_set(err, ENOMEM, "out of memory");
	for (const char *at = text; !result; at++) {
		size_t len = strcspn(at, ","), prefix = strlen(BY_NAME);

		if (len > prefix && !strncmp(at, BY_NAME, prefix))
			result = add_name(*choice, at + prefix, len - prefix, err);
		else
			result = add_word(*choice, at, len, err);
		at += len;
		if (!*at)
			break;
	}
	return result;
}

void stack_choice_free(struct stack_choice *choice)
{
	if (!choice)
		return;
	for (size_t i = 0; i < choice->names.len; i++)
		glob_free(choice->names.data[i]);
	vec_free(&choice->names);
	free(choice);
}

bool stack_choice_has(const struct stack_choice *choice, const struct site_info *site)
{
	if (!choice || site->kind == WAFFLE_SITE_COUNTER) /* values have no id to refer to */
		return false;
	for (size_t i = 0; i < WORDS; i++)
		if (choice->words & 1u << i && words[i].has(site))
			return true;
	for (size_t i = 0; i < choice->names.len; i++)
		if (glob_matches(choice->names.data[i], site->name, strlen(site->name)))
			return true;
	return false;
}

bool stack_choice_has_waits(const struct stack_choice *choice)
{
	return choice && choice->words & 1u << WORD_SCHED;
}

// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/stack_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/glob.h"
#include "util/suggest.h"
#include "util/vec.h"

#define BY_NAME "span:"

struct wanted {
	char *word; /* as given */
	bool (*has)(const struct site_info *site);
	struct glob *name; /* NAME of span:NAME, else NULL */
	bool found;
};

struct stack_choice {
	VEC(struct wanted) wanted;
	bool waits;
};

static bool of_cuda(const struct site_info *site)
{
	return site->call && (!strcmp(site->category, "cuda") || !strcmp(site->category, "hip"));
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

static const struct {
	const char *name;
	bool (*has)(const struct site_info *site);
} words[] = {
	{"cuda", of_cuda},    {"nccl", of_nccl}, {"probes", of_probes},
	{"spans", of_macros}, {"sched", NULL},
};
#define WORDS (sizeof(words) / sizeof(words[0]))

static int add_wanted(struct stack_choice *choice, const char *text, size_t len,
		      struct wanted wanted, struct error *err)
{
	wanted.word = strndup(text, len);
	if (wanted.word && vec_push(&choice->wanted, wanted))
		return 0;
	free(wanted.word);
	glob_free(wanted.name);
	return error_set(err, ENOMEM, "out of memory");
}

static int add_word(struct stack_choice *choice, const char *text, size_t len, struct error *err)
{
	char word[64];

	for (size_t i = 0; i < WORDS; i++)
		if (strlen(words[i].name) == len && !memcmp(words[i].name, text, len)) {
			choice->waits |= !words[i].has;
			return !words[i].has
				       ? 0
				       : add_wanted(choice, text, len,
						    (struct wanted){.has = words[i].has}, err);
		}
	snprintf(word, sizeof(word), "%.*s", (int)len, text);
	for (size_t i = 0; i < WORDS; i++)
		if (len && suggest_similar(word, words[i].name))
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
	const char *name = text + strlen(BY_NAME);
	size_t at, name_len = len - strlen(BY_NAME);
	struct glob *glob = glob_new(name, name_len, &at);

	if (!glob && at < name_len)
		return error_set(err, EINVAL, "--stacks: '%.*s': the pattern is wrong at '%.*s'",
				 (int)name_len, name, (int)(name_len - at), name + at);
	if (!glob)
		return error_set(err, ENOMEM, "out of memory");
	return add_wanted(choice, text, len, (struct wanted){.name = glob}, err);
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
			result = add_name(*choice, at, len, err);
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
	for (size_t i = 0; i < choice->wanted.len; i++) {
		glob_free(choice->wanted.data[i].name);
		free(choice->wanted.data[i].word);
	}
	vec_free(&choice->wanted);
	free(choice);
}

bool stack_choice_has(struct stack_choice *choice, const struct site_info *site)
{
	bool result = false;

	if (!choice || site->kind == WAFFLE_SITE_COUNTER) /* counters have no id to refer to */
		return false;
	for (size_t i = 0; i < choice->wanted.len; i++) {
		struct wanted *wanted = &choice->wanted.data[i];

		if (wanted->name ? glob_matches(wanted->name, site->name, strlen(site->name))
				 : wanted->has(site))
			result = wanted->found = true;
	}
	return result;
}

bool stack_choice_has_sites(const struct stack_choice *choice)
{
	for (size_t i = 0; choice && i < choice->wanted.len; i++)
		if (choice->wanted.data[i].name || choice->wanted.data[i].has == of_macros)
			return true;
	return false;
}

bool stack_choice_has_nodes(const struct stack_choice *choice)
{
	return choice && choice->wanted.len;
}

bool stack_choice_has_waits(const struct stack_choice *choice)
{
	return choice && choice->waits;
}

void stack_choice_unfound(const struct stack_choice *choice, stack_choice_report *say, void *arg)
{
	for (size_t i = 0; choice && i < choice->wanted.len; i++) {
		const struct wanted *wanted = &choice->wanted.data[i];

		if (!wanted->found)
			say(wanted->word, wanted->name ? wanted->word + strlen(BY_NAME) : NULL,
			    arg);
	}
}

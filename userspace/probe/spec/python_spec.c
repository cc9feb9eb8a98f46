// SPDX-License-Identifier: Apache-2.0
#include "probe/spec/python_spec.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"

#define PREFIX "python:"

bool python_spec_is(const char *text)
{
	text += strspn(text, " \t");
	return text_begins(text, PREFIX);
}

/* Copies [from, to) without the blanks around it. False: it is empty or too long. */
static bool part_copy(char *part, size_t size, const char *from, const char *to)
{
	from += strspn(from, " \t");
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	if (to <= from || (size_t)(to - from) >= size)
		return false;
	memcpy(part, from, (size_t)(to - from));
	part[to - from] = '\0';
	return true;
}

int python_spec_parse(struct python_spec *spec, const char *text, struct error *err)
{
	const char *file = strchr(text, ':') + 1, *colon = strrchr(file, ':');

	if (!colon || !part_copy(spec->file, sizeof(spec->file), file, colon) ||
	    !part_copy(spec->function, sizeof(spec->function), colon + 1, text + strlen(text)))
		return error_set(err, EINVAL,
				 "--probe: '%s' needs a file and a function, such as "
				 "python:train.py:train_step",
				 text);
	if (strpbrk(spec->function, "()*?[]{} \t"))
		return error_set(err, EINVAL,
				 "--probe: '%s': a function of Python is given by its name alone, "
				 "such as train_step or Trainer.step",
				 text);
	return 0;
}

const char *python_spec_name(const struct python_spec *spec)
{
	const char *dot = strrchr(spec->function, '.');

	return dot ? dot + 1 : spec->function;
}

/* Whether `text` ends with `end`, which begins it or follows `separator`. */
static bool ends_with(const char *text, const char *end, char separator)
{
	size_t len = strlen(text), end_len = strlen(end);

	if (len < end_len || strcmp(text + len - end_len, end) != 0)
		return false;
	return len == end_len || end[0] == separator || text[len - end_len - 1] == separator;
}

/* "Trainer.step" names no function of an interpreter without qualified names, since another class
 * may have a "step". */
bool python_spec_matches(const struct python_spec *spec, const struct python_frame *function,
			 bool qualified)
{
	const char *file = spec->file;

	if (file[0] == '.' && file[1] == '/')
		file += 2;
	if (!ends_with(function->file, file, '/'))
		return false;
	return qualified ? ends_with(function->function, spec->function, '.')
			 : !strcmp(function->function, spec->function);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Decides whether a file is the library of a description. A path is compared after resolving links.
 * The kernel, the loader and users may write different paths where there are links (/lib and
 * /usr/lib).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/spec/call_set.h"
#include "target/process/root.h"
#include "util/path.h"

void call_set_process(struct call_set *set, pid_t pid)
{
	set->process = pid;
}

bool set_name_is(const char *name, const char *path)
{
	bool whole = strchr(name, '/');
	const char *base = whole ? path : path_base(path);
	size_t len = strlen(name);

	return !strncmp(base, name, len) &&
	       (!base[len] || (!whole && (base[len] == '-' || base[len] == '.')));
}

static bool is_spelled(const struct spec_pattern *lib, const char *path)
{
	const char *text = strchr(lib->text, '/') ? path : path_base(path);

	return lib->glob ? glob_matches(lib->glob, text, strlen(text))
			 : set_name_is(lib->text, path);
}

/* Resolves a path below a root. NULL: ours. */
static bool follow(const struct root *root, const char *path, char real[PATH_MAX])
{
	return root ? root_follow(root, root_inside(root, path), real)
		    : realpath(path, real) != NULL;
}

/* Length of the prefix to resolve: all of a path, but only the directories before the first
 * wildcard of a pattern. */
static size_t literal_len(const struct spec_pattern *lib)
{
	size_t len = lib->glob ? strcspn(lib->text, "*?[") : strlen(lib->text);

	while (lib->glob && len && lib->text[len - 1] != '/')
		len--;
	return lib->glob && len ? len - 1 : len;
}

/* Whether `path` matches the library's text if `real` replaces its first `len` bytes. */
static bool is_behind(const struct spec_pattern *lib, size_t len, const char *real,
		      const char *path)
{
	size_t real_len = strlen(real);
	char spelled[2 * PATH_MAX];

	if (strncmp(path, real, real_len) != 0)
		return false;
	if (!lib->glob)
		return !path[real_len];
	return path[real_len] == '/' &&
	       snprintf(spelled, sizeof(spelled), "%.*s%s", (int)len, lib->text, path + real_len) <
		       (int)sizeof(spelled) &&
	       is_spelled(lib, spelled);
}

static bool leads_below(const struct root *root, const struct spec_pattern *lib, const char *path)
{
	char literal[PATH_MAX], real[PATH_MAX], file[PATH_MAX];
	size_t len = literal_len(lib);
	bool known = follow(root, path, file);

	if (known && is_spelled(lib, file))
		return true;
	return len && len < sizeof(literal) &&
	       snprintf(literal, sizeof(literal), "%.*s", (int)len, lib->text) > 0 &&
	       follow(root, literal, real) &&
	       (is_behind(lib, len, real, path) || (known && is_behind(lib, len, real, file)));
}

/* Links in another root or mount namespace may differ from ours. */
static bool leads_to(const struct spec_pattern *lib, const struct set_file *file)
{
	struct root root;
	bool leads = leads_below(NULL, lib, file->path);

	if (leads || !file->process || root_open(&root, file->process))
		return leads;
	leads = leads_below(&root, lib, file->path);
	root_close(&root);
	return leads;
}

static bool lib_is(const struct spec_pattern *lib, struct set_file *file)
{
	if (!strcmp(lib->text, "exe"))
		return file->is_exe;
	if (is_spelled(lib, file->path))
		return true;
	if (lib->text[0] != '/')
		return false;
	/* Cache the last result, since descriptions of one library usually follow one another. */
	if (!file->last || !file->last->glob != !lib->glob ||
	    strcmp(file->last->text, lib->text) != 0)
		file->last_leads = leads_to(lib, file);
	file->last = lib;
	return file->last_leads;
}

bool set_lib_matches(const struct call_spec *spec, struct set_file *file)
{
	for (unsigned i = 0; i < spec->libs.count; i++)
		if (lib_is(&spec->libs.list[i], file))
			return true;
	return false;
}

bool call_set_wants(const struct call_set *set, const char *path)
{
	/* The file is not open yet, so its name tells whether it is a program: libraries have ".so"
	 * in it. */
	struct set_file file = {
		.path = path, .is_exe = !strstr(path_base(path), ".so"), .process = set->process};

	for (size_t i = 0; i < set->entries.len; i++)
		if (set_lib_matches(&set->entries.data[i]->spec, &file))
			return true;
	return false;
}

// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_postgres.h"

#include <string.h>

#include "analyze/why/lookup/why_meaning.h"
#include "util/text.h"

#define TITLE_BEGIN "postgres: "
#define IDLE_END " idle in transaction"

/* How the titles of background processes go on, in PostgreSQL 11 to 18: backend_type.c and
 * ps_status.c in src/backend/utils. An archiver adds what it did last, and workers a number. */
static const char *const background[] = {
	"checkpointer",
	"background writer",
	"walwriter",
	"autovacuum launcher",
	"logical replication launcher",
	"stats collector",
	"logger",
	"archiver",
	"walsummarizer",
	"io worker",
};

/* The title from the user or the kind of process on; NULL: it is no title of PostgreSQL. */
static const char *title_rest(const char *title)
{
	const char *name;

	if (!text_begins(title, TITLE_BEGIN))
		return NULL;
	title += strlen(TITLE_BEGIN);
	name = strstr(title, ": ");
	return name ? name + strlen(": ") : title;
}

/* Whether a word of a title is the client of a session: "[local]" or "127.0.0.1(49032)". The titles
 * of other processes have no such word there: "postgres: parallel worker for PID 7". */
static bool is_client(const char *word)
{
	const char *local = "[local]";
	size_t len = strcspn(word, " "), host = strcspn(word, "( ");

	if (len == strlen(local) && text_begins(word, local))
		return true;
	return host && host + 2 < len && word[len - 1] == ')' &&
	       host + 1 + strspn(word + host + 1, "0123456789") == len - 1;
}

const char *why_postgres_database(const char *title, size_t *len)
{
	const char *rest = title_rest(title);
	const char *name = rest ? strchr(rest, ' ') : NULL;
	const char *end = name ? strchr(++name, ' ') : NULL;

	if (!end || !is_client(end + 1))
		return NULL;
	*len = (size_t)(end - name);
	return name;
}

bool why_postgres_is_idle(const char *title)
{
	size_t len = strlen(title);

	while (len && title[len - 1] == ' ')
		len--;
	return len >= strlen(IDLE_END) && text_begins(title, TITLE_BEGIN) &&
	       !strncmp(title + len - strlen(IDLE_END), IDLE_END, strlen(IDLE_END));
}

bool why_postgres_is_background(const struct model *model, uint32_t thread)
{
	const struct model_process *process = model_process_of(model, thread);
	const char *title = process ? strtab_get(model->strings, process->cmdline) : "";
	const char *rest = title_rest(title);
	size_t len;

	if (!rest || why_postgres_database(title, &len))
		return false;
	for (size_t i = 0; i < sizeof(background) / sizeof(background[0]); i++) {
		len = strlen(background[i]);
		if (text_begins(rest, background[i]) && (!rest[len] || rest[len] == ' '))
			return true;
	}
	return false;
}

/* Source: src/backend/tcop/postgres.c of PostgreSQL 11 to 18. COPY FROM STDIN reads with
 * pq_getbyte(), too, but is called from elsewhere. */
bool why_postgres_awaits_command(const char *const *functions, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (!strcmp(functions[i - 1], "pq_getbyte"))
			return meaning_is_listed(functions[i],
						 "SocketBackend ReadCommand PostgresMain ");
	return false;
}

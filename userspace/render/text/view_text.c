// SPDX-License-Identifier: Apache-2.0
#include "render/text/view_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "render/place.h"
#include "render/text/notices.h"
#include "render/text/view_grid_internal.h"
#include "render/text/view_pick_internal.h"
#include "util/memory.h"
#include "util/terminal.h"
#include "util/units.h"

/* Minimum distance between two marks of the axis, in columns. */
#define TICK_COLUMNS 10
#define LINE_MAX_BYTES 512

struct glyphs {
	const char *states[GRID_STATES];
	const char *begin, *end, *single, *fill, *cut;
};

static const struct glyphs glyphs_utf8 = {
	{" ", "█", "▒", "░"}, "├", "┤", "│", "─", "…",
};
static const struct glyphs glyphs_ascii = {
	{" ", "#", "+", "."}, "[", "]", "|", "-", "~",
};

/* SGR sequences (ECMA-48 8.3.117). */
static const char *const state_paints[GRID_STATES] = {"", TERMINAL_GREEN, TERMINAL_YELLOW,
						      TERMINAL_RED};
static const char *const span_paints[] = {"\033[36m", "\033[35m", "\033[34m",
					  "\033[96m", "\033[95m", "\033[94m"};

struct drawing {
	const struct model *model;
	const struct view_options *options;
	const struct glyphs *glyphs;
	const struct grid *grid;
	FILE *out;
};

/* ---- text ---- */

static void paint(const struct drawing *drawing, const char *sequence)
{
	terminal_paint(drawing->out, drawing->options->colour, sequence);
}

/* Bytes of the first character of a text, which must not be empty. */
static size_t char_bytes(const char *text)
{
	size_t bytes = 1;

	while (((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes++;
	return bytes;
}

/*
 * Copies one character of a name to `to`, and returns the position of the next one. Only letters
 * that are certain to take one column are kept, since others would shift the rest of the line.
 */
static const char *name_char(const struct drawing *drawing, const char *name, char to[5])
{
	const unsigned char *at = (const unsigned char *)name;
	size_t bytes = char_bytes(name);
	unsigned code = bytes == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu) : 0;

	if (bytes == 1 && *at >= 0x20 && *at < 0x7f)
		memcpy(to, (char[]){*name, 0}, 2);
	else if (drawing->options->utf8 && at[0] >= 0xc2 && at[0] < 0xe0 &&
		 ((code >= 0xa1 && code < 0x300 && code != 0xad) ||
		  (code >= 0x386 && code < 0x483)))
		memcpy(to, (char[]){name[0], name[1], 0}, 3);
	else
		memcpy(to, "?", 2);
	return name + bytes;
}

/* Prints a line, cut to the drawing's width and then ended by "…". */
static void put_clipped(const struct drawing *drawing, const char *text)
{
	uint32_t room = drawing->options->width;
	bool fits = terminal_columns(text) <= room;

	for (uint32_t i = 0; *text && i + !fits < room; i++) {
		size_t bytes = char_bytes(text);

		fwrite(text, 1, bytes, drawing->out);
		text += bytes;
	}
	fputs(fits ? "\n" : drawing->glyphs->cut, drawing->out);
	if (!fits)
		fputc('\n', drawing->out);
}

/* Prints a line of the drawing, cut to its width. Text of traced programs has to pass through
 * clean(). */
static void put_line(const struct drawing *drawing, const char *code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void put_line(const struct drawing *drawing, const char *code, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	paint(drawing, code);
	put_clipped(drawing, line);
	if (*code)
		paint(drawing, TERMINAL_END);
}

/* A name as put_name() writes it, cut to `columns`. `to` must have room for 4 bytes a column and a
 * NUL. */
static const char *clean(const struct drawing *drawing, const char *name, char *to,
			 unsigned columns)
{
	char letter[5], *at = to;

	*at = 0;
	for (unsigned i = 0; *name && i < columns; i++) {
		name = name_char(drawing, name, letter);
		at = stpcpy(at, letter);
	}
	return to;
}

/* Formats a time since the start of the capture as "12.345678901 s", without trailing zeros. Only
 * what is on a track may be before it. */
static const char *instant(const struct drawing *drawing, char text[UNITS_TEXT], uint64_t ts)
{
	uint64_t start = drawing->model->meta->start_ts, ns = ts > start ? ts - start : start - ts;
	char *end;

	snprintf(text, UNITS_TEXT, "%s%" PRIu64 ".%09" PRIu64, ts < start ? "-" : "",
		 ns / 1000000000, ns % 1000000000);
	end = text + strlen(text);
	while (end[-1] == '0')
		end--;
	if (end[-1] == '.')
		end--;
	memcpy(end, " s", 3);
	return text;
}

/* ---- head ---- */

static void put_head(const struct drawing *drawing, uint64_t threads)
{
	const struct grid *grid = drawing->grid;
	const char *tracks = drawing->model->track_count ? "lane" : "thread";
	const char *command = drawing->model->meta->command;
	char name[4 * 120 + 1], from[UNITS_TEXT], to[UNITS_TEXT], column[UNITS_TEXT],
		all[UNITS_TEXT];

	put_line(drawing, TERMINAL_BOLD, "%s",
		 clean(drawing, *command ? command : "capture", name, 120));
	put_line(drawing, "", "%s to %s: %s, a column is %s, %" PRIu64 " %s%s",
		 instant(drawing, from, grid->from_ts), instant(drawing, to, grid->to_ts),
		 units_format_duration(all, grid->to_ts - grid->from_ts),
		 units_format_duration(column, (grid->to_ts - grid->from_ts) / grid->columns),
		 threads, tracks, units_plural(threads, "", "s"));
	if (notice_simulated(drawing->model))
		put_line(drawing, "", "%s", notice_simulated(drawing->model));
	if (drawing->model->filtered.expression)
		put_line(drawing, "", "filtered: %" PRIu64 " %s left out",
			 drawing->model->filtered.spans,
			 units_plural(drawing->model->filtered.spans, "span is", "spans are"));
}

static bool tick_fits(const struct grid *grid, uint64_t step)
{
	uint64_t length = grid->to_ts - grid->from_ts;

	return step > length / 2 || (double)step / (double)length * grid->columns >= TICK_COLUMNS;
}

/* Chooses 1, 2 or 5 times a power of ten, or whole minutes, so that the marks are far enough
 * apart. */
static uint64_t tick_step(const struct grid *grid)
{
	static const unsigned char parts[] = {1, 2, 5};
	static const unsigned minutes[] = {1, 2, 5, 10, 20, 30, 60, 120, 360, 720};
	const uint64_t minute = 60000000000;
	uint64_t days = 1440 * minute;

	for (uint64_t ten = 1; ten < minute; ten *= 10)
		for (unsigned i = 0; i < 3 && ten * parts[i] < minute; i++)
			if (tick_fits(grid, ten * parts[i]))
				return ten * parts[i];
	for (unsigned i = 0; i < sizeof(minutes) / sizeof(*minutes); i++)
		if (tick_fits(grid, minutes[i] * minute))
			return minutes[i] * minute;
	while (!tick_fits(grid, days))
		days *= 2;
	return days;
}

static void put_axis(const struct drawing *drawing)
{
	const struct grid *grid = drawing->grid;
	uint64_t step = tick_step(grid), length = grid->to_ts - grid->from_ts;
	uint32_t at = 0;

	for (uint64_t ns = 0; ns < length && ns <= UINT64_MAX - step; ns += step) {
		uint32_t column = grid_column_at(grid, grid->from_ts + ns);
		char number[UNITS_TEXT], text[UNITS_TEXT + 2];

		snprintf(text, sizeof(text), "|%s%s", ns ? "+" : "",
			 ns ? units_format_duration(number, ns) : "0");
		if (column < at || column + terminal_columns(text) > grid->columns)
			continue;
		fprintf(drawing->out, "%*s%s", (int)(column - at), "", text);
		at = column + terminal_columns(text);
	}
	fputc('\n', drawing->out);
}

/* Marks the columns in which records were lost. */
static void put_losses(const struct drawing *drawing)
{
	const struct grid *grid = drawing->grid;
	char *marks = memory_zeroed(grid->columns + 1, 1);
	uint64_t lost = 0;
	char count[UNITS_TEXT];

	memset(marks, ' ', grid->columns);
	for (size_t i = 0; i < drawing->model->losses.len; i++) {
		const struct model_loss *loss = &drawing->model->losses.data[i];
		uint64_t from = loss->from_ts, to = loss->to_ts;

		if (!loss->count || !lane_clip(grid->from_ts, grid->to_ts, &from, &to))
			continue;
		lost += loss->count;
		for (uint32_t c = grid_column_at(grid, from); c <= grid_column_at(grid, to); c++)
			marks[c] = '!';
	}
	if (lost) {
		*(strrchr(marks, '!') + 1) = 0;
		paint(drawing, TERMINAL_WARN);
		fprintf(drawing->out, "%s\n", marks);
		paint(drawing, TERMINAL_END);
		put_line(drawing, TERMINAL_WARN,
			 "%s records were lost at the marks !: what is drawn there is incomplete",
			 units_format_count(count, lost));
	}
	free(marks);
}

/* ---- lanes ---- */

static void put_lane_head(const struct drawing *drawing, const struct grid_lane *lane)
{
	const struct grid *grid = drawing->grid;
	static const char *const names[GRID_STATES] = {NULL, "running", "runnable", "blocked"};
	uint64_t ns[GRID_STATES] = {0}, window = grid->to_ts - grid->from_ts;
	char text[PLACE_TEXT], place[4 * 64 + 1];
	char name[4 * 64 + 1], count[UNITS_TEXT], share[UNITS_TEXT], line[LINE_MAX_BYTES];
	unsigned known = 0;
	int len;

	for (uint32_t i = 0; i < grid->columns; i++)
		for (unsigned state = 1; state < GRID_STATES; state++)
			ns[state] += lane->states[i].ns[state];
	len = snprintf(line, sizeof(line), "%s (%s)",
		       clean(drawing, model_thread_name(drawing->model, lane->thread), name, 64),
		       clean(drawing, place_thread(text, drawing->model, lane->thread), place, 64));
	for (unsigned state = 1; state < GRID_STATES; state++)
		if (ns[state])
			len += snprintf(line + len, sizeof(line) - (size_t)len, "%s%s %s",
					!known++ ? ": " : ", ", names[state],
					units_format_share(share, ns[state], window));
	if (lane->spans)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "%s%s span%s",
				known ? ", " : ": ", units_format_count(count, lane->spans),
				units_plural(lane->spans, "", "s"));
	if (lane->deeper)
		snprintf(line + len, sizeof(line) - (size_t)len, ", %s too deep to draw",
			 units_format_count(count, lane->deeper));
	put_line(drawing, TERMINAL_BOLD, "%s", line);
}

/* The glyph of a column that hides further spans; NULL: it hides none. */
static const char *crowd(const struct grid_cell *cell)
{
	static const char *const digits[] = {"2", "3", "4", "5", "6", "7", "8", "9"};

	if (!cell->hidden)
		return NULL;
	return cell->hidden <= 8 ? digits[cell->hidden - 1] : "*";
}

/* Draws a span in the columns [first, last]. */
static void put_span(const struct drawing *drawing, const struct grid_cell *cells, uint32_t first,
		     uint32_t last)
{
	const struct glyphs *glyphs = drawing->glyphs;
	const struct model_span *span = &drawing->model->spans.data[cells[first].span];
	const char *name = model_site(drawing->model, span->site)->name;
	bool before =
		span->start_ts < drawing->grid->from_ts || span->flags & MODEL_SPAN_BEGUN_BEFORE;
	bool after = span->end_ts > drawing->grid->to_ts || span->flags & MODEL_SPAN_UNFINISHED;
	const char *left = before ? "<" : glyphs->begin, *right = after ? ">" : glyphs->end;
	uint32_t room = last > first ? last - first - 1 : 0, columns = terminal_columns(name);
	char letter[5];

	paint(drawing, span_paints[span->site % (sizeof(span_paints) / sizeof(*span_paints))]);
	if (first == last) {
		left = before && after ? glyphs->fill : before ? "<" : after ? ">" : glyphs->single;
		fputs(crowd(&cells[first]) ? crowd(&cells[first]) : left, drawing->out);
		paint(drawing, TERMINAL_END);
		return;
	}
	fputs(crowd(&cells[first]) ? crowd(&cells[first]) : left, drawing->out);
	for (uint32_t i = 0; i < room; i++) {
		if (!*name) {
			fputs(glyphs->fill, drawing->out);
		} else if (i + 1 == room && columns > room) {
			fputs(glyphs->cut, drawing->out);
		} else {
			name = name_char(drawing, name, letter);
			fputs(letter, drawing->out);
		}
	}
	fputs(crowd(&cells[last]) ? crowd(&cells[last]) : right, drawing->out);
	paint(drawing, TERMINAL_END);
}

static void put_row(const struct drawing *drawing, const struct grid_cell *cells)
{
	uint32_t columns = drawing->grid->columns, blank = 0;

	for (uint32_t i = 0; i < columns;) {
		uint32_t last = i;

		if (cells[i].span == MODEL_NONE) {
			blank++;
			i++;
			continue;
		}
		while (last + 1 < columns && cells[last + 1].span == cells[i].span)
			last++;
		fprintf(drawing->out, "%*s", (int)blank, "");
		put_span(drawing, cells, i, last);
		blank = 0;
		i = last + 1;
	}
	fputc('\n', drawing->out);
}

/* The state that took most of a column; 0: it is unknown for most of it. */
static unsigned most_state(const struct grid *grid, const struct grid_lane *lane, uint32_t column)
{
	const uint64_t *ns = lane->states[column].ns;
	uint64_t left = grid_column_ts(grid, column + 1) - grid_column_ts(grid, column);
	unsigned most = 1;

	for (unsigned state = 1; state < GRID_STATES; state++) {
		left -= ns[state] < left ? ns[state] : left;
		if (ns[state] > ns[most])
			most = state;
	}
	return ns[most] && ns[most] >= left ? most : 0;
}

static void put_states(const struct drawing *drawing, const struct grid_lane *lane)
{
	uint32_t columns = drawing->grid->columns, blank = 0;
	unsigned last = 0;

	for (uint32_t i = 0; i < columns; i++) {
		unsigned state = most_state(drawing->grid, lane, i);

		if (state != last)
			paint(drawing, last ? TERMINAL_END : "");
		if (!state) {
			blank++;
		} else {
			fprintf(drawing->out, "%*s", (int)blank, "");
			blank = 0;
			if (state != last)
				paint(drawing, state_paints[state]);
			fputs(drawing->glyphs->states[state], drawing->out);
		}
		last = state;
	}
	if (last)
		paint(drawing, TERMINAL_END);
	fputc('\n', drawing->out);
}

static void put_lane(const struct drawing *drawing, const struct grid_lane *lane)
{
	put_lane_head(drawing, lane);
	for (uint32_t row = 0; row < lane->rows; row++)
		put_row(drawing, lane->cells[row]);
	if (drawing->model->threads.data[lane->thread].has_sched)
		put_states(drawing, lane);
}

static void put_legend(const struct drawing *drawing)
{
	const struct glyphs *glyphs = drawing->glyphs;
	const char *const marks[] = {glyphs->states[WAFFLE_THREAD_RUNNING],
				     glyphs->states[WAFFLE_THREAD_RUNNABLE],
				     glyphs->states[WAFFLE_THREAD_BLOCKED],
				     "< >",
				     "2-9",
				     "*"};
	static const char *const texts[] = {"running",
					    "runnable",
					    "blocked",
					    "goes on outside",
					    "number of spans in a column",
					    "more than 9"};
	uint32_t at = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		uint32_t columns = terminal_columns(marks[i]) + 1 + (uint32_t)strlen(texts[i]);

		if (at && at + 2 + columns > drawing->options->width) {
			fputc('\n', drawing->out);
			at = 0;
		}
		fprintf(drawing->out, "%s%s %s", at ? "  " : "", marks[i], texts[i]);
		at += columns + (at ? 2 : 0);
	}
	fputc('\n', drawing->out);
}

/* ---- the drawing ---- */

static void draw(struct drawing *drawing, struct grid *grid, const struct view_ranking *ranking,
		 size_t count)
{
	const struct view_options *options = drawing->options;
	size_t lanes = options->lanes && options->lanes < count ? options->lanes : count;
	uint64_t length = ranking->to_ts - ranking->from_ts;
	uint32_t *threads = memory_get((lanes + 1) * sizeof(*threads));

	for (size_t i = 0; i < lanes; i++)
		threads[i] = ranking->threads[i].thread;
	grid_make(grid, drawing->model, ranking->from_ts, ranking->to_ts,
		  length < options->width ? (uint32_t)length : options->width, threads, lanes);
	free(threads);
	put_head(drawing, count);
	put_axis(drawing);
	put_losses(drawing);
	for (size_t i = 0; i < lanes; i++)
		put_lane(drawing, &grid->lanes.data[i]);
	if (lanes < count)
		put_line(drawing, "", "%zu more thread%s; --top 0 shows all", count - lanes,
			 units_plural(count - lanes, "", "s"));
	put_legend(drawing);
}

int view_print_text(const struct model *model, const struct view_options *options, FILE *out,
		    struct error *err)
{
	struct grid grid = {0};
	struct view_ranking ranking;
	struct drawing drawing = {.model = model,
				  .options = options,
				  .glyphs = options->utf8 ? &glyphs_utf8 : &glyphs_ascii,
				  .grid = &grid,
				  .out = out};
	size_t count;
	int result = view_find_window(model, options, &ranking, err);

	if (result)
		return result;
	view_rank_threads(&ranking, model, options, &count);
	if (!count && options->thread)
		result = error_set(err, ENOENT,
				   "no thread '%s' did anything in that time; waffle-bpf report "
				   "lists the threads",
				   options->thread);
	else
		draw(&drawing, &grid, &ranking, count);
	grid_free(&grid);
	free(ranking.threads);
	return result;
}

/* ---- the terminal ---- */

uint32_t view_width_of(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t width = 0;

	if (!columns || !units_parse_number(columns, &width) || !width) {
		width = 80;
		if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
			width = size.ws_col;
	}
	if (width < VIEW_WIDTH_MIN)
		return VIEW_WIDTH_MIN;
	return width < VIEW_WIDTH_MAX ? (uint32_t)width : VIEW_WIDTH_MAX;
}

bool view_utf8_locale(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);
		const char *charset = value ? strchr(value, '.') : NULL;

		if (value && *value)
			return charset && (!strncasecmp(charset, ".utf-8", 6) ||
					   !strncasecmp(charset, ".utf8", 5));
	}
	return false;
}

// SPDX-License-Identifier: Apache-2.0
#include "render/text/frame.h"

#include <inttypes.h>
#include <string.h>

#include "util/path.h"
#include "util/terminal.h"

static void put(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

void frame_put(FILE *out, const struct stack_frame *frame)
{
	if (frame->function) {
		put(out, frame->function);
		if (frame->file) {
			fputs(" (", out);
			put(out, path_base(frame->file));
			if (frame->line)
				fprintf(out, ":%u", frame->line);
			fputc(')', out);
		}
	} else {
		if (frame->module) {
			put(out, path_base(frame->module));
			fputc('+', out);
		}
		fprintf(out, "0x%" PRIx64, frame->offset);
	}
	if (frame->inlined)
		fputs(" [inlined]", out);
}

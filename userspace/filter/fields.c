// SPDX-License-Identifier: Apache-2.0
#include "filter/expr_internal.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

const struct filter_field_info filter_fields[] = {
	[FILTER_KIND] =
		{"kind", FILTER_TYPE_KIND, true,
		 "what it is: `span`, `event`, `counter`, `log`, `sched`, `cuda` or `nccl`"},
	[FILTER_NAME] = {"name", FILTER_TYPE_TEXT, true, "its name; of a log, the message"},
	[FILTER_CATEGORY] = {"category", FILTER_TYPE_TEXT, true,
			     "`WAFFLE_CATEGORY` where it stands; \"\" if there is none"},
	[FILTER_FILE] = {"file", FILTER_TYPE_TEXT, true, "source file"},
	[FILTER_LINE] = {"line", FILTER_TYPE_NUMBER, true, "line in the source file"},
	[FILTER_FUNC] = {"func", FILTER_TYPE_TEXT, true, "function it stands in"},
	[FILTER_LIB] = {"lib", FILTER_TYPE_TEXT, true, "program or library it is in"},
	[FILTER_PID] = {"pid", FILTER_TYPE_NUMBER, false, "its process"},
	[FILTER_TID] = {"tid", FILTER_TYPE_NUMBER, false, "thread that began it"},
	[FILTER_COMM] = {"comm", FILTER_TYPE_TEXT, false,
			 "name of that thread in the kernel, at most 15 bytes"},
	[FILTER_CPU] = {"cpu", FILTER_TYPE_NUMBER, false, "CPU it began on"},
	[FILTER_DUR] = {"dur", FILTER_TYPE_TIME, false, "from a span's begin to its end"},
	[FILTER_DEPTH] = {"depth", FILTER_TYPE_NUMBER, false, "spans above it; 0 without a parent"},
	[FILTER_PARENT_NAME] = {"parent.name", FILTER_TYPE_TEXT, false,
				"name of the span it is in"},
	[FILTER_KV] = {"kv", FILTER_TYPE_ANY, false, "value of a key"},
};
_Static_assert(COUNT_OF(filter_fields) == FILTER_FIELD_COUNT, "one row a field");

const char *const filter_kinds[] = {
	[FILTER_KIND_SPAN] = "span",       [FILTER_KIND_EVENT] = "event",
	[FILTER_KIND_COUNTER] = "counter", [FILTER_KIND_LOG] = "log",
	[FILTER_KIND_SCHED] = "sched",     [FILTER_KIND_CUDA] = "cuda",
	[FILTER_KIND_NCCL] = "nccl",
};
_Static_assert(COUNT_OF(filter_kinds) == FILTER_KIND_COUNT, "one word a kind");

const char *const filter_ops[] = {
	[FILTER_EQ] = "==",   [FILTER_NE] = "!=",        [FILTER_LT] = "<",
	[FILTER_LE] = "<=",   [FILTER_GT] = ">",         [FILTER_GE] = ">=",
	[FILTER_MATCH] = "~", [FILTER_NOT_MATCH] = "!~", [FILTER_IN] = "in",
};
_Static_assert(COUNT_OF(filter_ops) == FILTER_OP_COUNT, "one word an operator");

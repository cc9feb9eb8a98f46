// SPDX-License-Identifier: Apache-2.0
/* The parts that all requests of OTLP have: attributes, the resource and the scope. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "export/process/otlp_out_internal.h"
#include "export/process/otlp_traces.h"
#include "export/process/resource_internal.h"
#include "util/utf8.h"

/* message KeyValue { string key = 1; AnyValue value = 2; } */
static void attribute_begin(struct otlp_out *otlp, unsigned field, const char *key)
{
	otlp_item_begin(otlp, field);
	otlp_text(otlp, 1, "key", key);
	otlp_begin(otlp, 2, "value");
}

static void attribute_end(struct otlp_out *otlp)
{
	otlp_end(otlp);
	otlp_end(otlp);
}

/* message AnyValue { oneof { string string_value = 1; bool bool_value = 2; int64 int_value = 3;
 * double double_value = 4; … } } */
void otlp_attribute_text(struct otlp_out *otlp, unsigned field, const char *key, const char *text,
			 size_t len)
{
	unsigned char *at = NULL;

	if (!otlp->json && utf8_valid(text, len) == len)
		at = otlp_attribute_room(otlp, field, key, 1 + otlp_varint_len(len) + len);
	if (at) {
		*at++ = 1 << 3 | WIRE_BYTES;
		memcpy(otlp_varint_put(at, len), text, len);
		return;
	}
	attribute_begin(otlp, field, key);
	otlp_text_len(otlp, 1, "stringValue", text, len);
	attribute_end(otlp);
}

void otlp_attribute_bool(struct otlp_out *otlp, unsigned field, const char *key, bool value)
{
	attribute_begin(otlp, field, key);
	otlp_bool(otlp, 2, "boolValue", value);
	attribute_end(otlp);
}

void otlp_attribute_int(struct otlp_out *otlp, unsigned field, const char *key, int64_t value)
{
	unsigned char *at =
		otlp_attribute_room(otlp, field, key, 1 + otlp_varint_len((uint64_t)value));

	if (at) {
		*at++ = 3 << 3 | WIRE_VARINT;
		otlp_varint_put(at, (uint64_t)value);
		return;
	}
	attribute_begin(otlp, field, key);
	otlp_int64(otlp, 3, "intValue", value);
	attribute_end(otlp);
}

void otlp_attribute_double(struct otlp_out *otlp, unsigned field, const char *key, double value)
{
	attribute_begin(otlp, field, key);
	otlp_double(otlp, 4, "doubleValue", value);
	attribute_end(otlp);
}

void otlp_attribute_value(struct otlp_out *otlp, unsigned field, const struct waffle_value *value)
{
	const char *text;
	char address[24];

	switch (value->type) {
	case WAFFLE_VALUE_I64:
		otlp_attribute_int(otlp, field, value->key, value->i64);
		break;
	case WAFFLE_VALUE_U64:
		/* OTLP has no larger numbers: as in its rules for other types, a text. */
		if (value->u64 <= INT64_MAX) {
			otlp_attribute_int(otlp, field, value->key, (int64_t)value->u64);
			break;
		}
		snprintf(address, sizeof(address), "%llu", (unsigned long long)value->u64);
		otlp_attribute_text(otlp, field, value->key, address, strlen(address));
		break;
	case WAFFLE_VALUE_F64:
		/* Jaeger can't show a trace with a number that JSON does not have. */
		if (isfinite(value->f64)) {
			otlp_attribute_double(otlp, field, value->key, value->f64);
			break;
		}
		text = isnan(value->f64) ? "NaN" : value->f64 > 0 ? "Infinity" : "-Infinity";
		otlp_attribute_text(otlp, field, value->key, text, strlen(text));
		break;
	case WAFFLE_VALUE_BOOL:
		otlp_attribute_bool(otlp, field, value->key, value->u64);
		break;
	case WAFFLE_VALUE_ADDRESS:
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)value->u64);
		otlp_attribute_text(otlp, field, value->key, address, strlen(address));
		break;
	case WAFFLE_VALUE_TEXT:
		otlp_attribute_text(otlp, field, value->key, value->text, value->text_len);
		break;
	default:
		break;
	}
}

/* OTEL_RESOURCE_ATTRIBUTES: "key=value,key=value". service.name is that of the program. */
static void variable_attributes(struct otlp_out *otlp)
{
	const char *text = secure_getenv("OTEL_RESOURCE_ATTRIBUTES");

	while (text && *text) {
		size_t len = strcspn(text, ","), key_len = strcspn(text, "=");
		char key[128];

		if (key_len < len && key_len && key_len < sizeof(key)) {
			memcpy(key, text, key_len);
			key[key_len] = '\0';
			if (strcmp(key, "service.name") != 0)
				otlp_attribute_text(otlp, 1, key, text + key_len + 1,
						    len - key_len - 1);
		}
		text += len + (text[len] == ',');
	}
}

static void text_write(struct otlp_out *otlp, const char *key, const char *text)
{
	if (*text)
		otlp_attribute_text(otlp, 1, key, text, strlen(text));
}

const char *otlp_arch_name(const char *machine)
{
	return !strcmp(machine, "x86_64")    ? "amd64"
	       : !strcmp(machine, "aarch64") ? "arm64"
					     : machine;
}

static void host_attributes(struct otlp_out *otlp, const char *host)
{
	struct utsname name;

	text_write(otlp, "host.name", host);
	text_write(otlp, "os.type", "linux");
	if (uname(&name))
		return;
	text_write(otlp, "host.arch", otlp_arch_name(name.machine));
	text_write(otlp, "os.version", name.release);
}

/* The process that runs this, or another one on this host. */
static void process_attributes(struct otlp_out *otlp, uint32_t pid, struct resource_cache *cache)
{
	char host[256] = "", instance[300];
	struct resource_process process;

	resource_find(&process, cache, pid);
	if (gethostname(host, sizeof(host) - 1))
		*host = '\0';
	snprintf(instance, sizeof(instance), "%s:%u", host, pid);
	text_write(otlp, "service.instance.id", instance);
	host_attributes(otlp, host);
	otlp_attribute_int(otlp, 1, "process.pid", pid);
	text_write(otlp, "process.executable.name", process.executable);
	text_write(otlp, "container.id", process.container);
	if (process.rank.rank != PROCESS_RANK_NONE)
		otlp_attribute_int(otlp, 1, "waffle.rank", process.rank.rank);
	if (process.rank.world_size)
		otlp_attribute_int(otlp, 1, "waffle.world_size", process.rank.world_size);
	text_write(otlp, "waffle.job", process.rank.job);
}

/* message Resource { repeated KeyValue attributes = 1; } */
void otlp_resource(struct otlp_out *otlp, const char *service, uint32_t pid,
		   const struct record_facts *facts, struct resource_cache *cache)
{
	otlp_begin(otlp, 1, "resource");
	otlp_list_begin(otlp, "attributes");
	otlp_attribute_text(otlp, 1, "service.name", service, strlen(service));
	if (!facts)
		process_attributes(otlp, pid, cache);
	for (size_t i = 0; facts && i < facts->resource_count; i++)
		otlp_attribute_value(otlp, 1, &facts->resource[i]);
	otlp_attribute_text(otlp, 1, "telemetry.sdk.name", "waffle", 6);
	otlp_attribute_text(otlp, 1, "telemetry.sdk.version", WAFFLE_VERSION,
			    strlen(WAFFLE_VERSION));
	variable_attributes(otlp);
	otlp_list_end(otlp);
	otlp_end(otlp);
}

/* message InstrumentationScope { string name = 1; string version = 2; } */
void otlp_scope(struct otlp_out *otlp)
{
	otlp_begin(otlp, 1, "scope");
	otlp_text(otlp, 1, "name", "waffle");
	otlp_text(otlp, 2, "version", WAFFLE_VERSION);
	otlp_end(otlp);
}

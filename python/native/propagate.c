// SPDX-License-Identifier: Apache-2.0
/* waffle.Received: what came with a message (waffle_propagate.h). waffle/_propagate.py has the
 * functions that read and write headers. */
#include "native.h"

#include <errno.h>

#include "waffle_propagate.h"

struct received {
	PyObject_HEAD struct waffle_wire_context wire;
};

static PyTypeObject *received_type;

/* Headers are a dict of names in lower case to lists of bytes. */
static const char *header_get(void *user, const char *name, size_t index, size_t *length)
{
	PyObject *values = PyDict_GetItemString((PyObject *)user, name), *value;

	if (!values || !PyList_Check(values) || (Py_ssize_t)index >= PyList_GET_SIZE(values))
		return NULL;
	value = PyList_GET_ITEM(values, (Py_ssize_t)index);
	if (!PyBytes_Check(value))
		return NULL;
	*length = (size_t)PyBytes_GET_SIZE(value);
	return PyBytes_AS_STRING(value);
}

static int header_set(void *user, const char *name, const char *value)
{
	PyObject *text = PyUnicode_DecodeLatin1(value, (Py_ssize_t)strlen(value), NULL);
	int failed = text ? PyDict_SetItemString((PyObject *)user, name, text) : -1;

	Py_XDECREF(text);
	return failed ? -ENOMEM : 0;
}

static unsigned set_of(const char *text)
{
	unsigned propagators;

	if (!text)
		return waffle_propagators();
	waffle_propagators_parse(text, &propagators);
	return propagators;
}

/* Received(headers=None, propagators=None) */
static PyObject *received_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *headers = NULL;
	const char *propagators = NULL;
	struct waffle_carrier carrier = {.get = header_get};
	struct received *self;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "|O!z", &PyDict_Type, &headers, &propagators))
		return NULL;
	self = (struct received *)type->tp_alloc(type, 0);
	if (!self || !headers)
		return (PyObject *)self;
	carrier.user = headers;
	waffle_propagate_extract(set_of(propagators), &carrier, &self->wire);
	return (PyObject *)self;
}

/* inject(context, propagators): a dict of the headers to be sent. */
static PyObject *received_inject(PyObject *object, PyObject *args)
{
	struct received *self = (struct received *)object;
	PyObject *holder, *headers;
	const char *propagators = NULL;
	struct waffle_carrier carrier = {.set = header_set};
	int failed = 0;

	if (!PyArg_ParseTuple(args, "O|z", &holder, &propagators))
		return NULL;
	headers = PyDict_New();
	carrier.user = headers;
	Py_BEGIN_CRITICAL_SECTION(object);
	if (headers)
		failed = waffle_propagate_inject(set_of(propagators), &carrier, context_of(holder),
						 &self->wire);
	Py_END_CRITICAL_SECTION();
	if (failed) {
		Py_DECREF(headers);
		return PyErr_Occurred() ? NULL : PyErr_NoMemory();
	}
	return headers;
}

typedef long (*get_function)(const struct waffle_wire_context *wire, const char *key, char *value,
			     size_t size);

static PyObject *item_get(PyObject *object, PyObject *key, get_function get)
{
	const struct waffle_wire_context *wire = &((struct received *)object)->wire;
	const char *text = PyUnicode_AsUTF8(key);
	char value[WAFFLE_BAGGAGE_MAX + 1];
	long length;

	if (!text)
		return NULL;
	Py_BEGIN_CRITICAL_SECTION(object);
	length = get(wire, text, value, sizeof(value));
	Py_END_CRITICAL_SECTION();
	if (length < 0)
		Py_RETURN_NONE;
	return PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "replace");
}

static PyObject *baggage_get(PyObject *object, PyObject *key)
{
	return item_get(object, key, waffle_baggage_get);
}

static PyObject *tracestate_get(PyObject *object, PyObject *key)
{
	return item_get(object, key, waffle_tracestate_get);
}

static PyObject *item_result(int code)
{
	if (!code)
		Py_RETURN_NONE;
	PyErr_SetString(PyExc_ValueError, code == -ENOSPC
						  ? "waffle: there is no room for it"
						  : "waffle: the key or value is not valid");
	return NULL;
}

static PyObject *baggage_set(PyObject *object, PyObject *args)
{
	struct received *self = (struct received *)object;
	const char *key, *value, *properties = NULL;
	int code;

	if (!PyArg_ParseTuple(args, "sz|z", &key, &value, &properties))
		return NULL;
	Py_BEGIN_CRITICAL_SECTION(object);
	code = waffle_baggage_set(&self->wire, key, value, properties);
	Py_END_CRITICAL_SECTION();
	return item_result(code);
}

static PyObject *tracestate_set(PyObject *object, PyObject *args)
{
	struct received *self = (struct received *)object;
	const char *key, *value;
	int code;

	if (!PyArg_ParseTuple(args, "sz", &key, &value))
		return NULL;
	Py_BEGIN_CRITICAL_SECTION(object);
	code = waffle_tracestate_set(&self->wire, key, value);
	Py_END_CRITICAL_SECTION();
	return item_result(code);
}

static PyObject *received_context(PyObject *object, void *unused)
{
	(void)unused;
	return context_new(((struct received *)object)->wire.context);
}

static PyObject *received_sampled(PyObject *object, void *unused)
{
	enum waffle_sampling sampling = ((struct received *)object)->wire.sampling;

	(void)unused;
	if (sampling == WAFFLE_SAMPLING_UNKNOWN)
		Py_RETURN_NONE;
	return PyBool_FromLong(sampling != WAFFLE_SAMPLING_DENY);
}

static PyObject *received_text(PyObject *object, void *which)
{
	const struct waffle_wire_context *wire = &((struct received *)object)->wire;
	const char *text = which ? wire->baggage : wire->tracestate;
	PyObject *made;

	Py_BEGIN_CRITICAL_SECTION(object);
	made = PyUnicode_DecodeLatin1(text, (Py_ssize_t)strlen(text), NULL);
	Py_END_CRITICAL_SECTION();
	return made;
}

static PyMethodDef received_methods[] = {
	{"_inject", received_inject, METH_VARARGS, NULL},
	{"baggage", baggage_get, METH_O, "The value of a key of baggage, or None."},
	{"set_baggage", baggage_set, METH_VARARGS,
	 "set_baggage(key, value, properties=None): value None removes the key."},
	{"tracestate", tracestate_get, METH_O, "The value of a key of tracestate, or None."},
	{"set_tracestate", tracestate_set, METH_VARARGS,
	 "set_tracestate(key, value): value None removes the key."},
	{0}};

static PyGetSetDef received_getset[] = {
	{"context", received_context, NULL, "The sender's span; null if it sent none.", NULL},
	{"sampled", received_sampled, NULL, "The decision of whoever began the trace; None: none.",
	 NULL},
	{"tracestate_header", received_text, NULL, NULL, NULL},
	{"baggage_header", received_text, NULL, NULL, received_methods},
	{0}};

static PyType_Slot received_slots[] = {
	{Py_tp_doc, "What came with a message: context, sampling decision, tracestate, baggage."},
	{Py_tp_new, received_make},
	{Py_tp_methods, received_methods},
	{Py_tp_getset, received_getset},
	{0}};

static PyType_Spec received_spec = {.name = "waffle.Received",
				    .basicsize = sizeof(struct received),
				    .flags = Py_TPFLAGS_DEFAULT,
				    .slots = received_slots};

int propagate_init(PyObject *module)
{
	received_type = (PyTypeObject *)PyType_FromSpec(&received_spec);
	return received_type ? PyModule_AddObjectRef(module, "Received", (PyObject *)received_type)
			     : -1;
}

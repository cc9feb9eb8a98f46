// SPDX-License-Identifier: Apache-2.0
#include "native.h"

/* waffle._describe.describe(): what is recorded of objects that are not numbers or strings. */
static PyObject *describe;

bool error_forget(void)
{
	if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
		return false;
	PyErr_Clear();
	return true;
}

void use_end(struct use *use)
{
	for (unsigned i = 0; i < use->held_count; i++)
		Py_DECREF(use->held[i]);
}

/* The bytes of a string. One that is not valid Unicode has its invalid parts escaped. */
static waffle_value_t value_of_text(struct use *use, PyObject *text)
{
	Py_ssize_t length = 0;
	const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
	PyObject *escaped;

	if (bytes)
		return waffle_str_of(bytes, (size_t)length);
	PyErr_Clear();
	escaped = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
	if (!escaped) {
		PyErr_Clear();
		return waffle_str(NULL);
	}
	use->held[use->held_count++] = escaped;
	return waffle_str_of(PyBytes_AS_STRING(escaped), (size_t)PyBytes_GET_SIZE(escaped));
}

/* False: it needs more than 64 bits. */
static bool value_of_integer(PyObject *number, waffle_value_t *value)
{
	int overflow;
	long long fits = PyLong_AsLongLongAndOverflow(number, &overflow);
	unsigned long long large;

	if (!overflow) {
		*value = waffle_i64(fits);
		return true;
	}
	if (overflow < 0)
		return false;
	large = PyLong_AsUnsignedLongLong(number);
	if (PyErr_Occurred()) {
		PyErr_Clear();
		return false;
	}
	*value = waffle_u64(large);
	return true;
}

bool value_of_number(PyObject *object, waffle_value_t *value)
{
	PyObject *described;
	bool known = true;

	if (PyFloat_Check(object))
		*value = waffle_f64(PyFloat_AS_DOUBLE(object));
	else if (PyLong_Check(object)) {
		if (!value_of_integer(object, value)) {
			*value = waffle_f64(PyLong_AsDouble(object));
			PyErr_Clear();
		}
	} else {
		described = PyObject_CallOneArg(describe, object);
		if (!described && !error_forget())
			return false;
		known = described && (PyFloat_Check(described) || PyLong_Check(described)) &&
			value_of_number(described, value);
		Py_XDECREF(described);
	}
	return known;
}

/* The letter of the key; 0: it is neither a number nor a string. */
static char value_of(struct use *use, PyObject *object, waffle_value_t *value)
{
	if (PyUnicode_Check(object)) {
		*value = value_of_text(use, object);
		return WAFFLE_KEY_STR;
	}
	if (PyBool_Check(object)) {
		*value = waffle_bool(object == Py_True);
		return WAFFLE_KEY_BOOL;
	}
	if (PyLong_Check(object))
		return value_of_integer(object, value) ? WAFFLE_KEY_NUMBER : '\0';
	if (PyFloat_Check(object)) {
		*value = waffle_f64(PyFloat_AS_DOUBLE(object));
		return WAFFLE_KEY_NUMBER;
	}
	if (object == Py_None) {
		*value = waffle_str(NULL);
		return WAFFLE_KEY_STR;
	}
	return '\0';
}

void use_add(struct use *use, PyObject *key, PyObject *object)
{
	waffle_value_t *value = &use->values[use->count];
	PyObject *described = NULL;
	char letter;

	if (use->failed || use->count == WAFFLE_KEYS_MAX)
		return;
	letter = value_of(use, object, value);
	if (!letter) {
		described = PyObject_CallOneArg(describe, object);
		if (!described && !error_forget()) {
			use->failed = true;
			return;
		}
		letter = described ? value_of(use, described, value) : '\0';
	}
	if (!letter) {
		*value = waffle_str(Py_TYPE(object)->tp_name);
		letter = WAFFLE_KEY_STR;
	}
	/* A string that is not valid has made one of its own already. */
	if (described && use->held_count < WAFFLE_KEYS_MAX)
		use->held[use->held_count++] = described;
	else
		Py_XDECREF(described);
	use->types[use->count] = letter;
	use->keys[use->count++] = key;
}

static void use_add_cause(struct use *use, char letter, unsigned long long id)
{
	if (!id || use->count == WAFFLE_KEYS_MAX)
		return;
	use->values[use->count] = waffle_value_word_(letter, id);
	use->types[use->count] = letter;
	use->keys[use->count++] = NULL;
}

void use_add_causes(struct use *use, PyObject *causes)
{
	unsigned long long id;

	if (PyList_Check(causes)) {
		/* Another thread may change the list. Its tuple keeps the objects. */
		PyObject *fixed = PyList_AsTuple(causes);

		if (fixed)
			use_add_causes(use, fixed);
		else
			PyErr_Clear();
		Py_XDECREF(fixed);
		return;
	}
	if (PyTuple_Check(causes)) {
		for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(causes); i++) {
			PyObject *one = PyTuple_GET_ITEM(causes, i);

			if (!PyList_Check(one) && !PyTuple_Check(one))
				use_add_causes(use, one);
		}
		return;
	}
	id = event_id(causes);
	if (id)
		use_add_cause(use, WAFFLE_KEY_CAUSE_EVENT, id);
	else
		use_add_cause(use, WAFFLE_KEY_CAUSE_SPAN, context_of(causes).span_id);
}

/* ---- a key of all records of a thread ---- */

/* An interned string, or NULL. The thread owns a reference. */
static __thread PyObject *mark_key;

void use_add_mark(struct use *use)
{
	if (__builtin_expect(mark_key != NULL, 0))
		use_add(use, mark_key, Py_True);
}

/* mark(key): spans and events that begin on this thread from now on have this key, with the value
 * true. None: no more. */
static PyObject *mark(PyObject *module, PyObject *key)
{
	PyObject *before = mark_key;

	(void)module;
	if (key != Py_None && !PyUnicode_CheckExact(key)) {
		PyErr_SetString(PyExc_TypeError, "waffle: the key of a mark is a str or None");
		return NULL;
	}
	mark_key = NULL;
	if (key != Py_None) {
		Py_INCREF(key);
		PyUnicode_InternInPlace(&key);
		mark_key = key;
	}
	Py_XDECREF(before);
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"mark", mark, METH_O, NULL}, {0}};

int values_init(PyObject *module)
{
	PyObject *imported = PyImport_ImportModule("waffle._describe");

	if (!imported)
		return -1;
	describe = PyObject_GetAttrString(imported, "describe");
	Py_DECREF(imported);
	return describe ? PyModule_AddFunctions(module, functions) : -1;
}

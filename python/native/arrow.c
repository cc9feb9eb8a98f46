// SPDX-License-Identifier: Apache-2.0
/*
 * Tables for other libraries, by Arrow's C data interface
 * (https://arrow.apache.org/docs/format/CDataInterface.html and …/CStreamInterface.html). The
 * columns are buffers of Python, which live until the reader releases what it got: nothing is
 * copied.
 */
#include "native.h"

#include <errno.h>

/* The layout that the specification gives. */
struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

#define NULLABLE 2 /* ARROW_FLAG_NULLABLE */
#define BUFFERS_MAX 3

/*
 * A column is a tuple: name, format, length, number of nulls, and buffers, of which the first says
 * which values there are; None: all. A table is a tuple of columns of one length.
 */
static const char *text_at(PyObject *column, Py_ssize_t at)
{
	return PyUnicode_AsUTF8(PyTuple_GET_ITEM(column, at));
}

/* ---- schemas ---- */

static void schema_release(struct ArrowSchema *schema)
{
	PyGILState_STATE gil = PyGILState_Ensure();

	for (int64_t i = 0; i < schema->n_children; i++) {
		if (schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
		PyMem_RawFree(schema->children[i]);
	}
	PyMem_RawFree(schema->children);
	Py_XDECREF((PyObject *)schema->private_data);
	schema->release = NULL;
	PyGILState_Release(gil);
}

static void schema_fill(struct ArrowSchema *schema, PyObject *owner, const char *format,
			const char *name)
{
	*schema = (struct ArrowSchema){.format = format,
				       .name = name,
				       .flags = NULLABLE,
				       .release = schema_release,
				       .private_data = Py_NewRef(owner)};
}

static int schema_of(struct ArrowSchema *schema, PyObject *table)
{
	Py_ssize_t count = PyTuple_GET_SIZE(table);

	schema_fill(schema, table, "+s", "");
	schema->flags = 0;
	schema->children = PyMem_RawCalloc((size_t)count + 1, sizeof(*schema->children));
	if (!schema->children)
		return ENOMEM;
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *column = PyTuple_GET_ITEM(table, i);

		schema->children[i] = PyMem_RawCalloc(1, sizeof(**schema->children));
		if (!schema->children[i])
			return ENOMEM;
		schema->n_children++;
		schema_fill(schema->children[i], column, text_at(column, 1), text_at(column, 0));
	}
	return 0;
}

/* ---- arrays ---- */

struct held {
	PyObject *owner;
	Py_buffer views[BUFFERS_MAX];
	const void *buffers[BUFFERS_MAX];
	int views_count;
};

static void array_release(struct ArrowArray *array)
{
	PyGILState_STATE gil = PyGILState_Ensure();
	struct held *held = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++) {
		if (array->children[i]->release)
			array->children[i]->release(array->children[i]);
		PyMem_RawFree(array->children[i]);
	}
	PyMem_RawFree(array->children);
	for (int i = 0; i < held->views_count; i++)
		PyBuffer_Release(&held->views[i]);
	Py_XDECREF(held->owner);
	PyMem_RawFree(held);
	array->release = NULL;
	PyGILState_Release(gil);
}

/* With an error, *array can be released. */
static int array_begin(struct ArrowArray *array, PyObject *owner, int64_t length, int64_t nulls)
{
	struct held *held = PyMem_RawCalloc(1, sizeof(*held));

	*array = (struct ArrowArray){.length = length, .null_count = nulls};
	if (!held)
		return ENOMEM;
	held->owner = Py_NewRef(owner);
	array->buffers = held->buffers;
	array->private_data = held;
	array->release = array_release;
	return 0;
}

static int array_of_column(struct ArrowArray *array, PyObject *column)
{
	int err = array_begin(array, column, PyLong_AsLongLong(PyTuple_GET_ITEM(column, 2)),
			      PyLong_AsLongLong(PyTuple_GET_ITEM(column, 3)));
	struct held *held = array->private_data;

	if (err)
		return err;
	for (Py_ssize_t i = 4; i < PyTuple_GET_SIZE(column) && i < 4 + BUFFERS_MAX; i++) {
		PyObject *buffer = PyTuple_GET_ITEM(column, i);

		array->n_buffers++;
		if (buffer == Py_None)
			continue;
		if (PyObject_GetBuffer(buffer, &held->views[held->views_count], PyBUF_SIMPLE)) {
			PyErr_Clear();
			return EINVAL;
		}
		held->buffers[i - 4] = held->views[held->views_count++].buf;
	}
	return 0;
}

static int array_of(struct ArrowArray *array, PyObject *table)
{
	Py_ssize_t count = PyTuple_GET_SIZE(table);
	int64_t length =
		count ? PyLong_AsLongLong(PyTuple_GET_ITEM(PyTuple_GET_ITEM(table, 0), 2)) : 0;
	int err = array_begin(array, table, length, 0);

	if (err)
		return err;
	array->n_buffers = 1;
	array->children = PyMem_RawCalloc((size_t)count + 1, sizeof(*array->children));
	if (!array->children)
		return ENOMEM;
	for (Py_ssize_t i = 0; i < count && !err; i++) {
		array->children[i] = PyMem_RawCalloc(1, sizeof(**array->children));
		if (!array->children[i])
			return ENOMEM;
		array->n_children++;
		err = array_of_column(array->children[i], PyTuple_GET_ITEM(table, i));
	}
	return err;
}

/* ---- streams: a table is one array ---- */

struct stream {
	PyObject *table;
	bool is_read;
};

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema)
{
	PyGILState_STATE gil = PyGILState_Ensure();
	int err = schema_of(schema, ((struct stream *)stream->private_data)->table);

	if (err)
		schema_release(schema);
	PyGILState_Release(gil);
	return err;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *array)
{
	struct stream *own = stream->private_data;
	PyGILState_STATE gil;
	int err;

	*array = (struct ArrowArray){0};
	if (own->is_read)
		return 0; /* a released array: the end */
	own->is_read = true;
	gil = PyGILState_Ensure();
	err = array_of(array, own->table);
	if (err && array->release)
		array_release(array);
	PyGILState_Release(gil);
	return err;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
	(void)stream;
	return NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
	struct stream *own = stream->private_data;
	PyGILState_STATE gil = PyGILState_Ensure();

	Py_DECREF(own->table);
	PyMem_RawFree(own);
	stream->release = NULL;
	PyGILState_Release(gil);
}

/* A reader moves the struct out of the capsule, and marks what is left as released. */
static void capsule_free(PyObject *capsule)
{
	struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");

	if (stream->release)
		stream->release(stream);
	PyMem_RawFree(stream);
}

static PyObject *arrow_stream(PyObject *module, PyObject *table)
{
	struct ArrowArrayStream *stream = PyMem_RawCalloc(1, sizeof(*stream));
	struct stream *own = PyMem_RawCalloc(1, sizeof(*own));
	PyObject *capsule = NULL;

	(void)module;
	if (stream && own && PyTuple_Check(table))
		capsule = PyCapsule_New(stream, "arrow_array_stream", capsule_free);
	if (!capsule) {
		PyMem_RawFree(stream);
		PyMem_RawFree(own);
		return PyErr_Occurred() ? NULL : PyErr_NoMemory();
	}
	own->table = Py_NewRef(table);
	*stream = (struct ArrowArrayStream){.get_schema = stream_schema,
					    .get_next = stream_next,
					    .get_last_error = stream_error,
					    .release = stream_release,
					    .private_data = own};
	return capsule;
}

static PyMethodDef functions[] = {{"arrow_stream", arrow_stream, METH_O, NULL}, {0}};

int arrow_init(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}

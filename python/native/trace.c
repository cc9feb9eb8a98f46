// SPDX-License-Identifier: Apache-2.0
/* Begin and end of a recording from inside: the functions of waffle_trace.h. */
#include "native.h"

#include <errno.h>

#include "waffle_process.h"
#include "waffle_trace.h"

/* libwaffle has said on standard error what was wrong. */
static PyObject *result(int code)
{
	if (!code)
		Py_RETURN_NONE;
	errno = -code;
	return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *trace_start(PyObject *module, PyObject *args)
{
	struct waffle_trace_options options = {.size = sizeof(options)};
	const char *path, *filter, *process;
	unsigned long long ring_bytes;
	int keep_children, overwrite, code;

	(void)module;
	if (!PyArg_ParseTuple(args, "zzKppz", &path, &filter, &ring_bytes, &keep_children,
			      &overwrite, &process))
		return NULL;
	options.filter = filter;
	options.ring_bytes = (size_t)ring_bytes;
	options.keep_children = keep_children;
	options.overwrite = overwrite;
	options.process = process;
	Py_BEGIN_ALLOW_THREADS;
	code = waffle_trace_start(path, &options);
	Py_END_ALLOW_THREADS;
	return result(code);
}

static PyObject *trace_stop(PyObject *module, PyObject *unused)
{
	int code;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS;
	code = waffle_trace_stop();
	Py_END_ALLOW_THREADS;
	return result(code);
}

static PyObject *trace_flush(PyObject *module, PyObject *unused)
{
	int code;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS;
	code = waffle_trace_flush();
	Py_END_ALLOW_THREADS;
	return result(code);
}

static PyObject *is_recorded(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(native_is_recorded());
}

PyMethodDef trace_methods[] = {
	{"trace_start", trace_start, METH_VARARGS, NULL},
	{"trace_stop", trace_stop, METH_NOARGS, NULL},
	{"trace_flush", trace_flush, METH_NOARGS, NULL},
	{"is_recorded", is_recorded, METH_NOARGS, "Whether anybody records this process now."},
	{0}};

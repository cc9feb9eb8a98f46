// SPDX-License-Identifier: Apache-2.0
#include "native.h"

#include <dlfcn.h>

const unsigned long long *native_gate;

static PyMethodDef functions[] = {
	{"span", (PyCFunction)(void (*)(void))native_span, METH_FASTCALL | METH_KEYWORDS,
	 "span(name, *, caused_by=None, **keys)\n--\n\n"
	 "Begins a span. `with` makes it current and ends it."},
	{"event", (PyCFunction)(void (*)(void))native_event, METH_FASTCALL | METH_KEYWORDS,
	 "event(name, *, caused_by=None, **keys)\n--\n\n"
	 "Records an event, and returns it as a possible cause of others."},
	{"log", (PyCFunction)(void (*)(void))native_log, METH_FASTCALL | METH_KEYWORDS, NULL},
	{"counter", (PyCFunction)(void (*)(void))native_counter, METH_FASTCALL,
	 "counter(name, value)\n--\n\nRecords the current value of a counter."},
	{0}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
					.m_name = "waffle._native",
					.m_size = -1,
					.m_methods = functions};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
	PyObject *module = PyModule_Create(&definition);

	/* Extensions in C and C++ that are imported later and have sites of their own find the
	 * state that libwaffle shares with them only among the global symbols. */
	dlopen("libwaffle.so.0", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
	native_gate = waffle_named_gate();
	if (!module || values_init(module) || context_init(module) || span_init(module) ||
	    instrument_init(module) || propagate_init(module) || arrow_init(module) ||
	    PyModule_AddFunctions(module, trace_methods))
		return NULL;
#ifdef Py_GIL_DISABLED
	PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
	return module;
}

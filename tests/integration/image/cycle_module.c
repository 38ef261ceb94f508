/* cycle_module.c: an extension for Python with the mistake that leaks make of: a type that holds another object, and does
 * not take part in garbage collection. Two that hold each other are never freed. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

struct holder {
    PyObject_HEAD PyObject *other;
    char room[200];
};

static void holder_free(PyObject *self)
{
    Py_XDECREF(((struct holder *)self)->other);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef members[] = {{"other", T_OBJECT, offsetof(struct holder, other), 0, "what it holds"}, {0}};

static PyTypeObject holder_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cycle_module.Holder",
    .tp_basicsize = sizeof(struct holder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = holder_free,
    .tp_members = members,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "cycle_module", .m_size = -1};

PyMODINIT_FUNC PyInit_cycle_module(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyType_Ready(&holder_type) < 0 ||
        PyModule_AddObjectRef(made, "Holder", (PyObject *)&holder_type) < 0)
        return NULL;
    return made;
}

/* module.c - the extension module onx._onx: adds the types and functions of all files. */
#include "py.h"

PyMODINIT_FUNC PyInit__onx(void);

PyMODINIT_FUNC PyInit__onx(void)
{
    static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT,
                                             "onx._onx",
                                             "The part of the package onx that is written in C.",
                                             -1,
                                             NULL,
                                             NULL,
                                             NULL,
                                             NULL,
                                             NULL };
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    if (py_add_support(module) && py_add_interrupt(module) && py_add_array(module) && py_add_value(module) &&
        py_add_session(module) && py_add_doc(module) && py_add_message(module) && py_add_list(module) &&
        py_add_files(module) && py_add_transform(module) && py_add_operators(module) && py_add_drawing(module))
        return module;
    Py_DECREF(module);
    return NULL;
}

/* drawing.c - positions of the boxes of a graph (onx/layout.h). */
#include "py.h"

static PyObject *placed(const onx_placement *layout, uint32_t boxes, uint32_t edges)
{
    const onx_layout_point size = onx_layout_size(layout);
    PyObject *places = PyList_New((Py_ssize_t)boxes), *ways = PyList_New((Py_ssize_t)edges);
    for (uint32_t i = 0; places && i < boxes; i++) {
        const onx_layout_box *b = onx_layout_box_at(layout, i);
        PyObject *one =
            Py_BuildValue("(LLLL)", (long long)b->x, (long long)b->y, (long long)b->width, (long long)b->height);
        if (!one || PyList_SetItem(places, (Py_ssize_t)i, one) != 0)
            Py_CLEAR(places);
    }
    for (uint32_t i = 0; ways && i < edges; i++) {
        const onx_layout_route *r = onx_layout_route_at(layout, i);
        PyObject *way = PyList_New((Py_ssize_t)r->point_count);
        for (uint32_t k = 0; way && k < r->point_count; k++) {
            PyObject *point = Py_BuildValue("(LL)", (long long)r->point[k].x, (long long)r->point[k].y);
            if (!point || PyList_SetItem(way, (Py_ssize_t)k, point) != 0)
                Py_CLEAR(way);
        }
        if (!way || PyList_SetItem(ways, (Py_ssize_t)i, way) != 0)
            Py_CLEAR(ways);
    }
    PyObject *all = places && ways ? Py_BuildValue("(LLOO)", (long long)size.x, (long long)size.y, places, ways) : NULL;
    Py_XDECREF(places);
    Py_XDECREF(ways);
    return all;
}

/* Takes boxes as (width, height) and edges as (from, to); returns (width, height, [(x, y, width, height)], [[(x,
 * y)]]). */
static PyObject *layout(PyObject *self, PyObject *args)
{
    PyObject *boxes, *edges, *made = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &boxes, &PyList_Type, &edges))
        return NULL;
    boxes = PyList_AsTuple(boxes); /* numbers may run code that changes the lists */
    edges = PyList_AsTuple(edges);
    const Py_ssize_t box_count = boxes ? PyTuple_Size(boxes) : 0, edge_count = edges ? PyTuple_Size(edges) : 0;
    onx_layout_node *nodes = PyMem_Calloc((size_t)box_count + 1, sizeof *nodes);
    onx_layout_edge *lines = PyMem_Calloc((size_t)edge_count + 1, sizeof *lines);
    bool good = boxes && edges && nodes && lines && box_count < (Py_ssize_t)ONX_LAYOUT_NONE &&
                edge_count < (Py_ssize_t)ONX_LAYOUT_NONE;
    if (!good)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < box_count; i++) {
        nodes[i].parent = ONX_LAYOUT_NONE;
        good = PyArg_Parse(PyTuple_GetItem(boxes, i), "(II)", &nodes[i].width, &nodes[i].height) != 0;
    }
    for (Py_ssize_t i = 0; good && i < edge_count; i++)
        good = PyArg_Parse(PyTuple_GetItem(edges, i), "(II)", &lines[i].from, &lines[i].to) != 0;
    py_ctx *ctx = good ? py_ctx_take() : NULL;
    if (ctx) {
        onx_placement *placement = NULL;
        const onx_status status =
            onx_layout_new(ctx->cx, nodes, (uint32_t)box_count, lines, (uint32_t)edge_count, NULL, &placement);
        made =
            status == ONX_OK ? placed(placement, (uint32_t)box_count, (uint32_t)edge_count) : py_fail(ctx->cx, status);
        onx_layout_free(placement);
        py_ctx_done(ctx);
    }
    PyMem_Free(nodes);
    PyMem_Free(lines);
    Py_XDECREF(boxes);
    Py_XDECREF(edges);
    return made;
}

bool py_add_drawing(PyObject *module)
{
    static PyMethodDef functions[] = { { "_layout", layout, METH_VARARGS, NULL }, { NULL, NULL, 0, NULL } };
    return PyModule_AddFunctions(module, functions) == 0;
}

/* cli_type.c - formats types in the notation of ONNX text. */
#include "cli.h"

#include <stdarg.h>

typedef struct type_text {
    char *buf;
    size_t size, len; /* len also counts text that did not fit */
} type_text;

static void add(type_text *out, const char *format, ...) ONX_PRINTF(2, 3);
static void add(type_text *out, const char *format, ...)
{
    size_t room = out->len < out->size ? out->size - out->len : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room ? out->buf + out->len : NULL, room, format, args);
    va_end(args);
    out->len += n > 0 ? (size_t)n : 0;
}

static void add_tensor(type_text *out, int32_t dtype, const onx_tensor_shape *shape)
{
    const char *name = onx_dtype_name(dtype);
    if (name)
        add(out, "%s", name);
    else
        add(out, dtype ? "type %d" : "any type", dtype);
    if (!shape) {
        add(out, "[...]");
        return;
    }
    if (shape->dim_count == 0)
        return;
    add(out, "[");
    for (uint32_t i = 0; i < shape->dim_count && out->len < out->size; i++) {
        const onx_dimension *dim = shape->dim[i];
        add(out, i ? "," : "");
        if (ONX_HAS(dimension, dim, dim_value))
            add(out, "%lld", (long long)dim->dim_value);
        else if (ONX_HAS(dimension, dim, dim_param) && onx_view(dim->dim_param).len)
            add(out, "%.*s", ONX_ARG(onx_view(dim->dim_param)));
        else
            add(out, "?");
    }
    add(out, "]");
}

/* The stack is bounded: the text is cut where the buffer is full. */
static void add_type(type_text *out, const onx_type *type)
{
    if (out->len >= out->size) {
        return;
    } else if (!type) {
        add(out, "?");
    } else if (ONX_HAS(type, type, tensor_type)) {
        add_tensor(out, type->tensor_type->elem_type, type->tensor_type->shape);
    } else if (ONX_HAS(type, type, sparse_tensor_type)) {
        add(out, "sparse ");
        add_tensor(out, type->sparse_tensor_type->elem_type, type->sparse_tensor_type->shape);
    } else if (ONX_HAS(type, type, sequence_type)) {
        add(out, "seq(");
        add_type(out, type->sequence_type->elem_type);
        add(out, ")");
    } else if (ONX_HAS(type, type, optional_type)) {
        add(out, "optional(");
        add_type(out, type->optional_type->elem_type);
        add(out, ")");
    } else if (ONX_HAS(type, type, map_type)) {
        const char *key = onx_dtype_name(type->map_type->key_type);
        add(out, "map(%s, ", key ? key : "?");
        add_type(out, type->map_type->value_type);
        add(out, ")");
    } else if (ONX_HAS(type, type, opaque_type)) {
        add(out, "opaque(%.*s, %.*s)", ONX_ARG(onx_view(type->opaque_type->domain)),
            ONX_ARG(onx_view(type->opaque_type->name)));
    } else {
        add(out, "?");
    }
}

size_t cli_type(const onx_type *type, char *buf, size_t size)
{
    type_text out = { buf, size, 0 };
    if (size)
        buf[0] = '\0';
    add_type(&out, type);
    return out.len;
}

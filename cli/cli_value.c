/* cli_value.c - values from and to files, and values made up. */
#include "cli_value.h"

#include <onx/npy.h>

#include <stdlib.h>

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

/* The file becomes call->input when it cannot be read, for what is said about it. */
static onx_status load_numpy(cli_call *call, const char *path, onx_str name, onx_value **out)
{
    onx_buffer bytes;
    const char *before = call->input;
    ONX_TRY(onx_load_bytes(call->cx, path, &bytes));
    const onx_str file = onx_str_make(bytes.ptr, bytes.len);
    call->input = path;
    onx_status status =
        ends_in(path, ".npz") ? onx_value_from_npz(call->cx, file, name, out) : onx_value_from_npy(call->cx, file, out);
    if (status == ONX_OK)
        call->input = before;
    onx_buffer_free(&bytes);
    return status;
}

onx_status cli_value_load(cli_call *call, const char *path, const onx_type *type, onx_str name, onx_value **out)
{
    *out = NULL;
    if (ends_in(path, ".npy") || ends_in(path, ".npz"))
        return load_numpy(call, path, name, out);
    onx_kind kind = onx_value_kind_of_type(type);
    onx_doc *doc;
    const char *before = call->input;
    ONX_TRY(cli_load_as(call, path, kind ? kind : ONX_KIND_TENSOR, ONX_FORMAT_AUTO, &doc));
    kind = onx_doc_kind(doc);
    onx_status status = onx_value_from_message(call->cx, doc, kind, onx_doc_root(doc, kind), out);
    onx_doc_free(doc);
    if (status == ONX_OK)
        call->input = before;
    return status;
}

onx_status cli_value_save(cli_call *call, const char *path, const onx_value *value, onx_str name)
{
    if (ends_in(path, ".npy")) {
        onx_buffer bytes;
        onx_status status = onx_value_to_npy(call->cx, value, &bytes);
        if (status == ONX_OK)
            status = onx_save_bytes(call->cx, path, onx_str_make(bytes.ptr, bytes.len));
        onx_buffer_free(&bytes);
        return status;
    }
    onx_doc *doc;
    ONX_TRY(onx_value_to_doc(call->cx, value, name, &doc));
    onx_status status = onx_save(call->cx, doc, path, &(onx_save_options){ .format = ONX_FORMAT_BINARY });
    onx_doc_free(doc);
    return status;
}

/* ---- made-up values ---- */

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* What --dim says about a symbolic dimension, 1 when nothing; the values have been looked at by cli_check_dims. */
static int64_t size_of(const cli_call *call, onx_str dim)
{
    onx_str name;
    int64_t size;
    for (int i = 0; cli_named_number(call, "dim", i, false, &name, &size) > 0; i++)
        if (onx_str_equal(name, dim))
            return size;
    return 1;
}

static const onx_tensor_shape *shape_of(const onx_type *t)
{
    return ONX_HAS(type, t, tensor_type) && t->tensor_type                 ? t->tensor_type->shape
           : ONX_HAS(type, t, sparse_tensor_type) && t->sparse_tensor_type ? t->sparse_tensor_type->shape
                                                                           : NULL;
}

static const onx_type *inner_type(const onx_type *t)
{
    return ONX_HAS(type, t, sequence_type) && t->sequence_type   ? t->sequence_type->elem_type
           : ONX_HAS(type, t, optional_type) && t->optional_type ? t->optional_type->elem_type
           : ONX_HAS(type, t, map_type) && t->map_type           ? t->map_type->value_type
                                                                 : NULL;
}

/* Is it a dimension of an input? Else `known` becomes the first few that are, "" for none. */
static bool is_dim(const onx_session *s, onx_str name, char *known, size_t room)
{
    size_t used = 0;
    known[0] = 0;
    for (uint32_t k = 0; k < onx_session_input_count(s); k++) {
        const onx_type *type = onx_session_input(s, k).type;
        for (; type; type = inner_type(type)) {
            const onx_tensor_shape *shape = shape_of(type);
            for (uint32_t i = 0; shape && i < shape->dim_count; i++) {
                onx_str dim = onx_view(shape->dim[i]->dim_param);
                if (!ONX_HAS(dimension, shape->dim[i], dim_param) || !dim.len)
                    continue;
                if (onx_str_equal(dim, name))
                    return true;
                if (dim.len < 60 && used + dim.len + 4 < room)
                    used += (size_t)snprintf(known + used, room - used, "%s%.*s", used ? ", " : "", ONX_ARG(dim));
            }
        }
    }
    return false;
}

bool cli_check_dims(cli_call *call, const onx_session *s)
{
    onx_str name;
    int64_t size;
    char known[200];
    int more;
    for (int i = 0; (more = cli_named_number(call, "dim", i, false, &name, &size)) > 0; i++) {
        if (is_dim(s, name, known, sizeof known))
            continue;
        cli_error(call, "--dim: no input has a dimension \"%.*s\"", ONX_ARG(name));
        if (known[0])
            cli_hint("the inputs have %s", known);
        else
            cli_hint("the inputs have no symbolic dimensions");
        return false;
    }
    return more == 0;
}

static onx_status random_tensor(cli_call *call, const onx_type_tensor *t, uint64_t *state, onx_value **out)
{
    int64_t dims[ONX_RANK_MAX];
    uint32_t rank = t->shape ? t->shape->dim_count : 1;
    if (rank > ONX_RANK_MAX || !onx_dtype_name(t->elem_type)) {
        cli_error(call, "an input has no type that values could be made up for");
        return ONX_E_INVALID;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const onx_dimension *d = t->shape ? t->shape->dim[i] : NULL;
        dims[i] = d && ONX_HAS(dimension, d, dim_value) ? d->dim_value : 1;
        if (d && ONX_HAS(dimension, d, dim_param))
            dims[i] = size_of(call, onx_view(d->dim_param));
    }
    ONX_TRY(onx_value_new_tensor(call->cx, (onx_dtype)t->elem_type, rank, dims, out));
    onx_value *v = *out;
    onx_dtype_class class = onx_dtype_class_of(v->dtype);
    unsigned bits = onx_dtype_bits(v->dtype);
    if (v->dtype == ONX_STRING) { /* all share one text */
        for (uint64_t i = 0; i < v->count; i++)
            ((onx_str *)v->data)[i] = onx_str_of("text");
        return v->count ? onx_value_set_text(v, 0, onx_str_of("text")) : ONX_OK;
    }
    if (class == ONX_CLASS_COMPLEX)
        bits /= 2;
    for (uint64_t i = 0; i < (bits ? v->size * 8 / bits : 0); i++) {
        uint64_t r = next_random(state);
        double unit = (double)(r >> 11) * 0x1p-53;
        if (bits < 8) {
            ((uint8_t *)v->data)[i * bits / 8] ^= (uint8_t)((r & ((1u << bits) - 1u)) << (i % (8 / bits) * bits));
            continue;
        }
        double value = class == ONX_CLASS_BOOLEAN                                  ? (double)(r & 1)
                       : class == ONX_CLASS_FLOATING || class == ONX_CLASS_COMPLEX ? unit * 2 - 1
                                                                                   : (double)(r % 10);
        onx_dtype to = class != ONX_CLASS_COMPLEX ? (onx_dtype)v->dtype : bits == 32 ? ONX_FLOAT : ONX_DOUBLE;
        if (to == ONX_FLOAT)
            ((float *)v->data)[i] = (float)value;
        else
            ONX_TRY(onx_convert(to, (char *)v->data + i * (bits / 8), ONX_DOUBLE, &value, 1, true));
    }
    return ONX_OK;
}

static onx_status random_value(cli_call *call, const onx_type *type, uint64_t *state, unsigned depth, onx_value **out)
{
    if (type && ONX_HAS(type, type, tensor_type))
        return random_tensor(call, type->tensor_type, state, out);
    bool sequence = type && ONX_HAS(type, type, sequence_type), optional = type && ONX_HAS(type, type, optional_type);
    if ((!sequence && !optional) || depth > 100) {
        cli_error(call, "values of this type cannot be made up");
        return ONX_E_UNSUPPORTED;
    }
    const onx_type *inner = sequence ? type->sequence_type->elem_type : type->optional_type->elem_type;
    ONX_TRY(onx_value_new(call->cx, out));
    ONX_TRY(onx_value_reset_list(*out, sequence ? ONX_VALUE_SEQUENCE : ONX_VALUE_OPTIONAL, ONX_UNDEFINED));
    onx_value *item = NULL;
    onx_status status = random_value(call, inner, state, depth + 1, &item);
    if (status == ONX_OK)
        status = onx_value_insert(*out, 0, item);
    onx_value_free(item);
    return status;
}

onx_status cli_value_random(cli_call *call, const onx_type *type, onx_str name, uint64_t seed, onx_value **out)
{
    uint64_t state = seed;
    for (size_t i = 0; i < name.len; i++) /* inputs differ, whatever their order */
        state = (state ^ (uint8_t)name.ptr[i]) * 0x100000001b3u;
    *out = NULL;
    onx_status status = random_value(call, type, &state, 0, out);
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
    }
    return status;
}

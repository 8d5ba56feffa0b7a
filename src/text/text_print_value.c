/* text_print_value.c - types, values, and tensors in the text syntax. */
#include "text/text.h"

/* ---- types ---- */

/* Unknown fields of dims are kept as separate comments; for a scalar, those of its shape cannot be kept. */
static bool shape_is_plain(const onx_tensor_shape *shape)
{
    return !shape || shape->dim_count || !onxi_text_has_unknown(shape);
}

static bool prim_is_plain(int32_t dtype)
{
    return onx_dtype_name(dtype) != NULL;
}

static bool opaque_is_plain(const onx_type_opaque *opaque)
{
    onx_str domain = onx_view(opaque->domain), name = onx_view(opaque->name);
    return !onxi_text_has_unknown(opaque) && (name.len || !domain.len);
}

bool onxi_text_type_is_plain(const onx_type *type, uint32_t depth)
{
    if (onxi_text_has_unknown(type) || depth == 0)
        return false;
    switch (type->has & ~(uint32_t)onx_type_has_denotation) {
    case onx_type_has_tensor_type: {
        const onx_type_tensor *t = type->tensor_type;
        return ONX_HAS(type_tensor, t, elem_type) && prim_is_plain(t->elem_type) && !onxi_text_has_unknown(t) &&
               shape_is_plain(t->shape);
    }
    case onx_type_has_sparse_tensor_type: {
        const onx_type_sparse_tensor *t = type->sparse_tensor_type;
        return ONX_HAS(type_sparse_tensor, t, elem_type) && prim_is_plain(t->elem_type) && !onxi_text_has_unknown(t) &&
               shape_is_plain(t->shape);
    }
    case onx_type_has_sequence_type: {
        const onx_type_sequence *t = type->sequence_type;
        return t->elem_type && !onxi_text_has_unknown(t) && onxi_text_type_is_plain(t->elem_type, depth - 1);
    }
    case onx_type_has_optional_type: {
        const onx_type_optional *t = type->optional_type;
        return t->elem_type && !onxi_text_has_unknown(t) && onxi_text_type_is_plain(t->elem_type, depth - 1);
    }
    case onx_type_has_map_type: {
        const onx_type_map *t = type->map_type;
        return ONX_HAS(type_map, t, key_type) && prim_is_plain(t->key_type) && t->value_type &&
               !onxi_text_has_unknown(t) && onxi_text_type_is_plain(t->value_type, depth - 1);
    }
    case onx_type_has_opaque_type:
        return opaque_is_plain(type->opaque_type);
    default:
        return false;
    }
}

static void print_dim(onxi_text_printer *o, const onx_dimension *dim)
{
    if (ONX_HAS(dimension, dim, dim_value))
        onxi_text_put_int(o, dim->dim_value);
    else if (ONX_HAS(dimension, dim, dim_param))
        onxi_text_put_name(o, onx_view(dim->dim_param));
    else
        onxi_text_put_char(o, '?');
}

static void keep_denotation(onxi_text_printer *o, onx_bytes denotation)
{
    static const uint32_t of_type[] = { 6, 0 }; /* a member of that name and form is all that the comment needs */
    if (!denotation.bits)
        return;
    onx_type holder = { .has = onx_type_has_denotation, .denotation = denotation };
    onxi_text_keep_fields(o, ONX_KIND_TYPE, &holder, of_type);
}

/* "[" dims "]" */
void onxi_text_print_shape(onxi_text_printer *o, const onx_tensor_shape *shape)
{
    static const uint32_t none[] = { 0 };
    onxi_text_put_char(o, '[');
    for (uint32_t i = 0; i < shape->dim_count; i++) {
        const onx_dimension *dim = shape->dim[i];
        size_t path = o->path_len;
        if (i)
            ONXI_PUT(o, ", ");
        print_dim(o, dim);
        if (!dim->denotation.bits && !dim->extra)
            continue;
        onxi_text_path_index(o, "dim", i);
        keep_denotation(o, dim->denotation);
        onxi_text_keep_fields(o, ONX_KIND_DIMENSION, dim, none);
        onxi_text_path_cut(o, path);
    }
    onxi_text_put_char(o, ']');
    onxi_text_keep_fields(o, ONX_KIND_TENSOR_SHAPE, shape, none);
}

/* The text after an element type: nothing for a scalar, [] for an unknown rank. */
static void print_dims(onxi_text_printer *o, const onx_tensor_shape *shape)
{
    if (!shape) {
        ONXI_PUT(o, "[]");
    } else if (shape->dim_count) {
        size_t path = o->path_len;
        onxi_text_path_field(o, "shape");
        onxi_text_print_shape(o, shape);
        onxi_text_path_cut(o, path);
    }
}

static void print_opaque(onxi_text_printer *o, const onx_type_opaque *opaque)
{
    onx_str domain = onx_view(opaque->domain), name = onx_view(opaque->name);
    ONXI_PUT(o, "opaque(");
    if (domain.len) {
        if (onxi_text_is_dotted(domain))
            onxi_text_write(o, domain.ptr, domain.len);
        else
            onxi_text_put_string(o, domain);
        ONXI_PUT(o, ", ");
        onxi_text_put_name(o, name);
    } else if (name.len) {
        if (onxi_text_is_dotted(name))
            onxi_text_write(o, name.ptr, name.len);
        else
            onxi_text_put_string(o, name);
    }
    onxi_text_put_char(o, ')');
}

void onxi_text_print_type(onxi_text_printer *o, const onx_type *type)
{
    size_t path = o->path_len;
    keep_denotation(o, type->denotation);
    switch (type->has & ~(uint32_t)onx_type_has_denotation) {
    case onx_type_has_tensor_type:
        onxi_text_path_field(o, "tensor_type");
        onxi_text_put_text(o, onx_dtype_name(type->tensor_type->elem_type));
        print_dims(o, type->tensor_type->shape);
        break;
    case onx_type_has_sparse_tensor_type:
        onxi_text_path_field(o, "sparse_tensor_type");
        ONXI_PUT(o, "sparse_tensor(");
        onxi_text_put_text(o, onx_dtype_name(type->sparse_tensor_type->elem_type));
        print_dims(o, type->sparse_tensor_type->shape);
        onxi_text_put_char(o, ')');
        break;
    case onx_type_has_sequence_type:
        onxi_text_path_field(o, "sequence_type.elem_type");
        ONXI_PUT(o, "seq(");
        onxi_text_print_type(o, type->sequence_type->elem_type);
        onxi_text_put_char(o, ')');
        break;
    case onx_type_has_optional_type:
        onxi_text_path_field(o, "optional_type.elem_type");
        ONXI_PUT(o, "optional(");
        onxi_text_print_type(o, type->optional_type->elem_type);
        onxi_text_put_char(o, ')');
        break;
    case onx_type_has_map_type:
        onxi_text_path_field(o, "map_type.value_type");
        ONXI_PUT(o, "map(");
        onxi_text_put_text(o, onx_dtype_name(type->map_type->key_type));
        ONXI_PUT(o, ", ");
        onxi_text_print_type(o, type->map_type->value_type);
        onxi_text_put_char(o, ')');
        break;
    default:
        print_opaque(o, type->opaque_type);
        break;
    }
    onxi_text_path_cut(o, path);
}

bool onxi_text_type_matches(const onx_type *type, const onx_tensor *tensor)
{
    if (!(type->has & onx_type_has_tensor_type) || !type->tensor_type->shape ||
        type->tensor_type->elem_type != tensor->data_type)
        return false;
    const onx_tensor_shape *shape = type->tensor_type->shape;
    if (shape->dim_count != tensor->dims_count)
        return false;
    for (uint32_t i = 0; i < shape->dim_count; i++)
        if (!ONX_HAS(dimension, shape->dim[i], dim_value) || shape->dim[i]->dim_value != tensor->dims[i])
            return false;
    return true;
}

void onxi_text_print_value(onxi_text_printer *o, const onx_value_info *value)
{
    static const uint32_t rest[] = { 3, 4, 0 }; /* doc_string, metadata_props */
    size_t path = o->path_len;
    if (ONX_HAS(value_info, value, type)) {
        onxi_text_path_field(o, "type");
        if (onxi_text_type_is_plain(value->type, o->depth_limit)) {
            onxi_text_print_type(o, value->type);
            onxi_text_path_cut(o, path);
            onxi_text_put_char(o, ' ');
            onxi_text_put_name(o, onx_view(value->name));
        } else {
            onxi_text_keep_message(o, ONX_KIND_TYPE, value->type);
            onxi_text_path_cut(o, path);
            onxi_text_put_value_name(o, onx_view(value->name));
        }
    } else {
        onxi_text_put_value_name(o, onx_view(value->name));
    }
    onxi_text_keep_fields(o, ONX_KIND_VALUE_INFO, value, rest);
}

void onxi_text_print_pairs(onxi_text_printer *o, onx_string_string_entry *const *list, uint32_t count)
{
    onxi_text_put_char(o, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            ONXI_PUT(o, ", ");
        onxi_text_put_string(o, onx_view(list[i]->key));
        ONXI_PUT(o, ": ");
        onxi_text_put_string(o, onx_view(list[i]->value));
    }
    onxi_text_put_char(o, ']');
}

/* ---- tensors ---- */

typedef struct typed_field {
    onxi_data_field storage;
    const void *data;
    uint64_t count;
} typed_field;

static void typed_fields(const onx_tensor *t, typed_field out[6])
{
    out[0] = (typed_field){ ONXI_IN_FLOAT, t->float_data, t->float_data_count };
    out[1] = (typed_field){ ONXI_IN_INT32, t->int32_data, t->int32_data_count };
    out[2] = (typed_field){ ONXI_IN_INT64, t->int64_data, t->int64_data_count };
    out[3] = (typed_field){ ONXI_IN_DOUBLE, t->double_data, t->double_data_count };
    out[4] = (typed_field){ ONXI_IN_UINT64, t->uint64_data, t->uint64_data_count };
    out[5] = (typed_field){ ONXI_IN_STRING, t->string_data, t->string_data_count };
}

static bool packed_is_plain(const onxi_text_element *e, uint64_t elements, uint64_t count, const int32_t *entries)
{
    for (uint64_t i = 0; i < count; i++)
        if (entries[i] < 0 || entries[i] > 255)
            return false;
    unsigned rest = (unsigned)(elements % e->packed);
    return rest == 0 || (entries[count - 1] >> (rest * e->bits)) == 0;
}

/* Would parsing the literals of the field yield the same field? */
static bool typed_is_plain(const onx_tensor *t, const onxi_text_element *e, uint64_t elements, const typed_field *field)
{
    bool halved = e->parts == 2 && field->count == elements; /* a single number per complex element, which is parsed the
                                                              * same way */
    if (field->count != (elements * e->parts + e->packed - 1) / e->packed && !halved)
        return false;
    if (e->storage == ONXI_IN_INT32) {
        const int32_t *v = field->data;
        if (e->packed > 1)
            return packed_is_plain(e, elements, field->count, v);
        for (uint64_t i = 0; i < field->count; i++)
            if (v[i] < e->min || v[i] > e->max)
                return false;
    }
    if (e->storage == ONXI_IN_UINT64 && e->bits == 32)
        for (uint64_t i = 0; i < field->count; i++)
            if (t->uint64_data[i] > UINT32_MAX)
                return false;
    return true;
}

static bool raw_is_plain(const onx_tensor *t, const onxi_text_element *e, uint64_t elements)
{
    onx_str raw = onx_view(t->raw_data);
    uint64_t bytes;
    if (e->storage == ONXI_IN_STRING || !onx_dtype_size(t->data_type, elements, &bytes) || raw.len != bytes)
        return false;
    if (t->data_type == ONX_BOOL)
        for (size_t i = 0; i < raw.len; i++)
            if ((uint8_t)raw.ptr[i] > 1)
                return false;
    const unsigned used = e->bits < 8 ? onxi_packed_used(e->bits, elements) : 0;
    return used == 0 || (uint8_t)raw.ptr[raw.len - 1] >> used == 0;
}

onxi_text_data_form onxi_text_tensor_form(const onx_tensor *t)
{
    onxi_text_element e = onxi_text_element_of(t->data_type);
    typed_field fields[6];
    uint64_t elements, literals;
    const typed_field *used = NULL;
    unsigned fields_used = 0;
    if (e.storage == ONXI_IN_NONE || !ONX_HAS(tensor, t, data_type) || !onx_tensor_count(t, &elements) ||
        !onxi_mul_u64(elements, e.parts, &literals))
        return ONXI_DATA_NO_NOTATION;
    typed_fields(t, fields);
    for (int i = 0; i < 6; i++) {
        if (fields[i].storage == e.storage)
            used = &fields[i];
        fields_used += fields[i].count != 0;
    }
    if (t->data_location == ONX_DATA_EXTERNAL && ONX_HAS(tensor, t, data_location)) {
        bool plain = t->external_data_count > 0 && !fields_used && !ONX_HAS(tensor, t, raw_data);
        for (uint32_t i = 0; plain && i < t->external_data_count; i++)
            plain = !onxi_text_has_unknown(t->external_data[i]);
        return plain ? ONXI_DATA_ELSEWHERE : ONXI_DATA_NO_NOTATION;
    }
    if (t->external_data_count)
        return ONXI_DATA_NO_NOTATION;
    if (ONX_HAS(tensor, t, raw_data))
        return !fields_used && raw_is_plain(t, &e, elements) ? ONXI_DATA_RAW : ONXI_DATA_NO_NOTATION;
    if (fields_used > 1 || (fields_used == 1 && !used->count))
        return ONXI_DATA_NO_NOTATION;
    return typed_is_plain(t, &e, elements, used) ? ONXI_DATA_TYPED : ONXI_DATA_NO_NOTATION;
}

static onxi_text_view raw_view(const onx_tensor *t, const onxi_text_element *e)
{
    static const uint8_t kinds[2][4] = { { ONXI_VIEW_U8, ONXI_VIEW_U16, ONXI_VIEW_U32, ONXI_VIEW_U64 },
                                         { ONXI_VIEW_I8, ONXI_VIEW_I16, ONXI_VIEW_I32, ONXI_VIEW_I64 } };
    onxi_text_view view = {
        .data = onx_view(t->raw_data).ptr, .bits = e->bits, .stride = 1, .is_signed = e->is_signed
    };
    if (e->storage == ONXI_IN_FLOAT)
        view.kind = ONXI_VIEW_F32;
    else if (e->storage == ONXI_IN_DOUBLE)
        view.kind = ONXI_VIEW_F64;
    else if (e->bits < 8)
        view.kind = ONXI_VIEW_PACKED;
    else
        view.kind = (onxi_text_view_kind)kinds[e->is_signed][e->bits == 8    ? 0
                                                             : e->bits == 16 ? 1
                                                             : e->bits == 32 ? 2
                                                                             : 3];
    return view;
}

static onxi_text_view typed_view(const onx_tensor *t, const onxi_text_element *e)
{
    static const uint8_t kinds[] = {
        [ONXI_IN_FLOAT] = ONXI_VIEW_F32,  [ONXI_IN_INT32] = ONXI_VIEW_I32,  [ONXI_IN_INT64] = ONXI_VIEW_I64,
        [ONXI_IN_DOUBLE] = ONXI_VIEW_F64, [ONXI_IN_UINT64] = ONXI_VIEW_U64, [ONXI_IN_STRING] = ONXI_VIEW_TEXT
    };
    typed_field fields[6];
    typed_fields(t, fields);
    onxi_text_view view = {
        .kind = (onxi_text_view_kind)kinds[e->storage], .bits = e->bits, .stride = 4, .is_signed = e->is_signed
    };
    if (e->packed > 1)
        view.kind = ONXI_VIEW_PACKED;
    for (int i = 0; i < 6; i++)
        if (fields[i].storage == e->storage) {
            view.data = fields[i].data;
            view.count = fields[i].count;
        }
    return view;
}

void onxi_text_print_tensor_data(onxi_text_printer *o, const onx_tensor *t, onxi_text_data_form form)
{
    onxi_text_element e = onxi_text_element_of(t->data_type);
    if (form == ONXI_DATA_ELSEWHERE) {
        onxi_text_print_pairs(o, t->external_data, t->external_data_count);
        return;
    }
    onxi_text_view view = form == ONXI_DATA_RAW ? raw_view(t, &e) : typed_view(t, &e);
    uint64_t elements = 0;
    onx_tensor_count(t, &elements);
    view.count = form == ONXI_DATA_TYPED && e.parts == 2 ? view.count : elements * e.parts;
    if (t->dims_count > 1 && t->dims[t->dims_count - 1] <= INT32_MAX)
        view.row = (uint64_t)t->dims[t->dims_count - 1] * e.parts;
    view.field = e.storage == ONXI_IN_DOUBLE ? "double_data" : "float_data";
    onxi_text_print_elements(o, &view, '{', '}');
}

void onxi_text_keep_tensor(onxi_text_printer *o, const onx_tensor *t, onxi_text_data_form form)
{
    static const uint32_t rest[] = { 3, 12, 16, 0 };              /* segment, doc_string, metadata_props */
    static const uint32_t with_location[] = { 3, 12, 14, 16, 0 }; /* and data_location, if the text does not imply it */
    size_t path = o->path_len;
    if (form == ONXI_DATA_RAW) {
        onxi_text_path_field(o, "raw_data");
        onxi_text_keep_line(o, "");
        onxi_text_path_cut(o, path);
    }
    onxi_text_keep_fields(o, ONX_KIND_TENSOR, t, form == ONXI_DATA_ELSEWHERE ? rest : with_location);
}

void onxi_text_print_tensor(onxi_text_printer *o, const onx_tensor *t, bool initializer)
{
    onxi_text_data_form form = onxi_text_tensor_form(t);
    onx_str name = onx_view(t->name);
    if (form == ONXI_DATA_NO_NOTATION) {
        ONXI_PUT(o, "float[0]");
    } else {
        onxi_text_put_text(o, onx_dtype_name(t->data_type));
        for (uint32_t i = 0; i < t->dims_count; i++) {
            onxi_text_put_text(o, i ? ", " : "[");
            onxi_text_put_int(o, t->dims[i]);
        }
        if (t->dims_count)
            onxi_text_put_char(o, ']');
    }
    onxi_text_put_char(o, ' ');
    if (initializer || name.len) {
        onxi_text_put_name(o, name);
        ONXI_PUT(o, " = ");
    } else if (form == ONXI_DATA_ELSEWHERE) {
        ONXI_PUT(o, "= ");
    }
    if (form == ONXI_DATA_NO_NOTATION) {
        ONXI_PUT(o, "{}");
        onxi_text_keep_message(o, ONX_KIND_TENSOR, t);
        return;
    }
    onxi_text_print_tensor_data(o, t, form);
    onxi_text_keep_tensor(o, t, form);
}

/* text_print_attribute.c - attributes, and lists of elements broken into lines. */
#include "text/text.h"

#include <stdio.h>

/* ---- elements ---- */

enum {
    SHOWN = 6,
    FEW = 8
}; /* number of elements shown of an elided list; lists this short are never broken into
    * lines */

/* A NaN other than the two that have a notation keeps its bits in a comment. */
static void keep_nan(onxi_text_printer *o, const onxi_text_view *view, uint64_t i, uint64_t bits, uint64_t plain)
{
    char suffix[64];
    if (bits == plain || !view->field || o->options.elide)
        return;
    size_t path = o->path_len;
    onxi_text_path_index(o, view->field, i);
    snprintf(suffix, sizeof suffix, ": nan:0x%llx", (unsigned long long)bits);
    onxi_text_keep_line(o, suffix);
    onxi_text_path_cut(o, path);
}

static void put_f32(onxi_text_printer *o, const onxi_text_view *view, uint64_t i)
{
    float value;
    uint32_t bits;
    char text[32];
    memcpy(&value, view->data + i * sizeof value, sizeof value);
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        onxi_text_put_text(o, bits >> 31 ? "-nan" : "nan");
        keep_nan(o, view, i, bits, 0x7fc00000u | (bits & 0x80000000u));
    } else if (view->pointed) {
        onxi_text_put_float(o, value);
    } else {
        onxi_text_write(o, text, onxi_print_f32(text, value));
    }
}

static void put_f64(onxi_text_printer *o, const onxi_text_view *view, uint64_t i)
{
    double value;
    uint64_t bits;
    char text[32];
    memcpy(&value, view->data + i * sizeof value, sizeof value);
    memcpy(&bits, &value, sizeof bits);
    if (value != value) {
        onxi_text_put_text(o, bits >> 63 ? "-nan" : "nan");
        keep_nan(o, view, i, bits, 0x7ff8000000000000u | (bits & 0x8000000000000000u));
    } else {
        onxi_text_write(o, text, onxi_print_f64(text, value));
    }
}

/* 4- and 2-bit elements, the first in the low bits of a byte. */
static void put_packed(onxi_text_printer *o, const onxi_text_view *view, uint64_t i)
{
    const unsigned per_entry = 8 / view->bits; /* in entries of int32_data */
    int value = view->stride == 1
                    ? (int)onxi_packed_get(view->data, view->bits, i)
                    : (int)onxi_packed_get(view->data + i / per_entry * view->stride, view->bits, i % per_entry);
    if (view->is_signed && value >> (view->bits - 1))
        value -= 1 << view->bits;
    onxi_text_put_int(o, value);
}

#define LOAD(T, put)                                                                                                   \
    {                                                                                                                  \
        T value;                                                                                                       \
        memcpy(&value, view->data + i * sizeof value, sizeof value);                                                   \
        put(o, value);                                                                                                 \
        break;                                                                                                         \
    }

static void put_element(onxi_text_printer *o, const onxi_text_view *view, uint64_t i)
{
    switch (view->kind) {
    case ONXI_VIEW_F32:
        put_f32(o, view, i);
        break;
    case ONXI_VIEW_F64:
        put_f64(o, view, i);
        break;
    case ONXI_VIEW_I8:
        LOAD(int8_t, onxi_text_put_int)
    case ONXI_VIEW_U8:
        LOAD(uint8_t, onxi_text_put_uint)
    case ONXI_VIEW_I16:
        LOAD(int16_t, onxi_text_put_int)
    case ONXI_VIEW_U16:
        LOAD(uint16_t, onxi_text_put_uint)
    case ONXI_VIEW_I32:
        LOAD(int32_t, onxi_text_put_int)
    case ONXI_VIEW_U32:
        LOAD(uint32_t, onxi_text_put_uint)
    case ONXI_VIEW_I64:
        LOAD(int64_t, onxi_text_put_int)
    case ONXI_VIEW_U64:
        LOAD(uint64_t, onxi_text_put_uint)
    case ONXI_VIEW_PACKED:
        put_packed(o, view, i);
        break;
    case ONXI_VIEW_TEXT: {
        onx_bytes text;
        memcpy(&text, view->data + i * sizeof text, sizeof text);
        onxi_text_put_string(o, onx_view(text));
        break;
    }
    }
}
#undef LOAD

/* Elements first to last-1, separated by commas, while they fit on the line. */
static void put_run(onxi_text_printer *o, const onxi_text_view *view, uint64_t first, uint64_t last)
{
    for (uint64_t i = first; i < last && !onxi_text_out_stop(o); i++) {
        if (i > first)
            ONXI_PUT(o, ", ");
        put_element(o, view, i);
    }
}

/* One row of the innermost dimension per line. False, without printing, if the first one does not fit. */
static bool put_rows(onxi_text_printer *o, const onxi_text_view *view)
{
    if (view->row == 0 || view->row >= view->count || view->row > o->options.width)
        return false;
    size_t start = o->len, keep = o->keep_len;
    o->holding++;
    put_run(o, view, 0, view->row);
    o->holding--;
    o->keep_len = keep;
    bool fits = !onxi_text_out_wide(o);
    o->len = start;
    for (uint64_t i = 0; fits && i < view->count && o->status == ONX_OK; i += view->row) {
        if (i) {
            onxi_text_put_char(o, ',');
            onxi_text_put_line(o);
            onxi_text_out_flush(o, false);
        }
        put_run(o, view, i, i + view->row);
    }
    return fits;
}

/* Fills each line. */
static void put_filled(onxi_text_printer *o, const onxi_text_view *view)
{
    for (uint64_t i = 0; i < view->count && o->status == ONX_OK; i++) {
        size_t before = o->len, keep = o->keep_len;
        if (i)
            ONXI_PUT(o, ", ");
        o->holding++;
        put_element(o, view, i);
        o->holding--;
        if (i && o->line <= before && o->len - o->line >= o->options.width) {
            o->len = before;
            o->keep_len = keep;
            onxi_text_put_char(o, ',');
            onxi_text_put_line(o);
            put_element(o, view, i);
            onxi_text_out_flush(o, false);
        }
    }
}

static void put_elided(onxi_text_printer *o, const onxi_text_view *view, char close)
{
    put_run(o, view, 0, SHOWN);
    ONXI_PUT(o, ", ... ");
    onxi_text_put_uint(o, view->count);
    ONXI_PUT(o, " values");
    onxi_text_put_char(o, close);
}

void onxi_text_print_elements(onxi_text_printer *o, const onxi_text_view *view, char open, char close)
{
    onxi_text_put_char(o, open);
    if (o->options.elide && view->count > o->options.elide && view->count > SHOWN) {
        put_elided(o, view, close);
        return;
    }
    if (!view->count || (!o->narrow && view->count <= FEW && view->kind != ONXI_VIEW_TEXT)) {
        put_run(o, view, 0, view->count);
        onxi_text_put_char(o, close);
        return;
    }
    if (o->narrow || view->count * 2 <= o->options.width) {
        onxi_text_out_mark mark = onxi_text_out_try(o);
        put_run(o, view, 0, view->count);
        onxi_text_put_char(o, close);
        if (onxi_text_out_done(o, mark, true) || o->narrow)
            return;
    }
    o->indent += 2;
    onxi_text_put_line(o);
    if (!put_rows(o, view))
        put_filled(o, view);
    o->indent -= 2;
    onxi_text_put_line(o);
    onxi_text_put_char(o, close);
}

/* ---- attributes ---- */

bool onxi_text_attribute_holds_graph(const onx_attribute *a)
{
    return a->slot == ONX_SLOT_G || a->slot == ONX_SLOT_GRAPHS;
}

/* Do type and value match, is there exactly one value, and can the syntax express it? */
static bool attribute_is_plain(const onxi_text_printer *o, const onx_attribute *a)
{
    static const uint32_t singular = onx_attribute_has_f | onx_attribute_has_i | onx_attribute_has_s |
                                     onx_attribute_has_t | onx_attribute_has_g | onx_attribute_has_tp |
                                     onx_attribute_has_sparse_tensor;
    const onx_attribute_extra *more = onx_attribute_more(a);
    bool typed = ONX_HAS(attribute, a, type);
    if (a->extra && (more->floats_count || more->ints_count || more->strings_count || more->tensors_count ||
                     more->graphs_count || more->type_protos_count || more->sparse_tensors_count))
        return false;
    uint32_t value_bits = a->has & singular;
    const bool listed = onxi_attribute_kind_of((int32_t)onxi_attribute_type_in(a->slot))->list;
    if (onx_view(more->ref_attr_name).len)
        return !value_bits && !(listed && a->count) && (!typed || onxi_text_annotation_word(a->type));
    const onxi_attribute_kind *kind = onxi_attribute_kind_of(a->type);
    if (!typed || kind->slot == ONX_SLOT_NONE || a->type == ONX_ATTR_SPARSE_TENSOR ||
        a->type == ONX_ATTR_SPARSE_TENSORS) /* the syntax cannot express these */
        return false;
    if (kind->list) {
        if (value_bits || (listed && a->count && a->slot != kind->slot))
            return false;
        if (a->slot == ONX_SLOT_TYPE_PROTOS)
            for (uint32_t i = 0; i < a->count; i++)
                if (!onxi_text_type_is_plain(a->type_protos[i], o->depth_limit))
                    return false;
        return true;
    }
    if (a->slot != kind->slot || !value_bits || (value_bits & (value_bits - 1)))
        return false;
    return a->slot != ONX_SLOT_TP || onxi_text_type_is_plain(a->tp, o->depth_limit);
}

static void print_scalar_float(onxi_text_printer *o, const onx_attribute *a)
{
    float value = a->f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) <= 0x7f800000u) {
        onxi_text_put_float(o, value);
        return;
    }
    char suffix[32];
    size_t path = o->path_len;
    onxi_text_put_text(o, bits >> 31 ? "-nan" : "nan");
    if ((bits & 0x7fffffffu) == 0x7fc00000u)
        return;
    onxi_text_path_field(o, "f");
    snprintf(suffix, sizeof suffix, ": nan:0x%x", bits);
    onxi_text_keep_line(o, suffix);
    onxi_text_path_cut(o, path);
}

/* A nested graph: its items have their own paths. */
static void print_graph(onxi_text_printer *o, const onx_graph *graph)
{
    if (o->narrow) {
        o->broken = true;
        return;
    }
    onx_kind kind = o->scope_kind;
    const void *scope = o->scope;
    onxi_text_print_graph(o, graph);
    o->scope_kind = kind;
    o->scope = scope;
}

/* a graph name that would be misread needs quotes: onxi_text_print_graph adds them */
static void print_message(onxi_text_printer *o, const onx_attribute *a, uint32_t i)
{
    size_t path = o->path_len;
    bool listed = a->slot == ONX_SLOT_TENSORS || a->slot == ONX_SLOT_GRAPHS || a->slot == ONX_SLOT_TYPE_PROTOS;
    const char *field = a->slot == ONX_SLOT_T         ? "t"
                        : a->slot == ONX_SLOT_TP      ? "tp"
                        : a->slot == ONX_SLOT_G       ? "g"
                        : a->slot == ONX_SLOT_TENSORS ? "tensors"
                        : a->slot == ONX_SLOT_GRAPHS  ? "graphs"
                                                      : "type_protos";
    if (listed)
        onxi_text_path_index(o, field, i);
    else
        onxi_text_path_field(o, field);
    if (a->slot == ONX_SLOT_T || a->slot == ONX_SLOT_TENSORS)
        onxi_text_print_tensor(o, listed ? a->tensors[i] : a->t, false);
    else if (a->slot == ONX_SLOT_G || a->slot == ONX_SLOT_GRAPHS)
        print_graph(o, listed ? a->graphs[i] : a->g);
    else
        onxi_text_print_type(o, listed ? a->type_protos[i] : a->tp);
    onxi_text_path_cut(o, path);
}

static void print_list(onxi_text_printer *o, const onx_attribute *a)
{
    onxi_text_view view = { .count = a->count, .stride = 8 };
    if (a->slot == ONX_SLOT_FLOATS) {
        view.kind = ONXI_VIEW_F32;
        view.data = (const char *)a->floats;
        view.pointed = true;
        view.field = "floats";
    } else if (a->slot == ONX_SLOT_INTS) {
        view.kind = ONXI_VIEW_I64;
        view.data = (const char *)a->ints;
    } else if (a->slot == ONX_SLOT_STRINGS) {
        view.kind = ONXI_VIEW_TEXT;
        view.data = (const char *)a->strings;
    } else {
        onxi_text_put_char(o, '[');
        for (uint32_t i = 0; i < a->count && !onxi_text_out_stop(o); i++) {
            if (i)
                ONXI_PUT(o, ", ");
            print_message(o, a, i);
        }
        onxi_text_put_char(o, ']');
        return;
    }
    onxi_text_print_elements(o, &view, '[', ']');
}

static void print_value(onxi_text_printer *o, const onx_attribute *a)
{
    const onx_attribute_extra *more = onx_attribute_more(a);
    if (onx_view(more->ref_attr_name).len) {
        onxi_text_put_char(o, '@');
        onxi_text_put_name(o, onx_view(more->ref_attr_name));
        return;
    }
    switch (a->type) {
    case ONX_ATTR_FLOAT:
        print_scalar_float(o, a);
        break;
    case ONX_ATTR_INT:
        onxi_text_put_int(o, a->i);
        break;
    case ONX_ATTR_STRING:
        onxi_text_put_string(o, onx_view(a->s));
        break;
    case ONX_ATTR_TENSOR:
    case ONX_ATTR_GRAPH:
    case ONX_ATTR_TYPE_PROTO:
        print_message(o, a, 0);
        break;
    default:
        if (a->slot == 0 || a->count == 0)
            ONXI_PUT(o, "[]");
        else
            print_list(o, a);
        break;
    }
}

void onxi_text_print_attribute(onxi_text_printer *o, const onx_attribute *a, bool quoted)
{
    static const uint32_t rest[] = { 13, 0 }; /* doc_string */
    onx_str name = onx_view(a->name);
    bool named = quoted ? ONX_HAS(attribute, a, name) : onxi_text_is_ident(name);
    bool reference = onx_view(onx_attribute_more(a)->ref_attr_name).len != 0;
    if (!named || !attribute_is_plain(o, a) || (quoted && reference)) {
        ONXI_PUT(o, "_ = 0");
        onxi_text_keep_message(o, ONX_KIND_ATTRIBUTE, a);
        return;
    }
    if (quoted)
        onxi_text_put_name(o, name);
    else
        onxi_text_write(o, name.ptr, name.len);
    bool empty =
        !reference && a->type >= ONX_ATTR_FLOATS && a->type != ONX_ATTR_TYPE_PROTO && (a->slot == 0 || a->count == 0);
    if (ONX_HAS(attribute, a, type) && (reference || empty)) {
        ONXI_PUT(o, ": ");
        onxi_text_put_text(o, onxi_text_annotation_word(a->type));
    }
    ONXI_PUT(o, " = ");
    print_value(o, a);
    onxi_text_keep_fields(o, ONX_KIND_ATTRIBUTE, a, rest);
}

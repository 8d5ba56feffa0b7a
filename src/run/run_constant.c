/* run_constant.c - constants of the document, used in place. A constant that is unaligned, or scaled during loading, is
 * copied when a kernel reads it; one that kernels only pack is never copied. */
#include "run/run.h"

#include <math.h>

enum {
    LAZY_MIN = 4096,      /* bytes from which avoiding a copy is worth it */
    RECIPE_MIN = 1 << 16, /* bytes from which a computed constant is not kept */
};

/* ---- loading ---- */

/* May the bytes be loaded later? Shape inference reads integers and small constants now. */
static bool may_wait(const onx_tensor *t, uint64_t size)
{
    const onx_dtype_class class = onx_dtype_class_of(t->data_type);
    return class == ONX_CLASS_FLOATING && size >= LAZY_MIN && t->dims_count >= 2;
}

static onx_status refer(onxi_run_session *s, const onx_tensor *t, onx_str bytes, uint64_t count, bool aligned,
                        onxi_run_source **out)
{
    onx_value *v = ONXI_NEW(s->arena, onx_value);
    onxi_run_source *source = ONXI_NEW(s->arena, onxi_run_source);
    if (!v || !source)
        return ONX_E_MEMORY;
    *v = (onx_value){ .kind = ONX_VALUE_TENSOR,
                      .dtype = (uint8_t)t->data_type,
                      .flags = ONXI_VALUE_BORROWED,
                      .rank = t->dims_count,
                      .dims = t->dims,
                      .count = count,
                      .data = (void *)(uintptr_t)bytes.ptr,
                      .size = bytes.len,
                      .refs = 1 };
    *source = (onxi_run_source){ .value = v, .raw = bytes.ptr, .origin = t, .made = aligned };
    *out = source;
    return ONX_OK;
}

onx_status onxi_run_constant_load(onxi_run_session *s, const onx_tensor *t, const onx_value **out,
                                  onxi_run_source **source_out)
{
    uint64_t count, size;
    onx_str bytes;
    unsigned width = onx_dtype_bits(t->data_type) / 8;
    bool plain = t->data_type != ONX_STRING && onx_dtype_name(t->data_type) && t->dims_count <= ONX_RANK_MAX;
    *source_out = NULL;
    const onxi_tensor_part *part = onxi_doc_part(&s->reader, t);
    plain = plain && onx_tensor_count(t, &count) && onx_dtype_size(t->data_type, count, &size);
    if (plain && part && may_wait(t, size)) {
        ONX_TRY(refer(s, t, onx_str_make(part->span.ptr, (size_t)size), count, false, source_out));
        (*source_out)->part = part;
        *out = (*source_out)->value;
        return ONX_OK;
    }
    /* With lean memory, kernels read the elements directly and could not detect missing ones. */
    if (plain && !part && s->reader.external_late && onx_tensor_is_external(t) && may_wait(t, size) &&
        !s->options.lean_memory) {
        const onxi_file *file;
        ONX_TRY(s->reader.external_late(&s->reader, t, &bytes, &file));
        if (file->late && bytes.len == size) {
            ONX_TRY(refer(s, t, bytes, count, false, source_out));
            (*source_out)->late = file;
            *out = (*source_out)->value;
            return ONX_OK;
        }
    }
    if (plain && !part) {
        ONX_TRY(onx_tensor_bytes(&s->reader, t, &bytes));
        const bool aligned = width < 2 || (uintptr_t)bytes.ptr % (width > 8 ? 8 : width) == 0;
        if (size && bytes.len == size && (aligned || may_wait(t, size))) {
            ONX_TRY(refer(s, t, bytes, count, aligned, source_out));
            *out = (*source_out)->value;
            return ONX_OK;
        }
    }
    onx_value *copy;
    ONX_TRY(onx_value_from_message(s->cx, &s->reader, ONX_KIND_TENSOR, t, &copy));
    *out = copy;
    return onxi_run_session_keep(s, copy);
}

/* ---- reading ---- */

/* A node with constant inputs whose elements are computed some at a time: a DequantizeLinear or a ConstantOfShape. */
typedef struct onxi_run_recipe {
    const onx_kernel *kernel;
    const void *params;
    const onx_value *const *inputs;
    uint32_t input_count;
} onxi_run_recipe;

static void read_bytes(const onxi_run_source *source, uint64_t from, uint64_t size, void *out)
{
    if (source->part)
        onxi_part_copy(source->part, from, size, out);
    else if (source->late)
        onxi_file_copy(source->late, source->raw + from, size, out);
    else
        memcpy(out, source->raw + from, size);
}

/* Widens elements of 16 bits, a chunk at a time that fits into the L1 cache. */
static void read_narrow(const onxi_run_source *source, uint64_t first, uint64_t count, float *out)
{
    enum { STRETCH = 4096 };
    uint16_t some[STRETCH];
    for (uint64_t n; count; first += n, out += n, count -= n) {
        n = count < STRETCH ? count : STRETCH;
        read_bytes(source, first * sizeof *some, n * sizeof *some, some);
        onxi_halves_widen(source->narrow, some, out, n);
    }
}

/* Reads elements before scaling. */
static void read_plain(const onxi_run_source *source, uint64_t first, uint64_t count, void *out)
{
    const unsigned width = onx_dtype_bits(source->value->dtype) / 8;
    const onxi_run_recipe *recipe = source->recipe;
    if (recipe && onxi_fill_reads(recipe->kernel))
        onxi_fill_read(recipe->params, count, out);
    else if (recipe)
        onxi_dequantize_read(recipe->kernel, recipe->params, recipe->inputs, recipe->input_count, first, count, out);
    else if (source->narrow)
        read_narrow(source, first, count, out);
    else
        read_bytes(source, first * width, count * width, out);
}

/* Scales floats that share an index of the first dim. Returns false if a product is not finite. */
static bool scale_some(float *x, double factor, uint64_t count)
{
    const uint32_t exponent = 0x7f800000; /* exponent bits of infinities and NaN */
    uint32_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        x[i] = (float)((double)x[i] * factor);
        memcpy(&bits, &x[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return !found;
}

/* Scales in chunks that fit into the L1 cache. Returns false if a product is not finite. */
static bool read_scaled(const onxi_run_source *source, uint64_t first, uint64_t count, float *out)
{
    enum { STRETCH = 2048 };
    const onx_value *v = source->value;
    const uint64_t each = v->count / (uint64_t)v->dims[0];
    bool finite = true;
    for (uint64_t n; count; first += n, out += n, count -= n) {
        const uint64_t left = each - first % each;
        n = left < count ? left : count;
        n = n < STRETCH ? n : STRETCH;
        read_plain(source, first, n, out);
        finite &= scale_some(out, source->scale[first / each], n);
    }
    return finite;
}

/* Checks all products. Where all elements are equal, it checks one product per factor. */
static bool products_are_finite(const onxi_run_source *source)
{
    enum { STRETCH = 2048 };
    float some[STRETCH];
    const onx_value *v = source->value;
    const uint64_t rows = v->count ? (uint64_t)v->dims[0] : 0, each = rows ? v->count / rows : 0;
    const uint64_t most = onxi_run_source_is_filled(source) ? 1 : each;
    bool finite = true;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t at = 0; at < most; at += STRETCH)
            finite &= read_scaled(source, row * each + at, most - at < STRETCH ? most - at : STRETCH, some);
    return finite;
}

onx_status onxi_run_source_failed(onx_ctx *cx, const onxi_run_source *source)
{
    const char *shown = source->late ? onxi_file_broken(source->late) : NULL;
    if (!shown)
        return ONX_OK;
    const onx_str name = source->origin ? onx_view(source->origin->name) : onx_str_make("", 0);
    return onxi_fail(cx, ONX_E_IO, ONXI_NOWHERE, "%s, the data file of the constant \"%.*s\", cannot be read any more",
                     shown, ONX_ARG(name));
}

static void forget(onxi_run_session *s, const onxi_run_source *source, onx_str bytes)
{
    if (source->origin && s->reader.forget)
        s->reader.forget(&s->reader, bytes);
}

onx_status onxi_run_constant_scaled(onxi_run_session *s, const onxi_run_graph_slot *slot, const double *scale,
                                    onxi_run_source **out)
{
    const onxi_run_source *from = slot->source;
    *out = NULL;
    if (from && !from->made && (from->part || (from->recipe && !onxi_fill_reads(from->recipe->kernel))))
        /* Scaling works neither on a gathered part of a larger tensor nor on elements that a node computes. */
        return ONX_OK;
    onx_value *v = ONXI_NEW(s->arena, onx_value);
    onxi_run_source *source = ONXI_NEW(s->arena, onxi_run_source);
    if (!v || !source)
        return ONX_E_MEMORY;
    if (from && from->scale && !from->made)
        return onxi_fail(s->cx, ONX_E_MISUSE, ONXI_NOWHERE, "a constant is scaled twice");
    *v = *slot->constant;
    v->flags = ONXI_VALUE_BORROWED;
    *source = (onxi_run_source){ .value = v, .raw = v->data, .scale = scale, .origin = from ? from->origin : NULL };
    if (from && !from->made) {
        v->data = (void *)(uintptr_t)(source->raw = from->raw);
        source->recipe = from->recipe;
        source->late = from->late;
        source->narrow = from->narrow;
    }
    if (products_are_finite(source))
        *out = source;
    if (!source->recipe)
        forget(s, source, onx_str_make(source->raw, onxi_run_source_bytes(source)));
    return ONX_OK;
}

/* ---- constants widened to float ---- */

typedef struct widened {
    const onx_value *constant;
    onxi_run_source *source;
} widened;

/* Widens all elements now. Used for small constants, and for scalars and vectors, whose elements rewrite rules may
 * read. */
static onx_status widen_now(onxi_run_session *s, const onx_value *from, onx_value **out)
{
    ONX_TRY(onx_value_new_tensor(s->cx, ONX_FLOAT, from->rank, from->dims, out));
    onxi_halves_widen(from->dtype, from->data, (*out)->data, from->count);
    return onxi_run_session_keep(s, *out);
}

static onx_status widen_later(onxi_run_session *s, const onxi_run_graph_slot *slot, widened *out)
{
    const onxi_run_source *from = slot->source;
    onx_value *v = ONXI_NEW(s->arena, onx_value);
    onxi_run_source *source = ONXI_NEW(s->arena, onxi_run_source);
    if (!v || !source)
        return ONX_E_MEMORY;
    *v = *slot->constant;
    v->dtype = ONX_FLOAT;
    v->size = v->count * sizeof(float);
    v->flags = ONXI_VALUE_BORROWED;
    *source = (onxi_run_source){ .value = v, .raw = v->data, .narrow = slot->constant->dtype };
    if (from) {
        source->origin = from->origin;
        v->data = (void *)(uintptr_t)(source->raw = from->made ? from->value->data : from->raw);
        source->part = from->made ? NULL : from->part;
        source->late = from->made ? NULL : from->late;
    }
    *out = (widened){ v, source };
    return ONX_OK;
}

onx_status onxi_run_constant_widen(onxi_run_graph *g, uint32_t slot, uint32_t wide)
{
    onxi_run_session *s = g->session;
    const onxi_run_graph_slot *from = &g->slots[slot];
    const onx_value *v = from->constant;
    const uint64_t key = (uintptr_t)v;
    const bool shared = from->shared && onxi_map_find(&s->root->widened, key);
    widened *w = onxi_map_find(shared ? &s->root->widened : &s->widened, key);
    if (!w) {
        void **at = onxi_map_at(&s->widened, key);
        if (!at || !(w = ONXI_NEW(s->arena, widened)))
            return ONX_E_MEMORY;
        uint64_t size;
        if (!onxi_tensor_room(ONX_FLOAT, v->count, &size))
            return onxi_fail(s->cx, ONX_E_LIMIT, ONXI_NOWHERE, "the constant \"%.*s\" is too large in float",
                             ONX_ARG(from->name));
        const bool waits = v->size >= LAZY_MIN && v->rank >= 2;
        onx_value *made;
        if (waits)
            ONX_TRY(widen_later(s, from, w));
        else
            ONX_TRY(widen_now(s, v, &made));
        if (!waits)
            w->constant = made;
        *at = w;
    }
    g->slots[wide].constant = w->constant;
    g->slots[wide].source = w->source;
    g->slots[wide].shared = shared;
    g->slots[wide].narrow = v->dtype;
    return ONX_OK;
}

/* ---- constants computed by nodes ---- */

const onx_value **onxi_run_op_constants(const onxi_run_graph *g, const onxi_run_op *op, onx_arena *arena)
{
    const onx_value **out = (const onx_value **)ONXI_ARRAY(arena, void *, op->input_count + 1u);
    for (uint32_t i = 0; out && i < op->input_count; i++)
        out[i] = op->inputs[i] == ONXI_NO_SLOT ? NULL : g->slots[op->inputs[i]].constant;
    return out;
}

/* Prepares the op permanently on its constant inputs, whose elements are made first. */
static onx_status make_recipe(onxi_run_graph *g, const onxi_run_op *op, onx_value *type, onxi_run_recipe **out)
{
    onxi_run_session *s = g->session;
    onxi_run_env e = { .cx = s->cx, .session = s, .graph = g, .arena = s->arena, .watch = &s->watch };
    const onx_value **inputs = onxi_run_op_constants(g, op, s->arena);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(s->arena, void *, 1);
    bool *last_use = ONXI_ARRAY(s->arena, bool, op->input_count + 1u);
    *out = NULL;
    if (!inputs || !outputs || !last_use)
        return ONX_E_MEMORY;
    outputs[0] = type;
    ONX_TRY(onxi_run_op_types(&e, op, inputs, outputs));
    if (type->kind != ONX_VALUE_TENSOR || type->dtype != ONX_FLOAT || type->rank < 2 || type->size < RECIPE_MIN)
        return ONX_OK;
    onx_prepare p = { .inputs = inputs, .outputs = outputs, .last_use = last_use };
    onxi_run_op_describe(&e, op, &p);
    ONX_TRY(onxi_run_op_prepare(&e, op, &p, NULL, ONXI_COMMON_NOT, (onxi_run_order){ 0 }));
    const bool reads = onxi_dequantize_reads(p.kernel) || onxi_fill_reads(p.kernel);
    onxi_run_recipe *r = reads ? ONXI_NEW(s->arena, onxi_run_recipe) : NULL;
    if (r)
        *r = (onxi_run_recipe){ p.kernel, p.params, inputs, op->input_count };
    else if (p.kernel->release)
        p.kernel->release(p.params);
    *out = r;
    return ONX_OK;
}

onx_status onxi_run_constant_defer(onxi_run_graph *g, const onxi_run_op *op, bool *done)
{
    onxi_run_session *s = g->session;
    *done = false;
    if (op->id != ONXI_ID_ConstantOfShape && (op->id != ONXI_ID_DequantizeLinear || !s->options.lean_memory))
        return ONX_OK;
    if (op->output_count != 1 || op->outputs[0] == ONXI_NO_SLOT)
        return ONX_OK;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const onxi_run_graph_slot *slot = op->inputs[i] == ONXI_NO_SLOT ? NULL : &g->slots[op->inputs[i]];
        if (slot && (!slot->constant || !slot->constant->data || (slot->source && !slot->source->made)))
            return ONX_OK;
    }
    onx_value *v = ONXI_NEW(s->arena, onx_value);
    onxi_run_source *source = ONXI_NEW(s->arena, onxi_run_source);
    onxi_run_recipe *recipe;
    if (!v || !source)
        return ONX_E_MEMORY;
    ONX_TRY(make_recipe(g, op, v, &recipe));
    if (!recipe)
        return ONX_OK;
    v->flags = ONXI_VALUE_BORROWED;
    v->refs = 1;
    v->data = recipe->inputs[0]->data;
    *source = (onxi_run_source){ .value = v, .raw = v->data, .recipe = recipe };
    g->slots[op->outputs[0]].constant = v;
    g->slots[op->outputs[0]].source = source;
    *done = true;
    return ONX_OK;
}

onx_status onxi_run_constant_is_too_large(onxi_run_graph *g, const onxi_run_op *op, bool *large)
{
    onxi_run_session *s = g->session;
    onx_arena *arena;
    uint64_t size = 0;
    *large = false;
    if (!s->options.lean_memory)
        return ONX_OK;
    ONX_TRY(onx_arena_new(s->cx, &arena));
    onxi_run_env e = { .cx = s->cx, .session = s, .graph = g, .arena = arena, .watch = &s->watch };
    const onx_value **inputs = onxi_run_op_constants(g, op, arena);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, op->output_count + 1u);
    onx_status status = inputs && outputs ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < op->output_count; i++)
        if (op->outputs[i] != ONXI_NO_SLOT && !(outputs[i] = ONXI_NEW(arena, onx_value)))
            status = ONX_E_MEMORY;
    if (status == ONX_OK)
        status = onxi_run_op_types(&e, op, inputs, outputs);
    for (uint32_t i = 0; status == ONX_OK && i < op->output_count; i++)
        if (outputs[i] && !onxi_add_u64(size, outputs[i]->size, &size))
            size = UINT64_MAX;
    *large = status == ONX_OK && !onxi_run_may_keep(s, size);
    onx_arena_free(arena);
    return status;
}

/* ---- making elements ---- */

bool onxi_run_source_is_filled(const onxi_run_source *source)
{
    return source->recipe && onxi_fill_reads(source->recipe->kernel);
}

void onxi_run_source_read(const onxi_run_source *source, uint64_t first, uint64_t count, void *out)
{
    const unsigned width = onx_dtype_bits(source->value->dtype) / 8;
    if (source->made)
        memcpy(out, (const char *)source->value->data + first * width, count * width);
    else if (source->scale)
        (void)read_scaled(source, first, count, out);
    else
        read_plain(source, first, count, out);
}

/* A part may be gathered from a tensor many times as large, which is therefore read in chunks. */
static void gather(onxi_run_session *s, const onxi_run_source *source, char *out)
{
    enum { AT_ONCE = 32 << 20 }; /* bytes that are read or skipped at a time */
    const onxi_tensor_part *part = source->part;
    const uint64_t at_once = 1 + AT_ONCE / (part->span.len / part->runs + 1);
    for (uint64_t first = 0; first < part->runs; first += at_once) {
        const uint64_t left = part->runs - first, n = left < at_once ? left : at_once;
        const char *from = onxi_part_run(part, first), *to = onxi_part_run(part, first + n - 1) + part->run;
        onxi_part_copy(part, first * part->run, n * part->run, out + first * part->run);
        forget(s, source, onx_str_make(from, (size_t)(to - from)));
    }
}

void onxi_run_source_write(onxi_run_session *s, const onxi_run_source *source, void *out)
{
    if (!source->scale && !source->narrow && source->part) {
        gather(s, source, out);
        return;
    }
    onxi_run_source_read(source, 0, source->value->count, out);
    if (!source->recipe)
        forget(s, source, onx_str_make(source->raw, onxi_run_source_bytes(source)));
}

void onxi_run_source_forget(onxi_run_session *s, const onxi_run_source *source, uint64_t from, uint64_t size)
{
    const uint64_t each =
        source->narrow ? sizeof(float) / sizeof(uint16_t) : 1; /* `from` and `size` count bytes of floats */
    if (!source->part && !source->recipe)
        forget(s, source, onx_str_make(source->raw + from / each, size / each));
}

onx_status onxi_run_constant_make(onxi_run_graph *g, uint32_t slot)
{
    onxi_run_source *source = g->slots[slot].source;
    onxi_run_session *s = g->slots[slot].shared ? g->session->root : g->session;
    onx_value *made;
    if (!source || source->made)
        return ONX_OK;
    const onx_value *v = source->value;
    ONX_TRY(onx_value_new_tensor(s->cx, (onx_dtype)v->dtype, v->rank, v->dims, &made));
    onxi_run_source_write(s, source, made->data);
    const onx_status status = onxi_run_source_failed(s->cx, source);
    if (status != ONX_OK) {
        onx_value_free(made);
        return status;
    }
    pthread_mutex_lock(&s->root->lock); /* runs read the members meanwhile */
    source->value->data = made->data;
    source->made = true;
    pthread_mutex_unlock(&s->root->lock);
    return onxi_run_session_keep(s, made);
}

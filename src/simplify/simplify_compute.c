/* simplify_compute.c - runs the nodes that depend on constants only in one session, and turns their results that other
 * nodes need into constants, unless the model would grow. */
#include "simplify/simplify.h"

#include <onx/run.h>

enum {
    NODE_BYTES = 64,       /* estimated size of a removed node */
    MEMORY = 1 << 30,      /* memory limit of the run, in addition to four times the size of the constants */
    ONE_BY_ONE_MAX = 10000 /* maximum number of nodes that are run separately if they cannot be run together */
};

typedef struct folder {
    onxi_simplify *s;
    uint64_t *credit; /* per op: 0: cannot be computed; otherwise 1 + the bytes that are removed with it */
    uint32_t *inside; /* per value: number of uses by ops that can be computed */
    uint32_t *list;   /* the ops that can be computed, in order */
    uint32_t count;
    uint64_t read;  /* bytes of constants that the run reads */
    uint32_t *seen; /* per value: 1 + the turn in which its initializer was added */
    uint32_t turn;
} folder;

/* ---- selecting ops ---- */

/* Quantized weights are smaller than their dequantized values, and the following kernels read them directly. */
static bool is_left_alone(onxi_op_id id)
{
    return id == ONXI_ID_Constant || id == ONXI_ID_QuantizeLinear || id == ONXI_ID_DequantizeLinear ||
           id == ONXI_ID_DynamicQuantizeLinear;
}

static bool known_size(onxi_simplify *s, uint32_t value, uint64_t *bytes)
{
    onxi_type type;
    uint64_t count = 1;
    if (!onxi_simplify_type(s, value, &type) || type.dtype == ONX_UNDEFINED)
        return false;
    for (uint32_t i = 0; i < type.rank; i++)
        if (!onxi_dim_is_const(type.dims[i]) || type.dims[i] < 0 ||
            !onxi_mul_u64(count, (uint64_t)type.dims[i], &count))
            return false;
    return onx_dtype_size((onx_dtype)type.dtype, count, bytes);
}

static void hold(onxi_simplify *s, uint64_t size)
{
    s->held_count++;
    if (!onxi_add_u64(s->held, size, &s->held))
        s->held = UINT64_MAX;
}

/* The bytes that are removed with the op; 0: it cannot be computed. */
static uint64_t credit_of(folder *f, onxi_sop *op)
{
    onxi_simplify *s = f->s;
    uint64_t sum = NODE_BYTES, size;
    if (op->opaque || op->dead || op->first_scope != ONXI_S_NONE || !op->output_count || !op->input_count ||
        is_left_alone(op->bound->op) || !onxi_bound_repeats(op->bound) || !onxi_simplify_attrs(s, op))
        return 0;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t x = onxi_simplify_input(s, op, i);
        if (x == ONXI_S_NONE)
            continue;
        const onxi_svalue *v = &s->values[x];
        const bool alone = v->uses == 1 && !v->is_output && !v->pinned;
        const uint64_t made = v->maker ? f->credit[v->maker - 1] : 0;
        if (v->tensor && (!onxi_simplify_elements(v->tensor, &size) ||
                          (v->tensor->data_location == ONX_DATA_EXTERNAL && size > s->limit)))
            return 0;
        if (!v->tensor && !made)
            return 0;
        if (alone && !onxi_add_u64(sum, v->tensor ? size : made, &sum))
            return 0;
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        const uint32_t y = op->outputs[i];
        if (y == ONXI_S_NONE)
            continue;
        if (s->values[y].pinned)
            return 0;
        if (known_size(s, y, &size) && size > s->limit && size > sum && size > s->pool) {
            hold(s, size);
            return 0;
        }
    }
    return sum;
}

static onx_status choose(folder *f, uint32_t scope)
{
    onxi_simplify *s = f->s;
    for (uint32_t index = s->scopes[scope].first; index != ONXI_S_NONE; index = s->ops[index].next) {
        onxi_sop *op = &s->ops[index];
        for (uint32_t inner = op->dead ? ONXI_S_NONE : op->first_scope; inner != ONXI_S_NONE;
             inner = s->scopes[inner].sibling)
            if (!s->scopes[inner].gone)
                ONX_TRY(choose(f, inner)); /* recursion is bounded: body.c has checked the depth */
        f->credit[index] = credit_of(f, op);
        if (!f->credit[index])
            continue;
        f->list[f->count++] = index;
        for (uint32_t i = 0; i < op->input_count; i++)
            if (onxi_simplify_input(s, op, i) != ONXI_S_NONE)
                f->inside[onxi_simplify_input(s, op, i)]++;
    }
    return ONX_OK;
}

/* ---- building a model of these ops ---- */

static onx_status name_of(onx_arena *arena, uint32_t value, onx_bytes *out)
{
    const onx_str name = onxi_arena_printf(arena, "v%u", value);
    return name.len ? onx_arena_refer(arena, name, out) : ONX_E_MEMORY;
}

static onx_status add_initializer(folder *f, onx_arena *arena, onx_graph *graph, uint32_t value)
{
    onx_tensor *t = ONXI_NEW(arena, onx_tensor);
    uint64_t size = 0;
    if (f->seen[value] == f->turn)
        return ONX_OK;
    f->seen[value] = f->turn;
    if (!t)
        return ONX_E_MEMORY;
    *t = *f->s->values[value].tensor;
    ONX_TRY(name_of(arena, value, &t->name));
    t->has |= onx_tensor_has_name;
    if (onxi_simplify_elements(t, &size))
        f->read += size;
    return onx_graph_add_initializer(arena, graph, t) ? ONX_OK : ONX_E_MEMORY;
}

static onx_status add_node(folder *f, onx_arena *arena, onx_graph *graph, uint32_t index)
{
    onxi_simplify *s = f->s;
    const onxi_sop *op = &s->ops[index];
    onx_node *node = ONX_ADD(arena, graph, node, NODE);
    onx_bytes *inputs = ONXI_ARRAY(arena, onx_bytes, op->input_count + 1u);
    onx_bytes *outputs = ONXI_ARRAY(arena, onx_bytes, op->output_count + 1u);
    if (!node || !inputs || !outputs)
        return ONX_E_MEMORY;
    *node = *op->node;
    node->input = inputs;
    node->output = outputs;
    node->input_count = op->input_count;
    node->output_count = op->output_count;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t x = onxi_simplify_input(s, op, i);
        if (x == ONXI_S_NONE)
            continue;
        if (s->values[x].tensor)
            ONX_TRY(add_initializer(f, arena, graph, x));
        ONX_TRY(name_of(arena, x, &inputs[i]));
    }
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i] != ONXI_S_NONE)
            ONX_TRY(name_of(arena, op->outputs[i], &outputs[i]));
    return ONX_OK;
}

static onx_status add_imports(const folder *f, onx_arena *arena, onx_model *model)
{
    const onxi_imports *imports = &f->s->binder.imports;
    for (uint32_t i = 0; i < imports->count; i++) {
        onx_operator_set_id *id = ONX_ADD(arena, model, opset_import, OPERATOR_SET_ID);
        if (!id || onx_arena_refer(arena, imports->items[i].domain, &id->domain) != ONX_OK)
            return ONX_E_MEMORY;
        id->has |= onx_operator_set_id_has_domain;
        ONX_SET(operator_set_id, id, version, imports->items[i].version);
    }
    return ONX_OK;
}

/* The model of these ops; its outputs are the values that other ops need, whose numbers are stored in `wanted`. */
static onx_status build(folder *f, onx_arena *arena, const uint32_t *list, uint32_t count, bool whole, onx_model **out,
                        uint32_t *wanted, uint32_t *wanted_count)
{
    onxi_simplify *s = f->s;
    onx_model *model = onx_message_new(arena, ONX_KIND_MODEL);
    onx_graph *graph = model ? onx_message_new(arena, ONX_KIND_GRAPH) : NULL;
    if (!graph)
        return ONX_E_MEMORY;
    ONX_SET(model, model, ir_version, 10);
    model->graph = graph;
    model->has |= onx_model_has_graph;
    ONX_TRY(add_imports(f, arena, model));
    f->turn++;
    *wanted_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        ONX_TRY(add_node(f, arena, graph, list[i]));
        const onxi_sop *op = &s->ops[list[i]];
        for (uint32_t k = 0; k < op->output_count; k++) {
            const uint32_t y = op->outputs[k];
            if (y == ONXI_S_NONE || (whole && s->values[y].uses == f->inside[y]) || !s->values[y].uses)
                continue;
            onx_value_info *output = ONX_ADD(arena, graph, output, VALUE_INFO);
            if (!output)
                return ONX_E_MEMORY;
            ONX_TRY(name_of(arena, y, &output->name));
            output->has |= onx_value_info_has_name;
            wanted[(*wanted_count)++] = y;
        }
    }
    *out = model;
    return ONX_OK;
}

/* ---- running it ---- */

static onx_status keep(folder *f, uint32_t y, const onx_value *v)
{
    onxi_simplify *s = f->s;
    const uint32_t op = s->values[y].maker - 1;
    onx_tensor *t;
    if (v->kind != ONX_VALUE_TENSOR || v->dtype == ONX_STRING)
        return ONX_OK;
    if (v->size > s->limit && v->size > f->credit[op]) {
        if (v->size > s->pool) {
            hold(s, v->size);
            return ONX_OK;
        }
        s->pool -= v->size;
    }
    if (!(t = onx_tensor_new(s->arena, (onx_dtype)v->dtype, v->dims, v->rank, v->data, NULL)))
        return ONX_E_MEMORY;
    onxi_simplify_note(s, ONXI_SIMPLIFY_FOLD, s->ops[op].bound->schema->name, op, "computed: %llu bytes",
                       (unsigned long long)v->size);
    return onxi_simplify_settle(s, op, y, t);
}

static onx_status run_session(folder *f, onx_session *session, const uint32_t *wanted, uint32_t count, bool *done)
{
    onx_value **values = (onx_value **)ONXI_ARRAY(f->s->scratch, void *, count + 1u);
    if (!values)
        return ONX_E_MEMORY;
    const onx_value *none = NULL;
    onx_status status = onx_session_run(session, f->s->cx, &none, values);
    *done = status == ONX_OK;
    status = ONX_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (*done && status == ONX_OK)
            status = keep(f, wanted[i], values[i]);
        onx_value_free(values[i]);
    }
    return status;
}

/* Ops that fail are not changed: running the model will report the error. */
static onx_status compute(folder *f, const uint32_t *list, uint32_t count, bool whole, bool *done)
{
    onxi_simplify *s = f->s;
    onx_arena *arena;
    onx_model *model;
    uint32_t wanted_count, outputs = 0;
    *done = false;
    for (uint32_t i = 0; i < count; i++)
        outputs += s->ops[list[i]].output_count;
    uint32_t *wanted = ONXI_ARRAY(s->scratch, uint32_t, outputs + 1u);
    if (!wanted)
        return ONX_E_MEMORY;
    ONX_TRY(onx_arena_new(s->cx, &arena));
    f->read = 0;
    onx_status status = build(f, arena, list, count, whole, &model, wanted, &wanted_count);
    if (status == ONX_OK && wanted_count) {
        const onxi_diag_mark mark = onxi_diag_here(s->cx);
        onx_doc doc = onxi_doc_reader(s->doc, s->cx, arena);
        doc.kind = ONX_KIND_MODEL;
        doc.root = model;
        doc.input_id = (onxi_file_id){ 0 };
        doc.input_path = (onx_str){ 0 };
        const onx_session_options options = {
            .struct_size = sizeof options, .threads = 1, .no_optimize = true, .memory = MEMORY + 4 * f->read
        };
        onx_session *session = NULL;
        if (onx_session_new(s->cx, &doc, &options, &session) == ONX_OK)
            status = run_session(f, session, wanted, wanted_count, done);
        onx_session_free(session);
        onxi_doc_reader_close(&doc);
        if (status == ONX_OK)
            onxi_diag_rewind(s->cx, mark);
    }
    onx_arena_free(arena);
    return status;
}

/* Runs the ops one by one, each on constants, so that one that fails does not affect the others. */
static onx_status one_by_one(folder *f)
{
    onxi_simplify *s = f->s;
    for (uint32_t i = 0; i < f->count && i < ONE_BY_ONE_MAX; i++) {
        const onxi_sop *op = &s->ops[f->list[i]];
        bool ready = !op->dead, done;
        for (uint32_t k = 0; k < op->input_count && ready; k++)
            ready = op->inputs[k] == ONXI_S_NONE || s->values[onxi_simplify_input(s, op, k)].tensor;
        if (ready)
            ONX_TRY(compute(f, &f->list[i], 1, false, &done));
    }
    return ONX_OK;
}

onx_status onxi_simplify_fold(onxi_simplify *s)
{
    folder f = { .s = s,
                 .credit = ONXI_ARRAY(s->scratch, uint64_t, s->op_count + 1u),
                 .inside = ONXI_ARRAY(s->scratch, uint32_t, s->value_count + 1u),
                 .list = ONXI_ARRAY(s->scratch, uint32_t, s->op_count + 1u),
                 .seen = ONXI_ARRAY(s->scratch, uint32_t, s->value_count + 1u) };
    bool done;
    if (!f.credit || !f.inside || !f.list || !f.seen)
        return ONX_E_MEMORY;
    ONX_TRY(choose(&f, 0));
    if (!f.count)
        return ONX_OK;
    ONX_TRY(compute(&f, f.list, f.count, true, &done));
    return done ? ONX_OK : one_by_one(&f);
}

/* run_op.c - one node: its types by the operator's rule, and its kernel. */
#include "run/run.h"

/* ---- places ---- */

onx_str onxi_run_frame_path(onx_arena *arena, const onxi_run_frame *frame, uint32_t index, const onx_node *node)
{
    enum { ENDS = 4 }; /* of a long chain of calls, as many outermost and innermost ones are shown */
    onx_str before = onx_str_of("graph.");
    uint32_t count = 0;
    for (const onxi_run_frame *f = frame; f; f = f->parent)
        count++;
    for (uint32_t i = count; i-- > 0;) { /* begins with the outermost call */
        if (i >= ENDS && i + ENDS < count) {
            before = onxi_arena_printf(arena, "%.*s... ", ONX_ARG(before));
            i = ENDS;
            continue;
        }
        const onxi_run_frame *f = frame;
        for (uint32_t k = 0; k < i; k++)
            f = f->parent;
        onx_str at = onxi_path_node(arena, before, f->index, f->node);
        before =
            f->function ? onxi_path_call(arena, at, f->function) : onxi_path_subgraph(arena, at, f->node, f->subgraph);
    }
    return onxi_path_node(arena, before, index, node);
}

onx_str onxi_run_op_path(onx_arena *arena, const onxi_run_op *op)
{
    return onxi_run_frame_path(arena, op->frame, op->index, op->node);
}

/* ---- kinds of ops ---- */

bool onxi_run_op_is_pure(const onxi_run_op *op)
{
    if (op->graph_count || !op->kernel_count || (op->schema && op->schema->flags & ONXI_OP_NONDETERMINISTIC))
        return false;
    for (uint32_t i = 0; i < op->kernel_count; i++)
        if (op->kernels[i]->flags & ONX_KERNEL_RANDOM)
            return false;
    return true;
}

/* ---- elements of constants ---- */

static uint32_t input_bit(uint32_t input)
{
    return input < 32 ? UINT32_C(1) << input : 0;
}

/* Makes the elements of a constant input if they are not in memory yet. During a run they are: planning made them. */
static onx_status make_elements(onxi_run_env *e, const onxi_run_op *op, const onx_prepare *p, uint32_t input)
{
    const uint32_t slot = e->graph && !e->state && input < op->input_count ? op->inputs[input] : ONXI_NO_SLOT;
    const onxi_run_source *source = slot == ONXI_NO_SLOT ? NULL : e->graph->slots[slot].source;
    if (!source || !p->inputs[input])
        return ONX_OK;
    ONX_TRY(onxi_run_constant_make((onxi_run_graph *)(uintptr_t)(const void *)e->graph, slot));
    /* Owned by the engine, so it may be changed. */
    onx_value *v = (onx_value *)(uintptr_t)(const void *)p->inputs[input];
    if (v->data == source->raw)
        v->data = source->value->data;
    return ONX_OK;
}

/* Makes the elements of all inputs that the kernel reads directly rather than only packs. */
static onx_status make_inputs(onxi_run_env *e, const onxi_run_op *op, const onx_prepare *p, uint32_t left_out)
{
    for (uint32_t i = 0; i < op->input_count; i++)
        if (!(left_out & input_bit(i)))
            ONX_TRY(make_elements(e, op, p, i));
    return ONX_OK;
}

/* ---- types ---- */

typedef struct typing {
    onxi_call call;
    onxi_run_env *exec;
    const onxi_run_op *op;
    const onx_value *const *inputs;
} typing;

static bool is_known(const onx_value *v)
{
    return v && v->kind == ONX_VALUE_TENSOR && onxi_value_is_whole(v);
}

static const onxi_known_ints *call_value(onxi_call *call, uint32_t input)
{
    typing *t = (typing *)call->engine;
    const onx_value *v = input < call->input_count ? t->inputs[input] : NULL;
    onx_dtype_class class = v ? onx_dtype_class_of(v->dtype) : ONX_CLASS_NONE;
    if (!is_known(v) || v->rank > 1 || (class != ONX_CLASS_SIGNED && class != ONX_CLASS_UNSIGNED) ||
        v->count > UINT32_MAX)
        return NULL;
    onxi_known_ints *out = ONXI_NEW(call->arena, onxi_known_ints);
    onxi_dim *elements = ONXI_ARRAY(call->arena, onxi_dim, v->count ? v->count : 1);
    if (!out || !elements)
        return NULL;
    if (v->dtype == ONX_INT64) {
        if (v->count)
            memcpy(elements, v->data, v->count * sizeof *elements);
    } else if (v->count && onx_convert(ONX_INT64, elements, (onx_dtype)v->dtype, v->data, v->count, true) != ONX_OK) {
        return NULL;
    }
    for (uint64_t i = 0; i < v->count; i++)
        elements[i] = onxi_dim_of_int(elements[i]);
    *out = (onxi_known_ints){ .rank = v->rank, .count = (uint32_t)v->count, .elements = elements };
    return out;
}

static const onx_tensor *call_constant(onxi_call *call, uint32_t input)
{
    typing *t = (typing *)call->engine;
    const onx_value *v = input < call->input_count ? t->inputs[input] : NULL;
    if (!is_known(v))
        return NULL;
    onx_tensor *tensor = onx_message_new(call->arena, ONX_KIND_TENSOR);
    if (!tensor)
        return NULL;
    ONX_SET(tensor, tensor, data_type, v->dtype);
    tensor->dims = v->dims;
    tensor->dims_count = v->rank;
    if (v->dtype == ONX_STRING) {
        tensor->string_data = ONXI_ARRAY(call->arena, onx_bytes, v->count ? v->count : 1);
        for (uint64_t i = 0; tensor->string_data && i < v->count; i++)
            if (onx_arena_refer(call->arena, ((const onx_str *)v->data)[i], &tensor->string_data[i]) != ONX_OK)
                return NULL;
        tensor->string_data_count = tensor->string_data ? (uint32_t)v->count : 0;
        return tensor;
    }
    if (onx_arena_refer(call->arena, onx_str_make(v->data, v->size), &tensor->raw_data) != ONX_OK)
        return NULL;
    tensor->has |= onx_tensor_has_raw_data;
    return tensor;
}

/* The types of a subgraph's outputs are known only after it has run. */
static onx_status call_subgraph(onxi_call *call, const onx_graph *graph, const onxi_type *inputs, uint32_t input_count,
                                onxi_type *outputs, uint32_t output_count)
{
    (void)call, (void)graph, (void)inputs, (void)input_count;
    for (uint32_t i = 0; i < output_count; i++)
        outputs[i] = (onxi_type){ .kind = ONXI_TYPE_NONE };
    return ONX_OK;
}

/* Only sequences and optional values need such types, and their sizes are known only while running. */
static onx_status call_type(onxi_call *call, const onx_type *type, onxi_type *out)
{
    (void)call, (void)type;
    *out = (onxi_type){ .kind = ONXI_TYPE_NONE };
    return ONX_OK;
}

static onx_status call_fail(onxi_call *call, const char *format, va_list args)
{
    typing *t = (typing *)call->engine;
    onx_diag diag = { .severity = ONX_ERROR,
                      .status = ONX_E_INVALID,
                      .where = ONXI_AT_PATH(onxi_run_op_path(t->exec->arena, t->op)) };
    onxi_vreport(t->exec->cx, &diag, format, args);
    return ONX_E_INVALID;
}

/* Only rules that look into subgraphs call this, and nodes with subgraphs are typed by running them. */
static onxi_op_id call_which(onxi_call *call, const onx_node *node)
{
    (void)call, (void)node;
    return ONXI_ID_NONE;
}

static const onxi_call_ops call_ops = { .value = call_value,
                                        .constant = call_constant,
                                        .subgraph = call_subgraph,
                                        .type = call_type,
                                        .which = call_which,
                                        .fail = call_fail };

static const onxi_type *type_of(onx_arena *arena, const onx_value *v)
{
    onxi_type *t = ONXI_NEW(arena, onxi_type);
    if (!t || !v)
        return v ? t : NULL;
    switch (v->kind) {
    case ONX_VALUE_TENSOR:
        t->kind = ONXI_TYPE_TENSOR;
        t->dtype = v->dtype;
        t->ranked = true;
        t->rank = v->rank;
        t->dims = ONXI_ARRAY(arena, onxi_dim, v->rank ? v->rank : 1);
        if (!t->dims)
            return NULL;
        onxi_copy_dims(t->dims, v->dims, v->rank);
        return t;
    case ONX_VALUE_SEQUENCE:
        t->kind = ONXI_TYPE_SEQUENCE;
        break;
    case ONX_VALUE_OPTIONAL:
        t->kind = ONXI_TYPE_OPTIONAL;
        break;
    case ONX_VALUE_MAP:
        t->kind = ONXI_TYPE_MAP;
        t->dtype = v->dtype;
        return t;
    default:
        return t;
    }
    if (v->kind == ONX_VALUE_SEQUENCE && !v->count && v->dtype) {
        onxi_type *inner = ONXI_NEW(arena, onxi_type);
        if (inner)
            *inner = (onxi_type){ .kind = ONXI_TYPE_TENSOR, .dtype = v->dtype };
        t->inner = inner;
    } else if (v->count == 1) {
        t->inner = type_of(arena, v->items[0]);
    } else if (v->count && v->items[0]->kind == ONX_VALUE_TENSOR) {
        onxi_type *inner = ONXI_NEW(arena, onxi_type);
        if (inner)
            *inner = (onxi_type){ .kind = ONXI_TYPE_TENSOR, .dtype = v->items[0]->dtype };
        t->inner = inner;
    }
    return t;
}

uint64_t onxi_run_op_body_parts(onxi_run_env *e, const onxi_run_op *op)
{
    static const onxi_type given = { .kind = ONXI_TYPE_NONE };
    const onxi_type **inputs = (const onxi_type **)ONXI_ARRAY(e->arena, void *, op->input_count + 1u);
    typing t = { .exec = e, .op = op };
    if (!inputs)
        return 0;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t slot = op->inputs[i];
        const onx_value *v = slot == ONXI_NO_SLOT || !e->graph ? NULL : e->graph->slots[slot].constant;
        inputs[i] = slot == ONXI_NO_SLOT ? NULL : v ? type_of(e->arena, v) : &given;
        if (slot != ONXI_NO_SLOT && !inputs[i])
            return 0;
    }
    t.call = (onxi_call){ .schema = op->schema,
                          .op = op->id,
                          .node = op->node,
                          .attrs = &op->attrs,
                          .arena = e->arena,
                          .input_count = op->input_count,
                          .inputs = inputs,
                          .ops = &call_ops,
                          .engine = &t };
    return onxi_body_choose(&t.call);
}

/* Turns an inferred type into the type of a value; the kind stays NONE where the type is incomplete. */
static onx_status settle(onxi_run_env *e, const onxi_run_op *op, uint32_t output, const onxi_type *t, onx_value *v)
{
    if (t->kind != ONXI_TYPE_TENSOR || !t->ranked || !t->dtype)
        return ONX_OK;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!onxi_dim_is_const(t->dims[i]))
            return ONX_OK;
    uint64_t count, size;
    if (t->rank > ONX_RANK_MAX || !onxi_dims_count(t->rank, t->dims, &count) ||
        !onxi_tensor_room(t->dtype, count, &size))
        return onxi_fail(e->cx, ONX_E_LIMIT, ONXI_AT_PATH(onxi_run_op_path(e->arena, op)),
                         "output %u has impossible dimensions", output);
    if (size > e->session->options.memory)
        return onxi_fail(e->cx, ONX_E_LIMIT, ONXI_AT_PATH(onxi_run_op_path(e->arena, op)),
                         "output %u takes %llu bytes, the memory limit is %llu", output, (unsigned long long)size,
                         (unsigned long long)e->session->options.memory);
    v->kind = ONX_VALUE_TENSOR;
    v->dtype = t->dtype;
    v->rank = t->rank;
    v->dims = t->dims;
    v->count = count;
    v->size = size;
    if (!e->scratch) /* `dims` is in e->arena already */
        return ONX_OK;
    if (!(v->dims = onxi_arena_get(e->arena, (t->rank ? t->rank : 1) * sizeof *v->dims)))
        return ONX_E_MEMORY;
    onxi_copy_dims(v->dims, t->dims, t->rank);
    return ONX_OK;
}

/* Asks the kernels for the types of outputs that no rule of the registry determines. */
static onx_status types_by_kernel(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                                  onx_value *const *outputs)
{
    uint32_t k = 0;
    while (k < op->kernel_count && !op->kernels[k]->types)
        k++;
    if (k == op->kernel_count)
        return ONX_OK;
    onx_prepare p = { .inputs = inputs, .outputs = outputs };
    onxi_run_op_describe(e, op, &p);
    ONX_TRY(make_inputs(e, op, &p, 0));
    return op->kernels[k]->types(&p);
}

onx_status onxi_run_op_types(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs)
{
    if (!op->schema)
        return types_by_kernel(e, op, inputs, outputs);
    if (op->graph_count)
        return ONX_OK;
    onx_arena *scratch = e->scratch ? e->scratch : e->arena;
    typing t = { .exec = e, .op = op, .inputs = inputs };
    /* The rule needs the number of outputs in the node, even if some are unused: it says into how many parts Split
     * divides, and whether BatchNormalization may train. */
    const uint32_t count = op->node->output_count > op->output_count ? op->node->output_count : op->output_count;
    const onxi_type **in = (const onxi_type **)ONXI_ARRAY(scratch, void *, op->input_count + 1u);
    onxi_type *out = ONXI_ARRAY(scratch, onxi_type, count + 1u);
    onxi_known_ints *values = ONXI_ARRAY(scratch, onxi_known_ints, count + 1u);
    if (!in || !out || !values)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->input_count; i++)
        if (inputs[i] && !(in[i] = type_of(scratch, inputs[i])))
            return ONX_E_MEMORY;
    t.call = (onxi_call){ .schema = op->schema,
                          .op = op->id,
                          .node = op->node,
                          .attrs = &op->attrs,
                          .opset = op->since,
                          .arena = scratch,
                          .input_count = op->input_count,
                          .output_count = count,
                          .inputs = in,
                          .outputs = out,
                          .output_values = values,
                          .running = true,
                          .ops = &call_ops,
                          .engine = &t };
    ONX_TRY(onxi_call_run(&t.call));
    bool open = false;
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (outputs[i])
            ONX_TRY(settle(e, op, i, &out[i], outputs[i]));
        open |= outputs[i] && outputs[i]->kind == ONX_VALUE_NONE;
    }
    return open ? types_by_kernel(e, op, inputs, outputs) : ONX_OK;
}

/* ---- kernels ---- */

typedef struct engine {
    onxi_run_env exec;
    const onxi_run_op *op;
    uint32_t packed;   /* bit mask of inputs that the current row has packed */
    onx_status failed; /* why a valid request of the current row failed */
    bool anew;         /* each run has to make something that the current row requested */
} engine;

/* A row whose request fails declines the node. If the reason is lack of memory, the node fails as a whole: another row
 * would give other bits without a visible reason. */
static onx_status answer(const onx_prepare *p, onx_status status)
{
    engine *en = p->engine;
    if (status != ONX_OK && status != ONX_E_UNSUPPORTED && en->failed == ONX_OK)
        en->failed = status;
    return status;
}

static onx_status prepare_graph(const onx_prepare *p, const char *name, uint32_t *index_out)
{
    const onxi_run_op *op = ((const engine *)p->engine)->op;
    for (uint32_t i = 0; i < op->graph_count; i++)
        if (onx_str_is(onx_view(op->graph_attributes[i]->name), name)) {
            *index_out = i;
            return ONX_OK;
        }
    return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is missing", name);
}

/* Finds the owner of a constant input, who keeps its packed forms; false if the input is no known constant. */
static bool find_keeper(const engine *en, const onx_prepare *p, uint32_t input, onxi_run_keeper *out)
{
    const onxi_run_graph *g = en->exec.graph;
    const void *elements = input < p->input_count && p->inputs[input] ? p->inputs[input]->data : NULL;
    const uint32_t slot = g && input < en->op->input_count ? en->op->inputs[input] : ONXI_NO_SLOT;
    const onx_value *constant = slot == ONXI_NO_SLOT ? NULL : g->slots[slot].constant;
    /* `source->made` may not be read during runs. */
    const onxi_run_source *source = constant ? g->slots[slot].source : NULL;
    onxi_run_session *s = en->exec.session;
    onxi_run_plan *plan = en->exec.plan;
    if (!elements)
        return false;
    if (constant && (source || constant->data == elements)) {
        s = g->slots[slot].shared ? s->root : s;
        *out = (onxi_run_keeper){ &s->packs, s->cx, s->arena, s, g->slots[slot].source, elements };
        return true;
    }
    if (plan) /* the plan computed the constant and frees it */
        *out = (onxi_run_keeper){ &plan->packs, plan->cx, plan->arena, NULL, NULL, elements };
    return plan != NULL;
}

static onx_status prepare_packed(const onx_prepare *p, const onx_packing *packing, const void **out)
{
    engine *en = p->engine;
    onxi_run_keeper to;
    if (!find_keeper(en, p, packing->input, &to))
        return ONX_E_UNSUPPORTED;
    onxi_run_session *s = en->exec.session;
    ONX_TRY(answer(p, en->exec.passing ? onxi_run_pack_running(s, &to, p, packing, en->exec.watch, !en->exec.state,
                                                               en->exec.passing, out)
                                       : onxi_run_pack(s, &to, p, packing, &en->anew, out)));
    en->packed |= packing->note ? 0 : input_bit(packing->input);
    return ONX_OK;
}

static void read_source(const void *user, uint64_t first, uint64_t count, void *out)
{
    onxi_run_source_read(user, first, count, out);
}

/* Gives a constant in place, only in sessions with lean memory: in others, a packed constant is faster. */
static onx_status prepare_in_place(const onx_prepare *p, uint32_t input, uint64_t size, onx_elements *out)
{
    engine *en = p->engine;
    onxi_run_session *s = en->exec.session;
    onxi_run_keeper to;
    if (!s->options.lean_memory || s->root->store || !find_keeper(en, p, input, &to))
        return ONX_E_UNSUPPORTED;
    onxi_run_source *source = to.source ? ONXI_NEW(p->arena, onxi_run_source) : NULL;
    onx_value *value = to.source ? ONXI_NEW(p->arena, onx_value) : NULL;
    if (to.source && (!source || !value))
        return ONX_E_MEMORY;
    pthread_mutex_lock(&s->root->lock);
    const bool keeps = to.session && onxi_run_may_keep(s, size);
    if (source) {
        *source = *to.source;
        *value = *source->value;
        source->value = value;
    }
    pthread_mutex_unlock(&s->root->lock);
    if (keeps)
        return ONX_E_UNSUPPORTED;
    *out = (onx_elements){ .data = to.elements };
    if (source && source->made)
        out->data = value->data;
    else if (source && onxi_run_source_is_whole(source))
        out->data = source->raw;
    else if (source)
        *out = (onx_elements){ .read = read_source, .user = source };
    en->packed |= input_bit(input);
    return ONX_OK;
}

static onx_status prepare_elements(const onx_prepare *p, uint32_t input, const void **out)
{
    engine *en = p->engine;
    *out = NULL;
    if (input >= p->input_count || !p->inputs[input])
        return ONX_E_MISUSE;
    ONX_TRY(answer(p, make_elements(&en->exec, en->op, p, input)));
    *out = p->inputs[input]->data;
    return ONX_OK;
}

/* Factors make numbers of them that the narrow type does not have. */
static unsigned prepare_stored(const onx_prepare *p, uint32_t input)
{
    const engine *en = p->engine;
    const onxi_run_graph *g = en->exec.graph;
    const uint32_t slot = g && input < en->op->input_count ? en->op->inputs[input] : ONXI_NO_SLOT;
    if (slot == ONXI_NO_SLOT || (g->slots[slot].source && g->slots[slot].source->scale))
        return ONX_PRECISION_FULL;
    return g->slots[slot].narrow == ONX_FLOAT16    ? ONX_PRECISION_F16
           : g->slots[slot].narrow == ONX_BFLOAT16 ? ONX_PRECISION_BF16
                                                   : ONX_PRECISION_FULL;
}

static onx_str prepare_path(const void *place, onx_arena *arena)
{
    return onxi_run_op_path(arena, place);
}

static bool prepare_stops(const onx_prepare *p)
{
    const engine *en = p->engine;
    return en && onxi_run_watch_look(en->exec.watch) != ONX_OK;
}

/* A kernel that saw the end while it was prepared has failed without a diagnostic. */
static onx_status explain_end(const onxi_run_env *e, const onxi_run_op *op, onx_status status)
{
    const onx_status going = status == ONX_E_CANCELLED ? onxi_run_watch_look(e->watch) : ONX_OK;
    return going == ONX_OK ? status : onxi_run_watch_fail(e->watch, going, e->cx, op);
}

static const onx_prepare_ops prepare_ops = { .path = prepare_path,
                                             .graph = prepare_graph,
                                             .packed = prepare_packed,
                                             .elements = prepare_elements,
                                             .in_place = prepare_in_place,
                                             .stored = prepare_stored,
                                             .stops = prepare_stops };

onx_prepared onxi_run_op_prepared(const onx_prepare *p)
{
    return (onx_prepared){ .kernel = p->kernel,
                           .nonfinite = p->nonfinite,
                           .since = p->since,
                           .input_count = p->input_count,
                           .output_count = p->output_count,
                           .rows = p->rows,
                           .grain = p->grain,
                           .thread_workspace = p->thread_workspace,
                           .ops = p->ops,
                           .place = p->place };
}

void onxi_run_op_describe(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p)
{
    engine *en = ONXI_NEW(e->arena, engine);
    if (en)
        *en = (engine){ .exec = *e, .op = op };
    if (en)
        en->exec.scratch = NULL; /* the buffer would not live long enough */
    p->cx = e->cx;
    p->arena = e->arena;
    p->node = op->node;
    p->op = (uint32_t)op->id;
    p->schema = op->schema;
    p->attrs = &op->attrs;
    p->doc = e->state ? &e->state->reader : &e->session->reader;
    p->place = op;
    p->since = op->since;
    p->input_count = op->input_count;
    p->output_count = op->output_count;
    p->operand_count = op->input_count;
    p->nonfinite = e->nonfinite;
    p->row_major_next = e->graph != NULL;
    for (uint32_t i = 0; p->row_major_next && i < op->output_count; i++)
        p->row_major_next = op->outputs[i] == ONXI_NO_SLOT || !e->graph->slots[op->outputs[i]].in_layouts;
    p->threads = e->session->threads;
    p->precision = e->session->options.precision;
    p->rows = 1;
    p->grain = 1;
    p->overwrite = -1;
    p->ops = &prepare_ops;
    p->engine = en;
}

static onx_status no_kernel(const onxi_run_op *op, const onx_prepare *p)
{
    onx_str name = onx_view(op->node->op_type);
    char types[256] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < op->input_count && at + 20 < sizeof types; i++) {
        const onx_value *v = p->inputs[i];
        const char *type = !v                                                        ? "none"
                           : v->kind == ONX_VALUE_TENSOR && onx_dtype_name(v->dtype) ? onx_dtype_name(v->dtype)
                                                                                     : "other";
        size_t len = strlen(type);
        if (at)
            types[at++] = ',';
        memcpy(types + at, type, len);
        at += len;
    }
    return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "no kernel runs %.*s of version %d with inputs of type (%s)",
                            ONX_ARG(name), op->since, types);
}

/* May the row be tried? All outputs need types, unless the row determines their sizes itself or passes on a value that
 * is no tensor. Rows without these flags rely on it. */
static bool is_sized(const onxi_run_op *op, const onx_prepare *p, const onx_kernel *k)
{
    bool by_itself = k->flags & ONX_KERNEL_SIZES_OUTPUT || op->graph_count;
    bool hands_on =
        k->flags & ONX_KERNEL_VIEW && p->input_count && p->inputs[0] && p->inputs[0]->kind != ONX_VALUE_TENSOR;
    for (uint32_t i = 0; !by_itself && i < p->output_count; i++)
        if (p->outputs[i] && p->outputs[i]->kind != ONX_VALUE_TENSOR && !(hands_on && i == 0))
            return false;
    return true;
}

/* A view shares the elements of its input, so count and type must agree, whatever shape a rule has inferred. */
static onx_status check_view(const onx_prepare *p)
{
    const onx_value *x = p->input_count ? p->inputs[0] : NULL, *y = p->output_count ? p->outputs[0] : NULL;
    if (!x || !y || x->kind != ONX_VALUE_TENSOR || y->kind != ONX_VALUE_TENSOR ||
        (x->count == y->count && x->dtype == y->dtype))
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_INVALID, "the input has %llu elements of %s and the output %llu of %s",
                            (unsigned long long)x->count, onx_dtype_name(x->dtype), (unsigned long long)y->count,
                            onx_dtype_name(y->dtype));
}

/* For a node that runs at once, each layout that a row wants is converted for this node alone. That pays for rows that
 * multiply; but not if they have something to release, because creating it takes longer than many runs. */
static bool is_worth_layouts(const onx_kernel *k)
{
    return !(k->flags & ONX_KERNEL_LAYOUTS) || (k->packs && !k->release);
}

onx_status onxi_run_op_prepare(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p,
                               const onx_value *const *row_major, onxi_common_layout alike, onxi_run_order order)
{
    const onx_value *const *as_laid_out = p->inputs;
    const uint32_t first = order.to - order.from;
    if (!p->engine)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_run_op_check_types(op, p));
    size_t errors = onx_diag_total(e->cx, ONX_ERROR);
    bool unsized = false;
    for (uint32_t i = 0; i < first + op->kernel_count; i++) {
        p->kernel = op->kernels[i < first ? order.from + i : i - first];
        if (i < first && onxi_kernel_is_plain(p->kernel))
            continue;
        if (row_major == NULL && p->want && !is_worth_layouts(p->kernel))
            continue;
        if (!is_sized(op, p, p->kernel)) {
            unsized = true;
            continue;
        }
        bool as_is = !row_major || p->kernel->flags & ONX_KERNEL_LAYOUTS ||
                     onxi_element_as_laid_out(p->kernel, op->input_count, alike);
        p->inputs = as_is ? as_laid_out : row_major;
        if (!onxi_kernel_suits(p->kernel, p))
            continue;
        engine *en = p->engine;
        en->packed = 0;
        en->failed = ONX_OK;
        en->anew = false;
        ONX_TRY(make_inputs(e, op, p, p->kernel->packs));
        onx_status status = p->kernel->prepare ? explain_end(e, op, p->kernel->prepare(p)) : ONX_OK;
        if (status == ONX_OK && p->kernel->flags & ONX_KERNEL_VIEW)
            status = check_view(p);
        if (status == ONX_E_UNSUPPORTED && en->failed != ONX_OK)
            status = en->failed;
        if (status == ONX_OK)
            ONX_TRY(make_inputs(e, op, p, en->packed));
        if (status == ONX_OK) /* a kernel that misreads an attribute reports an error but may still return ONX_OK */
            return onx_diag_total(e->cx, ONX_ERROR) == errors ? ONX_OK : ONX_E_INVALID;
        if (onx_diag_total(e->cx, ONX_ERROR) != errors)
            return status;
        if (status != ONX_E_UNSUPPORTED) /* a kernel that fails without a diagnostic */
            return onx_prepare_fail(p, status, "the %s kernel of %s does not take the node: %s",
                                    onxi_kernel_variant(p->kernel), p->kernel->op, onx_status_text(status));
        p->rows = 1;
        p->grain = 1;
        p->overwrite = -1;
        p->post_ops_done = 0;
        p->workspace = 0;
        p->thread_workspace = 0;
        for (uint32_t k = 0; p->want && k < p->operand_count; k++)
            p->want[k] = as_laid_out[k] ? as_laid_out[k]->layout : NULL;
        for (uint32_t k = 0; k < p->output_count; k++)
            if (p->outputs[k]) /* the row may have chosen one before it declined */
                p->outputs[k]->layout = NULL;
    }
    p->kernel = NULL;
    if (unsized)
        return onx_prepare_fail(p, ONX_E_INVALID, "the shape of an output does not follow from the inputs");
    return no_kernel(op, p);
}

bool onxi_run_op_is_anew(const onx_prepare *p)
{
    return p->engine && ((const engine *)p->engine)->anew;
}

/* Copies the description to memory of the run, which the kernel may write to. */
static bool describe_anew(onxi_run_env *e, const onxi_run_op *op, const onx_prepare *from, onx_prepare *p)
{
    onx_arena *arena = e->arena;
    onx_value *values = ONXI_ARRAY(arena, onx_value, from->output_count + 1u);
    onx_value **outputs = (onx_value **)ONXI_ARRAY(arena, void *, from->output_count + 1u);
    onx_post_op *post_ops = ONXI_ARRAY(arena, onx_post_op, from->post_op_count + 1u);
    onx_prepare *behind = ONXI_ARRAY(arena, onx_prepare, from->post_op_count + 1u);
    const onx_layout **want = (const onx_layout **)ONXI_ARRAY(arena, void *, from->operand_count + 1u);
    if (!values || !outputs || !post_ops || !behind || !want)
        return false;
    *p = *from;
    onxi_run_op_describe(e, op, p);
    p->operand_count = from->operand_count;
    for (uint32_t i = 0; i < from->output_count; i++)
        if (from->outputs[i]) {
            values[i] = *from->outputs[i];
            outputs[i] = &values[i];
        }
    for (uint32_t i = 0; i < from->operand_count; i++)
        want[i] = from->inputs[i] ? from->inputs[i]->layout : NULL;
    for (uint32_t i = 0; i < from->post_op_count; i++) {
        post_ops[i] = from->post_ops[i];
        behind[i] = *post_ops[i].prepare;
        behind[i].cx = e->cx;
        behind[i].arena = arena;
        behind[i].doc = p->doc;
        post_ops[i].prepare = &behind[i];
    }
    p->outputs = outputs;
    p->post_ops = post_ops;
    p->want = want;
    return p->engine != NULL;
}

onx_status onxi_run_op_prepare_anew(onxi_run_env *e, const onxi_run_op *op, const onx_prepare *from, onx_prepare *p)
{
    const size_t errors = onx_diag_total(e->cx, ONX_ERROR);
    if (!describe_anew(e, op, from, p))
        return ONX_E_MEMORY;
    const onx_status status = explain_end(e, op, p->kernel->prepare(p));
    if (status == ONX_OK && (p->workspace > from->workspace || p->thread_workspace > from->thread_workspace)) {
        if (p->kernel->release)
            p->kernel->release(p->params);
        return onx_prepare_fail(p, ONX_E_INVALID, "the %s kernel of %s needs more memory than was reserved",
                                onxi_kernel_variant(p->kernel), p->kernel->op);
    }
    if (status == ONX_OK || onx_diag_total(e->cx, ONX_ERROR) != errors)
        return status;
    const onx_status failed = ((const engine *)p->engine)->failed;
    return onx_prepare_fail(p, failed == ONX_OK ? status : failed,
                            "the %s kernel of %s does not take the node again: %s", onxi_kernel_variant(p->kernel),
                            p->kernel->op, onx_status_text(failed == ONX_OK ? status : failed));
}

/* run_op.c - one node: its types by the operator's rule, its kernel, and running it immediately on real values. */
#include "run/run.h"

#include <stdatomic.h>

/* ---- places ---- */

onx_str onxi_run_frame_path(onx_arena *arena, const onxi_run_frame *frame, uint32_t index, const onx_node *node)
{
    enum { ENDS = 4 }; /* of a long chain of calls, this number from outside and from inside */
    onx_str before = onx_str_of("graph.");
    uint32_t count = 0;
    for (const onxi_run_frame *f = frame; f; f = f->parent)
        count++;
    for (uint32_t i = count; i-- > 0;) { /* from the outermost one */
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

/* The elements of a constant input are made where they are not. Values that a run has read have been made before. */
static onx_status make_elements(onxi_run_env *e, const onxi_run_op *op, const onx_prepare *p, uint32_t input)
{
    const uint32_t slot = e->graph && !e->state && input < op->input_count ? op->inputs[input] : ONXI_NO_SLOT;
    const onxi_run_source *source = slot == ONXI_NO_SLOT ? NULL : e->graph->slots[slot].source;
    if (!source || !p->inputs[input])
        return ONX_OK;
    ONX_TRY(onxi_run_constant_make((onxi_run_graph *)(uintptr_t)(const void *)e->graph, slot));
    onx_value *v = (onx_value *)(uintptr_t)(const void *)p->inputs[input]; /* the engine's own */
    if (v->data == source->raw)
        v->data = source->value->data;
    return ONX_OK;
}

/* All that the row may read freely, and does not only pack. */
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

/* What a subgraph gives is known when it has run. */
static onx_status call_subgraph(onxi_call *call, const onx_graph *graph, const onxi_type *inputs, uint32_t input_count,
                                onxi_type *outputs, uint32_t output_count)
{
    (void)call, (void)graph, (void)inputs, (void)input_count;
    for (uint32_t i = 0; i < output_count; i++)
        outputs[i] = (onxi_type){ .kind = ONXI_TYPE_NONE };
    return ONX_OK;
}

/* Only sequences and optional values get such types, and those are sized while running. */
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

/* Only rules that look into subgraphs ask, and those do not run before the subgraphs have. */
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

uint64_t onxi_run_op_body_parts(onxi_run_env *e, const onxi_run_op *op)
{
    static const onxi_type given = { .kind = ONXI_TYPE_NONE };
    const onxi_type **inputs = (const onxi_type **)ONXI_ARRAY(e->arena, void *, op->input_count + 1u);
    typing t = { .exec = e, .op = op };
    if (!inputs)
        return 0;
    for (uint32_t i = 0; i < op->input_count; i++)
        inputs[i] = op->inputs[i] == ONXI_NO_SLOT ? NULL : &given;
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

/* A type of the rule as a value without elements; stays of kind NONE where something is open. */
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
    if (!e->scratch) /* where the rule made them */
        return ONX_OK;
    if (!(v->dims = onxi_arena_get(e->arena, (t->rank ? t->rank : 1) * sizeof *v->dims)))
        return ONX_E_MEMORY;
    onxi_copy_dims(v->dims, t->dims, t->rank);
    return ONX_OK;
}

/* What a kernel knows of its outputs where no rule of the registry does. */
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
    /* Into how many parts Split goes, and whether BatchNormalization may train, is what the node says, however many of
     * its outputs are used. */
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
    uint32_t packed;   /* inputs that the current row has packed */
    onx_status failed; /* why the current row did not get what it asked for, where the request was valid */
} engine;

/* A row that cannot have what it asks for refuses the node. Where that is for lack of memory, the node fails: another
 * row would give other bits, without a visible reason. */
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

/* Who keeps what is made of an input; false when it is none of the constants that can be told. */
static bool find_keeper(const engine *en, const onx_prepare *p, uint32_t input, onxi_run_keeper *out)
{
    const onxi_run_graph *g = en->exec.graph;
    const void *elements = input < p->input_count && p->inputs[input] ? p->inputs[input]->data : NULL;
    const uint32_t slot = g && input < en->op->input_count ? en->op->inputs[input] : ONXI_NO_SLOT;
    const onx_value *constant = slot == ONXI_NO_SLOT ? NULL : g->slots[slot].constant;
    onxi_run_session *s = en->exec.session;
    onxi_run_plan *plan = en->exec.plan;
    if (!elements)
        return false;
    if (constant && (constant->data == elements || g->slots[slot].source)) {
        s = g->slots[slot].shared ? s->root : s;
        *out = (onxi_run_keeper){ &s->packs, s->cx, s->arena, s, g->slots[slot].source, elements };
        return true;
    }
    if (plan) /* computed while planning, and gone with the plan */
        *out = (onxi_run_keeper){ &plan->packs, plan->cx, plan->arena, NULL, NULL, elements };
    return plan != NULL;
}

static onx_status prepare_packed(const onx_prepare *p, const onx_packing *packing, const void **out)
{
    engine *en = p->engine;
    onxi_run_keeper to;
    if (!find_keeper(en, p, packing->input, &to))
        return ONX_E_UNSUPPORTED;
    ONX_TRY(answer(p, en->exec.state ? onxi_run_pack_running(en->exec.session, &to, p, packing, en->exec.watch, out)
                                     : onxi_run_pack(en->exec.session, &to, p, packing, out)));
    en->packed |= input_bit(packing->input);
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

static onx_str prepare_path(const void *place, onx_arena *arena)
{
    return onxi_run_op_path(arena, place);
}

static const onx_prepare_ops prepare_ops = {
    .path = prepare_path, .graph = prepare_graph, .packed = prepare_packed, .elements = prepare_elements
};

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
        en->exec.scratch = NULL; /* it outlives that */
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

/* Whether the row may be asked: every output has its type by now, unless the row says that it sizes outputs by itself
 * or passes on what is not a tensor. Rows without these flags rely on it. */
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

/* A view has the elements of its input, whatever a rule says of its shape. */
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

onx_status onxi_run_op_prepare(onxi_run_env *e, const onxi_run_op *op, onx_prepare *p,
                               const onx_value *const *row_major, bool flat)
{
    const onx_value *const *as_laid_out = p->inputs;
    if (!p->engine)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_run_op_check_types(op, p));
    size_t errors = onx_diag_total(e->cx, ONX_ERROR);
    bool unsized = false;
    for (uint32_t i = 0; i < op->kernel_count; i++) {
        p->kernel = op->kernels[i];
        if (!is_sized(op, p, p->kernel)) {
            unsized = true;
            continue;
        }
        bool as_is =
            !row_major || p->kernel->flags & ONX_KERNEL_LAYOUTS || (p->kernel->flags & ONX_KERNEL_FLAT && flat);
        p->inputs = as_is ? as_laid_out : row_major;
        if (!onxi_kernel_suits(p->kernel, p))
            continue;
        engine *en = p->engine;
        en->packed = 0;
        en->failed = ONX_OK;
        ONX_TRY(make_inputs(e, op, p, p->kernel->packs));
        onx_status status = p->kernel->flags & ONX_KERNEL_VIEW ? check_view(p) : ONX_OK;
        if (status == ONX_OK && p->kernel->prepare)
            status = p->kernel->prepare(p);
        if (status == ONX_E_UNSUPPORTED && en->failed != ONX_OK)
            status = en->failed;
        if (status == ONX_OK)
            ONX_TRY(make_inputs(e, op, p, en->packed));
        if (status == ONX_OK) /* a kernel that misreads an attribute has said so and does not know */
            return onx_diag_total(e->cx, ONX_ERROR) == errors ? ONX_OK : ONX_E_INVALID;
        if (onx_diag_total(e->cx, ONX_ERROR) != errors)
            return status;
        if (status != ONX_E_UNSUPPORTED) /* a kernel that refuses and does not say why */
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
    }
    p->kernel = NULL;
    if (unsized)
        return onx_prepare_fail(p, ONX_E_INVALID, "the shape of an output does not follow from the inputs");
    return no_kernel(op, p);
}

/* ---- running ---- */

/* With a watch, the work of a thread is done in pieces, and the watch is asked before each of them. */
static onx_status run_rows(const onx_kernel *kernel, onx_work *work, uint64_t first, uint64_t last)
{
    enum { PIECES = 16 };
    const onxi_run_watch *watch = work->watch;
    if (!watch || !watch->on)
        return kernel->run(work, first, last);
    uint64_t grain = work->prepared->grain ? work->prepared->grain : 1, piece = (last - first) / PIECES;
    piece = piece < grain ? grain : piece;
    while (first < last) {
        uint64_t end = last - first < 2 * piece ? last : first + piece;
        onx_status status = onxi_run_watch_look(watch);
        if (status != ONX_OK)
            return work->cx ? onxi_run_watch_fail(watch, status, work->cx, work->prepared->place) : status;
        ONX_TRY(kernel->run(work, first, end));
        first = end;
    }
    return ONX_OK;
}

/* The rows of a kernel in blocks of neighbours, which the plan fixes: who does a block is left open. */
typedef struct row_blocks {
    const onx_kernel *kernel;
    const onx_work *work;
    uint64_t rows, count;
    atomic_bool failed, declined;
} row_blocks;

static void run_block(void *user, uint64_t block, unsigned worker)
{
    row_blocks *b = user;
    if (atomic_load_explicit(&b->failed, memory_order_relaxed))
        return;
    uint64_t each = b->rows / b->count, more = b->rows % b->count; /* the first ones have one row more */
    uint64_t first = each * block + (block < more ? block : more), last = first + each + (block < more);
    uint64_t step = b->work->prepared->thread_workspace;
    onx_work mine = *b->work;
    mine.cx = NULL;
    mine.thread_workspace = step ? (char *)mine.thread_workspace + step * worker : NULL;
    onx_status status = run_rows(b->kernel, &mine, first, last);
    if (status == ONX_E_UNSUPPORTED)
        atomic_store_explicit(&b->declined, true, memory_order_relaxed);
    if (status != ONX_OK)
        atomic_store_explicit(&b->failed, true, memory_order_relaxed);
}

/* A kernel that fails and does not say why. ONX_E_MISUSE comes from an output that cannot be resized, because the rule
 * settled its shape and the plan owns its memory. */
static onx_status explained(onx_status status, const onx_kernel *kernel, onx_work *work, size_t errors)
{
    if (status == ONX_OK || onx_diag_total(work->cx, ONX_ERROR) != errors ||
        (status == ONX_E_UNSUPPORTED && !work->prepared->nonfinite)) /* it declines, and the run starts over */
        return status;
    if (status == ONX_E_MISUSE)
        return onx_work_fail(work, ONX_E_INVALID, "%s gives another shape or element type than its rule says",
                             kernel->op);
    return onx_work_fail(work, status, "the %s kernel of %s fails", onxi_kernel_variant(kernel), kernel->op);
}

static onx_status run_all_rows(const onx_kernel *kernel, onx_work *work)
{
    enum { BLOCKS = 4 }; /* per thread, so that one which comes late or has to stop leaves the rest to others */
    uint64_t rows = work->prepared->rows, grain = work->prepared->grain ? work->prepared->grain : 1;
    size_t errors = onx_diag_total(work->cx, ONX_ERROR);
    if (!rows)
        return ONX_OK;
    uint64_t pieces = rows / grain, most = (uint64_t)work->threads * BLOCKS;
    if (pieces > 1 && work->threads > 1) {
        row_blocks b = { .kernel = kernel, .work = work, .rows = rows, .count = pieces < most ? pieces : most };
        onxi_team_run(work->threads, b.count, run_block, &b);
        if (!atomic_load_explicit(&b.failed, memory_order_relaxed))
            return ONX_OK;
        if (atomic_load_explicit(&b.declined, memory_order_relaxed) && !work->prepared->nonfinite)
            return ONX_E_UNSUPPORTED; /* inputs may be overwritten by now: a second look would see others */
    }                                 /* a failure is recorded by the serial run below */
    return explained(run_rows(kernel, work, 0, rows), kernel, work, errors);
}

/* Elements of 4 and 2 bits need not fill the last byte. Kernels write elements, so what is left of it is whatever the
 * memory held; results are the same bytes in every run, and reveal nothing of others. */
static void clear_rest(onx_value *v)
{
    const unsigned bits = v && v->kind == ONX_VALUE_TENSOR ? onx_dtype_bits(v->dtype) : 8;
    const unsigned used = bits < 8 ? (unsigned)(v->count * bits % 8) : 0;
    if (used && v->data && v->size)
        ((uint8_t *)v->data)[v->size - 1] &= (uint8_t)((1u << used) - 1);
}

onx_status onxi_run_work_run(const onx_kernel *kernel, onx_work *work)
{
    onx_status status = run_all_rows(kernel, work);
    for (uint32_t i = 0; status == ONX_OK && i < work->prepared->output_count; i++)
        clear_rest(work->outputs[i]);
    return status;
}

static onx_status eager_output(onxi_run_env *e, const onx_value *type, onx_value *out)
{
    if (type->kind != ONX_VALUE_TENSOR)
        return ONX_OK;
    (void)e;
    return onx_value_reset(out, (onx_dtype)type->dtype, type->rank, type->dims);
}

static onx_status eager_run(onxi_run_env *e, onx_prepare *p, const onx_value *const *inputs, onx_value *const *outputs)
{
    uint64_t threads = p->threads ? p->threads : 1, each, total;
    p->thread_workspace = (p->thread_workspace + 63u) & ~(uint64_t)63u;
    p->workspace = (p->workspace + 63u) & ~(uint64_t)63u;
    if (!onxi_mul_u64(p->thread_workspace, threads, &each) || !onxi_add_u64(each, p->workspace + 64, &total) ||
        total > e->session->options.memory)
        return onx_prepare_fail(p, ONX_E_LIMIT, "the workspace exceeds the memory limit");
    void *base = total > 64 ? onxi_resize(e->cx, NULL, 0, total) : NULL;
    if (total > 64 && !base)
        return ONX_E_MEMORY;
    char *space = (char *)(((uintptr_t)base + 63u) & ~(uintptr_t)63u);
    const onx_prepared prepared = onxi_run_op_prepared(p);
    onx_work work = { .cx = e->cx,
                      .prepared = &prepared,
                      .params = p->params,
                      .inputs = inputs,
                      .outputs = outputs,
                      .workspace = base ? space : NULL,
                      .thread_workspace = base ? space + p->workspace : NULL,
                      .threads = p->threads,
                      .watch = e->watch,
                      .text = e->state ? e->state->text : e->arena };
    onx_status status = p->kernel->bind ? p->kernel->bind(&work) : ONX_OK;
    if (status == ONX_OK)
        status = onxi_run_work_run(p->kernel, &work);
    if (p->kernel->unbind && work.state)
        p->kernel->unbind(work.state);
    onxi_release(e->cx, base, total);
    return status;
}

/* A view of something dynamic is a copy. */
static onx_status eager_view(const onx_value *input, const onx_value *type, onx_value *out)
{
    ONX_TRY(onxi_value_take(out, input));
    if (type->kind != ONX_VALUE_TENSOR || out->kind != ONX_VALUE_TENSOR)
        return ONX_OK;
    if (type->rank > out->dims_room) {
        ONX_TRY(
            onxi_value_memory(out->cx, &out->dims, out->dims_room * sizeof *out->dims, type->rank * sizeof *out->dims));
        out->dims_room = type->rank;
    }
    onxi_copy_dims(out->dims, type->dims, type->rank);
    out->rank = type->rank;
    return ONX_OK;
}

static onx_status eager_once(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs, const onx_kernel **kernel_out)
{
    onx_value *types = ONXI_ARRAY(e->arena, onx_value, op->output_count + 1u);
    onx_value **type_list = (onx_value **)ONXI_ARRAY(e->arena, void *, op->output_count + 1u);
    bool *last_use = ONXI_ARRAY(e->arena, bool, op->input_count + 1u);
    if (!types || !type_list || !last_use)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < op->output_count; i++)
        type_list[i] = outputs[i] ? &types[i] : NULL;
    ONX_TRY(onxi_run_op_types(e, op, inputs, type_list));
    onx_prepare p = { .inputs = inputs, .outputs = type_list, .last_use = last_use };
    onxi_run_op_describe(e, op, &p);
    onx_status status = onxi_run_op_prepare(e, op, &p, NULL, false);
    if (status != ONX_OK)
        return status;
    if (kernel_out)
        *kernel_out = p.kernel;
    for (uint32_t i = 0; status == ONX_OK && i < op->output_count; i++)
        if (outputs[i] && !(p.kernel->flags & ONX_KERNEL_VIEW && i == 0))
            status = eager_output(e, &types[i], outputs[i]);
    if (status == ONX_OK)
        status = p.kernel->flags & ONX_KERNEL_VIEW && inputs[0] && outputs[0]
                     ? eager_view(inputs[0], &types[0], outputs[0])
                     : eager_run(e, &p, inputs, outputs);
    if (p.kernel->release)
        p.kernel->release(p.params);
    return status;
}

onx_status onxi_run_op_eager(onxi_run_env *e, const onxi_run_op *op, const onx_value *const *inputs,
                             onx_value *const *outputs, const onx_kernel **kernel_out)
{
    const size_t errors = onx_diag_total(e->cx, ONX_ERROR);
    onx_status status = eager_once(e, op, inputs, outputs, kernel_out);
    if (status != ONX_E_UNSUPPORTED || e->nonfinite || onx_diag_total(e->cx, ONX_ERROR) != errors)
        return status;
    onxi_run_env again = *e;
    again.nonfinite = true;
    return eager_once(&again, op, inputs, outputs, kernel_out);
}

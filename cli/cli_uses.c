/* cli_uses.c - what a model does with its inputs: which numbers nodes take there, and which dims. */
#include "cli_uses.h"

#include "cli_attribute.h"
#include "cli_table.h"

#include <onx/infer.h>

#include <stdlib.h>

typedef enum use_kind { USE_INDEX, USE_LENGTH, USE_RANGE, USE_STEPS, USE_FLAT } use_kind;

typedef struct use_row {
    const char *op;
    uint32_t input;
    use_kind kind;
    uint32_t of;
    int axis;
    double low, high;
} use_row;

enum { AXIS_ALL = 99 }; /* every dimension, so the smallest counts */
static const use_row rows[] = {
#define USE(op, input, kind, of, axis, low, high) { #op, input, USE_##kind, of, axis, low, high },
#include "cli_uses.def"
};

/* A value that an input of the model becomes by nodes that only move it. */
typedef struct moved {
    onx_str name;
    uint32_t input;
    bool shape; /* it has the shape of the input, too */
} moved;

typedef struct finder {
    cli_call *call;
    onx_ctx *cx; /* of its own, so that what inference finds is not reported */
    onx_doc *doc;
    onx_infer *infer;
    bool asked; /* for `infer`; NULL: it failed */
    cli_table names, rows, initializers;
    moved *list;
    uint32_t count, room;
    cli_use *uses;
} finder;

static onx_status no_memory(const finder *f)
{
    cli_error(f->call, "out of memory");
    return ONX_E_MEMORY;
}

/* ---- the shape of a value of the main graph ---- */

static const onx_tensor_shape *inferred_shape(finder *f, onx_str name)
{
    if (!f->asked) {
        const onx_infer_options options = { .registry = f->call->registry };
        f->asked = true;
        if (onx_infer_new(f->cx, f->doc, &options, &f->infer) != ONX_OK)
            f->infer = NULL;
    }
    const onx_type *type = f->infer ? onx_infer_type(f->infer, onx_doc_model(f->doc)->graph, name) : NULL;
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
}

static const onx_tensor *initializer(const finder *f, onx_str name)
{
    const onx_graph *g = onx_doc_model(f->doc)->graph;
    CLI_TABLE_EACH (&f->initializers, cli_table_hash(&f->initializers, name, onx_str_of("")), i)
        if (onx_str_equal(onx_view(g->initializer[i]->name), name))
            return g->initializer[i];
    return NULL;
}

static onx_status list_initializers(finder *f)
{
    const onx_graph *g = onx_doc_model(f->doc)->graph;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!cli_table_add(&f->initializers,
                           cli_table_hash(&f->initializers, onx_view(g->initializer[i]->name), onx_str_of("")), i))
            return no_memory(f);
    return ONX_OK;
}

/* The dims, -1 for those that are not known; false: not even the rank is. */
static bool dims_of(finder *f, onx_str name, cli_shape *out)
{
    const onx_tensor *t = name.len ? initializer(f, name) : NULL;
    if (t && t->dims_count <= ONX_RANK_MAX) {
        out->rank = t->dims_count;
        for (uint32_t i = 0; i < out->rank; i++)
            out->dims[i] = t->dims[i];
        return true;
    }
    const onx_tensor_shape *shape = name.len ? inferred_shape(f, name) : NULL;
    if (!shape || shape->dim_count > ONX_RANK_MAX)
        return false;
    out->rank = shape->dim_count;
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = ONX_HAS(dimension, shape->dim[i], dim_value) ? shape->dim[i]->dim_value : -1;
    return true;
}

/* ---- values that inputs become ---- */

static moved *find(finder *f, onx_str name)
{
    CLI_TABLE_EACH (&f->names, cli_table_hash(&f->names, name, onx_str_of("")), i)
        if (onx_str_equal(f->list[i].name, name))
            return &f->list[i];
    return NULL;
}

static onx_status note(finder *f, onx_str name, uint32_t input, bool shape)
{
    if (!name.len || find(f, name))
        return ONX_OK;
    if (!CLI_GROW(f->list, f->count, f->room) ||
        !cli_table_add(&f->names, cli_table_hash(&f->names, name, onx_str_of("")), f->count))
        return no_memory(f);
    f->list[f->count++] = (moved){ name, input, shape };
    return ONX_OK;
}

static bool is_one_of(onx_str op, const char *const *names)
{
    for (; *names; names++)
        if (onx_str_is(op, *names))
            return true;
    return false;
}

/* Nodes that give the numbers of their first input, or of several, in another order or shape. */
static bool moves_values(onx_str op, uint32_t input)
{
    static const char *const first[] = { "Identity", "Cast",    "Reshape",        "Unsqueeze", "Squeeze",   "Transpose",
                                         "Expand",   "Flatten", "Slice",          "Split",     "Tile",      "Gather",
                                         "GatherND", "Clip",    "GatherElements", "ReduceMax", "ReduceMin", NULL },
                             *const any[] = { "Concat", "Max", "Min", "Where", NULL };
    return (input == 0 && is_one_of(op, first)) || is_one_of(op, any);
}

/* Nodes that give what has the shape of an input, where the others are no larger. */
static bool keeps_shape(onx_str op, uint32_t input)
{
    static const char *const first[] = { "Identity",  "Cast",      "Clip",    "Relu",   "Sigmoid", "Tanh", "Abs",
                                         "Neg",       "Sqrt",      "Exp",     "Log",    "Not",     "Erf",  "Elu",
                                         "LeakyRelu", "HardSwish", "Dropout", "Scaler", NULL },
                             *const pair[] = { "Add", "Sub", "Mul", "Div", "Pow", NULL };
    return (input == 0 && is_one_of(op, first)) || (input < 2 && is_one_of(op, pair));
}

/* ---- numbers ---- */

static int64_t attribute_int(const finder *f, const onx_node *node, const char *name)
{
    return cli_attribute_int(cli_op_of(onx_doc_model(f->doc), node), node, name);
}

/* The size that bounds an index; -1: not known. */
static int64_t bound(finder *f, const onx_node *node, const use_row *row)
{
    cli_shape shape;
    if (row->of >= node->input_count || !dims_of(f, onx_view(node->input[row->of]), &shape) || !shape.rank)
        return -1;
    int64_t least = -1;
    if (row->axis == AXIS_ALL) {
        for (uint32_t i = 0; i < shape.rank; i++)
            if (shape.dims[i] >= 0 && (least < 0 || shape.dims[i] < least))
                least = shape.dims[i];
        return least;
    }
    const char *name = row->kind == USE_LENGTH ? "time_axis" : "axis";
    const onx_op *op = cli_op_of(onx_doc_model(f->doc), node);
    int64_t axis = cli_op_has_attribute(op, name) ? cli_attribute_int(op, node, name) : row->axis;
    axis += axis < 0 ? (int64_t)shape.rank : 0;
    return axis >= 0 && axis < (int64_t)shape.rank ? shape.dims[axis] : -1;
}

static void use_numbers(finder *f, const onx_node *node, const use_row *row, cli_use *use)
{
    double low = row->low, high = row->high;
    if (row->kind == USE_STEPS || row->kind == USE_FLAT) {
        if (!use->op)
            *use = (cli_use){ .op = row->op, .pattern = row->kind == USE_STEPS ? CLI_PATTERN_STEPS : CLI_PATTERN_FLAT };
        return;
    }
    if (row->kind != USE_RANGE) {
        const int64_t size = bound(f, node, row);
        low = row->kind == USE_LENGTH;
        high = size > 0 ? (double)size - 1 + low : low;
    }
    if (!use->op) {
        use->op = row->op;
        use->pattern = CLI_PATTERN_RANGE;
        use->low = low;
        use->high = high;
    } else if (use->pattern == CLI_PATTERN_RANGE && low <= use->high && high >= use->low) {
        use->low = low > use->low ? low : use->low;
        use->high = high < use->high ? high : use->high;
    }
}

/* ---- dims ---- */

static void use_dim(cli_use *use, uint32_t rank, uint32_t axis, int64_t size)
{
    if ((use->rank && use->rank != rank) || rank == 0 || rank > sizeof use->dims / sizeof *use->dims)
        return;
    use->rank = rank;
    if (axis < rank && size > 0 && !use->dims[axis])
        use->dims[axis] = size;
}

/* What the weights of a node demand of its first input. */
static void use_dims(finder *f, const onx_node *node, cli_use *use)
{
    const onx_str op = onx_view(node->op_type);
    cli_shape w;
    if (node->input_count < 2 || !dims_of(f, onx_view(node->input[1]), &w))
        return;
    if ((onx_str_is(op, "Conv") || onx_str_is(op, "ConvTranspose")) && w.rank > 2) {
        const bool turned = onx_str_is(op, "ConvTranspose");
        const int64_t group = attribute_int(f, node, "group"), channels = w.dims[!turned];
        const bool sane = channels > 0 && group > 0 && group < INT32_MAX && channels < INT32_MAX;
        use_dim(use, w.rank, 1, sane ? channels * (turned ? 1 : group) : 0);
    } else if (onx_str_is(op, "Gemm") && w.rank == 2) {
        const bool turned = attribute_int(f, node, "transA") != 0;
        use_dim(use, 2, !turned, w.dims[attribute_int(f, node, "transB") ? 1 : 0]);
    } else if (onx_str_is(op, "MatMul") && w.rank == 2) {
        use_dim(use, use->rank ? use->rank : 2, (use->rank ? use->rank : 2) - 1, w.dims[0]);
    } else if ((onx_str_is(op, "LSTM") || onx_str_is(op, "GRU") || onx_str_is(op, "RNN")) && w.rank == 3) {
        use_dim(use, 3, 2, w.dims[2]);
    }
}

/* How many features of its input a model of ai.onnx.ml reads, or 0. */
static int64_t features_of(const finder *f, const onx_node *node)
{
    const onx_str op = onx_view(node->op_type);
    const onx_attribute *a;
    if (onx_str_is(op, "Scaler")) {
        a = onx_node_attribute(node, "offset");
        return a && a->slot == ONX_SLOT_FLOATS && a->count > 1 ? a->count : 0;
    }
    if (onx_str_is(op, "LinearRegressor")) {
        const int64_t targets = attribute_int(f, node, "targets");
        a = onx_node_attribute(node, "coefficients");
        return a && a->slot == ONX_SLOT_FLOATS && targets > 0 ? a->count / targets : 0;
    }
    int64_t most = -1;
    a = onx_node_attribute(node, "nodes_featureids"); /* of trees */
    for (uint32_t i = 0; a && a->slot == ONX_SLOT_INTS && i < a->count; i++)
        most = a->ints[i] > most ? a->ints[i] : most;
    return most < 1000000 ? most + 1 : 0;
}

/* ---- nodes ---- */

/* Bodies of Loop and Scan see what the node is given. */
static onx_status enter_body(finder *f, const onx_node *node, uint32_t input, const moved *from)
{
    const onx_attribute *a = onx_node_attribute(node, "body");
    const onx_str op = onx_view(node->op_type);
    if ((!onx_str_is(op, "Loop") && !onx_str_is(op, "Scan")) || !a || a->slot != ONX_SLOT_G || !a->g ||
        input >= a->g->input_count || (onx_str_is(op, "Loop") && input < 2))
        return ONX_OK;
    return note(f, onx_view(a->g->input[input]->name), from->input, false);
}

static onx_status see_input(finder *f, const onx_node *node, uint32_t input, bool ml)
{
    const onx_str op = onx_view(node->op_type);
    const moved *found = onx_view(node->input[input]).len ? find(f, onx_view(node->input[input])) : NULL;
    if (!found)
        return ONX_OK;
    const moved from = *found;
    if (ml && input == 0 && from.shape)
        use_dim(&f->uses[from.input], 2, 1, features_of(f, node));
    if (ml && !(onx_str_is(op, "Scaler") || onx_str_is(op, "ArrayFeatureExtractor")))
        return ONX_OK;
    CLI_TABLE_EACH (&f->rows, cli_table_hash(&f->rows, op, onx_str_of("")), i)
        if (rows[i].input == input && onx_str_is(op, rows[i].op))
            use_numbers(f, node, &rows[i], &f->uses[from.input]);
    if (input == 0 && from.shape)
        use_dims(f, node, &f->uses[from.input]);
    ONX_TRY(enter_body(f, node, input, &from));
    const bool values = moves_values(op, input), shape = from.shape && keeps_shape(op, input);
    for (uint32_t i = 0; (values || shape) && i < node->output_count; i++)
        ONX_TRY(note(f, onx_view(node->output[i]), from.input, shape));
    return ONX_OK;
}

static onx_status see(void *user, const onx_visit *at)
{
    finder *f = user;
    const onx_node *node = at->message;
    if (at->kind != ONX_KIND_NODE)
        return ONX_OK;
    const onx_str domain = onx_view(node->domain);
    const bool ml = onx_str_is(domain, "ai.onnx.ml");
    if (domain.len && !ml && !onx_str_is(domain, "ai.onnx"))
        return ONX_OK;
    for (uint32_t i = 0; i < node->input_count; i++)
        ONX_TRY(see_input(f, node, i, ml));
    return ONX_OK;
}

static onx_status find_all(finder *f, const onx_session *s)
{
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!cli_table_add(&f->rows, cli_table_hash(&f->rows, onx_str_of(rows[i].op), onx_str_of("")), i))
            return no_memory(f);
    ONX_TRY(list_initializers(f));
    for (uint32_t i = 0; i < onx_session_input_count(s); i++)
        ONX_TRY(note(f, onx_session_input(s, i).name, i, true));
    onx_status status = onx_message_walk(f->cx, ONX_KIND_GRAPH, onx_doc_model(f->doc)->graph, see, f);
    return status == ONX_E_MEMORY ? no_memory(f) : ONX_OK; /* nothing else prevents a run */
}

onx_status cli_uses_find(cli_call *call, onx_doc *doc, const onx_session *s, cli_use *uses)
{
    finder f = { .call = call, .uses = uses, .cx = onx_ctx_new(NULL) };
    onx_status status = ONX_E_MEMORY;
    if (f.cx) {
        onx_ctx_set_limits(f.cx, onx_ctx_limits(call->cx));
        f.names.cx = f.rows.cx = f.initializers.cx = f.cx;
        status = onx_doc_reader(f.cx, doc, &f.doc);
    }
    status = status == ONX_OK ? find_all(&f, s) : no_memory(&f);
    onx_infer_free(f.infer);
    onx_doc_free(f.doc);
    free(f.names.slots);
    free(f.rows.slots);
    free(f.initializers.slots);
    free(f.list);
    onx_ctx_free(f.cx);
    return status;
}

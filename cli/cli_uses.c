/* cli_uses.c - determines how a model uses its inputs: which elements and dimensions its nodes accept. */
#include "cli_flow.h"

#include "cli_attribute.h"

typedef enum use_kind {
    USE_INDEX,
    USE_LENGTH,
    USE_RANGE,
    USE_SOFT,
    USE_AFTER,
    USE_STEPS,
    USE_FLAT,
    USE_PARTS,
    USE_DIMS,
    USE_TEXT,
    USE_CHOICE
} use_kind;

typedef struct use_row {
    const char *domain, *op;
    uint32_t input;
    use_kind kind;
    uint32_t of;
    int axis;
    double low, high;
} use_row;

enum { AXIS_ALL = 99 }; /* every dimension: the smallest one is the limit */
static const use_row rows[] = {
#define USE(op, input, kind, of, axis, low, high)            USE_IN("", op, input, kind, of, axis, low, high)
#define USE_IN(domain, op, input, kind, of, axis, low, high) { domain, #op, input, USE_##kind, of, axis, low, high },
#include "cli_uses.def"
};

typedef struct finder {
    cli_flow *flow;
    cli_table rows;
    cli_use *uses;
} finder;

/* ---- numbers ---- */

static int64_t attribute_int(const finder *f, const onx_node *node, const char *name)
{
    return cli_attribute_int(cli_op_of(onx_doc_model(f->flow->doc), node), node, name);
}

/* The axis that a row of the table refers to, for a value of that rank; false if there is no such axis. */
static bool axis_of(const finder *f, const onx_node *node, const use_row *row, uint32_t rank, uint32_t *out)
{
    const char *name = row->kind == USE_LENGTH ? "time_axis" : "axis";
    const onx_op *op = cli_op_of(onx_doc_model(f->flow->doc), node);
    int64_t axis = cli_op_has_attribute(op, name) ? cli_attribute_int(op, node, name) : row->axis;
    axis += axis < 0 ? (int64_t)rank : 0;
    *out = (uint32_t)axis;
    return axis >= 0 && axis < (int64_t)rank;
}

/* The size that bounds an index; -1 if unknown. */
static int64_t bound(finder *f, const cli_flow_step *step, const use_row *row)
{
    cli_shape shape;
    uint32_t axis;
    int64_t least = -1;
    if (!cli_flow_dims(f->flow, cli_flow_input(f->flow, step, row->of), &shape) || !shape.rank)
        return -1;
    for (uint32_t i = 0; row->axis == AXIS_ALL && i < shape.rank; i++)
        if (shape.dims[i] >= 0 && (least < 0 || shape.dims[i] < least))
            least = shape.dims[i];
    if (row->axis == AXIS_ALL)
        return least;
    return axis_of(f, step->node, row, shape.rank, &axis) ? shape.dims[axis] : -1;
}

/* The size of a dimension of a value: a number, or the size of an input with the same shape; false if unknown. */
static bool size_at(const finder *f, uint32_t value, const cli_shape *shape, uint32_t axis, cli_size *out)
{
    const uint32_t like = f->flow->values[value].like;
    *out = (cli_size){ .number = shape->dims[axis], .input = shape->dims[axis] < 0 ? like : 0, .axis = axis };
    return shape->dims[axis] >= 0 || like;
}

/* Sizes of parts add up to the size of the axis; if that is not known, each part gets size 1. */
static void ask_parts(finder *f, const cli_flow_step *step, const use_row *row, cli_numbers *n)
{
    const uint32_t x = cli_flow_input(f->flow, step, row->of);
    cli_shape shape;
    uint32_t axis;
    if (cli_flow_dims(f->flow, x, &shape) && axis_of(f, step->node, row, shape.rank, &axis) &&
        size_at(f, x, &shape, axis, &n->list[0])) {
        n->pattern = CLI_PATTERN_PARTS;
        n->count = 1;
    }
}

/* The sizes of another operand, as far as the list has room. */
static void ask_dims(const finder *f, const cli_flow_step *step, const use_row *row, cli_numbers *n)
{
    const uint32_t x = cli_flow_input(f->flow, step, row->of);
    const uint32_t most = row->low > 0 ? (uint32_t)row->low : CLI_MOST_SIZES;
    cli_shape shape;
    if (!cli_flow_dims(f->flow, x, &shape) || !shape.rank || (shape.rank > CLI_MOST_SIZES && row->low <= 0))
        return;
    n->pattern = CLI_PATTERN_LIST;
    for (uint32_t i = 0; i < shape.rank && n->count < most; i++)
        if (!size_at(f, x, &shape, i, &n->list[n->count++]))
            n->list[n->count - 1] = (cli_size){ .number = 1 };
    if (row->low > 0) /* the remaining dimensions */
        n->list[n->count++] = (cli_size){ .number = 1 };
}

/* One of the categories that the node accepts. */
static void ask_choice(const onx_node *node, cli_numbers *n)
{
    const onx_attribute *texts = onx_node_attribute(node, "cats_strings"),
                        *ints = onx_node_attribute(node, "cats_int64s");
    n->choices = texts && texts->slot == ONX_SLOT_STRINGS && texts->count ? texts : ints;
    if (n->choices && n->choices->count && (n->choices == texts || ints->slot == ONX_SLOT_INTS))
        n->pattern = CLI_PATTERN_CHOICE;
    else
        n->op = NULL;
}

static void numbers_of(finder *f, const cli_flow_step *step, const use_row *row, cli_numbers *n)
{
    const uint32_t other = cli_flow_input(f->flow, step, row->of);
    *n = (cli_numbers){ .op = row->op, .pattern = CLI_PATTERN_RANGE, .low = row->low, .high = row->high };
    if (row->kind == USE_STEPS || row->kind == USE_FLAT) {
        n->pattern = row->kind == USE_STEPS ? CLI_PATTERN_STEPS : CLI_PATTERN_FLAT;
    } else if (row->kind == USE_INDEX || row->kind == USE_LENGTH) {
        const int64_t size = bound(f, step, row);
        n->low = row->kind == USE_LENGTH;
        n->high = size > 0 ? (double)size - 1 + n->low : n->low;
    } else if (row->kind == USE_AFTER && other != CLI_FLOW_NONE &&
               f->flow->values[other].low == f->flow->values[other].high) {
        n->low += f->flow->values[other].low;
        n->high += f->flow->values[other].low;
    } else if (row->kind == USE_PARTS || row->kind == USE_DIMS) {
        n->low = n->high = 1;
        if (row->kind == USE_PARTS)
            ask_parts(f, step, row, n);
        else
            ask_dims(f, step, row, n);
    } else if (row->kind == USE_CHOICE) {
        ask_choice(step->node, n);
    }
    n->of_text = row->kind == USE_TEXT;
    n->soft = row->kind == USE_SOFT;
}

static onx_status ask_numbers(void *user, cli_flow *flow, const cli_flow_step *step)
{
    finder *f = user;
    const uint32_t hash = cli_table_hash(&f->rows, onx_view(step->node->op_type), cli_flow_domain(step->node));
    CLI_TABLE_EACH (&f->rows, hash, i) {
        cli_numbers n;
        const uint32_t x = cli_flow_input(flow, step, rows[i].input);
        if (x == CLI_FLOW_NONE || !flow->values[x].derived || !cli_flow_is(step->node, rows[i].domain, rows[i].op))
            continue;
        numbers_of(f, step, &rows[i], &n);
        ONX_TRY(cli_flow_ask(flow, x, &n));
    }
    return ONX_OK;
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

/* The dimensions of the first input that the node's weights require. */
static void use_dims(finder *f, const cli_flow_step *step, cli_use *use)
{
    const onx_node *node = step->node;
    const onx_str op = onx_view(node->op_type);
    cli_shape w;
    if (!cli_flow_dims(f->flow, cli_flow_input(f->flow, step, 1), &w))
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

/* The number of input features that a model of ai.onnx.ml reads, or 0. */
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

/* ---- the model ---- */

static void see_dims(finder *f, const cli_flow_step *step)
{
    const onx_str domain = cli_flow_domain(step->node);
    const uint32_t x = cli_flow_input(f->flow, step, 0);
    const uint32_t input = x == CLI_FLOW_NONE ? 0 : f->flow->values[x].like;
    if (input && onx_str_is(domain, "ai.onnx.ml"))
        use_dim(&f->uses[input - 1], 2, 1, features_of(f, step->node));
    else if (input && !domain.len)
        use_dims(f, step, &f->uses[input - 1]);
}

static onx_status find_all(finder *f)
{
    cli_flow *flow = f->flow;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!cli_table_add(&f->rows, cli_table_hash(&f->rows, onx_str_of(rows[i].op), onx_str_of(rows[i].domain)), i))
            return cli_flow_no_memory(flow);
    for (uint32_t i = 0; i < flow->step_count; i++)
        see_dims(f, &flow->steps[i]);
    ONX_TRY(cli_flow_pull(flow, ask_numbers, f));
    for (uint32_t i = 0; i < flow->input_count; i++)
        if (flow->values[i].asked)
            f->uses[i].numbers = flow->asked[flow->values[i].asked - 1];
    return ONX_OK;
}

onx_status cli_uses_open(cli_call *call, const onx_doc *doc, const onx_session *s, cli_uses *out)
{
    *out = (cli_uses){ .list = calloc(onx_session_input_count(s) + UINT32_C(1), sizeof *out->list),
                       .flow = calloc(1, sizeof *out->flow) };
    if (!out->list || !out->flow) {
        cli_error(call, "out of memory");
        return ONX_E_MEMORY;
    }
    finder f = { .flow = out->flow, .uses = out->list };
    onx_status status = cli_flow_open(out->flow, call, doc, s);
    f.rows.cx = out->flow->cx;
    if (status == ONX_OK)
        status = find_all(&f);
    free(f.rows.slots);
    return status;
}

void cli_uses_close(cli_uses *uses)
{
    if (uses->flow)
        cli_flow_close(uses->flow);
    free(uses->flow);
    free(uses->list);
    *uses = (cli_uses){ 0 };
}

/* simplify_merge.c - merges two nodes that move or reshape elements into one, or removes both. Each node is combined
 * with the one that produces its input, which was simplified before. */
#include "simplify/simplify.h"

enum { PARTS_MAX = 64 }; /* maximum number of inputs of a merged Concat, so that a chain of them takes linear time */

/* ---- shared helpers ---- */

static onx_status said(onxi_simplify *s, uint32_t op, const char *before)
{
    onxi_simplify_note(s, ONXI_SIMPLIFY_MERGE, s->ops[op].bound->schema->name, op, "merged with the %s before it",
                       before);
    return ONX_OK;
}

/* Replaces the op's first input by that of the node before it, which is removed if it has no other reader. */
static onx_status pass_over(onxi_simplify *s, uint32_t op, const onxi_sop *before)
{
    const char *name = before->bound->schema->name;
    const uint32_t x = onxi_simplify_input(s, before, 0);
    if (x == ONXI_S_NONE)
        return ONX_OK;
    said(s, op, name);
    return onxi_simplify_set_input(s, op, 0, x);
}

static onx_status cancel(onxi_simplify *s, uint32_t op, uint32_t x, const char *why)
{
    const uint32_t y = s->ops[op].outputs[0];
    if (x == ONXI_S_NONE || !onxi_simplify_can_hand_on(s, y, x))
        return ONX_OK;
    onxi_simplify_note(s, ONXI_SIMPLIFY_MERGE, s->ops[op].bound->schema->name, op, "removed: %s", why);
    (void)onxi_simplify_hand_on(s, op, y, x);
    return onxi_simplify_drop(s, op);
}

/* ---- Transpose ---- */

static bool perm_of(onxi_simplify *s, onxi_sop *op, int64_t *out, uint32_t *rank)
{
    const onxi_attr_value *perm = onxi_attrs_get(&op->attrs, "perm", ONX_ATTR_INTS);
    onxi_type type;
    bool seen[ONX_RANK_MAX] = { false };
    if (!perm || !perm->count) { /* absent: the axes are reversed */
        if (!onxi_simplify_type(s, onxi_simplify_input(s, op, 0), &type) || type.rank > ONX_RANK_MAX)
            return false;
        for (uint32_t i = 0; i < type.rank; i++)
            out[i] = type.rank - 1 - i;
        *rank = type.rank;
        return true;
    }
    if (perm->count > ONX_RANK_MAX)
        return false;
    *rank = perm->count;
    for (uint32_t i = 0; i < *rank; i++) {
        out[i] = ((const int64_t *)perm->list)[i];
        if (out[i] < 0 || out[i] >= *rank || seen[out[i]])
            return false;
        seen[out[i]] = true;
    }
    return true;
}

static onx_status transpose(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index],
             *before = onxi_simplify_maker(s, op, onxi_simplify_input(s, op, 0), ONXI_ID_Transpose);
    int64_t first[ONX_RANK_MAX], second[ONX_RANK_MAX], both[ONX_RANK_MAX];
    uint32_t rank, other;
    bool in_order = true;
    if (!before || !perm_of(s, before, first, &rank) || !perm_of(s, op, second, &other) || rank != other)
        return ONX_OK;
    for (uint32_t i = 0; i < rank; i++) {
        both[i] = first[second[i]];
        in_order &= both[i] == i;
    }
    if (in_order && onxi_simplify_can_hand_on(s, op->outputs[0], onxi_simplify_input(s, before, 0)))
        return cancel(s, index, onxi_simplify_input(s, before, 0), "undoes the Transpose before it");
    onx_node holder = { 0 };
    if (!onx_node_add_ints(s->arena, &holder, "perm", both, rank))
        return ONX_E_MEMORY;
    ONX_TRY(pass_over(s, index, before));
    return onxi_simplify_become(s, index, "Transpose", holder.attribute, 1);
}

/* ---- reshaping: the order of elements stays ---- */

static bool is_view(onxi_op_id id)
{
    return id == ONXI_ID_Reshape || id == ONXI_ID_Flatten || id == ONXI_ID_Squeeze || id == ONXI_ID_Unsqueeze;
}

static onxi_sop *view_before(onxi_simplify *s, const onxi_sop *op)
{
    const uint32_t x = onxi_simplify_input(s, op, 0);
    onxi_sop *before = x == ONXI_S_NONE || !s->values[x].maker ? NULL : &s->ops[s->values[x].maker - 1];
    return before && before->scope == op->scope && is_view(before->bound->op) && onxi_simplify_attrs(s, before) &&
                   onxi_simplify_input(s, before, 0) != ONXI_S_NONE
               ? before
               : NULL;
}

/* The shape as a constant that is valid for the new input: numbers, one of which may be -1. */
static bool free_shape(onxi_simplify *s, const onxi_sop *op, int64_t *out, uint32_t *count)
{
    onxi_type type;
    uint32_t open = 0, known = 0;
    bool zero = false;
    if (op->bound->op == ONXI_ID_Reshape && op->input_count == 2 && onxi_attrs_int(&op->attrs, "allowzero") == 0 &&
        onxi_simplify_get_ints(s, onxi_simplify_input(s, op, 1), out, ONX_RANK_MAX, count)) {
        for (uint32_t i = 0; i < *count; i++)
            known += out[i] == 0;
        if (!known)
            return true;
    }
    if (!onxi_simplify_type(s, op->outputs[0], &type) || type.rank > ONX_RANK_MAX)
        return false;
    *count = type.rank;
    for (uint32_t i = 0; i < type.rank; i++) {
        const bool number = onxi_dim_is_const(type.dims[i]);
        out[i] = number ? type.dims[i] : -1;
        open += !number;
        zero |= out[i] == 0;
    }
    return open <= 1 && !zero;
}

static onx_status view(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index], *before = view_before(s, op);
    int64_t shape[ONX_RANK_MAX];
    uint32_t count;
    if (!before)
        return ONX_OK;
    const uint32_t x = onxi_simplify_input(s, before, 0);
    if (onxi_simplify_same_type(s, x, op->outputs[0]) && onxi_simplify_can_hand_on(s, op->outputs[0], x))
        return cancel(s, index, x, "restores the original shape");
    /* merging saves a node only if the one before has no other reader */
    if (s->opset < 5 || !onxi_simplify_is_private(s, onxi_simplify_input(s, op, 0)) ||
        !free_shape(s, op, shape, &count))
        return ONX_OK;
    const char *name = before->bound->schema->name;
    const uint32_t made =
        onxi_simplify_ints(s, op->scope, onx_view(s->values[op->outputs[0]].name), "shape", shape, 1, count);
    if (made == ONXI_S_NONE)
        return ONX_E_MEMORY;
    said(s, index, name);
    const uint32_t inputs[] = { x, made };
    if (op->bound->op != ONXI_ID_Reshape || onxi_attrs_int(&op->attrs, "allowzero"))
        ONX_TRY(onxi_simplify_become(s, index, "Reshape", NULL, 0));
    return onxi_simplify_set_inputs(s, index, inputs, 2);
}

/* ---- Cast ---- */

#define BIT(dtype) (UINT32_C(1) << (dtype))
/* Can the wider type represent every value of the other one? */
static bool holds_all(int wide, int narrow)
{
    static const struct {
        int narrow;
        uint32_t wide;
    } rows[] = {
        { ONX_BOOL, BIT(ONX_FLOAT) | BIT(ONX_DOUBLE) | BIT(ONX_INT32) | BIT(ONX_INT64) | BIT(ONX_UINT8) |
                        BIT(ONX_INT8) | BIT(ONX_FLOAT16) },
        { ONX_FLOAT16, BIT(ONX_FLOAT) | BIT(ONX_DOUBLE) },
        { ONX_BFLOAT16, BIT(ONX_FLOAT) | BIT(ONX_DOUBLE) },
        { ONX_FLOAT, BIT(ONX_DOUBLE) },
        { ONX_INT8, BIT(ONX_INT16) | BIT(ONX_INT32) | BIT(ONX_INT64) | BIT(ONX_FLOAT) | BIT(ONX_DOUBLE) },
        { ONX_UINT8, BIT(ONX_INT16) | BIT(ONX_INT32) | BIT(ONX_INT64) | BIT(ONX_FLOAT) | BIT(ONX_DOUBLE) },
        { ONX_INT32, BIT(ONX_INT64) | BIT(ONX_DOUBLE) },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].narrow == narrow)
            return wide == narrow || (wide < 32 && (rows[i].wide >> wide & 1) != 0);
    return false;
}

/* Does casting to `to` alone give what casting to `between`, which holds every value of `from`, and then to `to`
 * gives? What is out of range of an integer type wraps around if it comes from an integer type, and is undefined if it
 * comes from a float. */
static bool may_pass_over(int from, int between, int to)
{
    const uint32_t floats = BIT(ONX_FLOAT) | BIT(ONX_DOUBLE) | BIT(ONX_FLOAT16) | BIT(ONX_BFLOAT16);
    const uint32_t integers = BIT(ONX_INT8) | BIT(ONX_INT16) | BIT(ONX_INT32) | BIT(ONX_INT64) | BIT(ONX_UINT8) |
                              BIT(ONX_UINT16) | BIT(ONX_UINT32) | BIT(ONX_UINT64);
    const bool from_float = (floats >> from & 1) != 0;
    if (floats >> to & 1)
        return from_float || from == ONX_BOOL || to == ONX_FLOAT || to == ONX_DOUBLE;
    if (to == ONX_BOOL)
        return !from_float;
    return integers >> to & 1 && !from_float && (integers >> between & 1 || from == ONX_BOOL || holds_all(to, from));
}

static onx_status cast(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index], *before = onxi_simplify_maker(s, op, onxi_simplify_input(s, op, 0), ONXI_ID_Cast);
    if (!before || op->bound->schema->since < 6)
        return ONX_OK;
    const int from = onxi_simplify_dtype(s, onxi_simplify_input(s, before, 0));
    const int64_t between = onxi_attrs_int(&before->attrs, "to"), to = onxi_attrs_int(&op->attrs, "to");
    if (between <= 0 || between >= ONX_DTYPE_COUNT || to <= 0 || to >= ONX_DTYPE_COUNT || to == ONX_STRING ||
        !holds_all((int)between, from))
        return ONX_OK;
    if (to == from && onxi_simplify_can_hand_on(s, op->outputs[0], onxi_simplify_input(s, before, 0)))
        return cancel(s, index, onxi_simplify_input(s, before, 0), "restores the original type");
    return may_pass_over(from, (int)between, (int)to) ? pass_over(s, index, before) : ONX_OK;
}

/* ---- Concat ---- */

/* Are the inputs all outputs of one Split, in order? */
static onxi_sop *split_of(onxi_simplify *s, onxi_sop *op)
{
    const uint32_t x = onxi_simplify_input(s, op, 0);
    onxi_sop *split = onxi_simplify_maker(s, op, x, ONXI_ID_Split);
    if (!split || split->output_count != op->input_count || !onxi_attrs_find(&op->attrs, "axis"))
        return NULL;
    onxi_type type;
    const bool ranked = onxi_simplify_type(s, onxi_simplify_input(s, split, 0), &type);
    int64_t a = onxi_attrs_int(&op->attrs, "axis"), b = onxi_attrs_int(&split->attrs, "axis");
    if (a != b && ranked) {
        a += a < 0 ? type.rank : 0;
        b += b < 0 ? type.rank : 0;
    }
    for (uint32_t i = 0; a == b && i < op->input_count; i++)
        if (op->inputs[i] == ONXI_S_NONE || onxi_simplify_input(s, op, i) != split->outputs[i])
            return NULL;
    return a == b ? split : NULL;
}

/* A Concat on the same axis without other readers is replaced by its inputs. */
static onx_status concat(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index], *split = split_of(s, op);
    if (split && split->bound->schema->since >= 2)
        return cancel(s, index, onxi_simplify_input(s, split, 0), "joins all parts of a Split");
    const int64_t axis = onxi_attrs_int(&op->attrs, "axis");
    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t x = onxi_simplify_input(s, op, i);
        onxi_sop *inner = onxi_simplify_maker(s, op, x, ONXI_ID_Concat);
        if (!inner || !onxi_simplify_is_private(s, x) || inner->input_count > PARTS_MAX ||
            onxi_attrs_int(&inner->attrs, "axis") != axis)
            continue;
        const uint64_t count = (uint64_t)op->input_count - 1 + inner->input_count;
        uint32_t *list = count < UINT32_MAX ? ONXI_ARRAY(s->scratch, uint32_t, (size_t)count) : NULL, n = 0;
        if (!list)
            return ONX_E_MEMORY;
        for (uint32_t k = 0; k < i; k++)
            list[n++] = onxi_simplify_input(s, op, k);
        for (uint32_t k = 0; k < inner->input_count; k++)
            list[n++] = onxi_simplify_input(s, inner, k);
        for (uint32_t k = i + 1; k < op->input_count; k++)
            list[n++] = onxi_simplify_input(s, op, k);
        said(s, index, "Concat");
        return onxi_simplify_set_inputs(s, index, list, n); /* one Concat is merged per round */
    }
    return ONX_OK;
}

/* ---- merging Pad into a window operator ---- */

static onx_status put_pads(onxi_simplify *s, uint32_t index, const int64_t *pads, uint32_t count)
{
    const onx_node *node = s->ops[index].node;
    onx_node holder = { 0 };
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const onx_str name = onx_view(node->attribute[i]->name);
        if (onx_str_is(name, "pads") || onx_str_is(name, "auto_pad") || onx_str_is(name, "count_include_pad"))
            continue;
        onx_attribute **place =
            (onx_attribute **)onx_list_insert(s->arena, (void **)(void *)&holder.attribute, &holder.attribute_count,
                                              holder.attribute_count, sizeof *place);
        if (!place)
            return ONX_E_MEMORY;
        *place = node->attribute[i];
    }
    if (!onx_node_add_ints(s->arena, &holder, "pads", pads, count) ||
        (s->ops[index].bound->op == ONXI_ID_AveragePool &&
         !onx_node_add_int(s->arena, &holder, "count_include_pad", 1)))
        return ONX_E_MEMORY;
    return onxi_simplify_become(s, index, s->ops[index].bound->schema->name, holder.attribute, holder.attribute_count);
}

/* Does an average over windows count all padding? Windows that extend beyond the padding would count fewer elements. */
static bool counts_pads(const onxi_sop *op, const int64_t *sum, uint32_t spatial)
{
    const onxi_attr_value *kernel = onxi_attrs_get(&op->attrs, "kernel_shape", ONX_ATTR_INTS),
                          *counted = onxi_attrs_get(&op->attrs, "count_include_pad", ONX_ATTR_INT),
                          *ceil = onxi_attrs_get(&op->attrs, "ceil_mode", ONX_ATTR_INT),
                          *own = onxi_attrs_get(&op->attrs, "pads", ONX_ATTR_INTS);
    if (op->bound->schema->since < 7 || !kernel || kernel->count != spatial || (ceil && ceil->i))
        return false;
    for (uint32_t i = 0; i < 2 * spatial; i++)
        if (sum[i] >= ((const int64_t *)kernel->list)[i % spatial] ||
            (own && own->given && ((const int64_t *)own->list)[i] && !(counted && counted->i)))
            return false;
    return true;
}

/* Padding with zeros along the spatial axes before a Conv, or before an AveragePool that counts padding, is merged into
 * its pads. */
static onx_status window(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index], *pad = onxi_simplify_maker(s, op, onxi_simplify_input(s, op, 0), ONXI_ID_Pad);
    const onxi_attr_value *mode = pad ? onxi_attrs_get(&pad->attrs, "mode", ONX_ATTR_STRING) : NULL;
    const onxi_attr_value *own = onxi_attrs_get(&op->attrs, "pads", ONX_ATTR_INTS);
    const onxi_attr_value *automatic = onxi_attrs_get(&op->attrs, "auto_pad", ONX_ATTR_STRING);
    int64_t pads[2 * ONX_RANK_MAX], sum[2 * ONX_RANK_MAX];
    uint32_t count;
    double value = 0;
    uint64_t numbers = 1;
    if (!pad || pad->bound->schema->since < 2 || (mode && !onx_str_is(mode->s, "constant")) ||
        (automatic && !onx_str_is(automatic->s, "NOTSET")) ||
        !onxi_simplify_list(s, pad, "pads", 1, pads, 2 * ONX_RANK_MAX, &count) || count < 6 || count % 2 ||
        onxi_simplify_input(s, pad, 3) != ONXI_S_NONE)
        return ONX_OK;
    const onxi_attr_value *attribute = onxi_attrs_get(&pad->attrs, "value", ONX_ATTR_FLOAT);
    if (attribute)
        value = (double)attribute->f;
    else if (onxi_simplify_input(s, pad, 2) != ONXI_S_NONE &&
             (!onxi_simplify_get_numbers(s, onxi_simplify_input(s, pad, 2), &value, 1, &numbers) || numbers != 1))
        return ONX_OK;
    const uint32_t spatial = count / 2 - 2;
    if (value != 0 || pads[0] || pads[1] || pads[spatial + 2] || pads[spatial + 3] ||
        (own && own->given && own->count != 2 * spatial))
        return ONX_OK;
    for (uint32_t i = 0; i < 2 * spatial; i++) {
        const int64_t more = pads[i < spatial ? i + 2 : i + 4];
        if (more < 0 || !onxi_add_i64(more, own && own->given ? ((const int64_t *)own->list)[i] : 0, &sum[i]))
            return ONX_OK;
    }
    if (op->bound->op == ONXI_ID_AveragePool && !counts_pads(op, sum, spatial))
        return ONX_OK;
    ONX_TRY(pass_over(s, index, pad));
    return put_pads(s, index, sum, 2 * spatial);
}

onx_status onxi_simplify_merge(onxi_simplify *s, uint32_t index)
{
    onxi_sop *op = &s->ops[index];
    if (!op->output_count || op->outputs[0] == ONXI_S_NONE || !op->input_count || op->dead || op->opaque)
        return ONX_OK;
    switch ((int)op->bound->op) {
    case ONXI_ID_Transpose:
        return onxi_simplify_attrs(s, op) ? transpose(s, index) : ONX_OK;
    case ONXI_ID_Reshape:
    case ONXI_ID_Flatten:
    case ONXI_ID_Squeeze:
    case ONXI_ID_Unsqueeze:
        return onxi_simplify_attrs(s, op) ? view(s, index) : ONX_OK;
    case ONXI_ID_Cast:
        return onxi_simplify_attrs(s, op) ? cast(s, index) : ONX_OK;
    case ONXI_ID_Concat:
        return onxi_simplify_attrs(s, op) ? concat(s, index) : ONX_OK;
    case ONXI_ID_Conv:
    case ONXI_ID_AveragePool:
        return onxi_simplify_attrs(s, op) ? window(s, index) : ONX_OK;
    default:
        return ONX_OK;
    }
}

/* rules_dims.c - a rule that reads the dims of operands from a text: dims.def. */
#include "op/microsoft/microsoft.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 6 };

/* What a call has bound. */
typedef struct scope {
    onxi_call *call;
    const onxi_dim *rest; /* the dims of "..", if known */
    uint32_t rest_count;
    uint32_t alternative; /* of the first input */
    onxi_dim letters[26];
} scope;

/* A dim as a text: a first part, and operators with one operand each. */
typedef struct parsed {
    char first; /* a letter or '_'; 0: a value */
    onxi_dim value;
    uint32_t count;
    char op[STEPS];
    onxi_dim by[STEPS];
} parsed;

/* ---- text ---- */

/* The end of a word that ends at one of `ends`, or with the text. */
static const char *end_of(const char *at, const char *end, const char *ends)
{
    while (at < end && !strchr(ends, *at))
        at++;
    return at;
}

/* The value of an attribute whose name is text[at..end]; at least `least`. */
static onx_status attribute_at(scope *s, const char *at, const char *end, int64_t least, onxi_dim *out)
{
    char name[40];
    snprintf(name, sizeof name, "%.*s", (int)(end - at), at);
    const onxi_attr_value *value = onxi_call_attr(s->call, name);
    *out = ONXI_DIM_UNKNOWN;
    if (!value || value->type != ONX_ATTR_INT)
        return ONX_OK;
    if (value->i < least || value->i > INT32_MAX)
        return onxi_call_fail(s->call, "attribute %s is %lld, expected a number from %lld to 2147483647", name,
                              (long long)value->i, (long long)least);
    *out = value->i;
    return ONX_OK;
}

/* A letter, a number or an attribute. A letter that is not bound is unknown. */
static onx_status read_one(scope *s, const char **at, const char *end, char *letter, onxi_dim *out)
{
    const char c = **at;
    *letter = 0;
    *out = ONXI_DIM_UNKNOWN;
    if (c == '{' || c == '[') {
        const char *close = end_of(*at, end, c == '{' ? "}" : "]");
        ONX_TRY(attribute_at(s, *at + 1, close, c == '{', out));
        *at = close + 1;
    } else if (c >= '0' && c <= '9') {
        char *after;
        *out = strtol(*at, &after, 10);
        *at = after;
    } else {
        ++*at;
        *letter = c;
        if (c == '#')
            *out = s->rest ? onxi_call_product(s->call, s->rest, 0, s->rest_count) : ONXI_DIM_UNKNOWN;
        else if (c != '_')
            *out = s->letters[c - 'a'];
    }
    return ONX_OK;
}

static onx_status read_dim(scope *s, const char **at, const char *end, parsed *p)
{
    char letter;
    p->count = 0;
    ONX_TRY(read_one(s, at, end, &p->first, &p->value));
    while (*at < end && strchr("+-*/^", **at) && p->count < STEPS) {
        p->op[p->count] = *(*at)++;
        ONX_TRY(read_one(s, at, end, &letter, &p->by[p->count++]));
    }
    return ONX_OK;
}

/* ---- values ---- */

static onx_status step(scope *s, char op, onxi_dim a, onxi_dim b, onxi_dim *out)
{
    onxi_dims *dims = s->call->dims;
    *out = ONXI_DIM_UNKNOWN;
    if (!onxi_dim_is_known(a) || !onxi_dim_is_known(b) || (strchr("/^", op) && onxi_dim_is_const(b) && b < 1))
        return ONX_OK;
    if (op == '*')
        return onxi_call_times(s->call, a, b, "a dim", out);
    *out = op == '+'   ? onxi_dim_add(dims, a, b)
           : op == '-' ? onxi_dim_sub(dims, a, b)
           : op == '/' ? onxi_dim_div(dims, a, b)
                       : onxi_dim_div_ceil(dims, a, b);
    return ONX_OK;
}

static onx_status value_of(scope *s, const parsed *p, onxi_dim *out)
{
    onxi_dim value = p->value;
    for (uint32_t i = 0; i < p->count; i++)
        ONX_TRY(step(s, p->op[i], value, p->by[i], &value));
    *out = value;
    return onxi_dim_is_const(value) && value < 0
               ? onxi_call_fail(s->call, "a dim is %lld by the attributes and the dims of the inputs", (long long)value)
               : ONX_OK;
}

/* Binds the first letter to what gives `dim`. */
static onx_status solve(scope *s, const parsed *p, onxi_dim dim, uint32_t input, uint32_t axis)
{
    onxi_dim value = dim;
    for (uint32_t i = p->count; i-- > 0;) {
        const char op = p->op[i];
        const onxi_dim by = p->by[i];
        if (!onxi_dim_is_known(value) || !onxi_dim_is_known(by) || strchr("/^", op))
            return ONX_OK;
        if (op == '*' && onxi_dim_is_const(value) && onxi_dim_is_const(by) && by > 0 && value % by)
            return onxi_call_fail(s->call, "input %u has size %lld at axis %u, expected a multiple of %lld", input,
                                  (long long)dim, axis, (long long)by);
        ONX_TRY(step(s, op == '*' ? '/' : op == '+' ? '-' : '+', value, by, &value));
    }
    if (onxi_dim_is_const(value) && value < 0)
        return onxi_call_fail(s->call, "input %u has size %lld at axis %u, expected more", input, (long long)dim, axis);
    s->letters[p->first - 'a'] = value;
    return ONX_OK;
}

static onx_status match_dim(scope *s, const char **at, const char *end, onxi_dim dim, uint32_t input, uint32_t axis)
{
    parsed p;
    onxi_dim value, same;
    char what[48];
    ONX_TRY(read_dim(s, at, end, &p));
    if (p.first == '_' || !onxi_dim_is_known(dim))
        return ONX_OK;
    if (p.first && p.first != '#' && !onxi_dim_is_known(p.value))
        return solve(s, &p, dim, input, axis);
    ONX_TRY(value_of(s, &p, &value));
    snprintf(what, sizeof what, "axis %u of input %u", axis, input);
    ONX_TRY(onxi_call_unify(s->call, value, dim, what, &same));
    if (p.first && p.first != '#' && !p.count)
        s->letters[p.first - 'a'] = same;
    return ONX_OK;
}

/* ---- operands ---- */

/* Skips a condition and sets the end to that of the part that is in force. */
static void choose(scope *s, const char **at, const char **end)
{
    for (const char *mark; (mark = end_of(*at, *end, "?")) < *end;) {
        char name[40];
        snprintf(name, sizeof name, "%.*s", (int)(mark - *at), *at);
        const onxi_attr_value *value = name[0] == '&' ? NULL : onxi_call_attr(s->call, name);
        const bool holds = name[0] == '&' ? onxi_call_has_input(s->call, (uint32_t)atoi(name + 1))
                                          : value && value->given && (value->type != ONX_ATTR_INT || value->i != 0);
        const char *other = end_of(mark, *end, ":");
        *at = holds ? mark + 1 : other + 1;
        *end = holds ? other : *end;
    }
}

/* The number of dims that a text lists; *rest: it begins with "..". */
static uint32_t dims_in(const char *at, const char *end, bool *rest)
{
    uint32_t count = at < end && *at != '.';
    *rest = end - at >= 2 && at[0] == '.' && at[1] == '.';
    for (; at < end; at++)
        count += *at == ',';
    return count;
}

static onx_status match_input(scope *s, uint32_t input, const char *at, const char *end)
{
    const onxi_type *type = onxi_call_ranked(s->call, input);
    choose(s, &at, &end);
    if (!type || *at == '-')
        return ONX_OK;
    const char *all = at, *stop;
    bool rest;
    for (uint32_t i = 0;; i++, at = stop + 1) {
        stop = end_of(at, end, "|");
        const uint32_t count = dims_in(at, stop, &rest);
        if (rest ? type->rank >= count : type->rank == count) {
            s->alternative = input ? s->alternative : i;
            break;
        }
        if (stop == end)
            return onxi_call_fail(s->call, "input %u has rank %u, expected dims [%.*s]", input, type->rank,
                                  (int)(end - all), all);
    }
    uint32_t axis = 0;
    if (rest) {
        const uint32_t count = type->rank - dims_in(at, stop, &rest);
        if (s->rest && s->rest_count != count)
            return onxi_call_fail(s->call, "input %u has %u dims before the last ones, expected %u", input, count,
                                  s->rest_count);
        for (; axis < count; axis++)
            if (s->rest)
                ONX_TRY(onxi_call_want_dim(s->call, input, axis, s->rest[axis]));
        s->rest = s->rest ? s->rest : type->dims;
        s->rest_count = count;
        at = at + 2 < stop ? at + 3 : stop;
    }
    for (; at < stop; at++, axis++)
        ONX_TRY(match_dim(s, &at, stop, type->dims[axis], input, axis));
    return ONX_OK;
}

/* The element type that a prefix of an output's text gives. */
static onx_status give_type(scope *s, uint32_t i, const char **at, const char *end)
{
    const char *colon = end_of(*at, end, ":");
    int64_t dtype;
    if (**at == '%') {
        dtype = onxi_call_dtype(s->call, (uint32_t)atoi(*at + 1));
    } else if (**at == '@') {
        ONX_TRY(attribute_at(s, *at + 1, colon, 1, &dtype));
        const onxi_port *port = onxi_port_at(s->call->schema->outputs, i);
        for (const onxi_type_constraint *c = s->call->schema->types; c && c->name; c++)
            if (!strcmp(c->name, port->type) && onxi_dim_is_known(dtype) &&
                (dtype > 31 || !(c->set.tensor >> dtype & 1)))
                return onxi_call_fail(s->call, "attribute %.*s is %lld, which is not an element type of output %u",
                                      (int)(colon - *at) - 1, *at + 1, (long long)dtype, i);
    } else {
        return ONX_OK;
    }
    if (onxi_dim_is_known(dtype))
        onxi_call_output_unranked(s->call, i, (int)dtype);
    *at = colon + 1;
    return ONX_OK;
}

static onx_status give_output(scope *s, uint32_t i, const char *at, const char *end)
{
    onxi_dim *dims;
    parsed p;
    bool rest;
    uint32_t axis = 0;
    ONX_TRY(give_type(s, i, &at, end));
    choose(s, &at, &end);
    for (uint32_t k = 0; k < s->alternative && end_of(at, end, "|") < end; k++)
        at = end_of(at, end, "|") + 1;
    end = end_of(at, end, "|");
    if (*at == '-')
        return ONX_OK;
    if (*at == '=') {
        onxi_call_shape_of(s->call, i, onxi_call_tensor(s->call, (uint32_t)atoi(at + 1)));
        return ONX_OK;
    }
    const uint32_t count = dims_in(at, end, &rest);
    if (rest && !s->rest)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(s->call, i, count + (rest ? s->rest_count : 0), &dims));
    if (rest) {
        for (; axis < s->rest_count; axis++)
            dims[axis] = s->rest[axis];
        at += 3;
    }
    for (; at < end && count; at++) {
        ONX_TRY(read_dim(s, &at, end, &p));
        ONX_TRY(value_of(s, &p, &dims[axis++]));
    }
    return ONX_OK;
}

static const char *dims_of(onxi_op_id op)
{
    switch (op) {
#define DIMS(operator_, text)                                                                                          \
    case ONXI_ID_microsoft_##operator_:                                                                                \
        return text;
#include "op/microsoft/dims.def"
    default:
        return "->";
    }
}

static const struct {
    onxi_op_id op;
    const char *attribute, *words;
} word_rows[] = {
#define WORDS(operator_, attribute, words) { ONXI_ID_microsoft_##operator_, attribute, words },
#include "op/microsoft/dims.def"
};

static onx_status check_words(onxi_call *call)
{
    for (uint32_t i = 0; i < sizeof word_rows / sizeof *word_rows; i++) {
        if (word_rows[i].op != call->op || !onxi_call_attr(call, word_rows[i].attribute))
            continue;
        const onx_str word = onxi_call_text(call, word_rows[i].attribute);
        const char *at = word_rows[i].words, *end = at + strlen(at), *stop;
        bool found = false;
        for (; !found && at < end; at = stop + 1) {
            stop = end_of(at, end, " ");
            found = word.len == (size_t)(stop - at) && memcmp(word.ptr, at, word.len) == 0;
        }
        if (!found)
            return onxi_call_fail(call, "attribute %s is \"%.*s\", expected one of: %s", word_rows[i].attribute,
                                  ONX_ARG(word), word_rows[i].words);
    }
    return ONX_OK;
}

/* Sums of bytes have as many bits as are needed, and the sign of the bytes. */
static onx_status reduced_bytes(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const int dtype = onxi_call_dtype(call, 0);
    const bool keeps = onxi_call_is_set(call, "keepdims");
    bool along[ONX_RANK_MAX] = { false };
    uint32_t count, axis, at = 0;
    const int64_t *axes = onxi_call_ints(call, "axes", &count);
    onxi_dim *dims;
    if (dtype)
        onxi_call_output_unranked(call, 0, dtype == ONX_INT8 ? ONX_INT32 : ONX_UINT32);
    if (!x)
        return ONX_OK;
    for (uint32_t i = 0; i < count; i++) {
        ONX_TRY(onxi_call_axis(call, axes[i], x->rank, &axis));
        along[axis] = true;
    }
    for (uint32_t i = 0; i < x->rank; i++)
        at += !count || along[i] ? keeps : 1;
    ONX_TRY(onxi_call_shape(call, 0, at, &dims));
    for (uint32_t i = at = 0; i < x->rank; i++)
        if (count && !along[i])
            dims[at++] = x->dims[i];
        else if (keeps)
            dims[at++] = 1;
    return ONX_OK;
}

/* Queries, keys and values in one tensor: the output is as wide as the queries. */
static void queries_of_packed(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const int64_t heads = onxi_call_int(call, "num_heads"), kv_heads = onxi_call_int(call, "kv_num_heads");
    if (!onxi_ms_text_is(call, "kv_cache_layout", "LATENT") && x && x->rank == 2 && onxi_dim_is_const(x->dims[1]) &&
        call->outputs[0].rank == 2 && heads > 0 && kv_heads > 0 && heads < INT32_MAX && kv_heads < INT32_MAX)
        call->outputs[0].dims[1] = x->dims[1] / (heads + 2 * kv_heads) * heads;
}

onx_status onxi_rule_microsoft_dims(onxi_call *call)
{
    scope s = { .call = call };
    const char *at = dims_of(call->op), *stop;
    ONX_TRY(check_words(call));
    for (uint32_t i = 0; i < 26; i++)
        s.letters[i] = ONXI_DIM_UNKNOWN;
    for (uint32_t i = 0; *at != '-' || at[1] != '>'; i++, at = stop + 1) {
        stop = end_of(at, at + strlen(at), " ");
        ONX_TRY(match_input(&s, i, at, stop));
    }
    at = at[2] ? at + 3 : at + 2;
    for (uint32_t i = 0; *at; i++, at = *stop ? stop + 1 : stop) {
        stop = end_of(at, at + strlen(at), " ");
        if (onxi_call_wants_output(call, i))
            ONX_TRY(give_output(&s, i, at, stop));
    }
    if (call->op == ONXI_ID_microsoft_ReduceSumInteger)
        return reduced_bytes(call);
    if (call->op == ONXI_ID_microsoft_PagedAttention && !onxi_call_has_input(call, 1))
        queries_of_packed(call);
    /* 16-bit floats of the other kind */
    if (call->op == ONXI_ID_microsoft_DynamicSparseAttention && onxi_call_is_set(call, "output_bf16"))
        call->outputs[0].dtype = ONX_BFLOAT16;
    if (call->op == ONXI_ID_microsoft_RMSNormRotary)
        call->outputs[0].dtype = onxi_call_is_set(call, "output_fp16") ? ONX_FLOAT16 : ONX_BFLOAT16;
    return ONX_OK;
}

/* cli_made_up.c - generates values from a seed, for any type that has an element type. */
#include "cli_inputs.h"

#include <math.h>
#include <stdlib.h>

typedef struct maker {
    cli_call *call;
    onx_str name;
    const cli_wish *wish;
    uint64_t state;
    double until; /* in seconds of the clock; 0: --timeout is not given */
} maker;

uint64_t cli_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static onx_status refuse(const maker *m, const char *why)
{
    cli_error(m->call, "input \"%.*s\": %s", ONX_ARG(m->name), why);
    return ONX_E_MISUSE;
}

/* Inputs of gigabytes take longer than some runs: --timeout holds for each of them, too. */
static onx_status look_at_clock(const maker *m)
{
    if (m->until == 0 || cli_now() < m->until)
        return ONX_OK;
    cli_error(m->call, "input \"%.*s\": making it up takes longer than %s s (limit timeout)", ONX_ARG(m->name),
              cli_value(m->call, "timeout"));
    return ONX_E_LIMIT;
}

/* ---- numbers ---- */

static void type_range(onx_dtype_class class, unsigned bits, double *low, double *high)
{
    *low = class == ONX_CLASS_SIGNED ? -ldexp(1, (int)bits - 1) : 0;
    *high = class == ONX_CLASS_BOOLEAN ? 1 : ldexp(1, (int)bits - (class == ONX_CLASS_SIGNED)) - 1;
}

/* A random integer from low to high, both included; low is an integer. Bounds up to 2^53 are exact. */
static int64_t whole_between(uint64_t r, double low, double high, bool is_unsigned)
{
    const double span = floor(high) - low;
    const uint64_t steps = span < 0x1p64 ? (uint64_t)span : UINT64_MAX;
    const uint64_t offset = steps == UINT64_MAX ? r : r % (steps + 1);
    const uint64_t start = is_unsigned ? (uint64_t)low : (uint64_t)(int64_t)low;
    return (int64_t)(start + offset);
}

typedef struct numbers {
    onx_dtype_class class; /* of an element */
    unsigned bits;
    bool has_range;
    double low, high;
} numbers;

/* The element at a position of a pattern other than a range. */
static int64_t number_at(const cli_wish *wish, uint64_t index, uint64_t count, uint64_t random)
{
    uint64_t place = index;
    switch (wish->pattern) {
    case CLI_PATTERN_STEPS:
        return (int64_t)index;
    case CLI_PATTERN_LIST:
        place = index < wish->count ? index : wish->count - 1;
        return wish->list[place];
    case CLI_PATTERN_PARTS:
        return wish->list[0] / (int64_t)count + ((int64_t)index < wish->list[0] % (int64_t)count);
    case CLI_PATTERN_CHOICE:
        return wish->choices->slot == ONX_SLOT_INTS ? wish->choices->ints[random % wish->choices->count] : 0;
    default:
        return index ? 1 : -1;
    }
}

/* Converts up to 256 elements at a time, because the narrow types are packed. */
static onx_status put_numbers(maker *m, const numbers *n, onx_dtype dtype, char *to, uint64_t count)
{
    enum { MOST = 256 };
    double real[MOST];
    int64_t whole[MOST];
    const bool floating = n->class == ONX_CLASS_FLOATING;
    for (uint64_t done = 0; done < count; done += MOST) {
        if (done % (MOST * 256) == 0)
            ONX_TRY(look_at_clock(m));
        const uint64_t some = count - done < MOST ? count - done : MOST;
        for (uint64_t i = 0; i < some; i++) {
            const uint64_t r = cli_random(&m->state);
            if (m->wish->pattern != CLI_PATTERN_RANGE && floating)
                real[i] = (double)number_at(m->wish, done + i, count, r);
            else if (m->wish->pattern != CLI_PATTERN_RANGE)
                whole[i] = number_at(m->wish, done + i, count, r);
            else if (floating && m->wish->wave && !n->has_range)
                real[i] = sin((double)(done + i) * 0.37);
            else if (floating)
                real[i] = n->low + (double)(r >> 11) * 0x1p-53 * (n->high - n->low);
            else
                whole[i] = whole_between(r, n->low, n->high, n->class != ONX_CLASS_SIGNED);
        }
        const onx_dtype from = floating ? ONX_DOUBLE : n->class == ONX_CLASS_SIGNED ? ONX_INT64 : ONX_UINT64;
        ONX_TRY(onx_convert(dtype, to + done * n->bits / 8, from, floating ? (void *)real : (void *)whole, some, true));
    }
    return ONX_OK;
}

static onx_status number_range(const maker *m, onx_dtype_class class, unsigned bits, numbers *out)
{
    double least, most;
    *out = (numbers){ class, bits, m->wish->has_range, -1, 1 };
    type_range(class, bits, &least, &most);
    if (class != ONX_CLASS_FLOATING) { /* narrow types: their whole range; others: 0 to 9 */
        out->low = bits < 8 ? least : 0;
        out->high = bits < 8 || class == ONX_CLASS_BOOLEAN ? most : 9;
    }
    if (!m->wish->has_range)
        return ONX_OK;
    out->low = m->wish->low;
    out->high = m->wish->high;
    if (class == ONX_CLASS_FLOATING)
        return ONX_OK;
    out->low = ceil(out->low);
    if (out->low > floor(out->high))
        return refuse(m, "its --range contains no integer");
    return out->low < least || out->high > most ? refuse(m, "its --range exceeds the range of its element type")
                                                : ONX_OK;
}

/* ---- tensors ---- */

static onx_status shape_by_type(const maker *m, const onx_tensor_shape *shape, cli_shape *out)
{
    out->rank = shape ? shape->dim_count : 1;
    if (out->rank > ONX_RANK_MAX)
        return refuse(m, "it has too many dimensions");
    for (uint32_t i = 0; i < out->rank; i++) {
        const onx_dimension *d = shape ? shape->dim[i] : NULL;
        out->dims[i] = 1;
        if (d && ONX_HAS(dimension, d, dim_value) && d->dim_value >= 0)
            out->dims[i] = d->dim_value;
        else if (cli_dim_name(d).len)
            out->dims[i] = m->wish->size_of(m->wish->user, cli_dim_name(d));
    }
    return ONX_OK;
}

/* Fills strings: numerals if a node parses them, categories if a node knows a list of them, otherwise a constant
 * text. */
static onx_status put_texts(maker *m, onx_value *v)
{
    const cli_wish *wish = m->wish;
    const bool choice = wish->pattern == CLI_PATTERN_CHOICE && wish->choices->slot == ONX_SLOT_STRINGS;
    numbers n;
    if (wish->has_range && !wish->hint)
        return refuse(m, "its elements are strings, to which --range does not apply");
    if (!choice && wish->pattern == CLI_PATTERN_RANGE && !wish->hint) { /* all elements share one text */
        for (uint64_t i = 0; i < v->count; i++)
            ((onx_str *)v->data)[i] = onx_str_of("text");
        return v->count ? onx_value_set_text(v, 0, onx_str_of("text")) : ONX_OK;
    }
    ONX_TRY(number_range(m, ONX_CLASS_SIGNED, 64, &n));
    for (uint64_t i = 0; i < v->count; i++) {
        if (i % 4096 == 0)
            ONX_TRY(look_at_clock(m));
        const uint64_t r = cli_random(&m->state);
        char numeral[32];
        snprintf(numeral, sizeof numeral, "%lld",
                 (long long)(wish->pattern == CLI_PATTERN_RANGE ? whole_between(r, n.low, n.high, false)
                                                                : number_at(wish, i, v->count, r)));
        ONX_TRY(onx_value_set_text(
            v, i, choice ? onx_view(wish->choices->strings[r % wish->choices->count]) : onx_str_of(numeral)));
    }
    return ONX_OK;
}

static onx_status make_tensor(maker *m, int32_t dtype, const onx_tensor_shape *declared, onx_value **out)
{
    cli_shape shape;
    numbers n;
    if (!onx_dtype_name(dtype))
        return refuse(m, "values of its element type cannot be made up");
    if (m->wish->shape)
        shape = *m->wish->shape;
    else
        ONX_TRY(shape_by_type(m, declared, &shape));
    const onx_status status = onx_value_new_tensor(m->call->cx, (onx_dtype)dtype, shape.rank, shape.dims, out);
    if (status != ONX_OK) { /* the library's message does not name the input */
        refuse(m, "no value of its shape can be made up");
        return status;
    }
    onx_value *v = *out;
    const onx_dtype_class class = onx_dtype_class_of(dtype);
    if (class == ONX_CLASS_TEXT)
        return put_texts(m, v);
    if (class != ONX_CLASS_COMPLEX) {
        ONX_TRY(number_range(m, class, onx_dtype_bits(dtype), &n));
        return put_numbers(m, &n, (onx_dtype)dtype, v->data, v->count);
    }
    const unsigned bits = onx_dtype_bits(dtype) / 2;
    ONX_TRY(number_range(m, ONX_CLASS_FLOATING, bits, &n));
    return put_numbers(m, &n, bits == 32 ? ONX_FLOAT : ONX_DOUBLE, v->data, v->count * 2);
}

/* ---- any type ---- */

static onx_status make_value(maker *m, const onx_type *type, unsigned depth, onx_value **out)
{
    if (type && ONX_HAS(type, type, tensor_type) && type->tensor_type)
        return make_tensor(m, type->tensor_type->elem_type, type->tensor_type->shape, out);
    if (type && ONX_HAS(type, type, sparse_tensor_type) && type->sparse_tensor_type)
        return make_tensor(m, type->sparse_tensor_type->elem_type, type->sparse_tensor_type->shape, out);
    const bool sequence = type && ONX_HAS(type, type, sequence_type) && type->sequence_type,
               optional = type && ONX_HAS(type, type, optional_type) && type->optional_type;
    if ((!sequence && !optional) || depth > 100)
        return refuse(m, type ? "values of this type cannot be made up"
                              : "the model does not declare its type, so no value can be made up");
    const onx_type *inner = sequence ? type->sequence_type->elem_type : type->optional_type->elem_type;
    ONX_TRY(onx_value_new(m->call->cx, out));
    ONX_TRY(onx_value_reset_list(*out, sequence ? ONX_VALUE_SEQUENCE : ONX_VALUE_OPTIONAL, ONX_UNDEFINED));
    onx_value *item = NULL;
    onx_status status = make_value(m, inner, depth + 1, &item);
    if (status == ONX_OK)
        status = onx_value_insert(*out, 0, item);
    onx_value_free(item);
    return status;
}

static void fit_range(const onx_type *type, cli_wish *wish)
{
    double least, most;
    const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    const onx_dtype_class class = onx_dtype_class_of(t ? t->elem_type : 0);
    if (class == ONX_CLASS_TEXT)
        type_range(ONX_CLASS_SIGNED, 54, &least, &most); /* numerals */
    else if (class == ONX_CLASS_SIGNED || class == ONX_CLASS_UNSIGNED || class == ONX_CLASS_BOOLEAN)
        type_range(class, onx_dtype_bits(t->elem_type), &least, &most);
    else
        return;
    wish->low = fmin(fmax(ceil(wish->low), least), most);
    wish->high = fmax(floor(fmin(wish->high, most)), wish->low);
}

onx_status cli_make_up(cli_call *call, const onx_type *type, onx_str name, cli_wish *wish, onx_value **out)
{
    if (wish->hint)
        fit_range(type, wish);
    double seconds = 0;
    if (!cli_real(call, "timeout", 1e-9, 1e9, &seconds))
        return ONX_E_MISUSE;
    maker m = { call, name, wish, wish->seed, seconds > 0 ? cli_now() + seconds : 0 };
    for (size_t i = 0; i < name.len; i++)
        m.state = (m.state ^ (uint8_t)name.ptr[i]) * 0x100000001b3u;
    *out = NULL;
    onx_status status = make_value(&m, type, 0, out);
    if (status != ONX_OK) {
        onx_value_free(*out);
        *out = NULL;
    }
    return status;
}

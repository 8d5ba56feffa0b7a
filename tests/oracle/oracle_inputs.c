/* oracle_inputs.c - sets of input values, from the metadata of a model or from the types that its inputs declare. */
#include "oracle/oracle.h"

#include <onx/tensor.h>

#include "gen/gen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static onx_str metadata(const onx_model *model, const char *key)
{
    for (uint32_t i = 0; i < model->metadata_props_count; i++)
        if (onx_str_is(onx_view(model->metadata_props[i]->key), key))
            return onx_view(model->metadata_props[i]->value);
    return onx_str_of("");
}

static bool is_overridden_only(const onx_graph *graph, onx_str name)
{
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (onx_str_equal(onx_view(graph->initializer[i]->name), name))
            return true;
    return false;
}

static int64_t size_of_symbol(onx_str name, uint32_t set)
{
    uint32_t sum = set * 3;
    for (size_t i = 0; i < name.len; i++)
        sum += (uint8_t)name.ptr[i];
    return 1 + (sum + 2) % 4;
}

static void by_type(const onx_value_info *info, uint32_t set, oracle_input *in)
{
    const onx_type *type = info->type;
    (void)snprintf(in->name, sizeof in->name, "%.*s", ONX_ARG(onx_view(info->name)));
    in->low = -2;
    in->high = 2;
    in->rank = 2;
    in->dims[0] = 2;
    in->dims[1] = 3;
    if (!type || !ONX_HAS(type, type, tensor_type) || !type->tensor_type->shape)
        return;
    const onx_tensor_shape *shape = type->tensor_type->shape;
    in->rank = shape->dim_count < ORACLE_RANK ? shape->dim_count : ORACLE_RANK;
    for (uint32_t i = 0; i < in->rank; i++)
        in->dims[i] = ONX_HAS(dimension, shape->dim[i], dim_value)
                          ? shape->dim[i]->dim_value
                          : size_of_symbol(onx_view(shape->dim[i]->dim_param), set);
}

/* "2x3:-2:2:s" */
static void read_input(const char *text, oracle_input *in)
{
    char *end = NULL;
    in->rank = 0;
    while (*text >= '0' && *text <= '9' && in->rank < ORACLE_RANK) {
        in->dims[in->rank++] = strtoll(text, &end, 10);
        text = *end == 'x' ? end + 1 : end;
    }
    if (*text == ':') {
        in->low = strtod(text + 1, &end);
        in->high = *end == ':' ? strtod(end + 1, &end) : in->low;
        in->special = *end == ':' && end[1] == 's';
    }
}

static void read_set(char *text, oracle_set *set)
{
    for (char *at = text; at && *at;) {
        char *next = strchr(at, ','), *equals = strchr(at, '=');
        if (next)
            *next++ = 0;
        at += strspn(at, " ");
        if (equals) {
            *equals = 0;
            for (uint32_t i = 0; i < set->count; i++)
                if (strcmp(set->input[i].name, at) == 0)
                    read_input(equals + 1, &set->input[i]);
        }
        at = next;
    }
}

uint32_t oracle_sets(const onx_model *model, oracle_set sets[ORACLE_SETS])
{
    const onx_str text = metadata(model, "inputs");
    char *copy = malloc(text.len + 1);
    uint32_t count = 0;
    if (!copy)
        return 0;
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    for (char *at = copy; at && count < ORACLE_SETS; count++) {
        char *next = strchr(at, ';');
        if (next)
            *next++ = 0;
        oracle_set *set = &sets[count];
        set->count = 0;
        for (uint32_t i = 0; i < model->graph->input_count && set->count < ORACLE_PORTS; i++)
            if (!is_overridden_only(model->graph, onx_view(model->graph->input[i]->name)))
                by_type(model->graph->input[i], count, &set->input[set->count++]);
        read_set(at, set);
        at = next ? next : !text.len && !count ? at : NULL; /* two sets where none are given */
    }
    free(copy);
    return count;
}

/* ---- values ---- */

static double element(gen_random *r, const oracle_input *in, onx_dtype_class class, uint32_t set)
{
    static const double special[] = { NAN, INFINITY, -INFINITY, -0.0 };
    const double width = in->high - in->low;
    if (class != ONX_CLASS_FLOATING)
        return floor(in->low) + gen_below(r, (uint32_t)width + 1);
    if (in->special && gen_below(r, 8) == 0)
        return special[gen_below(r, 4)];
    /* every second set has few different numbers, which are exact in all types */
    return set % 2 ? in->low + width * gen_below(r, 9) / 8.0
                   : in->low + width * (double)(gen_next(r) >> 11) / 9007199254740992.0;
}

double oracle_nudged(const oracle_nudge *nudge, uint64_t i, double x)
{
    int exponent;
    if (!nudge)
        return x;
    x = nudge->by != 0 ? x * gen_nudged(i + nudge->turn * 1000, nudge->by) : x;
    if (!nudge->bits || !isfinite(x))
        return x;
    const double part = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(part, nudge->bits)), exponent - nudge->bits);
}

onx_value *oracle_value(onx_ctx *cx, const oracle_input *in, onx_dtype dtype, uint32_t set, const oracle_nudge *nudge)
{
    static const char letters[] = "abcde";
    onx_value *v = NULL;
    gen_random r = { .state = set * 77 + 5 };
    const onx_dtype_class class = onx_dtype_class_of(dtype);
    for (const char *c = in->name; *c; c++)
        r.state = r.state * 131 + (uint8_t)*c;
    if (onx_value_new_tensor(cx, dtype, in->rank, in->dims, &v) != ONX_OK)
        return NULL;
    for (uint64_t i = 0; i < v->count; i++) {
        double x = element(&r, in, class, set);
        x = class == ONX_CLASS_UNSIGNED || class == ONX_CLASS_BOOLEAN ? fabs(x) : x;
        x = class == ONX_CLASS_BOOLEAN ? fmod(x, 2) : x;
        if (class == ONX_CLASS_FLOATING)
            x = oracle_nudged(nudge, i, x);
        if (dtype == ONX_FLOAT)
            ((float *)v->data)[i] = (float)x;
        else if (dtype == ONX_STRING)
            (void)onx_value_set_text(v, i, onx_str_make(&letters[(int)fabs(x) % 5], 1));
        else
            (void)onx_convert(dtype, (char *)v->data + i * (onx_dtype_bits(dtype) / 8), ONX_DOUBLE, &x, 1, true);
    }
    return v;
}

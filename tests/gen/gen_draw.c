/* gen_draw.c - drawing models: numbers, values, constants, the text of a model. */
#include "gen/gen_draw.h"

#include <onx/tensor.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const draw_theme_names[DRAW_THEMES] = { "any", "alias", "nested", "zero", "types" };

/* ---- text ---- */

void draw_add(draw_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, format, args);
    const size_t need = text->len + (size_t)(len < 0 ? 0 : len) + 1;
    if (need > text->room) {
        char *ptr = realloc(text->ptr, need * 2);
        text->failed = text->failed || !ptr;
        text->ptr = ptr ? ptr : text->ptr;
        text->room = ptr ? need * 2 : text->room;
    }
    if (need <= text->room && len >= 0) {
        (void)vsnprintf(text->ptr + text->len, text->room - text->len, format, again);
        text->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

void draw_text_free(draw_text *text)
{
    free(text->ptr);
    *text = (draw_text){ 0 };
}

static const char *text_of(const draw_text *text)
{
    return text->ptr && text->len ? text->ptr : "";
}

static void cut(draw_text *text, size_t len)
{
    text->len = len;
    if (text->ptr)
        text->ptr[len] = 0;
}

/* ---- numbers ---- */

bool draw_chance(draw *d, uint32_t percent)
{
    return gen_below(&d->random, 100) < percent;
}

int draw_between(draw *d, int low, int high)
{
    return high <= low ? low : low + (int)gen_below(&d->random, (uint32_t)(high - low + 1));
}

int64_t draw_size(draw *d)
{
    if (d->theme == DRAW_ZERO)
        return DRAW_ONE(d, int64_t, 0, 0, 1, 1, 2, 3, 4);
    if (d->wide)
        return DRAW_ONE(d, int64_t, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 32, 33);
    return DRAW_ONE(d, int64_t, 1, 1, 2, 2, 3, 3, 4, 5, 8);
}

uint64_t draw_product(const int64_t *dims, uint32_t count)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < count; i++)
        product *= (uint64_t)dims[i];
    return product;
}

draw_list draw_listed(const int64_t *ints, uint32_t count)
{
    draw_list list = { "[" };
    size_t len = 1;
    for (uint32_t i = 0; i < count && len < sizeof list.text - 24; i++)
        len += (size_t)snprintf(list.text + len, sizeof list.text - len, "%s%lld", i ? ", " : "", (long long)ints[i]);
    list.text[len] = ']';
    list.text[len + 1] = 0;
    return list;
}

/* ---- values ---- */

static uint32_t types_of(const onxi_schema *schema, const onxi_port *port)
{
    const onxi_type_constraint *c = port ? onxi_schema_type(schema, port->type) : NULL;
    return c ? c->set.tensor : port ? DRAW_EVERY : 0;
}

uint32_t draw_takes(const draw *d, const char *op, uint32_t input)
{
    const onxi_schema *schema = onxi_schema_find(onx_str_of(""), onx_str_of(op), d->opset);
    return schema ? types_of(schema, onxi_port_at(schema->inputs, input)) : 0;
}

uint32_t draw_gives(const draw *d, const char *op, uint32_t output)
{
    const onxi_schema *schema = onxi_schema_find(onx_str_of(""), onx_str_of(op), d->opset);
    return schema ? types_of(schema, onxi_port_at(schema->outputs, output)) : 0;
}

bool draw_has(const draw *d, const char *op)
{
    const onxi_schema *schema = onxi_schema_find(onx_str_of(""), onx_str_of(op), d->opset);
    return schema && !(schema->flags & ONXI_OP_DEPRECATED);
}

static bool suits(const draw_value *v, const draw_wish *wish)
{
    return wish->types >> v->dtype & 1 && v->rank >= wish->least && (!wish->most || v->rank <= wish->most) &&
           (!wish->full || draw_product(v->dims, v->rank));
}

bool draw_pick(draw *d, draw_wish wish, draw_value *out)
{
    uint32_t found[DRAW_VALUES], count = 0;
    for (uint32_t i = 0; i < d->value_count; i++)
        if (suits(&d->values[i], &wish))
            found[count++] = i;
    if (!count)
        return false;
    const uint32_t from = count > 4 && draw_chance(d, d->theme == DRAW_ALIAS ? 40 : 60) ? count - 4 : 0;
    *out = d->values[found[from + gen_below(&d->random, count - from)]];
    return true;
}

draw_value draw_of(onx_dtype dtype, uint32_t rank, const int64_t *dims)
{
    draw_value v = { .dtype = dtype, .rank = rank };
    if (rank)
        memcpy(v.dims, dims, rank * sizeof *dims);
    return v;
}

draw_value draw_like(const draw_value *v)
{
    return draw_of(v->dtype, v->rank, v->dims);
}

static void name_with(draw *d, draw_value *v, char letter)
{
    (void)snprintf(v->name, sizeof v->name, "%c%u", letter, ++d->name_count % 1000000);
}

void draw_name(draw *d, draw_value *v)
{
    name_with(d, v, 's');
}

static void keep(draw *d, const draw_value *v)
{
    if (d->value_count < DRAW_VALUES)
        d->values[d->value_count++] = *v;
}

bool draw_new_input(draw *d, draw_value *v, int low, int high)
{
    if (d->input_count == DRAW_INPUTS)
        return false;
    name_with(d, v, 'x');
    v->global = true;
    if (DRAW_UNSIGNED >> v->dtype & 1)
        low = low < 0 ? 0 : low;
    d->inputs[d->input_count++] = (draw_input){ *v, low, high };
    keep(d, v);
    return true;
}

/* ---- constants ---- */

static void add_shape(draw_text *text, const draw_value *v)
{
    draw_add(text, "%s", onx_dtype_name(v->dtype));
    for (uint32_t i = 0; i < v->rank; i++)
        draw_add(text, "%s%lld", i ? ", " : "[", (long long)v->dims[i]);
    if (v->rank)
        draw_add(text, "]");
}

/* 16-bit floats are written as their bits. Other numbers have two decimals at most, so that all platforms write the
 * same. */
static void add_number(draw_text *text, onx_dtype dtype, double x)
{
    uint16_t bits = 0;
    if (dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16) {
        onx_convert(dtype, &bits, ONX_DOUBLE, &x, 1, true);
        draw_add(text, "%u", (unsigned)bits);
    } else if (dtype == ONX_STRING) {
        draw_add(text, "\"%c\"", 'a' + (int)(x < 0 ? -x : x) % 5);
    } else if (dtype == ONX_BOOL) {
        draw_add(text, "%d", x != 0);
    } else if (DRAW_WHOLES >> dtype & 1) {
        draw_add(text, "%lld", (long long)x);
    } else {
        draw_add(text, "%.7g", x);
    }
}

static double drawn(draw *d, onx_dtype dtype, draw_fill fill)
{
    if (!(DRAW_FLOATS >> dtype & 1)) {
        const int low = DRAW_UNSIGNED >> dtype & 1 || dtype == ONX_BOOL || fill == DRAW_ABOVE ? 0 : -3;
        return draw_between(d, low, dtype == ONX_BOOL ? 1 : 3);
    }
    const int most = fill == DRAW_WEIGHT ? 100 : 200;
    return draw_between(d, fill == DRAW_ABOVE ? 10 : -most, most) / 100.0;
}

void draw_listed_constant(draw *d, draw_value *v, const char *elements)
{
    const uint32_t how = gen_below(&d->random, 100);
    name_with(d, v, 'c');
    if (how < 30 && draw_gives(d, "Constant", 0) >> v->dtype & 1) {
        draw_add(&d->nodes, "  %s = Constant <value = ", v->name);
        add_shape(&d->nodes, v);
        draw_add(&d->nodes, " {%s}> ()\n", elements);
        return;
    }
    v->global = true;
    if (how < 36) {
        draw_add(&d->ports, ", ");
        add_shape(&d->ports, v);
        draw_add(&d->ports, " %s", v->name);
    }
    draw_add(&d->initializers, "%s", d->initializers.len ? ",\n  " : "");
    add_shape(&d->initializers, v);
    draw_add(&d->initializers, " %s = {%s}", v->name, elements);
}

void draw_constant(draw *d, draw_value *v, draw_fill fill)
{
    draw_text text = { 0 };
    for (uint64_t i = 0, n = draw_product(v->dims, v->rank); i < n; i++) {
        draw_add(&text, "%s", i ? ", " : "");
        add_number(&text, v->dtype, drawn(d, v->dtype, fill));
    }
    draw_listed_constant(d, v, text_of(&text));
    draw_text_free(&text);
}

void draw_indices(draw *d, draw_value *v, int64_t below, bool negative)
{
    draw_text text = { 0 };
    for (uint64_t i = 0, n = draw_product(v->dims, v->rank); i < n; i++) {
        draw_add(&text, "%s", i ? ", " : "");
        add_number(&text, v->dtype, draw_between(d, negative ? -(int)below : 0, (int)below - 1));
    }
    draw_listed_constant(d, v, text_of(&text));
    draw_text_free(&text);
}

void draw_number(draw *d, draw_value *v, double number)
{
    draw_text text = { 0 };
    for (uint64_t i = 0, n = draw_product(v->dims, v->rank); i < n; i++) {
        draw_add(&text, "%s", i ? ", " : "");
        add_number(&text, v->dtype, number);
    }
    draw_listed_constant(d, v, text_of(&text));
    draw_text_free(&text);
}

draw_value draw_ints(draw *d, const int64_t *ints, uint32_t count)
{
    draw_text text = { 0 };
    const int64_t dims[1] = { count };
    draw_value v = draw_of(ONX_INT64, 1, dims);
    for (uint32_t i = 0; i < count; i++)
        draw_add(&text, "%s%lld", i ? ", " : "", (long long)ints[i]);
    draw_listed_constant(d, &v, text_of(&text));
    draw_text_free(&text);
    return v;
}

/* ---- shapes ---- */

bool draw_broadcast(const draw_value *a, const draw_value *b, draw_value *out)
{
    const uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    draw_value v = { .dtype = a->dtype, .rank = rank };
    for (uint32_t i = 0; i < rank; i++) {
        const int64_t x = i < rank - a->rank ? 1 : a->dims[i - (rank - a->rank)];
        const int64_t y = i < rank - b->rank ? 1 : b->dims[i - (rank - b->rank)];
        if (x != y && x != 1 && y != 1)
            return false;
        v.dims[i] = x == 1 ? y : x;
    }
    *out = v;
    return true;
}

bool draw_operand(draw *d, const draw_value *v, draw_value *out)
{
    draw_value common;
    if (draw_chance(d, d->theme == DRAW_ALIAS ? 85 : 45))
        for (int tries = 0; tries < 8; tries++)
            if (draw_pick(d, (draw_wish){ .types = 1u << v->dtype }, out) && draw_broadcast(v, out, &common))
                return true;
    *out = draw_like(v);
    const uint32_t how = gen_below(&d->random, 10);
    const uint32_t dropped = how < 2 ? v->rank : how < 6 ? gen_below(&d->random, v->rank + 1) : 0;
    out->rank = v->rank - dropped;
    for (uint32_t i = 0; i < out->rank; i++)
        out->dims[i] = how < 8 && draw_chance(d, how == 6 ? 100 : 40) ? 1 : v->dims[dropped + i];
    if (draw_chance(d, 25) && DRAW_FLOATS >> v->dtype & 1)
        draw_number(d, out, DRAW_ONE(d, double, 0, 1, 2, 0.5, -1, 3, 6, 1.41421356, 0.70710678));
    else if (draw_chance(d, 20))
        return draw_new_input(d, out, v->dtype == ONX_BOOL ? 0 : -2, v->dtype == ONX_BOOL ? 1 : 2);
    else
        draw_constant(d, out, DRAW_SMALL);
    return true;
}

bool draw_smaller(draw *d, const draw_value *v, draw_value *out)
{
    draw_value common;
    for (int tries = 0; tries < 4; tries++)
        if (draw_operand(d, v, out) && draw_broadcast(v, out, &common) && common.rank == v->rank &&
            memcmp(common.dims, v->dims, sizeof v->dims) == 0)
            return true;
    *out = *v;
    return true;
}

/* ---- nodes ---- */

bool draw_node(draw *d, draw_value *out, uint32_t count, const char *format, ...)
{
    draw_text body = { 0 };
    char rest[1024];
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(rest, sizeof rest, format, args);
    va_end(args);
    draw_text_free(&body);
    if (len < 0 || (size_t)len >= sizeof rest || d->value_count + count > DRAW_VALUES)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (draw_product(out[i].dims, out[i].rank) > DRAW_ELEMENTS)
            return false;
        name_with(d, &out[i], 'v');
        out[i].made = true;
        out[i].global = false;
        draw_add(&d->nodes, "%s%s", i ? ", " : "  ", out[i].name);
        keep(d, &out[i]);
    }
    draw_add(&d->nodes, " = %s\n", rest);
    d->node_count++;
    return true;
}

/* ---- blocks ---- */

static const draw_block *const tables[] = { draw_plain_blocks, draw_move_blocks, draw_net_blocks, draw_sum_blocks,
                                            draw_shape_blocks, draw_flow_blocks, draw_any_blocks };

/* Each model has a part of the blocks only, so that some come often together. */
static uint32_t weight_of(const draw *d, const draw_block *block, uint32_t index)
{
    const bool left_out = block->weight[d->theme] < 8 && d->left_out >> (index % 64) & 1;
    return left_out || block->since > d->opset || (block->flow && d->depth > 1) ? 0 : block->weight[d->theme];
}

static const draw_block *drawn_block(draw *d)
{
    uint32_t total = 0, index = 0, at = 0;
    for (int turn = 0; turn < 2; turn++) {
        if (turn)
            at = gen_below(&d->random, total);
        index = 0;
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
            for (const draw_block *b = tables[t]; b->name; b++, index++) {
                const uint32_t weight = weight_of(d, b, index);
                total += turn ? 0 : weight;
                if (turn && at < weight)
                    return b;
                at -= turn ? weight : 0;
            }
    }
    return NULL;
}

void draw_blocks(draw *d, uint32_t count)
{
    const uint32_t end = d->node_count + count;
    for (uint32_t tries = 0; tries < 4 * count + 8 && d->node_count < end; tries++) {
        const draw_block *block = drawn_block(d);
        const size_t nodes = d->nodes.len, initializers = d->initializers.len, ports = d->ports.len,
                     functions = d->functions.len;
        const uint32_t values = d->value_count, inputs = d->input_count, made = d->node_count,
                       function_count = d->function_count;
        if (!block || block->make(d))
            continue;
        cut(&d->nodes, nodes);
        cut(&d->initializers, initializers);
        cut(&d->ports, ports);
        cut(&d->functions, functions);
        d->value_count = values;
        d->input_count = inputs;
        d->node_count = made;
        d->function_count = function_count;
    }
}

/* ---- models ---- */

static onx_dtype drawn_type(draw *d)
{
    static const uint8_t all[] = { ONX_FLOAT,  ONX_FLOAT,  ONX_DOUBLE, ONX_FLOAT16, ONX_INT64,
                                   ONX_INT32,  ONX_BOOL,   ONX_UINT8,  ONX_INT8,    ONX_INT16,
                                   ONX_UINT16, ONX_UINT32, ONX_UINT64, ONX_STRING,  ONX_BFLOAT16 };
    const size_t count = sizeof all - (d->opset < 13);
    if (d->theme == DRAW_TYPES)
        return (onx_dtype)all[gen_below(&d->random, (uint32_t)count)];
    if (draw_chance(d, d->theme == DRAW_ALIAS ? 90 : 65))
        return ONX_FLOAT;
    return DRAW_ONE(d, onx_dtype, ONX_DOUBLE, ONX_INT64, ONX_FLOAT16, ONX_INT32, ONX_BOOL);
}

static void first_inputs(draw *d)
{
    for (uint32_t i = 0, n = 1 + gen_below(&d->random, 3); i < n; i++) {
        draw_value v = { .dtype = drawn_type(d), .rank = DRAW_ONE(d, uint32_t, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5) };
        const bool image = draw_chance(d, d->theme == DRAW_ALIAS ? 60 : 30);
        if (image)
            v.rank = 4;
        for (uint32_t k = 0; k < v.rank; k++)
            v.dims[k] = draw_size(d);
        if (image && d->theme != DRAW_ZERO) {
            v.dims[0] = DRAW_ONE(d, int64_t, 1, 1, 2);
            v.dims[1] = DRAW_ONE(d, int64_t, 1, 2, 3, 4, 5, 8, 12, 16, 17, 32);
        }
        while (draw_product(v.dims, v.rank) > 6000)
            v.dims[gen_below(&d->random, v.rank)] = 1;
        (void)draw_new_input(d, &v, v.dtype == ONX_BOOL ? 0 : -3, v.dtype == ONX_BOOL ? 1 : 3);
    }
}

/* How often a name occurs in a text, up to 2. */
static uint32_t occurrences(const char *text, const char *name)
{
    uint32_t count = 0;
    const size_t len = strlen(name);
    for (const char *at = text; count < 2 && (at = strstr(at, name)) != NULL; at += len)
        count += (at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[len]);
    return count;
}

static void add_outputs(draw *d, draw_text *out)
{
    uint32_t count = 0, last = DRAW_VALUES;
    for (uint32_t i = 0; i < d->value_count; i++)
        last = d->values[i].made ? i : last;
    for (uint32_t i = 0; i < d->value_count && count < 12; i++) {
        const draw_value *v = &d->values[i];
        const bool read = v->made && occurrences(text_of(&d->nodes), v->name) > 1;
        if (v->made ? !(i == last && !count) && !draw_chance(d, read ? (d->theme == DRAW_ALIAS ? 25 : 15) : 92)
                    : !draw_chance(d, 2))
            continue;
        draw_add(out, "%s", count++ ? ", " : "");
        if (d->vary || draw_chance(d, 30))
            draw_add(out, "%s[] %s", onx_dtype_name(v->dtype), v->name);
        else {
            add_shape(out, v);
            draw_add(out, " %s", v->name);
        }
    }
}

static void add_input(draw *d, draw_text *out, const draw_value *v)
{
    const uint32_t how = gen_below(&d->random, 100);
    if (how < 65 && !d->vary)
        add_shape(out, v);
    else if (how < 75 && how % 3 == 0)
        draw_add(out, "%s[]", onx_dtype_name(v->dtype));
    else {
        draw_add(out, "%s", onx_dtype_name(v->dtype));
        for (uint32_t i = 0; i < v->rank; i++) {
            const uint32_t sort = gen_below(&d->random, 10);
            draw_add(out, "%s", i ? ", " : "[");
            if (sort < 2)
                draw_add(out, "?");
            else if ((sort < 6 || d->vary) && d->shared)
                draw_add(out, "n%lld", (long long)v->dims[i]);
            else if (sort < 6 || d->vary)
                draw_add(out, "%s_%u", v->name, i);
            else
                draw_add(out, "%lld", (long long)v->dims[i]);
        }
        if (v->rank)
            draw_add(out, "]");
    }
    draw_add(out, " %s", v->name);
}

/* Sets of inputs: "x1=2x3:-3:3, ...; ...". Later sets have other numbers, and some other sizes: a size is replaced by
 * the same other one everywhere, so that what fits together still does. */
static void add_sets(draw *d, draw_text *out)
{
    const uint32_t count = d->vary ? DRAW_SETS : 2;
    const bool special = draw_chance(d, 8);
    for (uint32_t set = 0; set < count; set++) {
        int64_t other[34];
        for (int64_t i = 0; i < 34; i++)
            other[i] = set >= 2 && draw_chance(d, 50) ? DRAW_ONE(d, int64_t, 1, 2, 3, 4, 5, 6, 8, 9, i + 1) : i;
        draw_add(out, "%s", set ? "; " : "");
        for (uint32_t i = 0; i < d->input_count; i++) {
            const draw_input *in = &d->inputs[i];
            draw_add(out, "%s%s=", i ? ", " : "", in->value.name);
            for (uint32_t k = 0; k < in->value.rank; k++) {
                const int64_t size = in->value.dims[k];
                draw_add(out, "%s%lld", k ? "x" : "", (long long)(size < 34 ? other[size] : size));
            }
            draw_add(out, ":%d:%d%s", in->low, in->high, special && set == 1 ? ":s" : "");
        }
    }
}

static void add_model(draw *d, draw_text *out)
{
    static const uint8_t ir[] = { 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12, 13 };
    const size_t newest = sizeof ir - 1;
    uint32_t version = ir[d->opset < (int64_t)newest ? (size_t)d->opset : newest];
    version = version < 4 ? 4 : version;
    if (d->function_count && version < 8)
        version = 8;
    draw_add(out, "<ir_version: %u, opset_import: [\"\": %lld%s], metadata_props: [\"inputs\": \"", version,
             (long long)d->opset, d->function_count ? ", \"f\": 1" : "");
    add_sets(d, out);
    draw_add(out, "\"]>\ng (");
    for (uint32_t i = 0; i < d->input_count; i++) {
        draw_add(out, "%s", i ? ", " : "");
        add_input(d, out, &d->inputs[i].value);
    }
    draw_add(out, "%s) => (", text_of(&d->ports) + (d->input_count || !d->ports.len ? 0 : 2));
    add_outputs(d, out);
    draw_add(out, ")\n");
    if (d->initializers.len)
        draw_add(out, "<\n  %s\n>\n", text_of(&d->initializers));
    draw_add(out, "{\n%s}\n%s", text_of(&d->nodes), text_of(&d->functions));
}

static bool has_made(const draw *d)
{
    for (uint32_t i = 0; i < d->value_count; i++)
        if (d->values[i].made)
            return true;
    return false;
}

char *draw_model(uint64_t seed, draw_theme theme)
{
    draw_text out = { 0 };
    draw *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->random.state = seed * 16 + theme;
    d->theme = theme;
    d->opset =
        DRAW_ONE(d, int64_t, 7, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 21, 22, 23, 24, 25, 26);
    d->vary = draw_chance(d, 60);
    d->wide = draw_chance(d, 30);
    d->shared = draw_chance(d, 50);
    d->left_out = draw_chance(d, 60) ? gen_next(&d->random) : 0;
    first_inputs(d);
    draw_blocks(d, DRAW_ONE(d, uint32_t, 1, 2, 3, 4, 5, 6, 8, 10, 14, DRAW_NODES));
    if (has_made(d))
        add_model(d, &out);
    if (out.failed || d->nodes.failed || d->initializers.failed || d->ports.failed || d->functions.failed)
        draw_text_free(&out);
    draw_text_free(&d->nodes);
    draw_text_free(&d->initializers);
    draw_text_free(&d->ports);
    draw_text_free(&d->functions);
    free(d);
    return out.ptr;
}

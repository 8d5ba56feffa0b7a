/* gen_wild.c - makes nodes unusual: special values, omitted operands, attributes that nobody would write. */
#include "gen/gen.h"

#include <math.h>
#include <string.h>

/* Words that attributes of some operator know, and some that none does. */
static const char *const words[] = { "",        "NOTSET",     "SAME_UPPER",    "SAME_LOWER",    "VALID",
                                     "linear",  "nearest",    "cubic",         "none",          "add",
                                     "mul",     "max",        "min",           "constant",      "reflect",
                                     "edge",    "wrap",       "circular",      "tanh",          "DCR",
                                     "CRD",     "zeros",      "border",        "reflection",    "mean",
                                     "sum",     "half_pixel", "asymmetric",    "align_corners", "silu",
                                     "forward", "reverse",    "bidirectional", "LOGISTIC",      "SOFTMAX",
                                     "LEFT" };

static int64_t any_int(gen_random *r)
{
    static const int64_t rare[] = { 64, 255, 1 << 20, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN };
    return gen_below(r, 8) ? (int64_t)gen_below(r, 7) - 2 : rare[gen_below(r, sizeof rare / sizeof *rare)];
}

static float any_float(gen_random *r)
{
    static const float values[] = { 0, 1, -1, 0.5f, 2, 1e-5f, 100, NAN, INFINITY, -INFINITY };
    return values[gen_below(r, sizeof values / sizeof *values)];
}

void gen_wild_operands(gen_node *node, gen_random *r)
{
    for (uint32_t i = 0; i < node->operand_count; i++) {
        gen_operand *o = &node->operands[i];
        const onxi_port *port = onxi_port_at(node->schema->inputs, i);
        if (port && port->flags & ONXI_PORT_OPTIONAL && gen_below(r, 6) == 0)
            o->kind = GEN_OMITTED;
        if (o->fill == GEN_SMALL && gen_below(r, 8) == 0)
            o->fill = GEN_SPECIAL + (gen_fill)gen_below(r, GEN_ALL_LOWEST - GEN_SPECIAL + 1);
        if (o->rank && !o->made && gen_below(r, 40) == 0)
            o->dims[gen_below(r, o->rank)] = gen_below(r, 4);
    }
}

static void drop(onx_node *node, const char *name)
{
    for (uint32_t i = node->attribute_count; i-- > 0;)
        if (onx_str_is(onx_view(node->attribute[i]->name), name))
            onx_list_remove(node->attribute, &node->attribute_count, i, sizeof *node->attribute);
}

static bool put(onx_arena *arena, onx_node *node, const onxi_attr *attr, gen_random *r)
{
    int64_t ints[4];
    float floats[4];
    const uint32_t count = gen_below(r, 5);
    for (uint32_t i = 0; i < 4; i++) {
        ints[i] = any_int(r);
        floats[i] = any_float(r);
    }
    switch (attr->type) {
    case ONX_ATTR_INT:
        return onx_node_add_int(arena, node, attr->name, ints[0]);
    case ONX_ATTR_FLOAT:
        return onx_node_add_float(arena, node, attr->name, floats[0]);
    case ONX_ATTR_STRING:
        return onx_node_add_string(arena, node, attr->name,
                                   onx_str_of(words[gen_below(r, sizeof words / sizeof *words)]));
    case ONX_ATTR_INTS:
        return onx_node_add_ints(arena, node, attr->name, ints, count);
    case ONX_ATTR_FLOATS:
        return onx_node_add_floats(arena, node, attr->name, floats, count);
    default:
        return true;
    }
}

bool gen_wild_attribute(onx_arena *arena, onx_node *node, const onxi_schema *schema, gen_random *r)
{
    uint32_t count = 0;
    while (schema->attrs && schema->attrs[count].name)
        count++;
    if (!count)
        return true;
    const onxi_attr *attr = &schema->attrs[gen_below(r, count)];
    if (attr->type > ONX_ATTR_STRING && attr->type != ONX_ATTR_INTS && attr->type != ONX_ATTR_FLOATS)
        return true;
    drop(node, attr->name);
    return gen_below(r, 4) == 0 || put(arena, node, attr, r);
}

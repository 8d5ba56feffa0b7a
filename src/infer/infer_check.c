/* infer_check.c - --check-type: checks the number of operands and the type constraints of a node against its schema. */
#include "infer/infer.h"

#include <stdio.h>

/* Formats the type as in constraints: tensor(float), seq(tensor(int64)), map(string,float). Tensors in maps are written
 * as their element type only. */
static size_t type_word(const onxi_type *type, char *buf, size_t size)
{
    static const char *const open[] = { "", "tensor(", "sparse_tensor(", "seq(", "optional(", "map(", "opaque(" };
    char inner[160] = "";
    const char *dtype = onx_dtype_name(type->dtype);
    switch (type->kind) {
    case ONXI_TYPE_NONE:
        return 0;
    case ONXI_TYPE_TENSOR:
    case ONXI_TYPE_SPARSE_TENSOR:
        return dtype ? (size_t)snprintf(buf, size, "%s%s)", open[type->kind], dtype) : 0;
    case ONXI_TYPE_OPAQUE:
        return (size_t)snprintf(buf, size, "opaque(%.*s)", ONX_ARG(type->opaque->name));
    case ONXI_TYPE_MAP:
        if (!dtype || !type->inner || !type_word(type->inner, inner, sizeof inner))
            return 0;
        return (size_t)snprintf(buf, size, "map(%s,%s)", dtype,
                                type->inner->kind == ONXI_TYPE_TENSOR ? onx_dtype_name(type->inner->dtype) : inner);
    default:
        if (!type->inner || !type_word(type->inner, inner, sizeof inner))
            return 0;
        return (size_t)snprintf(buf, size, "%s%s)", open[type->kind], inner);
    }
}

static bool allowed(const onxi_type_set *set, const onxi_type *type, const char *word)
{
    uint32_t bit = type->dtype < 32 ? UINT32_C(1) << type->dtype : 0;
    if (type->kind == ONXI_TYPE_TENSOR)
        return (set->tensor & bit) != 0;
    char text[ONXI_TYPE_TEXT];
    for (uint32_t at = 0; onxi_type_set_next(set, &at, text);)
        if (strcmp(text, word) == 0)
            return true;
    return false;
}

/* An optional where only its element type is allowed, or vice versa, violates a separate rule. */
static const char *rule_of(const onxi_type_set *set, const onxi_type *type)
{
    uint32_t bit = type->inner && type->inner->dtype < 32 ? UINT32_C(1) << type->inner->dtype : 0;
    bool optional = type->kind == ONXI_TYPE_OPTIONAL;
    return optional && ((set->tensor | set->seq) & bit || !bit) ? "ND-24" : "ND-16";
}

typedef struct bound {
    const char *constraint;
    char word[200];
} bound;

enum { BOUND_MAX = 16 };

static onx_status check_port(onxi_infer_running *run, bool input, uint32_t i, const onxi_port *port,
                             const onxi_type *type, bound *bounds, uint32_t *bound_count)
{
    const onxi_schema *schema = run->call.schema;
    const char *side = input ? "input" : "output";
    char word[200];
    size_t len = type_word(type, word, sizeof word);
    if (!len || len >= sizeof word)
        return ONX_OK;
    const onxi_type_constraint *c = onxi_schema_type(schema, port->type);
    run->rule = "ND-16"; /* the rule to report on failure */
    if (!c) {
        if (strchr(port->type, '(') && strcmp(port->type, word) != 0)
            return onxi_call_fail(&run->call, "%s %u \"%s\" has type %s, expected %s", side, i, port->name, word,
                                  port->type);
        return ONX_OK;
    }
    run->rule = rule_of(&c->set, type);
    if (!allowed(&c->set, type, word))
        return onxi_call_fail(&run->call, "%s %u \"%s\" has type %s, which constraint %s of %s-%d does not allow", side,
                              i, port->name, word, c->name, schema->name, (int)schema->since);
    if (port->flags & ONXI_PORT_HETEROGENEOUS)
        return ONX_OK;
    run->rule = port->flags & ONXI_PORT_VARIADIC ? "ND-15" : "ND-16";
    for (uint32_t k = 0; k < *bound_count; k++)
        if (strcmp(bounds[k].constraint, c->name) == 0) {
            if (strcmp(bounds[k].word, word) != 0)
                return onxi_call_fail(&run->call, "%s %u \"%s\" has type %s where %s is already %s", side, i,
                                      port->name, word, c->name, bounds[k].word);
            return ONX_OK;
        }
    if (*bound_count < BOUND_MAX) {
        bounds[*bound_count].constraint = c->name;
        memcpy(bounds[*bound_count].word, word, len + 1);
        ++*bound_count;
    }
    return ONX_OK;
}

onx_status onxi_infer_check_types(onxi_infer_running *run)
{
    onxi_call *call = &run->call;
    const onxi_schema *schema = call->schema;
    bound bounds[BOUND_MAX];
    uint32_t bound_count = 0;
    if (schema->flags & ONXI_OP_OPEN)
        return ONX_OK;
    if (!onxi_arity_fits(call->input_count, schema->min_input, schema->max_input))
        return onxi_call_fail(call, "the node has %u inputs, %s-%d takes %u to %u", call->input_count, schema->name,
                              (int)schema->since, schema->min_input, schema->max_input);
    if (!onxi_arity_fits(call->output_count, schema->min_output, schema->max_output))
        return onxi_call_fail(call, "the node has %u outputs, %s-%d gives %u to %u", call->output_count, schema->name,
                              (int)schema->since, schema->min_output, schema->max_output);
    for (uint32_t i = 0; i < call->input_count; i++) {
        const onxi_port *port = onxi_port_at(schema->inputs, i);
        if (port && call->inputs[i])
            ONX_TRY(check_port(run, true, i, port, call->inputs[i], bounds, &bound_count));
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        const onxi_port *port = onxi_port_at(schema->outputs, i);
        if (port && onx_view(call->node->output[i]).len)
            ONX_TRY(check_port(run, false, i, port, &call->outputs[i], bounds, &bound_count));
    }
    return ONX_OK;
}

/* ---- describing the inputs of a failed node ---- */

enum { SHOWN_INPUTS = 6, SHOWN_ELEMENTS = 8 };

typedef struct shown {
    char text[1024];
    size_t len;
} shown;

static void show(shown *s, const char *text, size_t len)
{
    size_t room = sizeof s->text - s->len;
    len = len < room ? len : room;
    memcpy(s->text + s->len, text, len);
    s->len += len;
}

static void show_value(shown *s, const onx_infer *e, const onxi_known_ints *value)
{
    char text[64];
    show(s, " {", 2);
    for (uint32_t i = 0; i < value->count; i++) {
        size_t len = onxi_dim_print(e->dims, value->elements[i], text, sizeof text);
        show(s, ",", i > 0);
        show(s, len ? text : "?", len ? (len < sizeof text ? len : sizeof text - 1) : 1);
    }
    show(s, "}", 1);
}

onx_str onxi_infer_show_inputs(const onxi_infer_running *run)
{
    onx_infer *e = run->infer;
    shown s = { .len = 0 };
    for (uint32_t i = 0; i < run->call.input_count && i < SHOWN_INPUTS; i++) {
        const onxi_infer_fact *fact = run->facts[i];
        onx_str name = onx_view(run->call.node->input[i]);
        char type[128];
        if (!fact || fact->type.kind == ONXI_TYPE_NONE || name.len > 100)
            continue;
        size_t len = onxi_infer_type_print(e->dims, &fact->type, type, sizeof type);
        if (len >= sizeof type || s.len + name.len + len > 700)
            continue;
        show(&s, ", ", s.len ? 2 : 0);
        show(&s, "\"", 1);
        show(&s, name.ptr, name.len);
        show(&s, "\" is ", 5);
        show(&s, type, len);
        if (fact->value && !fact->value->floored && fact->value->rank <= 1 && fact->value->count <= SHOWN_ELEMENTS)
            show_value(&s, e, fact->value);
    }
    return s.len ? onxi_arena_printf(e->arena, "%.*s", (int)s.len, s.text) : (onx_str){ 0 };
}

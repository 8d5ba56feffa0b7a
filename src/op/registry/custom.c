/* custom.c - operators registered from C: their schemas, and the interface of their shape rules. */
#include "op/registry/registry.h"

#include <onx/ffi.h>

/* ---- copying a definition ---- */

static onx_status refuse(onx_registry *registry, const onx_op_def *def, const char *why, const char *what)
{
    return onxi_fail(registry->cx, ONX_E_MISUSE, ONXI_NOWHERE, "operator \"%s\" cannot be registered: %s%s%s",
                     def->name, why, what ? " " : "", what ? what : "");
}

static onx_status copy_ports(onx_registry *registry, const onx_op_port *ports, const onxi_port **out)
{
    uint32_t count = 0;
    while (ports && ports[count].name)
        count++;
    *out = NULL;
    if (!count)
        return ONX_OK;
    onxi_port *copy = ONXI_ARRAY(registry->arena, onxi_port, count + 1);
    if (!copy)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        copy[i].name = onxi_registry_text(registry, onx_str_of(ports[i].name));
        copy[i].type = onxi_registry_text(registry, onx_str_of(ports[i].type ? ports[i].type : ""));
        copy[i].flags = ports[i].flags;
        if (!copy[i].name || !copy[i].type)
            return ONX_E_MEMORY;
    }
    *out = copy;
    return ONX_OK;
}

static onx_status copy_attributes(onx_registry *registry, const onx_op_def *def, const onxi_attr **out)
{
    uint32_t count = 0;
    while (def->attributes && def->attributes[count].name)
        count++;
    *out = NULL;
    if (!count)
        return ONX_OK;
    onxi_attr *copy = ONXI_ARRAY(registry->arena, onxi_attr, count + 1);
    if (!copy)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        const onx_op_attribute *from = &def->attributes[i];
        if (!onx_attribute_type_name(from->type) || from->type == ONX_ATTR_UNDEFINED)
            return refuse(registry, def, "no type is given for attribute", from->name);
        copy[i] = *from;
        copy[i].name = onxi_registry_text(registry, onx_str_of(from->name));
        if (from->default_text)
            copy[i].default_text = onxi_registry_text(registry, onx_str_of(from->default_text));
        if (!copy[i].name || (from->default_text && !copy[i].default_text))
            return ONX_E_MEMORY;
        onxi_attr_value value;
        if (onxi_attr_default(&copy[i], registry->arena, &value) != ONX_OK)
            return refuse(registry, def, "no value of its type is the default of attribute", from->name);
    }
    *out = copy;
    return ONX_OK;
}

/* The types of a constraint, separated by spaces; types other than tensors, sequences and optionals of tensors are
 * added to `other`. */
static onx_status parse_types(onx_registry *registry, const char *text, onxi_type_set *out)
{
    char *other = onx_arena_alloc(registry->arena, strlen(text) + 2);
    if (!other)
        return ONX_E_MEMORY;
    size_t other_len = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        const size_t len = strcspn(text, " ");
        if (!onxi_type_set_add(out, onx_str_make(text, len))) {
            memcpy(other + other_len, text, len);
            other_len += len;
            other[other_len++] = ' ';
        }
        text += len;
    }
    if (other_len) {
        other[other_len - 1] = 0;
        out->other = other;
    }
    return ONX_OK;
}

static onx_status copy_types(onx_registry *registry, const char *const *types, const onxi_type_constraint **out)
{
    uint32_t count = 0;
    while (types && types[2 * count] && types[2 * count + 1])
        count++;
    *out = NULL;
    if (!count)
        return ONX_OK;
    onxi_type_constraint *copy = ONXI_ARRAY(registry->arena, onxi_type_constraint, count + 1);
    if (!copy)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        copy[i].name = onxi_registry_text(registry, onx_str_of(types[2 * i]));
        if (!copy[i].name)
            return ONX_E_MEMORY;
        ONX_TRY(parse_types(registry, types[2 * i + 1], &copy[i].set));
    }
    *out = copy;
    return ONX_OK;
}

/* Every port's type must be a constraint of the operator or a type. */
static const char *unknown_type(const onxi_schema *schema, const onxi_port *ports)
{
    for (; ports && ports->name; ports++) {
        onxi_type_set set = { 0 };
        if (!onxi_schema_type(schema, ports->type) && !onxi_type_set_add(&set, onx_str_of(ports->type)) &&
            !strchr(ports->type, '('))
            return ports->name;
    }
    return NULL;
}

static onx_status run_custom_rule(onxi_call *call)
{
    const onxi_custom *custom = onxi_schema_custom(call->schema);
    return custom->infer(custom->user, call);
}

/* ---- notes for authors of operators (N-12, TY-18) ---- */

static void advise(onx_ctx *cx, const char *where, onx_str name, const char *text)
{
    onxi_opset_report(cx, "N-12", ONX_NOTE, where, name, "%s", text);
}

/* Lower case with underscores. */
void onxi_lint_attribute(onx_ctx *cx, const char *where, onx_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] >= 'A' && name.ptr[i] <= 'Z') {
            advise(cx, where, name, "attributes have names in lower case with underscores");
            return;
        }
}

/* One capital letter, or lower case. */
static void lint_operand(onx_ctx *cx, const char *where, onx_str name)
{
    bool lower = false, upper = false;
    for (size_t i = 0; i < name.len; i++) {
        lower |= name.ptr[i] >= 'a' && name.ptr[i] <= 'z';
        upper |= name.ptr[i] >= 'A' && name.ptr[i] <= 'Z';
    }
    if (name.len == 1 ? lower : upper)
        advise(cx, where, name, "inputs and outputs have names of one capital letter, or in lower case");
}

/* Neural-network operators take tensors; sequences and optionals are for their own operators. */
static bool is_exotic(const onxi_type_set *set)
{
    return set->other && (strstr(set->other, "map(") || strstr(set->other, "opaque("));
}

static void lint(onx_ctx *cx, const onxi_schema *schema)
{
    for (const onxi_port *p = schema->inputs; p && p->name; p++)
        lint_operand(cx, schema->name, onx_str_of(p->name));
    for (const onxi_port *p = schema->outputs; p && p->name; p++)
        lint_operand(cx, schema->name, onx_str_of(p->name));
    for (const onxi_attr *a = schema->attrs; a && a->name; a++)
        onxi_lint_attribute(cx, schema->name, onx_str_of(a->name));
    for (const onxi_type_constraint *t = schema->types; t && t->name && !*schema->domain; t++)
        if (is_exotic(&t->set))
            onxi_opset_report(cx, "TY-18", ONX_NOTE, schema->name, onx_str_of(t->name),
                              "operators of the default domain take and give tensors");
}

onx_status onx_op_register(onx_registry *registry, const onx_op_def *def)
{
    ONXI_NEED(NULL, registry);
    ONXI_NEED(registry->cx, def);
    ONXI_OPTIONS(registry->cx, onx_op_def, own, def);
    def = &own;
    if (!def->name || !*def->name)
        return onxi_fail(registry->cx, ONX_E_MISUSE, ONXI_NOWHERE, "an operator cannot be registered without a name");
    const onx_str domain = onxi_domain_plain(onx_str_of(def->domain ? def->domain : ""));
    if (def->since < 1)
        return refuse(registry, def, "its version is not 1 or more", NULL);
    if (!onxi_registry_may_define(domain, onx_str_of(def->name), def->since))
        return refuse(registry, def, "ONNX defines an operator of that name", NULL);
    onxi_custom *custom = ONXI_NEW(registry->arena, onxi_custom);
    onxi_schema_own *more = ONXI_NEW(registry->arena, onxi_schema_own);
    onxi_schema schema = { .since = def->since, .flags = def->flags, .own = more };
    schema.domain = onxi_registry_text(registry, domain);
    schema.name = onxi_registry_text(registry, onx_str_of(def->name));
    const char *summary = onxi_registry_text(registry, onx_str_of(def->summary ? def->summary : ""));
    if (!custom || !more || !schema.domain || !schema.name || !summary)
        return ONX_E_MEMORY;
    *more = (onxi_schema_own){ .summary = summary, .custom = custom };
    *custom = (onxi_custom){ .infer = def->infer, .user = def->user, .kernel = def->kernel };
    ONX_TRY(copy_ports(registry, def->inputs, &schema.inputs));
    ONX_TRY(copy_ports(registry, def->outputs, &schema.outputs));
    ONX_TRY(copy_attributes(registry, def, &schema.attrs));
    ONX_TRY(copy_types(registry, def->types, &schema.types));
    const char *port = unknown_type(&schema, schema.inputs);
    port = port ? port : unknown_type(&schema, schema.outputs);
    if (port)
        return refuse(registry, def, "no type is known for", port);
    if (def->infer) {
        schema.infer = run_custom_rule;
        schema.flags |= ONX_OP_INFERS;
    }
    onxi_schema_count_ports(&schema);
    lint(registry->cx, &schema);
    return onxi_registry_add(registry, &schema, 1, false);
}

const struct onx_kernel *onx_op_kernel(const onx_op *op)
{
    if (!op)
        return NULL;
    return onxi_schema_custom(op) ? onxi_schema_custom(op)->kernel : NULL;
}

void *onx_op_user(const onx_op *op)
{
    if (!op)
        return NULL;
    return onxi_schema_custom(op) ? onxi_schema_custom(op)->user : NULL;
}

/* ---- the view of a node for shape rules written in C ---- */

uint32_t onx_op_call_input_count(const onx_op_call *call)
{
    if (!call)
        return 0;
    return call->input_count;
}

uint32_t onx_op_call_output_count(const onx_op_call *call)
{
    if (!call)
        return 0;
    return call->output_count;
}

static const onxi_type *tensor_input(const onx_op_call *call, uint32_t input)
{
    const onxi_type *type = input < call->input_count ? call->inputs[input] : NULL;
    return type && type->kind == ONXI_TYPE_TENSOR ? type : NULL;
}

onx_dtype onx_op_call_dtype(const onx_op_call *call, uint32_t input)
{
    if (!call)
        return ONX_UNDEFINED;
    const onxi_type *type = tensor_input(call, input);
    return type ? (onx_dtype)type->dtype : ONX_UNDEFINED;
}

int onx_op_call_rank(const onx_op_call *call, uint32_t input)
{
    if (!call)
        return -1;
    const onxi_type *type = tensor_input(call, input);
    return type && type->ranked ? (int)type->rank : -1;
}

onx_op_dim onx_op_call_dim(const onx_op_call *call, uint32_t input, uint32_t axis)
{
    if (!call)
        return ONX_OP_DIM_UNKNOWN;
    const onxi_type *type = tensor_input(call, input);
    return type && type->ranked && axis < type->rank ? type->dims[axis] : ONXI_DIM_UNKNOWN;
}

const onx_attribute *onx_op_call_attribute(onx_op_call *call, const char *name)
{
    if (!call || !name)
        return NULL;
    const onxi_attr_value *value = onxi_attrs_find(call->attrs, name);
    return value ? value->source : NULL;
}

bool onx_op_call_given(onx_op_call *call, const char *name)
{
    if (!call || !name)
        return false;
    return onxi_call_given(call, name);
}

int64_t onx_op_call_int(onx_op_call *call, const char *name)
{
    if (!call || !name)
        return 0;
    return onxi_call_int(call, name);
}

const onx_op_dim *onx_op_call_value(onx_op_call *call, uint32_t input, uint32_t *count)
{
    if (!call || !count)
        return NULL;
    const onxi_known_ints *value = onxi_call_value(call, input);
    *count = value ? value->count : 0;
    return value ? value->elements : NULL;
}

onx_status onx_op_call_set(onx_op_call *call, uint32_t output, onx_dtype dtype, const onx_op_dim *dims, int rank)
{
    ONXI_NEED(NULL, call);
    ONXI_NEED(call->arena->cx, (unsigned)dtype < ONX_DTYPE_COUNT);
    ONXI_NEED(call->arena->cx, rank <= (int)ONX_RANK_MAX);
    ONXI_NEED(call->arena->cx, dims || rank <= 0);
    if (output >= call->output_count)
        return ONX_OK; /* an optional output that the node omits */
    onxi_type type = { .kind = ONXI_TYPE_TENSOR, .dtype = (uint8_t)dtype, .ranked = rank >= 0 };
    if (rank > 0) {
        type.rank = (uint32_t)rank;
        type.dims = ONXI_ARRAY(call->arena, onxi_dim, type.rank);
        if (!type.dims)
            return ONX_E_MEMORY;
        for (uint32_t i = 0; i < type.rank; i++)
            type.dims[i] = onxi_dim_is_const(dims[i]) && dims[i] < 0 ? ONXI_DIM_UNKNOWN : dims[i];
    }
    call->outputs[output] = type;
    return ONX_OK;
}

onx_status onx_op_call_fail(onx_op_call *call, const char *format, ...)
{
    ONXI_NEED(NULL, call);
    ONXI_NEED(call->arena->cx, format);
    va_list args;
    va_start(args, format);
    onx_status status = call->ops->fail(call, format, args);
    va_end(args);
    return status;
}

onx_status onx_op_call_fail_text(onx_op_call *call, onx_str text)
{
    ONXI_NEED(NULL, call);
    ONXI_NEED(call->arena->cx, text.ptr || !text.len);
    return onx_op_call_fail(call, "%.*s", ONX_ARG(text));
}

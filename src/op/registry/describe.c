/* describe.c - describes an operator version: its signature, its types, its changes. */
#include "op/op.h"

/* ---- text of bounded length ---- */

typedef struct writer {
    char *buf;
    size_t size, len; /* len also counts text that did not fit */
} writer;

static writer writer_open(char *buf, size_t size)
{
    if (!buf)
        size = 0;
    if (size)
        buf[0] = 0;
    return (writer){ .buf = buf, .size = size };
}

static void put(writer *w, const char *text)
{
    for (; *text; text++, w->len++) {
        if (w->len + 1 < w->size) {
            w->buf[w->len] = *text;
            w->buf[w->len + 1] = 0;
        }
    }
}

/* Puts `first` before the first item of a list, `next` before the others. */
static void put_item(writer *w, uint32_t index, const char *first, const char *next)
{
    put(w, index ? next : first);
}

/* ---- signature ---- */

static void put_ports(writer *w, const onxi_port *ports)
{
    for (uint32_t i = 0; ports && ports[i].name; i++) {
        put_item(w, i, "", ", ");
        put(w, ports[i].name);
        if (ports[i].flags & ONX_PORT_OPTIONAL)
            put(w, "?");
        if (ports[i].flags & ONX_PORT_VARIADIC)
            put(w, ports[i].flags & ONX_PORT_ARITY_0 ? "...?" : "...");
    }
}

size_t onx_op_signature(const onx_op *op, char *buf, size_t size)
{
    if (!op)
        return 0;
    writer w = writer_open(buf, size);
    if (op->flags & ONX_OP_OPEN) {
        put(&w, op->name);
        return w.len;
    }
    put_ports(&w, op->outputs);
    put(&w, op->outputs ? " = " : "");
    put(&w, op->name);
    for (uint32_t i = 0; op->attrs && op->attrs[i].name; i++) {
        const onxi_attr *a = &op->attrs[i];
        put_item(&w, i, " <", ", ");
        put(&w, a->name);
        if (a->default_text) {
            put(&w, " = ");
            put(&w, a->default_text);
        } else if (!a->required) {
            put(&w, "?");
        }
    }
    put(&w, op->attrs ? "> (" : " (");
    put_ports(&w, op->inputs);
    put(&w, ")");
    return w.len;
}

/* ---- types ---- */

enum { FORMS = 5 };

static void set_bits(const onxi_type_set *set, uint32_t bits[FORMS])
{
    bits[0] = set->tensor;
    bits[1] = set->sparse_tensor;
    bits[2] = set->seq;
    bits[3] = set->optional;
    bits[4] = set->optional_seq;
}

static void put_dtypes(writer *w, uint32_t bits)
{
    uint32_t count = 0;
    for (int64_t dtype = 1; dtype < ONX_DTYPE_COUNT; dtype++) {
        if (!(bits >> dtype & 1))
            continue;
        put_item(w, count++, "", ", ");
        put(w, onx_dtype_name(dtype));
    }
}

/* The next type as the standard writes it, which has a space after a comma: rows separate types by spaces. */
static bool next_type(const onxi_type_set *set, uint32_t *at, char text[ONX_OP_TYPE_TEXT])
{
    if (!onxi_type_set_next(set, at, text))
        return false;
    for (size_t i = 0, len = strlen(text); i < len; i++)
        if (text[i] == ',' && len + 1 < ONX_OP_TYPE_TEXT) {
            memmove(text + i + 2, text + i + 1, len - i);
            text[i + 1] = ' ';
            len++;
        }
    return true;
}

/* tensor(float, double), seq(tensor(float)), map(int64, float) */
static void put_types(writer *w, const onxi_type_set *set)
{
    static const char *const open[FORMS] = { "tensor(", "sparse_tensor(", "seq(tensor(", "optional(tensor(",
                                             "optional(seq(tensor(" };
    static const char *const close[FORMS] = { ")", ")", "))", "))", ")))" };
    uint32_t bits[FORMS], count = 0;
    set_bits(set, bits);
    for (uint32_t form = 0; form < FORMS; form++) {
        if (!bits[form])
            continue;
        put_item(w, count++, "", ", ");
        put(w, open[form]);
        put_dtypes(w, bits[form]);
        put(w, close[form]);
    }
    const onxi_type_set others = { .other = set->other };
    char text[ONXI_TYPE_TEXT];
    uint32_t at = 0;
    while (next_type(&others, &at, text)) {
        put_item(w, count++, "", ", ");
        put(w, text);
    }
}

const char *onx_op_type_name(const onx_op *op, uint32_t index)
{
    if (!op)
        return NULL;
    for (const onxi_type_constraint *t = op->types; t && t->name; t++)
        if (index-- == 0)
            return t->name;
    return NULL;
}

bool onx_op_type_next(const onx_op *op, uint32_t index, uint32_t *at, char text[ONX_OP_TYPE_TEXT])
{
    if (!op || !at || !text)
        return false;
    return onx_op_type_name(op, index) && next_type(&op->types[index].set, at, text);
}

size_t onx_op_type_text(const onx_op *op, uint32_t index, char *buf, size_t size)
{
    if (!op)
        return 0;
    writer w = writer_open(buf, size);
    if (onx_op_type_name(op, index))
        put_types(&w, &op->types[index].set);
    return w.len;
}

/* ---- changes of a version ---- */

/* Begins the next remark of a line. */
static void put_remark(writer *w, const char *what)
{
    put(w, w->len ? "; " : "");
    put(w, what);
}

/* "T takes tensor(bfloat16)", "T takes no more tensor(bool)" */
static void put_type_change(writer *w, const char *name, const onxi_type_set *old, const onxi_type_set *now)
{
    uint32_t a[FORMS], b[FORMS];
    set_bits(old, a);
    set_bits(now, b);
    const onxi_type_set more = { b[0] & ~a[0], b[1] & ~a[1], b[2] & ~a[2], b[3] & ~a[3], b[4] & ~a[4], NULL };
    const onxi_type_set less = { a[0] & ~b[0], a[1] & ~b[1], a[2] & ~b[2], a[3] & ~b[3], a[4] & ~b[4], NULL };
    char text[ONXI_TYPE_TEXT];
    uint32_t at = 0;
    if (onxi_type_set_next(&more, &at, text)) {
        put_remark(w, name);
        put(w, " takes ");
        put_types(w, &more);
    }
    at = 0;
    if (onxi_type_set_next(&less, &at, text)) {
        put_remark(w, name);
        put(w, " takes no more ");
        put_types(w, &less);
    }
    const char *old_other = old->other ? old->other : "", *now_other = now->other ? now->other : "";
    if (strcmp(old_other, now_other) != 0) {
        put_remark(w, name);
        put(w, " takes other maps");
    }
}

static const onxi_port *port_find(const onxi_port *ports, const char *name)
{
    for (; ports && ports->name; ports++)
        if (strcmp(ports->name, name) == 0)
            return ports;
    return NULL;
}

static const char *port_kind(const onxi_port *port)
{
    return port->flags & ONX_PORT_VARIADIC ? "variadic" : port->flags & ONX_PORT_OPTIONAL ? "optional" : "required";
}

static uint32_t port_count(const onxi_port *ports)
{
    uint32_t count = 0;
    while (ports && ports[count].name)
        count++;
    return count;
}

/* The constraint that was used for a port whose type is `name` in `now`: the same one under another name. */
static const onxi_type_constraint *stood_for(const onxi_schema *old, const onxi_port *old_ports, const onxi_port *now,
                                             const char *name)
{
    const uint32_t old_count = port_count(old_ports);
    for (uint32_t i = 0; i < old_count && now && now[i].name; i++) {
        const onxi_type_constraint *before =
            strcmp(now[i].type, name) == 0 ? onxi_schema_type(old, old_ports[i].type) : NULL;
        if (before)
            return before;
    }
    return NULL;
}

static void put_types_change(writer *w, const onxi_schema *old, const onxi_schema *now)
{
    for (const onxi_type_constraint *t = now->types; t && t->name; t++) {
        const onxi_type_constraint *before = onxi_schema_type(old, t->name);
        before = before ? before : stood_for(old, old->inputs, now->inputs, t->name);
        before = before ? before : stood_for(old, old->outputs, now->outputs, t->name);
        if (before) {
            put_type_change(w, t->name, &before->set, &t->set);
        } else {
            put_remark(w, "types ");
            put(w, t->name);
            put(w, " are new: ");
            put_types(w, &t->set);
        }
    }
}

/* Ports are matched by name; a renamed port at the same position is reported as such. */
static void put_ports_change(writer *w, const char *what, const onxi_port *old, const onxi_port *now)
{
    const uint32_t old_count = port_count(old), count = port_count(now);
    for (uint32_t i = 0; i < count; i++) {
        const onxi_port *before = port_find(old, now[i].name);
        if (!before && i < old_count && !port_find(now, old[i].name)) {
            put_remark(w, what);
            put(w, old[i].name);
            put(w, " is now called ");
            put(w, now[i].name);
            before = &old[i];
        } else if (!before) {
            put_remark(w, "new ");
            put(w, port_kind(&now[i]));
            put(w, " ");
            put(w, what);
            put(w, now[i].name);
            continue;
        }
        if (strcmp(port_kind(before), port_kind(&now[i])) != 0 || before->flags & ~now[i].flags & ONX_PORT_ARITY_0) {
            put_remark(w, what);
            put(w, now[i].name);
            put(w, " is now ");
            put(w, port_kind(&now[i]));
        }
        if (strcmp(before->type, now[i].type) != 0 && (strchr(before->type, '(') || strchr(now[i].type, '('))) {
            put_remark(w, what);
            put(w, now[i].name);
            put(w, " is now of type ");
            put(w, now[i].type);
        }
    }
    for (uint32_t i = 0; i < old_count; i++) {
        if (port_find(now, old[i].name) || (i < count && !port_find(old, now[i].name)))
            continue;
        put_remark(w, what);
        put(w, old[i].name);
        put(w, " is gone");
    }
}

static void put_attribute_change(writer *w, const onxi_attr *old, const onxi_attr *now)
{
    if (old->type != now->type) {
        put_remark(w, "attribute ");
        put(w, now->name);
        put(w, " is now of type ");
        put(w, onx_attribute_type_name(now->type));
    }
    if (old->required != now->required) {
        put_remark(w, "attribute ");
        put(w, now->name);
        put(w, now->required ? " is now required" : " is now optional");
    }
    if (old->default_text && now->default_text ? strcmp(old->default_text, now->default_text) != 0
                                               : old->default_text != now->default_text) {
        put_remark(w, "attribute ");
        put(w, now->name);
        put(w, now->default_text ? " defaults to " : " has no default any more");
        put(w, now->default_text ? now->default_text : "");
    }
}

static void put_attributes_change(writer *w, const onxi_schema *old, const onxi_schema *now)
{
    for (const onxi_attr *a = now->attrs; a && a->name; a++) {
        const onxi_attr *before = onxi_schema_attr(old, onx_str_of(a->name));
        if (before) {
            put_attribute_change(w, before, a);
        } else {
            put_remark(w, a->required ? "new required attribute " : "new attribute ");
            put(w, a->name);
        }
    }
    for (const onxi_attr *a = old->attrs; a && a->name; a++) {
        if (onxi_schema_attr(now, onx_str_of(a->name)))
            continue;
        put_remark(w, "attribute ");
        put(w, a->name);
        put(w, " is gone");
    }
}

size_t onx_op_change(const onx_op *op, char *buf, size_t size)
{
    if (!op)
        return 0;
    const onxi_schema *old = onx_op_older(op);
    writer w = writer_open(buf, size);
    if (!old) {
        put(&w, "new");
        return w.len;
    }
    if (op->flags & ~old->flags & ONX_OP_DEPRECATED)
        put_remark(&w, "deprecated");
    if (old->flags & ~op->flags & ONX_OP_EXPERIMENTAL)
        put_remark(&w, "no longer experimental");
    put_ports_change(&w, "input ", old->inputs, op->inputs);
    put_ports_change(&w, "output ", old->outputs, op->outputs);
    put_attributes_change(&w, old, op);
    put_types_change(&w, old, op);
    const uint32_t body = ONX_OP_FUNCTION | ONX_OP_CONTEXT_FUNCTION;
    if (!(old->flags & body) && op->flags & body)
        put_remark(&w, "now defined by a function");
    if (!w.len)
        put(&w, "other meaning or wording, same interface");
    return w.len;
}

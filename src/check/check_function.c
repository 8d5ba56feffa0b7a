/* check_function.c - rules F: functions of a model, calls of them, and recursion. */
#include "check/check.h"

const onx_rule onxi_check_rules_function[] = {
    { "F-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions; onnx.in.proto: FunctionProto",
      "A function has a non-empty name", "function without name" },
    { "F-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions; reference checker",
      "From ir_version 8 the domain field is present; empty means the default domain", "function without domain" },
    { "F-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions; onnx.in.proto: ModelProto.functions",
      "The triple (domain, name, overload) is unique among the functions of a model; before ir_version 10 the pair (domain, name) is",
      "function c.F twice" },
    { "F-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: ModelProto.functions",
      "Functions do not call themselves, directly, through others or from a nested subgraph", "F calls G, G calls F" },
    { "F-05", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: FunctionProto.opset_import; IR.md: Functions",
      "The function imports every operator set its nodes use; the model's imports do not carry over",
      "body uses Relu, no opset_import" },
    { "F-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: ModelProto.functions, FunctionProto.opset_import",
      "When a function, another function and the model import different versions of a domain, each node of the body resolves to the same operator definition under all of them",
      "Add with function default set 12, model default set 28" },
    { "F-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: FunctionProto.opset_import",
      "A function binds at most one version of each domain", "function imports default set 12 and 28" },
    { "F-08", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions",
      "The domain of a called function is imported by its caller; the version given there stands for the function's version",
      "node `c.F`, domain `c` not imported" },
    { "F-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Names Within a Graph",
      "Function input names are distinct and not empty", "inputs `a`, `a`" },
    { "F-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "reference checker; IR.md: Names Within a Graph",
      "Function output names are distinct", "outputs `b`, `b`" },
    { "F-11", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions, Graphs",
      "Every function output is produced by a node of the body or is an input passed through",
      "output `zz` that no node writes" },
    { "F-12", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions",
      "Body nodes are in topological order and only read function inputs and earlier outputs; the calling graph is not visible",
      "body reads `x` of the main graph" },
    { "F-13", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions, Graphs",
      "Body outputs are in single-assignment form and do not redefine inputs", "two body nodes writing `b`" },
    { "F-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions", "Names in attribute are distinct",
      "`p` twice" },
    { "F-15", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions; onnx.in.proto: FunctionProto",
      "A parameter is listed either without default (attribute) or with default (attribute_proto), not in both",
      "`p` in both lists" },
    { "F-16", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions",
      "Names in attribute_proto are distinct", "attribute_proto `p` twice" },
    { "F-17", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions, Attributes",
      "Each attribute_proto is a well-formed attribute with name, type and value and is not itself a reference",
      "attribute_proto `p` type INT with f set" },
    { "F-18", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Functions",
      "At a call an attribute reference becomes the caller's value, else the default, else the attribute is dropped",
      "a dropped attribute replaced by zero" },
    { "F-19", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions, Nodes",
      "After that substitution every body node still satisfies its operator's signature",
      "call omits `p`, body uses `to = @p` in Cast" },
    { "F-20", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions, Nodes",
      "A call passes at most as many inputs as the function declares; missing trailing ones count as omitted",
      "two inputs to a one-input function" },
    { "F-21", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions, Nodes",
      "A call takes at most as many outputs as the function declares", "two outputs from a one-output function" },
    { "F-22", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Functions, Nodes",
      "A call sets only attributes the function declares, with the type of the default where there is one",
      "attribute `zz` on a call to F" },
    { "F-23", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: FunctionProto.value_info",
      "value_info names of a function are distinct and name values of the function", "value_info for `zz`" },
    { "F-24", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Functions",
      "A function may be polymorphic; its signature has no types and value_info is optional",
      "accept: one function called with float and int64" },
    { "F-25", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Functions",
      "Several overloads of one (domain, name) implement the same specification for different callers",
      "overloads with different numbers of inputs" },
    { "F-26", ONX_MAY, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: ModelProto.functions",
      "What happens when a local function has the name of a standard operator is up to the runtime",
      "function `Relu` of the default domain" },
    { "F-27", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Components; Functions",
      "A runtime may run its own kernel for a function's operator or expand the body", "accept: either way" },
    { "F-28", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "IR.md: Operators",
      "A body node of a domain in which the model defines functions names one of them",
      "body calls `c.H`, not defined" },
    { "F-29", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "onnx.in.proto: Version enum",
      "Below ir_version 8 a model has no functions; if present they are still checked",
      "ir_version 7 with a nameless function" },
    { 0 }
};

/* ---- functions and their imports ---- */

onxi_checked_imports *onxi_callee_imports(onxi_check *k, uint32_t callee)
{
    onxi_check_callee *c = &k->callees[callee];
    if (!c->imports && (c->imports = ONXI_NEW(k->arena, onxi_checked_imports)) != NULL)
        onxi_check_imports_open(k, c->imports, c->f->opset_import, c->f->opset_import_count, false);
    onxi_check_failed(k, c->imports);
    return c->imports;
}

/* ---- how bodies use their parameters (F-19) ---- */

/* A parameter without default, and the parameter of another function that the body passes it to. */
typedef struct handed {
    struct handed *next; /* next with the same receiver */
    uint32_t from;       /* index in the list of all functions' parameters */
} handed;

typedef struct wants {
    onxi_check_callee *callee;
    onxi_binder *binder; /* for its body */
    handed **to;         /* lists by receiver */
} wants;

static void want(onxi_check_callee *c, uint32_t parameter)
{
    if (!c->needs[parameter])
        c->needed[c->needed_count++] = parameter;
    c->needs[parameter] = true;
}

static void hand_on(onxi_check *k, const wants *w, uint32_t parameter, const onxi_bound *b, onx_str attribute)
{
    uint32_t which;
    const onxi_check_callee *c = b->function ? &k->callees[b->function_index] : NULL;
    if (!c || !onxi_check_set_find(c->parameters, attribute, &which) || which & ONXI_PRESET)
        return;
    handed *h = ONXI_NEW(k->arena, handed);
    if (onxi_check_failed(k, h))
        return;
    *h = (handed){ .next = w->to[c->parameter + which], .from = w->callee->parameter + parameter };
    w->to[c->parameter + which] = h;
}

static void find_wants(onxi_check *k, wants *w, onx_node *const *nodes, uint32_t count, uint32_t depth);

static void find_wants_of(onxi_check *k, wants *w, const onx_node *n, uint32_t depth)
{
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        const onx_attribute *a = n->attribute[i];
        onx_str ref = a->extra ? onx_view(onx_attribute_more(a)->ref_attr_name) : onx_str_make(NULL, 0);
        uint32_t graphs, which;
        onx_graph *const *g = onx_attribute_value(a, ONX_SLOT_G, &graphs);
        if (g && *g && depth < k->depth_limit)
            find_wants(k, w, (*g)->node, (*g)->node_count, depth + 1);
        if (!ref.len || !onxi_check_set_find(w->callee->parameters, ref, &which) || which & ONXI_PRESET)
            continue;
        if (onx_attribute_type_name(a->type))
            w->callee->takes[which] = w->callee->takes[which] && w->callee->takes[which] != a->type ? -1 : a->type;
        const onxi_bound *b = onxi_bind(w->binder, n);
        if (onxi_check_failed(k, b))
            return;
        const onxi_attr *row = b->kind == ONXI_BOUND_OPERATOR ? onxi_schema_attr(b->schema, onx_view(a->name)) : NULL;
        if (row && row->required)
            want(w->callee, which);
        hand_on(k, w, which, b, onx_view(a->name));
    }
}

static void find_wants(onxi_check *k, wants *w, onx_node *const *nodes, uint32_t count, uint32_t depth)
{
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i]->attribute_count)
            find_wants_of(k, w, nodes[i], depth);
}

/* A parameter that is passed to a required one is required itself, over any number of calls. */
static void spread_needs(onxi_check *k, handed *const *to, const uint32_t *owner, uint32_t parameters)
{
    uint32_t *todo = ONXI_ARRAY(k->arena, uint32_t, parameters), count = 0;
    if (onxi_check_failed(k, todo))
        return;
    for (uint32_t i = 0; i < parameters; i++) {
        const onxi_check_callee *c = &k->callees[owner[i]];
        if (c->needs[i - c->parameter])
            todo[count++] = i;
    }
    while (count) {
        for (const handed *h = to[todo[--count]], *next; h; h = next) {
            onxi_check_callee *c = &k->callees[owner[h->from]];
            next = h->next;
            if (c->needs[h->from - c->parameter])
                continue;
            want(c, h->from - c->parameter);
            todo[count++] = h->from; /* each parameter is added at most once, so there is room */
        }
    }
}

static void find_needs(onxi_check *k)
{
    uint32_t parameters = 0;
    for (uint32_t i = 0; i < k->callee_count; i++) {
        onxi_check_callee *c = &k->callees[i];
        c->parameter = parameters; /* in total fewer than the bytes of the file */
        parameters += c->f->attribute_count;
        c->needs = ONXI_ARRAY(k->arena, bool, c->f->attribute_count + 1);
        c->takes = ONXI_ARRAY(k->arena, int32_t, c->f->attribute_count + 1);
        c->needed = ONXI_ARRAY(k->arena, uint32_t, c->f->attribute_count + 1);
        if (onxi_check_failed(k, c->needs) || onxi_check_failed(k, c->takes) || onxi_check_failed(k, c->needed))
            return;
    }
    if (!parameters)
        return;
    handed **to = ONXI_ARRAY(k->arena, handed *, parameters);
    uint32_t *owner = ONXI_ARRAY(k->arena, uint32_t, parameters);
    if (onxi_check_failed(k, to) || onxi_check_failed(k, owner))
        return;
    for (uint32_t i = 0; i < k->callee_count; i++) {
        const onx_function *f = k->callees[i].f;
        wants w = { .callee = &k->callees[i], .to = to };
        for (uint32_t j = 0; j < f->attribute_count; j++)
            owner[w.callee->parameter + j] = i;
        if (!f->attribute_count)
            continue;
        onxi_checked_imports *imports = onxi_callee_imports(k, i);
        if (!imports)
            return;
        w.binder = &imports->binder;
        find_wants(k, &w, f->node, f->node_count, 0);
    }
    spread_needs(k, to, owner, parameters);
}

void onxi_check_callees_add(onxi_check *k, onx_function *const *functions, uint32_t count)
{
    if (!count)
        return;
    k->callees = ONXI_ARRAY(k->arena, onxi_check_callee, count);
    k->domains_with_functions = onxi_check_set_new(k);
    if (onxi_check_failed(k, k->callees))
        return;
    k->status = onxi_functions_index(k->arena, functions, count, &k->functions);
    if (k->status != ONX_OK)
        return;
    k->callee_count = count;
    for (uint32_t i = 0; i < count; i++) {
        onxi_check_callee *c = &k->callees[i];
        const onx_function *f = functions[i];
        *c = (onxi_check_callee){ .f = f,
                                  .domain = onxi_domain_plain(onx_view(f->domain)),
                                  .name = onx_view(f->name),
                                  .overload = onx_view(f->overload) };
        onxi_check_set_add(k, k->domains_with_functions, c->domain, i, NULL);
        c->parameters = onxi_check_set_new(k);
        for (uint32_t j = 0; j < f->attribute_count; j++)
            onxi_check_set_add(k, c->parameters, onx_view(f->attribute[j]), j, NULL);
        for (uint32_t j = 0; j < f->attribute_proto_count; j++)
            onxi_check_set_add(k, c->parameters, onx_view(f->attribute_proto[j]->name), j | ONXI_PRESET, NULL);
    }
    find_needs(k);
}

/* ---- calls ---- */

static const char *shown_name(onxi_check *k, const onxi_check_callee *c)
{
    const char *name = onxi_check_quote(k, c->name),
               *domain = c->domain.len ? onxi_check_quote(k, c->domain) : "ai.onnx";
    if (c->overload.len)
        return onxi_check_text(k, "%.90s.%.90s:%.90s", domain, name, onxi_check_quote(k, c->overload)).ptr;
    return onxi_check_text(k, "%.90s.%.90s", domain, name).ptr;
}

static void note_call(onxi_check *k, uint32_t caller, uint32_t callee)
{
    if (!ONXI_CHECK_GROW(k, k->calls, k->call_room, k->call_count + 1))
        return;
    k->calls[k->call_count++] = (uint64_t)caller << 32 | callee;
}

static onx_str similar_parameter(onxi_check *k, const onxi_check_callee *c, onx_str name)
{
    uint32_t best = 3, d;
    onx_str found = { NULL, 0 };
    if (k->hints++ > ONXI_HINTS)
        return found;
    for (uint32_t i = 0; i < c->f->attribute_count; i++)
        if (onxi_check_similar(name, onx_view(c->f->attribute[i]), &d) && d < best) {
            best = d;
            found = onx_view(c->f->attribute[i]);
        }
    for (uint32_t i = 0; i < c->f->attribute_proto_count; i++)
        if (onxi_check_similar(name, onx_view(c->f->attribute_proto[i]->name), &d) && d < best) {
            best = d;
            found = onx_view(c->f->attribute_proto[i]->name);
        }
    return found.len ? onxi_check_text(k, "did you mean %s?", onxi_check_quote(k, found)) : found;
}

/* `which`: the parameter, as in callee->parameters. */
static void check_given_type(onxi_check *k, const onxi_check_at *at, const onxi_check_callee *c, const onx_attribute *a,
                             uint32_t which)
{
    bool preset = (which & ONXI_PRESET) != 0;
    int32_t wanted = preset ? c->f->attribute_proto[which & ~ONXI_PRESET]->type : c->takes[which];
    const char *given_name = onx_attribute_type_name(a->type), *wanted_name = onx_attribute_type_name(wanted);
    if (a->type != wanted && given_name && wanted_name && wanted > 0)
        onxi_check_find(k, at, preset ? "F-22" : "F-19",
                        (onxi_check_detail){ .value = onx_str_of(given_name), .expected = onx_str_of(wanted_name) },
                        preset ? "the attribute has another type than the default of the parameter"
                               : "the attribute has another type than the body of %s takes",
                        shown_name(k, c));
}

/* Reports all parameters that a call omits in one finding, because there may be many of both. */
static void report_left_out(onxi_check *k, const onxi_check_at *at, const onxi_check_callee *c,
                            const onxi_check_set *given, uint32_t count)
{
    uint32_t i = 0;
    while (i + 1 < c->needed_count && onxi_check_set_find(given, onx_view(c->f->attribute[c->needed[i]]), NULL))
        i++;
    const char *name = onxi_check_quote(k, onx_view(c->f->attribute[c->needed[i]]));
    onx_str expected = count > 1 ? onxi_check_text(k, "%s and %u more", name, count - 1) : onx_str_of(name);
    onxi_check_find(k, at, "F-19", (onxi_check_detail){ .expected = expected },
                    "the call leaves out a parameter that the body of %s cannot do without", shown_name(k, c));
}

void onxi_check_call(onxi_check *k, const onxi_check_at *at, const onx_node *n, const onxi_checked_op *op,
                     const onxi_check_scope *scope)
{
    const uint32_t callee = op->bound->function_index;
    const onxi_check_callee *c = &k->callees[callee];
    const onx_function *f = c->f;
    if (scope->function)
        note_call(k, scope->callee, callee);
    if (n->input_count > f->input_count)
        onxi_check_find(k, at, "F-20",
                        (onxi_check_detail){ .value = onxi_check_number(k, n->input_count),
                                             .expected = onxi_check_text(k, "%u at most", f->input_count) },
                        "the call passes more inputs than %s has", shown_name(k, c));
    if (n->output_count > f->output_count)
        onxi_check_find(k, at, "F-21",
                        (onxi_check_detail){ .value = onxi_check_number(k, n->output_count),
                                             .expected = onxi_check_text(k, "%u at most", f->output_count) },
                        "the call takes more outputs than %s has", shown_name(k, c));
    onxi_check_set *given = c->needed_count ? onxi_check_set_new(k) : NULL;
    uint32_t needed = 0;
    for (uint32_t i = 0; i < n->attribute_count; i++) {
        const onx_attribute *a = n->attribute[i];
        onx_str name = onx_view(a->name);
        uint32_t which;
        const onxi_check_at *here = ONXI_AT_ITEM(at, attribute, i, ATTRIBUTE, a);
        bool known = onxi_check_set_find(c->parameters, name, &which);
        if (!known && name.len && !(name.len > 1 && name.ptr[0] == '_' && name.ptr[1] == '_'))
            onxi_check_find(k, here, "F-22",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)),
                                                 .hint = similar_parameter(k, c, name) },
                            "%s has no parameter of that name", shown_name(k, c));
        if (!known)
            continue;
        check_given_type(k, here, c, a, which);
        if (given && !(which & ONXI_PRESET) && c->needs[which])
            needed += onxi_check_set_add(k, given, name, i, NULL);
    }
    if (needed < c->needed_count)
        report_left_out(k, at, c, given, c->needed_count - needed);
}

/* ---- the call graph ---- */

typedef struct calls {
    const uint64_t *edge;
    size_t *first; /* callee_count + 1 */
    size_t *next;  /* the next edge to follow, per function */
    uint32_t *chain, *stack;
    uint8_t *state; /* 0 unvisited, 1 on the stack, 2 done */
} calls;

static void report_cycle(onxi_check *k, const onxi_check_at *at, const calls *c, uint32_t depth, uint32_t back)
{
    enum { DETAILED = 100 }; /* for more findings, the start of the cycle is not searched, because that takes time */
    char text[280];
    size_t n = 0;
    uint32_t start = depth, shown = 0;
    const onxi_check_at *here = ONXI_AT_ITEM(at, functions, back, FUNCTION, k->callees[back].f);
    if (k->call_cycles++ >= DETAILED) {
        onxi_check_find(k, here, "F-04", ONXI_PLAIN, "the function calls itself");
        return;
    }
    while (start && c->stack[start - 1] != back)
        start--;
    for (uint32_t i = start ? start - 1 : 0; i < depth && shown < 4; i++, shown++) {
        onx_str s = onxi_check_text(k, "%.60s -> ", shown_name(k, &k->callees[c->stack[i]]));
        if (n + s.len < sizeof text) {
            memcpy(text + n, s.ptr, s.len);
            n += s.len;
        }
    }
    uint32_t length = depth - (start ? start - 1 : 0);
    onx_str path = onxi_check_text(k, "%.*s%s%.60s", (int)n, text, length > shown ? "... -> " : "",
                                   shown_name(k, &k->callees[back]));
    onxi_check_find(k, here, "F-04", (onxi_check_detail){ .value = path }, "the function calls itself");
}

void onxi_check_call_cycles(onxi_check *k, const onxi_check_at *at)
{
    uint32_t n = k->callee_count, longest = 0, longest_at = 0;
    if (!k->call_count || !n || k->status != ONX_OK)
        return;
    calls c = { .edge = k->calls,
                .first = ONXI_ARRAY(k->arena, size_t, (size_t)n + 1),
                .next = ONXI_ARRAY(k->arena, size_t, n),
                .chain = ONXI_ARRAY(k->arena, uint32_t, n),
                .stack = ONXI_ARRAY(k->arena, uint32_t, n),
                .state = ONXI_ARRAY(k->arena, uint8_t, n) };
    if (onxi_check_failed(k, c.first) || onxi_check_failed(k, c.next) || onxi_check_failed(k, c.chain) ||
        onxi_check_failed(k, c.stack) || onxi_check_failed(k, c.state))
        return;
    size_t e = 0; /* calls were recorded function by function */
    for (uint32_t f = 0; f < n; f++) {
        c.first[f] = c.next[f] = e;
        while (e < k->call_count && (uint32_t)(k->calls[e] >> 32) == f)
            e++;
    }
    c.first[n] = e;
    for (uint32_t root = 0; root < n; root++) {
        uint32_t depth = 0;
        if (c.state[root])
            continue;
        c.stack[depth++] = root;
        c.state[root] = 1;
        while (depth) {
            uint32_t f = c.stack[depth - 1];
            if (c.next[f] < c.first[f + 1]) {
                uint32_t g = (uint32_t)c.edge[c.next[f]++];
                if (c.state[g] == 1)
                    report_cycle(k, at, &c, depth, g);
                else if (!c.state[g]) {
                    c.state[g] = 1;
                    c.stack[depth++] = g;
                } else if (c.chain[g] + 1 > c.chain[f])
                    c.chain[f] = c.chain[g] + 1;
                continue;
            }
            c.state[f] = 2;
            if (c.chain[f] > longest) {
                longest = c.chain[f];
                longest_at = f;
            }
            if (--depth && c.chain[f] + 1 > c.chain[c.stack[depth - 1]])
                c.chain[c.stack[depth - 1]] = c.chain[f] + 1;
        }
    }
    if (longest >= k->depth_limit) /* later passes recurse over calls as deeply; 100 unless the caller allows more */
        onxi_check_find(k, ONXI_AT_ITEM(at, functions, longest_at, FUNCTION, k->callees[longest_at].f), "M-16",
                        (onxi_check_detail){ .value = onxi_check_number(k, (int64_t)longest + 1),
                                             .expected = onxi_check_text(k, "%u at most", k->depth_limit),
                                             .hint = onx_str_of("a higher limit on depth allows longer chains") },
                        "functions call each other in too long a chain");
}

/* ---- checking one function ---- */

static void check_parameters(onxi_check *k, const onxi_check_at *at, const onx_function *f)
{
    onxi_check_set *plain = onxi_check_set_new(k), *preset = onxi_check_set_new(k);
    for (uint32_t i = 0; i < f->attribute_count; i++) {
        onx_str name = onx_view(f->attribute[i]);
        onxi_check_utf8(k, ONXI_AT_INDEX(at, attribute, i), name);
        if (!onxi_check_set_add(k, plain, name, i, NULL))
            onxi_check_find(k, ONXI_AT_INDEX(at, attribute, i), "F-14",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "the parameter is listed twice");
    }
    if (f->attribute_proto_count)
        onxi_check_gate(k, at, "V-13", "attribute_proto", 9);
    for (uint32_t i = 0; i < f->attribute_proto_count; i++) {
        const onx_attribute *a = f->attribute_proto[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, attribute_proto, i, ATTRIBUTE, a);
        onx_str name = onx_view(a->name);
        uint32_t count;
        uint64_t before = k->total[ONX_ERROR];
        onxi_check_attribute(k, here, a, NULL, NULL);
        onxi_check_utf8(k, ONXI_AT(here, name), name);
        if (!onxi_check_set_add(k, preset, name, i, NULL))
            onxi_check_find(k, here, "F-16", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "the parameter has a default already");
        if (onxi_check_set_find(plain, name, NULL))
            onxi_check_find(k, here, "F-15", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                            "the parameter is listed without a default as well");
        if (a->extra && onx_view(onx_attribute_more(a)->ref_attr_name).len)
            onxi_check_find(k, here, "F-17", ONXI_PLAIN, "the default of a parameter is a reference");
        else if (k->total[ONX_ERROR] == before && onxi_attribute_kind_of(a->type)->slot &&
                 !onx_attribute_value(a, onxi_attribute_kind_of(a->type)->slot, &count) && a->type <= ONX_ATTR_STRING)
            onxi_check_find(k, here, "F-17", (onxi_check_detail){ .severity = ONX_RULE_WARNING },
                            "the default of a parameter has no value");
    }
}

static void check_function_values(onxi_check *k, const onxi_check_at *at, const onx_function *f,
                                  onxi_check_scope *scope)
{
    uint32_t token = onxi_check_token(k);
    if (f->value_info_count)
        onxi_check_gate(k, at, "V-18", "value_info of a function", 10);
    for (uint32_t i = 0; i < f->output_count; i++) {
        const onxi_check_at *here = ONXI_AT_INDEX(at, output, i);
        onx_str name = onx_view(f->output[i]);
        uint32_t id = name.len ? onxi_check_name_intern(k, here, f->output[i]) : UINT32_MAX;
        if (id == UINT32_MAX)
            continue;
        onxi_check_meaning *m = &k->names.meaning[id];
        const char *text = onxi_check_quote(k, name);
        if (m->mark == token)
            onxi_check_find(k, here, "F-10", (onxi_check_detail){ .value = onx_str_of(text) },
                            "\"%s\" is listed twice among the outputs", text);
        m->mark = token;
        if (onxi_check_owns(k, scope, id))
            m->flags |= ONXI_NAME_USED;
        else if (!onxi_check_name_awaited(m))
            onxi_check_find(k, here, "F-11", (onxi_check_detail){ .value = onx_str_of(text) },
                            "no node of the body produces \"%s\"", text);
    }
    token = onxi_check_token(k);
    for (uint32_t i = 0; i < f->value_info_count && !k->quick; i++) {
        const onx_value_info *v = f->value_info[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, value_info, i, VALUE_INFO, v);
        onxi_check_value_info(k, here, v, ONXI_ROLE_FUNCTION, "F-23");
        onx_str name = onx_view(v->name);
        uint32_t id = name.len ? onxi_check_name_intern(k, here, v->name) : UINT32_MAX;
        if (id == UINT32_MAX)
            continue;
        onxi_check_meaning *m = &k->names.meaning[id];
        if (m->mark == token)
            onxi_check_find(k, here, "F-23", ONXI_PLAIN, "the value has an entry already");
        else if (!onxi_check_owns(k, scope, id))
            onxi_check_find(k, here, "F-23", ONXI_PLAIN, "the function has no value of that name");
        m->mark = token;
    }
}

static void check_identity(onxi_check *k, const onxi_check_at *at, const onx_function *f)
{
    onx_str name = onx_view(f->name), domain = onxi_domain_plain(onx_view(f->domain));
    onxi_check_utf8(k, ONXI_AT(at, name), name);
    onxi_check_utf8(k, ONXI_AT(at, domain), domain);
    onxi_check_utf8(k, ONXI_AT(at, overload), onx_view(f->overload));
    if (!name.len && k->doc->kind != ONX_KIND_OPERATOR_SET) /* there OS-13 of op/ reports it */
        onxi_check_find(k, at, "F-01", ONXI_PLAIN, "the function has no name");
    if (!ONX_HAS(function, f, domain) && k->ir_version >= 8)
        onxi_check_find(k, at, "F-02", (onxi_check_detail){ .expected = onx_str_of("a domain, empty for ai.onnx") },
                        "the function has no domain");
    if (onx_view(f->overload).len)
        onxi_check_gate(k, ONXI_AT(at, overload), "V-16", "overload", 10);
    if (name.len && onxi_check_domain_is_standard(domain) && onxi_schema_newest(domain, name))
        onxi_check_find(k, at, "F-26", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, name)) },
                        "the function has the name of a standard operator");
    for (const onx_unknown *u = f->extra ? f->extra->unknown : NULL; u; u = u->next)
        if ((u->number == 2 || u->number == 3) && k->ir_version >= 8)
            onxi_check_find(k, at, "V-12", (onxi_check_detail){ .value = onxi_check_text(k, "field %u", u->number) },
                            "%s of functions was withdrawn with IR version 8",
                            u->number == 2 ? "since_version" : "status");
    onxi_check_doc_string(k, at, onx_view(f->doc_string));
    if (f->metadata_props_count)
        onxi_check_gate(k, at, "V-17", "metadata_props of a function", 10);
    onxi_check_metadata(k, at, f->metadata_props, f->metadata_props_count, false);
}

void onxi_check_function(onxi_check *k, const onxi_check_at *at, const onx_function *f, uint32_t callee)
{
    check_identity(k, at, f);
    onxi_check_imports(k, at, f->opset_import, f->opset_import_count, true);
    onxi_checked_imports *imports = onxi_callee_imports(k, callee);
    if (!imports)
        return;
    k->default_imports = imports;
    check_parameters(k, at, f);
    k->default_imports = NULL;
    onxi_check_scope scope = { .role = ONXI_ROLE_FUNCTION,
                               .root = ONXI_ROLE_FUNCTION,
                               .imports = imports,
                               .function = f,
                               .callee = callee,
                               .names = true,
                               .nodes = f->node,
                               .node_count = f->node_count };
    onxi_check_enter(k, &scope, NULL);
    for (uint32_t i = 0; i < f->input_count; i++) {
        const onxi_check_at *here = ONXI_AT_INDEX(at, input, i);
        onx_str name = onx_view(f->input[i]);
        if (!name.len)
            onxi_check_find(k, here, "F-09", ONXI_PLAIN, "the input has no name");
        else
            onxi_check_define(k, here, &scope, onxi_check_name_intern(k, here, f->input[i]), ONXI_NAME_INPUT, i);
    }
    onxi_check_nodes(k, at, &scope);
    check_function_values(k, at, f, &scope);
    onxi_check_leave(k, at, &scope);
    onxi_check_imports_used(k, at, imports);
}

void onxi_check_functions(onxi_check *k, const onxi_check_at *at, onx_function *const *functions, uint32_t count)
{
    if (!count)
        return;
    onxi_check_gate(k, ONXI_AT(at, functions), "V-10", "functions", 8);
    onxi_check_set *pairs = onxi_check_set_new(k);
    for (uint32_t i = 0; i < count && k->status == ONX_OK; i++) {
        const onx_function *f = functions[i];
        const onxi_check_callee *c = &k->callees[i];
        const onxi_check_at *here = ONXI_AT_ITEM(at, functions, i, FUNCTION, f);
        uint32_t first = i;
        (void)onxi_functions_find(&k->functions, c->domain, c->name, c->overload, &first);
        if (c->name.len && first != i && k->doc->kind != ONX_KIND_OPERATOR_SET) /* OS-09 */
            onxi_check_find(k, here, "F-03",
                            (onxi_check_detail){ .hint = onxi_check_text(k, "function %u is the same", first) },
                            "%s is defined twice", shown_name(k, c));
        onx_bytes key;
        char buf[520];
        if (c->domain.len < 256 && c->name.len < 256) {
            size_t n = c->domain.len;
            if (n)
                memcpy(buf, c->domain.ptr, n);
            buf[n++] = 0;
            if (c->name.len)
                memcpy(buf + n, c->name.ptr, c->name.len);
            if (onx_arena_keep(k->arena, onx_str_make(buf, n + c->name.len), &key) != ONX_OK)
                return;
            if (!onxi_check_set_add(k, pairs, onx_view(key), i, &first)) {
                if (k->ir_version < 10 && !onx_str_equal(c->overload, k->callees[first].overload))
                    onxi_check_find(k, here, "F-03", ONXI_PLAIN,
                                    "before IR version 10 overloads do not tell functions apart");
                else if (functions[first]->input_count != f->input_count)
                    onxi_check_find(
                        k, here, "F-25",
                        (onxi_check_detail){ .value = onxi_check_number(k, f->input_count),
                                             .expected = onxi_check_number(k, functions[first]->input_count) },
                        "overloads of one function have different numbers of inputs");
            }
        }
        onxi_check_function(k, here, f, i);
    }
}

/* run_coverage.h - records which versions of which operators the cases have run on which element types, and reports
 * those that the kernels claim but no case has run. Include after cmocka.h. */
#ifndef TESTS_RUN_COVERAGE_H
#define TESTS_RUN_COVERAGE_H

#include <onx/infer.h>

#include "kernel/kernel.h"
#include "op/op.h"

/* One version of an operator that runs, through a kernel or through the operators that it is made of. */
typedef struct run_claim {
    const onxi_schema *schema;
    int port;         /* whose types count: an input, or ONX_OUTPUT(i) */
    uint32_t claimed; /* bits of element types; 0: the port holds no tensors, being run is all there is */
    uint32_t seen;
    bool ran;
} run_claim;

typedef struct run_coverage {
    run_claim claims[1024];
    size_t count;
} run_coverage;

static inline uint32_t run_types_of_port(const onxi_schema *s, int port)
{
    const onxi_port *p = port >= 0 ? onx_op_input(s, (uint32_t)port) : onx_op_output(s, (uint32_t)(-1 - port));
    if (!p)
        return 0;
    for (const onxi_type_constraint *c = s->types; c && c->name; c++)
        if (strcmp(c->name, p->type) == 0)
            return c->set.tensor;
    if (strncmp(p->type, "tensor(", 7) != 0)
        return 0;
    return ONX_DTYPE_BIT(onx_dtype_find(onx_str_make(p->type + 7, strlen(p->type) - 8)));
}

/* The plain rows that serve the version; *port_out and the types of the first. */
static inline bool run_claim_of(const onxi_kernel_index *index, onx_arena *arena, const onxi_schema *s, run_claim *out)
{
    uint32_t count, dtypes = 0;
    bool any = false;
    const onx_kernel *const *rows;
    onxi_kernel_wanted want = { .domain = onx_str_of(onxi_schema_domain(s)),
                                .name = onx_str_of(s->name),
                                .since = s->since };
    want.op = onxi_operator_id(onxi_operator_find(want.domain, want.name));
    assert_int_equal(onxi_kernel_candidates(index, arena, &want, &rows, &count), ONX_OK);
    *out = (run_claim){ .schema = s, .port = onx_op_input(s, 0) ? ONX_INPUT(0) : ONX_OUTPUT(0) };
    if (!count && !onx_op_is_composed(s))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        any = any || !rows[i]->dtypes;
        dtypes |= rows[i]->dtypes;
        if (rows[i]->dtypes)
            out->port = rows[i]->dtype_from;
    }
    out->claimed = run_types_of_port(s, out->port);
    if (count && !any)
        out->claimed &= dtypes;
    if (want.op > ONXI_ID_Momentum) /* of a domain beyond the standard: each has to run, in types that others compute */
        out->claimed = 0;
    return true;
}

static inline void run_coverage_make(run_coverage *c)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_arena *arena;
    assert_int_equal(onx_arena_new(cx, &arena), ONX_OK);
    const onxi_kernel_index *index;
    c->count = 0;
    assert_int_equal(onxi_kernel_index_new(arena, NULL, true, 0, &index), ONX_OK);
    for (uint32_t i = 0; i < onx_op_count(); i++)
        for (const onx_op *op = onx_op_get(i); op; op = onx_op_older(op)) {
            assert_true(c->count < sizeof c->claims / sizeof *c->claims);
            c->count += run_claim_of(index, arena, op, &c->claims[c->count]);
        }
    onx_arena_free(arena);
    onx_ctx_free(cx);
}

static inline int run_dtype_of(onx_infer *infer, const onx_graph *g, onx_str name)
{
    const onx_type *type = name.len ? onx_infer_type(infer, g, name) : NULL;
    return type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->elem_type : 0;
}

static inline void run_coverage_graph(run_coverage *c, onx_infer *infer, const onx_model *m, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->node_count; i++) {
        const onx_node *n = g->node[i];
        const onx_op *op = NULL;
        for (uint32_t k = 0; k < m->opset_import_count && !op; k++)
            if (onx_str_equal(onxi_domain_plain(onx_view(m->opset_import[k]->domain)),
                              onxi_domain_plain(onx_view(n->domain))))
                op = onx_op_find(onx_view(n->domain), onx_view(n->op_type), m->opset_import[k]->version);
        for (size_t k = 0; k < c->count; k++) {
            run_claim *claim = &c->claims[k];
            if (claim->schema != op)
                continue;
            uint32_t at = (uint32_t)(claim->port >= 0 ? claim->port : -1 - claim->port);
            int dtype = 0;
            if (claim->port >= 0 && at < n->input_count)
                dtype = run_dtype_of(infer, g, onx_view(n->input[at]));
            else if (claim->port < 0 && at < n->output_count)
                dtype = run_dtype_of(infer, g, onx_view(n->output[at]));
            claim->ran = true;
            claim->seen |= dtype ? ONX_DTYPE_BIT(dtype) : 0;
        }
        for (uint32_t k = 0; k < n->attribute_count; k++) {
            uint32_t count;
            onx_graph *const *inner = onx_attribute_value(n->attribute[k], ONX_SLOT_G, &count);
            if (inner && *inner)
                run_coverage_graph(c, infer, m, *inner);
        }
    }
}

/* Every node of a model that gave the right numbers. */
static inline void run_coverage_add(run_coverage *c, onx_ctx *cx, onx_doc *doc)
{
    onx_infer *infer = NULL;
    if (onx_infer_new(cx, doc, NULL, &infer) == ONX_OK)
        run_coverage_graph(c, infer, onx_doc_model(doc), onx_doc_model(doc)->graph);
    onx_infer_free(infer);
    onx_diag_clear(cx);
}

/* Names what no case has run; returns how many pairs of version and type that is. */
static inline size_t run_coverage_report(const run_coverage *c)
{
    size_t missing = 0, pairs = 0;
    for (size_t i = 0; i < c->count; i++) {
        const run_claim *claim = &c->claims[i];
        uint32_t left = claim->claimed & ~claim->seen;
        for (int d = 1; d < ONX_DTYPE_COUNT; d++)
            pairs += claim->claimed >> d & 1;
        pairs += !claim->claimed;
        if (claim->claimed ? !left : claim->ran)
            continue;
        print_message("no case runs %s%s%s-%d", onx_op_domain(claim->schema), *onx_op_domain(claim->schema) ? "." : "",
                      claim->schema->name, claim->schema->since);
        missing += !claim->claimed;
        for (int d = 1; d < ONX_DTYPE_COUNT; d++)
            if (left >> d & 1) {
                print_message(" %s", onx_dtype_name(d));
                missing++;
            }
        print_message("\n");
    }
    print_message("%zu of %zu pairs of operator version and element type have numbers\n", pairs - missing, pairs);
    return missing;
}

#endif

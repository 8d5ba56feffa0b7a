/* test_gen_grad.c - the gradient of every version of every operator, on models from the recipes of tests/gen, compared
 * with finite differences; for smooth operators also the second derivative. */
#include "grad_differences.h"
#include "grad_texts.h"

enum { SEGMENTS = 3 };

/* ---- one recipe ---- */

/* Is input i of the node one that the standard counts as not differentiable? */
static bool is_nondiff(const gen_node *node, onx_str name)
{
    if (is_beyond_standard(node->schema))
        return false;
    for (uint32_t k = 0; k < node->operand_count; k++)
        if (onx_str_is(name, node->operands[k].name)) {
            const onxi_port *port = onxi_port_at(
                onxi_schema_newest(onx_str_of(onxi_schema_domain(node->schema)), onx_str_of(node->schema->name))
                    ->inputs,
                k);
            return port && port->flags & ONXI_PORT_NONDIFF;
        }
    return false;
}

static bool open_point(onx_ctx *cx, const onx_session *s, const gen_node *node, int domain, point *p)
{
    memset(p, 0, sizeof *p);
    p->count = onx_session_input_count(s);
    for (uint32_t i = 0; i < p->count && i < ROOM; i++)
        for (uint32_t k = 0; k < node->operand_count && !p->values[i]; k++)
            if (onx_str_is(onx_session_input(s, i).name, node->operands[k].name)) {
                if (gen_value(cx, &node->operands[k], &p->values[i]) != ONX_OK)
                    return false;
                for (uint64_t e = 0; is_real(p->values[i]) && e < p->values[i]->count; e++)
                    set(p->values[i], e, moved(get(p->values[i], e), e + 7 * i, domain));
                p->wanted[i] = is_real(p->values[i]) && !is_nondiff(node, onx_session_input(s, i).name);
                p->coarse |= p->wanted[i] && !is_double(p->values[i]);
            }
    return p->count <= ROOM;
}

/* The real outputs at a point where all of them are numbers. */
static bool search_outputs(trial *t, const gen_node *node)
{
    onx_session *s = session_of(t->cx, t->doc);
    bool good = false;
    for (int domain = 0; s && domain < 4 && !good; domain++) {
        close_point(&t->at);
        if (!open_point(t->cx, s, node, domain, &t->at))
            break;
        good = take_outputs(t, s, node->schema);
    }
    onx_session_free(s);
    return good;
}

/* A dry run does not look at what bodies that are taken on the way are made of. */
static bool can_be_newer(onx_ctx *cx, onx_doc *doc, const onx_retarget_options *options)
{
    onx_retarget_options really = *options;
    onx_doc *copy = copy_of(cx, doc);
    really.dry_run = false;
    const bool can = copy && onx_retarget(cx, copy, &really) == ONX_OK;
    onx_doc_free(copy);
    return can;
}

/* The loss is of double: Cast has its types as numbers from version 6 on. */
static bool cast_can_be_written(trial *t, const onxi_schema *schema)
{
    const onx_opset_version version = { { 0 }, 6 };
    const onx_retarget_options up = { .opset = &version, .opset_count = 1 };
    return schema->domain || schema->since >= 6 || !t->at.coarse || onx_retarget(t->cx, t->doc, &up) == ONX_OK;
}

/* The node gets its inputs of real numbers from nodes, as in the middle of a network. */
static bool put_nodes_before(trial *t)
{
    onx_arena *arena = onx_doc_arena(t->doc);
    onx_graph *graph = onx_doc_model(t->doc)->graph;
    for (uint32_t i = 0; i < graph->input_count && i < ROOM; i++) {
        char name[80], made[96];
        if (!t->at.wanted[i])
            continue;
        snprintf(name, sizeof name, "%.*s", ONX_ARG(onx_view(graph->input[i]->name)));
        snprintf(made, sizeof made, "%s_made", name);
        for (uint32_t n = 0; n < graph->node_count; n++)
            for (uint32_t k = 0; k < graph->node[n]->input_count; k++)
                if (onx_str_is(onx_view(graph->node[n]->input[k]), name) &&
                    onx_arena_keep(arena, onx_str_of(made), &graph->node[n]->input[k]) != ONX_OK)
                    return false;
        onx_node *node = onx_graph_add_node(arena, graph, "Identity", name, made);
        if (!node)
            return false;
        memmove(graph->node + 1, graph->node, (graph->node_count - 1) * sizeof *graph->node);
        graph->node[0] = node;
    }
    return true;
}

typedef enum outcome { PASSED, FAILED, NOT_REAL } outcome;

static outcome try_recipe(onx_ctx *cx, const onxi_schema *schema, const gen_recipe *recipe, uint64_t seed, bool twice,
                          tally *sum, char *why, size_t size)
{
    trial *t = calloc(1, sizeof *t);
    gen_node node;
    const gen_choice choice = { .seed = seed, .vary = seed > 1, .type = { "*", ONX_DOUBLE } };
    outcome result = NOT_REAL;
    if (!t)
        return FAILED;
    t->cx = cx;
    t->checkpoint = seed > 1 ? SEGMENTS : 0;
    if (gen_node_make(schema, recipe, &choice, &node) && gen_model(cx, &node, NULL, NULL, &t->doc) == ONX_OK) {
        bool real = false, empty = false;
        const onx_opset_version version = { { 0 }, ONXI_GRAD_OPSET };
        const onx_retarget_options up = { .opset = &version, .opset_count = 1, .dry_run = true };
        const bool can = schema->since >= ONXI_GRAD_OPSET || schema->domain || can_be_newer(cx, t->doc, &up);
        if (can && search_outputs(t, &node) && t->count) {
            for (uint32_t i = 0; i < t->at.count; i++) {
                real |= t->at.wanted[i];
                empty |= t->at.values[i] && !t->at.values[i]->count;
            }
        }
        if (real && !empty) {
            result = FAILED;
            snprintf(why, size, "no memory");
            if (cast_can_be_written(t, schema) && put_nodes_before(t) &&
                add_loss(t->doc, t->names, t->values, t->count, "loss") && check_order(t, "loss", sum, why, size))
                result = PASSED;
        }
        forget_outputs(t);
        if (result == PASSED && twice && find_outputs(t, t->doc) && t->count > 1) {
            uint32_t from = 0; /* the gradients stand behind the loss */
            while (from < t->count && strcmp(t->names[from], "loss") != 0)
                from++;
            tally second = { 0 };
            t->checkpoint = ONX_GRAD_CHECKPOINT_SQRT;
            if (from + 1 < t->count) {
                result = FAILED;
                if (add_loss(t->doc, t->names + from + 1, t->values + from + 1, t->count - from - 1, "loss2") &&
                    check_order(t, "loss2", &second, why, size))
                    result = PASSED;
                if (result == FAILED)
                    memmove(why + 8, why, size - 9), memcpy(why, "second: ", 8);
                sum->kinks += second.kinks;
                sum->compared += second.compared;
            }
            forget_outputs(t);
        }
    }
    onx_diag_clear(cx);
    close_point(&t->at);
    onx_doc_free(t->doc);
    free(t);
    return result;
}

/* Does the body of an operator round to numbers of few bits? The derivative of that is zero by rule, and that of its
 * scale, which differences see, too. */
static bool rounds(const onxi_schema *schema)
{
    for (const onxi_body_part *p = schema->body_parts; p && p->nodes; p++)
        if (strstr(p->nodes, "DynamicQuantizeLinear ") || strstr(p->nodes, "= QuantizeLinear "))
            return true;
    return false;
}

/* Is the body made of operators of the domain that only a kernel runs? They have no gradient. */
static bool needs_kernel(const onxi_schema *schema)
{
    static const char prefix[] = "com.microsoft.";
    for (const onxi_body_part *p = schema->body_parts; p && p->nodes; p++)
        for (const char *at = p->nodes; (at = strstr(at, prefix)) != NULL;) {
            at += sizeof prefix - 1;
            const onxi_schema *used =
                onxi_schema_newest(onx_str_of("com.microsoft"), onx_str_make(at, strcspn(at, " <(")));
            if (used && used != schema && (!onxi_schema_is_composed(used) || needs_kernel(used)))
                return true;
        }
    return false;
}

/* The reason that the table of rules gives for an operator that has none; NULL: it has one. */
static const char *why_without(uint32_t op)
{
    for (uint32_t i = 0; i < onxi_grad_rule_count; i++)
        if (onxi_grad_rules[i].op == op && onxi_grad_rules[i].kind == ONXI_GRAD_NONE)
            return onxi_grad_rules[i].text;
    return NULL;
}

/* Does one of the texts test the operator? */
static bool in_texts(const char *name)
{
    char node[64];
    snprintf(node, sizeof node, "= %s ", name);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(texts[i], node))
            return true;
    return false;
}

static void test_gen_grad__every_version_agrees_with_differences(void **state)
{
    (void)state;
    unsigned failed = 0, passed = 0, other = 0;
    tally sum = { 0 };
    char why[400];
    const char *only = getenv("ONX_TEST_OPERATOR");
    static unsigned agreed[ONXI_ID_END];
    for (uint32_t i = 0; i < onxi_operator_count; i++) {
        const bool standard = onxi_operator_is_standard((onxi_op_id)(i + 1));
        onx_ctx *cx = onx_ctx_new(NULL);
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            if (schema->flags & ONXI_OP_DEPRECATED || gen_lacks_library(schema->name) ||
                (only && strcmp(only, schema->name) != 0))
                continue;
            if (!standard && (!onxi_schema_is_composed(schema) || rounds(schema) || needs_kernel(schema)))
                continue; /* operators of other domains have no rules but those of their bodies */
            const gen_recipe *recipe;
            for (uint32_t n = 0; (recipe = gen_recipe_for(schema, n)) != NULL; n++)
                for (uint64_t seed = 1; seed < 4; seed++) {
                    tally one = { 0 };
                    snprintf(why, sizeof why, "?");
                    const outcome o = try_recipe(cx, schema, recipe, seed, seed == 1, &one, why, sizeof why);
                    const bool expected = why_without(i + 1) != NULL;
                    passed += o == PASSED;
                    agreed[i + 1] += o == PASSED;
                    other += o == NOT_REAL;
                    sum.compared += one.compared;
                    sum.kinks += one.kinks;
                    sum.worst = one.worst > sum.worst ? one.worst : sum.worst;
                    sum.worst_rough = one.worst_rough > sum.worst_rough ? one.worst_rough : sum.worst_rough;
                    if (o == FAILED && !expected) {
                        failed++;
                        print_error("%s-%d <%s> %s (seed %d): %s\n", schema->name, schema->since, recipe->attributes,
                                    recipe->operands, (int)seed, why);
                        break;
                    }
                }
        }
        onx_ctx_free(cx);
    }
    for (uint32_t i = 0; i < onxi_operator_count && !only; i++)
        if (why_without(i + 1))
            print_message("%s has no gradient: %s\n", onxi_operators[i].name, why_without(i + 1));
    unsigned others = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        others += agreed[i + 1] && !onxi_operator_is_standard((onxi_op_id)(i + 1));
    print_message("%u operators of other domains have the gradients of their bodies\n", others);
    assert_true(only || !onxi_domain_newest(onx_str_of("com.microsoft")) || others > 30);
    print_message("Dropout is tested where it drops nothing: it draws other numbers in every run\n");
    print_message(
        "%u models agree, %u elements compared, %u at kinks left out, largest relative error %.2g, of numbers of float %.2g; %u models not of real numbers\n",
        passed, sum.compared, sum.kinks, sum.worst, sum.worst_rough, other);
    assert_int_equal(failed, 0);
    for (uint32_t i = 0; i < onxi_grad_rule_count && !only; i++) {
        const onxi_grad_rule *rule = &onxi_grad_rules[i];
        const bool known =
            rule->kind == ONXI_GRAD_PART || rule->kind == ONXI_GRAD_LOWER || rule->kind == ONXI_GRAD_CODE;
        if (known && in_texts(onxi_operators[rule->op - 1].name))
            continue;
        if (known && !agreed[rule->op]++) {
            print_error("no model has tested the gradient of %s\n", onxi_operators[rule->op - 1].name);
            failed++;
        }
    }
    if (!only) {
        assert_int_equal(failed, 0);
        assert_true(passed > 400);
        assert_true(sum.compared > 10 * sum.kinks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_grad__every_version_agrees_with_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

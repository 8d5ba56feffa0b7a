/* test_gen_types.c - every version of every operator with every element type that its row allows: plain and fast
 * kernels agree, inference and runs agree, and narrow floats agree with double. Counts which kernel rows ran with which
 * of the types that they claim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onx/tensor.h>

#include "gen/gen.h"
#include "kernel/kernel.h"
#include "share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- which kernels ran with which types ---- */

enum { MOST_ROWS = 2048 };
typedef struct coverage {
    const onx_kernel *row[MOST_ROWS];
    uint32_t claimed[MOST_ROWS], ran[MOST_ROWS];
    size_t count;
} coverage;

static bool serves(const onx_kernel *k, const onxi_schema *schema)
{
    return strcmp(k->op, schema->name) == 0 && strcmp(k->domain ? k->domain : "", onxi_schema_domain(schema)) == 0;
}

/* The highest version of rows that is not above that of the schema row. */
static int32_t version_in_force(const onxi_schema *schema)
{
    int32_t newest = 0;
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++)
            if (serves(k, schema) && k->since <= schema->since && k->since > newest)
                newest = k->since;
    return newest;
}

/* The types of the operand by which a row is chosen, as the schema allows them. */
static uint32_t allowed(const onx_kernel *k, const onxi_schema *schema)
{
    const onxi_port *port = k->dtype_from >= 0 ? onxi_port_at(schema->inputs, (uint32_t)k->dtype_from)
                                               : onxi_port_at(schema->outputs, (uint32_t)(-1 - k->dtype_from));
    if (!port)
        port = onxi_port_at(schema->outputs, 0);
    const onxi_type_constraint *c = port ? onxi_schema_type(schema, port->type) : NULL;
    if (c)
        return c->set.tensor;
    const char *open = port ? strchr(port->type, '(') : NULL;
    onx_dtype only = open ? onx_dtype_find(onx_str_make(open + 1, strcspn(open + 1, ")"))) : ONX_UNDEFINED;
    return only ? ONX_DTYPE_BIT(only) : 0;
}

static void list_claims(coverage *c)
{
    for (size_t t = 0; onxi_kernel_tables[t]; t++)
        for (const onx_kernel *k = onxi_kernel_tables[t]; k->op; k++) {
            if (!onxi_isa_takes(onxi_isa_best(), k))
                continue; /* not on this processor */
            assert_true(c->count < MOST_ROWS);
            c->row[c->count++] = k;
        }
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (const onxi_schema *schema = onxi_operators[i].rows; schema->name; schema++) {
            const int32_t version = version_in_force(schema);
            for (size_t r = 0; r < c->count && !(schema->flags & ONXI_OP_DEPRECATED); r++)
                if (c->row[r]->since == version && serves(c->row[r], schema))
                    c->claimed[r] |= allowed(c->row[r], schema) & (c->row[r]->dtypes ? c->row[r]->dtypes : UINT32_MAX);
        }
}

static int type_by(const onx_kernel *k, const gen_node *node, const gen_run *run)
{
    if (k->dtype_from >= 0 && (uint32_t)k->dtype_from < node->operand_count)
        return node->operands[k->dtype_from].kind == GEN_TENSOR ? (int)node->operands[k->dtype_from].dtype
                                                                : ONX_UNDEFINED;
    uint32_t output = k->dtype_from >= 0 ? 0 : (uint32_t)(-1 - k->dtype_from);
    return output < run->count && run->outputs[output] ? run->outputs[output]->dtype : ONX_UNDEFINED;
}

/* The rows that may have done the node. Without an event it was done while planning, by a plain kernel. */
static void note_run(coverage *c, const gen_node *node, const gen_run *run)
{
    const char *variant = run->events ? run->variant[0] : "plain";
    const int32_t version = version_in_force(node->schema);
    for (size_t r = 0; r < c->count && run->status == ONX_OK; r++) {
        const onx_kernel *k = c->row[r];
        if (k->since != version || !serves(k, node->schema) || strcmp(onxi_kernel_variant(k), variant) != 0)
            continue;
        int dtype = type_by(k, node, run);
        if (dtype && (!k->dtypes || k->dtypes & ONX_DTYPE_BIT(dtype)))
            c->ran[r] |= ONX_DTYPE_BIT(dtype);
    }
}

/* ---- which types no kernel takes ---- */

/* Types that a schema allows and that nothing runs: every pair of these, and no other. */
static const struct {
    const char *op, *constraint;
    onx_dtype dtype;
    const char *why;
} unserved[] = {
    { "Col2Im", "T", ONX_STRING, "the standard allows text, which cannot be added up" },
    { "ScatterElements", "T", ONX_STRING, "likewise, with a reduction" },
    { "ScatterND", "T", ONX_STRING, "likewise" },
    { "GridSample", "T1", ONX_STRING, "likewise: text has no mean; mode nearest takes it" },
    { "Resize", "T1", ONX_STRING, "likewise" },
    { "GroupQueryAttention", "T_CACHE", ONX_UINT8, "the recipes have no quantized caches, which need scales" },
    { "GroupQueryAttention", "T_CACHE", ONX_INT8, "likewise" },
    { "GroupQueryAttention", "T_CACHE", ONX_FLOAT8E4M3FN, "likewise" },
    { "BeamSearch", "F", ONX_FLOAT16, "the decoder of the recipe gives scores of float" },
    { "WhisperBeamSearch", "F", ONX_FLOAT16, "likewise" },
    { "WhisperBeamSearch", "F", ONX_INT32, "likewise; its temperature is not a whole number" },
};
enum { UNSERVED = sizeof unserved / sizeof *unserved };

static int find_unserved(const char *op, const char *constraint, onx_dtype dtype)
{
    for (int i = 0; i < (int)UNSERVED; i++)
        if (strcmp(unserved[i].op, op) == 0 && strcmp(unserved[i].constraint, constraint) == 0 &&
            unserved[i].dtype == dtype)
            return i;
    return -1;
}

/* ---- narrow floats against doubles ---- */

static double tolerance(onx_dtype dtype)
{
    return dtype == ONX_FLOAT ? 1e-4 : dtype == ONX_FLOAT16 ? 1e-2 : 8e-2;
}

static bool close_enough(const onx_value *a, const onx_value *b, double t, char *why, size_t size)
{
    if (a->kind != b->kind || a->count != b->count) {
        snprintf(why, size, "another kind or number of elements");
        return false;
    }
    for (uint64_t i = 0; a->kind != ONX_VALUE_TENSOR && i < a->count; i++)
        if (!close_enough(a->items[i], b->items[i], t, why, size))
            return false;
    if (a->kind != ONX_VALUE_TENSOR || a->dtype == ONX_STRING || onx_dtype_bits(a->dtype) < 8 ||
        onx_dtype_bits(b->dtype) < 8 || onx_dtype_class_of(a->dtype) == ONX_CLASS_COMPLEX)
        return true;
    const char *p = a->data, *q = b->data;
    for (uint64_t i = 0; i < a->count; i++) {
        double x, y;
        onx_convert(ONX_DOUBLE, &x, (onx_dtype)a->dtype, p + i * (onx_dtype_bits(a->dtype) / 8), 1, true);
        onx_convert(ONX_DOUBLE, &y, (onx_dtype)b->dtype, q + i * (onx_dtype_bits(b->dtype) / 8), 1, true);
        if ((isnan(x) && isnan(y)) || x == y || (isfinite(y) && fabs(x - y) <= t + t * fabs(y)))
            continue;
        snprintf(why, size, "element %llu is %g, with doubles %g", (unsigned long long)i, x, y);
        return false;
    }
    return true;
}

/* ---- one node ---- */

typedef struct subject {
    onx_ctx *cx;
    const onxi_schema *schema;
    const gen_recipe *recipe;
    coverage *covered;
    bool fixed;                     /* operands but the first are constants */
    bool missed[UNSERVED], refused; /* by every kernel: pairs of the list; the type of the node that ran last */
    unsigned found, models, valid, doubles, others;
} subject;

static void complain(subject *s, onx_dtype dtype, const char *constraint, const char *why)
{
    s->found++;
    print_error("%s-%d (%.80s) %s = %s: %s\n", s->schema->name, s->schema->since, s->recipe->attributes, constraint,
                onx_dtype_name(dtype), why);
}

/* Runs the node with a type of a constraint and looks at everything; false when there is no such valid model. */
static bool try_type(subject *s, gen_type_choice type, onx_dtype like, gen_node *node, gen_verdict *v)
{
    const gen_choice choice = { .seed = 3, .type = type, .like = like, .fixed = s->fixed };
    const unsigned flags = s->schema->flags & ONXI_OP_NONDETERMINISTIC ? GEN_ANY_VALUES : 0;
    onx_doc *doc;
    if (!gen_node_make(s->schema, s->recipe, &choice, node))
        return false;
    onx_status status = gen_model(s->cx, node, NULL, NULL, &doc);
    onx_diag_clear(s->cx);
    if (status != ONX_OK)
        return false;
    s->models++;
    gen_verify(s->cx, doc, node->operands, node->operand_count, flags | GEN_LEVELS | GEN_ROWS, v);
    onx_doc_free(doc);
    s->others += v->others;
    if (v->why[0])
        complain(s, type.dtype, type.constraint, v->why);
    s->refused = v->full && !v->refused && v->plain.status == ONX_E_UNSUPPORTED;
    if (v->sound && v->plain.status == ONX_OK)
        return true;
    gen_verdict_free(v);
    return false;
}

/* No kernel takes the type, nor does a definition of the operator. */
static void note_unserved(subject *s, const char *constraint, onx_dtype dtype)
{
    const int at = find_unserved(s->schema->name, constraint, dtype);
    if (at < 0)
        complain(s, dtype, constraint, "no kernel takes the type");
    else
        s->missed[at] = true;
}

static void compare_with_doubles(subject *s, gen_type_choice type, const gen_verdict *narrow)
{
    gen_node node;
    gen_verdict wide;
    char why[200];
    const gen_type_choice doubles = { type.constraint, ONX_DOUBLE };
    if (strchr(s->recipe->attributes, '@') || strstr(s->schema->name, "Hash")) /* of the type, or made of its bits */
        return;
    if (s->schema->flags & ONXI_OP_NONDETERMINISTIC || !try_type(s, doubles, type.dtype, &node, &wide))
        return;
    s->doubles++;
    for (uint32_t i = 0; i < narrow->plain.count && i < wide.plain.count; i++)
        if (!close_enough(narrow->plain.outputs[i], wide.plain.outputs[i], tolerance(type.dtype), why, sizeof why)) {
            complain(s, type.dtype, type.constraint, why);
            break;
        }
    gen_verdict_free(&wide);
}

static void test_type(subject *s, const char *constraint, onx_dtype dtype)
{
    gen_node node;
    gen_verdict v;
    gen_type_choice type = { constraint, dtype };
    s->refused = false;
    if (!try_type(s, type, ONX_UNDEFINED, &node, &v)) {
        type.constraint = "*"; /* several constraints have to be given the same type */
        if (!try_type(s, type, ONX_UNDEFINED, &node, &v)) {
            if (s->refused && !gen_lacks_library(s->schema->name))
                note_unserved(s, constraint, dtype);
            return;
        }
    }
    s->valid++;
    note_run(s->covered, &node, &v.plain);
    note_run(s->covered, &node, &v.fast);
    if (dtype == ONX_FLOAT || dtype == ONX_FLOAT16 || dtype == ONX_BFLOAT16)
        compare_with_doubles(s, type, &v);
    gen_verdict_free(&v);
}

static void test_recipe(subject *s)
{
    bool any = false;
    for (const onxi_type_constraint *c = s->schema->types; c && c->name; c++)
        for (onx_dtype dtype = 1; dtype < 32; dtype++)
            if ((c->set.tensor | c->set.seq | c->set.optional) >> dtype & 1) {
                test_type(s, c->name, dtype);
                any = true;
            }
    if (!any)
        test_type(s, "*", ONX_FLOAT);
}

/* ---- what did not run ---- */

/* Pairs that no single valid node runs. */
static const struct {
    const char *op, *variant; /* variant NULL: all but the plain one */
    onx_dtype dtype;          /* ONX_UNDEFINED: any */
    const char *why;
} excused[] = {
    { "Col2Im", "plain", ONX_STRING, "the standard allows text, which cannot be added up" },
    { "Concat", NULL, ONX_FLOAT, "takes what a fast Conv leaves in a layout of its own: test_kernel_convolutions" },
    { "BatchNormalization", NULL, ONX_FLOAT, "likewise" },
    { "Greater", "blocked", ONX_FLOAT, "likewise" },
    { "Where", "blocked", ONX_BOOL, "likewise" },
    { "Pad", "blocked", ONX_UNDEFINED, "likewise: test_kernel_laid_out" },
    { "Expand", "blocked", ONX_UNDEFINED, "likewise: test_kernel_laid_out" },
    { "Transpose", "blocked", ONX_UNDEFINED, "likewise: test_kernel_laid_out" },
    { "DepthToSpace", "blocked", ONX_UNDEFINED, "likewise" },
    { "SpaceToDepth", "blocked", ONX_UNDEFINED, "likewise" },
    { "Reshape", "blocked", ONX_UNDEFINED, "likewise" },
    { "Squeeze", "blocked", ONX_UNDEFINED, "likewise" },
    { "Unsqueeze", "blocked", ONX_UNDEFINED, "likewise" },
    { "Slice", "blocked", ONX_UNDEFINED, "likewise" },
    { "Split", "blocked", ONX_UNDEFINED, "likewise" },
    { "Resize", "blocked", ONX_UNDEFINED, "likewise" },
    { "Upsample", "blocked", ONX_UNDEFINED, "likewise" },
    { "MatMul", NULL, ONX_FLOAT, "by constant weights, which test_kernel_variants has" },
    { "MaxPool", NULL, ONX_FLOAT, "by whichever of two fast rows suits the processor: test_kernel_pools" },
    { "AveragePool", NULL, ONX_FLOAT, "likewise" },
    { "GlobalMaxPool", NULL, ONX_FLOAT, "likewise" },
    { "GlobalAveragePool", NULL, ONX_FLOAT, "likewise" },
    { "ConvTranspose", NULL, ONX_FLOAT, "by whichever of two fast rows suits the sizes: test_kernel_convolutions" },
    { "Conv", "winograd", ONX_FLOAT, "by constant weights, which test_kernel_convolutions has" },
    { "QuantizeLinear", "amx", ONX_FLOAT, "in a layout that a fast convolution leaves: test_kernel_bytes" },
    { "QuantizeLinear", "vnni", ONX_FLOAT, "likewise" },
    { "Einsum", "moves", ONX_FLOAT16, "in float, like products, since sessions do not know yet which it is" },
    { "Einsum", "moves", ONX_BFLOAT16, "likewise" },
    { "MatMul", "bf16", ONX_FLOAT, "in sessions with a precision: test_run_precision" },
    { "MatMul", "amx", ONX_FLOAT, "likewise" },
    { "Conv", "bf16", ONX_FLOAT, "likewise: test_kernel_convolutions" },
    { "Conv", "amx", ONX_FLOAT, "of channels enough for tiles: test_kernel_convolutions" },
    { "MatMulNBits", "avx512", ONX_FLOAT, "blocks that a wider instruction set does not take: test_kernel_few_bits" },
    { "MatMulInteger", "avx512", ONX_UNDEFINED, "likewise: test_kernel_bytes" },
    { "QLinearMatMul", "avx512", ONX_UNDEFINED, "likewise" },
    { "QMoE", NULL, ONX_UNDEFINED, "by constant weights of whole vectors, which test_kernel_microsoft has" },
    { "DynamicQuantizeLSTM", NULL, ONX_FLOAT, "likewise" },
    { "TopK", NULL, ONX_UNDEFINED, "few of long lines, which test_kernel_moves has" },
    { "RMSNormalization", NULL, ONX_FLOAT16, "with a scale of that type, too: test_kernel_norms" },
    { "RMSNormalization", NULL, ONX_BFLOAT16, "likewise" },
    { "Pow", NULL, ONX_INT32, "with exponents of that type, too: test_kernel_variants" },
    { "Pow", NULL, ONX_INT64, "likewise" },
    { "Gemm", NULL, ONX_FLOAT, "by constant weights; which of two fast rows comes first depends on the processor" },
};

static uint32_t excused_types(const onx_kernel *k)
{
    uint32_t bits = 0;
    if (k->flags & ONX_KERNEL_VIEW && !onxi_kernel_is_plain(k))
        return k->dtypes ? k->dtypes : UINT32_MAX; /* moves nothing, so that there is no step to tell */
    if (k->isa > ONX_ISA_V4 && (k->dtypes & ONX_DTYPE_BIT(ONX_INT8)))
        return ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_UINT8); /* by constant weights: test_kernel_bytes */
    for (size_t i = 0; i < sizeof excused / sizeof *excused; i++)
        if (strcmp(excused[i].op, k->op) == 0 &&
            (excused[i].variant ? strcmp(excused[i].variant, onxi_kernel_variant(k)) == 0 : !onxi_kernel_is_plain(k)))
            bits |= excused[i].dtype == ONX_UNDEFINED ? UINT32_MAX : ONX_DTYPE_BIT(excused[i].dtype);
    return bits;
}

static unsigned bits_of(uint32_t bits)
{
    return (unsigned)__builtin_popcount(bits);
}

static unsigned report(coverage *c)
{
    unsigned claimed = 0, ran = 0;
    for (size_t r = 0; r < c->count; r++) {
        c->claimed[r] &= ~excused_types(c->row[r]);
        if (gen_lacks_library(c->row[r]->op)) {
            print_message("%s is not tested for want of a library\n", c->row[r]->op);
            continue;
        }
        uint32_t missing = c->claimed[r] & ~c->ran[r];
        claimed += bits_of(c->claimed[r]);
        ran += bits_of(c->claimed[r] & c->ran[r]);
        if (!missing)
            continue;
        print_message("%s-%d %s did not run with", c->row[r]->op, c->row[r]->since, onxi_kernel_variant(c->row[r]));
        for (onx_dtype dtype = 1; dtype < 32; dtype++)
            if (missing >> dtype & 1)
                print_message(" %s", onx_dtype_name(dtype));
        print_message("\n");
    }
    print_message("%zu kernel rows, %u of %u pairs of row and type ran\n", c->count, ran, claimed);
    return claimed - ran;
}

/* Some builds lack a domain. */
static bool is_registered(const char *name)
{
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        if (strcmp(onxi_operators[i].name, name) == 0)
            return onxi_operators[i].rows->name != NULL;
    return false;
}

static void test_gen_types__kernels_agree(void **state)
{
    (void)state;
    static coverage covered;
    subject s = { .cx = onx_ctx_new(NULL), .covered = &covered };
    const char *only = getenv("ONX_GEN_ONLY"); /* an operator, for debugging */
    list_claims(&covered);
    unsigned number = 0;
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        for (s.schema = onxi_operators[i].rows; s.schema->name; s.schema++) {
            if (s.schema->flags & ONXI_OP_DEPRECATED || (only && strcmp(only, s.schema->name) != 0))
                continue;
            for (uint32_t n = 0; (s.recipe = gen_recipe_for(s.schema, n)) != NULL; n++)
                for (int fixed = 0; fixed < 2 && share_has(number++); fixed++) {
                    s.fixed = fixed;
                    test_recipe(&s);
                }
        }
    onx_ctx_free(s.cx);
    print_message("%u models, %u valid, %u compared with doubles, %u nodes ran by other rows\n", s.models, s.valid,
                  s.doubles, s.others);
    const bool whole = !only && share_step() == 1;
    for (unsigned i = 0; i < UNSERVED && whole; i++)
        if (!s.missed[i] && is_registered(unserved[i].op)) {
            s.found++;
            print_error("%s: %s of %s runs, but is listed as unserved\n", unserved[i].op,
                        onx_dtype_name(unserved[i].dtype), unserved[i].constraint);
        }
    if (whole) {
        assert_int_equal(report(&covered), 0);
        assert_true(s.others > 0);
    }
    assert_int_equal(s.found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_types__kernels_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

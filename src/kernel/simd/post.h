/* post.h - vectorized post-operations: what a kernel applies to results in the first-level cache before it continues.
 * The results are a block: rows of some vectors; a column is a channel or a feature. */
#ifndef ONXI_KERNEL_SIMD_POST_H
#define ONXI_KERNEL_SIMD_POST_H

#include "kernel/simd/math.h"

enum { POST_MAX = 6 };

typedef struct simd_post {
    uint8_t kind; /* ONX_POST_* */
    bool tanh;    /* Gelu with the tanh approximation */
    float a, b;
    int32_t operand;  /* for ONX_POST_ADD: input of the size of the result, -1: `row` */
    const float *row; /* an element per column, padded to whole panels */
} simd_post;

typedef struct simd_posts {
    uint32_t count;
    simd_post list[POST_MAX];
} simd_posts;

/* Translates a post-operation that is a function of one element. */
static inline bool post_take_function(const onx_post_op *from, simd_post *f)
{
    const onx_prepare *as = from->prepare;
    *f = (simd_post){ .kind = as->kernel->post_op, .operand = -1 };
    if (from->operand >= 0 || from->port != 0)
        return false;
    switch (f->kind) {
    case ONX_POST_RELU:
    case ONX_POST_SIGMOID:
    case ONX_POST_TANH:
    case ONX_POST_HARD_SWISH:
        return true;
    case ONX_POST_LEAKY_RELU:
    case ONX_POST_SWISH:
        f->a = onx_prepare_float(as, "alpha");
        return true;
    case ONX_POST_GELU:
        f->tanh = onx_str_is(onx_prepare_text(as, "approximate"), "tanh");
        return f->tanh || onx_str_is(onx_prepare_text(as, "approximate"), "none");
    case ONX_POST_CLIP:
        return onxi_clip_bound(as, "min", 1, -INFINITY, &f->a) && onxi_clip_bound(as, "max", 2, INFINITY, &f->b) &&
               f->a <= f->b;
    default:
        return false;
    }
}

/* Applies the post-operations that are functions of one element without operands. */
static inline void post_take_functions(onx_prepare *p, simd_posts *posts)
{
    for (; p->post_ops_done < p->post_op_count && posts->count < POST_MAX; p->post_ops_done++, posts->count++)
        if (!post_take_function(&p->post_ops[p->post_ops_done], &posts->list[posts->count]))
            return;
}

/* A vector that is added per column: by a following node, or as the third input of Gemm. Padded to whole panels. */
static inline bool post_add_row(onx_prepare *p, simd_post *f, const onx_value *v, uint64_t n, uint64_t panel)
{
    if (!v || !v->data || v->dtype != ONX_FLOAT || v->count != n || v->rank < 1 || v->dims[v->rank - 1] != (int64_t)n)
        return false;
    const uint64_t padded = (n + panel - 1) / panel * panel;
    float *row = onxi_arena_array(p->arena, (size_t)padded, sizeof(float));
    if (!row)
        return false;
    memset(row, 0, (size_t)padded * sizeof *row);
    memcpy(row, v->data, (size_t)n * sizeof *row);
    *f = (simd_post){ .kind = ONX_POST_ADD, .operand = -1, .row = row };
    return true;
}

/* Translates an addition whose other operand has the type of the result. */
static inline bool post_add_same(const onx_prepare *p, const onx_post_op *from, simd_post *f)
{
    const onx_value *v = from->operand >= 0 ? p->inputs[from->operand] : NULL, *y = p->outputs[0];
    if (!v || from->prepare->input_count != 2 || v->dtype != ONX_FLOAT || v->rank != y->rank ||
        !onxi_same_dims(v->dims, y->dims, v->rank))
        return false;
    *f = (simd_post){ .kind = ONX_POST_ADD, .operand = from->operand };
    return true;
}

/* The post-operations of a product whose rows have n columns, as far as they can be fused. */
static inline void post_take_rows(onx_prepare *p, simd_posts *posts, uint64_t n, uint64_t panel)
{
    for (uint32_t i = 0; i < p->post_op_count && posts->count < POST_MAX; i++, posts->count++, p->post_ops_done++) {
        const onx_post_op *from = &p->post_ops[i];
        simd_post *f = &posts->list[posts->count];
        const bool adds = from->prepare->kernel->post_op == ONX_POST_ADD;
        if (adds && from->operand < 0) {
            if (from->prepare->input_count != 2 || !post_add_row(p, f, from->prepare->inputs[1 - from->port], n, panel))
                return;
        } else if (adds ? !post_add_same(p, from, f) : !post_take_function(from, f)) {
            return;
        }
    }
}

/* The same after a convolution, whose operands must have the layout of its result. */
static inline void post_take_image(onx_prepare *p, simd_posts *posts, const onx_layout *layout)
{
    for (uint32_t i = 0; i < p->post_op_count && posts->count < POST_MAX; i++, posts->count++, p->post_ops_done++) {
        const onx_post_op *from = &p->post_ops[i];
        simd_post *f = &posts->list[posts->count];
        if (from->prepare->kernel->post_op != ONX_POST_ADD) {
            if (!post_take_function(from, f))
                return;
            continue;
        }
        if (!post_add_same(p, from, f))
            return;
        p->want[from->operand] = layout;
    }
}

/* Adds a vector per column to `rows` rows of `vectors` vectors, `step` apart. */
static inline void post_apply_row(float *c, uint64_t step, uint64_t rows, uint64_t vectors, const float *row)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t v = 0; v < vectors; v++) {
            float *at = c + i * step + v * ONXI_LANES;
            vf_store(at, vf_load(at) + vf_load(row + v * ONXI_LANES));
        }
}

/* NaN stays NaN in these: vf_min and vf_max give their second operand then. */
static inline onxi_vf post_relu(onxi_vf x, onxi_vf zero)
{
    return vf_max(zero, x);
}

static inline onxi_vf post_clip(onxi_vf x, onxi_vf low, onxi_vf high)
{
    return vf_min(high, vf_max(low, x));
}

static inline onxi_vf post_hard_swish(onxi_vf x)
{
    return x * post_clip(x * (1.0f / 6.0f) + 0.5f, vf_all(0), vf_all(1));
}

/* Applies the post-operations to `rows` rows of `vectors` vectors, `step` apart. `row`: the vector per column, from
 * this column on; `same`: the other operand, in rows `same_step` apart. ONX_POST_ADD needs one of the two. */
static inline void post_apply(const simd_post *f, float *c, uint64_t step, uint64_t rows, uint64_t vectors,
                              const float *row, const float *same, uint64_t same_step)
{
#define EACH(EXPR)                                                                                                     \
    for (uint64_t i = 0; i < rows; i++)                                                                                \
        for (uint64_t v = 0; v < vectors; v++) {                                                                       \
            const onxi_vf x = vf_load(c + i * step + v * ONXI_LANES);                                                  \
            vf_store(c + i * step + v * ONXI_LANES, EXPR);                                                             \
        }
    const onxi_vf zero = vf_all(0), a = vf_all(f->a), b = vf_all(f->b);
    switch (f->kind) {
    case ONX_POST_ADD:
        if (row) {
            post_apply_row(c, step, rows, vectors, row);
        } else {
            EACH(x + vf_load(same + i * same_step + v * ONXI_LANES))
        }
        break;
    case ONX_POST_RELU:
        EACH(post_relu(x, zero))
        break;
    case ONX_POST_LEAKY_RELU:
        EACH(vf_select(x < 0.0f, a * x, x))
        break;
    case ONX_POST_SIGMOID:
        EACH(vf_sigmoid(x))
        break;
    case ONX_POST_TANH:
        EACH(vf_tanh(x))
        break;
    case ONX_POST_HARD_SWISH:
        EACH(post_hard_swish(x))
        break;
    case ONX_POST_CLIP:
        EACH(post_clip(x, a, b))
        break;
    case ONX_POST_GELU:
        if (f->tanh) {
            EACH(vf_gelu_tanh(x))
        } else {
            EACH(vf_gelu(x))
        }
        break;
    case ONX_POST_SWISH:
        EACH(vf_swish(x, a))
        break;
    default:
        break;
    }
#undef EACH
}

/* The same for n contiguous elements, by post-operations that are functions of one element. */
static inline void post_apply_line(const simd_posts *posts, float *y, uint64_t n)
{
    const uint64_t whole = n / ONXI_LANES, left = n % ONXI_LANES;
    for (uint32_t i = 0; i < posts->count; i++) {
        post_apply(&posts->list[i], y, ONXI_LANES, whole, 1, NULL, NULL, 0);
        if (left) {
            float last[ONXI_LANES] = { 0 };
            memcpy(last, y + whole * ONXI_LANES, left * sizeof *last);
            post_apply(&posts->list[i], last, ONXI_LANES, 1, 1, NULL, NULL, 0);
            memcpy(y + whole * ONXI_LANES, last, left * sizeof *last);
        }
    }
}

#endif

/* kernel.h - what the runner uses of the kernels, and what kernel files share. */
#ifndef ONXI_KERNEL_H
#define ONXI_KERNEL_H

#include <onx/kernel.h>
#include <onx/tensor.h>

#include "base/base.h"
#include "ir/ir.h"

#ifdef ONX_WITH_OPENMP
#include <omp.h>
#endif

/* ---- tables ---- */

/* All built-in rows, table by table; ends with NULL. */
extern const onx_kernel *const onxi_kernel_tables[];

/* Which rows serve an operator: made per session, no state shared between sessions. */
typedef struct onxi_kernel_index onxi_kernel_index;
/* `own` (may be NULL) comes before the built-in rows. */
onx_status onxi_kernel_index_new(onx_arena *arena, const onx_kernel *own, bool plain, const onxi_kernel_index **out);
/* Candidates for a version of an operator, best first; NULL when there is none. */
const onx_kernel *const *onxi_kernel_find(const onxi_kernel_index *index, onx_str domain, onx_str op, int32_t since,
                                          uint32_t *count);
static inline const char *onxi_kernel_variant(const onx_kernel *k)
{
    return k->variant ? k->variant : "plain";
}
static inline bool onxi_kernel_is_plain(const onx_kernel *k)
{
    return !k->variant;
}
/* Do the operand types suit the row? */
bool onxi_kernel_suits(const onx_kernel *k, const onx_prepare *p);

/* ---- values ---- */

enum { ONXI_VALUE_BORROWED = 1 }; /* data and dims belong to somebody else */

/* Elements that dims stand for; false when impossible. */
bool onxi_dims_count(uint32_t rank, const int64_t *dims, uint64_t *count_out);
/* Bytes of an element; 0: several share a byte. */
static inline uint32_t onxi_element_size(int dtype)
{
    return dtype == ONX_STRING ? (uint32_t)sizeof(onx_str) : onx_dtype_bits(dtype) / 8;
}
/* Element `index` as a number; of integers past 2^53 the nearest double. */
double onxi_value_number(const onx_value *v, uint64_t index);
/* Elements first .. first+count-1. */
void onxi_value_numbers(const onx_value *v, uint64_t first, uint64_t count, double *out);
/* The same without what is behind the point; NaN and what is too large are INT64_MAX. */
int64_t onxi_value_whole(const onx_value *v, uint64_t index);
void onxi_value_set_number(onx_value *v, uint64_t index, double number);
/* Doubles as elements of an integer type or bool, rounded to nearest even and held in its range; NaN is its least. */
void onxi_round_to(int dtype, void *out, const double *in, uint64_t count);
/* Entry of an int32 or int64 tensor: an index, an axis, a length. A model may give any other type: what that says is
 * taken as a number, so that nothing is read past the end. */
static inline int64_t onxi_index(const onx_value *v, uint64_t i)
{
    if (v->dtype == ONX_INT64)
        return ((const int64_t *)v->data)[i];
    return v->dtype == ONX_INT32 ? ((const int32_t *)v->data)[i] : onxi_value_whole(v, i);
}
/* Makes an output whose shape depends on data what it shall be; one that is so already keeps its memory, which may be
 * the plan's. */
onx_status onxi_value_size(onx_value *v, int dtype, uint32_t rank, const int64_t *dims);
/* Bytes that a row-major tensor takes; false when that overflows. Strings count as onx_str. */
bool onxi_tensor_room(int dtype, uint64_t count, uint64_t *bytes_out);
/* Memory of a value: what `part` points to (a pointer) grows or shrinks and keeps its bytes, counted against the memory
 * limit of the context. */
onx_status onxi_value_memory(onx_ctx *cx, void *part, uint64_t from, uint64_t to);
/* The reference count goes up when the value was made with cx, else it is copied. */
onx_status onxi_value_share(onx_ctx *cx, onx_value *value, onx_value **out);
/* A value of its own that stays as it is when `from` changes. */
onx_status onxi_value_snapshot(onx_ctx *cx, const onx_value *from, onx_value **out);
/* Two values made with the same context hold what the other one held. */
void onxi_value_swap(onx_value *a, onx_value *b);
/* A tensor becomes longer along its first axis and keeps its elements; memory grows in large steps. Elements that
 * are smaller than a byte start as zero. */
onx_status onxi_value_lengthen(onx_value *value, int64_t length);
/* The bytes of a tensor's strings move into the value, whoever had them. */
onx_status onxi_value_own_texts(onx_value *value);

/* ---- sets of element types ---- */

#define ONXI_F32    ONX_DTYPE_BIT(ONX_FLOAT)
#define ONXI_FLOATS (ONXI_F32 | ONX_DTYPE_BIT(ONX_DOUBLE) | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))
#define ONXI_SIGNED                                                                                                    \
    (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_INT32) | ONX_DTYPE_BIT(ONX_INT64))
#define ONXI_UNSIGNED                                                                                                  \
    (ONX_DTYPE_BIT(ONX_UINT8) | ONX_DTYPE_BIT(ONX_UINT16) | ONX_DTYPE_BIT(ONX_UINT32) | ONX_DTYPE_BIT(ONX_UINT64))
#define ONXI_NUMBERS  (ONXI_FLOATS | ONXI_SIGNED | ONXI_UNSIGNED)
#define ONXI_INTEGERS (ONXI_SIGNED | ONXI_UNSIGNED)

/* Declines elements that share a byte: for kernels that move whole bytes. */
onx_status onxi_whole_bytes(onx_prepare *p);

/* ---- shapes ---- */

uint64_t onxi_product(const int64_t *dims, uint32_t first, uint32_t last);
/* Elements from one index of each dim to the next, row-major; without meaning for empty tensors. */
void onxi_strides(const onx_value *v, int64_t *out);

/* Numpy broadcasting of up to ONXI_BROADCAST_MAX inputs to one output, neighbouring dims that behave alike merged. */
#define ONXI_BROADCAST_MAX 3
typedef struct onxi_broadcast {
    uint32_t rank;
    uint32_t inputs;
    int64_t dims[ONX_RANK_MAX];
    int64_t step[ONXI_BROADCAST_MAX][ONX_RANK_MAX]; /* in elements, 0 where repeated */
    uint64_t outer;                                 /* product of all dims but the last */
    int64_t inner;                                  /* last dim, 1 for scalars */
} onxi_broadcast;
/* `shift` (or NULL) gives per input where its first dim goes in the output (Add-1 and friends); -1: aligned at the end.
 */
bool onxi_broadcast_make(onxi_broadcast *b, const onx_value *const *inputs, uint32_t count, const onx_value *output,
                         const int32_t *shift);
/* Offsets in elements of outer row `row`. */
void onxi_broadcast_offsets(const onxi_broadcast *b, uint64_t row, int64_t *offsets);

/* ---- windows: Conv and the poolings ---- */

typedef struct onxi_window {
    uint32_t spatial; /* number of spatial dims */
    uint64_t batch, channels;
    int64_t in[ONX_RANK_MAX], out[ONX_RANK_MAX], kernel[ONX_RANK_MAX], stride[ONX_RANK_MAX], dilation[ONX_RANK_MAX];
    int64_t pad[ONX_RANK_MAX];     /* at the start */
    int64_t pad_end[ONX_RANK_MAX]; /* at the end, as declared or by auto_pad */
    uint64_t in_size, out_size, kernel_size;
} onxi_window;
/* Reads kernel_shape (or takes `kernel_dims`), strides, dilations, pads, auto_pad of the node; sizes from input 0 and
 * output 0. */
onx_status onxi_window_make(const onx_prepare *p, const int64_t *kernel_dims, onxi_window *w);

/* ---- random numbers (kernel_random.c) ---- */

typedef struct onxi_random {
    uint32_t state[624];
    uint32_t next; /* word to hand out, 624: none left */
    bool has_normal;
    double normal; /* they come in pairs */
} onxi_random;
void onxi_random_seed(onxi_random *r, uint32_t seed);
/* From the time and a place in memory. */
void onxi_random_any(onxi_random *r, const void *place);
double onxi_random_uniform(onxi_random *r); /* 0 <= x < 1, 53 bits */
double onxi_random_normal(onxi_random *r);  /* mean 0, deviation 1 */

/* ---- matrix products (kernel_gemm.c) ---- */

/* C (m x n, row stride ldc) = A (m x k) * B (k x n) for a dtype; A and B by element strides, so transposed ones are the
 * same call. 16-bit floats accumulate in float. `accumulate` adds to C instead. `pack` holds onxi_gemm_workspace bytes.
 */
typedef struct onxi_gemm {
    int dtype;
    uint64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_row, a_col, b_row, b_col, c_row;
    bool accumulate;
} onxi_gemm;
uint64_t onxi_gemm_workspace(int dtype, uint64_t m, uint64_t n, uint64_t k);
void onxi_gemm_run(const onxi_gemm *g, void *pack);

#endif

/* kernel.h - what the runner uses of the kernels, and what kernel files share. */
#ifndef ONXI_KERNEL_H
#define ONXI_KERNEL_H

#include <onx/kernel.h>

#include "base/base.h"
#include "ir/ir.h"
#include "op/op.h"
#include "value/value.h"

/* ---- tables ---- */

/* All built-in rows, table by table; ends with NULL. */
extern const onx_kernel *const onxi_kernel_tables[];

/* Which built-in rows serve an operator: made per session, no state shared between sessions. */
typedef struct onxi_kernel_index onxi_kernel_index;
/* `own` (may be NULL): rows of the session's caller, which outlive the index. */
onx_status onxi_kernel_index_new(onx_arena *arena, const onx_kernel *own, bool plain, unsigned isa,
                                 const onxi_kernel_index **out);
/* The widest instruction set (ONX_ISA_*) that this processor has and this build has rows for. Tiles are asked for from
 * the system (kernel/core/isa.c). */
unsigned onxi_isa_best(void);
/* What a session takes that asks for `asked`, an ONX_ISA_*: that, or the widest there is. In builds that emulate tiles
 * (ONX_EMULATED_TILES) who asks for nothing is not given them. */
unsigned onxi_isa_of(unsigned asked);
/* The widest without what only adds to the vectors: ONX_ISA_BASE, ONX_ISA_V3 or ONX_ISA_V4. */
unsigned onxi_isa_vectors(void);
/* Does the processor find each byte of a vector by another one (AVX512_VBMI)? For what is compiled for ONX_ISA_V4. */
bool onxi_isa_permutes_bytes(void);
/* Of tables of loops, one for each level of vectors, which are named so: the one of the widest there are. */
#ifdef ONX_WITH_X86_LEVELS
#define ONXI_BEST_LEVEL(name)                                                                                          \
    (onxi_isa_vectors() == ONX_ISA_V4 ? &name##_v4 : onxi_isa_vectors() == ONX_ISA_V3 ? &name##_v3 : &name##_base)
#else
#define ONXI_BEST_LEVEL(name) (&name##_base)
#endif
/* Does a session of that instruction set take the row? */
bool onxi_isa_takes(unsigned isa, const onx_kernel *k);

/* A version of an operator, as a binder found it. */
typedef struct onxi_kernel_wanted {
    onx_str domain, name;
    onxi_op_id op; /* of built-in operators */
    int32_t since;
    const onx_kernel *registered; /* that came with an operator of a registry; NULL: none */
    bool by_rule;                 /* rows of the domain onx, which models cannot name, count as well */
} onxi_kernel_wanted;
/* The rows that may run it, in the order in which they are asked: those of the session's caller, those that came with
 * the operator, the built-in ones. Of each source the newest version that is not above `since` counts, the highest
 * preference first, then in the order of the table. *out, in the arena, has *count_out of them, maybe none. */
onx_status onxi_kernel_candidates(const onxi_kernel_index *index, onx_arena *arena, const onxi_kernel_wanted *want,
                                  const onx_kernel *const **out, uint32_t *count_out);
/* What looks at the operands of an operator before its body runs, as one row in a list; NULL: nothing
 * (train/labels.c). */
const onx_kernel *const *onxi_kernel_guard(onxi_op_id op);
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

/* Whether a constant input holds neither NaN nor infinities; looked at once per session, false where it cannot be. */
bool onxi_weights_are_finite(const onx_prepare *p, uint32_t input);

/* An input that may be left out or that the version does not have: NULL then. `count` of them are there. */
static inline const onx_value *onxi_operand(uint32_t count, const onx_value *const *inputs, uint32_t index)
{
    return index < count ? inputs[index] : NULL;
}

/* Where a node is, for diagnostics; the text is in the arena. */
onx_where onxi_kernel_place(const onx_prepare_ops *ops, const void *place, onx_arena *arena);

/* ---- preparing while running ---- */

/* For rows that can decide some things only where data is: what prepare knew, kept with its params, and the same while
 * running, with the real operands. Failures then go to the context of the run. Attributes that are tensors are
 * read before (`doc` is NULL). */
const onx_prepare *onxi_prepare_keep(const onx_prepare *p);
onx_prepare onxi_prepare_again(const onx_prepare *kept, const onx_work *work);

/* ---- sets of element types ---- */

#define ONXI_F32    ONX_DTYPE_BIT(ONX_FLOAT)
#define ONXI_FLOATS (ONXI_F32 | ONX_DTYPE_BIT(ONX_DOUBLE) | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))
#define ONXI_SIGNED                                                                                                    \
    (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_INT32) | ONX_DTYPE_BIT(ONX_INT64))
#define ONXI_UNSIGNED                                                                                                  \
    (ONX_DTYPE_BIT(ONX_UINT8) | ONX_DTYPE_BIT(ONX_UINT16) | ONX_DTYPE_BIT(ONX_UINT32) | ONX_DTYPE_BIT(ONX_UINT64))
#define ONXI_NUMBERS  (ONXI_FLOATS | ONXI_SIGNED | ONXI_UNSIGNED)
#define ONXI_INTEGERS (ONXI_SIGNED | ONXI_UNSIGNED)

/* A word that an attribute may be, in the versions from `since` to `until`; 0 there: to the newest. */
typedef struct onxi_word {
    const char *text;
    int32_t since, until;
} onxi_word;
/* Which of the words the attribute is, in the version in force; -1: none that this version has. */
int onxi_prepare_word(const onx_prepare *p, const char *name, const onxi_word *words, uint32_t count);

/* Copies an element, or a few; common sizes without a call. */
static inline void onxi_copy_item(void *to, const void *from, uint64_t bytes)
{
    switch (bytes) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    default:
        memcpy(to, from, (size_t)bytes);
        break;
    }
}

/* Declines elements that share a byte: for kernels that move whole bytes. */
onx_status onxi_whole_bytes(onx_prepare *p);

/* ---- shapes ---- */

uint64_t onxi_product(const int64_t *dims, uint32_t first, uint32_t last);

/* How many rows are worth another thread (onx_prepare.grain), where each takes so many multiplications of a product, or
 * what takes as long: a few times what handing them out does. Where weights are read for one row only, or channels have
 * windows of their own, a product takes as long as several that share what they read. */
enum {
    ONXI_COST_ELEMENT = 16, /* of an element that is read, computed and written */
    ONXI_COST_READING = 4,  /* of a weight, besides its products */
    ONXI_COST_ALONE = 4     /* of a product of a channel's own window */
};
static inline uint64_t onxi_worth_a_thread(uint64_t cost)
{
    const uint64_t least = 131072;
    return cost < least ? least / (cost + 1) + 1 : 1;
}
/* Elements from one index of each dim to the next, row-major; without meaning for empty tensors. */
void onxi_strides(const onx_value *v, int64_t *out);

/* Numpy broadcasting of up to ONXI_BROADCAST_MAX inputs to one output, neighbouring dims that behave as one merged. */
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
/* Offsets in elements of outer row `row`; made of those of the row before it, which takes less. */
void onxi_broadcast_offsets(const onxi_broadcast *b, uint64_t row, int64_t *offsets);
void onxi_broadcast_next(const onxi_broadcast *b, uint64_t row, int64_t *offsets);

/* ---- windows: Conv and the poolings ---- */

typedef struct onxi_window {
    uint32_t spatial; /* number of spatial dims */
    uint64_t batch, channels;
    int64_t in[ONX_RANK_MAX], out[ONX_RANK_MAX], kernel[ONX_RANK_MAX], stride[ONX_RANK_MAX], dilation[ONX_RANK_MAX];
    int64_t pad[ONX_RANK_MAX];     /* at the start */
    int64_t pad_end[ONX_RANK_MAX]; /* at the end, as declared or by auto_pad */
    uint64_t in_size, out_size, kernel_size;
} onxi_window;
/* A list attribute of `count` numbers, none below `least`; where it is not given ONNX implies one for all of them. */
onx_status onxi_window_list(const onx_prepare *p, const char *name, uint32_t count, int64_t least, int64_t *out);
/* Reads kernel_shape (or takes `kernel_dims`), strides, dilations, pads, auto_pad of the node; sizes from input 0 and
 * output 0. */
onx_status onxi_window_make(const onx_prepare *p, const int64_t *kernel_dims, onxi_window *w);
/* The pads of a ConvTranspose, as they follow from the size of the output. */
onx_status onxi_window_transpose(const onx_prepare *p, onxi_window *w);

/* ---- chains of operators that go element by element (kernel/core/chain.c) ---- */

enum {
    ONXI_ELEMENT_INPUTS = 3,
    ONXI_CHAIN_OPS = 16,
    ONXI_CHAIN_OPERANDS = ONXI_CHAIN_OPS * ONXI_ELEMENT_INPUTS,
    ONXI_CHAIN_NONE = INT32_MAX /* an input that is omitted */
};

/* Are both values laid out in blocks of as many channels, so that their elements, which may be of different width, lie
 * in the same order (kernel/core/blocked.c)? */
bool onxi_blocked_alike(const onx_value *a, const onx_value *b);
/* Does the row go element by element with this number of inputs, by a loop that a chain may run? */
bool onxi_element_is(const onx_kernel *k, uint32_t input_count);
/* May a chain have values of the type? */
bool onxi_element_type_is(int dtype);

/* An operator of a chain, prepared as if it ran alone. Each input is one of the step, or the result of an operator
 * before (-1 - its index), which has as many elements as the result of the chain, or ONXI_CHAIN_NONE. */
typedef struct onxi_chain_op {
    const onx_kernel *kernel;
    const void *params;
    int32_t inputs[ONXI_ELEMENT_INPUTS];
} onxi_chain_op;

/* Rows whose outputs are their input 0, cut along an axis in their order, and rows whose output 0 is their inputs,
 * joined so. They copy what is not where it should be already. */
enum { ONXI_KERNEL_CUTS = 1 << 13, ONXI_KERNEL_JOINS = 1 << 14 };

/* Rows that work line by line: normalizations, Softmax, reductions. Their flags have ONXI_KERNEL_LINES, and their
 * params begin with this. Where `count` is not 0, row i reads elements i * count .. (i + 1) * count - 1 of input 0 and
 * no others, writes the i-th of as many equal parts of output 0, and does with every other input what all rows do. */
enum {
    ONXI_KERNEL_LINES = 1 << 15,
    ONXI_CHAIN_LINE = 1 << 18,       /* elements of a line that a chain ends with, at most */
    ONXI_CHAIN_LINE_SHORT = 8192,    /* up to that many it always may */
    ONXI_CHAIN_LONG_BYTES = 8 << 20, /* of all longer ones together, at least */
};
typedef struct onxi_lines {
    uint64_t count;
} onxi_lines;

/* Such a row after the operators of a chain, prepared as if it ran alone, which takes the result of the last one as
 * its input 0. */
typedef struct onxi_chain_end {
    const onx_kernel *kernel;
    const void *params;
    const onx_prepared *prepared;
    const onx_value *made; /* the type of that result */
    uint64_t thread_workspace;
    int32_t inputs[ONXI_ELEMENT_INPUTS]; /* of the step, or ONXI_CHAIN_NONE; that of input 0 has no meaning */
    uint32_t input_count;
} onxi_chain_end;

/* The rows that run chains, of which one may write over an input. None is found by name: what they do is said by
 * onxi_chain_prepare. */
extern const onx_kernel onxi_kernel_chain, onxi_kernel_chain_apart, onxi_kernel_table;
/* Which of them. */
const onx_kernel *onxi_chain_row(const onxi_chain_end *end, const onx_value *output);
/* Output 0 is the result of `end`, or, where that is NULL, of the last one. */
onx_status onxi_chain_prepare(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onxi_chain_end *end);
/* A chain that makes bytes of one operand `x` of bytes, all others being constants of one element: a table of what it
 * makes of each byte, for images in any layout of blocks. The operators were prepared for row-major operands.
 * ONX_E_UNSUPPORTED: an operator takes elements by where they are. */
onx_status onxi_chain_table_prepare(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onx_value *x);

/* ---- random numbers (kernel/core/random.c) ---- */

typedef struct onxi_random {
    uint32_t state[624];
    uint32_t next; /* word to return next, 624: none left */
    bool has_normal;
    double normal; /* they come in pairs */
} onxi_random;
void onxi_random_seed(onxi_random *r, uint32_t seed);
/* From the time and a place in memory. */
void onxi_random_any(onxi_random *r, const void *place);
double onxi_random_uniform(onxi_random *r); /* 0 <= x < 1, 53 bits */
double onxi_random_normal(onxi_random *r);  /* mean 0, deviation 1 */

/* ---- matrix products (kernel/core/gemm.c) ---- */

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

/* ---- some of what a node on constants gives (math/quantize.c, tensor/constant.c) ---- */

/* Is it a row of DequantizeLinear that can be read from as below? */
bool onxi_dequantize_reads(const onx_kernel *kernel);
/* Some of the floats that such a row gives on constants that it was prepared for. */
void onxi_dequantize_read(const onx_kernel *kernel, const void *params, const onx_value *const *inputs,
                          uint32_t input_count, uint64_t first, uint64_t count, float *out);
/* Is it ConstantOfShape? All of its floats are the same. */
bool onxi_fill_reads(const onx_kernel *kernel);
void onxi_fill_read(const void *params, uint64_t count, float *out);

#endif

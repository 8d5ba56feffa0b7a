/* kernel.h - the interface of the kernels for the runner, and declarations shared by kernel files. */
#ifndef ONXI_KERNEL_H
#define ONXI_KERNEL_H

#include <onx/kernel.h>

#include "base/base.h"
#include "ir/ir.h"
#include "op/op.h"
#include "value/value.h"

/* ---- tables ---- */

/* All tables of built-in rows; ends with NULL. */
extern const onx_kernel *const onxi_kernel_tables[];

/* Finds the built-in rows of an operator. Each session makes its own index, so sessions share no state. */
typedef struct onxi_kernel_index onxi_kernel_index;
/* `own` (may be NULL) are rows of the session's caller, which must outlive the index. */
onx_status onxi_kernel_index_new(onx_arena *arena, const onx_kernel *own, bool plain, unsigned isa,
                                 const onxi_kernel_index **out);
/* The widest instruction set (ONX_ISA_*) that this CPU has and this build has rows for. AMX tiles need the permission
 * of the system, which is requested (kernel/core/isa.c). */
unsigned onxi_isa_best(void);
/* The instruction set of a session that asks for `asked` (ONX_ISA_*): that one, or the widest available if `asked` is
 * wider or 0. Builds that emulate tiles (ONX_EMULATED_TILES) use them only if a session asks for them. */
unsigned onxi_isa_of(unsigned asked);
/* The widest level of general vector instructions: ONX_ISA_BASE, ONX_ISA_V3 or ONX_ISA_V4. Extensions such as tiles do
 * not count. */
unsigned onxi_isa_vectors(void);
/* Has the CPU byte permutations across a vector (AVX512_VBMI)? For code compiled for ONX_ISA_V4. */
bool onxi_isa_permutes_bytes(void);
/* Selects from tables of loops, one per vector level and named by the level, the table of the widest level
 * available. */
#ifdef ONX_WITH_X86_LEVELS
#define ONXI_BEST_LEVEL(name)                                                                                          \
    (onxi_isa_vectors() == ONX_ISA_V4 ? &name##_v4 : onxi_isa_vectors() == ONX_ISA_V3 ? &name##_v3 : &name##_base)
#else
#define ONXI_BEST_LEVEL(name) (&name##_base)
#endif
/* The rows of a table for each of these levels: ROWS(...) makes them, with these members; the body is the level's table
 * of loops. */
#ifdef ONX_WITH_X86_LEVELS
#define ONXI_LEVELS(ROWS, name)                                                                                        \
    ROWS(.isa = ONX_ISA_V4, .variant = "avx512", .body = &name##_v4),                                                  \
        ROWS(.isa = ONX_ISA_V3, .variant = "avx2", .body = &name##_v3),                                                \
        ROWS(.isa = ONX_ISA_BASE, .variant = "simd", .body = &name##_base)
#else
#define ONXI_LEVELS(ROWS, name) ROWS(.isa = ONX_ISA_BASE, .variant = "simd", .body = &name##_base)
#endif
/* May a session with that instruction set use the row? */
bool onxi_isa_takes(unsigned isa, const onx_kernel *k);

/* The operator of a node and its version, as found by a binder. */
typedef struct onxi_kernel_wanted {
    onx_str domain, name;
    onxi_op_id op; /* for built-in operators */
    int32_t since;
    const onx_kernel *registered; /* rows that came with an operator of a registry; NULL: none */
    bool by_rule;                 /* rows of the domain onx, which models cannot name, are included */
} onxi_kernel_wanted;
/* The rows that may run the operator, in the order in which they are tried: those of the session's caller, those that
 * came with the operator, the built-in ones. From each source only rows of the newest version up to `since` are taken;
 * they are sorted by decreasing preference, then by their order in the table. *out, in the arena, has *count_out rows,
 * possibly none. */
onx_status onxi_kernel_candidates(const onxi_kernel_index *index, onx_arena *arena, const onxi_kernel_wanted *want,
                                  const onx_kernel *const **out, uint32_t *count_out);
/* The row that checks the operands of an operator before its function body runs, as a list of one; NULL: no check is
 * needed (train/labels.c). */
const onx_kernel *const *onxi_kernel_guard(onxi_op_id op);
static inline const char *onxi_kernel_variant(const onx_kernel *k)
{
    return k->variant ? k->variant : "plain";
}
static inline bool onxi_kernel_is_plain(const onx_kernel *k)
{
    return !k->variant;
}
/* Of rows that only give a value another type or shape (ONX_KERNEL_VIEW), whose steps are left out of plans. */
onx_status onxi_view_run(onx_work *work, uint64_t first, uint64_t last);
/* Do the operand types suit the row? */
bool onxi_kernel_suits(const onx_kernel *k, const onx_prepare *p);

/* Is a constant input free of NaN and infinities? The elements are examined once per session; false where they cannot
 * be. */
bool onxi_weights_are_finite(const onx_prepare *p, uint32_t input);

/* An optional input: NULL where it is omitted, or where the version of the operator does not have it. The node has
 * `count` inputs. */
static inline const onx_value *onxi_operand(uint32_t count, const onx_value *const *inputs, uint32_t index)
{
    return index < count ? inputs[index] : NULL;
}

/* The location of a node for diagnostics; the text is in the arena. */
onx_where onxi_kernel_place(const onx_prepare_ops *ops, const void *place, onx_arena *arena);

/* ---- preparing during a run ---- */

/* For rows that can decide some things only on actual data. Returns the preparation, kept with the params and usable
 * while running, where it has the actual operands. Failures then go to the context of the run. Tensor attributes must
 * be read before (`doc` is NULL). */
const onx_prepare *onxi_prepare_keep(const onx_prepare *p);
onx_prepare onxi_prepare_again(const onx_prepare *kept, const onx_work *work);

/* ---- ending early ---- */

/* The first member of what onx_work.watch points to. */
typedef struct onxi_work_watch {
    bool (*stops)(const struct onxi_work_watch *watch); /* NULL: the run cannot be ended */
} onxi_work_watch;

/* Asks onx_work_stops once in a while, for loops that know the cost of a turn, in operations of about a nanosecond.
 * Each thread has its own: onxi_pace pace = { .work = work }. */
typedef struct onxi_pace {
    const onx_work *work;       /* NULL: nothing stops it */
    uint64_t left;              /* cost until the next question */
    const onx_prepare *prepare; /* instead of `work`, while preparing */
} onxi_pace;
enum { ONXI_PACE = 1 << 19 };
bool onxi_prepare_stops(const onx_prepare *p);
/* Before work of that cost: does the run have to end? Once it has, each call says so. */
static inline bool onxi_pace_stops(onxi_pace *pace, uint64_t cost)
{
    if (cost < pace->left) {
        pace->left -= cost;
        return false;
    }
    const bool stops = pace->prepare ? onxi_prepare_stops(pace->prepare) : onx_work_stops(pace->work);
    pace->left = stops ? 0 : ONXI_PACE;
    return stops;
}
/* For loops over elements that cost `cost` each: how many to process before the next question, at least 1. */
static inline uint64_t onxi_pace_turns(uint64_t cost)
{
    return cost < ONXI_PACE ? ONXI_PACE / (cost + 1) + 1 : 1;
}

/* ---- sets of element types ---- */

#define ONXI_F32    ONX_DTYPE_BIT(ONX_FLOAT)
#define ONXI_FLOATS (ONXI_F32 | ONX_DTYPE_BIT(ONX_DOUBLE) | ONX_DTYPE_BIT(ONX_FLOAT16) | ONX_DTYPE_BIT(ONX_BFLOAT16))
#define ONXI_SIGNED                                                                                                    \
    (ONX_DTYPE_BIT(ONX_INT8) | ONX_DTYPE_BIT(ONX_INT16) | ONX_DTYPE_BIT(ONX_INT32) | ONX_DTYPE_BIT(ONX_INT64))
#define ONXI_UNSIGNED                                                                                                  \
    (ONX_DTYPE_BIT(ONX_UINT8) | ONX_DTYPE_BIT(ONX_UINT16) | ONX_DTYPE_BIT(ONX_UINT32) | ONX_DTYPE_BIT(ONX_UINT64))
#define ONXI_NUMBERS  (ONXI_FLOATS | ONXI_SIGNED | ONXI_UNSIGNED)
#define ONXI_INTEGERS (ONXI_SIGNED | ONXI_UNSIGNED)

/* A string that an attribute may have, in the versions from `since` to `until`; `until` 0: to the newest version. */
typedef struct onxi_word {
    const char *text;
    int32_t since, until;
} onxi_word;
/* The index of the attribute's string among `words`, for the version in force; -1: this version has no such string. */
int onxi_prepare_word(const onx_prepare *p, const char *name, const onxi_word *words, uint32_t count);

/* Copies one or a few elements; common sizes without a function call. */
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

/* Declines elements of less than a byte, for kernels that move whole bytes. */
onx_status onxi_whole_bytes(onx_prepare *p);

/* ---- shapes ---- */

uint64_t onxi_product(const int64_t *dims, uint32_t first, uint32_t last);

/* The number of rows that justifies another thread (onx_prepare.grain). `cost` is the work of a row, in multiplications
 * of a matrix product that take as long. The result takes a few times as long as handing the rows to a thread. Products
 * cost more where a weight is used in one row only, or where each channel has its own window: then little of what they
 * read is shared. */
enum {
    ONXI_COST_ELEMENT = 16, /* of an element that is read, computed and written */
    ONXI_COST_READING = 4,  /* of reading a weight, besides its products */
    ONXI_COST_ALONE = 4     /* of a product in a depthwise window */
};
static inline uint64_t onxi_worth_a_thread(uint64_t cost)
{
    const uint64_t least = 131072;
    return cost < least ? least / (cost + 1) + 1 : 1;
}
/* The strides of row-major dims, in elements; meaningless for empty tensors. */
void onxi_strides(const onx_value *v, int64_t *out);

/* NumPy broadcasting of up to ONXI_BROADCAST_MAX inputs to one output. Neighbouring dims are merged where they behave
 * as one. */
#define ONXI_BROADCAST_MAX 3
typedef struct onxi_broadcast {
    uint32_t rank;
    uint32_t inputs;
    int64_t dims[ONX_RANK_MAX];
    int64_t step[ONXI_BROADCAST_MAX][ONX_RANK_MAX]; /* strides in elements, 0 along broadcast dims */
    uint64_t outer;                                 /* product of all dims but the last */
    int64_t inner;                                  /* last dim; 1 for scalars */
} onxi_broadcast;
/* `shift` (or NULL) gives, per input, the dim of the output that its first dim corresponds to (for Add-1 and others);
 * -1: the dims are aligned at the end. */
bool onxi_broadcast_make(onxi_broadcast *b, const onx_value *const *inputs, uint32_t count, const onx_value *output,
                         const int32_t *shift);
/* Element offsets of the inputs for outer row `row`. onxi_broadcast_next computes them from those of row - 1, which is
 * faster. */
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
/* Reads a list attribute of `count` integers, none below `least`. If it is omitted, all are 1, as ONNX defines. */
onx_status onxi_window_list(const onx_prepare *p, const char *name, uint32_t count, int64_t least, int64_t *out);
/* Reads kernel_shape (or uses `kernel_dims`), strides, dilations, pads and auto_pad of the node; takes sizes from input
 * 0 and output 0. */
onx_status onxi_window_make(const onx_prepare *p, const int64_t *kernel_dims, onxi_window *w);
/* dims[0], and those of space, of a result of windows of the image `x`, whose pads are given and cover no further
 * window. *fits false: they are not, or there is no window. */
onx_status onxi_window_dims(const onx_prepare *p, const onx_value *x, const int64_t *kernel, int64_t *dims, bool *fits);
/* The pads of a ConvTranspose, computed from the size of the output. */
onx_status onxi_window_transpose(const onx_prepare *p, onxi_window *w);

/* ---- chains of elementwise operators (kernel/core/chain.c) ---- */

enum {
    ONXI_ELEMENT_INPUTS = 3,
    ONXI_CHAIN_OPS = 16,
    ONXI_CHAIN_OPERANDS = ONXI_CHAIN_OPS * ONXI_ELEMENT_INPUTS,
    ONXI_CHAIN_NONE = INT32_MAX /* an omitted input */
};

/* Have both values a layout with channel blocks of the same size? Then their elements, which may differ in width, are
 * in the same order (kernel/core/blocked.c). */
bool onxi_blocked_alike(const onx_value *a, const onx_value *b);
/* Can values of the type have such a layout? */
bool onxi_blocked_type_is(int dtype);
/* Have all inputs one layout, and the dims of the output? */
typedef enum onxi_common_layout {
    ONXI_COMMON_NOT,
    /* They have, and the type of the output. There may be more elements in the layout than in the values: zeros. */
    ONXI_COMMON_PADDED,
    /* They have, except for single elements, in channel blocks, so that all elements are elements of the values. Types
     * may differ, and the output may lie in the same way. */
    ONXI_COMMON_WHOLE
} onxi_common_layout;
/* Can the row, which need not support layouts, process the elements of inputs as they lie? */
bool onxi_element_as_laid_out(const onx_kernel *k, uint32_t input_count, onxi_common_layout alike);
/* Is the row elementwise for this number of inputs, with a loop that a chain can call? */
bool onxi_element_is(const onx_kernel *k, uint32_t input_count);
/* Can a chain process elements of the type? */
bool onxi_element_type_is(int dtype);

/* An operator of a chain, prepared as if it ran alone. Each input is the index of an operand of the step; or -1 - i,
 * the result of operator i, which has as many elements as the result of the chain; or ONXI_CHAIN_NONE. */
typedef struct onxi_chain_op {
    const onx_kernel *kernel;
    const void *params;
    int32_t inputs[ONXI_ELEMENT_INPUTS];
} onxi_chain_op;

/* Flags of rows that split input 0 along an axis into consecutive outputs (CUTS), or concatenate their inputs to output
 * 0 (JOINS). They copy only parts that are not in place already. */
enum { ONXI_KERNEL_CUTS = 1 << 13, ONXI_KERNEL_JOINS = 1 << 14 };

/* Flag of rows that work line by line: normalizations, Softmax, reductions. Their params begin with onxi_lines. If its
 * `count` is not 0, row i of the work reads only elements i * count .. (i + 1) * count - 1 of input 0 and writes the
 * i-th of as many equal parts of output 0. All rows use the other inputs in the same way. */
enum {
    ONXI_KERNEL_LINES = 1 << 15,
    ONXI_CHAIN_LINE = 1 << 18,       /* most elements of a line at the end of a chain */
    ONXI_CHAIN_LINE_SHORT = 8192,    /* lines up to this length may always end a chain */
    ONXI_CHAIN_LONG_BYTES = 8 << 20, /* fewest bytes of the value if its lines are longer */
};
typedef struct onxi_lines {
    uint64_t count;
} onxi_lines;

/* Such a row at the end of a chain, prepared as if it ran alone; its input 0 is the result of the chain's last
 * operator. */
typedef struct onxi_chain_end {
    const onx_kernel *kernel;
    const void *params;
    const onx_prepared *prepared;
    const onx_value *made; /* type of that result */
    uint64_t thread_workspace;
    int32_t inputs[ONXI_ELEMENT_INPUTS]; /* as in onxi_chain_op, but never a result; inputs[0] is not used */
    uint32_t input_count;
} onxi_chain_end;

/* The rows that run chains: one may overwrite an input, one may not, and one looks results up in a table. They have no
 * operator name; onxi_chain_prepare prepares them. */
extern const onx_kernel onxi_kernel_chain, onxi_kernel_chain_apart, onxi_kernel_table;
/* Chooses between the first two. */
const onx_kernel *onxi_chain_row(const onxi_chain_end *end, const onx_value *output);
/* Output 0 is the result of `end`, or of the last operator if `end` is NULL. */
onx_status onxi_chain_prepare(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onxi_chain_end *end);
/* Prepares a chain with one 8-bit operand `x` and an 8-bit result, whose other operands are constants of one element:
 * computes a table with the result for each of the 256 values. It serves images in any blocked layout. The operators
 * were prepared for row-major operands. ONX_E_UNSUPPORTED: an operator depends on positions of elements. */
onx_status onxi_chain_table_prepare(onx_prepare *p, const onxi_chain_op *ops, uint32_t op_count, const onx_value *x);

/* ---- random numbers (kernel/core/random.c) ---- */

typedef struct onxi_random {
    uint32_t state[624], words[624]; /* words: what is returned, made of the state */
    uint32_t next;                   /* index of the next word to return; 624: none is left */
    bool has_normal;
    double normal; /* the second one of a pair */
} onxi_random;
void onxi_random_seed(onxi_random *r, uint32_t seed);
/* Seeds from the time and an address. */
void onxi_random_any(onxi_random *r, const void *place);
double onxi_random_uniform(onxi_random *r); /* 0 <= x < 1, 53 bits */
double onxi_random_normal(onxi_random *r);  /* mean 0, deviation 1 */
/* As many calls of these. */
void onxi_random_uniforms(onxi_random *r, double *out, uint64_t count);
void onxi_random_normals(onxi_random *r, double *out, uint64_t count);

/* ---- matrix products (kernel/core/gemm.c) ---- */

/* C (m x n, row stride ldc) = A (m x k) * B (k x n) for a dtype. A and B have element strides, so transposed matrices
 * use the same call. 16-bit floats accumulate in float. `accumulate` adds to C instead. `pack` has onxi_gemm_workspace
 * bytes. */
typedef struct onxi_gemm {
    int dtype;
    uint64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_row, a_col, b_row, b_col, c_row;
    bool accumulate;
    const onx_work *work; /* asked whether the run has to end: then C is not complete; NULL: not asked */
} onxi_gemm;
uint64_t onxi_gemm_workspace(int dtype, uint64_t m, uint64_t n, uint64_t k);
void onxi_gemm_run(const onxi_gemm *g, void *pack);

/* ---- reading parts of what a node with constant inputs computes (math/quantize.c, tensor/constant.c) ---- */

/* Is it a row of DequantizeLinear that onxi_dequantize_read supports? */
bool onxi_dequantize_reads(const onx_kernel *kernel);
/* Computes elements first .. first+count-1 of the output of such a row, for the constants that it was prepared for. */
void onxi_dequantize_read(const onx_kernel *kernel, const void *params, const onx_value *const *inputs,
                          uint32_t input_count, uint64_t first, uint64_t count, float *out);
/* Is it the row of ConstantOfShape? All elements of its output are equal. */
bool onxi_fill_reads(const onx_kernel *kernel);
void onxi_fill_read(const void *params, uint64_t count, float *out);
/* `n` elements of ONX_FLOAT16 or ONX_BFLOAT16, aligned to them, as floats (core/halves.c). */
void onxi_halves_widen(int dtype, const void *x, float *y, uint64_t n);

#endif

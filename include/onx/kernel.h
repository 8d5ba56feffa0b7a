/* kernel.h - for custom kernels: the rows of the kernel table. Its stability promise is weaker than that of the other
 * headers: it may change between minor releases. See docs/custom_operators.md and docs/notes/kernels.md. */
#ifndef ONX_KERNEL_H
#define ONX_KERNEL_H

#include <onx/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onx_kernel onx_kernel;
typedef struct onx_prepare onx_prepare;
typedef struct onx_prepared onx_prepared;
typedef struct onx_work onx_work;

/* ---- layouts: the order of elements that a fast kernel works on; NULL: row-major ---- */

typedef struct onx_layout {
    const struct onx_layout_ops *ops;
    uint64_t size; /* bytes of a tensor in this layout */
} onx_layout;

typedef struct onx_layout_ops {
    bool (*equal)(const onx_layout *a, const onx_layout *b);
    const onx_kernel *reorder; /* a kernel with one input and one output that converts between any two layouts of
                                * these ops, and row-major */
} onx_layout_ops;

/* ---- prepare: once per set of input shapes ---- */

/* A fused post-operation: a node that consumes the result of the kernel, and that the kernel may apply itself before it
 * stores the result: y = op(x, operand). */
typedef struct onx_post_op {
    const onx_prepare *prepare; /* the node as its own kernel would see it (`kernel`, whose prepare has not run):
                                 * operator, attributes, constant inputs */
    uint32_t port;              /* which input of the post-operation is the result of this kernel */
    int32_t operand; /* index of the other operand among the inputs of this kernel; -1: it is a constant of the
                      * post-operation, or there is none */
} onx_post_op;

struct onx_prepare {
    onx_ctx *cx;
    onx_arena *arena; /* memory for `params`; lives as long as they are used */
    const onx_kernel *kernel;
    const onx_node *node;
    uint32_t op;                      /* 1 + its index among the built-in operators (onx_op_get); 0: not built in */
    const struct onxi_schema *schema; /* schema of the operator (onx_op); NULL: only the kernel knows the operator */
    onx_doc *doc;                     /* document of the node, for tensors in attributes */
    int32_t since;                    /* version of the operator */
    uint32_t input_count, output_count;
    uint32_t operand_count;         /* number of entries of inputs: those of the node, then the operands of
                                     * post-operations */
    const onx_value *const *inputs; /* NULL: omitted; only constants have data */
    onx_value *const *outputs;      /* output_count entries (omitted trailing outputs have none); NULL: not requested;
                                     * type and dims are set unless the shape depends on data */
    const bool *last_use;           /* the memory of the input is free after this node and holds no other operand */
    bool nonfinite;      /* the data may contain NaN or infinities, because a row declined for them during a run: a row
                          * that loses them must decline */
    bool row_major_next; /* no reader of the outputs supports layouts: they are converted unless they are row-major */
    unsigned threads;    /* that may run the work, at least 1 */
    unsigned precision;  /* ONX_PRECISION_* */
    const onx_post_op *post_ops;
    uint32_t post_op_count;
    /* set by the kernel */
    void *params;              /* data for run */
    uint64_t rows;             /* number of independent pieces of work, default 1 */
    uint64_t grain;            /* number of rows that justify a thread, default 1 */
    uint64_t workspace;        /* bytes of scratch memory per run, shared by all threads */
    uint64_t thread_workspace; /* bytes of scratch memory per thread */
    const onx_layout **want;   /* per input: the layout that the kernel wants (kernels with ONX_KERNEL_LAYOUTS); NULL:
                                * only   row-major is available */
    int32_t overwrite;         /* output 0 reuses the memory of this input, which has last_use; -1: none */
    uint32_t post_ops_done;    /* how many of the post-operations, counted from the first, the kernel applies */
    /* internal to the engine */
    const struct onxi_attrs *attrs;
    const struct onx_prepare_ops *ops;
    const void *place; /* for ops->path */
    void *engine;
};

/* Bytes that a kernel computes from a constant input (packed weights). */
typedef struct onx_packing {
    uint32_t input;
    const void *key; /* identifies what is computed from the constant: layouts, sizes; bytes of any kind */
    size_t key_size;
    uint64_t size;   /* size of the result in bytes; its address is aligned to 64 */
    uint64_t pieces; /* number of pieces, computed in any order and concurrently, by any thread; 0: one */
    bool unaligned;  /* `make` accepts elements at any address; otherwise they are aligned to their type */
    bool in_order;   /* piece i of n reads the i-th nth part of the elements, so that the other parts need not be in
                      * memory */
    /* `elements` are those of the constant, row-major. Must not call anything that records diagnostics. */
    onx_status (*make)(void *user, const void *elements, uint64_t piece, void *out);
    void *user;
    bool note;        /* the result describes the elements and does not replace them */
    bool may_decline; /* `make` may return ONX_E_UNSUPPORTED: the constant cannot be packed this way */
    /* Elements that a piece reads: piece i reads no others than i * part to (i + 1) * part - 1, so that the others
     * may be absent; 0: any. */
    uint64_t part;
} onx_packing;

/* Elements of a constant that are read in chunks, by any thread. */
typedef struct onx_elements {
    const void *data; /* all elements, row-major, at any address; NULL: call `read` to get them */
    void (*read)(const void *user, uint64_t first, uint64_t count, void *out);
    const void *user;
} onx_elements;

typedef struct onx_prepare_ops {
    /* The path of the node, for diagnostics; made on demand. */
    onx_str (*path)(const void *place, onx_arena *arena);
    /* The index of a subgraph, for onx_work_ops. A kernel that asks for it is prepared once per plan, with the types of
     * inputs as far as they are known then (kind NONE otherwise), and always sizes its outputs while it runs. */
    onx_status (*graph)(const onx_prepare *p, const char *name, uint32_t *index_out);
    /* Bytes computed from a constant input, on first use of the key; they are kept as long as sessions use them. */
    onx_status (*packed)(const onx_prepare *p, const onx_packing *packing, const void **out);
    /* The elements of a constant input, valid as long as the plan; for rows that set `packs`. */
    onx_status (*elements)(const onx_prepare *p, uint32_t input, const void **out);
    /* The same for rows that can work without a constant packed into `size` bytes, in a session that keeps no such
     * memory (onx_session_options.lean_memory). ONX_E_UNSUPPORTED: the session keeps it, call `packed`. */
    onx_status (*in_place)(const onx_prepare *p, uint32_t input, uint64_t size, onx_elements *out);
    /* The ONX_PRECISION_* whose type the model stores a constant input in: elements of float that are packed in it stay
     * exactly what they are. ONX_PRECISION_FULL: none. */
    unsigned (*stored)(const onx_prepare *p, uint32_t input);
    /* Does the run, or the creation of the session, have to end? A kernel whose preparation may take longer than some
     * milliseconds asks between parts of it, and then fails with ONX_E_CANCELLED, without a diagnostic. */
    bool (*stops)(const onx_prepare *p);
} onx_prepare_ops;

/* ---- run ---- */

/* The part of the preparation that run needs: attributes have been read, and their values are in `params`. */
struct onx_prepared {
    const onx_kernel *kernel;
    int32_t since;
    uint32_t input_count, output_count;
    bool nonfinite;            /* as in onx_prepare */
    uint64_t rows, grain;      /* as set by prepare */
    uint64_t thread_workspace; /* distance in bytes between the scratch memory of two threads */
    /* internal to the engine */
    const struct onx_prepare_ops *ops;
    const void *place;
};

struct onx_work {
    onx_ctx *cx; /* NULL on worker threads: a second call records failures */
    const onx_prepared *prepared;
    const void *params;
    const onx_value *const *inputs; /* as many as at prepare */
    onx_value *const *outputs;      /* likewise */
    void *workspace, *thread_workspace;
    void *state; /* the result of bind */
    unsigned threads;
    onx_arena *text; /* memory for strings of outputs; lives until the next run */
    const struct onx_work_ops *ops;
    void *engine;
    const void *watch; /* for onx_work_stops */
};

typedef struct onx_work_ops {
    /* Runs a subgraph. `inputs` are its formal inputs; its results are assigned to the values in `outputs`. NULL or
     * missing entries are not wanted. */
    onx_status (*graph)(onx_work *work, uint32_t index, const onx_value *const *inputs, uint32_t input_count,
                        onx_value **outputs, uint32_t output_count);
    /* The type of an output for these inputs, without running; NULL in `type` if only a run can determine it. */
    onx_status (*graph_type)(onx_work *work, uint32_t index, const onx_value *const *inputs, uint32_t input_count,
                             uint32_t output, const onx_value **type);
} onx_work_ops;

enum {
    ONX_KERNEL_VIEW = 1,           /* output 0 is input 0 with other dims; run is never called for tensors */
    ONX_KERNEL_IN_PLACE = 2,       /* output 0 may reuse the memory of any input of its size and type */
    ONX_KERNEL_SHAPE_ONLY = 4,     /* reads only types and dims of inputs: the result is constant as soon as those are
                                    * known */
    ONX_KERNEL_LAYOUTS = 8,        /* supports layouts: inputs may have any layout, unless `want` says otherwise */
    ONX_KERNEL_RANDOM = 16,        /* results differ from run to run: never constant-folded */
    ONX_KERNEL_POST_OPS = 32,      /* can apply post-operations */
    ONX_KERNEL_FLAT = 64,          /* elementwise with f(0, ...) = 0: works in any layout that all inputs share */
    ONX_KERNEL_SIZES_OUTPUT = 128, /* the kernel sizes its outputs with onx_value_reset: shapes depend on data */
    /* For kernels with subgraphs. The last user of a value may take its memory instead of copying it, also when that
     * user is inside a subgraph, provided that nothing reads the value twice: */
    ONX_KERNEL_HANDS_ON = 256, /* each input of the node goes into at most one subgraph */
    ONX_KERNEL_BRANCHES = 512, /* a run enters exactly one of its subgraphs, once */
    /* For rows in onx_session_options.kernels: the kernel has side effects outside of the run, so a run is never
     * restarted. All rows are told from the start that NaN and infinities may occur (onx_prepare.nonfinite). */
    ONX_KERNEL_ONCE = 1024
};

/* The elementwise function of a row, so that kernels with ONX_KERNEL_POST_OPS can apply it as a post-operation. Every
 * row of an operator for such elements must declare it; a row that declares none (a custom one, say) is always run. */
enum {
    ONX_POST_NONE,
    ONX_POST_ADD, /* x + operand, two inputs */
    ONX_POST_RELU,
    ONX_POST_LEAKY_RELU, /* attribute alpha */
    ONX_POST_SIGMOID,
    ONX_POST_TANH,
    ONX_POST_HARD_SWISH,
    ONX_POST_CLIP, /* min and max: attributes, from version 11 on inputs */
    ONX_POST_GELU, /* attribute approximate */
    ONX_POST_SWISH /* attribute alpha */
};

/* Instruction sets. A session uses the rows of one of them, the widest that the processor supports (or
 * onx_session_options.isa), together with the rows that run everywhere. The sets after V4 extend it: they include the
 * rows of V4 and of all sets up to the chosen one. */
enum {
    ONX_ISA_ANY,
    ONX_ISA_BASE, /* baseline of the architecture: SSE2, NEON */
    ONX_ISA_V3,   /* x86-64-v3: AVX2, FMA */
    ONX_ISA_V4,   /* x86-64-v4: AVX-512 */
    ONX_ISA_VNNI, /* and AVX512_VNNI: dot products of 8-bit integers */
    ONX_ISA_BF16, /* and AVX512_BF16: dot products of bfloat16 */
    ONX_ISA_AMX,  /* and AMX: tile products of 8-bit integers and bfloat16 */
    ONX_ISA_END
};

/* Type that kernels may hold constant weights of matrix products in, if the caller allows it
 * (onx_session_options.precision). Accumulation is always in float. */
enum {
    ONX_PRECISION_FULL,
    ONX_PRECISION_BF16, /* with ONX_ISA_BF16 both operands of matrix products of several rows and of convolutions */
    ONX_PRECISION_F16,
    ONX_PRECISION_INT8, /* 8 bits, and a scale for each column of a product */
    ONX_PRECISION_END
};

#define ONX_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))

/* An operand of a node, encoded as one integer. */
#define ONX_INPUT(i)  (i)
#define ONX_OUTPUT(i) (-1 - (i))

struct onx_kernel {
    const char *op;     /* NULL ends the table */
    const char *domain; /* NULL: ai.onnx */
    int32_t since;      /* the row serves this version and later ones, up to the next row of the operator with a
                         * higher `since` */
    uint32_t dtypes;    /* bit mask of element types of the operand `dtype_from`; 0: any */
    int8_t dtype_from;  /* bit mask of inputs. If such an input is constant, the row reads its elements only through
                         * ops->packed, ops->elements and ops->in_place; `data` only tells that the input is constant.
                         * prepare never reads `data`, and run may read it only if prepare did not pack the elements,
                         * because packed elements need not be in memory unpacked */
    int8_t preference;  /* the accepting row with the highest preference is taken, the first one of a tie; the plain
                         * kernel has 0. Custom rows are asked before the built-in ones, whatever their preference */
    uint16_t flags;     /* ONX_KERNEL_* */
    uint8_t post_op;    /* ONX_POST_* */
    uint8_t isa;        /* ONX_ISA_*: the instruction set that it needs */
    uint8_t packs;      /* Bit mask of inputs. If such an input is constant, the row reads its elements through
                         * ops->packed, ops->elements and ops->in_place only, and `data` only tells that the input is
                         * constant. Elements that were only packed need not be in memory unpacked, so run may read
                         * `data` only if prepare did not pack them. prepare never reads the elements through `data` */
    /* For caches that are updated: output update_output + i may share the memory of input update_input + i, for each i
     * below `updates`, if both have the same type and shape. The row then writes only the new elements. */
    uint8_t updates, update_input, update_output;
    const char *variant; /* NULL: "plain" */
    const void *body;    /* constant of the row, for functions that several rows share */
    /* Returns ONX_E_UNSUPPORTED without a diagnostic to decline: the next row is asked. NULL: nothing to prepare. */
    onx_status (*prepare)(onx_prepare *p);
    /* Computes rows first .. last-1. While prepared->nonfinite is false it may return ONX_E_UNSUPPORTED without a
     * diagnostic: the data contain NaN or infinities that the row would lose. The run is then restarted from its
     * inputs, with rows that keep them. */
    onx_status (*run)(onx_work *work, uint64_t first, uint64_t last);
    /* Creates what belongs to one run state; work->state is kept. NULL: nothing. */
    onx_status (*bind)(onx_work *work);
    void (*unbind)(void *state);
    /* Frees what prepare allocated outside of the arena. */
    void (*release)(void *params);
    /* For operators whose output shapes no shape rule gives: sets type and dims of outputs, with onx_prepare_output. */
    onx_status (*types)(onx_prepare *p);
};

/* ---- list of kernels ---- */

/* The variants ("plain", "dnnl") of the built-in kernels that run a version of an operator. Writes the first `room` of
 * them to `variants`; returns their number, 0 for an operator without a kernel. */
ONX_API ONX_ANY_THREAD uint32_t onx_kernel_variants(onx_str domain, onx_str op, int32_t since, const char **variants,
                                                    uint32_t room);

/* ---- convenience functions ---- */

/* Attributes, while preparing: the value of the node, otherwise the default of the operator's schema
 * (docs/notes/bind.md). Reading a number or text that has neither in this version of the operator, or an attribute that
 * no version has, makes the node fail: call onx_prepare_given first. */
ONX_API ONX_OWN_THREAD bool onx_prepare_given(const onx_prepare *p, const char *name); /* by the node */
ONX_API ONX_OWN_THREAD int64_t onx_prepare_int(const onx_prepare *p, const char *name);
/* Whether there is a number and it is not 0: for flags that a version may not have. */
ONX_API ONX_OWN_THREAD bool onx_prepare_is_set(const onx_prepare *p, const char *name);
ONX_API ONX_OWN_THREAD float onx_prepare_float(const onx_prepare *p, const char *name);
ONX_API ONX_OWN_THREAD onx_str onx_prepare_text(const onx_prepare *p, const char *name);
/* NULL, with *count 0, when the list has no value or is empty. */
ONX_API ONX_OWN_THREAD const int64_t *onx_prepare_ints(const onx_prepare *p, const char *name, uint32_t *count);
ONX_API ONX_OWN_THREAD const float *onx_prepare_floats(const onx_prepare *p, const char *name, uint32_t *count);
ONX_API ONX_OWN_THREAD const onx_bytes *onx_prepare_strings(const onx_prepare *p, const char *name, uint32_t *count);
/* NULL when there is no value. */
ONX_API ONX_OWN_THREAD const onx_tensor *onx_prepare_tensor(const onx_prepare *p, const char *name);
ONX_API ONX_OWN_THREAD const onx_sparse_tensor *onx_prepare_sparse_tensor(const onx_prepare *p, const char *name);
ONX_API ONX_OWN_THREAD const onx_graph *onx_prepare_graph(const onx_prepare *p, const char *name);
/* Reads an axis attribute and makes it non-negative. */
ONX_API ONX_OWN_THREAD onx_status onx_prepare_axis(const onx_prepare *p, int64_t axis, uint32_t rank, uint32_t *out);
/* Records why the node cannot be prepared; returns `status`. */
ONX_API ONX_OWN_THREAD onx_status onx_prepare_fail(const onx_prepare *p, onx_status status, const char *format, ...)
    ONX_PRINTF(3, 4);
ONX_API ONX_OWN_THREAD onx_status onx_prepare_output(onx_prepare *p, uint32_t output, onx_dtype dtype, uint32_t rank,
                                                     const int64_t *dims);
/* Does the run have to end, because its time is over or it was cancelled? A kernel asks between pieces of work of about
 * a millisecond, wherever a row of its work may take longer; if so, it returns at once. The run then fails, so the
 * status that it returns and the outputs do not matter. Asking takes some 50 ns, so it is not for the innermost loops.
 */
ONX_API ONX_ANY_THREAD bool onx_work_stops(const onx_work *work);
/* While running: failures are recorded in the context of the run, which `prepared` does not have. */
ONX_API ONX_ANY_THREAD onx_status onx_work_axis(onx_work *work, int64_t axis, uint32_t rank, uint32_t *out);
ONX_API ONX_ANY_THREAD onx_status onx_work_fail(onx_work *work, onx_status status, const char *format, ...)
    ONX_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif

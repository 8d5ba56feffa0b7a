/* kernel.h - for extenders: the rows that operators run by. Weaker promise than the rest: it may change between
 * minor releases. See docs/custom_operators.md and docs/notes/kernels.md. */
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

/* ---- layouts: the order in which a fast kernel wants elements; NULL: row-major ---- */

typedef struct onx_layout {
    const struct onx_layout_ops *ops;
    uint64_t size; /* bytes of a tensor in this layout */
} onx_layout;

typedef struct onx_layout_ops {
    bool (*equal)(const onx_layout *a, const onx_layout *b);
    const onx_kernel *reorder; /* one input, one output, from and to any layout of these ops and row-major */
} onx_layout_ops;

/* ---- preparing: once per set of input shapes ---- */

/* A fused post-operation: a node that takes the result of the kernel and that the kernel may compute itself before it
 * stores the result: y = op(x, operand). */
typedef struct onx_post_op {
    const onx_prepare *prepare; /* the node as its own kernel (`kernel`, not asked yet) would see it: operator,
                                 * attributes, constant inputs */
    uint32_t port;              /* which input of the post-operation is this kernel's result */
    int32_t operand; /* index into this kernel's inputs of the other one; -1: it is a constant of the post-operation, or
                        there is none */
} onx_post_op;

struct onx_prepare {
    onx_ctx *cx;
    onx_arena *arena; /* for params; lives as long as they are used */
    const onx_kernel *kernel;
    const onx_node *node;
    uint32_t op;                      /* 1 + its place among the built-in operators (onx_op_get); 0: none of them */
    const struct onxi_schema *schema; /* of the operator (onx_op); NULL: only the kernel knows it */
    onx_doc *doc;                     /* that the node is in; for tensors in attributes */
    int32_t since;                    /* version of the operator */
    uint32_t input_count, output_count;
    uint32_t operand_count;         /* entries of inputs: those of the node, then operands of post-operations */
    const onx_value *const *inputs; /* NULL: omitted; data is there for constants only */
    onx_value *const *outputs;      /* output_count of them (trailing ones that the node leaves out are not there);
                                     * NULL: not asked for; type and dims are set unless the shape depends on data */
    const bool *last_use;           /* input memory that is unused afterwards and holds no other operand */
    bool nonfinite; /* NaN or infinities may come, which a row that declined while running has met: what loses
                     * them declines */
    unsigned threads;
    unsigned precision; /* ONX_PRECISION_* */
    const onx_post_op *post_ops;
    uint32_t post_op_count;
    /* set by the kernel */
    void *params;              /* what run needs to know */
    uint64_t rows;             /* independent pieces of work, default 1 */
    uint64_t grain;            /* rows worth a thread, default 1 */
    uint64_t workspace;        /* bytes for all threads of one run */
    uint64_t thread_workspace; /* bytes for each thread */
    const onx_layout *
        *want;         /* per input: its layout, for kernels with ONX_KERNEL_LAYOUTS; NULL: only row-major can be had */
    int32_t overwrite; /* output 0 takes the memory of this input, which has last_use; -1: none */
    uint32_t post_ops_done; /* how many of the post-operations it does, from the first on */
    /* the engine's side */
    const struct onxi_attrs *attrs;
    const struct onx_prepare_ops *ops;
    const void *place; /* for ops->path */
    void *engine;
};

/* Bytes that a kernel makes of a constant input. */
typedef struct onx_packing {
    uint32_t input;
    const void *key; /* tells what is made of the constant: layouts, sizes; bytes of any kind */
    size_t key_size;
    uint64_t size;   /* bytes that come out, at an address that 64 divides */
    uint64_t pieces; /* made in any order and at the same time, by any thread; 0: one */
    bool unaligned;  /* make reads elements at any address; else they are aligned to their type */
    bool in_order;   /* piece i of n reads the i-th nth part of the elements, so that others need not stay in memory */
    /* `elements` are those of the constant, row-major. Calls nothing that records. */
    onx_status (*make)(void *user, const void *elements, uint64_t piece, void *out);
    void *user;
    bool note;        /* what is made tells of the elements, and does not take their place */
    bool may_decline; /* make may give ONX_E_UNSUPPORTED: what the constant holds cannot be packed so */
    /* Elements that a piece reads: piece i none but those from i * part on, and others may not be there; 0: any. */
    uint64_t part;
} onx_packing;

/* Elements of a constant that are read a stretch at a time, by any thread. */
typedef struct onx_elements {
    const void *data; /* all of them, row-major, at any address; NULL: they are made by `read` */
    void (*read)(const void *user, uint64_t first, uint64_t count, void *out);
    const void *user;
} onx_elements;

typedef struct onx_prepare_ops {
    /* Where the node is, for diagnostics: made on demand. */
    onx_str (*path)(const void *place, onx_arena *arena);
    /* The number of a subgraph, for onx_work_ops. A kernel that asks is prepared once per plan, with types of inputs
     * where they are known by then (kind NONE otherwise), and its outputs are always sized while it runs. */
    onx_status (*graph)(const onx_prepare *p, const char *name, uint32_t *index_out);
    /* Bytes made from a constant input: on first use of the key, and kept for as long as sessions use them. */
    onx_status (*packed)(const onx_prepare *p, const onx_packing *packing, const void **out);
    /* The elements of a constant input, for as long as the plan lives; for rows that say `packs`. */
    onx_status (*elements)(const onx_prepare *p, uint32_t input, const void **out);
    /* The same for rows that can do without a constant packed into `size` bytes, in a session that has no memory for
     * those (onx_session_options.lean_memory). ONX_E_UNSUPPORTED: it has, ask for them. */
    onx_status (*in_place)(const onx_prepare *p, uint32_t input, uint64_t size, onx_elements *out);
} onx_prepare_ops;

/* ---- running ---- */

/* What is left of preparing: attributes are read by then, what they say is in `params`. */
struct onx_prepared {
    const onx_kernel *kernel;
    int32_t since;
    uint32_t input_count, output_count;
    bool nonfinite;            /* as in onx_prepare */
    uint64_t rows, grain;      /* as prepare set them */
    uint64_t thread_workspace; /* bytes from that of one thread to the next */
    /* the engine's side */
    const struct onx_prepare_ops *ops;
    const void *place;
};

struct onx_work {
    onx_ctx *cx; /* NULL on worker threads: failures are recorded by a second call */
    const onx_prepared *prepared;
    const void *params;
    const onx_value *const *inputs; /* as many as were prepared for */
    onx_value *const *outputs;      /* likewise */
    void *workspace, *thread_workspace;
    void *state; /* what bind made */
    unsigned threads;
    onx_arena *text; /* strings of outputs; lives until the next run */
    const struct onx_work_ops *ops;
    void *engine;
    const void *watch; /* private */
};

typedef struct onx_work_ops {
    /* Runs a subgraph: `inputs` are its formal inputs; what it gives is assigned to the values in `outputs`, NULL or
     * missing ones are not wanted. */
    onx_status (*graph)(onx_work *work, uint32_t index, const onx_value *const *inputs, uint32_t input_count,
                        onx_value **outputs, uint32_t output_count);
    /* The type of an output for such inputs, without running; NULL in `type` if only a run can tell. */
    onx_status (*graph_type)(onx_work *work, uint32_t index, const onx_value *const *inputs, uint32_t input_count,
                             uint32_t output, const onx_value **type);
} onx_work_ops;

enum {
    ONX_KERNEL_VIEW = 1,       /* output 0 is input 0 with other dims; run is never called for tensors */
    ONX_KERNEL_IN_PLACE = 2,   /* output 0 may take the memory of any input of its size and type */
    ONX_KERNEL_SHAPE_ONLY = 4, /* reads types and dims of inputs only: constant as soon as those are known */
    ONX_KERNEL_LAYOUTS = 8,    /* knows layouts: inputs come in any layout, unless `want` says otherwise */
    ONX_KERNEL_RANDOM = 16,    /* results differ from run to run: never folded */
    ONX_KERNEL_POST_OPS = 32,  /* may do post-operations */
    ONX_KERNEL_FLAT = 64,      /* element by element with f(0, ...) = 0: works in any layout that all inputs share */
    ONX_KERNEL_SIZES_OUTPUT = 128, /* the kernel sizes its outputs with onx_value_reset: shapes depend on data */
    /* Of kernels with subgraphs. What is unused afterwards may be taken instead of copied by the one that uses it
     * last, also when that is inside of a subgraph, provided that nothing reads it twice: */
    ONX_KERNEL_HANDS_ON = 256, /* each input of the node goes into a subgraph once at most */
    ONX_KERNEL_BRANCHES = 512, /* a run enters one of its subgraphs, once */
    /* Of rows in onx_session_options.kernels: it does something outside of the run, so that a run is never started
     * over. All rows know that NaN and infinities may come (onx_prepare.nonfinite). */
    ONX_KERNEL_ONCE = 1024
};

/* What a row computes for each element, as far as kernels with ONX_KERNEL_POST_OPS may do it in its place. Every row
 * that an operator has for such elements says so; a row that says nothing (one of your own, say) is always run. */
enum {
    ONX_POST_NONE,
    ONX_POST_ADD, /* x + operand, two inputs */
    ONX_POST_RELU,
    ONX_POST_LEAKY_RELU, /* attribute alpha */
    ONX_POST_SIGMOID,
    ONX_POST_TANH,
    ONX_POST_HARD_SWISH,
    ONX_POST_CLIP, /* attributes, from version 11 on inputs, min and max */
    ONX_POST_GELU, /* attribute approximate */
    ONX_POST_SWISH /* attribute alpha */
};

/* Instruction sets. A session takes the rows of one of them, the widest that the processor has (or
 * onx_session_options.isa), beside those that run everywhere. What comes after V4 adds to it: there rows of V4 and of
 * all up to the one that was chosen count. */
enum {
    ONX_ISA_ANY,
    ONX_ISA_BASE, /* of the architecture: SSE2, NEON */
    ONX_ISA_V3,   /* x86-64-v3: AVX2, FMA */
    ONX_ISA_V4,   /* x86-64-v4: AVX-512 */
    ONX_ISA_VNNI, /* and AVX512_VNNI: products of bytes */
    ONX_ISA_BF16, /* and AVX512_BF16: products of bfloat16 */
    ONX_ISA_AMX,  /* and AMX: tiles of bytes and bfloat16 */
    ONX_ISA_END
};

/* What kernels may hold constant weights of products in, where a caller says so (onx_session_options.precision). Sums
 * are floats all the same. */
enum {
    ONX_PRECISION_FULL,
    ONX_PRECISION_BF16, /* with ONX_ISA_BF16 both sides of products of several rows and of convolutions */
    ONX_PRECISION_F16,
    ONX_PRECISION_INT8, /* 8 bits, and a factor for each column of a product */
    ONX_PRECISION_END
};

#define ONX_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))

/* An operand of a node, in one number. */
#define ONX_INPUT(i)  (i)
#define ONX_OUTPUT(i) (-1 - (i))

struct onx_kernel {
    const char *op;     /* NULL ends a table */
    const char *domain; /* NULL: ai.onnx */
    int32_t since;      /* serves this version and later ones until a row of the same operator with a higher `since` */
    uint32_t dtypes;    /* bits of element types, of the operand `dtype_from`; 0: any */
    int8_t dtype_from;  /* ONX_INPUT(i) or ONX_OUTPUT(i) */
    int8_t preference;  /* the highest that accepts is taken, of equal ones the first; the plain kernel has 0. A row of
                         * yours is asked before the built-in ones whatever they have */
    uint16_t flags;     /* ONX_KERNEL_* */
    uint8_t post_op;    /* ONX_POST_* */
    uint8_t isa;        /* ONX_ISA_*: which processors it is for */
    uint8_t packs;      /* bits of inputs. Where one is a constant, the row reads its elements by ops->packed,
                         * ops->elements and ops->in_place alone, and `data` does but tell that it is one. Elements that are
                         * packed only      need not be in memory unpacked: run may not read them, where      they were
                         * packed. prepare      never looks at them otherwise */
    /* A cache that is passed on: output update_output + i may be where input update_input + i is, for each i below
     * `updates`, when both have one type and shape. The row then writes what is new and leaves the rest. */
    uint8_t updates, update_input, update_output;
    const char *variant; /* NULL: "plain" */
    const void *body;    /* a row's own constant for shared functions */
    /* ONX_E_UNSUPPORTED, nothing recorded, declines: the next row is asked. NULL: nothing to prepare. */
    onx_status (*prepare)(onx_prepare *p);
    /* Does rows first .. last-1. ONX_E_UNSUPPORTED, nothing recorded, while prepared->nonfinite is not set: the data
     * hold NaN or infinities that the row loses. The run starts over from its inputs, with rows that do not. */
    onx_status (*run)(onx_work *work, uint64_t first, uint64_t last);
    /* Things that belong to one run state; work->state is kept. NULL: none. */
    onx_status (*bind)(onx_work *work);
    void (*unbind)(void *state);
    /* Frees what prepare made outside the arena. */
    void (*release)(void *params);
    /* Where no shape rule says it: sets type and dims of outputs, with onx_prepare_output. */
    onx_status (*types)(onx_prepare *p);
};

/* ---- what there is ---- */

/* The variants ("plain", "dnnl") of the built-in kernels that run a version of an operator: the first `room` of them
 * are written to `variants`; returns how many there are, 0 for an operator without a kernel. */
ONX_API ONX_ANY_THREAD uint32_t onx_kernel_variants(onx_str domain, onx_str op, int32_t since, const char **variants,
                                                    uint32_t room);

/* ---- conveniences ---- */

/* Attributes, while preparing: what the node gives, else the default of the operator's schema (docs/notes/bind.md).
 * Reading a number or text that has neither in this version of the operator, or any attribute that no version has,
 * fails the node: ask first. */
ONX_API ONX_OWN_THREAD bool onx_prepare_given(const onx_prepare *p, const char *name); /* by the node */
ONX_API ONX_OWN_THREAD int64_t onx_prepare_int(const onx_prepare *p, const char *name);
/* There is a number and it is not 0: for flags that a version may not have. */
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
/* An axis attribute made non-negative. */
ONX_API ONX_OWN_THREAD onx_status onx_prepare_axis(const onx_prepare *p, int64_t axis, uint32_t rank, uint32_t *out);
/* Records why the node cannot be done; returns `status`. */
ONX_API ONX_OWN_THREAD onx_status onx_prepare_fail(const onx_prepare *p, onx_status status, const char *format, ...)
    ONX_PRINTF(3, 4);
ONX_API ONX_OWN_THREAD onx_status onx_prepare_output(onx_prepare *p, uint32_t output, onx_dtype dtype, uint32_t rank,
                                                     const int64_t *dims);
/* While running: what failed is said in the context of the run, which `prepared` does not know. */
ONX_API ONX_ANY_THREAD onx_status onx_work_axis(onx_work *work, int64_t axis, uint32_t rank, uint32_t *out);
ONX_API ONX_ANY_THREAD onx_status onx_work_fail(onx_work *work, onx_status status, const char *format, ...)
    ONX_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif

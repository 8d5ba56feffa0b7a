/* op.h - the operator registry: every version of every ONNX operator as data, custom operators, and operator-set
 * documents. */
#ifndef ONX_OP_H
#define ONX_OP_H

#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One version of an operator. Built-in ones live as long as the library, others as long as their registry. */
typedef struct onxi_schema onx_op;

enum { /* onx_op_flags */
       ONX_OP_EXPERIMENTAL = 1,
       ONX_OP_DEPRECATED = 2,
       ONX_OP_FUNCTION = 4,         /* defined by a function body */
       ONX_OP_CONTEXT_FUNCTION = 8, /* defined by a body that depends on types or attributes */
       ONX_OP_INFERS = 16,          /* the standard defines type and shape inference */
       ONX_OP_PROPAGATES = 32,      /* the standard defines the propagation of integer values */
       ONX_OP_NONDETERMINISTIC = 64,
       ONX_OP_DETERMINISM_UNKNOWN = 128, /* the standard leaves open whether it is deterministic */
       ONX_OP_OPEN = 256,                /* inputs, outputs and attributes are not known: any are allowed */
       ONX_OP_STANDARD = 512 /* of the ONNX standard; others of its domains are of the time before its first release */
};

enum { /* onx_op_port.flags */
       ONX_PORT_OPTIONAL = 1,
       ONX_PORT_VARIADIC = 2,      /* takes all remaining values: at least one, or none with ARITY_0 */
       ONX_PORT_HETEROGENEOUS = 4, /* the values of a variadic port may differ in type */
       ONX_PORT_DIFF = 8,          /* differentiable */
       ONX_PORT_NONDIFF = 16,      /* not differentiable; neither: not defined */
       ONX_PORT_ARITY_0 = 32
};

/* An input or output. */
typedef struct onx_op_port {
    const char *name;
    const char *type; /* name of a type constraint, or a type: "tensor(int64)" */
    uint32_t flags;   /* ONX_PORT_* */
} onx_op_port;

typedef struct onx_op_attribute {
    const char *name;
    uint8_t type; /* onx_attribute_type */
    bool required;
    const char *default_text; /* the default as the text syntax writes it: 0.01, 1, "NOTSET", [0, 1]; NULL: none */
} onx_op_attribute;

/* ---- the built-in operators ---- */

/* Number of operators; the versions of an operator count once. */
ONX_API ONX_ANY_THREAD uint32_t onx_op_count(void);
/* The newest version of each operator, sorted by domain and name; NULL past the end. */
ONX_API ONX_ANY_THREAD const onx_op *onx_op_get(uint32_t index);
/* The version in force when `opset` of the domain is imported; "" and "ai.onnx" are the same. NULL when there is none.
 */
ONX_API ONX_ANY_THREAD const onx_op *onx_op_find(onx_str domain, onx_str name, int64_t opset);
ONX_API ONX_ANY_THREAD const onx_op *onx_op_newest(onx_str domain, onx_str name);
/* The next older version of the same operator, or NULL. */
ONX_API ONX_ANY_THREAD const onx_op *onx_op_older(const onx_op *op);
/* Newest known version of a domain, 0 for an unknown one. */
ONX_API ONX_ANY_THREAD int64_t onx_domain_newest(onx_str domain);

/* ---- properties of one version; texts are not NULL unless the declaration says so ---- */

ONX_API ONX_ANY_THREAD const char *onx_op_domain(const onx_op *op); /* "" for ai.onnx */
ONX_API ONX_ANY_THREAD const char *onx_op_name(const onx_op *op);
ONX_API ONX_ANY_THREAD int32_t onx_op_since(const onx_op *op);
ONX_API ONX_ANY_THREAD uint32_t onx_op_flags(const onx_op *op);
/* ONNX's family of the operator: "math", "nn"; "custom" for those that are not built in. */
ONX_API ONX_ANY_THREAD const char *onx_op_family(const onx_op *op);
/* What the operator does, one sentence; may be empty for custom ones. */
ONX_API ONX_ANY_THREAD const char *onx_op_summary(const onx_op *op);
/* Number of multiply-adds, or operations of similar cost, that a node takes, as a sum of products: "out0 in0[-1]" or
 * "in0[0] in0[1] in1 + in0[0] in0[1] in2". "": it only moves elements. NULL: it depends on data, or is unknown. A
 * factor is one of: a number; in0, out0: the number of elements of an input or output; in1[2], in1[-2]: one of its
 * dims, from the front or from the end; in1[1:]: the product of its dims from there on; in0[transA?0:1]: the first dim
 * if the attribute is not 0, otherwise the second one, and either may be such a choice again; the name of an attribute:
 * its number, or the product of its numbers; letters: the product of the sizes of all letters of the attribute
 * "equation". A product that contains an omitted input is 0. */
ONX_API ONX_ANY_THREAD const char *onx_op_work(const onx_op *op);
/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_op_port *onx_op_input(const onx_op *op, uint32_t index);
ONX_API ONX_ANY_THREAD const onx_op_port *onx_op_output(const onx_op *op, uint32_t index);
ONX_API ONX_ANY_THREAD const onx_op_attribute *onx_op_attribute_at(const onx_op *op, uint32_t index);
/* Maximum number of values that a node may have; ONX_OP_MANY: no limit. */
#define ONX_OP_MANY 0xffffu
ONX_API ONX_ANY_THREAD uint32_t onx_op_min_input(const onx_op *op);
ONX_API ONX_ANY_THREAD uint32_t onx_op_max_input(const onx_op *op);
ONX_API ONX_ANY_THREAD uint32_t onx_op_min_output(const onx_op *op);
ONX_API ONX_ANY_THREAD uint32_t onx_op_max_output(const onx_op *op);
/* Name of a type constraint ("T"); NULL past the last one. */
ONX_API ONX_ANY_THREAD const char *onx_op_type_name(const onx_op *op, uint32_t index);
/* Iterates over the types that a constraint allows, as text: start with *at 0; false at the end. */
#define ONX_OP_TYPE_TEXT 80
ONX_API ONX_ANY_THREAD bool onx_op_type_next(const onx_op *op, uint32_t index, uint32_t *at,
                                             char text[ONX_OP_TYPE_TEXT]);
/* The body that an operator-set document gives the operator, or NULL. */
ONX_API ONX_ANY_THREAD const onx_function *onx_op_body(const onx_op *op);
/* Whether onx has a decomposition of the operator into other operators, so that it runs without its own kernel. */
ONX_API ONX_ANY_THREAD bool onx_op_is_composed(const onx_op *op);

/* The following functions write text as snprintf does and return its full length; for `buf` NULL and `size` 0 nothing
 * is written. */

/* Y, Mask? = Dropout <seed?> (data, ratio?, training_mode?): ? optional, ... takes the rest, = x a default. */
ONX_API ONX_ANY_THREAD size_t onx_op_signature(const onx_op *op, char *buf, size_t size);
/* The types that a constraint allows: "tensor(float, double), seq(tensor(float))". */
ONX_API ONX_ANY_THREAD size_t onx_op_type_text(const onx_op *op, uint32_t index, char *buf, size_t size);
/* One line on what changed from the next older version to this one; "new" for the first version. */
ONX_API ONX_ANY_THREAD size_t onx_op_change(const onx_op *op, char *buf, size_t size);

/* ---- registries: custom operators ---- */

/* The built-in operators plus custom ones. Functions that take a registry accept NULL: built-in operators only. */
typedef struct onx_registry onx_registry;
ONX_API ONX_OWN_THREAD onx_status onx_registry_new(onx_ctx *cx, onx_registry **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_registry_free(onx_registry *registry);
/* Sets the default registry of the context. Every call with the context whose options name no registry uses it: checks,
 * inference, sessions and transforms. It must outlive everything that is made meanwhile. When it is freed, the context
 * that it was made with forgets it. `registry` may be NULL: built-in operators only. */
ONX_API ONX_OWN_THREAD void onx_ctx_set_registry(onx_ctx *cx, const onx_registry *registry);
/* As onx_op_find, among the versions that are built in and those of the registry, which may be NULL. */
ONX_API ONX_ANY_THREAD const onx_op *onx_registry_find(const onx_registry *registry, onx_str domain, onx_str name,
                                                       int64_t opset);
/* The newest version of each operator, built-in ones first; NULL past the end. `registry` may be NULL. */
ONX_API ONX_ANY_THREAD const onx_op *onx_registry_get(const onx_registry *registry, uint32_t index);
/* Whether the registry knows all operators of the domain, so that an operator that it does not find does not exist.
 * `registry` may be NULL. */
ONX_API ONX_ANY_THREAD bool onx_registry_has_domain(const onx_registry *registry, onx_str domain);
/* As onx_domain_newest. `registry` may be NULL. */
ONX_API ONX_ANY_THREAD int64_t onx_registry_newest(const onx_registry *registry, onx_str domain);

/* A node whose types and shapes are being inferred, for custom operators. */
typedef struct onxi_call onx_op_call;
/* A non-negative number is a size; a negative one stands for a symbol, an expression or an unknown size, and may be
 * copied to outputs. */
typedef int64_t onx_op_dim;
#define ONX_OP_DIM_UNKNOWN INT64_MIN
ONX_API ONX_OWN_THREAD uint32_t onx_op_call_input_count(const onx_op_call *call);
ONX_API ONX_OWN_THREAD uint32_t onx_op_call_output_count(const onx_op_call *call);
/* Element type of a tensor input; ONX_UNDEFINED: omitted, not a tensor, or unknown. */
ONX_API ONX_OWN_THREAD onx_dtype onx_op_call_dtype(const onx_op_call *call, uint32_t input);
/* -1: not known. */
ONX_API ONX_OWN_THREAD int onx_op_call_rank(const onx_op_call *call, uint32_t input);
ONX_API ONX_OWN_THREAD onx_op_dim onx_op_call_dim(const onx_op_call *call, uint32_t input, uint32_t axis);
/* The attribute that the node gives, or NULL. */
ONX_API ONX_OWN_THREAD const onx_attribute *onx_op_call_attribute(onx_op_call *call, const char *name);
ONX_API ONX_OWN_THREAD bool onx_op_call_given(onx_op_call *call, const char *name);
/* An attribute of type INT: the value of the node, otherwise the default of the schema. Asking for an attribute that
 * has neither makes the node fail. */
ONX_API ONX_OWN_THREAD int64_t onx_op_call_int(onx_op_call *call, const char *name);
/* The elements of an integer input if they are known before running, or NULL. */
ONX_API ONX_OWN_THREAD const onx_op_dim *onx_op_call_value(onx_op_call *call, uint32_t input, uint32_t *count);
/* Rank -1: not known. */
ONX_API ONX_OWN_THREAD onx_status onx_op_call_set(onx_op_call *call, uint32_t output, onx_dtype dtype,
                                                  const onx_op_dim *dims, int rank);
/* Reports why the node is invalid; returns ONX_E_INVALID, which the rule returns. */
ONX_API ONX_OWN_THREAD onx_status onx_op_call_fail(onx_op_call *call, const char *format, ...) ONX_PRINTF(2, 3);

/* Definition of a custom operator. Everything is copied except `user` and `kernel`. */
typedef struct onx_op_def {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    const char *domain, *name;
    int32_t since;                       /* first version of the domain that has it */
    uint32_t flags;                      /* ONX_OP_* */
    const char *summary;                 /* NULL: none */
    const onx_op_port *inputs, *outputs; /* end with a NULL name; NULL: none */
    const onx_op_attribute *attributes;  /* ends with a NULL name; NULL: none */
    const char *const *types;            /* pairs, ends with NULL: "T", "tensor(float) tensor(double)"; NULL: none */
    onx_status (*infer)(void *user, onx_op_call *call); /* NULL: nothing is inferred */
    void *user;
    const struct onx_kernel *kernel; /* rows of onx/kernel.h, ending with a NULL name; NULL: none */
} onx_op_def;

/* Adds one version of an operator; the versions of an operator may be added in any order. Built-in operators are
 * refused except in versions newer than the newest known of their domain, and so is a version that exists already.
 * Names against the conventions for operator authors are reported as notes (rules N-12, TY-18). */
ONX_API ONX_OWN_THREAD onx_status onx_op_register(onx_registry *registry, const onx_op_def *def);
/* The kernels and the user pointer of its definition, or NULL. */
ONX_API ONX_ANY_THREAD const struct onx_kernel *onx_op_kernel(const onx_op *op);
ONX_API ONX_ANY_THREAD void *onx_op_user(const onx_op *op);

/* ---- operator-set documents (OperatorSetProto) ---- */

/* Adds operators and functions of a checked document, which must live as long as the registry: of built-in operators,
 * only versions newer than the newest known. An operator with a function of the same name takes inputs, outputs,
 * attributes and body from it. Loading the same (domain, version) twice is refused. */
ONX_API ONX_OWN_THREAD onx_status onx_registry_load(onx_registry *registry, const onx_doc *document);
/* A document that describes a built-in domain at a version; operators that are deprecated at that version are left
 * out. */
ONX_API ONX_OWN_THREAD onx_status onx_opset_export(onx_ctx *cx, onx_str domain, int64_t opset, onx_doc **out);
/* Checks the rules of operator-set documents (OS-*) and reports diagnostics of the context; ONX_E_INVALID when one is
 * an error. The functions of the document (OS-13) are checked like any function, with onx/check.h. */
ONX_API ONX_OWN_THREAD onx_status onx_opset_check(onx_ctx *cx, const onx_doc *document);

/* A difference between two documents of one domain. */
typedef enum onx_opset_change {
    ONX_OPSET_ADDED,   /* operator or function only in the newer document */
    ONX_OPSET_REMOVED, /* only in the older document */
    ONX_OPSET_VERSION, /* newer version */
    ONX_OPSET_EDITED   /* same version, other text, status or body */
} onx_opset_change;
typedef struct onx_opset_difference {
    onx_opset_change change;
    onx_str name;
    bool is_function;
    int64_t old_since, new_since; /* 0: absent */
    const char *rule;             /* versioning rule that the change breaks, or NULL */
    const char *what;             /* "status", "description", "body", ...; NULL where `change` is sufficient */
} onx_opset_difference;
/* Calls `found` for each difference, ordered by name; violations of versioning rules (OS-06, OS-10, OS-11, OS-15) are
 * also reported as diagnostics. The newer document comes second. A status other than ONX_OK from `found` stops the
 * comparison and is returned. `found` may be NULL, for the diagnostics alone. */
ONX_API ONX_OWN_THREAD onx_status onx_opset_compare(onx_ctx *cx, const onx_doc *older, const onx_doc *newer,
                                                    onx_status (*found)(void *user,
                                                                        const onx_opset_difference *difference),
                                                    void *user);

#ifdef __cplusplus
}
#endif
#endif

/* infer.h - infers types and shapes of the values of a model, as far as possible without running it. Dimensions are
 * expressions over the symbols of the model (N + 1, 2*seq, (H + 1)/2). See docs/notes/infer.md. */
#ifndef ONX_INFER_H
#define ONX_INFER_H

#include <onx/ir.h>
#include <onx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A symbolic dimension and the size to use for it. A symbol that the model does not have is a warning. */
typedef struct onx_infer_fixed {
    const char *name;
    int64_t size;
} onx_infer_fixed;

typedef struct onx_infer_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    bool strict;          /* failures are errors; otherwise they are warnings and inference continues */
    bool check_type;      /* check inputs and outputs against the type constraints of the operators */
    bool no_data_prop;    /* do not propagate the values of small integer tensors */
    bool plain_names;     /* write only dimensions that are numbers or single names, not expressions */
    const onx_infer_fixed *fixed;
    uint32_t fixed_count;
    const onx_registry *registry; /* custom operators with their callbacks; NULL: the registry of the context */
} onx_infer_options;

/* ---- inference of a whole model ---- */

/* Infers and writes the result into the model: value_info for node outputs, and the missing parts of declared types.
 * With `strict` any failure is ONX_E_INVALID and the model is unchanged. Without it only an error that makes the model
 * meaningless is ONX_E_INVALID (an operator set that is not imported, functions that call themselves). All findings are
 * diagnostics of the context. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_infer_model(onx_ctx *cx, onx_doc *doc, const onx_infer_options *options);

/* ---- inference in steps ---- */

/* The inferred types of the values of a model. It refers to the document, which must outlive it and must not change. */
typedef struct onx_infer onx_infer;

/* Infers without writing. Fails as onx_infer_model does; *out is then NULL. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_infer_new(onx_ctx *cx, onx_doc *doc, const onx_infer_options *options,
                                                onx_infer **out);
/* NULL is allowed. */
ONX_API ONX_OWN_THREAD void onx_infer_free(onx_infer *infer);
/* Writes the result into the model. Symbols that were fixed also become numbers in the inputs of the model. */
ONX_API ONX_OWN_THREAD onx_status onx_infer_apply(onx_infer *infer);
/* Fixes a symbol to a number, with the same result as if it had been fixed from the start. Only nodes that depend on
 * the symbol are inferred again. Contradictions are reported as by onx_infer_new; with `strict` they are ONX_E_INVALID
 * and the call changes nothing. The symbol may be fixed to another number later, but not after the result was written
 * (ONX_E_MISUSE). ONX_E_NOT_FOUND when no dimension of the model contains the symbol. */
ONX_API ONX_OWN_THREAD onx_status onx_infer_fix(onx_infer *infer, onx_str name, int64_t size);

/* The type of a value of `graph` (the main graph or a subgraph at any depth); NULL when unknown. It lives as long as
 * `infer`. */
ONX_API ONX_OWN_THREAD const onx_type *onx_infer_type(onx_infer *infer, const onx_graph *graph, onx_str name);
/* The same as a callback for onx_text_options.type_of; pass `infer` as the user pointer. */
ONX_API ONX_OWN_THREAD const onx_type *onx_infer_type_of(void *infer, onx_kind scope_kind, const void *scope,
                                                         onx_str name);

typedef struct onx_infer_summary {
    uint64_t values;   /* outputs of nodes of the main graph and of subgraphs */
    uint64_t known;    /* type and every dimension are known */
    uint64_t symbolic; /* some dimension is an expression */
    uint64_t open;     /* some dimension depends on data: a symbol that the model does not name */
    uint64_t unknown;  /* no rank, or no type at all */
    uint64_t failed;   /* nodes whose inference failed */
} onx_infer_summary;
ONX_API ONX_OWN_THREAD onx_infer_summary onx_infer_summarize(const onx_infer *infer);

/* Why something is unknown: the first node whose output type could not be inferred. In node order; NULL past the last
 * one. */
typedef struct onx_infer_loss {
    onx_str path; /* graph.node[3] "nms" (NonMaxSuppression) */
    onx_str op_type;
    onx_str reason;
    uint64_t values; /* number of values that are unknown because of it, its own outputs included */
} onx_infer_loss;
ONX_API ONX_OWN_THREAD const onx_infer_loss *onx_infer_loss_get(const onx_infer *infer, uint32_t index);

/* ---- inference of parts of a model ---- */

/* The types of the outputs of a graph for the given input types (NULL entries: as declared). `model` provides operator
 * sets and functions. `outputs` receives output_count types in the arena, NULL where unknown. `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_infer_graph(onx_ctx *cx, const onx_model *model, const onx_graph *graph,
                                                  const onx_type *const *inputs, uint32_t input_count,
                                                  const onx_infer_options *options, onx_arena *arena,
                                                  const onx_type **outputs);
/* The same for a function, with the attributes of the caller. NULL entries of `inputs` are omitted inputs. `model`
 * provides the functions that it may call. `model` may be NULL: there are none; `options` may be NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_infer_function(onx_ctx *cx, const onx_model *model, const onx_function *function,
                                                     const onx_type *const *inputs, uint32_t input_count,
                                                     const onx_attribute *const *attributes, uint32_t attribute_count,
                                                     const onx_infer_options *options, onx_arena *arena,
                                                     const onx_type **outputs);

#ifdef __cplusplus
}
#endif
#endif

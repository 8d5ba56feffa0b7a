/* transform.h - models made into other models: a pass is a row that says what it does and what it may change. */
#ifndef ONX_TRANSFORM_H
#define ONX_TRANSFORM_H

#include <onx/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- passes ---- */

typedef enum onx_pass_effect {
    ONX_PASS_EXACT,   /* the results stay the same, bit by bit */
    ONX_PASS_ROUNDING /* the results stay the same within rounding */
} onx_pass_effect;

typedef struct onx_pass {
    const char *name;    /* "retarget" */
    const char *summary; /* what it does, one line, lower case */
    const char *options; /* of the program, separated by spaces */
    onx_pass_effect effect;
} onx_pass;

/* NULL past the last one. */
ONX_API ONX_ANY_THREAD const onx_pass *onx_pass_get(uint32_t index);

/* One thing that a pass did; texts live as long as the call of `changed`. */
typedef struct onx_change {
    const char *pass; /* name of its row */
    onx_str rule;     /* which of its rules: "Squeeze 11 to 13" */
    onx_str path;     /* of what is changed, as in diagnostics */
    onx_str text;     /* what was done, one sentence without full stop */
} onx_change;

/* ---- retarget ---- */

typedef struct onx_opset_version {
    onx_str domain; /* "" and "ai.onnx" are one */
    int64_t version;
} onx_opset_version;

typedef struct onx_retarget_options {
    uint32_t struct_size;                                  /* sizeof of this struct, or 0 (onx/base.h) */
    bool dry_run;                                          /* say what would be done, and leave the model as it is */
    bool best_effort;                                      /* go on past what cannot be done, which becomes a warning */
    void (*changed)(void *user, const onx_change *change); /* NULL: nobody wants to know */
    void *user;
    const onx_opset_version *opset; /* what to go to; other domains stay as they are */
    uint32_t opset_count;
    int64_t ir_version; /* 0: that of the model, or what the operator sets need where that is more */
} onx_retarget_options;

/* Rewrites the nodes of graphs, subgraphs, functions and training information for other versions of the standard
 * operator sets, up or down, so that they mean the same. Weights are not touched. What cannot be expressed there is
 * reported, all of it, each with node, reason and the nearest version that can, as ONX_E_UNSUPPORTED, and the model is
 * as it was. */
ONX_API ONX_OWN_THREAD onx_status onx_retarget(onx_ctx *cx, onx_doc *doc, const onx_retarget_options *options);

/* ---- inline ---- */

typedef struct onx_function_name {
    onx_str domain, name; /* of any overload */
} onx_function_name;

typedef struct onx_inline_options {
    uint32_t struct_size;              /* sizeof of this struct, or 0 (onx/base.h) */
    const onx_function_name *function; /* these alone; none: all of the model */
    uint32_t function_count;
    bool exclude; /* all but these */
    bool schema;  /* operators of the standard that are functions are replaced by their bodies, too */
} onx_inline_options;

/* Puts the bodies of functions in place of their calls, in graphs, subgraphs, training information and the functions
 * that stay, and removes them. Values that a body makes get names of their own. Functions that import other versions of
 * the standard operator sets than the model are taken to those first. ONX_E_INVALID for a function that calls itself,
 * ONX_E_NOT_FOUND for a name that the model has no function of; the model may be partly changed then. `options` may be
 * NULL. */
ONX_API ONX_OWN_THREAD onx_status onx_inline(onx_ctx *cx, onx_doc *doc, const onx_inline_options *options);

#ifdef __cplusplus
}
#endif
#endif

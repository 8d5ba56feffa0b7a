/* check.h - checks whether a model follows the rules of ONNX. Findings are diagnostics of the context; the rules are
 * rows of a table. */
#ifndef ONX_CHECK_H
#define ONX_CHECK_H

#include <onx/ir.h>
#include <onx/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the rules ---- */

typedef enum onx_rule_level { ONX_MUST, ONX_SHOULD, ONX_MAY } onx_rule_level;

/* Default severity of a violation; NONE: nothing is reported (the rule is a permission or a definition). */
typedef enum onx_rule_severity { ONX_RULE_NONE, ONX_RULE_NOTE, ONX_RULE_WARNING, ONX_RULE_ERROR } onx_rule_severity;

/* The part of onx that checks the rule. */
typedef enum onx_rule_by {
    ONX_BY_CHECK,  /* onx_check */
    ONX_BY_FULL,   /* onx_check with ONX_CHECK_FULL: it needs types and shapes */
    ONX_BY_READER, /* the readers of the formats */
    ONX_BY_WRITER,
    ONX_BY_RUNNER,  /* while a model runs */
    ONX_BY_DIFF,    /* needs two files: onx diff */
    ONX_BY_NATURE,  /* a permission or a definition, which every part follows */
    ONX_BY_REGISTRY /* onx_op_register, for custom operators */
} onx_rule_by;

enum {
    ONX_RULE_DERIVED = 1, /* derived from the documents or from safety, not stated literally */
    ONX_RULE_OFF = 2      /* reported only when ONX_CHECK_PEDANTIC or `only` asks for it */
};

typedef struct onx_rule {
    const char *id; /* "T-04"; stable, never reused */
    onx_rule_level level;
    uint32_t flags; /* ONX_RULE_* */
    onx_rule_by by;
    onx_rule_severity severity;
    const char *see;     /* the rule whose id the finding carries, or NULL */
    const char *source;  /* document and section */
    const char *text;    /* what has to hold, one sentence */
    const char *example; /* a violation, or "accept: ..." for something that must pass */
} onx_rule;

ONX_API ONX_ANY_THREAD size_t onx_rule_count(void);
/* Ordered by group and number; NULL past the end. */
ONX_API ONX_ANY_THREAD const onx_rule *onx_rule_get(size_t index);
/* NULL when there is no such rule. */
ONX_API ONX_ANY_THREAD const onx_rule *onx_rule_find(onx_str id);
/* "Dense tensors" for "T-04". */
ONX_API ONX_ANY_THREAD const char *onx_rule_group(const onx_rule *rule);

/* ---- checking ---- */

enum {
    ONX_CHECK_FULL = 1,                     /* also infer types and shapes, strictly */
    ONX_CHECK_STRICT = 2,                   /* warnings are errors */
    ONX_CHECK_CUSTOM_DOMAINS = 4,           /* operators of other domains must be known */
    ONX_CHECK_SKIP_OPSET_COMPATIBILITY = 8, /* rule F-06 is not applied */
    ONX_CHECK_CHECKSUMS = 16,               /* read external data files and verify their checksums */
    ONX_CHECK_STRUCTURE = 32,               /* only errors, as fast as possible: no notes, no warnings, no access to
                                             * files */
    ONX_CHECK_PEDANTIC = 64,                /* also the notes that are off by default */
    ONX_CHECK_NEWER_OPSETS = 128, /* a version newer than the newest known one is a warning; the newest known one is
                                   * used */
    ONX_CHECK_NO_NOTES = 256,     /* errors and warnings only */
    ONX_CHECK_OPEN_SHAPES = 512,  /* inputs and outputs of the main graph need no shape: the values of a run have one */
    /* A violation of the standard that still has exactly one meaning is a warning, one per rule: nodes that are not in
     * topological order, a graph without a name, inputs and outputs without a type, initializers that are not inputs
     * before IR version 4. With ONX_CHECK_STRICT it stays an error. */
    ONX_CHECK_ONE_MEANING = 1024
};

typedef struct onx_check_options {
    uint32_t struct_size; /* sizeof of this struct, or 0 (onx/base.h) */
    uint32_t flags;       /* ONX_CHECK_* */
    uint32_t max_errors;  /* number of findings kept per severity; 0: the limit of the context */
    /* For documents that are not models: the IR version and operator sets of the model around the part. 0: the newest
     * IR version; no imports: the newest version of each standard domain. */
    int64_t ir_version;
    onx_operator_set_id *const *opset_import;
    size_t opset_import_count;
    /* Rule ids ("T-04") or groups ("T"); NULL: all. */
    const char *const *only;
    size_t only_count;
    const char *const *ignore;
    size_t ignore_count;
    const onx_registry *registry; /* custom operators and those of operator-set documents; NULL: the registry of the
                                   * context */
} onx_check_options;

typedef struct onx_check_summary {
    size_t errors, warnings, notes; /* number of all findings, including those beyond max_errors */
} onx_check_summary;

/* Checks a document of any kind and reports every finding as a diagnostic with rule, path, value and hint, ordered by
 * place. ONX_OK: no errors. ONX_E_INVALID: errors were found. Another status: the check could not be completed.
 *
 * `options` and `summary_out` may be NULL. External data is opened only as far as the rules need it; weights are not
 * read. */
ONX_API ONX_OWN_THREAD onx_status onx_check(onx_ctx *cx, onx_doc *doc, const onx_check_options *options,
                                            onx_check_summary *summary_out);

/* Compares two editions of a model: reports a note of rule M-10 when inputs, outputs or the graph changed and
 * model_version did not increase accordingly. */
ONX_API ONX_OWN_THREAD onx_status onx_check_update(onx_ctx *cx, const onx_doc *older, const onx_doc *newer);

#ifdef __cplusplus
}
#endif
#endif

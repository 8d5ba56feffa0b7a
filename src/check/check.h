/* check.h - the internals of the checker: places, findings, names in scope, resolved operators. See
 * docs/notes/check.md. */
#ifndef ONXI_CHECK_H
#define ONXI_CHECK_H

#include <onx/check.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

/* ---- the rule tables: one per group, in the file that checks the group; row i has number i + 1 ---- */

typedef struct onxi_check_rule_group {
    const char *prefix; /* "T" */
    const char *name;   /* "Dense tensors" */
    const onx_rule *rules;
    uint32_t count, first; /* `first`: index of the first rule in the order of all rules */
} onxi_check_rule_group;
extern const onxi_check_rule_group onxi_check_rule_groups[];
#define ONXI_RULE_COUNT 420
/* Maximum number of findings with a spelling suggestion, because finding one takes time. */
#define ONXI_HINTS 64

extern const onx_rule onxi_check_rules_wire[], onxi_check_rules_model[], onxi_check_rules_opset[],
    onxi_check_rules_graph[], onxi_check_rules_names[], onxi_check_rules_node[], onxi_check_rules_attribute[],
    onxi_check_rules_function[], onxi_check_rules_tensor[], onxi_check_rules_sparse[], onxi_check_rules_type[],
    onxi_check_rules_data[], onxi_check_rules_external[], onxi_check_rules_scope[], onxi_check_rules_training[],
    onxi_check_rules_quantization[], onxi_check_rules_metadata[], onxi_check_rules_device[],
    onxi_check_rules_opset_doc[], onxi_check_rules_version[];

/* ---- places ---- */

/* Members on the path from the root to a place, in the order in which findings are sorted. */
typedef enum onxi_check_step {
    ONXI_STEP_ROOT,
#define STEP(name) ONXI_STEP_##name,
#include "check/check_steps.def"
    ONXI_STEP_COUNT
} onxi_check_step;

#define ONXI_NO_INDEX UINT32_MAX

/* A place: a chain of frames on the stack, so that it costs nothing unless it is printed. */
typedef struct onxi_check_at {
    const struct onxi_check_at *up;
    onxi_check_step step;
    uint32_t index;      /* position in a repeated member, or ONXI_NO_INDEX */
    onx_kind kind;       /* kind of `message`, for its name in the path */
    const void *message; /* or NULL */
} onxi_check_at;

#define ONXI_AT(up_, step_) (&(const onxi_check_at){ (up_), ONXI_STEP_##step_, ONXI_NO_INDEX, ONX_KIND_NONE, NULL })
#define ONXI_AT_MESSAGE(up_, step_, KIND, message_)                                                                    \
    (&(const onxi_check_at){ (up_), ONXI_STEP_##step_, ONXI_NO_INDEX, ONX_KIND_##KIND, (message_) })
#define ONXI_AT_INDEX(up_, step_, index_)                                                                              \
    (&(const onxi_check_at){ (up_), ONXI_STEP_##step_, (index_), ONX_KIND_NONE, NULL })
#define ONXI_AT_ITEM(up_, step_, index_, KIND, message_)                                                               \
    (&(const onxi_check_at){ (up_), ONXI_STEP_##step_, (index_), ONX_KIND_##KIND, (message_) })

/* ---- findings ---- */

typedef struct onxi_check_detail {
    onx_str value, expected, hint;
    onx_rule_severity severity; /* NONE: the severity of the rule's row */
    bool one_meaning;           /* the meaning of the model is clear in spite of the violation */
} onxi_check_detail;
#define ONXI_PLAIN ((onxi_check_detail){ .severity = ONX_RULE_NONE })

/* A place that could not be stored; findings there are only counted. */
extern const onxi_check_at onxi_check_no_place;

typedef struct onxi_check_finding {
    struct onxi_check_finding *next;
    const onx_rule *rule;
    onx_severity severity;
    uint32_t key_count;
    const uint64_t *key; /* step and index of each frame, from the root down */
    uint64_t order;      /* sequence number */
    onx_str path, message, value, expected, hint;
} onxi_check_finding;

/* ---- names: one table for the whole model; the meaning of a name depends on the open scopes ---- */

typedef enum onxi_check_name_kind {
    ONXI_NAME_NONE,
    ONXI_NAME_INPUT,
    ONXI_NAME_INITIALIZER,
    ONXI_NAME_SPARSE_INITIALIZER,
    ONXI_NAME_OUTPUT /* of a node */
} onxi_check_name_kind;

/* A name and its current meaning; 32 bytes, because a large model has millions. */
typedef struct onxi_check_meaning {
    onx_bytes name;
    uint32_t scope; /* serial number of the scope that defines it; 0: no visible scope does */
    uint32_t index; /* of the node, input or initializer there; for an undefined name 1 + index of the pending use, 0:
                     * none */
    uint32_t inner; /* serial number of the newest scope that defined it and is closed now; 0: none */
    uint32_t mark;  /* set to the token of the current one-off query to mark the name */
    uint8_t kind;   /* onxi_check_name_kind */
    uint8_t flags;  /* ONXI_NAME_* */
    uint16_t depth; /* of `scope` */
} onxi_check_meaning;
enum { ONXI_NAME_USED = 1, ONXI_NAME_WITH_INITIALIZER = 2, ONXI_NAME_IN_MAIN = 4 };

enum { ONXI_AHEAD = 128 }; /* a power of two */
enum { ONXI_RECENT = 4 };  /* a power of two */
typedef struct onxi_check_names {
    onxi_check_meaning *meaning; /* by id */
    onxi_table table;            /* of ids */
    uint32_t count, room;
    uint32_t serial; /* of the scope opened last */
    uint32_t token;  /* of the last query */
    uint64_t *log;   /* ids in order of definition, to undo definitions when a scope is left; high half: 1 + index into
                      * saved */
    uint32_t log_count, log_room;
    onxi_check_meaning *saved; /* outer meanings that inner definitions hide */
    uint32_t saved_count, saved_room;
    struct onxi_check_pending *pending;
    uint32_t pending_count, pending_room;
    bool last; /* no scope follows the open one */
    struct {   /* hashes computed in advance, indexed by bits of the name */
        onx_bytes name;
        uint32_t hash;
        bool odd;
    } ahead[ONXI_AHEAD];
    uint32_t recent[ONXI_RECENT];  /* the latest node outputs, as a ring buffer: nodes mostly read one of these */
    uint32_t made;                 /* number of outputs so far: the latest is recent[(made - 1) % ONXI_RECENT] */
    onx_bytes coming[ONXI_RECENT]; /* the same for outputs of prepared nodes */
    uint32_t coming_count;
    uint32_t next; /* likely id of the name in the next value_info entry */
} onxi_check_names;

typedef struct onxi_check_pending { /* a use of a name that no visible scope defines yet */
    uint32_t name, scope, node;     /* serial number of the scope, and the node in it that reads the name */
    uint32_t depth;
    uint32_t definer; /* a later node of the same scope that defines it, or ONXI_NO_INDEX */
    bool done;
    const onxi_check_at *at; /* a copy in the checker's memory; NULL beyond the limit */
} onxi_check_pending;

/* ---- operators as named by nodes, resolved once per import list ---- */

typedef struct onxi_checked_op {
    const onxi_bound *bound;
    onxi_bound_kind kind; /* NOTHING: it cannot be checked, because it is custom, or unknown and reported */
    const onxi_schema *schema;
    uint32_t required; /* OPERATOR: number of required attributes */
    bool holds_graphs;
} onxi_checked_op;

typedef struct onxi_checked_imports { /* the domains that the nodes of a model or function may use */
    onxi_binder binder;
    onx_operator_set_id *const *list;
    uint32_t count;
    bool legacy;                 /* of a model with an IR version below 3 */
    bool *used;                  /* per domain: a node uses it */
    struct onxi_check_set *lost; /* domains already reported as not imported */
} onxi_checked_imports;

#define ONXI_PRESET 0x80000000u
typedef struct onxi_check_callee { /* a function of the model */
    const onx_function *f;
    onx_str domain, name, overload;    /* domain "" for ai.onnx */
    struct onxi_check_set *parameters; /* names of attribute (index) and attribute_proto (index | ONXI_PRESET) */
    uint32_t parameter;                /* index of its first parameter without default in the list of all functions'
                                        * parameters */
    bool *needs;                       /* per parameter: a body node requires it */
    int32_t *takes;                    /* per parameter: the type of the references to it; 0: none, -1: they differ */
    uint32_t *needed;                  /* the required ones */
    uint32_t needed_count;
    onxi_checked_imports *imports; /* NULL: not opened yet */
} onxi_check_callee;

/* ---- one graph or function body being checked ---- */

typedef enum onxi_check_role {
    ONXI_ROLE_MAIN,
    ONXI_ROLE_SUBGRAPH,
    ONXI_ROLE_FUNCTION,
    ONXI_ROLE_INITIALIZATION,
    ONXI_ROLE_ALGORITHM
} onxi_check_role;

enum { ONXI_LOOK = 4 }; /* number of nodes that are prepared in advance, including the current one; a power of two */
typedef struct onxi_check_scope {
    struct onxi_check_scope *up; /* enclosing graph or body; NULL for the outermost */
    onxi_check_role role;        /* of this graph */
    onxi_check_role root;        /* of the outermost graph */
    uint32_t serial, depth, log_start;
    uint32_t node;        /* the node that is being checked */
    uint32_t node_serial; /* serial number of the newest scope when checking of the node began: newer scopes are inside
                           * of the node */
    onxi_checked_imports *imports;
    const onx_function *function; /* the function whose body contains this scope, or NULL */
    uint32_t callee;              /* its index */
    const onx_graph *graph;       /* NULL for a function body */
    onx_node *const *nodes;
    uint32_t node_count;
    const onx_node *holder;             /* SUBGRAPH: the node that contains it */
    bool names;                         /* false if a part is checked without its surroundings: names are then not
                                         * resolved */
    bool late;                          /* a node reads a value that a later node defines */
    bool twins;                         /* two nodes seem to have the same name */
    onxi_table node_names;              /* parts of the hashes of node names; no slots: not needed */
    uint64_t node_hash[ONXI_LOOK];      /* of the next nodes */
    struct onxi_check_set *value_types; /* name to output (index) or value_info (index | ONXI_PRESET), built on
                                         * demand */
} onxi_check_scope;

typedef struct onxi_check {
    onx_ctx *cx;
    onx_doc *doc;
    const onx_model *model; /* NULL for parts */
    onx_arena *arena;
    uint32_t flags;
    uint32_t max_errors, depth_limit;
    bool quick;       /* ONX_CHECK_STRUCTURE: errors only */
    bool open_shapes; /* ONX_CHECK_OPEN_SHAPES */
    bool notes;       /* notes are requested */
    bool identifiers; /* N-01 is requested */
    bool pedantic;    /* all notes that are off by default are requested */
    int64_t ir_version;
    uint64_t off[(ONXI_RULE_COUNT + 63) / 64];  /* disabled rules */
    uint64_t mild[(ONXI_RULE_COUNT + 63) / 64]; /* rules of ONX_CHECK_ONE_MEANING that have been reported once */
    onxi_check_finding *findings[3];            /* by severity: the first ones by place, at most 2 * max_errors */
    const onxi_check_finding *cut[3];           /* findings after this one are dropped; NULL: none was dropped yet */
    uint32_t kept[3];
    uint64_t total[3];
    uint64_t arrivals;
    bool broken;       /* an error occurred after which types may be missing or wrong */
    onx_status status; /* ONX_E_MEMORY after an allocation failed */
    char scratch[8][320];
    uint32_t scratch_at, hints, name_hints;
    onxi_check_names names;
    onxi_checked_imports imports;          /* of the model, or from the options */
    onxi_checked_imports *default_imports; /* of the function whose attribute defaults are being checked, or NULL */
    onxi_check_callee *callees;            /* one per function of the model */
    uint32_t callee_count;
    onxi_functions functions;
    uint64_t *calls; /* caller << 32 | callee */
    size_t call_count, call_room;
    uint32_t call_cycles, gradients;
    struct onxi_files *files; /* external data files seen so far */
    struct onxi_check_set *graph_names;
    uint32_t newer_imported;            /* bits: standard domains for which a newer version was reported */
    struct onxi_check_set *odd_domains; /* domains for which O-12 was reported */
    struct onxi_check_set *domains_with_functions;
    struct onxi_check_set *dim_names; /* variables with a known size: index into dim_sizes */
    int64_t *dim_sizes;
    uint32_t dim_count, dim_room;
    bool has_image, has_image_keys, denoted, not_utf8;
    onx_rule_severity type_severity; /* for incomplete types; NONE: that of the rules */
    bool *config_used;               /* per device configuration */
    struct onxi_check_set *config_index;
    const onx_registry *registry;
} onxi_check;

/* The severity of problems that the reference implementation detects only during type inference: an error in full mode,
 * and before a model is run, because nothing can be assumed then. */
static inline onx_rule_severity onxi_check_by_full(const onxi_check *k)
{
    return k->quick || k->flags & ONX_CHECK_FULL ? ONX_RULE_ERROR : ONX_RULE_WARNING;
}

/* check_report.c */
/* Is the rule enabled? To be called before work that only this rule needs. */
bool onxi_check_wants(const onxi_check *k, const char *rule);
void onxi_check_find(onxi_check *k, const onxi_check_at *at, const char *rule, onxi_check_detail detail,
                     const char *format, ...) ONX_PRINTF(5, 6);
/* A formatted text for a message, in a ring of eight buffers: a few stay valid at a time. */
onx_str onxi_check_text(onxi_check *k, const char *format, ...) ONX_PRINTF(2, 3);
/* A name for a message: escaped, cut to a readable length, zero-terminated, in the same ring. */
const char *onxi_check_quote(onxi_check *k, onx_str s);
/* The candidate most similar to `wrong`, for "did you mean X"; NULL if there is none. */
bool onxi_check_similar(onx_str wrong, onx_str candidate, uint32_t *distance);
onx_str onxi_check_number(onxi_check *k, int64_t value);
onx_status onxi_check_findings_report(onxi_check *k);
const onxi_check_at *onxi_check_at_keep(onxi_check *k, const onxi_check_at *at);
bool onxi_check_failed(onxi_check *k, const void *allocated);
#define ONXI_CHECK_GROW(k, list, room, wanted) (ONXI_GROW((k)->cx, list, room, wanted) || !onxi_check_failed((k), NULL))

/* A set of strings (check_set.c). */
typedef struct onxi_check_set onxi_check_set;
onxi_check_set *onxi_check_set_new(onxi_check *k);
/* Adds a string; false if it was present already, and *value_out is then the number stored with it. */
bool onxi_check_set_add(onxi_check *k, onxi_check_set *set, onx_str text, uint32_t value, uint32_t *value_out);
bool onxi_check_set_find(const onxi_check_set *set, onx_str text, uint32_t *value_out);

/* check_names.c */
onx_status onxi_check_names_open(onxi_check *k);
void onxi_check_names_close(onxi_check *k);
/* The id of a name; a new name is added, and its text is checked (N-11, N-01). UINT32_MAX when out of memory. */
uint32_t onxi_check_name_intern(onxi_check *k, const onxi_check_at *at, onx_bytes name);
/* The same for names that nodes read and define: most names that a node reads were defined shortly before. */
uint32_t onxi_check_name_read(onxi_check *k, const onxi_check_at *at, onx_bytes name);
uint32_t onxi_check_name_make(onxi_check *k, const onxi_check_at *at, onx_bytes name);
/* The same for value_info entries, which are mostly in the order of the node outputs. */
uint32_t onxi_check_name_next(onxi_check *k, const onxi_check_at *at, onx_bytes name);
uint32_t onxi_check_name_find(const onxi_check *k, onx_str name);
static inline onx_str onxi_check_name_text(const onxi_check *k, uint32_t id)
{
    return onx_view(k->names.meaning[id].name);
}
uint32_t onxi_check_token(onxi_check *k);
static inline bool onxi_check_name_awaited(const onxi_check_meaning *m)
{
    return !m->scope && m->index;
}
/* Called for each node of a scope, in order, between open and close: prefetches the table entries for the names of the
 * following nodes, because otherwise each look-up in a large graph would wait for memory; also records the node's own
 * name (N-03). */
bool onxi_check_node_names_open(onxi_check *k, onxi_check_scope *scope);
void onxi_check_names_prepare(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t node);
/* The same for each entry of a list of values. */
void onxi_check_names_prepare_value(onxi_check *k, onx_value_info *const *list, uint32_t count, uint32_t at);
void onxi_check_node_names_close(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope);
/* Checks all nodes of the scope. */
void onxi_check_nodes(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope);
void onxi_check_enter(onxi_check *k, onxi_check_scope *scope, onxi_check_scope *up);
/* Reports unresolved names and removes the names of the scope. `step`: ONXI_STEP_node or similar, for places. */
void onxi_check_leave(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope);
/* Defines the name in this scope; checks the rules on duplicate and shadowed names. */
void onxi_check_define(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name,
                       onxi_check_name_kind kind, uint32_t index);
/* A node of the scope reads the name. */
void onxi_check_use(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name);
/* Is it defined in this scope itself, not in an outer one? */
static inline bool onxi_check_owns(const onxi_check *k, const onxi_check_scope *scope, uint32_t name)
{
    const onxi_check_meaning *m = &k->names.meaning[name];
    return m->scope == scope->serial;
}

/* One function per kind of message. */
void onxi_check_model(onxi_check *k, const onxi_check_at *at, const onx_model *model);
void onxi_check_imports(onxi_check *k, const onxi_check_at *at, onx_operator_set_id *const *list, uint32_t count,
                        bool function);
void onxi_check_imports_used(onxi_check *k, const onxi_check_at *at, const onxi_checked_imports *imports);
void onxi_check_import_ir(onxi_check *k, const onxi_check_at *at, onx_str domain, int64_t version);
void onxi_check_imports_open(onxi_check *k, onxi_checked_imports *imports, onx_operator_set_id *const *list,
                             uint32_t count, bool legacy);
/* The imports of a function, opened on first use. */
onxi_checked_imports *onxi_callee_imports(onxi_check *k, uint32_t callee);
bool onxi_check_domain_is_standard(onx_str domain);
/* Is it a set of the standard in a version newer than the newest known? */
bool onxi_check_import_is_newer(const onx_operator_set_id *import);
/* Warns of each such import of the model: its operators `are` (such as "run") by the newest known version. */
void onxi_check_warn_of_newer(onx_ctx *cx, const onx_model *model, const char *are);
void onxi_check_graph(onxi_check *k, const onxi_check_at *at, const onx_graph *graph, onxi_check_scope *scope,
                      onxi_check_scope *up);
void onxi_check_node(onxi_check *k, const onxi_check_at *at, const onx_node *node, uint32_t index,
                     onxi_check_scope *scope);
/* The index of each node's strongly connected component, in the checker's memory; NULL when out of memory. */
uint32_t *onxi_check_graph_cycles(onxi_check *k, const onxi_check_scope *scope);
void onxi_check_subgraph_shape(onxi_check *k, const onxi_check_at *at, const onx_node *node, const onxi_checked_op *op);
void onxi_check_attribute(onxi_check *k, const onxi_check_at *at, const onx_attribute *a, onxi_check_scope *scope,
                          const onx_node *holder);
void onxi_check_functions(onxi_check *k, const onxi_check_at *at, onx_function *const *functions, uint32_t count);
void onxi_check_function(onxi_check *k, const onxi_check_at *at, const onx_function *f, uint32_t callee);
void onxi_check_call(onxi_check *k, const onxi_check_at *at, const onx_node *node, const onxi_checked_op *op,
                     const onxi_check_scope *scope);
void onxi_check_callees_add(onxi_check *k, onx_function *const *functions, uint32_t count);
void onxi_check_call_cycles(onxi_check *k, const onxi_check_at *at);
void onxi_check_tensor(onxi_check *k, const onxi_check_at *at, const onx_tensor *tensor);
const char *onxi_check_tensor_name(onxi_check *k, const onx_tensor *tensor);
void onxi_check_external(onxi_check *k, const onxi_check_at *at, const onx_tensor *tensor, bool sized, uint64_t size);
void onxi_check_sparse(onxi_check *k, const onxi_check_at *at, const onx_sparse_tensor *sparse);
/* `needs`: which parts of the type are required. */
typedef enum onxi_check_type_need { ONXI_TYPE_MAY_LACK, ONXI_TYPE_NEEDED, ONXI_TYPE_SHAPED } onxi_check_type_need;
void onxi_check_type(onxi_check *k, const onxi_check_at *at, const onx_type *type, uint32_t depth);
void onxi_check_value_info(onxi_check *k, const onxi_check_at *at, const onx_value_info *value, onxi_check_role role,
                           const char *name_rule);
/* The type that the graph of the scope declares for a value, whether or not it is defined yet; NULL if there is
 * none. */
const onx_type *onxi_check_declared_type(onxi_check *k, onxi_check_scope *scope, onx_str name);
/* Records that the dimension has this size, and checks that its variable has no other size elsewhere (N-08). `severity`
 * of such a finding; NONE: that of the rule. */
void onxi_check_bind_dim(onxi_check *k, const onxi_check_at *at, const onx_dimension *dim, int64_t size,
                         onx_rule_severity severity);
void onxi_check_dtype_version(onxi_check *k, const onxi_check_at *at, int64_t dtype);
void onxi_check_sequence(onxi_check *k, const onxi_check_at *at, const onx_sequence *value, uint32_t depth);
void onxi_check_map(onxi_check *k, const onxi_check_at *at, const onx_map *value, uint32_t depth);
void onxi_check_optional(onxi_check *k, const onxi_check_at *at, const onx_optional *value, uint32_t depth);
/* Algorithm graphs can read the main graph, whose scope is therefore still open; initialization graphs cannot, and come
 * last. */
void onxi_check_algorithms(onxi_check *k, const onxi_check_at *at, const onx_model *model, onxi_check_scope *main);
void onxi_check_initializations(onxi_check *k, const onxi_check_at *at, const onx_model *model);
void onxi_check_gradient(onxi_check *k, const onxi_check_at *at, const onx_node *node, const onxi_check_scope *scope);
void onxi_check_annotations(onxi_check *k, const onxi_check_at *at, const onx_graph *graph, onxi_check_scope *scope);
/* Checks key and value of an entry (W-21). */
void onxi_check_entry_text(onxi_check *k, const onxi_check_at *at, const onx_string_string_entry *entry);
/* Checks the metadata_props of any message; `model` for those of the model itself. */
void onxi_check_metadata(onxi_check *k, const onxi_check_at *at, onx_string_string_entry *const *props, uint32_t count,
                         bool model);
/* Checks that a string field is UTF-8 (W-21). */
void onxi_check_utf8(onxi_check *k, const onxi_check_at *at, onx_str text);
void onxi_check_doc_string(onxi_check *k, const onxi_check_at *at, onx_str text);
/* Called before the nodes are checked: finds out whether any axis has a denotation, so that layouts need to be
 * checked. */
void onxi_check_note_denotations(onxi_check *k, const onx_graph *graph);
/* Does the denotation of a node's input contradict the layout that the operator expects (MD-12)? */
void onxi_check_layout(onxi_check *k, const onxi_check_at *at, const onx_node *n, onxi_op_id op,
                       onxi_check_scope *scope);
void onxi_check_denotation(onxi_check *k, const onxi_check_at *at, onx_str text, bool dimension);
bool onxi_check_is_identifier(onx_str s);
bool onxi_check_is_reverse_dns(onx_str s);
void onxi_check_configurations(onxi_check *k, const onxi_check_at *at, const onx_model *model);
void onxi_check_node_devices(onxi_check *k, const onxi_check_at *at, const onx_node *node, onxi_check_scope *scope);
void onxi_check_operator_set(onxi_check *k, const onxi_check_at *at, const onx_operator_set *set);
void onxi_check_checksums(onxi_check *k);
void onxi_check_overlaps(onxi_check *k);
void onxi_check_files_close(onxi_check *k);
/* Reports `rule` if the model uses a feature that is newer than its IR version. */
void onxi_check_gate(onxi_check *k, const onxi_check_at *at, const char *rule, const char *feature, int64_t since);
void onxi_check_full(onxi_check *k);

/* The operator that a node of the scope names; problems with the name are reported once. */
const onxi_checked_op *onxi_check_bind(onxi_check *k, const onxi_check_at *at, const onx_node *node,
                                       onxi_check_scope *scope);
/* The operator that a node names, without reporting problems; NULL: none. */
const onxi_bound *onxi_check_bound_of(onxi_check *k, const onx_node *node, onxi_check_scope *scope);
/* The id of a built-in operator. */
onxi_op_id onxi_check_operator_of(onxi_check *k, const onx_node *node, onxi_check_scope *scope);
/* Turns diagnostics of the context since the mark into findings: at the given place, or at the path in the diagnostic;
 * with the given rule if the diagnostic has none. Diagnostics that repeat or follow from an error already found at the
 * same node are dropped; returns their number. */
uint32_t onxi_check_adopt(onxi_check *k, onxi_diag_mark mark, const onxi_check_at *at, const char *rule);

#endif

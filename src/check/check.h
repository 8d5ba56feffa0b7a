/* check.h - the insides of the checker: places, findings, names in scope, resolved operators. See docs/notes/check.md.
 */
#ifndef ONXI_CHECK_H
#define ONXI_CHECK_H

#include <onx/check.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

/* ---- the rule tables: one per group, in the file that checks it; row i has number i + 1 ---- */

typedef struct onxi_check_rule_group {
    const char *prefix; /* "T" */
    const char *name;   /* "Dense tensors" */
    const onx_rule *rules;
    uint32_t count, first; /* `first`: index of the first rule in the order of all rules */
} onxi_check_rule_group;
extern const onxi_check_rule_group onxi_check_rule_groups[];
#define ONXI_RULE_COUNT 415
/* How many findings get a suggestion of what was meant: looking for one takes time. */
#define ONXI_HINTS 64

extern const onx_rule onxi_check_rules_wire[], onxi_check_rules_model[], onxi_check_rules_opset[],
    onxi_check_rules_graph[], onxi_check_rules_names[], onxi_check_rules_node[], onxi_check_rules_attribute[],
    onxi_check_rules_function[], onxi_check_rules_tensor[], onxi_check_rules_sparse[], onxi_check_rules_type[],
    onxi_check_rules_data[], onxi_check_rules_external[], onxi_check_rules_scope[], onxi_check_rules_training[],
    onxi_check_rules_quantization[], onxi_check_rules_metadata[], onxi_check_rules_device[],
    onxi_check_rules_opset_doc[], onxi_check_rules_version[];

/* ---- places ---- */

/* Members on the way from the root to a place, in the order in which findings are listed. */
typedef enum onxi_check_step {
    ONXI_STEP_ROOT,
#define STEP(name) ONXI_STEP_##name,
#include "check/check_steps.def"
    ONXI_STEP_COUNT
} onxi_check_step;

#define ONXI_NO_INDEX UINT32_MAX

/* A place: a chain of frames on the stack, so that it costs nothing until it is printed. */
typedef struct onxi_check_at {
    const struct onxi_check_at *up;
    onxi_check_step step;
    uint32_t index;      /* position in a repeated member, or ONXI_NO_INDEX */
    onx_kind kind;       /* of `message`, for its name in the path */
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
    onx_rule_severity severity; /* NONE: that of the rule's row */
    bool one_meaning;           /* what the model means is clear all the same */
} onxi_check_detail;
#define ONXI_PLAIN ((onxi_check_detail){ .severity = ONX_RULE_NONE })

/* A place that could not be remembered: findings there are only counted. */
extern const onxi_check_at onxi_check_no_place;

typedef struct onxi_check_finding {
    struct onxi_check_finding *next;
    const onx_rule *rule;
    onx_severity severity;
    uint32_t key_count;
    const uint64_t *key; /* step and index of each frame from the root down */
    uint64_t order;      /* of arrival */
    onx_str path, message, value, expected, hint;
} onxi_check_finding;

/* ---- names: one table for the whole model; what a name means now depends on the scopes that are open ---- */

typedef enum onxi_check_name_kind {
    ONXI_NAME_NONE,
    ONXI_NAME_INPUT,
    ONXI_NAME_INITIALIZER,
    ONXI_NAME_SPARSE_INITIALIZER,
    ONXI_NAME_OUTPUT /* of a node */
} onxi_check_name_kind;

/* A name and what it refers to at the moment; 32 bytes, since a large model has millions. */
typedef struct onxi_check_meaning {
    onx_bytes name;
    uint32_t scope; /* serial of the scope that defines it; 0: nothing visible does */
    uint32_t index; /* of the node, input or initializer there; undefined: 1 + number of the pending use, 0: none */
    uint32_t inner; /* serial of the newest scope, closed meanwhile, that defined it; 0: none */
    uint32_t mark;  /* for one-off questions: equal to the token of the question or not */
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
    uint32_t token;  /* of the question asked last */
    uint64_t
        *log; /* ids in order of definition, so that leaving a scope can undo them; high half: 1 + index into saved */
    uint32_t log_count, log_room;
    onxi_check_meaning *saved; /* outer meanings that an inner definition hides */
    uint32_t saved_count, saved_room;
    struct onxi_check_pending *pending;
    uint32_t pending_count, pending_room;
    bool last; /* no scope comes after the one that is open */
    struct {   /* hashes computed ahead of their use, by bits of the name */
        onx_bytes name;
        uint32_t hash;
        bool odd;
    } ahead[ONXI_AHEAD];
    uint32_t
        recent[ONXI_RECENT]; /* the outputs of nodes that were named last, as a ring: what nodes read is mostly there */
    uint32_t made;           /* how many there were so far: the last one is recent[(made - 1) % ONXI_RECENT] */
    onx_bytes coming[ONXI_RECENT]; /* likewise of the nodes that were prepared */
    uint32_t coming_count;
    uint32_t next; /* id that the next entry of value_info likely has */
} onxi_check_names;

typedef struct onxi_check_pending { /* a use of a name that nothing visible defines yet */
    uint32_t name, scope, node;     /* serial of the scope and the node there that reads it */
    uint32_t depth;
    uint32_t definer; /* node of the same scope that defines it later, or ONXI_NO_INDEX */
    bool done;
    const onxi_check_at *at; /* a copy in the check's memory; NULL past the limit */
} onxi_check_pending;

/* ---- operators as nodes name them, resolved once per import list ---- */

typedef struct onxi_checked_op {
    const onxi_bound *bound;
    onxi_bound_kind kind; /* NOTHING: nothing to check it with, because it is custom, or wrong and reported */
    const onxi_schema *schema;
    uint32_t required; /* OPERATOR: how many attributes must be there */
    bool holds_graphs;
} onxi_checked_op;

typedef struct onxi_checked_imports { /* what the nodes of the model or of one function may use */
    onxi_binder binder;
    onx_operator_set_id *const *list;
    uint32_t count;
    bool legacy;                 /* of a model with an IR version below 3 */
    bool *used;                  /* by domain: some node needs it */
    struct onxi_check_set *lost; /* domains already reported as not imported */
} onxi_checked_imports;

#define ONXI_PRESET 0x80000000u
typedef struct onxi_check_callee { /* a function of the model */
    const onx_function *f;
    onx_str domain, name, overload;    /* domain "" for ai.onnx */
    struct onxi_check_set *parameters; /* names of attribute (index) and attribute_proto (index | ONXI_PRESET) */
    uint32_t parameter;                /* number of the first one without default among those of all functions */
    bool *needs;                       /* of those: a body node cannot do without it */
    int32_t *takes;                    /* of those: the type of the references to it; 0: none, -1: they differ */
    uint32_t *needed;                  /* which ones those are */
    uint32_t needed_count;
    onxi_checked_imports *imports; /* NULL: not asked for yet */
} onxi_check_callee;

/* ---- one graph or function body being checked ---- */

typedef enum onxi_check_role {
    ONXI_ROLE_MAIN,
    ONXI_ROLE_SUBGRAPH,
    ONXI_ROLE_FUNCTION,
    ONXI_ROLE_INITIALIZATION,
    ONXI_ROLE_ALGORITHM
} onxi_check_role;

enum { ONXI_LOOK = 4 }; /* how many nodes are prepared ahead, the current one included; a power of two */
typedef struct onxi_check_scope {
    struct onxi_check_scope *up; /* enclosing graph or body; NULL for the outermost */
    onxi_check_role role;        /* of this graph */
    onxi_check_role root;        /* of the outermost one */
    uint32_t serial, depth, log_start;
    uint32_t node;        /* being checked */
    uint32_t node_serial; /* of the newest scope when its turn came: younger scopes are inside it */
    onxi_checked_imports *imports;
    const onx_function *function; /* the body of which this is a part, or NULL */
    uint32_t callee;              /* its index */
    const onx_graph *graph;       /* NULL for a function body */
    onx_node *const *nodes;
    uint32_t node_count;
    const onx_node *holder;        /* SUBGRAPH: the node that holds it */
    bool names;                    /* false when a part is checked without its surroundings: names are not resolved */
    bool late;                     /* some node reads what a later node defines */
    bool twins;                    /* two nodes seem to have one name */
    onxi_table node_names;         /* halves of hashes of node names; no slots: they are not wanted */
    uint64_t node_hash[ONXI_LOOK]; /* of the nodes to come */
    struct onxi_check_set *value_types; /* name to output (index) or value_info (index | ONXI_PRESET), once asked for */
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
    bool notes;       /* notes are wanted */
    bool identifiers; /* N-01 is wanted */
    bool pedantic;    /* notes that are off by default are wanted, all of them */
    int64_t ir_version;
    uint64_t off[(ONXI_RULE_COUNT + 63) / 64];  /* rules not to be reported */
    uint64_t mild[(ONXI_RULE_COUNT + 63) / 64]; /* rules of ONX_CHECK_ONE_MEANING that were reported once */
    onxi_check_finding *findings[3];  /* by severity: the first ones by place, at most twice max_errors of them */
    const onxi_check_finding *cut[3]; /* what follows it is not kept; NULL: nothing was cut yet */
    uint32_t kept[3];
    uint64_t total[3];
    uint64_t arrivals;
    bool broken;       /* an error after which types may be missing or wrong */
    onx_status status; /* ONX_E_MEMORY once memory ran out */
    char scratch[8][320];
    uint32_t scratch_at, hints, name_hints;
    onxi_check_names names;
    onxi_checked_imports imports;          /* of the model, or of the options */
    onxi_checked_imports *default_imports; /* of the function whose defaults are being checked, or NULL */
    onxi_check_callee *callees;            /* one per function of the model */
    uint32_t callee_count;
    onxi_functions functions;
    uint64_t *calls; /* caller << 32 | callee */
    size_t call_count, call_room;
    uint32_t call_cycles, gradients;
    struct onxi_files *files; /* external data files seen */
    struct onxi_check_set *graph_names;
    struct onxi_check_set *odd_domains; /* O-12 was said of them */
    struct onxi_check_set *domains_with_functions;
    struct onxi_check_set *dim_names; /* variables that something gives a size: index into dim_sizes */
    int64_t *dim_sizes;
    uint32_t dim_count, dim_room;
    bool has_image, has_image_keys, denoted, not_utf8;
    onx_rule_severity type_severity; /* of gaps in a type, NONE: that of the rules */
    bool *config_used;               /* per device configuration */
    struct onxi_check_set *config_index;
    const onx_registry *registry;
} onxi_check;

/* What the reference finds only where it infers types, and takes otherwise: an error in full mode, and before a model
 * is run, where nothing may be taken for granted. */
static inline onx_rule_severity onxi_check_by_full(const onxi_check *k)
{
    return k->quick || k->flags & ONX_CHECK_FULL ? ONX_RULE_ERROR : ONX_RULE_WARNING;
}

/* check_report.c */
/* Is the rule wanted? Ask before work that is done for this rule alone. */
bool onxi_check_wants(const onxi_check *k, const char *rule);
void onxi_check_find(onxi_check *k, const onxi_check_at *at, const char *rule, onxi_check_detail detail,
                     const char *format, ...) ONX_PRINTF(5, 6);
/* Text for a message, in a ring of eight: a few at a time stay valid. */
onx_str onxi_check_text(onxi_check *k, const char *format, ...) ONX_PRINTF(2, 3);
/* A name as text: escaped, cut to a readable length, in the same ring; zero-terminated. */
const char *onxi_check_quote(onxi_check *k, onx_str s);
/* " (did you mean X)" material: the candidate nearest to `wrong`, or NULL. */
bool onxi_check_similar(onx_str wrong, onx_str candidate, uint32_t *distance);
onx_str onxi_check_number(onxi_check *k, int64_t value);
onx_status onxi_check_findings_report(onxi_check *k);
const onxi_check_at *onxi_check_at_keep(onxi_check *k, const onxi_check_at *at);
bool onxi_check_failed(onxi_check *k, const void *allocated);
#define ONXI_CHECK_GROW(k, list, room, wanted) (ONXI_GROW((k)->cx, list, room, wanted) || !onxi_check_failed((k), NULL))

/* A set of texts (check_set.c). */
typedef struct onxi_check_set onxi_check_set;
onxi_check_set *onxi_check_set_new(onxi_check *k);
/* False when it was there already; *value_out then has what was stored with it. */
bool onxi_check_set_add(onxi_check *k, onxi_check_set *set, onx_str text, uint32_t value, uint32_t *value_out);
bool onxi_check_set_find(const onxi_check_set *set, onx_str text, uint32_t *value_out);

/* check_names.c */
onx_status onxi_check_names_open(onxi_check *k);
void onxi_check_names_close(onxi_check *k);
/* The id of a name, added when new: then its text is checked, too (N-11, N-01). UINT32_MAX when memory ran out. */
uint32_t onxi_check_name_intern(onxi_check *k, const onxi_check_at *at, onx_bytes name);
/* The same for what a node reads and for what it makes, which the nodes after it mostly read. */
uint32_t onxi_check_name_read(onxi_check *k, const onxi_check_at *at, onx_bytes name);
uint32_t onxi_check_name_make(onxi_check *k, const onxi_check_at *at, onx_bytes name);
/* The same for an entry of value_info: these are mostly in the order in which nodes name their outputs. */
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
/* Before each node of a scope, in order: fetches what the names of the nodes to come need, since in a large graph each
 * lookup would wait for memory, and notes the name of the node itself (N-03) between open and close. */
bool onxi_check_node_names_open(onxi_check *k, onxi_check_scope *scope);
void onxi_check_names_prepare(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t node);
/* The same before each entry of a list of values. */
void onxi_check_names_prepare_value(onxi_check *k, onx_value_info *const *list, uint32_t count, uint32_t at);
void onxi_check_node_names_close(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope);
/* All nodes of the scope. */
void onxi_check_nodes(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope);
void onxi_check_enter(onxi_check *k, onxi_check_scope *scope, onxi_check_scope *up);
/* Reports what is still open, and forgets the names of the scope. `step`: ONXI_STEP_node or so, for places. */
void onxi_check_leave(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope);
/* The name gets a meaning in this scope; rules on doubled and shadowed names are applied. */
void onxi_check_define(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name,
                       onxi_check_name_kind kind, uint32_t index);
/* A node of the scope reads the name. */
void onxi_check_use(onxi_check *k, const onxi_check_at *at, onxi_check_scope *scope, uint32_t name);
/* Is it defined in this very scope (not an outer one)? */
static inline bool onxi_check_owns(const onxi_check *k, const onxi_check_scope *scope, uint32_t name)
{
    const onxi_check_meaning *m = &k->names.meaning[name];
    return m->scope == scope->serial;
}

/* One function per kind of part. */
void onxi_check_model(onxi_check *k, const onxi_check_at *at, const onx_model *model);
void onxi_check_imports(onxi_check *k, const onxi_check_at *at, onx_operator_set_id *const *list, uint32_t count,
                        bool function);
void onxi_check_imports_used(onxi_check *k, const onxi_check_at *at, const onxi_checked_imports *imports);
void onxi_check_import_ir(onxi_check *k, const onxi_check_at *at, onx_str domain, int64_t version);
void onxi_check_imports_open(onxi_check *k, onxi_checked_imports *imports, onx_operator_set_id *const *list,
                             uint32_t count, bool legacy);
/* The imports of a function, opened when they are first asked for. */
onxi_checked_imports *onxi_callee_imports(onxi_check *k, uint32_t callee);
bool onxi_check_domain_is_standard(onx_str domain);
void onxi_check_graph(onxi_check *k, const onxi_check_at *at, const onx_graph *graph, onxi_check_scope *scope,
                      onxi_check_scope *up);
void onxi_check_node(onxi_check *k, const onxi_check_at *at, const onx_node *node, uint32_t index,
                     onxi_check_scope *scope);
/* For each node the number of its strongly connected component, in the check's memory; NULL when memory ran out. */
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
/* `needs`: how much has to be there. */
typedef enum onxi_check_type_need { ONXI_TYPE_MAY_LACK, ONXI_TYPE_NEEDED, ONXI_TYPE_SHAPED } onxi_check_type_need;
void onxi_check_type(onxi_check *k, const onxi_check_at *at, const onx_type *type, uint32_t depth);
void onxi_check_value_info(onxi_check *k, const onxi_check_at *at, const onx_value_info *value, onxi_check_role role,
                           const char *name_rule);
/* The type that the scope's graph declares for a value, defined already or not; NULL when it declares none. */
const onx_type *onxi_check_declared_type(onxi_check *k, onxi_check_scope *scope, onx_str name);
/* The dimension is known to have this size: does its variable have another one elsewhere (N-08)? `severity`: of such a
 * finding, NONE: that of the rule. */
void onxi_check_bind_dim(onxi_check *k, const onxi_check_at *at, const onx_dimension *dim, int64_t size,
                         onx_rule_severity severity);
void onxi_check_dtype_version(onxi_check *k, const onxi_check_at *at, int64_t dtype);
void onxi_check_sequence(onxi_check *k, const onxi_check_at *at, const onx_sequence *value, uint32_t depth);
void onxi_check_map(onxi_check *k, const onxi_check_at *at, const onx_map *value, uint32_t depth);
void onxi_check_optional(onxi_check *k, const onxi_check_at *at, const onx_optional *value, uint32_t depth);
/* Algorithm graphs see the main graph, so its scope is still open; initialization graphs see nothing and come last. */
void onxi_check_algorithms(onxi_check *k, const onxi_check_at *at, const onx_model *model, onxi_check_scope *main);
void onxi_check_initializations(onxi_check *k, const onxi_check_at *at, const onx_model *model);
void onxi_check_gradient(onxi_check *k, const onxi_check_at *at, const onx_node *node, const onxi_check_scope *scope);
void onxi_check_annotations(onxi_check *k, const onxi_check_at *at, const onx_graph *graph, onxi_check_scope *scope);
/* Key and value of an entry (W-21). */
void onxi_check_entry_text(onxi_check *k, const onxi_check_at *at, const onx_string_string_entry *entry);
/* metadata_props of any message; `model` for those of the model itself. */
void onxi_check_metadata(onxi_check *k, const onxi_check_at *at, onx_string_string_entry *const *props, uint32_t count,
                         bool model);
/* A text field: UTF-8 (W-21). */
void onxi_check_utf8(onxi_check *k, const onxi_check_at *at, onx_str text);
void onxi_check_doc_string(onxi_check *k, const onxi_check_at *at, onx_str text);
/* Before the nodes: whether axes are denoted anywhere, and nodes need a check of layouts. */
void onxi_check_note_denotations(onxi_check *k, const onx_graph *graph);
/* Does what is denoted of a node's input contradict the layout that the operator expects (MD-12)? */
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
/* A feature that came with an IR version: reports `rule` when the model is older. */
void onxi_check_gate(onxi_check *k, const onxi_check_at *at, const char *rule, const char *feature, int64_t since);
void onxi_check_full(onxi_check *k);

/* The operator that a node of the scope names; reports what is wrong with the name once. */
const onxi_checked_op *onxi_check_bind(onxi_check *k, const onxi_check_at *at, const onx_node *node,
                                       onxi_check_scope *scope);
/* The operator that a node names, without a report of what is wrong with it; NULL: none. */
const onxi_bound *onxi_check_bound_of(onxi_check *k, const onx_node *node, onxi_check_scope *scope);
/* Its number, where it is built in. */
onxi_op_id onxi_check_operator_of(onxi_check *k, const onx_node *node, onxi_check_scope *scope);
/* Takes over the diagnostics of the context since the mark as findings: at the place, or at the path that they
 * name themselves; with the rule where they name none. What only repeats or follows from an error that was found at the
 * same node before is left out; returns how many of those there were. */
uint32_t onxi_check_adopt(onxi_check *k, onxi_diag_mark mark, const onxi_check_at *at, const char *rule);

#endif

/* cli_view.h - the contents of `onx view`: a model as scopes with boxes, values, arrows and their coordinates, and as
 * JSON for the page (docs/notes/view.md). */
#ifndef ONX_CLI_VIEW_H
#define ONX_CLI_VIEW_H

#include "cli.h"
#include "cli_table.h"

#include <onx/infer.h>
#include <onx/layout.h>

#define VIEW_NONE UINT32_MAX

/* Integers, which the page receives as one array. */
typedef struct view_list {
    uint32_t *at;
    uint32_t count, room;
} view_list;

typedef enum view_scope_kind { VIEW_GRAPH, VIEW_SUBGRAPH, VIEW_FUNCTION, VIEW_TRAINING } view_scope_kind;

typedef enum view_box_kind {
    VIEW_NODE,
    VIEW_INPUT,
    VIEW_OUTPUT,
    VIEW_OUTER,       /* a value of an enclosing scope */
    VIEW_INITIALIZER, /* an initializer that is not shown inside a node, because it is an output itself */
    VIEW_MISSING      /* a value that is never defined */
} view_box_kind;

/* An area of the drawing: a graph or the body of a function. Indexes of strings, tensors, operators and attributes are
 * those of the model. */
typedef struct view_scope {
    view_scope_kind kind;
    uint32_t number;
    const onx_graph *graph; /* either graph or function is set */
    const onx_function *function;
    uint32_t training;           /* index of its training_info */
    bool initializes;            /* of the two graphs there, the initialization */
    uint32_t parent, parent_box; /* for a subgraph: its position; VIEW_NONE otherwise */
    onx_node *const *node;
    uint32_t node_count, first_node; /* nodes are the boxes from first_node on */
    /* Per box. */
    view_list box_kind, box_value, box_op, box_rows, box_inputs, box_outputs, box_attributes, box_inner;
    /* The items counted above, concatenated; `inner` has the name of an attribute (or of a function) and a scope. */
    view_list rows, inputs, outputs, attributes, inner;
    /* Per value: name, the box that computes it, its tensor. */
    view_list value_name, value_type, value_box, value_tensor, value_doc;
    /* Per arrow. */
    view_list edge_from, edge_to, edge_value;
    view_list captured; /* strings: captured values of enclosing scopes */
    onx_placement *layout;
} view_scope;

/* The rows from number `first` on: NULL in a scope without any. */
static inline const uint32_t *view_rows_from(const view_scope *s, uint32_t first)
{
    return first ? s->rows.at + first : s->rows.at;
}

typedef struct view_tensor {
    const onx_tensor *tensor;
    uint32_t name, type; /* strings */
} view_tensor;

/* A finding and its box; VIEW_NONE: it concerns the model, or nothing that is drawn. */
typedef struct view_finding {
    const onx_diag *diag;
    uint32_t scope, box;
} view_finding;

typedef struct cli_view {
    cli_call *call; /* set by the caller, like the next two */
    onx_doc *doc;
    const char *file; /* the name that the page shows */
    onx_infer *infer; /* NULL: only declared types are shown */
    onx_arena *arena; /* of generated strings */
    bool scarce;      /* out of memory; the view must not be used */
    onx_str *string;  /* the first one is empty */
    uint32_t string_count, string_room;
    cli_table string_table, op_table, function_table;
    struct view_binding *binding; /* per string: the value that the name currently refers to */
    uint32_t binding_count;
    struct view_undo *undo;
    uint32_t undo_count, undo_room;
    view_scope **scope;
    uint32_t scope_count, scope_room;
    uint32_t *function_scope; /* per function of the model */
    view_tensor *tensor;
    uint32_t tensor_count, tensor_room;
    const onx_op **op;
    uint32_t op_count, op_room;
    view_list attribute_name, attribute_text, attribute_type, attribute_tensor;
    view_finding *finding;
    uint32_t finding_count, finding_room;
    char *profile; /* JSON, a member of the model; NULL: none */
    size_t profile_size;
} cli_view;

/* When out of memory, `scarce` is set, and results must not be used. */
void view_push(cli_view *view, view_list *list, uint32_t number);
/* The index of a string, which has to live as long as the view. */
uint32_t view_string(cli_view *view, onx_str text);
/* The same for a generated string. */
uint32_t view_format(cli_view *view, const char *format, ...) ONX_PRINTF(2, 3);
/* The index of a tensor; duplicates are not detected. */
uint32_t view_add_tensor(cli_view *view, const onx_tensor *tensor);

/* Fills the members that the caller has not set, and computes the layout of every scope. Free the view in any case. */
onx_status cli_view_build(cli_view *view);
void cli_view_free(cli_view *view);
/* The scope that is shown first; NULL if there is none. */
const view_scope *cli_view_main(const cli_view *view);
/* The index of an attribute's text; 0 for graphs and tensors. */
uint32_t view_value_text(cli_view *view, const onx_attribute *attribute);
/* The text below the operator name for an input that is a weight: W 64×3×7×7, or its elements if they are few. */
uint32_t view_weight_row(cli_view *view, const onx_op *op, uint32_t input, const onx_tensor *tensor);
/* The same for the value of a constant node; 0 for other nodes. */
uint32_t view_constant_row(cli_view *view, const onx_node *node);
/* Appends the attributes of a node, and calls `inner` for those with graphs. */
void view_attributes(cli_view *view, view_scope *scope, const onx_node *node,
                     void (*inner)(cli_view *view, view_scope *scope, uint32_t name, const onx_graph *graph));

/* Finds the boxes of the diagnostics from index `first` on, after the scopes were built. */
void cli_view_find(cli_view *view, size_t first);

typedef struct view_weights {
    bool skip;       /* do not read elements */
    uint64_t budget; /* remaining number of elements to read; a single large tensor never uses all of it */
} view_weights;
/* Writes type, dims, size and statistics of the elements, as members of the open object. */
void cli_view_tensor(cli_json *json, cli_view *view, const onx_tensor *tensor, view_weights *weights);

/* Writes the model as a JSON item. */
void cli_view_json(cli_json *json, cli_view *view, view_weights *weights);

#endif

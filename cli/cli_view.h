/* cli_view.h - what `onx view` draws: a model as scopes of boxes, values and arrows with places, and that as JSON for
 * the page (docs/notes/view.md). */
#ifndef ONX_CLI_VIEW_H
#define ONX_CLI_VIEW_H

#include "cli.h"
#include "cli_table.h"

#include <onx/infer.h>
#include <onx/layout.h>

#define VIEW_NONE UINT32_MAX

/* Numbers, of which the page gets one array. */
typedef struct view_list {
    uint32_t *at;
    uint32_t count, room;
} view_list;

typedef enum view_scope_kind { VIEW_GRAPH, VIEW_SUBGRAPH, VIEW_FUNCTION, VIEW_TRAINING } view_scope_kind;

typedef enum view_box_kind {
    VIEW_NODE,
    VIEW_INPUT,
    VIEW_OUTPUT,
    VIEW_OUTER,       /* a value of a scope around this one */
    VIEW_INITIALIZER, /* one that no node shows: it is a result itself */
    VIEW_MISSING      /* a value that nothing makes */
} view_box_kind;

/* What is drawn on one area: a graph or the body of a function. Numbers of strings, tensors, operators and attributes
 * are those of the model. */
typedef struct view_scope {
    view_scope_kind kind;
    uint32_t number;
    const onx_graph *graph; /* of the two one is there */
    const onx_function *function;
    uint32_t training;           /* which training_info it belongs to */
    bool initializes;            /* of the two graphs there the one that runs first */
    uint32_t parent, parent_box; /* of a subgraph: where it is; VIEW_NONE */
    onx_node *const *node;
    uint32_t node_count, first_node; /* nodes are the boxes from first_node on */
    /* Per box. */
    view_list box_kind, box_value, box_op, box_rows, box_inputs, box_outputs, box_attributes, box_inner;
    /* What those count, one after the other; `inner` has the name of an attribute (or that of a function) and a scope.
     */
    view_list rows, inputs, outputs, attributes, inner;
    /* Per value: strings, the box that makes it, the tensor it is. */
    view_list value_name, value_type, value_box, value_tensor, value_doc;
    /* Per arrow. */
    view_list edge_from, edge_to, edge_value;
    view_list captured; /* strings: values of scopes around it that are used in here */
    onx_placement *layout;
} view_scope;

typedef struct view_tensor {
    const onx_tensor *tensor;
    uint32_t name, type; /* strings */
} view_tensor;

/* A finding and what it is about; VIEW_NONE: the model, or nothing that is drawn. */
typedef struct view_finding {
    const onx_diag *diag;
    uint32_t scope, box;
} view_finding;

typedef struct cli_view {
    cli_call *call; /* set by the caller, as the next two */
    onx_doc *doc;
    const char *file; /* the name that the page shows */
    onx_infer *infer; /* NULL: types are those that the model declares */
    onx_arena *arena; /* of strings that are made here */
    bool scarce;      /* memory ran out; nothing of it is to be used */
    onx_str *string;  /* the first one is empty */
    uint32_t string_count, string_room;
    cli_table string_table, op_table, function_table;
    struct view_binding *binding; /* per string: the value that the name stands for now */
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
    char *profile; /* JSON, a member of the model; NULL: there is none */
    size_t profile_size;
} cli_view;

/* Without memory `scarce` is set, and what comes back is not to be used. */
void view_push(cli_view *view, view_list *list, uint32_t number);
/* The number of a text, which has to live as long as the view. */
uint32_t view_string(cli_view *view, onx_str text);
/* The same for text that is made. */
uint32_t view_format(cli_view *view, const char *format, ...) ONX_PRINTF(2, 3);
/* The number of a tensor; equal ones are not looked for. */
uint32_t view_add_tensor(cli_view *view, const onx_tensor *tensor);

/* Fills what the caller has not set, with a layout of every scope. Free the view in any case. */
onx_status cli_view_build(cli_view *view);
void cli_view_free(cli_view *view);
/* The scope that is shown first; NULL where there is none. */
const view_scope *cli_view_main(const cli_view *view);
/* The number of the text of an attribute that is no graph; 0 for those and for tensors. */
uint32_t view_value_text(cli_view *view, const onx_attribute *attribute);
/* What is written below the name of an operator for a weight that is one of its inputs: W 64×3×7×7, or the numbers
 * where they are few. */
uint32_t view_weight_row(cli_view *view, const onx_op *op, uint32_t input, const onx_tensor *tensor);
/* The same for what a node makes that is a constant; 0 for other nodes. */
uint32_t view_constant_row(cli_view *view, const onx_node *node);
/* Appends the attributes of a node, and for those that hold graphs calls `inner`. */
void view_attributes(cli_view *view, view_scope *scope, const onx_node *node,
                     void (*inner)(cli_view *view, view_scope *scope, uint32_t name, const onx_graph *graph));

/* What the diagnostics of the context from number `first` on are about, after the scopes are built. */
void cli_view_find(cli_view *view, size_t first);

typedef struct view_weights {
    bool skip;       /* no elements are read */
    uint64_t budget; /* elements that may still be read in all; one large tensor never takes all of it */
} view_weights;
/* Type, dims, size and what its elements are like, as members of the object that is open. */
void cli_view_tensor(cli_json *json, cli_view *view, const onx_tensor *tensor, view_weights *weights);

/* The model as an item of JSON. */
void cli_view_json(cli_json *json, cli_view *view, view_weights *weights);

#endif

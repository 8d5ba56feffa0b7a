/* transform_edit.h - the interface between the list of edits and the files that perform them. */
#ifndef ONXI_TRANSFORM_EDIT_H
#define ONXI_TRANSFORM_EDIT_H

#include "transform/transform_part.h"

typedef struct onxi_editor {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena, *scratch; /* of the document; of one edit */
    onx_model *model;
    onx_graph *graph;
    const onx_edit *edit; /* the current one */
    const onx_edit_options *options;
    onxi_names names;
    onx_str uneven; /* a constant whose parts for the samples of a batch differ */
} onxi_editor;

#define ONXI_TELL_EDIT(e, rule, ...)                                                                                   \
    onxi_tell_change((e)->options->changed, (e)->options->user, "edit", rule, (e)->edit->a, __VA_ARGS__)

/* NULL, with a diagnostic, if there is no such input or output. */
onx_value_info *onxi_edit_input(onxi_editor *e, onx_str name);
onx_value_info *onxi_edit_output(onxi_editor *e, onx_str name);
/* Parses an integer; false, with a diagnostic, for other texts. */
bool onxi_edit_number(onxi_editor *e, onx_str text, int64_t *out);

/* Removes training information, and imports of its operators if no other node needs them. */
onx_status onxi_strip_training(onx_ctx *cx, onx_model *model);

/* Finds constant shapes of Reshape that contain the old batch size `old`, in a graph whose inputs now have batches of
 * `size`, a prime: the dimension with the old size is left open (transform_edit_batch_shapes.c). If types contradict
 * each other in every case, *found is false and nothing is changed. */
typedef struct onxi_batch_shapes {
    int64_t size, old;
} onxi_batch_shapes;
/* An operand that has the old size where another operand of its node has the batch, such as the class token of a vision
 * transformer (transform_edit_batch_repeat.c): of size 1, and not broadcast by the node, or a constant of equal parts.
 * In the search an initializer without data takes its place. */
typedef struct onxi_batch_repeat {
    onx_node *node;
    onx_bytes operand;            /* its name */
    onx_tensor *instead;          /* of the search */
    uint32_t input, position;     /* of the operand; the dimension to repeat */
    uint32_t with, with_position; /* the operand that has the batch */
    uint32_t rank;                /* of the operand */
    bool takes_first;             /* its parts are equal, and the first one takes its place */
    bool expands;                 /* it is then expanded; otherwise the node broadcasts it */
    struct onxi_batch_repeat *next;
} onxi_batch_repeat;
/* The operands of a node to repeat; *out stays NULL if there are none. */
onx_status onxi_edit_batch_repeats(onxi_editor *e, const onxi_bound *bound, onx_infer *infer, onxi_values *values,
                                   onxi_scope *scope, onx_node *node, const onxi_batch_shapes *with,
                                   onxi_batch_repeat **out);
/* Puts the initializers of the search in their places, or takes these away again. */
onx_status onxi_edit_batch_place(onxi_editor *e, onxi_batch_repeat *list);
void onxi_edit_batch_take_back(onxi_editor *e, const onxi_batch_repeat *list);
/* Replaces them by nodes that repeat the operands. */
onx_status onxi_edit_batch_insert(onxi_editor *e, const onxi_batch_repeat *list);
onx_status onxi_edit_batch_shapes(onxi_editor *e, onxi_binder *binder, const onxi_batch_shapes *with, bool *found,
                                  uint32_t *adjusted);

/* By kind of edit (transform_edit.c, transform_edit_batch.c, transform_edit_around.c). */
onx_status onxi_edit_batch(onxi_editor *e);
onx_status onxi_edit_nhwc(onxi_editor *e);
onx_status onxi_edit_normalize(onxi_editor *e);
onx_status onxi_edit_resize(onxi_editor *e);
onx_status onxi_edit_argmax(onxi_editor *e);
onx_status onxi_edit_softmax(onxi_editor *e);

#endif

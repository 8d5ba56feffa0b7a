/* transform_merge.h - between how names of models that are merged are settled and how their parts are combined. */
#ifndef ONXI_TRANSFORM_MERGE_H
#define ONXI_TRANSFORM_MERGE_H

#include "transform/transform.h"

typedef struct onxi_merger {
    onx_ctx *cx;
    onx_doc *doc, *other_doc;
    onx_arena *arena, *scratch; /* of the document; of tables */
    onx_model *model, *other;   /* so far, and the one that is added */
    const onx_merge_options *options;
    onxi_names names;
    bool *map_used; /* per entry of the map */
    /* The values that earlier models gave, connected or not, and how they are declared. */
    onxi_dict offered;
    const onx_value_info **offer;
    uint32_t offer_room;
    onx_str *last; /* the outputs of the model before */
    uint32_t last_count;
    onxi_dict values, nodes; /* names of the model so far */
    /* Of the model that is added: */
    onxi_dict connected; /* its inputs: indexes of source */
    onx_str *source;     /* the values that they are */
    uint32_t source_room;
    onxi_dict taken;   /* those values */
    onxi_dict renamed; /* its values: indexes of `to` */
    onx_bytes *to;
    uint32_t to_room, clashes;
    onxi_dict shared, visible; /* values that are those of the model so far; inputs and outputs */
    onxi_map skip;             /* messages that are not taken over */
} onxi_merger;

/* Brings both models to the same versions of operator sets (transform_agree.c). */
onx_status onxi_merge_agree(onxi_merger *m);
/* Makes external tensors of the other model findable from the folder of this one. */
onx_status onxi_merge_external(onxi_merger *m);
/* Puts the other model, whose names are settled, after this one. */
onx_status onxi_merge_append(onxi_merger *m);

#endif

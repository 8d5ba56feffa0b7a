/* transform_merge.h - the interface between resolving name conflicts of merged models and combining their parts. */
#ifndef ONXI_TRANSFORM_MERGE_H
#define ONXI_TRANSFORM_MERGE_H

#include "transform/transform.h"

typedef struct onxi_merger {
    onx_ctx *cx;
    onx_doc *doc, *other_doc;
    onx_arena *arena, *scratch; /* of the document; for tables */
    onx_model *model, *other;   /* the model merged so far, and the one to add */
    const onx_merge_options *options;
    onxi_names names;
    bool *map_used; /* per entry of the map */
    /* The outputs of earlier models, connected or not, and their declared types. */
    onxi_dict offered;
    const onx_value_info **offer;
    uint32_t offer_room;
    onx_str *last; /* the outputs of the previous model */
    uint32_t last_count;
    onxi_dict values, nodes; /* names in the model merged so far */
    /* For the model that is added: */
    onxi_dict connected; /* its inputs: indexes of source */
    onx_str *source;     /* the values that replace them */
    uint32_t source_room;
    onxi_dict taken;   /* these values */
    onxi_dict renamed; /* its values: indexes of `to` */
    onx_bytes *to;
    uint32_t to_room, clashes;
    onxi_dict shared, visible; /* values shared with the model merged so far; inputs and outputs */
    onxi_map skip;             /* messages that are not added */
} onxi_merger;

/* Converts both models to the same versions of operator sets (transform_agree.c). */
onx_status onxi_merge_agree(onxi_merger *m);
/* Rewrites locations of external tensors of the other model to be valid from the folder of this one. */
onx_status onxi_merge_external(onxi_merger *m);
/* Appends the other model, whose names are resolved, to this one. */
onx_status onxi_merge_append(onxi_merger *m);

#endif

/* transform_compress.h - the parts of onx_compress. */
#ifndef ONXI_TRANSFORM_COMPRESS_H
#define ONXI_TRANSFORM_COMPRESS_H

#include "transform/transform_precision.h"

typedef struct onxi_compressor {
    onx_ctx *cx;
    onx_doc *doc;
    onx_arena *arena, *scratch;
    onx_model *model;
    const onx_compress_options *options;
    onxi_dict fixed;   /* names that must not change */
    onxi_dict renamed; /* removed names: indexes of `to` */
    onx_bytes *to;
    uint32_t to_room;
} onxi_compressor;

void onxi_compress_tell(const onxi_compressor *c, const char *rule, onx_str name, const char *text);
/* Is it read by nodes of the graph only, and are its elements of a fixed size? */
bool onxi_compress_may_change(const onxi_compressor *c, const onx_tensor *t);
onx_status onxi_compress_sparse(onxi_compressor *c, onx_graph *g);

#endif

/* cli_inputs_reader.h - what the files that read inputs share: cli_inputs.c takes what is given, cli_inputs_rest.c what
 * is asked of inputs that are made up, and makes them. */
#ifndef ONX_CLI_INPUTS_READER_H
#define ONX_CLI_INPUTS_READER_H

#include "cli_image.h"
#include "cli_table.h"
#include "cli_uses.h"

typedef struct cli_symbol {
    onx_str name;
    int64_t size;
} cli_symbol;

/* What is asked for one input that is made up. */
typedef struct cli_request {
    uint32_t input;
    bool has_shape, has_range;
    cli_shape shape;
    double low, high;
} cli_request;

typedef struct cli_reader {
    cli_call *call;
    onx_doc *doc;
    const onx_session *s;
    cli_image_options image;
    const char *set; /* where the rest is, NULL: nowhere */
    unsigned flags;
    cli_inputs *in;
    cli_table names, symbol_names;
    cli_symbol *symbols;
    cli_request *requests;
    uint32_t symbol_count, symbol_room, request_count;
    uint64_t seed;
    unsigned told;   /* inputs that were said to be made up */
    unsigned images; /* inputs that come from one */
} cli_reader;

/* The shape that a type declares, or NULL. */
static inline const onx_tensor_shape *cli_declared_shape(const onx_type *t)
{
    return !t                                                              ? NULL
           : ONX_HAS(type, t, tensor_type) && t->tensor_type               ? t->tensor_type->shape
           : ONX_HAS(type, t, sparse_tensor_type) && t->sparse_tensor_type ? t->sparse_tensor_type->shape
                                                                           : NULL;
}

/* That of a tensor, or of what may stand for an optional one; 0: neither. */
static inline int32_t cli_element_type(const onx_type *type)
{
    if (type && ONX_HAS(type, type, optional_type) && type->optional_type) /* what it holds may stand for it */
        type = type->optional_type->elem_type;
    if (type && ONX_HAS(type, type, tensor_type) && type->tensor_type)
        return type->tensor_type->elem_type;
    return type && ONX_HAS(type, type, sparse_tensor_type) && type->sparse_tensor_type
               ? type->sparse_tensor_type->elem_type
               : 0;
}

/* Prints that memory ran out. */
onx_status cli_reader_no_memory(const cli_reader *r);
/* CLI_NO_ENTRY: there is no such input. */
uint32_t cli_reader_find(const cli_reader *r, onx_str name);
/* Prints that there is none, and which there are. */
onx_status cli_reader_no_input(const cli_reader *r, onx_str name);
void cli_reader_hint(const cli_reader *r);

/* ---- cli_inputs_rest.c ---- */

/* What --dim, --shape and --range say. */
onx_status cli_reader_requests(cli_reader *r);
/* NULL: nothing is asked of the input. */
const cli_request *cli_reader_request(const cli_reader *r, uint32_t input);
/* An input that is given says how large its symbols are. */
void cli_reader_learn(cli_reader *r, uint32_t input);
/* What is known of a shape: by --shape, by the type, and by --dim; -1 for other dimensions. False: not even the rank.
 */
bool cli_reader_shape(const cli_reader *r, uint32_t input, cli_shape *out);
/* Makes up what is not given, as far as that is asked for. */
onx_status cli_reader_make_up(cli_reader *r);

#endif

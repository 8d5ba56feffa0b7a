/* cli_inputs_reader.h - shared by the files that read inputs: cli_inputs.c reads given inputs, cli_inputs_rest.c makes
 * up the others according to the options. */
#ifndef ONX_CLI_INPUTS_READER_H
#define ONX_CLI_INPUTS_READER_H

#include "cli_image.h"
#include "cli_table.h"
#include "cli_uses.h"

typedef struct cli_symbol {
    onx_str name;
    int64_t size;
} cli_symbol;

/* The options for one made-up input. */
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
    const char *set; /* path with the remaining inputs, NULL: none */
    unsigned flags;
    cli_inputs *in;
    cli_table names, symbol_names;
    cli_symbol *symbols;
    cli_request *requests;
    uint32_t symbol_count, symbol_room, request_count;
    uint64_t seed;
    unsigned told;   /* number of inputs that were reported as made up */
    unsigned images; /* number of inputs that were read from images */
} cli_reader;

/* The shape that a type declares, or NULL. */
static inline const onx_tensor_shape *cli_declared_shape(const onx_type *t)
{
    return !t                                                              ? NULL
           : ONX_HAS(type, t, tensor_type) && t->tensor_type               ? t->tensor_type->shape
           : ONX_HAS(type, t, sparse_tensor_type) && t->sparse_tensor_type ? t->sparse_tensor_type->shape
                                                                           : NULL;
}

/* The element type of a tensor, or of an optional tensor; 0: neither. */
static inline int32_t cli_element_type(const onx_type *type)
{
    if (type && ONX_HAS(type, type, optional_type) && type->optional_type) /* the value of an optional may be given
                                                                            * directly */
        type = type->optional_type->elem_type;
    if (type && ONX_HAS(type, type, tensor_type) && type->tensor_type)
        return type->tensor_type->elem_type;
    return type && ONX_HAS(type, type, sparse_tensor_type) && type->sparse_tensor_type
               ? type->sparse_tensor_type->elem_type
               : 0;
}

/* Reports lack of memory. */
onx_status cli_reader_no_memory(const cli_reader *r);
/* The index of an input; CLI_NO_ENTRY if there is none. */
uint32_t cli_reader_find(const cli_reader *r, onx_str name);
/* Reports that there is no such input, and lists the existing ones. */
onx_status cli_reader_no_input(const cli_reader *r, onx_str name);
void cli_reader_hint(const cli_reader *r);

/* ---- cli_inputs_rest.c ---- */

/* Reads --dim, --shape and --range. */
onx_status cli_reader_requests(cli_reader *r);
/* The options for an input; NULL if there are none. */
const cli_request *cli_reader_request(const cli_reader *r, uint32_t input);
/* Sets the sizes of symbols from a given input. */
void cli_reader_learn(cli_reader *r, uint32_t input);
/* The known part of a shape, from --shape, the type and --dim; -1 for other dimensions. False if not even the rank is
 * known. */
bool cli_reader_shape(const cli_reader *r, uint32_t input, cli_shape *out);
/* Makes up the missing inputs, if requested. */
onx_status cli_reader_make_up(cli_reader *r);

#endif

/* cli_diff.h - the parts of `onx diff`: comparing graphs and tensors, saying what differs. */
#ifndef ONX_CLI_DIFF_H
#define ONX_CLI_DIFF_H

#include "cli.h"

typedef struct cli_diff {
    cli_call *call;
    onx_doc *a, *b;
    double atol, rtol; /* tensor elements closer than atol + rtol * |a| count as equal */
    bool json;
    cli_json out;
    uint64_t count;     /* differences found */
    onx_status failure; /* ONX_OK, or why a tensor could not be compared; see the diagnostics */
    onx_str section;    /* the section of the last printed line */
    /* The nodes in a and b that the difference belongs to, or NULL. */
    const onx_node *node[2];
    /* NULL: differences are printed. */
    void (*said)(const struct cli_diff *d, char what, onx_str where, onx_str name, onx_str a, onx_str b);
    void *user;
} cli_diff;

/* The difference between two tensors of the same type and shape. */
typedef struct cli_tensor_difference {
    uint64_t elements;  /* in each */
    uint64_t differing; /* farther apart than the tolerance */
    double max_abs, max_rel;
    uint64_t first; /* index of the first that differs */
} cli_tensor_difference;

/* Reports a difference: '-' only in a, '+' only in b, '~' different in both. `where` is a path such as graph.node;
 * `name` is the item there; empty texts are omitted. */
void cli_diff_say(cli_diff *d, char what, onx_str where, onx_str name, onx_str a, onx_str b);
/* Reports '~' if the texts differ. */
void cli_diff_text(cli_diff *d, onx_str where, const char *name, onx_bytes a, onx_bytes b);
void cli_diff_int(cli_diff *d, onx_str where, const char *name, int64_t a, int64_t b);
/* A formatted text in the arena of document a; empty when out of memory. */
onx_str cli_diff_format(cli_diff *d, const char *format, ...) ONX_PRINTF(2, 3);

void cli_diff_tensor(cli_diff *d, onx_str where, onx_str name, const onx_tensor *a, const onx_tensor *b);
void cli_diff_model(cli_diff *d, const onx_model *a, const onx_model *b);
void cli_diff_graph(cli_diff *d, onx_str where, const onx_graph *a, const onx_graph *b);
void cli_diff_operator_set(cli_diff *d, const onx_operator_set *a, const onx_operator_set *b);
void cli_diff_function(cli_diff *d, onx_str where, const onx_function *a, const onx_function *b);
void cli_diff_entries(cli_diff *d, onx_str where, onx_string_string_entry **a, uint32_t a_count,
                      onx_string_string_entry **b, uint32_t b_count);
void cli_diff_opsets(cli_diff *d, onx_str where, onx_operator_set_id **a, uint32_t a_count, onx_operator_set_id **b,
                     uint32_t b_count);
void cli_diff_unknown(cli_diff *d, onx_str where, const onx_extra *a, const onx_extra *b);

/* For each element of a the matching element of b (pair_of_a, CLI_NO_PAIR for none), and the inverse (of_b). */
#define CLI_NO_PAIR UINT32_MAX
typedef struct cli_pairs {
    uint32_t *of_a, *of_b;
    uint32_t a_count, b_count;
} cli_pairs;
/* The key of element `index` of list a (side 0) or b (side 1); empty: not matched in this pass. */
typedef onx_str cli_key(const void *lists, int side, uint32_t index);
/* Matches elements with the same key; repeated keys in order. Call cli_pairs_new once, then once per kind of key. */
bool cli_pairs_new(cli_diff *d, uint32_t a_count, uint32_t b_count, cli_pairs *out);
void cli_pairs_match(cli_diff *d, cli_pairs *pairs, cli_key *key, const void *lists);

#endif

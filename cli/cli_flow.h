/* cli_flow.h - a model as numbered nodes and values, including subgraphs, and bounds of values that can be derived
 * without running it: their range, and the inputs they come from. cli_pull.c uses it backwards: it derives demands on
 * inputs, so that later nodes receive valid values. */
#ifndef ONX_CLI_FLOW_H
#define ONX_CLI_FLOW_H

#include "cli_table.h"
#include "cli_uses.h"

#include <onx/infer.h>

/* How a node transforms elements, a row of cli_moves.def. */
typedef enum cli_move_how { CLI_SAME, CLI_ADD, CLI_SUB, CLI_MUL, CLI_DIV, CLI_NEG, CLI_ABS, CLI_SUM } cli_move_how;
typedef struct cli_move {
    const char *domain, *op;
    cli_move_how how;
    uint32_t inputs, outputs; /* bit masks of the operands that the row refers to */
} cli_move;
#define CLI_MOVES_ALL UINT32_MAX
static inline bool cli_moves(uint32_t bits, uint32_t index)
{
    return bits == CLI_MOVES_ALL || (index < 32 && bits >> index & 1);
}

typedef struct cli_flow_value {
    onx_str name;
    const onx_graph *scope; /* the scope that defines it */
    const onx_tensor *tensor;
    double low, high; /* bounds of all elements; infinite if unknown */
    uint32_t like;    /* 1 + the model input with the same shape; 0: none */
    uint32_t asked;   /* 1 + index in `asked` of the flow */
    bool derived;     /* its elements depend on model inputs */
} cli_flow_value;

/* A node. Lists of steps and of bodies are linked backwards; 0 ends them, other entries are 1 + an index. */
typedef struct cli_flow_step {
    const onx_node *node;
    uint32_t before, bodies;
    uint32_t first; /* index in `ids` of its inputs, followed by its outputs */
} cli_flow_step;
typedef struct cli_flow_body {
    const onx_graph *graph;
    uint32_t before, last;
    uint32_t first; /* index in `ids` of its inputs, followed by its outputs */
} cli_flow_body;
#define CLI_FLOW_NONE UINT32_MAX /* an omitted input or output */

typedef struct cli_flow {
    cli_call *call;
    onx_ctx *cx; /* its own context, so that diagnostics of inference are not printed */
    onx_doc *doc;
    onx_infer *infer;
    bool inferred; /* inference was attempted: `infer` may be NULL */
    cli_table names, move_rows, fact_rows;
    cli_flow_value *values; /* the inputs of the session come first, in order */
    cli_flow_step *steps;
    cli_flow_body *bodies;
    uint32_t *ids;
    cli_numbers *asked;
    uint32_t value_count, value_room, step_count, step_room, body_count, body_room, id_count, id_room, asked_count,
        asked_room;
    uint32_t last;        /* last step of the main graph */
    uint32_t input_count; /* number of values that are inputs of the session */
} cli_flow;

/* Reads the model, with function calls expanded; close it in any case. Errors are printed. */
onx_status cli_flow_open(cli_flow *flow, cli_call *call, const onx_doc *doc, const onx_session *s);
void cli_flow_close(cli_flow *flow);

/* The domain of a node, empty for ai.onnx. */
onx_str cli_flow_domain(const onx_node *node);
static inline bool cli_flow_is(const onx_node *node, const char *domain, const char *op)
{
    return onx_str_is(onx_view(node->op_type), op) && onx_str_is(cli_flow_domain(node), domain);
}
/* NULL: nothing is known about its elements. */
const cli_move *cli_flow_move(const cli_flow *flow, const onx_node *node);
/* The dims, -1 if unknown; false if not even the rank is known. */
bool cli_flow_dims(cli_flow *flow, uint32_t value, cli_shape *out);
static inline uint32_t cli_flow_input(const cli_flow *flow, const cli_flow_step *step, uint32_t index)
{
    return index < step->node->input_count ? flow->ids[step->first + index] : CLI_FLOW_NONE;
}
static inline uint32_t cli_flow_output(const cli_flow *flow, const cli_flow_step *step, uint32_t index)
{
    return index < step->node->output_count ? flow->ids[step->first + step->node->input_count + index] : CLI_FLOW_NONE;
}
onx_status cli_flow_no_memory(const cli_flow *flow);

/* ---- propagating demands backwards (cli_pull.c) ---- */

/* Adds a demand on the elements of a value. Two demands on the same value are combined if possible; otherwise the later
 * one counts. */
onx_status cli_flow_ask(cli_flow *flow, uint32_t value, const cli_numbers *asked);
/* Visits nodes from the last to the first: `see` adds the demands of a node on its inputs, and then the demands on its
 * outputs are propagated to the inputs. */
onx_status cli_flow_pull(cli_flow *flow, onx_status (*see)(void *user, cli_flow *flow, const cli_flow_step *step),
                         void *user);

#endif

/* cli_flow.h - a model as nodes and values by number, subgraphs included, and what can be told of the numbers without
 * running it: between what they are, from which input they come. cli_pull.c asks it backwards: what has to hold for the
 * inputs, so that nodes behind them get what they need. */
#ifndef ONX_CLI_FLOW_H
#define ONX_CLI_FLOW_H

#include "cli_table.h"
#include "cli_uses.h"

#include <onx/infer.h>

/* What a node does with numbers, a row of cli_moves.def. */
typedef enum cli_move_how { CLI_SAME, CLI_ADD, CLI_SUB, CLI_MUL, CLI_DIV, CLI_NEG, CLI_ABS, CLI_SUM } cli_move_how;
typedef struct cli_move {
    const char *domain, *op;
    cli_move_how how;
    uint32_t inputs, outputs; /* bits: those whose numbers are meant */
} cli_move;
#define CLI_MOVES_ALL UINT32_MAX
static inline bool cli_moves(uint32_t bits, uint32_t index)
{
    return bits == CLI_MOVES_ALL || (index < 32 && bits >> index & 1);
}

typedef struct cli_flow_value {
    onx_str name;
    const onx_graph *scope; /* that has it */
    const onx_tensor *tensor;
    double low, high; /* of all of its numbers; infinite: not known */
    uint32_t like;    /* 1 + the input of the model whose shape it has; 0: none */
    uint32_t asked;   /* 1 + index in `asked` of the flow */
    bool derived;     /* its numbers come from inputs of the model */
} cli_flow_value;

/* A node. Lists of steps and of bodies are linked from the last one back; 0 ends them, others are 1 + an index. */
typedef struct cli_flow_step {
    const onx_node *node;
    uint32_t before, bodies;
    uint32_t first; /* in `ids`: its inputs, then its outputs */
} cli_flow_step;
typedef struct cli_flow_body {
    const onx_graph *graph;
    uint32_t before, last;
    uint32_t first; /* in `ids`: inputs, then outputs */
} cli_flow_body;
#define CLI_FLOW_NONE UINT32_MAX /* of an input or output that is left out */

typedef struct cli_flow {
    cli_call *call;
    onx_ctx *cx; /* of its own, so that what inference finds is not reported */
    onx_doc *doc;
    onx_infer *infer;
    bool inferred; /* or tried: `infer` may be NULL */
    cli_table names, move_rows, fact_rows;
    cli_flow_value *values; /* the inputs of the session first, in its order */
    cli_flow_step *steps;
    cli_flow_body *bodies;
    uint32_t *ids;
    cli_numbers *asked;
    uint32_t value_count, value_room, step_count, step_room, body_count, body_room, id_count, id_room, asked_count,
        asked_room;
    uint32_t last;        /* step of the main graph */
    uint32_t input_count; /* so many values are inputs of the session */
} cli_flow;

/* Reads the model, with functions in place of their calls; close in any case. Errors are printed. */
onx_status cli_flow_open(cli_flow *flow, cli_call *call, const onx_doc *doc, const onx_session *s);
void cli_flow_close(cli_flow *flow);

/* The domain of a node, empty for ai.onnx. */
onx_str cli_flow_domain(const onx_node *node);
static inline bool cli_flow_is(const onx_node *node, const char *domain, const char *op)
{
    return onx_str_is(onx_view(node->op_type), op) && onx_str_is(cli_flow_domain(node), domain);
}
/* NULL: nothing is known of its numbers. */
const cli_move *cli_flow_move(const cli_flow *flow, const onx_node *node);
/* Dims, -1 for those that are not known; false: not even the rank is. */
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

/* ---- backwards (cli_pull.c) ---- */

/* Asks for numbers of a value. What is asked of one value twice has to hold both times, as far as that goes; where it
 * does not, what was asked later counts. */
onx_status cli_flow_ask(cli_flow *flow, uint32_t value, const cli_numbers *asked);
/* From the last node to the first: `see` asks for what the node needs of its inputs, then they are asked for what its
 * outputs were. */
onx_status cli_flow_pull(cli_flow *flow, onx_status (*see)(void *user, cli_flow *flow, const cli_flow_step *step),
                         void *user);

#endif

/* rnn.c - rows of the ONNX family "rnn": recurrent networks.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

#define RNN_INPUTS(diff, nondiff)                                                                                      \
    { "X", "T", diff }, { "W", "T", diff }, { "R", "T", diff }, { "B", "T", OPT | (diff) },                            \
    { "sequence_lens", "T1", OPT | (nondiff) }, { "initial_h", "T", OPT | (nondiff) }
#define RNN_ATTRS(activations, direction)                                                                              \
    { "activation_alpha", FLOATS, OPTIONAL }, { "activation_beta", FLOATS, OPTIONAL },                                 \
    { "activations", STRINGS, activations }, { "clip", FLOAT, OPTIONAL }, { "direction", STRING, TEXT(direction) },    \
    { "hidden_size", INT, OPTIONAL }
/* The default activations of both directions. */
#define TANH DEFAULT("[\"Tanh\", \"Tanh\"]")

static const onxi_port rnn_inputs_22[] = {
    RNN_INPUTS(DIFF, NONDIFF),
    { 0 },
};

static const onxi_port rnn_outputs_22[] = {
    { "Y", "T", OPT | DIFF },
    { "Y_h", "T", OPT | DIFF },
    { 0 },
};

static const onxi_type_constraint rnn_types_22[] = {
    { "T", T(FLOATING_13) },
    { "T1", T(BIT(INT32)) },
    { 0 },
};

static const onxi_type_constraint rnn_types_14[] = {
    { "T", T(FLOATING) },
    { "T1", T(BIT(INT32)) },
    { 0 },
};

static const onxi_port rnn_inputs_7[] = {
    RNN_INPUTS(0, 0),
    { 0 },
};

static const onxi_port rnn_outputs_7[] = {
    { "Y", "T", OPT },
    { "Y_h", "T", OPT },
    { 0 },
};

/* ---- GRU ---- */

static const onxi_attr gru_attrs_22[] = {
    RNN_ATTRS(OPTIONAL, "forward"),
    { "layout", INT, DEFAULT("0") },
    { "linear_before_reset", INT, DEFAULT("0") },
    { 0 },
};

const onxi_schema onxi_op_GRU[] = {
    { .name = "GRU", .since = 22, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_22, .outputs = rnn_outputs_22, .attrs = gru_attrs_22, .types = rnn_types_22 },
    { .name = "GRU", .since = 14, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_22, .outputs = rnn_outputs_22, .attrs = gru_attrs_22, .types = rnn_types_14 },
    { .name = "GRU", .since = 7, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_7, .outputs = rnn_outputs_7,
      .attrs = ATTRS(RNN_ATTRS(OPTIONAL, "forward"),
                     { "linear_before_reset", INT, DEFAULT("0") }),
      .types = rnn_types_14 },
    { .name = "GRU", .since = 3, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_7, .outputs = rnn_outputs_7,
      .attrs = ATTRS(RNN_ATTRS(OPTIONAL, "forward"),
                     { "linear_before_reset", INT, DEFAULT("0") }, { "output_sequence", INT, DEFAULT("0") }),
      .types = rnn_types_14 },
    { .name = "GRU", .since = 1, .infer = onxi_rule_recurrent, ARITY(3, 6, 2, 2),
      .inputs = rnn_inputs_7, .outputs = PORTS({ "Y", "T", OPT }, { "Y_h", "T", 0 }),
      .attrs = ATTRS(RNN_ATTRS(OPTIONAL, "foward"),
                     { "output_sequence", INT, DEFAULT("0") }),
      .types = rnn_types_14 },
    { .name = NULL },
};

/* ---- LSTM ---- */

static const onxi_port lstm_inputs_22[] = {
    RNN_INPUTS(DIFF, NONDIFF),
    { "initial_c", "T", OPT | NONDIFF },
    { "P", "T", OPT | DIFF },
    { 0 },
};

static const onxi_port lstm_outputs_22[] = {
    { "Y", "T", OPT | DIFF },
    { "Y_h", "T", OPT | DIFF },
    { "Y_c", "T", OPT | DIFF },
    { 0 },
};

static const onxi_attr lstm_attrs_22[] = {
    RNN_ATTRS(OPTIONAL, "forward"),
    { "input_forget", INT, DEFAULT("0") },
    { "layout", INT, DEFAULT("0") },
    { 0 },
};

static const onxi_port lstm_inputs_7[] = {
    RNN_INPUTS(0, 0),
    { "initial_c", "T", OPT },
    { "P", "T", OPT },
    { 0 },
};

static const onxi_port lstm_outputs_7[] = {
    { "Y", "T", OPT },
    { "Y_h", "T", OPT },
    { "Y_c", "T", OPT },
    { 0 },
};

const onxi_schema onxi_op_LSTM[] = {
    { .name = "LSTM", .since = 22, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 8, 0, 3),
      .inputs = lstm_inputs_22, .outputs = lstm_outputs_22, .attrs = lstm_attrs_22, .types = rnn_types_22 },
    { .name = "LSTM", .since = 14, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 8, 0, 3),
      .inputs = lstm_inputs_22, .outputs = lstm_outputs_22, .attrs = lstm_attrs_22, .types = rnn_types_14 },
    { .name = "LSTM", .since = 7, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 8, 0, 3),
      .inputs = lstm_inputs_7, .outputs = lstm_outputs_7,
      .attrs = ATTRS(RNN_ATTRS(OPTIONAL, "forward"),
                     { "input_forget", INT, DEFAULT("0") }),
      .types = rnn_types_14 },
    { .name = "LSTM", .since = 1, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 8, 0, 3),
      .inputs = lstm_inputs_7, .outputs = lstm_outputs_7,
      .attrs = ATTRS(RNN_ATTRS(OPTIONAL, "forward"),
                     { "input_forget", INT, DEFAULT("0") }, { "output_sequence", INT, DEFAULT("0") }),
      .types = rnn_types_14 },
    { .name = NULL },
};

/* ---- RNN ---- */

static const onxi_attr rnn_attrs_22[] = {
    RNN_ATTRS(TANH, "forward"),
    { "layout", INT, DEFAULT("0") },
    { 0 },
};

const onxi_schema onxi_op_RNN[] = {
    { .name = "RNN", .since = 22, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_22, .outputs = rnn_outputs_22, .attrs = rnn_attrs_22, .types = rnn_types_22 },
    { .name = "RNN", .since = 14, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_22, .outputs = rnn_outputs_22, .attrs = rnn_attrs_22, .types = rnn_types_14 },
    { .name = "RNN", .since = 7, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_7, .outputs = rnn_outputs_7,
      .attrs = ATTRS(RNN_ATTRS(TANH, "forward")),
      .types = rnn_types_14 },
    { .name = "RNN", .since = 1, .infer = onxi_rule_recurrent, .flags = INFERS, ARITY(3, 6, 0, 2),
      .inputs = rnn_inputs_7, .outputs = rnn_outputs_7,
      .attrs = ATTRS(RNN_ATTRS(TANH, "forward"),
                     { "output_sequence", INT, DEFAULT("0") }),
      .types = rnn_types_14 },
    { .name = NULL },
};

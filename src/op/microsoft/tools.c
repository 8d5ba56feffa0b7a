/* tools.c - rows of com.microsoft: dropout with packed masks, tests of values, Fourier transforms, and programs
 * compiled for a device. */
#include "op/microsoft/microsoft.h"

/* clang-format off */

MS_ROW(BitmaskDropout, .flags = NONDETERMINISTIC, ARITY(1, 3, 1, 2),
       .inputs = PORTS({ "data", "T", 0 }, { "ratio", "T1", OPT }, { "training_mode", "T2", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "mask", "T3", OPT }),
       .attrs = ATTRS({ "seed", INT, OPTIONAL }),
       .types = TYPES({ "T", T(FLOATING_13) }, { "T1", T(FLOATING_13) }, { "T2", T(BIT(BOOL)) },
                      { "T3", T(BIT(UINT32)) }),
       BODY(22, { NULL, NODES(output, kept = Dropout <seed: int = @seed> (data, ratio, training_mode)
                          any = Constant <value_ints = [-1]> ()
                          flat = Reshape (kept, any)
                          ones = Cast <to = 12> (flat)
                          count = Shape (flat)
                          width = Constant <value_ints = [32]> ()
                          more = Constant <value_ints = [31]> ()
                          raised = Add (count, more)
                          words = Div (raised, width)
                          bits = Mul (words, width)
                          missing = Sub (bits, count)
                          nothing = Constant <value_ints = [0]> ()
                          pads = Concat <axis = 0> (nothing, missing)
                          padded = Pad (ones, pads)
                          shape = Concat <axis = 0> (words, width)
                          rows = Reshape <allowzero = 1> (padded, shape)
                          places = Constant <value = uint32[32] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                                                 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}> ()
                          moved = BitShift <direction = "LEFT"> (rows, places)
                          second = Constant <value_ints = [1]> ()
                          mask = ReduceSum <keepdims = 0> (moved, second)) }))

WHEN(has_residual, MS_HAS(2))
WHEN(has_no_residual, !MS_HAS(2))
MS_ROW(BitmaskBiasDropout, .flags = NONDETERMINISTIC, ARITY(2, 5, 1, 2),
       .inputs = PORTS({ "data", "T", 0 }, { "bias", "T", 0 }, { "residual", "T", OPT }, { "ratio", "T1", OPT },
                       { "training_mode", "T2", OPT }),
       .outputs = PORTS({ "output", "T", 0 }, { "mask", "T3", OPT }),
       .attrs = ATTRS({ "seed", INT, OPTIONAL }),
       .types = TYPES({ "T", T(FLOATING_13) }, { "T1", T(FLOATING_13) }, { "T2", T(BIT(BOOL)) },
                      { "T3", T(BIT(UINT32)) }),
       BODY(18, { NULL, NODES(sum = Add (data, bias)
                          dropped, mask = com.microsoft.BitmaskDropout <seed: int = @seed> (sum, ratio, training_mode)) },
            { has_residual, NODES(output = Add (dropped, residual)) }, { has_no_residual, NODES(output = Identity (dropped)) }))

MS_ROW(IsAllFinite, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, MANY, 1, 1),
       .inputs = PORTS({ "input", "V", VARIADIC }),
       .outputs = PORTS({ "output", "T", 0 }),
       .attrs = ATTRS({ "isinf_only", INT, DEFAULT("0") }, { "isnan_only", INT, DEFAULT("0") }),
       .types = TYPES({ "V", T(FLOATING_13) }, { "T", T(BIT(BOOL)) }))

MS_ROW(ReduceSumInteger, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "data", "T1", 0 }), .outputs = PORTS({ "reduced", "T2", 0 }),
       .attrs = ATTRS({ "axes", INTS, REQUIRED }, { "keepdims", INT, REQUIRED }),
       .types = TYPES({ "T1", T_BYTES }, { "T2", T(BIT(INT32) | BIT(UINT32)) }))

/* The signal is the last axis. */
MS_ROW(Rfft, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "normalized", INT, DEFAULT("0") }, { "onesided", INT, DEFAULT("1") },
                      { "signal_ndim", INT, DEFAULT("1") }),
       .types = TYPES({ "T", T(FLOATING) }),
       BODY(20, { NULL, NODES(last = Constant <value_ints = [-1]> ()
                          column = Unsqueeze (X, last)
                          axis = Constant <value_int = -2> ()
                          Y = DFT <onesided = 1> (column, , axis)) }))

/* The other half of the spectrum mirrors the given one. */
MS_ROW(Irfft, .infer = onxi_rule_microsoft_dims, .flags = INFERS, ARITY(1, 1, 1, 1),
       .inputs = PORTS({ "X", "T", 0 }),
       .outputs = PORTS({ "Y", "T", 0 }),
       .attrs = ATTRS({ "normalized", INT, DEFAULT("0") }, { "onesided", INT, DEFAULT("1") },
                      { "signal_ndim", INT, REQUIRED }),
       .types = TYPES({ "T", T(FLOATING) }),
       BODY(20, { NULL, NODES(second = Constant <value_ints = [-2]> ()
                          one = Constant <value_ints = [1]> ()
                          end = Constant <value_ints = [-1]> ()
                          inner = Slice (X, one, end, second)
                          back = Constant <value_ints = [-1]> ()
                          begin = Constant <value_ints = [-9223372036854775807]> ()
                          mirrored = Slice (inner, end, begin, second, back)
                          signs = Constant <value = float[2] {1, -1}> ()
                          typed_signs = CastLike (signs, X)
                          conjugates = Mul (mirrored, typed_signs)
                          whole = Concat <axis = -2> (X, conjugates)
                          axis = Constant <value_int = -2> ()
                          signal = DFT <inverse = 1> (whole, , axis)
                          first = Constant <value_int = 0> ()
                          Y = Gather <axis = -1> (signal, first)) }))

MS_ROW(EPContext, ARITY(0, MANY, 1, MANY),
       .inputs = PORTS({ "inputs", "T", VARIADIC | HETEROGENEOUS | ARITY_0 }),
       .outputs = PORTS({ "outputs", "T", VARIADIC | HETEROGENEOUS }),
       .attrs = ATTRS({ "embed_mode", INT, DEFAULT("1") }, { "ep_cache_context", STRING, OPTIONAL },
                      { "ep_sdk_version", STRING, OPTIONAL }, { "hardware_architecture", STRING, OPTIONAL },
                      { "main_context", INT, DEFAULT("1") }, { "max_size", INT, DEFAULT("0") },
                      { "notes", STRING, OPTIONAL }, { "onnx_model_filename", STRING, OPTIONAL },
                      { "partition_name", STRING, OPTIONAL }, { "source", STRING, OPTIONAL }),
       .types = TYPES({ "T", T(FILL_13) }))

MS_ROW(Snpe, ARITY(1, MANY, 1, MANY),
       .inputs = PORTS({ "inputs", "T", VARIADIC }),
       .outputs = PORTS({ "outputs", "T", VARIADIC }),
       .attrs = ATTRS({ "DLC", STRING, REQUIRED }, { "notes", STRING, OPTIONAL },
                      { "snpe_version", STRING, OPTIONAL }, { "target_device", STRING, OPTIONAL }),
       .types = TYPES({ "T", T(BIT(UINT8) | BIT(UINT16) | BIT(FLOAT)) }))

/* op_rows.h - the macros in which operator rows are written; for the files in op/rows and the folders of domains.
 *
 * A row is an onxi_schema: { .name, .since, .flags, ARITY(...), .inputs, .outputs, .attrs, .types, .infer }.
 *   ports        { name, type constraint or type, flags }
 *   attributes   { name, type, REQUIRED | OPTIONAL | DEFAULT("as text") | TEXT("string default") }
 *   types        { constraint, T(element types of a tensor) or { .tensor = , .seq = , ... } }
 *   BODY(...)    { condition or NULL, NODES(text) }: an operator in terms of others, for those that have no kernel
 * Lists end with { 0 }. A list that several versions share is an array above the rows; it is named after the newest
 * version that has it. */
#ifndef ONXI_OP_ROWS_H
#define ONXI_OP_ROWS_H

#include "op/op.h"
#include "op/op_rules.h"

#define PORTS(...) ((const onxi_port[]){ __VA_ARGS__, { 0 } })
#define ATTRS(...) ((const onxi_attr[]){ __VA_ARGS__, { 0 } })
#define TYPES(...) ((const onxi_type_constraint[]){ __VA_ARGS__, { 0 } })
/* The parts of a function body, and the version of the default domain that their nodes use. */
#define BODY(opset, ...)                                                                                               \
    .body_opset = (opset), .body_parts = (const onxi_body_part[])                                                      \
    {                                                                                                                  \
        __VA_ARGS__,                                                                                                   \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
/* The same for an operator that runs faster as its body, although it has a kernel for calls without a matching part,
 * and for plain sessions. */
#define BODY_FIRST(opset, ...) .body_first = true, BODY(opset, __VA_ARGS__)
/* Nodes in ONNX text; hidden from the compiler and clang-format. */
#define NODES(...) #__VA_ARGS__
/* A condition of a part, with the argument `call`. */
#define WHEN(name, condition)                                                                                          \
    static bool name(onxi_call *call)                                                                                  \
    {                                                                                                                  \
        return condition;                                                                                              \
    }

/* Minimum and maximum numbers of inputs and outputs. They follow from the ports, which a test verifies. */
#define ARITY(min_in, max_in, min_out, max_out)                                                                        \
    .min_input = (min_in), .max_input = (max_in), .min_output = (min_out), .max_output = (max_out)
#define MANY ONXI_MANY

/* ---- flags of ports and rows ---- */

#define OPT           ONXI_PORT_OPTIONAL
#define VARIADIC      ONXI_PORT_VARIADIC
#define HETEROGENEOUS ONXI_PORT_HETEROGENEOUS
#define ARITY_0       ONXI_PORT_ARITY_0
#define DIFF          ONXI_PORT_DIFF
#define NONDIFF       ONXI_PORT_NONDIFF

#define EXPERIMENTAL        ONXI_OP_EXPERIMENTAL
#define DEPRECATED          ONXI_OP_DEPRECATED
#define FUNCTION            ONXI_OP_FUNCTION
#define CONTEXT_FUNCTION    ONXI_OP_CONTEXT_FUNCTION
#define INFERS              ONXI_OP_INFERS
#define PROPAGATES          ONXI_OP_PROPAGATES
#define NONDETERMINISTIC    ONXI_OP_NONDETERMINISTIC
#define DETERMINISM_UNKNOWN ONXI_OP_DETERMINISM_UNKNOWN

/* ---- attributes ---- */

#define FLOAT         ONX_ATTR_FLOAT
#define INT           ONX_ATTR_INT
#define STRING        ONX_ATTR_STRING
#define TENSOR        ONX_ATTR_TENSOR
#define GRAPH         ONX_ATTR_GRAPH
#define FLOATS        ONX_ATTR_FLOATS
#define INTS          ONX_ATTR_INTS
#define STRINGS       ONX_ATTR_STRINGS
#define SPARSE_TENSOR ONX_ATTR_SPARSE_TENSOR
#define TYPE_PROTO    ONX_ATTR_TYPE_PROTO

#define REQUIRED      .required = true
#define OPTIONAL      .required = false
#define DEFAULT(text) .default_text = text
#define TEXT(string)  .default_text = "\"" string "\""

/* ---- sets of element types; a number is the opset version that introduced the wider set ---- */

#define BIT(dtype) (UINT32_C(1) << ONX_##dtype)
#define T(set)                                                                                                         \
    {                                                                                                                  \
        .tensor = (set)                                                                                                \
    }

#define FLOATS_8 (BIT(FLOAT8E4M3FN) | BIT(FLOAT8E4M3FNUZ) | BIT(FLOAT8E5M2) | BIT(FLOAT8E5M2FNUZ))
#define FLOATS_6 (BIT(FLOAT6E2M3) | BIT(FLOAT6E3M2))
#define INTS_4   (BIT(INT4) | BIT(UINT4))
#define INTS_2   (BIT(INT2) | BIT(UINT2))
#define COMPLEX  (BIT(COMPLEX64) | BIT(COMPLEX128))
#define INTEGERS                                                                                                       \
    (BIT(INT8) | BIT(INT16) | BIT(INT32) | BIT(INT64) | BIT(UINT8) | BIT(UINT16) | BIT(UINT32) | BIT(UINT64))
#define FLOATING          (BIT(FLOAT16) | BIT(FLOAT) | BIT(DOUBLE))
#define FLOATING_13       (FLOATING | BIT(BFLOAT16))
#define FLOATING_19       (FLOATING_13 | FLOATS_8)
#define NUMERIC           (INTEGERS | FLOATING)
#define NUMERIC_13        (INTEGERS | FLOATING_13)
#define WIDE_NUMERIC      (FLOATING | BIT(INT32) | BIT(INT64) | BIT(UINT32) | BIT(UINT64))
#define WIDE_NUMERIC_13   (WIDE_NUMERIC | BIT(BFLOAT16))
#define BASIC             (NUMERIC | BIT(BOOL))
#define BASIC_9           (BASIC | BIT(STRING))
#define FILL_13           (NUMERIC_13 | BIT(BOOL))
#define FILL_20           (FILL_13 | FLOATS_8)
#define FILL_21           (FILL_20 | INTS_4)
#define FILL_23           (FILL_21 | BIT(FLOAT4E2M1))
#define FILL_24           (FILL_23 | BIT(FLOAT8E8M0))
#define FILL_25           (FILL_24 | INTS_2)
#define CAST_13           (FILL_13 | BIT(STRING))
#define CAST_19           (FILL_20 | BIT(STRING))
#define CAST_21           (FILL_21 | BIT(STRING))
#define CAST_23           (FILL_23 | BIT(STRING))
#define CAST_24           (FILL_24 | BIT(STRING))
#define CAST_25           (FILL_25 | BIT(STRING))
#define BITWISE_26        (FILL_25 | COMPLEX)
#define ALL               (NUMERIC | BIT(BOOL) | BIT(STRING) | COMPLEX)
#define ALL_13            (ALL | BIT(BFLOAT16))
#define ALL_19            (ALL_13 | FLOATS_8)
#define ALL_21            (ALL_19 | INTS_4)
#define ALL_23            (ALL_21 | BIT(FLOAT4E2M1))
#define ALL_24            (ALL_23 | BIT(FLOAT8E8M0))
#define ALL_25            (ALL_24 | INTS_2)
#define CAST_28           (CAST_25 | FLOATS_6)
#define ALL_28            (ALL_25 | FLOATS_6)
#define INTS_8            (BIT(INT8) | BIT(UINT8))
#define INDEX             (BIT(INT32) | BIT(INT64))
#define SCALES_19         (BIT(FLOAT) | BIT(FLOAT16) | BIT(BFLOAT16))
#define SCALES_24         (SCALES_19 | BIT(FLOAT8E8M0))
#define ML_NUMERIC        (BIT(FLOAT) | BIT(DOUBLE) | BIT(INT32) | BIT(INT64))
#define ML_KEYS           (ML_NUMERIC | BIT(STRING))
#define LABELS            (BIT(INT64) | BIT(STRING))
#define SIGNED_NUMERIC    (FLOATING | BIT(INT8) | BIT(INT16) | BIT(INT32) | BIT(INT64))
#define SIGNED_NUMERIC_13 (SIGNED_NUMERIC | BIT(BFLOAT16))
#define EXTREMES_12       (WIDE_NUMERIC | INTS_8)
#define EXTREMES_13       (EXTREMES_12 | BIT(BFLOAT16))
#define EXTREMES_20       (EXTREMES_13 | BIT(BOOL))
#define POOL_12           (FLOATING | INTS_8)
#define POOL_22           (FLOATING_13 | INTS_8)
#define QUANT_10          (INTS_8 | BIT(INT32))
#define QUANT_OUT_19      (INTS_8 | FLOATS_8)
#define QUANT_19          (QUANT_OUT_19 | BIT(INT32))
#define QUANT_OUT_21      (QUANT_OUT_19 | BIT(INT16) | BIT(UINT16) | INTS_4)
#define QUANT_21          (QUANT_OUT_21 | BIT(INT32))
#define QUANT_OUT_23      (QUANT_OUT_21 | BIT(FLOAT4E2M1))
#define QUANT_23          (QUANT_OUT_23 | BIT(INT32))
#define QUANT_OUT_25      (QUANT_OUT_23 | INTS_2)
#define QUANT_25          (QUANT_OUT_25 | BIT(INT32))
#define QUANT_OUT_28      (QUANT_OUT_25 | FLOATS_6)
#define QUANT_28          (QUANT_25 | FLOATS_6)

#endif

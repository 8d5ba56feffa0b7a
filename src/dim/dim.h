/* dim.h - dimensions as expressions over symbols. docs/notes/dimensions.md */
#ifndef ONXI_DIM_H
#define ONXI_DIM_H

#include "base/base.h"

/* A dimension, or one element of a propagated integer tensor: a constant, an expression over symbols, or unknown.
 * Constants are represented by their value; expressions are hash-consed in an onxi_dims, so equal ids mean equal
 * expressions (simplified to sums of products in a fixed order). Ids are in a band at the far negative end, which
 * constants of real models do not reach; onxi_dim_of_int maps integers in the band to its upper end. */
typedef int64_t onxi_dim;
#define ONXI_DIM_UNKNOWN INT64_MIN
#define ONXI_DIM_BAND    (INT64_MIN + (INT64_C(1) << 32))
static inline bool onxi_dim_is_const(onxi_dim d)
{
    return d >= ONXI_DIM_BAND;
}
/* Converts any integer; values in the band of ids, which only mean "as far as possible", become the smallest
 * constant. */
static inline onxi_dim onxi_dim_of_int(int64_t value)
{
    return value >= ONXI_DIM_BAND ? value : ONXI_DIM_BAND;
}
static inline bool onxi_dim_is_known(onxi_dim d)
{
    return d != ONXI_DIM_UNKNOWN;
}

typedef struct onxi_dims onxi_dims;
onx_status onxi_dims_new(onx_ctx *cx, onxi_dims **out);
void onxi_dims_free(onxi_dims *dims);
onxi_dim onxi_dim_symbol(onxi_dims *dims, onx_str name);
/* A symbol that no text in the model can name; `hint` is part of its printed name. */
onxi_dim onxi_dim_fresh(onxi_dims *dims, const char *hint);
/* Unknown operands, overflow, division by zero, and arithmetic with ONXI_DIM_BAND yield ONXI_DIM_UNKNOWN. Dimensions
 * are assumed to be >= 0. `dims` may be NULL while all operands are constants. */
onxi_dim onxi_dim_add(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_sub(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_mul(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_div(onxi_dims *dims, onxi_dim a, onxi_dim b);      /* towards negative infinity */
onxi_dim onxi_dim_div_ceil(onxi_dims *dims, onxi_dim a, onxi_dim b); /* towards positive infinity */
onxi_dim onxi_dim_mod(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_min(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_max(onxi_dims *dims, onxi_dim a, onxi_dim b);
/* The result of broadcasting two dims: the one that is not 1. Unknown for constants that do not match. */
onxi_dim onxi_dim_broadcast(onxi_dims *dims, onxi_dim a, onxi_dim b);
/* Is it a constant, or an expression of this table? */
bool onxi_dim_exists(const onxi_dims *dims, onxi_dim d);
/* Is a >= b for all values of the symbols? False also means "not known". */
bool onxi_dim_at_least(onxi_dims *dims, onxi_dim a, onxi_dim b);
/* Bounds of the value; INT64_MIN and INT64_MAX: unbounded. */
int64_t onxi_dim_low(const onxi_dims *dims, onxi_dim d);
int64_t onxi_dim_high(const onxi_dims *dims, onxi_dim d);
bool onxi_dim_is_symbol(const onxi_dims *dims, onxi_dim d); /* a single symbol */
bool onxi_dim_is_fresh(const onxi_dims *dims, onxi_dim d);  /* created by onxi_dim_fresh */
/* Fixes the symbol of that name to this constant from now on; existing expressions do not change. */
onx_status onxi_dims_fix(onxi_dims *dims, onx_str name, int64_t value);
void onxi_dims_unfix(onxi_dims *dims, onx_str name);
bool onxi_dims_fixed(const onxi_dims *dims, onx_str name, int64_t *value);
bool onxi_dims_met(const onxi_dims *dims, onx_str name); /* was the symbol used since it was fixed? */
/* Calls `each` with the name of every symbol in d, including repeated ones. False if one of them was created by
 * onxi_dim_fresh, whose value is unrelated to names, or if `each` returned false. */
bool onxi_dim_symbols(const onxi_dims *dims, onxi_dim d, bool (*each)(void *user, onx_str name), void *user);
/* The newest expression so far; later expressions compare greater, UNKNOWN is less than all. */
onxi_dim onxi_dims_newest(const onxi_dims *dims);
/* Does d contain a symbol that onxi_dim_fresh created after that? */
bool onxi_dim_has_fresh(const onxi_dims *dims, onxi_dim d, onxi_dim after);
/* d with a symbol replaced by `value`, simplified. */
onxi_dim onxi_dim_substitute(onxi_dims *dims, onxi_dim d, onxi_dim symbol, onxi_dim value);
/* Stable, readable text such as N, N + 1, 2*seq, (H + 1)/2; returns like snprintf. Empty for an unknown dimension. */
size_t onxi_dim_print(const onxi_dims *dims, onxi_dim d, char *buf, size_t size);
/* Parses such a text (dim_param); any other text becomes one symbol. Unknown for a text that names nothing. */
onxi_dim onxi_dim_parse(onxi_dims *dims, onx_str text);

#ifndef ONXI_KERNEL_H /* kernels see numbers only */
/* Does a text name a size, so that equal texts may mean equal sizes? Exporters also write texts that mean "unknown":
 * "?", "None", "-1", "unk__3", or nothing at all; these, and texts without a letter, are no names. */
bool onxi_dim_is_name(onx_str text);
/* Lets a table be used to prove: what rules of operators assume of symbols during inference (a size is not 0, a
 * position counts from the start, a number does not overflow) does not hold then. */
void onxi_dims_prove(onxi_dims *dims);
bool onxi_dims_proves(const onxi_dims *dims); /* false for NULL */
/* Constant arithmetic that overflows is an error in strict inference, as in the reference, and unknown otherwise. */
void onxi_dims_refuse_overflow(onxi_dims *dims);
bool onxi_dims_refuses_overflow(const onxi_dims *dims); /* false for NULL */
/* Is |d| at most `most` if every symbol is the size of an axis, at most INT32_MAX? */
bool onxi_dim_within(const onxi_dims *dims, onxi_dim d, double most);
#endif

#endif

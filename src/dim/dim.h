/* dim.h - dimensions as expressions over symbols. docs/notes/dimensions.md */
#ifndef ONXI_DIM_H
#define ONXI_DIM_H

#include "base/base.h"

/* A dimension, or one element of an integer tensor that is carried along: a constant, an expression over symbols, or
 * unknown. Constants are themselves; expressions are hash-consed in an onxi_dims, so equal ids mean equal expressions
 * (simplified: sums of products in a fixed order). The band of ids is at the far negative end, where no constant
 * of a real model is; integers inside the band (onxi_dim_of_int) become its upper end. */
typedef int64_t onxi_dim;
#define ONXI_DIM_UNKNOWN INT64_MIN
#define ONXI_DIM_BAND    (INT64_MIN + (INT64_C(1) << 32))
static inline bool onxi_dim_is_const(onxi_dim d)
{
    return d >= ONXI_DIM_BAND;
}
/* Any integer; those at the far negative end, which only mean "as far as possible", become the least constant. */
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
/* A symbol that no text of the model names; `hint` shows in its printed name. */
onxi_dim onxi_dim_fresh(onxi_dims *dims, const char *hint);
/* Unknown operands, overflow and division by zero give ONXI_DIM_UNKNOWN. Dimensions are taken to be >= 0 where that
 * simplifies; `dims` may be NULL while all operands are constants. */
onxi_dim onxi_dim_add(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_sub(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_mul(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_div(onxi_dims *dims, onxi_dim a, onxi_dim b);      /* towards negative infinity */
onxi_dim onxi_dim_div_ceil(onxi_dims *dims, onxi_dim a, onxi_dim b); /* towards positive infinity */
onxi_dim onxi_dim_mod(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_min(onxi_dims *dims, onxi_dim a, onxi_dim b);
onxi_dim onxi_dim_max(onxi_dims *dims, onxi_dim a, onxi_dim b);
/* What two dims give that are broadcast to each other: the one that is not 1. Constants that contradict: unknown. */
onxi_dim onxi_dim_broadcast(onxi_dims *dims, onxi_dim a, onxi_dim b);
/* Is it a constant or an expression that was made here? */
bool onxi_dim_exists(const onxi_dims *dims, onxi_dim d);
/* Is a >= b whatever the symbols stand for? False also means "not known". */
bool onxi_dim_at_least(onxi_dims *dims, onxi_dim a, onxi_dim b);
/* Bounds; INT64_MIN and INT64_MAX: none. */
int64_t onxi_dim_low(const onxi_dims *dims, onxi_dim d);
int64_t onxi_dim_high(const onxi_dims *dims, onxi_dim d);
bool onxi_dim_is_symbol(const onxi_dims *dims, onxi_dim d); /* a name alone */
bool onxi_dim_is_fresh(const onxi_dims *dims, onxi_dim d);  /* made by onxi_dim_fresh */
/* From now on the symbol of that name is this constant; expressions that were made before stay as they are. */
onx_status onxi_dims_fix(onxi_dims *dims, onx_str name, int64_t value);
void onxi_dims_unfix(onxi_dims *dims, onx_str name);
bool onxi_dims_fixed(const onxi_dims *dims, onx_str name, int64_t *value);
bool onxi_dims_met(const onxi_dims *dims, onx_str name); /* was the symbol asked for since it was fixed? */
/* Calls `each` with the name of every symbol in d, repeated ones too. False when one of them was made by
 * onxi_dim_fresh, which may stand for anything, or when `each` returned false. */
bool onxi_dim_symbols(const onxi_dims *dims, onxi_dim d, bool (*each)(void *user, onx_str name), void *user);
/* The newest expression so far; later ones are greater, UNKNOWN is less than all. */
onxi_dim onxi_dims_newest(const onxi_dims *dims);
/* Is a symbol in d that onxi_dim_fresh made after that? */
bool onxi_dim_has_fresh(const onxi_dims *dims, onxi_dim d, onxi_dim after);
/* d with `value` in the place of a symbol, simplified. */
onxi_dim onxi_dim_substitute(onxi_dims *dims, onxi_dim d, onxi_dim symbol, onxi_dim value);
/* Stable, readable text: N, N + 1, 2*seq, (H + 1)/2; as snprintf does. Empty for an unknown one. */
size_t onxi_dim_print(const onxi_dims *dims, onxi_dim d, char *buf, size_t size);
/* Reads such a text back (dim_param); text of any other form becomes one symbol. */
onxi_dim onxi_dim_parse(onxi_dims *dims, onx_str text);

#endif

/* dim_expr.h - how dimension expressions are stored, for dim*.c alone. */
#ifndef ONXI_DIM_EXPR_H
#define ONXI_DIM_EXPR_H

#include "dim/dim.h"

/* What an expression may grow to; beyond it becomes opaque, a symbol equal only to itself. */
enum {
    ONXI_DIM_TERMS = 16,     /* terms of a sum */
    ONXI_DIM_FACTORS = 8,    /* factors of a product */
    ONXI_DIM_LIST = 6,       /* members of min and max */
    ONXI_DIM_WEIGHT = 400,   /* printed characters, about */
    ONXI_DIM_LIMIT = 1 << 26 /* expressions in all */
};

enum {
    ONXI_DIM_SYMBOL,
    ONXI_DIM_SUM,
    ONXI_DIM_PRODUCT,
    ONXI_DIM_DIV,
    ONXI_DIM_MOD,
    ONXI_DIM_MIN,
    ONXI_DIM_MAX,
    ONXI_DIM_OPAQUE
};

typedef struct onxi_dim_term {
    int64_t coef;
    onxi_dim of; /* a symbol, product, quotient, ... but never a sum */
} onxi_dim_term;

typedef struct onxi_dim_expr {
    uint8_t kind;
    uint32_t count; /* of args or terms */
    uint32_t weight;
    int64_t constant;  /* of a sum; '+', '-' or '*' of an opaque one; 1: a symbol that no text of the model names */
    int64_t low, high; /* bounds, INT64_MIN and INT64_MAX: none */
    union {
        onx_str name;
        const onxi_dim *args;       /* product: in ascending order, a power repeats; quotient and remainder: two */
        const onxi_dim_term *terms; /* in ascending order of `of` */
    };
} onxi_dim_expr;

typedef struct onxi_dim_fixed {
    struct onxi_dim_fixed *next;
    onx_str name;
    int64_t value;
    bool met; /* the symbol was asked for */
} onxi_dim_fixed;

struct onxi_dims {
    onx_ctx *cx;
    onx_arena *arena;
    onxi_dim_expr *exprs; /* id INT64_MIN + 1 + index */
    uint32_t count, room;
    onxi_table table;
    uint32_t fresh;
    onxi_dim_fixed *fixed;
};

static inline const onxi_dim_expr *onxi_dim_expr_of(const onxi_dims *dims, onxi_dim d)
{
    return &dims->exprs[(uint64_t)d - (uint64_t)INT64_MIN - 1];
}

/* The id of the expression, a new one when it was not seen before; members are copied. */
onxi_dim onxi_dim_intern(onxi_dims *dims, onxi_dim_expr e);

/* About how many characters an expression prints as; what grows past the limit becomes opaque, so that depth, printing
 * and comparing stay bounded whatever a file does. */
static inline uint32_t onxi_dim_weight_of(const onxi_dims *dims, onxi_dim d)
{
    return onxi_dim_is_const(d) ? 2 : onxi_dim_expr_of(dims, d)->weight;
}

/* Bounds; INT64_MIN and INT64_MAX stand for "none". */
typedef struct onxi_range {
    int64_t low, high;
} onxi_range;

onxi_range onxi_range_of(const onxi_dims *dims, onxi_dim d);
onxi_range onxi_range_of_sum(const onxi_dims *dims, int64_t constant, const onxi_dim_term *terms, uint32_t count);
onxi_range onxi_range_of_expr(const onxi_dims *dims, const onxi_dim_expr *e);
int64_t onxi_floor_div(int64_t a, int64_t b);

#endif

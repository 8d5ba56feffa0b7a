/* dim_expr.h - the representation of dimension expressions, for dim*.c only. */
#ifndef ONXI_DIM_EXPR_H
#define ONXI_DIM_EXPR_H

#include "dim/dim.h"

/* Maximum sizes of an expression; a larger one becomes opaque, that is, a symbol that is equal only to itself. */
enum {
    ONXI_DIM_TERMS = 16,     /* terms of a sum */
    ONXI_DIM_FACTORS = 8,    /* factors of a product */
    ONXI_DIM_LIST = 6,       /* members of min and max */
    ONXI_DIM_WEIGHT = 400,   /* approximate number of printed characters */
    ONXI_DIM_LIMIT = 1 << 26 /* total number of expressions */
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
    onxi_dim of; /* an atom: a symbol, product, quotient, ... but never a sum */
} onxi_dim_term;

typedef struct onxi_dim_expr {
    uint8_t kind;
    uint32_t count; /* number of args or terms */
    uint32_t weight;
    int64_t constant;  /* the constant of a sum; for an opaque expression its operator '+', '-' or '*'; for a symbol 1
                        * if no text of the model can name it */
    int64_t low, high; /* bounds; INT64_MIN and INT64_MAX: unbounded */
    union {
        onx_str name;
        const onxi_dim *args;       /* product: in ascending order, powers repeat the factor; quotient and remainder:
                                     * two */
        const onxi_dim_term *terms; /* in ascending order of `of` */
    };
} onxi_dim_expr;

typedef struct onxi_dim_fixed {
    struct onxi_dim_fixed *next;
    onx_str name;
    int64_t value;
    bool met; /* the symbol has been used */
} onxi_dim_fixed;

struct onxi_dims {
    onx_ctx *cx;
    onx_arena *arena;
    onxi_dim_expr *exprs; /* id INT64_MIN + 1 + index */
    uint32_t count, room;
    onxi_table table;
    uint32_t fresh;
    onxi_dim_fixed *fixed;
    bool proves, refuses_overflow;
};

static inline const onxi_dim_expr *onxi_dim_expr_of(const onxi_dims *dims, onxi_dim d)
{
    return &dims->exprs[(uint64_t)d - (uint64_t)INT64_MIN - 1];
}

/* The id of the expression, which is added if it is new; its members are copied. */
onxi_dim onxi_dim_intern(onxi_dims *dims, onxi_dim_expr e);

/* Approximately how many characters an expression prints as. Larger ones become opaque, so that depth, printing and
 * comparison are bounded for hostile files. */
static inline uint32_t onxi_dim_weight_of(const onxi_dims *dims, onxi_dim d)
{
    return onxi_dim_is_const(d) ? 2 : onxi_dim_expr_of(dims, d)->weight;
}

/* Bounds; INT64_MIN and INT64_MAX mean unbounded. */
typedef struct onxi_range {
    int64_t low, high;
} onxi_range;

onxi_range onxi_range_of(const onxi_dims *dims, onxi_dim d);
onxi_range onxi_range_of_sum(const onxi_dims *dims, int64_t constant, const onxi_dim_term *terms, uint32_t count);
onxi_range onxi_range_of_expr(const onxi_dims *dims, const onxi_dim_expr *e);
int64_t onxi_floor_div(int64_t a, int64_t b);

#endif

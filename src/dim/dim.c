/* dim.c - arithmetic on dimension expressions, which are simplified to sums of products of symbols, quotients,
 * remainders, minima and maxima. dim_table.c stores them; dim_text.c parses and prints them. See
 * docs/notes/dimensions.md. */
#include "dim/dim_expr.h"

/* A sum under construction: constant + terms, sorted by atom. */
typedef struct poly {
    int64_t constant;
    uint32_t count;
    onxi_dim_term terms[ONXI_DIM_TERMS];
} poly;

/* ---- sums ---- */

static poly poly_of(const onxi_dims *dims, onxi_dim d)
{
    poly p = { .constant = 0, .count = 0 };
    if (onxi_dim_is_const(d)) {
        p.constant = d;
        return p;
    }
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, d);
    if (e->kind == ONXI_DIM_SUM) {
        p.constant = e->constant;
        p.count = e->count;
        memcpy(p.terms, e->terms, e->count * sizeof *e->terms);
    } else {
        p.count = 1;
        p.terms[0] = (onxi_dim_term){ 1, d };
    }
    return p;
}

static onxi_dim poly_dim(onxi_dims *dims, const poly *p)
{
    if (p->count == 0)
        return onxi_dim_is_const(p->constant) ? p->constant : ONXI_DIM_UNKNOWN;
    if (p->count == 1 && p->constant == 0 && p->terms[0].coef == 1)
        return p->terms[0].of;
    onxi_dim_expr e = { .kind = ONXI_DIM_SUM, .count = p->count, .constant = p->constant, .terms = p->terms };
    return onxi_dim_intern(dims, e);
}

static bool poly_add_term(poly *p, int64_t coef, onxi_dim of)
{
    uint32_t at = 0;
    while (at < p->count && p->terms[at].of < of)
        at++;
    if (at < p->count && p->terms[at].of == of) {
        if (!onxi_add_i64(p->terms[at].coef, coef, &p->terms[at].coef))
            return false;
        if (p->terms[at].coef == 0) {
            p->count--;
            memmove(&p->terms[at], &p->terms[at + 1], (p->count - at) * sizeof *p->terms);
        }
        return true;
    }
    if (p->count == ONXI_DIM_TERMS)
        return false;
    memmove(&p->terms[at + 1], &p->terms[at], (p->count - at) * sizeof *p->terms);
    p->terms[at] = (onxi_dim_term){ coef, of };
    p->count++;
    return true;
}

/* p += coef * q */
static bool poly_add(poly *p, const poly *q, int64_t coef)
{
    int64_t c;
    if (!onxi_mul_i64(q->constant, coef, &c) || !onxi_add_i64(p->constant, c, &p->constant))
        return false;
    for (uint32_t i = 0; i < q->count; i++)
        if (!onxi_mul_i64(q->terms[i].coef, coef, &c) || !poly_add_term(p, c, q->terms[i].of))
            return false;
    return true;
}

/* An expression that is too complex for a sum becomes an opaque symbol, which is the same for the same operands. */
static onxi_dim opaque(onxi_dims *dims, char op, onxi_dim a, onxi_dim b)
{
    onxi_dim args[2] = { a, b };
    onxi_dim_expr e = { .kind = ONXI_DIM_OPAQUE, .constant = op, .count = 2, .args = args };
    return onxi_dim_intern(dims, e);
}

static bool usable(const onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return onxi_dim_exists(dims, a) && onxi_dim_exists(dims, b);
}

static onxi_dim const_dim(bool fits, int64_t value)
{
    return fits && onxi_dim_is_const(value) ? value : ONXI_DIM_UNKNOWN;
}

/* Are both operands the numbers that they look like? The end of the band also stands for every integer below it. */
static bool exact(const onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return a != ONXI_DIM_BAND && b != ONXI_DIM_BAND && usable(dims, a, b);
}

onxi_dim onxi_dim_add(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (!exact(dims, a, b))
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b)) {
        int64_t sum;
        bool fits = onxi_add_i64(a, b, &sum);
        return const_dim(fits, sum);
    }
    poly p = poly_of(dims, a), q = poly_of(dims, b);
    return poly_add(&p, &q, 1) ? poly_dim(dims, &p) : opaque(dims, '+', a, b);
}

static onxi_dim list_dim(onxi_dims *dims, int kind, const onxi_dim *in, uint32_t count);

/* N - max(N - 1, 0) is min(1, N), and min(1024, past + seq) - past is min(1024 - past, seq): moving the sum into the
 * list lets its members cancel. Unknown if there is no list, or if nothing cancels. */
static onxi_dim sub_lists(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    onxi_dim parts[ONXI_DIM_LIST];
    onxi_dim_expr list = *onxi_dim_expr_of(dims, b);
    if (list.kind == ONXI_DIM_MIN || list.kind == ONXI_DIM_MAX) {
        for (uint32_t i = 0; i < list.count; i++)
            parts[i] = onxi_dim_sub(dims, a, list.args[i]);
        return list_dim(dims, list.kind == ONXI_DIM_MIN ? ONXI_DIM_MAX : ONXI_DIM_MIN, parts, list.count);
    }
    list = *onxi_dim_expr_of(dims, a);
    if (list.kind != ONXI_DIM_MIN && list.kind != ONXI_DIM_MAX)
        return ONXI_DIM_UNKNOWN;
    for (uint32_t i = 0; i < list.count; i++)
        parts[i] = onxi_dim_sub(dims, list.args[i], b);
    onxi_dim apart = list_dim(dims, list.kind, parts, list.count);
    return onxi_dim_is_known(apart) && onxi_dim_weight_of(dims, apart) <= onxi_dim_weight_of(dims, a)
               ? apart
               : ONXI_DIM_UNKNOWN;
}

onxi_dim onxi_dim_sub(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (!exact(dims, a, b))
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b)) {
        int64_t difference;
        bool fits = onxi_sub_i64(a, b, &difference);
        return const_dim(fits, difference);
    }
    if (!onxi_dim_is_const(a) && !onxi_dim_is_const(b)) {
        onxi_dim apart = sub_lists(dims, a, b);
        if (onxi_dim_is_known(apart))
            return apart;
    }
    poly p = poly_of(dims, a), q = poly_of(dims, b);
    return poly_add(&p, &q, -1) ? poly_dim(dims, &p) : opaque(dims, '-', a, b);
}

/* ---- products ---- */

/* The factors of a term's atom: those of a product, or the atom itself. */
static const onxi_dim *factors(const onxi_dims *dims, const onxi_dim *of, uint32_t *count)
{
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, *of);
    if (e->kind == ONXI_DIM_PRODUCT) {
        *count = e->count;
        return e->args;
    }
    *count = 1;
    return of;
}

static onxi_dim product_dim(onxi_dims *dims, const onxi_dim *args, uint32_t count)
{
    if (count == 0)
        return 1;
    if (count == 1)
        return args[0];
    onxi_dim_expr e = { .kind = ONXI_DIM_PRODUCT, .count = count, .args = args };
    return onxi_dim_intern(dims, e);
}

static onxi_dim term_mul(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    uint32_t n, m, count = 0;
    const onxi_dim *x = factors(dims, &a, &n), *y = factors(dims, &b, &m);
    onxi_dim out[2 * ONXI_DIM_FACTORS];
    if (n + m > ONXI_DIM_FACTORS)
        return ONXI_DIM_UNKNOWN;
    for (uint32_t i = 0, j = 0; i < n || j < m;)
        out[count++] = j == m || (i < n && x[i] <= y[j]) ? x[i++] : y[j++];
    return product_dim(dims, out, count);
}

static bool poly_mul(onxi_dims *dims, const poly *p, const poly *q, poly *out)
{
    *out = (poly){ .constant = 0, .count = 0 };
    if (!poly_add(out, p, q->constant))
        return false;
    for (uint32_t j = 0; j < out->count;) /* a constant factor of 0 leaves terms with coefficient 0 */
        if (out->terms[j].coef == 0)
            memmove(&out->terms[j], &out->terms[j + 1], (--out->count - j) * sizeof *out->terms);
        else
            j++;
    for (uint32_t j = 0; j < q->count; j++) {
        int64_t coef;
        if (p->constant &&
            (!onxi_mul_i64(p->constant, q->terms[j].coef, &coef) || !poly_add_term(out, coef, q->terms[j].of)))
            return false;
        for (uint32_t i = 0; i < p->count; i++) {
            onxi_dim of = term_mul(dims, p->terms[i].of, q->terms[j].of);
            if (of == ONXI_DIM_UNKNOWN || !onxi_mul_i64(p->terms[i].coef, q->terms[j].coef, &coef) ||
                !poly_add_term(out, coef, of))
                return false;
        }
    }
    return true;
}

onxi_dim onxi_dim_mul(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (a == 0 || b == 0)
        return usable(dims, a, b) || a == b ? 0 : ONXI_DIM_UNKNOWN;
    if (!exact(dims, a, b))
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b)) {
        int64_t product;
        bool fits = onxi_mul_i64(a, b, &product);
        return const_dim(fits, product);
    }
    poly p = poly_of(dims, a), q = poly_of(dims, b), out;
    return poly_mul(dims, &p, &q, &out) ? poly_dim(dims, &out) : opaque(dims, '*', a < b ? a : b, a < b ? b : a);
}

/* ---- quotients ---- */

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* a without the factors of b; ONXI_DIM_UNKNOWN if b does not divide it. 1 if a == b. */
static onxi_dim term_div(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    uint32_t n, m, count = 0, j = 0;
    const onxi_dim *x = factors(dims, &a, &n), *y = factors(dims, &b, &m);
    onxi_dim out[ONXI_DIM_FACTORS];
    for (uint32_t i = 0; i < n; i++) {
        if (j < m && x[i] == y[j])
            j++;
        else
            out[count++] = x[i];
    }
    return j == m ? product_dim(dims, out, count) : ONXI_DIM_UNKNOWN;
}

/* Finds q with q * b == a, if it exists: each term of a is divided by the first term of b, and the candidate is
 * verified by multiplying. */
static bool poly_exact(onxi_dims *dims, const poly *a, const poly *b, poly *q)
{
    *q = (poly){ .constant = 0, .count = 0 };
    onxi_dim_term lead = b->terms[0];
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->terms[i].coef % lead.coef != 0)
            continue;
        onxi_dim of = term_div(dims, a->terms[i].of, lead.of);
        if (of == ONXI_DIM_UNKNOWN)
            continue;
        int64_t coef = a->terms[i].coef / lead.coef;
        if (onxi_dim_is_const(of) ? !onxi_add_i64(q->constant, coef, &q->constant) : !poly_add_term(q, coef, of))
            return false;
    }
    poly back;
    return poly_mul(dims, q, b, &back) && back.constant == a->constant && back.count == a->count &&
           memcmp(back.terms, a->terms, a->count * sizeof *a->terms) == 0;
}

/* Cancels the common factors of all terms of a and b: 2*N*C / (4*C*H) is N / (2*H). */
static void poly_reduce(onxi_dims *dims, poly *a, poly *b)
{
    uint64_t g = gcd(magnitude(a->constant), magnitude(b->constant));
    for (uint32_t i = 0; i < a->count; i++)
        g = gcd(g, magnitude(a->terms[i].coef));
    for (uint32_t i = 0; i < b->count; i++)
        g = gcd(g, magnitude(b->terms[i].coef));
    if (g > 1 && g <= INT64_MAX) {
        a->constant /= (int64_t)g;
        b->constant /= (int64_t)g;
        for (uint32_t i = 0; i < a->count; i++)
            a->terms[i].coef /= (int64_t)g;
        for (uint32_t i = 0; i < b->count; i++)
            b->terms[i].coef /= (int64_t)g;
    }
    if (a->constant || b->constant || !a->count || !b->count)
        return;
    uint32_t n;
    onxi_dim first = b->terms[0].of;
    const onxi_dim *y = factors(dims, &first, &n);
    onxi_dim common[ONXI_DIM_FACTORS];
    uint32_t common_count = n;
    memcpy(common, y, n * sizeof *y);
    for (uint32_t k = 0; k < common_count; k++) {
        poly ra = { .constant = 0, .count = 0 }, rb = { .constant = 0, .count = 0 };
        bool all = true;
        for (uint32_t side = 0; side < 2 && all; side++) {
            const poly *from = side ? b : a;
            poly *to = side ? &rb : &ra;
            for (uint32_t i = 0; i < from->count && all; i++) {
                onxi_dim of = term_div(dims, from->terms[i].of, common[k]);
                if (of == ONXI_DIM_UNKNOWN)
                    all = false;
                else if (onxi_dim_is_const(of))
                    to->constant += from->terms[i].coef; /* only one term can consist of the factor alone */
                else
                    all = poly_add_term(to, from->terms[i].coef, of);
            }
        }
        if (!all)
            continue;
        *a = ra;
        *b = rb;
        if (a->constant || b->constant)
            return;
    }
}

static onxi_dim raw_dim(onxi_dims *dims, int kind, onxi_dim a, onxi_dim b)
{
    if (!onxi_dim_is_known(a) || !onxi_dim_is_known(b))
        return ONXI_DIM_UNKNOWN;
    onxi_dim args[2] = { a, b };
    onxi_dim_expr e = { .kind = (uint8_t)kind, .count = 2, .args = args };
    return onxi_dim_intern(dims, e);
}

static onxi_dim list_dim(onxi_dims *dims, int kind, const onxi_dim *in, uint32_t in_count);

/* (max(x, y) + k)/b is max((x + k)/b, (y + k)/b); likewise for a minimum. UNKNOWN unless a member becomes constant,
 * because the quotient of the list is shorter. */
static onxi_dim div_list(onxi_dims *dims, onxi_dim list, int64_t constant, int64_t b)
{
    onxi_dim_expr e = *onxi_dim_expr_of(dims, list); /* the table may be reallocated below; the members do not move */
    onxi_dim members[ONXI_DIM_LIST];
    bool shorter = false;
    if (e.kind != ONXI_DIM_MIN && e.kind != ONXI_DIM_MAX)
        return ONXI_DIM_UNKNOWN;
    for (uint32_t i = 0; i < e.count; i++) {
        members[i] = onxi_dim_div(dims, onxi_dim_add(dims, e.args[i], constant), b);
        shorter |= onxi_dim_is_const(members[i]);
    }
    return shorter ? list_dim(dims, e.kind, members, e.count) : ONXI_DIM_UNKNOWN;
}

/* a / b for a constant b > 1. Multiples of b move out of the quotient and the rest is reduced; (x/c + k)/b is (x +
 * k*c)/(b*c). */
static onxi_dim div_const(onxi_dims *dims, const poly *a, int64_t b)
{
    poly out = { .constant = onxi_floor_div(a->constant, b), .count = 0 };
    poly rest = { .constant = a->constant - out.constant * b, .count = 0 };
    for (uint32_t i = 0; i < a->count; i++) {
        poly *to = a->terms[i].coef % b == 0 ? &out : &rest;
        to->terms[to->count++] =
            (onxi_dim_term){ to == &out ? a->terms[i].coef / b : a->terms[i].coef, a->terms[i].of };
    }
    uint64_t g = (uint64_t)b;
    for (uint32_t i = 0; i < rest.count; i++)
        g = gcd(g, magnitude(rest.terms[i].coef));
    if (rest.count && g > 1) {
        b /= (int64_t)g;
        rest.constant = onxi_floor_div(rest.constant, (int64_t)g);
        for (uint32_t i = 0; i < rest.count; i++)
            rest.terms[i].coef /= (int64_t)g;
    }
    onxi_range r = onxi_range_of_sum(dims, rest.constant, rest.terms, rest.count);
    if (rest.count == 0 || (r.low >= 0 && r.high < b))
        return poly_dim(dims, &out);
    onxi_dim quotient;
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, rest.terms[0].of);
    int64_t whole, shift;
    if (rest.count == 1 && rest.terms[0].coef == 1 && e->kind == ONXI_DIM_DIV && onxi_dim_is_const(e->args[1]) &&
        onxi_mul_i64(b, e->args[1], &whole) && onxi_mul_i64(rest.constant, e->args[1], &shift)) {
        quotient = onxi_dim_div(dims, onxi_dim_add(dims, e->args[0], shift), whole);
    } else {
        quotient = rest.count == 1 && rest.terms[0].coef == 1 ? div_list(dims, rest.terms[0].of, rest.constant, b)
                                                              : ONXI_DIM_UNKNOWN;
        if (!onxi_dim_is_known(quotient))
            quotient = raw_dim(dims, ONXI_DIM_DIV, poly_dim(dims, &rest), b);
    }
    return onxi_dim_add(dims, poly_dim(dims, &out), quotient);
}

static onxi_dim div_poly(onxi_dims *dims, poly *a, poly *b)
{
    poly q;
    poly_reduce(dims, a, b);
    if (b->count == 0) {
        if (b->constant == 0)
            return ONXI_DIM_UNKNOWN;
        if (b->constant == 1)
            return poly_dim(dims, a);
        if (b->constant > 1)
            return div_const(dims, a, b->constant);
        poly minus = { .constant = 0, .count = 0 }; /* a / -b is -a / b */
        if (b->constant == INT64_MIN || !poly_add(&minus, a, -1))
            return ONXI_DIM_UNKNOWN;
        return b->constant == -1 ? poly_dim(dims, &minus) : div_const(dims, &minus, -b->constant);
    }
    if (a->count == 0 && a->constant == 0)
        return 0;
    if (poly_exact(dims, a, b, &q))
        return poly_dim(dims, &q);
    poly out = { .constant = 0, .count = 0 };
    if (b->count == 1 && b->constant == 0) { /* (N*M + K)/M is N + K/M */
        poly rest = { .constant = a->constant, .count = 0 };
        for (uint32_t i = 0; i < a->count; i++) {
            onxi_dim of =
                a->terms[i].coef % b->terms[0].coef ? ONXI_DIM_UNKNOWN : term_div(dims, a->terms[i].of, b->terms[0].of);
            int64_t coef = a->terms[i].coef / b->terms[0].coef;
            if (of == ONXI_DIM_UNKNOWN)
                rest.terms[rest.count++] = a->terms[i];
            else if (onxi_dim_is_const(of) ? !onxi_add_i64(out.constant, coef, &out.constant)
                                           : !poly_add_term(&out, coef, of))
                return ONXI_DIM_UNKNOWN;
        }
        *a = rest;
    }
    return onxi_dim_add(dims, poly_dim(dims, &out), raw_dim(dims, ONXI_DIM_DIV, poly_dim(dims, a), poly_dim(dims, b)));
}

onxi_dim onxi_dim_div(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (!exact(dims, a, b) || b == 0)
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b))
        return const_dim(true, onxi_floor_div(a, b)); /* INT64_MIN / -1 cannot occur, because INT64_MIN is in the band
                                                       * of ids */
    if (b == 1)
        return a;
    poly p = poly_of(dims, a), q = poly_of(dims, b);
    return div_poly(dims, &p, &q);
}

onxi_dim onxi_dim_div_ceil(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    return onxi_dim_div(dims, onxi_dim_add(dims, a, onxi_dim_sub(dims, b, 1)), b);
}

onxi_dim onxi_dim_mod(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (!exact(dims, a, b) || b == 0)
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b)) {
        int64_t r = b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    if (a == b || a == 0)
        return 0;
    poly p = poly_of(dims, a);
    if (!onxi_dim_is_const(b)) {
        poly q = poly_of(dims, b), whole;
        return poly_exact(dims, &p, &q, &whole) ? 0 : raw_dim(dims, ONXI_DIM_MOD, a, b);
    }
    if (b < 0)
        return ONXI_DIM_UNKNOWN;
    poly rest = { .constant = onxi_dim_mod(NULL, p.constant, b), .count = 0 };
    for (uint32_t i = 0; i < p.count; i++) {
        int64_t coef = onxi_dim_mod(NULL, p.terms[i].coef, b);
        if (coef)
            rest.terms[rest.count++] = (onxi_dim_term){ coef, p.terms[i].of };
    }
    if (rest.count == 0)
        return rest.constant;
    onxi_range r = onxi_range_of_sum(dims, rest.constant, rest.terms, rest.count);
    onxi_dim reduced = poly_dim(dims, &rest);
    return r.low >= 0 && r.high < b ? reduced : raw_dim(dims, ONXI_DIM_MOD, reduced, b);
}

/* ---- minima and maxima ---- */

/* Comparing nested lists could take exponentially many steps; this is the limit. */
enum { COMPARE_STEPS = 200 };

static bool at_least(onxi_dims *dims, onxi_dim a, onxi_dim b, uint32_t *steps);

/* A minimum is >= b if all its members are, a maximum if one member is; conversely for a list on the smaller side. */
static bool list_at_least(onxi_dims *dims, onxi_dim list, onxi_dim other, bool list_is_larger, uint32_t *steps)
{
    onxi_dim_expr e = *onxi_dim_expr_of(dims, list);
    bool all = (e.kind == ONXI_DIM_MIN) == list_is_larger;
    for (uint32_t i = 0; i < e.count; i++) {
        bool holds = list_is_larger ? at_least(dims, e.args[i], other, steps) : at_least(dims, other, e.args[i], steps);
        if (holds != all)
            return holds;
    }
    return all;
}

static bool is_list(const onxi_dims *dims, onxi_dim d)
{
    return !onxi_dim_is_const(d) &&
           (onxi_dim_expr_of(dims, d)->kind == ONXI_DIM_MIN || onxi_dim_expr_of(dims, d)->kind == ONXI_DIM_MAX);
}

/* Is it x/c, of an x >= 0? Then it is at most x. */
static bool is_part(const onxi_dims *dims, onxi_dim d)
{
    const onxi_dim_expr *e = onxi_dim_is_const(d) ? NULL : onxi_dim_expr_of(dims, d);
    return e && e->kind == ONXI_DIM_DIV && onxi_dim_is_const(e->args[1]) && e->args[1] >= 1 &&
           onxi_range_of(dims, e->args[0]).low >= 0;
}

static bool at_least(onxi_dims *dims, onxi_dim a, onxi_dim b, uint32_t *steps)
{
    if (*steps == 0)
        return false;
    --*steps;
    if (a == b)
        return onxi_dim_exists(dims, a);
    if (!usable(dims, a, b))
        return false;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b))
        return a >= b;
    if (onxi_range_of(dims, a).low >= onxi_range_of(dims, b).high)
        return true;
    if (is_list(dims, b) && list_at_least(dims, b, a, false, steps))
        return true;
    if (is_list(dims, a) && list_at_least(dims, a, b, true, steps))
        return true;
    if (is_part(dims, b) && at_least(dims, a, onxi_dim_expr_of(dims, b)->args[0], steps))
        return true;
    poly p = poly_of(dims, a), q = poly_of(dims, b);
    return poly_add(&p, &q, -1) && onxi_range_of_sum(dims, p.constant, p.terms, p.count).low >= 0;
}

bool onxi_dim_at_least(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    uint32_t steps = COMPARE_STEPS;
    return at_least(dims, a, b, &steps);
}

static bool list_add(onxi_dims *dims, int kind, onxi_dim *list, uint32_t *count, onxi_dim d)
{
    if (!onxi_dim_is_const(d) && onxi_dim_expr_of(dims, d)->kind == kind) {
        for (uint32_t i = 0; i < onxi_dim_expr_of(dims, d)->count; i++)
            if (!list_add(dims, kind, list, count, onxi_dim_expr_of(dims, d)->args[i]))
                return false;
        return true;
    }
    for (uint32_t i = 0; i < *count;) {
        bool above = onxi_dim_at_least(dims, d, list[i]), below = onxi_dim_at_least(dims, list[i], d);
        if (kind == ONXI_DIM_MIN ? above : below)
            return true; /* another member implies this one */
        if (kind == ONXI_DIM_MIN ? below : above)
            memmove(&list[i], &list[i + 1], (--*count - i) * sizeof *list);
        else
            i++;
    }
    if (*count == ONXI_DIM_LIST)
        return false;
    uint32_t at = *count;
    while (at > 0 && list[at - 1] > d)
        at--;
    memmove(&list[at + 1], &list[at], (*count - at) * sizeof *list);
    list[at] = d;
    ++*count;
    return true;
}

static onxi_dim list_dim(onxi_dims *dims, int kind, const onxi_dim *in, uint32_t in_count)
{
    onxi_dim list[ONXI_DIM_LIST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < in_count; i++)
        if (!onxi_dim_is_known(in[i]) || !list_add(dims, kind, list, &count, in[i]))
            return ONXI_DIM_UNKNOWN;
    if (count == 1)
        return list[0];
    onxi_dim_expr e = { .kind = (uint8_t)kind, .count = count, .args = list };
    return onxi_dim_intern(dims, e);
}

/* min(c, max(x, y)) is max(min(c, x), min(c, y)). UNKNOWN unless one of those implies the others. */
static onxi_dim min_of_max(onxi_dims *dims, onxi_dim constant, onxi_dim list)
{
    if (!onxi_dim_is_const(constant) || !is_list(dims, list) || onxi_dim_expr_of(dims, list)->kind != ONXI_DIM_MAX)
        return ONXI_DIM_UNKNOWN;
    onxi_dim_expr e = *onxi_dim_expr_of(dims, list); /* the table may be reallocated below; the members do not move */
    onxi_dim members[ONXI_DIM_LIST];
    for (uint32_t i = 0; i < e.count; i++)
        members[i] = onxi_dim_min(dims, constant, e.args[i]);
    onxi_dim out = list_dim(dims, ONXI_DIM_MAX, members, e.count);
    return is_list(dims, out) && onxi_dim_expr_of(dims, out)->kind == ONXI_DIM_MAX ? ONXI_DIM_UNKNOWN : out;
}

onxi_dim onxi_dim_min(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (!usable(dims, a, b))
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b))
        return a < b ? a : b;
    const onxi_dim capped = onxi_dim_is_const(a) ? min_of_max(dims, a, b) : min_of_max(dims, b, a);
    onxi_dim both[2] = { a, b };
    return onxi_dim_is_known(capped) ? capped : list_dim(dims, ONXI_DIM_MIN, both, 2);
}

onxi_dim onxi_dim_max(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (!usable(dims, a, b))
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b))
        return a > b ? a : b;
    onxi_dim both[2] = { a, b };
    return list_dim(dims, ONXI_DIM_MAX, both, 2);
}

onxi_dim onxi_dim_broadcast(onxi_dims *dims, onxi_dim a, onxi_dim b)
{
    if (a == b || b == 1)
        return a;
    if (a == 1)
        return b;
    if (onxi_dim_is_const(a) && onxi_dim_is_const(b))
        return ONXI_DIM_UNKNOWN;
    if (onxi_dim_is_const(a)) /* a symbol that is broadcast with a constant other than 1 is that constant or 1 */
        return a;
    if (onxi_dim_is_const(b))
        return b;
    return onxi_dim_max(dims, a, b); /* either both are equal, or one is 1; the case that one is 0 is ignored */
}

/* ---- substitution ---- */

static onxi_dim substitute(onxi_dims *dims, onxi_dim d, onxi_dim symbol, onxi_dim value)
{
    if (d == symbol)
        return value;
    if (onxi_dim_is_const(d) || !onxi_dim_is_known(d))
        return d;
    onxi_dim_expr e = *onxi_dim_expr_of(dims, d); /* the table may be reallocated below; the members do not move */
    onxi_dim out = 0, members[ONXI_DIM_TERMS];
    bool changed = false;
    if (e.kind == ONXI_DIM_SYMBOL || e.count == 0)
        return d;
    for (uint32_t i = 0; i < e.count; i++) {
        onxi_dim of = e.kind == ONXI_DIM_SUM ? e.terms[i].of : e.args[i];
        members[i] = substitute(dims, of, symbol, value);
        changed |= members[i] != of;
    }
    if (!changed)
        return d;
    switch (e.kind) {
    case ONXI_DIM_SUM:
        out = e.constant;
        for (uint32_t i = 0; i < e.count; i++)
            out = onxi_dim_add(dims, out, onxi_dim_mul(dims, members[i], e.terms[i].coef));
        return out;
    case ONXI_DIM_PRODUCT:
        out = 1;
        for (uint32_t i = 0; i < e.count; i++)
            out = onxi_dim_mul(dims, out, members[i]);
        return out;
    case ONXI_DIM_DIV:
        return onxi_dim_div(dims, members[0], members[1]);
    case ONXI_DIM_MOD:
        return onxi_dim_mod(dims, members[0], members[1]);
    case ONXI_DIM_MIN:
    case ONXI_DIM_MAX:
        return list_dim(dims, e.kind, members, e.count);
    default:
        switch (e.constant) {
        case '+':
            return onxi_dim_add(dims, members[0], members[1]);
        case '-':
            return onxi_dim_sub(dims, members[0], members[1]);
        default:
            return onxi_dim_mul(dims, members[0], members[1]);
        }
    }
}

onxi_dim onxi_dim_substitute(onxi_dims *dims, onxi_dim d, onxi_dim symbol, onxi_dim value)
{
    return onxi_dim_exists(dims, d) && onxi_dim_exists(dims, symbol) ? substitute(dims, d, symbol, value)
                                                                     : ONXI_DIM_UNKNOWN;
}

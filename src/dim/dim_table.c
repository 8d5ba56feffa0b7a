/* dim_table.c - the table that stores each dimension expression once, and its symbols. See docs/notes/dimensions.md. */
#include "dim/dim_expr.h"

/* ---- storage ---- */

onx_status onxi_dims_new(onx_ctx *cx, onxi_dims **out)
{
    *out = NULL;
    onx_arena *arena;
    ONX_TRY(onx_arena_new(cx, &arena));
    onxi_dims *dims = ONXI_NEW(arena, onxi_dims);
    if (!dims) {
        onx_arena_free(arena);
        return ONX_E_MEMORY;
    }
    dims->cx = cx;
    dims->arena = arena;
    dims->table = onxi_table_on_heap(cx);
    *out = dims;
    return ONX_OK;
}

void onxi_dims_free(onxi_dims *dims)
{
    if (!dims)
        return;
    onxi_release(dims->cx, dims->exprs, dims->room * sizeof *dims->exprs);
    onxi_table_free(&dims->table);
    onx_arena_free(dims->arena);
}

static uint32_t hash_expr(const onxi_dims *dims, const onxi_dim_expr *e)
{
    onxi_secret secret = dims->table.secret;
    secret = onxi_hash_then(secret, onxi_hash_word(secret, (uint64_t)e->constant ^ (uint64_t)e->kind << 56));
    if (e->kind == ONXI_DIM_SYMBOL)
        return (uint32_t)onxi_hash(secret, e->name.ptr, e->name.len);
    if (e->kind == ONXI_DIM_SUM)
        return (uint32_t)onxi_hash(secret, e->terms, e->count * sizeof *e->terms);
    return (uint32_t)onxi_hash(secret, e->args, e->count * sizeof *e->args);
}

static bool same_expr(const onxi_dim_expr *a, const onxi_dim_expr *b)
{
    if (a->kind != b->kind || a->constant != b->constant || a->count != b->count)
        return false;
    if (a->kind == ONXI_DIM_SYMBOL)
        return onx_str_equal(a->name, b->name);
    if (a->kind == ONXI_DIM_SUM)
        return memcmp(a->terms, b->terms, a->count * sizeof *a->terms) == 0;
    return memcmp(a->args, b->args, a->count * sizeof *a->args) == 0;
}

/* An integer that a rule took from the model unchecked may be in the band of ids without naming an expression. */
bool onxi_dim_exists(const onxi_dims *dims, onxi_dim d)
{
    return onxi_dim_is_const(d) || (onxi_dim_is_known(d) && dims && (uint64_t)d - (uint64_t)INT64_MIN <= dims->count);
}

/* The number of the expression, from 1; 0 if it is not in the table. */
static uint32_t find(const onxi_dims *dims, const onxi_dim_expr *e, uint32_t hash)
{
    ONXI_TABLE_EACH (&dims->table, hash, i)
        if (same_expr(&dims->exprs[i], e))
            return i + 1;
    return 0;
}

static uint32_t weight_expr(const onxi_dims *dims, const onxi_dim_expr *e)
{
    uint64_t sum = 4;
    if (e->kind == ONXI_DIM_SYMBOL)
        return (uint32_t)(e->name.len < 64 ? e->name.len : 64);
    for (uint32_t i = 0; i < e->count; i++)
        sum += 3 + onxi_dim_weight_of(dims, e->kind == ONXI_DIM_SUM ? e->terms[i].of : e->args[i]);
    return (uint32_t)sum;
}

onxi_dim onxi_dim_intern(onxi_dims *dims, onxi_dim_expr e)
{
    if (!dims)
        return ONXI_DIM_UNKNOWN;
    uint32_t hash = hash_expr(dims, &e), have = find(dims, &e, hash);
    if (have)
        return INT64_MIN + (int64_t)have;
    e.weight = weight_expr(dims, &e);
    onxi_range r = onxi_range_of_expr(dims, &e);
    if (e.weight > ONXI_DIM_WEIGHT) /* too large to be useful: becomes an opaque symbol, which is equal only to
                                     * itself */
        return r.low >= 0 ? onxi_dim_fresh(dims, "d") : ONXI_DIM_UNKNOWN;
    if (dims->count >= ONXI_DIM_LIMIT || !ONXI_GROW(dims->cx, dims->exprs, dims->room, dims->count + 1))
        return ONXI_DIM_UNKNOWN;
    e.low = r.low;
    e.high = r.high;
    if (e.kind == ONXI_DIM_SUM) {
        size_t size = e.count * sizeof *e.terms;
        onxi_dim_term *terms = onxi_arena_get(dims->arena, size);
        if (!terms)
            return ONXI_DIM_UNKNOWN;
        memcpy(terms, e.terms, size);
        e.terms = terms;
    } else if (e.count) {
        size_t size = e.count * sizeof *e.args;
        onxi_dim *args = onxi_arena_get(dims->arena, size);
        if (!args)
            return ONXI_DIM_UNKNOWN;
        memcpy(args, e.args, size);
        e.args = args;
    }
    if (!onxi_table_add(&dims->table, hash, dims->count))
        return ONXI_DIM_UNKNOWN;
    dims->exprs[dims->count++] = e;
    return INT64_MIN + (int64_t)dims->count;
}

/* ---- symbols ---- */

static onxi_dim_fixed **find_fixed(onxi_dims *dims, onx_str name)
{
    onxi_dim_fixed **at = &dims->fixed;
    while (*at && !onx_str_equal((*at)->name, name))
        at = &(*at)->next;
    return at;
}

onx_status onxi_dims_fix(onxi_dims *dims, onx_str name, int64_t value)
{
    onxi_dim_fixed **there = find_fixed(dims, name), *fixed;
    onx_bytes kept;
    if (*there) {
        (*there)->value = value;
        return ONX_OK;
    }
    if (!(fixed = ONXI_NEW(dims->arena, onxi_dim_fixed)))
        return ONX_E_MEMORY;
    ONX_TRY(onx_arena_keep(dims->arena, name, &kept));
    *fixed = (onxi_dim_fixed){ dims->fixed, onx_view(kept), value, false };
    dims->fixed = fixed;
    return ONX_OK;
}

void onxi_dims_unfix(onxi_dims *dims, onx_str name)
{
    onxi_dim_fixed **there = find_fixed(dims, name);
    if (*there)
        *there = (*there)->next;
}

bool onxi_dims_fixed(const onxi_dims *dims, onx_str name, int64_t *value)
{
    const onxi_dim_fixed *f = dims->fixed;
    while (f && !onx_str_equal(f->name, name))
        f = f->next;
    if (f)
        *value = f->value;
    return f != NULL;
}

bool onxi_dims_met(const onxi_dims *dims, onx_str name)
{
    const onxi_dim_fixed *f = dims->fixed;
    while (f && !onx_str_equal(f->name, name))
        f = f->next;
    return f && f->met;
}

bool onxi_dim_symbols(const onxi_dims *dims, onxi_dim d, bool (*each)(void *user, onx_str name), void *user)
{
    if (onxi_dim_is_const(d) || !onxi_dim_exists(dims, d))
        return onxi_dim_is_known(d);
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, d);
    if (e->kind == ONXI_DIM_SYMBOL)
        return e->constant != 1 && each(user, e->name);
    for (uint32_t i = 0; i < e->count; i++)
        if (!onxi_dim_symbols(dims, e->kind == ONXI_DIM_SUM ? e->terms[i].of : e->args[i], each, user))
            return false;
    return true;
}

onxi_dim onxi_dims_newest(const onxi_dims *dims)
{
    return dims ? INT64_MIN + (int64_t)dims->count : ONXI_DIM_UNKNOWN;
}

bool onxi_dim_has_fresh(const onxi_dims *dims, onxi_dim d, onxi_dim after)
{
    if (onxi_dim_is_const(d) || d <= after || !onxi_dim_exists(dims, d)) /* members are older than the expressions that
                                                                          * contain them */
        return false;
    const onxi_dim_expr *e = onxi_dim_expr_of(dims, d);
    if (e->kind == ONXI_DIM_SYMBOL)
        return e->constant == 1;
    for (uint32_t i = 0; i < e->count; i++)
        if (onxi_dim_has_fresh(dims, e->kind == ONXI_DIM_SUM ? e->terms[i].of : e->args[i], after))
            return true;
    return false;
}

onxi_dim onxi_dim_symbol(onxi_dims *dims, onx_str name)
{
    if (!dims || name.len == 0)
        return ONXI_DIM_UNKNOWN;
    for (onxi_dim_fixed *f = dims->fixed; f; f = f->next)
        if (onx_str_equal(f->name, name)) {
            f->met = true;
            return f->value;
        }
    onxi_dim_expr e = { .kind = ONXI_DIM_SYMBOL, .name = name };
    uint32_t hash = hash_expr(dims, &e), have = find(dims, &e, hash);
    if (have)
        return INT64_MIN + (int64_t)have;
    onx_bytes kept;
    if (onx_arena_keep(dims->arena, name, &kept) != ONX_OK)
        return ONXI_DIM_UNKNOWN;
    e.name = onx_view(kept);
    return onxi_dim_intern(dims, e);
}

onxi_dim onxi_dim_fresh(onxi_dims *dims, const char *hint)
{
    if (!dims)
        return ONXI_DIM_UNKNOWN;
    for (;;) {
        onx_str name = onxi_arena_printf(dims->arena, "%s_%u", hint ? hint : "d", dims->fresh++);
        onxi_dim_expr e = { .kind = ONXI_DIM_SYMBOL, .name = name };
        if (name.len == 0)
            return ONXI_DIM_UNKNOWN;
        if (find(dims, &e, hash_expr(dims, &e)))
            continue;
        e.constant = 1; /* marks it as different from a symbol of the same name in the model */
        return onxi_dim_intern(dims, e);
    }
}

bool onxi_dim_is_fresh(const onxi_dims *dims, onxi_dim d)
{
    return !onxi_dim_is_const(d) && onxi_dim_exists(dims, d) && onxi_dim_expr_of(dims, d)->kind == ONXI_DIM_SYMBOL &&
           onxi_dim_expr_of(dims, d)->constant == 1;
}

bool onxi_dim_is_symbol(const onxi_dims *dims, onxi_dim d)
{
    return !onxi_dim_is_const(d) && onxi_dim_exists(dims, d) && onxi_dim_expr_of(dims, d)->kind == ONXI_DIM_SYMBOL;
}

int64_t onxi_dim_low(const onxi_dims *dims, onxi_dim d)
{
    return onxi_dim_exists(dims, d) ? onxi_range_of(dims, d).low : INT64_MIN;
}

int64_t onxi_dim_high(const onxi_dims *dims, onxi_dim d)
{
    return onxi_dim_exists(dims, d) ? onxi_range_of(dims, d).high : INT64_MAX;
}

void onxi_dims_prove(onxi_dims *dims)
{
    dims->proves = true;
}

bool onxi_dims_proves(const onxi_dims *dims)
{
    return dims && dims->proves;
}

void onxi_dims_refuse_overflow(onxi_dims *dims)
{
    dims->refuses_overflow = true;
}

bool onxi_dims_refuses_overflow(const onxi_dims *dims)
{
    return dims && dims->refuses_overflow;
}

/* layout.c - memory descriptions, the layouts that correspond to them, conversion between layouts, slices, and
 * Transpose of the first two axes, which moves nothing where a layout can express it. */
#include "kernel/core/blocked.h"
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

typedef struct dnnl_layout {
    onx_layout layout;
    const onxi_dnnl_functions *lib;
    onxi_dnnl_md md; /* of the primitive that makes such values; lives as long as the plan */
} dnnl_layout;

/* The layout of a value whose first two axes were exchanged without moving elements. `inner` is the layout before the
 * exchange. */
typedef struct swapped_layout {
    onx_layout layout;
    const onx_layout *inner; /* NULL: row-major */
} swapped_layout;

static bool layouts_equal(const onx_layout *a, const onx_layout *b)
{
    const dnnl_layout *la = (const dnnl_layout *)(const void *)a, *lb = (const dnnl_layout *)(const void *)b;
    return la->lib->dnnl_memory_desc_equal(la->md, lb->md);
}

static onx_status reorder_prepare(onx_prepare *p);
static const onx_kernel reorder = { .op = "Reorder",
                                    .variant = "dnnl",
                                    .prepare = reorder_prepare,
                                    .run = onxi_dnnl_run,
                                    .bind = onxi_dnnl_bind,
                                    .unbind = onxi_dnnl_unbind,
                                    .release = onxi_dnnl_release };
static const onx_layout_ops layout_ops = { layouts_equal, &reorder };

static const onx_layout *inner_of(const onx_layout *l)
{
    return ((const swapped_layout *)(const void *)l)->inner;
}

static bool swapped_equal(const onx_layout *a, const onx_layout *b)
{
    const onx_layout *ia = inner_of(a), *ib = inner_of(b);
    return ia == ib || (ia && ib && ia->ops == ib->ops && ia->ops->equal(ia, ib));
}

static const onx_layout_ops swapped_ops = { swapped_equal, &reorder };

static bool is_swapped(const onx_value *v)
{
    return v->layout && v->layout->ops == &swapped_ops;
}

bool onxi_dnnl_swapped(onx_arena *arena, const onx_value *v, const onx_layout *inner, const onx_layout **out)
{
    *out = NULL;
    if (!inner && (v->dims[0] == 1 || v->dims[1] == 1)) /* both orders have the same bytes */
        return true;
    swapped_layout *l = ONXI_NEW(arena, swapped_layout);
    if (!l)
        return false;
    l->layout = (onx_layout){ &swapped_ops, inner ? inner->size : v->count * sizeof(float) };
    l->inner = inner;
    *out = &l->layout;
    return true;
}

bool onxi_dnnl_turn(onx_arena *arena, const onx_value *v, onxi_dnnl_turned *t)
{
    t->v = *v;
    t->v.dims = t->dims;
    onxi_copy_dims(t->dims, v->dims, v->rank);
    t->dims[0] = v->dims[1];
    t->dims[1] = v->dims[0];
    if (is_swapped(v)) {
        t->v.layout = inner_of(v->layout);
        return true;
    }
    return onxi_dnnl_swapped(arena, v, v->layout, &t->v.layout);
}

/* ---- descriptions ---- */

onxi_dnnl_md onxi_dnnl_md_plain(onxi_dnnl *d, uint32_t rank, const int64_t *dims)
{
    dnnl_dims_t strides;
    int64_t step = 1;
    if (!rank || rank > DNNL_MAX_NDIMS)
        return NULL;
    for (uint32_t i = rank; i-- > 0;) {
        strides[i] = step;
        step *= dims[i];
    }
    return step > 0 ? onxi_dnnl_md_strides(d, rank, dims, strides) : NULL;
}

onxi_dnnl_md onxi_dnnl_md_any(onxi_dnnl *d, uint32_t rank, const int64_t *dims)
{
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] <= 0)
            return NULL;
    return onxi_dnnl_md_tag(d, rank, dims, dnnl_format_tag_any);
}

/* Layouts with blocks of channels that our own kernels support, too: 8, 16, or all channels. */
enum { OF_8, OF_16, OF_ALL, BLOCKED };

static onxi_dnnl_md md_blocked(onxi_dnnl *d, const onx_value *v, int which)
{
    static const dnnl_format_tag_t tags[][BLOCKED] = { { dnnl_aBc8b, dnnl_aBc16b, dnnl_acb },
                                                       { dnnl_aBcd8b, dnnl_aBcd16b, dnnl_acdb },
                                                       { dnnl_aBcde8b, dnnl_aBcde16b, dnnl_acdeb } };
    if (v->rank < 3 || v->rank > 5 || (which != OF_ALL && v->dims[1] % (which == OF_8 ? 8 : 16)))
        return NULL;
    return onxi_dnnl_md_tag(d, v->rank, v->dims, tags[v->rank - 3][which]);
}

onxi_dnnl_md onxi_dnnl_md_of(onxi_dnnl *d, const onx_value *v)
{
    if (v->kind != ONX_VALUE_TENSOR || v->dtype != ONX_FLOAT)
        return NULL;
    if (!v->layout)
        return onxi_dnnl_md_plain(d, v->rank, v->dims);
    const uint32_t block = onxi_blocked_of(v);
    if (block)
        return md_blocked(d, v, block == 8 ? OF_8 : block == 16 ? OF_16 : OF_ALL);
    if (v->layout->ops == &layout_ops)
        return ((const dnnl_layout *)(const void *)v->layout)->md;
    onxi_dnnl_turned t;
    return is_swapped(v) && onxi_dnnl_turn(d->arena, v, &t) ? onxi_dnnl_md_swapped(d, onxi_dnnl_md_of(d, &t.v)) : NULL;
}

bool onxi_dnnl_layout(onx_prepare *p, onxi_dnnl *d, const onx_value *v, onxi_dnnl_md md, const onx_layout **out)
{
    onxi_dnnl_md plain = onxi_dnnl_md_plain(d, v->rank, v->dims), kept;
    *out = NULL;
    if (plain && d->lib->dnnl_memory_desc_equal(plain, md))
        return true;
    for (int which = 0; v->rank > 2 && which < BLOCKED; which++) {
        onxi_dnnl_md same = md_blocked(d, v, which);
        if (!same || !d->lib->dnnl_memory_desc_equal(same, md))
            continue;
        if (onxi_product(v->dims, 2, v->rank) == 1 || v->dims[1] == 1) /* row-major has the same bytes */
            return true;
        return (*out = onxi_blocked_layout(p->arena, v,
                                           which == OF_8    ? 8
                                           : which == OF_16 ? 16
                                                            : (uint32_t)v->dims[1])) != NULL;
    }
    dnnl_layout *l = ONXI_NEW(p->arena, dnnl_layout);
    if (!l || !(kept = onxi_dnnl_md_keep(d, md)))
        return false;
    l->layout = (onx_layout){ &layout_ops, d->lib->dnnl_memory_desc_get_size(md) };
    l->lib = d->lib;
    l->md = kept;
    *out = &l->layout;
    return true;
}

/* ---- slices ---- */

/* Layouts that are common in convolutional networks. */
static const struct {
    uint32_t rank;
    dnnl_format_tag_t tag;
    bool channels_last;
    int64_t block; /* of channels */
} tags[] = {
    { 1, dnnl_a, false, 1 },        { 2, dnnl_ab, false, 1 },      { 3, dnnl_abc, false, 1 },
    { 3, dnnl_acb, true, 1 },       { 3, dnnl_aBc16b, false, 16 }, { 3, dnnl_aBc8b, false, 8 },
    { 3, dnnl_aBc4b, false, 4 },    { 4, dnnl_abcd, false, 1 },    { 4, dnnl_acdb, true, 1 },
    { 4, dnnl_aBcd16b, false, 16 }, { 4, dnnl_aBcd8b, false, 8 },  { 4, dnnl_aBcd4b, false, 4 },
    { 5, dnnl_abcde, false, 1 },    { 5, dnnl_acdeb, true, 1 },    { 5, dnnl_aBcde16b, false, 16 },
    { 5, dnnl_aBcde8b, false, 8 },  { 5, dnnl_aBcde4b, false, 4 },
};

onxi_dnnl_cut onxi_dnnl_cut_of(const onxi_dnnl *d, int64_t extent, int64_t unit)
{
    const int64_t units = (extent + unit - 1) / unit, wanted = d->threads > d->slices ? d->threads : d->slices;
    const int64_t each = (units + wanted - 1) / wanted * unit;
    if (wanted < 2 || units < 2)
        return (onxi_dnnl_cut){ 1, extent, extent };
    int64_t parts = (extent + each - 1) / each;
    return (onxi_dnnl_cut){ (uint32_t)parts, each, extent - each * (parts - 1) };
}

/* Describes `rows` rows of an image whose rows are contiguous: channels are last, or there is one block of them. NULL:
 * it has another layout. */
static onxi_dnnl_md rows_of(onxi_dnnl *d, onxi_dnnl_md whole, const onx_value *v, int64_t rows)
{
    int64_t dims[ONX_RANK_MAX];
    onxi_copy_dims(dims, v->dims, v->rank);
    dims[2] = rows;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (tags[i].rank != v->rank || (!tags[i].channels_last && v->dims[1] > tags[i].block))
            continue;
        onxi_dnnl_md like = onxi_dnnl_md_tag(d, v->rank, v->dims, tags[i].tag);
        if (like && d->lib->dnnl_memory_desc_equal(like, whole))
            return onxi_dnnl_md_tag(d, v->rank, dims, tags[i].tag);
    }
    return NULL;
}

bool onxi_dnnl_cut_rows(onxi_dnnl *d, const onx_value *x, const onx_value *y, onxi_dnnl_rows *r)
{
    const int64_t height = x->dims[2];
    const onxi_dnnl_md x_whole = r->x.each, y_whole = r->y.each;
    r->cut = onxi_dnnl_cut_of(d, y->dims[2], 1);
    r->halo = r->window > 1 || r->above || r->below;
    if ((r->above || r->below) && r->cut.parts > 2) { /* a part between the first and the last one has no padding */
        r->cut.parts = 2;
        r->cut.each = (y->dims[2] + 1) / 2;
        r->cut.last = y->dims[2] - r->cut.each;
    }
    const int64_t first = (r->cut.each - 1) * r->stride + r->window - r->above;
    const int64_t start = r->cut.each * r->stride - r->above;
    int64_t last = (r->cut.last - 1) * r->stride + r->window;
    if (y->dims[0] != 1 || r->cut.parts < 2 || first < 1 || first > height || start < 0 || start >= height)
        return false;
    if (r->halo) {
        const int64_t left = height - (start + (int64_t)(r->cut.parts - 2) * r->cut.each * r->stride);
        r->below = last > left ? last - left : 0;
        last -= r->below;
    }
    r->x = (onxi_dnnl_pair){ rows_of(d, x_whole, x, first), rows_of(d, x_whole, x, last) };
    r->y = (onxi_dnnl_pair){ rows_of(d, y_whole, y, r->cut.each), rows_of(d, y_whole, y, r->cut.last) };
    const onxi_dnnl_md line = rows_of(d, x_whole, x, 1);
    if (!line || !r->x.each || !r->x.last || !r->y.each || !r->y.last)
        return false;
    r->x_step = (uint64_t)start * d->lib->dnnl_memory_desc_get_size(line);
    r->y_step = d->lib->dnnl_memory_desc_get_size(r->y.each);
    return true;
}

bool onxi_dnnl_cut_md(onxi_dnnl *d, const onxi_dnnl_cut *cut, onxi_dnnl_md whole, const onx_value *v, uint32_t axis,
                      int64_t factor, onxi_dnnl_pair *out, uint64_t *step)
{
    int64_t dims[ONX_RANK_MAX];
    if (!whole || v->rank > 5 || axis >= v->rank)
        return false;
    for (uint32_t i = 0; i < axis; i++)
        if (v->dims[i] != 1)
            return false;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (tags[i].rank != v->rank || (tags[i].channels_last && axis))
            continue;
        onxi_dnnl_md like = onxi_dnnl_md_tag(d, v->rank, v->dims, tags[i].tag);
        if (!like || !d->lib->dnnl_memory_desc_equal(like, whole))
            continue;
        memcpy(dims, v->dims, v->rank * sizeof *dims);
        dims[axis] = cut->each * factor;
        out->each = out->last = onxi_dnnl_md_tag(d, v->rank, dims, tags[i].tag);
        dims[axis] = cut->last * factor;
        if (cut->last != cut->each)
            out->last = onxi_dnnl_md_tag(d, v->rank, dims, tags[i].tag);
        if (!out->each || !out->last)
            return false;
        *step = d->lib->dnnl_memory_desc_get_size(out->each);
        /* Otherwise, blocks of channels would have to be divided. */
        return *step * (cut->parts - 1) + d->lib->dnnl_memory_desc_get_size(out->last) ==
               d->lib->dnnl_memory_desc_get_size(whole);
    }
    return false;
}

/* ---- conversion between layouts ---- */

static bool reorder_desc(const onxi_dnnl *d, onxi_dnnl_md from, onxi_dnnl_md to, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr;
    if (!from || !to || !onxi_dnnl_attr(d, &attr))
        return false;
    bool good = d->lib->dnnl_reorder_primitive_desc_create(out, from, d->engine, to, d->engine, attr) == dnnl_success;
    d->lib->dnnl_primitive_attr_destroy(attr);
    return good;
}

/* Describes the parts of a value that is row-major, possibly after exchanging its first two axes. They need not be
 * consecutive, since a conversion accepts any strides. */
static bool cut_strides(onxi_dnnl *d, const onxi_dnnl_cut *cut, const onx_value *v, uint32_t axis, onxi_dnnl_pair *out,
                        uint64_t *step)
{
    int64_t dims[ONX_RANK_MAX], strides[ONX_RANK_MAX];
    onxi_dnnl_turned t;
    const bool swapped = is_swapped(v);
    if ((v->layout && (!swapped || inner_of(v->layout))) || (swapped && !onxi_dnnl_turn(d->arena, v, &t)))
        return false;
    onxi_strides(swapped ? &t.v : v, strides);
    if (swapped) {
        const int64_t first = strides[0];
        strides[0] = strides[1];
        strides[1] = first;
    }
    onxi_copy_dims(dims, v->dims, v->rank);
    dims[axis] = cut->each;
    out->each = out->last = onxi_dnnl_md_strides(d, v->rank, dims, strides);
    dims[axis] = cut->last;
    if (cut->last != cut->each)
        out->last = onxi_dnnl_md_strides(d, v->rank, dims, strides);
    *step = (uint64_t)(cut->each * strides[axis]) * sizeof(float);
    return out->each && out->last;
}

/* Divides by images, or by channels of one image. */
static bool cut_reorder(onxi_dnnl *d, const onx_value *x, const onx_value *y, onxi_dnnl_md from, onxi_dnnl_md to)
{
    enum { BLOCK = 16 };
    uint32_t axis = x->rank > 1 && x->dims[0] == 1 ? 1 : 0;
    onxi_dnnl_cut cut = onxi_dnnl_cut_of(d, x->rank ? x->dims[axis] : 1, axis ? BLOCK : 1);
    onxi_dnnl_pair a, b;
    uint64_t a_step, b_step;
    if (cut.parts < 2 ||
        (!cut_strides(d, &cut, x, axis, &a, &a_step) && !onxi_dnnl_cut_md(d, &cut, from, x, axis, 1, &a, &a_step)) ||
        (!cut_strides(d, &cut, y, axis, &b, &b_step) && !onxi_dnnl_cut_md(d, &cut, to, y, axis, 1, &b, &b_step)) ||
        !reorder_desc(d, a.each, b.each, &d->desc[0]))
        return false;
    if (cut.last != cut.each && !reorder_desc(d, a.last, b.last, &d->desc[1])) {
        d->lib->dnnl_primitive_desc_destroy(d->desc[0]);
        d->desc[0] = NULL;
        return false;
    }
    d->cut = cut;
    onxi_dnnl_add(d, DNNL_ARG_FROM, ONXI_DNNL_INPUT, 0, a, a_step);
    onxi_dnnl_add(d, DNNL_ARG_TO, ONXI_DNNL_OUTPUT, 0, b, b_step);
    return true;
}

static onx_status reorder_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0], *y = p->outputs[0];
    onxi_dnnl *d = onxi_dnnl_new(p, 3, x->count);
    onxi_dnnl_turned a, b;
    if (d && is_swapped(x) && is_swapped(y)) { /* without the exchange, more values can be divided */
        if (!onxi_dnnl_turn(p->arena, x, &a) || !onxi_dnnl_turn(p->arena, y, &b))
            return onxi_dnnl_decline(d);
        x = &a.v;
        y = &b.v;
    }
    onxi_dnnl_md from = d ? onxi_dnnl_md_of(d, x) : NULL, to = d ? onxi_dnnl_md_of(d, y) : NULL;
    if (from && to && cut_reorder(d, x, y, from, to))
        return onxi_dnnl_finish(p, d);
    if (!d || !reorder_desc(d, from, to, &d->desc[0])) {
        onxi_dnnl_decline(d);
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a layout cannot be changed");
    }
    onxi_dnnl_add(d, DNNL_ARG_FROM, ONXI_DNNL_INPUT, 0, onxi_dnnl_both(from), 0);
    onxi_dnnl_add(d, DNNL_ARG_TO, ONXI_DNNL_OUTPUT, 0, onxi_dnnl_both(to), 0);
    return onxi_dnnl_finish(p, d);
}

/* ---- Transpose ---- */

/* Exchanges the first two axes by changing the layout only. Gradients of convolutions contain many such Transpose
 * nodes, and accept such values. For other readers, the layout is converted, which takes as long as the Transpose
 * would. */
static onx_status swap_prepare(onx_prepare *p)
{
    const onx_value *x = p->inputs[0];
    const bool known = !x->layout || is_swapped(x) || x->layout->ops == &layout_ops || onxi_blocked_of(x);
    uint32_t count;
    const int64_t *perm = onx_prepare_ints(p, "perm", &count);
    onxi_dnnl_turned t;
    if (!p->want || !known || x->rank < (x->layout ? 3 : 4) || x->rank > 5 || !x->count || x->data || !perm ||
        count != x->rank || perm[0] != 1 || perm[1] != 0 || !onxi_dnnl_library())
        return ONX_E_UNSUPPORTED;
    for (uint32_t i = 2; i < count; i++)
        if (perm[i] != (int64_t)i)
            return ONX_E_UNSUPPORTED;
    if (!onxi_dnnl_turn(p->arena, x, &t))
        return ONX_E_MEMORY;
    p->outputs[0]->layout = t.v.layout;
    return ONX_OK;
}

const onx_kernel onxi_kernels_dnnl_layout[] = { { .op = "Transpose",
                                                  .since = 1,
                                                  .dtypes = ONXI_F32,
                                                  .preference = 10,
                                                  .flags = ONX_KERNEL_VIEW | ONX_KERNEL_LAYOUTS,
                                                  .variant = "dnnl",
                                                  .prepare = swap_prepare,
                                                  .run = onxi_dnnl_run },
                                                { 0 } };
#endif

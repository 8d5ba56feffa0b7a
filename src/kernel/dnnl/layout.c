/* layout.c - descriptions of memory, the layouts that they stand for, changes from one to another, slices of them. */
#include "kernel/core/blocked.h"
#include "kernel/dnnl/dnnl.h"

#ifdef ONX_WITH_DNNL

typedef struct dnnl_layout {
    onx_layout layout;
    const onxi_dnnl_functions *lib;
    onxi_dnnl_md md; /* of the primitive that makes such values, which lives as long as the plan */
} dnnl_layout;

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

/* Layouts of blocks of channels that our own kernels know, too: of 8, of 16, of all channels. */
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
    return v->layout->ops == &layout_ops ? ((const dnnl_layout *)(const void *)v->layout)->md : NULL;
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
        if (onxi_product(v->dims, 2, v->rank) == 1 || v->dims[1] == 1) /* the same bytes */
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

/* The layouts that values of convolutional networks have. */
static const struct {
    uint32_t rank;
    dnnl_format_tag_t tag;
    bool channels_last;
} tags[] = {
    { 1, dnnl_a, false },       { 2, dnnl_ab, false },      { 3, dnnl_abc, false },      { 3, dnnl_acb, true },
    { 3, dnnl_aBc16b, false },  { 3, dnnl_aBc8b, false },   { 3, dnnl_aBc4b, false },    { 4, dnnl_abcd, false },
    { 4, dnnl_acdb, true },     { 4, dnnl_aBcd16b, false }, { 4, dnnl_aBcd8b, false },   { 4, dnnl_aBcd4b, false },
    { 5, dnnl_abcde, false },   { 5, dnnl_acdeb, true },    { 5, dnnl_aBcde16b, false }, { 5, dnnl_aBcde8b, false },
    { 5, dnnl_aBcde4b, false },
};

onxi_dnnl_cut onxi_dnnl_cut_of(const onxi_dnnl *d, int64_t extent, int64_t unit)
{
    int64_t units = (extent + unit - 1) / unit, threads = d->threads, each = (units + threads - 1) / threads * unit;
    if (threads < 2 || units < 2)
        return (onxi_dnnl_cut){ 1, extent, extent };
    int64_t parts = (extent + each - 1) / each;
    return (onxi_dnnl_cut){ (uint32_t)parts, each, extent - each * (parts - 1) };
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
        /* Otherwise there are blocks of channels that would have to be cut. */
        return *step * (cut->parts - 1) + d->lib->dnnl_memory_desc_get_size(out->last) ==
               d->lib->dnnl_memory_desc_get_size(whole);
    }
    return false;
}

/* ---- changes of layout ---- */

static bool reorder_desc(const onxi_dnnl *d, onxi_dnnl_md from, onxi_dnnl_md to, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr;
    if (!from || !to || !onxi_dnnl_attr(d, &attr))
        return false;
    bool good = d->lib->dnnl_reorder_primitive_desc_create(out, from, d->engine, to, d->engine, attr) == dnnl_success;
    d->lib->dnnl_primitive_attr_destroy(attr);
    return good;
}

/* By images, or by channels of one image. */
static bool cut_reorder(onxi_dnnl *d, const onx_value *x, onxi_dnnl_md from, onxi_dnnl_md to)
{
    enum { BLOCK = 16 };
    uint32_t axis = x->rank > 1 && x->dims[0] == 1 ? 1 : 0;
    onxi_dnnl_cut cut = onxi_dnnl_cut_of(d, x->rank ? x->dims[axis] : 1, axis ? BLOCK : 1);
    onxi_dnnl_pair a, b;
    uint64_t a_step, b_step;
    if (cut.parts < 2 || !onxi_dnnl_cut_md(d, &cut, from, x, axis, 1, &a, &a_step) ||
        !onxi_dnnl_cut_md(d, &cut, to, x, axis, 1, &b, &b_step) || !reorder_desc(d, a.each, b.each, &d->desc[0]))
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
    const onx_value *x = p->inputs[0];
    onxi_dnnl *d = onxi_dnnl_new(p, 3, x->count);
    onxi_dnnl_md from = d ? onxi_dnnl_md_of(d, x) : NULL, to = d ? onxi_dnnl_md_of(d, p->outputs[0]) : NULL;
    if (from && to && cut_reorder(d, x, from, to))
        return onxi_dnnl_finish(p, d);
    if (!d || !reorder_desc(d, from, to, &d->desc[0])) {
        onxi_dnnl_decline(d);
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "a layout cannot be changed");
    }
    onxi_dnnl_add(d, DNNL_ARG_FROM, ONXI_DNNL_INPUT, 0, onxi_dnnl_both(from), 0);
    onxi_dnnl_add(d, DNNL_ARG_TO, ONXI_DNNL_OUTPUT, 0, onxi_dnnl_both(to), 0);
    return onxi_dnnl_finish(p, d);
}
#endif

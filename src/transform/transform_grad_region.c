/* transform_grad_region.c - decomposes RoiAlign and DeformConv, which interpolate between the elements of an image,
 * into differentiable operators: positions and weights of the neighbours, and weighted sums. Positions are computed in
 * double, like in the kernels, so that regions and offsets have gradients as well. */
#include "transform/transform_grad.h"

#include <stdio.h>

enum { DEFORM_AXES_MAX = 8 };

static onx_status finish(const onxi_grad_writer *w, onx_str *text)
{
    *text = onx_str_make(w->text, w->size);
    return w->failed ? ONX_E_MEMORY : ONX_OK;
}

/* ---- RoiAlign ---- */

typedef struct regions {
    int64_t ratio; /* samples along each axis of a bin; 0: as many as the bin has elements */
    bool largest, shifted;
} regions;

/* Axis ~ of the image, `h` or `w`: the samples of each bin, [regions, bins, samples], and their two neighbours as index
 * and weight, [regions, bins, 2 * samples]. */
static void put_axis(onxi_grad_writer *w, const regions *r, const char *a)
{
    const bool high = *a == 'h';
    onxi_grad_say(w,
                  "i_%s = Constant <value_ints = [%d]> ()  j_%s = Constant <value_ints = [%d]> ()"
                  "  b0_%s = Constant <value_int: int = @%s> ()  d0_%s = Shape <start = %d, end = %d> (X)  ",
                  a, high ? 1 : 0, a, high ? 3 : 2, a, high ? "output_height" : "output_width", a, high ? 2 : 3,
                  high ? 3 : 4);
    onxi_grad_say_for(
        w, a, NULL, "f_~ = Gather <axis = 1> (box, i_~)  t_~ = Gather <axis = 1> (box, j_~)  l0_~ = Sub (t_~, f_~)  ");
    onxi_grad_say_for(w, a, NULL, r->shifted ? "l_~ = Identity (l0_~)  " : "l_~ = Max (l0_~, one)  ");
    onxi_grad_say_for(w, a, NULL, "b1_~ = Cast <to = 11> (b0_~)  z_~ = Div (l_~, b1_~)  ");
    if (r->ratio > 0)
        onxi_grad_say(w, "q_%s = Constant <value = double {%lld.0}> ()  n_%s = Constant <value_int = %lld> ()  ", a,
                      (long long)r->ratio, a, (long long)r->ratio);
    else
        onxi_grad_say_for(
            w, a, NULL,
            "q0_~ = Ceil (z_~)  q_~ = Max (q0_~, zero)  q1_~ = Reshape (q_~, flat)  q2_~ = Concat <axis = 0> (q1_~, least)"
            "  n0_~ = ReduceMax <keepdims = 0> (q2_~)  n_~ = Cast <to = 7> (n0_~)  ");
    /* The positions of the samples. Samples outside count as zero, those within one element of the edge as the edge. */
    onxi_grad_say_for(
        w, a, NULL,
        "s0_~ = Range (zero_i, n_~, one_i)  s_~ = Cast <to = 11> (s0_~)  s1_~ = Add (s_~, half)  q3_~ = Max (q_~, one)"
        "  u0_~ = Div (s1_~, q3_~)  u_~ = Unsqueeze (u0_~, second)  p0_~ = Range (zero_i, b0_~, one_i)  p1_~ = Cast <to = 11> (p0_~)"
        "  p_~ = Unsqueeze (p1_~, last)  o0_~ = Add (p_~, u_~)  z3_~ = Unsqueeze (z_~, last)  f3_~ = Unsqueeze (f_~, last)"
        "  o1_~ = Mul (o0_~, z3_~)  at_~ = Add (o1_~, f3_~)  d_~ = Cast <to = 11> (d0_~)  e_~ = Sub (d_~, one)"
        "  g0_~ = GreaterOrEqual (at_~, minus)  g1_~ = LessOrEqual (at_~, d_~)  g2_~ = And (g0_~, g1_~)  ");
    onxi_grad_say_for(w, a, NULL,
                      r->ratio > 0 ? "g_~ = Identity (g2_~)  "
                                   : "v0_~ = Less (s_~, q_~)  v_~ = Unsqueeze (v0_~, second)  g_~ = And (g2_~, v_~)  ");
    onxi_grad_say_for(
        w, a, NULL,
        "c0_~ = Max (at_~, zero)  c_~ = Min (c0_~, e_~)  low_~ = Floor (c_~)  rest_~ = Sub (c_~, low_~)  keep_~ = Sub (one, rest_~)"
        "  high0_~ = Add (low_~, one)  high_~ = Min (high0_~, e_~)  ");
    static const char *const parts[] = { "low", "high", "keep", "rest" };
    for (int i = 0; i < 4; i++)
        onxi_grad_say_for(w, a, parts[i], "x#_~ = Where (g_~, #_~, zero)  y#_~ = Unsqueeze (x#_~, last)  ");
    onxi_grad_say_for(
        w, a, NULL,
        "n1_~ = Add (n_~, n_~)  n2_~ = Reshape (n1_~, flat)  b2_~ = Reshape (b0_~, flat)  shape_~ = Concat <axis = 0> (regions, b2_~, n2_~)"
        "  k0_~ = Concat <axis = -1> (ylow_~, yhigh_~)  k1_~ = Reshape <allowzero = 1> (k0_~, shape_~)  k_~ = Cast <to = 7> (k1_~)"
        "  w0_~ = Concat <axis = -1> (ykeep_~, yrest_~)  w_~ = Reshape <allowzero = 1> (w0_~, shape_~)  ");
    if (r->largest && r->ratio <= 0)
        onxi_grad_say_for(
            w, a, NULL,
            "v1_~ = Unsqueeze (v_~, last)  v2_~ = Concat <axis = -1> (v1_~, v1_~)  v3_~ = Concat <axis = 0> (regions, single, n2_~)"
            "  valid_~ = Reshape <allowzero = 1> (v2_~, v3_~)  ");
}

/* The mean over the samples of a bin, or the maximum. */
static void put_bins(onxi_grad_writer *w, const regions *r)
{
    onxi_grad_say(w, "q4 = Mul (q_h, q_w)  q5 = Max (q4, one)  over = Constant <value_ints = [3, 4]> ()  ");
    if (!r->largest) {
        onxi_grad_say(w, "s = ReduceSum <keepdims = 0> (v, over)  q6 = CastLike (q5, X)  ");
        onxi_grad_say(
            w, r->ratio > 0
                   ? "m = Div (s, q6)  "
                   : "behind = Constant <value_ints = [2, 3]> ()  q7 = Unsqueeze (q6, behind)  m = Div (s, q7)  ");
    } else if (r->ratio > 0) {
        onxi_grad_say(w, "m = ReduceMax <keepdims = 0> (v, over)  ");
    } else {
        onxi_grad_say(
            w,
            "vh = Unsqueeze (valid_h, around_h)  vw = Unsqueeze (valid_w, around_w)  v5 = And (vh, vw)  v6 = Unsqueeze (v5, channel)"
            "  lowest0 = Constant <value = double {-1e30}> ()  lowest = CastLike (lowest0, X)  there = Where (v6, v, lowest)"
            "  m0 = ReduceMax <keepdims = 0> (there, over)  none = CastLike (zero, X)  any0 = Greater (q4, zero)"
            "  behind = Constant <value_ints = [2, 3]> ()  any = Unsqueeze (any0, behind)  m = Where (any, m0, none)  ");
    }
}

onx_status onxi_grad_write_regions(onxi_grad_node *n, onx_str *text)
{
    onxi_grad_writer w = { .arena = n->g->scratch };
    regions r = { .largest = onxi_subject_text_is(&n->s, "mode", "max"),
                  .shifted = n->s.row->since >= 16 &&
                             onxi_subject_text_is(&n->s, "coordinate_transformation_mode", "half_pixel") };
    (void)onxi_subject_int(&n->s, "sampling_ratio", &r.ratio);
    onxi_grad_say(
        &w,
        "zero = Constant <value = double {0.0}> ()  one = Constant <value = double {1.0}> ()  half = Constant <value = double {0.5}> ()"
        "  minus = Constant <value = double {-1.0}> ()  least = Constant <value = double[1] {1.0}> ()  zero_i = Constant <value_int = 0> ()"
        "  one_i = Constant <value_int = 1> ()  flat = Constant <value_ints = [-1]> ()  second = Constant <value_ints = [-2]> ()"
        "  last = Constant <value_ints = [-1]> ()  single = Constant <value_ints = [1]> ()  regions = Shape <end = 1> (rois)"
        "  r0 = Cast <to = 11> (rois)  scale0 = Constant <value_float: float = @spatial_scale> ()  scale = Cast <to = 11> (scale0)"
        "  r1 = Mul (r0, scale)  ");
    onxi_grad_say(&w, r.shifted ? "box = Sub (r1, half)  " : "box = Identity (r1)  ");
    put_axis(&w, &r, "h");
    put_axis(&w, &r, "w");
    /* Rows of channels, one for each element of the images, and the row of each neighbour. */
    onxi_grad_say(
        &w,
        "around_h = Constant <value_ints = [2, 4]> ()  around_w = Constant <value_ints = [1, 3]> ()  channel = Constant <value_ints = [5]> ()"
        "  turned = Transpose <perm = [0, 2, 3, 1]> (X)  channels = Shape <start = 1, end = 2> (X)  wide = Concat <axis = 0> (flat, channels)"
        "  rows = Reshape (turned, wide)  kh = Unsqueeze (k_h, around_h)  kw = Unsqueeze (k_w, around_w)  kh1 = Mul (kh, d0_w)  khw = Add (kh1, kw)"
        "  plane = Mul (d0_h, d0_w)  image_axes = Constant <value_ints = [1, 2, 3, 4]> ()  image0 = Unsqueeze (batch_indices, image_axes)"
        "  image = Mul (image0, plane)  places = Add (khw, image)  read = Gather (rows, places)  wh = Unsqueeze (w_h, around_h)"
        "  ww = Unsqueeze (w_w, around_w)  w5 = Mul (wh, ww)  w6 = Unsqueeze (w5, channel)  weights = CastLike (w6, X)  v = Mul (read, weights)  ");
    put_bins(&w, &r);
    onxi_grad_say(&w, "Y = Transpose <perm = [0, 3, 1, 2]> (m)");
    n->head = (onx_str){ 0 };
    return finish(&w, text);
}

/* ---- DeformConv ---- */

typedef struct deform {
    onxi_grad_writer w;
    int axes;
    int64_t stride[DEFORM_AXES_MAX], dilation[DEFORM_AXES_MAX], pad[DEFORM_AXES_MAX];
    int64_t group, offset_group;
    bool mask, bias;
} deform;

static bool read_deform(onxi_grad_node *n, deform *d)
{
    static const struct {
        const char *name;
        int64_t other;
    } lists[] = { { "strides", 1 }, { "dilations", 1 }, { "pads", 0 } };
    *d = (deform){ .w = { .arena = n->g->scratch }, .group = 1, .offset_group = 1 };
    int rank = -1;
    for (uint32_t i = 0; i < 3 && rank < 0; i++)
        rank = onxi_subject_rank(&n->s, i);
    d->axes = rank - 2;
    if (d->axes < 1 || d->axes > DEFORM_AXES_MAX)
        return false;
    int64_t *const to[] = { d->stride, d->dilation, d->pad };
    for (int k = 0; k < 3; k++) {
        uint32_t count;
        const int64_t *list = onxi_subject_ints(&n->s, lists[k].name, &count);
        for (int i = 0; i < d->axes; i++)
            to[k][i] = list && (uint32_t)i < count ? list[i] : lists[k].other;
    }
    d->mask = onxi_subject_has(&n->s, 4);
    d->bias = onxi_subject_has(&n->s, 3);
    return onxi_subject_int(&n->s, "group", &d->group) && onxi_subject_int(&n->s, "offset_group", &d->offset_group) &&
           d->group > 0 && d->offset_group > 0;
}

/* Sizes along each axis as numbers, and the stride of each axis in elements. */
static void put_sizes(deform *d, const char *of, const char *from)
{
    onxi_grad_writer *w = &d->w;
    for (int i = d->axes; i-- > 0;) {
        onxi_grad_say(w, "%s_size%d = Shape <start = %d, end = %d> (%s)  ", of, i, i + 2, i + 3, from);
        if (i + 1 == d->axes)
            onxi_grad_say(w, "%s_tail%d = Identity (one_l)  ", of, i);
        else
            onxi_grad_say(w, "%s_tail%d = Mul (%s_size%d, %s_tail%d)  ", of, i, of, i + 1, of, i + 1);
    }
    onxi_grad_say_for(
        w, of, NULL,
        "~_all = Mul (~_size0, ~_tail0)  ~_end = Squeeze (~_all)  ~_each = Range (zero_i, ~_end, one_i)  ");
}

/* The position at which each tap of each output position reads along axis i, [images, offset groups, taps, positions],
 * and the element on either side, as an index term and a weight, which is zero outside of the image. */
static void put_place(deform *d, int i)
{
    onxi_grad_writer *w = &d->w;
    char axis[12];
    (void)snprintf(axis, sizeof axis, "%d", i);
    onxi_grad_say(
        w,
        "out_c%d = Constant <value_int = %lld> ()  tap_c%d = Constant <value_int = %lld> ()  pad%d = Constant <value_int = %lld> ()"
        "  pick%d = Constant <value_int = %d> ()  ",
        i, (long long)d->stride[i], i, (long long)d->dilation[i], i, (long long)d->pad[i], i, i);
    onxi_grad_say_for(w, axis, "out",
                      "#_a~ = Div (#_each, #_tail~)  #_b~ = Mod (#_a~, #_size~)  #_d~ = Mul (#_b~, #_c~)  ");
    onxi_grad_say_for(w, axis, "tap",
                      "#_a~ = Div (#_each, #_tail~)  #_b~ = Mod (#_a~, #_size~)  #_d~ = Mul (#_b~, #_c~)  ");
    onxi_grad_say_for(
        w, axis, NULL,
        "tap_e~ = Unsqueeze (tap_d~, one_l)  base0_~ = Add (tap_e~, out_d~)  base1_~ = Sub (base0_~, pad~)  base_~ = Cast <to = 11> (base1_~)"
        "  moved_~ = Gather <axis = 3> (offsets, pick~)  at_~ = Add (moved_~, base_~)  below_~ = Floor (at_~)  share1_~ = Sub (at_~, below_~)"
        "  share0_~ = Sub (one, share1_~)  beyond_~ = Cast <to = 11> (in_size~)  near0_~ = Identity (below_~)  near1_~ = Add (below_~, one)  ");
    static const char *const sides[] = { "0", "1" };
    for (int k = 0; k < 2; k++)
        onxi_grad_say_for(
            w, axis, sides[k],
            "from#_~ = GreaterOrEqual (near#_~, zero)  to#_~ = Less (near#_~, beyond_~)  within#_~ = And (from#_~, to#_~)"
            "  weight#_~ = Where (within#_~, share#_~, zero)  kept#_~ = Where (within#_~, near#_~, zero)  element#_~ = Cast <to = 7> (kept#_~)"
            "  index#_~ = Mul (element#_~, in_tail~)  ");
}

/* The neighbour that is the upper one along the axes whose bit is set: its element times its weight. */
static void put_neighbour(deform *d, int k)
{
    onxi_grad_writer *w = &d->w;
    onxi_grad_say(w, "weight_%d_0 = Identity (%s)  index_%d_0 = Identity (groups)  ", k, d->mask ? "masks" : "one", k);
    for (int i = 0; i < d->axes; i++)
        onxi_grad_say(w,
                      "weight_%d_%d = Mul (weight_%d_%d, weight%d_%d)  index_%d_%d = Add (index_%d_%d, index%d_%d)  ",
                      k, i + 1, k, i, k >> i & 1, i, k, i + 1, k, i, k >> i & 1, i);
    onxi_grad_say(
        w,
        "w0_%d = Unsqueeze (weight_%d_%d, last)  w_%d = CastLike (w0_%d, X)  read_%d = Gather (rows, index_%d_%d)"
        "  v_%d = Mul (read_%d, w_%d)  ",
        k, k, d->axes, k, k, k, k, d->axes, k, k, k);
}

onx_status onxi_grad_write_deform(onxi_grad_node *n, onx_str *text)
{
    deform d;
    if (!read_deform(n, &d))
        return onxi_grad_fail(n->g, n->s.node, "the gradient of DeformConv needs the rank of its input");
    onxi_grad_writer *w = &d.w;
    onxi_grad_say(
        w,
        "zero = Constant <value = double {0.0}> ()  one = Constant <value = double {1.0}> ()  zero_i = Constant <value_int = 0> ()  one_i = Constant <value_int = 1> ()"
        "  one_l = Constant <value_ints = [1]> ()  last = Constant <value_ints = [-1]> ()  flat = Constant <value_ints = [-1]> ()"
        "  images = Shape <end = 1> (X)  channels = Shape <start = 1, end = 2> (X)  shared = Constant <value_ints = [%lld]> ()  group = Constant <value_ints = [%lld]> ()"
        "  axes = Constant <value_ints = [%d]> ()  channels_each = Div (channels, shared)  ",
        (long long)d.offset_group, (long long)d.group, d.axes);
    put_sizes(&d, "in", "X");
    put_sizes(&d, "out", "offset");
    put_sizes(&d, "tap", "W");
    onxi_grad_say(
        w,
        "o0 = Cast <to = 11> (offset)  o1 = Concat <axis = 0> (images, shared, tap_all, axes, out_all)  offsets = Reshape <allowzero = 1> (o0, o1)  ");
    if (d.mask)
        onxi_grad_say(
            w,
            "m0 = Cast <to = 11> (mask)  m1 = Concat <axis = 0> (images, shared, tap_all, out_all)  masks = Reshape <allowzero = 1> (m0, m1)  ");
    /* Rows of the channels that share offsets, one for each element of an image; `groups` is the start of each group's
     * rows. */
    onxi_grad_say(
        w,
        "x0 = Concat <axis = 0> (images, shared, channels_each, in_all)  x1 = Reshape <allowzero = 1> (X, x0)  x2 = Transpose <perm = [0, 1, 3, 2]> (x1)"
        "  count0 = Mul (images, shared)  count = Mul (count0, in_all)  x3 = Concat <axis = 0> (count, channels_each)  rows = Reshape <allowzero = 1> (x2, x3)"
        "  count_s = Squeeze (count0)  g0 = Range (zero_i, count_s, one_i)  g1 = Mul (g0, in_all)  g2 = Concat <axis = 0> (images, shared, one_l, one_l)  groups = Reshape <allowzero = 1> (g1, g2)  ");
    for (int i = 0; i < d.axes; i++)
        put_place(&d, i);
    for (int k = 0; k < 1 << d.axes; k++)
        put_neighbour(&d, k);
    onxi_grad_say(w, "sum = Sum (");
    for (int k = 0; k < 1 << d.axes; k++)
        onxi_grad_say(w, "%sv_%d", k ? ", " : "", k);
    onxi_grad_say(
        w,
        ")  c0 = Transpose <perm = [0, 1, 4, 2, 3]> (sum)  read_each = Div (channels, group)  deep = Mul (read_each, tap_all)"
        "  c1 = Concat <axis = 0> (images, group, deep, out_all)  columns = Reshape <allowzero = 1> (c0, c1)  maps = Shape <end = 1> (W)"
        "  maps_each = Div (maps, group)  w0 = Concat <axis = 0> (group, maps_each, deep)  weights = Reshape <allowzero = 1> (W, w0)"
        "  y0 = MatMul (weights, columns)  sizes = Shape <start = 2> (offset)  y1 = Concat <axis = 0> (images, maps, sizes)  y2 = Reshape <allowzero = 1> (y0, y1)  ");
    if (d.bias) {
        onxi_grad_say(w, "behind = Constant <value_ints = [");
        for (int i = 0; i < d.axes; i++)
            onxi_grad_say(w, "%s%d", i ? ", " : "", i + 1);
        onxi_grad_say(w, "]> ()  bias = Unsqueeze (B, behind)  Y = Add (y2, bias)");
    } else {
        onxi_grad_say(w, "Y = Identity (y2)");
    }
    n->head = (onx_str){ 0 };
    return finish(w, text);
}

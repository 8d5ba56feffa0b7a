/* transform_grad_sample.c - the gradient of GridSample: the gradient of a sample is distributed to the neighbours it
 * was interpolated from, by their weights. The operator itself tells which elements these are: it samples the element
 * indices exactly at each neighbour, so that padding modes are handled correctly. */
#include "transform/transform_grad.h"

enum { CORNERS_MAX = 256 };

static int rank_of(onxi_grad_node *n)
{
    const onx_type *type = onxi_subject_type(&n->s, 0);
    const bool known = type && ONX_HAS(type, type, tensor_type) && type->tensor_type && type->tensor_type->shape;
    return known ? (int)type->tensor_type->shape->dim_count : 0;
}

typedef struct sampling {
    onxi_grad_writer w;
    int axes, taps; /* number of spatial axes; neighbours along each */
    bool cubic, align;
} sampling;

static bool read_sampling(onxi_grad_node *n, sampling *s)
{
    int64_t align = 0;
    *s = (sampling){ .w = { .arena = n->g->scratch }, .axes = rank_of(n) - 2, .taps = 2 };
    (void)onxi_subject_int(&n->s, "align_corners", &align);
    s->align = align != 0;
    s->cubic = onxi_subject_text_is(&n->s, "mode", "cubic") || onxi_subject_text_is(&n->s, "mode", "bicubic");
    if (onxi_subject_text_is(&n->s, "mode", "nearest"))
        s->taps = 1;
    else if (s->cubic)
        s->taps = 4;
    int corners = 1;
    for (int i = 0; i < s->axes && corners <= CORNERS_MAX; i++)
        corners *= s->taps;
    return s->axes > 0 && corners <= CORNERS_MAX;
}

bool onxi_grad_when_sample_ready(onxi_grad_node *n)
{
    sampling s;
    return read_sampling(n, &s);
}

/* The positions in elements, `at`, with the operator's padding; float arithmetic is the same as in the operator. */
static void put_places(onxi_grad_node *n, sampling *s)
{
    onxi_grad_writer *w = &s->w;
    onxi_grad_say(w, "turned = Constant <value_ints = [");
    for (int i = s->axes; i-- > 0;)
        onxi_grad_say(w, "%d%s", i, i ? ", " : "");
    onxi_grad_say(
        w, "]> ()  sizes0 = Shape <start = 2> (X)  sizes1 = Gather (sizes0, turned)  sizes = Cast <to = 1> (sizes1)"
           "  g1 = Add (grid32, one)  less = Sub (sizes, one)  ");
    onxi_grad_say(w, s->align ? "g2 = Div (g1, two)  raw = Mul (g2, less)  "
                              : "g2 = Mul (g1, sizes)  g3 = Sub (g2, one)  raw = Div (g3, two)  ");
    if (onxi_subject_text_is(&n->s, "padding_mode", "border"))
        onxi_grad_say(w, "raw0 = Max (raw, none)  at = Min (raw0, less)  ");
    else if (onxi_subject_text_is(&n->s, "padding_mode", "reflection"))
        onxi_grad_say(
            w,
            "half = Constant <value = float {%g}> ()  low = Neg (half)  range0 = Sub (sizes, one)  range1 = Add (range0, half)"
            "  range2 = Add (range1, half)  range = Max (range2, tiny)  way = Mul (range, two)  from = Sub (raw, low)"
            "  there = Mod <fmod = 1> (from, way)  there1 = Add (there, way)  round = Mod <fmod = 1> (there1, way)  back0 = Sub (way, round)"
            "  bounced = Min (round, back0)  at = Add (bounced, low)  ",
            s->align ? 0.0 : 0.5);
    else
        onxi_grad_say(w, "at = Identity (raw)  ");
    onxi_grad_say(w, "floor = Floor (at)  ");
}

/* One neighbour of each position: `grid<k>` is exactly there, `w<k>` its weight, [N, 1, positions]. */
static void put_corner(sampling *s, int k)
{
    onxi_grad_writer *w = &s->w;
    onxi_grad_say(w, "step_%d = Constant <value_floats = [", k);
    for (int i = 0, rest = k; i < s->axes; i++, rest /= s->taps)
        onxi_grad_say(w, "%s%d.0", i ? ", " : "", rest % s->taps - (s->cubic ? 1 : 0));
    onxi_grad_say(w, "]> ()  c_%d = Add (floor, step_%d)  c2_%d = Mul (c_%d, two)  ", k, k, k, k);
    onxi_grad_say(w, s->align ? "q_%d = Div (c2_%d, least)  " : "c3_%d = Add (c2_%d, one)  ", k, k);
    if (!s->align)
        onxi_grad_say(w, "q_%d = Div (c3_%d, sizes)  ", k, k);
    onxi_grad_say(w, "grid_%d = Sub (q_%d, one)  far0_%d = Sub (at, c_%d)  far_%d = Abs (far0_%d)  ", k, k, k, k, k, k);
    if (s->cubic)
        onxi_grad_say(
            w,
            "n0_%d = Mul (far_%d, a2)  n1_%d = Sub (n0_%d, a3)  n2_%d = Mul (n1_%d, far_%d)  n3_%d = Mul (n2_%d, far_%d)  near_%d = Add (n3_%d, one)"
            "  o0_%d = Mul (far_%d, a)  o1_%d = Sub (o0_%d, a5)  o2_%d = Mul (o1_%d, far_%d)  o3_%d = Add (o2_%d, a8)  o4_%d = Mul (o3_%d, far_%d)"
            "  outer_%d = Sub (o4_%d, a4)  inner_%d = LessOrEqual (far_%d, one)  along_%d = Where (inner_%d, near_%d, outer_%d)  ",
            k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k);
    else
        onxi_grad_say(w, "along_%d = Sub (one, far_%d)  ", k, k);
    onxi_grad_say(
        w,
        "all_%d = ReduceProd <keepdims = 0> (along_%d, last)  w0_%d = Reshape (all_%d, rows)  w_%d = CastLike (w0_%d, X)  ",
        k, k, k, k, k, k);
}

onx_status onxi_grad_write_sample(onxi_grad_node *n, onx_str *text)
{
    sampling s;
    if (!read_sampling(n, &s))
        return onxi_grad_fail(n->g, n->s.node, "the gradient of GridSample needs the rank of its input");
    onxi_grad_writer *w = &s.w;
    int corners = 1;
    for (int i = 0; i < s.axes; i++)
        corners *= s.taps;
    /* Indices of the elements of a channel, from 1, the same for every image; 0 is the result of zero padding. */
    onxi_grad_say(
        w,
        "one = Constant <value = float {1.0}> ()  two = Constant <value = float {2.0}> ()  none = Constant <value = float {0.0}> ()"
        "  tiny = Constant <value = float {1e-6}> ()  last = Constant <value_ints = [-1]> ()  rows = Constant <value_ints = [0, 1, -1]> ()"
        "  flat = Constant <value_ints = [0, 0, -1]> ()  one_i = Constant <value_ints = [1]> ()  zero_i = Constant <value_ints = [0]> ()"
        "  zero_s = Constant <value_int = 0> ()  one_s = Constant <value_int = 1> ()  grid32 = Cast <to = 1> (grid)"
        "  spatial = Shape <start = 2> (X)  images = Shape <end = 1> (X)  count0 = ReduceProd (spatial)  end0 = Add (count0, one_i)  end = Squeeze (end0)"
        "  numbers0 = Range (one_s, end, one_s)  numbers1 = Cast <to = 1> (numbers0)  plane = Concat <axis = 0> (one_i, one_i, spatial)"
        "  numbers2 = Reshape (numbers1, plane)  planes = Concat <axis = 0> (images, one_i, spatial)  numbers = Expand (numbers2, planes)"
        "  g = Reshape (dY, flat)  like = Shape (g)  room0 = Shape <end = 2> (X)  room = Concat <axis = 0> (room0, end0)  nothing = CastLike (none, X)  sum_0 = Expand (nothing, room)  ");
    if (s.taps > 1)
        put_places(n, &s);
    if (s.taps > 1 && s.align)
        onxi_grad_say(w, "least = Max (less, one)  ");
    if (s.cubic)
        onxi_grad_say(
            w,
            "a = Constant <value = float {-0.75}> ()  a2 = Constant <value = float {1.25}> ()  a3 = Constant <value = float {2.25}> ()"
            "  a5 = Constant <value = float {-3.75}> ()  a8 = Constant <value = float {-6.0}> ()  a4 = Constant <value = float {-3.0}> ()  ");
    for (int k = 0; k < corners; k++) {
        if (s.taps > 1)
            put_corner(&s, k);
        else
            onxi_grad_say(w, "grid_0 = Identity (grid32)  ");
        onxi_grad_say(
            w,
            "read_%d = GridSample <align_corners: int = @align_corners, mode = \"nearest\", padding_mode: string = @padding_mode> (numbers, grid_%d)"
            "  p0_%d = Cast <to = 7> (read_%d)  p1_%d = Reshape (p0_%d, rows)  p_%d = Expand (p1_%d, like)  ",
            k, k, k, k, k, k, k, k);
        onxi_grad_say(w, s.taps > 1 ? "v_%d = Mul (g, w_%d)  " : "v_%d = Identity (g)  ", k, k);
        onxi_grad_say(w, "sum_%d = ScatterElements <axis = 2, reduction = \"add\"> (sum_%d, p_%d, v_%d)  ", k + 1, k, k,
                      k);
    }
    onxi_grad_say(
        w,
        "two_i = Constant <value_ints = [2]> ()  kept = Slice (sum_%d, one_i, end0, two_i)  sx = Shape (X)  dX = Reshape <allowzero = 1> (kept, sx)",
        corners);
    *text = onx_str_make(w->text, w->size);
    return w->failed ? ONX_E_MEMORY : ONX_OK;
}

/* transform_grad_signal.c - gradients of Fourier transforms. They are linear: the gradient is the scaled
 * inverse-direction transform; elements that the operator padded are cropped, and elements that it cropped get
 * zeros. */
#include "transform/transform_grad.h"

enum { AXES = ONX_RANK_MAX };

typedef struct fourier {
    int64_t axis;
    bool newer;         /* the axis is an input, as since version 20 */
    bool inverse, half; /* half: one-sided */
    int behind;         /* number of axes after that of the transform; -1: unknown */
} fourier;

/* The axis has to be known in advance, because the texts depend on it. */
static bool read_axis(onxi_grad_node *n, fourier *f)
{
    uint32_t count;
    f->newer = n->s.row->since >= 20;
    f->axis = -2;
    if (!f->newer)
        return onxi_subject_int(&n->s, "axis", &f->axis);
    if (!onxi_subject_has(&n->s, 2))
        return true;
    const int64_t *axis = onxi_subject_input_ints(&n->s, 2, &count);
    const onxi_constant *c = onxi_values_constant(n->s.values, n->s.scope, onx_view(n->s.node->input[2]));
    if (!axis || count != 1 || !c)
        return false;
    f->axis = axis[0];
    return true;
}

static bool read_fourier(onxi_grad_node *n, fourier *f)
{
    int64_t inverse = 0, half = 0;
    const int rank = onxi_subject_rank(&n->s, 0);
    if (!read_axis(n, f) || !onxi_subject_int(&n->s, "inverse", &inverse) ||
        !onxi_subject_int(&n->s, "onesided", &half))
        return false;
    f->inverse = inverse != 0;
    f->half = half != 0;
    f->behind =
        f->axis < 0 ? (f->axis >= -AXES ? (int)(-f->axis - 1) : -1) : (f->axis < rank ? rank - 1 - (int)f->axis : -1);
    return f->behind >= 0 || !(f->inverse && f->half);
}

bool onxi_grad_when_fourier(onxi_grad_node *n)
{
    fourier f;
    return read_fourier(n, &f);
}

/* "to = DFT <how> (from)", along the axis. */
static void put_dft(onxi_grad_writer *w, const fourier *f, const char *to, const char *from, const char *how)
{
    if (f->newer)
        onxi_grad_say(w, "%s = DFT <%s> (%s, , way)  ", to, how, from);
    else
        onxi_grad_say(w, "%s = DFT <axis = %lld, %s> (%s)  ", to, (long long)f->axis, how, from);
}

/* `n` elements are transformed; of the `nx` given elements, `read` are used. */
static void put_sizes(onxi_grad_node *n, onxi_grad_writer *w, const fourier *f)
{
    onxi_grad_say(w,
                  "along = Constant <value_ints = [%lld]> ()  zero = Constant <value_ints = [0]> ()"
                  "  one = Constant <value_ints = [1]> ()  flat = Constant <value_ints = [-1]> ()"
                  "  sx = Shape (x)  nx = Gather (sx, along)  ",
                  (long long)f->axis);
    if (f->newer)
        onxi_grad_say(w, "way = Constant <value_int = %lld> ()  ", (long long)f->axis);
    if (onxi_subject_has(&n->s, 1))
        onxi_grad_say(w, "n0 = Cast <to = 7> (length)  n = Reshape (n0, flat)  ");
    else
        onxi_grad_say(w, f->inverse && f->half ? "n0 = Sub (nx, one)  n = Add (n0, n0)  " : "n = Identity (nx)  ");
    onxi_grad_say(w, "count = CastLike (n, x)  ");
    if (f->inverse && f->half)
        onxi_grad_say(w, "two = Constant <value_ints = [2]> ()  half = Div (n, two)  read = Add (half, one)  ");
    else
        onxi_grad_say(w, "read = Identity (n)  ");
}

/* Numbers in one half of the spectrum also represent those of the other half, except the first one and, if it exists,
 * the middle one; these have no imaginary part, and its gradient is zero. */
static void put_mirrored(onxi_grad_writer *w, const fourier *f)
{
    put_dft(w, f, "z0", "dy", "onesided = 1");
    onxi_grad_say(
        w, "zero_s = Constant <value_int = 0> ()  one_s = Constant <value_int = 1> ()  read_s = Squeeze (read)"
           "  k = Range (zero_s, read_s, one_s)  k2 = Add (k, k)  first = Equal (k, zero)  middle = Equal (k2, n)"
           "  alone = Or (first, middle)  times0 = Where (alone, one, two)  times1 = CastLike (times0, x)"
           "  behind = Constant <value_ints = [");
    for (int i = 0; i < f->behind; i++)
        onxi_grad_say(w, "%s%d", i ? ", " : "", i + 1);
    onxi_grad_say(w, "]> ()  times = Unsqueeze (times1, behind)  z1 = Mul (z0, times)  z = Div (z1, count)  ");
}

onx_status onxi_grad_write_fourier(onxi_grad_node *n, onx_str *text)
{
    onxi_grad_writer w = { .arena = n->g->scratch };
    fourier f;
    if (!read_fourier(n, &f))
        return onxi_grad_fail(n->g, n->s.node, "the gradient of DFT needs a constant axis");
    put_sizes(n, &w, &f);
    if (f.inverse && f.half) {
        put_mirrored(&w, &f);
    } else if (f.inverse) {
        put_dft(&w, &f, "z0", "dy", "inverse = 0");
        onxi_grad_say(&w, "z = Div (z0, count)  ");
    } else {
        if (f.half)
            onxi_grad_say(&w, "sy = Shape (dy)  ny = Gather (sy, along)  lack = Sub (n, ny)"
                              "  fill = Concat <axis = 0> (zero, lack)  whole = Pad (dy, fill, , along)  ");
        put_dft(&w, &f, "z0", f.half ? "whole" : "dy", "inverse = 1");
        onxi_grad_say(&w, "z = Mul (z0, count)  ");
    }
    onxi_grad_say(&w, "rest = Sub (nx, read)  ends = Concat <axis = 0> (zero, rest)  cut = Pad (z, ends, , along)"
                      "  parts = Shape <start = -1> (x)  dx = Slice (cut, zero, parts, flat)");
    n->head = onx_str_of(f.newer ? "x length axis => y" : "x length => y");
    *text = onx_str_make(w.text, w.size);
    return w.failed ? ONX_E_MEMORY : ONX_OK;
}

/* STFT: frames of the signal, times the window, transformed by DFT. */
onx_status onxi_grad_write_frames(onxi_grad_node *n, onx_str *text)
{
    onxi_grad_writer w = { .arena = n->g->scratch };
    const bool window = onxi_subject_has(&n->s, 2),
               newer = onxi_imports_version(&n->g->binder.imports, (onx_str){ 0 }) >= 20;
    onxi_grad_say(&w, "zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()"
                      "  parts = Constant <value_ints = [0, 0, -1]> ()  column = Constant <value_ints = [1]> ()"
                      "  step0 = Cast <to = 7> (frame_step)  step = Squeeze (step0)"
                      "  given0 = Shape <start = 1, end = 2> (signal)  given = Squeeze (given0)  ");
    if (onxi_subject_has(&n->s, 3))
        onxi_grad_say(&w, "size0 = Cast <to = 7> (frame_length)  ");
    else
        onxi_grad_say(&w, window ? "size0 = Shape (window)  " : "size0 = Identity (given0)  ");
    onxi_grad_say(
        &w,
        "size = Squeeze (size0)  rest = Sub (given, size)  short = Less (rest, zero)  more = Div (rest, step)"
        "  frames0 = Add (more, one)  frames = Where (short, zero, frames0)  f = Range (zero, frames, one)"
        "  begin0 = Mul (f, step)  begin = Unsqueeze (begin0, column)  within = Range (zero, size, one)"
        "  at = Add (begin, within)  numbers = Reshape (signal, parts)  framed = Gather <axis = 1> (numbers, at)  ");
    if (window)
        onxi_grad_say(&w, "weights = Unsqueeze (window, column)  weighed = Mul (framed, weights)  ");
    else
        onxi_grad_say(&w, "weighed = Identity (framed)  ");
    onxi_grad_say(
        &w, newer ? "axis = Constant <value_int = 2> ()  output = DFT <onesided: int = @onesided> (weighed, , axis)"
                  : "output = DFT <axis = 2, onesided: int = @onesided> (weighed)");
    n->head = (onx_str){ 0 };
    *text = onx_str_make(w.text, w.size);
    return w.failed ? ONX_E_MEMORY : ONX_OK;
}

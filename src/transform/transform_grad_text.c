/* transform_grad_text.c - gradient rules whose text depends on the number of operands or on an attribute. */
#include "transform/transform_grad.h"

#include <stdio.h>

#define WRITE(name) onx_status onxi_grad_write_##name(onxi_grad_node *n, onx_str *text)

void onxi_grad_say(onxi_grad_writer *w, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int more = vsnprintf(NULL, 0, format, args);
    va_end(args);
    w->failed |= more < 0 || !ONXI_GROW_IN(w->arena, w->text, w->room, (uint64_t)w->size + (uint32_t)more + 1);
    if (!w->failed) {
        (void)vsnprintf(w->text + w->size, w->room - w->size, format, again);
        w->size += (uint32_t)more;
    }
    va_end(again);
}

void onxi_grad_say_for(onxi_grad_writer *w, const char *one, const char *other, const char *text)
{
    while (*text) {
        const size_t plain = strcspn(text, "~#");
        onxi_grad_say(w, "%.*s", (int)plain, text);
        text += plain;
        if (*text)
            onxi_grad_say(w, "%s", *text++ == '~' ? one : other);
    }
}

typedef onxi_grad_writer writer;
#define put onxi_grad_say

static writer writer_of(const onxi_grad_node *n)
{
    return (writer){ .arena = n->g->scratch };
}

static onx_status finish(const writer *w, onx_str *text)
{
    *text = onx_str_make(w->text, w->size);
    return w->failed ? ONX_E_MEMORY : ONX_OK;
}

/* "p0 p1 p2", with the separator `between`. */
static void put_many(writer *w, const char *name, uint32_t count, const char *between)
{
    for (uint32_t i = 0; i < count; i++)
        put(w, "%s%s%u", i ? between : "", name, i);
}

/* The header "x0 x1 => y". */
static onx_status set_head(onxi_grad_node *n, const char *inputs, uint32_t input_count, const char *more,
                           const char *outputs, uint32_t output_count)
{
    writer w = writer_of(n);
    put_many(&w, inputs, input_count, " ");
    put(&w, "%s => ", more);
    if (output_count)
        put_many(&w, outputs, output_count, " ");
    else
        put(&w, "%s", outputs);
    return finish(&w, &n->head);
}

/* ---- any number of operands ---- */

WRITE(sum)
{
    writer w = writer_of(n);
    const uint32_t count = n->s.node->input_count;
    for (uint32_t i = 0; i < count; i++)
        put(&w, "dx%u = grad.Fit (dy, x%u, y)  ", i, i);
    ONX_TRY(set_head(n, "x", count, "", "y", 0));
    return finish(&w, text);
}

WRITE(mean)
{
    writer w = writer_of(n);
    const uint32_t count = n->s.node->input_count;
    put(&w, "n0 = Constant <value = double {%u.0}> ()  n = CastLike (n0, y)  s = Div (dy, n)  ", count);
    for (uint32_t i = 0; i < count; i++)
        put(&w, "dx%u = grad.Fit (s, x%u, y)  ", i, i);
    ONX_TRY(set_head(n, "x", count, "", "y", 0));
    return finish(&w, text);
}

/* The operands with the extreme value share the gradient equally. */
WRITE(extreme)
{
    writer w = writer_of(n);
    const uint32_t count = n->s.node->input_count;
    if (count == 1)
        put(&w, "dx0 = Identity (dy)");
    for (uint32_t i = 0; count > 1 && i < count; i++)
        put(&w, "e%u = Equal (x%u, y)  f%u = CastLike (e%u, y)  ", i, i, i, i);
    if (count > 1) {
        put(&w, "n = Sum (");
        put_many(&w, "f", count, ", ");
        put(&w, ")  q = Div (dy, n)  ");
    }
    for (uint32_t i = 0; count > 1 && i < count; i++)
        put(&w, "p%u = Mul (q, f%u)  dx%u = grad.Fit (p%u, x%u, y)  ", i, i, i, i, i);
    ONX_TRY(set_head(n, "x", count, "", "y", 0));
    return finish(&w, text);
}

WRITE(concat)
{
    writer w = writer_of(n);
    const uint32_t count = n->s.node->input_count;
    put(&w, "a0 = Constant <value_int: int = @axis> ()  one = Constant <value_ints = [1]> ()  a = Reshape (a0, one)  ");
    for (uint32_t i = 0; i < count; i++)
        put(&w, "s%u = Shape (x%u)  n%u = Gather (s%u, a)  ", i, i, i, i);
    put(&w, "sizes = Concat <axis = 0> (");
    put_many(&w, "n", count, ", ");
    put(&w, ")  ");
    put_many(&w, "p", count, ", ");
    put(&w, " = Split <axis: int = @axis> (dy, sizes)  ");
    for (uint32_t i = 0; i < count; i++)
        put(&w, "dx%u = Identity (p%u)  ", i, i);
    ONX_TRY(set_head(n, "x", count, "", "y", 0));
    return finish(&w, text);
}

WRITE(split)
{
    writer w = writer_of(n), parts = writer_of(n);
    const uint32_t count = n->s.node->output_count;
    int64_t made;
    for (uint32_t i = 0; i < count; i++) {
        if (!onx_view(n->dy[i]).len)
            put(&w, "z%u = grad.Zeros (y%u)  ", i, i);
        put(&parts, "%s%s%u", i ? ", " : "", onx_view(n->dy[i]).len ? "dy" : "z", i);
    }
    put(&w, "p = Concat <axis: int = @axis> (%.*s)  ", (int)parts.size, parts.text ? parts.text : "");
    if (onxi_subject_given(&n->s, "num_outputs") &&
        !(onxi_subject_int(&n->s, "num_outputs", &made) && made == count)) /* parts without an output get zeros */
        put(&w, "a0 = Constant <value_int: int = @axis> ()  one = Constant <value_ints = [1]> ()  a = Reshape (a0, one)"
                "  sx = Shape (x0)  nx = Gather (sx, a)  sp = Shape (p)  np = Gather (sp, a)  lack = Sub (nx, np)"
                "  front = Constant <value_ints = [0]> ()  around = Concat <axis = 0> (front, lack)"
                "  dx0 = Pad (p, around, , a)");
    else
        put(&w, "dx0 = Identity (p)");
    if (parts.failed)
        return ONX_E_MEMORY;
    ONX_TRY(set_head(n, "x", 1, " sizes", "y", count));
    return finish(&w, text);
}

/* The sum of the terms for each output with a gradient. */
WRITE(layer)
{
    static const char *const from[] = { "from_y", "from_mean", "from_inverse" };
    writer w = writer_of(n), list = writer_of(n);
    for (uint32_t i = 0; i < n->s.node->output_count && i < 3; i++)
        if (onx_view(n->dy[i]).len)
            put(&list, "%s%s", list.size ? ", " : "", from[i]);
    put(&w, "dX = Sum (%.*s)", (int)list.size, list.text ? list.text : "");
    return list.failed ? ONX_E_MEMORY : finish(&w, text);
}

WRITE(sequence)
{
    writer w = writer_of(n);
    const uint32_t count = n->s.node->input_count;
    for (uint32_t i = 0; i < count; i++)
        put(&w, "p%u = Constant <value_int = %u> ()  dx%u = SequenceAt (dy, p%u)  ", i, i, i, i);
    ONX_TRY(set_head(n, "x", count, "", "y", 0));
    return finish(&w, text);
}

/* ---- products ---- */

static void put_swapped(writer *w, const char *name, const char *from, int rank)
{
    put(w, "%s = Transpose <perm = [", name);
    for (int i = 0; i < rank; i++)
        put(w, "%s%d", i ? ", " : "", i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i);
    put(w, "]> (%s)  ", from);
}

/* A vector is a row on the left, and a column on the right. */
WRITE(matmul)
{
    writer w = writer_of(n);
    const int a = onxi_subject_rank(&n->s, 0), b = onxi_subject_rank(&n->s, 1);
    if (a < 1 || b < 1 || a > (int)ONX_RANK_MAX || b > (int)ONX_RANK_MAX)
        return onxi_grad_fail(n->g, n->s.node, "the gradient of MatMul needs the ranks of both inputs");
    put(&w,
        "first = Constant <value_ints = [0]> ()  last = Constant <value_ints = [-1]> ()  row = Constant <value_ints = [-2]> ()  ");
    put(&w, a == 1 ? "a2 = Unsqueeze (A, first)  " : "a2 = Identity (A)  ");
    put(&w, b == 1 ? "b2 = Unsqueeze (B, last)  " : "b2 = Identity (B)  ");
    put(&w, b == 1 ? "g1 = Unsqueeze (dY, last)  " : "g1 = Identity (dY)  ");
    put(&w, a == 1 ? "g2 = Unsqueeze (g1, row)  " : "g2 = Identity (g1)  ");
    put_swapped(&w, "bt", "b2", b == 1 ? 2 : b);
    put_swapped(&w, "at", "a2", a == 1 ? 2 : a);
    put(&w, "da = MatMul (g2, bt)  db = MatMul (at, g2)  ");
    put(&w, a == 1 ? "das = Squeeze (da, row)  " : "das = Identity (da)  ");
    put(&w, b == 1 ? "dbs = Squeeze (db, last)  " : "dbs = Identity (db)  ");
    put(&w, "dA = grad.Fit (das, A)  dB = grad.Fit (dbs, B)");
    return finish(&w, text);
}

/* ---- Einsum ---- */

enum { TERMS = 64, LETTERS = 52 };

typedef struct equation {
    char text[1024];
    const char *term[TERMS];
    uint32_t count;
    char output[LETTERS + 8];
} equation;

static bool has_dots(const char *term)
{
    return strchr(term, '.') != NULL;
}

/* The implicit output if the equation has none: letters that occur once, in alphabetical order. */
static void imply_output(equation *e)
{
    size_t at = 0;
    for (uint32_t i = 0; i < e->count; i++)
        if (has_dots(e->term[i]) && !at) {
            memcpy(e->output, "...", 3);
            at = 3;
        }
    for (int c = 'A'; c <= 'z'; c++) {
        int times = 0;
        for (uint32_t i = 0; i < e->count; i++)
            for (const char *p = e->term[i]; *p; p++)
                times += *p == c;
        if (times == 1)
            e->output[at++] = (char)c;
    }
    e->output[at] = 0;
}

static bool read_equation(onx_str s, equation *e)
{
    size_t size = 0;
    char *arrow;
    memset(e, 0, sizeof *e);
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (c == ' ')
            continue;
        if (size + 1 == sizeof e->text || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,->", c) || !c)
            return false;
        e->text[size++] = c;
    }
    if ((arrow = strstr(e->text, "->")) != NULL) {
        if (strlen(arrow + 2) >= sizeof e->output)
            return false;
        memcpy(e->output, arrow + 2, strlen(arrow + 2) + 1);
        *arrow = 0;
    }
    for (char *p = e->text; p && e->count < TERMS;) {
        char *comma = strchr(p, ',');
        e->term[e->count++] = p;
        if (comma)
            *comma++ = 0;
        p = comma;
    }
    if (!arrow)
        imply_output(e);
    return true;
}

static bool has_twice(const char *term)
{
    for (const char *p = term; *p; p++)
        if (*p != '.' && strchr(p + 1, *p))
            return true;
    return false;
}

static bool occurs(const equation *e, char c, uint32_t but)
{
    bool found = strchr(e->output, c) != NULL;
    for (uint32_t i = 0; i < e->count && !found; i++)
        found = i != but && strchr(e->term[i], c);
    return found;
}

/* The gradient of operand i: the output's gradient times the other operands, over the letters of the operand; letters
 * that occur nowhere else were summed, and get the same gradient everywhere. */
static bool put_operand(writer *w, const equation *e, uint32_t i)
{
    const char *term = e->term[i];
    const char *dots = strstr(term, "...");
    bool missing = false;
    if (has_twice(term) || (has_dots(term) && (!dots || !occurs(e, '.', i))))
        return false;
    put(w, "r%u = Einsum <equation = \"%s", i, e->output);
    for (uint32_t k = 0; k < e->count; k++)
        if (k != i)
            put(w, ",%s", e->term[k]);
    put(w, "->");
    for (const char *p = term; *p; p++) {
        const bool kept = *p == '.' || occurs(e, *p, i);
        if (kept)
            put(w, "%c", *p);
        missing |= !kept;
    }
    put(w, "\"> (dy");
    for (uint32_t k = 0; k < e->count; k++)
        if (k != i)
            put(w, ", x%u", k);
    put(w, ")  ");
    if (!missing) {
        put(w, "dx%u = grad.Fit (r%u, x%u)  ", i, i, i);
        return true;
    }
    put(w, "a%u = Constant <value_ints = [", i);
    bool any = false;
    for (const char *p = term; *p; p++)
        if (*p != '.' && !occurs(e, *p, i)) {
            const long at = dots && p > dots ? (long)(p - term) - (long)strlen(term) : (long)(p - term);
            put(w, "%s%ld", any ? ", " : "", at);
            any = true;
        }
    put(w,
        "]> ()  u%u = Unsqueeze (r%u, a%u)  s%u = Shape (x%u)  v%u = Expand (u%u, s%u)  dx%u = grad.Fit (v%u, x%u)  ",
        i, i, i, i, i, i, i, i, i, i, i);
    return true;
}

WRITE(einsum)
{
    writer w = writer_of(n);
    const onx_attribute *a = onxi_subject_given(&n->s, "equation");
    equation *e = ONXI_NEW(n->g->scratch, equation);
    if (!e)
        return ONX_E_MEMORY;
    if (!a || !read_equation(onxi_attribute_text(a), e) || e->count != n->s.node->input_count)
        return onxi_grad_fail(n->g, n->s.node, "there is no gradient of Einsum with this equation");
    for (uint32_t i = 0; i < e->count; i++)
        if (onx_view(n->dx[i]).len && !put_operand(&w, e, i))
            return onxi_grad_fail(
                n->g, n->s.node,
                "there is no gradient of operand %u of Einsum, whose term is %s: a letter stands there twice, or its "
                "other axes nowhere else",
                i, e->term[i]);
    ONX_TRY(set_head(n, "x", e->count, "", "y", 0));
    return finish(&w, text);
}

/* ---- Resize ---- */

#define RESIZE_ATTRIBUTES                                                                                              \
    "antialias: int = @antialias, coordinate_transformation_mode: string = @coordinate_transformation_mode, "          \
    "cubic_coeff_a: float = @cubic_coeff_a, exclude_outside: int = @exclude_outside, mode: string = @mode, "           \
    "nearest_mode: string = @nearest_mode"

WRITE(resize_places)
{
    *text = onx_str_of(
        "p = grad.PlacesFromOne (X)  p32 = Cast <to = 6> (p)  q32 = Resize <" RESIZE_ATTRIBUTES
        ", axes: ints = @axes, keep_aspect_ratio_policy: string = @keep_aspect_ratio_policy> (p32, roi, scales, sizes)"
        "  q = Cast <to = 7> (q32)  dX = grad.ScatterFromOne (dY, q, X)");
    (void)n;
    return ONX_OK;
}

/* Along an axis the operator is a matrix: the result of applying it to the unit matrix. */
static void put_axis(writer *w, uint32_t axis, uint32_t at, uint32_t count, int rank, bool crop, bool scaled,
                     const char *from)
{
    put(w,
        "i%u = Constant <value_ints = [%u]> ()  n%u = Shape <start = %u, end = %u> (X)  nn%u = Concat <axis = 0> (n%u, n%u)  "
        "z%u = Expand (zero, nn%u)  e%u = EyeLike (z%u)  ",
        axis, at, axis, axis, axis + 1, axis, axis, axis, axis, axis, axis, axis);
    if (scaled)
        put(w, "t%u = Gather (scales, i%u)  s%u = Concat <axis = 0> (t%u, unit)  ", axis, axis, axis, axis);
    else
        put(w, "t%u = Gather (sizes, i%u)  s%u = Concat <axis = 0> (t%u, n%u)  ", axis, axis, axis, axis, axis);
    if (crop)
        put(w,
            "j%u = Constant <value_ints = [%u]> ()  b%u = Gather (roi, i%u)  c%u = Gather (roi, j%u)  b0%u = CastLike (none, roi)  "
            "c1%u = CastLike (unit, roi)  roi%u = Concat <axis = 0> (b%u, b0%u, c%u, c1%u)  ",
            axis, at + count, axis, axis, axis, axis, axis, axis, axis, axis, axis, axis, axis);
    char region[16] = "";
    if (crop)
        (void)snprintf(region, sizeof region, "roi%u", axis);
    put(w,
        scaled ? "m%u = Resize <" RESIZE_ATTRIBUTES "> (e%u, %s, s%u)  "
               : "m%u = Resize <" RESIZE_ATTRIBUTES "> (e%u, %s, , s%u)  ",
        axis, axis, region, axis);
    put(w, "f%u = Transpose <perm = [", axis);
    for (int i = 0; i < rank; i++)
        put(w, "%s%d", i ? ", " : "", i == (int)axis ? rank - 1 : i == rank - 1 ? (int)axis : i);
    put(w, "]> (%s)  h%u = MatMul (f%u, m%u)  g%u = Transpose <perm = [", from, axis, axis, axis, axis);
    for (int i = 0; i < rank; i++)
        put(w, "%s%d", i ? ", " : "", i == (int)axis ? rank - 1 : i == rank - 1 ? (int)axis : i);
    put(w, "]> (h%u)  ", axis);
}

WRITE(resize_matrices)
{
    writer w = writer_of(n);
    uint32_t count, known;
    const int rank = onxi_subject_rank(&n->s, 0);
    const int64_t *axes = onxi_subject_ints(&n->s, "axes", &count);
    const bool crop = onxi_subject_text_is(&n->s, "coordinate_transformation_mode", "tf_crop_and_resize");
    const bool scaled = onxi_subject_has(&n->s, 2);
    const float *scales = scaled ? onxi_subject_input_floats(&n->s, 2, &known) : NULL;
    const int64_t *sizes = scaled ? NULL : onxi_subject_input_ints(&n->s, 3, &known);
    if (rank < 1 || rank > (int)ONX_RANK_MAX)
        return onxi_grad_fail(n->g, n->s.node, "the gradient of Resize needs the rank of its input");
    if (onxi_schema_attr(n->s.row, onx_str_of("keep_aspect_ratio_policy")) &&
        !onxi_subject_text_is(&n->s, "keep_aspect_ratio_policy", "stretch") && !scaled)
        return onxi_grad_fail(n->g, n->s.node, "there is no gradient of Resize that keeps the aspect ratio");
    count = axes ? count : (uint32_t)rank;
    put(&w,
        "zero0 = Constant <value = double {0.0}> ()  zero = CastLike (zero0, X)  unit = Constant <value_floats = [1.0]> ()  "
        "none = Constant <value_floats = [0.0]> ()  ");
    char from[16] = "dY";
    for (uint32_t at = 0; at < count; at++) {
        const int64_t axis = axes ? (axes[at] < 0 ? axes[at] + rank : axes[at]) : at;
        if (axis < 0 || axis >= rank)
            return onxi_grad_fail(n->g, n->s.node, "axis %lld of Resize does not exist", (long long)axis);
        const int64_t size = onxi_type_dim(onxi_subject_type(&n->s, 0), (uint32_t)axis);
        if (!crop &&
            ((scales && at < known && scales[at] == 1.0f) || (sizes && at < known && size > 0 && sizes[at] == size)))
            continue;
        put_axis(&w, (uint32_t)axis, at, count, rank, crop, scaled, from);
        (void)snprintf(from, sizeof from, "g%u", (unsigned)axis);
    }
    put(&w, "dX = Identity (%s)", from);
    return finish(&w, text);
}

/* ---- recurrent layers ---- */

typedef struct recurrent {
    onxi_grad_node *n;
    writer w;
    uint32_t gates, directions, acts;
    bool lstm, gru, batch_first, lens, peepholes, bias, coupled, linear_first;
    const float *alpha, *beta;
    uint32_t alpha_count, beta_count, alpha_at, beta_at;
    const onx_attribute *names;
    bool clipped;
    float clip;
} recurrent;

static const char *const activation_names[] = { "Sigmoid",         "Tanh",       "Relu",        "Affine", "LeakyRelu",
                                                "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",    "Softsign",
                                                "Softplus" };

static bool is_word(onx_str s, const char *word)
{
    if (s.len != strlen(word))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((s.ptr[i] | 32) != (word[i] | 32))
            return false;
    return true;
}

static double next_of(const float *list, uint32_t count, uint32_t *at, double other)
{
    return *at < count ? (double)list[(*at)++] : other;
}

/* to = activation (from); which: 0 is f, 1 g, 2 h. */
static bool put_activation(recurrent *r, uint32_t which, uint32_t direction, char text[256])
{
    static const char *const usual[3][3] = { { "Tanh", "", "" },
                                             { "Sigmoid", "Tanh", "" },
                                             { "Sigmoid", "Tanh", "Tanh" } };
    const uint32_t index = direction * r->acts + which;
    onx_str name = onx_str_of(usual[r->acts - 1][which]);
    if (r->names && r->names->slot == ONX_SLOT_STRINGS && index < r->names->count)
        name = onx_view(r->names->strings[index]);
    const char *known = NULL;
    for (size_t i = 0; i < sizeof activation_names / sizeof *activation_names; i++)
        if (is_word(name, activation_names[i]))
            known = activation_names[i];
    if (!known)
        return false;
    double a, b;
    if (strcmp(known, "Affine") == 0 || strcmp(known, "ScaledTanh") == 0) {
        a = next_of(r->alpha, r->alpha_count, &r->alpha_at, 1.0);
        b = next_of(r->beta, r->beta_count, &r->beta_at, strcmp(known, "Affine") == 0 ? 0.0 : 1.0);
        (void)snprintf(
            text, 256,
            strcmp(known, "Affine") == 0
                ? "a0_%%s = Constant <value = double {%.17g}> () a1_%%s = CastLike (a0_%%s, X) b0_%%s = Constant <value = double {%.17g}> () b1_%%s = CastLike (b0_%%s, X) m_%%s = Mul (%%s_in, a1_%%s) %%s = Add (m_%%s, b1_%%s)  "
                : "a0_%%s = Constant <value = double {%.17g}> () a1_%%s = CastLike (a0_%%s, X) b0_%%s = Constant <value = double {%.17g}> () b1_%%s = CastLike (b0_%%s, X) m_%%s = Mul (%%s_in, b1_%%s) t_%%s = Tanh (m_%%s) %%s = Mul (t_%%s, a1_%%s)  ",
            a, b);
        return true;
    }
    if (strcmp(known, "LeakyRelu") == 0 || strcmp(known, "ThresholdedRelu") == 0 || strcmp(known, "Elu") == 0) {
        a = next_of(r->alpha, r->alpha_count, &r->alpha_at, strcmp(known, "LeakyRelu") == 0 ? 0.01 : 1.0);
        (void)snprintf(text, 256, "%%s = %s <alpha = %.9g> (%%s_in)  ", known, a);
        return true;
    }
    if (strcmp(known, "HardSigmoid") == 0) {
        a = next_of(r->alpha, r->alpha_count, &r->alpha_at, 0.2);
        b = next_of(r->beta, r->beta_count, &r->beta_at, 0.5);
        (void)snprintf(text, 256, "%%s = HardSigmoid <alpha = %.9g, beta = %.9g> (%%s_in)  ", a, b);
        return true;
    }
    (void)snprintf(text, 256, "%%s = %s (%%s_in)  ", known);
    return true;
}

/* Replaces each %s in the activation by the name; clips before. */
static void put_act(recurrent *r, const char *activation, const char *name, const char *from)
{
    writer *w = &r->w;
    if (r->clipped)
        put(w, "%s_in = Clip (%s, clip_low, clip_high)  ", name, from);
    else
        put(w, "%s_in = Identity (%s)  ", name, from);
    for (const char *p = activation; *p; p++)
        if (p[0] == '%' && p[1] == 's') {
            put(w, "%s", name);
            p++;
        } else {
            put(w, "%c", *p);
        }
}

static void put_gate(recurrent *r, uint32_t d, uint32_t gate, const char *name)
{
    put(&r->w, "%s_x = Slice (x_t, at%u, at%u, last)  %s_h = Slice (hr, at%u, at%u, last)  %s_s = Add (%s_x, %s_h)  ",
        name, gate, gate + 1, name, gate, gate + 1, name, name, name);
    (void)d;
}

static void put_body(recurrent *r, uint32_t d, char acts[3][256])
{
    writer *w = &r->w;
    put(w, "body = step%u (h_in%s, x_t%s) => (h_out%s, y_t) {  ", d, r->lstm ? ", c_in" : "", r->lens ? ", t_t" : "",
        r->lstm ? ", c_out" : "");
    put(w, "hr0 = MatMul (h_in, rt%u)  ", d);
    put(w, r->gru && r->bias ? "hr = Add (hr0, rb%u)  " : "hr = Identity (hr0)  ", d);
    if (r->lstm) {
        put_gate(r, d, 0, "i");
        put_gate(r, d, 1, "o");
        put_gate(r, d, 2, "f");
        put_gate(r, d, 3, "c");
        put(w, r->peepholes ? "i_p = Mul (c_in, pi%u)  i_q = Add (i_s, i_p)  " : "i_q = Identity (i_s)  ", d);
        put_act(r, acts[0], "i_a", "i_q");
        if (r->coupled) {
            put(w, "f_a = Sub (one, i_a)  ");
        } else {
            put(w, r->peepholes ? "f_p = Mul (c_in, pf%u)  f_q = Add (f_s, f_p)  " : "f_q = Identity (f_s)  ", d);
            put_act(r, acts[0], "f_a", "f_q");
        }
        put_act(r, acts[1], "c_a", "c_s");
        put(w, "kept = Mul (f_a, c_in)  fresh = Mul (i_a, c_a)  c_new = Add (kept, fresh)  ");
        put(w, r->peepholes ? "o_p = Mul (c_new, po%u)  o_q = Add (o_s, o_p)  " : "o_q = Identity (o_s)  ", d);
        put_act(r, acts[0], "o_a", "o_q");
        put_act(r, acts[2], "ch", "c_new");
        put(w, "h_new = Mul (o_a, ch)  ");
    } else if (r->gru) {
        put_gate(r, d, 0, "z");
        put_gate(r, d, 1, "r");
        put_act(r, acts[0], "z_a", "z_s");
        put_act(r, acts[0], "r_a", "r_s");
        put(w, "n_x = Slice (x_t, at2, at3, last)  ");
        if (r->linear_first)
            put(w, "n_h0 = Slice (hr, at2, at3, last)  n_h = Mul (r_a, n_h0)  ");
        else if (r->bias)
            put(w,
                "rh = Mul (r_a, h_in)  rn = Slice (rt%u, at2, at3, last)  n_h0 = MatMul (rh, rn)  bn = Slice (rb%u, at2, at3, first)  n_h = Add (n_h0, bn)  ",
                d, d);
        else
            put(w, "rh = Mul (r_a, h_in)  rn = Slice (rt%u, at2, at3, last)  n_h = MatMul (rh, rn)  ", d);
        put(w, "n_s = Add (n_x, n_h)  ");
        put_act(r, acts[1], "n_a", "n_s");
        put(w, "zn = Sub (one, z_a)  fresh = Mul (zn, n_a)  kept = Mul (z_a, h_in)  h_new = Add (fresh, kept)  ");
    } else {
        put(w, "s = Add (x_t, hr)  ");
        put_act(r, acts[0], "h_new", "s");
    }
    if (r->lens)
        put(w,
            "valid0 = Less (t_t, sequence_lens)  valid = Unsqueeze (valid0, last)  h_out = Where (valid, h_new, h_in)  %sy_t = Where (valid, h_new, zero)  ",
            r->lstm ? "c_out = Where (valid, c_new, c_in)  " : "");
    else
        put(w, "h_out = Identity (h_new)  %sy_t = Identity (h_new)  ", r->lstm ? "c_out = Identity (c_new)  " : "");
    put(w, "}");
}

static void put_direction(recurrent *r, uint32_t d, bool reverse, char acts[3][256])
{
    writer *w = &r->w;
    const char *const starts[2] = { "h", "c" };
    put(w,
        "d%u = Constant <value_int = %u> ()  w%u = Gather (W, d%u)  wt%u = Transpose <perm = [1, 0]> (w%u)  r%u = Gather (R, d%u)  rt%u = Transpose <perm = [1, 0]> (r%u)  xw0%u = MatMul (x, wt%u)  ",
        d, d, d, d, d, d, d, d, d, d, d, d);
    if (r->bias) {
        put(w,
            "b%u = Gather (B, d%u)  half%u = Shape <start = 0, end = 1> (w%u)  wb%u = Slice (b%u, first, half%u)  most%u = Shape (b%u)  rb%u = Slice (b%u, half%u, most%u)  ",
            d, d, d, d, d, d, d, d, d, d, d, d, d);
        put(w, r->gru ? "xw%u = Add (xw0%u, wb%u)  " : "bs%u = Add (wb%u, rb%u)  xw%u = Add (xw0%u, bs%u)  ", d, d, d,
            d, d, d);
    } else {
        put(w, "xw%u = Identity (xw0%u)  ", d, d);
    }
    if (r->peepholes)
        put(w,
            "p%u = Gather (P, d%u)  pi%u = Slice (p%u, at0, at1)  po%u = Slice (p%u, at1, at2)  pf%u = Slice (p%u, at2, at3)  ",
            d, d, d, d, d, d, d, d);
    for (uint32_t k = 0; k < 1u + r->lstm; k++)
        if (onxi_subject_has(&r->n->s, 5 + k))
            put(w, "%s0_%u = Gather <axis = %d> (initial_%s, d%u)  ", starts[k], d, r->batch_first, starts[k], d);
        else
            put(w, "%s0_%u = Expand (zero, nh)  ", starts[k], d);
    put(w, "h1_%u, ", d);
    if (r->lstm)
        put(w, "c1_%u, ", d);
    put(w, "y%u = Scan <num_scan_inputs = %d, scan_input_directions = [%s], scan_output_directions = [%d], ", d,
        1 + r->lens, reverse ? (r->lens ? "1, 1" : "1") : (r->lens ? "0, 0" : "0"), reverse);
    put_body(r, d, acts);
    put(w, "> (h0_%u", d);
    if (r->lstm)
        put(w, ", c0_%u", d);
    put(w, ", xw%u%s)  ", d, r->lens ? ", times" : "");
    put(w, "yu%u = Unsqueeze (y%u, one_list)  hu%u = Unsqueeze (h1_%u, %s)  ", d, d, d, d,
        r->batch_first ? "one_list" : "first");
    if (r->lstm)
        put(w, "cu%u = Unsqueeze (c1_%u, %s)  ", d, d, r->batch_first ? "one_list" : "first");
}

static bool read_recurrent(onxi_grad_node *n, recurrent *r)
{
    int64_t layout = 0, coupled = 0, linear = 0;
    const onxi_op_id op =
        (onxi_op_id)(onxi_operator_find((onx_str){ 0 }, onx_view(n->s.node->op_type)) - onxi_operators + 1);
    *r = (recurrent){ .n = n, .w = writer_of(n), .lstm = op == ONXI_ID_LSTM, .gru = op == ONXI_ID_GRU };
    r->gates = r->lstm ? 4 : r->gru ? 3 : 1;
    r->acts = r->lstm ? 3 : r->gru ? 2 : 1;
    r->directions = onxi_subject_text_is(&n->s, "direction", "bidirectional") ? 2 : 1;
    (void)onxi_subject_int(&n->s, "layout", &layout);
    (void)onxi_subject_int(&n->s, "input_forget", &coupled);
    (void)onxi_subject_int(&n->s, "linear_before_reset", &linear);
    r->batch_first = layout == 1;
    r->coupled = coupled != 0;
    r->linear_first = linear != 0;
    r->bias = onxi_subject_has(&n->s, 3);
    r->lens = onxi_subject_has(&n->s, 4);
    r->peepholes = r->lstm && onxi_subject_has(&n->s, 7);
    r->names = onxi_subject_given(&n->s, "activations");
    r->clipped = onxi_subject_float(&n->s, "clip", &r->clip);
    const onx_attribute *a = onxi_subject_given(&n->s, "activation_alpha"),
                        *b = onxi_subject_given(&n->s, "activation_beta");
    if (a && a->slot == ONX_SLOT_FLOATS)
        r->alpha = a->floats, r->alpha_count = a->count;
    if (b && b->slot == ONX_SLOT_FLOATS)
        r->beta = b->floats, r->beta_count = b->count;
    return true;
}

/* The part that is the same for both directions. */
static void put_common(recurrent *r)
{
    writer *w = &r->w;
    put(w, r->batch_first ? "x = Transpose <perm = [1, 0, 2]> (X)  " : "x = Identity (X)  ");
    put(w,
        "zero0 = Constant <value = double {0.0}> ()  zero = CastLike (zero0, X)  one0 = Constant <value = double {1.0}> ()  one = CastLike (one0, X)  "
        "first = Constant <value_ints = [0]> ()  one_list = Constant <value_ints = [1]> ()  last = Constant <value_ints = [-1]> ()  "
        "size = Shape <start = 2> (R)  batch = Shape <start = 1, end = 2> (x)  nh = Concat <axis = 0> (batch, size)  ");
    for (uint32_t i = 0; i <= r->gates; i++)
        put(w, "k%u = Constant <value_ints = [%u]> ()  at%u = Mul (size, k%u)  ", i, i, i, i);
    if (r->clipped)
        put(w,
            "cl0 = Constant <value = double {%.9g}> ()  clip_low = CastLike (cl0, X)  ch0 = Constant <value = double {%.9g}> ()  clip_high = CastLike (ch0, X)  ",
            -(double)r->clip, (double)r->clip);
    if (r->lens)
        put(w,
            "t_zero = Constant <value_int = 0> ()  t_one = Constant <value_int = 1> ()  t_list = Shape <start = 0, end = 1> (x)  t_end = Squeeze (t_list, first)  "
            "t0 = Range (t_zero, t_end, t_one)  times = CastLike (t0, sequence_lens)  ");
}

WRITE(recurrent)
{
    recurrent r;
    char acts[3][256] = { { 0 } };
    (void)read_recurrent(n, &r);
    put_common(&r);
    for (uint32_t d = 0; d < r.directions; d++) {
        for (uint32_t k = 0; k < r.acts; k++)
            if (!put_activation(&r, k, d, acts[k]))
                return onxi_grad_fail(n->g, n->s.node, "there is no gradient of one of its activations");
        put_direction(&r, d, d == 1 || onxi_subject_text_is(&n->s, "direction", "reverse"), acts);
    }
    writer *w = &r.w;
    const bool two = r.directions == 2;
    put(w, two ? "ya = Concat <axis = 1> (yu0, yu1)  " : "ya = Identity (yu0)  ");
    put(w, r.batch_first ? "Y = Transpose <perm = [2, 0, 1, 3]> (ya)  " : "Y = Identity (ya)  ");
    put(w, two ? "Y_h = Concat <axis = %d> (hu0, hu1)  " : "Y_h = Identity (hu0)  ", r.batch_first);
    if (r.lstm)
        put(w, two ? "Y_c = Concat <axis = %d> (cu0, cu1)  " : "Y_c = Identity (cu0)  ", r.batch_first);
    return finish(w, text);
}

/* ---- attention ---- */

/* [batch, length, heads * size] as [batch, heads, length, size]. */
static void put_heads(writer *w, const char *name, const char *from, const char *heads, bool three)
{
    if (three)
        put(w,
            "%s_h = Constant <value_int: int = @%s> ()  %s_l = Reshape (%s_h, one_list)  %s_s = Concat <axis = 0> (same2, %s_l, rest)  %s_4 = Reshape (%s, %s_s)  "
            "%s = Transpose <perm = [0, 2, 1, 3]> (%s_4)  ",
            name, heads, name, name, name, name, name, from, name, name, name);
    else
        put(w, "%s = Identity (%s)  ", name, from);
}

/* Heads that share keys form an axis of their own when scores are computed. */
WRITE(attention)
{
    writer w = writer_of(n);
    int64_t causal = 0, left = -1, right = -1, mode = 0;
    float cap = 0;
    const int rank = onxi_subject_rank(&n->s, 0), mask = onxi_subject_dtype(&n->s, 3);
    (void)onxi_subject_float(&n->s, "softcap", &cap);
    (void)onxi_subject_int(&n->s, "is_causal", &causal);
    (void)onxi_subject_int(&n->s, "left_window_size", &left);
    (void)onxi_subject_int(&n->s, "right_window_size", &right);
    (void)onxi_subject_int(&n->s, "qk_matmul_output_mode", &mode);
    if (rank != 3 && rank != 4)
        return onxi_grad_fail(n->g, n->s.node, "the gradient of Attention needs the rank of Q");
    if (left >= 0 || right >= 0 || cap != 0.0f || (onxi_subject_has(&n->s, 6) && causal) ||
        (onxi_subject_outputs(&n->s) > 3 && mode != 0))
        return onxi_grad_fail(
            n->g, n->s.node,
            "there is no gradient of Attention with windows, softcap, is_causal beside nonpad_kv_seqlen, or a qk_matmul_output_mode");
    const bool three = rank == 3, past = onxi_subject_has(&n->s, 4);
    put(&w,
        "one_list = Constant <value_ints = [1]> ()  same2 = Constant <value_ints = [0, 0]> ()  rest = Constant <value_ints = [-1]> ()  first = Constant <value_ints = [0]> ()  two = Constant <value_ints = [2]> ()  ");
    put_heads(&w, "q", "Q", "q_num_heads", three);
    put_heads(&w, "k0", "K", "kv_num_heads", three);
    put_heads(&w, "v0", "V", "kv_num_heads", three);
    put(&w, past ? "k = Concat <axis = 2> (past_key, k0)  v = Concat <axis = 2> (past_value, v0)  "
                 : "k = Identity (k0)  v = Identity (v0)  ");
    put(&w,
        "present_key = Identity (k)  present_value = Identity (v)  bk = Shape <start = 0, end = 2> (k)  ql = Shape <start = 2> (q)  qs = Concat <axis = 0> (bk, rest, ql)  "
        "q5 = Reshape (q, qs)  k5 = Unsqueeze (k, two)  v5 = Unsqueeze (v, two)  ");
    if (onxi_subject_given(&n->s, "scale"))
        put(&w, "f0 = Constant <value_float: float = @scale> ()  f = CastLike (f0, Q)  ");
    else
        put(&w,
            "d0 = Shape <start = 3> (q)  d1 = Squeeze (d0, first)  d2 = CastLike (d1, Q)  d3 = Sqrt (d2)  f = Reciprocal (d3)  ");
    put(&w,
        "qf = Mul (q5, f)  kt = Transpose <perm = [0, 1, 2, 4, 3]> (k5)  s5 = MatMul (qf, kt)  ss = Shape (s5)  qh = Shape <start = 0, end = 3> (q)  ks = Shape <start = 2, end = 3> (k)  "
        "s4s = Concat <axis = 0> (qh, ks)  s0 = Reshape (s5, s4s)  ");
    put(&w, "qk_matmul_output = Identity (s0)  ");
    if (onxi_subject_has(&n->s, 3) || causal || onxi_subject_has(&n->s, 6))
        put(&w, "low0 = Constant <value_float = %s> ()  low = CastLike (low0, Q)  ",
            onxi_subject_has(&n->s, 6) ? "-1e30" : "-inf");
    if (onxi_subject_has(&n->s, 3))
        put(&w, mask == ONX_BOOL ? "s1 = Where (attn_mask, s0, low)  " : "s1 = Add (s0, attn_mask)  ");
    else
        put(&w, "s1 = Identity (s0)  ");
    if (causal) {
        put(&w,
            "lq = Shape <start = 2, end = 3> (q)  square = Concat <axis = 0> (lq, ks)  t0 = ConstantOfShape <value = int64[1] {1}> (square)  ");
        put(&w,
            past
                ? "pl = Shape <start = 2, end = 3> (past_key)  p0 = Squeeze (pl, first)  t1 = Trilu <upper = 0> (t0, p0)  "
                : "t1 = Trilu <upper = 0> (t0)  ");
        put(&w, "t = Cast <to = 9> (t1)  s2 = Where (t, s1, low)  ");
    } else if (onxi_subject_has(&n->s, 6)) {
        put(&w,
            "zero_i = Constant <value_int = 0> ()  one_i = Constant <value_int = 1> ()  end = Squeeze (ks, first)  r = Range (zero_i, end, one_i)  others = Constant <value_ints = [1, 2, 3]> ()"
            "  lens = Unsqueeze (nonpad_kv_seqlen, others)  t = Less (r, lens)  s2 = Where (t, s1, low)  ");
    } else {
        put(&w, "s2 = Identity (s1)  ");
    }
    if (onxi_subject_has(&n->s, 6)) /* a sequence of length 0 has no scores */
        put(&w,
            "none0 = Constant <value = double {0.0}> ()  none = CastLike (none0, Q)  p0 = Softmax <axis = -1> (s2)  p = Where (t, p0, none)  ");
    else
        put(&w, "p = Softmax <axis = -1> (s2)  ");
    put(&w,
        "p5 = Reshape (p, ss)  y5 = MatMul (p5, v5)  y4s0 = Shape <start = 3> (v)  y4s = Concat <axis = 0> (qh, y4s0)  y4 = Reshape (y5, y4s)  ");
    put(&w,
        three
            ? "yt = Transpose <perm = [0, 2, 1, 3]> (y4)  y3s = Concat <axis = 0> (same2, rest)  Y = Reshape (yt, y3s)"
            : "Y = Identity (y4)");
    return finish(&w, text);
}

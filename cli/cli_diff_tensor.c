/* cli_diff_tensor.c - compares the elements of two tensors, whatever fields or files contain them. */
#include "cli_diff.h"

#include <onx/tensor.h>

#include <math.h>

enum { CHUNK = 4096 };

static onx_str type_text(cli_diff *d, const onx_tensor *t)
{
    char text[512];
    const char *name = onx_dtype_name(t->data_type);
    size_t at = (size_t)snprintf(text, sizeof(text), "%s", name ? name : "unknown type");
    for (uint32_t i = 0; i < t->dims_count && at < sizeof(text) - 24; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%c%lld", i ? ',' : '[', (long long)t->dims[i]);
    return cli_diff_format(d, "%s%s", text, t->dims_count ? "]" : "");
}

static bool same_shape(const onx_tensor *a, const onx_tensor *b)
{
    return a->data_type == b->data_type && a->dims_count == b->dims_count &&
           (a->dims_count == 0 || memcmp(a->dims, b->dims, a->dims_count * sizeof(int64_t)) == 0);
}

static void note(const cli_diff *d, cli_tensor_difference *out, uint64_t index, double distance, double magnitude)
{
    if (isfinite(distance) && distance <= d->atol + d->rtol * magnitude)
        return;
    double relative = isfinite(distance) ? distance / magnitude : INFINITY;
    if (out->differing++ == 0)
        out->first = index;
    if (distance > out->max_abs)
        out->max_abs = distance;
    if (relative > out->max_rel)
        out->max_rel = relative;
}

/* NaN equals NaN and nothing else. */
static void compare_f64(const cli_diff *d, cli_tensor_difference *out, uint64_t first, const double *a, const double *b,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
            continue;
        double distance = fabs(a[i] - b[i]);
        note(d, out, first + i, isnan(distance) ? INFINITY : distance, fabs(a[i]));
    }
}

/* The difference of 64-bit integers is computed in integers, because a double cannot represent them exactly. */
static void compare_i64(const cli_diff *d, cli_tensor_difference *out, onx_str a, onx_str b, bool is_signed)
{
    for (uint64_t i = 0; i < out->elements; i++) {
        uint64_t x, y;
        memcpy(&x, a.ptr + 8 * i, 8);
        memcpy(&y, b.ptr + 8 * i, 8);
        if (x == y)
            continue;
        bool less = is_signed ? (int64_t)x < (int64_t)y : x < y;
        note(d, out, i, (double)(less ? y - x : x - y), fabs(is_signed ? (double)(int64_t)x : (double)x));
    }
}

static void compare_complex(const cli_diff *d, cli_tensor_difference *out, onx_str a, onx_str b, bool wide)
{
    for (uint64_t i = 0; i < out->elements; i++) {
        double x[2], y[2];
        if (wide) {
            memcpy(x, a.ptr + 16 * i, 16);
            memcpy(y, b.ptr + 16 * i, 16);
        } else {
            float fx[2], fy[2];
            memcpy(fx, a.ptr + 8 * i, 8);
            memcpy(fy, b.ptr + 8 * i, 8);
            x[0] = (double)fx[0], x[1] = (double)fx[1], y[0] = (double)fy[0], y[1] = (double)fy[1];
        }
        double distance = hypot(x[0] - y[0], x[1] - y[1]);
        bool both_nan = (isnan(x[0]) || isnan(x[1])) && (isnan(y[0]) || isnan(y[1]));
        if (distance != 0 && !both_nan)
            note(d, out, i, isnan(distance) ? INFINITY : distance, hypot(x[0], x[1]));
    }
}

static onx_status compare_text(const onx_tensor *a, const onx_tensor *b, cli_tensor_difference *out)
{
    for (uint64_t i = 0; i < out->elements; i++) {
        onx_str x, y;
        ONX_TRY(onx_tensor_get_text(a, i, &x));
        ONX_TRY(onx_tensor_get_text(b, i, &y));
        if (!onx_str_equal(x, y) && out->differing++ == 0)
            out->first = i;
    }
    return ONX_OK;
}

static onx_status compare(cli_diff *d, const onx_tensor *a, const onx_tensor *b, cli_tensor_difference *out,
                          bool *same_bits)
{
    *out = (cli_tensor_difference){ 0 };
    *same_bits = false;
    if (!onx_tensor_count(a, &out->elements))
        return ONX_E_INVALID;
    if (a->data_type == ONX_STRING)
        return compare_text(a, b, out);
    onx_str x, y;
    ONX_TRY(onx_tensor_bytes(d->a, a, &x));
    ONX_TRY(onx_tensor_bytes(d->b, b, &y));
    *same_bits = onx_str_equal(x, y);
    if (*same_bits)
        return ONX_OK;
    if (a->data_type == ONX_INT64 || a->data_type == ONX_UINT64) {
        compare_i64(d, out, x, y, a->data_type == ONX_INT64);
        return ONX_OK;
    }
    if (onx_dtype_class_of(a->data_type) == ONX_CLASS_COMPLEX) {
        compare_complex(d, out, x, y, a->data_type == ONX_COMPLEX128);
        return ONX_OK;
    }
    double left[CHUNK], right[CHUNK];
    for (uint64_t first = 0; first < out->elements; first += CHUNK) {
        uint64_t count = out->elements - first < CHUNK ? out->elements - first : CHUNK;
        ONX_TRY(onx_tensor_get_f64(d->a, a, first, count, left));
        ONX_TRY(onx_tensor_get_f64(d->b, b, first, count, right));
        compare_f64(d, out, first, left, right, (size_t)count);
    }
    return ONX_OK;
}

/* In JSON as members, otherwise one line of text. */
static void say_difference(cli_diff *d, onx_str where, onx_str name, const cli_tensor_difference *t, bool is_text)
{
    if (d->json) {
        cli_json_open(&d->out, NULL, '{');
        cli_json_cstr(&d->out, "what", "changed");
        cli_json_text(&d->out, "where", where);
        cli_json_text(&d->out, "name", name);
        cli_json_uint(&d->out, "elements", t->elements);
        cli_json_uint(&d->out, "differing", t->differing);
        cli_json_uint(&d->out, "first", t->first);
        if (!is_text) {
            cli_json_real(&d->out, "max_abs", t->max_abs);
            cli_json_real(&d->out, "max_rel", t->max_rel);
        }
        cli_json_close(&d->out, '}');
        d->count++;
        return;
    }
    onx_str counts = cli_diff_format(d, "%s of %s elements differ, first at %llu", cli_thousands(t->differing).text,
                                     cli_thousands(t->elements).text, (unsigned long long)t->first);
    onx_str sizes =
        is_text ? onx_str_of("") : cli_diff_format(d, ", max abs %.3g, max rel %.3g", t->max_abs, t->max_rel);
    cli_diff_say(d, '~', where, name, cli_diff_format(d, "%.*s%.*s", ONX_ARG(counts), ONX_ARG(sizes)), onx_str_of(""));
}

void cli_diff_tensor(cli_diff *d, onx_str where, onx_str name, const onx_tensor *a, const onx_tensor *b)
{
    if (!same_shape(a, b)) {
        cli_diff_say(d, '~', where, name, type_text(d, a), type_text(d, b));
        return;
    }
    cli_tensor_difference t;
    bool same_bits;
    onx_status status = compare(d, a, b, &t, &same_bits);
    if (status != ONX_OK) {
        d->failure = status;
        return;
    }
    if (t.differing)
        say_difference(d, where, name, &t, a->data_type == ONX_STRING);
    else if (!same_bits && a->data_type != ONX_STRING && d->atol == 0 && d->rtol == 0)
        cli_diff_say(d, '~', where, name, onx_str_of("equal values, but not the same bits"), onx_str_of(""));
}

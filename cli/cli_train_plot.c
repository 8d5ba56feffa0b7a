/* cli_train_plot.c - plots the loss curves of `onx train`, on a logarithmic scale if the losses span a large range. */
#include "cli_train.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

enum { WIDTH = 640, HEIGHT = 360, LEFT = 70, RIGHT = 20, TOP = 20, BOTTOM = 40, PIECE_MAX = 200 };

typedef struct drawing {
    const cli_curve *points;
    uint64_t count;
    double low, high; /* of the axis */
    bool logarithmic;
    char *text;
    size_t len, room;
    bool failed;
} drawing;

static void put(drawing *d, const char *format, ...) ONX_PRINTF(2, 3);
static void put(drawing *d, const char *format, ...)
{
    va_list list;
    if (d->room - d->len < PIECE_MAX) {
        char *more = realloc(d->text, 2 * d->room + 4096);
        if (!more) {
            d->failed = true;
            return;
        }
        d->text = more;
        d->room = 2 * d->room + 4096;
    }
    va_start(list, format);
    const int n = vsnprintf(d->text + d->len, PIECE_MAX, format, list);
    va_end(list);
    d->len += n < 0 ? 0 : n < PIECE_MAX ? (size_t)n : PIECE_MAX - 1u;
}

static double on_axis(const drawing *d, double y)
{
    return d->logarithmic ? log10(y) : y;
}

static double x_of(const drawing *d, uint64_t epoch)
{
    const double first = (double)d->points[0].epoch, last = (double)d->points[d->count - 1].epoch;
    return LEFT + (WIDTH - LEFT - RIGHT) * (last > first ? ((double)epoch - first) / (last - first) : 0.5);
}

static double y_of(const drawing *d, double value)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (on_axis(d, value) - d->low) / (d->high - d->low);
}

static double value_of(const cli_curve *point, bool validation)
{
    return validation ? point->validation : point->loss;
}

static void scale(drawing *d)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (uint64_t i = 0; i < 2 * d->count; i++) {
        const double value = value_of(&d->points[i / 2], i % 2);
        if (isfinite(value)) {
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
    }
    d->logarithmic = low > 0 && high > 20 * low;
    if (!(low < high)) {
        low = isfinite(low) ? low - 0.5 : 0;
        high = low + 1;
    }
    d->low = on_axis(d, low);
    d->high = on_axis(d, high);
}

static void put_axes(drawing *d)
{
    enum { TICKS = 4 };
    for (int i = 0; i <= TICKS; i++) {
        const double at = d->low + (d->high - d->low) * i / TICKS, value = d->logarithmic ? pow(10, at) : at;
        const double y = HEIGHT - BOTTOM - (double)(HEIGHT - TOP - BOTTOM) * i / TICKS;
        put(d, "<path stroke=\"#ddd\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        put(d, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n", LEFT - 8, y + 4, value);
    }
    const uint64_t first = d->points[0].epoch, last = d->points[d->count - 1].epoch;
    const uint64_t some[] = { first, first + (last - first) / 2, last };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (!i || some[i] != some[i - 1])
            put(d, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%llu</text>\n", x_of(d, some[i]),
                HEIGHT - BOTTOM + 18, (unsigned long long)some[i]);
    put(d, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">epoch</text>\n", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
}

/* Draws a line through the points, a dot at each end, and its label. */
static void put_curve(drawing *d, bool validation, const char *color, const char *name)
{
    const cli_curve *last = NULL;
    for (uint64_t i = 0; i < d->count; i++) {
        const cli_curve *p = &d->points[i];
        if (!isfinite(value_of(p, validation)))
            continue;
        if (!last)
            put(d, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" d=\"", color);
        put(d, "%c%.1f %.1f", last ? 'L' : 'M', x_of(d, p->epoch), y_of(d, value_of(p, validation)));
        last = p;
    }
    if (!last)
        return;
    put(d, "\"/>\n<circle r=\"3\" fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\"/>\n", color, x_of(d, last->epoch),
        y_of(d, value_of(last, validation)));
    put(d, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", WIDTH - RIGHT - (validation ? 90 : 150), TOP - 6, color,
        name);
}

onx_status cli_train_plot(cli_call *call, const char *path, const cli_curve *points, uint64_t count)
{
    drawing d = { .points = points, .count = count };
    if (!count)
        return ONX_OK;
    scale(&d);
    put(&d,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        WIDTH, HEIGHT);
    put_axes(&d);
    put_curve(&d, false, "#1f77b4", "loss");
    put_curve(&d, true, "#d62728", "validation");
    put(&d, "</svg>\n");
    if (d.failed)
        cli_error(call, "out of memory");
    const onx_status status = d.failed ? ONX_E_MEMORY : cli_train_save_bytes(call, path, onx_str_make(d.text, d.len));
    free(d.text);
    return status;
}

/* boxes.c - DrawBoundingBoxes: draws frames around detected objects into an image. */
#include "kernel/contrib/contrib.h"
#include "kernel/core/pace.h"
#include "kernel/core/sort.h"

#include <math.h>

enum { COLORS = 10, BOX = 6 }; /* a box has four coordinates, a score and a class */

/* Blue, green, red. */
static const uint8_t colors[COLORS][3] = { { 0, 0, 255 },   { 0, 255, 255 }, { 0, 255, 0 },   { 255, 0, 0 },
                                           { 255, 255, 0 }, { 255, 0, 255 }, { 0, 128, 255 }, { 0, 0, 128 },
                                           { 0, 128, 0 },   { 128, 0, 0 } };

typedef enum place { CORNERS, SIZED, CENTERED } place;

typedef struct params {
    place place;
    int64_t thickness;
    bool by_class;
} params;

static onx_status boxes_prepare(onx_prepare *p)
{
    static const onxi_word words[] = { { "XYXY", 1, 0 }, { "XYWH", 1, 0 }, { "CENTER_XYWH", 1, 0 } };
    const onx_value *x = p->inputs[0], *boxes = p->inputs[1];
    const int mode = onxi_prepare_word(p, "mode", words, 3);
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (params){ .place = (place)mode,
                   .thickness = onx_prepare_int(p, "thickness"),
                   .by_class = onx_prepare_int(p, "colour_by_classes") > 0 };
    if (mode < 0 || q->thickness < 1)
        return onx_prepare_fail(p, ONX_E_INVALID, "thickness is %lld, expected at least 1, or there is no such mode",
                                (long long)q->thickness);
    if (x->rank != 3 || x->dims[2] != 3 || boxes->rank != 2 || boxes->dims[1] != BOX)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "the shape of the image is not [height,width,3], or that of the boxes not [n,6]");
    p->params = q;
    p->rows = 1;
    return ONX_OK;
}

typedef struct image {
    uint8_t *pixels;
    int64_t height, width;
    onxi_pace *pace;
} image;

static void paint(const image *m, int64_t left, int64_t top, int64_t right, int64_t bottom, const uint8_t *color)
{
    for (int64_t y = top; y < bottom && y < m->height && !onxi_pace_stops(m->pace, 2 * (uint64_t)m->width); y++)
        for (int64_t x = left; x < right && x < m->width; x++)
            memcpy(m->pixels + 3 * (y * m->width + x), color, 3);
}

static int64_t within(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static int64_t whole(float v, int64_t high)
{
    return (int64_t)fminf(fmaxf(roundf(v), 0), (float)high);
}

/* The coordinates of a box's frame, clipped to the image; false: nothing is visible. */
static bool frame_of(const params *q, const image *m, const float *box, int64_t *thickness, int64_t at[4])
{
    float x0 = box[0], y0 = box[1], x1 = box[2], y1 = box[3];
    if (isnan(x0) || isnan(y0) || isnan(x1) || isnan(y1) || !m->width || !m->height)
        return false;
    if (q->place != CORNERS) {
        const float part = q->place == CENTERED ? 0.5f : 0;
        x0 = box[0] - part * box[2];
        y0 = box[1] - part * box[3];
        x1 = box[0] + (1 - part) * box[2];
        y1 = box[1] + (1 - part) * box[3];
    }
    at[2] = whole(x1, m->width - 1);
    at[3] = whole(y1, m->height - 1);
    at[0] = whole(x0, at[2]);
    at[1] = whole(y0, at[3]);
    const int64_t least = at[2] - at[0] < at[3] - at[1] ? at[2] - at[0] : at[3] - at[1];
    *thickness = q->thickness < least ? q->thickness : least;
    if (*thickness < 1)
        return false;
    if (*thickness != least) { /* half of the frame is outside of the box */
        const int64_t half = *thickness / 2;
        at[0] -= half;
        at[1] -= half;
        at[2] += *thickness - half;
        at[3] += *thickness - half;
    }
    at[2] = within(at[2], 0, m->width - 1);
    at[3] = within(at[3], 0, m->height - 1);
    at[0] = within(at[0], 0, at[2]);
    at[1] = within(at[1], 0, at[3]);
    return true;
}

static void draw(const params *q, const image *m, const float *box, const uint8_t *color)
{
    int64_t at[4], n;
    if (!frame_of(q, m, box, &n, at))
        return;
    paint(m, at[0], at[1], at[2], at[1] + n, color);
    paint(m, at[0], at[1], at[0] + n, at[3], color);
    paint(m, at[0], at[3] - n, at[2], at[3], color);
    paint(m, at[2] - n, at[1], at[2], at[3], color);
}

typedef struct ranked {
    const float *box;
    uint64_t color;
} ranked;

/* The highest score first; NaN last. */
static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    const float s = isnan(x->box[4]) ? -INFINITY : x->box[4], t = isnan(y->box[4]) ? -INFINITY : y->box[4];
    return (s < t) - (s > t);
}

static int by_color(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->color > y->color) - (x->color < y->color);
}

/* Assigns colors to classes in the order of their best scores, and sorts by color. Boxes of classes without a color
 * are dropped. */
static uint64_t color_classes(ranked *list, ranked *room, uint64_t count, onxi_pace *pace)
{
    float classes[COLORS];
    uint64_t known = 0, kept = 0;
    for (uint64_t i = 0; i < count && !onxi_pace_stops(pace, COLORS); i++) {
        const float class = list[i].box[5];
        uint64_t k = 0;
        while (k < known && classes[k] != class)
            k++;
        if (k == COLORS)
            continue;
        if (k == known)
            classes[known++] = class;
        list[kept++] = (ranked){ list[i].box, k };
    }
    return onxi_sort(pace, list, room, kept, sizeof *list, by_color) ? kept : 0;
}

static onx_status boxes_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const params *q = work->params;
    const onx_value *x = work->inputs[0], *boxes = work->inputs[1];
    onxi_pace pace = { .work = work };
    const image m = { work->outputs[0]->data, x->dims[0], x->dims[1], &pace };
    uint64_t count = (uint64_t)boxes->dims[0];
    ranked *list = onxi_arena_array(work->text, count + 1, 2 * sizeof *list), *room = list ? list + count + 1 : NULL;
    if (!list)
        return ONX_E_MEMORY;
    if (x->count)
        onxi_pace_copy(work, m.pixels, x->data, x->count);
    for (uint64_t i = 0; i < count; i++)
        list[i] = (ranked){ (const float *)boxes->data + i * BOX, 0 };
    if (!onxi_sort(&pace, list, room, count, sizeof *list, by_score))
        return ONX_E_CANCELLED;
    if (q->by_class)
        count = color_classes(list, room, count, &pace);
    else
        count = count < COLORS ? count : COLORS;
    while (count-- > 0) { /* the most important box is drawn last */
        if (onxi_pace_stops(&pace, 64))
            return ONX_E_CANCELLED;
        ONX_TRY(onxi_ctx_go_on(work->cx));
        draw(q, &m, list[count].box, colors[q->by_class ? list[count].color : count]);
    }
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_boxes[] = {
    CONTRIB_KERNEL("DrawBoundingBoxes", .prepare = boxes_prepare, .run = boxes_run),
    { 0 },
};

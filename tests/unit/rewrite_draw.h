/* rewrite_draw.h - operands of a rule that are drawn: each axis full, 1 or (for all operands) of another size, fewer or
 * more axes, and elements that are NaN, infinite or 0. */
#ifndef REWRITE_DRAW_H
#define REWRITE_DRAW_H

#include "rewrite_model.h"

#include <math.h>

static uint32_t draw_state = 1;
static uint32_t draw(uint32_t below)
{
    draw_state = draw_state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (uint32_t)((uint64_t)(draw_state >> 4) * below >> 28);
}

/* How many inputs the pattern has. */
static uint32_t inputs_of_rule(const onxi_rewrite_row *rule)
{
    const char *at = strchr(rule->pattern, '(') + 1, *close = strchr(at, ')');
    uint32_t count = 0;
    for (int len; (at = next_name(at, close, &len)) != NULL; at += len)
        count++;
    return count;
}

/* Dims of the inputs of a rule, made from dims that it is for; those that are values of lists stay, but for sizes that
 * all of them have. `count` is the number of inputs. */
static void draw_dims(const onxi_rewrite_row *rule, const int64_t (*from)[8], uint32_t count, int64_t (*to)[8])
{
    const char *at = strchr(rule->pattern, '('), *close = strchr(at, ')');
    int64_t gone = -2, instead = 0;
    int len = 0;
    at++;
    if (draw(4) == 0) { /* a size, wherever it is, becomes 0 or 1 */
        const uint32_t input = draw(3);
        uint32_t rank = 0;
        while (from[input][rank] >= 0)
            rank++;
        gone = rank ? from[input][draw(rank)] : gone;
        instead = draw(2);
    }
    for (uint32_t i = 0; i < count; i++) {
        at = next_name(at, close, &len);
        assert_non_null(at);
        const bool list = is_list(at, len);
        uint32_t rank = 0, first = 0, n = 0;
        at += len;
        while (from[i][rank] >= 0)
            rank++;
        if (!list && draw(4) == 0)
            first = draw(rank + 1);
        if (!list && !first && rank < 5 && draw(8) == 0)
            to[i][n++] = draw(4) ? 1 : 2;
        for (uint32_t d = first; d < rank; d++) {
            const int64_t size = from[i][d] == gone ? instead : from[i][d];
            to[i][n++] = !list && draw(4) == 0 ? 1 : size;
        }
        to[i][n] = -1;
    }
}

/* One element: in a third of the trials there are NaN, infinities and zeros among them. */
typedef enum drawn { DRAWN_FINITE, DRAWN_FEW, DRAWN_MANY } drawn;
static double draw_number(drawn kind)
{
    const uint32_t special = kind == DRAWN_FINITE ? 99 : draw(kind == DRAWN_FEW ? 60 : 6);
    const double x = ((double)draw(61) - 30) / 8;
    return special == 0 ? -INFINITY : special == 1 ? INFINITY : special == 2 ? NAN : special == 3 ? 0 : x;
}
static drawn draw_kind(void)
{
    const uint32_t of = draw(6);
    return of < 2 ? (drawn)(of + 1) : DRAWN_FINITE;
}

#endif

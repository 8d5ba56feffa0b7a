/* share.h - a part of many generated cases, for builds in which each takes long (sanitizers) or differs little from
 * another build that tests all of them. The environment variable ONX_TEST_SHARE=n, which CMakePresets.json sets, means
 * one of n. */
#ifndef TESTS_SHARE_H
#define TESTS_SHARE_H

#include <stdbool.h>
#include <stdlib.h>

static inline unsigned share_step(void)
{
    const char *text = getenv("ONX_TEST_SHARE");
    const unsigned long step = text ? strtoul(text, NULL, 10) : 1;
    return step > 1 && step < 1000 ? (unsigned)step : 1;
}

/* Is the case of that number among those to be tested? */
static inline bool share_has(unsigned number)
{
    return number % share_step() == 0;
}

#endif

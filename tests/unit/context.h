/* context.h - for tests that need only a context: cx, created and freed once for the whole group. Include it last, so
 * that no header conflicts with a global of that name. */
#ifndef TESTS_CONTEXT_H
#define TESTS_CONTEXT_H

#include <onx/base.h>

static onx_ctx *cx;

static int set_up(void **state)
{
    (void)state;
    cx = onx_ctx_new(NULL);
    return cx ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    onx_ctx_free(cx);
    return 0;
}

#endif

/* file_fixture.h - a context and a folder for each test. Include after cmocka.h. */
#ifndef TESTS_FILE_FIXTURE_H
#define TESTS_FILE_FIXTURE_H

#include <onx/base.h>

#include "unit/folder.h"

typedef struct fixture {
    onx_ctx *cx;
    char dir[FOLDER_ROOM];
    const char *path; /* what `at` gave last */
    char paths[4][256];
    unsigned turn;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f || !folder_make(f->dir))
        return -1;
    f->cx = onx_ctx_new(NULL);
    *state = f;
    return f->cx ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    int status = folder_remove(f->dir);
    onx_ctx_free(f->cx);
    free(f);
    return status;
}

/* The path of a file in the folder; good for four calls. */
static const char *at(fixture *f, const char *name)
{
    char *path = f->paths[f->turn++ % 4];
    snprintf(path, sizeof f->paths[0], "%s/%s", f->dir, name);
    return f->path = path;
}

#endif

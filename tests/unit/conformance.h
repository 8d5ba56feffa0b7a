/* conformance.h - the cases of the reference implementation: those in ONX_CONFORMANCE_DIR, else those of Debian's
 * libonnx-testdata. */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CONFORMANCE_PATH = 4096, CONFORMANCE_SKIPPED = 77 };

/* NULL, with the reason said, when there are none: the program then ends with CONFORMANCE_SKIPPED. */
static inline const char *conformance_dir(void)
{
    struct stat st;
    const char *dir = getenv("ONX_CONFORMANCE_DIR");
    if (!dir || !*dir)
        dir = "/usr/share/libonnx-testdata/data";
    if (stat(dir, &st) == 0)
        return dir;
    fprintf(stderr, "skipped: no conformance data (ONX_CONFORMANCE_DIR or Debian's libonnx-testdata)\n");
    return NULL;
}

/* Visits every folder with a model.onnx, at most four levels down; what lies below such a folder is its own. */
static inline void conformance_walk(const char *dir, int depth,
                                    void (*visit)(void *user, const char *dir, const char *model), void *user)
{
    char path[CONFORMANCE_PATH];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/model.onnx", dir);
    if (n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0) {
        visit(user, dir, path);
        return;
    }
    DIR *d = depth < 4 ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        n = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.' && n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            conformance_walk(path, depth + 1, visit, user);
    }
    if (d)
        closedir(d);
}

#endif

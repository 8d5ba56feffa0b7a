/* cli_files.c - searches folders for files. */
#include "cli_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 64 }; /* maximum nesting of folders */

bool cli_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *cli_join(const cli_call *call, const char *dir, const char *name)
{
    size_t n = strlen(dir), room = n + strlen(name) + 2;
    char *out = malloc(room);
    if (out)
        snprintf(out, room, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    else
        cli_error(call, "out of memory");
    return out;
}

typedef struct search {
    const cli_call *call;
    bool (*wanted)(const char *name);
    void (*found)(void *user, const char *path);
    void *user;
} search;

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool search_folder(const search *s, const char *dir, unsigned depth)
{
    struct dirent **list = NULL;
    if (depth > DEPTH_MAX) {
        cli_error(s->call, "%s: folders are nested deeper than %d", dir, DEPTH_MAX);
        return false;
    }
    int n = scandir(dir, &list, not_hidden, alphasort);
    if (n < 0) {
        cli_error(s->call, "cannot read the folder %s: %s", dir, strerror(errno));
        return false;
    }
    bool good = true;
    for (int i = 0; i < n; i++) {
        char *path = cli_join(s->call, dir, list[i]->d_name);
        struct stat st;
        if (!path)
            good = false;
        else if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            good &= search_folder(s, path, depth + 1);
        else if (s->wanted(list[i]->d_name) && !cli_is_folder(path))
            s->found(s->user, path);
        free(path);
        free(list[i]);
    }
    free(list);
    return good;
}

bool cli_each_file(const cli_call *call, const char *path, bool (*wanted)(const char *name),
                   void (*found)(void *user, const char *path), void *user)
{
    const search s = { .call = call, .wanted = wanted, .found = found, .user = user };
    if (cli_is_folder(path))
        return search_folder(&s, path, 0);
    found(user, path);
    return true;
}

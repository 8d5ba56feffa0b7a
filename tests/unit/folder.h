/* folder.h - for tests with files: a folder for each test, which is removed afterwards. Include after cmocka.h. */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDER_ROOM = 64 };

/* False when there is none. */
static inline bool folder_make(char dir[FOLDER_ROOM])
{
    strcpy(dir, "/tmp/onx_test_XXXXXX");
    return mkdtemp(dir) != NULL;
}

static inline int folder_remove(const char *dir)
{
    char command[FOLDER_ROOM + 16];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static inline size_t folder_entries(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

static inline void put_bytes(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static inline void put_text(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

#endif

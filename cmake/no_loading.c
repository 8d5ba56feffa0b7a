/* no_loading.c - for the program that is linked statically: a C library in an archive cannot load shared libraries, so
 * nothing is loaded, and whoever asks is told. */
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *file, int mode)
{
    (void)file;
    (void)mode;
    return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    (void)handle;
    (void)name;
    return NULL;
}

int dlclose(void *handle)
{
    (void)handle;
    return 0;
}

char *dlerror(void)
{
    static char why[] = "this program is linked statically and loads nothing";
    return why;
}

int dladdr(const void *address, Dl_info *info)
{
    (void)address;
    (void)info;
    return 0;
}

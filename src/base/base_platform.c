/* base_platform.c - differences between operating systems, and replacements for what they lack. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/openat2.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(__linux__) || defined(__APPLE__) || defined(__EMSCRIPTEN__)
#include <sys/random.h> /* on Apple's systems and Emscripten, only getentropy is used from it */
#endif
/* A WebAssembly program cannot load libraries at run time: Emscripten's functions for this terminate the program. */
#ifndef __EMSCRIPTEN__
#include <dlfcn.h>
#endif

/* ---- files ---- */

int onxi_platform_folder_flags(void)
{
#ifdef O_PATH
    return O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
    return O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif
}

int onxi_platform_open_beneath(int dir, const char *path, int flags)
{
#ifdef SYS_openat2
    struct open_how how = { .flags = (uint64_t)(unsigned)flags,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    long fd = -1;
    for (int tries = 0; tries < 16 && fd < 0; tries++) { /* EAGAIN: a component was renamed meanwhile */
        fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd < 0 && errno != EAGAIN && errno != EINTR)
            break;
    }
    return (int)fd;
#else
    (void)dir, (void)path, (void)flags;
    errno = ENOSYS;
    return -1;
#endif
}

int onxi_platform_open_nameless(int dir, int flags, unsigned mode)
{
#if defined(O_TMPFILE) && defined(__linux__)
    return openat(dir, ".", flags | O_TMPFILE | O_CLOEXEC, (mode_t)mode);
#else
    (void)dir, (void)flags, (void)mode;
    errno = ENOTSUP;
    return -1;
#endif
}

bool onxi_platform_path_of(int fd, char *path, size_t size)
{
#if defined(__linux__)
    const int n = snprintf(path, size, "/proc/self/fd/%d", fd);
    return n > 0 && (size_t)n < size;
#else
    (void)fd, (void)path, (void)size;
    return false;
#endif
}

int onxi_platform_same_file(int fd)
{
#ifdef __EMSCRIPTEN__
    return fcntl(fd, F_DUPFD, 0); /* no program can be executed, and F_DUPFD_CLOEXEC is unknown */
#else
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
#endif
}

int64_t onxi_platform_data_after(int fd, int64_t at)
{
#ifdef SEEK_DATA
    return lseek(fd, (off_t)at, SEEK_DATA);
#else
    (void)fd;
    return at;
#endif
}

/* ---- memory ---- */

bool onxi_platform_has_mappings(void)
{
#if ONXI_PLATFORM_ASAN || defined(__EMSCRIPTEN__)
    return false;
#else
    return true;
#endif
}

void *onxi_platform_remap(void *mapping, size_t old_size, size_t new_size)
{
#ifdef MREMAP_MAYMOVE
    void *moved = mremap(mapping, old_size, new_size, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
#else
    void *moved = mmap(NULL, new_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (moved == MAP_FAILED)
        return NULL;
    memcpy(moved, mapping, old_size < new_size ? old_size : new_size);
    munmap(mapping, old_size);
    return moved;
#endif
}

bool onxi_platform_lend(void *mapping, size_t size)
{
#if defined(MADV_FREE) && !defined(__EMSCRIPTEN__)
    return madvise(mapping, size, MADV_FREE) == 0;
#else
    (void)mapping, (void)size;
    return false;
#endif
}

void onxi_platform_advise_huge(void *ptr, size_t size)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(ptr, size, MADV_HUGEPAGE);
#else
    (void)ptr, (void)size;
#endif
}

void onxi_platform_advise_small(void *ptr, size_t size)
{
#ifdef MADV_NOHUGEPAGE
    (void)madvise(ptr, size, MADV_NOHUGEPAGE);
#else
    (void)ptr, (void)size;
#endif
}

static uint64_t thread_ns(void)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t onxi_platform_touch(void *page)
{
    const uint64_t start = thread_ns();
    *(volatile char *)page = 0;
    return thread_ns() - start;
}

void onxi_platform_advise_sequential(void *ptr, size_t size)
{
#ifdef MADV_SEQUENTIAL
    (void)madvise(ptr, size, MADV_SEQUENTIAL);
#else
    (void)ptr, (void)size;
#endif
}

void onxi_platform_advise_unneeded(void *ptr, size_t size)
{
    /* If a mapping is emulated by a copy, dropping its pages would lose the data. */
#if defined(MADV_DONTNEED) && !defined(__EMSCRIPTEN__)
    (void)madvise(ptr, size, MADV_DONTNEED);
#else
    (void)ptr, (void)size;
#endif
}

/* ---- random numbers ---- */

bool onxi_platform_random(void *out, size_t size, bool wait)
{
#if defined(__linux__)
    return getrandom(out, size, wait ? 0 : GRND_NONBLOCK) == (ssize_t)size;
#else
    (void)wait;
    return getentropy(out, size) == 0;
#endif
}

const void *onxi_platform_seed(void)
{
#if defined(__linux__)
    return (const void *)(uintptr_t)getauxval(AT_RANDOM);
#else
    return NULL;
#endif
}

/* ---- processors ---- */

unsigned onxi_platform_processors(void)
{
#if defined(__linux__)
    cpu_set_t set; /* processors beyond its size are ignored */
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

#if defined(__linux__)
/* The lines of /proc/cpuinfo that identify the first processor; other lines give its current speed. */
static bool is_about_model(const char *line)
{
    static const char *const names[] = { "vendor_id",       "cpu family",       "model",       "stepping",
                                         "CPU implementer", "CPU architecture", "CPU variant", "CPU part" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(line, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}
#endif

void onxi_platform_processor_model(char *out, size_t size)
{
    struct utsname system;
    snprintf(out, size, "%s", uname(&system) == 0 ? system.machine : "");
#if defined(__APPLE__)
    char brand[256];
    size_t room = sizeof brand;
    if (sysctlbyname("machdep.cpu.brand_string", brand, &room, NULL, 0) == 0)
        snprintf(out, size, "%s", brand);
#elif defined(__linux__)
    char line[256];
    size_t at = strlen(out);
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f) && line[0] != '\n')
        if (is_about_model(line) && at + strlen(line) < size) {
            memcpy(out + at, line, strlen(line) + 1);
            at += strlen(line);
        }
    if (f)
        fclose(f);
#endif
}

void onxi_platform_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool onxi_platform_preempted(uint64_t *seen)
{
#if defined(__linux__)
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) == 0) {
        const bool more = (uint64_t)usage.ru_nivcsw != *seen;
        *seen = (uint64_t)usage.ru_nivcsw;
        return more;
    }
#endif
    *seen = 0;
    return true;
}

bool onxi_platform_permit_tiles(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

/* ---- shared libraries ---- */

#ifdef __EMSCRIPTEN__

void *onxi_platform_library_open(const char *name, bool all_now)
{
    (void)name, (void)all_now;
    return NULL;
}

void *onxi_platform_library_open_beside(const void *address, const char *folder, const char *name)
{
    (void)address, (void)folder, (void)name;
    return NULL;
}

void *onxi_platform_library_find(void *library, const char *symbol)
{
    (void)library, (void)symbol;
    return NULL;
}

void onxi_platform_library_close(void *library)
{
    (void)library;
}

const char *onxi_platform_library_error(void)
{
    return "a program of WebAssembly loads no others";
}

void onxi_platform_library_keep(const void *address)
{
    (void)address;
}

void onxi_platform_library_show(const void *address)
{
    (void)address;
}

#else

void *onxi_platform_library_open(const char *name, bool all_now)
{
#ifdef __APPLE__ /* libpcre2-8.so.0 is libpcre2-8.0.dylib there */
    char file[64];
    const char *version = strstr(name, ".so.");
    if (version && !strchr(name, '/')) {
        snprintf(file, sizeof file, "%.*s.%s.dylib", (int)(version - name), name, version + 4);
        name = file;
    }
#endif
    return dlopen(name, (all_now ? RTLD_NOW : RTLD_LAZY) | RTLD_LOCAL);
}

/* The file that contains the code at this address, as a path without links. The dynamic linker knows a program by the
 * name under which it was called, which need not be a path. */
static bool file_of_code(const void *address, char *path)
{
    Dl_info here;
    if (!dladdr(address, &here) || !here.dli_fname)
        return false;
#ifdef __linux__
    if (!strchr(here.dli_fname, '/'))
        return realpath("/proc/self/exe", path);
#endif
    return realpath(here.dli_fname, path);
}

void *onxi_platform_library_open_beside(const void *address, const char *folder, const char *name)
{
    char file[PATH_MAX], path[PATH_MAX];
    if (!file_of_code(address, file))
        return NULL;
    *strrchr(file, '/') = '\0';
    const int length = snprintf(path, sizeof path, "%s/%s/%s", file, folder, name);
    return length < 0 || (size_t)length >= sizeof path ? NULL : onxi_platform_library_open(path, false);
}

void *onxi_platform_library_find(void *library, const char *symbol)
{
    return dlsym(library, symbol);
}

void onxi_platform_library_close(void *library)
{
    dlclose(library);
}

const char *onxi_platform_library_error(void)
{
    const char *why = dlerror();
    return why ? why : "the system does not say why";
}

void onxi_platform_library_keep(const void *address)
{
#ifdef RTLD_NODELETE
    Dl_info here;
    if (dladdr(address, &here) && here.dli_fname)
        dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#else
    (void)address;
#endif
}

void onxi_platform_library_show(const void *address)
{
    Dl_info here;
    void *self;
    if (dladdr(address, &here) && here.dli_fname &&
        (self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL)))
        dlclose(self);
}

#endif

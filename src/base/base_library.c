/* base_library.c - optional third-party libraries, loaded on first use and never unloaded. Nothing is linked against
 * them: a program that does not use them pays nothing, and a missing library is reported when it is needed. */
#include "base/base_process.h"

/* ---- the list ---- */

/* File names under which the dynamic linker knows the supported binary interfaces, newest first. */
#ifdef ONX_WITH_CRYPTO
#define CRYPTO_FILES "libcrypto.so.3", "libcrypto.so.1.1"
#else
#define CRYPTO_FILES NULL
#endif
#ifdef ONX_WITH_PCRE2
#define PCRE2_FILES "libpcre2-8.so.0"
#else
#define PCRE2_FILES NULL
#endif
#ifdef ONX_WITH_UTF8PROC
#define UTF8PROC_FILES "libutf8proc.so.3", "libutf8proc.so.2"
#else
#define UTF8PROC_FILES NULL
#endif
#ifdef ONX_WITH_LEPTONICA
#define LEPTONICA_FILES "libleptonica.so.6", "liblept.so.5"
#else
#define LEPTONICA_FILES NULL
#endif
#ifdef ONX_WITH_SNDFILE
#define SNDFILE_FILES "libsndfile.so.1"
#else
#define SNDFILE_FILES NULL
#endif
#ifdef ONX_WITH_MPG123
#define MPG123_FILES "libmpg123.so.0"
#else
#define MPG123_FILES NULL
#endif
#ifndef ONX_WITH_DNNL /* the major version of the headers at build time, because the interfaces differ between         \
                       * versions                                                                                      \
                       * \ */
#define DNNL_FILES NULL
#elif ONX_WITH_DNNL >= 3
#define DNNL_FILES "libdnnl.so.3"
#else
#define DNNL_FILES "libdnnl.so.2"
#endif
#ifdef ONX_WITH_ZIP
#define ZIP_FILES "libzip.so.5", "libzip.so.4"
#else
#define ZIP_FILES NULL
#endif

#ifdef ONX_WITH_MPI /* a wrapper that is part of this project, because the binary interfaces of MPI implementations    \
                     * differ */
#define MPI_FILES "libonx-mpi.so.0"
#else
#define MPI_FILES NULL
#endif
#ifndef ONX_LIBRARIES_FROM_PROGRAMS /* the folder of libraries, relative to that of programs */
#define ONX_LIBRARIES_FROM_PROGRAMS "../lib"
#endif

enum { FILES_MAX = 3 };

typedef struct library_row {
    const char *name, *what, *package;
    const char *missing, *left_out;   /* texts of messages about the missing library */
    bool ours;                        /* part of this project, and installed with it */
    const char *files[FILES_MAX + 1]; /* empty: left out of the build */
} library_row;

#define LIBRARY(name_, package_, what_, ours_, ...)                                                                    \
    {                                                                                                                  \
        .name = (name_), .what = (what_), .package = (package_), .ours = (ours_),                                      \
        .missing = "needs " name_ ", which is not on this machine (Debian has it in " package_ ")",                    \
        .left_out = "needs " name_ ", which was left out of this build", .files = {                                    \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

static const library_row rows[ONXI_LIBRARY_COUNT] = {
    [ONXI_LIBRARY_CRYPTO] = LIBRARY("libcrypto", "libssl3", "SHA-1 checksums of external data", false, CRYPTO_FILES),
    [ONXI_LIBRARY_PCRE2] =
        LIBRARY("libpcre2-8", "libpcre2-8-0", "regular expressions (RegexFullMatch, tokenizers)", false, PCRE2_FILES),
    [ONXI_LIBRARY_UTF8PROC] =
        LIBRARY("libutf8proc", "libutf8proc2", "upper and lower case, normal forms (StringNormalizer, tokenizers)",
                false, UTF8PROC_FILES),
    [ONXI_LIBRARY_LEPTONICA] = LIBRARY("leptonica", "liblept5", "images (ImageDecoder)", false, LEPTONICA_FILES),
    [ONXI_LIBRARY_SNDFILE] =
        LIBRARY("libsndfile", "libsndfile1", "sound that is FLAC (AudioDecoder)", false, SNDFILE_FILES),
    [ONXI_LIBRARY_MPG123] =
        LIBRARY("libmpg123", "libmpg123-0", "sound that is MP3 (AudioDecoder)", false, MPG123_FILES),
    [ONXI_LIBRARY_DNNL] = LIBRARY("oneDNN", "libdnnl2", "fast convolutions, products, poolings", false, DNNL_FILES),
    [ONXI_LIBRARY_ZIP] = LIBRARY("libzip", "libzip4", "NumPy archives (.npz)", false, ZIP_FILES),
    [ONXI_LIBRARY_MPI] = LIBRARY("MPI", "libonx-mpi0 and openmpi-bin", "models on many devices", true, MPI_FILES),
};

/* ---- loading ---- */

/* Loads a part of this project from the folder of this library or, if the library is linked into a program, from the
 * folder of libraries beside that of the program; only if this fails is the dynamic linker asked. So its search path
 * need not contain these folders. */
static void *open_file(const library_row *row, const char *file)
{
    static const char *const folders[] = { ".", ONX_LIBRARIES_FROM_PROGRAMS };
    void *handle = NULL;
    for (size_t i = 0; row->ours && i < sizeof folders / sizeof *folders && !handle; i++)
        handle = onxi_platform_library_open_beside(&rows, folders[i], file);
    return handle ? handle : onxi_platform_library_open(file, false);
}

/* Called with the lock held. */
static void open_library(const library_row *row, onxi_library_state *l)
{
    for (size_t i = 0; row->files[i] && !l->handle; i++)
        if ((l->handle = open_file(row, row->files[i])))
            l->file = row->files[i];
    atomic_store(&l->tried, true);
}

/* Called with the lock held; finds all functions or none, except optional ones. */
static bool find_functions(const onxi_library_state *l, const char *const *names, size_t count, unsigned char *out)
{
    if (!l->handle || count > ONXI_FUNCTIONS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        bool optional = names[i][0] == '?';
        void *found = onxi_platform_library_find(l->handle, names[i] + optional);
        if (!found && !optional)
            return false;
        memcpy(out + i * sizeof found, &found, sizeof found);
    }
    return true;
}

/* The entry of these names, or the next free one; NULL if there is none. */
static onxi_library_user *find_user(onxi_library_state *l, const char *const *names)
{
    for (int i = 0; i < ONXI_USERS_MAX; i++) {
        const char *const *has = atomic_load(&l->users[i].names);
        if (has == names || !has)
            return &l->users[i];
    }
    return NULL;
}

const void *onxi_library_functions(onxi_library library, const char *const *names, size_t count)
{
    onxi_process *process = onxi_process_get();
    onxi_library_state *l = &process->library[library];
    onxi_library_user *user = find_user(l, names);
    if (user && atomic_load(&user->names) == names)
        return user->functions;
    pthread_mutex_lock(&process->library_lock);
    if (!atomic_load(&l->tried))
        open_library(&rows[library], l);
    user = find_user(l, names);
    const bool found = user && (atomic_load(&user->names) || find_functions(l, names, count, user->functions));
    if (found)
        atomic_store(&user->names, names);
    pthread_mutex_unlock(&process->library_lock);
    return found ? user->functions : NULL;
}

const char *onxi_library_missing(onxi_library library)
{
    return rows[library].files[0] ? rows[library].missing : rows[library].left_out;
}

/* ---- listing libraries ---- */

bool onx_library(uint32_t index, onx_library_info *out)
{
    if (!out)
        return false;
    if (index >= ONXI_LIBRARY_COUNT)
        return false;
    const library_row *row = &rows[index];
    onxi_process *process = onxi_process_get();
    onxi_library_state *l = &process->library[index];
    pthread_mutex_lock(&process->library_lock);
    if (!atomic_load(&l->tried))
        open_library(row, l);
    pthread_mutex_unlock(&process->library_lock);
    *out = (onx_library_info){
        .name = row->name, .what = row->what, .package = row->package, .built = row->files[0] != NULL, .file = l->file
    };
    return true;
}

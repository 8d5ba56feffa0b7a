/* base_version.c - the version of the library, and what it was built with. */
#include "base/base.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

uint32_t onx_version(void)
{
    return ONX_VERSION_NUMBER;
}

const char *onx_version_text(void)
{
    return TEXT(ONX_VERSION_MAJOR) "." TEXT(ONX_VERSION_MINOR) "." TEXT(ONX_VERSION_PATCH);
}

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#if defined(__x86_64__)
#define PROCESSOR "x86_64"
#elif defined(__aarch64__)
#define PROCESSOR "aarch64"
#elif defined(__riscv)
#define PROCESSOR "riscv"
#else
#define PROCESSOR "other"
#endif

#ifdef ONX_WITH_X86_LEVELS
#define KERNELS "plain base v3 v4 vnni bf16 amx"
#else
#define KERNELS "plain base"
#endif

#if ONXI_PLATFORM_ASAN
#define SANITIZER "address"
#elif ONXI_PLATFORM_TSAN
#define SANITIZER "thread"
#else
#define SANITIZER "none"
#endif

/* Each library of others with a space before it, or nothing. */
#ifdef ONX_WITH_CRYPTO
#define CRYPTO " libcrypto"
#else
#define CRYPTO ""
#endif
#ifdef ONX_WITH_PCRE2
#define PCRE2 " libpcre2-8"
#else
#define PCRE2 ""
#endif
#ifdef ONX_WITH_UTF8PROC
#define UTF8PROC " libutf8proc"
#else
#define UTF8PROC ""
#endif
#ifdef ONX_WITH_SNDFILE
#define SNDFILE " sndfile"
#else
#define SNDFILE ""
#endif
#ifdef ONX_WITH_MPG123
#define MPG123 " libmpg123"
#else
#define MPG123 ""
#endif
#ifdef ONX_WITH_LEPTONICA
#define LEPTONICA " leptonica"
#else
#define LEPTONICA ""
#endif
#ifdef ONX_WITH_ZIP
#define ZIP " libzip"
#else
#define ZIP ""
#endif
#ifdef ONX_WITH_DNNL
#define DNNL " oneDNN " TEXT(ONX_WITH_DNNL)
#else
#define DNNL ""
#endif

const char *onx_build_info(uint32_t index)
{
    static const char *const facts[] = { "compiler " COMPILER, "processor " PROCESSOR, "kernels " KERNELS,
                                         "libraries" CRYPTO PCRE2 UTF8PROC LEPTONICA SNDFILE MPG123 ZIP DNNL,
                                         "sanitizer " SANITIZER };
    return index < sizeof facts / sizeof *facts ? facts[index] : NULL;
}

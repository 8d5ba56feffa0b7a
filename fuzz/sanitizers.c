// Options of the sanitizers for all fuzz targets, so that a target started by hand behaves like one started by CI.

#include <sanitizer/lsan_interface.h>

// LeakSanitizer finds the thread-local memory of libraries loaded at run time (oneDNN) by guessing the bytes before it,
// and sometimes reads an invalid address. Therefore pointers in thread-local memory are ignored; the library's own ones
// are declared below.
const char *__lsan_default_options(void)
{
    return "use_tls=0:print_suppressions=0";
}

// Kernels are compiled with checks that return, which takes a small part of the time.
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:print_stacktrace=1";
}

const char *__lsan_default_suppressions(void)
{
    return ONX_LSAN_SUPPRESSIONS;
}

// What the sanitizers are told in every fuzz target, so that a target started by hand behaves as one that CI starts.

#include <sanitizer/lsan_interface.h>

// LeakSanitizer finds the thread-local memory of libraries loaded while running (oneDNN) by guessing what lies before
// it, and now and then reads an address that is none. What only such memory points to is not looked for; the library's
// own is below.
const char *__lsan_default_options(void)
{
    return "use_tls=0:print_suppressions=0";
}

const char *__lsan_default_suppressions(void)
{
    return ONX_LSAN_SUPPRESSIONS;
}

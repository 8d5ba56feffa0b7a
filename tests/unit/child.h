/* child.h - for tests that run each call in a process of its own: what a forked cmocka program must do first. */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* A crash ends the child: cmocka's handlers would go on with the tests of the parent. So does a call that hangs. */
static inline void child_begin(void)
{
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    alarm(60);
}

#endif

/* bench_measure.c - bench_measure COMMAND...: runs the command and prints "MILLISECONDS PEAK_KIB". */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout))
            execvp(argv[1], argv + 1);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (pid < 0 || wait4(pid, &status, 0, &usage) < 0 || status != 0)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.3f %ld\n", 1e3 * (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_nsec - a.tv_nsec), usage.ru_maxrss);
    return 0;
}

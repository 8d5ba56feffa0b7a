/* cli_test.h - the output of `onx test`: text, JSON or JUnit. */
#ifndef ONX_CLI_TEST_H
#define ONX_CLI_TEST_H

#include "cli.h"

typedef enum test_outcome { TEST_PASSED, TEST_FAILED, TEST_SKIPPED } test_outcome;

typedef struct test_case {
    char *name, *text; /* text: why it failed or was skipped, one or more lines; NULL: none */
    test_outcome outcome;
    double seconds;
} test_case;

typedef struct test_report {
    cli_call *call;
    test_case *list; /* only for JSON and JUnit */
    size_t count;
    uint32_t room;
    uint64_t outcomes[3]; /* indexed by test_outcome */
    bool no_memory;       /* a case could not be stored */
    FILE *text;           /* text of the current case */
    char *text_bytes;
    size_t text_len;
    double start;
} test_report;

void test_case_begin(test_report *report);
/* Adds a line about the current case: "PLACE: what". The diagnostics of the context follow, and are cleared. */
void test_case_say(test_report *report, const char *place, const char *format, ...) ONX_PRINTF(3, 4);
void test_case_end(test_report *report, const char *name, test_outcome outcome);
/* Prints the totals, or the requested document, and returns the exit status. */
int test_report_end(test_report *report);

#endif

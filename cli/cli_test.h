/* cli_test.h - how `onx test` reports its cases: text, JSON or JUnit. */
#ifndef ONX_CLI_TEST_H
#define ONX_CLI_TEST_H

#include "cli.h"

typedef enum test_outcome { TEST_PASSED, TEST_FAILED, TEST_SKIPPED } test_outcome;

typedef struct test_case {
    char *name, *text; /* text: what went wrong, or why it was skipped, in lines; NULL: nothing */
    test_outcome outcome;
    double seconds;
} test_case;

typedef struct test_report {
    cli_call *call;
    test_case *list; /* kept for JSON and JUnit only */
    size_t count;
    uint32_t room;
    uint64_t outcomes[3]; /* by test_outcome */
    bool no_memory;       /* a case could not be kept */
    FILE *text;           /* of the case in hand */
    char *text_bytes;
    size_t text_len;
    double start;
} test_report;

void test_case_begin(test_report *report);
/* A line about the case in hand: "PLACE: what". The diagnostics of the context go below it and are cleared. */
void test_case_say(test_report *report, const char *place, const char *format, ...) ONX_PRINTF(3, 4);
void test_case_end(test_report *report, const char *name, test_outcome outcome);
/* The total, or the documents that were asked for, and the exit status. */
int test_report_end(test_report *report);

#endif

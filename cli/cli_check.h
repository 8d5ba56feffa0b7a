/* cli_check.h - how `onx check` says what it found: text, JSON or SARIF, of any number of files. */
#ifndef ONX_CLI_CHECK_H
#define ONX_CLI_CHECK_H

#include "cli.h"

#include <onx/check.h>

typedef struct check_result {
    const char *file;
    onx_check_summary summary;
    bool checked; /* false when the file could not even be read */
    int exit_status;
} check_result;

typedef struct check_report {
    cli_call *call;
    cli_json json;
    enum { CHECK_TEXT, CHECK_JSON, CHECK_SARIF } format;
    bool several; /* more than one file may come, so each is an item of a list and a total ends it */
    bool failed;  /* a file could not be read */
    uint64_t files, invalid, unread;
    onx_check_summary total;
    uint32_t *rule_index; /* SARIF: per rule, 1 + its place in the order of first use; 0: not used */
    uint32_t rules;
} check_report;

/* False, said, when out of memory; nothing else may be called then. */
bool check_report_begin(check_report *report, cli_call *call);
/* Prints the findings, which are the diagnostics of the context. */
void check_report_file(check_report *report, const check_result *result);
void check_report_end(check_report *report);

#endif

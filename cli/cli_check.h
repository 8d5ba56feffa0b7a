/* cli_check.h - the output of `onx check`: text, JSON or SARIF, for any number of files. */
#ifndef ONX_CLI_CHECK_H
#define ONX_CLI_CHECK_H

#include "cli.h"

#include <onx/check.h>

typedef struct check_result {
    const char *file;
    onx_check_summary summary;
    bool checked;    /* false if the file could not be read */
    bool open_types; /* a model of which types and shapes were not checked */
    int exit_status;
} check_result;

typedef struct check_report {
    cli_call *call;
    cli_json json;
    enum { CHECK_TEXT, CHECK_JSON, CHECK_SARIF } format;
    bool several; /* there may be several files, so each is an item of a list, followed by totals */
    bool failed;  /* a file could not be read */
    uint64_t files, invalid, unread;
    onx_check_summary total;
    uint32_t *rule_index; /* SARIF: per rule, 1 + its position in order of first use; 0: not used */
    uint32_t rules;
} check_report;

/* False, after an error message, when out of memory; no other function may be called then. */
bool check_report_begin(check_report *report, cli_call *call);
/* Prints the findings, which are the diagnostics of the context. */
void check_report_file(check_report *report, const check_result *result);
void check_report_end(check_report *report);

#endif

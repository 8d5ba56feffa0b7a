/* cli_view_page.h - views as pages, as SVG and for Graphviz, and pages on the loopback address. The HTML, style and
 * program of the page are in web/view and become data of the program when it is built (cmake/view.cmake). */
#ifndef ONX_CLI_VIEW_PAGE_H
#define ONX_CLI_VIEW_PAGE_H

#include "cli_view.h"

/* What comes before and after the data in the page. */
extern const unsigned char view_page_head[], view_page_tail[];
extern const size_t view_page_head_size, view_page_tail_size;

/* Writes the page around JSON. */
void cli_view_page(FILE *to, onx_str json);
/* The colours of the families of operators, as a member of the object that is open. */
void cli_view_hues(cli_json *json);
/* What differs between two models, as a member of the object that is open. */
void cli_view_diff(cli_json *json, cli_view views[2]);
/* Runs the model some times, with the inputs of the command line or made-up ones, and says as JSON what each node took.
 * To be freed in any case. */
onx_status cli_view_profile(cli_call *call, const char *path, char **text, size_t *size);
/* The colour of an operator's family, in degrees; -1: none. */
int cli_view_hue(const cli_view *view, uint32_t op);
/* Writes a scope with nothing open in it, as SVG and in the language of Graphviz. */
void cli_view_svg(FILE *to, const cli_view *view, const view_scope *scope);
void cli_view_dot(FILE *to, const cli_view *view, const view_scope *scope);

/* Answers requests for the page at 127.0.0.1:port (0: any that is free) until a signal ends the program; each gets what
 * `make` makes then, which is freed. Returns an exit status where it cannot begin. */
typedef bool view_make(void *user, char **page, size_t *size);
int cli_view_serve(cli_call *call, uint16_t port, view_make *make, void *user);

/* The status of the answer to a request, whose head this is, made to that port; a body goes with it unless only the
 * head of the answer is asked for. */
int cli_view_request(onx_str head, uint16_t port, bool *with_body);

#endif

/* cli_view_page.h - writes views as pages, as SVG and for Graphviz, and serves pages on the loopback address. HTML,
 * style and script of the page are in web/view, and are embedded at build time (cmake/view.cmake). */
#ifndef ONX_CLI_VIEW_PAGE_H
#define ONX_CLI_VIEW_PAGE_H

#include "cli_view.h"

/* The parts of the page before and after the data. */
extern const unsigned char view_page_head[], view_page_tail[];
extern const size_t view_page_head_size, view_page_tail_size;

/* Writes the page around JSON. */
void cli_view_page(FILE *to, onx_str json);
/* Writes the colours of operator families, as a member of the open object. */
void cli_view_hues(cli_json *json);
/* Writes the differences between two models, as a member of the open object. */
void cli_view_diff(cli_json *json, cli_view views[2]);
/* Runs the model several times, with the inputs of the command line or made-up ones, and returns the time of each node
 * as JSON, which the caller frees. */
onx_status cli_view_profile(cli_call *call, const char *path, char **text, size_t *size);
/* The hue of an operator's family in degrees; -1: none. */
int cli_view_hue(const cli_view *view, uint32_t op);
/* Write a scope, with nothing expanded, as SVG and in the DOT language of Graphviz. */
void cli_view_svg(FILE *to, const cli_view *view, const view_scope *scope);
void cli_view_dot(FILE *to, const cli_view *view, const view_scope *scope);

/* Serves the page at 127.0.0.1:port (0: any free port) until a signal ends the program; `make` generates the response
 * to each request, which is then freed. Returns an exit status if it cannot start. */
typedef bool view_make(void *user, char **page, size_t *size);
int cli_view_serve(cli_call *call, uint16_t port, view_make *make, void *user);

/* The status code for a request with this head, sent to that port; the response has a body unless only its head is
 * requested. */
int cli_view_request(onx_str head, uint16_t port, bool *with_body);

#endif

/* cli_view_page.h - the page that shows views: its HTML, style and program are in web/view and become data of the
 * program when it is built (cmake/view.cmake). */
#ifndef ONX_CLI_VIEW_PAGE_H
#define ONX_CLI_VIEW_PAGE_H

#include <onx/base.h>

#include <stdio.h>

/* What stands before and behind the data in the page. */
extern const unsigned char view_page_head[], view_page_tail[];
extern const size_t view_page_head_size, view_page_tail_size;

/* Writes the page around JSON. */
void cli_view_page(FILE *to, onx_str json);

#endif

/* cli_view_page.c - the page around its data. */
#include "cli_view_page.h"

/* The data is in a script element that is no program. What could end it, or make a comment of it, begins with <,
 * which JSON has in strings only, where it may be written as an escape. So no text of a model is ever markup. */
void cli_view_page(FILE *to, onx_str json)
{
    fwrite(view_page_head, 1, view_page_head_size, to);
    for (size_t i = 0; i < json.len;) {
        const char *at = memchr(json.ptr + i, '<', json.len - i);
        const size_t n = at ? (size_t)(at - json.ptr) - i : json.len - i;
        fwrite(json.ptr + i, 1, n, to);
        if (at)
            fputs("\\u003c", to);
        i += n + (at != NULL);
    }
    fwrite(view_page_tail, 1, view_page_tail_size, to);
}

/* cli_view_page.c - writes the page around its data. */
#include "cli_view_page.h"

/* The data is in a script element of a non-script type. Only sequences that begin with < could end the element or start
 * a comment; in JSON they occur only in strings, where < can be escaped. So text of a model is never interpreted as
 * markup. */
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

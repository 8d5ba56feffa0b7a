/* fuzz_request.c - any bytes as a request to the server of `onx view --serve`: what is answered with the page is a GET
 * or HEAD of / that names this address as its host and nothing else; line ends of either kind, spaces and the case of
 * the header's name do not count. */
#include "cli_view_page.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const answered[] = { "127.0.0.1:8080", "localhost:8080" };
    char *head = malloc(size + 1); /* of that size to the byte, so that reads past it are found */
    char *exact = malloc(size ? size : 1);
    if (!head || !exact)
        abort();
    if (size) {
        memcpy(head, data, size);
        memcpy(exact, data, size);
    }
    head[size] = '\0';
    bool with_body, again_with_body;
    const int status = cli_view_request(onx_str_make(exact, size), 8080, &with_body);
    if (status != 200 && status != 403 && status != 404 && status != 405)
        abort();
    if (with_body != (size >= 4 && memcmp(head, "GET ", 4) == 0))
        abort();
    if (status == 200) {
        const size_t word = with_body ? 4 : 5;
        if ((!with_body && memcmp(head, "HEAD ", 5) != 0) || head[word] != '/')
            abort();
        if (!memmem(head, size, answered[0], strlen(answered[0])) &&
            !memmem(head, size, answered[1], strlen(answered[1])))
            abort();
        /* The same request to another port is none for that one. */
        if (cli_view_request(onx_str_make(exact, size), 8081, &again_with_body) == 200)
            abort();
    }
    free(exact);
    free(head);
    return 0;
}

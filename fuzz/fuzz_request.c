/* fuzz_request.c - takes any bytes as a request to the server of `onx view --serve`. Only a GET or HEAD of / whose host
 * is this address, and nothing else, gets the page. Both kinds of line ends, spaces, and the case of the header name
 * make no difference. */
#include "cli_view_page.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const answered[] = { "127.0.0.1:8080", "localhost:8080" };
    char *head = malloc(size + 1); /* allocated with the exact size, so that reads beyond it are detected */
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
        /* The same request is refused by a server on another port. */
        if (cli_view_request(onx_str_make(exact, size), 8081, &again_with_body) == 200)
            abort();
    }
    free(exact);
    free(head);
    return 0;
}

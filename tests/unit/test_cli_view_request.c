/* Requests that the server of `onx view --serve` answers with its page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli_view_page.h"

static void test_cli_view_request__status(void **state)
{
    static const struct {
        const char *head;
        int status;
        bool with_body;
    } rows[] = {
        { "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", 200, true },
        { "HEAD / HTTP/1.1\r\nAccept: *\r\nhost:localhost:8080 \r\n\r\n", 200, false },
        { "GET /?fresh HTTP/1.1\nHOST:\tlocalhost:8080\n\n", 200, true },
        { "GET /x HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", 404, true },
        { "GET  / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", 404, true },
        { "GET ", 403, true },
        { "GET / HTTP/1.1\r\nHost: 127.0.0.1:80801\r\n\r\n", 403, true },
        { "GET / HTTP/1.1\r\nHost: elsewhere.example:8080\r\n\r\n", 403, true },
        { "GET / HTTP/1.1\r\nX-Host: 127.0.0.1:8080\r\n\r\n", 403, true },
        /* two hosts; one behind the head; one in the first line */
        { "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nHost: elsewhere.example\r\n\r\n", 403, true },
        { "GET / HTTP/1.1\r\n\r\nHost: 127.0.0.1:8080\r\n", 403, true },
        { "GET / Host: 127.0.0.1:8080\r\n\r\n", 403, true },
        { "POST / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", 405, false },
        { "get / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", 405, false },
        { "GET\r\n/ \r\nHost: 127.0.0.1:8080\r\n\r\n", 405, false },
        { "\r\n", 405, false },
        { "", 405, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool with_body = !rows[i].with_body;
        assert_int_equal(cli_view_request(onx_str_of(rows[i].head), 8080, &with_body), rows[i].status);
        assert_int_equal(with_body, rows[i].with_body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cli_view_request__status) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

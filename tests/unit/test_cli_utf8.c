/* UTF-8 characters as the program reads them from files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli.h"

static void test_cli_utf8__length(void **state)
{
    static const struct {
        const char *text;
        size_t length, in_xml;
        uint32_t number;
    } rows[] = {
        { "a", 1, 1, 'a' },
        { "\n", 1, 1, '\n' },
        { "\x01", 1, 0, 1 },
        { "\x7f", 1, 0, 0x7f },
        { "\xc2\x80", 2, 2, 0x80 },
        { "\xdf\xbf", 2, 2, 0x7ff },
        { "\xe0\xa0\x80", 3, 3, 0x800 },
        { "\xed\x9f\xbf", 3, 3, 0xd7ff },
        { "\xef\xbf\xbd", 3, 3, 0xfffd },
        { "\xef\xbf\xbe", 3, 0, 0xfffe },
        { "\xf0\x90\x80\x80", 4, 4, 0x10000 },
        { "\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff },
        /* overlong, surrogates, beyond the last, cut off, no beginning */
        { "\xc0\x80", 0, 0, 0 },
        { "\xc1\xbf", 0, 0, 0 },
        { "\xe0\x9f\xbf", 0, 0, 0 },
        { "\xed\xa0\x80", 0, 0, 0 },
        { "\xf0\x8f\xbf\xbf", 0, 0, 0 },
        { "\xf4\x90\x80\x80", 0, 0, 0 },
        { "\xf8\x88\x80\x80\x80", 0, 0, 0 },
        { "\xc2", 0, 0, 0 },
        { "\xe0\xa0", 0, 0, 0 },
        { "\xe0\xa0g", 0, 0, 0 },
        { "\xf0\x90\x80", 0, 0, 0 },
        { "\x80", 0, 0, 0 },
        { "\xff", 0, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t c;
        assert_int_equal(cli_utf8_char(onx_str_of(rows[i].text), &c), rows[i].length);
        assert_true(!rows[i].length || c == rows[i].number);
        assert_int_equal(cli_xml_char(onx_str_of(rows[i].text), &c), rows[i].in_xml);
    }
}

static void test_cli_utf8__xml(void **state)
{
    static const char given[] = "<a b=\"\xc3\xa9\">&\x01\xff\t\0c", wanted[] = "&#60;a b=&#34;\xc3\xa9&#34;&#62;&#38;"
                                                                               "\xef\xbf\xbd\xef\xbf\xbd\t\xef\xbf\xbd"
                                                                               "c";
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    (void)state;
    assert_non_null(to);
    cli_put_xml(to, onx_str_make(given, sizeof given - 1));
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, wanted);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_utf8__length),
        cmocka_unit_test(test_cli_utf8__xml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

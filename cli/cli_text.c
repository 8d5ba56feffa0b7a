/* cli_text.c - formats text, numbers and types for a terminal. */
#include "cli.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_mode;

void cli_set_color(const char *when)
{
    color_mode = strcmp(when, "always") == 0 ? COLOR_ALWAYS : strcmp(when, "never") == 0 ? COLOR_NEVER : COLOR_AUTO;
}

bool cli_is_terminal(FILE *to)
{
    return isatty(fileno(to)) == 1;
}

const char *cli_color(FILE *to, cli_style style)
{
    static const char *const sequences[] = { "\033[0m",  "\033[1m",  "\033[2m",  "\033[31m",
                                             "\033[32m", "\033[33m", "\033[34m", "\033[36m" };
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool on = color_mode == COLOR_ALWAYS;
    if (color_mode == COLOR_AUTO)
        on = cli_is_terminal(to) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    return on ? sequences[style] : "";
}

bool cli_is_unicode(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") || strstr(value, "utf-8");
    }
    return false;
}

unsigned cli_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col;
    return 80;
}

/* ---- text from files ---- */

/* The length of the UTF-8 sequence of a printable character at the start, 0 if there is none. */
static size_t printable(onx_str s)
{
    uint32_t c = 0;
    const size_t len = cli_utf8_char(s, &c);
    /* C0 and C1 control characters; direction marks, which can make a name look like another one. */
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
                         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
    return control ? 0 : len;
}

/* The width of the character at the start, which is `len` bytes of UTF-8: East Asian wide characters take two
 * columns. */
static unsigned char_columns(onx_str s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    if (len < 3)
        return 1;
    if (len == 4)
        return 2;
    uint32_t c = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
                   (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60)
               ? 2
               : 1;
}

static onx_str skip(onx_str s, size_t len)
{
    return onx_str_make(s.ptr + len, s.len - len);
}

void cli_put_text(FILE *to, onx_str text)
{
    while (text.len) {
        size_t len = printable(text);
        if (len)
            fwrite(text.ptr, 1, len, to);
        else
            fprintf(to, "\\x%02x", (unsigned char)text.ptr[0]);
        text = skip(text, len ? len : 1);
    }
}

unsigned cli_columns(onx_str text)
{
    unsigned columns = 0;
    while (text.len && columns < 1u << 30) {
        size_t len = printable(text);
        columns += len ? char_columns(text, len) : 4;
        text = skip(text, len ? len : 1);
    }
    return columns;
}

onx_str cli_fitting(onx_str text, unsigned columns)
{
    size_t at = 0;
    for (unsigned used = 0; at < text.len;) {
        onx_str rest = skip(text, at);
        size_t len = printable(rest);
        used += len ? char_columns(rest, len) : 4;
        if (used > columns)
            break;
        at += len ? len : 1;
    }
    return onx_str_make(text.ptr, at);
}

void cli_put_field(FILE *to, onx_str text, unsigned columns)
{
    unsigned total = cli_columns(text);
    if (total <= columns) {
        cli_put_text(to, text);
        fprintf(to, "%*s", (int)(columns - total), "");
        return;
    }
    /* Names differ at their ends more often than at their starts, so the middle is removed. */
    const char *dots = cli_is_unicode() ? "…" : "~";
    unsigned head = (columns - 1) / 2, tail = columns - 1 - head;
    const onx_str start = cli_fitting(text, head);
    onx_str rest = skip(text, start.len);
    unsigned left = cli_columns(rest);
    while (left > tail) {
        size_t len = printable(rest);
        left -= len ? char_columns(rest, len) : 4;
        rest = skip(rest, len ? len : 1);
    }
    unsigned used = cli_columns(start) + 1 + left;
    cli_put_text(to, start);
    fputs(dots, to);
    cli_put_text(to, rest);
    fprintf(to, "%*s", used < columns ? (int)(columns - used) : 0, "");
}

unsigned cli_prose_width(void)
{
    return cli_width() < 100 ? cli_width() - 1 : 100;
}

void cli_put_filled(FILE *to, onx_str text, unsigned indent, unsigned width)
{
    unsigned column = indent;
    while (text.len) {
        size_t len = 0;
        while (len < text.len && text.ptr[len] != ' ' && text.ptr[len] != '\n')
            len++;
        const onx_str word = onx_str_make(text.ptr, len);
        const unsigned columns = cli_columns(word);
        if (column > indent && column + 1 + columns > width) {
            fprintf(to, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', to);
            column++;
        }
        cli_put_text(to, word);
        column += columns;
        text = skip(text, len < text.len ? len + 1 : len);
    }
    fputc('\n', to);
}

void cli_put_bar(FILE *to, double part, double whole, unsigned columns)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    double share = whole > 0 && part > 0 ? part / whole : 0;
    unsigned length = (unsigned)(share * columns * 8 + 0.5);
    if (length == 0 && part > 0)
        length = 1;
    if (!cli_is_unicode()) {
        for (unsigned i = 0; i < (length + 7) / 8; i++)
            fputc('#', to);
        return;
    }
    for (unsigned i = 0; i < length / 8; i++)
        fputs("█", to);
    fputs(eighths[length % 8], to);
}

/* ---- numbers ---- */

cli_small cli_bytes(uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    cli_small out;
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit < 6) {
        value /= 1024;
        unit++;
    }
    snprintf(out.text, sizeof(out.text), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return out;
}

cli_small cli_thousands(uint64_t number)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
    cli_small out;
    size_t at = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out.text[at++] = ',';
        out.text[at++] = digits[i];
    }
    out.text[at] = '\0';
    return out;
}

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Formats three significant digits; integers below a thousand have no decimal point if `exact`. */
static cli_small three_digits(double value, const char *unit, bool exact)
{
    cli_small out;
    const int places = exact || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(out.text, sizeof(out.text), "%.*f%s%s", places, value, *unit ? " " : "", unit);
    return out;
}

cli_small cli_duration(double seconds)
{
    if (seconds < 999.5e-6)
        return three_digits(seconds * 1e6, cli_is_unicode() ? "\u00b5s" : "us", false);
    return seconds < 0.9995 ? three_digits(seconds * 1e3, "ms", false) : three_digits(seconds, "s", false);
}

cli_small cli_count(double number)
{
    static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };
    size_t unit = 0;
    while (number >= 999.5 && unit < 6) {
        number /= 1000;
        unit++;
    }
    return three_digits(number, units[unit], unit == 0 && number == (double)(uint64_t)number);
}

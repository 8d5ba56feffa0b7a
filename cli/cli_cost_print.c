/* cli_cost_print.c - prints the result of `onx info --cost`. */
#include "cli_cost.h"
#include "cli_dims.h"

#include <stdlib.h>

enum { TEXT = 1024, NAME = 256 };

/* ---- sums as text ---- */

typedef struct writer {
    char *buf;
    size_t size, len;
} writer;

static void put(writer *w, onx_str text)
{
    for (size_t i = 0; i < text.len && w->len + 1 < w->size; i++)
        w->buf[w->len++] = text.ptr[i];
    if (w->size)
        w->buf[w->len] = 0;
}

static bool is_expression(onx_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (memchr(" +-*/", s.ptr[i], 5))
            return true;
    return false;
}

/* The symbols of a term; repeated ones as powers. */
static void put_symbols(writer *w, const cli_cost *c, const cost_term *t, bool bare)
{
    char text[24];
    for (uint32_t i = 0, n; i < t->count; i += n) {
        const onx_str symbol = c->symbols[t->symbols[i]];
        const bool wrap = is_expression(symbol);
        for (n = 1; i + n < t->count && t->symbols[i + n] == t->symbols[i];)
            n++;
        put(w, onx_str_of(i || !bare ? " * " : ""));
        put(w, onx_str_of(wrap ? "(" : ""));
        put(w, symbol);
        put(w, onx_str_of(wrap ? ")" : ""));
        snprintf(text, sizeof text, "^%u", n);
        put(w, onx_str_of(n > 1 ? text : ""));
    }
}

void cli_cost_text(const cli_cost *cost, const cost_sum *sum, bool bytes, char *buf, size_t size)
{
    writer w = { .buf = buf, .size = size };
    put(&w, onx_str_of(sum->count || sum->unknown || sum->more ? "" : "0"));
    for (uint32_t i = 0; i < sum->count; i++) {
        const double factor = sum->term[i].factor;
        const cli_small number = bytes ? cli_bytes(factor < 18e18 ? (uint64_t)factor : UINT64_MAX) : cli_count(factor);
        put(&w, onx_str_of(i ? " + " : ""));
        const bool bare = factor == 1 && sum->term[i].count && !bytes; /* N, not 1 * N */
        put(&w, onx_str_of(bare ? "" : number.text));
        put_symbols(&w, cost, &sum->term[i], bare);
    }
    if (sum->unknown || sum->more)
        put(&w, onx_str_of(sum->count ? " + ?" : "?"));
}

/* ---- the table ---- */

static void put_name(const cli_tally *t, char *buf, size_t size)
{
    snprintf(buf, size, "%.*s%s%.*s", ONX_ARG(t->domain), t->domain.len ? "." : "", ONX_ARG(t->name));
}

/* The texts of a row; widths grow to fit them, up to a limit. */
typedef struct line {
    char name[NAME], macs[TEXT], activations[TEXT];
} line;

static void fill_line(const cli_cost *c, uint32_t row, line *out)
{
    put_name(&c->ops.row[row], out->name, sizeof out->name);
    cli_cost_text(c, &c->rows[row].macs, false, out->macs, sizeof out->macs);
    cli_cost_text(c, &c->rows[row].activations, true, out->activations, sizeof out->activations);
}

static unsigned wider(unsigned width, const char *text, unsigned most)
{
    const unsigned columns = cli_columns(onx_str_of(text));
    return columns > width && columns <= most ? columns : width;
}

static void put_cell(const char *text, unsigned width)
{
    cli_put_text(stdout, onx_str_of(text));
    for (unsigned n = cli_columns(onx_str_of(text)); n < width; n++)
        putchar(' ');
    fputs("  ", stdout);
}

static void put_total(const cli_cost *c)
{
    char text[TEXT];
    cli_cost_text(c, &c->total.macs, false, text, sizeof text);
    printf("\n%sCost%s  ", cli_color(stdout, CLI_BOLD), cli_color(stdout, CLI_PLAIN));
    cli_put_text(stdout, onx_str_of(text));
    printf(" multiply-adds, weights %s, activations ", cli_bytes(c->total.weights).text);
    cli_cost_text(c, &c->total.activations, true, text, sizeof text);
    cli_put_text(stdout, onx_str_of(text));
    putchar('\n');
}

static void put_notes(const cli_cost *c)
{
    const char *dim = cli_color(stdout, CLI_DIM), *plain = cli_color(stdout, CLI_PLAIN);
    const uint64_t a = c->total.macs.unknown, b = c->total.activations.unknown, unknown = a > b ? a : b;
    if (unknown)
        printf("  %s? stands for %s node%s whose work depends on data, or whose sizes are not known%s\n", dim,
               cli_thousands(unknown).text, unknown == 1 ? "" : "s", plain);
    if (c->inner_nodes)
        printf("  %s%s nodes of branches and loop bodies are counted as if each ran once%s\n", dim,
               cli_thousands(c->inner_nodes).text, plain);
    if (c->calls)
        printf("  %swhat happens inside of %s calls of functions is not counted%s\n", dim, cli_thousands(c->calls).text,
               plain);
}

static onx_status put_table(const cli_cost *c)
{
    unsigned name = 12, macs = 13, activations = 11;
    line *l = malloc(sizeof *l);
    if (!l)
        return ONX_E_MEMORY;
    put_total(c);
    for (uint32_t i = 0; i < c->ops.count; i++) {
        fill_line(c, i, l);
        name = wider(name, l->name, 40);
        macs = wider(macs, l->macs, 44);
        activations = wider(activations, l->activations, 44);
    }
    if (c->ops.count)
        printf("  %s%-*s  %7s  %-*s  %10s  %s%s\n", cli_color(stdout, CLI_DIM), (int)name, "operator", "nodes",
               (int)macs, "multiply-adds", "weights", "activations", cli_color(stdout, CLI_PLAIN));
    for (uint32_t k = 0; k < c->ops.count; k++) {
        const uint32_t i = c->order[k];
        fill_line(c, i, l);
        fputs("  ", stdout);
        put_cell(l->name, name);
        printf("%7s  ", cli_thousands(c->ops.row[i].count).text);
        put_cell(l->macs, macs);
        printf("%10s  ", c->rows[i].weights ? cli_bytes(c->rows[i].weights).text : "");
        cli_put_text(stdout, onx_str_of(l->activations));
        putchar('\n');
    }
    put_notes(c);
    free(l);
    return ONX_OK;
}

/* ---- JSON ---- */

static void json_sum(cli_json *json, const char *key, const cli_cost *c, const cost_sum *sum)
{
    double number;
    const bool known = cli_cost_number(sum, &number);
    cli_json_open(json, key, '{');
    if (known)
        cli_json_real(json, "value", number);
    else
        cli_json_cstr(json, "value", NULL);
    cli_json_open(json, "terms", '[');
    for (uint32_t i = 0; i < sum->count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_real(json, "factor", sum->term[i].factor);
        cli_json_open(json, "symbols", '[');
        for (uint32_t k = 0; k < sum->term[i].count; k++)
            cli_json_text(json, NULL, c->symbols[sum->term[i].symbols[k]]);
        cli_json_close(json, ']');
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_uint(json, "unknown_nodes", sum->unknown);
    cli_json_bool(json, "complete", !sum->unknown && !sum->more);
    cli_json_close(json, '}');
}

static void json_row(cli_json *json, const cli_cost *c, const cost_row *row)
{
    json_sum(json, "macs", c, &row->macs);
    cli_json_uint(json, "weight_bytes", row->weights);
    json_sum(json, "activation_bytes", c, &row->activations);
}

void cli_cost_json(cli_json *json, const cli_cost *c)
{
    cli_json_open(json, "cost", '{');
    json_row(json, c, &c->total);
    cli_json_uint(json, "inner_nodes", c->inner_nodes);
    cli_json_uint(json, "function_calls", c->calls);
    cli_json_open(json, "operators", '[');
    for (uint32_t k = 0; k < c->ops.count; k++) {
        const uint32_t i = c->order[k];
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "domain", c->ops.row[i].domain);
        cli_json_text(json, "op_type", c->ops.row[i].name);
        cli_json_uint(json, "nodes", c->ops.row[i].count);
        json_row(json, c, &c->rows[i]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

/* ---- for the command ---- */

onx_status cli_cost_print(cli_call *call, onx_doc *doc, cli_json *json)
{
    cli_cost cost = { .call = call };
    cli_dims dims;
    onx_status status = cli_dims_read(call, &dims) ? ONX_OK : ONX_E_MISUSE;
    if (status == ONX_OK)
        status = cli_cost_collect(&cost, doc, dims.list, dims.count);
    if (status == ONX_OK && json)
        cli_cost_json(json, &cost);
    else if (status == ONX_OK)
        status = put_table(&cost);
    cli_cost_free(&cost);
    cli_dims_free(&dims);
    return status;
}

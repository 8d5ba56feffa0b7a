/* cmd_diff.c - `onx diff`: prints the differences between two models, graphs, functions or tensors. */
#include "cli_diff.h"
#include "cli_numpy.h"

#include <onx/check.h>

#include <float.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* ---- printing differences ---- */

onx_str cli_diff_format(cli_diff *d, const char *format, ...)
{
    char text[1024];
    onx_bytes kept;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    /* One byte more, so that the copy ends with a zero too. */
    if (onx_arena_keep(onx_doc_arena(d->a), onx_str_make(text, strlen(text) + 1), &kept) != ONX_OK) {
        d->failure = ONX_E_MEMORY;
        return onx_str_of("");
    }
    return onx_str_make(onx_view(kept).ptr, strlen(text));
}

static unsigned room(void)
{
    return cli_is_terminal(stdout) ? cli_width() / 2 : 400;
}

static void put_short(onx_str text)
{
    if (cli_columns(text) > room())
        cli_put_field(stdout, text, room());
    else
        cli_put_text(stdout, text);
}

/* Is the text too long for its half of the line, and can it be broken at blanks? */
static bool is_prose(onx_str text)
{
    return cli_is_terminal(stdout) && cli_columns(text) > room() && memchr(text.ptr, ' ', text.len) != NULL;
}

static void say_json(cli_diff *d, char what, onx_str where, onx_str name, onx_str a, onx_str b)
{
    cli_json_open(&d->out, NULL, '{');
    cli_json_cstr(&d->out, "what", what == '-' ? "removed" : what == '+' ? "added" : "changed");
    cli_json_text(&d->out, "where", where);
    cli_json_text(&d->out, "name", name);
    if (a.len || what == '~')
        cli_json_text(&d->out, b.len || what == '-' ? "a" : "detail", a);
    if (b.len)
        cli_json_text(&d->out, "b", b);
    cli_json_close(&d->out, '}');
}

void cli_diff_say(cli_diff *d, char what, onx_str where, onx_str name, onx_str a, onx_str b)
{
    d->count++;
    cli_progress_end();
    if (d->said) {
        d->said(d, what, where, name, a, b);
        return;
    }
    if (d->json) {
        say_json(d, what, where, name, a, b);
        return;
    }
    if (!onx_str_equal(where, d->section)) {
        d->section = where;
        fputs(cli_color(stdout, CLI_BOLD), stdout);
        cli_put_text(stdout, where);
        printf("%s\n", cli_color(stdout, CLI_PLAIN));
    }
    cli_style style = what == '-' ? CLI_RED : what == '+' ? CLI_GREEN : CLI_YELLOW;
    printf("  %s%c%s ", cli_color(stdout, style), what, cli_color(stdout, CLI_PLAIN));
    put_short(name);
    const char *arrow = cli_is_unicode() ? "→ " : "-> ";
    if (is_prose(a) || is_prose(b)) {
        printf("\n      %*s", b.len ? (int)cli_columns(onx_str_of(arrow)) : 0, "");
        cli_put_filled(stdout, a, b.len ? 6 + cli_columns(onx_str_of(arrow)) : 6, cli_prose_width());
        if (b.len) {
            printf("      %s", arrow);
            cli_put_filled(stdout, b, 6 + cli_columns(onx_str_of(arrow)), cli_prose_width());
        }
        return;
    }
    if (name.len && (a.len || b.len))
        fputs("  ", stdout);
    put_short(a);
    if (a.len && b.len)
        printf(" %s", arrow);
    put_short(b);
    putchar('\n');
}

void cli_diff_text(cli_diff *d, onx_str where, const char *name, onx_bytes a, onx_bytes b)
{
    if (!onx_str_equal(onx_view(a), onx_view(b)))
        cli_diff_say(d, '~', where, onx_str_of(name), cli_diff_format(d, "\"%.*s\"", ONX_ARG(onx_view(a))),
                     cli_diff_format(d, "\"%.*s\"", ONX_ARG(onx_view(b))));
}

void cli_diff_int(cli_diff *d, onx_str where, const char *name, int64_t a, int64_t b)
{
    if (a != b)
        cli_diff_say(d, '~', where, onx_str_of(name), cli_diff_format(d, "%" PRId64, a),
                     cli_diff_format(d, "%" PRId64, b));
}

/* ---- models ---- */

typedef struct function_lists {
    cli_diff *d;
    onx_function **list[2];
} function_lists;

static onx_str function_title(cli_diff *d, const onx_function *f)
{
    onx_str overload = onx_view(f->overload);
    return cli_diff_format(d, "%.*s.%.*s%s%.*s", ONX_ARG(onx_view(f->domain)), ONX_ARG(onx_view(f->name)),
                           overload.len ? ":" : "", ONX_ARG(overload));
}

static onx_str function_key(const void *lists, int side, uint32_t index)
{
    const function_lists *l = lists;
    return function_title(l->d, l->list[side][index]);
}

static void diff_functions(cli_diff *d, const onx_model *a, const onx_model *b)
{
    function_lists lists = { d, { a->functions, b->functions } };
    cli_pairs pairs;
    if (!cli_pairs_new(d, a->functions_count, b->functions_count, &pairs))
        return;
    cli_pairs_match(d, &pairs, function_key, &lists);
    onx_str where = onx_str_of("functions"), none = onx_str_of("");
    for (uint32_t i = 0; i < a->functions_count; i++) {
        onx_str title = function_title(d, a->functions[i]);
        if (pairs.of_a[i] == CLI_NO_PAIR)
            cli_diff_say(d, '-', where, title, none, none);
        else
            cli_diff_function(d, cli_diff_format(d, "functions %.*s", ONX_ARG(title)), a->functions[i],
                              b->functions[pairs.of_a[i]]);
    }
    for (uint32_t i = 0; i < b->functions_count; i++)
        if (pairs.of_b[i] == CLI_NO_PAIR)
            cli_diff_say(d, '+', where, function_title(d, b->functions[i]), none, none);
}

static void diff_maybe_graph(cli_diff *d, onx_str where, const onx_graph *a, const onx_graph *b)
{
    onx_str none = onx_str_of("");
    if (a && b)
        cli_diff_graph(d, where, a, b);
    else if (a || b)
        cli_diff_say(d, a ? '-' : '+', where, none, none, none);
}

static void diff_training(cli_diff *d, const onx_model *a, const onx_model *b)
{
    if (a->training_info_count != b->training_info_count) {
        cli_diff_int(d, onx_str_of("training_info"), "count", a->training_info_count, b->training_info_count);
        return;
    }
    for (uint32_t i = 0; i < a->training_info_count; i++) {
        const onx_training_info *x = a->training_info[i], *y = b->training_info[i];
        diff_maybe_graph(d, cli_diff_format(d, "training_info[%u].initialization", i), x->initialization,
                         y->initialization);
        diff_maybe_graph(d, cli_diff_format(d, "training_info[%u].algorithm", i), x->algorithm, y->algorithm);
        cli_diff_entries(d, cli_diff_format(d, "training_info[%u].initialization_binding", i),
                         x->initialization_binding, x->initialization_binding_count, y->initialization_binding,
                         y->initialization_binding_count);
        cli_diff_entries(d, cli_diff_format(d, "training_info[%u].update_binding", i), x->update_binding,
                         x->update_binding_count, y->update_binding, y->update_binding_count);
    }
}

void cli_diff_model(cli_diff *d, const onx_model *a, const onx_model *b)
{
    onx_str where = onx_str_of("model");
    cli_diff_int(d, where, "ir_version", a->ir_version, b->ir_version);
    cli_diff_text(d, where, "producer_name", a->producer_name, b->producer_name);
    cli_diff_text(d, where, "producer_version", a->producer_version, b->producer_version);
    cli_diff_text(d, where, "domain", a->domain, b->domain);
    cli_diff_int(d, where, "model_version", a->model_version, b->model_version);
    cli_diff_text(d, where, "doc_string", a->doc_string, b->doc_string);
    cli_diff_opsets(d, onx_str_of("opset_import"), a->opset_import, a->opset_import_count, b->opset_import,
                    b->opset_import_count);
    diff_maybe_graph(d, onx_str_of("graph"), a->graph, b->graph);
    diff_functions(d, a, b);
    diff_training(d, a, b);
    cli_diff_entries(d, onx_str_of("metadata_props"), a->metadata_props, a->metadata_props_count, b->metadata_props,
                     b->metadata_props_count);
    const onx_status status = onx_check_update(d->call->cx, d->a, d->b);
    if (d->failure == ONX_OK)
        d->failure = status;
    cli_diff_int(d, onx_str_of("configuration"), "count", a->configuration_count, b->configuration_count);
    for (uint32_t i = 0; i < a->configuration_count && a->configuration_count == b->configuration_count; i++)
        if (!onx_message_equal(ONX_KIND_DEVICE_CONFIGURATION, a->configuration[i], b->configuration[i]))
            cli_diff_say(d, '~', onx_str_of("configuration"), onx_view(a->configuration[i]->name),
                         onx_str_of("not alike"), onx_str_of(""));
    cli_diff_unknown(d, where, a->extra, b->extra);
}

static void diff_roots(cli_diff *d, onx_kind kind)
{
    const void *a = onx_doc_root(d->a, kind), *b = onx_doc_root(d->b, kind);
    onx_str where = onx_str_of(onx_kind_proto_name(kind));
    switch (kind) {
    case ONX_KIND_MODEL:
        cli_diff_model(d, a, b);
        break;
    case ONX_KIND_GRAPH:
        cli_diff_graph(d, onx_str_of("graph"), a, b);
        break;
    case ONX_KIND_FUNCTION:
        cli_diff_function(d, onx_str_of("function"), a, b);
        break;
    case ONX_KIND_TENSOR:
        cli_diff_text(d, where, "name", ((const onx_tensor *)a)->name, ((const onx_tensor *)b)->name);
        cli_diff_tensor(d, where, onx_view(((const onx_tensor *)a)->name), a, b);
        break;
    case ONX_KIND_OPERATOR_SET:
        cli_diff_operator_set(d, a, b);
        break;
    default:
        if (!onx_message_equal(kind, a, b))
            cli_diff_say(d, '~', where, onx_str_of(""), onx_str_of("not alike"), onx_str_of(""));
    }
}

/* ---- the command ---- */

static int report(cli_diff *d)
{
    if (d->json) {
        cli_json_close(&d->out, ']');
        cli_json_uint(&d->out, "count", d->count);
        cli_json_bool(&d->out, "equal", d->count == 0 && d->failure == ONX_OK);
        cli_json_close(&d->out, '}');
    } else if (d->count) {
        printf("%s%s %s%s\n", cli_color(stdout, CLI_BOLD), cli_thousands(d->count).text,
               d->count == 1 ? "difference" : "differences", cli_color(stdout, CLI_PLAIN));
    }
    if (d->failure != ONX_OK)
        return cli_exit(d->call, d->failure);
    return d->count ? CLI_FAULT : CLI_OK;
}

static int run_diff(cli_call *call)
{
    cli_diff d = { .call = call, .json = cli_has(call, "json"), .out = { .to = stdout } };
    if (!cli_real(call, "atol", 0, DBL_MAX, &d.atol) || !cli_real(call, "rtol", 0, DBL_MAX, &d.rtol))
        return CLI_MISUSE;
    onx_kind kind, other;
    onx_status status = cli_load_any(call, call->operand[0], ONX_FORMAT_AUTO, &kind, &d.a);
    if (status != ONX_OK)
        return cli_exit(call, status);
    status = cli_load_any(call, call->operand[1], ONX_FORMAT_AUTO, &other, &d.b);
    if (status == ONX_OK && other != kind) {
        cli_error(call, "%s is a %s, and %s a %s", call->operand[0], onx_kind_proto_name(kind), call->operand[1],
                  onx_kind_proto_name(other));
        status = ONX_E_MISUSE;
    }
    if (status != ONX_OK) {
        onx_doc_free(d.a);
        onx_doc_free(d.b);
        return cli_exit(call, status);
    }
    call->input = NULL; /* from here on, diagnostics concern both files */
    if (d.json) {
        cli_json_open(&d.out, NULL, '{');
        cli_json_cstr(&d.out, "a", call->operand[0]);
        cli_json_cstr(&d.out, "b", call->operand[1]);
        cli_json_open(&d.out, "differences", '[');
    }
    diff_roots(&d, kind);
    cli_progress_end();
    int answer = report(&d);
    onx_doc_free(d.a);
    onx_doc_free(d.b);
    return answer;
}

static const cli_option options[] = {
    CLI_OPTION_AS,
    { "atol", 0, "X", NULL, "elements at most X + rtol * |a| apart are equal (0)" },
    { "rtol", 0, "X", NULL, "the relative tolerance (0)" },
    CLI_OPTION_JSON,
    CLI_END,
};

const cli_command cmd_diff = {
    .name = "diff",
    .summary = "print the differences between two models: metadata, nodes, types, tensors",
    .operands = "A B",
    .help = "Weights are compared by value, wherever they are stored; for different ones the largest absolute and\n"
            "relative difference is printed. Nodes are matched by name, otherwise by output. The exit status is 0\n"
            "when there is no difference, else 1. For operator sets, violations of the versioning rules are\n"
            "warnings; for models, a note reports that the version did not increase with a change. The older\n"
            "document comes first.\n",
    .example = "onx diff before.onnx after.onnx\n"
               "onx diff --rtol 1e-5 a.onnx b.onnx\n"
               "onx diff --rtol 1e-3 expected.npy actual.pb\n"
               "onx diff --as operator-set vendor-1.pb vendor-2.pb\n",
    .options = options,
    .run = run_diff,
};

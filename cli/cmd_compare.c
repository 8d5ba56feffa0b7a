/* cmd_compare.c - `onx compare`: compares the outputs of two models, of one model with two settings, or of a model and
 * files, on the same inputs; and finds the node where they begin to differ. */
#include "cli_compare.h"
#include "cli_files.h"
#include "cli_image.h"
#include "cli_inputs.h"
#include "cli_table.h"

#include <onx/kernel.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* One side of the comparison. */
typedef struct side {
    const char *path;
    onx_doc *doc;
    onx_session_options options;
    onx_session *session;
    const onx_value **inputs; /* one per input; borrowed from the first side */
    onx_value **outputs;      /* one per output of the session, freed with it */
    uint32_t output_count;
    cli_inner inner;
} side;

typedef struct comparison {
    cli_call *call;
    side side[2];
    cli_inputs inputs;
    onx_run_options limits;
    double rtol, atol;
    const char *against; /* files instead of the second side */
    cli_json json;
    bool is_json;
    uint64_t deviating;
    uint32_t first_output; /* the first output that deviates, in the order of the first side */
} comparison;

/* ---- running ---- */

static void end_session(side *s)
{
    for (uint32_t i = 0; s->outputs && i < s->output_count; i++)
        onx_value_free(s->outputs[i]);
    free(s->outputs);
    onx_session_free(s->session);
    s->outputs = NULL;
    s->session = NULL;
}

static onx_status new_session(comparison *c, side *s)
{
    c->call->input = s->path;
    ONX_TRY(onx_session_new(c->call->cx, s->doc, &s->options, &s->session));
    s->output_count = onx_session_output_count(s->session);
    s->outputs = calloc(s->output_count + 1u, sizeof *s->outputs);
    return s->outputs ? ONX_OK : ONX_E_MEMORY;
}

static onx_status run_side(comparison *c, side *s)
{
    c->call->input = s->path;
    return onx_session_run_with(s->session, c->call->cx, s->inputs, s->outputs, &c->limits);
}

typedef onx_session_port (*port_at)(const onx_session *s, uint32_t index);

/* For each port of one session, the index of the matching port of the other: by name, or by position if no name
 * matches; UINT32_MAX if there is none. NULL when out of memory. */
static uint32_t *match_ports(const comparison *c, port_at at, const onx_session *of, uint32_t count,
                             const onx_session *to, uint32_t to_count)
{
    cli_table names = { .cx = c->call->cx };
    uint32_t *partner = calloc(count + 1u, sizeof *partner);
    bool good = partner != NULL, found = false;
    for (uint32_t i = 0; good && i < to_count; i++)
        good = cli_table_add(&names, cli_table_hash(&names, at(to, i).name, onx_str_of("")), i);
    for (uint32_t i = 0; good && i < count; i++) {
        partner[i] = UINT32_MAX;
        CLI_TABLE_EACH (&names, cli_table_hash(&names, at(of, i).name, onx_str_of("")), k) {
            if (onx_str_equal(at(to, k).name, at(of, i).name)) {
                partner[i] = k;
                found = true;
                break;
            }
        }
    }
    for (uint32_t i = 0; good && !found && count == to_count && i < count; i++)
        partner[i] = i;
    free(names.slots);
    if (!good)
        free(partner);
    return good ? partner : NULL;
}

/* Gives the second model the inputs of the first. */
static onx_status share_inputs(comparison *c)
{
    const onx_session *a = c->side[0].session, *b = c->side[1].session;
    const uint32_t count = onx_session_input_count(b);
    uint32_t *partner = match_ports(c, onx_session_input, b, count, a, onx_session_input_count(a));
    onx_status status = ONX_OK;
    c->side[1].inputs = calloc(count + 1u, sizeof *c->side[1].inputs);
    if (!partner || !c->side[1].inputs)
        status = ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < count; i++) {
        const onx_session_port port = onx_session_input(b, i);
        if (partner[i] != UINT32_MAX)
            c->side[1].inputs[i] = c->inputs.values[partner[i]];
        if (!c->side[1].inputs[i] && port.required) {
            cli_error(c->call, "input \"%.*s\" of %s is none of %s", ONX_ARG(port.name), c->side[1].path,
                      c->side[0].path);
            status = ONX_E_MISUSE;
        }
    }
    free(partner);
    return status;
}

/* ---- describing a value ---- */

static void json_value(comparison *c, onx_str name, const cli_distance *d)
{
    cli_json *json = &c->json;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", name);
    cli_json_bool(json, "agrees", !cli_deviates(d));
    if (d->unlike[0]) {
        cli_json_cstr(json, "unlike", d->unlike);
    } else {
        cli_json_uint(json, "elements", d->elements);
        cli_json_uint(json, "different", d->different);
        cli_json_real(json, "max_abs", d->max_abs);
        cli_json_real(json, "max_rel", d->max_rel);
        cli_json_real(json, "cosine", d->cosine);
        cli_json_real(json, "snr_db", d->snr);
        if (d->different) {
            cli_json_uint(json, "first", d->first);
            cli_json_real(json, "a", d->a);
            cli_json_real(json, "b", d->b);
        }
    }
    cli_json_close(json, '}');
}

static void put_head(void)
{
    printf("%s%12s %12s %10s %9s  %s%s\n", cli_color(stdout, CLI_BOLD), "max abs", "max rel", "cosine", "SNR dB",
           "value", cli_color(stdout, CLI_PLAIN));
}

static void put_value(onx_str name, const cli_distance *d)
{
    if (d->unlike[0])
        printf("%12s %12s %10s %9s  ", "-", "-", "-", "-");
    else
        printf("%12.4g %12.4g %10.7g %9.4g  ", d->max_abs, d->max_rel, d->cosine, d->snr);
    cli_put_text(stdout, name);
    if (cli_deviates(d))
        printf("  %s", cli_color(stdout, CLI_RED));
    if (d->unlike[0])
        printf("deviates: %s", d->unlike);
    else if (d->different)
        printf("deviates: %llu of %llu, first [%llu] %.9g and %.9g", (unsigned long long)d->different,
               (unsigned long long)d->elements, (unsigned long long)d->first, d->a, d->b);
    puts(cli_deviates(d) ? cli_color(stdout, CLI_PLAIN) : "");
}

static void say_value(comparison *c, onx_str name, const cli_distance *d)
{
    c->deviating += cli_deviates(d);
    if (c->is_json)
        json_value(c, name, d);
    else
        put_value(name, d);
}

/* ---- outputs ---- */

static onx_status compare_outputs(comparison *c)
{
    const onx_session *a = c->side[0].session;
    const uint32_t count = c->side[0].output_count;
    uint32_t *partner = match_ports(c, onx_session_output, a, count, c->side[1].session, c->side[1].output_count);
    onx_status status = partner ? ONX_OK : ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < count; i++) {
        cli_distance d;
        const onx_str name = onx_session_output(a, i).name;
        if (partner[i] == UINT32_MAX) {
            cli_error(c->call, "output \"%.*s\" of %s is none of %s", ONX_ARG(name), c->side[0].path, c->side[1].path);
            status = ONX_E_MISUSE;
            break;
        }
        cli_compare_values(c->side[0].outputs[i], c->side[1].outputs[partner[i]], c->rtol, c->atol, &d);
        if (cli_deviates(&d) && !c->deviating)
            c->first_output = i;
        say_value(c, name, &d);
    }
    free(partner);
    return status;
}

/* Outputs computed elsewhere: a folder of test data, an .npz with the output names, or one file for a single output. */
static onx_status compare_files(comparison *c)
{
    const side *s = &c->side[0];
    onx_value **wanted = calloc(s->output_count + 1u, sizeof *wanted);
    onx_status status = wanted ? ONX_OK : ONX_E_MEMORY;
    uint32_t count = 0;
    if (status == ONX_OK && cli_is_folder(c->against)) {
        cli_fault fault = { 0 };
        status = cli_data_set(c->call, s->session, c->against, true, wanted, &count, &fault);
        if (status != ONX_OK || !count)
            cli_error(c->call, "%s: %s", fault.path ? fault.path : c->against,
                      count ? fault.text : "the folder contains no output_0");
        status = status == ONX_OK && !count ? ONX_E_NOT_FOUND : status;
        free(fault.path);
    } else if (status == ONX_OK && s->output_count > 1 && !cli_ends_in(c->against, ".npz")) {
        cli_error(c->call, "the model has %u outputs: --against needs a folder or an .npz", s->output_count);
        status = ONX_E_MISUSE;
    }
    for (uint32_t i = 0; status == ONX_OK && !count && i < s->output_count; i++) {
        const onx_session_port port = onx_session_output(s->session, i);
        status = cli_value_load(c->call, c->against, port.type, port.name, &wanted[i]);
    }
    /* The values in the files are the reference. */
    for (uint32_t i = 0; status == ONX_OK && i < s->output_count; i++) {
        cli_distance d;
        if (!wanted[i])
            continue;
        cli_compare_values(wanted[i], s->outputs[i], c->rtol, c->atol, &d);
        say_value(c, onx_session_output(s->session, i).name, &d);
    }
    for (uint32_t i = 0; wanted && i < s->output_count; i++)
        onx_value_free(wanted[i]);
    free(wanted);
    return status;
}

/* ---- finding the first node that deviates ---- */

/* Inner values that both models have, as indexes into the lists of both, in the order of the first model. */
typedef struct pairs {
    uint32_t *index[2];
    uint32_t count;
} pairs;

static onx_status pair_values(comparison *c, pairs *p)
{
    const cli_inner *a = &c->side[0].inner, *b = &c->side[1].inner;
    cli_table names = { .cx = c->call->cx };
    onx_status status = ONX_OK;
    *p = (pairs){ .index = { calloc(a->count + 1u, sizeof **p->index), calloc(a->count + 1u, sizeof **p->index) } };
    if (!p->index[0] || !p->index[1])
        return ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < b->count; i++)
        if (!cli_table_add(&names, cli_table_hash(&names, onx_view(b->list[i]->name), onx_str_of("")), i))
            status = ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < a->count; i++) {
        const onx_str name = onx_view(a->list[i]->name);
        CLI_TABLE_EACH (&names, cli_table_hash(&names, name, onx_str_of("")), k) {
            if (onx_str_equal(onx_view(b->list[k]->name), name)) {
                p->index[0][p->count] = i;
                p->index[1][p->count++] = k;
                break;
            }
        }
    }
    free(names.slots);
    return status;
}

/* Runs both models with the pairs from `from` on as outputs. *out is the first pair that deviates, or `count` if none
 * does. */
static onx_status first_of(comparison *c, const pairs *p, uint32_t from, uint32_t count, uint32_t *out, cli_distance *d)
{
    *out = count;
    for (int k = 0; k < 2; k++) {
        end_session(&c->side[k]);
        ONX_TRY(cli_inner_choose(&c->side[k].inner, p->index[k] + from, count));
        ONX_TRY(new_session(c, &c->side[k]));
        ONX_TRY(run_side(c, &c->side[k]));
        onx_diag_clear(c->call->cx); /* warnings about the models have been printed already */
    }
    for (uint32_t i = 0; i < count && *out == count; i++) {
        cli_compare_values(c->side[0].outputs[c->side[0].inner.outputs + i],
                           c->side[1].outputs[c->side[1].inner.outputs + i], c->rtol, c->atol, d);
        if (cli_deviates(d))
            *out = i;
    }
    return ONX_OK;
}

/* Requests one value at a time, by binary search. This is for values that do not fit into memory together, and for
 * differences that disappear when all values are requested, because fused nodes then run separately. */
static onx_status halve(comparison *c, const pairs *p, uint32_t *out, cli_distance *d)
{
    uint32_t low = 0, high = p->count; /* the first deviating pair is in low..high; high: none has been found yet */
    cli_distance at;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        uint32_t found;
        ONX_TRY(first_of(c, p, middle, 1, &found, &at));
        if (found == 0) {
            *d = at;
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *out = high;
    return ONX_OK;
}

/* graph.node[3] "conv1" (Conv) */
static void node_path(const comparison *c, uint32_t index, char *buf, size_t size)
{
    const onx_node *node = onx_doc_model(c->side[0].doc)->graph->node[index];
    const onx_str name = onx_view(node->name);
    size_t n = (size_t)snprintf(buf, size, "graph.node[%u] ", index);
    if (name.len && n < size)
        n += (size_t)snprintf(buf + n, size - n, "\"%.*s\" ", ONX_ARG(name));
    if (n < size)
        snprintf(buf + n, size - n, "(%.*s)", ONX_ARG(onx_view(node->op_type)));
}

/* The node that computes an output of the model. */
static bool maker_of(const comparison *c, onx_str name, uint32_t *out)
{
    const onx_graph *g = onx_doc_model(c->side[0].doc)->graph;
    for (uint32_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < g->node[i]->output_count; k++)
            if (onx_str_equal(onx_view(g->node[i]->output[k]), name)) {
                *out = i;
                return true;
            }
    return false;
}

static void say_start(comparison *c, uint32_t node, onx_str value, const cli_distance *d)
{
    char path[512];
    node_path(c, node, path, sizeof path);
    if (c->is_json) {
        cli_json_open(&c->json, "starts", '{');
        cli_json_cstr(&c->json, "node", path);
        cli_json_uint(&c->json, "index", node);
        cli_json_open(&c->json, "values", '[');
        if (d)
            json_value(c, value, d);
        cli_json_close(&c->json, ']');
        cli_json_close(&c->json, '}');
        return;
    }
    fputs("\nstarts at ", stdout);
    cli_put_text(stdout, onx_str_of(path));
    putchar('\n');
    if (d)
        put_value(value, d);
}

static onx_status bisect(comparison *c)
{
    pairs p = { 0 };
    cli_distance d;
    uint32_t found = 0, node = 0;
    const onx_graph *g = onx_doc_model(c->side[0].doc)->graph;
    const onx_str output = onx_view(g->output[c->first_output]->name);
    onx_status status = ONX_OK;
    for (int k = 0; status == ONX_OK && k < 2; k++)
        status = cli_inner_open(&c->side[k].inner, c->call, c->side[k].doc);
    if (status == ONX_OK)
        status = pair_values(c, &p);
    if (status == ONX_OK)
        status = first_of(c, &p, 0, p.count, &found, &d);
    if (status == ONX_E_LIMIT || (status == ONX_OK && found == p.count)) {
        onx_diag_clear(c->call->cx);
        status = halve(c, &p, &found, &d);
    }
    if (status == ONX_OK && found < p.count) {
        const cli_inner *in = &c->side[0].inner;
        say_start(c, in->node[p.index[0][found]], onx_view(in->list[p.index[0][found]]->name), &d);
    } else if (status == ONX_OK && maker_of(c, output, &node)) {
        say_start(c, node, output, NULL); /* no inner value before it deviates */
    }
    free(p.index[0]);
    free(p.index[1]);
    return status;
}

/* ---- the command ---- */

static onx_status compare(comparison *c)
{
    const int sides = c->against ? 1 : 2;
    for (int k = 0; k < sides; k++) {
        ONX_TRY(cli_load(c->call, c->side[k].path, ONX_KIND_MODEL, &c->side[k].doc));
        ONX_TRY(new_session(c, &c->side[k]));
        cli_report(c->call); /* reported here, where it is known which model the diagnostics belong to */
    }
    c->call->input = c->side[0].path;
    ONX_TRY(cli_inputs_read(c->call, c->side[0].doc, c->side[0].session, CLI_MAKE_UP, &c->inputs));
    c->side[0].inputs = calloc(c->inputs.count + 1u, sizeof *c->side[0].inputs);
    if (!c->side[0].inputs)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < c->inputs.count; i++)
        c->side[0].inputs[i] = c->inputs.values[i];
    if (sides == 2)
        ONX_TRY(share_inputs(c));
    for (int k = 0; k < sides; k++)
        ONX_TRY(run_side(c, &c->side[k]));
    if (c->is_json) {
        cli_json_open(&c->json, NULL, '{');
        cli_json_cstr(&c->json, "a", c->against ? c->against : c->side[0].path);
        cli_json_cstr(&c->json, "b", c->against ? c->side[0].path : c->side[1].path);
        cli_json_open(&c->json, "values", '[');
    } else {
        put_head();
    }
    onx_status status = c->against ? compare_files(c) : compare_outputs(c);
    if (c->is_json)
        cli_json_close(&c->json, ']');
    if (c->is_json)
        cli_json_bool(&c->json, "agree", status == ONX_OK && !c->deviating);
    if (status == ONX_OK && c->deviating && cli_has(c->call, "bisect"))
        status = bisect(c);
    if (c->is_json)
        cli_json_close(&c->json, '}');
    return status;
}

/* Reads the settings of the second run. False after an error message. */
static bool read_settings(comparison *c, bool *any)
{
    static const char *const settings[] = { "threads", "no-optimize", "kernels", "isa", "precision" };
    cli_call *call = c->call;
    const char *kernels = cli_value(call, "kernels"), *isa = cli_value(call, "isa");
    uint64_t threads = 1;
    if (!cli_run_options(call, &threads, &c->side[1].options, &c->limits))
        return false;
    c->side[0].options = c->side[1].options;
    c->side[0].options.threads = 1;
    c->side[0].options.no_optimize = false;
    c->side[0].options.precision = ONX_PRECISION_FULL;
    if (kernels)
        c->side[1].options.plain = strcmp(kernels, "plain") == 0;
    if (isa)
        c->side[1].options.isa = cli_isa(isa);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        *any |= cli_has(call, settings[i]);
    return true;
}

static int read_call(comparison *c)
{
    cli_call *call = c->call;
    bool any = false;
    if (!read_settings(c, &any) || !cli_real(call, "rtol", 0, DBL_MAX, &c->rtol) ||
        !cli_real(call, "atol", 0, DBL_MAX, &c->atol))
        return CLI_MISUSE;
    if (c->against && (call->operand_count > 1 || any || cli_has(call, "bisect")))
        return cli_error(call, "--against compares one model with files, with no settings and without --bisect");
    if (call->operand_count == 1 && !any && !c->against) {
        cli_error(call, "nothing to compare %s with", call->operand[0]);
        cli_hint("give another model, a setting such as --kernels plain or --threads 4, or --against FILE");
        return CLI_MISUSE;
    }
    c->side[0].path = call->operand[0];
    c->side[1].path = call->operand[call->operand_count - 1];
    if (!c->against && call->operand_count == 2 && strcmp(call->operand[0], "-") == 0 &&
        strcmp(call->operand[1], "-") == 0)
        return cli_error(call, "standard input can be only one of the two");
    return -1;
}

static int run_compare(cli_call *call)
{
    comparison c = { .call = call, .rtol = 1e-3, .atol = 1e-5, .against = cli_value(call, "against") };
    c.is_json = cli_has(call, "json");
    c.json.to = stdout;
    int misuse = read_call(&c);
    if (misuse >= 0)
        return misuse;
    const onx_status status = compare(&c);
    const int exit_status = cli_exit(call, status);
    for (int k = 0; k < 2; k++) {
        end_session(&c.side[k]);
        cli_inner_close(&c.side[k].inner);
        free(c.side[k].inputs);
        onx_doc_free(c.side[k].doc);
    }
    cli_inputs_free(&c.inputs);
    if (status != ONX_OK)
        return exit_status;
    call->input = NULL;
    if (c.deviating && !c.is_json)
        cli_error(call, "%llu value%s", (unsigned long long)c.deviating, c.deviating == 1 ? " deviates" : "s deviate");
    return c.deviating ? CLI_FAULT : CLI_OK;
}

static const cli_option options[] = {
    CLI_OPTIONS_INPUTS,
    CLI_OPTIONS_IMAGES,
    { "against", 0, "FILE", NULL, "compare with these outputs: a folder with output_0.pb, ..., an .npz, or a file" },
    { "kernels", 0, "KERNELS", "fast|plain", "the second run uses these kernels" },
    { "isa", 0, "ISA", "base|v3|v4|vnni|bf16|amx", "the second run uses the kernels of this older instruction set" },
    { "threads", 0, "N", NULL, "the second run uses N threads (1)" },
    { "no-optimize", 0, NULL, NULL, "the second run executes the nodes as they are in the model" },
    { "precision", 0, "TYPE", "full|bf16|f16|int8-weights",
      "the second run may hold constant weights of products in this type" },
    CLI_OPTION_STRICT,
    { "bisect", 0, NULL, NULL, "find the first node whose result deviates" },
    { "rtol", 0, "R", NULL, "elements b deviate from a when |b - a| > A + R * |a| (0.001)" },
    { "atol", 0, "A", NULL, "the absolute tolerance A (1e-5)" },
    CLI_OPTION_TIMEOUT,
    CLI_OPTION_MAX_ITERATIONS,
    CLI_OPTION_JSON,
    CLI_END,
};

const cli_command cmd_compare = {
    .name = "compare",
    .summary = "run two models, or two settings, on the same inputs: errors per value, first node that deviates",
    .operands = "A [B]",
    .help = "Runs both with the same inputs; inputs that are not given are made up. Prints for each output the\n"
            "largest absolute error, the largest relative error (relative to the larger of both elements), the\n"
            "cosine of the angle between both tensors and the signal-to-noise ratio. Settings apply to the second\n"
            "run. Inputs and outputs are matched by name, or by order if no name is the same. The exit status is\n"
            "1 when an output deviates.\n"
            "\n"
            "--bisect compares the values inside of the main graph that both models have, by name, and prints the\n"
            "node that computes the first one that deviates. Fused nodes run separately when a value between them\n"
            "is requested; if that hides the difference, values are requested one at a time.\n",
    .example = "onx compare model.onnx model-simplified.onnx\n"
               "onx compare model.onnx --kernels plain --bisect\n"
               "onx compare model.onnx --precision bf16 --rtol 0.02\n"
               "onx compare model.onnx -i test_data_set_0 --against test_data_set_0\n"
               "onx compare float.onnx int8.onnx -i image=cat.npy --rtol 0.05 --json\n",
    .options = options,
    .run = run_compare,
};

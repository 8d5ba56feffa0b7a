/* cmd_shard.c - `onx shard`: annotates a model with how it is distributed over devices. */
#include "cli_dims.h"
#include "cli_inputs.h"
#include "cli_ranks.h"
#include "cli_transform.h"

#include <onx/io.h>
#include <onx/shard.h>

#include <stddef.h>
#include <stdlib.h>

enum { DEVICES_MOST = 4096, MESH_MOST = 3 };

typedef struct request {
    cli_transform frame;
    onx_shard_annotate_options options;
    onx_shard_machine machine;
    cli_dims dims;
    uint64_t devices, memory;
    bool automatic;
} request;

/* ---- options ---- */

/* "2x4": parts of the batch by parts of the weights; "3x2x4": pipeline stages first. */
static bool read_mesh(const cli_call *call, onx_shard_annotate_options *o, bool *given)
{
    const char *text = cli_value(call, "mesh");
    cli_shape mesh;
    *given = text != NULL;
    if (!text)
        return true;
    bool fits = cli_shape_read(text, &mesh) && mesh.rank >= 2 && mesh.rank <= MESH_MOST;
    for (uint32_t i = 0; i < mesh.rank && fits; i++)
        fits = mesh.dims[i] >= 1 && mesh.dims[i] <= DEVICES_MOST;
    if (!fits)
        return cli_error(
                   call,
                   "--mesh %s: a mesh is written 2x4 (parts of the batch by parts of the weights) or 3x2x4 (pipeline stages first)",
                   text),
               false;
    if (mesh.rank == MESH_MOST && o->pipeline)
        return cli_error(call, "--pipeline and a mesh of three numbers both give the number of stages"), false;
    if (mesh.rank == MESH_MOST)
        o->pipeline = (uint32_t)mesh.dims[0];
    o->data = (uint32_t)mesh.dims[mesh.rank - 2];
    o->tensor = (uint32_t)mesh.dims[mesh.rank - 1];
    return true;
}

static const struct figure {
    const char *name, *unit;
    size_t offset;
} figures[] = { { "operations", "per second", offsetof(onx_shard_machine, operations) },
                { "bandwidth", "bytes per second", offsetof(onx_shard_machine, bandwidth) },
                { "latency", "seconds", offsetof(onx_shard_machine, latency) },
                { "link", "bytes per second", offsetof(onx_shard_machine, link) },
                { "cache", "bytes per second", offsetof(onx_shard_machine, cache) },
                { "shared", "bytes per second", offsetof(onx_shard_machine, shared) },
                { "passes", "times that weights are waited for", offsetof(onx_shard_machine, passes) } };
enum { FIGURES = sizeof figures / sizeof *figures };

static double *figure_of(onx_shard_machine *m, size_t i)
{
    return (double *)(void *)((char *)m + figures[i].offset);
}

/* "latency=1e-6" */
static bool read_figure(const cli_call *call, onx_shard_machine *m, const char *text)
{
    onx_str name;
    const char *rest;
    char *end;
    if (!cli_split(call, "machine", text, &name, &rest))
        return false;
    for (size_t i = 0; i < FIGURES; i++)
        if (onx_str_is(name, figures[i].name)) {
            *figure_of(m, i) = strtod(rest, &end);
            if (end != rest && (!*end || *end == '\n') && *figure_of(m, i) > 0 && *figure_of(m, i) < 1e30)
                return true;
            return cli_error(call, "--machine %s: this is not a number above 0", text), false;
        }
    return cli_error(call,
                     "--machine %s: the figures are operations, bandwidth, latency, link, cache, shared and passes",
                     text),
           false;
}

/* Reads one figure, or a file with one figure per line, as --measure writes it. */
static bool read_machine(const cli_call *call, onx_shard_machine *m)
{
    const char *text;
    for (int i = 0; (text = cli_value_at(call, "machine", i)) != NULL; i++) {
        char line[128];
        bool good = true;
        FILE *file = strchr(text, '=') ? NULL : fopen(text, "r");
        if (!file && !strchr(text, '='))
            return cli_error(call, "cannot open %s", text), false;
        if (!file && !read_figure(call, m, text))
            return false;
        while (file && good && fgets(line, sizeof line, file))
            good = read_figure(call, m, line);
        if (file)
            fclose(file);
        if (!good)
            return false;
    }
    return true;
}

/* Gives the remaining devices to the only way of splitting that is requested. */
static bool divide(const cli_call *call, onx_shard_annotate_options *o, uint64_t devices)
{
    const bool tensor = cli_has(call, "tensor-parallel"), data = cli_has(call, "data-parallel");
    const uint32_t stages = o->pipeline ? o->pipeline : 1, rest = (uint32_t)(devices / stages);
    if (!devices)
        return cli_error(call, "give the number of devices with --devices or --mesh"), false;
    if (devices % stages)
        return cli_error(call, "%llu devices cannot be shared by %u stages", (unsigned long long)devices, stages),
               false;
    if (tensor && data)
        return cli_error(call,
                         "with both --tensor-parallel and --data-parallel, --mesh has to give the devices for each"),
               false;
    if (tensor)
        o->tensor = rest;
    else if (data)
        o->data = rest;
    else if (rest > 1)
        return cli_error(call, "say how to split: --auto, --tensor-parallel, --data-parallel, --pipeline %u, or --mesh",
                         rest),
               false;
    return true;
}

static bool read_mesh_of(const cli_call *call, request *r)
{
    onx_shard_annotate_options *o = &r->options;
    bool mesh;
    if (!read_mesh(call, o, &mesh) || (!mesh && !divide(call, o, r->devices)))
        return false;
    const uint64_t all =
        (uint64_t)(o->pipeline ? o->pipeline : 1) * (o->data ? o->data : 1) * (o->tensor ? o->tensor : 1);
    if (r->devices && all != r->devices)
        return cli_error(call, "the mesh has %llu devices, not %llu", (unsigned long long)all,
                         (unsigned long long)r->devices),
               false;
    r->devices = all;
    return true;
}

static bool read_request(const cli_call *call, request *r)
{
    static const char *const ways[] = { "tensor-parallel", "data-parallel", "pipeline", "mesh" };
    onx_shard_annotate_options *o = &r->options;
    uint64_t stages = 0;
    if (!cli_number(call, "devices", 2, DEVICES_MOST, &r->devices) ||
        !cli_number(call, "pipeline", 1, DEVICES_MOST, &stages) ||
        !cli_number(call, "memory", 1, INT64_MAX, &r->memory) || !cli_dims_read(call, &r->dims) ||
        !read_machine(call, &r->machine))
        return false;
    o->pipeline = (uint32_t)stages;
    r->automatic = cli_has(call, "auto");
    for (size_t i = 0; i < sizeof ways / sizeof *ways && r->automatic; i++)
        if (cli_has(call, ways[i]))
            return cli_error(call, "--auto chooses the mesh itself; omit --%s", ways[i]), false;
    if (r->automatic && !r->devices)
        return cli_error(call, "give the number of devices with --devices"), false;
    if (!r->automatic && !read_mesh_of(call, r))
        return false;
    if (cli_value(call, "name"))
        o->configuration = onx_str_of(cli_value(call, "name"));
    o->fixed = r->dims.list;
    o->fixed_count = r->dims.count;
    o->changed = cli_transform_changed(&r->frame);
    o->user = &r->frame;
    return true;
}

/* ---- printing ---- */

static void print_trial(void *user, const onx_shard_trial *t)
{
    const request *r = user;
    fprintf(r->frame.to, "%8u %6u %6u %12s %12s%s\n", t->pipeline, t->data, t->tensor, cli_duration(t->seconds).text,
            cli_bytes(t->memory_bytes).text, t->fits ? "" : "  too much");
}

/* Shards may differ in size. */
static bool is_near(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) <= a / 16;
}

static bool is_alike(const onx_shard_forecast *a, const onx_shard_forecast *b)
{
    return a->nodes == b->nodes && a->collectives == b->collectives && is_near(a->weight_bytes, b->weight_bytes) &&
           is_near(a->value_bytes, b->value_bytes) && is_near(a->receive_bytes, b->receive_bytes);
}

/* Prints one row for each range of consecutive devices with the same load. */
static void print_rows(FILE *to, const onx_shard_forecast *rows, uint32_t count)
{
    enum { ROWS_MOST = 40 };
    uint32_t printed = 0;
    fprintf(to, "%-11s %6s %6s %12s %12s %12s %10s %10s %10s\n", "devices", "nodes", "joint", "weights", "values",
            "received", "computes", "waits", "done after");
    for (uint32_t i = 0, next; i < count; i = next, printed++) {
        char name[32];
        const onx_shard_forecast *f = &rows[i];
        for (next = i + 1; next < count && is_alike(f, &rows[next]);)
            next++;
        if (printed == ROWS_MOST) {
            fprintf(to, "and %u more\n", count - i);
            return;
        }
        snprintf(name, sizeof name, next > i + 1 ? "%u to %u" : "%u", i, next - 1);
        fprintf(to, "%-11s %6u %6u %12s %12s %12s %10s %10s %10s\n", name, f->nodes, f->collectives,
                cli_bytes(f->weight_bytes).text, cli_bytes(f->value_bytes).text, cli_bytes(f->receive_bytes).text,
                cli_duration(f->compute_seconds).text, cli_duration(f->wait_seconds).text,
                cli_duration(f->seconds).text);
    }
}

/* Prints the plan, device by device, and its speedup. */
static onx_status print_plan(const request *r, onx_ctx *cx, const onx_doc *doc, onx_str configuration)
{
    onx_shard_predict_options o = { .struct_size = sizeof o,
                                    .count = (uint32_t)r->devices,
                                    .configuration = configuration,
                                    .fixed = r->dims.list,
                                    .fixed_count = r->dims.count,
                                    .batch = r->options.data > 1 || r->automatic ? (uint32_t)r->devices : 1,
                                    .machine = r->machine };
    onx_shard_forecast alone = { 0 }, *rows = calloc(r->devices, sizeof *rows);
    double last = 0;
    if (!rows)
        return cli_error(r->frame.call, "out of memory"), ONX_E_MEMORY;
    onx_status status = onx_shard_predict(cx, doc, &o, rows);
    o.configuration = onx_str_of("");
    if (status == ONX_OK)
        status = onx_shard_predict(cx, doc, &o, &alone);
    for (uint64_t i = 0; i < r->devices; i++)
        last = rows[i].seconds > last ? rows[i].seconds : last;
    if (status == ONX_OK) {
        print_rows(r->frame.to, rows, (uint32_t)r->devices);
        fprintf(r->frame.to, "predicted  %s a run, %s on one device: %.2f times as fast\n", cli_duration(last).text,
                cli_duration(alone.seconds).text, alone.seconds / (last > 0 ? last : 1));
    }
    free(rows);
    return status;
}

/* ---- the command ---- */

static onx_status choose(request *r, onx_ctx *cx, const onx_doc *doc)
{
    const onx_shard_choose_options o = { .struct_size = sizeof o,
                                         .devices = (uint32_t)r->devices,
                                         .memory = r->memory,
                                         .fixed = r->dims.list,
                                         .fixed_count = r->dims.count,
                                         .tried = print_trial,
                                         .user = r,
                                         .machine = r->machine };
    onx_shard_trial best;
    fprintf(r->frame.to, "%8s %6s %6s %12s %12s\n", "pipeline", "data", "tensor", "a run", "memory");
    ONX_TRY(onx_shard_choose(cx, doc, &o, &best));
    r->options.pipeline = best.pipeline;
    r->options.data = best.data;
    r->options.tensor = best.tensor;
    return ONX_OK;
}

static onx_status shard(onx_ctx *cx, onx_doc *doc, void *user)
{
    request *r = user;
    uint32_t annotated = 0;
    if (r->automatic)
        ONX_TRY(choose(r, cx, doc));
    ONX_TRY(onx_shard_annotate(cx, doc, &r->options));
    const onx_model *model = onx_doc_model(doc);
    const onx_device_configuration *c = model->configuration[model->configuration_count - 1];
    for (uint32_t i = 0; i < model->graph->node_count; i++) {
        const onx_node_extra *more = onx_node_more(model->graph->node[i]);
        for (uint32_t k = 0; k < more->device_configurations_count; k++)
            annotated += onx_str_equal(onx_view(more->device_configurations[k]->configuration_id), onx_view(c->name));
    }
    fprintf(r->frame.to, "configuration %.*s: %d devices, %u of %u nodes annotated\n", ONX_ARG(onx_view(c->name)),
            c->num_devices, annotated, model->graph->node_count);
    return print_plan(r, cx, doc, onx_view(c->name));
}

/* Prints the figures of this machine, or writes them for --machine. */
static int measure(cli_call *call)
{
    onx_shard_machine m;
    if (call->ranks && cli_ranks_count(call) < 2)
        return cli_error(call, "--ranks measures the link between two ranks, but only one rank was started");
    const char *out = cli_value(call, "output");
    char text[512] = "";
    size_t used = 0;
    onx_status status = onx_shard_measure(call->cx, cli_ranks_comm(call), &m);
    if (status != ONX_OK || !cli_ranks_first(call))
        return cli_exit(call, status);
    for (size_t i = 0; i < FIGURES; i++) {
        if (!out)
            printf("%-11s %.3g %s\n", figures[i].name, *figure_of(&m, i), figures[i].unit);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s=%.6g\n", figures[i].name, *figure_of(&m, i));
    }
    return out ? cli_exit(call, onx_save_bytes(call->cx, out, onx_str_make(text, used))) : 0;
}

static int run_shard(cli_call *call)
{
    request r = { .options = { .struct_size = sizeof r.options } };
    if (cli_has(call, "ranks") && !cli_has(call, "measure"))
        return cli_error(call, "--ranks needs --measure");
    if (cli_has(call, "measure"))
        return call->operand_count ? (cli_error(call, "--measure takes no model"), CLI_MISUSE) : measure(call);
    if (!call->operand_count)
        return cli_error(call, "name a model, or --measure"), CLI_MISUSE;
    if (!cli_transform_open(call, &r.frame))
        return CLI_MISUSE;
    const int exit_status =
        read_request(call, &r) ? cli_transform_run(&r.frame, call->operand[0], shard, &r) : CLI_MISUSE;
    cli_dims_free(&r.dims);
    return exit_status;
}

/* clang-format off */
static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    { "devices", 0, "N", NULL, "number of devices" },
    { "tensor-parallel", 0, NULL, NULL, "split weights: products by columns and then by rows, attention by heads, embedding tables by rows" },
    { "data-parallel", 0, NULL, NULL, "split the batch: the first axis of the inputs" },
    { "pipeline", 0, "K", NULL, "cut the model into K stages of equal work" },
    { "mesh", 0, "2x4", NULL, "2 parts of the batch by 4 of the weights; 3x2x4: the same in each of 3 pipeline stages" },
    { "auto", 0, NULL, NULL, "try all meshes and use the one with the shortest predicted time" },
    { "memory", 0, "SIZE", NULL, "memory of a device; --auto chooses a mesh that fits" },
    { "machine", 0, "NAME=X", NULL, "a property of a device: operations, bandwidth, latency, link, cache, shared, passes; or a file that --measure wrote; may be repeated" },
    { "measure", 0, NULL, NULL, "measure these properties on this machine, and print them or write them to FILE" },
    { "ranks", 0, NULL, NULL, "measure between the ranks that mpirun starts, not between threads" },
    { "name", 0, "NAME", NULL, "name of the configuration (made of kinds and numbers, such as tensor4)" },
    { "dim", 0, "NAME=N", NULL, "expected size N of the symbolic dimension NAME; may be repeated" },
    CLI_END,
};
/* clang-format on */

const cli_command cmd_shard = {
    .name = "shard",
    .summary = "add annotations that distribute a model over devices",
    .operands = "[IN]",
    .help = "Adds a device configuration to a model and annotates its nodes with how they are split over the\n"
            "devices. The annotations never change results; mpirun -n N onx run MODEL --configuration NAME\n"
            "executes them. The ways to split may be combined: devices are numbered by pipeline stage, then by\n"
            "part of the batch, then by part of the weights. Functions are inlined. The plan is printed per\n"
            "device, with memory and predicted times, for up to 4096 devices; the prediction simulates the plan\n"
            "with a clock per device, and --machine describes devices that do not exist here. Symbolic dimensions\n"
            "without --dim are 1, or the number of devices if they are a batch that is split.\n",
    .example =
        "onx shard model.onnx -o spread.onnx --devices 4 --tensor-parallel --explain\n"
        "onx shard model.onnx -o spread.onnx --devices 8 --pipeline 2 --data-parallel --dim batch=16\n"
        "onx shard --measure -o here.txt\n"
        "mpirun -n 2 onx shard --measure --ranks -o here.txt\n"
        "onx shard model.onnx -o spread.onnx --devices 16 --auto --memory 8G --machine here.txt --machine link=1e10\n"
        "mpirun -n 4 onx run spread.onnx --configuration tensor4 --random\n",
    .options = options,
    .run = run_shard,
};

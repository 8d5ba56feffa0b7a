/* cmd_shard.c - `onx shard`: a model with annotations that spread it over devices. */
#include "cli_dims.h"
#include "cli_inputs.h"
#include "cli_transform.h"

#include <onx/shard.h>

#include <stdlib.h>

enum { DEVICES_MOST = 4096, MESH_MOST = 3 };

typedef struct request {
    cli_transform frame;
    onx_shard_annotate_options options;
    cli_dims dims;
} request;

/* ---- options ---- */

/* "2x4": parts of the batch and of the weights; "3x2x4": stages before them. */
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
        return cli_error(call, "--mesh %s: a mesh is like 2x4, parts of the batch by parts of the weights, or 3x2x4",
                         text),
               false;
    if (mesh.rank == MESH_MOST && o->pipeline)
        return cli_error(call, "--pipeline and a mesh of three numbers say the same"), false;
    if (mesh.rank == MESH_MOST)
        o->pipeline = (uint32_t)mesh.dims[0];
    o->data = (uint32_t)mesh.dims[mesh.rank - 2];
    o->tensor = (uint32_t)mesh.dims[mesh.rank - 1];
    return true;
}

/* What is left of the devices goes to the one way that is asked for. */
static bool divide(const cli_call *call, onx_shard_annotate_options *o, uint64_t devices)
{
    const bool tensor = cli_has(call, "tensor-parallel"), data = cli_has(call, "data-parallel");
    const uint32_t stages = o->pipeline ? o->pipeline : 1, rest = (uint32_t)(devices / stages);
    if (!devices)
        return cli_error(call, "say how many devices: --devices, or --mesh"), false;
    if (devices % stages)
        return cli_error(call, "%llu devices cannot be shared by %u stages", (unsigned long long)devices, stages),
               false;
    if (tensor && data)
        return cli_error(call, "of both ways --mesh says how many devices each gets"), false;
    if (tensor)
        o->tensor = rest;
    else if (data)
        o->data = rest;
    else if (rest > 1)
        return cli_error(call, "say how: --tensor-parallel, --data-parallel, --pipeline %u, or --mesh", rest), false;
    return true;
}

static bool read_request(const cli_call *call, request *r)
{
    onx_shard_annotate_options *o = &r->options;
    uint64_t devices = 0, stages = 0;
    bool mesh;
    if (!cli_number(call, "devices", 2, DEVICES_MOST, &devices) ||
        !cli_number(call, "pipeline", 1, DEVICES_MOST, &stages) || !cli_dims_read(call, &r->dims))
        return false;
    o->pipeline = (uint32_t)stages;
    if (!read_mesh(call, o, &mesh) || (!mesh && !divide(call, o, devices)))
        return false;
    const uint64_t all =
        (uint64_t)(o->pipeline ? o->pipeline : 1) * (o->data ? o->data : 1) * (o->tensor ? o->tensor : 1);
    if (devices && all != devices)
        return cli_error(call, "the mesh has %llu devices, not %llu", (unsigned long long)all,
                         (unsigned long long)devices),
               false;
    if (cli_value(call, "name"))
        o->configuration = onx_str_of(cli_value(call, "name"));
    o->fixed = r->dims.list;
    o->fixed_count = r->dims.count;
    o->changed = cli_transform_changed(&r->frame);
    o->user = &r->frame;
    return true;
}

/* ---- the command ---- */

static onx_status shard(onx_ctx *cx, onx_doc *doc, void *user)
{
    const request *r = user;
    uint32_t annotated = 0;
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
    return ONX_OK;
}

static int run_shard(cli_call *call)
{
    request r = { .options = { .struct_size = sizeof r.options } };
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
    { "devices", 0, "N", NULL, "how many devices there are" },
    { "tensor-parallel", 0, NULL, NULL, "split weights: products by columns and then by rows, attention by heads, tables by rows" },
    { "data-parallel", 0, NULL, NULL, "split the batch: the first axis of the inputs" },
    { "pipeline", 0, "K", NULL, "cut the model into K stages of equal work" },
    { "mesh", 0, "2x4", NULL, "2 parts of the batch by 4 of the weights; 3x2x4: in each of 3 stages" },
    { "name", 0, "NAME", NULL, "what the configuration is called (ways and numbers, such as tensor4)" },
    { "dim", 0, "NAME=N", NULL, "the symbolic dimension NAME will be about N; may be repeated" },
    CLI_END,
};
/* clang-format on */

const cli_command cmd_shard = {
    .name = "shard",
    .summary = "annotations that spread a model over devices",
    .operands = "IN",
    .help =
        "Adds a device configuration to a model, and to its nodes how they are split over the devices. The annotations never\n"
        "change results; mpirun -n N onx run MODEL --configuration NAME does what they say. Several ways may be combined:\n"
        "devices are numbered by stage, then by part of the batch, then by part of the weights. Functions are inlined.\n",
    .example = "onx shard model.onnx -o spread.onnx --devices 4 --tensor-parallel --explain\n"
               "onx shard model.onnx -o spread.onnx --devices 8 --pipeline 2 --data-parallel --dim batch=16\n"
               "mpirun -n 4 onx run spread.onnx --configuration tensor4 --random\n",
    .options = options,
    .run = run_shard,
};

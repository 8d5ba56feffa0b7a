/* cmd_trainable.c - `onx trainable`: adds training information to a model. */
#include "cli_attribute.h"
#include "cli_transform.h"
#include "cli_tune.h"

#include <onx/text.h>
#include <onx/trainable.h>

#include <stdlib.h>

typedef struct tally {
    uint64_t weights, values;
} tally;

typedef struct request {
    cli_transform frame; /* the first member: `user` of the callbacks */
    cli_call *call;
    onx_trainable_options options;
    onx_str *train, *freeze, *tie, *untie;
    onx_named_number *numbers;
    onx_train_group *groups;
    /* for the summary */
    tally trained;
    struct left {
        const char *reason;
        bool guessed;
        tally size;
        char names[200]; /* the first ones */
    } left[16];
    uint32_t left_count;
    char warned[400]; /* names of weights that look like constants */
} request;

/* ---- summary ---- */

static void add_name(char *list, size_t room, onx_str name)
{
    const size_t used = strlen(list);
    if (used + name.len + 8 < room)
        snprintf(list + used, room - used, "%s%.*s", used ? ", " : "", ONX_ARG(name));
    else if (used > 3 && strcmp(list + used - 3, "...") != 0 && used + 6 < room)
        strcpy(list + used, ", ...");
}

static void count_weight(void *user, const onx_train_weight *weight)
{
    request *r = user;
    uint32_t i = 0;
    if (!weight->reason) {
        r->trained.weights++;
        r->trained.values += weight->count;
        return;
    }
    while (i < r->left_count && strcmp(r->left[i].reason, weight->reason) != 0)
        i++;
    if (i == sizeof r->left / sizeof *r->left)
        return;
    if (i == r->left_count)
        r->left[r->left_count++] = (struct left){ .reason = weight->reason, .guessed = weight->guessed };
    r->left[i].size.weights++;
    r->left[i].size.values += weight->count;
    add_name(r->left[i].names, sizeof r->left[i].names, weight->name);
    if (weight->guessed && weight->count > 1)
        add_name(r->warned, sizeof r->warned, weight->name);
}

/* "52 weights trained (4.2 M values), 4 left", and a line for each reason why some are left. */
static void print_summary(const request *r)
{
    FILE *to = r->frame.to;
    uint64_t left = 0;
    const double values = (double)r->trained.values;
    for (uint32_t i = 0; i < r->left_count; i++)
        left += r->left[i].size.weights;
    fprintf(to, "%llu weight%s trained (", (unsigned long long)r->trained.weights, r->trained.weights == 1 ? "" : "s");
    if (values < 1e4)
        fprintf(to, "%llu value%s)", (unsigned long long)r->trained.values, r->trained.values == 1 ? "" : "s");
    else
        fprintf(to, "%.4g %s values)",
                values / (values < 1e6   ? 1e3
                          : values < 1e9 ? 1e6
                                         : 1e9),
                values < 1e6   ? "thousand"
                : values < 1e9 ? "million"
                               : "billion");
    fprintf(to, ", %llu left\n", (unsigned long long)left);
    for (uint32_t i = 0; i < r->left_count; i++) {
        fprintf(to, "  left: ");
        cli_put_text(to, onx_str_of(r->left[i].names));
        fprintf(to, ": %s%s\n", r->left[i].size.weights > 1 ? "each " : "", r->left[i].reason);
    }
    if (r->warned[0]) {
        cli_warn(r->call, "not trained, although the loss depends on it: %s", r->warned);
        cli_hint("--train NAME trains it; --freeze NAME says that it is a constant");
    }
}

static void list(const onx_train_choice *(*get)(uint32_t), const char *what)
{
    const onx_train_choice *row;
    printf("%s:\n", what);
    for (uint32_t i = 0; (row = get(i)) != NULL; i++) {
        printf("  %-14s %s", row->name, row->summary);
        if (row->numbers[0])
            printf("; --number %s", row->numbers);
        if (row->rate > 0)
            printf("; rate %g", row->rate);
        putchar('\n');
    }
}

static bool read_numbers(request *r)
{
    const char *text, *rest;
    uint32_t count = 0;
    while (cli_value_at(r->call, "number", (int)count))
        count++;
    if (!(r->numbers = calloc((size_t)count + 1, sizeof *r->numbers)))
        return cli_error(r->call, "out of memory"), false;
    for (uint32_t i = 0; i < count; i++) {
        onx_named_number *n = &r->numbers[i];
        char *end;
        text = cli_value_at(r->call, "number", (int)i);
        if (!cli_split(r->call, "number", text, &n->name, &rest))
            return false;
        n->value = strtod(rest, &end);
        if (end == rest || *end)
            return cli_error(r->call, "--number %s: \"%s\" is not a number", text, rest), false;
    }
    r->options.number = r->numbers;
    r->options.number_count = count;
    return true;
}

/* "rate=0.1" and "decay=0" of "encoder.*:rate=0.1,decay=0". */
static bool read_group(request *r, const char *text, onx_train_group *group)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return cli_error(r->call, "--group %s: expected PATTERN:rate=X, decay=X, or both with a comma between", text),
               false;
    *group = (onx_train_group){ .pattern = onx_str_make(text, (size_t)(colon - text)), .rate = 1, .weight_decay = -1 };
    for (const char *at = colon + 1, *end; at; at = *end ? end + 1 : NULL) {
        char *after;
        double *to = strncmp(at, "rate=", 5) == 0    ? &group->rate
                     : strncmp(at, "decay=", 6) == 0 ? &group->weight_decay
                                                     : NULL;
        const char *number = strchr(at, '=');
        end = at + strcspn(at, ",");
        const double value = to ? strtod(number + 1, &after) : -1;
        if (!to || after != end || end == number + 1 || !(value >= 0 && value <= 1e30))
            return cli_error(r->call,
                             "--group %s: expected rate=X or decay=X with a number from 0 on after the last colon",
                             text),
                   false;
        *to = value;
    }
    return true;
}

static bool read_groups(request *r)
{
    uint32_t count = 0;
    while (cli_value_at(r->call, "group", (int)count))
        count++;
    if (!(r->groups = calloc((size_t)count + 1, sizeof *r->groups)))
        return cli_error(r->call, "out of memory"), false;
    for (uint32_t i = 0; i < count; i++)
        if (!read_group(r, cli_value_at(r->call, "group", (int)i), &r->groups[i]))
            return false;
    r->options.group = r->groups;
    r->options.group_count = count;
    return true;
}

static bool read_request(request *r)
{
    cli_call *call = r->call;
    onx_trainable_options *o = &r->options;
    uint64_t rank = 0, seed = 0;
    const char *axis = cli_value(call, "axis");
    const struct {
        const char *name;
        onx_str *to;
    } texts[] = { { "loss", &o->loss },
                  { "optimizer", &o->optimizer },
                  { "output-name", &o->output },
                  { "label", &o->label },
                  { "batch", &o->batch } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i].to = onx_str_of(cli_value(call, texts[i].name) ? cli_value(call, texts[i].name) : "");
    if (!cli_real(call, "rate", 0, 1e30, &o->rate) || !cli_real(call, "weight-decay", 0, 1e30, &o->weight_decay) ||
        !cli_real(call, "clip-norm", 0, 1e30, &o->clip_norm) ||
        !cli_real(call, "clip-value", 0, 1e30, &o->clip_value) ||
        !cli_real(call, "lora-scale", 0, 1e30, &o->lora_scale) || !cli_number(call, "lora", 1, UINT32_MAX, &rank) ||
        !cli_number(call, "seed", 0, UINT32_MAX, &seed) || !cli_checkpoint(call, &o->checkpoint))
        return false;
    if (axis) {
        char *end;
        o->axis = strtoll(axis, &end, 10);
        o->axis_given = true;
        if (end == axis || *end)
            return cli_error(call, "--axis %s: the axis has to be an integer", axis), false;
    }
    o->lora_rank = (uint32_t)rank;
    o->seed = (uint32_t)seed;
    o->keep = cli_has(call, "keep");
    o->quantized = cli_has(call, "qat");
    o->freeze_statistics = cli_has(call, "freeze-statistics");
    o->unbiased = cli_has(call, "unbiased-variance");
    r->train = cli_names(call, "train", &o->train_count);
    r->freeze = r->train ? cli_names(call, "freeze", &o->freeze_count) : NULL;
    r->tie = r->freeze ? cli_names(call, "tie", &o->tie_count) : NULL;
    r->untie = r->tie ? cli_names(call, "untie", &o->untie_count) : NULL;
    o->train = r->train;
    o->freeze = r->freeze;
    o->tie = r->tie;
    o->untie = r->untie;
    return r->untie && read_numbers(r) && read_groups(r);
}

static void hint_rows(const cli_call *call, const onx_trainable_options *o)
{
    const struct {
        const onx_train_choice *(*get)(uint32_t);
        onx_str name;
        const char *what;
    } parts[] = { { onx_train_loss_get, o->loss, "losses" }, { onx_train_optimizer_get, o->optimizer, "optimisers" } };
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        char known[400] = "";
        bool found = !parts[p].name.len;
        const onx_train_choice *row;
        for (uint32_t i = 0; (row = parts[p].get(i)) != NULL; i++) {
            const size_t used = strlen(known);
            found |= onx_str_is(parts[p].name, row->name);
            snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", row->name);
        }
        (void)call;
        if (!found)
            cli_hint("%s are %s", parts[p].what, known);
    }
}

static onx_status merge(onx_ctx *cx, onx_doc *doc, void *user)
{
    uint32_t count;
    cli_transform *frame = user;
    ONX_TRY(onx_merge_adapters(cx, doc, &count));
    if (!count)
        cli_warn(frame->call, "the model has no adapters");
    else if (frame->explain)
        fprintf(frame->to, "%u adapter%s merged\n", count, count == 1 ? "" : "s");
    return ONX_OK;
}

static bool is_quantised(onx_doc *doc)
{
    const onx_model *model = onx_doc_model(doc);
    for (uint32_t i = 0; model && model->graph && i < model->graph->node_count; i++)
        if (cli_node_is(model->graph->node[i], "DequantizeLinear"))
            return true;
    return false;
}

static onx_status make_trainable(onx_ctx *cx, onx_doc *doc, void *user)
{
    const request *r = user;
    const onx_status status = onx_trainable(cx, doc, &r->options);
    if (status == ONX_OK)
        print_summary(r);
    if (status == ONX_E_NOT_FOUND)
        hint_rows(r->call, &r->options);
    if (status == ONX_E_INVALID && onx_doc_model(doc) && onx_doc_model(doc)->training_info_count) {
        cli_report(r->call);
        cli_hint("onx edit --strip training removes it");
    }
    if (status == ONX_E_UNSUPPORTED && !r->options.quantized && is_quantised(doc)) {
        cli_report(r->call);
        cli_hint("--qat trains the weights of a model that is quantised");
    }
    return status;
}

static int run_trainable(cli_call *call)
{
    request r = { .call = call, .options = { .struct_size = sizeof r.options, .weight = count_weight } };
    if (cli_has(call, "list")) {
        list(onx_train_loss_get, "losses");
        list(onx_train_optimizer_get, "optimisers");
        return 0;
    }
    if (!call->operand_count)
        return cli_error(call, "name a model, or --list");
    if (!cli_transform_open(call, &r.frame))
        return CLI_MISUSE;
    if (cli_has(call, "merge"))
        return cli_transform_run(&r.frame, call->operand[0], merge, &r.frame);
    int result = CLI_MISUSE;
    if (read_request(&r)) {
        r.options.changed = cli_transform_changed(&r.frame);
        r.options.user = &r.frame;
        result = cli_transform_run(&r.frame, call->operand[0], make_trainable, &r);
    }
    free(r.train);
    free(r.freeze);
    free(r.tie);
    free(r.untie);
    free(r.numbers);
    free(r.groups);
    return result;
}

/* clang-format off */
static const cli_option options[] = {
    CLI_OPTION_OUTPUT,
    CLI_OPTION_TO,
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_DRY_RUN,
    { "loss", 0, "NAME", NULL, "the loss to minimise (cross-entropy); --list prints the names" },
    { "optimizer", 0, "NAME", NULL, "the optimiser (adam); --list prints the names" },
    { "list", 0, NULL, NULL, "print losses and optimisers, with their parameters" },
    { "number", 0, "NAME=X", NULL, "set a parameter of the loss or optimiser, such as beta1; may be repeated" },
    { "rate", 0, "X", NULL, "learning rate, the default of the input `rate` (that of the optimiser)" },
    { "weight-decay", 0, "X", NULL, "weight decay, except for biases and scales" },
    { "group", 0, "PATTERN:rate=X,decay=X", NULL, "weights with another factor of the learning rate or another weight decay; the first group that matches counts; may be repeated" },
    { "clip-value", 0, "X", NULL, "maximum absolute value of each element of a gradient, before --clip-norm" },
    { "clip-norm", 0, "X", NULL, "maximum norm of all gradients together" },
    { "train", 0, "PATTERN", NULL, "weights to train (all that the loss has a gradient of and that are not evidently constants); inputs that are named exactly become weights; may be repeated" },
    { "freeze", 0, "PATTERN", NULL, "weights to keep unchanged; may be repeated" },
    { "tie", 0, "PATTERN", NULL, "weights that all nodes that read them share, although exporters may have merged equal ones; may be repeated" },
    { "untie", 0, "PATTERN", NULL, "weights of which each node that reads them gets its own; may be repeated" },
    { "freeze-statistics", 0, NULL, NULL, "BatchNormalization normalizes by its running averages, and keeps them" },
    { "unbiased-variance", 0, NULL, NULL, "running variances average the unbiased variance, as in PyTorch, instead of the population's" },
    { "label", 0, "NAME", NULL, "name of the new input for the target values (label)" },
    { "output-name", 0, "NAME", NULL, "the output that the loss is computed from (the first)" },
    { "axis", 0, "N", NULL, "axis of classes (that of Softmax; else the last of up to 3, or 1)" },
    { "batch", 0, "N", NULL, "another batch size: a number or a symbol" },
    { "keep", 0, NULL, NULL, "no initialisers: training continues from the existing weights" },
    { "qat", 0, NULL, NULL, "quantisation-aware training of a model that onx quantize made (static, qdq): its weights become floats that are rounded where they are read; implies --keep" },
    { "seed", 0, "N", NULL, "seed of the initialisers (0)" },
    CLI_OPTION_CHECKPOINT,
    { "lora", 0, "RANK", NULL, "train adapters of this rank beside frozen products; --train and --freeze select the products" },
    { "lora-scale", 0, "X", NULL, "factor of the adapters (1)" },
    { "merge", 0, NULL, NULL, "merge trained adapters into their weights instead, and remove training information" },
    CLI_END,
};
/* clang-format on */

const cli_command cmd_trainable = {
    .name = "trainable",
    .summary = "add training information to a model",
    .operands = "[IN]",
    .help = "Adds a loss, its gradients, an optimiser with its state, and initialisers to a model, as\n"
            "training_info for onx train. The main graph is for inference; the training step contains a copy in\n"
            "which Dropout and BatchNormalization work in training mode, and updates running averages. A second\n"
            "entry computes the loss without an update, for validation. The inputs of the step are those of the\n"
            "model and the label: the class index for cross-entropy, otherwise the target value of the output.\n"
            "All floating-point weights that the loss has a gradient of are trained, unless they are evidently\n"
            "constants; a summary says which are left, and why. Equal weights that an exporter has stored once are\n"
            "separate weights again, unless the file says that they are one.\n",
    .example = "onx trainable model.onnx -o training.onnx --batch N\n"
               "onx trainable model.onnx -o tuning.onnx --keep --train 'head.*' --optimizer sgd --rate 0.001\n"
               "onx trainable model.onnx -o tuning.onnx --lora 8 && onx train tuning.onnx --data d -o tuned.onnx\n"
               "onx trainable tuned.onnx --merge -o model.onnx\n"
               "onx trainable quantized.onnx -o aware.onnx --qat --rate 0.0001\n",
    .options = options,
    .run = run_trainable,
};

/* cmd_run.c - `onx run`: runs a model on inputs from files or made up, and writes or sums up the outputs. */
#include "cli_inputs.h"

#include <onx/text.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- profile ---- */

typedef struct entry {
    char name[256], op[64];
    const char *variant;
    uint32_t post_ops;
    uint64_t start, end, bytes;
} entry;

typedef struct profile {
    entry *list;
    size_t count, room;
} profile;

/* As much as fits, cut between characters. */
static void copy_text(char *to, size_t size, onx_str s)
{
    size_t n = s.len < size - 1 ? s.len : size - 1;
    while (n && n < s.len && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
        n--;
    if (n)
        memcpy(to, s.ptr, n);
    to[n] = 0;
}

static void note(void *user, const onx_run_event *event)
{
    profile *p = user;
    if (p->count == p->room) {
        size_t room = p->room ? p->room * 2 : 256;
        entry *more = realloc(p->list, room * sizeof *more);
        if (!more)
            return;
        p->list = more;
        p->room = room;
    }
    entry *e = &p->list[p->count++];
    copy_text(e->name, sizeof e->name, event->name);
    copy_text(e->op, sizeof e->op, event->op_type);
    e->variant = event->variant;
    e->post_ops = event->post_ops;
    e->start = event->start_ns;
    e->end = event->end_ns;
    e->bytes = event->output_bytes;
}

static int by_time(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    uint64_t ta = a->end - a->start, tb = b->end - b->start;
    return ta < tb ? 1 : ta > tb ? -1 : a->start < b->start ? -1 : 1;
}

static onx_status write_trace(cli_call *call, const profile *p, const char *path)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        return ONX_E_MEMORY;
    cli_json json = { .to = f };
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "traceEvents", '[');
    for (size_t i = 0; i < p->count; i++) {
        const entry *e = &p->list[i];
        cli_json_open(&json, NULL, '{');
        cli_json_cstr(&json, "name", e->name[0] ? e->name : e->op);
        cli_json_cstr(&json, "cat", e->op);
        cli_json_cstr(&json, "ph", "X");
        cli_json_real(&json, "ts", (double)e->start * 1e-3);
        cli_json_real(&json, "dur", (double)(e->end - e->start) * 1e-3);
        cli_json_int(&json, "pid", 1);
        cli_json_int(&json, "tid", 1);
        cli_json_open(&json, "args", '{');
        cli_json_cstr(&json, "op", e->op);
        cli_json_cstr(&json, "kernel", e->variant);
        cli_json_uint(&json, "post_ops", e->post_ops);
        cli_json_uint(&json, "output_bytes", e->bytes);
        cli_json_close(&json, '}');
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    if (fclose(f) != 0) {
        free(text);
        return ONX_E_MEMORY;
    }
    onx_status status = onx_save_bytes(call->cx, path, onx_str_make(text, len));
    free(text);
    return status;
}

static void print_profile(profile *p)
{
    uint64_t total = 0;
    for (size_t i = 0; i < p->count; i++)
        total += p->list[i].end - p->list[i].start;
    qsort(p->list, p->count, sizeof *p->list, by_time);
    printf("%s%10s %6s  %-20s %-8s %s%s\n", cli_color(stdout, CLI_BOLD), "ms", "share", "operator", "kernel", "node",
           cli_color(stdout, CLI_PLAIN));
    for (size_t i = 0; i < p->count; i++) {
        const entry *e = &p->list[i];
        double ms = (double)(e->end - e->start) * 1e-6;
        printf("%10.3f %5.1f%%  ", ms, total ? 100.0 * (double)(e->end - e->start) / (double)total : 0);
        cli_put_field(stdout, onx_str_of(e->op), 20);
        printf(" %-8s ", e->variant);
        cli_put_text(stdout, onx_str_of(e->name));
        if (e->post_ops)
            printf(" (+%u)", e->post_ops);
        putchar('\n');
    }
    printf("%10.3f ms in %zu steps\n", (double)total * 1e-6, p->count);
}

/* ---- outputs ---- */

/* "DIR/output_3.pb"; NULL when out of memory. */
static char *output_path(cli_call *call, uint32_t index)
{
    const char *dir = cli_value(call, "output-dir");
    size_t room = strlen(dir) + 40;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s/output_%u.%s", dir, index, cli_has(call, "npy") ? "npy" : "pb");
    else
        cli_error(call, "out of memory");
    return path;
}

static const char *trace_path(cli_call *call)
{
    const char *path = cli_value(call, "trace");
    return path ? path : "onx-trace.json";
}

/* Whether all that will be written may be, before a run that may take hours. */
static onx_status claim_outputs(cli_call *call, onx_session *s)
{
    const char *dir = cli_value(call, "output-dir");
    if (cli_has(call, "profile"))
        ONX_TRY(onx_output_claim(call->cx, trace_path(call), false));
    if (dir && mkdir(dir, 0777) != 0 && errno != EEXIST) {
        cli_error(call, "cannot make the folder %s: %s", dir, strerror(errno));
        return ONX_E_IO;
    }
    for (uint32_t i = 0; dir && i < onx_session_output_count(s); i++) {
        char *path = output_path(call, i);
        onx_status status = path ? onx_output_claim(call->cx, path, false) : ONX_E_MEMORY;
        free(path);
        ONX_TRY(status);
    }
    return ONX_OK;
}

static onx_status write_outputs(cli_call *call, onx_session *s, onx_value *const *outputs)
{
    for (uint32_t i = 0; i < onx_session_output_count(s); i++) {
        char *path = output_path(call, i);
        onx_status status = path ? cli_value_save(call, path, outputs[i], onx_session_output(s, i).name) : ONX_E_MEMORY;
        free(path);
        ONX_TRY(status);
    }
    return ONX_OK;
}

static void print_value(const onx_value *v)
{
    static const char *const kinds[] = { "nothing", "tensor", "sequence", "optional", "map" };
    if (v->kind != ONX_VALUE_TENSOR) {
        printf("%s of %llu", kinds[v->kind], (unsigned long long)v->count);
        return;
    }
    printf("%s[", onx_dtype_name(v->dtype));
    for (uint32_t i = 0; i < v->rank; i++)
        printf("%s%lld", i ? "," : "", (long long)v->dims[i]);
    printf("]");
    unsigned width = onx_dtype_bits(v->dtype) / 8;
    onx_dtype_class class = onx_dtype_class_of(v->dtype);
    if (v->dtype == ONX_STRING) {
        for (uint64_t i = 0; i < v->count && i < 4; i++) {
            printf(" \"");
            cli_put_text(stdout, ((const onx_str *)v->data)[i]);
            printf("\"");
        }
        return;
    }
    if (!width || class == ONX_CLASS_COMPLEX || !v->count)
        return;
    double least = INFINITY, most = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < v->count; i++) {
        double x = 0;
        onx_convert(ONX_DOUBLE, &x, (onx_dtype)v->dtype, (const char *)v->data + i * width, 1, true);
        least = x < least ? x : least;
        most = x > most ? x : most;
        sum += x;
        if (i < 4)
            printf(" %.6g", x);
    }
    printf("%s  (min %.6g, max %.6g, mean %.6g)", v->count > 4 ? " ..." : "", least, most, sum / (double)v->count);
}

static void print_outputs(onx_session *s, onx_value *const *outputs)
{
    for (uint32_t i = 0; i < onx_session_output_count(s); i++) {
        printf("%s", cli_color(stdout, CLI_BOLD));
        cli_put_text(stdout, onx_session_output(s, i).name);
        printf("%s  ", cli_color(stdout, CLI_PLAIN));
        print_value(outputs[i]);
        putchar('\n');
    }
}

/* ---- the command ---- */

static onx_status run_session(cli_call *call, onx_session *s, const onx_run_options *limits, onx_value **inputs,
                              onx_value **outputs)
{
    ONX_TRY(claim_outputs(call, s));
    profile p = { 0 };
    bool profiled = cli_has(call, "profile");
    onx_run_options options = *limits;
    options.event = profiled ? note : NULL;
    options.user = &p;
    onx_status status = onx_session_run_with(s, call->cx, (const onx_value *const *)inputs, outputs, &options);
    if (status == ONX_OK)
        status = cli_has(call, "output-dir") ? write_outputs(call, s, outputs) : ONX_OK;
    if (status == ONX_OK && !cli_has(call, "output-dir"))
        print_outputs(s, outputs);
    if (status == ONX_OK && profiled) {
        status = write_trace(call, &p, trace_path(call));
        print_profile(&p);
    }
    free(p.list);
    return status;
}

static int run_run(cli_call *call)
{
    uint64_t threads = 0;
    onx_session_options options;
    onx_run_options limits;
    if (!cli_run_options(call, &threads, &options, &limits))
        return CLI_MISUSE;
    onx_doc *doc;
    onx_session *s = NULL;
    onx_status status = cli_load(call, call->operand[0], ONX_KIND_MODEL, &doc);
    if (status != ONX_OK)
        return cli_exit(call, status);
    const char *input = call->input;
    status = onx_session_new(call->cx, doc, &options, &s);
    if (status == ONX_OK) {
        uint32_t no = onx_session_output_count(s);
        cli_inputs inputs;
        onx_value **outputs = calloc(no + 1u, sizeof *outputs);
        status = cli_inputs_read(call, doc, s, 0, &inputs);
        if (status == ONX_OK)
            status = outputs ? run_session(call, s, &limits, inputs.values, outputs) : ONX_E_MEMORY;
        cli_inputs_free(&inputs);
        for (uint32_t i = 0; outputs && i < no; i++)
            onx_value_free(outputs[i]);
        free(outputs);
    }
    onx_session_free(s);
    if (call->input == input) /* else it is about the file of a value */
        (void)onx_text_locate(doc, 0);
    onx_doc_free(doc);
    return cli_exit(call, status);
}

static const cli_option options_[] = {
    CLI_OPTIONS_INPUTS,
    CLI_OPTION_RANDOM,
    { "output-dir", 'o', "DIR", NULL, "write output_0.pb, output_1.pb, ... in graph order" },
    { "npy", 0, NULL, NULL, "write NumPy files instead" },
    { "profile", 0, NULL, NULL, "print a table of what each node took, and write a Chrome trace" },
    { "trace", 0, "FILE", NULL, "where the trace goes (onx-trace.json)" },
    { "threads", 0, "N", NULL, "threads to use (0: one per processor)" },
    CLI_OPTION_TIMEOUT,
    CLI_OPTION_MAX_ITERATIONS,
    CLI_OPTION_NO_OPTIMIZE,
    CLI_END,
};

const cli_command cmd_run = {
    .name = "run",
    .summary = "run a model",
    .operands = "MODEL",
    .help = "Without --output-dir the outputs are summed up on standard output. Inputs that have an\n"
            "initializer of the same name may be left out. ONX_KERNELS=plain turns the fast kernels off.\n"
            "ONX_ISA=base, v3 or v4 asks for those of an older processor.\n",
    .example = "onx run model.onnx --random --dim batch=4\nonx run model.onnx --input x=x.npy --output-dir out --npy\n",
    .options = options_,
    .run = run_run,
};

/* cmd_bench.c - `onx bench`: measures the time of decoding and encoding a file; cmd_bench_model.c measures runs of a
 * model. */
#include "cli_image.h"
#include "cli_inputs.h"
#include "cli_profile.h"
#include "cli_ranks.h"

#include <stdlib.h>

typedef struct best {
    double decode, encode;
} best;

/* One round: decoding to a complete model, encoding to a buffer; freeing is not timed. */
static onx_status codec_round(onx_ctx *cx, onx_kind kind, onx_str bytes, unsigned threads, best *out)
{
    onx_doc *doc;
    onx_buffer buffer;
    double t0 = 1e3 * cli_now();
    ONX_TRY(onx_read(cx, kind, bytes, 0, threads, &doc));
    double t1 = 1e3 * cli_now();
    onx_status status = onx_write(cx, kind, onx_doc_root(doc, kind), bytes.len, &buffer);
    double t2 = 1e3 * cli_now();
    if (status == ONX_OK)
        onx_buffer_free(&buffer);
    onx_doc_free(doc);
    if (out->decode < 0 || t1 - t0 < out->decode)
        out->decode = t1 - t0;
    if (out->encode < 0 || t2 - t1 < out->encode)
        out->encode = t2 - t1;
    return status;
}

static int bench_codec(cli_call *call)
{
    uint64_t threads = 1;
    double seconds = 2;
    if (!cli_number(call, "threads", 1, 1024, &threads) || !cli_real(call, "seconds", 0, 3600, &seconds))
        return CLI_MISUSE;
    /* The file is copied into memory first, so that no page of it has to be read from disk while the clock runs. */
    onx_buffer bytes;
    onx_status status = cli_load_bytes(call, call->operand[0], &bytes);
    if (status != ONX_OK)
        return cli_exit(call, status);
    call->input = call->operand[0];
    best result = { -1, -1 };
    double end = 1e3 * cli_now() + 1e3 * seconds;
    unsigned rounds = 0;
    while (status == ONX_OK && (rounds < 3 || 1e3 * cli_now() < end)) {
        status = codec_round(call->cx, cli_kind(call), onx_str_make(bytes.ptr, bytes.len), (unsigned)threads, &result);
        rounds++;
    }
    size_t len = bytes.len;
    onx_buffer_free(&bytes);
    if (status != ONX_OK)
        return cli_exit(call, status);
    double mib = (double)len / (1024 * 1024);
    if (cli_has(call, "json")) {
        cli_json json = { .to = stdout };
        cli_json_open(&json, NULL, '{');
        cli_json_cstr(&json, "file", call->operand[0]);
        cli_json_uint(&json, "size", len);
        cli_json_uint(&json, "threads", threads);
        cli_json_uint(&json, "rounds", rounds);
        cli_json_real(&json, "decode_ms", result.decode);
        cli_json_real(&json, "encode_ms", result.encode);
        cli_json_close(&json, '}');
        return CLI_OK;
    }
    printf("%s, best of %u rounds, %s\n", cli_bytes(len).text, rounds, threads == 1 ? "1 thread" : "several threads");
    printf("  decode %10s  %8.0f MiB/s\n", cli_duration(result.decode * 1e-3).text, mib / result.decode * 1e3);
    printf("  encode %10s  %8.0f MiB/s\n", cli_duration(result.encode * 1e-3).text, mib / result.encode * 1e3);
    return CLI_OK;
}

static int run_bench(cli_call *call)
{
    if (cli_has(call, "accuracy"))
        return cli_bench_accuracy(call);
    return cli_has(call, "codec") ? bench_codec(call) : cli_bench_model(call);
}

static const cli_option options[] = {
    { "codec", 0, NULL, NULL, "time decoding and encoding of the file, not runs" },
    { "accuracy", 0, NULL, NULL, "measure the error of the outputs against full precision instead of the time" },
    CLI_OPTIONS_INPUTS,
    CLI_OPTIONS_IMAGES,
    CLI_OPTION_AS,
    { "threads", 0, "N", NULL, "threads to use (1)" },
    CLI_OPTIONS_SESSION,
    CLI_OPTIONS_RANKS,
    { "seconds", 0, "S", NULL, "how long to measure (2)" },
    { "streams", 0, "N", NULL, "run the session N times at once, each with --threads of its own (1)" },
    CLI_OPTIONS_PROFILE,
    CLI_OPTION_JSON,
    CLI_END,
};

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "time a model",
    .operands = "MODEL",
    .help = "Runs the model repeatedly with the same inputs, after a few warm-up runs. Prints the median, mean,\n"
            "best and worst times, the runs per second, the start-up time, and the memory of model, constants and\n"
            "plan before the first run and with the values of the runs. Inputs that are not given are made up.\n"
            "\n"
            "--profile compares the arithmetic and memory traffic that follow from the sizes in the model with\n"
            "what a matrix product and a copy achieve on this machine at the same time.\n",
    .example = "onx bench model.onnx --dim batch=8 --threads 4\n"
               "onx bench model.onnx --streams 4 --seconds 0.5 --json\n"
               "onx bench model.onnx --profile\n"
               "onx bench model.onnx --precision int8-weights --accuracy\n"
               "onx bench --codec model.onnx --json\n",
    .options = options,
    .run = run_bench,
};

/* fuzz_shard.c - takes any bytes as a model that is distributed over devices: agreeing, planning, writing the part of a
 * rank and running it is safe, whatever the annotations say and other ranks send. So are making annotations and
 * predicting their effect. */
#include <onx/io.h>
#include <onx/shard.h>

#include <string.h>

#include "fuzz_value.h"

enum { RANKS_MOST = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Simulates the other ranks: they send what was last sent with the same tag, if it has the right size, otherwise bytes
 * of one value. */
typedef struct others {
    struct heard {
        uint32_t tag;
        uint64_t size;
        char bytes[64];
    } heard[16];
    uint32_t count;
    int fill;
} others;

static onx_status exchange(void *user, uint32_t tag, const onx_comm_part *sends, uint32_t send_count,
                           const onx_comm_part *receives, uint32_t receive_count, uint64_t timeout_ns,
                           uint32_t *rank_out)
{
    others *o = user;
    const uint32_t most = sizeof o->heard / sizeof *o->heard;
    (void)timeout_ns;
    *rank_out = 0;
    for (uint32_t i = 0; i < send_count; i++)
        if (sends[i].size <= sizeof o->heard->bytes) {
            struct heard *h = &o->heard[o->count++ % most];
            *h = (struct heard){ .tag = tag, .size = sends[i].size };
            memcpy(h->bytes, sends[i].data, (size_t)sends[i].size);
        }
    for (uint32_t i = 0; i < receive_count; i++) {
        memset(receives[i].data, o->fill, (size_t)receives[i].size);
        for (uint32_t k = 0; k < most; k++)
            if (o->heard[k].tag == tag && o->heard[k].size == receives[i].size)
                memcpy(receives[i].data, o->heard[k].bytes, (size_t)receives[i].size);
    }
    return ONX_OK;
}

static void no_more(void *user)
{
    (void)user;
}

static onx_status run_once(void *sharded, onx_ctx *cx, fuzz_values *v, const onx_run_options *options)
{
    return onx_sharded_run(sharded, cx, (const onx_value *const *)v->inputs, v->outputs, options);
}

/* A rank other than the first reports its result and gets ones as the answer: all agree. */
static void run(onx_ctx *cx, onx_doc *doc, const onx_comm *comm, const char *configuration)
{
    const onx_session_options session = { .threads = 1, .memory = 16 << 20 };
    const onx_shard_options options = { .comm = comm, .session = &session, .configuration = configuration };
    fuzz_values v = { { NULL }, { NULL } };
    const onx_graph *g = onx_doc_model(doc)->graph;
    onx_sharded *s;
    if (onx_sharded_new(cx, doc, &options, &s) != ONX_OK)
        return;
    bool ready = g->input_count <= FUZZ_PORTS && g->output_count <= FUZZ_PORTS;
    for (uint32_t i = 0; ready && i < g->input_count; i++)
        ready = fuzz_value(cx, g->input[i]->type, &v.inputs[i]);
    ready = ready && onx_sharded_prepare(s, cx, (const onx_value *const *)v.inputs) == ONX_OK;
    fuzz_run(cx, &v, ready, run_once, s);
    onx_sharded_free(s);
}

/* Makes annotations by methods that the size selects. */
static void annotate(onx_ctx *cx, onx_doc *doc, size_t choice)
{
    const onx_shard_annotate_options ways = { .pipeline = 1 + choice % 2,
                                              .data = 1 + choice / 2 % 3,
                                              .tensor = 1 + choice / 6 % 3,
                                              .configuration = onx_str_of("made") };
    onx_shard_forecast devices[2 * 3 * 3];
    if (onx_shard_annotate(cx, doc, &ways) == ONX_OK)
        (void)onx_shard_predict(
            cx, doc,
            &(onx_shard_predict_options){ .count = 18, .configuration = ways.configuration, .batch = ways.data },
            devices);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    onx_ctx *cx = onx_ctx_new(NULL);
    onx_limits limits = onx_ctx_limits(cx);
    limits.memory = 64 << 20;
    onx_ctx_set_limits(cx, limits);
    onx_doc *doc;
    if (onx_read(cx, ONX_KIND_MODEL, onx_str_make((const char *)data, size), 0, 1, &doc) == ONX_OK) {
        const onx_model *model = onx_doc_model(doc);
        for (uint32_t i = 0; i < model->configuration_count && i < 2; i++) {
            const int32_t devices = model->configuration[i]->num_devices;
            const onx_str name = onx_view(model->configuration[i]->name);
            char text[64] = "";
            others o = { .fill = 0xff };
            if (devices < 1 || devices > RANKS_MOST || name.len >= sizeof text)
                continue;
            if (name.len)
                memcpy(text, name.ptr, name.len);
            for (uint32_t rank = (uint32_t)devices; rank-- > 0;) {
                const onx_comm comm = {
                    .rank = rank, .size = (uint32_t)devices, .user = &o, .exchange = exchange, .fail = no_more
                };
                run(cx, doc, &comm, text);
            }
        }
        annotate(cx, doc, size);
        onx_doc_free(doc);
    }
    onx_ctx_free(cx);
    return 0;
}

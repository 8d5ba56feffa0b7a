/* shard_run.c - the public interface: ranks verify that they have the same model, plan for the input shapes, and run
 * their parts. */
#include "shard/shard.h"

#include <onx/tensor.h>
#include <onx/transform.h>

#include "run/run.h"
#include "transform/transform.h"
#include "wire/wire.h"

enum { TIMEOUT_NS_DEFAULT = 60 }; /* in seconds */
enum { TAG_HELLO = 0x7ffffff0, TAG_SHAPES = 0x7ffffff2 };

/* The part of this rank, for certain input shapes. */
typedef struct part {
    onx_arena *arena; /* of the plan */
    onx_doc *whole, *doc;
    onx_session *session;
    onx_value **inputs, **outputs; /* of the session */
    onx_value **extra;             /* outputs of the session that are only sent */
    uint32_t *from;                /* per input of the session: index of the model's input */
    uint32_t input_count, output_count, given_count;
    onx_shard_summary summary;
    onx_value *types; /* the types it was planned for, per input of the model; kind NONE: not given */
} part;

struct onx_sharded {
    onx_ctx *maker, *cx; /* `cx` is its own */
    onx_doc *doc;
    const onx_device_configuration *configuration;
    onx_arena *arena;
    onxi_shard_runtime runtime;
    onx_session_options session;
    onx_kernel *kernels;
    bool strict, everywhere, failed;
    part part;
};

/* ---- verifying that ranks agree ---- */

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_text(uint64_t hash, onx_bytes text)
{
    const onx_str s = onx_view(text);
    return mix(mix(hash, &s.len, sizeof s.len), s.ptr, s.len);
}

/* Hashes long stretches four words at a time; the position of a byte among them matters, too. */
static uint64_t mix_bytes(uint64_t hash, onx_str bytes)
{
    enum { LANES = 4 };
    uint64_t lane[LANES], word[LANES];
    size_t i = 0;
    for (size_t k = 0; k < LANES; k++)
        lane[k] = hash + k * UINT64_C(0x9e3779b97f4a7c15);
    for (; bytes.len - i >= sizeof word; i += sizeof word) {
        memcpy(word, bytes.ptr + i, sizeof word);
        for (size_t k = 0; k < LANES; k++) {
            lane[k] = (lane[k] ^ word[k]) * UINT64_C(0xff51afd7ed558ccd);
            lane[k] ^= lane[k] >> 32;
        }
    }
    hash = mix(hash, lane, sizeof lane);
    return bytes.len > i ? mix(hash, bytes.ptr + i, bytes.len - i) : hash;
}

/* Hashes weights window by window, and drops the pages that have been read, because no rank needs all of them. */
static uint64_t mix_windows(onx_doc *doc, uint64_t hash, onx_str bytes)
{
    enum { WINDOW = 4 << 20 };
    for (size_t i = 0; i < bytes.len; i += WINDOW) {
        const onx_str some = onx_str_make(bytes.ptr + i, bytes.len - i < WINDOW ? bytes.len - i : WINDOW);
        hash = mix_bytes(hash, some);
        if (doc->forget)
            doc->forget(doc, some);
    }
    return hash;
}

/* Hashes samples of weights that are too large to be read completely by each rank. */
static uint64_t mix_some(onx_doc *doc, uint64_t hash, onx_str bytes)
{
    enum { SMALL = 65536, SAMPLES = 64, SAMPLE = 64 };
    if (bytes.len <= SMALL)
        return mix_windows(doc, hash, bytes);
    for (size_t i = 0; i < SAMPLES; i++)
        hash = mix(hash, bytes.ptr + (bytes.len - SAMPLE) / (SAMPLES - 1) * i, SAMPLE);
    if (doc->forget)
        doc->forget(doc, bytes); /* reading a few bytes maps the pages around them */
    return hash;
}

static onx_status mix_weight(onx_doc *doc, const onx_tensor *t, bool all, uint64_t *hash)
{
    onx_str bytes;
    *hash = mix_text(*hash, t->name);
    *hash = mix(*hash, t->dims, t->dims_count * sizeof *t->dims);
    *hash = mix(*hash, &t->data_type, sizeof t->data_type);
    for (uint32_t i = 0; i < t->string_data_count; i++)
        *hash = mix_text(*hash, t->string_data[i]);
    if (t->data_type == ONX_STRING)
        return ONX_OK;
    ONX_TRY(onx_tensor_bytes(doc, t, &bytes));
    *hash = mix(*hash, &bytes.len, sizeof bytes.len);
    *hash = all ? mix_windows(doc, *hash, bytes) : mix_some(doc, *hash, bytes);
    return ONX_OK;
}

enum { HASH_START = 0x1b873593 };

/* Hashes everything except weights and training information as it would be encoded: nodes with attributes, subgraphs
 * and annotations, functions, configurations, operator sets, types. */
static onx_status hash_structure(onx_ctx *cx, const onx_doc *doc, uint64_t *out)
{
    onx_model model = *onx_doc_model(doc);
    onx_graph graph = *model.graph;
    onxi_writer w;
    graph.initializer_count = 0;
    model.training_info_count = 0;
    model.graph = &graph;
    ONX_TRY(onxi_wire_write(cx, onxi_messages[ONX_KIND_MODEL], &model, true, 0, &w));
    *out = mix(HASH_START, w.bytes.ptr, w.bytes.len);
    for (size_t i = 0; i < w.ref_count; i++)
        *out = mix_bytes(*out, w.refs[i].payload);
    onxi_writer_free(&w);
    return ONX_OK;
}

static onx_status hash_weights(onx_doc *doc, uint64_t *out)
{
    const onx_graph *g = onx_doc_model(doc)->graph;
    const uint64_t most = UINT64_C(1) << 30; /* bytes that are read in a fraction of a second */
    uint64_t all = 0, count, size;
    *out = HASH_START;
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (onx_tensor_count(g->initializer[i], &count) && onx_dtype_size(g->initializer[i]->data_type, count, &size))
            all = onxi_shard_add(all, size);
    for (uint32_t i = 0; i < g->initializer_count; i++)
        ONX_TRY(mix_weight(doc, g->initializer[i], all <= most, out));
    return ONX_OK;
}

enum { FACTS = 4 };

/* Rank 0 compares the facts of all ranks, and tells each rank the result; `what` names each fact. */
static onx_status agree(onx_sharded *s, uint32_t tag, const uint64_t mine[FACTS], const char *const what[FACTS])
{
    const onx_comm *comm = &s->runtime.comm;
    const uint32_t size = comm->size;
    uint32_t rank = 0;
    uint64_t verdict[2] = { UINT64_MAX, 0 }; /* the rank that differs, and the fact */
    onx_arena *arena;
    ONX_TRY(onx_arena_new(s->cx, &arena));
    onx_comm_part *parts = ONXI_ARRAY(arena, onx_comm_part, size);
    uint64_t *all = ONXI_ARRAY(arena, uint64_t, (size_t)size * FACTS);
    onx_status status = parts && all ? ONX_OK : ONX_E_MEMORY;
    const bool first = comm->rank == 0;
    onx_comm_part up = { 0, (void *)(uintptr_t)mine, FACTS * sizeof *mine }, down = { 0, verdict, sizeof verdict };
    for (uint32_t i = 1; first && status == ONX_OK && i < size; i++)
        parts[i - 1] = (onx_comm_part){ i, all + (size_t)i * FACTS, FACTS * sizeof *all };
    if (status == ONX_OK)
        status = comm->exchange(comm->user, tag, first ? NULL : &up, !first, first ? parts : NULL, first ? size - 1 : 0,
                                s->runtime.timeout_ns, &rank);
    for (uint32_t i = 1; first && status == ONX_OK && i < size; i++) {
        for (uint32_t k = FACTS; k-- > 0;)
            if (all[(size_t)i * FACTS + k] != mine[k] && (verdict[0] > i || verdict[0] == i)) {
                verdict[0] = i;
                verdict[1] = k;
            }
        parts[i - 1] = (onx_comm_part){ i, verdict, sizeof verdict };
    }
    if (status == ONX_OK)
        status = comm->exchange(comm->user, tag + 1, first ? parts : NULL, first ? size - 1 : 0, first ? NULL : &down,
                                !first, s->runtime.timeout_ns, &rank);
    onx_arena_free(arena);
    if (status != ONX_OK)
        return status == ONX_E_MEMORY ? status : onxi_shard_failed(s->cx, status, rank, s->runtime.timeout_ns);
    if (verdict[0] == UINT64_MAX)
        return ONX_OK;
    if (!first) /* rank 0 reports the reason */
        return onxi_shard_failed(s->cx, ONX_E_CANCELLED, 0, 0);
    return onxi_fail(s->cx, ONX_E_INVALID, ONXI_NOWHERE, "rank %llu has %s than rank 0", (unsigned long long)verdict[0],
                     verdict[1] < FACTS ? what[verdict[1]] : "something else");
}

/* ---- creation ---- */

static onx_status find_configuration(onx_sharded *s, const char *name)
{
    const onx_model *model = onx_doc_model(s->doc);
    if (!model->configuration_count)
        return onxi_fail(s->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no device configuration");
    if (!name && model->configuration_count > 1)
        return onxi_fail(s->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                         "the model has %u device configurations, one has to be chosen", model->configuration_count);
    for (uint32_t i = 0; i < model->configuration_count && !s->configuration; i++)
        if (!name || onx_str_is(onx_view(model->configuration[i]->name), name))
            s->configuration = model->configuration[i];
    if (!s->configuration)
        return onxi_fail(s->cx, ONX_E_NOT_FOUND, ONXI_NOWHERE, "the model has no device configuration \"%s\"", name);
    const int32_t devices = s->configuration->num_devices;
    if (devices < 1 || devices > ONXI_SHARD_DEVICES_MAX)
        return onxi_fail(s->cx, ONX_E_INVALID, ONXI_NOWHERE, "a configuration has 1 to %d devices, not %d",
                         ONXI_SHARD_DEVICES_MAX, devices);
    if ((uint32_t)devices != s->runtime.comm.size)
        return onxi_fail(s->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                         "the configuration \"%.*s\" is for %d devices, and there are %u ranks",
                         ONX_ARG(onx_view(s->configuration->name)), devices, s->runtime.comm.size);
    return ONX_OK;
}

static onx_status meet(onx_sharded *s)
{
    static const char *const what[FACTS] = { "another version of the library", "another configuration", "another model",
                                             "other weights" };
    uint64_t facts[FACTS] = { ONX_VERSION_MAJOR << 20 | ONX_VERSION_MINOR << 10 | ONX_VERSION_PATCH };
    onx_doc *reader;
    facts[1] = mix_text(0, s->configuration->name);
    ONX_TRY(onx_doc_reader(s->cx, s->doc, &reader));
    onx_status status = hash_structure(s->cx, s->doc, &facts[2]);
    if (status == ONX_OK)
        status = hash_weights(reader, &facts[3]);
    onx_doc_free(reader);
    ONX_TRY(status);
    return agree(s, TAG_HELLO, facts, what);
}

/* The caller's rows come first. */
static onx_status join_kernels(onx_sharded *s)
{
    uint32_t count = 0;
    for (const onx_kernel *k = s->session.kernels; k && k->op; k++)
        count++;
    s->kernels = ONXI_ARRAY(s->arena, onx_kernel, (size_t)count + ONXI_SHARD_KERNELS);
    if (!s->kernels)
        return ONX_E_MEMORY;
    if (count)
        memcpy(s->kernels, s->session.kernels, count * sizeof *s->kernels);
    onxi_shard_kernels(&s->runtime, s->kernels + count);
    s->session.kernels = s->kernels;
    return ONX_OK;
}

/* The kernels of collectives trust the attributes that sharding generates, so a model must not contain such nodes. */
static onx_status refuse_own(void *user, const onx_visit *at)
{
    const onx_sharded *s = user;
    const onx_node *node = at->kind == ONX_KIND_NODE ? at->message : NULL;
    const onx_function *f = at->kind == ONX_KIND_FUNCTION ? at->message : NULL;
    const onx_str domain = node ? onx_view(node->domain) : f ? onx_view(f->domain) : onx_str_of("");
    if (!onx_str_is(domain, ONXI_SHARD_DOMAIN))
        return ONX_OK;
    const onx_str name = node ? onx_view(node->op_type) : onx_view(f->name);
    return onxi_fail(s->cx, ONX_E_INVALID, ONXI_NOWHERE,
                     "the model has %.*s of the domain %s, which only sharding itself writes", ONX_ARG(name),
                     ONXI_SHARD_DOMAIN);
}

static onx_status fill(onx_sharded *s, const onx_shard_options *options)
{
    ONX_TRY(onxi_options(s->cx, &s->runtime.comm, sizeof s->runtime.comm, options->comm));
    ONX_TRY(onxi_options(s->cx, &s->session, sizeof s->session, options->session));
    s->session.struct_size = sizeof s->session;
    s->strict = options->strict;
    s->everywhere = options->everywhere;
    s->runtime.timeout_ns = options->timeout_ns ? options->timeout_ns : TIMEOUT_NS_DEFAULT * UINT64_C(1000000000);
    if (!s->runtime.comm.exchange || !s->runtime.comm.fail || s->runtime.comm.rank >= s->runtime.comm.size)
        return onxi_fail(s->cx, ONX_E_MISUSE, ONXI_NOWHERE, "the communicator is not complete");
    ONX_TRY(onxi_doc_need_graph(s->cx, s->doc));
    ONX_TRY(onx_message_walk(s->cx, ONX_KIND_MODEL, onx_doc_model(s->doc), refuse_own, s));
    ONX_TRY(onx_arena_new(s->cx, &s->arena));
    ONX_TRY(find_configuration(s, options->configuration));
    ONX_TRY(join_kernels(s));
    return meet(s);
}

static void tell_others(onx_sharded *s, onx_status status)
{
    if (status == ONX_OK || s->failed)
        return;
    s->failed = true;
    if (s->runtime.comm.fail)
        s->runtime.comm.fail(s->runtime.comm.user);
}

static onx_status sharded_new(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options, onx_sharded **out)
{
    if (!options->comm)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "there is no communicator");
    onx_ctx *own = onxi_ctx_worker(cx);
    if (!own)
        return onxi_no_memory(cx);
    onx_sharded *s = onxi_resize(own, NULL, 0, sizeof *s);
    if (!s) {
        onx_ctx_free(own);
        return onxi_no_memory(cx);
    }
    memset(s, 0, sizeof *s);
    if (options->session && options->session->registry) /* type inference of the plan uses it, too */
        onxi_ctx_set_registry(own, options->session->registry);
    s->cx = own;
    s->doc = doc;
    const onx_status status = fill(s, options);
    tell_others(s, status);
    onxi_diag_move(cx, own);
    if (status == ONX_OK)
        *out = s;
    else
        onx_sharded_free(s);
    return status;
}

onx_status onx_sharded_new(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options, onx_sharded **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_shard_options, own, options);
    ONXI_CALL_TO_MAKE(cx, out, onx_sharded_free, sharded_new(cx, doc, &own, out));
}

static void part_free(part *p)
{
    for (uint32_t i = 0; p->extra && i < p->output_count - p->given_count; i++)
        onx_value_free(p->extra[i]);
    onx_session_free(p->session);
    onx_doc_free(p->doc);
    onx_doc_free(p->whole);
    onx_arena_free(p->arena);
    *p = (part){ 0 };
}

void onx_sharded_free(onx_sharded *sharded)
{
    if (!sharded)
        return;
    onx_ctx *cx = sharded->cx;
    part_free(&sharded->part);
    onx_arena_free(sharded->arena);
    onxi_release(cx, sharded, sizeof *sharded);
    onx_ctx_free(cx);
}

/* ---- planning for input shapes ---- */

static onx_status give_shape(onx_doc *doc, onx_value_info *info, const onx_value *v)
{
    onx_type *type;
    if (v->kind != ONX_VALUE_TENSOR)
        return ONX_OK;
    if (!(type = onx_type_new_tensor(onx_doc_arena(doc), (onx_dtype)v->dtype, v->dims, (int)v->rank)))
        return ONX_E_MEMORY;
    ONX_SET(value_info, info, type, type);
    return ONX_OK;
}

/* Sets the input shapes; a name that is also an initializer remains only one of the two. */
static onx_status set_inputs(onx_sharded *s, onx_doc *doc, const onx_value *const *inputs, part *p)
{
    onx_graph *g = onx_doc_model(doc)->graph;
    onxi_dict given = onxi_dict_in_arena(p->arena);
    uint32_t kept = 0;
    p->from = ONXI_ARRAY(p->arena, uint32_t, (size_t)g->input_count + 1);
    if (!p->from)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->input_count; i++) {
        if (!inputs[i])
            continue;
        if (!onxi_dict_at(&given, onx_view(g->input[i]->name), i, NULL))
            return ONX_E_MEMORY;
        ONX_TRY(give_shape(doc, g->input[i], inputs[i]));
        p->from[kept] = i;
        g->input[kept++] = g->input[i];
    }
    p->input_count = g->input_count = kept;
    for (uint32_t i = kept = 0; i < g->initializer_count; i++)
        if (!onxi_dict_find(&given, onx_view(g->initializer[i]->name)))
            g->initializer[kept++] = g->initializer[i];
    g->initializer_count = kept;
    g->value_info_count = 0; /* its sizes are not valid any more */
    (void)s;
    return ONX_OK;
}

static onx_status make_plan(onx_sharded *s, part *p, onxi_shard_plan *plan)
{
    bool changed;
    ONX_TRY(onx_doc_sort(p->whole, &changed));
    if (onx_doc_model(p->whole)->functions_count)
        ONX_TRY(onx_inline(s->cx, p->whole, NULL));
    *plan = (onxi_shard_plan){ .cx = s->cx,
                               .doc = p->whole,
                               .arena = p->arena,
                               .strict = s->strict,
                               .outputs_everywhere = s->everywhere,
                               .overlaps = s->runtime.comm.begin && s->runtime.comm.finish };
    plan->model = onx_doc_model(p->whole);
    plan->graph = plan->model->graph;
    plan->configuration = s->configuration;
    plan->placements = (onxi_placements){ p->arena, s->runtime.comm.size, NULL };
    return onxi_shard_plan_make(plan);
}

static onx_status note_types(part *p, const onx_value *const *inputs, uint32_t count)
{
    p->types = ONXI_ARRAY(p->arena, onx_value, (size_t)count + 1);
    if (!p->types)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        if (!inputs[i])
            continue;
        p->types[i] = (onx_value){ .kind = inputs[i]->kind, .dtype = inputs[i]->dtype, .rank = inputs[i]->rank };
        if (inputs[i]->kind != ONX_VALUE_TENSOR)
            continue;
        if (!(p->types[i].dims = ONXI_ARRAY(p->arena, int64_t, (size_t)inputs[i]->rank + 1)))
            return ONX_E_MEMORY;
        onxi_copy_dims(p->types[i].dims, inputs[i]->dims, inputs[i]->rank);
    }
    return ONX_OK;
}

static onx_status make_part(onx_sharded *s, const onx_value *const *inputs, part *p)
{
    onxi_shard_plan plan;
    const uint32_t outputs = onx_doc_model(s->doc)->graph->output_count;
    ONX_TRY(onx_arena_new(s->cx, &p->arena));
    ONX_TRY(note_types(p, inputs, onx_doc_model(s->doc)->graph->input_count));
    ONX_TRY(onx_doc_share(s->cx, s->doc, &p->whole));
    ONX_TRY(set_inputs(s, p->whole, inputs, p));
    ONX_TRY(make_plan(s, p, &plan));
    ONX_TRY(onx_doc_reader(s->cx, s->doc, &p->doc));
    p->doc->also = p->whole; /* slices of weights refer to files that it has opened */
    ONX_TRY(onxi_shard_write(&plan, s->runtime.comm.rank, p->doc, &p->summary));
    ONX_TRY(onx_session_new(s->cx, p->doc, &s->session, &p->session));
    p->given_count = s->runtime.comm.rank && !s->everywhere ? 0 : outputs;
    p->output_count = onx_session_output_count(p->session);
    p->inputs = (onx_value **)ONXI_ARRAY(p->arena, void *, (size_t)p->input_count + 1);
    p->outputs = (onx_value **)ONXI_ARRAY(p->arena, void *, (size_t)p->output_count + 1);
    p->extra = (onx_value **)ONXI_ARRAY(p->arena, void *, (size_t)p->output_count + 1);
    return p->inputs && p->outputs && p->extra ? ONX_OK : ONX_E_MEMORY;
}

static bool fits(const onx_sharded *s, const onx_value *const *inputs)
{
    const part *p = &s->part;
    for (uint32_t i = 0; i < onx_doc_model(s->doc)->graph->input_count; i++) {
        const onx_value *v = inputs[i], *t = &p->types[i];
        if (!v != (t->kind == ONX_VALUE_NONE))
            return false;
        if (v && (v->kind != t->kind || v->dtype != t->dtype || v->rank != t->rank ||
                  (v->kind == ONX_VALUE_TENSOR && !onxi_same_dims(v->dims, t->dims, v->rank))))
            return false;
    }
    return true;
}

/* All ranks compute the same plan if their inputs have the same shapes. */
static onx_status meet_again(onx_sharded *s, const onx_value *const *inputs)
{
    static const char *const what[FACTS] = { "inputs of other shapes", "another plan", "another plan", "another plan" };
    uint64_t facts[FACTS] = { 0 };
    for (uint32_t i = 0; i < onx_doc_model(s->doc)->graph->input_count; i++) {
        const onx_value *v = inputs[i];
        const uint32_t kind[] = { v ? v->kind : 0u, v ? v->dtype : 0u, v ? v->rank : 0u };
        facts[0] = mix(facts[0], kind, sizeof kind);
        if (v && v->kind == ONX_VALUE_TENSOR)
            facts[0] = mix(facts[0], v->dims, v->rank * sizeof *v->dims);
    }
    return agree(s, TAG_SHAPES, facts, what);
}

static onx_status check_inputs(const onx_sharded *s, const onx_value *const *inputs)
{
    const onx_graph *g = onx_doc_model(s->doc)->graph;
    onxi_dict names = onxi_dict_in_arena(s->arena);
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (!onxi_dict_at(&names, onx_view(g->initializer[i]->name), i, NULL))
            return ONX_E_MEMORY;
    for (uint32_t i = 0; i < g->input_count; i++)
        if (!inputs[i] && !onxi_dict_find(&names, onx_view(g->input[i]->name)))
            return onxi_fail(s->cx, ONX_E_MISUSE, ONXI_NOWHERE, "input \"%.*s\" is not given",
                             ONX_ARG(onx_view(g->input[i]->name)));
    return ONX_OK;
}

static onx_status prepare(onx_sharded *s, const onx_value *const *inputs)
{
    part p = { 0 };
    if (s->failed)
        return onxi_fail(s->cx, ONX_E_MISUSE, ONXI_NOWHERE, "an earlier run has failed");
    if (s->part.session && fits(s, inputs))
        return ONX_OK;
    onx_status status = check_inputs(s, inputs);
    if (status == ONX_OK)
        status = meet_again(s, inputs);
    part_free(&s->part); /* freed before a new one is created, because weights are large */
    if (status == ONX_OK)
        status = make_part(s, inputs, &p);
    if (status == ONX_OK)
        s->part = p;
    else
        part_free(&p);
    return status;
}

onx_status onx_sharded_prepare(onx_sharded *sharded, onx_ctx *cx, const onx_value *const *inputs)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, sharded);
    ONXI_NEED(cx, inputs || !onx_doc_model(sharded->doc)->graph->input_count);
    const size_t errors = onxi_call_begin(cx);
    const onx_status status = prepare(sharded, inputs);
    tell_others(sharded, status);
    onxi_diag_move(cx, sharded->cx);
    return onxi_tell(cx, errors, status);
}

/* ---- running ---- */

static onx_status run(onx_sharded *s, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                      const onx_run_options *options)
{
    const onx_status ready = prepare(s, inputs);
    onxi_diag_move(cx, s->cx);
    ONX_TRY(ready);
    part *p = &s->part;
    for (uint32_t i = 0; i < p->input_count; i++)
        p->inputs[i] = (onx_value *)(uintptr_t)inputs[p->from[i]];
    for (uint32_t i = 0; i < p->output_count; i++)
        p->outputs[i] = i < p->given_count ? outputs[i] : p->extra[i - p->given_count];
    const onx_status status =
        onx_session_run_with(p->session, cx, (const onx_value *const *)(void *)p->inputs, p->outputs, options);
    for (uint32_t i = 0; i < p->output_count; i++)
        *(i < p->given_count ? &outputs[i] : &p->extra[i - p->given_count]) = p->outputs[i];
    return status;
}

onx_status onx_sharded_run(onx_sharded *sharded, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                           const onx_run_options *options)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, sharded);
    ONXI_NEED(cx, inputs || !onx_doc_model(sharded->doc)->graph->input_count);
    ONXI_NEED(cx, outputs || !onx_doc_model(sharded->doc)->graph->output_count);
    ONXI_OPTIONS(cx, onx_run_options, own, options);
    const size_t errors = onxi_call_begin(cx);
    const onx_status status = run(sharded, cx, inputs, outputs, &own);
    tell_others(sharded, status);
    return onxi_tell(cx, errors, status);
}

onx_shard_summary onx_sharded_summarize(const onx_sharded *sharded)
{
    return sharded ? sharded->part.summary : (onx_shard_summary){ 0 };
}

const onx_doc *onx_sharded_part(const onx_sharded *sharded)
{
    return sharded ? sharded->part.doc : NULL;
}

/* ---- as a session ---- */

static onx_status run_session(void *user, onx_ctx *cx, const onx_value *const *inputs, onx_value **outputs,
                              const onx_run_options *options)
{
    return onx_sharded_run(user, cx, inputs, outputs, options);
}

static void release_session(void *user)
{
    onx_sharded_free(user);
}

static const onxi_run_other session_runs = { run_session, release_session };

static onx_status session_new(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options, onx_session **out)
{
    onx_shard_options own = *options;
    onx_sharded *s;
    own.everywhere = true;
    ONX_TRY(onx_sharded_new(cx, doc, &own, &s));
    const onx_status status = onxi_run_session_other(cx, doc, &session_runs, s, out);
    if (status != ONX_OK) {
        tell_others(s, status);
        onx_sharded_free(s);
    }
    return status;
}

onx_status onx_session_new_sharded(onx_ctx *cx, onx_doc *doc, const onx_shard_options *options, onx_session **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_shard_options, own, options);
    ONXI_CALL_TO_MAKE(cx, out, onx_session_free, session_new(cx, doc, &own, out));
}

const onx_sharded *onx_session_sharded(const onx_session *session)
{
    return onxi_run_session_user(session, &session_runs);
}

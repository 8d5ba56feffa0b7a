/* generate.c - the public interface: a decoder, the tokens so far, and the runs that process them. */
#include "generate/generate.h"
#include "run/run.h"

enum { CHUNK = 1024, FIRST_ROOM = 256 };

/* ---- configuration ---- */

static onx_status add_end(onx_generator *g, const onxi_json *value)
{
    int64_t id;
    if (!onxi_json_integer(value, &id) || id < 0)
        return ONX_OK;
    if (!ONXI_GROW_IN(g->arena, g->ends, g->end_room, (uint64_t)g->end_count + 1))
        return ONX_E_MEMORY;
    g->ends[g->end_count++] = id;
    return ONX_OK;
}

static onx_status add_ends(onx_generator *g, const onxi_json *ends)
{
    if (ends->kind != ONXI_JSON_LIST)
        return add_end(g, ends);
    for (uint32_t i = 0; i < ends->count; i++)
        ONX_TRY(add_end(g, &ends->members[i].value));
    return ONX_OK;
}

static onx_status read_text(onx_generator *g, onx_str text, onxi_json *out)
{
    onx_bytes kept;
    ONX_TRY(onx_arena_keep(g->arena, text, &kept));
    return text.len ? onxi_json_value_read(g->cx, g->arena, onx_view(kept), out) : ONX_OK;
}

onx_status onxi_generate_configure(onx_generator *g, onx_str text, onx_str more)
{
    int64_t longest;
    onxi_json other = { 0 };
    ONX_TRY(read_text(g, text, &g->config.json));
    g->config.model = onxi_json_get(&g->config.json, "model");
    g->config.decoder = onxi_json_get(g->config.model, "decoder");
    const onxi_json *ends = onxi_json_get(g->config.model, "eos_token_id");
    if (ends->kind == ONXI_JSON_NULL)
        ends = onxi_json_get(&g->config.json, "eos_token_id"); /* the key of a generation_config.json */
    ONX_TRY(add_ends(g, ends));
    if (!g->end_count) {
        ONX_TRY(read_text(g, more, &other));
        ONX_TRY(add_ends(g, onxi_json_get(&other, "eos_token_id")));
    }
    if (onxi_json_integer(onxi_json_get(g->config.model, "context_length"), &longest) && longest > 0)
        g->limit = (uint64_t)longest;
    return ONX_OK;
}

/* ---- creation ---- */

void onx_generator_free(onx_generator *g)
{
    if (!g)
        return;
    onx_ctx *cx = g->cx;
    for (uint32_t i = 0; g->ports && i < g->port_count; i++) {
        onx_value_free(g->ports[i].other);
        onx_value_free(g->ports[i].value);
    }
    for (uint32_t i = 0; g->outputs && i < g->output_count; i++)
        if (i == g->logits)
            onx_value_free(g->outputs[i]);
    onx_session_free(g->session);
    onxi_release(cx, g->ids, g->id_room * sizeof *g->ids);
    onxi_release(cx, g->scores, g->score_room * sizeof *g->scores);
    onxi_release(cx, g->heap, g->heap_room * sizeof *g->heap);
    onx_arena_free(g->arena);
    onxi_release(cx, g, sizeof *g);
}

static onx_status generator_open(onx_generator *g, onx_doc *doc, const onx_generator_options *options)
{
    g->limit = UINT64_MAX;
    g->chunk = CHUNK;
    g->first_room = options->room ? options->room : FIRST_ROOM;
    ONX_TRY(onx_arena_new(g->cx, &g->arena));
    ONX_TRY(onxi_generate_configure(g, options->config, options->ends));
    ONX_TRY(onx_session_new(g->cx, doc, options->session, &g->session));
    g->port_count = onx_session_input_count(g->session);
    g->output_count = onx_session_output_count(g->session);
    g->ports = ONXI_ARRAY(g->arena, onxi_feed, g->port_count + 1u);
    g->inputs = (const onx_value **)ONXI_ARRAY(g->arena, void *, g->port_count + 1u);
    g->outputs = (onx_value **)ONXI_ARRAY(g->arena, void *, g->output_count + 1u);
    if (!g->ports || !g->inputs || !g->outputs)
        return ONX_E_MEMORY;
    ONX_TRY(onxi_generate_ports(g));
    if (g->step && g->cache_count)
        g->chunk = g->step;
    return onxi_generate_empty(g);
}

static onx_status generator_new(onx_ctx *cx, onx_doc *doc, const onx_generator_options *options, onx_generator **out)
{
    onx_generator *g = onxi_resize(cx, NULL, 0, sizeof *g);
    if (!g)
        return ONX_E_MEMORY;
    memset(g, 0, sizeof *g);
    g->cx = cx;
    *out = g; /* the caller frees it on failure */
    return generator_open(g, doc, options);
}

onx_status onx_generator_new(onx_ctx *cx, onx_doc *doc, const onx_generator_options *options, onx_generator **out)
{
    ONXI_NEED(cx, out);
    *out = NULL;
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, doc);
    ONXI_OPTIONS(cx, onx_generator_options, own, options);
    ONXI_CALL_TO_MAKE(cx, out, onx_generator_free, generator_new(cx, doc, &own, out));
}

/* ---- steps ---- */

/* The scores after token `last` of the tokens in the last run. */
static onx_status take_scores(onx_generator *g, uint64_t last)
{
    const onx_value *v = g->outputs[g->logits];
    if (v->kind != ONX_VALUE_TENSOR || v->rank < 2 || v->rank > 3 || v->dims[v->rank - 1] < 1 ||
        onx_dtype_class_of(v->dtype) != ONX_CLASS_FLOATING || v->dims[v->rank - 1] > UINT32_MAX)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE,
                         "the scores are neither [batch, tokens, vocabulary] nor [batch, vocabulary]");
    const uint64_t size = (uint64_t)v->dims[v->rank - 1], rows = v->count / size, row = rows > last ? last : rows - 1;
    if (!rows)
        return onxi_fail(g->cx, ONX_E_UNSUPPORTED, ONXI_NOWHERE, "the model gives no scores");
    if (!ONXI_GROW(g->cx, g->scores, g->score_room, size))
        return ONX_E_MEMORY;
    g->score_count = size;
    return onx_convert(ONX_FLOAT, g->scores, (onx_dtype)v->dtype,
                       (const char *)v->data + row * size * (onx_dtype_bits(v->dtype) / 8), size, true);
}

static onx_status run_once(onx_generator *g, const int64_t *ids, uint64_t count, uint64_t past)
{
    ONX_TRY(onxi_generate_fill(g, ids, count, past));
    const onx_status status = onx_session_run(g->session, g->cx, g->inputs, g->outputs);
    for (uint32_t i = 0; i < g->output_count; i++) { /* outputs that are neither scores nor caches are released */
        bool ours = i == g->logits;
        for (uint32_t k = 0; !ours && k < g->port_count; k++)
            ours = g->ports[k].role == ONXI_FEED_CACHE && g->ports[k].output == i;
        if (ours)
            continue;
        onx_value_free(g->outputs[i]);
        g->outputs[i] = NULL;
    }
    ONX_TRY(status);
    return onxi_generate_turn(g, past + count);
}

static onx_status feed(onx_generator *g, const int64_t *ids, uint64_t count)
{
    if (g->failed)
        return onxi_fail(g->cx, ONX_E_MISUSE, ONXI_NOWHERE,
                         "a run has failed: nothing follows but onx_generator_reset");
    if (!count)
        return ONX_OK;
    if (count > g->limit - g->id_count)
        return onxi_fail(g->cx, ONX_E_LIMIT, ONXI_NOWHERE, "%llu tokens after %llu exceed the model's maximum of %llu",
                         (unsigned long long)count, (unsigned long long)g->id_count, (unsigned long long)g->limit);
    if (count > UINT32_MAX - g->id_count || !ONXI_GROW(g->cx, g->ids, g->id_room, g->id_count + count))
        return ONX_E_MEMORY;
    memcpy(g->ids + g->id_count, ids, count * sizeof *ids);
    g->failed = true;
    const uint64_t total = g->id_count + count;
    g->score_count = 0;
    if (!g->cache_count) {
        g->id_count = total;
        ONX_TRY(run_once(g, g->ids, total, 0));
        ONX_TRY(take_scores(g, total - 1));
        g->failed = false;
        return ONX_OK;
    }
    for (uint64_t n; g->done < total; g->done += n) {
        n = total - g->done < g->chunk ? total - g->done : g->chunk;
        ONX_TRY(run_once(g, g->ids + g->done, n, g->done));
        if (g->done + n == total)
            ONX_TRY(take_scores(g, n - 1));
    }
    g->id_count = total;
    g->failed = false;
    return ONX_OK;
}

onx_status onx_generator_feed(onx_generator *generator, const int64_t *ids, uint64_t count)
{
    if (!generator)
        return ONX_E_MISUSE;
    ONXI_NEED(generator->cx, ids || !count);
    ONXI_CALL(generator->cx, feed(generator, ids, count));
}

onx_status onx_generator_reset(onx_generator *generator)
{
    if (!generator)
        return ONX_E_MISUSE;
    generator->failed = false;
    generator->id_count = generator->done = generator->score_count = 0;
    ONXI_CALL(generator->cx, onxi_generate_empty(generator));
}

uint64_t onx_generator_length(const onx_generator *generator)
{
    return generator ? generator->id_count : 0;
}

uint64_t onx_generator_limit(const onx_generator *generator)
{
    return generator ? generator->limit : 0;
}

const float *onx_generator_scores(const onx_generator *generator, uint64_t *count_out)
{
    const uint64_t count = generator ? generator->score_count : 0;
    if (count_out)
        *count_out = count;
    return count ? generator->scores : NULL;
}

bool onx_generator_end(const onx_generator *generator, uint32_t index, int64_t *id_out)
{
    if (!generator || !id_out || index >= generator->end_count)
        return false;
    *id_out = generator->ends[index];
    return true;
}

/* search_encoder.c - searches with an encoder and a decoder: the encoder runs once, on text (as in T5) or audio (as in
 * Whisper), and its outputs are inputs of each step of the decoder. */
#include "kernel/microsoft/search.h"

enum { IDS, START = 10 };

/* ---- the subgraphs ---- */

/* Finds the inputs of a decoder before the past and returns their number. Their names are fixed by the operator. */
static uint32_t find_formal(const onx_graph *g, onxi_search *q)
{
    const struct {
        const char *name;
        bool *has;
        bool text;
    } known[] = { { "encoder_input_ids", &q->takes_ids, true },
                  { "encoder_attention_mask", &q->takes_mask, true },
                  { "encoder_hidden_states", &q->takes_hidden, false } };
    uint32_t count = 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        *known[i].has = count < g->input_count && (!known[i].text || q->kind == ONXI_SEARCH_TEXT) &&
                        onx_str_is(onx_view(g->input[count]->name), known[i].name);
        count += *known[i].has;
    }
    return count;
}

static onx_status check_past(onx_prepare *p, const char *name, const onx_value_info *v, onxi_search *q)
{
    const int64_t heads = onxi_search_declared(v, 4, 1), size = onxi_search_declared(v, 4, 3);
    const int dtype = onxi_search_dtype(v);
    if (heads < 1 || size < 1 || (dtype != ONX_FLOAT && dtype != ONX_FLOAT16))
        return onx_prepare_fail(
            p, ONX_E_INVALID,
            "the past of %s does not declare its type, float or float16, and its shape [batch, heads, "
            "length, head size]",
            name);
    q->heads = heads;
    q->size = size;
    q->dtype = dtype;
    return ONX_OK;
}

onx_status onxi_search_check_encoder(onx_prepare *p, onxi_search *q)
{
    const onx_graph *d = onx_prepare_graph(p, "decoder"), *e = onx_prepare_graph(p, "encoder");
    if (!d || !e)
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute %s is missing", d ? "encoder" : "decoder");
    q->formal = find_formal(d, q);
    /* With products, a layer has three outputs: key, value, and products. */
    const bool crosses = q->kind == ONXI_SEARCH_SOUND &&
                         onxi_schema_attr(p->schema, onx_str_of("decoder_output_cross_qk")) &&
                         onx_prepare_is_set(p, "decoder_output_cross_qk");
    const uint32_t made = d->output_count ? d->output_count - 1 : 0;
    q->crossed = crosses ? made / 3 : 0;
    q->layers = made - q->crossed;
    q->decoder_inputs = d->input_count;
    if (q->layers < 2 || q->layers % 2 || (crosses && made % 3) || d->input_count < q->formal + 2 * q->layers)
        return onx_prepare_fail(
            p, ONX_E_INVALID,
            "decoder has %u inputs and %u outputs; expected the inputs ids, results of the encoder and "
            "four pasts per layer, and the outputs scores and two presents per layer%s",
            d->input_count, d->output_count, crosses ? " and attention scores" : "");
    ONX_TRY(onxi_search_find_extras(p, "decoder", d, q->formal + 2 * q->layers, q));
    ONX_TRY(check_past(p, "decoder", d->output[1], q));
    q->whole = onxi_search_declared(d->input[0], 2, 1) != 1;
    q->encoder_inputs = e->input_count;
    q->encoder_outputs = e->output_count;
    q->fresh = q->kind == ONXI_SEARCH_TEXT && e->output_count == q->layers;
    const bool inputs_fit = e->input_count == 2 || (e->input_count == 3 && q->kind == ONXI_SEARCH_TEXT && !q->fresh);
    if (!inputs_fit || (!q->fresh && e->output_count != 2 + 2 * q->layers))
        return onx_prepare_fail(p, ONX_E_INVALID, "encoder has %u inputs and %u outputs, and decoder %u layers",
                                e->input_count, e->output_count, q->layers / 2);
    if (q->fresh && q->takes_hidden)
        return onx_prepare_fail(p, ONX_E_INVALID, "decoder takes hidden states, which encoder does not give");
    return p->ops->graph(p, "encoder", &q->encoder);
}

/* ---- running the encoder ---- */

/* Repeats each row of the batch for its beams. */
static onx_status repeat(const onxi_search_run *r, const onx_value *from, onx_value *to)
{
    int64_t dims[4];
    memcpy(dims, from->dims, from->rank * sizeof *dims);
    dims[0] = (int64_t)r->rows;
    ONX_TRY(onx_value_reset(to, (onx_dtype)from->dtype, from->rank, dims));
    const size_t bytes = (size_t)(to->size / r->rows);
    for (uint64_t row = 0; row < r->rows && bytes; row++)
        memcpy((char *)to->data + row * bytes, (const char *)from->data + row / r->beams * bytes, bytes);
    return ONX_OK;
}

/* Makes the mask of a text: 1 from the first token on that is not padding. */
static onx_status mask_texts(onx_work *work, const onxi_search *q, const onxi_search_run *r, onx_value *mask)
{
    const onx_value *ids = work->inputs[IDS], *given = onxi_search_operand(work, q->in.mask);
    ONX_TRY(onx_value_reset(mask, ONX_INT32, 2, ids->dims));
    const uint64_t length = (uint64_t)ids->dims[1];
    const int32_t *id = ids->data;
    int32_t *out = mask->data;
    if (given)
        memcpy(out, given->data, (size_t)mask->size);
    for (uint64_t i = 0; i < r->batch && !given; i++) {
        bool counts = false;
        for (uint64_t k = 0; k < length; k++) {
            counts = counts || id[i * length + k] != q->pad;
            out[i * length + k] = counts;
        }
    }
    return ONX_OK;
}

/* The first tokens of each sequence: those given, or the start token. */
static onx_status begin_tokens(onx_work *work, const onxi_search *q, onxi_search_run *r, onx_value *start)
{
    const onx_value *given = q->kind == ONXI_SEARCH_SOUND ? onxi_search_operand(work, START) : NULL;
    const int64_t dims[] = { (int64_t)r->batch, (int64_t)r->length };
    ONX_TRY(onx_value_reset(start, ONX_INT32, 2, dims));
    int32_t *ids = start->data;
    for (uint64_t i = 0; i < r->batch * r->length; i++)
        ids[i] = given ? ((const int32_t *)given->data)[i] : q->start;
    for (uint64_t row = 0; row < r->rows; row++) {
        memcpy(r->tokens[0] + row * r->longest, ids + row / r->beams * r->length, (size_t)r->length * sizeof *ids);
        r->sums[row] = row % r->beams ? -1e9f : 0;
    }
    return ONX_OK;
}

static onx_status check_encoded(onx_work *work, const onxi_search *q, const onxi_search_run *r)
{
    for (uint32_t i = q->fresh ? 0 : 1; i < q->encoder_outputs; i++) {
        const onx_value *v = r->encoded[i];
        const uint32_t rank = i == 1 && !q->fresh ? 3 : 4;
        if (v->kind != ONX_VALUE_TENSOR || v->dtype != q->dtype || v->rank != rank || v->dims[0] != (int64_t)r->batch ||
            (rank == 4 && (v->dims[1] != q->heads || v->dims[3] != q->size)))
            return onx_work_fail(work, ONX_E_INVALID,
                                 "output %u of the encoder is not of the rank, type and sizes of %llu sequences", i,
                                 (unsigned long long)r->batch);
    }
    return ONX_OK;
}

/* Copies the past from the encoder to a buffer with room for all tokens. */
static onx_status begin_buffer(onx_work *work, const onxi_search *q, const onxi_search_run *r, uint32_t output,
                               onx_value *to)
{
    const onx_value *from = r->encoded[output];
    if ((uint64_t)from->dims[2] > r->longest)
        return onx_work_fail(work, ONX_E_INVALID, "output %u of the encoder has %lld keys, and max_length is %llu",
                             output, (long long)from->dims[2], (unsigned long long)r->longest);
    ONX_TRY(onxi_search_no_past(q, r, 4, to));
    const size_t vector = (size_t)q->size * onxi_element_size(from->dtype), bytes = (size_t)from->dims[2] * vector,
                 room = (size_t)r->longest * vector;
    const uint64_t heads = (uint64_t)q->heads;
    for (uint64_t i = 0; i < r->rows * heads && bytes; i++)
        memcpy((char *)to->data + i * room,
               (const char *)from->data + (i / heads / r->beams * heads + i % heads) * bytes, bytes);
    return ONX_OK;
}

/* Sets the inputs of the decoder that come from the encoder or its inputs. */
static onx_status hand_encoded(onx_work *work, const onxi_search *q, onxi_search_run *r, const onx_value *mask)
{
    onx_value **to = r->values + 1;
    if (q->takes_ids)
        ONX_TRY(repeat(r, work->inputs[IDS], *to++));
    if (q->takes_mask)
        ONX_TRY(repeat(r, mask, *to++));
    if (q->takes_hidden)
        ONX_TRY(repeat(r, r->encoded[1], *to++));
    for (uint32_t i = 0; i < q->layers && q->fresh; i++)
        ONX_TRY(onxi_search_no_past(q, r, 4, *to++));
    for (uint32_t i = q->fresh ? 0 : 2; i < q->encoder_outputs; i++)
        ONX_TRY(q->extra_count && !q->fresh && i < 2 + q->layers ? begin_buffer(work, q, r, i, *to++)
                                                                 : repeat(r, r->encoded[i], *to++));
    return ONX_OK;
}

static onx_status give_ids(const onxi_search *q, onxi_search_run *r)
{
    const uint64_t count = q->whole ? r->length : 1;
    const int64_t dims[] = { (int64_t)r->rows, (int64_t)count };
    ONX_TRY(onx_value_reset(r->values[0], ONX_INT32, 2, dims));
    int32_t *ids = r->values[0]->data;
    for (uint64_t row = 0; row < r->rows; row++)
        memcpy(ids + row * count, r->tokens[0] + row * r->longest + r->length - count, (size_t)count * sizeof *ids);
    return ONX_OK;
}

onx_status onxi_search_encode(onx_work *work, const onxi_search *q, onxi_search_run *r)
{
    onx_value *mask = r->encoded[q->encoder_outputs], *start = r->encoded[q->encoder_outputs + 1];
    const bool text = q->kind == ONXI_SEARCH_TEXT;
    const onx_value *in[] = { work->inputs[IDS], text ? mask : start, start };
    if (text)
        ONX_TRY(mask_texts(work, q, r, mask));
    ONX_TRY(begin_tokens(work, q, r, start));
    ONX_TRY(work->ops->graph(work, q->encoder, in, q->encoder_inputs, r->encoded, q->encoder_outputs));
    ONX_TRY(check_encoded(work, q, r));
    ONX_TRY(hand_encoded(work, q, r, mask));
    return give_ids(q, r);
}

/* The encoder gives the first past, if it makes one; all beams of a sequence share it. */
onx_status onxi_search_encoder_next(const onxi_search *q, onxi_search_run *r)
{
    ONX_TRY(give_ids(q, r));
    return r->step == 1 && !q->fresh ? ONX_OK : onxi_search_hand_past(r, q);
}

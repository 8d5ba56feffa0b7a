/* nn_attention.c - rules of attention, linear attention, and causal convolution with a state. */
#include "op/op_rules.h"

/* ---- Attention ---- */

static onx_status attention_rank(onxi_call *call, uint32_t input, const char *name)
{
    const onxi_type *x = onxi_call_ranked(call, input);
    if (x && x->rank != 3 && x->rank != 4)
        return onxi_call_fail(call, "%s has rank %u, expected 3 or 4", name, x->rank);
    return ONX_OK;
}

static onx_status attention_check_25(onxi_call *call)
{
    static const char *const windows[] = { "left_window_size", "right_window_size" };
    const onxi_type *q = onxi_call_ranked(call, 0);
    for (size_t i = 0; i < 2; i++)
        if (onxi_call_int(call, windows[i]) < -1)
            return onxi_call_fail(call, "attribute %s is %lld", windows[i], (long long)onxi_call_int(call, windows[i]));
    bool past = onxi_call_has_input(call, 4);
    if (past != onxi_call_has_input(call, 5))
        return onxi_call_fail(call, "past_key and past_value come together or not at all");
    bool present = onxi_call_wants_output(call, 1);
    if (present != onxi_call_wants_output(call, 2))
        return onxi_call_fail(call, "present_key and present_value come together or not at all");
    if (onxi_call_has_input(call, 6) && (past || present))
        return onxi_call_fail(call, "nonpad_kv_seqlen goes with a cache outside, past and present with one inside");
    if (q && q->rank == 4 && (onxi_call_given(call, "q_num_heads") || onxi_call_given(call, "kv_num_heads")))
        return onxi_call_fail(call, "the number of heads is given twice: as an attribute and by inputs of rank 4");
    return ONX_OK;
}

/* The sizes of an attention, as far as they are known, for any layout of the inputs. */
typedef struct attention {
    onxi_dim batch, q_heads, kv_heads, q_length, kv_length, head, v_head;
    bool packed; /* inputs of rank 3 with concatenated heads */
} attention;

static onx_status attention_read(onxi_call *call, const onxi_type *q, attention *a)
{
    const onxi_type *k = onxi_call_ranked(call, 1), *v = onxi_call_ranked(call, 2);
    onxi_dims *d = call->dims;
    *a = (attention){ q->dims[0],       ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN,
                      ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN, ONXI_DIM_UNKNOWN, q->rank == 3 };
    if (a->packed) {
        const bool given = onxi_call_given(call, "q_num_heads") && onxi_call_given(call, "kv_num_heads");
        int64_t q_heads = given ? onxi_call_int(call, "q_num_heads") : 0,
                kv_heads = given ? onxi_call_int(call, "kv_num_heads") : 0;
        if (q_heads < 1 || kv_heads < 1)
            return onxi_call_fail(call, "inputs of rank 3 need q_num_heads and kv_num_heads, which are %lld and %lld",
                                  (long long)q_heads, (long long)kv_heads);
        a->q_heads = q_heads;
        a->kv_heads = kv_heads;
        a->q_length = q->dims[1];
        if (k && k->rank == 3) {
            a->kv_length = k->dims[1];
            a->head = onxi_dim_div(d, k->dims[2], kv_heads);
        }
        if (v && v->rank == 3) {
            ONX_TRY(onxi_call_unify(call, a->kv_length, v->dims[1], "the length of key and value", &a->kv_length));
            a->v_head = onxi_dim_div(d, v->dims[2], kv_heads);
        }
        return ONX_OK;
    }
    a->q_heads = q->dims[1];
    a->q_length = q->dims[2];
    a->head = q->dims[3];
    if (k && k->rank == 4) {
        a->kv_heads = k->dims[1];
        a->kv_length = k->dims[2];
    }
    if (v && v->rank == 4) {
        ONX_TRY(onxi_call_unify(call, a->kv_heads, v->dims[1], "the number of heads of key and value", &a->kv_heads));
        ONX_TRY(onxi_call_unify(call, a->kv_length, v->dims[2], "the length of key and value", &a->kv_length));
        a->v_head = v->dims[3];
    }
    return ONX_OK;
}

static onx_status attention_set(onxi_call *call, uint32_t i, int dtype, onxi_dim a, onxi_dim b, onxi_dim c, onxi_dim d)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, i, dtype, 4, &dims));
    dims[0] = a;
    dims[1] = b;
    dims[2] = c;
    dims[3] = d;
    return ONX_OK;
}

onx_status onxi_rule_attention(onxi_call *call)
{
    const onxi_type *q = onxi_call_ranked(call, 0), *past = onxi_call_ranked(call, 4);
    attention a;
    ONX_TRY(attention_rank(call, 0, "the query"));
    ONX_TRY(attention_rank(call, 1, "the key"));
    ONX_TRY(attention_rank(call, 2, "the value"));
    ONX_TRY(onxi_call_want_rank(call, 4, 4));
    ONX_TRY(onxi_call_want_rank(call, 5, 4));
    if (!q)
        return call->schema->since >= 25 ? attention_check_25(call) : ONX_OK;
    ONX_TRY(attention_read(call, q, &a));
    if (call->schema->since >= 25)
        ONX_TRY(attention_check_25(call));
    int type = onxi_call_dtype(call, 0), value_type = onxi_call_dtype(call, 2);
    if (a.packed) {
        onxi_dim *dims;
        ONX_TRY(onxi_call_output(call, 0, type, 3, &dims));
        dims[0] = a.batch;
        dims[1] = a.q_length;
        dims[2] = onxi_dim_mul(call->dims, a.v_head, a.q_heads);
    } else {
        ONX_TRY(attention_set(call, 0, type, a.batch, a.q_heads, a.q_length, a.v_head));
    }
    if (past)
        ONX_TRY(onxi_call_want_dims(call, 4, 4, (onxi_dim[]){ a.batch, a.kv_heads, ONXI_DIM_UNKNOWN, a.head }));
    ONX_TRY(onxi_call_want_dims(
        call, 5, 4, (onxi_dim[]){ a.batch, a.kv_heads, past ? past->dims[2] : ONXI_DIM_UNKNOWN, a.v_head }));
    onxi_dim total = a.kv_length;
    if (onxi_call_has_input(call, 4))
        total = past ? onxi_dim_add(call->dims, past->dims[2], a.kv_length) : ONXI_DIM_UNKNOWN;
    ONX_TRY(attention_set(call, 1, onxi_call_dtype(call, 1), a.batch, a.kv_heads, total, a.head));
    ONX_TRY(attention_set(call, 2, value_type ? value_type : type, a.batch, a.kv_heads, total, a.v_head));
    return attention_set(call, 3, type, a.batch, a.q_heads, a.q_length, total);
}

/* ---- LinearAttention ---- */

static onx_status linear_rule_inputs(onxi_call *call)
{
    static const struct {
        const char *name;
        bool decay, beta;
    } rules[] = {
        { "linear", false, false }, { "gated", true, false }, { "delta", false, true }, { "gated_delta", true, true }
    };
    onx_str rule = onxi_call_text(call, "update_rule");
    bool decay = onxi_call_has_input(call, 4), beta = onxi_call_has_input(call, 5);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!onx_str_is(rule, rules[i].name))
            continue;
        if (decay != rules[i].decay)
            return onxi_call_fail(call, "update_rule %s and input decay %s", rules[i].name,
                                  decay ? "exclude each other" : "belong together");
        if (beta != rules[i].beta)
            return onxi_call_fail(call, "update_rule %s and input beta %s", rules[i].name,
                                  beta ? "exclude each other" : "belong together");
        return ONX_OK;
    }
    return onxi_call_fail(call, "attribute update_rule is \"%.*s\"", ONX_ARG(rule));
}

/* One packed input (batch, length, heads * size): unifies the sizes that it shares with the others, and computes the
 * head size. */
static onx_status linear_packed(onxi_call *call, uint32_t input, int64_t heads, onxi_dim *batch, onxi_dim *length,
                                onxi_dim *head)
{
    const onxi_type *x = onxi_call_ranked(call, input);
    ONX_TRY(onxi_call_want_rank(call, input, 3));
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_unify(call, *batch, x->dims[0], "the batch size", batch));
    ONX_TRY(onxi_call_unify(call, *length, x->dims[1], "the length", length));
    if (!head)
        return ONX_OK;
    if (onxi_dim_is_const(x->dims[2]) && x->dims[2] % heads != 0)
        return onxi_call_fail(call, "input %u is %lld wide, which %lld heads do not divide", input,
                              (long long)x->dims[2], (long long)heads);
    return onxi_call_unify(call, *head, onxi_dim_div(call->dims, x->dims[2], heads), "the size of a head", head);
}

static onx_status linear_widths(onxi_call *call, int64_t heads, onxi_dim head)
{
    const onxi_type *decay = onxi_call_ranked(call, 4), *beta = onxi_call_ranked(call, 5);
    if (decay && onxi_dim_is_const(decay->dims[2])) {
        int64_t width = decay->dims[2];
        onxi_dim full = onxi_dim_mul(call->dims, heads, head);
        if (width != heads && (onxi_dim_is_const(full) ? width != full : width % heads != 0))
            return onxi_call_fail(call,
                                  "decay is %lld wide, expected one value per head or per key element of %lld heads",
                                  (long long)width, (long long)heads);
    }
    if (beta && onxi_dim_is_const(beta->dims[2]) && beta->dims[2] != 1 && beta->dims[2] != heads)
        return onxi_call_fail(call, "beta is %lld wide, expected 1 or %lld", (long long)beta->dims[2],
                              (long long)heads);
    return ONX_OK;
}

onx_status onxi_rule_linear_attention(onxi_call *call)
{
    int64_t q_heads = onxi_call_int(call, "q_num_heads"), kv_heads = onxi_call_int(call, "kv_num_heads");
    onxi_dim batch = ONXI_DIM_UNKNOWN, length = ONXI_DIM_UNKNOWN, key = ONXI_DIM_UNKNOWN, value = ONXI_DIM_UNKNOWN,
             heads;
    const onxi_type *state = onxi_call_ranked(call, 3);
    onxi_dim *dims;
    if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
        return onxi_call_fail(call, "q_num_heads is %lld and kv_num_heads %lld", (long long)q_heads,
                              (long long)kv_heads);
    ONX_TRY(linear_rule_inputs(call));
    onxi_call_output_unranked(call, 1, onxi_call_dtype(call, onxi_call_dtype(call, 3) ? 3 : 0));
    ONX_TRY(linear_packed(call, 0, q_heads, &batch, &length, &key));
    ONX_TRY(linear_packed(call, 1, kv_heads, &batch, &length, &key));
    ONX_TRY(linear_packed(call, 2, kv_heads, &batch, &length, &value));
    ONX_TRY(linear_packed(call, 4, kv_heads, &batch, &length, NULL));
    ONX_TRY(linear_packed(call, 5, kv_heads, &batch, &length, NULL));
    ONX_TRY(onxi_call_want_rank(call, 3, 4));
    if (state) {
        ONX_TRY(onxi_call_unify(call, batch, state->dims[0], "the batch size", &batch));
        ONX_TRY(onxi_call_unify(call, kv_heads, state->dims[1], "the number of heads", &heads));
        ONX_TRY(onxi_call_unify(call, key, state->dims[2], "the size of a key head", &key));
        ONX_TRY(onxi_call_unify(call, value, state->dims[3], "the size of a value head", &value));
    }
    ONX_TRY(linear_widths(call, kv_heads, key));
    ONX_TRY(onxi_call_shape(call, 0, 3, &dims));
    dims[0] = batch;
    dims[1] = length;
    dims[2] = onxi_dim_mul(call->dims, q_heads, value);
    return attention_set(call, 1, call->output_count > 1 ? call->outputs[1].dtype : 0, batch, kv_heads, key, value);
}

/* ---- CausalConvWithState ---- */

onx_status onxi_rule_causal_conv(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *w = onxi_call_ranked(call, 1), *bias = onxi_call_ranked(call, 2),
                    *past = onxi_call_ranked(call, 3);
    onxi_dim batch = ONXI_DIM_UNKNOWN, channels = ONXI_DIM_UNKNOWN, kernel = ONXI_DIM_UNKNOWN, kept = ONXI_DIM_UNKNOWN;
    onxi_dim *dims;
    onx_str activation = onxi_call_text(call, "activation");
    if (!onx_str_is(activation, "none") && !onx_str_is(activation, "silu") && !onx_str_is(activation, "swish"))
        return onxi_call_fail(call, "attribute activation is \"%.*s\"", ONX_ARG(activation));
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    ONX_TRY(onxi_call_want_rank(call, 0, 3));
    ONX_TRY(onxi_call_want_rank(call, 1, 3));
    ONX_TRY(onxi_call_want_rank(call, 2, 1));
    ONX_TRY(onxi_call_want_rank(call, 3, 3));
    if (x) {
        batch = x->dims[0];
        channels = x->dims[1];
    }
    if (w) {
        onxi_dim one;
        ONX_TRY(onxi_call_unify(call, channels, w->dims[0], "the number of channels", &channels));
        ONX_TRY(onxi_call_unify(call, 1, w->dims[1], "the number of channels per group", &one));
        kernel = w->dims[2];
    }
    if (bias)
        ONX_TRY(onxi_call_unify(call, channels, bias->dims[0], "the number of channels", &channels));
    if (onxi_dim_is_const(kernel) && kernel < 1)
        return onxi_call_fail(call, "the kernel has size %lld", (long long)kernel);
    kept = onxi_dim_sub(call->dims, kernel, 1);
    if (past) {
        ONX_TRY(onxi_call_unify(call, batch, past->dims[0], "the batch size", &batch));
        ONX_TRY(onxi_call_unify(call, channels, past->dims[1], "the number of channels", &channels));
        ONX_TRY(onxi_call_unify(call, kept, past->dims[2], "the length of the state", &kept));
    }
    ONX_TRY(onxi_call_output(call, 1, onxi_call_dtype(call, 0), 3, &dims));
    dims[0] = batch;
    dims[1] = channels;
    dims[2] = kept;
    return ONX_OK;
}

/* nn_attention.c - rows of the ONNX family "nn": attention, and positions by rotation.
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- Attention ---- */

static const onxi_port attention_inputs_25[] = {
    { "Q", "T1", 0 },
    { "K", "T1", 0 },
    { "V", "T2", 0 },
    { "attn_mask", "U", OPT },
    { "past_key", "T1", OPT },
    { "past_value", "T2", OPT },
    { "nonpad_kv_seqlen", "tensor(int64)", OPT },
    { 0 },
};

static const onxi_port attention_outputs_25[] = {
    { "Y", "T1", 0 },
    { "present_key", "T1", OPT },
    { "present_value", "T2", OPT },
    { "qk_matmul_output", "T1", OPT },
    { 0 },
};

static const onxi_type_constraint attention_types_25[] = {
    { "T1", T(FLOATING_13) },
    { "T2", T(FLOATING_13) },
    { "U", T(FILL_13) },
    { 0 },
};

static const onxi_attr attention_attrs_24[] = {
    { "is_causal", INT, DEFAULT("0") },
    { "kv_num_heads", INT, OPTIONAL },
    { "q_num_heads", INT, OPTIONAL },
    { "qk_matmul_output_mode", INT, DEFAULT("0") },
    { "scale", FLOAT, OPTIONAL },
    { "softcap", FLOAT, DEFAULT("0") },
    { "softmax_precision", INT, OPTIONAL },
    { 0 },
};

/* Composed of other operators, in the type of the query. Scores are [batch, key heads, queries per key head, queries,
 * keys] for the products, and [batch, heads, queries, keys] between them. */
static bool attention_is_packed(onxi_call *call)
{
    const onxi_type *q = onxi_call_ranked(call, 0);
    return q ? q->rank == 3 : onxi_call_given(call, "q_num_heads");
}
WHEN(attention_is_plain, !attention_is_packed(call))
WHEN(attention_has_mask, onxi_call_has_input(call, 3))
WHEN(attention_short_mask, attention_has_mask(call) && call->schema->since >= 24)
WHEN(attention_whole_mask, attention_has_mask(call) && call->schema->since < 24)
WHEN(attention_has_past, onxi_call_has_input(call, 4))
WHEN(attention_has_no_past, !attention_has_past(call))
WHEN(attention_has_lengths, call->schema->since >= 24 && onxi_call_has_input(call, 6))
WHEN(attention_has_scale, onxi_call_given(call, "scale"))
WHEN(attention_has_no_scale, !attention_has_scale(call))
WHEN(attention_is_causal, onxi_call_int(call, "is_causal") != 0)
WHEN(attention_has_cap, onxi_call_float(call, "softcap") > 0)
WHEN(attention_has_no_cap, !attention_has_cap(call))
WHEN(attention_looks_back, call->schema->since >= 25 && onxi_call_int(call, "left_window_size") >= 0)
WHEN(attention_looks_ahead, call->schema->since >= 25 && onxi_call_int(call, "right_window_size") >= 0)
WHEN(attention_has_order, attention_is_causal(call) || attention_looks_back(call) || attention_looks_ahead(call))
WHEN(attention_has_places, attention_has_order(call) || attention_has_lengths(call))
WHEN(attention_from_end, attention_has_order(call) && attention_has_lengths(call) && !attention_has_past(call))
WHEN(attention_from_past, attention_has_order(call) && !attention_from_end(call))
WHEN(attention_some_past, attention_from_past(call) && attention_has_past(call))
WHEN(attention_none_past, attention_from_past(call) && !attention_has_past(call))
WHEN(attention_sees_all, attention_has_places(call) && !attention_has_lengths(call))
WHEN(attention_sees_later, attention_has_places(call) && !attention_is_causal(call))
WHEN(attention_ahead_open, attention_has_places(call) && !attention_looks_ahead(call))
WHEN(attention_back_open, attention_has_places(call) && !attention_looks_back(call))
WHEN(attention_hides, attention_has_mask(call) || attention_has_places(call))
WHEN(attention_hides_none, !attention_hides(call))
WHEN(attention_has_no_mask, attention_has_places(call) && !attention_has_mask(call))
WHEN(attention_mask_alone, attention_has_mask(call) && !attention_has_places(call))
WHEN(attention_mask_too, attention_has_mask(call) && attention_has_places(call))
WHEN(attention_has_precision, onxi_call_given(call, "softmax_precision"))
WHEN(attention_has_no_precision, !attention_has_precision(call))
WHEN(attention_gives_capped, onxi_call_int(call, "qk_matmul_output_mode") == 1)
WHEN(attention_gives_masked, onxi_call_int(call, "qk_matmul_output_mode") == 2)
WHEN(attention_gives_shares, onxi_call_int(call, "qk_matmul_output_mode") == 3)
WHEN(attention_gives_products, !attention_gives_capped(call) && !attention_gives_masked(call) && !attention_gives_shares(call))

static const char attention_limits[] = NODES(
    zero_float = Constant <value = float {0.0}> ()
    zero = CastLike (zero_float, Q)
    never_float = Constant <value = float {-inf}> ()
    never = CastLike (never_float, Q)
);
static const char attention_numbers[] = NODES(
    front = Constant <value = int64[1] {0}> ()
    one = Constant <value = int64[1] {1}> ()
    two = Constant <value = int64[1] {2}> ()
    three = Constant <value = int64[1] {3}> ()
    four = Constant <value = int64[1] {4}> ()
    rest = Constant <value = int64[1] {-1}> ()
);
static const char attention_packed[] = NODES(
    same = Constant <value = int64[2] {0, 0}> ()
    q_heads = Constant <value_int: int = @q_num_heads> ()
    q_heads_list = Unsqueeze (q_heads, front)
    q_packed_shape = Shape (Q)
    q_hidden = Gather (q_packed_shape, two)
    q_size = Div (q_hidden, q_heads_list)
    q_split = Concat <axis = 0> (same, q_heads_list, q_size)
    q_rows = Reshape (Q, q_split)
    q = Transpose <perm = [0, 2, 1, 3]> (q_rows)
    kv_heads = Constant <value_int: int = @kv_num_heads> ()
    kv_heads_list = Unsqueeze (kv_heads, front)
    k_packed_shape = Shape (K)
    k_hidden = Gather (k_packed_shape, two)
    k_size = Div (k_hidden, kv_heads_list)
    k_split = Concat <axis = 0> (same, kv_heads_list, k_size)
    v_packed_shape = Shape (V)
    v_hidden = Gather (v_packed_shape, two)
    v_size = Div (v_hidden, kv_heads_list)
    v_split = Concat <axis = 0> (same, kv_heads_list, v_size)
    k_rows = Reshape (K, k_split)
    k_new = Transpose <perm = [0, 2, 1, 3]> (k_rows)
    v_rows = Reshape (V, v_split)
    v_new = Transpose <perm = [0, 2, 1, 3]> (v_rows)
);
static const char attention_plain[] = NODES(
    q = Identity (Q)
    k_new = Identity (K)
    v_new = Identity (V)
);
static const char attention_past[] = NODES(
    k = Concat <axis = 2> (past_key, k_new)
    v = Concat <axis = 2> (past_value, v_new)
);
static const char attention_past_size[] = NODES(
    past_shape = Shape (past_key)
    past = Slice (past_shape, two, three)
);
static const char attention_new[] = NODES(
    k = Identity (k_new)
    v = Identity (v_new)
);
static const char attention_no_past_size[] = NODES(
    past = Identity (front)
);
static const char attention_present[] = NODES(
    present_key = Identity (k)
    present_value = Identity (v)
);
static const char attention_sizes[] = NODES(
    q_shape = Shape (q)
    k_shape = Shape (k)
    v_shape = Shape (v)
    batch = Slice (q_shape, front, one)
    batch_heads = Slice (q_shape, front, two)
    heads = Slice (q_shape, one, two)
    groups = Slice (k_shape, one, two)
    each = Div (heads, groups)
    queries = Slice (q_shape, two, three)
    depth = Slice (q_shape, three, four)
    keys = Slice (k_shape, two, three)
    width = Slice (v_shape, three, four)
    grouped = Concat <axis = 0> (batch, groups, each, queries, depth)
    grouped_scores = Concat <axis = 0> (batch, groups, each, queries, keys)
    scores_shape = Concat <axis = 0> (batch_heads, queries, keys)
    result_shape = Concat <axis = 0> (batch_heads, queries, width)
);
static const char attention_scale[] = NODES(
    factor = Constant <value_float: float = @scale> ()
);
static const char attention_no_scale[] = NODES(
    depth_float = Cast <to = 1> (depth)
    root = Sqrt (depth_float)
    factor = Reciprocal (root)
);
static const char attention_products[] = NODES(
    scale_like = CastLike (factor, Q)
    q_scaled = Mul (q, scale_like)
    q_grouped = Reshape <allowzero = 1> (q_scaled, grouped)
    k_turned = Transpose <perm = [0, 1, 3, 2]> (k)
    k_like = CastLike (k_turned, Q)
    k_shared = Unsqueeze (k_like, two)
    products = MatMul (q_grouped, k_shared)
    scores = Reshape <allowzero = 1> (products, scores_shape)
);
static const char attention_cap[] = NODES(
    cap_float = Constant <value_float: float = @softcap> ()
    cap = CastLike (cap_float, Q)
    part = Div (scores, cap)
    bent = Tanh (part)
    capped = Mul (bent, cap)
);
static const char attention_no_cap[] = NODES(
    capped = Identity (scores)
);
/* The keys that a query may attend to: [queries, keys], or with lengths [batch, 1, queries, keys]. */
static const char attention_places[] = NODES(
    nought = Constant <value = int64 {0}> ()
    step = Constant <value = int64 {1}> ()
    key_count = Squeeze (keys)
    key_at = Range (nought, key_count, step)
);
static const char attention_order[] = NODES(
    query_count = Squeeze (queries)
    query_index = Range (nought, query_count, step)
    query_row = Unsqueeze (query_index, one)
);
static const char attention_lengths[] = NODES(
    lengths_shape = Constant <value = int64[4] {-1, 1, 1, 1}> ()
    lengths = Reshape (nonpad_kv_seqlen, lengths_shape)
    seen = Less (key_at, lengths)
);
static const char attention_all[] = NODES(
    seen = Less (key_at, keys)
);
static const char attention_end[] = NODES(
    before = Sub (lengths, queries)
    at = Add (query_row, before)
);
static const char attention_begin[] = NODES(
    at = Add (query_row, past)
);
static const char attention_causal[] = NODES(
    is_later = Greater (key_at, at)
    is_earlier = Not (is_later)
    seen_so_far = And (seen, is_earlier)
);
static const char attention_later[] = NODES(
    seen_so_far = Identity (seen)
);
static const char attention_ahead[] = NODES(
    right = Constant <value_int: int = @right_window_size> ()
    right_end = Add (at, right)
    is_beyond = Greater (key_at, right_end)
    is_within = Not (is_beyond)
    seen_ahead = And (seen_so_far, is_within)
);
static const char attention_no_ahead[] = NODES(
    seen_ahead = Identity (seen_so_far)
);
static const char attention_back[] = NODES(
    left = Constant <value_int: int = @left_window_size> ()
    left_end = Sub (at, left)
    is_before = Less (key_at, left_end)
    is_after = Not (is_before)
    seen_all = And (seen_ahead, is_after)
);
static const char attention_no_back[] = NODES(
    seen_all = Identity (seen_ahead)
);
static const char attention_hidden[] = NODES(
    hidden = Where (seen_all, zero, never)
);
/* A mask is boolean, or numbers that are added. 0.5 cast to the type of the mask and back is 1 for booleans. */
static const char attention_mask[] = NODES(
    half_float = Constant <value = float {0.5}> ()
    half_mask = CastLike (half_float, attn_mask)
    half = Cast <to = 1> (half_mask)
    one_float = Constant <value = float {1.0}> ()
    is_bool = Equal (half, one_float)
    mask = CastLike (attn_mask, Q)
    is_zero = Equal (mask, zero)
    is_false = And (is_bool, is_zero)
    is_true = Not (is_zero)
    is_open = And (is_bool, is_true)
    mask_shut = Where (is_false, never, mask)
    mask_given = Where (is_open, zero, mask_shut)
);
static const char attention_mask_short[] = NODES(
    mask_shape = Shape (mask_given)
    mask_front = Slice (mask_shape, front, rest)
    mask_keys = Gather (mask_shape, rest)
    mask_missing = Sub (keys, mask_keys)
    fill_shape = Concat <axis = 0> (mask_front, mask_missing)
    fill = Expand (never, fill_shape)
    mask_whole = Concat <axis = -1> (mask_given, fill)
);
static const char attention_mask_whole[] = NODES(
    mask_whole = Identity (mask_given)
);
static const char attention_bias_both[] = NODES(
    bias = Add (mask_whole, hidden)
);
static const char attention_bias_mask[] = NODES(
    bias = Identity (mask_whole)
);
static const char attention_bias_places[] = NODES(
    bias = Identity (hidden)
);
static const char attention_bias[] = NODES(
    masked = Add (capped, bias)
);
static const char attention_no_bias[] = NODES(
    masked = Identity (capped)
);
static const char attention_precision[] = NODES(
    masked_cast = Cast <to: int = @softmax_precision> (masked)
    shares_cast = Softmax <axis = -1> (masked_cast)
    shares_all = CastLike (shares_cast, Q)
);
static const char attention_no_precision[] = NODES(
    shares_all = Softmax <axis = -1> (masked)
);
/* A query that may attend to no key yields zeros; scores that are all -inf by themselves do not. */
static const char attention_blind[] = NODES(
    most = ReduceMax <axes = [-1], keepdims = 1> (bias)
    is_blind = Equal (most, never)
    shares = Where (is_blind, zero, shares_all)
);
static const char attention_no_blind[] = NODES(
    shares = Identity (shares_all)
);
static const char attention_given_products[] = NODES(
    qk_matmul_output = Identity (scores)
);
static const char attention_given_capped[] = NODES(
    qk_matmul_output = Identity (capped)
);
static const char attention_given_masked[] = NODES(
    qk_matmul_output = Identity (masked)
);
static const char attention_given_shares[] = NODES(
    qk_matmul_output = Identity (shares)
);
static const char attention_result[] = NODES(
    shares_grouped = Reshape <allowzero = 1> (shares, grouped_scores)
    v_like = CastLike (v, Q)
    v_shared = Unsqueeze (v_like, two)
    mixed = MatMul (shares_grouped, v_shared)
    result = Reshape <allowzero = 1> (mixed, result_shape)
);
static const char attention_pack[] = NODES(
    result_rows = Transpose <perm = [0, 2, 1, 3]> (result)
    hidden_size = Mul (heads, width)
    packed_shape = Concat <axis = 0> (batch, queries, hidden_size)
    Y = Reshape <allowzero = 1> (result_rows, packed_shape)
);
static const char attention_no_pack[] = NODES(
    Y = Identity (result)
);
static const onxi_body_part attention_parts[] = {
    { attention_hides, attention_limits },
    { NULL, attention_numbers },
    { attention_is_packed, attention_packed },
    { attention_is_plain, attention_plain },
    { attention_has_past, attention_past },
    { attention_has_no_past, attention_new },
    { attention_some_past, attention_past_size },
    { attention_none_past, attention_no_past_size },
    { NULL, attention_present },
    { NULL, attention_sizes },
    { attention_has_scale, attention_scale },
    { attention_has_no_scale, attention_no_scale },
    { NULL, attention_products },
    { attention_has_cap, attention_cap },
    { attention_has_no_cap, attention_no_cap },
    { attention_has_places, attention_places },
    { attention_has_order, attention_order },
    { attention_has_lengths, attention_lengths },
    { attention_sees_all, attention_all },
    { attention_from_end, attention_end },
    { attention_from_past, attention_begin },
    { attention_is_causal, attention_causal },
    { attention_sees_later, attention_later },
    { attention_looks_ahead, attention_ahead },
    { attention_ahead_open, attention_no_ahead },
    { attention_looks_back, attention_back },
    { attention_back_open, attention_no_back },
    { attention_has_places, attention_hidden },
    { attention_has_mask, attention_mask },
    { attention_short_mask, attention_mask_short },
    { attention_whole_mask, attention_mask_whole },
    { attention_mask_too, attention_bias_both },
    { attention_mask_alone, attention_bias_mask },
    { attention_has_no_mask, attention_bias_places },
    { attention_hides, attention_bias },
    { attention_hides_none, attention_no_bias },
    { attention_has_precision, attention_precision },
    { attention_has_no_precision, attention_no_precision },
    { attention_hides, attention_blind },
    { attention_hides_none, attention_no_blind },
    { attention_gives_products, attention_given_products },
    { attention_gives_capped, attention_given_capped },
    { attention_gives_masked, attention_given_masked },
    { attention_gives_shares, attention_given_shares },
    { NULL, attention_result },
    { attention_is_packed, attention_pack },
    { attention_is_plain, attention_no_pack },
    { NULL, NULL },
};

const onxi_schema onxi_op_Attention[] = {
    { .name = "Attention", .since = 25, .infer = onxi_rule_attention, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(3, 7, 1, 4),
      .context_function_opsets = "25", .inputs = attention_inputs_25, .outputs = attention_outputs_25,
      .attrs = ATTRS({ "is_causal", INT, DEFAULT("0") }, { "kv_num_heads", INT, OPTIONAL },
                     { "left_window_size", INT, DEFAULT("-1") }, { "q_num_heads", INT, OPTIONAL },
                     { "qk_matmul_output_mode", INT, DEFAULT("0") }, { "right_window_size", INT, DEFAULT("-1") },
                     { "scale", FLOAT, OPTIONAL }, { "softcap", FLOAT, DEFAULT("0") },
                     { "softmax_precision", INT, OPTIONAL }),
      .types = attention_types_25,
      .body_opset = 17, .body_parts = attention_parts },
    { .name = "Attention", .since = 24, .infer = onxi_rule_attention, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(3, 7, 1, 4),
      .context_function_opsets = "24", .inputs = attention_inputs_25, .outputs = attention_outputs_25,
      .attrs = attention_attrs_24, .types = attention_types_25,
      .body_opset = 17, .body_parts = attention_parts },
    { .name = "Attention", .since = 23, .infer = onxi_rule_attention, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(3, 6, 1, 4),
      .context_function_opsets = "23",
      .inputs = PORTS({ "Q", "T1", 0 }, { "K", "T1", 0 }, { "V", "T2", 0 }, { "attn_mask", "U", OPT },
                      { "past_key", "T1", OPT }, { "past_value", "T2", OPT }),
      .outputs = attention_outputs_25, .attrs = attention_attrs_24, .types = attention_types_25,
      .body_opset = 17, .body_parts = attention_parts },
    { .name = NULL },
};

/* ---- LinearAttention ---- */

const onxi_schema onxi_op_LinearAttention[] = {
    { .name = "LinearAttention", .since = 27, .infer = onxi_rule_linear_attention,
      .flags = CONTEXT_FUNCTION | INFERS | DETERMINISM_UNKNOWN, ARITY(3, 6, 2, 2),
      .context_function_opsets = "27",
      .inputs = PORTS({ "query", "T", DIFF }, { "key", "T", DIFF }, { "value", "T", DIFF },
                      { "past_state", "S", OPT | NONDIFF }, { "decay", "T", OPT | DIFF },
                      { "beta", "T", OPT | DIFF }),
      .outputs = PORTS({ "output", "T", DIFF }, { "present_state", "S", NONDIFF }),
      .attrs = ATTRS({ "chunk_size", INT, DEFAULT("64") }, { "kv_num_heads", INT, REQUIRED },
                     { "q_num_heads", INT, REQUIRED }, { "scale", FLOAT, DEFAULT("0") },
                     { "update_rule", STRING, TEXT("gated_delta") }),
      .types = TYPES({ "T", T(SCALES_19) }, { "S", T(SCALES_19) }) },
    { .name = NULL },
};

/* ---- RotaryEmbedding ---- */

static bool rotary_is_packed(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    return x ? x->rank == 3 : onxi_call_given(call, "num_heads");
}
WHEN(rotary_is_plain, !rotary_is_packed(call))
WHEN(rotary_has_ids, onxi_call_has_input(call, 3))
WHEN(rotary_has_no_ids, !rotary_has_ids(call))
WHEN(rotary_is_partial, onxi_call_int(call, "rotary_embedding_dim") > 0)
WHEN(rotary_is_whole, !rotary_is_partial(call))
WHEN(rotary_is_interleaved, onxi_call_int(call, "interleaved") != 0)
WHEN(rotary_is_halved, !rotary_is_interleaved(call))
WHEN(rotary_has_front, rotary_is_packed(call) || rotary_is_partial(call))
WHEN(rotary_has_rest, rotary_has_front(call) || rotary_is_interleaved(call))

static const char rotary_front[] = NODES(
    front = Constant <value = int64[1] {0}> ()
);
static const char rotary_rest[] = NODES(
    rest = Constant <value = int64[1] {-1}> ()
);
static const char rotary_packed[] = NODES(
    same = Constant <value = int64[2] {0, 0}> ()
    heads = Constant <value_int: int = @num_heads> ()
    heads_list = Unsqueeze (heads, front)
    split_shape = Concat <axis = 0> (same, heads_list, rest)
    x = Reshape (X, split_shape)
);
static const char rotary_plain[] = NODES(
    x = Transpose <perm = [0, 2, 1, 3]> (X)
);
static const char rotary_ids[] = NODES(
    cos_rows = Gather (cos_cache, position_ids)
    sin_rows = Gather (sin_cache, position_ids)
);
static const char rotary_no_ids[] = NODES(
    cos_rows = Identity (cos_cache)
    sin_rows = Identity (sin_cache)
);
static const char rotary_part[] = NODES(
    dim = Constant <value_int: int = @rotary_embedding_dim> ()
    dim_list = Unsqueeze (dim, front)
    end = Constant <value = int64[1] {9223372036854775807}> ()
    turns = Slice (x, front, dim_list, rest)
    stays = Slice (x, dim_list, end, rest)
);
static const char rotary_all[] = NODES(
    turns = Identity (x)
);
static const char rotary_waves[] = NODES(
    two = Constant <value = int64[1] {2}> ()
    cos = Unsqueeze (cos_rows, two)
    sin = Unsqueeze (sin_rows, two)
);
static const char rotary_pairs[] = NODES(
    pairs_shape = Constant <value = int64[5] {0, 0, 0, -1, 2}> ()
    pairs = Reshape (turns, pairs_shape)
    first_at = Constant <value = int64 {0}> ()
    second_at = Constant <value = int64 {1}> ()
    first = Gather <axis = -1> (pairs, first_at)
    second = Gather <axis = -1> (pairs, second_at)
);
static const char rotary_halves[] = NODES(
    first, second = Split <axis = -1> (turns)
);
static const char rotary_turn[] = NODES(
    first_cos = Mul (first, cos)
    second_sin = Mul (second, sin)
    real = Sub (first_cos, second_sin)
    first_sin = Mul (first, sin)
    second_cos = Mul (second, cos)
    imaginary = Add (first_sin, second_cos)
);
static const char rotary_join_pairs[] = NODES(
    real_of_pair = Unsqueeze (real, rest)
    imaginary_of_pair = Unsqueeze (imaginary, rest)
    pairs_turned = Concat <axis = -1> (real_of_pair, imaginary_of_pair)
    turned_shape = Constant <value = int64[4] {0, 0, 0, -1}> ()
    turned = Reshape (pairs_turned, turned_shape)
);
static const char rotary_join_halves[] = NODES(
    turned = Concat <axis = -1> (real, imaginary)
);
static const char rotary_join_part[] = NODES(
    y = Concat <axis = -1> (turned, stays)
);
static const char rotary_join_all[] = NODES(
    y = Identity (turned)
);
static const char rotary_pack[] = NODES(
    packed_shape = Concat <axis = 0> (same, rest)
    Y = Reshape (y, packed_shape)
);
static const char rotary_no_pack[] = NODES(
    Y = Transpose <perm = [0, 2, 1, 3]> (y)
);

const onxi_schema onxi_op_RotaryEmbedding[] = {
    { .name = "RotaryEmbedding", .since = 23, .infer = onxi_rule_rotary_embedding, .flags = CONTEXT_FUNCTION | INFERS,
      ARITY(3, 4, 1, 1),
      .context_function_opsets = "23",
      .inputs = PORTS({ "X", "T", 0 }, { "cos_cache", "T", 0 }, { "sin_cache", "T", 0 }, { "position_ids", "M", OPT }),
      .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "interleaved", INT, DEFAULT("0") }, { "num_heads", INT, OPTIONAL },
                     { "rotary_embedding_dim", INT, DEFAULT("0") }),
      .types = TYPES({ "T", T(SCALES_19) }, { "M", T(BIT(INT64)) }),
      BODY(17, { rotary_has_front, rotary_front }, { rotary_has_rest, rotary_rest },
           { rotary_is_packed, rotary_packed }, { rotary_is_plain, rotary_plain },
           { rotary_has_ids, rotary_ids }, { rotary_has_no_ids, rotary_no_ids }, { rotary_is_partial, rotary_part },
           { rotary_is_whole, rotary_all }, { NULL, rotary_waves }, { rotary_is_interleaved, rotary_pairs },
           { rotary_is_halved, rotary_halves }, { NULL, rotary_turn }, { rotary_is_interleaved, rotary_join_pairs },
           { rotary_is_halved, rotary_join_halves }, { rotary_is_partial, rotary_join_part },
           { rotary_is_whole, rotary_join_all }, { rotary_is_packed, rotary_pack }, { rotary_is_plain, rotary_no_pack }) },
    { .name = NULL },
};

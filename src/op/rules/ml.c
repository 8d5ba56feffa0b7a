/* ml.c - rules of traditional machine learning (domain ai.onnx.ml). */
#include "op/op_rules.h"

/* ---- attribute lists ---- */

/* The length and element type of a list attribute, or of a rank-1 tensor attribute. */
typedef struct list {
    int dtype; /* ONX_UNDEFINED: the attribute is absent or empty */
    uint64_t count;
} list;

static onx_status list_of(onxi_call *call, const char *name, list *out)
{
    static const int dtypes[] = {
        [ONX_ATTR_INTS] = ONX_INT64, [ONX_ATTR_FLOATS] = ONX_FLOAT, [ONX_ATTR_STRINGS] = ONX_STRING
    };
    const onxi_attr_value *a = onxi_call_attr(call, name);
    *out = (list){ 0 };
    if (a && a->count && a->type < sizeof dtypes / sizeof *dtypes)
        *out = (list){ .dtype = dtypes[a->type], .count = a->count };
    const onx_tensor *tensor = a && a->type == ONX_ATTR_TENSOR ? a->t : NULL;
    if (!tensor)
        return ONX_OK;
    if (tensor->dims_count != 1 || tensor->dims[0] < 0)
        return onxi_call_fail(call, "attribute %s has rank %u, expected 1", name, tensor->dims_count);
    *out = (list){ .dtype = tensor->data_type, .count = (uint64_t)tensor->dims[0] };
    return ONX_OK;
}

static onx_status only_one(onxi_call *call, const char *a, const char *b)
{
    if (onxi_call_given(call, a) && onxi_call_given(call, b))
        return onxi_call_fail(call, "attributes %s and %s exclude each other", a, b);
    return ONX_OK;
}

/* Rows of a batch [N, C], or of a single row [C]. */
static onx_status batch_size(onxi_call *call, onxi_dim *out)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    *out = ONXI_DIM_UNKNOWN;
    if (!x)
        return ONX_OK;
    if (x->rank != 1 && x->rank != 2)
        return onxi_call_fail(call, "input 0 has rank %u, expected 1 or 2", x->rank);
    *out = x->rank == 1 ? 1 : x->dims[0];
    return ONX_OK;
}

/* Output [rows, columns]; a number of columns below 1 is unknown. */
static onx_status scores(onxi_call *call, uint32_t output, int dtype, onxi_dim rows, int64_t columns)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, output, dtype, 2, &dims));
    dims[0] = rows;
    if (columns > 0)
        dims[1] = columns;
    return ONX_OK;
}

/* Output 0: a label per row, string or integer. */
static onx_status labels(onxi_call *call, const char *strings, onxi_dim rows)
{
    onxi_dim *dims;
    ONX_TRY(onxi_call_output(call, 0, onxi_call_list_count(call, strings) ? ONX_STRING : ONX_INT64, 1, &dims));
    dims[0] = rows;
    return ONX_OK;
}

/* ---- features ---- */

onx_status onxi_rule_array_feature_extractor(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0), *y = onxi_call_ranked(call, 1);
    onxi_dim *dims;
    if (!x || x->rank == 0)
        return ONX_OK;
    /* A single row yields a row: [C] becomes [1, indices]. */
    const uint32_t rank = x->rank == 1 ? 2 : x->rank;
    ONX_TRY(onxi_call_shape(call, 0, rank, &dims));
    for (uint32_t i = 0; i + 1 < rank; i++)
        dims[i] = x->rank == 1 ? 1 : x->dims[i];
    if (y)
        dims[rank - 1] = onxi_call_product(call, y->dims, 0, y->rank);
    return ONX_OK;
}

onx_status onxi_rule_ml_scaler(onxi_call *call)
{
    onxi_call_output_unranked(call, 0, ONX_FLOAT);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

onx_status onxi_rule_one_hot_encoder(onxi_call *call)
{
    const onxi_type *x = onxi_call_ranked(call, 0);
    const bool ints = onxi_call_given(call, "cats_int64s");
    onxi_dim *dims;
    if (ints == onxi_call_given(call, "cats_strings"))
        return onxi_call_fail(call, "one of the attributes cats_int64s and cats_strings is expected");
    onxi_call_output_unranked(call, 0, ONX_FLOAT);
    if (!x)
        return ONX_OK;
    ONX_TRY(onxi_call_shape(call, 0, x->rank + 1, &dims));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    dims[x->rank] = onxi_call_list_count(call, ints ? "cats_int64s" : "cats_strings");
    return ONX_OK;
}

onx_status onxi_rule_feature_vectorizer(onxi_call *call)
{
    uint32_t count;
    const int64_t *sizes = onxi_call_ints(call, "inputdimensions", &count);
    onxi_dim rows, columns = 0;
    onxi_call_output_unranked(call, 0, ONX_FLOAT);
    ONX_TRY(batch_size(call, &rows));
    for (uint32_t i = 0; i < count; i++)
        columns = onxi_dim_add(call->dims, columns, sizes[i]);
    return onxi_call_ranked(call, 0) ? scores(call, 0, ONX_FLOAT, rows, onxi_dim_is_const(columns) ? columns : 0)
                                     : ONX_OK;
}

/* ---- maps and categories ---- */

onx_status onxi_rule_cast_map(onxi_call *call)
{
    const bool dense = onxi_call_text_is(call, "map_form", "DENSE");
    const int dtype = onxi_call_text_is(call, "cast_to", "TO_FLOAT")    ? ONX_FLOAT
                      : onxi_call_text_is(call, "cast_to", "TO_INT64")  ? ONX_INT64
                      : onxi_call_text_is(call, "cast_to", "TO_STRING") ? ONX_STRING
                                                                        : ONX_UNDEFINED;
    onxi_call_output_unranked(call, 0, dtype);
    return dense || onxi_call_text_is(call, "map_form", "SPARSE") ? scores(call, 0, dtype, 1, 0) : ONX_OK;
}

onx_status onxi_rule_dict_vectorizer(onxi_call *call)
{
    const onxi_type *map = onxi_call_has_input(call, 0) ? call->inputs[0] : NULL;
    const uint32_t ints = onxi_call_list_count(call, "int64_vocabulary");
    const uint32_t strings = onxi_call_list_count(call, "string_vocabulary");
    const int dtype = map && map->kind == ONXI_TYPE_MAP && map->inner ? map->inner->dtype : ONX_UNDEFINED;
    return scores(call, 0, dtype, 1, ints ? ints : strings);
}

/* Strings become integers, integers strings. */
static int other_label(onxi_call *call)
{
    const int dtype = onxi_call_dtype(call, 0);
    return dtype == ONX_STRING ? ONX_INT64 : dtype == ONX_INT64 ? ONX_STRING : ONX_UNDEFINED;
}

onx_status onxi_rule_category_mapper(onxi_call *call)
{
    const uint32_t ints = onxi_call_list_count(call, "cats_int64s"),
                   strings = onxi_call_list_count(call, "cats_strings");
    if (!onxi_call_given(call, "cats_int64s") || !onxi_call_given(call, "cats_strings"))
        return onxi_call_fail(call, "attributes cats_int64s and cats_strings are both needed");
    if (ints != strings)
        return onxi_call_fail(call, "cats_int64s has %u elements and cats_strings %u", ints, strings);
    onxi_call_output_unranked(call, 0, other_label(call));
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

/* The only list that is given among keys_* or values_*. */
static onx_status label_list(onxi_call *call, const char *const names[4], list *out)
{
    uint32_t given = 0;
    *out = (list){ 0 };
    for (uint32_t i = 0; i < 4; i++) {
        if (!onxi_call_given(call, names[i]))
            continue;
        given++;
        ONX_TRY(list_of(call, names[i], out));
    }
    if (given != 1)
        return onxi_call_fail(call, "%u attributes such as %s are given, expected one", given, names[0]);
    return ONX_OK;
}

static onx_status label_default(onxi_call *call, int dtype)
{
    list fallback;
    ONX_TRY(list_of(call, "default_tensor", &fallback));
    if (fallback.dtype == ONX_UNDEFINED)
        return ONX_OK;
    if (fallback.dtype != dtype)
        return onxi_call_fail(call, "default_tensor has another element type than the values");
    if (fallback.count != 1)
        return onxi_call_fail(call, "default_tensor has %llu elements, expected 1", (unsigned long long)fallback.count);
    return ONX_OK;
}

onx_status onxi_rule_label_encoder(onxi_call *call)
{
    static const char *const key_names[] = { "keys_strings", "keys_int64s", "keys_floats", "keys_tensor" };
    static const char *const value_names[] = { "values_strings", "values_int64s", "values_floats", "values_tensor" };
    list keys, values = { .dtype = other_label(call) };
    if (call->schema->since >= 2) {
        const int dtype = onxi_call_dtype(call, 0);
        ONX_TRY(label_list(call, key_names, &keys));
        ONX_TRY(label_list(call, value_names, &values));
        if (keys.dtype && dtype && keys.dtype != dtype)
            return onxi_call_fail(call, "the input has element type %s, the keys %s", onx_dtype_name(dtype),
                                  onx_dtype_name(keys.dtype));
        if (keys.count != values.count)
            return onxi_call_fail(call, "there are %llu keys and %llu values", (unsigned long long)keys.count,
                                  (unsigned long long)values.count);
        if (call->schema->since >= 4)
            ONX_TRY(label_default(call, values.dtype));
    }
    onxi_call_output_unranked(call, 0, values.dtype);
    onxi_call_shape_of(call, 0, onxi_call_tensor(call, 0));
    return ONX_OK;
}

/* A sequence with a map from class label to score per row. */
onx_status onxi_rule_zip_map(onxi_call *call)
{
    onxi_type *types = ONXI_ARRAY(call->arena, onxi_type, 2);
    onxi_dim rows;
    if (!types)
        return ONX_E_MEMORY;
    ONX_TRY(batch_size(call, &rows));
    const bool ints = onxi_call_list_count(call, "classlabels_int64s") != 0;
    const bool strings = onxi_call_list_count(call, "classlabels_strings") != 0;
    types[0] = (onxi_type){ .kind = ONXI_TYPE_TENSOR, .dtype = ONX_FLOAT, .ranked = true };
    types[1] = (onxi_type){ .kind = ONXI_TYPE_MAP, .inner = &types[0] };
    types[1].dtype = ints ? ONX_INT64 : strings ? ONX_STRING : ONX_UNDEFINED;
    if (call->output_count)
        call->outputs[0] = (onxi_type){ .kind = ONXI_TYPE_SEQUENCE, .inner = &types[1] };
    return ONX_OK;
}

/* ---- linear models and support vector machines ---- */

onx_status onxi_rule_linear_classifier(onxi_call *call)
{
    const uint32_t strings = onxi_call_list_count(call, "classlabels_strings");
    const uint32_t names = strings ? strings : onxi_call_list_count(call, "classlabels_ints");
    uint32_t classes = onxi_call_list_count(call, "intercepts");
    onxi_dim rows;
    if (classes == 1 && names == 2) /* one score decides between two classes */
        classes = 2;
    ONX_TRY(batch_size(call, &rows));
    ONX_TRY(labels(call, "classlabels_strings", rows));
    return scores(call, 1, ONX_FLOAT, rows, classes ? classes : names);
}

onx_status onxi_rule_linear_regressor(onxi_call *call)
{
    onxi_dim rows;
    ONX_TRY(batch_size(call, &rows));
    return scores(call, 0, ONX_FLOAT, rows, onxi_call_int(call, "targets"));
}

/* With support vectors every pair of classes has a score, unless class probabilities are computed; without support
 * vectors every class has one. A single score for two classes belongs to the second; the first has its negative. 0: the
 * attributes are inconsistent. */
static int64_t svm_scores(onxi_call *call)
{
    const uint32_t strings = onxi_call_list_count(call, "classlabels_strings");
    const uint32_t names = strings ? strings : onxi_call_list_count(call, "classlabels_ints");
    uint32_t count;
    const int64_t *vectors = onxi_call_ints(call, "vectors_per_class", &count);
    const int64_t classes = names ? names : 1;
    bool supported = false;
    for (uint32_t i = 0; i < count; i++)
        supported |= vectors[i] > 0;
    const bool pairs = supported && !onxi_call_list_count(call, "prob_a");
    if (classes > INT32_MAX)
        return 0;
    const int64_t raw = pairs ? classes * (classes - 1) / 2 : classes;
    return raw == 1 && names == 2 && !onxi_call_text_is(call, "post_transform", "PROBIT") ? 2 : raw;
}

onx_status onxi_rule_svm_classifier(onxi_call *call)
{
    onxi_dim rows;
    ONX_TRY(batch_size(call, &rows));
    ONX_TRY(labels(call, "classlabels_strings", rows));
    return scores(call, 1, ONX_FLOAT, rows, svm_scores(call));
}

onx_status onxi_rule_svm_regressor(onxi_call *call)
{
    onxi_dim rows;
    ONX_TRY(batch_size(call, &rows));
    return scores(call, 0, ONX_FLOAT, rows, 1);
}

/* ---- trees ---- */

static onx_status tree_attributes(onxi_call *call, const char *weights, const char *weights_as_tensor)
{
    ONX_TRY(only_one(call, "nodes_values", "nodes_values_as_tensor"));
    ONX_TRY(only_one(call, "nodes_hitrates", "nodes_hitrates_as_tensor"));
    ONX_TRY(only_one(call, "base_values", "base_values_as_tensor"));
    return only_one(call, weights, weights_as_tensor);
}

onx_status onxi_rule_tree_ensemble_classifier(onxi_call *call)
{
    const uint32_t strings = onxi_call_list_count(call, "classlabels_strings");
    const uint32_t classes = strings ? strings : onxi_call_list_count(call, "classlabels_int64s");
    onxi_dim rows;
    ONX_TRY(tree_attributes(call, "class_weights", "class_weights_as_tensor"));
    if (call->schema->since >= 3)
        ONX_TRY(onxi_call_want_rank(call, 0, 2));
    if (call->schema->since >= 3 && !classes)
        return onxi_call_fail(call, "neither classlabels_strings nor classlabels_int64s names the classes");
    ONX_TRY(batch_size(call, &rows));
    ONX_TRY(labels(call, "classlabels_strings", rows));
    return scores(call, 1, ONX_FLOAT, rows, classes);
}

/* 0: not given; then the number follows from the votes */
static int64_t targets(onxi_call *call)
{
    return onxi_call_given(call, "n_targets") ? onxi_call_int(call, "n_targets") : 0;
}

onx_status onxi_rule_tree_ensemble_regressor(onxi_call *call)
{
    onxi_dim rows;
    ONX_TRY(tree_attributes(call, "target_weights", "target_weights_as_tensor"));
    if (call->schema->since >= 3)
        ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(batch_size(call, &rows));
    return scores(call, 0, ONX_FLOAT, rows, targets(call));
}

static onx_status want_list(onxi_call *call, const char *name, bool required, int dtype, uint64_t count)
{
    list given;
    ONX_TRY(list_of(call, name, &given));
    if (!onxi_call_given(call, name))
        return required ? onxi_call_fail(call, "attribute %s is missing", name) : ONX_OK;
    if (given.dtype && dtype && given.dtype != dtype)
        return onxi_call_fail(call, "attribute %s has element type %s, expected %s", name, onx_dtype_name(given.dtype),
                              onx_dtype_name(dtype));
    if (given.count != count)
        return onxi_call_fail(call, "attribute %s has %llu elements, expected %llu", name,
                              (unsigned long long)given.count, (unsigned long long)count);
    return ONX_OK;
}

onx_status onxi_rule_tree_ensemble(onxi_call *call)
{
    static const struct {
        const char *name;
        int dtype;
        bool required;
    } nodes[] = {
        { "nodes_featureids", ONX_INT64, true },   { "nodes_hitrates", ONX_UNDEFINED, false },
        { "nodes_modes", ONX_UINT8, true },        { "nodes_truenodeids", ONX_INT64, true },
        { "nodes_falsenodeids", ONX_INT64, true }, { "nodes_trueleafs", ONX_INT64, true },
        { "nodes_falseleafs", ONX_INT64, true },   { "nodes_missing_value_tracks_true", ONX_INT64, false },
    };
    const int dtype = onxi_call_dtype(call, 0);
    list splits, weights, members;
    onxi_dim rows;
    ONX_TRY(onxi_call_want_rank(call, 0, 2));
    ONX_TRY(list_of(call, "nodes_splits", &splits));
    ONX_TRY(want_list(call, "nodes_splits", true, dtype, splits.count));
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        ONX_TRY(want_list(call, nodes[i].name, nodes[i].required, nodes[i].dtype, splits.count));
    ONX_TRY(list_of(call, "leaf_weights", &weights));
    ONX_TRY(want_list(call, "leaf_weights", true, dtype, weights.count));
    ONX_TRY(want_list(call, "leaf_targetids", true, ONX_INT64, weights.count));
    ONX_TRY(list_of(call, "membership_values", &members));
    ONX_TRY(want_list(call, "membership_values", false, dtype, members.count));
    ONX_TRY(batch_size(call, &rows));
    return scores(call, 0, dtype, rows, targets(call));
}

/* traditionalml.c - rows of the ONNX family "traditionalml": traditional machine learning (domain ai.onnx.ml).
 * Newest version first; op/op_rows.h explains the words used here. */
#include "op/op_rows.h"

/* clang-format off */

/* ---- shared by several operators ---- */

static const onxi_type_constraint ml_types_1[] = {
    { "T1", T(LABELS) },
    { "T2", T(LABELS) },
    { 0 },
};

static const onxi_port ml_outputs_1[] = {
    { "Y", "T2", 0 },
    { "Z", "tensor(float)", 0 },
    { 0 },
};

static const onxi_type_constraint ml_types_1b[] = {
    { "T1", T(ML_NUMERIC) },
    { "T2", T(LABELS) },
    { 0 },
};

/* ---- ArrayFeatureExtractor ---- */

const onxi_schema onxi_op_ArrayFeatureExtractor[] = {
    { .domain = "ai.onnx.ml", .name = "ArrayFeatureExtractor", .since = 1, .infer = onxi_rule_array_feature_extractor,
      .flags = INFERS, ARITY(2, 2, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }, { "Y", "tensor(int64)", 0 }), .outputs = PORTS({ "Z", "T", 0 }),
      .types = TYPES({ "T", T(ML_KEYS) }) },
    { .name = NULL },
};

/* ---- Binarizer ---- */

const onxi_schema onxi_op_Binarizer[] = {
    { .domain = "ai.onnx.ml", .name = "Binarizer", .since = 1, .infer = onxi_rule_unary,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "threshold", FLOAT, DEFAULT("0") }), .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- CastMap ---- */

const onxi_schema onxi_op_CastMap[] = {
    { .domain = "ai.onnx.ml", .name = "CastMap", .since = 1, .infer = onxi_rule_cast_map,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
      .attrs = ATTRS({ "cast_to", STRING, TEXT("TO_FLOAT") }, { "map_form", STRING, TEXT("DENSE") },
                     { "max_map", INT, DEFAULT("1") }),
      .types = TYPES({ "T1", { .other = "map(int64,float) map(int64,string)" } },
                     { "T2", T(BIT(FLOAT) | BIT(INT64) | BIT(STRING)) }) },
    { .name = NULL },
};

/* ---- CategoryMapper ---- */

const onxi_schema onxi_op_CategoryMapper[] = {
    { .domain = "ai.onnx.ml", .name = "CategoryMapper", .since = 1, .infer = onxi_rule_category_mapper,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
      .attrs = ATTRS({ "cats_int64s", INTS, OPTIONAL }, { "cats_strings", STRINGS, OPTIONAL },
                     { "default_int64", INT, DEFAULT("-1") }, { "default_string", STRING, TEXT("_Unused") }),
      .types = ml_types_1 },
    { .name = NULL },
};

/* ---- DictVectorizer ---- */

const onxi_schema onxi_op_DictVectorizer[] = {
    { .domain = "ai.onnx.ml", .name = "DictVectorizer", .since = 1, .infer = onxi_rule_dict_vectorizer,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
      .attrs = ATTRS({ "int64_vocabulary", INTS, OPTIONAL }, { "string_vocabulary", STRINGS, OPTIONAL }),
      .types = TYPES({ "T1", { .other = "map(int64,double) map(int64,float) map(int64,string) "
                                        "map(string,double) map(string,float) map(string,int64)" } },
                     { "T2", T(BIT(DOUBLE) | BIT(FLOAT) | BIT(INT64) | BIT(STRING)) }) },
    { .name = NULL },
};

/* ---- FeatureVectorizer ---- */

const onxi_schema onxi_op_FeatureVectorizer[] = {
    { .domain = "ai.onnx.ml", .name = "FeatureVectorizer", .since = 1, .infer = onxi_rule_feature_vectorizer,
      ARITY(1, MANY, 1, 1),
      .inputs = PORTS({ "X", "T1", VARIADIC }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "inputdimensions", INTS, OPTIONAL }), .types = TYPES({ "T1", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- Imputer ---- */

const onxi_schema onxi_op_Imputer[] = {
    { .domain = "ai.onnx.ml", .name = "Imputer", .since = 1, .infer = onxi_rule_unary, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "imputed_value_floats", FLOATS, OPTIONAL }, { "imputed_value_int64s", INTS, OPTIONAL },
                     { "replaced_value_float", FLOAT, DEFAULT("0") },
                     { "replaced_value_int64", INT, DEFAULT("0") }),
      .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- LabelEncoder ---- */

const onxi_schema onxi_op_LabelEncoder[] = {
    { .domain = "ai.onnx.ml", .name = "LabelEncoder", .since = 4, .infer = onxi_rule_label_encoder,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
      .attrs = ATTRS({ "default_float", FLOAT, DEFAULT("-0") }, { "default_int64", INT, DEFAULT("-1") },
                     { "default_string", STRING, TEXT("_Unused") }, { "default_tensor", TENSOR, OPTIONAL },
                     { "keys_floats", FLOATS, OPTIONAL }, { "keys_int64s", INTS, OPTIONAL },
                     { "keys_strings", STRINGS, OPTIONAL }, { "keys_tensor", TENSOR, OPTIONAL },
                     { "values_floats", FLOATS, OPTIONAL }, { "values_int64s", INTS, OPTIONAL },
                     { "values_strings", STRINGS, OPTIONAL }, { "values_tensor", TENSOR, OPTIONAL }),
      .types = TYPES({ "T1", T(BIT(DOUBLE) | BIT(FLOAT) | BIT(INT16) | BIT(INT32) | BIT(INT64) | BIT(STRING)) },
                     { "T2", T(BIT(DOUBLE) | BIT(FLOAT) | BIT(INT16) | BIT(INT32) | BIT(INT64) | BIT(STRING)) }) },
    { .domain = "ai.onnx.ml", .name = "LabelEncoder", .since = 2, .infer = onxi_rule_label_encoder,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
      .attrs = ATTRS({ "default_float", FLOAT, DEFAULT("-0") }, { "default_int64", INT, DEFAULT("-1") },
                     { "default_string", STRING, TEXT("_Unused") }, { "keys_floats", FLOATS, OPTIONAL },
                     { "keys_int64s", INTS, OPTIONAL }, { "keys_strings", STRINGS, OPTIONAL },
                     { "values_floats", FLOATS, OPTIONAL }, { "values_int64s", INTS, OPTIONAL },
                     { "values_strings", STRINGS, OPTIONAL }),
      .types = TYPES({ "T1", T(BIT(FLOAT) | BIT(INT64) | BIT(STRING)) },
                     { "T2", T(BIT(FLOAT) | BIT(INT64) | BIT(STRING)) }) },
    { .domain = "ai.onnx.ml", .name = "LabelEncoder", .since = 1, .infer = onxi_rule_label_encoder,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = PORTS({ "Y", "T2", 0 }),
      .attrs = ATTRS({ "classes_strings", STRINGS, OPTIONAL }, { "default_int64", INT, DEFAULT("-1") },
                     { "default_string", STRING, TEXT("_Unused") }),
      .types = ml_types_1 },
    { .name = NULL },
};

/* ---- LinearClassifier ---- */

const onxi_schema onxi_op_LinearClassifier[] = {
    { .domain = "ai.onnx.ml", .name = "LinearClassifier", .since = 1, .infer = onxi_rule_linear_classifier,
      .flags = INFERS, ARITY(1, 1, 2, 2),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = ml_outputs_1,
      .attrs = ATTRS({ "classlabels_ints", INTS, OPTIONAL }, { "classlabels_strings", STRINGS, OPTIONAL },
                     { "coefficients", FLOATS, REQUIRED }, { "intercepts", FLOATS, OPTIONAL },
                     { "multi_class", INT, DEFAULT("0") }, { "post_transform", STRING, TEXT("NONE") }),
      .types = ml_types_1b },
    { .name = NULL },
};

/* ---- LinearRegressor ---- */

const onxi_schema onxi_op_LinearRegressor[] = {
    { .domain = "ai.onnx.ml", .name = "LinearRegressor", .since = 1, .infer = onxi_rule_linear_regressor,
      ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "coefficients", FLOATS, OPTIONAL }, { "intercepts", FLOATS, OPTIONAL },
                     { "post_transform", STRING, TEXT("NONE") }, { "targets", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- Normalizer ---- */

const onxi_schema onxi_op_Normalizer[] = {
    { .domain = "ai.onnx.ml", .name = "Normalizer", .since = 1, .infer = onxi_rule_ml_scaler, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "norm", STRING, TEXT("MAX") }), .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- OneHotEncoder ---- */

const onxi_schema onxi_op_OneHotEncoder[] = {
    { .domain = "ai.onnx.ml", .name = "OneHotEncoder", .since = 1, .infer = onxi_rule_one_hot_encoder,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "cats_int64s", INTS, OPTIONAL }, { "cats_strings", STRINGS, OPTIONAL },
                     { "zeros", INT, DEFAULT("1") }),
      .types = TYPES({ "T", T(ML_KEYS) }) },
    { .name = NULL },
};

/* ---- SVMClassifier ---- */

const onxi_schema onxi_op_SVMClassifier[] = {
    { .domain = "ai.onnx.ml", .name = "SVMClassifier", .since = 1, .infer = onxi_rule_svm_classifier,
      .flags = INFERS, ARITY(1, 1, 2, 2),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = ml_outputs_1,
      .attrs = ATTRS({ "classlabels_ints", INTS, OPTIONAL }, { "classlabels_strings", STRINGS, OPTIONAL },
                     { "coefficients", FLOATS, OPTIONAL }, { "kernel_params", FLOATS, OPTIONAL },
                     { "kernel_type", STRING, TEXT("LINEAR") }, { "post_transform", STRING, TEXT("NONE") },
                     { "prob_a", FLOATS, OPTIONAL }, { "prob_b", FLOATS, OPTIONAL }, { "rho", FLOATS, OPTIONAL },
                     { "support_vectors", FLOATS, OPTIONAL }, { "vectors_per_class", INTS, OPTIONAL }),
      .types = ml_types_1b },
    { .name = NULL },
};

/* ---- SVMRegressor ---- */

const onxi_schema onxi_op_SVMRegressor[] = {
    { .domain = "ai.onnx.ml", .name = "SVMRegressor", .since = 1, .infer = onxi_rule_svm_regressor, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "coefficients", FLOATS, OPTIONAL }, { "kernel_params", FLOATS, OPTIONAL },
                     { "kernel_type", STRING, TEXT("LINEAR") }, { "n_supports", INT, DEFAULT("0") },
                     { "one_class", INT, DEFAULT("0") }, { "post_transform", STRING, TEXT("NONE") },
                     { "rho", FLOATS, OPTIONAL }, { "support_vectors", FLOATS, OPTIONAL }),
      .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- Scaler ---- */

const onxi_schema onxi_op_Scaler[] = {
    { .domain = "ai.onnx.ml", .name = "Scaler", .since = 1, .infer = onxi_rule_ml_scaler, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "offset", FLOATS, OPTIONAL }, { "scale", FLOATS, OPTIONAL }),
      .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- TreeEnsemble ---- */

const onxi_schema onxi_op_TreeEnsemble[] = {
    { .domain = "ai.onnx.ml", .name = "TreeEnsemble", .since = 5, .infer = onxi_rule_tree_ensemble,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "T", 0 }),
      .attrs = ATTRS({ "aggregate_function", INT, DEFAULT("1") }, { "leaf_targetids", INTS, REQUIRED },
                     { "leaf_weights", TENSOR, REQUIRED }, { "membership_values", TENSOR, OPTIONAL },
                     { "n_targets", INT, OPTIONAL }, { "nodes_falseleafs", INTS, REQUIRED },
                     { "nodes_falsenodeids", INTS, REQUIRED }, { "nodes_featureids", INTS, REQUIRED },
                     { "nodes_hitrates", TENSOR, OPTIONAL }, { "nodes_missing_value_tracks_true", INTS, OPTIONAL },
                     { "nodes_modes", TENSOR, REQUIRED }, { "nodes_splits", TENSOR, REQUIRED },
                     { "nodes_trueleafs", INTS, REQUIRED }, { "nodes_truenodeids", INTS, REQUIRED },
                     { "post_transform", INT, DEFAULT("0") }, { "tree_roots", INTS, REQUIRED }),
      .types = TYPES({ "T", T(FLOATING) }) },
    { .name = NULL },
};

/* ---- TreeEnsembleClassifier ---- */

static const onxi_attr tree_ensemble_classifier_attrs_5[] = {
    { "base_values", FLOATS, OPTIONAL },
    { "base_values_as_tensor", TENSOR, OPTIONAL },
    { "class_ids", INTS, OPTIONAL },
    { "class_nodeids", INTS, OPTIONAL },
    { "class_treeids", INTS, OPTIONAL },
    { "class_weights", FLOATS, OPTIONAL },
    { "class_weights_as_tensor", TENSOR, OPTIONAL },
    { "classlabels_int64s", INTS, OPTIONAL },
    { "classlabels_strings", STRINGS, OPTIONAL },
    { "nodes_falsenodeids", INTS, OPTIONAL },
    { "nodes_featureids", INTS, OPTIONAL },
    { "nodes_hitrates", FLOATS, OPTIONAL },
    { "nodes_hitrates_as_tensor", TENSOR, OPTIONAL },
    { "nodes_missing_value_tracks_true", INTS, OPTIONAL },
    { "nodes_modes", STRINGS, OPTIONAL },
    { "nodes_nodeids", INTS, OPTIONAL },
    { "nodes_treeids", INTS, OPTIONAL },
    { "nodes_truenodeids", INTS, OPTIONAL },
    { "nodes_values", FLOATS, OPTIONAL },
    { "nodes_values_as_tensor", TENSOR, OPTIONAL },
    { "post_transform", STRING, TEXT("NONE") },
    { 0 },
};

const onxi_schema onxi_op_TreeEnsembleClassifier[] = {
    { .domain = "ai.onnx.ml", .name = "TreeEnsembleClassifier", .since = 5, .infer = onxi_rule_tree_ensemble_classifier,
      .flags = DEPRECATED, ARITY(1, 1, 2, 2),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = ml_outputs_1, .attrs = tree_ensemble_classifier_attrs_5,
      .types = ml_types_1b },
    { .domain = "ai.onnx.ml", .name = "TreeEnsembleClassifier", .since = 3, .infer = onxi_rule_tree_ensemble_classifier,
      .flags = INFERS, ARITY(1, 1, 2, 2),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = ml_outputs_1, .attrs = tree_ensemble_classifier_attrs_5,
      .types = ml_types_1b },
    { .domain = "ai.onnx.ml", .name = "TreeEnsembleClassifier", .since = 1, .infer = onxi_rule_tree_ensemble_classifier,
      .flags = INFERS, ARITY(1, 1, 2, 2),
      .inputs = PORTS({ "X", "T1", 0 }), .outputs = ml_outputs_1,
      .attrs = ATTRS({ "base_values", FLOATS, OPTIONAL }, { "class_ids", INTS, OPTIONAL },
                     { "class_nodeids", INTS, OPTIONAL }, { "class_treeids", INTS, OPTIONAL },
                     { "class_weights", FLOATS, OPTIONAL }, { "classlabels_int64s", INTS, OPTIONAL },
                     { "classlabels_strings", STRINGS, OPTIONAL }, { "nodes_falsenodeids", INTS, OPTIONAL },
                     { "nodes_featureids", INTS, OPTIONAL }, { "nodes_hitrates", FLOATS, OPTIONAL },
                     { "nodes_missing_value_tracks_true", INTS, OPTIONAL }, { "nodes_modes", STRINGS, OPTIONAL },
                     { "nodes_nodeids", INTS, OPTIONAL }, { "nodes_treeids", INTS, OPTIONAL },
                     { "nodes_truenodeids", INTS, OPTIONAL }, { "nodes_values", FLOATS, OPTIONAL },
                     { "post_transform", STRING, TEXT("NONE") }),
      .types = ml_types_1b },
    { .name = NULL },
};

/* ---- TreeEnsembleRegressor ---- */

static const onxi_attr tree_ensemble_regressor_attrs_5[] = {
    { "aggregate_function", STRING, TEXT("SUM") },
    { "base_values", FLOATS, OPTIONAL },
    { "base_values_as_tensor", TENSOR, OPTIONAL },
    { "n_targets", INT, OPTIONAL },
    { "nodes_falsenodeids", INTS, OPTIONAL },
    { "nodes_featureids", INTS, OPTIONAL },
    { "nodes_hitrates", FLOATS, OPTIONAL },
    { "nodes_hitrates_as_tensor", TENSOR, OPTIONAL },
    { "nodes_missing_value_tracks_true", INTS, OPTIONAL },
    { "nodes_modes", STRINGS, OPTIONAL },
    { "nodes_nodeids", INTS, OPTIONAL },
    { "nodes_treeids", INTS, OPTIONAL },
    { "nodes_truenodeids", INTS, OPTIONAL },
    { "nodes_values", FLOATS, OPTIONAL },
    { "nodes_values_as_tensor", TENSOR, OPTIONAL },
    { "post_transform", STRING, TEXT("NONE") },
    { "target_ids", INTS, OPTIONAL },
    { "target_nodeids", INTS, OPTIONAL },
    { "target_treeids", INTS, OPTIONAL },
    { "target_weights", FLOATS, OPTIONAL },
    { "target_weights_as_tensor", TENSOR, OPTIONAL },
    { 0 },
};

const onxi_schema onxi_op_TreeEnsembleRegressor[] = {
    { .domain = "ai.onnx.ml", .name = "TreeEnsembleRegressor", .since = 5, .infer = onxi_rule_tree_ensemble_regressor,
      .flags = DEPRECATED, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = tree_ensemble_regressor_attrs_5, .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .domain = "ai.onnx.ml", .name = "TreeEnsembleRegressor", .since = 3, .infer = onxi_rule_tree_ensemble_regressor,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = tree_ensemble_regressor_attrs_5, .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .domain = "ai.onnx.ml", .name = "TreeEnsembleRegressor", .since = 1, .infer = onxi_rule_tree_ensemble_regressor,
      ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "T", 0 }), .outputs = PORTS({ "Y", "tensor(float)", 0 }),
      .attrs = ATTRS({ "aggregate_function", STRING, TEXT("SUM") }, { "base_values", FLOATS, OPTIONAL },
                     { "n_targets", INT, OPTIONAL }, { "nodes_falsenodeids", INTS, OPTIONAL },
                     { "nodes_featureids", INTS, OPTIONAL }, { "nodes_hitrates", FLOATS, OPTIONAL },
                     { "nodes_missing_value_tracks_true", INTS, OPTIONAL }, { "nodes_modes", STRINGS, OPTIONAL },
                     { "nodes_nodeids", INTS, OPTIONAL }, { "nodes_treeids", INTS, OPTIONAL },
                     { "nodes_truenodeids", INTS, OPTIONAL }, { "nodes_values", FLOATS, OPTIONAL },
                     { "post_transform", STRING, TEXT("NONE") }, { "target_ids", INTS, OPTIONAL },
                     { "target_nodeids", INTS, OPTIONAL }, { "target_treeids", INTS, OPTIONAL },
                     { "target_weights", FLOATS, OPTIONAL }),
      .types = TYPES({ "T", T(ML_NUMERIC) }) },
    { .name = NULL },
};

/* ---- ZipMap ---- */

const onxi_schema onxi_op_ZipMap[] = {
    { .domain = "ai.onnx.ml", .name = "ZipMap", .since = 1, .infer = onxi_rule_zip_map,
      .flags = INFERS, ARITY(1, 1, 1, 1),
      .inputs = PORTS({ "X", "tensor(float)", 0 }), .outputs = PORTS({ "Z", "T", 0 }),
      .attrs = ATTRS({ "classlabels_int64s", INTS, OPTIONAL }, { "classlabels_strings", STRINGS, OPTIONAL }),
      .types = TYPES({ "T", { .other = "seq(map(int64,float)) seq(map(string,float))" } }) },
    { .name = NULL },
};

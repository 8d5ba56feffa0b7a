/* check_sparse.c - rules SP: sparse tensors. */
#include "check/check.h"

const onx_rule onxi_check_rules_sparse[] = {
    { "SP-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto",
      "values is present and is a valid dense tensor", "indices and dims only" },
    { "SP-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.values",
      "values has the shape [NNZ]", "values of shape [1,2]" },
    { "SP-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.values",
      "In sparse_initializer, values.name is not empty and names the sparse tensor", "nameless values" },
    { "SP-04", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "reference checker; onnx.in.proto: SparseTensorProto.dims",
      "dims has at least one entry and all entries are positive", "dims 0" },
    { "SP-05", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "reference checker (not stated in the documents)", "indices has data type INT64", "INT32 indices" },
    { "SP-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.indices",
      "indices has rank 1 (linear) or 2 (coordinates)", "indices of shape [2,1,1]" },
    { "SP-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.indices",
      "The first dimension of indices equals NNZ", "1 index for 2 values" },
    { "SP-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.indices",
      "Rank-2 indices have as many columns as dims has entries", "one column for dims [2,2]" },
    { "SP-09", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.indices",
      "Linear indices lie between 0 and the number of dense elements minus 1", "index 3 for dims [3]" },
    { "SP-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.indices",
      "Each coordinate lies within its dimension", "coordinate [0,2] for dims [2,2]" },
    { "SP-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto.indices",
      "Indices strictly ascend (lexicographically for coordinates), so there are no duplicates", "indices 2, 0" },
    { "SP-12", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: SparseTensorProto",
      "indices is present unless NNZ is 0", "two values, no indices" },
    { "SP-13", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition",
      "The dense element count does not overflow", "dims [4294967296, 4294967296]" },
    { "SP-14", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition",
      "values and indices contain exactly their declared number of entries",
      "three int64 entries for indices of shape [2]" },
    { "SP-15", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "ExternalData.md",
      "Indices stored externally are loaded before they are checked, or the check says it was not done",
      "indices with data_location EXTERNAL" },
    { "SP-16", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "onnx.in.proto: SparseTensorProto.values",
      "Elements without an index are zero, or the empty string for string tensors; storing such a value explicitly is harmless",
      "explicit 0.0 among the values" },
    { "SP-17", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: GraphProto.initializer",
      "A sparse initializer may share its name with a graph input of a matching sparse type",
      "accept: input `s` with sparse initializer `s`" },
    { 0 }
};

/* The indices as int64 values, wherever they are stored; NULL if they cannot be read or have the wrong size. */
static const int64_t *load_indices(onxi_check *k, const onx_tensor *indices, uint64_t count)
{
    if (indices->int64_data_count == count && indices->int64_data_count)
        return indices->int64_data;
    onx_str raw = onx_view(indices->raw_data);
    if (raw.len / 8 != count || raw.len % 8)
        return NULL;
    int64_t *out = ONXI_ARRAY(k->arena, int64_t, count ? (size_t)count : 1);
    if (onxi_check_failed(k, out))
        return NULL;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned char *p = (const unsigned char *)raw.ptr + 8 * i;
        uint64_t v = 0;
        for (int b = 7; b >= 0; b--)
            v = v << 8 | p[b];
        memcpy(&out[i], &v, 8);
    }
    return out;
}

static void check_linear(onxi_check *k, const onxi_check_at *at, const int64_t *index, uint64_t nnz, uint64_t dense)
{
    for (uint64_t i = 0; i < nnz; i++) {
        if (index[i] < 0 || (uint64_t)index[i] >= dense) {
            onxi_check_find(
                k, at, "SP-09",
                (onxi_check_detail){ .value = onxi_check_number(k, index[i]),
                                     .expected = onxi_check_text(k, "0 to %llu", (unsigned long long)dense - 1) },
                "index %llu is out of range", (unsigned long long)i);
            return;
        }
        if (i && index[i] <= index[i - 1]) {
            onxi_check_find(k, at, "SP-11",
                            (onxi_check_detail){ .value = onxi_check_text(k, "%lld after %lld", (long long)index[i],
                                                                          (long long)index[i - 1]) },
                            "index %llu does not ascend", (unsigned long long)i);
            return;
        }
    }
}

static void check_coordinates(onxi_check *k, const onxi_check_at *at, const onx_sparse_tensor *s, const int64_t *index,
                              uint64_t nnz)
{
    uint32_t rank = s->dims_count;
    for (uint64_t i = 0; i < nnz; i++) {
        const int64_t *row = index + i * rank;
        int order = i ? 0 : 1;
        for (uint32_t d = 0; d < rank; d++) {
            if (row[d] < 0 || row[d] >= s->dims[d]) {
                onxi_check_find(
                    k, at, "SP-10",
                    (onxi_check_detail){ .value = onxi_check_number(k, row[d]),
                                         .expected = onxi_check_text(k, "0 to %lld", (long long)s->dims[d] - 1) },
                    "coordinate %u of index %llu is out of range", d, (unsigned long long)i);
                return;
            }
            if (!order && row[d] != index[(i - 1) * rank + d])
                order = row[d] > index[(i - 1) * rank + d] ? 1 : -1;
        }
        if (order < 1) {
            onxi_check_find(k, at, "SP-11", ONXI_PLAIN, "the coordinates of index %llu do not ascend",
                            (unsigned long long)i);
            return;
        }
    }
}

static void check_indices(onxi_check *k, const onxi_check_at *at, const onx_sparse_tensor *s, uint64_t nnz,
                          uint64_t dense)
{
    const onx_tensor *t = s->indices;
    const onxi_check_at *here = ONXI_AT_MESSAGE(at, indices, TENSOR, t);
    if (t->data_location == ONX_DATA_EXTERNAL) {
        onxi_check_find(k, here, "SP-15", ONXI_PLAIN, "the indices are external and were not checked");
        return;
    }
    uint64_t before = k->total[ONX_ERROR];
    onxi_check_tensor(k, here, t);
    bool sound = k->total[ONX_ERROR] == before;
    if (t->data_type != ONX_INT64) {
        if (onx_dtype_name(t->data_type))
            onxi_check_find(k, ONXI_AT(here, data_type), "SP-05",
                            (onxi_check_detail){ .value = onx_str_of(onx_dtype_name(t->data_type)),
                                                 .expected = onx_str_of("int64") },
                            "indices have the wrong element type");
        return;
    }
    if (t->dims_count != 1 && t->dims_count != 2) {
        onxi_check_find(
            k, ONXI_AT(here, dims), "SP-06",
            (onxi_check_detail){ .value = onxi_check_number(k, t->dims_count), .expected = onx_str_of("1 or 2") },
            "indices have the wrong rank");
        return;
    }
    if (t->dims[0] < 0 || (uint64_t)t->dims[0] != nnz) {
        onxi_check_find(k, ONXI_AT(here, dims), "SP-07",
                        (onxi_check_detail){ .value = onxi_check_number(k, t->dims[0]),
                                             .expected = onxi_check_text(k, "%llu", (unsigned long long)nnz) },
                        "there are not as many indices as values");
        return;
    }
    if (t->dims_count == 2 && (t->dims[1] < 0 || (uint64_t)t->dims[1] != s->dims_count)) {
        onxi_check_find(k, ONXI_AT(here, dims), "SP-08",
                        (onxi_check_detail){ .value = onxi_check_number(k, t->dims[1]),
                                             .expected = onxi_check_number(k, s->dims_count) },
                        "indices do not have a column per dimension");
        return;
    }
    uint64_t count;
    if (!sound || !nnz || !onxi_mul_u64(nnz, t->dims_count == 2 ? s->dims_count : 1, &count))
        return;
    const int64_t *index = load_indices(k, t, count);
    if (!index)
        return;
    if (t->dims_count == 1)
        check_linear(k, here, index, nnz, dense);
    else
        check_coordinates(k, here, s, index, nnz);
}

static void check_explicit_zeros(onxi_check *k, const onxi_check_at *at, const onx_tensor *values)
{
    enum { MOST = 4096 }; /* larger tensors are not read just for a note */
    uint64_t zeros = 0;
    onx_str raw = onx_view(values->raw_data);
    unsigned bits = onx_dtype_bits(values->data_type);
    for (uint64_t i = 0; i < values->float_data_count && i < MOST; i++) {
        uint32_t bits32;
        memcpy(&bits32, (const char *)values->float_data + 4 * i, 4);
        zeros += !(bits32 << 1);
    }
    for (uint64_t i = 0; i < values->int32_data_count && i < MOST && bits >= 8; i++)
        zeros += !values->int32_data[i];
    for (uint64_t i = 0; i < values->int64_data_count && i < MOST; i++)
        zeros += !values->int64_data[i];
    for (uint32_t i = 0; i < values->string_data_count && i < MOST; i++)
        zeros += !values->string_data[i].bits;
    if (raw.len <= MOST && bits >= 8)
        for (size_t i = 0, step = bits / 8; i + step <= raw.len; i += step) {
            bool zero = true;
            for (size_t b = 0; b < step; b++)
                zero = zero && !raw.ptr[i + b];
            zeros += zero;
        }
    if (zeros)
        onxi_check_find(k, at, "SP-16",
                        (onxi_check_detail){ .value = onxi_check_text(k, "%llu", (unsigned long long)zeros) },
                        "zeros are stored explicitly");
}

void onxi_check_sparse(onxi_check *k, const onxi_check_at *at, const onx_sparse_tensor *s)
{
    uint64_t dense = 1, nnz = 0;
    bool sound = true;
    onxi_check_gate(k, at, "V-07", "a sparse tensor", 6);
    if (!s->dims_count) {
        onxi_check_find(k, at, "SP-04", ONXI_PLAIN, "a sparse tensor has no dims");
        sound = false;
    }
    for (uint32_t i = 0; i < s->dims_count && sound; i++) {
        if (s->dims[i] <= 0) {
            onxi_check_find(
                k, ONXI_AT_INDEX(at, dims, i), "SP-04",
                (onxi_check_detail){ .value = onxi_check_number(k, s->dims[i]), .expected = onx_str_of("1 or more") },
                "dimension %u is not positive", i);
            sound = false;
        } else if (!onxi_mul_u64(dense, (uint64_t)s->dims[i], &dense) || dense > INT64_MAX) {
            onxi_check_find(k, ONXI_AT_INDEX(at, dims, i), "SP-13",
                            (onxi_check_detail){ .value = onxi_check_number(k, s->dims[i]) },
                            "the number of elements overflows at dimension %u", i);
            sound = false;
        }
    }
    if (!s->values) {
        onxi_check_find(k, at, "SP-01", ONXI_PLAIN, "a sparse tensor has no values");
        return;
    }
    const onxi_check_at *values = ONXI_AT_MESSAGE(at, values, TENSOR, s->values);
    uint64_t before = k->total[ONX_ERROR];
    onxi_check_tensor(k, values, s->values);
    if (s->values->dims_count != 1) {
        onxi_check_find(
            k, ONXI_AT(values, dims), "SP-02",
            (onxi_check_detail){ .value = onxi_check_number(k, s->values->dims_count), .expected = onx_str_of("1") },
            "values have the wrong rank");
        return;
    }
    if (k->notes)
        check_explicit_zeros(k, values, s->values);
    if (s->values->dims[0] < 0 || k->total[ONX_ERROR] != before)
        return;
    nnz = (uint64_t)s->values->dims[0];
    if (!s->indices) {
        if (nnz)
            onxi_check_find(
                k, at, "SP-12",
                (onxi_check_detail){ .expected = onxi_check_text(k, "%llu indices", (unsigned long long)nnz) },
                "a sparse tensor with values has no indices");
        return;
    }
    if (sound)
        check_indices(k, at, s, nnz, dense);
}

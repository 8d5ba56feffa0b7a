/* check_tensor.c - rules T: dense tensors. Element values are only read for rules about typed fields and one-byte
 * booleans; other raw data is never read. */
#include "check/check.h"

const onx_rule onxi_check_rules_tensor[] = {
    { "T-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TensorProto.data_type",
      "data_type is present", "dims and data only" },
    { "T-02", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TensorProto",
      "data_type is not UNDEFINED", "data_type 0" },
    { "T-03", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TensorProto.DataType",
      "data_type is one of 1 to 28", "data_type 99 with raw_data" },
    { "T-04", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition",
      "Dimensions are not negative", "dims -1" },
    { "T-05", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition",
      "The product of the dimensions, and times the element size, fits the machine; dimensions after a zero are checked as well",
      "dims 4294967296 x 4294967296 x 4" },
    { "T-06", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition",
      "No dims means a scalar with exactly one element; a TensorProto is never of unknown rank",
      "data_type FLOAT, no dims, no data" },
    { "T-07", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition",
      "A tensor with a zero dimension holds no data", "dims 0 with one float" },
    { "T-08", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TensorProto",
      "A tensor with elements uses exactly one storage field: float_data, int32_data, string_data, int64_data, double_data, uint64_data or raw_data",
      "float_data and raw_data both filled" },
    { "T-09", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: TensorProto.data_location",
      "raw_data that is present but empty next to typed data is pointed out, because readers that test presence take the raw branch",
      "one float in float_data plus zero-length raw_data" },
    { "T-10", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TensorProto field comments",
      "The typed field is the one belonging to the data type", "INT64 values in int32_data" },
    { "T-11", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition",
      "A typed field has exactly the number of entries the shape calls for", "dims 1 with two floats" },
    { "T-12", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "IR.md: Tensor Definition; onnx.in.proto: raw_data",
      "raw_data has exactly the number of bytes the shape and type call for", "one float in 5 bytes" },
    { "T-13", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: int32_data",
      "4-bit elements in int32_data: two per entry, so ceil(n/2) entries, first element in the low half",
      "16 INT4 elements in one entry" },
    { "T-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: int32_data",
      "2-bit elements in int32_data: four per entry, so ceil(n/4) entries, first element in bits 0-1",
      "17 INT2 elements in one entry" },
    { "T-15", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: int32_data",
      "Each packed entry fits one byte (0 to 255)", "INT4 entry 256" },
    { "T-16", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: raw_data, int32_data",
      "4-bit elements in raw_data: two per byte, low half first, ceil(n/2) bytes (FLOAT4E2M1 alike)",
      "3 INT4 elements in one byte" },
    { "T-17", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: raw_data",
      "2-bit elements in raw_data: four per byte from the low bits up, ceil(n/4) bytes",
      "5 INT2 elements in one byte" },
    { "T-18", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "interoperability",
      "Unused bits of the last packed byte are zero", "3 INT4 elements, last byte `F1`" },
    { "T-19", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: raw_data",
      "STRING data is in string_data, never in raw_data or in an external file", "STRING tensor with raw_data" },
    { "T-20", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL,
      "onnx.in.proto: string_data; IR.md: Tensor Element Types",
      "Each string element is UTF-8 without a leading byte-order mark and without a trailing zero byte",
      "element bytes `FF`" },
    { "T-21", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: raw_data",
      "BOOL in raw_data is one byte per element, 0 or 1", "byte `02`" },
    { "T-22", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: int32_data",
      "BOOL in int32_data is 0 or 1", "entry 7" },
    { "T-23", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: int32_data",
      "Entries for INT8, UINT8, INT16 and UINT16 lie in the range of the type", "UINT8 entry 300" },
    { "T-24", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: int32_data",
      "FLOAT16 and BFLOAT16 entries are unsigned 16-bit patterns (0 to 65535), 8-bit float entries unsigned 8-bit patterns (0 to 255), 6-bit float entries unsigned 6-bit patterns (0 to 63)",
      "FLOAT16 entry 70000" },
    { "T-25", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: uint64_data",
      "UINT32 entries in uint64_data are below 4294967296", "UINT32 entry 4294967296" },
    { "T-26", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: float_data, double_data, raw_data",
      "Complex elements are stored as real then imaginary part, so two entries (or two raw values) per element",
      "one COMPLEX64 element with one float" },
    { "T-27", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: raw_data",
      "raw_data is fixed-width little-endian on every host", "big-endian host copying bytes unchanged" },
    { "T-28", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: raw_data, DataType",
      "Floating-point raw data is IEEE 754 (or the documented 8-, 6- and 4-bit layouts); every bit pattern is readable, FLOAT8E8M0 `FF` being NaN",
      "rejecting a NaN pattern" },
    { "T-29", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: TensorProto",
      "Elements are in row-major order", "n/a" },
    { "T-30", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TensorProto.Segment",
      "A tensor with segment is a chunk; unless chunks are supported it is refused by name, and begin and end satisfy 0 <= begin <= end",
      "segment 0 to 2 of a 4-element tensor" },
    { "T-31", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "ExternalData.md: data_location field; onnx.in.proto",
      "data_location is DEFAULT or EXTERNAL; absent means DEFAULT", "data_location 7" },
    { "T-32", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: TensorProto.metadata_props, Notes",
      "metadata_props keys of a tensor are distinct", "key `a` twice" },
    { "T-33", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, "T-03", "IR.md: Standard data types",
      "Tensor elements are numbers, strings or booleans, never sequences, maps or optionals", "n/a" },
    { "T-34", ONX_MUST, ONX_RULE_DERIVED, ONX_BY_READER, ONX_RULE_ERROR, NULL,
      "ExternalDataSecurity.md: Layer 3; AssuranceCase.md",
      "Storage for a tensor is reserved only after the data present has been found sufficient",
      "dims of one million million, 4 bytes of data" },
    { "T-35", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: TensorProto.name",
      "A tensor outside the initializer lists need not be named", "accept: nameless attribute tensor" },
    { "T-36", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: raw_data",
      "6-bit elements in raw_data: four in three bytes from the low bits up, ceil(6n/8) bytes",
      "5 FLOAT6E2M3 elements in three bytes" },
    { "T-37", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: raw_data",
      "Unused bits of the last byte of 6-bit elements are zero", "1 FLOAT6E2M3 element, byte `C0`" },
    { 0 }
};

const char *onxi_check_tensor_name(onxi_check *k, const onx_tensor *tensor)
{
    return onxi_check_quote(k, onx_view(tensor->name));
}

/* The path steps of the fields, indexed by onxi_data_field. */
static const onxi_check_step field_step[] = { ONXI_STEP_data_type,   ONXI_STEP_float_data, ONXI_STEP_int32_data,
                                              ONXI_STEP_string_data, ONXI_STEP_int64_data, ONXI_STEP_double_data,
                                              ONXI_STEP_uint64_data, ONXI_STEP_raw_data };

/* The valid range of an int32_data entry; false if every value is valid. */
static bool entry_range(const onx_tensor *t, uint64_t count, int32_t *low, int32_t *high, const char **rule)
{
    const onxi_dtype_row *row = onxi_dtype_row_of(t->data_type);
    const bool is_signed = row->class == ONX_CLASS_SIGNED;
    unsigned bits = row->class == ONX_CLASS_BOOLEAN ? 1 : row->bits;
    if (t->data_type == ONX_INT32)
        return false;
    *rule = row->class == ONX_CLASS_BOOLEAN    ? "T-22"
            : row->entry == ONXI_ENTRY_BYTE    ? "T-15"
            : row->class == ONX_CLASS_FLOATING ? "T-24"
                                               : "T-23";
    *low = is_signed ? -(1 << (bits - 1)) : 0;
    *high = (1 << (bits - is_signed)) - 1;
    if (row->entry != ONXI_ENTRY_BYTE)
        return true;
    onxi_packing packing = onxi_packing_of(t->data_type, count, t->int32_data_count);
    *low = packing == ONXI_PACKED_SINGLY ? *low : 0;
    *high = packing == ONXI_PACKED_SINGLY ? (1 << bits) - 1 : 255; /* old writers kept the bits of signed elements */
    return packing != ONXI_PACKED_WORDS;
}

static void check_int32_entries(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, uint64_t count)
{
    int32_t low, high;
    const char *rule;
    if (!entry_range(t, count, &low, &high, &rule) || !onxi_check_wants(k, rule))
        return;
    for (uint64_t i = 0; i < t->int32_data_count; i++)
        if (t->int32_data[i] < low || t->int32_data[i] > high) {
            onxi_check_find(k, ONXI_AT(at, int32_data), rule,
                            (onxi_check_detail){ .value = onxi_check_number(k, t->int32_data[i]),
                                                 .expected = onxi_check_text(k, "%d to %d", low, high) },
                            "entry %llu of int32_data is no %s", (unsigned long long)i, onx_dtype_name(t->data_type));
            return; /* once per tensor */
        }
}

static void check_uint32_entries(onxi_check *k, const onxi_check_at *at, const onx_tensor *t)
{
    for (uint64_t i = 0; i < t->uint64_data_count; i++)
        if (t->uint64_data[i] > UINT32_MAX) {
            onxi_check_find(
                k, ONXI_AT(at, uint64_data), "T-25",
                (onxi_check_detail){ .value = onxi_check_text(k, "%llu", (unsigned long long)t->uint64_data[i]) },
                "entry %llu of uint64_data is no uint32", (unsigned long long)i);
            return;
        }
}

static void check_strings(onxi_check *k, const onxi_check_at *at, const onx_tensor *t)
{
    bool bad = false, odd = false;
    for (uint32_t i = 0; i < t->string_data_count && !(bad && odd); i++) {
        onx_str s = onx_view(t->string_data[i]);
        const onxi_check_at *here = ONXI_AT_INDEX(at, string_data, i);
        if (!bad && onxi_utf8_valid(s) < s.len) {
            bad = true;
            onxi_check_find(k, here, "T-20", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, s)) },
                            "the string is not UTF-8 from byte %zu on", onxi_utf8_valid(s));
        } else if (!odd && ((s.len >= 3 && memcmp(s.ptr, "\xef\xbb\xbf", 3) == 0) || (s.len && !s.ptr[s.len - 1]))) {
            odd = true;
            onxi_check_find(
                k, here, "T-20",
                (onxi_check_detail){ .severity = ONX_RULE_WARNING, .value = onx_str_of(onxi_check_quote(k, s)) },
                s.ptr[s.len - 1] ? "the string begins with a byte-order mark" : "the string ends with a zero byte");
        }
    }
}

static void check_raw_bool(onxi_check *k, const onxi_check_at *at, onx_str raw)
{
    for (size_t i = 0; i < raw.len; i++)
        if ((unsigned char)raw.ptr[i] > 1) {
            onxi_check_find(k, ONXI_AT(at, raw_data), "T-21",
                            (onxi_check_detail){ .value = onxi_check_number(k, (unsigned char)raw.ptr[i]),
                                                 .expected = onx_str_of("0 or 1") },
                            "byte %zu of raw_data is no boolean", i);
            return;
        }
}

/* Checks the padding bits after the last element of a packed type. */
static void check_padding(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, uint64_t count)
{
    const unsigned bits = onx_dtype_bits(t->data_type);
    const bool packed = onxi_dtype_row_of(t->data_type)->entry == ONXI_ENTRY_BYTE;
    uint64_t used = onxi_packed_used(bits, count);
    uint32_t last;
    onx_str raw = onx_view(t->raw_data);
    if (bits >= 8)
        return;
    if (raw.len) {
        last = (unsigned char)raw.ptr[raw.len - 1];
    } else if (t->int32_data_count) {
        onxi_packing packing = onxi_packing_of(t->data_type, count, t->int32_data_count);
        last = (uint32_t)t->int32_data[t->int32_data_count - 1];
        if (packing == ONXI_PACKED_SINGLY)
            return;
        if (packing == ONXI_PACKED_WORDS)
            used = count * bits % 32;
        else
            last &= 0xff;
    } else {
        return;
    }
    if (used && last >> used)
        onxi_check_find(k, at, packed ? "T-18" : "T-37",
                        (onxi_check_detail){ .value = onxi_check_text(k, "0x%02x", last) },
                        "unused bits of the last packed byte are not zero");
}

static bool check_dims(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, uint64_t *count_out)
{
    uint64_t count = 1, nonzero = 1;
    bool zero = false;
    for (uint32_t i = 0; i < t->dims_count; i++) {
        if (t->dims[i] < 0) {
            onxi_check_find(
                k, ONXI_AT_INDEX(at, dims, i), "T-04",
                (onxi_check_detail){ .value = onxi_check_number(k, t->dims[i]), .expected = onx_str_of("0 or more") },
                "dimension %u is negative", i);
            return false;
        }
        uint64_t d = (uint64_t)t->dims[i];
        if (!d)
            zero = true;
        else if (!onxi_mul_u64(nonzero, d, &nonzero) || nonzero > INT64_MAX / 16) {
            onxi_check_find(k, ONXI_AT_INDEX(at, dims, i), "T-05",
                            (onxi_check_detail){ .value = onxi_check_number(k, t->dims[i]) },
                            "the number of elements overflows at dimension %u", i);
            return false;
        }
    }
    count = zero ? 0 : nonzero;
    *count_out = count;
    return true;
}

static bool check_data_type(onxi_check *k, const onxi_check_at *at, const onx_tensor *t)
{
    if (!ONX_HAS(tensor, t, data_type)) {
        onxi_check_find(k, at, "T-01", ONXI_PLAIN, "the tensor has no data_type");
        return false;
    }
    const onxi_check_at *here = ONXI_AT(at, data_type);
    if (t->data_type == ONX_UNDEFINED) {
        onxi_check_find(k, here, "T-02", ONXI_PLAIN, "data_type is UNDEFINED");
        return false;
    }
    if (!onx_dtype_name(t->data_type)) {
        onxi_check_find(k, here, "T-03",
                        (onxi_check_detail){ .value = onxi_check_number(k, t->data_type),
                                             .expected = onxi_check_text(k, "1 to %d", ONX_DTYPE_COUNT - 1) },
                        "data_type is not an element type");
        return false;
    }
    onxi_check_dtype_version(k, here, t->data_type);
    return true;
}

/* The field that contains the data; ONXI_IN_NONE and false if there are several. */
static bool find_field(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, onxi_data_field *out)
{
    *out = ONXI_IN_NONE;
    for (onxi_data_field f = ONXI_IN_FLOAT; f <= ONXI_IN_RAW; f++) {
        if (!onxi_data_field_count(t, f))
            continue;
        if (*out) {
            onxi_check_find(k, at, "T-08", ONXI_PLAIN, "both %s and %s hold data", onxi_data_field_names[*out],
                            onxi_data_field_names[f]);
            return false;
        }
        *out = f;
    }
    return true;
}

static void check_size(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, onxi_data_field f, uint64_t count)
{
    unsigned bits = onx_dtype_bits(t->data_type);
    bool complex = onx_dtype_class_of(t->data_type) == ONX_CLASS_COMPLEX;
    uint64_t got = onxi_data_field_count(t, f), want;
    const char *rule, *unit = "entries";
    if (f == ONXI_IN_RAW) {
        want = 0;
        onx_dtype_size(t->data_type, count, &want); /* cannot overflow: check_dims bounds the count */
        rule = bits == 4 ? "T-16" : bits == 2 ? "T-17" : bits < 8 ? "T-36" : complex ? "T-26" : "T-12";
        unit = "bytes";
    } else if (onxi_dtype_row_of(t->data_type)->entry == ONXI_ENTRY_BYTE) {
        want = 0;
        onx_dtype_size(t->data_type, count, &want);
        rule = bits == 4 ? "T-13" : "T-14";
        onxi_packing packing = onxi_packing_of(t->data_type, count, got);
        if (packing == ONXI_PACKED_SINGLY || packing == ONXI_PACKED_WORDS) {
            onxi_check_find(
                k, &(onxi_check_at){ at, field_step[f], ONXI_NO_INDEX, ONX_KIND_NONE, NULL }, rule,
                (onxi_check_detail){ .severity = ONX_RULE_WARNING,
                                     .value = onxi_check_text(k, "%llu entries", (unsigned long long)got),
                                     .expected = onxi_check_text(k, "%llu entries", (unsigned long long)want) },
                packing == ONXI_PACKED_WORDS ? "%s has entries filled with 32 bits instead of %u elements each"
                                             : "%s holds one element per entry instead of %u",
                onxi_data_field_names[f], 8 / bits);
            return;
        }
    } else {
        want = complex ? count * 2 : count;
        rule = complex ? "T-26" : "T-11";
    }
    if (got == want)
        return;
    onxi_check_find(k, &(onxi_check_at){ at, field_step[f], ONXI_NO_INDEX, ONX_KIND_NONE, NULL }, rule,
                    (onxi_check_detail){ .value = onxi_check_text(k, "%llu %s", (unsigned long long)got, unit),
                                         .expected = onxi_check_text(k, "%llu %s", (unsigned long long)want, unit) },
                    "%s is too %s for %llu elements of type %s", onxi_data_field_names[f],
                    got < want ? "short" : "long", (unsigned long long)count, onx_dtype_name(t->data_type));
}

/* Checks the values in typed fields and booleans. */
static void check_values(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, onxi_data_field f, uint64_t count)
{
    if (f == ONXI_IN_INT32)
        check_int32_entries(k, at, t, count);
    else if (f == ONXI_IN_UINT64 && t->data_type == ONX_UINT32)
        check_uint32_entries(k, at, t);
    else if (f == ONXI_IN_STRING)
        check_strings(k, at, t);
    else if (f == ONXI_IN_RAW && t->data_type == ONX_BOOL)
        check_raw_bool(k, at, onx_view(t->raw_data));
    if (onx_dtype_bits(t->data_type) < 8)
        check_padding(k, at, t, count);
}

static void check_inline(onxi_check *k, const onxi_check_at *at, const onx_tensor *t, uint64_t count)
{
    onxi_data_field f;
    if (!find_field(k, at, t, &f))
        return;
    if (ONX_HAS(tensor, t, raw_data) && !onx_view(t->raw_data).len && f != ONXI_IN_NONE)
        onxi_check_find(k, ONXI_AT(at, raw_data), "T-09", ONXI_PLAIN, "raw_data is present but empty next to %s",
                        onxi_data_field_names[f]);
    if (!count) {
        if (f)
            onxi_check_find(k, at, "T-07",
                            (onxi_check_detail){ .value = onxi_check_text(
                                                     k, "%llu in %s", (unsigned long long)onxi_data_field_count(t, f),
                                                     onxi_data_field_names[f]) },
                            "a tensor with a zero dimension holds data");
        return;
    }
    if (t->data_type == ONX_STRING && f == ONXI_IN_RAW) {
        onxi_check_find(k, ONXI_AT(at, raw_data), "T-19", ONXI_PLAIN, "strings cannot be stored in raw_data");
        return;
    }
    if (!f) {
        const char *scalar = t->dims_count ? "" : ", which has no dims and so is a scalar";
        const char *rule = t->dims_count ? "T-08" : "T-06";
        onxi_check_find(
            k, at, rule,
            (onxi_check_detail){ .expected = onxi_check_text(k, "%llu elements", (unsigned long long)count) },
            "no field holds the data of the tensor%s", scalar);
        return;
    }
    onxi_data_field own = onxi_data_field_of(t->data_type);
    if (f != ONXI_IN_RAW && f != own) {
        onxi_check_find(
            k, &(onxi_check_at){ at, field_step[f], ONXI_NO_INDEX, ONX_KIND_NONE, NULL }, "T-10",
            (onxi_check_detail){ .value = onx_str_of(onxi_data_field_names[f]),
                                 .expected = onxi_check_text(k, "%s or raw_data", onxi_data_field_names[own]) },
            "elements of type %s are not stored in %s", onx_dtype_name(t->data_type), onxi_data_field_names[f]);
        return;
    }
    check_size(k, at, t, f, count);
    check_values(k, at, t, f, count);
}

void onxi_check_tensor(onxi_check *k, const onxi_check_at *at, const onx_tensor *t)
{
    uint64_t count = 0, size = 0;
    onxi_check_utf8(k, at, onx_view(t->doc_string));
    if (t->metadata_props_count)
        onxi_check_gate(k, at, "V-17", "metadata_props of a tensor", 10);
    onxi_check_metadata(k, at, t->metadata_props, t->metadata_props_count, false);
    if (ONX_HAS(tensor, t, segment) && t->segment) {
        const onx_segment *s = t->segment;
        bool order = s->begin >= 0 && s->begin <= s->end;
        onxi_check_find(
            k, ONXI_AT(at, segment), "T-30",
            (onxi_check_detail){ .value = onxi_check_text(k, "%lld to %lld", (long long)s->begin, (long long)s->end) },
            order ? "tensors in segments are not supported" : "the segment ends before it begins");
        return;
    }
    bool typed = check_data_type(k, at, t), sized = check_dims(k, at, t, &count);
    if (ONX_HAS(tensor, t, data_location) && t->data_location != ONX_DATA_DEFAULT &&
        t->data_location != ONX_DATA_EXTERNAL) {
        onxi_check_find(k, ONXI_AT(at, data_location), "T-31",
                        (onxi_check_detail){ .value = onxi_check_number(k, t->data_location),
                                             .expected = onx_str_of("DEFAULT or EXTERNAL") },
                        "data_location is no location");
        return;
    }
    for (uint32_t i = 0; i < t->external_data_count && !k->quick; i++)
        if (!onx_str_is(onx_view(t->external_data[i]->key), "location") || !onx_tensor_is_external(t)) /* otherwise E-06
                                                                                                        * reports it */
            onxi_check_entry_text(k, ONXI_AT_ITEM(at, external_data, i, STRING_STRING_ENTRY, t->external_data[i]),
                                  t->external_data[i]);
    if (t->data_location == ONX_DATA_EXTERNAL) {
        if (typed && t->data_type != ONX_STRING && sized)
            sized = onx_dtype_size(t->data_type, count, &size);
        onxi_check_external(k, at, t, typed && sized, size);
        return;
    }
    if (t->external_data_count)
        onxi_check_find(k, ONXI_AT(at, external_data), "E-27", ONXI_PLAIN,
                        "external_data is given, but data_location is DEFAULT");
    if (typed && sized && !onxi_doc_part(k->doc, t))
        check_inline(k, at, t, count);
}

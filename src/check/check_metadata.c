/* check_metadata.c - rules MD: metadata properties, documentation, denotations. */
#include "check/check.h"

const onx_rule onxi_check_rules_metadata[] = {
    { "MD-01", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_ERROR, NULL, "onnx.in.proto: field comments, Notes",
      "metadata_props keys are distinct in graphs, nodes, functions, value infos and tensors as well",
      "node with key `a` twice" },
    { "MD-02", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "onnx.in.proto: StringStringEntryProto", "An entry has a non-empty key and a value", "entry without key" },
    { "MD-03", ONX_SHOULD, ONX_RULE_OFF, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Other Metadata",
      "Keys start with a reverse-DNS prefix; unqualified names may later be taken by the standard", "key `key1`" },
    { "MD-04", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "IR.md: Optional Metadata",
      "model_author (list of names separated by commas) and model_license (name or URL) are the standard model keys",
      "accept: model_license `MIT`" },
    { "MD-05", ONX_SHOULD, ONX_RULE_DERIVED, ONX_BY_CHECK, ONX_RULE_NOTE, NULL,
      "older IR document: Metadata; IR.md: Optional Metadata",
      "The older keys author, company, converted_from, license and license_url are pointed out with their successors",
      "key `author`" },
    { "MD-06", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL, "MetadataProps.md: Image Category Definition",
      "Image.BitmapPixelFormat is Gray8, Rgb8, Bgr8, Rgba8 or Bgra8; Image.ColorSpaceGamma is Linear or SRGB; Image.NominalPixelRange is NominalRange_0_255, Normalized_0_1, Normalized_1_1 or NominalRange_16_235",
      "Image.ColorSpaceGamma = `Gamma22`" },
    { "MD-07", ONX_MUST, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "MetadataProps.md: Image Category Definition",
      "Keys and values of that category are compared without regard to case",
      "treating `image.bitmappixelformat` as unknown" },
    { "MD-08", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "MetadataProps.md; TypeDenotation.md",
      "A model with an IMAGE denotation provides the image keys; they apply to all values so denoted",
      "IMAGE input, no Image.* keys" },
    { "MD-09", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "TypeDenotation.md",
      "A type denotation is TENSOR, IMAGE, AUDIO or TEXT", "denotation `VIDEO`" },
    { "MD-10", ONX_SHOULD, ONX_RULE_OFF, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "TypeDenotation.md",
      "Model inputs and outputs carry a type denotation where it fits", "no denotation" },
    { "MD-11", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "DimensionDenotation.md",
      "A dimension denotation is DATA_BATCH, DATA_CHANNEL, DATA_TIME, DATA_FEATURE, FILTER_IN_CHANNEL, FILTER_OUT_CHANNEL or FILTER_SPATIAL",
      "denotation `HEIGHT`" },
    { "MD-12", ONX_SHOULD, 0, ONX_BY_CHECK, ONX_RULE_WARNING, NULL,
      "DimensionDenotation.md: Denotation Verification (experimental)",
      "Where an operator expects a layout and the denotations contradict it, that is reported",
      "AveragePool fed with channels last" },
    { "MD-13", ONX_SHOULD, ONX_RULE_OFF, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Graphs",
      "Graphs carry documentation; doc strings are plain text or GitHub-style Markdown", "graph without doc_string" },
    { "MD-14", ONX_MUST, 0, ONX_BY_CHECK, ONX_RULE_NOTE, NULL, "IR.md: Graphs",
      "Doc strings contain no HTML or other mark-up", "doc_string `<b>x</b>`" },
    { "MD-15", ONX_MAY, 0, ONX_BY_NATURE, ONX_RULE_NONE, NULL, "onnx.in.proto: Notes",
      "The order of key-value entries has no meaning, but it is preserved on rewriting", "accept: any order" },
    { 0 }
};

void onxi_check_utf8(onxi_check *k, const onxi_check_at *at, onx_str text)
{
    if (!text.len)
        return;
    size_t valid = onxi_utf8_valid(text);
    k->not_utf8 |= valid < text.len;
    if (valid < text.len)
        onxi_check_find(k, at, "W-21", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, text)) },
                        "the text is not UTF-8 from byte %zu on", valid);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_word(onx_str s, const char *word)
{
    size_t n = strlen(word);
    if (s.len != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (lower(s.ptr[i]) != lower(word[i]))
            return false;
    return true;
}

static bool is_one_of(onx_str s, const char *const *words, bool any_case)
{
    for (; *words; words++)
        if (any_case ? same_word(s, *words) : onx_str_is(s, *words))
            return true;
    return false;
}

/* At least two labels of letters, digits, hyphens and underscores, separated by dots. */
bool onxi_check_is_reverse_dns(onx_str s)
{
    size_t labels = 0, length = 0;
    for (size_t i = 0; i <= s.len; i++) {
        if (i == s.len || s.ptr[i] == '.') {
            if (!length)
                return false;
            labels++;
            length = 0;
            continue;
        }
        char c = lower(s.ptr[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
        length++;
    }
    return labels >= 2;
}

/* HTML tags that mark up texts; <module> and <lambda> of tracebacks are not HTML. */
static bool is_tag(const char *word, size_t len)
{
    static const char *const tags[] = { "a",     "b",    "body",   "br",   "code",   "div",   "em",  "font",
                                        "h",     "head", "hr",     "html", "i",      "img",   "li",  "ol",
                                        "p",     "pre",  "script", "span", "strong", "style", "sub", "sup",
                                        "table", "td",   "th",     "tr",   "tt",     "u",     "ul" };
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        size_t n = strlen(tags[i]), same = 0;
        while (same < n && n == len && lower(word[same]) == tags[i][same])
            same++;
        if (n == len && same == n)
            return true;
    }
    return false;
}

/* Does the text contain an HTML tag: "<" or "</", a name, and a ">" later on? */
static bool has_markup(onx_str s)
{
    for (const char *p = s.ptr, *end = onxi_str_end(s); p < end;) {
        p = memchr(p, '<', (size_t)(end - p));
        if (!p)
            return false;
        p++;
        const char *q = p < end && *p == '/' ? p + 1 : p;
        const char *word = q;
        while (q < end && lower(*q) >= 'a' && lower(*q) <= 'z')
            q++;
        const size_t letters = (size_t)(q - word);
        if (letters == 1 && lower(*word) == 'h' && q < end && *q >= '1' && *q <= '6') /* headings */
            q++;
        if (is_tag(word, letters) && q < end && (*q == '>' || *q == ' ' || *q == '/') &&
            memchr(q, '>', (size_t)(end - q)))
            return true;
    }
    return false;
}

void onxi_check_doc_string(onxi_check *k, const onxi_check_at *at, onx_str text)
{
    if (!text.len || k->quick)
        return;
    const onxi_check_at *here = ONXI_AT(at, doc_string);
    onxi_check_utf8(k, here, text);
    if (k->notes && has_markup(text))
        onxi_check_find(k, here, "MD-14", ONXI_PLAIN, "the documentation holds HTML");
}

void onxi_check_denotation(onxi_check *k, const onxi_check_at *at, onx_str text, bool dimension)
{
    static const char *const types[] = { "TENSOR", "IMAGE", "AUDIO", "TEXT", NULL };
    static const char *const dims[] = { "DATA_BATCH",        "DATA_CHANNEL",       "DATA_TIME",      "DATA_FEATURE",
                                        "FILTER_IN_CHANNEL", "FILTER_OUT_CHANNEL", "FILTER_SPATIAL", NULL };
    if (!text.len)
        return;
    const onxi_check_at *here = ONXI_AT(at, denotation);
    onxi_check_utf8(k, here, text);
    if (!is_one_of(text, dimension ? dims : types, false))
        onxi_check_find(k, here, dimension ? "MD-11" : "MD-09",
                        (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, text)) },
                        "the denotation is none that ONNX defines for %s", dimension ? "dimensions" : "types");
}

/* Keys of the image category and their values; compared case-insensitively. */
static const struct image_key {
    const char *key;
    const char *values[6];
} image_keys[] = {
    { "Image.BitmapPixelFormat", { "Gray8", "Rgb8", "Bgr8", "Rgba8", "Bgra8", NULL } },
    { "Image.ColorSpaceGamma", { "Linear", "SRGB", NULL } },
    { "Image.NominalPixelRange",
      { "NominalRange_0_255", "Normalized_0_1", "Normalized_1_1", "NominalRange_16_235", NULL } },
};

static const char *const old_keys[][2] = {
    { "author", "model_author" },   { "company", "model_author" },      { "converted_from", "producer_name" },
    { "license", "model_license" }, { "license_url", "model_license" },
};

static void check_model_key(onxi_check *k, const onxi_check_at *at, const onx_string_string_entry *e)
{
    onx_str key = onx_view(e->key), value = onx_view(e->value);
    for (size_t i = 0; i < sizeof old_keys / sizeof *old_keys; i++)
        if (onx_str_is(key, old_keys[i][0]))
            onxi_check_find(k, at, "MD-05",
                            (onxi_check_detail){ .hint = onxi_check_text(k, "%s has taken its place", old_keys[i][1]) },
                            "the key belongs to an older edition");
    for (size_t i = 0; i < sizeof image_keys / sizeof *image_keys; i++)
        if (same_word(key, image_keys[i].key) && !is_one_of(value, image_keys[i].values, true))
            onxi_check_find(k, at, "MD-06", (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, value)) },
                            "%s has no value that ONNX defines", image_keys[i].key);
}

void onxi_check_entry_text(onxi_check *k, const onxi_check_at *at, const onx_string_string_entry *e)
{
    onxi_check_utf8(k, ONXI_AT(at, key), onx_view(e->key));
    onxi_check_utf8(k, ONXI_AT(at, value), onx_view(e->value));
}

void onxi_check_metadata(onxi_check *k, const onxi_check_at *at, onx_string_string_entry *const *props, uint32_t count,
                         bool model)
{
    if (!count)
        return;
    onxi_check_set *seen = onxi_check_set_new(k);
    bool image = false;
    for (uint32_t i = 0; i < count; i++) {
        const onx_string_string_entry *e = props[i];
        onx_str key = onx_view(e->key);
        const onxi_check_at *here = ONXI_AT_ITEM(at, metadata_props, i, STRING_STRING_ENTRY, e);
        uint32_t first;
        onxi_check_entry_text(k, here, e);
        if (!key.len || !ONX_HAS(string_string_entry, e, value))
            onxi_check_find(k, here, "MD-02", ONXI_PLAIN, key.len ? "the entry has no value" : "the entry has no key");
        if (key.len && !onxi_check_set_add(k, seen, key, i, &first))
            onxi_check_find(k, here, model ? "M-11" : "MD-01",
                            (onxi_check_detail){ .value = onx_str_of(onxi_check_quote(k, key)),
                                                 .hint = onxi_check_text(k, "entry %u has it already", first) },
                            "the key is there twice");
        if (!model)
            continue;
        check_model_key(k, here, e);
        for (size_t j = 0; j < sizeof image_keys / sizeof *image_keys; j++)
            image |= same_word(key, image_keys[j].key);
        if (key.len && !memchr(key.ptr, '.', key.len) && !onx_str_is(key, "model_author") &&
            !onx_str_is(key, "model_license"))
            onxi_check_find(k, here, "MD-03", ONXI_PLAIN, "the key has no reverse-DNS prefix");
    }
    if (model && image)
        k->has_image_keys = true;
}

/* ---- layouts (MD-12) ---- */

enum { AXES = 8 };

/* The axes that an operator expects for its data (input 0) and its weights (input 1): batch and channel, or the two
 * channels of a filter, come first, then the others. */
static const struct filter {
    onxi_op_id op;
    const char *axes[2];
} filters[] = {
    { ONXI_ID_Conv, { "FILTER_OUT_CHANNEL", "FILTER_IN_CHANNEL" } },
    { ONXI_ID_ConvInteger, { "FILTER_OUT_CHANNEL", "FILTER_IN_CHANNEL" } },
    { ONXI_ID_ConvTranspose, { "FILTER_IN_CHANNEL", "FILTER_OUT_CHANNEL" } },
};
static const char *const data_axes[2] = { "DATA_BATCH", "DATA_CHANNEL" };

static bool any_denoted(const onx_tensor_shape *shape)
{
    for (uint32_t i = 0; shape && i < shape->dim_count; i++)
        if (ONX_HAS(dimension, shape->dim[i], denotation) && onx_view(shape->dim[i]->denotation).len)
            return true;
    return false;
}

static bool denotes_axes(const onx_value_info *v)
{
    return v->type && ONX_HAS(type, v->type, tensor_type) && any_denoted(v->type->tensor_type->shape);
}

void onxi_check_note_denotations(onxi_check *k, const onx_graph *g)
{
    for (uint32_t i = 0; i < g->input_count && !k->denoted; i++)
        k->denoted = denotes_axes(g->input[i]);
    for (uint32_t i = 0; i < g->output_count && !k->denoted; i++)
        k->denoted = denotes_axes(g->output[i]);
    for (uint32_t i = 0; i < g->value_info_count && !k->denoted; i++)
        k->denoted = denotes_axes(g->value_info[i]);
}

/* Axis i of the output of this Transpose is axis perm[i] of its input. False if that is unknown. */
static bool turn(const onxi_bound *bound, const onx_node *n, uint32_t *axis)
{
    uint32_t count;
    const int64_t *perm = onxi_bind_ints(bound, n, "perm", &count);
    if (!perm || count > AXES)
        return false;
    for (uint32_t i = 0; i < AXES; i++)
        if (axis[i] < count)
            axis[i] = perm[axis[i]] >= 0 && perm[axis[i]] < AXES ? (uint32_t)perm[axis[i]] : AXES;
    return true;
}

/* The shape with the denotations of a value's axes: its own, or that of the value from which it was computed axis by
 * axis. axis[i] is the axis of that shape for axis i of the value. */
static const onx_tensor_shape *denoted_shape(onxi_check *k, onxi_check_scope *scope, onx_str name, uint32_t *axis)
{
    enum { STEPS = 32 };
    for (uint32_t i = 0; i < AXES; i++)
        axis[i] = i;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t id = name.len ? onxi_check_name_find(k, name) : UINT32_MAX;
        const onxi_check_meaning *m = id == UINT32_MAX ? NULL : &k->names.meaning[id];
        while (scope && m && scope->serial != m->scope)
            scope = scope->up;
        if (!m || !scope || !scope->graph)
            return NULL;
        const onx_type *type = onxi_check_declared_type(k, scope, name);
        const onx_tensor_shape *shape = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type->shape : NULL;
        if (any_denoted(shape))
            return shape;
        const onx_node *n = m->kind == ONXI_NAME_OUTPUT && m->index < scope->node_count ? scope->nodes[m->index] : NULL;
        if (!n || !n->input_count || !n->output_count || !onx_str_equal(onx_view(n->output[0]), name))
            return NULL;
        const onxi_bound *bound = onxi_check_bound_of(k, n, scope);
        const onxi_op_id op = bound ? bound->op : ONXI_ID_NONE;
        if (op == ONXI_ID_Transpose ? !turn(bound, n, axis) : !onxi_operator_is(op, ONXI_TRAIT_KEEPS_AXES))
            return NULL;
        name = onx_view(n->input[0]);
    }
    return NULL;
}

/* `wanted`: the denotations of the first two axes. */
static void check_axes(onxi_check *k, const onxi_check_at *at, const onx_node *n, uint32_t input,
                       onxi_check_scope *scope, const char *const wanted[2])
{
    uint32_t axis[AXES];
    const onx_tensor_shape *shape =
        input < n->input_count ? denoted_shape(k, scope, onx_view(n->input[input]), axis) : NULL;
    for (uint32_t i = 0; shape && i < shape->dim_count && i < AXES; i++) {
        const onx_dimension *dim = axis[i] < shape->dim_count ? shape->dim[axis[i]] : NULL;
        onx_str said = dim && ONX_HAS(dimension, dim, denotation) ? onx_view(dim->denotation) : onx_str_make(NULL, 0);
        uint32_t place = onx_str_is(said, wanted[0]) ? 0 : onx_str_is(said, wanted[1]) ? 1 : 2;
        bool rest = onx_str_is(said, "DATA_FEATURE") || onx_str_is(said, "FILTER_SPATIAL");
        if (place < 2 ? place != i : rest && i < 2) {
            onxi_check_find(k, ONXI_AT_INDEX(at, input, input), "MD-12",
                            (onxi_check_detail){
                                .value = onxi_check_text(k, "%s at axis %u", onxi_check_quote(k, said), i),
                                .expected = onxi_check_text(k, "%s at axis 0, %s at axis 1", wanted[0], wanted[1]) },
                            "the denotations of the input contradict the layout that %s expects",
                            onxi_check_quote(k, onx_view(n->op_type)));
            return;
        }
    }
}

void onxi_check_layout(onxi_check *k, const onxi_check_at *at, const onx_node *n, onxi_op_id op,
                       onxi_check_scope *scope)
{
    if (onxi_operator_is(op, ONXI_TRAIT_CHANNELS))
        check_axes(k, at, n, 0, scope, data_axes);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (filters[i].op == op)
            check_axes(k, at, n, 1, scope, filters[i].axes);
}

/* proto_json_value.c - reads arbitrary JSON, such as configurations of language models and tokenizers, into an
 * arena. */
#include "proto/proto.h"
#include "proto/proto_text.h"

static onx_status read_any(onxi_text_in *in, uint32_t depth, onxi_json *out);

/* Reads the members up to the closing bracket. */
static onx_status read_members(onxi_text_in *in, uint32_t depth, char close, onxi_json *out)
{
    uint32_t room = 0;
    in->at++;
    for (bool more = !onxi_json_take(in, close); more;) {
        if (!ONXI_GROW_IN(in->arena, out->members, room, (uint64_t)out->count + 1))
            return ONX_E_MEMORY;
        onxi_json_member *m = &out->members[out->count++];
        *m = (onxi_json_member){ 0 };
        if (close == '}') {
            if (onxi_json_peek(in) != '"')
                return onxi_text_expected(in, "a name in quotes");
            ONX_TRY(onxi_json_take_string(in, true, &m->name));
            if (!onxi_json_take(in, ':'))
                return onxi_text_expected(in, ":");
        }
        ONX_TRY(read_any(in, depth + 1, &m->value));
        more = onxi_json_take(in, ',');
        if (!more && !onxi_json_take(in, close))
            return onxi_text_expected(in, close == '}' ? ", or }" : ", or ]");
    }
    return ONX_OK;
}

static onx_status read_number(onxi_text_in *in, onxi_json *out)
{
    bool fractional, overflow = false;
    out->text = onx_str_make(in->at, (size_t)(in->end - in->at));
    out->text.len = onxi_json_number_length(out->text, &fractional);
    if (!out->text.len)
        return onxi_text_expected(in, "a value");
    if (!onxi_parse_f64(out->text, &out->number, &overflow) || overflow)
        return onxi_text_expected(in, "a number in the range of 64-bit floats");
    out->kind = ONXI_JSON_NUMBER;
    in->at += out->text.len;
    return ONX_OK;
}

static onx_status read_any(onxi_text_in *in, uint32_t depth, onxi_json *out)
{
    const uint32_t limit = onx_ctx_limits(in->cx).depth;
    *out = (onxi_json){ 0 };
    if (depth > limit)
        return onxi_text_fail(in, ONX_E_LIMIT, in->at, (onx_str){ 0 }, NULL,
                              "values are nested more than %u deep (limit depth)", limit);
    switch (onxi_json_peek(in)) {
    case '{':
        out->kind = ONXI_JSON_OBJECT;
        return read_members(in, depth, '}', out);
    case '[':
        out->kind = ONXI_JSON_LIST;
        return read_members(in, depth, ']', out);
    case '"':
        out->kind = ONXI_JSON_TEXT;
        return onxi_json_take_string(in, true, &out->text);
    default:
        break;
    }
    if (onxi_json_take_word(in, "null"))
        return ONX_OK;
    out->truth = onxi_json_take_word(in, "true");
    if (!out->truth && !onxi_json_take_word(in, "false"))
        return read_number(in, out);
    out->kind = ONXI_JSON_BOOL;
    return ONX_OK;
}

onx_status onxi_json_value_read(onx_ctx *cx, onx_arena *arena, onx_str text, onxi_json *out)
{
    if (!text.ptr)
        text = onx_str_of("");
    onxi_text_in in = { .cx = cx, .arena = arena, .text = text, .at = text.ptr, .end = onxi_str_end(text) };
    if (text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0)
        in.at += 3;
    ONX_TRY(read_any(&in, 1, out));
    onxi_json_peek(&in);
    return in.at == in.end ? ONX_OK : onxi_text_expected(&in, "the end of the text");
}

const onxi_json *onxi_json_get(const onxi_json *of, const char *name)
{
    static const onxi_json none = { 0 };
    for (uint32_t i = of && of->kind == ONXI_JSON_OBJECT ? of->count : 0; i-- > 0;)
        if (onx_str_is(of->members[i].name, name))
            return &of->members[i].value;
    return &none;
}

bool onxi_json_truth(const onxi_json *of, const char *name, bool fallback)
{
    const onxi_json *value = onxi_json_get(of, name);
    return value->kind == ONXI_JSON_BOOL ? value->truth : fallback;
}

onx_str onxi_json_text(const onxi_json *of, const char *name)
{
    const onxi_json *value = onxi_json_get(of, name);
    return value->kind == ONXI_JSON_TEXT ? value->text : (onx_str){ 0 };
}

double onxi_json_number(const onxi_json *of, const char *name, double fallback)
{
    const onxi_json *value = onxi_json_get(of, name);
    return value->kind == ONXI_JSON_NUMBER ? value->number : fallback;
}

bool onxi_json_integer(const onxi_json *value, int64_t *out)
{
    if (value->kind != ONXI_JSON_NUMBER ||
        !(value->number >= -9007199254740992.0 && value->number <= 9007199254740992.0))
        return false;
    *out = (int64_t)value->number;
    return (double)*out == value->number;
}

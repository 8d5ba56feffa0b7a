/* text_hint.c - hints for common mistakes: keywords of other languages, misspelt words, names that need quotes. */
#include "text/text.h"

#include <stdio.h>

/* ---- misspelt words ---- */

enum { WORD_MAX = 20 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Edit distance: letters to change, add, remove or swap with the next one, ignoring case. */
static unsigned distance(onx_str a, onx_str b)
{
    unsigned rows[3][WORD_MAX + 1];
    for (unsigned j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *twice = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            bool same = lower(a.ptr[i - 1]) == lower(b.ptr[j - 1]);
            unsigned best = above[j - 1] + !same;
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && lower(a.ptr[i - 1]) == lower(b.ptr[j - 2]) &&
                lower(a.ptr[i - 2]) == lower(b.ptr[j - 1]) && twice[j - 2] + 1 < best)
                best = twice[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a.len % 3][b.len];
}

/* Takes the candidate if it is closer to the word than all before, and close enough. */
static void consider(onx_str word, const char *candidate, unsigned *best, const char **out)
{
    onx_str c = onx_str_of(candidate);
    if (word.len > WORD_MAX || c.len > WORD_MAX)
        return;
    unsigned d = distance(word, c);
    if (d < *best && d <= c.len / 3) {
        *best = d;
        *out = candidate;
    }
}

static const char *did_you_mean(const char *word, onxi_text_hint *hint)
{
    if (!word)
        return NULL;
    snprintf(hint->text, sizeof hint->text, "did you mean %s", word);
    return hint->text;
}

const char *onxi_text_hint_for_type(onx_str word, onxi_text_hint *hint)
{
    static const char *const slips[][2] = {
        { "int", "int32 or int64" }, { "float32", "float" }, { "float64", "double" }, { "half", "float16" },
        { "long", "int64" },         { "str", "string" },    { "byte", "uint8" },     { "sequence", "seq" },
        { "i32", "int32" },          { "i64", "int64" },     { "f32", "float" },      { "f16", "float16" },
    };
    if (onx_str_is(word, "tensor"))
        return "a tensor type is its element type: float[2, 3]";
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++)
        if (onx_str_is(word, slips[i][0]))
            return did_you_mean(slips[i][1], hint);
    static const char *const constructors[] = { "seq", "optional", "map", "sparse_tensor", "opaque" };
    const char *found = NULL;
    unsigned best = 3;
    for (int dtype = 1; dtype < ONX_DTYPE_COUNT; dtype++)
        consider(word, onx_dtype_name(dtype), &best, &found);
    for (size_t i = 0; i < sizeof constructors / sizeof *constructors; i++)
        consider(word, constructors[i], &best, &found);
    return did_you_mean(found, hint);
}

const char *onxi_text_hint_for_key(onx_str word, const onxi_text_head_item *items, onxi_text_hint *hint)
{
    if (onx_str_is(word, "opset") || onx_str_is(word, "opset_version"))
        return "operator sets are given as opset_import: [\"\" : 21]";
    if (onx_str_is(word, "metadata"))
        return "metadata are given as metadata_props: [\"key\" : \"value\"]";
    const char *found = NULL;
    unsigned best = 4;
    for (; items->word; items++)
        consider(word, items->word, &best, &found);
    return did_you_mean(found, hint);
}

/* ---- hints about the next token ---- */

const char *onxi_text_hint_behind_name(const onxi_text_parser *p)
{
    char c = p->at < p->end ? *p->at : '\0';
    bool joined = p->at == onxi_text_token_end(p) && p->at > p->begin && p->at[-1] != ' ';
    if (c && strchr("/.-+:$%@*~|&!?\\", c) && joined)
        return "a name with other characters than letters, digits and _ is quoted: \"conv/1\"";
    bool arrow = p->end - p->at >= 2 && p->at[1] == '>';
    return c == '=' && !arrow ? "attributes stand in angle brackets: Operator<name = value>(inputs)" : NULL;
}

const char *onxi_text_hint_for_name(const onxi_text_parser *p)
{
    char c = p->at < p->end ? *p->at : '\0';
    if (onxi_text_char_is(c, ONXI_CHAR_DIGIT) || (c && strchr("%$@./", c)))
        return "a name that does not begin with a letter or _ is quoted: \"1\"";
    return NULL;
}

const char *onxi_text_hint_behind_comma(const onxi_text_parser *p)
{
    const char *s = onxi_text_token_end(p);
    while (s > p->begin && s[-1] == ' ')
        s--;
    bool closes = p->at < p->end && strchr(")>]}", *p->at) && *p->at;
    return closes && s > p->begin && s[-1] == ',' ? "no comma may stand behind the last entry" : NULL;
}

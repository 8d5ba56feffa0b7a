/* automaton.c - reads BlingFire's rules. A file is a number of parts and their offsets. Part 0 has lists of settings
 * and names the parts that are used. Numbers are little-endian, except offsets of states and of lists. */
#include "kernel/contrib/automaton.h"

enum { WORD = 4, DEEPEST = 64, LONGEST = 300, DEFAULT_DEPTH = 5 }; /* bytes; the last two are defaults of BlingFire */
enum { SETTINGS = 19, PARTS_MAX = 108 };                           /* SETTINGS: key of the settings for segmentation */
/* Settings. Others are tags of token types, and tables for other tasks. */
enum {
    SET_AUTOMATON = 2,
    SET_MODE = 16,
    SET_IGNORE_CASE = 22,
    SET_ACTIONS = 25,
    SET_KIND = 26,
    SET_DEPTH = 38,
    SET_MAX_TAG = 39,
    SET_WORD = 42,
    SET_PUNCTUATION = 43,
    SET_END = 44,
    SET_END_OF_PARAGRAPH = 45,
    SET_CHARACTERS = 47,
    SET_COMPOUND = 51,
    SET_SEGMENT = 52,
    SET_IGNORED = 53,
    SET_DATA = 68,
    SET_LONGEST = 69
};
enum { MODE_PACKED = 1, KIND_ONE_ACTION = 3 };
/* How the transitions of a state are stored: not at all, one transition to the following state, two lists, a list
 * indexed by input, or ranges. */
enum { WAY_NEXT = 2, WAY_LISTS = 4, WAY_INDEX = 6, WAY_RANGES = 1 };

/* ---- numbers ---- */

static bool there(const onxi_automaton *q, onxi_automaton_reader *r, uint64_t at, uint64_t size)
{
    if (at <= q->file.len && size <= q->file.len - at)
        return true;
    r->broken = true;
    return false;
}

/* Returns NULL beyond the end of the file, or if nothing is to be read: an empty range may have no address. */
static const uint8_t *bytes_at(const onxi_automaton *q, onxi_automaton_reader *r, uint64_t at, uint32_t size)
{
    return there(q, r, at, size) && size ? (const uint8_t *)q->file.ptr + at : NULL;
}

static uint32_t number(const onxi_automaton *q, onxi_automaton_reader *r, uint64_t at, uint32_t width)
{
    const uint8_t *from = bytes_at(q, r, at, width);
    uint32_t x = 0;
    for (uint32_t i = width; from && i > 0; i--)
        x = x << 8 | from[i - 1];
    return x;
}

static uint32_t place(const onxi_automaton *q, onxi_automaton_reader *r, uint64_t at, uint32_t width)
{
    const uint8_t *from = bytes_at(q, r, at, width);
    uint32_t x = 0;
    for (uint32_t i = 0; from && i < width; i++)
        x = x << 8 | from[i];
    return x;
}

static int64_t with_sign(uint32_t x, uint32_t width)
{
    const int64_t half = (int64_t)1 << (8 * width - 1);
    return (int64_t)x >= half ? (int64_t)x - 2 * half : (int64_t)x;
}

/* Binary search: the last of `count` ascending numbers that is at most x; -1: all are greater. */
static int64_t find(const onxi_automaton *q, onxi_automaton_reader *r, uint64_t at, uint64_t count, uint32_t width,
                    uint32_t x)
{
    uint64_t low = 0, high = there(q, r, at, count * width) ? count : 0;
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (number(q, r, at + middle * width, width) > x)
            high = middle;
        else
            low = middle + 1;
    }
    return (int64_t)low - 1;
}

/* ---- lists by key ---- */

static void read_lists(const onxi_automaton *q, onxi_automaton_reader *r, uint64_t at, onxi_automaton_lists *out)
{
    out->greatest = number(q, r, at, WORD);
    out->width = number(q, r, at + WORD, WORD);
    out->offsets = at + 2 * WORD;
    const uint64_t size = 2 * WORD + (uint64_t)out->width * ((uint64_t)out->greatest + 1);
    out->values = at + (size + WORD - 1) / WORD * WORD;
    if (out->width < 1 || out->width > WORD || number(q, r, out->values, WORD) != WORD)
        r->broken = true;
}

static void find_list(const onxi_automaton *q, onxi_automaton_reader *r, const onxi_automaton_lists *lists, int64_t key,
                      onxi_automaton_list *out)
{
    *out = (onxi_automaton_list){ 0, 0 };
    if (key < 0 || key > lists->greatest || r->broken)
        return;
    const uint64_t offset = place(q, r, lists->offsets + (uint64_t)key * lists->width, lists->width);
    if (!offset)
        return;
    out->at = lists->values + offset - 1 + WORD;
    out->count = number(q, r, out->at - WORD, WORD);
    if (!there(q, r, out->at, out->count * WORD))
        out->count = 0;
}

int64_t onxi_automaton_item(const onxi_automaton *q, onxi_automaton_reader *r, const onxi_automaton_list *list,
                            uint64_t index)
{
    return index < list->count ? with_sign(number(q, r, list->at + index * WORD, WORD), WORD) : 0;
}

/* ---- states ---- */

/* The first byte of a state: whether it accepts, how its transitions are stored, and the sizes of an input and of an
 * action. */
typedef struct state_head {
    uint32_t ways, input, action;
    uint64_t at; /* offset after the byte */
} state_head;

static state_head read_head(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state)
{
    const uint64_t at = q->states + (uint64_t)state;
    const uint32_t info = number(q, r, at, 1), action = info >> 5 & 3;
    const state_head head = { info & 7, (info >> 3 & 3) + 1, action == 3 ? WORD : action, at + 1 };
    if (head.input == 3)
        r->broken = true;
    return head;
}

bool onxi_automaton_accepts(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state)
{
    return state >= 0 && number(q, r, q->states + (uint64_t)state, 1) & 0x80;
}

static int64_t target(const onxi_automaton *q, onxi_automaton_reader *r, uint64_t at, uint64_t index)
{
    const uint32_t to = place(q, r, at + index * q->target, q->target),
                   dead = q->target == WORD ? UINT32_MAX : (1u << 8 * q->target) - 1;
    return to == dead ? ONXI_AUTOMATON_DEAD : to > INT32_MAX ? ONXI_AUTOMATON_NOWHERE : (int64_t)to;
}

/* The input that a character maps to; -1: none. */
static int64_t input_of(const onxi_automaton *q, onxi_automaton_reader *r, int64_t character)
{
    if (!q->ranges)
        return character;
    const uint64_t pairs = q->ranges + (uint64_t)q->range_count * WORD,
                   inputs = pairs + (uint64_t)q->range_count * 2 * WORD;
    const int64_t i = find(q, r, q->ranges, q->range_count, WORD, (uint32_t)character);
    if (i < 0)
        return -1;
    const uint32_t from = number(q, r, q->ranges + (uint64_t)i * WORD, WORD),
                   to = number(q, r, pairs + (uint64_t)i * 2 * WORD, WORD),
                   offset = number(q, r, pairs + (uint64_t)i * 2 * WORD + WORD, WORD);
    if (character < from || character > to)
        return -1;
    return (int64_t)place(q, r, inputs + offset + (uint64_t)(character - from) * q->input, q->input) - 1;
}

int64_t onxi_automaton_go(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state, int64_t character)
{
    if (state < 0 || r->broken)
        return ONXI_AUTOMATON_NOWHERE;
    const state_head head = read_head(q, r, state);
    const uint32_t width = head.input;
    const int64_t input = input_of(q, r, character);
    if (input < 0 || r->broken || (width < WORD && input >> 8 * width))
        return ONXI_AUTOMATON_NOWHERE;
    const uint32_t x = (uint32_t)input;
    if (head.ways == WAY_NEXT)
        return number(q, r, head.at, width) == x ? state + 1 + width + head.action : ONXI_AUTOMATON_NOWHERE;
    if (head.ways == WAY_INDEX) {
        const uint32_t least = number(q, r, head.at, width), most = number(q, r, head.at + width, width);
        if (x < least || x > most)
            return ONXI_AUTOMATON_NOWHERE;
        const int64_t to = target(q, r, head.at + 2 * width, x - least);
        return to ? to : ONXI_AUTOMATON_NOWHERE;
    }
    if (head.ways != WAY_LISTS && head.ways != WAY_RANGES)
        return ONXI_AUTOMATON_NOWHERE;
    const uint64_t count = (uint64_t)number(q, r, head.at, width) + 1, list = head.at + width,
                   ends = head.ways == WAY_RANGES ? list + count * width : list;
    const int64_t i = find(q, r, list, count, width, x);
    if (i < 0 || (head.ways == WAY_RANGES ? number(q, r, ends + (uint64_t)i * width, width) < x
                                          : number(q, r, list + (uint64_t)i * width, width) != x))
        return ONXI_AUTOMATON_NOWHERE;
    return target(q, r, ends + count * width, (uint64_t)i);
}

/* The action's number is stored after the transitions. */
void onxi_automaton_action(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state, onxi_automaton_list *out)
{
    *out = (onxi_automaton_list){ 0, 0 };
    if (state < 0)
        return;
    const state_head head = read_head(q, r, state);
    const uint64_t width = head.input;
    uint64_t at = head.at;
    if (!head.action || r->broken)
        return;
    if (head.ways == WAY_NEXT) {
        at += width;
    } else if (head.ways == WAY_INDEX) {
        const uint64_t least = number(q, r, at, (uint32_t)width), most = number(q, r, at + width, (uint32_t)width);
        at += 2 * width + (most >= least ? most - least + 1 : 0) * q->target;
    } else if (head.ways == WAY_LISTS || head.ways == WAY_RANGES) {
        const uint64_t count = (uint64_t)number(q, r, at, (uint32_t)width) + 1;
        at += width + count * (q->target + width * (head.ways == WAY_RANGES ? 2 : 1));
    }
    find_list(q, r, &q->actions, with_sign(number(q, r, at, head.action), head.action), out);
}

int64_t onxi_automaton_function(const onxi_automaton *q, onxi_automaton_reader *r, int64_t function)
{
    return function ? onxi_automaton_go(q, r, onxi_automaton_go(q, r, q->initial, ONXI_AUTOMATON_RIGHT), function)
                    : q->initial;
}

/* ---- the file ---- */

/* Reads an automaton: bytes per state, the offset of an unused table, and ranges of all inputs. The highest bit of the
 * number of ranges says if a map follows, which has a size. */
static void read_automaton(onxi_automaton *q, onxi_automaton_reader *r, uint64_t at)
{
    const uint32_t inputs = number(q, r, at + 2 * WORD, WORD);
    q->states = at;
    q->target = number(q, r, at, WORD);
    if (q->target < 1 || q->target > WORD)
        q->target = 3;
    uint64_t next = at + 3 * WORD + (uint64_t)(inputs & INT32_MAX) * WORD;
    if (inputs >> 31) {
        const uint32_t size = number(q, r, next, WORD);
        q->input = number(q, r, next + WORD, WORD);
        q->range_count = number(q, r, next + 2 * WORD, WORD);
        q->ranges = next + 3 * WORD;
        if (q->input < 1 || q->input > WORD || !there(q, r, q->ranges, (uint64_t)q->range_count * 3 * WORD))
            r->broken = true;
        next += WORD + (uint64_t)size;
    }
    q->initial = (int64_t)(next - at);
}

typedef struct settings {
    int64_t automaton, actions; /* parts; -1: not set */
} settings;

static onx_status take(const onx_prepare *p, onxi_automaton *q, int64_t name, int64_t value, settings *s)
{
    switch (name) {
    case SET_AUTOMATON:
        s->automaton = value;
        return ONX_OK;
    case SET_ACTIONS:
        s->actions = value;
        return ONX_OK;
    case SET_DEPTH:
        q->depth = value;
        return ONX_OK;
    case SET_LONGEST:
        q->longest = value;
        return ONX_OK;
    case SET_MODE:
        break;
    case SET_KIND:
        break;
    case SET_MAX_TAG:
    case SET_WORD:
    case SET_PUNCTUATION:
    case SET_END:
    case SET_END_OF_PARAGRAPH:
    case SET_CHARACTERS:
    case SET_COMPOUND:
    case SET_SEGMENT:
    case SET_IGNORED:
    case SET_DATA:
        return ONX_OK;
    default:
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "setting %lld of the model is not known%s", (long long)name,
                                name == SET_IGNORE_CASE ? ": case-insensitive rules are not supported" : "");
    }
    if (value != (name == SET_MODE ? MODE_PACKED : KIND_ONE_ACTION))
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "setting %lld of the model is %lld, which is not supported",
                                (long long)name, (long long)value);
    return ONX_OK;
}

onx_status onxi_automaton_read(const onx_prepare *p, onx_str file, onxi_automaton *q)
{
    onxi_automaton_reader r = { false };
    onxi_automaton_lists heads;
    onxi_automaton_list list;
    settings s = { -1, -1 };
    *q = (onxi_automaton){ .file = file, .depth = DEFAULT_DEPTH, .longest = LONGEST };
    const uint32_t parts = number(q, &r, 0, WORD);
    read_lists(q, &r, number(q, &r, WORD, WORD), &heads);
    find_list(q, &r, &heads, SETTINGS, &list);
    for (uint64_t i = 0; i + 1 < list.count; i += 2)
        ONX_TRY(take(p, q, onxi_automaton_item(q, &r, &list, i), onxi_automaton_item(q, &r, &list, i + 1), &s));
    if (parts > PARTS_MAX || s.automaton < 0 || s.automaton >= parts || s.actions < 0 || s.actions >= parts ||
        q->depth < 0 || q->longest < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "the model, of %zu bytes, has no rules that split texts", file.len);
    q->depth = q->depth < DEEPEST ? q->depth : DEEPEST;
    read_automaton(q, &r, number(q, &r, WORD + (uint64_t)s.automaton * WORD, WORD));
    read_lists(q, &r, number(q, &r, WORD + (uint64_t)s.actions * WORD, WORD), &q->actions);
    return r.broken ? onx_prepare_fail(p, ONX_E_INVALID, "the model, of %zu bytes, is broken", file.len) : ONX_OK;
}

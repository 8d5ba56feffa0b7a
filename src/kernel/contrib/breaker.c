/* breaker.c - BlingFireSentenceBreaker: divides a text into sentences by rules. The rules are an automaton and a list
 * of actions in BlingFire's file format (automaton.c). */
#include "kernel/contrib/automaton.h"
#include "token/token.h"

/* The number of steps of the automaton is limited to STEPS plus STEPS_EACH per character. */
enum { STEPS = 1 << 22, STEPS_EACH = 1 << 12 };
enum { TAG = 2, FUNCTIONS = 3 }; /* An action has a left and a right context, a tag and, after a tag, a zero. */

typedef struct text {
    onx_work *work;
    const onxi_automaton *q;
    onxi_automaton_reader reader;
    const uint32_t *characters;
    int64_t count, end_count; /* number of characters; number of sentences */
    int64_t *ends;            /* last character of each sentence; room for as many as there are characters */
    uint64_t steps;
} text;

/* A match of a rule: the final state, which identifies the rule, and the position of the last character. */
typedef struct match {
    int64_t state, last;
} match;

static int64_t step(text *t, int64_t state, int64_t character)
{
    const int64_t to = onxi_automaton_go(t->q, &t->reader, state, character);
    t->steps++;
    return to != ONXI_AUTOMATON_NOWHERE ? to : onxi_automaton_go(t->q, &t->reader, state, ONXI_AUTOMATON_ANY);
}

/* The longest match from a position on; position -1 is before the first character. */
static match find(text *t, int64_t initial, const uint32_t *characters, int64_t count, int64_t from)
{
    const int64_t bound = count - from < t->q->longest ? count : from + t->q->longest;
    match found = { ONXI_AUTOMATON_NOWHERE, -1 };
    int64_t state = initial, at = from;
    if (at < 0) {
        state = step(t, initial, ONXI_AUTOMATON_LEFT);
        at = 0;
    }
    for (; state != ONXI_AUTOMATON_NOWHERE && at < bound; at++) {
        const uint32_t c = characters[at];
        state = step(t, state, c < ONXI_AUTOMATON_EPSILON ? ONXI_AUTOMATON_EPSILON : c);
        if (state == ONXI_AUTOMATON_NOWHERE)
            return found;
        if (onxi_automaton_accepts(t->q, &t->reader, state))
            found = (match){ state, at };
    }
    if (state != ONXI_AUTOMATON_NOWHERE && at == count) {
        state = step(t, state, ONXI_AUTOMATON_RIGHT);
        if (state != ONXI_AUTOMATON_NOWHERE && onxi_automaton_accepts(t->q, &t->reader, state))
            found = (match){ state, at };
    }
    return found;
}

static int64_t within(int64_t at, int64_t count)
{
    return at < 0 ? 0 : at >= count ? count - 1 : at;
}

static onx_status cut(text *t, int64_t initial, int64_t offset, int64_t count, int64_t depth, bool once);

/* Applies an action to characters from..to, counted from `offset`: with a tag, a sentence ends. Functions, which are
 * other initial states of the automaton, are then applied one after the other. */
static onx_status act(text *t, const onxi_automaton_list *action, int64_t offset, int64_t from, int64_t to,
                      int64_t depth)
{
    const bool tagged = onxi_automaton_item(t->q, &t->reader, action, TAG) != 0;
    const uint64_t first = FUNCTIONS + tagged;
    if (tagged && t->end_count < t->count)
        t->ends[t->end_count++] = to + offset;
    for (uint64_t i = first; i < action->count && from >= 0 && from <= to; i++) {
        const int64_t function = onxi_automaton_item(t->q, &t->reader, action, i), before = t->end_count,
                      state = onxi_automaton_function(t->q, &t->reader, function);
        ONX_TRY(cut(t, state, offset + from, to - from + 1, depth + 1, function != 0 && action->count - first > 1));
        if (t->end_count > before)
            from = t->ends[t->end_count - 1] + 1 - offset;
    }
    return ONX_OK;
}

/* Applies the rules of an initial state to `count` characters from `offset` on; `once`: for one match only. */
static onx_status cut(text *t, int64_t initial, int64_t offset, int64_t count, int64_t depth, bool once)
{
    const uint64_t limit = STEPS + (uint64_t)t->count * STEPS_EACH;
    for (int64_t from = -1; from < count && depth <= t->q->depth && initial >= 0; from++) {
        if (t->steps > limit)
            return onx_work_fail(t->work, ONX_E_LIMIT, "the rules take more than %llu steps for %lld characters",
                                 (unsigned long long)limit, (long long)t->count);
        const match found = find(t, initial, t->characters + offset, count, from);
        onxi_automaton_list action;
        if (found.state == ONXI_AUTOMATON_NOWHERE)
            continue;
        onxi_automaton_action(t->q, &t->reader, found.state, &action);
        if (t->reader.broken || action.count < FUNCTIONS)
            return onx_work_fail(t->work, ONX_E_INVALID, "the model is broken where a rule matches");
        const int64_t left = from + onxi_automaton_item(t->q, &t->reader, &action, 0),
                      right = found.last - onxi_automaton_item(t->q, &t->reader, &action, 1);
        ONX_TRY(act(t, &action, offset, within(left, count), within(right, count), depth));
        if (once)
            break;
        from = right > from ? right : from;
    }
    return t->reader.broken ? onx_work_fail(t->work, ONX_E_INVALID, "the model is read beyond its end") : ONX_OK;
}

/* ---- sentences ---- */

/* Characters that are skipped at the beginning of a sentence. */
static bool is_space(uint32_t c)
{
    return c <= 0x20 || c == 0xa0 || (c >= 0x2000 && c <= 0x200f) || c == 0x202f || c == 0x205f || c == 0x2060 ||
           c == 0x2420 || c == 0x2424 || c == 0x3000 || c == 0xfeff;
}

typedef struct sentences {
    onx_str *list; /* NULL: sentences are only counted */
    int64_t count;
    bool failed; /* out of memory */
} sentences;

static void add(onx_work *work, const uint32_t *characters, int64_t from, int64_t to, sentences *out)
{
    while (from <= to && is_space(characters[from]))
        from++;
    if (from > to)
        return;
    onxi_chars made = { .arena = work->text };
    for (int64_t i = from; out->list && i <= to; i++)
        out->failed |= !onxi_chars_put(&made, characters[i] == '\n' ? ' ' : characters[i]);
    if (out->list)
        out->list[out->count] = onxi_chars_view(&made);
    out->count++;
}

/* Collects the sentences between the ends, which need not be in order, and the text after the last end. */
static void collect(const text *t, sentences *out)
{
    int64_t previous = -1;
    out->count = 0;
    for (int64_t i = 0; i < t->end_count; i++) {
        add(t->work, t->characters, previous + 1, t->ends[i], out);
        previous = t->ends[i];
    }
    add(t->work, t->characters, previous + 1, t->count - 1, out);
}

/* Decodes the characters of a text. A byte order mark is skipped, and zeros become spaces. */
static onx_status read_text(onx_work *work, onx_str s, uint32_t *out, int64_t *count)
{
    if (s.len >= 3 && !memcmp(s.ptr, "\xef\xbb\xbf", 3))
        s = onx_str_make(s.ptr + 3, s.len - 3);
    const size_t valid = onxi_utf8_valid(s);
    if (valid != s.len)
        return onx_work_fail(work, ONX_E_INVALID, "byte %zu of the text begins no character of UTF-8", valid);
    for (const char *at = s.ptr, *end = onxi_str_end(s); at < end;) {
        const uint32_t c = onxi_rune_next(&at, end);
        out[(*count)++] = c ? c : ' ';
    }
    return ONX_OK;
}

static onx_status break_text(onx_work *work, onx_arena *arena, onx_str s)
{
    uint32_t *characters = onxi_arena_array(arena, s.len + 1, sizeof *characters);
    text t = { .work = work, .q = work->params, .characters = characters };
    t.ends = onxi_arena_array(arena, s.len + 1, sizeof *t.ends);
    if (!t.characters || !t.ends)
        return ONX_E_MEMORY;
    ONX_TRY(read_text(work, s, characters, &t.count));
    ONX_TRY(cut(&t, onxi_automaton_function(t.q, &t.reader, 0), 0, t.count, 1, false));
    sentences made = { 0 };
    collect(&t, &made);
    const int64_t rows = made.count ? made.count : 1; /* a text without sentences gives one empty sentence */
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_STRING, 1, &rows));
    made.list = work->outputs[0]->data;
    made.list[0] = onx_str_of("");
    collect(&t, &made);
    return made.failed ? ONX_E_MEMORY : ONX_OK;
}

static onx_status breaker_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *x = work->inputs[0];
    onx_arena *arena;
    (void)first, (void)last;
    if (x->count != 1)
        return onx_work_fail(work, ONX_E_INVALID, "there are %llu texts, expected 1", (unsigned long long)x->count);
    ONX_TRY(onx_arena_new(work->cx, &arena));
    const onx_status status = break_text(work, arena, *(const onx_str *)x->data);
    onx_arena_free(arena);
    return status;
}

static onx_status breaker_prepare(onx_prepare *p)
{
    onxi_automaton *q = ONXI_NEW(p->arena, onxi_automaton);
    if (!q)
        return ONX_E_MEMORY;
    onx_str model = onx_prepare_text(p, "model");
    ONX_TRY(onxi_token_bytes(p->arena, model, &model));
    ONX_TRY(onxi_automaton_read(p, model, q));
    p->params = q;
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_breaker[] = {
    CONTRIB_KERNEL("BlingFireSentenceBreaker", .prepare = breaker_prepare, .run = breaker_run,
                   .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};

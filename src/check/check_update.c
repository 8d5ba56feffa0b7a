/* check_update.c - rule M-10: does the model's version number reflect the changes between two editions? */
#include "check/check.h"

typedef enum size_of_change { CHANGE_NONE, CHANGE_INSIDE, CHANGE_COMPATIBLE, CHANGE_INCOMPATIBLE } size_of_change;

typedef struct update {
    size_of_change change;
    onx_str what, name; /* the first change of that kind: "the input x is gone" */
} update;

static void note(update *u, size_of_change change, const char *what, onx_str name)
{
    if (change > u->change)
        *u = (update){ change, onx_str_of(what), name };
}

static bool covers_shape(const onx_tensor_shape *wide, const onx_tensor_shape *narrow)
{
    if (!wide)
        return true;
    if (!narrow || wide->dim_count != narrow->dim_count)
        return false;
    for (uint32_t i = 0; i < wide->dim_count; i++)
        if (ONX_HAS(dimension, wide->dim[i], dim_value) &&
            (!ONX_HAS(dimension, narrow->dim[i], dim_value) || wide->dim[i]->dim_value != narrow->dim[i]->dim_value))
            return false;
    return true;
}

/* Is every value of one type also a value of the other? Types that contain types have to be equal. */
static bool covers(const onx_type *wide, const onx_type *narrow)
{
    if (!wide || !narrow)
        return !wide;
    if (ONX_HAS(type, wide, tensor_type) && ONX_HAS(type, narrow, tensor_type))
        return wide->tensor_type->elem_type == narrow->tensor_type->elem_type &&
               covers_shape(wide->tensor_type->shape, narrow->tensor_type->shape);
    return onx_message_equal(ONX_KIND_TYPE, wide, narrow);
}

static onx_status index_values(onxi_check *k, onx_value_info *const *list, uint32_t count, onxi_check_set **out)
{
    *out = onxi_check_set_new(k);
    for (uint32_t i = 0; i < count; i++)
        onxi_check_set_add(k, *out, onx_view(list[i]->name), i, NULL);
    return k->status;
}

static onx_status compare_inputs(onxi_check *k, const onx_graph *a, const onx_graph *b, update *u)
{
    onxi_check_set *of_a, *of_b, *presets = onxi_check_set_new(k);
    uint32_t i, at;
    ONX_TRY(index_values(k, a->input, a->input_count, &of_a));
    ONX_TRY(index_values(k, b->input, b->input_count, &of_b));
    for (i = 0; i < b->initializer_count; i++)
        onxi_check_set_add(k, presets, onx_view(b->initializer[i]->name), i, NULL);
    for (i = 0; i < a->input_count; i++) {
        onx_str name = onx_view(a->input[i]->name);
        if (!onxi_check_set_find(of_b, name, &at))
            note(u, CHANGE_INCOMPATIBLE, "an input is gone", name);
        else if (!covers(b->input[at]->type, a->input[i]->type))
            note(u, CHANGE_INCOMPATIBLE, "an input has another type", name);
        else if (!covers(a->input[i]->type, b->input[at]->type))
            note(u, CHANGE_COMPATIBLE, "an input takes more", name);
    }
    for (i = 0; i < b->input_count; i++) {
        onx_str name = onx_view(b->input[i]->name);
        if (onxi_check_set_find(of_a, name, &at))
            continue;
        if (onxi_check_set_find(presets, name, &at))
            note(u, CHANGE_COMPATIBLE, "there is a new input with a default", name);
        else
            note(u, CHANGE_INCOMPATIBLE, "there is a new input", name);
    }
    return k->status;
}

static onx_status compare_outputs(onxi_check *k, const onx_graph *a, const onx_graph *b, update *u)
{
    onxi_check_set *of_a, *of_b;
    uint32_t i, at;
    ONX_TRY(index_values(k, a->output, a->output_count, &of_a));
    ONX_TRY(index_values(k, b->output, b->output_count, &of_b));
    for (i = 0; i < a->output_count; i++) {
        onx_str name = onx_view(a->output[i]->name);
        if (!onxi_check_set_find(of_b, name, &at))
            note(u, CHANGE_INCOMPATIBLE, "an output is gone", name);
        else if (!covers(a->output[i]->type, b->output[at]->type))
            note(u, CHANGE_INCOMPATIBLE, "an output has another type", name);
        else if (!covers(b->output[at]->type, a->output[i]->type))
            note(u, CHANGE_COMPATIBLE, "an output says more about itself", name);
    }
    for (i = 0; i < b->output_count; i++)
        if (!onxi_check_set_find(of_a, onx_view(b->output[i]->name), &at))
            note(u, CHANGE_COMPATIBLE, "there is a new output", onx_view(b->output[i]->name));
    return k->status;
}

/* Formats 3.7.25 from 16, 16 and 32 bits, or a plain number. */
static bool is_semantic(int64_t version)
{
    return (uint64_t)version >> 32 != 0;
}

static onx_str version_text(onxi_check *k, int64_t v)
{
    uint64_t u = (uint64_t)v;
    if (!is_semantic(v))
        return onxi_check_number(k, v);
    return onxi_check_text(k, "%u.%u.%u", (unsigned)(u >> 48), (unsigned)(u >> 32 & 0xffff), (unsigned)u);
}

/* Has the required part of the version, or a more significant one, increased? */
static bool has_grown(int64_t a, int64_t b, size_of_change change)
{
    unsigned drop = !is_semantic(a) || !is_semantic(b) ? 0
                    : change == CHANGE_INCOMPATIBLE    ? 48
                    : change == CHANGE_COMPATIBLE      ? 32
                                                       : 0;
    return (uint64_t)b >> drop > (uint64_t)a >> drop;
}

static void judge(onxi_check *k, const onx_model *a, const onx_model *b, const update *u)
{
    static const char *const parts[] = { "", "patch", "minor", "major" };
    bool semantic = is_semantic(a->model_version) && is_semantic(b->model_version);
    /* A missing version makes no statement about internal changes. */
    if (u->change == CHANGE_NONE || (u->change == CHANGE_INSIDE && !a->model_version && !b->model_version) ||
        has_grown(a->model_version, b->model_version, u->change))
        return;
    onx_str before = version_text(k, a->model_version), now = version_text(k, b->model_version);
    const onxi_check_at root = { NULL, ONXI_STEP_ROOT, ONXI_NO_INDEX, ONX_KIND_MODEL, b };
    onx_str value = onxi_check_text(k, "%.*s after %.*s", ONX_ARG(now), ONX_ARG(before));
    onx_str expected =
        semantic ? onxi_check_text(k, "a greater %s number", parts[u->change]) : onx_str_of("a greater one");
    const char *quoted = u->name.len ? onxi_check_quote(k, u->name) : "";
    onxi_check_find(k, ONXI_AT(&root, model_version), "M-10",
                    (onxi_check_detail){ .value = value, .expected = expected },
                    "%.*s%s%s, and model_version has not grown with it", ONX_ARG(u->what), *quoted ? ": " : "", quoted);
}

onx_status onx_check_update(onx_ctx *cx, const onx_doc *older, const onx_doc *newer)
{
    ONXI_NEED(cx, cx);
    ONXI_NEED(cx, older);
    ONXI_NEED(cx, newer);
    const onx_model *a = older->kind == ONX_KIND_MODEL ? older->root : NULL;
    const onx_model *b = newer->kind == ONX_KIND_MODEL ? newer->root : NULL;
    onx_arena *arena;
    if (!a || !b)
        return onxi_fail(cx, ONX_E_MISUSE, ONXI_NOWHERE, "only models have editions");
    ONX_TRY(onx_arena_new(cx, &arena));
    onxi_check *k = ONXI_NEW(arena, onxi_check);
    onx_status status = k ? ONX_OK : ONX_E_MEMORY;
    if (k) {
        update u = { CHANGE_NONE, { NULL, 0 }, { NULL, 0 } };
        k->cx = cx;
        k->arena = arena;
        k->model = b;
        k->notes = true;
        k->max_errors = 1;
        if (a->graph && b->graph) {
            status = compare_inputs(k, a->graph, b->graph, &u);
            if (status == ONX_OK)
                status = compare_outputs(k, a->graph, b->graph, &u);
            if (status == ONX_OK && u.change == CHANGE_NONE && !onx_message_equal(ONX_KIND_GRAPH, a->graph, b->graph))
                note(&u, CHANGE_INSIDE, "the graph has changed", onx_str_make(NULL, 0));
        }
        if (status == ONX_OK) {
            judge(k, a, b, &u);
            status = onxi_check_findings_report(k);
        }
    }
    if (status == ONX_E_MEMORY)
        onxi_no_memory(cx);
    onx_arena_free(arena);
    return status;
}

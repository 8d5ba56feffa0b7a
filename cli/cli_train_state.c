/* cli_train_state.c - checkpoints of `onx train`: the model with its variables, and the training state in a metadata
 * property of the model. */
#include "cli_train.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char key[] = "onx.train";

/* ---- the property ---- */

static onx_string_string_entry *find_property(const onx_model *m, uint32_t *index)
{
    for (uint32_t i = 0; i < m->metadata_props_count; i++)
        if (onx_str_is(onx_view(m->metadata_props[i]->key), key)) {
            *index = i;
            return m->metadata_props[i];
        }
    return NULL;
}

static onx_status set_property(onx_doc *doc, const cli_train_state *s)
{
    char text[400];
    uint32_t at;
    onx_model *m = onx_doc_model(doc);
    onx_arena *arena = onx_doc_arena(doc);
    onx_string_string_entry *entry = find_property(m, &at);
    if (!s) {
        if (entry)
            onx_list_remove(m->metadata_props, &m->metadata_props_count, at, sizeof *m->metadata_props);
        return ONX_OK;
    }
    if (!entry) {
        entry = ONX_ADD(arena, m, metadata_props, STRING_STRING_ENTRY);
        if (!entry)
            return ONX_E_MEMORY;
        ONX_TRY(onx_arena_keep(arena, onx_str_of(key), &entry->key));
        entry->has |= onx_string_string_entry_has_key | onx_string_string_entry_has_value;
    }
    snprintf(text, sizeof text,
             "epoch %llu waiting %llu best %a batch %llu samples %llu seed %llu validation %a shuffle %d",
             (unsigned long long)s->epoch, (unsigned long long)s->waiting, s->best, (unsigned long long)s->batch,
             (unsigned long long)s->samples, (unsigned long long)s->seed, s->validation, s->shuffle);
    return onx_arena_keep(arena, onx_str_of(text), &entry->value);
}

static bool read_property(const onx_model *m, cli_train_state *s)
{
    unsigned long long n[5];
    char text[400];
    int shuffle, end = -1;
    uint32_t at;
    const onx_string_string_entry *entry = find_property(m, &at);
    const onx_str value = entry ? onx_view(entry->value) : onx_str_of("");
    if (!value.len || value.len >= sizeof text)
        return false;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    if (sscanf(text, "epoch %llu waiting %llu best %la batch %llu samples %llu seed %llu validation %la shuffle %d%n",
               &n[0], &n[1], &s->best, &n[2], &n[3], &n[4], &s->validation, &shuffle, &end) != 8 ||
        end != (int)value.len || isnan(s->best))
        return false;
    s->epoch = n[0];
    s->waiting = n[1];
    s->batch = n[2];
    s->samples = n[3];
    s->seed = n[4];
    s->shuffle = shuffle != 0;
    return true;
}

/* ---- writing ---- */

onx_status cli_train_save(cli_call *call, onx_doc *doc, const char *path, const cli_train_state *state)
{
    onx_save_options save = { .struct_size = sizeof save,
                              .format = state ? onx_format_of_path(path) : cli_format_out(call, path) };
    if (state && save.format == ONX_FORMAT_AUTO)
        save.format = ONX_FORMAT_BINARY;
    ONX_TRY(set_property(doc, state));
    ONX_TRY(onx_output_again(call->cx, path));
    return onx_save(call->cx, doc, path, &save);
}

onx_status cli_train_save_bytes(cli_call *call, const char *path, onx_str bytes)
{
    ONX_TRY(onx_output_again(call->cx, path));
    return onx_save_bytes(call->cx, path, bytes);
}

onx_status cli_train_load_bytes(cli_call *call, const char *path, onx_status (*take)(void *user, onx_str bytes),
                                void *user)
{
    onx_buffer old;
    onx_ctx *cx = onx_ctx_new(NULL);
    if (!cx) {
        cli_error(call, "out of memory");
        return ONX_E_MEMORY;
    }
    onx_ctx_set_limits(cx, onx_ctx_limits(call->cx));
    onx_status status = onx_load_bytes(cx, path, &old);
    if (status == ONX_OK) {
        status = take(user, onx_str_make(old.ptr, old.len));
        onx_buffer_free(&old);
    }
    cli_call part = *call;
    part.cx = cx;
    cli_report(&part);
    call->told |= part.told;
    onx_ctx_free(cx);
    return status;
}

/* ---- resuming ---- */

static bool same_list(onx_kind kind, const void *const *a, uint32_t a_count, const void *const *b, uint32_t b_count)
{
    bool same = a_count == b_count;
    for (uint32_t i = 0; same && i < a_count; i++)
        same = onx_message_equal(kind, a[i], b[i]);
    return same;
}
#define SAME_LIST(KIND, field)                                                                                         \
    same_list(ONX_KIND_##KIND, (const void *const *)a->field, a->field##_count, (const void *const *)b->field,         \
              b->field##_count)

/* Are the models the same, except for the elements of initializers? */
static bool same_graph(const onx_graph *a, const onx_graph *b)
{
    if (!a || !b)
        return a == b;
    bool same = SAME_LIST(NODE, node) && SAME_LIST(VALUE_INFO, input) && SAME_LIST(VALUE_INFO, output) &&
                a->initializer_count == b->initializer_count;
    for (uint32_t i = 0; same && i < a->initializer_count; i++) {
        const onx_tensor *x = a->initializer[i], *y = b->initializer[i];
        same = onx_str_equal(onx_view(x->name), onx_view(y->name)) && x->data_type == y->data_type &&
               x->dims_count == y->dims_count;
        for (uint32_t k = 0; same && k < x->dims_count; k++)
            same = x->dims[k] == y->dims[k];
    }
    return same;
}

static bool same_training(const onx_training_info *a, const onx_training_info *b)
{
    return same_graph(a->algorithm, b->algorithm) && same_graph(a->initialization, b->initialization) &&
           SAME_LIST(STRING_STRING_ENTRY, initialization_binding) && SAME_LIST(STRING_STRING_ENTRY, update_binding);
}

static bool same_model(const onx_model *a, const onx_model *b)
{
    bool same = a && b && same_graph(a->graph, b->graph) && SAME_LIST(FUNCTION, functions) &&
                SAME_LIST(OPERATOR_SET_ID, opset_import) && a->training_info_count == b->training_info_count;
    for (uint32_t i = 0; same && i < a->training_info_count; i++)
        same = same_training(a->training_info[i], b->training_info[i]);
    return same;
}

onx_status cli_train_resume(cli_call *call, const onx_doc *model, const char *path, cli_train_state *state,
                            onx_doc **out)
{
    struct stat st;
    const char *before = call->input;
    *out = NULL;
    if (stat(path, &st) != 0 && errno == ENOENT)
        return ONX_OK;
    ONX_TRY(cli_load(call, path, ONX_KIND_MODEL, out));
    const char *why = NULL;
    if (!same_model(onx_doc_model(model), onx_doc_model(*out)))
        why = "contains another model";
    else if (!read_property(onx_doc_model(*out), state))
        why = "contains no training state, so it is not a checkpoint";
    call->input = before;
    if (!why)
        return ONX_OK;
    cli_error(call, "%s %s", path, why);
    onx_doc_free(*out);
    *out = NULL;
    return ONX_E_INVALID;
}

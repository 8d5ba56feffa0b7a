/* cli_train_data.c - samples for `onx train`: arrays of NumPy files whose first axis counts the samples. */
#include "cli_files.h"
#include "cli_inputs.h"
#include "cli_numpy.h"
#include "cli_train.h"

#include <onx/npy.h>

#include <stdlib.h>

#define SAMPLES_MAX                                                                                                    \
    UINT32_MAX /* arrays without elements need no memory, so their number of samples has to be limited                 \
                * \ */

static onx_status no_memory(const cli_call *call)
{
    cli_error(call, "out of memory");
    return ONX_E_MEMORY;
}

static const onx_tensor_shape *shape_of(const cli_train_input *c)
{
    return c->type && ONX_HAS(type, c->type, tensor_type) && c->type->tensor_type ? c->type->tensor_type->shape : NULL;
}

/* ---- which inputs there are ---- */

static bool is_variable(const onx_trainer *t, uint32_t entry, onx_str name)
{
    onx_trainer_variable v;
    for (uint32_t i = 0; onx_trainer_variable_get(t, i, &v); i++)
        if ((v.in_main || v.entry == entry) && onx_str_equal(v.name, name))
            return true;
    return false;
}

static bool has_initializer(const onx_graph *g, onx_str name)
{
    for (uint32_t i = 0; i < g->initializer_count; i++)
        if (onx_str_equal(onx_view(g->initializer[i]->name), name))
            return true;
    return false;
}

cli_train_input *cli_batches_find(const cli_batches *s, onx_str name)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (onx_str_is(name, s->columns[i].name))
            return &s->columns[i];
    return NULL;
}

static onx_status add_columns(cli_batches *s, const onx_trainer *t, uint32_t entry, const onx_graph *g)
{
    for (uint32_t i = 0; g && i < g->input_count; i++) {
        const onx_str name = onx_view(g->input[i]->name);
        if (is_variable(t, entry, name) || cli_batches_find(s, name))
            continue;
        cli_train_input *c = &s->columns[s->count];
        *c = (cli_train_input){ .name = calloc(name.len + 1, 1),
                                .type = g->input[i]->type,
                                .required = !has_initializer(g, name) };
        if (!c->name)
            return no_memory(s->call);
        if (name.len)
            memcpy(c->name, name.ptr, name.len);
        s->count++;
    }
    return ONX_OK;
}

static void hint_inputs(const cli_batches *s)
{
    char known[400];
    size_t used = 0;
    known[0] = '\0';
    for (uint32_t i = 0; i < s->count && used < sizeof known - 80; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.64s", i ? ", " : "", s->columns[i].name);
    if (s->count)
        cli_hint("the inputs of a step are %s", known);
    else
        cli_hint("the step has no inputs except its variables");
}

/* ---- reading ---- */

typedef struct reader {
    cli_batches *s;
    const char *path; /* the current file */
    char other[80];   /* its first array that belongs to no input */
    bool has_other, found;
    onx_status status; /* status of the files in a folder */
} reader;

static bool is_wanted(void *user, onx_str name)
{
    reader *r = user;
    if (cli_batches_find(r->s, name))
        return true;
    if (!r->has_other)
        snprintf(r->other, sizeof r->other, "%.*s", name.len < 70 ? (int)name.len : 70, name.ptr ? name.ptr : "");
    r->has_other = true;
    return false;
}

static onx_status unfit(const reader *r, const cli_train_input *c, const char *why)
{
    cli_error(r->s->call, "%s: \"%s\" %s", r->path, c->name, why);
    return ONX_E_INVALID;
}

static int32_t dtype_of(const cli_train_input *c)
{
    return c->type && ONX_HAS(type, c->type, tensor_type) && c->type->tensor_type ? c->type->tensor_type->elem_type : 0;
}

/* Does an array fit the declared type and the arrays before it? */
static onx_status fit(const reader *r, const cli_train_input *c, const onx_value *v)
{
    char why[200];
    const onx_tensor_shape *shape = shape_of(c);
    const int32_t dtype = dtype_of(c);
    if (v->rank == 0)
        return unfit(r, c, "is a scalar without a first axis for samples; use --set NAME=VALUE for a fixed value");
    if (dtype && dtype != v->dtype) {
        snprintf(why, sizeof why, "has element type %s, but the input needs %s", onx_dtype_name(v->dtype),
                 onx_dtype_name(dtype) ? onx_dtype_name(dtype) : "another type");
        return unfit(r, c, why);
    }
    if (shape && shape->dim_count != v->rank) {
        snprintf(why, sizeof why, "has %u dimensions, but the input has %u", v->rank, shape->dim_count);
        return unfit(r, c, why);
    }
    for (uint32_t i = 1; i < v->rank; i++) {
        const bool known = shape && ONX_HAS(dimension, shape->dim[i], dim_value);
        const onx_value *first = c->parts->count ? c->parts->items[0] : v;
        const int64_t want = first->rank != v->rank ? -1 : known ? shape->dim[i]->dim_value : first->dims[i];
        if (v->dims[i] == want && first->dtype == v->dtype && first->dims[i] == v->dims[i])
            continue;
        snprintf(why, sizeof why, "is %lld along axis %u, where the input needs %lld", (long long)v->dims[i], i,
                 (long long)want);
        return unfit(r, c, why);
    }
    if (c->parts->count && c->parts->items[0]->dtype != v->dtype)
        return unfit(r, c, "and the array of the file before differ in element type");
    return ONX_OK;
}

/* NumPy creates double and int64 by default, and other libraries often save narrower types. Elements are therefore
 * converted to the type of the input: floats to floats, and integers to integers if all of them fit. */
static bool converts(int32_t to, int32_t from)
{
    const onx_dtype_class class = onx_dtype_class_of(from), wanted = onx_dtype_class_of(to);
    if (class == ONX_CLASS_FLOATING && wanted == ONX_CLASS_FLOATING)
        return onx_dtype_bits(from) >= 16 && onx_dtype_bits(to) >= 16;
    const bool wider = onx_dtype_bits(to) > onx_dtype_bits(from) && onx_dtype_bits(from) >= 8;
    return wider && ((class == ONX_CLASS_SIGNED && wanted == ONX_CLASS_SIGNED) ||
                     (class == ONX_CLASS_UNSIGNED && (wanted == ONX_CLASS_SIGNED || wanted == ONX_CLASS_UNSIGNED)));
}

/* The array converted to the type of the input; *own is NULL if no conversion is needed or possible. */
static onx_status convert(const reader *r, const cli_train_input *c, const onx_value *value, onx_value **own)
{
    const int32_t to = dtype_of(c);
    *own = NULL;
    if (!to || to == value->dtype || !converts(to, value->dtype))
        return ONX_OK;
    ONX_TRY(onx_value_new_tensor(r->s->call->cx, (onx_dtype)to, value->rank, value->dims, own));
    if (onx_dtype_bits(to) < onx_dtype_bits(value->dtype))
        cli_warn(r->s->call, "%s: \"%s\" is converted from %s to %s, with rounding", r->path, c->name,
                 onx_dtype_name(value->dtype), onx_dtype_name(to));
    return onx_convert((onx_dtype)to, (*own)->data, (onx_dtype)value->dtype, value->data, value->count, true);
}

static onx_status take_fitting(reader *r, cli_train_input *c, onx_value *value)
{
    ONX_TRY(fit(r, c, value));
    r->found = true;
    return onx_value_insert(c->parts, c->parts->count, value);
}

static onx_status take(void *user, onx_str name, onx_value *value)
{
    reader *r = user;
    cli_train_input *c = cli_batches_find(r->s, name);
    if (!c)
        return ONX_OK;
    if (c->set) {
        cli_error(r->s->call, "%s: \"%s\" is also given by --set", r->path, c->name);
        return ONX_E_MISUSE;
    }
    if (!c->parts) {
        ONX_TRY(onx_value_new(r->s->call->cx, &c->parts));
        ONX_TRY(onx_value_reset_list(c->parts, ONX_VALUE_SEQUENCE, (onx_dtype)0));
    }
    onx_value *own;
    onx_status status = convert(r, c, value, &own);
    if (status == ONX_OK)
        status = take_fitting(r, c, own ? own : value);
    onx_value_free(own);
    return status;
}

/* An .npy file is for the input of the same name. */
static onx_status read_array(reader *r, onx_str bytes)
{
    const char *slash = strrchr(r->path, '/'), *name = slash ? slash + 1 : r->path;
    const onx_str stem = onx_str_make(name, strlen(name) - 4);
    onx_value *value;
    if (!is_wanted(r, stem))
        return ONX_OK;
    ONX_TRY(onx_value_from_npy(r->s->call->cx, bytes, &value));
    const onx_status status = take(r, stem, value);
    onx_value_free(value);
    return status;
}

/* An array that no input takes is more often a misspelled name than one to ignore. */
static onx_status refuse_other(const reader *r)
{
    char known[400] = "";
    for (uint32_t i = 0; i < r->s->count; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", r->s->columns[i].name);
    }
    cli_error(r->s->call, "%s: no input takes the array \"%s\"; the inputs of the step are %s", r->path, r->other,
              known);
    cli_hint("--ignore-extra ignores arrays that no input takes");
    return ONX_E_MISUSE;
}

static onx_status read_file(reader *r, const char *path)
{
    cli_call *call = r->s->call;
    const char *before = call->input;
    onx_buffer bytes;
    r->path = path;
    r->has_other = false;
    ONX_TRY(cli_load_bytes(call, path, &bytes));
    call->input = path;
    const onx_str all = onx_str_make(bytes.ptr, bytes.len);
    onx_status status = ONX_E_MISUSE;
    if (cli_ends_in(path, ".npz"))
        status = onx_npz_each(call->cx, all, is_wanted, take, r);
    else if (cli_ends_in(path, ".npy"))
        status = read_array(r, all);
    else
        cli_error(call, "--data %s: samples come from .npz files, .npy files and folders of them", path);
    onx_buffer_free(&bytes);
    if (status == ONX_OK) {
        call->input = before;
        if (r->has_other && !cli_has(call, "ignore-extra"))
            return refuse_other(r);
    } else if (onx_diag_total(call->cx, ONX_ERROR)) {
        cli_report(call); /* the path may be freed before the command ends */
        call->input = before;
    }
    return status;
}

static void read_found(void *user, const char *path)
{
    reader *r = user;
    if (r->status == ONX_OK)
        r->status = read_file(r, path);
}

static onx_status read_data(cli_batches *s)
{
    const char *path;
    for (int i = 0; (path = cli_value_at(s->call, "data", i)) != NULL; i++) {
        reader r = { .s = s };
        const bool whole = cli_each_file(s->call, path, cli_is_numpy, read_found, &r);
        ONX_TRY(r.status);
        if (!whole)
            return ONX_E_IO;
        if (!r.found) {
            cli_error(s->call, "--data %s: no array is named like an input", path);
            hint_inputs(s);
            return ONX_E_NOT_FOUND;
        }
    }
    return ONX_OK;
}

/* ---- --set ---- */

/* The shape that a single number fills: the declared one if it has one element, else a scalar. */
static bool one_element(const cli_train_input *c, cli_shape *out)
{
    const onx_tensor_shape *shape = shape_of(c);
    *out = (cli_shape){ .rank = shape && shape->dim_count <= ONX_RANK_MAX ? shape->dim_count : 0 };
    for (uint32_t i = 0; i < out->rank; i++) {
        out->dims[i] = 1;
        if (ONX_HAS(dimension, shape->dim[i], dim_value) && shape->dim[i]->dim_value != 1)
            return false;
    }
    return true;
}

static onx_status read_sets(cli_batches *s)
{
    const char *text, *rest;
    for (int i = 0; (text = cli_value_at(s->call, "set", i)) != NULL; i++) {
        onx_str name;
        cli_shape shape;
        char what[120];
        if (!cli_split(s->call, "set", text, &name, &rest))
            return ONX_E_MISUSE;
        cli_train_input *c = cli_batches_find(s, name);
        if (!c || c->set) {
            cli_error(s->call, c ? "--set gives \"%.*s\" twice" : "--set: the step has no input \"%.*s\"",
                      ONX_ARG(name));
            if (!c)
                hint_inputs(s);
            return c ? ONX_E_MISUSE : ONX_E_NOT_FOUND;
        }
        if (!c->type || !ONX_HAS(type, c->type, tensor_type) || !c->type->tensor_type) {
            cli_error(s->call, "--set %s: the model does not declare this input as a tensor", text);
            return ONX_E_MISUSE;
        }
        snprintf(what, sizeof what, "--set %.100s", c->name);
        ONX_TRY(cli_literal(s->call, what, onx_str_of(rest), (onx_dtype)c->type->tensor_type->elem_type,
                            one_element(c, &shape) ? &shape : NULL, &c->value));
        c->set = true;
    }
    return ONX_OK;
}

/* ---- all inputs ---- */

static onx_status close_column(cli_batches *s, cli_train_input *c)
{
    const onx_tensor_shape *shape = shape_of(c);
    if (!c->parts) {
        if (!c->required || c->set)
            return ONX_OK;
        cli_error(s->call, "the input \"%s\" has no value", c->name);
        cli_hint("give a file with an array of that name with --data, or a fixed value with --set %s=VALUE", c->name);
        return ONX_E_MISUSE;
    }
    c->part_start = calloc(c->parts->count + 1, sizeof *c->part_start);
    if (!c->part_start)
        return no_memory(s->call);
    for (uint64_t i = 0; i < c->parts->count; i++) {
        const uint64_t more = (uint64_t)c->parts->items[i]->dims[0];
        c->part_start[i] = c->samples;
        if (more > SAMPLES_MAX - c->samples) {
            cli_error(s->call, "there are more than %llu samples of \"%s\"", (unsigned long long)SAMPLES_MAX, c->name);
            return ONX_E_LIMIT;
        }
        c->samples += more;
    }
    if (shape && shape->dim_count && ONX_HAS(dimension, shape->dim[0], dim_value)) {
        const int64_t fixed = shape->dim[0]->dim_value;
        if (fixed <= 0 || (s->fixed && s->fixed != fixed)) {
            cli_error(s->call, "the first dimension of \"%s\" is %lld, which is not a batch size", c->name,
                      (long long)fixed);
            return ONX_E_INVALID;
        }
        s->fixed = fixed;
    }
    return onx_value_new(s->call->cx, &c->value);
}

static onx_status close_all(cli_batches *s)
{
    const cli_train_input *first = NULL;
    for (uint32_t i = 0; i < s->count; i++) {
        cli_train_input *c = &s->columns[i];
        ONX_TRY(close_column(s, c));
        if (!c->parts)
            continue;
        if (first && first->samples != c->samples) {
            cli_error(s->call, "there are %llu samples of \"%s\" but %llu of \"%s\"",
                      (unsigned long long)first->samples, first->name, (unsigned long long)c->samples, c->name);
            return ONX_E_INVALID;
        }
        first = c;
        s->samples = c->samples;
    }
    if (first && s->samples)
        return ONX_OK;
    cli_error(s->call, first ? "the data contain no samples" : "no input takes its values from data");
    return ONX_E_INVALID;
}

onx_status cli_batches_open(cli_call *call, onx_doc *doc, const onx_trainer *t, uint32_t entry, cli_batches *out)
{
    const onx_model *model = onx_doc_model(doc);
    const onx_graph *algorithm = model->training_info[entry]->algorithm;
    const size_t room = (size_t)model->graph->input_count + (algorithm ? algorithm->input_count : 0) + 1;
    *out = (cli_batches){ .call = call, .columns = calloc(room, sizeof *out->columns) };
    if (!out->columns)
        return no_memory(call);
    ONX_TRY(add_columns(out, t, entry, model->graph));
    ONX_TRY(add_columns(out, t, entry, algorithm));
    ONX_TRY(read_sets(out));
    ONX_TRY(read_data(out));
    return close_all(out);
}

void cli_batches_free(cli_batches *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->columns[i].name);
        free(s->columns[i].part_start);
        onx_value_free(s->columns[i].parts);
        onx_value_free(s->columns[i].value);
    }
    free(s->columns);
}

/* ---- batches ---- */

/* The array that contains the sample: the last one that begins at or before it and is not empty. */
static uint64_t part_of(const cli_train_input *c, uint64_t sample)
{
    uint64_t low = 0, high = c->parts->count;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (c->part_start[middle] <= sample)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static onx_status copy_sample(const cli_train_input *c, uint64_t sample, uint64_t to)
{
    const uint64_t part = part_of(c, sample), at = sample - c->part_start[part];
    const onx_value *from = c->parts->items[part];
    const uint64_t elements = from->count / (uint64_t)from->dims[0], bytes = from->size / (uint64_t)from->dims[0];
    if (from->dtype != ONX_STRING) {
        if (bytes)
            memcpy((char *)c->value->data + to * bytes, (const char *)from->data + at * bytes, (size_t)bytes);
        return ONX_OK;
    }
    for (uint64_t i = 0; i < elements; i++)
        ONX_TRY(onx_value_set_text(c->value, to * elements + i, ((const onx_str *)from->data)[at * elements + i]));
    return ONX_OK;
}

onx_status cli_batches_batch(cli_batches *s, const uint64_t *which, uint64_t count)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const cli_train_input *c = &s->columns[i];
        if (!c->parts)
            continue;
        int64_t dims[ONX_RANK_MAX];
        const onx_value *like = c->parts->items[0];
        memcpy(dims, like->dims, like->rank * sizeof *dims);
        dims[0] = (int64_t)count;
        ONX_TRY(onx_value_reset(c->value, (onx_dtype)like->dtype, like->rank, dims));
        for (uint64_t k = 0; k < count; k++)
            ONX_TRY(copy_sample(c, which[k], k));
    }
    return ONX_OK;
}

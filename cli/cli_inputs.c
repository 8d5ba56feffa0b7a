/* cli_inputs.c - inputs from files, folders, archives, images, and values on the command line. */
#include "cli_inputs_reader.h"

#include <onx/npy.h>

#include <stdlib.h>
#include <sys/stat.h>

onx_status cli_reader_no_memory(const cli_reader *r)
{
    cli_error(r->call, "out of memory");
    return ONX_E_MEMORY;
}

/* ---- names of inputs ---- */

uint32_t cli_reader_find(const cli_reader *r, onx_str name)
{
    CLI_TABLE_EACH (&r->names, cli_table_hash(&r->names, name, onx_str_of("")), i)
        if (onx_str_equal(onx_session_input(r->s, i).name, name))
            return i;
    return CLI_NO_ENTRY;
}

void cli_reader_hint(const cli_reader *r)
{
    char known[400];
    size_t used = 0;
    known[0] = '\0';
    for (uint32_t i = 0; i < r->in->count; i++) {
        onx_str name = onx_session_input(r->s, i).name;
        if (used + name.len + 8 >= sizeof known) {
            snprintf(known + used, sizeof known - used, ", ...");
            break;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "", ONX_ARG(name));
    }
    if (r->in->count)
        cli_hint("the inputs are %s", known);
    else
        cli_hint("the model has no inputs");
}

onx_status cli_reader_no_input(const cli_reader *r, onx_str name)
{
    cli_error(r->call, "the model has no input \"%.*s\"", ONX_ARG(name));
    cli_reader_hint(r);
    return ONX_E_NOT_FOUND;
}

/* ---- -i ---- */

static void give(cli_reader *r, uint32_t input, onx_value *value)
{
    onx_value_free(r->in->values[input]);
    r->in->values[input] = value;
}

/* The shape that a single number fills: the requested one, or one with one element. */
static const cli_shape *shape_for_one(cli_reader *r, uint32_t input, cli_shape *room)
{
    const cli_request *q = cli_reader_request(r, input);
    if (q && q->has_shape)
        return &q->shape;
    const onx_tensor_shape *shape = cli_declared_shape(onx_session_input(r->s, input).type);
    if (!shape || shape->dim_count > ONX_RANK_MAX)
        return NULL;
    room->rank = shape->dim_count;
    for (uint32_t i = 0; i < room->rank; i++) {
        room->dims[i] = 1;
        if (ONX_HAS(dimension, shape->dim[i], dim_value) && shape->dim[i]->dim_value > 1)
            return NULL;
    }
    return room;
}

static onx_status give_literal(cli_reader *r, uint32_t input, onx_str text)
{
    const onx_session_port port = onx_session_input(r->s, input);
    char what[160];
    cli_shape shape;
    onx_value *value;
    snprintf(what, sizeof what, "input \"%.*s\"", port.name.len < 100 ? (int)port.name.len : 100,
             port.name.ptr ? port.name.ptr : "");
    const int32_t dtype = cli_element_type(port.type);
    if (!dtype) {
        cli_error(r->call, "%s: the model does not declare it as a tensor, so its value has to come from a file", what);
        return ONX_E_MISUSE;
    }
    ONX_TRY(cli_literal(r->call, what, text, (onx_dtype)dtype, shape_for_one(r, input, &shape), &value));
    give(r, input, value);
    return ONX_OK;
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The value of a string input needs no quotes, unless it looks like a file name or is one. */
static bool is_plain_text(const onx_type *type, const char *text)
{
    static const char *const endings[] = { ".pb", ".npy", ".npz", ".json", ".textproto", ".onnxtxt" };
    if (cli_element_type(type) != ONX_STRING || strcmp(text, "-") == 0 || is_there(text))
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (cli_ends_in(text, endings[i]))
            return false;
    return true;
}

/* The whole text, quoted as a literal. */
static onx_status give_text(cli_reader *r, uint32_t input, const char *text)
{
    const onx_session_port port = onx_session_input(r->s, input);
    cli_shape scalar = { 0 }, room;
    const cli_shape *shape = shape_for_one(r, input, &room);
    onx_value *value;
    if (!shape)
        shape = &scalar;
    ONX_TRY(
        onx_value_new_tensor(r->call->cx, (onx_dtype)cli_element_type(port.type), shape->rank, shape->dims, &value));
    onx_status status = ONX_OK;
    for (uint64_t i = 0; i < value->count && status == ONX_OK; i++)
        status = onx_value_set_text(value, i, onx_str_of(text));
    if (status == ONX_OK)
        give(r, input, value);
    else
        onx_value_free(value);
    return status;
}

/* A .json file contains a message of ONNX, or a list. */
static onx_status give_json(cli_reader *r, uint32_t input, const char *path)
{
    onx_buffer bytes;
    size_t at = 0;
    ONX_TRY(cli_load_bytes(r->call, path, &bytes));
    while (at < bytes.len && memchr(" \t\r\n", bytes.ptr[at], 4))
        at++;
    const bool message = at < bytes.len && bytes.ptr[at] == '{';
    onx_status status = message ? ONX_OK : give_literal(r, input, onx_str_make(bytes.ptr, bytes.len));
    if (status == ONX_E_MISUSE) {
        cli_hint("the value is that of the file %s", path);
        status = ONX_E_INVALID;
    }
    onx_buffer_free(&bytes);
    if (!message)
        return status;
    const onx_session_port port = onx_session_input(r->s, input);
    onx_value *value;
    ONX_TRY(cli_value_load(r->call, path, port.type, port.name, &value));
    give(r, input, value);
    return ONX_OK;
}

static onx_status give_image(cli_reader *r, uint32_t input, const char *path)
{
    cli_shape known;
    onx_value *value;
    const bool has_shape = cli_reader_shape(r, input, &known);
    ONX_TRY(cli_image_load(r->call, path, r->doc, onx_session_input(r->s, input), has_shape ? &known : NULL, &r->image,
                           &value));
    give(r, input, value);
    r->images++;
    return ONX_OK;
}

static onx_status give_one(cli_reader *r, uint32_t input, const char *text)
{
    const onx_session_port port = onx_session_input(r->s, input);
    onx_value *value;
    if (!*text) {
        cli_error(r->call, "--input %.*s= is empty", ONX_ARG(port.name));
        return ONX_E_MISUSE;
    }
    if (cli_is_literal(text))
        return give_literal(r, input, onx_str_of(text));
    if (is_plain_text(port.type, text))
        return give_text(r, input, text);
    if (cli_ends_in(text, ".json"))
        return give_json(r, input, text);
    if (cli_is_image(text))
        return give_image(r, input, text);
    ONX_TRY(cli_value_load(r->call, text, port.type, port.name, &value));
    give(r, input, value);
    return ONX_OK;
}

/* ---- all inputs from one place ---- */

static onx_status give_folder(cli_reader *r, const char *path)
{
    cli_fault fault = { 0 };
    uint32_t count;
    onx_status status = cli_data_set(r->call, r->s, path, false, r->in->values, &count, &fault);
    if (status == ONX_OK && !count) {
        cli_error(r->call, "%s: the folder contains no input_0.pb", path);
        status = ONX_E_NOT_FOUND;
    } else if (status != ONX_OK) {
        cli_error(r->call, "%s: %s", fault.path ? fault.path : path, fault.text);
    }
    free(fault.path);
    return status;
}

typedef struct archive {
    cli_reader *r;
    uint32_t found, others; /* number of members that name an input, and of others */
    char other[80];         /* the first of the others */
} archive;

static bool names_input(void *user, onx_str name)
{
    archive *a = user;
    if (cli_reader_find(a->r, name) != CLI_NO_ENTRY)
        return true;
    if (!a->others++)
        snprintf(a->other, sizeof a->other, "%.*s", name.len < 70 ? (int)name.len : 70, name.ptr);
    return false;
}

/* Moves the value into a list of one item, which returns a reference of its own. */
static onx_status give_member(void *user, onx_str name, onx_value *value)
{
    archive *a = user;
    onx_value *own;
    ONX_TRY(onx_value_new(a->r->call->cx, &own));
    const onx_status status = onx_value_assign(own, value);
    if (status != ONX_OK) {
        onx_value_free(own);
        return status;
    }
    give(a->r, cli_reader_find(a->r, name), own);
    a->found++;
    return ONX_OK;
}

/* An archive of one array needs no matching name if the model has one input. */
static onx_status give_only_member(cli_reader *r, onx_str bytes)
{
    onx_value *value;
    ONX_TRY(onx_value_from_npz(r->call->cx, bytes, onx_session_input(r->s, 0).name, &value));
    give(r, 0, value);
    return ONX_OK;
}

static onx_status give_archive(cli_reader *r, const char *path)
{
    onx_buffer bytes;
    archive a = { .r = r };
    ONX_TRY(cli_load_bytes(r->call, path, &bytes));
    const onx_str all = onx_str_make(bytes.ptr, bytes.len);
    const char *before = r->call->input;
    r->call->input = path;
    onx_status status = onx_npz_each(r->call->cx, all, names_input, give_member, &a);
    if (status == ONX_OK && !a.found && a.others == 1 && r->in->count == 1)
        status = give_only_member(r, all);
    else if (status == ONX_OK && !a.found)
        status = ONX_E_NOT_FOUND;
    else if (status == ONX_OK && a.others)
        cli_warn(r->call, "%s: \"%s\"%s no input of the model", path, a.other,
                 a.others > 1 ? " and other members are" : " is");
    onx_buffer_free(&bytes);
    if (status == ONX_OK)
        r->call->input = before;
    if (status == ONX_E_NOT_FOUND && !onx_diag_total(r->call->cx, ONX_ERROR)) {
        cli_error(r->call, "%s: no member is named like an input", path);
        cli_reader_hint(r);
    }
    return status;
}

static onx_status read_one_option(cli_reader *r, const char *text)
{
    const char *equals = strchr(text, '=');
    for (const char *at = text + strlen(text); equals && at > equals;) { /* the longest name that matches */
        if (*--at != '=')
            continue;
        const uint32_t input = cli_reader_find(r, onx_str_make(text, (size_t)(at - text)));
        if (input != CLI_NO_ENTRY)
            return give_one(r, input, at + 1);
    }
    if (is_folder(text))
        return give_folder(r, text);
    if (cli_ends_in(text, ".npz") && (!equals || is_there(text)))
        return give_archive(r, text);
    if (equals && equals != text)
        return cli_reader_no_input(r, onx_str_make(text, (size_t)(equals - text)));
    cli_error(r->call, "--input needs NAME=VALUE, an .npz file or a folder, not \"%s\"", text);
    return ONX_E_MISUSE;
}

/* A file with a single value is for the only input that no option gives. */
static onx_status read_set(cli_reader *r)
{
    uint32_t open = 0, last = 0;
    if (is_folder(r->set))
        return give_folder(r, r->set);
    if (cli_ends_in(r->set, ".npz"))
        return give_archive(r, r->set);
    for (uint32_t i = 0; i < r->in->count; i++)
        if (!r->in->values[i] && onx_session_input(r->s, i).required) {
            open++;
            last = i;
        }
    if (open == 1)
        return give_one(r, last, r->set);
    cli_error(r->call, "%s contains one value, but %u inputs are not given", r->set, open);
    cli_reader_hint(r);
    return ONX_E_MISUSE;
}

static onx_status read_options(cli_reader *r)
{
    const char *text;
    for (int i = 0; (text = cli_value_at(r->call, "input", i)) != NULL; i++)
        ONX_TRY(read_one_option(r, text));
    if (r->set)
        ONX_TRY(read_set(r));
    if (cli_image_option_given(r->call) && !r->images) {
        cli_error(r->call, "--%s applies to images, but no input is given as one", cli_image_option_given(r->call));
        return ONX_E_MISUSE;
    }
    for (uint32_t i = 0; i < r->in->count; i++)
        if (r->in->values[i])
            cli_reader_learn(r, i);
    return ONX_OK;
}

static onx_status list_inputs(cli_reader *r)
{
    const uint32_t count = onx_session_input_count(r->s);
    r->in->values = calloc((size_t)count + 1, sizeof *r->in->values);
    r->requests = calloc((size_t)r->call->given_count + 1, sizeof *r->requests);
    if (!r->in->values || !r->requests)
        return cli_reader_no_memory(r);
    r->in->count = count;
    for (uint32_t i = 0; i < count; i++)
        if (!cli_table_add(&r->names, cli_table_hash(&r->names, onx_session_input(r->s, i).name, onx_str_of("")), i))
            return cli_reader_no_memory(r);
    return ONX_OK;
}

static onx_status read_all(cli_reader *r)
{
    ONX_TRY(list_inputs(r));
    ONX_TRY(cli_reader_requests(r));
    if (!cli_number(r->call, "seed", 0, UINT64_MAX, &r->seed) || !cli_image_options_read(r->call, &r->image))
        return ONX_E_MISUSE;
    ONX_TRY(read_options(r));
    return cli_reader_make_up(r);
}

onx_status cli_inputs_read(cli_call *call, onx_doc *doc, const onx_session *s, unsigned flags, cli_inputs *out)
{
    return cli_inputs_read_set(call, doc, s, NULL, flags, out);
}

onx_status cli_inputs_read_set(cli_call *call, onx_doc *doc, const onx_session *s, const char *set, unsigned flags,
                               cli_inputs *out)
{
    *out = (cli_inputs){ 0 };
    cli_reader r = { .call = call,
                     .doc = doc,
                     .s = s,
                     .set = set,
                     .flags = flags,
                     .in = out,
                     .names = { .cx = call->cx },
                     .symbol_names = { .cx = call->cx } };
    onx_status status = read_all(&r);
    free(r.names.slots);
    free(r.symbol_names.slots);
    free(r.symbols);
    free(r.requests);
    return status;
}

void cli_inputs_free(cli_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++)
        onx_value_free(inputs->values[i]);
    free(inputs->values);
    *inputs = (cli_inputs){ 0 };
}

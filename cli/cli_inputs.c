/* cli_inputs.c - what -i, --random, --shape, --range, --dim and --seed say about the inputs of a model. */
#include "cli_image.h"
#include "cli_table.h"
#include "cli_uses.h"

#include <onx/npy.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct symbol {
    onx_str name;
    int64_t size;
} symbol;

/* What is asked for one input that is made up. */
typedef struct request {
    uint32_t input;
    bool has_shape, has_range;
    cli_shape shape;
    double low, high;
} request;

typedef struct reader {
    cli_call *call;
    onx_doc *doc;
    const onx_session *s;
    cli_image_options image;
    const char *set; /* where the rest is, NULL: nowhere */
    unsigned flags;
    cli_inputs *in;
    cli_table names, symbol_names;
    symbol *symbols;
    request *requests;
    uint32_t symbol_count, symbol_room, request_count;
    uint64_t seed;
    unsigned told;   /* inputs that were said to be made up */
    unsigned images; /* inputs that come from one */
} reader;

static onx_status no_memory(const reader *r)
{
    cli_error(r->call, "out of memory");
    return ONX_E_MEMORY;
}

/* ---- names of inputs ---- */

static uint32_t find_input(const reader *r, onx_str name)
{
    CLI_TABLE_EACH (&r->names, cli_table_hash(&r->names, name, onx_str_of("")), i)
        if (onx_str_equal(onx_session_input(r->s, i).name, name))
            return i;
    return CLI_NO_ENTRY;
}

static void hint_inputs(const reader *r)
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

static onx_status no_input(const reader *r, onx_str name)
{
    cli_error(r->call, "the model has no input \"%.*s\"", ONX_ARG(name));
    hint_inputs(r);
    return ONX_E_NOT_FOUND;
}

/* ---- symbolic dimensions ---- */

static const onx_type *inner_type(const onx_type *t)
{
    return ONX_HAS(type, t, sequence_type) && t->sequence_type   ? t->sequence_type->elem_type
           : ONX_HAS(type, t, optional_type) && t->optional_type ? t->optional_type->elem_type
           : ONX_HAS(type, t, map_type) && t->map_type           ? t->map_type->value_type
                                                                 : NULL;
}

static const onx_tensor_shape *shape_of(const onx_type *t)
{
    return !t                                                              ? NULL
           : ONX_HAS(type, t, tensor_type) && t->tensor_type               ? t->tensor_type->shape
           : ONX_HAS(type, t, sparse_tensor_type) && t->sparse_tensor_type ? t->sparse_tensor_type->shape
                                                                           : NULL;
}

static symbol *find_symbol(const reader *r, onx_str name)
{
    CLI_TABLE_EACH (&r->symbol_names, cli_table_hash(&r->symbol_names, name, onx_str_of("")), i)
        if (onx_str_equal(r->symbols[i].name, name))
            return &r->symbols[i];
    return NULL;
}

/* Every symbol of the inputs, in their order; sizes are -1 until something says them. */
static onx_status list_symbols(reader *r)
{
    for (uint32_t k = 0; k < r->in->count; k++)
        for (const onx_type *t = onx_session_input(r->s, k).type; t; t = inner_type(t)) {
            const onx_tensor_shape *shape = shape_of(t);
            for (uint32_t i = 0; shape && i < shape->dim_count; i++) {
                const onx_str name = cli_dim_name(shape->dim[i]);
                if (!name.len || find_symbol(r, name))
                    continue;
                if (!CLI_GROW(r->symbols, r->symbol_count, r->symbol_room) ||
                    !cli_table_add(&r->symbol_names, cli_table_hash(&r->symbol_names, name, onx_str_of("")),
                                   r->symbol_count))
                    return no_memory(r);
                r->symbols[r->symbol_count++] = (symbol){ name, -1 };
            }
        }
    return ONX_OK;
}

static void hint_symbols(const reader *r)
{
    char known[200];
    size_t used = 0;
    for (uint32_t i = 0; i < r->symbol_count; i++) {
        onx_str dim = r->symbols[i].name;
        if (dim.len < 60 && used + dim.len + 4 < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "", ONX_ARG(dim));
    }
    if (used)
        cli_hint("the inputs have %s; --shape NAME=1x512 says all dimensions of an input", known);
    else
        cli_hint("the inputs have no symbolic dimensions; --shape NAME=1x512 says those of an input");
}

static onx_status read_dims(reader *r)
{
    onx_str name;
    int64_t size;
    int more;
    for (int i = 0; (more = cli_named_number(r->call, "dim", i, false, &name, &size)) > 0; i++) {
        symbol *known = find_symbol(r, name);
        if (!known) {
            cli_error(r->call, "--dim: no input has a dimension \"%.*s\"", ONX_ARG(name));
            hint_symbols(r);
            return ONX_E_MISUSE;
        }
        known->size = size;
    }
    return more == 0 ? ONX_OK : ONX_E_MISUSE;
}

static int64_t size_of(const void *user, onx_str dim)
{
    const symbol *known = find_symbol(user, dim);
    return known && known->size >= 0 ? known->size : 1;
}

/* Symbols get their sizes from an input that is given. What does not fit is for the session to say. */
static void learn_symbols(reader *r, uint32_t input)
{
    const onx_tensor_shape *shape = shape_of(onx_session_input(r->s, input).type);
    const onx_value *v = r->in->values[input];
    if (!shape || v->kind != ONX_VALUE_TENSOR || v->rank != shape->dim_count)
        return;
    for (uint32_t i = 0; i < v->rank; i++) {
        symbol *known = find_symbol(r, cli_dim_name(shape->dim[i]));
        if (known && known->size < 0)
            known->size = v->dims[i];
    }
}

/* ---- --shape and --range ---- */

static request *request_for(reader *r, uint32_t input)
{
    for (uint32_t i = 0; i < r->request_count; i++)
        if (r->requests[i].input == input)
            return &r->requests[i];
    r->requests[r->request_count] = (request){ .input = input };
    return &r->requests[r->request_count++];
}

bool cli_shape_read(const char *text, cli_shape *out)
{
    const size_t len = strlen(text);
    const bool brackets = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    const char *at = text + brackets, *end = text + len - brackets;
    out->rank = 0;
    if (at == end)
        return brackets;
    for (;;) {
        char *stop;
        errno = 0;
        const long long size = strtoll(at, &stop, 10);
        if (*at < '0' || *at > '9' || errno || out->rank == ONX_RANK_MAX)
            return false;
        out->dims[out->rank++] = size;
        if (stop == end)
            return true;
        if (*stop != 'x' && *stop != ',')
            return false;
        at = stop + 1;
    }
}

/* Does a shape that was asked for fit what the model declares, and what is known of its symbols? */
static onx_status fit_shape(reader *r, const char *text, const onx_type *type, const cli_shape *asked)
{
    const onx_tensor_shape *shape = shape_of(type);
    if (!shape)
        return ONX_OK;
    if (shape->dim_count != asked->rank) {
        cli_error(r->call, "--shape %s: the input has %u dimension%s", text, shape->dim_count,
                  shape->dim_count == 1 ? "" : "s");
        return ONX_E_MISUSE;
    }
    for (uint32_t i = 0; i < asked->rank; i++) {
        const onx_dimension *d = shape->dim[i];
        symbol *known = find_symbol(r, cli_dim_name(d));
        int64_t size = known ? known->size : ONX_HAS(dimension, d, dim_value) ? d->dim_value : -1;
        if (size >= 0 && size != asked->dims[i]) {
            const onx_str name = known ? known->name : onx_str_of("");
            cli_error(r->call, "--shape %s: dimension %u%s%.*s is %lld", text, i, known ? ", " : "", ONX_ARG(name),
                      (long long)size);
            return ONX_E_MISUSE;
        }
        if (known)
            known->size = asked->dims[i];
    }
    return ONX_OK;
}

/* NAME=REST of an option about an input that is made up. */
static onx_status named_request(reader *r, const char *option, const char *text, request **out, const char **rest)
{
    onx_str name;
    if (!cli_split(r->call, option, text, &name, rest))
        return ONX_E_MISUSE;
    const uint32_t input = find_input(r, name);
    if (input == CLI_NO_ENTRY)
        return no_input(r, name);
    *out = request_for(r, input);
    if (strcmp(option, "shape") == 0 ? (*out)->has_shape : (*out)->has_range) {
        cli_error(r->call, "--%s is given twice for \"%.*s\"", option, ONX_ARG(name));
        return ONX_E_MISUSE;
    }
    return ONX_OK;
}

static onx_status read_shapes(reader *r)
{
    const char *text, *rest;
    for (int i = 0; (text = cli_value_at(r->call, "shape", i)) != NULL; i++) {
        request *q;
        ONX_TRY(named_request(r, "shape", text, &q, &rest));
        if (!cli_shape_read(rest, &q->shape)) {
            cli_error(r->call, "--shape %s: a shape is like 1x512, or [] for a scalar", text);
            return ONX_E_MISUSE;
        }
        q->has_shape = true;
        ONX_TRY(fit_shape(r, text, onx_session_input(r->s, q->input).type, &q->shape));
    }
    return ONX_OK;
}

/* A decimal number, its end in *end. */
static bool parse_bound(const char *text, double *out, char **end)
{
    const size_t len = strspn(text, "0123456789.eE+-");
    *out = strtod(text, end);
    return *end != text && (size_t)(*end - text) == len && isfinite(*out);
}

static onx_status read_ranges(reader *r)
{
    const char *text, *rest;
    for (int i = 0; (text = cli_value_at(r->call, "range", i)) != NULL; i++) {
        request *q;
        char *end;
        ONX_TRY(named_request(r, "range", text, &q, &rest));
        if (!parse_bound(rest, &q->low, &end) || *end != ':' || !parse_bound(end + 1, &q->high, &end) || *end) {
            cli_error(r->call, "--range %s: a range is like 0:99 or -0.5:0.5", text);
            return ONX_E_MISUSE;
        }
        if (q->low > q->high) {
            cli_error(r->call, "--range %s is empty", text);
            return ONX_E_MISUSE;
        }
        q->has_range = true;
    }
    return ONX_OK;
}

/* ---- -i ---- */

static void give(reader *r, uint32_t input, onx_value *value)
{
    onx_value_free(r->in->values[input]);
    r->in->values[input] = value;
}

/* The shape that one number is spread over: what was asked for, or one that holds one element. */
static const cli_shape *shape_for_one(reader *r, uint32_t input, cli_shape *room)
{
    for (uint32_t i = 0; i < r->request_count; i++)
        if (r->requests[i].input == input && r->requests[i].has_shape)
            return &r->requests[i].shape;
    const onx_tensor_shape *shape = shape_of(onx_session_input(r->s, input).type);
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

static int32_t element_type(const onx_type *type)
{
    if (type && ONX_HAS(type, type, optional_type) && type->optional_type) /* what it holds may stand for it */
        type = type->optional_type->elem_type;
    if (type && ONX_HAS(type, type, tensor_type) && type->tensor_type)
        return type->tensor_type->elem_type;
    return type && ONX_HAS(type, type, sparse_tensor_type) && type->sparse_tensor_type
               ? type->sparse_tensor_type->elem_type
               : 0;
}

static onx_status give_literal(reader *r, uint32_t input, onx_str text)
{
    const onx_session_port port = onx_session_input(r->s, input);
    char what[160];
    cli_shape shape;
    onx_value *value;
    snprintf(what, sizeof what, "input \"%.*s\"", port.name.len < 100 ? (int)port.name.len : 100,
             port.name.ptr ? port.name.ptr : "");
    const int32_t dtype = element_type(port.type);
    if (!dtype) {
        cli_error(r->call, "%s: the model does not say that it is a tensor, so its value has to come from a file",
                  what);
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

/* A text for a string input needs no quotes, unless it looks like a file or is one. */
static bool is_plain_text(const onx_type *type, const char *text)
{
    static const char *const endings[] = { ".pb", ".npy", ".npz", ".json", ".textproto", ".onnxtxt" };
    if (element_type(type) != ONX_STRING || strcmp(text, "-") == 0 || is_there(text))
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (cli_ends_in(text, endings[i]))
            return false;
    return true;
}

/* A whole text, in the quotes that a literal has. */
static onx_status give_text(reader *r, uint32_t input, const char *text)
{
    const onx_session_port port = onx_session_input(r->s, input);
    cli_shape scalar = { 0 }, room;
    const cli_shape *shape = shape_for_one(r, input, &room);
    onx_value *value;
    if (!shape)
        shape = &scalar;
    ONX_TRY(onx_value_new_tensor(r->call->cx, (onx_dtype)element_type(port.type), shape->rank, shape->dims, &value));
    onx_status status = ONX_OK;
    for (uint64_t i = 0; i < value->count && status == ONX_OK; i++)
        status = onx_value_set_text(value, i, onx_str_of(text));
    if (status == ONX_OK)
        give(r, input, value);
    else
        onx_value_free(value);
    return status;
}

/* A .json file holds a message of ONNX, or a list. */
static onx_status give_json(reader *r, uint32_t input, const char *path)
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

/* What is known of a shape: by --shape, by the type, and by --dim; -1 for other dimensions. False: not even the rank.
 */
static bool known_shape(reader *r, uint32_t input, cli_shape *out)
{
    const onx_tensor_shape *shape = shape_of(onx_session_input(r->s, input).type);
    for (uint32_t i = 0; i < r->request_count; i++)
        if (r->requests[i].input == input && r->requests[i].has_shape) {
            *out = r->requests[i].shape;
            return true;
        }
    if (!shape || shape->dim_count > ONX_RANK_MAX)
        return false;
    out->rank = shape->dim_count;
    for (uint32_t i = 0; i < out->rank; i++) {
        const onx_dimension *d = shape->dim[i];
        const symbol *known = find_symbol(r, cli_dim_name(d));
        out->dims[i] = known ? known->size : ONX_HAS(dimension, d, dim_value) && d->dim_value >= 0 ? d->dim_value : -1;
    }
    return true;
}

static onx_status give_image(reader *r, uint32_t input, const char *path)
{
    cli_shape known;
    onx_value *value;
    const bool has_shape = known_shape(r, input, &known);
    ONX_TRY(cli_image_load(r->call, path, r->doc, onx_session_input(r->s, input), has_shape ? &known : NULL, &r->image,
                           &value));
    give(r, input, value);
    r->images++;
    return ONX_OK;
}

static onx_status give_one(reader *r, uint32_t input, const char *text)
{
    const onx_session_port port = onx_session_input(r->s, input);
    onx_value *value;
    if (!*text) {
        cli_error(r->call, "--input %.*s= has no value", ONX_ARG(port.name));
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

static onx_status give_folder(reader *r, const char *path)
{
    cli_fault fault = { 0 };
    uint32_t count;
    onx_status status = cli_data_set(r->call, r->s, path, false, r->in->values, &count, &fault);
    if (status == ONX_OK && !count) {
        cli_error(r->call, "%s: there is no input_0.pb in this folder", path);
        status = ONX_E_NOT_FOUND;
    } else if (status != ONX_OK) {
        cli_error(r->call, "%s: %s", fault.path ? fault.path : path, fault.text);
    }
    free(fault.path);
    return status;
}

typedef struct archive {
    reader *r;
    uint32_t found, others; /* members that name an input, and those that do not */
    char other[80];         /* the first of these */
} archive;

static bool names_input(void *user, onx_str name)
{
    archive *a = user;
    if (find_input(a->r, name) != CLI_NO_ENTRY)
        return true;
    if (!a->others++)
        snprintf(a->other, sizeof a->other, "%.*s", name.len < 70 ? (int)name.len : 70, name.ptr);
    return false;
}

/* The value is kept by a list of one, which gives a reference of its own. */
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
    give(a->r, find_input(a->r, name), own);
    a->found++;
    return ONX_OK;
}

/* An archive of one array for a model of one input needs no name. */
static onx_status give_only_member(reader *r, onx_str bytes)
{
    onx_value *value;
    ONX_TRY(onx_value_from_npz(r->call->cx, bytes, onx_session_input(r->s, 0).name, &value));
    give(r, 0, value);
    return ONX_OK;
}

static onx_status give_archive(reader *r, const char *path)
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
        cli_error(r->call, "%s: no member has the name of an input", path);
        hint_inputs(r);
    }
    return status;
}

static onx_status read_one_option(reader *r, const char *text)
{
    const char *equals = strchr(text, '=');
    for (const char *at = text + strlen(text); equals && at > equals;) { /* the longest name that there is */
        if (*--at != '=')
            continue;
        const uint32_t input = find_input(r, onx_str_make(text, (size_t)(at - text)));
        if (input != CLI_NO_ENTRY)
            return give_one(r, input, at + 1);
    }
    if (is_folder(text))
        return give_folder(r, text);
    if (cli_ends_in(text, ".npz") && (!equals || is_there(text)))
        return give_archive(r, text);
    if (equals && equals != text)
        return no_input(r, onx_str_make(text, (size_t)(equals - text)));
    cli_error(r->call, "--input needs NAME=VALUE, an .npz file or a folder, not \"%s\"", text);
    return ONX_E_MISUSE;
}

/* A file of one value is for the only input that no option gives. */
static onx_status read_set(reader *r)
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
    cli_error(r->call, "%s is the value of one input, and %u are not given", r->set, open);
    hint_inputs(r);
    return ONX_E_MISUSE;
}

static onx_status read_options(reader *r)
{
    const char *text;
    for (int i = 0; (text = cli_value_at(r->call, "input", i)) != NULL; i++)
        ONX_TRY(read_one_option(r, text));
    if (r->set)
        ONX_TRY(read_set(r));
    if (cli_image_option_given(r->call) && !r->images) {
        cli_error(r->call, "--%s is about images, and no input is one", cli_image_option_given(r->call));
        return ONX_E_MISUSE;
    }
    for (uint32_t i = 0; i < r->in->count; i++)
        if (r->in->values[i])
            learn_symbols(r, i);
    return ONX_OK;
}

/* ---- the rest is made up ---- */

static void tell_pattern(const cli_wish *wish)
{
    switch (wish->pattern) {
    case CLI_PATTERN_STEPS:
        fputs(", 0, 1, ...", stderr);
        break;
    case CLI_PATTERN_FLAT:
        fputs(", -1, 1, ...", stderr);
        break;
    case CLI_PATTERN_LIST:
        for (uint32_t i = 0; i < wish->count; i++)
            fprintf(stderr, ", %lld", (long long)wish->list[i]);
        break;
    case CLI_PATTERN_PARTS:
        fprintf(stderr, ", adding up to %lld", (long long)wish->list[0]);
        break;
    case CLI_PATTERN_CHOICE:
        fprintf(stderr, ", of %u categories", wish->choices->count);
        break;
    default:
        break;
    }
}

static void tell(reader *r, onx_str name, const onx_value *v, const cli_wish *wish, const char *op)
{
    enum { MOST = 12 };
    if (++r->told > MOST)
        return;
    fprintf(stderr, "%smade up:%s ", cli_color(stderr, CLI_CYAN), cli_color(stderr, CLI_PLAIN));
    cli_put_text(stderr, name);
    if (v->kind == ONX_VALUE_TENSOR) {
        fprintf(stderr, " %s", onx_dtype_name(v->dtype));
        for (uint32_t i = 0; i < v->rank; i++)
            fprintf(stderr, "%c%lld", i ? ',' : '[', (long long)v->dims[i]);
        fputs(v->rank ? "]" : "", stderr);
    }
    if (wish->has_range)
        fprintf(stderr, wish->low < wish->high ? ", %.9g to %.9g" : ", %.9g", wish->low, wish->high);
    else
        tell_pattern(wish);
    if (wish->hint || wish->pattern != CLI_PATTERN_RANGE)
        fprintf(stderr, " (for %s)", op);
    fputc('\n', stderr);
}

/* What is known of the shape of a made-up input, for cli_fit_shapes. */
static void ask_shape(reader *r, uint32_t input, cli_shape *out)
{
    const onx_value *given = r->in->values[input];
    const onx_tensor_shape *shape = shape_of(onx_session_input(r->s, input).type);
    if (given && given->kind == ONX_VALUE_TENSOR && given->rank <= ONX_RANK_MAX) {
        out->rank = given->rank;
        for (uint32_t i = 0; i < given->rank; i++) /* a scalar has no dims to copy from */
            out->dims[i] = given->dims[i];
        return;
    }
    if (!known_shape(r, input, out)) {
        out->rank = CLI_RANK_OPEN;
        return;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        const symbol *open = out->dims[i] < 0 ? find_symbol(r, cli_dim_name(shape->dim[i])) : NULL;
        if (out->dims[i] < 0)
            out->dims[i] = open ? -1 - (int64_t)(open - r->symbols) : CLI_DIM_OPEN;
    }
}

static const request *asked_for(const reader *r, uint32_t input)
{
    for (uint32_t i = 0; i < r->request_count; i++)
        if (r->requests[i].input == input)
            return &r->requests[i];
    return NULL;
}

/* What is asked for becomes a wish, now that the shapes of all inputs are chosen. */
static void wish_for(const cli_numbers *n, const cli_shape *shapes, cli_wish *wish)
{
    wish->has_range = wish->hint = n->pattern == CLI_PATTERN_RANGE;
    wish->pattern = n->pattern;
    wish->low = n->low;
    wish->high = n->high;
    wish->choices = n->choices;
    wish->count = n->count;
    for (uint32_t i = 0; i < n->count; i++) {
        const cli_shape *of = n->list[i].input ? &shapes[n->list[i].input - 1] : NULL;
        wish->list[i] = !of ? n->list[i].number : n->list[i].axis < of->rank ? of->dims[n->list[i].axis] : 1;
    }
}

static onx_status make_one(reader *r, uint32_t input, const cli_numbers *asked, const cli_shape *shapes)
{
    const cli_shape *shape = &shapes[input];
    const onx_session_port port = onx_session_input(r->s, input);
    const request *q = asked_for(r, input);
    const bool tensor = element_type(port.type) && !inner_type(port.type);
    cli_wish wish = { .seed = r->seed, .wave = r->flags & CLI_WAVE, .size_of = size_of, .user = r };
    wish.shape = tensor || (q && q->has_shape) ? shape : NULL;
    if (q && q->has_range) {
        wish.has_range = true;
        wish.low = q->low;
        wish.high = q->high;
    } else if (asked->op && (!asked->of_text || element_type(port.type) == ONX_STRING)) {
        wish_for(asked, shapes, &wish);
    }
    ONX_TRY(cli_make_up(r->call, port.type, port.name, &wish, &r->in->values[input]));
    if (!(r->flags & CLI_SILENT))
        tell(r, port.name, r->in->values[input], &wish, asked->op);
    return ONX_OK;
}

/* Which inputs are made up: those of --shape and --range, and with --random all that are required. */
static onx_status choose_made_up(reader *r, bool *wanted, bool *any)
{
    const bool all = (r->flags & CLI_MAKE_UP) || cli_has(r->call, "random");
    for (uint32_t i = 0; i < r->in->count; i++) {
        const onx_session_port port = onx_session_input(r->s, i);
        const request *q = asked_for(r, i);
        wanted[i] = !r->in->values[i] && (port.required || q);
        *any |= wanted[i];
        if (r->in->values[i] && q && q->has_range) { /* a shape spreads a single number */
            cli_error(r->call, "--range is for inputs that are made up, and \"%.*s\" is given", ONX_ARG(port.name));
            return ONX_E_MISUSE;
        }
        if (wanted[i] && !q && !all) {
            cli_error(r->call, "input \"%.*s\" is not given", ONX_ARG(port.name));
            cli_hint("give --input %.*s=VALUE, or --random for made-up values", ONX_ARG(port.name));
            return ONX_E_MISUSE;
        }
    }
    return ONX_OK;
}

static onx_status make_chosen(reader *r, const bool *wanted, cli_uses *uses, cli_shape *shapes)
{
    const uint32_t count = r->in->count;
    ONX_TRY(cli_uses_open(r->call, r->doc, r->s, uses));
    for (uint32_t i = 0; i < count; i++)
        ask_shape(r, i, &shapes[i]);
    ONX_TRY(cli_fit_shapes(r->call, r->doc, r->s, uses->list, shapes, count, r->symbol_count));
    for (uint32_t i = 0; i < count; i++)
        if (wanted[i])
            ONX_TRY(make_one(r, i, &uses->list[i].numbers, shapes));
    return ONX_OK;
}

static onx_status make_rest(reader *r)
{
    const size_t count = r->in->count;
    bool *wanted = calloc(count + 1, sizeof *wanted), any = false;
    cli_uses uses = { 0 };
    cli_shape *shapes = calloc(count + 1, sizeof *shapes);
    onx_status status = wanted && shapes ? choose_made_up(r, wanted, &any) : no_memory(r);
    if (status == ONX_OK && any)
        status = make_chosen(r, wanted, &uses, shapes);
    free(wanted);
    cli_uses_close(&uses);
    free(shapes);
    return status;
}

static onx_status list_inputs(reader *r)
{
    const uint32_t count = onx_session_input_count(r->s);
    r->in->values = calloc((size_t)count + 1, sizeof *r->in->values);
    r->requests = calloc((size_t)r->call->given_count + 1, sizeof *r->requests);
    if (!r->in->values || !r->requests)
        return no_memory(r);
    r->in->count = count;
    for (uint32_t i = 0; i < count; i++)
        if (!cli_table_add(&r->names, cli_table_hash(&r->names, onx_session_input(r->s, i).name, onx_str_of("")), i))
            return no_memory(r);
    return ONX_OK;
}

static onx_status read_all(reader *r)
{
    ONX_TRY(list_inputs(r));
    ONX_TRY(list_symbols(r));
    ONX_TRY(read_dims(r));
    ONX_TRY(read_shapes(r));
    ONX_TRY(read_ranges(r));
    if (!cli_number(r->call, "seed", 0, UINT64_MAX, &r->seed) || !cli_image_options_read(r->call, &r->image))
        return ONX_E_MISUSE;
    ONX_TRY(read_options(r));
    return make_rest(r);
}

onx_status cli_inputs_read(cli_call *call, onx_doc *doc, const onx_session *s, unsigned flags, cli_inputs *out)
{
    return cli_inputs_read_set(call, doc, s, NULL, flags, out);
}

onx_status cli_inputs_read_set(cli_call *call, onx_doc *doc, const onx_session *s, const char *set, unsigned flags,
                               cli_inputs *out)
{
    *out = (cli_inputs){ 0 };
    reader r = { .call = call,
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

/* cli_inputs_rest.c - the options --dim, --shape, --range and --random, and making up the inputs that are not given. */
#include "cli_inputs_reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- symbolic dimensions ---- */

static const onx_type *inner_type(const onx_type *t)
{
    return ONX_HAS(type, t, sequence_type) && t->sequence_type   ? t->sequence_type->elem_type
           : ONX_HAS(type, t, optional_type) && t->optional_type ? t->optional_type->elem_type
           : ONX_HAS(type, t, map_type) && t->map_type           ? t->map_type->value_type
                                                                 : NULL;
}

static cli_symbol *find_symbol(const cli_reader *r, onx_str name)
{
    CLI_TABLE_EACH (&r->symbol_names, cli_table_hash(&r->symbol_names, name, onx_str_of("")), i)
        if (onx_str_equal(r->symbols[i].name, name))
            return &r->symbols[i];
    return NULL;
}

/* Collects every symbol of the inputs, in their order; sizes are -1 until they are known. */
static onx_status list_symbols(cli_reader *r)
{
    for (uint32_t k = 0; k < r->in->count; k++)
        for (const onx_type *t = onx_session_input(r->s, k).type; t; t = inner_type(t)) {
            const onx_tensor_shape *shape = cli_declared_shape(t);
            for (uint32_t i = 0; shape && i < shape->dim_count; i++) {
                const onx_str name = cli_dim_name(shape->dim[i]);
                if (!name.len || find_symbol(r, name))
                    continue;
                if (!CLI_GROW(r->symbols, r->symbol_count, r->symbol_room) ||
                    !cli_table_add(&r->symbol_names, cli_table_hash(&r->symbol_names, name, onx_str_of("")),
                                   r->symbol_count))
                    return cli_reader_no_memory(r);
                r->symbols[r->symbol_count++] = (cli_symbol){ name, -1 };
            }
        }
    return ONX_OK;
}

static void hint_symbols(const cli_reader *r)
{
    char known[200];
    size_t used = 0;
    for (uint32_t i = 0; i < r->symbol_count; i++) {
        onx_str dim = r->symbols[i].name;
        if (dim.len < 60 && used + dim.len + 4 < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "", ONX_ARG(dim));
    }
    if (used)
        cli_hint("the inputs have %s; --shape NAME=1x512 gives all dimensions of an input", known);
    else
        cli_hint("the inputs have no symbolic dimensions; --shape NAME=1x512 gives those of an input");
}

static onx_status read_dims(cli_reader *r)
{
    onx_str name;
    int64_t size;
    int more;
    for (int i = 0; (more = cli_named_number(r->call, "dim", i, false, &name, &size)) > 0; i++) {
        cli_symbol *known = find_symbol(r, name);
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
    const cli_symbol *known = find_symbol(user, dim);
    return known && known->size >= 0 ? known->size : 1;
}

/* Symbols get their sizes from the inputs that are given. The session reports contradictions. */
void cli_reader_learn(cli_reader *r, uint32_t input)
{
    const onx_tensor_shape *shape = cli_declared_shape(onx_session_input(r->s, input).type);
    const onx_value *v = r->in->values[input];
    if (!shape || v->kind != ONX_VALUE_TENSOR || v->rank != shape->dim_count)
        return;
    for (uint32_t i = 0; i < v->rank; i++) {
        cli_symbol *known = find_symbol(r, cli_dim_name(shape->dim[i]));
        if (known && known->size < 0)
            known->size = v->dims[i];
    }
}

/* ---- --shape and --range ---- */

static cli_request *request_for(cli_reader *r, uint32_t input)
{
    for (uint32_t i = 0; i < r->request_count; i++)
        if (r->requests[i].input == input)
            return &r->requests[i];
    r->requests[r->request_count] = (cli_request){ .input = input };
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

/* Does a requested shape fit the declared shape and the known symbols? */
static onx_status fit_shape(cli_reader *r, const char *text, const onx_type *type, const cli_shape *asked)
{
    const onx_tensor_shape *shape = cli_declared_shape(type);
    if (!shape)
        return ONX_OK;
    if (shape->dim_count != asked->rank) {
        cli_error(r->call, "--shape %s: the input has %u dimension%s", text, shape->dim_count,
                  shape->dim_count == 1 ? "" : "s");
        return ONX_E_MISUSE;
    }
    for (uint32_t i = 0; i < asked->rank; i++) {
        const onx_dimension *d = shape->dim[i];
        cli_symbol *known = find_symbol(r, cli_dim_name(d));
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

/* Splits NAME=REST of an option about a made-up input. */
static onx_status named_request(cli_reader *r, const char *option, const char *text, cli_request **out,
                                const char **rest)
{
    onx_str name;
    if (!cli_split(r->call, option, text, &name, rest))
        return ONX_E_MISUSE;
    const uint32_t input = cli_reader_find(r, name);
    if (input == CLI_NO_ENTRY)
        return cli_reader_no_input(r, name);
    *out = request_for(r, input);
    if (strcmp(option, "shape") == 0 ? (*out)->has_shape : (*out)->has_range) {
        cli_error(r->call, "--%s is given twice for \"%.*s\"", option, ONX_ARG(name));
        return ONX_E_MISUSE;
    }
    return ONX_OK;
}

static onx_status read_shapes(cli_reader *r)
{
    const char *text, *rest;
    for (int i = 0; (text = cli_value_at(r->call, "shape", i)) != NULL; i++) {
        cli_request *q;
        ONX_TRY(named_request(r, "shape", text, &q, &rest));
        if (!cli_shape_read(rest, &q->shape)) {
            cli_error(r->call, "--shape %s: a shape is written like 1x512, or [] for a scalar", text);
            return ONX_E_MISUSE;
        }
        q->has_shape = true;
        ONX_TRY(fit_shape(r, text, onx_session_input(r->s, q->input).type, &q->shape));
    }
    return ONX_OK;
}

/* Parses a decimal number; *end is set behind it. */
static bool parse_bound(const char *text, double *out, char **end)
{
    const size_t len = strspn(text, "0123456789.eE+-");
    *out = strtod(text, end);
    return *end != text && (size_t)(*end - text) == len && isfinite(*out);
}

static onx_status read_ranges(cli_reader *r)
{
    const char *text, *rest;
    for (int i = 0; (text = cli_value_at(r->call, "range", i)) != NULL; i++) {
        cli_request *q;
        char *end;
        ONX_TRY(named_request(r, "range", text, &q, &rest));
        if (!parse_bound(rest, &q->low, &end) || *end != ':' || !parse_bound(end + 1, &q->high, &end) || *end) {
            cli_error(r->call, "--range %s: a range is written like 0:99 or -0.5:0.5", text);
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

const cli_request *cli_reader_request(const cli_reader *r, uint32_t input)
{
    for (uint32_t i = 0; i < r->request_count; i++)
        if (r->requests[i].input == input)
            return &r->requests[i];
    return NULL;
}

bool cli_reader_shape(const cli_reader *r, uint32_t input, cli_shape *out)
{
    const onx_tensor_shape *shape = cli_declared_shape(onx_session_input(r->s, input).type);
    const cli_request *q = cli_reader_request(r, input);
    if (q && q->has_shape) {
        *out = q->shape;
        return true;
    }
    if (!shape || shape->dim_count > ONX_RANK_MAX)
        return false;
    out->rank = shape->dim_count;
    for (uint32_t i = 0; i < out->rank; i++) {
        const onx_dimension *d = shape->dim[i];
        const cli_symbol *known = find_symbol(r, cli_dim_name(d));
        out->dims[i] = known ? known->size : ONX_HAS(dimension, d, dim_value) && d->dim_value >= 0 ? d->dim_value : -1;
    }
    return true;
}

onx_status cli_reader_requests(cli_reader *r)
{
    ONX_TRY(list_symbols(r));
    ONX_TRY(read_dims(r));
    ONX_TRY(read_shapes(r));
    return read_ranges(r);
}

/* ---- making up inputs ---- */

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

static void tell(cli_reader *r, onx_str name, const onx_value *v, const cli_wish *wish, const char *op)
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

/* The known dimensions of a made-up input, for cli_fit_shapes. */
static void ask_shape(cli_reader *r, uint32_t input, cli_shape *out)
{
    const onx_value *given = r->in->values[input];
    const onx_tensor_shape *shape = cli_declared_shape(onx_session_input(r->s, input).type);
    if (given && given->kind == ONX_VALUE_TENSOR && given->rank <= ONX_RANK_MAX) {
        out->rank = given->rank;
        for (uint32_t i = 0; i < given->rank; i++) /* a scalar has no dims to copy */
            out->dims[i] = given->dims[i];
        return;
    }
    if (!cli_reader_shape(r, input, out)) {
        out->rank = CLI_RANK_OPEN;
        return;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        const cli_symbol *open = out->dims[i] < 0 ? find_symbol(r, cli_dim_name(shape->dim[i])) : NULL;
        if (out->dims[i] < 0)
            out->dims[i] = open ? -1 - (int64_t)(open - r->symbols) : CLI_DIM_OPEN;
    }
}

/* Converts the demands on an input to the parameters of a made-up value, now that all shapes are chosen. */
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

static onx_status make_one(cli_reader *r, uint32_t input, const cli_numbers *asked, const cli_shape *shapes)
{
    const cli_shape *shape = &shapes[input];
    const onx_session_port port = onx_session_input(r->s, input);
    const cli_request *q = cli_reader_request(r, input);
    const bool tensor = cli_element_type(port.type) && !inner_type(port.type);
    cli_wish wish = { .seed = r->seed, .wave = r->flags & CLI_WAVE, .size_of = size_of, .user = r };
    wish.shape = tensor || (q && q->has_shape) ? shape : NULL;
    if (q && q->has_range) {
        wish.has_range = true;
        wish.low = q->low;
        wish.high = q->high;
    } else if (asked->op && (!asked->of_text || cli_element_type(port.type) == ONX_STRING)) {
        wish_for(asked, shapes, &wish);
    }
    ONX_TRY(cli_make_up(r->call, port.type, port.name, &wish, &r->in->values[input]));
    if (!(r->flags & CLI_SILENT))
        tell(r, port.name, r->in->values[input], &wish, asked->op);
    return ONX_OK;
}

/* Selects the inputs to make up: those of --shape and --range, and with --random all required ones. */
static onx_status choose_made_up(cli_reader *r, bool *wanted, bool *any)
{
    const bool all = (r->flags & CLI_MAKE_UP) || cli_has(r->call, "random");
    for (uint32_t i = 0; i < r->in->count; i++) {
        const onx_session_port port = onx_session_input(r->s, i);
        const cli_request *q = cli_reader_request(r, i);
        wanted[i] = !r->in->values[i] && (port.required || q);
        *any |= wanted[i];
        if (r->in->values[i] && q && q->has_range) { /* a single number fills the shape */
            cli_error(r->call, "--range applies to made-up inputs, but \"%.*s\" is given", ONX_ARG(port.name));
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

static onx_status make_chosen(cli_reader *r, const bool *wanted, cli_uses *uses, cli_shape *shapes)
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

onx_status cli_reader_make_up(cli_reader *r)
{
    const size_t count = r->in->count;
    bool *wanted = calloc(count + 1, sizeof *wanted), any = false;
    cli_uses uses = { 0 };
    cli_shape *shapes = calloc(count + 1, sizeof *shapes);
    onx_status status = wanted && shapes ? choose_made_up(r, wanted, &any) : cli_reader_no_memory(r);
    if (status == ONX_OK && any)
        status = make_chosen(r, wanted, &uses, shapes);
    free(wanted);
    cli_uses_close(&uses);
    free(shapes);
    return status;
}

/* cli_cost.c - the cost of running a model: the work of each node, from its description by onx_op_work. */
#include "cli_cost.h"
#include "cli_attribute.h"
#include "cli_table.h"

#include <onx/op.h>

#include <stdlib.h>

/* ---- sums of products ---- */

static const cost_term one = { .factor = 1 };

/* *a *= b; false if there are too many factors. */
static bool multiply(cost_term *a, const cost_term *b)
{
    cost_term out = { .factor = a->factor * b->factor };
    if (a->count + b->count > COST_FACTORS)
        return false;
    for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
        const bool first = k == b->count || (i < a->count && a->symbols[i] <= b->symbols[k]);
        out.symbols[out.count++] = first ? a->symbols[i++] : b->symbols[k++];
    }
    *a = out;
    return true;
}

static bool same_symbols(const cost_term *a, const cost_term *b)
{
    return a->count == b->count && memcmp(a->symbols, b->symbols, a->count * sizeof *a->symbols) == 0;
}

static onx_status add(cost_sum *sum, const cost_term *term)
{
    if (term->factor == 0)
        return ONX_OK;
    for (uint32_t i = 0; i < sum->count; i++)
        if (same_symbols(&sum->term[i], term)) {
            sum->term[i].factor += term->factor;
            return ONX_OK;
        }
    if (sum->count == COST_TERMS) {
        sum->more = true;
        return ONX_OK;
    }
    if ((sum->count & (sum->count - 1)) == 0) { /* there is room up to the next power of two */
        cost_term *more = realloc(sum->term, (sum->count ? 2u * sum->count : 1u) * sizeof *more);
        if (!more) {
            sum->scarce = true;
            return ONX_E_MEMORY;
        }
        sum->term = more;
    }
    sum->term[sum->count++] = *term;
    return ONX_OK;
}

bool cli_cost_number(const cost_sum *sum, double *out)
{
    *out = sum->count ? sum->term[0].factor : 0;
    return !sum->unknown && !sum->more && (!sum->count || (sum->count == 1 && !sum->term[0].count));
}

/* ---- sizes of values ---- */

typedef struct walk {
    cli_cost *cost;
    onx_infer *infer;
    const onx_graph *graph;
    struct scope *scope;
    unsigned depth;
} walk;

/* The initializers of a graph and of the graphs around it, by name. */
typedef struct scope {
    const struct scope *outer;
    const onx_graph *graph;
    cli_table table;
    bool *used;
} scope;

/* The index of the symbol; UINT32_MAX when out of memory. */
static uint32_t symbol_of(cli_cost *c, onx_str name)
{
    const uint32_t hash = cli_table_hash(&c->symbol_table, name, onx_str_of(""));
    CLI_TABLE_EACH (&c->symbol_table, hash, i) {
        if (onx_str_equal(c->symbols[i], name))
            return i;
    }
    if (!CLI_GROW(c->symbols, c->symbol_count, c->symbol_room))
        return UINT32_MAX;
    char *copy = malloc(name.len + 1); /* the name is copied because the inference result is freed earlier */
    if (!copy || !cli_table_add(&c->symbol_table, hash, c->symbol_count)) {
        free(copy);
        return UINT32_MAX;
    }
    memcpy(copy, name.ptr, name.len);
    c->symbols[c->symbol_count] = onx_str_make(copy, name.len);
    return c->symbol_count++;
}

static bool times_dim(cli_cost *c, const onx_dimension *d, cost_term *out)
{
    cost_term factor = one;
    if (ONX_HAS(dimension, d, dim_value)) {
        factor.factor = d->dim_value > 0 ? (double)d->dim_value : 0;
    } else if (ONX_HAS(dimension, d, dim_param) && onx_view(d->dim_param).len) {
        factor.symbols[0] = symbol_of(c, onx_view(d->dim_param));
        factor.count = 1;
        if (factor.symbols[0] == UINT32_MAX) {
            c->scarce = true;
            return false;
        }
    } else {
        return false;
    }
    return multiply(out, &factor);
}

/* The element type and dims of a value, from inference or from its initializer. */
typedef struct sized {
    onx_dtype dtype; /* ONX_UNDEFINED: nothing is known */
    bool has_rank;
    uint32_t rank;
    onx_dimension *const *dims; /* or */
    const int64_t *sizes;
} sized;

/* The initializer that a name refers to, and whether it was counted; NULL if it is none. */
static const onx_tensor *find_weight(const walk *w, onx_str name, bool **used)
{
    for (const scope *s = w->scope; s; s = s->outer) {
        CLI_TABLE_EACH (&s->table, cli_table_hash(&s->table, name, onx_str_of("")), i) {
            if (onx_str_equal(onx_view(s->graph->initializer[i]->name), name)) {
                *used = &s->used[i];
                return s->graph->initializer[i];
            }
        }
    }
    return NULL;
}

static sized value_size(const walk *w, onx_str name)
{
    bool *used;
    if (!name.len)
        return (sized){ 0 };
    const onx_type *type = onx_infer_type(w->infer, w->graph, name);
    const onx_type_tensor *t = type && ONX_HAS(type, type, tensor_type) ? type->tensor_type : NULL;
    const onx_tensor *weight = t ? NULL : find_weight(w, name, &used);
    if (weight)
        return (sized){ (onx_dtype)weight->data_type, true, weight->dims_count, NULL, weight->dims };
    if (!t || !ONX_HAS(type_tensor, t, shape) || !t->shape)
        return (sized){ .dtype = t ? (onx_dtype)t->elem_type : ONX_UNDEFINED };
    return (sized){ (onx_dtype)t->elem_type, true, t->shape->dim_count, t->shape->dim, NULL };
}

/* The dimension `index`, counted from the end if negative. */
static bool times_one_dim(const walk *w, sized v, int64_t index, cost_term *out)
{
    const int64_t at = index < 0 ? (int64_t)v.rank + index : index;
    if (!v.has_rank || at < 0 || at >= (int64_t)v.rank)
        return false;
    if (v.dims)
        return times_dim(w->cost, v.dims[at], out);
    out->factor *= v.sizes[at] > 0 ? (double)v.sizes[at] : 0;
    return true;
}

/* The product of the dims from `first` on. */
static bool times_dims_from(const walk *w, sized v, uint32_t first, cost_term *out)
{
    if (!v.has_rank || first > v.rank)
        return false;
    for (uint32_t i = first; i < v.rank; i++)
        if (!times_one_dim(w, v, i, out))
            return false;
    return true;
}

static bool times_elements(const walk *w, sized v, cost_term *out)
{
    return times_dims_from(w, v, 0, out);
}

/* ---- the work of a node ---- */

/* A node with the types of its operands. */
typedef struct site {
    const walk *w;
    const onx_node *node;
    const onx_op *op; /* NULL: not known */
} site;

static sized input(const site *s, uint32_t i)
{
    return i < s->node->input_count ? value_size(s->w, onx_view(s->node->input[i])) : (sized){ 0 };
}

static sized output(const site *s, uint32_t i)
{
    return i < s->node->output_count ? value_size(s->w, onx_view(s->node->output[i])) : (sized){ 0 };
}

/* Parses an integer at *text, which is advanced. */
static int64_t read_number(const char **text)
{
    const bool negative = **text == '-';
    int64_t n = 0;
    for (*text += negative; **text >= '0' && **text <= '9'; ++*text)
        n = 10 * n + (**text - '0');
    return negative ? -n : n;
}

/* Parses a name at *text, which is advanced. */
static size_t read_name(const char **text, char name[64])
{
    size_t len = 0;
    for (; (**text >= 'a' && **text <= 'z') || (**text >= 'A' && **text <= 'Z') || **text == '_'; ++*text)
        if (len < 63)
            name[len++] = **text;
    name[len] = 0;
    return len;
}

/* Parses an index, or a choice such as "transA?0:1" between two indexes, at *text, which is advanced. */
static int64_t read_index(const site *s, const char **text)
{
    char name[64];
    if (!read_name(text, name))
        return read_number(text);
    const bool first = cli_attribute_int(s->op, s->node, name) != 0;
    ++*text; /* the question mark */
    const int64_t yes = read_index(s, text);
    ++*text; /* the colon */
    const int64_t no = read_index(s, text);
    return first ? yes : no;
}

/* Inside of brackets: an index, a choice, or "1:" for all dims from there on. */
static bool times_dims_told(const site *s, sized v, const char **text, cost_term *out)
{
    const int64_t index = read_index(s, text);
    if (**text != ':')
        return times_one_dim(s->w, v, index, out);
    ++*text;
    return times_dims_from(s->w, v, (uint32_t)index, out);
}

/* A factor for a port: its number of elements, or some of its dims. */
static bool times_port(const site *s, bool is_input, const char **text, cost_term *out)
{
    const uint32_t at = (uint32_t)read_number(text);
    const sized v = is_input ? input(s, at) : output(s, at);
    if (**text != '[')
        return times_elements(s->w, v, out);
    ++*text;
    const bool known = times_dims_told(s, v, text, out);
    *text += strcspn(*text, "]") + 1;
    return known;
}

/* The value of an integer attribute, or the product of a list. */
static bool times_attribute(const site *s, const char *name, cost_term *out)
{
    uint32_t n = 0;
    const onx_attribute *a = onx_node_attribute(s->node, name);
    const int64_t *list = a ? onx_attribute_value(a, ONX_SLOT_INTS, &n) : NULL;
    const int64_t single = list ? 0 : cli_attribute_int(s->op, s->node, name);
    for (uint32_t i = 0; list && i < n; i++)
        out->factor *= list[i] > 0 ? (double)list[i] : 0;
    if (!list)
        out->factor *= single > 0 ? (double)single : 0;
    return list || single > 0;
}

/* The product of the sizes of all letters of the equation. An ellipsis stands for dims that are also in the output. */
static bool times_letters(const site *s, cost_term *out)
{
    uint32_t n;
    const onx_attribute *a = onx_node_attribute(s->node, "equation");
    const onx_bytes *text = a ? onx_attribute_value(a, ONX_SLOT_S, &n) : NULL;
    const onx_str equation = text ? onx_view(*text) : onx_str_of("");
    bool seen[256] = { false }, dots = false;
    uint32_t term = 0, axis = 0;
    for (size_t i = 0; i < equation.len; i++) {
        const unsigned char c = (unsigned char)equation.ptr[i];
        if (c == '-')
            break;
        if (c == ',') {
            term++;
            axis = 0;
        } else if (c == '.') {
            dots = true;
        } else if (c != ' ') {
            if (!seen[c] && !dots && !times_one_dim(s->w, input(s, term), (int)axis, out))
                return false;
            seen[c] = true;
            axis++;
        }
    }
    return equation.len && !dots;
}

/* Does the product refer to an input that the node omits? */
static bool leaves_out(const site *s, const char *text, size_t len)
{
    for (const char *c = text; (c = strstr(c, "in")) && c < text + len; c++)
        if ((c == text || c[-1] == ' ') && c[2] >= '0' && c[2] <= '9') {
            const char *digits = c + 2;
            const uint32_t at = (uint32_t)read_number(&digits);
            if (at >= s->node->input_count || !onx_view(s->node->input[at]).len)
                return true;
        }
    return false;
}

static bool times_factor(const site *s, const char **text, cost_term *out)
{
    char name[64];
    if (**text >= '0' && **text <= '9') {
        out->factor *= (double)read_number(text);
        return true;
    }
    if (!read_name(text, name))
        return false;
    const bool numbered = **text >= '0' && **text <= '9';
    if (numbered)
        return times_port(s, strcmp(name, "in") == 0, text, out);
    return strcmp(name, "letters") == 0 ? times_letters(s, out) : times_attribute(s, name, out);
}

/* Adds the work of the node according to onx_op_work; false if it is unknown. */
static bool count_work(const site *s, const char *text, cost_sum *sum)
{
    while (*text) {
        cost_term t = one;
        const size_t len = strcspn(text, "+");
        const char *end = text + len;
        if (leaves_out(s, text, len)) {
            text = end;
        } else {
            for (; text < end; text += strspn(text, " "))
                if (!times_factor(s, &text, &t))
                    return false;
            if (add(sum, &t) != ONX_OK)
                return false;
        }
        text += strspn(text, "+ ");
    }
    return true;
}

/* ---- traversal ---- */

static double tensor_bytes(const onx_tensor *t)
{
    uint64_t elements, bytes;
    return cli_tensor_size(t, &elements, &bytes) ? (double)bytes : 0;
}

/* The bytes of the value as a product; false if unknown. */
static bool times_bytes(const walk *w, sized v, cost_term *out)
{
    const unsigned bits = onx_dtype_bits(v.dtype);
    out->factor *= (double)bits / 8;
    return bits && times_elements(w, v, out);
}

/* The bytes that the node reads and writes; weights are added to the row. */
static void count_bytes(const site *s, cost_row *row, cost_node *told)
{
    const walk *w = s->w;
    told->bytes = 0;
    for (uint32_t i = 0; i < s->node->input_count; i++) {
        bool *used = NULL;
        const onx_str name = onx_view(s->node->input[i]);
        const onx_tensor *weight = name.len ? find_weight(w, name, &used) : NULL;
        cost_term t = one;
        if (weight) {
            const double bytes = tensor_bytes(weight);
            row->weights += *used ? 0 : (uint64_t)bytes;
            *used = true;
            told->bytes += told->bytes < 0 ? 0 : bytes;
            told->weights += told->macs > 0 ? bytes : 0;
        } else if (name.len) {
            const bool known = times_bytes(w, value_size(w, name), &t) && !t.count;
            told->bytes = known && told->bytes >= 0 ? told->bytes + t.factor : -1;
        }
    }
    const bool constant = cli_node_is(s->node, "Constant");
    for (uint32_t i = 0; i < s->node->output_count; i++) {
        cost_term t = one;
        if (!onx_view(s->node->output[i]).len)
            continue;
        const bool known = times_bytes(w, output(s, i), &t);
        if (!known)
            row->activations.unknown++;
        else if (constant && !t.count)
            row->weights += (uint64_t)t.factor;
        else if (add(&row->activations, &t) != ONX_OK)
            row->activations.unknown++;
        told->bytes = known && !t.count && told->bytes >= 0 ? told->bytes + t.factor : -1;
    }
}

static cost_row *row_of(cli_cost *c, const onx_node *node)
{
    onx_str domain = onx_view(node->domain);
    if (onx_str_is(domain, "ai.onnx"))
        domain = onx_str_of("");
    cli_tally *tally = cli_tally_at(&c->ops, domain, onx_view(node->op_type));
    if (!tally)
        return NULL;
    tally->count++;
    const uint32_t index = (uint32_t)(tally - c->ops.row);
    const uint32_t before = c->room;
    if (!CLI_GROW(c->rows, index, c->room))
        return NULL;
    if (c->room > before)
        memset(c->rows + before, 0, (c->room - before) * sizeof *c->rows);
    return &c->rows[index];
}

static onx_status walk_graph(cli_cost *c, onx_infer *infer, const onx_graph *g, const scope *outer, unsigned depth);

static onx_status walk_node(const walk *w, const onx_node *node)
{
    cli_cost *c = w->cost;
    cost_row *row = row_of(c, node);
    if (!row)
        return ONX_E_MEMORY;
    const site s = { .w = w, .node = node, .op = onx_op_newest(onx_view(node->domain), onx_view(node->op_type)) };
    cost_node told = { .node = node, .macs = -1 };
    cost_sum part = { 0 };
    const char *work = onx_op_work(s.op);
    const bool known = work && count_work(&s, work, &part);
    if (known && cli_cost_number(&part, &told.macs) == false)
        told.macs = -1;
    for (uint32_t i = 0; known && i < part.count; i++)
        ONX_TRY(add(&row->macs, &part.term[i]));
    row->macs.unknown += !known;
    free(part.term);
    c->inner_nodes += w->depth > 0;
    count_bytes(&s, row, &told);
    if (c->scarce || part.scarce || row->activations.scarce)
        return ONX_E_MEMORY;
    if (c->each)
        c->each(c->user, &told);
    for (uint32_t k = 0, n; k < node->attribute_count; k++) {
        onx_graph *const *body = onx_attribute_value(node->attribute[k], ONX_SLOT_G, &n);
        if (body && *body)
            ONX_TRY(walk_graph(c, w->infer, *body, w->scope, w->depth + 1));
    }
    return ONX_OK;
}

static onx_status walk_graph(cli_cost *c, onx_infer *infer, const onx_graph *g, const scope *outer, unsigned depth)
{
    scope s = { .outer = outer, .graph = g, .table = { .cx = c->call->cx } };
    const walk w = { .cost = c, .infer = infer, .graph = g, .scope = &s, .depth = depth };
    onx_status status = ONX_OK;
    s.used = calloc((size_t)g->initializer_count + 1, sizeof *s.used);
    if (!s.used)
        return ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < g->initializer_count; i++)
        if (!cli_table_add(&s.table, cli_table_hash(&s.table, onx_view(g->initializer[i]->name), onx_str_of("")), i))
            status = ONX_E_MEMORY;
    for (uint32_t i = 0; status == ONX_OK && i < g->node_count; i++)
        status = walk_node(&w, g->node[i]);
    free(s.table.slots);
    free(s.used);
    return status;
}

typedef struct ranked {
    double macs;
    uint32_t row;
} ranked;

static int by_macs(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;
    return a->macs < b->macs ? 1 : a->macs > b->macs ? -1 : a->row < b->row ? -1 : a->row > b->row;
}

/* Sorts by multiply-adds, the most first; terms with symbols are compared by their largest coefficient. */
static onx_status sort_rows(cli_cost *c)
{
    ranked *list = calloc((size_t)c->ops.count + 1, sizeof *list);
    c->order = calloc((size_t)c->ops.count + 1, sizeof *c->order);
    for (uint32_t i = 0; list && c->order && i < c->ops.count; i++) {
        list[i].row = i;
        for (uint32_t k = 0; k < c->rows[i].macs.count; k++)
            if (c->rows[i].macs.term[k].factor > list[i].macs)
                list[i].macs = c->rows[i].macs.term[k].factor;
    }
    if (list && c->order) {
        qsort(list, c->ops.count, sizeof *list, by_macs);
        for (uint32_t i = 0; i < c->ops.count; i++)
            c->order[i] = list[i].row;
    }
    const bool good = list && c->order;
    free(list);
    return good ? ONX_OK : ONX_E_MEMORY;
}

static onx_status add_up(cli_cost *c)
{
    ONX_TRY(sort_rows(c));
    for (uint32_t i = 0; i < c->ops.count; i++) {
        const cost_row *row = &c->rows[i];
        for (uint32_t k = 0; k < row->macs.count; k++)
            ONX_TRY(add(&c->total.macs, &row->macs.term[k]));
        for (uint32_t k = 0; k < row->activations.count; k++)
            ONX_TRY(add(&c->total.activations, &row->activations.term[k]));
        c->total.macs.unknown += row->macs.unknown;
        c->total.macs.more |= row->macs.more;
        c->total.activations.unknown += row->activations.unknown;
        c->total.activations.more |= row->activations.more;
        c->total.weights += row->weights;
    }
    return ONX_OK;
}

onx_status cli_cost_collect(cli_cost *c, onx_doc *doc, const onx_infer_fixed *fixed, uint32_t fixed_count)
{
    const onx_infer_options options = { .fixed = fixed, .fixed_count = fixed_count };
    const onx_model *m = onx_doc_model(doc);
    onx_infer *infer = NULL;
    c->ops.table.cx = c->symbol_table.cx = c->call->cx;
    ONX_TRY(onx_infer_new(c->call->cx, doc, &options, &infer));
    onx_status status = m->graph ? walk_graph(c, infer, m->graph, NULL, 0) : ONX_OK;
    onx_infer_free(infer);
    for (uint32_t i = 0; status == ONX_OK && i < m->functions_count; i++) {
        const cli_tally *t =
            cli_tally_find(&c->ops, onx_view(m->functions[i]->domain), onx_view(m->functions[i]->name));
        c->calls += t ? t->count : 0;
    }
    return status == ONX_OK ? add_up(c) : status;
}

void cli_cost_free(cli_cost *c)
{
    for (uint32_t i = 0; i < c->room; i++) {
        free(c->rows[i].macs.term);
        free(c->rows[i].activations.term);
    }
    free(c->total.macs.term);
    free(c->total.activations.term);
    for (uint32_t i = 0; i < c->symbol_count; i++)
        free((void *)(uintptr_t)c->symbols[i].ptr);
    free(c->symbols);
    free(c->symbol_table.slots);
    free(c->order);
    free(c->rows);
    cli_tallies_free(&c->ops);
}

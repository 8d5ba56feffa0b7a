/* cli_fit.c - chooses sizes for dimensions of made-up inputs that the model leaves open. */
#include "cli_uses.h"

#include <onx/infer.h>

#include <stdlib.h>

enum { MOST_NODES = 4000000 }; /* maximum number of nodes that inference visits, over all attempts */

typedef struct fitter {
    cli_call *call;
    onx_ctx *cx; /* its own context, so that diagnostics of inference are not printed */
    onx_model *model;
    const onx_session *s;
    const cli_use *known;
    const cli_shape *asked;
    cli_shape *chosen;
    const onx_type **types;
    const onx_type **outputs;
    uint32_t *first; /* of each symbol: the lowest axis where it occurs in an input */
    uint32_t count, symbols;
    uint64_t nodes; /* number of nodes and inputs: the cost of one attempt */
} fitter;

/* An attempt: dimensions on axes from `from` on, or those of a single group, have `size`, others 1; unknown ranks are
 * `rank`. A group is a symbol, or a dimension without a name. */
typedef struct attempt {
    uint32_t from, rank;
    uint32_t group; /* NO_GROUP: all dimensions from `from` on */
    int64_t size;
} attempt;
#define NO_GROUP UINT32_MAX

/* `unnamed` counts the dimensions without a name. */
static int64_t size_at(const fitter *f, const cli_shape *shape, uint32_t i, const attempt *a, uint32_t *unnamed)
{
    const int64_t dim = shape->dims[i];
    const uint32_t group = dim == CLI_DIM_OPEN ? f->symbols + (*unnamed)++ : (uint32_t)(-1 - dim);
    const uint32_t position = dim == CLI_DIM_OPEN ? i : f->first[group];
    return (a->group == NO_GROUP ? position >= a->from : group == a->group) ? a->size : 1;
}

static void choose(fitter *f, const attempt *a)
{
    uint32_t unnamed = 0;
    for (uint32_t k = 0; k < f->count; k++) {
        const cli_use *use = &f->known[k];
        cli_shape shape = f->asked[k];
        if (shape.rank == CLI_RANK_OPEN) {
            shape.rank = use->rank ? use->rank : a->rank;
            for (uint32_t i = 0; i < shape.rank; i++)
                shape.dims[i] = CLI_DIM_OPEN;
        }
        for (uint32_t i = 0; i < shape.rank; i++) {
            const bool demanded = shape.dims[i] == CLI_DIM_OPEN && shape.rank == use->rank && use->dims[i] > 0;
            if (demanded)
                shape.dims[i] = use->dims[i];
            else if (shape.dims[i] < 0)
                shape.dims[i] = size_at(f, &shape, i, a, &unnamed);
        }
        f->chosen[k] = shape;
    }
}

/* The number of problems that inference finds. */
static onx_status judge(fitter *f, size_t *wrong)
{
    onx_arena *arena = NULL;
    onx_doc *doc;
    ONX_TRY(onx_doc_new(f->cx, ONX_KIND_MODEL, &doc));
    arena = onx_doc_arena(doc);
    onx_status status = ONX_OK;
    for (uint32_t k = 0; k < f->count && status == ONX_OK; k++) {
        const onx_type *type = onx_session_input(f->s, k).type;
        f->types[k] = NULL;
        if (!type || !ONX_HAS(type, type, tensor_type) || !onx_session_input(f->s, k).required)
            continue;
        f->types[k] = onx_type_new_tensor(arena, (onx_dtype)type->tensor_type->elem_type, f->chosen[k].dims,
                                          (int)f->chosen[k].rank);
        status = f->types[k] ? ONX_OK : ONX_E_MEMORY;
    }
    const onx_infer_options options = { .registry = f->call->registry };
    onx_diag_clear(f->cx);
    if (status == ONX_OK)
        status = onx_infer_graph(f->cx, f->model, f->model->graph, f->types, f->count, &options, arena, f->outputs);
    *wrong = onx_diag_total(f->cx, ONX_WARNING) + onx_diag_total(f->cx, ONX_ERROR);
    onx_doc_free(doc);
    return status == ONX_E_MEMORY ? status : ONX_OK;
}

/* The best attempt so far, and the remaining budget. */
typedef struct search {
    attempt best;
    size_t least;
    uint64_t left;
    int64_t sizes[32];
    uint32_t size_count;
} search;

static onx_status try_sizes(fitter *f, search *s, uint32_t rank, uint32_t from, uint32_t group)
{
    for (uint32_t i = 0; i < s->size_count && s->least && s->left >= f->nodes; i++) {
        const attempt a = { from, rank, group, s->sizes[i] };
        size_t wrong;
        choose(f, &a);
        ONX_TRY(judge(f, &wrong));
        s->left -= f->nodes;
        if (wrong < s->least) {
            s->least = wrong;
            s->best = a;
        }
    }
    return ONX_OK;
}

/* Typical sizes in networks, and the sizes of other dimensions of the inputs. */
static void list_sizes(const fitter *f, search *s)
{
    static const int64_t usual[] = { 1, 2, 3, 4, 8, 16, 32, 64, 128, 224, 256, 512, 1024 };
    enum { MOST_SIZE = 4096 };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        s->sizes[s->size_count++] = usual[i];
    for (uint32_t k = 0; k < f->count; k++)
        for (uint32_t i = 0; f->asked[k].rank != CLI_RANK_OPEN && i < f->asked[k].rank; i++) {
            const int64_t size = f->asked[k].dims[i];
            bool listed = size < 1 || size > MOST_SIZE;
            for (uint32_t n = 0; n < s->size_count && !listed; n++)
                listed = s->sizes[n] == size;
            if (!listed && s->size_count < sizeof s->sizes / sizeof *s->sizes)
                s->sizes[s->size_count++] = size;
        }
}

/* Tries sizes until inference finds no problem; otherwise the first attempt with the fewest problems is chosen. Typical
 * image sizes come first, then single dimensions, then all except the first, then all. */
static onx_status try_all(fitter *f, bool open_rank, uint32_t unnamed)
{
    static const uint32_t ranks[] = { 1, 2, 4, 3, 0 };
    enum { MOST_GROUPS = 32 };
    search s = { .best = { 0, 1, NO_GROUP, 1 }, .least = SIZE_MAX, .left = MOST_NODES };
    const uint32_t groups = f->symbols + unnamed < MOST_GROUPS ? f->symbols + unnamed : MOST_GROUPS;
    list_sizes(f, &s);
    for (size_t r = 0; r < (open_rank ? sizeof ranks / sizeof *ranks : 1); r++) {
        ONX_TRY(try_sizes(f, &s, ranks[r], 2, NO_GROUP));
        for (uint32_t g = 0; g < groups; g++)
            ONX_TRY(try_sizes(f, &s, ranks[r], 0, g));
        ONX_TRY(try_sizes(f, &s, ranks[r], 1, NO_GROUP));
        ONX_TRY(try_sizes(f, &s, ranks[r], 0, NO_GROUP));
    }
    choose(f, &s.best);
    return ONX_OK;
}

static onx_status count_node(void *user, const onx_visit *at)
{
    fitter *f = user;
    f->nodes += at->kind == ONX_KIND_NODE;
    return ONX_OK;
}

static onx_status fit(fitter *f)
{
    bool open = false, open_rank = false;
    uint32_t unnamed = 0;
    for (uint32_t i = 0; i < f->symbols; i++)
        f->first[i] = ONX_RANK_MAX;
    for (uint32_t k = 0; k < f->count; k++) {
        const cli_shape *shape = &f->asked[k];
        open_rank |= shape->rank == CLI_RANK_OPEN && !f->known[k].rank;
        open |= shape->rank == CLI_RANK_OPEN;
        for (uint32_t i = 0; shape->rank != CLI_RANK_OPEN && i < shape->rank; i++) {
            open |= shape->dims[i] < 0;
            unnamed += shape->dims[i] == CLI_DIM_OPEN;
            if (shape->dims[i] < 0 && shape->dims[i] != CLI_DIM_OPEN && f->first[-1 - shape->dims[i]] > i)
                f->first[-1 - shape->dims[i]] = i;
        }
    }
    f->nodes = f->count + UINT64_C(1);
    if (open)
        ONX_TRY(onx_message_walk(f->cx, ONX_KIND_MODEL, f->model, count_node, f));
    return open ? try_all(f, open_rank, unnamed) : ONX_OK;
}

onx_status cli_fit_shapes(cli_call *call, onx_doc *doc, const onx_session *s, const cli_use *known, cli_shape *shapes,
                          uint32_t count, uint32_t symbols)
{
    onx_model *model = onx_doc_model(doc);
    fitter f = { .call = call,
                 .cx = onx_ctx_new(NULL),
                 .model = model,
                 .s = s,
                 .known = known,
                 .asked = shapes,
                 .count = count,
                 .symbols = symbols };
    f.chosen = calloc(count + 1u, sizeof *f.chosen);
    f.types = calloc(count + 1u, sizeof *f.types);
    f.outputs = calloc(model->graph->output_count + 1u, sizeof *f.outputs);
    f.first = calloc(symbols + 1u, sizeof *f.first);
    onx_status status = ONX_E_MEMORY;
    if (f.cx && f.chosen && f.types && f.outputs && f.first) {
        memcpy(f.chosen, shapes, count * sizeof *shapes);
        onx_ctx_set_limits(f.cx, onx_ctx_limits(call->cx));
        status = fit(&f);
        memcpy(shapes, f.chosen, count * sizeof *shapes);
    }
    if (status != ONX_OK)
        cli_error(call, "out of memory");
    free(f.chosen);
    free(f.types);
    free(f.outputs);
    free(f.first);
    onx_ctx_free(f.cx);
    return status;
}

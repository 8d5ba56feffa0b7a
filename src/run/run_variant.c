/* run_variant.c - builds sessions: one for the model itself, and a variant for each set of initializers that runs
 * override. The most recently used variants are kept. */
#include "run/run_choice.h"

/* ---- making and freeing ---- */

static onx_status make_locks(onxi_run_session *s)
{
    pthread_mutex_t *const locks[] = { &s->lock, &s->planning };
    while (s->locks_made < 2) {
        if (pthread_mutex_init(locks[s->locks_made], NULL) != 0)
            return ONX_E_MEMORY;
        s->locks_made++;
    }
    return ONX_OK;
}

/* May a root leave its packed weights to later sessions? Not with the caller's kernels, which may change, or with the
 * caller's allocator, whose memory has to be returned. */
static bool may_leave(const onxi_run_session *s)
{
    return ONXI_PLATFORM_KEEPS && !s->store && !s->options.lean_memory && !s->options.kernels &&
           onxi_ctx_allocator(s->cx)->resize == onxi_allocator_default.resize;
}

onx_status onxi_run_session_open(onxi_run_session *s, onx_ctx *own, onx_doc *doc, const onx_session_options *options,
                                 onxi_run_session *root, const bool *given)
{
    s->cx = own;
    s->root = root ? root : s;
    s->doc = doc;
    s->model = onx_doc_model(doc);
    if (options)
        s->options = *options;
    onx_limits limits = onx_ctx_limits(own);
    if (!s->options.memory)
        s->options.memory = limits.memory;
    limits.memory = s->options.memory;
    onx_ctx_set_limits(own, limits);
    s->threads = s->options.threads ? s->options.threads : onxi_platform_processors();
    s->threads = s->threads > 1024 ? 1024 : s->threads;
    if (!root)
        ONX_TRY(make_locks(s));
    ONX_TRY(onx_arena_new(own, &s->arena));
    s->widened = onxi_map_in_arena(s->arena);
    s->reader = onxi_doc_reader(doc, own, s->arena);
    if (root) {
        const uint32_t count = root->main->input_count;
        bool *copy = ONXI_ARRAY(s->arena, bool, count + 1u);
        if (!copy)
            return ONX_E_MEMORY;
        memcpy(copy, given, count * sizeof *copy);
        s->given = copy;
        s->unsorted = root->unsorted;
        s->kernels = root->kernels;
        s->takes_bytes = root->takes_bytes;
        s->reorders = root->reorders;
        s->reorder_count = root->reorder_count;
        s->once = root->once;
        s->functions = root->functions;
    } else {
        ONX_TRY(onxi_kernel_index_new(s->arena, s->options.kernels, s->options.plain, s->options.isa, &s->kernels));
        ONX_TRY(onxi_run_session_takes_bytes(s));
        ONX_TRY(onxi_run_session_reorders(s));
        for (const onx_kernel *k = s->options.kernels; k && k->op; k++)
            s->once |= (k->flags & ONX_KERNEL_ONCE) != 0;
        if (ONXI_PLATFORM_KEEPS && s->options.cache)
            ONX_TRY(onxi_store_open(own, s->options.cache, &s->store));
        s->options.cache = NULL; /* the string belongs to the caller */
        if (may_leave(s))
            s->leaves = onxi_left_begin(&s->left_secret);
        if (ONXI_RUN_MEASURES)
            ONX_TRY(onxi_run_choices_open(s));
        ONX_TRY(onxi_run_shelf_open(s));
        ONX_TRY(onxi_functions_index(s->arena, s->model->functions, s->model->functions_count, &s->functions));
    }
    return onxi_run_graph_build(s, s->model->graph, s->given, &s->main);
}

static void free_graph(onxi_run_session *s, onxi_run_graph *g)
{
    for (onxi_run_kept *kept; (kept = onxi_run_recent_take(&g->plans)) != NULL;)
        onxi_run_plan_free(s, (onxi_run_plan *)kept);
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < g->ops[i].graph_count; k++)
            free_graph(s, g->ops[i].graphs[k]);
}

static void free_variant(onxi_run_session *s)
{
    onx_ctx *cx = s->cx;
    onxi_run_session_close(s);
    onxi_release(cx, s, sizeof *s);
    onx_ctx_free(cx);
}

void onxi_run_session_close(onxi_run_session *s)
{
    for (onxi_run_kept *kept; (kept = onxi_run_recent_take(&s->variants)) != NULL;)
        free_variant((onxi_run_session *)kept);
    onxi_run_seats_clear(s);
    if (s->main)
        free_graph(s, s->main);
    for (onxi_run_owned *o = s->constants; o; o = o->next)
        onx_value_free(o->value);
    onxi_run_packs_free(&s->packs, s->cx);
    onxi_run_slabs_close(s);
    onxi_run_shelf_close(s);
    if (ONXI_RUN_MEASURES)
        onxi_run_choices_free(s->choices);
    if (ONXI_PLATFORM_KEEPS)
        onxi_store_close(s->store);
    for (onxi_run_expansion *x = s->expansions; x; x = x->next)
        onx_doc_free(x->doc);
    onxi_rewrites_close(&s->rewrites);
    onxi_doc_reader_close(&s->reader);
    onx_arena_free(s->arena);
    pthread_mutex_t *const locks[] = { &s->lock, &s->planning };
    while (s->locks_made)
        pthread_mutex_destroy(locks[--s->locks_made]);
}

/* ---- variants of a session ---- */

static bool overrides_these(const onxi_run_kept *kept, const void *user)
{
    const onxi_run_session *variant = (const onxi_run_session *)kept;
    const onx_value *const *inputs = user;
    for (uint32_t i = 0; i < variant->main->input_count; i++)
        if (variant->given[i] != (inputs[i] != NULL))
            return false;
    return true;
}

/* Finds the variant for these inputs, counts it as busy and moves it to the front; NULL: there is none. */
static onxi_run_session *find_variant(onxi_run_session *s, const onx_value *const *inputs)
{
    pthread_mutex_lock(&s->lock);
    onxi_run_kept *kept = onxi_run_recent_find(&s->variants, overrides_these, inputs);
    pthread_mutex_unlock(&s->lock);
    return (onxi_run_session *)kept;
}

static void add_variant(onxi_run_session *s, onxi_run_session *variant)
{
    pthread_mutex_lock(&s->lock);
    onxi_run_kept *old = onxi_run_recent_add(&s->variants, &variant->kept, ONXI_VARIANTS_MAX, ONXI_VARIANTS_MAX, 0);
    pthread_mutex_unlock(&s->lock);
    if (old)
        free_variant((onxi_run_session *)old);
}

/* The caller holds `planning` of the root. */
static onx_status make_variant(onxi_run_session *s, onx_ctx *cx, const onx_value *const *inputs,
                               const onx_run_options *options, onxi_run_session **out)
{
    const uint32_t count = s->main->input_count;
    onx_ctx *own = onxi_run_ctx_child(s->cx);
    onxi_run_session *variant = own ? onxi_resize(own, NULL, 0, sizeof *variant) : NULL;
    bool *given = own ? onxi_resize(own, NULL, 0, count + 1u) : NULL;
    onx_status status = variant && given ? ONX_OK : ONX_E_MEMORY;
    if (status == ONX_OK) {
        memset(variant, 0, sizeof *variant);
        for (uint32_t i = 0; i < count; i++)
            given[i] = inputs[i] != NULL;
        variant->watch = onxi_run_watch_new(cx, options);
        status = onxi_run_session_open(variant, own, s->doc, &s->options, s, given);
        variant->watch = (onxi_run_watch){ .timeout_ns = 0 };
        if (status != ONX_OK) {
            onxi_diag_move(cx, own);
            onxi_run_session_close(variant);
        }
    }
    if (own)
        onxi_release(own, given, count + 1u);
    if (status != ONX_OK && own) {
        onxi_release(own, variant, sizeof *variant);
        onx_ctx_free(own);
    }
    *out = status == ONX_OK ? variant : NULL;
    return status;
}

onx_status onxi_run_variant_take(onxi_run_session *s, onx_ctx *cx, const onx_value *const *inputs,
                                 const onx_run_options *options, onxi_run_session **out)
{
    bool any = false;
    for (uint32_t i = 0; i < s->main->input_count && !any; i++)
        any = inputs[i] && onxi_run_graph_knows(s->main, i);
    *out = s;
    if (!any || (*out = find_variant(s, inputs)))
        return ONX_OK;
    const onxi_run_watch watch = onxi_run_watch_new(cx, options);
    ONX_TRY(onxi_run_planning_begin(s, &watch, cx));
    onx_status status = ONX_OK;
    if (!(*out = find_variant(s, inputs))) { /* unless another thread has made it meanwhile */
        status = make_variant(s, cx, inputs, options, out);
        if (status == ONX_OK)
            add_variant(s, *out);
    }
    onxi_run_planning_end(s);
    return status;
}

void onxi_run_variant_let_go(onxi_run_session *s)
{
    if (s->root == s)
        return;
    pthread_mutex_lock(&s->root->lock);
    const bool last = onxi_run_recent_let_go(&s->kept);
    pthread_mutex_unlock(&s->root->lock);
    if (last)
        free_variant(s);
}

/* einsum.c - Einsum: combines the operands one after the other. Each operand is first laid out as matrices, where
 * labels that only it has are summed; a matrix product then combines it with the result so far. Floats of up to 32 bits
 * are computed in float, integers in 64 bits with wrap-around. */
#include "kernel/core/einsum.h"
#include "kernel/core/loops.h"

/* Labels are letters, and one for each axis that an ellipsis can stand for. */
enum { LETTERS = 52, LABELS = LETTERS + ONX_RANK_MAX };

/* A list of distinct labels. */
typedef struct labels {
    uint32_t count;
    uint8_t label[LABELS];
} labels;

/* How elements are gathered and summed: the kept and the summed axes, with their strides in the source. */
typedef struct layout {
    bool as_is; /* the source already has this order, so no copy is needed */
    uint32_t kept, summed;
    int64_t size[LABELS], step[LABELS]; /* kept axes first */
    uint64_t count, sums;               /* number of gathered elements, and of terms in each sum */
} layout;

/* Product i combines the result so far (left) with operand i (right). */
typedef struct product {
    layout left, right;
    uint64_t batch, m, n, k;
    uint64_t left_at, right_at, out_at; /* offsets in the workspace */
} product;

typedef struct einsum_params {
    uint32_t operands;
    int computed; /* element type of the computation */
    product *products;
    layout first, last; /* layout of a single operand; layout of the output */
    uint64_t first_at, last_at;
    int64_t size[LABELS];   /* size of each label; -1: the label is not used */
    labels *of;             /* distinct labels of each operand */
    uint32_t until[LABELS]; /* per label: the last operand that has it */
    labels out;
    onxi_einsum_product multiply;
    uint64_t piece; /* matrices (or rows, if there is one matrix) per unit of work; 0: one thread does all */
} einsum_params;

/* ---- the equation ---- */

static int letter_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

static bool holds(const labels *l, uint32_t label)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->label[i] == label)
            return true;
    return false;
}

static void add(labels *l, uint32_t label)
{
    if (!holds(l, label))
        l->label[l->count++] = (uint8_t)label;
}

/* Reads the labels of a term's axes in order. The labels of an ellipsis are the last ones of all. */
static bool read_term(const char **at, const char *end, uint32_t rank, uint32_t dots, uint8_t *out, uint32_t *count,
                      bool *ellipsis)
{
    uint32_t n = 0;
    *ellipsis = false;
    for (; *at < end && **at != ',' && **at != '-'; (*at)++) {
        int letter = letter_of(**at);
        if (**at == ' ')
            continue;
        if (**at == '.') {
            if (*ellipsis || end - *at < 3 || (*at)[1] != '.' || (*at)[2] != '.' || n + dots > rank)
                return false;
            *ellipsis = true;
            for (uint32_t i = 0; i < dots; i++)
                out[n++] = (uint8_t)(LABELS - dots + i);
            *at += 2;
            continue;
        }
        if (letter < 0 || n == rank)
            return false;
        out[n++] = (uint8_t)letter;
    }
    *count = n;
    return true;
}

/* The number of axes that the ellipsis of the term at `at` stands for. */
static uint32_t dots_of(const char *at, const char *end, uint32_t rank)
{
    uint32_t letters = 0;
    bool any = false;
    for (; at < end && *at != ',' && *at != '-'; at++) {
        letters += letter_of(*at) >= 0;
        any |= *at == '.';
    }
    return any && rank > letters ? rank - letters : 0;
}

static onx_status take_operand(onx_prepare *p, einsum_params *q, uint32_t i, const uint8_t *term, uint32_t count)
{
    const onx_value *x = p->inputs[i];
    if (count != x->rank)
        return onx_prepare_fail(p, ONX_E_INVALID, "term %u has %u labels, the operand rank %u", i, count, x->rank);
    for (uint32_t d = 0; d < count; d++) {
        int64_t *size = &q->size[term[d]];
        if (*size >= 0 && *size != 1 && x->dims[d] != 1 && *size != x->dims[d])
            return onx_prepare_fail(p, ONX_E_INVALID, "dimension %u of operand %u is %lld, expected %lld", d, i,
                                    (long long)x->dims[d], (long long)*size);
        *size = *size < 0 || *size == 1 ? x->dims[d] : *size;
        add(&q->of[i], term[d]);
        q->until[term[d]] = i;
    }
    return ONX_OK;
}

/* The output of an equation without "->": the axes of the ellipsis, then the letters that occur once, in alphabetical
 * order. */
static void implied_output(einsum_params *q, const uint32_t *seen)
{
    for (uint32_t l = LETTERS; l < LABELS; l++)
        if (q->size[l] >= 0)
            add(&q->out, l);
    for (uint32_t l = 0; l < LETTERS; l++)
        if (seen[l] == 1)
            add(&q->out, l);
}

static onx_status read_equation(onx_prepare *p, einsum_params *q, uint8_t (*terms)[ONX_RANK_MAX])
{
    onx_str text = onx_prepare_text(p, "equation");
    const char *at = text.ptr, *end = onxi_str_end(text);
    uint32_t seen[LABELS] = { 0 }, count;
    bool ellipsis;
    for (uint32_t l = 0; l < LABELS; l++)
        q->size[l] = -1;
    for (uint32_t i = 0; i < p->input_count; i++) {
        uint32_t rank = p->inputs[i]->rank;
        if ((i && (at == end || *at++ != ',')) ||
            !read_term(&at, end, rank, dots_of(at, end, rank), terms[i], &count, &ellipsis))
            return onx_prepare_fail(p, ONX_E_INVALID, "the equation \"%.*s\" does not fit operand %u of rank %u",
                                    ONX_ARG(text), i, rank);
        ONX_TRY(take_operand(p, q, i, terms[i], count));
        for (uint32_t d = 0; d < count; d++)
            seen[terms[i][d]]++;
    }
    uint32_t dots = 0;
    for (uint32_t l = LETTERS; l < LABELS; l++)
        dots += q->size[l] >= 0;
    uint8_t out[ONX_RANK_MAX];
    if (at == end) {
        implied_output(q, seen);
        return ONX_OK;
    }
    if (end - at < 2 || at[0] != '-' || at[1] != '>')
        return onx_prepare_fail(p, ONX_E_INVALID, "the equation is \"%.*s\"", ONX_ARG(text));
    at += 2;
    if (!read_term(&at, end, ONX_RANK_MAX, dots, out, &count, &ellipsis) || at != end)
        return onx_prepare_fail(p, ONX_E_INVALID, "the output of \"%.*s\" is malformed", ONX_ARG(text));
    for (uint32_t d = 0; d < count; d++) {
        if (holds(&q->out, out[d]) || q->size[out[d]] < 0)
            return onx_prepare_fail(p, ONX_E_INVALID, "label %u of the output is repeated, or occurs in no operand", d);
        add(&q->out, out[d]);
    }
    return ONX_OK;
}

onx_status onxi_einsum_permutation(onx_prepare *p, bool *is_one, int64_t *perm)
{
    einsum_params q = { .operands = 1 };
    uint8_t terms[1][ONX_RANK_MAX] = { { 0 } };
    *is_one = false;
    if (p->input_count != 1 || !(q.of = ONXI_NEW(p->arena, labels)))
        return p->input_count != 1 ? ONX_OK : ONX_E_MEMORY;
    ONX_TRY(read_equation(p, &q, terms));
    const uint32_t rank = p->inputs[0]->rank;
    if (q.of[0].count != rank || q.out.count != rank)
        return ONX_OK;
    for (uint32_t d = 0; d < rank; d++)
        for (uint32_t from = 0; from < rank; from++)
            if (terms[0][from] == q.out.label[d])
                perm[d] = from;
    *is_one = true;
    return ONX_OK;
}

/* ---- layouts ---- */

/* Adds an axis for a label; its stride is set later. */
static bool add_axis(layout *l, const einsum_params *q, uint32_t label, bool kept)
{
    uint32_t at = l->kept + l->summed;
    l->size[at] = q->size[label];
    l->kept += kept;
    l->summed += !kept;
    return onxi_mul_u64(kept ? l->count : l->sums, (uint64_t)q->size[label], kept ? &l->count : &l->sums);
}

/* A layout that keeps the labels `kept` of `all` and sums over the others. */
static bool make_layout(const einsum_params *q, const labels *all, const labels *kept, layout *l, labels *order)
{
    bool fits = true;
    memset(l, 0, sizeof *l);
    l->count = l->sums = 1;
    *order = *kept;
    for (uint32_t i = 0; i < kept->count; i++)
        fits &= add_axis(l, q, kept->label[i], true);
    for (uint32_t i = 0; i < all->count; i++)
        if (!holds(kept, all->label[i])) {
            fits &= add_axis(l, q, all->label[i], false);
            add(order, all->label[i]);
        }
    return fits;
}

/* Strides in an operand: a label that occurs twice runs along the diagonal; axes of size 1 are broadcast. */
static void steps_of_operand(layout *l, const labels *order, const onx_value *x, const uint8_t *term)
{
    int64_t stride[ONX_RANK_MAX];
    onxi_strides(x, stride);
    for (uint32_t i = 0; i < order->count; i++)
        for (uint32_t d = 0; d < x->rank; d++)
            if (term[d] == order->label[i] && x->dims[d] != 1)
                l->step[i] += stride[d];
}

/* Strides in the packed result of a product, whose labels are in the order of `from`. */
static void steps_of_packed(const einsum_params *q, layout *l, const labels *order, const labels *from)
{
    uint64_t stride = 1;
    for (uint32_t k = from->count; k-- > 0;) {
        for (uint32_t i = 0; i < order->count; i++)
            if (order->label[i] == from->label[k])
                l->step[i] = (int64_t)stride;
        stride *= (uint64_t)q->size[from->label[k]];
    }
}

/* Sets as_is: elements have the type of the computation and are read in order, without sums. */
static void look_for_order(const einsum_params *q, int dtype, layout *l)
{
    uint64_t step = 1;
    l->as_is = dtype == q->computed && l->sums == 1;
    for (uint32_t a = l->kept; a-- > 0;) {
        l->as_is &= l->size[a] == 1 || l->step[a] == (int64_t)step;
        step *= (uint64_t)l->size[a];
    }
}

/* Is the label needed after operand i, by the output or by a later operand? */
static bool is_needed(const einsum_params *q, uint32_t label, uint32_t i)
{
    return holds(&q->out, label) || q->until[label] > i;
}

static uint64_t size_of(const einsum_params *q, const labels *l)
{
    uint64_t size = 1;
    for (uint32_t i = 0; i < l->count; i++)
        size *= (uint64_t)q->size[l->label[i]];
    return size;
}

static void append(labels *to, const labels *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        add(to, from->label[i]);
}

typedef struct split {
    labels batch, m, n, k;
} split;

/* Divides labels into batch (needed, in both operands), k (in both, to be summed), m and n (needed, in one operand). */
static void split_labels(const einsum_params *q, const labels *a, const labels *b, uint32_t i, split *s)
{
    memset(s, 0, sizeof *s);
    for (uint32_t x = 0; x < a->count; x++) {
        bool both = holds(b, a->label[x]), needed = is_needed(q, a->label[x], i);
        if (both)
            add(needed ? &s->batch : &s->k, a->label[x]);
        else if (needed)
            add(&s->m, a->label[x]);
    }
    for (uint32_t x = 0; x < b->count; x++)
        if (!holds(a, b->label[x]) && is_needed(q, b->label[x], i))
            add(&s->n, b->label[x]);
}

/* ---- preparing ---- */

/* Reserves `count` elements; false on overflow. */
static bool reserve(uint64_t *total, uint64_t count, uint64_t *at)
{
    uint64_t bytes;
    *at = *total;
    return onxi_mul_u64(count, 8, &bytes) && bytes < UINT64_MAX / 4 &&
           onxi_add_u64(*total, (bytes + 63) & ~63ull, total);
}

static bool plan_product(const onx_prepare *p, einsum_params *q, uint32_t i, labels *now, const uint8_t *first_term,
                         const uint8_t *term, uint64_t *total)
{
    product *r = &q->products[i - 1];
    split s;
    split_labels(q, now, &q->of[i], i, &s);
    labels left = s.batch, right = s.batch, out = s.batch, order;
    append(&left, &s.m);
    append(&left, &s.k);
    append(&right, &s.k);
    append(&right, &s.n);
    append(&out, &s.m);
    append(&out, &s.n);
    bool fits = make_layout(q, now, &left, &r->left, &order);
    if (i == 1)
        steps_of_operand(&r->left, &order, p->inputs[0], first_term);
    else
        steps_of_packed(q, &r->left, &order, now);
    fits &= make_layout(q, &q->of[i], &right, &r->right, &order);
    steps_of_operand(&r->right, &order, p->inputs[i], term);
    look_for_order(q, i == 1 ? p->inputs[0]->dtype : q->computed, &r->left);
    look_for_order(q, p->inputs[i]->dtype, &r->right);
    r->batch = size_of(q, &s.batch);
    r->m = size_of(q, &s.m);
    r->n = size_of(q, &s.n);
    r->k = size_of(q, &s.k);
    uint64_t made;
    fits = fits && onxi_mul_u64(r->batch, r->m, &made) && onxi_mul_u64(made, r->n, &made);
    *now = out;
    return fits && reserve(total, r->left.count, &r->left_at) && reserve(total, r->right.count, &r->right_at) &&
           reserve(total, made, &r->out_at);
}

static int computed_in(int dtype)
{
    onx_dtype_class class = onx_dtype_class_of(dtype);
    return dtype == ONX_DOUBLE ? ONX_DOUBLE : class == ONX_CLASS_FLOATING ? ONX_FLOAT : ONX_INT64;
}

static onx_status check_output(onx_prepare *p, const einsum_params *q)
{
    const onx_value *y = p->outputs[0];
    bool same = y->rank == q->out.count && y->dtype == p->inputs[0]->dtype;
    for (uint32_t d = 0; same && d < y->rank; d++)
        same = y->dims[d] == q->size[q->out.label[d]];
    return same ? ONX_OK : onx_prepare_fail(p, ONX_E_INVALID, "the output does not have the labels of the equation");
}

enum { PIECE_ROWS = 48, PIECE_COST = 1 << 17 }; /* rows of whole tiles; multiplications that justify a thread */

/* Can a unit of `count` elements be laid out independently, from any multiple of `count`? */
static bool lays_out_from(const layout *l, uint64_t count)
{
    return l->as_is || (l->kept && l->size[l->kept - 1] > 0 && count % (uint64_t)l->size[l->kept - 1] == 0);
}

/* Divides the work for threads, if there are two operands and no layout step before or after the product: by matrices,
 * or, if there is one matrix and the right operand is in the needed order, by its rows. */
static void cut(onx_prepare *p, einsum_params *q)
{
    const product *r = &q->products[0];
    if (q->operands != 2 || !q->last.as_is || p->outputs[0]->dtype != q->computed)
        return;
    const uint64_t cost = r->m * r->n * (r->k ? r->k : 1);
    if (r->batch > 1 && lays_out_from(&r->left, r->m * r->k) && lays_out_from(&r->right, r->k * r->n)) {
        q->piece = 1;
        p->rows = r->batch;
        p->grain = PIECE_COST / (cost + 1) + 1;
    } else if (r->batch == 1 && r->m > PIECE_ROWS && r->right.as_is && lays_out_from(&r->left, PIECE_ROWS * r->k)) {
        q->piece = PIECE_ROWS;
        p->rows = (r->m + PIECE_ROWS - 1) / PIECE_ROWS;
        p->grain = PIECE_COST / (cost / p->rows + 1) + 1;
    }
}

onx_status onxi_einsum_prepare(onx_prepare *p)
{
    einsum_params *q = ONXI_NEW(p->arena, einsum_params);
    uint8_t(*terms)[ONX_RANK_MAX] =
        (uint8_t(*)[ONX_RANK_MAX])onxi_arena_array(p->arena, p->input_count + 1u, sizeof *terms);
    if (!q || !terms || !(q->products = ONXI_ARRAY(p->arena, product, p->input_count + 1u)) ||
        !(q->of = ONXI_ARRAY(p->arena, labels, p->input_count + 1u)))
        return ONX_E_MEMORY;
    q->operands = p->input_count;
    q->multiply = p->kernel->body ? *(const onxi_einsum_product *)p->kernel->body : onxi_gemm_run;
    for (uint32_t i = 0; i < p->input_count; i++)
        if (!p->inputs[i] || p->inputs[i]->dtype != p->inputs[0]->dtype)
            return onx_prepare_fail(p, ONX_E_INVALID, "the type of operand %u differs from that of the first", i);
    ONX_TRY(read_equation(p, q, terms));
    ONX_TRY(check_output(p, q));
    p->params = q;
    q->computed = computed_in(p->inputs[0]->dtype);
    p->rows = p->outputs[0]->count ? 1 : 0;
    if (!p->rows)
        return ONX_OK;
    labels now = q->of[0], order = { 0 };
    uint64_t total = 0;
    bool fits = true;
    for (uint32_t i = 1; i < q->operands && fits; i++)
        fits = plan_product(p, q, i, &now, terms[0], terms[i], &total);
    fits = fits && make_layout(q, &now, &q->out, &q->last, &order);
    if (q->operands == 1)
        steps_of_operand(&q->last, &order, p->inputs[0], terms[0]);
    else
        steps_of_packed(q, &q->last, &order, &now);
    look_for_order(q, q->operands == 1 ? p->inputs[0]->dtype : q->computed, &q->last);
    fits = fits && reserve(&total, q->last.count, &q->last_at);
    p->workspace = total;
    p->thread_workspace = onxi_gemm_workspace(ONX_DOUBLE, 1, 1, 1);
    if (fits)
        cut(p, q);
    else
        return onx_prepare_fail(p, ONX_E_LIMIT, "the intermediate results are too large");
    return ONX_OK;
}

/* ---- running ---- */

/* Gathers elements first .. last - 1 of x by the layout. Both are multiples of the size of the last axis. */
typedef void (*gather_loop)(const layout *l, const void *x, void *out, uint64_t first, uint64_t last);

/* The offset of element `index` of the layout, and its position along each axis. */
static int64_t find(const layout *l, uint64_t index, int64_t *pos)
{
    int64_t at = 0;
    for (uint32_t a = l->kept; a-- > 0 && index;) {
        pos[a] = (int64_t)(index % (uint64_t)l->size[a]);
        index /= (uint64_t)l->size[a];
        at += pos[a] * l->step[a];
    }
    return at;
}
#define GATHER(op, d, T, A, L)                                                                                         \
    static void op##_##d(const layout *l, const void *px, void *pout, uint64_t first, uint64_t last)                   \
    {                                                                                                                  \
        const T *x = (const T *)px;                                                                                    \
        A *out = (A *)pout;                                                                                            \
        int64_t pos[LABELS] = { 0 }, at = find(l, first, pos);                                                         \
        /* without sums, lines of the last axis are one loop each */                                                   \
        const uint32_t lines = l->sums == 1 && l->kept ? l->kept - 1 : l->kept;                                        \
        const uint64_t length = lines < l->kept ? (uint64_t)l->size[lines] : 1;                                        \
        for (uint64_t i = first; i < last; i += length) {                                                              \
            for (uint64_t k = 0; lines < l->kept && k < length; k++)                                                   \
                out[i + k] = (A)L(x[at + (int64_t)k * l->step[lines]]);                                                \
            A sum = 0;                                                                                                 \
            for (uint64_t k = 0; lines == l->kept && k < l->sums; k++) {                                               \
                sum += (A)L(x[at]);                                                                                    \
                for (uint32_t a = l->kept + l->summed; a-- > l->kept;) {                                               \
                    at += l->step[a];                                                                                  \
                    if (++pos[a] < l->size[a])                                                                         \
                        break;                                                                                         \
                    at -= l->step[a] * l->size[a];                                                                     \
                    pos[a] = 0;                                                                                        \
                }                                                                                                      \
            }                                                                                                          \
            if (lines == l->kept)                                                                                      \
                out[i] = sum;                                                                                          \
            for (uint32_t a = lines; a-- > 0;) {                                                                       \
                at += l->step[a];                                                                                      \
                if (++pos[a] < l->size[a])                                                                             \
                    break;                                                                                             \
                at -= l->step[a] * l->size[a];                                                                         \
                pos[a] = 0;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }
#define GATHER_FLOAT(op, d, T, C, M, L, S)   GATHER(op, d, T, C, L)
#define GATHER_INTEGER(op, d, T, C, M, L, S) GATHER(op, d, T, uint64_t, L)
ONXI_EACH_FLOAT(GATHER_FLOAT, gather)
ONXI_EACH_SIGNED(GATHER_INTEGER, gather)
ONXI_EACH_UNSIGNED(GATHER_INTEGER, gather)
#define ENTRY(op, d, T, C, M, L, S) [ONX_##d] = op##_##d,
static const gather_loop gather_loops[ONX_DTYPE_COUNT] = { ONXI_EACH_FLOAT(ENTRY, gather) ONXI_EACH_SIGNED(
    ENTRY, gather) ONXI_EACH_UNSIGNED(ENTRY, gather) };

/* Lays out matrices from .. to - 1 of an operand, of `each` elements each. */
static const char *lay_out(const layout *l, int dtype, const void *x, char *space, uint64_t from, uint64_t to,
                           uint64_t each)
{
    if (l->as_is)
        return x;
    gather_loops[dtype](l, x, space, from * each, to * each);
    return space;
}

/* Multiplies rows row .. end - 1 of matrix b. */
static void multiply(const onx_work *work, const product *r, const char *left, const char *right, char *out, void *pack,
                     uint64_t b, uint64_t row, uint64_t end)
{
    const einsum_params *q = work->params;
    const uint64_t width = q->computed == ONX_FLOAT ? 4 : 8;
    const onxi_gemm g = { .dtype = q->computed,
                          .m = end - row,
                          .n = r->n,
                          .k = r->k,
                          .a = left + (b * r->m + row) * r->k * width,
                          .b = right + b * r->k * r->n * width,
                          .c = out + (b * r->m + row) * r->n * width,
                          .a_row = (int64_t)r->k,
                          .a_col = 1,
                          .b_row = (int64_t)r->n,
                          .b_col = 1,
                          .c_row = (int64_t)r->n,
                          .work = work };
    if (g.m && g.n)
        q->multiply(&g, pack);
}

/* Computes units of work of the only product. */
static void run_pieces(onx_work *work, uint64_t first, uint64_t last)
{
    const einsum_params *q = work->params;
    const product *r = &q->products[0];
    const onx_value *a = work->inputs[0], *b = work->inputs[1];
    char *space = work->workspace, *out = work->outputs[0]->data;
    if (r->batch > 1) {
        const char *left = lay_out(&r->left, a->dtype, a->data, space + r->left_at, first, last, r->m * r->k);
        const char *right = lay_out(&r->right, b->dtype, b->data, space + r->right_at, first, last, r->k * r->n);
        for (uint64_t i = first; i < last; i++)
            multiply(work, r, left, right, out, work->thread_workspace, i, 0, r->m);
        return;
    }
    const uint64_t row = first * q->piece, end = last * q->piece < r->m ? last * q->piece : r->m;
    const char *left = lay_out(&r->left, a->dtype, a->data, space + r->left_at, row, end, r->k);
    multiply(work, r, left, b->data, out, work->thread_workspace, 0, row, end);
}

onx_status onxi_einsum_run(onx_work *work, uint64_t first, uint64_t last)
{
    const einsum_params *q = work->params;
    onx_value *y = work->outputs[0];
    char *space = work->workspace;
    const void *now = work->inputs[0]->data;
    int dtype = work->inputs[0]->dtype;
    if (q->piece) {
        run_pieces(work, first, last);
        return ONX_OK;
    }
    onxi_pace pace = { .work = work };
    for (uint32_t i = 1; i < q->operands; i++) {
        const product *r = &q->products[i - 1];
        const bool ends = i + 1 == q->operands && q->last.as_is && y->dtype == q->computed;
        char *out = ends ? y->data : space + r->out_at;
        const char *left = lay_out(&r->left, dtype, now, space + r->left_at, 0, 1, r->left.count);
        const char *right =
            lay_out(&r->right, y->dtype, work->inputs[i]->data, space + r->right_at, 0, 1, r->right.count);
        for (uint64_t b = 0; b < r->batch && !onxi_pace_stops(&pace, r->m * r->n); b++)
            multiply(work, r, left, right, out, work->thread_workspace, b, 0, r->m);
        if (ends)
            return ONX_OK;
        now = out;
        dtype = q->computed;
    }
    gather_loops[dtype](&q->last, now, space + q->last_at, 0, q->last.count);
    onx_convert((onx_dtype)y->dtype, y->data, (onx_dtype)q->computed, space + q->last_at, y->count, true);
    return ONX_OK;
}

const onx_kernel onxi_kernels_einsum[] = {
    { .op = "Einsum", .since = 12, .dtypes = ONXI_NUMBERS, .prepare = onxi_einsum_prepare, .run = onxi_einsum_run },
    { 0 }
};

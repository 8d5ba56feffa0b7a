/* copies.c - copying with repetitions: what is repeated is written once, then copied from the result. */
#include "kernel/core/copies.h"

typedef uint64_t sixteen_bytes __attribute__((vector_size(16)));

void onxi_copies_add(onxi_copies *r, uint64_t size, bool again)
{
    if (size == 1)
        return;
    if (r->count && r->axis[r->count - 1].again == again)
        r->axis[r->count - 1].size *= size;
    else
        r->axis[r->count++] = (onxi_copies_axis){ .size = size, .again = again };
}

void onxi_copies_finish(onxi_copies *r, unsigned threads)
{
    enum { EACH = 4 }; /* rows of a thread */
    uint64_t from = r->element, to = r->element;
    if (!r->count)
        r->axis[r->count++] = (onxi_copies_axis){ .size = 1 };
    for (uint32_t i = r->count; i-- > 0;) {
        onxi_copies_axis *a = &r->axis[i];
        a->from = a->again ? 0 : from;
        a->to = to;
        from *= a->again ? 1 : a->size;
        to *= a->size;
    }
    r->split = 0;
    r->rows = 1;
    while (threads > 1 && r->split < r->count - 1 && r->rows < (uint64_t)EACH * threads)
        r->rows *= r->axis[r->split++].size;
}

/* ---- repetitions ---- */

#define FILL(T, name)                                                                                                  \
    static void fill_##name(char *to, uint64_t count)                                                                  \
    {                                                                                                                  \
        T v;                                                                                                           \
        memcpy(&v, to, sizeof v);                                                                                      \
        for (uint64_t i = 1; i < count; i++)                                                                           \
            memcpy(to + i * sizeof v, &v, sizeof v);                                                                   \
    }
FILL(uint16_t, 2)
FILL(uint32_t, 4)
FILL(uint64_t, 8)
FILL(sixteen_bytes, 16)

/* Copies a short block by vectors, the last of which also writes into what follows it: that is written later. `count`:
 * of vectors, a constant at each call. Returns how many blocks there are then. */
__attribute__((always_inline)) static inline uint64_t repeat_short(char *to, uint64_t size, uint64_t count,
                                                                   const char *end, const unsigned vectors)
{
    sixteen_bytes v[4];
    uint64_t i = 1;
    if ((uint64_t)(end - to) < vectors * sizeof *v)
        return i;
    for (unsigned k = 0; k < vectors; k++)
        memcpy(&v[k], to + k * sizeof *v, sizeof *v);
    for (to += size; i < count && (uint64_t)(end - to) >= vectors * sizeof *v; i++, to += size)
        for (unsigned k = 0; k < vectors; k++)
            memcpy(to + k * sizeof *v, &v[k], sizeof *v);
    return i;
}

/* `to` has a block, after which so many are to be there in all; nothing is written from `end` on. */
static void repeat(char *to, uint64_t size, uint64_t count, const char *end)
{
    enum { SHORT = 64, MOST = 8192 /* bytes that stay in a cache */ };
    uint64_t done = 1;
    if (size == 1) {
        memset(to, *to, (size_t)count);
        return;
    }
    if (size == 2 || size == 4 || size == 8 || size == 16) {
        (size == 2 ? fill_2 : size == 4 ? fill_4 : size == 8 ? fill_8 : fill_16)(to, count);
        return;
    }
    if (size <= SHORT / 4)
        done = repeat_short(to, size, count, end, 1);
    else if (size <= SHORT / 2)
        done = repeat_short(to, size, count, end, 2);
    else if (size <= SHORT)
        done = repeat_short(to, size, count, end, 4);
    for (uint64_t n; done < count; done += n) {
        n = done * size <= MOST ? done : MOST / size + 1;
        n = n < done ? n : done;
        n = n < count - done ? n : count - done;
        memcpy(to + done * size, to, (size_t)(n * size));
    }
}

/* Writes what axes from `level` on give. */
static void write_axes(const onxi_copies *r, uint32_t level, const char *from, char *to, const char *end)
{
    const onxi_copies_axis *a = &r->axis[level];
    const bool last = level + 1 == r->count;
    if (last)
        onxi_copy_item(to, from, a->again ? r->element : a->size * r->element);
    else
        for (uint64_t i = 0; i < (a->again ? 1 : a->size); i++)
            write_axes(r, level + 1, from + i * a->from, to + i * a->to, end);
    if (a->again)
        repeat(to, a->to, a->size, end);
}

void onxi_copies_run(const onxi_copies *r, const void *x, void *y, uint64_t first, uint64_t last)
{
    const uint64_t bytes = r->axis[r->split].to * r->axis[r->split].size;
    const char *end = (const char *)y + last * bytes;
    for (uint64_t row = first; row < last; row++) {
        const char *from = x;
        uint64_t rest = row;
        for (uint32_t d = r->split; d-- > 0; rest /= r->axis[d].size)
            from += rest % r->axis[d].size * r->axis[d].from;
        write_axes(r, r->split, from, (char *)y + row * bytes, end);
    }
}

/* move.h - copying elements to other positions: for each axis of the output, independently, a map of its index to an
 * index of the input. Slice, Pad and Tile are such moves. */
#ifndef ONXI_KERNEL_MOVE_H
#define ONXI_KERNEL_MOVE_H

#include "kernel/core/copies.h"

/* The meaning of an index outside of the input's window. */
typedef enum onxi_move_mode {
    ONXI_MOVE_EXACT, /* none: all indices are inside, steps may differ from 1 */
    ONXI_MOVE_FILL,
    ONXI_MOVE_EDGE,
    ONXI_MOVE_REFLECT,
    ONXI_MOVE_WRAP
} onxi_move_mode;

typedef struct onxi_move_axis {
    int64_t in, out;      /* sizes in the input and in the output */
    int64_t offset, step; /* output index o reads input index offset + o * step; step is 1 except for EXACT */
    int64_t low, count;   /* the window of the input that may be read */
    uint64_t stride;      /* in elements of the input */
    onxi_move_mode mode;
} onxi_move_axis;

typedef struct onxi_move {
    uint32_t rank; /* at least 1 once finished */
    uint32_t bits; /* of an element; strings move as onx_str */
    onxi_move_axis axis[ONX_RANK_MAX];
    uint64_t inner; /* neighbouring elements that always move together */
    uint64_t rows;  /* runs along the last axis */
} onxi_move;

/* The source of a description: while preparing, when only constants have data, or while running
 * (onxi_prepare_again). */
typedef struct onxi_move_call {
    const onx_prepare *p;
    const onx_value *const *inputs;
    const onx_value *output;
} onxi_move_call;
#define ONXI_MOVE_FAIL(call, ...) onx_prepare_fail((call)->p, ONX_E_INVALID, __VA_ARGS__)

/* NULL for an input that is omitted or that the version does not have. */
const onx_value *onxi_move_input(const onxi_move_call *call, uint32_t index);
/* Number `index` of a tensor of numbers of any type. */
int64_t onxi_move_number(const onx_value *v, uint64_t index);

/* A kernel that moves: the row's body. */
typedef struct onxi_move_body {
    /* Changes the axes, which are those of the input as it is. */
    onx_status (*describe)(const onxi_move_call *call, onxi_move *m);
    uint32_t fill_input; /* the input that holds the element to fill with; 0: none */
} onxi_move_body;

typedef struct onxi_move_params {
    onxi_move move;
    bool known;              /* `move` is there, else it depends on data */
    const onx_prepare *kept; /* for describing it then */
    onxi_copies *repeat;     /* the same as `move`, which only repeats; NULL: it does not */
    uint64_t fill[2];        /* fill value if no input gives one: zero, or the empty string */
} onxi_move_params;

/* A row for images whose channels lie next to each other; `prepare` ends in onxi_move_prepare. */
#define ONXI_MOVE_LAID_OUT(name, since_, body_, prepare_)                                                              \
    {                                                                                                                  \
        .op = name, .since = since_, .preference = 5, .flags = ONX_KERNEL_LAYOUTS, .variant = "blocked",               \
        .body = body_, .prepare = prepare_, .run = onxi_move_run                                                       \
    }
#define ONXI_MOVE_GRAIN 16384u /* elements worth a thread */
onx_status onxi_move_prepare(onx_prepare *p);
onx_status onxi_move_run(onx_work *work, uint64_t first, uint64_t last);

/* Neighbouring elements of `bits` bits. */
void onxi_move_copy(uint32_t bits, const onx_value *x, uint64_t from, onx_value *y, uint64_t to, uint64_t count);

/* Copies runs of `width` bytes, each at a fixed distance after the previous one. */
void onxi_move_apart(char *to, int64_t to_step, const char *from, int64_t from_step, size_t width, int64_t count);

/* Elements that are smaller than a byte. */
static inline void onxi_move_bits(unsigned bits, const void *from, uint64_t from_index, void *to, uint64_t to_index)
{
    onxi_packed_set(to, bits, to_index, onxi_packed_get(from, bits, from_index));
}

typedef struct onxi_sixteen { /* an element of 16 bytes */
    uint64_t a, b;
} onxi_sixteen;

/* Transposes 4 x 4 elements of four bytes, whose rows are `in` and `out` elements apart. */
static inline void onxi_move_turned(const void *from, int64_t in, void *to, int64_t out)
{
    typedef uint32_t four __attribute__((vector_size(16)));
    four x[4];
    for (int64_t i = 0; i < 4; i++)
        memcpy(&x[i], (const uint32_t *)from + i * in, sizeof x[i]);
    const four a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5), b = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
    const four c = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5), d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    const four y[4] = { __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
                        __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7) };
    for (int64_t i = 0; i < 4; i++)
        memcpy((uint32_t *)to + i * out, &y[i], sizeof y[i]);
}

/* Transposes a square of at most ONXI_MOVE_SQUARE bytes each way: `rows` of `columns` bytes become columns. Whole
 * vectors are copied if the operands allow it: bytes up to `to_end` may be written and up to `from_end` read, where
 * later writes overwrite the excess. */
enum { ONXI_MOVE_SQUARE = 16 };
typedef struct onxi_move_square {
    const uint8_t *from, *from_end;
    uint8_t *to, *to_end;
    uint64_t in, out, rows, columns; /* in, out: bytes from a row to the next */
} onxi_move_square;
void onxi_move_turn_bytes(const onxi_move_square *s);
/* Transposes any number of rows and columns. If rows of the result are contiguous and short (`out` is `rows`, and less
 * than a square), they are written one after the other. */
void onxi_move_turn_all_bytes(const onxi_move_square *s);

/* ---- Transpose ---- */

/* For an output whose axis d is axis perm[d] of the input; perm is a permutation. */
onx_status onxi_transpose_make(onx_prepare *p, const int64_t *perm);
onx_status onxi_transpose_run(onx_work *work, uint64_t first, uint64_t last);

/* Moves `rows` rows of `count` elements of `size` bytes: element k of row r is from[k * step + r], in elements. Returns
 * false if there is no loop for it: of several rows it moves those of up to ONXI_MOVE_WOVEN elements, of a single one
 * those of step 2. */
#if ONXI_PLATFORM_ROOMY
enum { ONXI_MOVE_WOVEN = 4 };
bool onxi_move_woven(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count, void *to);
/* The same for all elements of pixels next to each other, of which each has an element of each row: up to
 * ONXI_MOVE_PLANES elements of 1, 2 or 4 bytes. Rows of the result begin `pitch` elements apart. */
enum { ONXI_MOVE_PLANES = 8 };
bool onxi_move_planes(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count, void *to,
                      uint64_t pitch);
#else /* browsers have no room for these loops */
enum { ONXI_MOVE_WOVEN = 0 };
static inline bool onxi_move_woven(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count,
                                   void *to)
{
    (void)size, (void)from, (void)step, (void)rows, (void)count, (void)to;
    return false;
}
enum { ONXI_MOVE_PLANES = 0 };
static inline bool onxi_move_planes(uint64_t size, const void *from, int64_t step, uint64_t rows, uint64_t count,
                                    void *to, uint64_t pitch)
{
    (void)pitch;
    return onxi_move_woven(size, from, step, rows, count, to);
}
#endif

#endif

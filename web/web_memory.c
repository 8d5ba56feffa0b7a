/* web_memory.c - clears and copies memory by the bulk-memory instructions of WebAssembly. Emscripten's C library uses
 * loops, or calls JavaScript. Most memory is cleared and copied while a model is read, before engines have optimized
 * such a loop. Compiled with -mbulk-memory: engines with SIMD have these instructions, too. */
#include <stddef.h>
#include <string.h>
#include <wasm_simd128.h>

/* Copies a few bytes: an instruction calls code of the engine, which takes longer than a few vectors. The ranges may
 * overlap: everything is read before anything is written. */
static inline void copy_few(char *to, const char *from, size_t size)
{
    if (size >= 32) { /* up to 64 bytes */
        const v128_t a = wasm_v128_load(from), b = wasm_v128_load(from + 16), c = wasm_v128_load(from + size - 32),
                     d = wasm_v128_load(from + size - 16);
        wasm_v128_store(to, a), wasm_v128_store(to + 16, b);
        wasm_v128_store(to + size - 32, c), wasm_v128_store(to + size - 16, d);
    } else if (size >= 16) {
        const v128_t a = wasm_v128_load(from), b = wasm_v128_load(from + size - 16);
        wasm_v128_store(to, a), wasm_v128_store(to + size - 16, b);
    } else if (size >= 4) {
        const size_t step = size >= 8 ? 4 : 0;
        const v128_t a = wasm_v128_load32_zero(from), b = wasm_v128_load32_zero(from + step),
                     c = wasm_v128_load32_zero(from + size - 4 - step), d = wasm_v128_load32_zero(from + size - 4);
        wasm_v128_store32_lane(to, a, 0), wasm_v128_store32_lane(to + step, b, 0);
        wasm_v128_store32_lane(to + size - 4 - step, c, 0), wasm_v128_store32_lane(to + size - 4, d, 0);
    } else if (size) {
        const char a = from[0], b = from[size / 2], c = from[size - 1];
        to[0] = a, to[size / 2] = b, to[size - 1] = c;
    }
}

void *memmove(void *to, const void *from, size_t size)
{
    if (size > 64)
        return __builtin_memmove(to, from, size);
    copy_few(to, from, size);
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    if (size > 64)
        return __builtin_memcpy(to, from, size);
    copy_few(to, from, size);
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    char *p = to;
    if (size > 64)
        return __builtin_memset(to, byte, size);
    if (size < 16) {
        for (size_t i = 0; i < size; i++)
            /* Volatile: the compiler would make the loop a call of memset, which is this function. */
            ((volatile char *)p)[i] = (char)byte;
        return to;
    }
    const v128_t all = wasm_i8x16_splat((char)byte);
    for (size_t i = 0; i + 16 < size; i += 16)
        wasm_v128_store(p + i, all);
    wasm_v128_store(p + size - 16, all);
    return to;
}

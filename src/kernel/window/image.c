/* image.c - ImageDecoder, by leptonica. What cannot be decoded is an image without pixels, as the standard has
 * it; the size in the header is held against the memory limit before anything is decoded. */
#include "kernel/kernel.h"

#ifdef ONX_WITH_LEPTONICA
#include <allheaders.h>

#define FUNCTIONS(F)                                                                                                   \
    F(findFileFormatBuffer)                                                                                            \
    F(pixReadHeaderMem)                                                                                                \
    F(pixReadMem)                                                                                                      \
    F(pixConvertTo32)                                                                                                  \
    F(pixDestroy)                                                                                                      \
    F(pixGetData)                                                                                                      \
    F(pixGetWpl)                                                                                                       \
    F(pixGetHeight)                                                                                                    \
    F(pixGetWidth)                                                                                                     \
    F(pixGetDepth)                                                                                                     \
    F(setMsgSeverity)                                                                                                  \
    F(leptSetStderrHandler)

typedef struct leptonica {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} leptonica;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

typedef struct image_params {
    const leptonica *lib;
    uint32_t channels;
    bool backward; /* blue, green, red */
} image_params;

static onx_status image_prepare(onx_prepare *p)
{
    image_params *q = ONXI_NEW(p->arena, image_params);
    onx_str format = onx_prepare_text(p, "pixel_format");
    if (!q)
        return ONX_E_MEMORY;
    q->lib = ONXI_FUNCTIONS(ONXI_LIBRARY_LEPTONICA, function_names);
    if (!q->lib)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "ImageDecoder %s", onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
    q->backward = onx_str_is(format, "BGR");
    q->channels = onx_str_is(format, "Grayscale") ? 1 : 3;
    if (!q->backward && q->channels == 3 && !onx_str_is(format, "RGB"))
        return onx_prepare_fail(p, ONX_E_INVALID, "pixel_format is \"%.*s\"", ONX_ARG(format));
    p->params = q;
    return ONX_OK;
}

enum { HEAD = 16 }; /* bytes that leptonica wants to see at least; zeros after an image do no harm */

typedef struct stream {
    const uint8_t *data;
    size_t size;
    uint8_t head[HEAD];
    l_int32 format, height, width;
} stream;

/* The formats of the standard, and no others that leptonica would read. */
static bool is_image(const leptonica *lib, const onx_value *x, stream *s)
{
    l_int32 bits = 0, samples = 0, colours = 0;
    *s = (stream){ .data = x->data, .size = (size_t)x->count };
    if (!x->count || x->count > INT32_MAX)
        return false;
    memcpy(s->head, x->data, s->size < HEAD ? s->size : HEAD);
    if (s->size < HEAD) {
        s->data = s->head;
        s->size = HEAD;
    }
    if (lib->findFileFormatBuffer(s->data, &s->format))
        return false;
    switch (s->format) {
    case IFF_BMP:
    case IFF_JFIF_JPEG:
    case IFF_PNG:
    case IFF_TIFF:
    case IFF_TIFF_PACKBITS:
    case IFF_TIFF_RLE:
    case IFF_TIFF_G3:
    case IFF_TIFF_G4:
    case IFF_TIFF_LZW:
    case IFF_TIFF_ZIP:
    case IFF_TIFF_JPEG:
    case IFF_PNM:
    case IFF_JP2:
    case IFF_WEBP:
        break;
    default:
        return false;
    }
    return !lib->pixReadHeaderMem(s->data, s->size, &s->format, &s->width, &s->height, &bits, &samples, &colours) &&
           s->width > 0 && s->height > 0;
}

/* Rows of pixels, red in the highest byte of a word. Gray is what ITU-R 601-2 says, rounded. */
static void give_pixels(PIX *pix, const image_params *q, onx_value *y)
{
    const leptonica *lib = q->lib;
    const l_uint32 *data = lib->pixGetData(pix);
    int64_t step = lib->pixGetWpl(pix);
    uint8_t *out = y->data;
    for (int64_t r = 0; r < y->dims[0]; r++)
        for (int64_t c = 0; c < y->dims[1]; c++) {
            uint32_t word = data[r * step + c], red = word >> 24, green = word >> 16 & 255, blue = word >> 8 & 255;
            if (q->channels == 1) {
                *out++ = (uint8_t)((red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16);
                continue;
            }
            *out++ = (uint8_t)(q->backward ? blue : red);
            *out++ = (uint8_t)green;
            *out++ = (uint8_t)(q->backward ? red : blue);
        }
}

/* NULL: damaged. */
static PIX *decode(const leptonica *lib, const stream *s)
{
    PIX *raw = lib->pixReadMem(s->data, s->size), *pix = raw ? lib->pixConvertTo32(raw) : NULL;
    lib->pixDestroy(&raw);
    if (pix &&
        (lib->pixGetHeight(pix) != s->height || lib->pixGetWidth(pix) != s->width || lib->pixGetDepth(pix) != 32))
        lib->pixDestroy(&pix);
    return pix;
}

static void say_nothing(const char *text)
{
    (void)text;
}

static onx_status image_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    enum { COPIES = 3 }; /* images of 32 bits that are there at once while decoding, at most */
    const image_params *q = work->params;
    const leptonica *lib = q->lib;
    onx_value *y = work->outputs[0];
    stream s;
    uint64_t bytes = 0;
    lib->setMsgSeverity(L_SEVERITY_NONE);   /* a library prints nothing, */
    lib->leptSetStderrHandler(say_nothing); /* not even what has no severity */
    bool known = is_image(lib, work->inputs[0], &s);
    if (known &&
        (!onxi_mul_u64((uint64_t)s.height * 4 * COPIES, (uint64_t)s.width, &bytes) || !onxi_ctx_hold(work->cx, bytes)))
        return onx_work_fail(work, ONX_E_LIMIT, "decoding an image of %lld by %lld exceeds the memory limit",
                             (long long)s.width, (long long)s.height);
    PIX *pix = known ? decode(lib, &s) : NULL;
    const int64_t dims[] = { pix ? s.height : 0, pix ? s.width : 0, q->channels };
    onx_status status = onxi_value_size(y, ONX_UINT8, 3, dims);
    if (status == ONX_OK && pix)
        give_pixels(pix, q, y);
    lib->pixDestroy(&pix);
    onxi_ctx_let_go(work->cx, bytes);
    return status;
}

#else /* !ONX_WITH_LEPTONICA */

static onx_status image_prepare(onx_prepare *p)
{
    return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "ImageDecoder %s", onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
}

static onx_status image_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "ImageDecoder %s", onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
}

#endif

const onx_kernel onxi_kernels_image[] = {
    { .op = "ImageDecoder",
      .since = 20,
      .dtypes = ONX_DTYPE_BIT(ONX_UINT8),
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = image_prepare,
      .run = image_run },
    { 0 },
};

/* image.c - ImageDecoder, by leptonica. A file that cannot be decoded gives an image without pixels, as the standard
 * says. The size in the header is checked against the memory limit before decoding. */
#include "kernel/core/image.h"

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

static const leptonica *find_library(void)
{
    return ONXI_FUNCTIONS(ONXI_LIBRARY_LEPTONICA, function_names);
}

enum { HEAD = 16 }; /* leptonica reads at least so many bytes of a file; zeros are appended to shorter ones */

typedef struct stream {
    const uint8_t *data;
    size_t size;
    uint8_t head[HEAD];
    l_int32 format, height, width;
} stream;

/* Is it one of the formats of the standard? leptonica can read more. */
static bool is_image(const leptonica *lib, onx_str file, stream *s)
{
    l_int32 bits = 0, samples = 0, colours = 0;
    *s = (stream){ .data = (const uint8_t *)file.ptr, .size = file.len };
    if (!file.len || file.len > INT32_MAX)
        return false;
    memcpy(s->head, file.ptr, s->size < HEAD ? s->size : HEAD);
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

/* Writes rows of pixels; red is in the highest byte of a word. Gray is computed by ITU-R 601-2 and rounded. */
static void give_pixels(PIX *pix, const onxi_image *q, const stream *s, uint8_t *out)
{
    const leptonica *lib = q->lib;
    const l_uint32 *data = lib->pixGetData(pix);
    int64_t step = lib->pixGetWpl(pix);
    for (int64_t r = 0; r < s->height; r++)
        for (int64_t c = 0; c < s->width; c++) {
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

/* Returns NULL if the file is damaged. */
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

onx_status onxi_image_decode(onx_work *work, const onxi_image *q, onx_str file)
{
    enum { COPIES = 3 }; /* most 32-bit images in memory at once while decoding */
    const leptonica *lib = q->lib;
    onx_value *y = work->outputs[0];
    stream s;
    uint64_t bytes = 0;
    lib->setMsgSeverity(L_SEVERITY_NONE);   /* a library prints nothing, */
    lib->leptSetStderrHandler(say_nothing); /* not even messages without severity */
    bool known = is_image(lib, file, &s);
    if (known &&
        (!onxi_mul_u64((uint64_t)s.height * 4 * COPIES, (uint64_t)s.width, &bytes) || !onxi_ctx_hold(work->cx, bytes)))
        return onx_work_fail(work, ONX_E_LIMIT, "decoding an image of %lld by %lld exceeds the memory limit",
                             (long long)s.width, (long long)s.height);
    PIX *pix = known ? decode(lib, &s) : NULL;
    const int64_t dims[] = { 1, pix ? s.height : 0, pix ? s.width : 0, q->channels };
    onx_status status = onxi_value_size(y, ONX_UINT8, q->batch ? 4 : 3, q->batch ? dims : dims + 1);
    if (status == ONX_OK && pix)
        give_pixels(pix, q, &s, y->data);
    lib->pixDestroy(&pix);
    onxi_ctx_let_go(work->cx, bytes);
    return status;
}

#else /* !ONX_WITH_LEPTONICA */

static const struct leptonica *find_library(void)
{
    return NULL;
}

onx_status onxi_image_decode(onx_work *work, const onxi_image *q, onx_str file)
{
    (void)q, (void)file;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "%s %s", work->prepared->kernel->op,
                         onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
}

#endif

onx_status onxi_image_prepare(const onx_prepare *p, onxi_image *image)
{
    image->lib = find_library();
    if (image->lib)
        return ONX_OK;
    return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "%s %s", p->kernel->op, onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
}

static onx_status image_prepare(onx_prepare *p)
{
    onxi_image *q = ONXI_NEW(p->arena, onxi_image);
    onx_str format = onx_prepare_text(p, "pixel_format");
    if (!q)
        return ONX_E_MEMORY;
    *q = (onxi_image){ .channels = onx_str_is(format, "Grayscale") ? 1 : 3, .backward = onx_str_is(format, "BGR") };
    ONX_TRY(onxi_image_prepare(p, q));
    if (!q->backward && q->channels == 3 && !onx_str_is(format, "RGB"))
        return onx_prepare_fail(p, ONX_E_INVALID, "pixel_format is \"%.*s\"", ONX_ARG(format));
    p->params = q;
    return ONX_OK;
}

static onx_status image_run(onx_work *work, uint64_t first, uint64_t last)
{
    const onx_value *x = work->inputs[0];
    (void)first, (void)last;
    return onxi_image_decode(work, work->params, onx_str_make(x->data, x->count));
}

const onx_kernel onxi_kernels_image[] = {
    { .op = "ImageDecoder",
      .since = 20,
      .dtypes = ONX_DTYPE_BIT(ONX_UINT8),
      .flags = ONX_KERNEL_SIZES_OUTPUT,
      .prepare = image_prepare,
      .run = image_run },
    { 0 },
};

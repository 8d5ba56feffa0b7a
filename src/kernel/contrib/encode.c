/* encode.c - EncodeImage, by leptonica: encodes an image as a file in memory. */
#include "kernel/contrib/contrib.h"

#ifdef ONX_WITH_LEPTONICA
#include <allheaders.h>

#define FUNCTIONS(F)                                                                                                   \
    F(pixCreate)                                                                                                       \
    F(pixDestroy)                                                                                                      \
    F(pixGetData)                                                                                                      \
    F(pixGetWpl)                                                                                                       \
    F(pixWriteMem)                                                                                                     \
    F(pixWriteMemJpeg)                                                                                                 \
    F(lept_free)                                                                                                       \
    F(setMsgSeverity)

typedef struct leptonica {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} leptonica;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

/* Quality as in the original operator; an image and its file in memory; JPEG's limit. */
enum { QUALITY = 95, COPIES = 3, SIDE_MAX = 65500 };

typedef struct params {
    const leptonica *lib;
    bool jpeg, backward; /* backward: channels are blue, green, red */
} params;

static onx_status encode_prepare(onx_prepare *p)
{
    static const onxi_word formats[] = { { "png", 1, 0 }, { "jpg", 1, 0 } },
                           orders[] = { { "bgr", 1, 0 }, { "rgb", 1, 0 } };
    const int format = onxi_prepare_word(p, "format", formats, 2),
              order = onxi_prepare_word(p, "color_space", orders, 2);
    const onx_value *x = p->inputs[0];
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (params){ ONXI_FUNCTIONS(ONXI_LIBRARY_LEPTONICA, function_names), format == 1, order == 0 };
    if (!q->lib)
        return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "EncodeImage %s", onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
    if (format < 0 || order < 0)
        return onx_prepare_fail(p, ONX_E_INVALID, "format is neither png nor jpg, or color_space neither bgr nor rgb");
    if (x->rank != 3 || x->dims[2] != 3 || x->dims[0] < 1 || x->dims[1] < 1 || x->dims[0] > SIDE_MAX ||
        x->dims[1] > SIDE_MAX)
        return onx_prepare_fail(p, ONX_E_INVALID,
                                "the shape of the image is not [height,width,3] with sides of 1 to %d", SIDE_MAX);
    p->params = q;
    return ONX_OK;
}

/* Copies pixels; red is in the highest byte of a word. */
static void take_pixels(const params *q, const onx_value *x, PIX *pix)
{
    l_uint32 *data = q->lib->pixGetData(pix);
    const int64_t step = q->lib->pixGetWpl(pix);
    const uint8_t *from = x->data;
    for (int64_t r = 0; r < x->dims[0]; r++)
        for (int64_t c = 0; c < x->dims[1]; c++, from += 3)
            data[r * step + c] = (l_uint32)from[q->backward ? 2 : 0] << 24 | (l_uint32)from[1] << 16 |
                                 (l_uint32)from[q->backward ? 0 : 2] << 8;
}

static onx_status encode(onx_work *work, PIX *pix)
{
    const params *q = work->params;
    l_uint8 *bytes = NULL;
    size_t size = 0;
    take_pixels(q, work->inputs[0], pix);
    const l_int32 bad = q->jpeg ? q->lib->pixWriteMemJpeg(&bytes, &size, pix, QUALITY, 0)
                                : q->lib->pixWriteMem(&bytes, &size, pix, IFF_PNG);
    const int64_t dims[] = { (int64_t)size };
    onx_status status = bad || !bytes || !size ? onx_work_fail(work, ONX_E_INVALID, "the image cannot be encoded")
                                               : onxi_value_size(work->outputs[0], ONX_UINT8, 1, dims);
    if (status == ONX_OK)
        memcpy(work->outputs[0]->data, bytes, size);
    if (bytes)
        q->lib->lept_free(bytes);
    return status;
}

static onx_status encode_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const params *q = work->params;
    const onx_value *x = work->inputs[0];
    const uint64_t bytes = (uint64_t)x->dims[0] * (uint64_t)x->dims[1] * 4 * COPIES;
    q->lib->setMsgSeverity(L_SEVERITY_NONE); /* a library prints nothing */
    if (!onxi_ctx_hold(work->cx, bytes))
        return onx_work_fail(work, ONX_E_LIMIT, "encoding an image of %lld by %lld exceeds the memory limit",
                             (long long)x->dims[1], (long long)x->dims[0]);
    PIX *pix = q->lib->pixCreate((l_int32)x->dims[1], (l_int32)x->dims[0], 32);
    const onx_status status = pix ? encode(work, pix) : onxi_no_memory(work->cx);
    q->lib->pixDestroy(&pix);
    onxi_ctx_let_go(work->cx, bytes);
    return status;
}

#else /* !ONX_WITH_LEPTONICA */

static onx_status encode_prepare(onx_prepare *p)
{
    return onx_prepare_fail(p, ONX_E_UNSUPPORTED, "EncodeImage %s", onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
}

static onx_status encode_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "EncodeImage %s", onxi_library_missing(ONXI_LIBRARY_LEPTONICA));
}

#endif

const onx_kernel onxi_kernels_contrib_encode[] = {
    CONTRIB_KERNEL("EncodeImage", .prepare = encode_prepare, .run = encode_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};

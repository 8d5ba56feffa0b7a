/* conv.h - convolution by unfolding (im2col): a tile of output positions is gathered into columns and multiplied with
 * the weights. Conv uses the elements directly, ConvInteger and QLinearConv subtract zero points. */
#ifndef ONXI_KERNEL_CONV_H
#define ONXI_KERNEL_CONV_H

#include "kernel/kernel.h"

enum { ONXI_CONV_TILE = 256 }; /* output positions that are unfolded at a time */

typedef struct onxi_conv {
    onxi_window window;
    uint64_t group, in_each, out_each; /* channels per group */
    uint64_t depth;                    /* in_each * kernel size: the inner dimension of the product */
    uint64_t tiles;                    /* per image and group */
    uint64_t columns_size;             /* bytes, a multiple of 64 */
    uint32_t width;                    /* bytes of an element of the input */
} onxi_conv;

/* For input 0 and output 0, weights `w` and a bias (may be NULL). */
onx_status onxi_conv_make(const onx_prepare *p, const onx_value *w, const onx_value *bias, onxi_conv *q);
/* Windows of one pixel without stride and padding: a matrix product. */
static inline bool onxi_window_is_pixel(const onxi_window *w)
{
    bool is_pixel = true;
    for (uint32_t i = 0; i < w->spatial; i++)
        is_pixel &= w->kernel[i] == 1 && w->stride[i] == 1 && !w->pad[i] && !w->pad_end[i];
    return is_pixel;
}
/* columns[channel * kernel + k][position], rows of ONXI_CONV_TILE: positions first .. first+count-1 of the output;
 * `padding` is the element for padded positions. `x` is the first channel of the group. */
void onxi_unfold(const onxi_conv *q, const char *x, uint64_t first, uint64_t count, const char *padding, char *columns);
/* Writes weights times columns, plus the bias, to positions start .. start+count-1 of the output. `image` counts groups
 * of images; workspace for the product (onxi_gemm_workspace) follows the columns. */
void onxi_conv_multiply(const onx_work *work, const onxi_conv *q, const onx_value *weights, const onx_value *bias,
                        onx_value *y, uint64_t image, uint64_t start, uint64_t count, char *columns);

#endif

/* image.h - decoding of image files with Leptonica (window/image.c). */
#ifndef ONXI_KERNEL_IMAGE_H
#define ONXI_KERNEL_IMAGE_H

#include "kernel/kernel.h"

/* What a decoded image looks like. */
typedef struct onxi_image {
    const struct leptonica *lib;
    uint32_t channels;
    bool backward; /* blue, green, red */
    bool batch;    /* [1,height,width,channels], else without the first axis */
} onxi_image;

/* Finds the library, without which a node is refused. */
onx_status onxi_image_prepare(const onx_prepare *p, onxi_image *image);
/* Decodes the bytes of an image file into output 0; bytes that are no image give an image without pixels. */
onx_status onxi_image_decode(onx_work *work, const onxi_image *image, onx_str file);

#endif

/* cli_image.h - images as inputs of models: PNG, JPEG and others, decoded, sized, laid out and scaled. */
#ifndef ONX_CLI_IMAGE_H
#define ONX_CLI_IMAGE_H

#include "cli_inputs.h"

/* Rows for the table of options; all that cli_image_options reads. */
/* clang-format off */
#define CLI_OPTIONS_IMAGES \
    { "image-layout", 0, "LAYOUT", "nchw|nhwc|chw|hwc|nhw|hw", "order of an image's dimensions (from the model, else nchw)" }, \
    { "image-format", 0, "FORMAT", "rgb|bgr|gray", "colour format of images (from the model, else rgb)" }, \
    { "image-range", 0, "LO:HI", NULL, "values of black and white (from the model, else 0:1, for integers 0:255)" }, \
    { "image-size", 0, "HxW", NULL, "height and width of images if the model leaves them open (those of the file)" }, \
    { "resize", 0, "HOW", "stretch|crop|pad|none", "how images are resized: without keeping the aspect ratio (stretch), scaled to fill the size and cropped (crop), scaled to fit into it with black borders (pad), or not at all (none)" }, \
    { "mean", 0, "A[,B,C]", NULL, "subtract this from images, after --image-range; one number, or one per channel" }, \
    { "std", 0, "A[,B,C]", NULL, "then divide by this" }
/* clang-format on */

/* What the command line says about images. */
typedef struct cli_image_options {
    const char *layout, *resize; /* NULL: not said */
    char format;                 /* 'r', 'b', 'g'; 0: not said */
    bool has_range;
    double low, high;
    int64_t height, width; /* 0: not said */
    unsigned means, stds;  /* how many: 0, 1 or 3 */
    double mean[3], std[3];
} cli_image_options;

/* False after a message. */
bool cli_image_options_read(const cli_call *call, cli_image_options *out);
/* The first option about images that is given, NULL when none is. */
const char *cli_image_option_given(const cli_call *call);

/* Does the name end as those of image files do? */
bool cli_is_image(const char *path);
/* The image for an input of `doc`, as its type and the options say. `known` has the dims that are known, -1 for others;
 * NULL: the type has no shape. An input of one dimension gets the bytes of the file. What was done is said on standard
 * error. Errors are printed, or in the context. */
onx_status cli_image_load(cli_call *call, const char *path, onx_doc *doc, onx_session_port port, const cli_shape *known,
                          const cli_image_options *options, onx_value **out);

#endif

/* cli_image.h - images as model inputs: PNG, JPEG and others, decoded, resized, laid out and scaled. */
#ifndef ONX_CLI_IMAGE_H
#define ONX_CLI_IMAGE_H

#include "cli_inputs.h"

/* Rows for the option table; all options that cli_image_options reads. */
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

/* The image options of the command line. */
typedef struct cli_image_options {
    const char *layout, *resize; /* NULL: not given */
    char format;                 /* 'r', 'b', 'g'; 0: not given */
    bool has_range;
    double low, high;
    int64_t height, width; /* 0: not given */
    unsigned means, stds;  /* number of values: 0, 1 or 3 */
    double mean[3], std[3];
} cli_image_options;

/* False after an error message. */
bool cli_image_options_read(const cli_call *call, cli_image_options *out);
/* The first image option that is given, NULL if there is none. */
const char *cli_image_option_given(const cli_call *call);

/* Does the name have an extension of image files? */
bool cli_is_image(const char *path);
/* Reads an image for an input of `doc`, according to its type and the options. `known` has the known dims, -1 for
 * others; NULL: the type has no shape. A one-dimensional input receives the bytes of the file. The conversion is
 * reported on standard error. Errors are printed, or recorded in the context. */
onx_status cli_image_load(cli_call *call, const char *path, onx_doc *doc, onx_session_port port, const cli_shape *known,
                          const cli_image_options *options, onx_value **out);

#endif

/* cli_image.c - images as inputs: ImageDecoder decodes them, and a small generated model resizes, scales and lays out
 * the pixels. */
#include "cli_image.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* ---- options ---- */

static const char *const option_names[] = { "image-layout", "image-format", "image-range", "image-size",
                                            "resize",       "mean",         "std" };

const char *cli_image_option_given(const cli_call *call)
{
    for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++)
        if (cli_has(call, option_names[i]))
            return option_names[i];
    return NULL;
}

static bool parse_number(const char **at, double *out)
{
    char *end;
    if (!strchr("0123456789.-+", **at) || !**at)
        return false;
    *out = strtod(*at, &end);
    const size_t len = strspn(*at, "0123456789.eE+-");
    if (end == *at || (size_t)(end - *at) > len || !isfinite(*out))
        return false;
    *at = end;
    return true;
}

/* Reads one number or three; 0 after an error message. */
static unsigned parse_channels(const cli_call *call, const char *option, double out[3])
{
    const char *text = cli_value(call, option), *at = text;
    unsigned count = 0;
    while (count < 3 && parse_number(&at, &out[count])) {
        count++;
        if (*at != ',')
            break;
        at++;
    }
    if (*at || count == 2 || count == 0 || at[-1] == ',') {
        cli_error(call, "--%s %s: give one number, or three such as 0.485,0.456,0.406", option, text);
        return 0;
    }
    for (unsigned i = count; i < 3; i++)
        out[i] = out[0];
    return count;
}

static bool parse_size(const char *text, int64_t *height, int64_t *width)
{
    char *end;
    errno = 0;
    *height = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : 0;
    if (*height <= 0 || *end != 'x' || !isdigit((unsigned char)end[1]))
        return false;
    *width = strtoll(end + 1, &end, 10);
    return *width > 0 && *end == '\0' && errno == 0;
}

bool cli_image_options_read(const cli_call *call, cli_image_options *out)
{
    const char *format = cli_value(call, "image-format"), *range = cli_value(call, "image-range"), *at = range,
               *size = cli_value(call, "image-size");
    *out = (cli_image_options){ .layout = cli_value(call, "image-layout"),
                                .resize = cli_value(call, "resize"),
                                .format = format ? *format : '\0',
                                .has_range = range != NULL };
    if (range && !(parse_number(&at, &out->low) && *at++ == ':' && parse_number(&at, &out->high) && !*at)) {
        cli_error(call, "--image-range %s: a range is written like 0:1 or -1:1", range);
        return false;
    }
    if (size && !parse_size(size, &out->height, &out->width)) {
        cli_error(call, "--image-size %s: a size is written like 224x224, height first", size);
        return false;
    }
    if ((cli_has(call, "mean") && !(out->means = parse_channels(call, "mean", out->mean))) ||
        (cli_has(call, "std") && !(out->stds = parse_channels(call, "std", out->std))))
        return false;
    for (unsigned i = 0; i < 3 && out->stds; i++)
        if (out->std[i] == 0) {
            cli_error(call, "--std %s: images cannot be divided by 0", cli_value(call, "std"));
            return false;
        }
    return true;
}

bool cli_is_image(const char *path)
{
    static const char *const endings[] = { ".png",  ".jpg",  ".jpeg", ".jp2", ".bmp", ".tif",
                                           ".tiff", ".webp", ".ppm",  ".pgm", ".pbm", ".pnm" };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* ---- what the input needs ---- */

typedef struct image {
    cli_call *call;
    const char *path;
    onx_str input;
    const cli_image_options *options;
    onx_dtype dtype;
    char layout[5];
    char format;           /* 'r', 'b', 'g' */
    int64_t count;         /* of the batch */
    int64_t height, width; /* requested; 0: that of the file */
    double low, high;
    bool integers;
    int64_t file_height, file_width;   /* of the file */
    int64_t inner_height, inner_width; /* after resizing, before cropping and padding */
} image;

static onx_status misfit(const image *m, const char *why)
{
    cli_error(m->call, "input \"%.*s\": %s", ONX_ARG(m->input), why);
    return ONX_E_MISUSE;
}

static onx_str metadata(const onx_model *model, const char *key)
{
    for (uint32_t i = 0; i < model->metadata_props_count; i++)
        if (onx_str_is(onx_view(model->metadata_props[i]->key), key))
            return onx_view(model->metadata_props[i]->value);
    return onx_str_of("");
}

/* The axis of channels according to the denotations of the dimensions; -1: they do not tell. */
static int denoted_channel(const onx_tensor_shape *shape)
{
    for (uint32_t i = 0; shape && i < shape->dim_count; i++)
        if (onx_str_is(onx_view(shape->dim[i]->denotation), "DATA_CHANNEL"))
            return (int)i;
    return -1;
}

static bool is_channels(int64_t size)
{
    return size == 1 || size == 3;
}

/* The order of dimensions, from the rank and the likely axis of channels. */
static const char *guess_layout(const onx_tensor_shape *shape, const cli_shape *known)
{
    const int channel = denoted_channel(shape);
    if (!known || known->rank == 4) {
        const bool last = known && (channel == 3 || (channel < 0 && is_channels(known->dims[3]) &&
                                                     !is_channels(known->dims[1]) && known->dims[1] != 4));
        return last ? "nhwc" : "nchw";
    }
    if (known->rank == 3) {
        if (channel == 2 || (channel < 0 && is_channels(known->dims[2]) && !is_channels(known->dims[0])))
            return "hwc";
        return channel == 0 || is_channels(known->dims[0]) || known->dims[0] < 0 ? "chw" : "nhw";
    }
    return known->rank == 2 ? "hw" : NULL;
}

static int64_t known_size(const image *m, const cli_shape *known, char letter)
{
    const char *at = strchr(m->layout, letter);
    return at && known ? known->dims[at - m->layout] : -1;
}

static onx_status choose_layout(image *m, const onx_tensor_shape *shape, const cli_shape *known)
{
    const char *layout = m->options->layout;
    if (layout && known && strlen(layout) != known->rank) {
        cli_error(m->call, "--image-layout %s: input \"%.*s\" has %u dimension%s", layout, ONX_ARG(m->input),
                  known->rank, known->rank == 1 ? "" : "s");
        return ONX_E_MISUSE;
    }
    if (!layout)
        layout = guess_layout(shape, known);
    if (!layout)
        return misfit(m, "an image has two to four dimensions");
    snprintf(m->layout, sizeof m->layout, "%s", layout);
    const int64_t count = known_size(m, known, 'n'), height = known_size(m, known, 'h'),
                  width = known_size(m, known, 'w');
    if (count == 0 || height == 0 || width == 0)
        return misfit(m, "it has no elements, and an image cannot be empty");
    m->count = count > 0 ? count : 1;
    m->height = height > 0 ? height : m->options->height;
    m->width = width > 0 ? width : m->options->width;
    if (m->options->height && (m->height != m->options->height || m->width != m->options->width)) {
        cli_error(m->call, "--image-size %s: input \"%.*s\" is %lld by %lld", cli_value(m->call, "image-size"),
                  ONX_ARG(m->input), (long long)m->height, (long long)m->width);
        return ONX_E_MISUSE;
    }
    return ONX_OK;
}

/* Image.BitmapPixelFormat is Gray8, Rgb8, Bgr8, Rgba8, ... */
static onx_status choose_format(image *m, const onx_model *model, const cli_shape *known)
{
    const int64_t channels = strchr(m->layout, 'c') ? known_size(m, known, 'c') : 1;
    const onx_str said = metadata(model, "Image.BitmapPixelFormat");
    m->format = m->options->format;
    if (!m->format && said.len >= 3 && channels != 1)
        m->format = strncasecmp(said.ptr, "bgr", 3) == 0 ? 'b' : strncasecmp(said.ptr, "gra", 3) == 0 ? 'g' : 'r';
    if (!m->format)
        m->format = channels == 1 ? 'g' : 'r';
    if (channels >= 0 && channels != (m->format == 'g' ? 1 : 3)) {
        char why[120];
        snprintf(why, sizeof why, "it has %lld channel%s, and %s images have %d", (long long)channels,
                 channels == 1 ? "" : "s",
                 m->format == 'g'   ? "gray"
                 : m->format == 'b' ? "bgr"
                                    : "rgb",
                 m->format == 'g' ? 1 : 3);
        return misfit(m, why);
    }
    if (m->format == 'g' && (m->options->means == 3 || m->options->stds == 3))
        return misfit(m, "a gray image has one channel, so --mean and --std need one number");
    return ONX_OK;
}

/* Image.NominalPixelRange is NominalRange_0_255, Normalized_0_1, Normalized_1_1 or NominalRange_16_235. */
static onx_status choose_range(image *m, const onx_model *model)
{
    static const struct {
        const char *said;
        double low, high;
    } ranges[] = { { "NominalRange_0_255", 0, 255 },
                   { "Normalized_0_1", 0, 1 },
                   { "Normalized_1_1", -1, 1 },
                   { "NominalRange_16_235", 16, 235 } };
    const onx_dtype_class class = onx_dtype_class_of(m->dtype);
    if (class != ONX_CLASS_FLOATING && class != ONX_CLASS_SIGNED && class != ONX_CLASS_UNSIGNED)
        return misfit(m, "its element type is not numeric, so it cannot hold an image");
    m->integers = class != ONX_CLASS_FLOATING;
    m->low = 0;
    m->high = m->integers ? 255 : 1;
    const onx_str said = metadata(model, "Image.NominalPixelRange");
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (onx_str_is(said, ranges[i].said)) {
            m->low = ranges[i].low;
            m->high = ranges[i].high;
        }
    if (m->options->has_range) {
        m->low = m->options->low;
        m->high = m->options->high;
    }
    return ONX_OK;
}

/* ---- sizes ---- */

static int64_t scaled(int64_t size, int64_t to, int64_t of)
{
    const double exact = round((double)size * (double)to / (double)of);
    return exact < 1 ? 1 : exact > 0x1p31 ? INT64_C(0x80000000) : (int64_t)exact;
}

/* The size to which the image is resized before it is cropped or padded to the requested size. */
static onx_status choose_sizes(image *m)
{
    const char *how = m->options->resize ? m->options->resize : "stretch";
    const int64_t h = m->file_height, w = m->file_width;
    if (!m->height && !m->width) {
        m->height = h;
        m->width = w;
    } else if (!m->height) {
        m->height = scaled(h, m->width, w);
    } else if (!m->width) {
        m->width = scaled(w, m->height, h);
    }
    m->inner_height = m->height;
    m->inner_width = m->width;
    if (strcmp(how, "none") == 0 && (m->height != h || m->width != w)) {
        cli_error(m->call, "%s is %lld by %lld, and input \"%.*s\" %lld by %lld (height first)", m->path, (long long)h,
                  (long long)w, ONX_ARG(m->input), (long long)m->height, (long long)m->width);
        cli_hint("--resize stretch, crop or pad adapts the size");
        return ONX_E_INVALID;
    }
    if (strcmp(how, "crop") != 0 && strcmp(how, "pad") != 0)
        return ONX_OK;
    const bool by_height = ((double)m->height * (double)w > (double)m->width * (double)h) == (*how == 'c');
    if (by_height)
        m->inner_width = scaled(w, m->height, h);
    else
        m->inner_height = scaled(h, m->width, w);
    return ONX_OK;
}

/* ---- the generated models ---- */

/* Reports an error in a generated model at once, as an error about the image. Later it would be taken for an error in
 * the user's model, down to the line of its text. */
static onx_status blame_image(const image *m, onx_status status)
{
    const char *before = m->call->input;
    m->call->input = m->path;
    cli_report(m->call);
    m->call->input = before;
    return status;
}

/* Runs a model of one input and one output. */
static onx_status run_model(const image *m, onx_doc *doc, const onx_value *x, onx_value **y)
{
    onx_session *s = NULL;
    const onx_session_options options = { .threads = 1 };
    onx_status status = onx_session_new(m->call->cx, doc, &options, &s);
    if (status == ONX_OK)
        status = onx_session_run(s, m->call->cx, &x, y);
    onx_session_free(s);
    return status;
}

typedef struct builder {
    onx_doc *doc;
    onx_arena *arena;
    onx_graph *graph;
    bool failed;
} builder;

static bool begin(builder *b, const image *m)
{
    *b = (builder){ 0 };
    if (onx_model_new(m->call->cx, "image", 21, &b->doc) != ONX_OK)
        return false;
    b->arena = onx_doc_arena(b->doc);
    b->graph = onx_doc_model(b->doc)->graph;
    return true;
}

static onx_node *add(builder *b, const char *op, const char *inputs, const char *output)
{
    onx_node *node = onx_graph_add_node(b->arena, b->graph, op, inputs, output);
    b->failed |= !node;
    return node;
}

static void add_ints(builder *b, const char *name, const int64_t *values, uint32_t count)
{
    const int64_t dims[] = { count };
    onx_tensor *t = onx_tensor_new(b->arena, ONX_INT64, dims, 1, values, name);
    b->failed |= !t || !onx_graph_add_initializer(b->arena, b->graph, t);
}

/* One number per channel, along the second of four dimensions; a single number is a scalar. */
static void add_floats(builder *b, const char *name, const float *values, int64_t count)
{
    const int64_t dims[] = { 1, count, 1, 1 };
    onx_tensor *t = onx_tensor_new(b->arena, ONX_FLOAT, dims, 4, values, name);
    b->failed |= !t || !onx_graph_add_initializer(b->arena, b->graph, t);
}

static void add_port(builder *b, bool output, onx_dtype dtype, const int64_t *dims, int rank)
{
    onx_type *type = onx_type_new_tensor(b->arena, dtype, dims, rank);
    b->failed |= !type || (output ? !onx_graph_add_output(b->arena, b->graph, "y", type)
                                  : !onx_graph_add_input(b->arena, b->graph, "x", type));
}

static onx_status finish(builder *b, const image *m, const onx_value *x, onx_value **y)
{
    onx_status status = b->failed ? ONX_E_MEMORY : run_model(m, b->doc, x, y);
    if (b->failed)
        cli_error(m->call, "out of memory");
    onx_doc_free(b->doc);
    return status;
}

/* ---- messages of decoders. Image libraries write messages about damaged files to standard error themselves. Standard
 * error belongs to the program, so it is redirected to a file during decoding, and the first line becomes part of an
 * error message. ---- */

typedef struct overheard {
    FILE *file; /* NULL: the output is not redirected, and libraries print directly */
    int before; /* the original standard error */
} overheard;

static void listen(overheard *o)
{
    *o = (overheard){ .file = tmpfile(), .before = -1 };
    fflush(stderr);
    if (o->file)
        o->before = dup(STDERR_FILENO);
    if (o->before >= 0 && dup2(fileno(o->file), STDERR_FILENO) >= 0)
        return;
    if (o->before >= 0)
        close(o->before);
    if (o->file)
        fclose(o->file);
    o->file = NULL;
}

/* The first line that was written since then, without its newline; "" if there is none. */
static void listened(overheard *o, char *line, size_t room)
{
    line[0] = 0;
    if (!o->file)
        return;
    fflush(stderr);
    dup2(o->before, STDERR_FILENO);
    close(o->before);
    rewind(o->file);
    if (!fgets(line, (int)room, o->file))
        line[0] = 0;
    fclose(o->file);
    line[strcspn(line, "\r\n")] = 0;
}

/* The pixels of a file: uint8[height, width, channels]. */
static onx_status decode(image *m, const onx_value *bytes, onx_value **pixels)
{
    static const int64_t any[] = { -1, -1, -1 };
    builder b;
    if (!begin(&b, m))
        return ONX_E_MEMORY;
    onx_node *node = add(&b, "ImageDecoder", "x", "y");
    const char *format = m->format == 'g' ? "Grayscale" : m->format == 'b' ? "BGR" : "RGB";
    b.failed |= !node || !onx_node_add_string(b.arena, node, "pixel_format", onx_str_of(format));
    add_port(&b, false, ONX_UINT8, any, 1);
    add_port(&b, true, ONX_UINT8, any, 3);
    overheard o = { 0 };
    char said[128];
    if (!b.failed) /* otherwise an error has been reported already */
        listen(&o);
    onx_status status = finish(&b, m, bytes, pixels);
    listened(&o, said, sizeof said);
    if (status != ONX_OK)
        return blame_image(m, status);
    if ((*pixels)->count == 0) {
        cli_error(m->call, "%s cannot be decoded as an image, or is damaged%s%s", m->path, said[0] ? ": " : "", said);
        return ONX_E_INVALID;
    }
    if (said[0])
        cli_warn(m->call, "%s: %s", m->path, said);
    m->file_height = (*pixels)->dims[0];
    m->file_width = (*pixels)->dims[1];
    return ONX_OK;
}

/* x: uint8[height, width, channels] to "sized": float[1, channels, height, width] of 0 to 255. */
static void add_sizing(builder *b, const image *m)
{
    static const int64_t to_front[] = { 2, 0, 1 }, first[] = { 0 }, plane[] = { 2, 3 };
    const int64_t channels = m->format == 'g' ? 1 : 3, inner[] = { 1, channels, m->inner_height, m->inner_width },
                  wanted[] = { m->height, m->width };
    onx_node *cast = add(b, "Cast", "x", "wide"), *turn = add(b, "Transpose", "wide", "planes");
    add_ints(b, "first", first, 1);
    add(b, "Unsqueeze", "planes first", "batch");
    b->failed |= !cast || !onx_node_add_int(b->arena, cast, "to", ONX_FLOAT) || !turn ||
                 !onx_node_add_ints(b->arena, turn, "perm", to_front, 3);
    const bool resized = m->inner_height != m->file_height || m->inner_width != m->file_width;
    if (resized) {
        add_ints(b, "inner", inner, 4);
        onx_node *node = add(b, "Resize", "batch - - inner", "inside");
        b->failed |= !node || !onx_node_add_string(b->arena, node, "mode", onx_str_of("linear")) ||
                     !onx_node_add_int(b->arena, node, "antialias", 1) ||
                     !onx_node_add_int(b->arena, node, "exclude_outside", 1); /* as most image libraries do */
    }
    const char *inside = resized ? "inside" : "batch";
    if (m->inner_height == m->height && m->inner_width == m->width) {
        add(b, "Identity", inside, "sized");
        return;
    }
    char inputs[32];
    snprintf(inputs, sizeof inputs, "%s wanted", inside);
    add_ints(b, "wanted", wanted, 2);
    onx_node *node = add(b, "CenterCropPad", inputs, "sized");
    b->failed |= !node || !onx_node_add_ints(b->arena, node, "axes", plane, 2);
}

/* "sized" to "scaled": --image-range, --mean and --std, combined to one multiplication and one addition. */
static void add_scaling(builder *b, const image *m)
{
    const int64_t channels = m->format == 'g' ? 1 : 3;
    float factor[3], term[3];
    for (int i = 0; i < 3; i++) {
        const double mean = m->options->means ? m->options->mean[i] : 0,
                     std = m->options->stds ? m->options->std[i] : 1;
        factor[i] = (float)((m->high - m->low) / 255 / std);
        term[i] = (float)((m->low - mean) / std);
    }
    add_floats(b, "factor", factor, channels);
    add_floats(b, "term", term, channels);
    add(b, "Mul", "sized factor", "product");
    add(b, "Add", "product term", m->integers ? "sum" : "scaled");
    if (!m->integers)
        return;
    const bool is_signed = onx_dtype_class_of(m->dtype) == ONX_CLASS_SIGNED;
    const int bits = (int)onx_dtype_bits(m->dtype) - is_signed; /* bits of the largest value */
    const float least = is_signed ? -ldexpf(1, bits) : 0,
                most = bits <= 16 ? ldexpf(1, bits) - 1 : nextafterf(ldexpf(1, bits), 0);
    onx_tensor *low = onx_tensor_new(b->arena, ONX_FLOAT, NULL, 0, &least, "least"),
               *high = onx_tensor_new(b->arena, ONX_FLOAT, NULL, 0, &most, "most");
    b->failed |= !low || !high || !onx_graph_add_initializer(b->arena, b->graph, low) ||
                 !onx_graph_add_initializer(b->arena, b->graph, high);
    add(b, "Round", "sum", "round");
    add(b, "Clip", "round least most", "scaled");
}

/* "scaled" to y: transposes the dimensions, repeats the image for the batch, converts the element type. */
static void add_layout(builder *b, const image *m)
{
    static const char letters[] = "nchw";
    const int64_t from[] = { 1, m->format == 'g' ? 1 : 3, m->height, m->width };
    int64_t perm[4], one[4], all[4];
    uint32_t rank = 0;
    for (const char *at = m->layout; *at; at++) {
        const int64_t k = strchr(letters, *at) - letters;
        perm[rank] = k;
        one[rank] = from[k];
        all[rank++] = k == 0 ? m->count : from[k];
    }
    uint32_t turned = rank;
    for (int64_t k = 0; k < 4; k++) /* dimensions that the layout does not have are of size 1 */
        if (!strchr(m->layout, letters[k]))
            perm[turned++] = k;
    onx_node *turn = add(b, "Transpose", "scaled", "turned");
    add_ints(b, "one", one, rank);
    add_ints(b, "all", all, rank);
    add(b, "Reshape", "turned one", "shaped");
    add(b, "Expand", "shaped all", "copies");
    onx_node *cast = add(b, "Cast", "copies", "y");
    b->failed |= !turn || !onx_node_add_ints(b->arena, turn, "perm", perm, 4) || !cast ||
                 !onx_node_add_int(b->arena, cast, "to", m->dtype);
    add_port(b, true, m->dtype, all, (int)rank);
}

static onx_status prepare(const image *m, const onx_value *pixels, onx_value **out)
{
    builder b;
    if (!begin(&b, m))
        return ONX_E_MEMORY;
    add_port(&b, false, ONX_UINT8, pixels->dims, 3);
    add_sizing(&b, m);
    add_scaling(&b, m);
    add_layout(&b, m);
    const onx_status status = finish(&b, m, pixels, out);
    return status == ONX_OK ? status : blame_image(m, status);
}

/* ---- reading an image ---- */

static void put_numbers(const char *what, unsigned count, const double *values)
{
    if (!count)
        return;
    fprintf(stderr, ", %s %g", what, values[0]);
    for (unsigned i = 1; i < count; i++)
        fprintf(stderr, ",%g", values[i]);
}

static void tell(const image *m)
{
    static const char *const formats[] = { "rgb", "bgr", "gray" };
    fprintf(stderr, "%simage:%s ", cli_color(stderr, CLI_CYAN), cli_color(stderr, CLI_PLAIN));
    cli_put_text(stderr, m->input);
    fputs(" from ", stderr);
    cli_put_text(stderr, onx_str_of(m->path));
    fprintf(stderr, ", %lld by %lld", (long long)m->file_height, (long long)m->file_width);
    if (m->height != m->file_height || m->width != m->file_width)
        fprintf(stderr, " (%s to %lld by %lld)", m->options->resize ? m->options->resize : "stretch",
                (long long)m->height, (long long)m->width);
    fprintf(stderr, ", %s, %s, %g to %g",
            formats[m->format == 'r'   ? 0
                    : m->format == 'b' ? 1
                                       : 2],
            m->layout, m->low, m->high);
    put_numbers("mean", m->options->means, m->options->mean);
    put_numbers("std", m->options->stds, m->options->std);
    fputc('\n', stderr);
}

static onx_status load_file(image *m, onx_value **out)
{
    onx_buffer bytes;
    const char *before = m->call->input;
    m->call->input = m->path;
    ONX_TRY(cli_load_bytes(m->call, m->path, &bytes));
    const int64_t dims[] = { (int64_t)bytes.len };
    onx_status status = onx_value_new_tensor(m->call->cx, ONX_UINT8, 1, dims, out);
    if (status == ONX_OK && bytes.len)
        memcpy((*out)->data, bytes.ptr, bytes.len);
    onx_buffer_free(&bytes);
    if (status == ONX_OK)
        m->call->input = before;
    return status;
}

onx_status cli_image_load(cli_call *call, const char *path, onx_doc *doc, onx_session_port port, const cli_shape *known,
                          const cli_image_options *options, onx_value **out)
{
    image m = { .call = call, .path = path, .input = port.name, .options = options };
    *out = NULL;
    const onx_type_tensor *type = port.type && ONX_HAS(type, port.type, tensor_type) ? port.type->tensor_type : NULL;
    if (!type || !type->elem_type)
        return misfit(&m, "it is not a tensor that could hold an image");
    m.dtype = (onx_dtype)type->elem_type;
    if (known && known->rank == 1 && m.dtype == ONX_UINT8) /* the model decodes it */
        return load_file(&m, out);
    ONX_TRY(choose_layout(&m, type->shape, known));
    ONX_TRY(choose_format(&m, onx_doc_model(doc), known));
    ONX_TRY(choose_range(&m, onx_doc_model(doc)));
    onx_value *bytes = NULL, *pixels = NULL;
    onx_status status = load_file(&m, &bytes);
    if (status == ONX_OK)
        status = decode(&m, bytes, &pixels);
    onx_value_free(bytes);
    if (status == ONX_OK)
        status = choose_sizes(&m);
    if (status == ONX_OK)
        status = prepare(&m, pixels, out);
    onx_value_free(pixels);
    if (status == ONX_OK)
        tell(&m);
    return status;
}

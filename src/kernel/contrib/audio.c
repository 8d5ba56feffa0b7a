/* audio.c - AudioDecoder: decodes an audio file to samples, optionally mixed to one channel and resampled to a lower
 * rate. */
#include "kernel/contrib/audio.h"
#include "token/token.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

typedef struct params {
    int64_t rate; /* -1: the rate of the file */
    bool mono;
} params;

static onx_status audio_prepare(onx_prepare *p)
{
    params *q = ONXI_NEW(p->arena, params);
    if (!q)
        return ONX_E_MEMORY;
    *q = (params){ onx_prepare_int(p, "downsampling_rate"), onx_prepare_is_set(p, "stereo_to_mono") };
    if (q->rate != -1 && (q->rate < 1 || q->rate > INT32_MAX))
        return onx_prepare_fail(p, ONX_E_INVALID, "attribute downsampling_rate is %lld, neither -1 nor 1 to %d",
                                (long long)q->rate, INT32_MAX);
    p->params = q;
    return ONX_OK;
}

/* ---- lower rate ---- */

/* A second-order section of a Butterworth filter, with its state. */
typedef struct section {
    double a[3], b[2], x[2], y[2];
} section;

/* Section `index` of a fourth-order filter, by the bilinear transform. `cutoff` is a fraction of the sampling rate
 * below 0.5; the gain of a constant is 1. */
static section section_of(unsigned index, double cutoff)
{
    const double angle = pi / 8 + index * pi / 4, re = -cos(angle), im = sin(angle), t = 2 * tan(0.5),
                 m = re * re + im * im, d = 4 - 4 * re * t + m * t * t, x = t * t / d, y1 = (8 - 2 * m * t * t) / d,
                 y2 = (-4 - 4 * re * t - m * t * t) / d, w = 2 * pi * cutoff, k = sin(0.5 - w / 2) / sin(0.5 + w / 2),
                 e = 1 + y1 * k - y2 * k * k;
    section s = { .a = { x * (1 - k) * (1 - k) / e, 2 * x * (1 - k) * (1 - k) / e, x * (1 - k) * (1 - k) / e },
                  .b = { (2 * k + y1 + y1 * k * k - 2 * y2 * k) / e, (-k * k - y1 * k + y2) / e } };
    const double gain = (s.a[0] + s.a[1] + s.a[2]) / (1 - s.b[0] - s.b[1]);
    for (int i = 0; i < 3; i++)
        s.a[i] /= gain;
    return s;
}

static double pass(section *s, double x)
{
    const double y = s->a[0] * x + s->a[1] * s->x[0] + s->a[2] * s->x[1] + s->b[0] * s->y[0] + s->b[1] * s->y[1];
    s->x[1] = s->x[0];
    s->x[0] = x;
    s->y[1] = s->y[0];
    s->y[0] = y;
    return y;
}

/* The modified Bessel function of order 0. */
static double bessel(double x)
{
    double sum = 0, term = 1;
    for (int n = 1; term > 1e-8 * sum; n++) {
        sum += term;
        term *= x * x / 4 / ((double)n * n);
    }
    return sum;
}

/* The signal at a position between samples: sinc interpolation with a Kaiser window over the samples in range. */
static double between(const float *x, uint64_t count, double place, uint64_t range)
{
    const uint64_t middle = (uint64_t)place, begin = middle > range ? middle - range : 0,
                   end = middle + range < count ? middle + range : count - 1;
    const double beta = 6;
    double sum = 0;
    for (uint64_t i = begin; i <= end; i++) {
        const double at = end > begin ? 2.0 * (double)(i - begin) / (double)(end - begin) - 1 : 0,
                     apart = fabs((double)i - place), sinc = apart < 1e-6 ? 1 : sin(pi * apart) / (pi * apart);
        sum += x[i] * sinc * bessel(beta * sqrt(fmax(1 - at * at, 0))) / bessel(beta);
    }
    return sum;
}

static onx_status lower_rate(onx_work *work, onxi_sound *s, uint32_t rate)
{
    const double factor = (double)rate / s->rate;
    section first = section_of(0, 0.5 * factor), second = section_of(1, 0.5 * factor);
    for (uint64_t i = 0; i < s->count; i++)
        s->samples[i] = (float)pass(&second, pass(&first, s->samples[i]));
    const uint64_t count = (uint64_t)ceil((double)s->count * factor), range = (uint64_t)ceil(3 / factor);
    float *made = onxi_arena_array(work->text, count + 1, sizeof *made);
    if (!made)
        return ONX_E_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        if (!(i % 1024) && onx_work_stops(work))
            return ONX_E_CANCELLED;
        if (!(i % 1024))
            ONX_TRY(onxi_ctx_go_on(work->cx));
        made[i] = (float)between(s->samples, s->count, fmin((double)i / factor, (double)(s->count - 1)), range);
    }
    s->samples = made;
    s->count = count;
    s->rate = rate;
    return ONX_OK;
}

/* ---- running ---- */

static void mix(onxi_sound *s)
{
    for (uint64_t i = 0; i < s->count / 2; i++)
        s->samples[i] = (s->samples[2 * i] + s->samples[2 * i + 1]) / 2;
    s->count /= 2;
    s->channels = 1;
}

onx_status onxi_sound_begins(onx_work *work, const char *form, int channels, long rate, onxi_sound *out)
{
    if (channels < 1 || channels > ONXI_SOUND_CHANNELS_MAX || rate < 1 || (unsigned long)rate > UINT32_MAX)
        return onx_work_fail(work, ONX_E_INVALID,
                             "the %s file has %d channels, expected 1 to %d, and %ld samples per second", form,
                             channels, ONXI_SOUND_CHANNELS_MAX, rate);
    out->channels = (uint32_t)channels;
    out->rate = (uint32_t)rate;
    return ONX_OK;
}

onx_status onxi_sound_is_none(onx_work *work, onx_str file, const char *form)
{
    return onx_work_fail(work, ONX_E_INVALID, "the %zu bytes are not in %s format", file.len, form);
}

typedef enum form { WAV, FLAC, MP3, UNKNOWN } form;

static onx_status find_form(onx_work *work, onx_str file, form *out)
{
    const onx_value *said = work->prepared->input_count > 1 ? work->inputs[1] : NULL;
    onx_str name = { 0 };
    if (said)
        ONX_TRY(onxi_contrib_text(work, 1, &name));
    const unsigned char *p = (const unsigned char *)file.ptr;
    if (name.len && !onx_str_is(name, "default"))
        *out = onx_str_is(name, "wav")    ? WAV
               : onx_str_is(name, "flac") ? FLAC
               : onx_str_is(name, "mp3")  ? MP3
                                          : UNKNOWN;
    else
        *out = onxi_starts_with(file, onx_str_of("RIFF"))                                                    ? WAV
               : onxi_starts_with(file, onx_str_of("fLaC"))                                                  ? FLAC
               : onxi_starts_with(file, onx_str_of("ID3")) || (file.len > 1 && p[0] == 0xff && p[1] >= 0xe0) ? MP3
                                                                                                             : UNKNOWN;
    return *out != UNKNOWN ? ONX_OK
           : name.len ? onx_work_fail(work, ONX_E_INVALID, "the format \"%.*s\" is none of wav, mp3, flac, default",
                                      ONX_ARG(name))
                      : onx_work_fail(work, ONX_E_INVALID, "the %zu bytes are not a WAV, MP3 or FLAC file", file.len);
}

static onx_status audio_run(onx_work *work, uint64_t first, uint64_t last)
{
    (void)first, (void)last;
    const params *q = work->params;
    const onx_value *x = work->inputs[0];
    const onx_str file = onx_str_make(x->data, x->count);
    onxi_sound s = { 0 };
    form kind;
    if (x->rank != 1 && (x->rank != 2 || x->dims[0] != 1))
        return onx_work_fail(work, ONX_E_INVALID, "the file has rank %u, and is no [n] or [1,n]", x->rank);
    ONX_TRY(find_form(work, file, &kind));
    ONX_TRY(kind == WAV    ? onxi_sound_wav(work, file, &s)
            : kind == FLAC ? onxi_sound_flac(work, file, &s)
                           : onxi_sound_mp3(work, file, &s));
    if (q->rate > s.rate)
        return onx_work_fail(work, ONX_E_INVALID,
                             "the audio signal has %u samples per second, which cannot be resampled to %lld", s.rate,
                             (long long)q->rate);
    if (s.channels > 1 && (s.channels > 2 ? q->mono : !q->mono && q->rate != -1 && q->rate < s.rate))
        return onx_work_fail(work, ONX_E_UNSUPPORTED, "%s sound of %u channels",
                             q->mono ? "mixing a" : "a lower rate of a", s.channels);
    if (q->mono && s.channels == 2)
        mix(&s);
    if (q->rate != -1 && q->rate < s.rate && s.count)
        ONX_TRY(lower_rate(work, &s, (uint32_t)q->rate));
    const int64_t dims[] = { 1, (int64_t)s.count };
    ONX_TRY(onxi_value_size(work->outputs[0], ONX_FLOAT, 2, dims));
    if (s.count)
        memcpy(work->outputs[0]->data, s.samples, s.count * sizeof *s.samples);
    return ONX_OK;
}

const onx_kernel onxi_kernels_contrib_audio[] = {
    CONTRIB_KERNEL("AudioDecoder", .prepare = audio_prepare, .run = audio_run, .flags = ONX_KERNEL_SIZES_OUTPUT),
    { 0 },
};

/* audio_wav.c - decodes WAV files: integers of 8 to 32 bits, floats, A-law and mu-law. */
#include "kernel/contrib/audio.h"

enum { PCM = 1, FLOATS = 3, ALAW = 6, ULAW = 7, EXTENSIBLE = 0xfffe };

typedef struct wav {
    uint32_t format, channels, rate, bits;
    onx_str data;
} wav;

static uint32_t number(const char *p, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)(unsigned char)p[i] << 8 * i;
    return value;
}

static onx_status read_format(onx_work *work, onx_str chunk, wav *out)
{
    if (chunk.len < 16)
        return onx_work_fail(work, ONX_E_INVALID, "the WAV file has a format of %zu bytes, expected at least 16",
                             chunk.len);
    out->format = number(chunk.ptr, 2);
    out->channels = number(chunk.ptr + 2, 2);
    out->rate = number(chunk.ptr + 4, 4);
    out->bits = number(chunk.ptr + 14, 2);
    if (out->format == EXTENSIBLE && chunk.len >= 26) /* the format is in the first bytes of a GUID */
        out->format = number(chunk.ptr + 24, 2);
    return ONX_OK;
}

/* Reads the chunks: name, size, and contents padded to an even size. The last chunk may be truncated. */
static onx_status read_parts(onx_work *work, onx_str file, wav *out)
{
    bool known = false;
    size_t at = 12;
    while (file.len - at >= 8) {
        const char *head = file.ptr + at;
        const size_t said = number(head + 4, 4), left = file.len - at - 8, size = said < left ? said : left;
        const onx_str chunk = onx_str_make(head + 8, size);
        if (memcmp(head, "fmt ", 4) == 0) {
            ONX_TRY(read_format(work, chunk, out));
            known = true;
        } else if (memcmp(head, "data", 4) == 0 && known) {
            out->data = chunk;
            return ONX_OK;
        }
        if (size + (size & 1) >= left)
            break;
        at += 8 + size + (size & 1);
    }
    return onx_work_fail(work, ONX_E_INVALID, "the WAV file of %zu bytes has no %s", file.len,
                         known ? "data" : "format before its data");
}

/* ITU-T G.711: a sign, three bits of exponent, four bits of mantissa. */
static float law(unsigned byte, bool alaw)
{
    byte ^= alaw ? 0x55 : 0xff;
    const unsigned power = byte >> 4 & 7, part = byte & 15;
    int value = alaw ? (int)(power ? (part * 16 + 264) << (power - 1) : part * 16 + 8)
                     : (int)(((part * 8 + 132) << power) - 132);
    const bool negative = alaw ? !(byte & 0x80) : byte & 0x80;
    return (float)(negative ? -value : value) / 32768;
}

static float sample(const wav *w, const char *p)
{
    double wide;
    float single;
    uint64_t bits = 0;
    if (w->format == ALAW || w->format == ULAW)
        return law((unsigned char)*p, w->format == ALAW);
    if (w->format == PCM && w->bits == 8) /* 8-bit samples are unsigned */
        return (float)((double)(unsigned char)*p / 127.5 - 1);
    if (w->format == PCM) /* the bytes become the highest ones of 32 bits */
        return (float)((double)(int32_t)(number(p, w->bits / 8) << (32 - w->bits)) / 2147483648.0);
    if (w->bits == 32) {
        const uint32_t word = number(p, 4);
        memcpy(&single, &word, sizeof single);
        return single;
    }
    bits = (uint64_t)number(p + 4, 4) << 32 | number(p, 4);
    memcpy(&wide, &bits, sizeof wide);
    return (float)wide;
}

static bool is_known(const wav *w)
{
    return (w->format == PCM && (w->bits == 8 || w->bits == 16 || w->bits == 24 || w->bits == 32)) ||
           (w->format == FLOATS && (w->bits == 32 || w->bits == 64)) ||
           ((w->format == ALAW || w->format == ULAW) && w->bits == 8);
}

onx_status onxi_sound_wav(onx_work *work, onx_str file, onxi_sound *out)
{
    wav w = { 0 };
    if (file.len < 12 || memcmp(file.ptr, "RIFF", 4) != 0 || memcmp(file.ptr + 8, "WAVE", 4) != 0)
        return onx_work_fail(work, ONX_E_INVALID, "the %zu bytes are not a WAV file", file.len);
    ONX_TRY(read_parts(work, file, &w));
    if (!is_known(&w))
        return onx_work_fail(work, ONX_E_UNSUPPORTED, "the WAV file has samples of %u bits in format %u", w.bits,
                             w.format);
    if (!w.channels || w.channels > ONXI_SOUND_CHANNELS_MAX || !w.rate)
        return onx_work_fail(work, ONX_E_INVALID,
                             "the WAV file has %u channels, expected 1 to %d, and %u samples per "
                             "second",
                             w.channels, ONXI_SOUND_CHANNELS_MAX, w.rate);
    const size_t size = w.bits / 8, count = w.data.len / size / w.channels * w.channels;
    out->samples = onxi_arena_array(work->text, count + 1, sizeof *out->samples);
    if (!out->samples)
        return ONX_E_MEMORY;
    for (size_t i = 0; i < count; i++)
        out->samples[i] = sample(&w, w.data.ptr + i * size);
    out->count = count;
    out->rate = w.rate;
    out->channels = w.channels;
    return ONX_OK;
}

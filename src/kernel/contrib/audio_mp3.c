/* audio_mp3.c - decodes MP3 files by libmpg123, an optional library that is loaded at its first use. It is not used
 * through libsndfile, which would print warnings about damaged files to standard error. */
#include "kernel/contrib/audio.h"

#ifdef ONX_WITH_MPG123
#include <mpg123.h>

#define FUNCTIONS(F)                                                                                                   \
    F(mpg123_new)                                                                                                      \
    F(mpg123_delete)                                                                                                   \
    F(mpg123_param)                                                                                                    \
    F(mpg123_open_feed)                                                                                                \
    F(mpg123_feed)                                                                                                     \
    F(mpg123_read)                                                                                                     \
    F(mpg123_getformat)

typedef struct mpg123 {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} mpg123;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

enum { FED_AT_ONCE = 1 << 16, READ_AT_ONCE = 1 << 14 }; /* bytes, samples */

/* Reads the format of the frames so far. It must not change within a file. */
static onx_status take_format(onx_work *work, const mpg123 *lib, mpg123_handle *h, onxi_sound *out)
{
    long rate = 0;
    int channels = 0, encoding = 0;
    if (lib->mpg123_getformat(h, &rate, &channels, &encoding) != MPG123_OK || encoding != MPG123_ENC_FLOAT_32)
        return onx_work_fail(work, ONX_E_UNSUPPORTED, "libmpg123 cannot decode to floats");
    if (out->rate && (rate != (long)out->rate || channels != (int)out->channels))
        return onx_work_fail(work, ONX_E_UNSUPPORTED,
                             "an MP3 file that changes from %u channels at %u samples per "
                             "second to %d at %ld",
                             out->channels, out->rate, channels, rate);
    return onxi_sound_begins(work, "MP3", channels, rate, out);
}

/* Reads all samples; damaged frames are skipped. */
static onx_status read_all(onx_work *work, const mpg123 *lib, mpg123_handle *h, onx_str bytes, onxi_sound *out)
{
    size_t fed = 0;
    for (;;) {
        size_t got = 0;
        if (onx_work_stops(work))
            return ONX_E_CANCELLED;
        ONX_TRY(onxi_ctx_go_on(work->cx));
        if (!ONXI_GROW_IN(work->text, out->samples, out->room, out->count + READ_AT_ONCE))
            return ONX_E_MEMORY;
        const int status = lib->mpg123_read(h, (unsigned char *)(out->samples + out->count),
                                            READ_AT_ONCE * sizeof *out->samples, &got);
        out->count += got / sizeof *out->samples;
        if (status == MPG123_NEW_FORMAT) {
            ONX_TRY(take_format(work, lib, h, out));
        } else if (status == MPG123_NEED_MORE) {
            const size_t more = bytes.len - fed < FED_AT_ONCE ? bytes.len - fed : FED_AT_ONCE;
            if (!more || lib->mpg123_feed(h, (const unsigned char *)bytes.ptr + fed, more) != MPG123_OK)
                break;
            fed += more;
        } else if (status != MPG123_OK) {
            break;
        }
    }
    return out->rate ? ONX_OK : onxi_sound_is_none(work, bytes, "MP3");
}

onx_status onxi_sound_mp3(onx_work *work, onx_str bytes, onxi_sound *out)
{
    const mpg123 *lib = ONXI_FUNCTIONS(ONXI_LIBRARY_MPG123, function_names);
    if (!lib)
        return onx_work_fail(work, ONX_E_UNSUPPORTED, "decoding MP3 %s", onxi_library_missing(ONXI_LIBRARY_MPG123));
    mpg123_handle *h = lib->mpg123_new(NULL, NULL);
    if (!h)
        return ONX_E_MEMORY;
    onx_status status = ONX_OK;
    if (lib->mpg123_param(h, MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_FORCE_FLOAT, 0) != MPG123_OK ||
        lib->mpg123_open_feed(h) != MPG123_OK)
        status = onx_work_fail(work, ONX_E_UNSUPPORTED, "libmpg123 cannot decode to floats");
    if (status == ONX_OK)
        status = read_all(work, lib, h, bytes, out);
    lib->mpg123_delete(h);
    return status;
}

#else /* !ONX_WITH_MPG123 */

onx_status onxi_sound_mp3(onx_work *work, onx_str bytes, onxi_sound *out)
{
    (void)bytes, (void)out;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "decoding MP3 %s", onxi_library_missing(ONXI_LIBRARY_MPG123));
}

#endif

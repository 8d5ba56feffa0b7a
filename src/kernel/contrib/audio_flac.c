/* audio_flac.c - decodes FLAC files by libsndfile, an optional library that is loaded at its first use. */
#include "kernel/contrib/audio.h"
#include "token/token.h"

#ifdef ONX_WITH_SNDFILE
#include <sndfile.h>

#define FUNCTIONS(F)                                                                                                   \
    F(sf_open_virtual)                                                                                                 \
    F(sf_close)                                                                                                        \
    F(sf_readf_float)

typedef struct sndfile {
    FUNCTIONS(ONXI_FUNCTION_MEMBER)
} sndfile;

static const char *const function_names[] = { FUNCTIONS(ONXI_FUNCTION_NAME) };

/* A file in memory. */
typedef struct memory {
    onx_str bytes;
    sf_count_t at;
} memory;

static sf_count_t memory_size(void *user)
{
    return (sf_count_t)((memory *)user)->bytes.len;
}

static sf_count_t memory_tell(void *user)
{
    return ((memory *)user)->at;
}

/* The offset comes from an untrusted file: a position outside is clamped. */
static sf_count_t memory_seek(sf_count_t offset, int whence, void *user)
{
    memory *m = user;
    const sf_count_t size = memory_size(m), base = whence == SEEK_CUR ? m->at : whence == SEEK_END ? size : 0;
    sf_count_t to;
    if (__builtin_add_overflow(base, offset, &to))
        to = offset < 0 ? 0 : size;
    return m->at = to < 0 ? 0 : to > size ? size : to;
}

static sf_count_t memory_read(void *to, sf_count_t count, void *user)
{
    memory *m = user;
    const sf_count_t left = memory_size(m) - m->at, n = count < 0 ? 0 : count < left ? count : left;
    if (n)
        memcpy(to, m->bytes.ptr + m->at, (size_t)n);
    m->at += n;
    return n;
}

/* Reads as many frames as there are, whatever number the header declares. */
static onx_status read_frames(onx_work *work, const sndfile *lib, SNDFILE *file, onxi_sound *out)
{
    enum { AT_ONCE = 1 << 14 };
    for (sf_count_t got = 1; got > 0;) {
        const uint64_t more = (uint64_t)AT_ONCE * out->channels;
        if (onx_work_stops(work))
            return ONX_E_CANCELLED;
        ONX_TRY(onxi_ctx_go_on(work->cx));
        if (!ONXI_GROW_IN(work->text, out->samples, out->room, out->count + more))
            return ONX_E_MEMORY;
        got = lib->sf_readf_float(file, out->samples + out->count, AT_ONCE);
        out->count += got > 0 && got <= AT_ONCE ? (uint64_t)got * out->channels : 0;
    }
    return ONX_OK;
}

onx_status onxi_sound_flac(onx_work *work, onx_str bytes, onxi_sound *out)
{
    const sndfile *lib = ONXI_FUNCTIONS(ONXI_LIBRARY_SNDFILE, function_names);
    SF_VIRTUAL_IO io = { memory_size, memory_seek, memory_read, NULL, memory_tell };
    memory m = { .bytes = bytes };
    SF_INFO info = { 0 };
    if (!lib)
        return onx_work_fail(work, ONX_E_UNSUPPORTED, "decoding FLAC %s", onxi_library_missing(ONXI_LIBRARY_SNDFILE));
    if (!onxi_starts_with(bytes, onx_str_of("fLaC"))) /* libsndfile would read other formats, too */
        return onxi_sound_is_none(work, bytes, "FLAC");
    SNDFILE *file = lib->sf_open_virtual(&io, SFM_READ, &info, &m);
    if (!file)
        return onxi_sound_is_none(work, bytes, "FLAC");
    onx_status status = onxi_sound_begins(work, "FLAC", info.channels, info.samplerate, out);
    if (status == ONX_OK)
        status = read_frames(work, lib, file, out);
    (void)lib->sf_close(file);
    return status;
}

#else /* !ONX_WITH_SNDFILE */

onx_status onxi_sound_flac(onx_work *work, onx_str bytes, onxi_sound *out)
{
    (void)bytes, (void)out;
    return onx_work_fail(work, ONX_E_UNSUPPORTED, "decoding FLAC %s", onxi_library_missing(ONXI_LIBRARY_SNDFILE));
}

#endif

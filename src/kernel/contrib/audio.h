/* audio.h - decoded audio files, for AudioDecoder. */
#ifndef ONXI_KERNEL_CONTRIB_AUDIO_H
#define ONXI_KERNEL_CONTRIB_AUDIO_H

#include "kernel/contrib/contrib.h"

/* Interleaved samples of all channels, in an arena. */
typedef struct onxi_sound {
    float *samples;
    uint64_t count, room; /* number of samples, and room for them */
    uint32_t rate, channels;
} onxi_sound;

enum { ONXI_SOUND_CHANNELS_MAX = 16 };

onx_status onxi_sound_wav(onx_work *work, onx_str file, onxi_sound *out);
onx_status onxi_sound_flac(onx_work *work, onx_str file, onxi_sound *out);
onx_status onxi_sound_mp3(onx_work *work, onx_str file, onxi_sound *out);
/* Sets the format that a file declares, after checking that it is supported. */
onx_status onxi_sound_begins(onx_work *work, const char *form, int channels, long rate, onxi_sound *out);
/* Reports that the file does not have that format. */
onx_status onxi_sound_is_none(onx_work *work, onx_str file, const char *form);

#endif

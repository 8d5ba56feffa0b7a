/* audio.h - sounds that are files, for AudioDecoder. */
#ifndef ONXI_KERNEL_CONTRIB_AUDIO_H
#define ONXI_KERNEL_CONTRIB_AUDIO_H

#include "kernel/contrib/contrib.h"

/* Samples of all channels in turn, in an arena. */
typedef struct onxi_sound {
    float *samples;
    uint64_t count, room; /* of samples */
    uint32_t rate, channels;
} onxi_sound;

enum { ONXI_SOUND_CHANNELS_MAX = 16 };

onx_status onxi_sound_wav(onx_work *work, onx_str file, onxi_sound *out);
/* FLAC or MP3, by libsndfile. */
onx_status onxi_sound_packed(onx_work *work, onx_str file, bool flac, onxi_sound *out);

#endif

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
onx_status onxi_sound_flac(onx_work *work, onx_str file, onxi_sound *out);
onx_status onxi_sound_mp3(onx_work *work, onx_str file, onxi_sound *out);
/* Takes what a file says of its sound, as far as it can be. */
onx_status onxi_sound_begins(onx_work *work, const char *form, int channels, long rate, onxi_sound *out);
/* Says that the file is none of that form. */
onx_status onxi_sound_is_none(onx_work *work, onx_str file, const char *form);

#endif

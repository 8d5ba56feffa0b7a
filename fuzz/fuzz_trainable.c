/* fuzz_trainable.c - decodes a model and adds training information, with a loss, an optimizer and options that the
 * first byte selects. What exporters write about parameters is read, too: metadata, names of modules, merged weights.
 */
#include "fuzz_model.h"

#include <onx/trainable.h>

/* The number-th one, or none beyond the last: the default. */
static onx_str name_of(const onx_train_choice *(*get)(uint32_t index), uint32_t number)
{
    for (uint32_t i = 0; get(i); i++)
        if (i == number)
            return onx_str_of(get(i)->name);
    return (onx_str){ 0 };
}

static onx_status work(onx_ctx *cx, onx_doc *doc, unsigned choice)
{
    const bool other = choice & 128;
    const onx_str all = onx_str_of("*");
    const onx_trainable_options options = { .loss = name_of(onx_train_loss_get, choice & 15),
                                            .optimizer = name_of(onx_train_optimizer_get, choice >> 4 & 7),
                                            .keep = other,
                                            .freeze_statistics = other,
                                            .unbiased = other,
                                            .quantized = other && choice & 1,
                                            .untie = &all,
                                            .untie_count = other && choice & 2 };
    return onx_trainable(cx, doc, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model(data, size, work);
}

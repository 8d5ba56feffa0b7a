/* fuzz_textproto.c - reads protobuf text and writes the result. */
#include "fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_round(&(fuzz_format){ onx_textproto_read, onx_textproto_write }, data, size);
    return 0;
}

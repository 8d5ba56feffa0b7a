/* fuzz_json.c - reads JSON and writes the result. */
#include "fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_round(&(fuzz_format){ onx_json_read, onx_json_write }, data, size);
    return 0;
}

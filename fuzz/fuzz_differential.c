/* fuzz_differential.c - the bytes determine a valid model of a few operators (tests/gen). Checker, inference, plain and
 * fast kernels, one thread and two, all formats, and equivalent forms of the computation must agree. */
#include "gen/gen.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gen_random random = { .bytes = data, .left = size };
    gen_finding finding;
    for (size_t i = 0; i < size && i < 8; i++) /* used where the bytes are not enough */
        random.state = random.state << 8 | data[i];
    gen_differential(&random, &finding);
    if (finding.why[0]) {
        fprintf(stderr, "%s\n%s\n", finding.why, finding.text ? finding.text : "");
        abort();
    }
    free(finding.text);
    return 0;
}

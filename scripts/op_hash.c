/* op_hash.c - runs at build time: prints the hash table over the names in src/op/operators.def that src/op/op_find.c
 * uses to look up operators (open addressing; a slot holds the position plus 1, or 0 if it is free). */
#include <stdio.h>
#include <string.h>

#include "op/op_hash.h"

static const struct {
    const char *domain, *name;
} operators[] = {
#define OPERATOR(domain, name, family, traits, summary)            { domain, #name },
#define OPERATOR_AS(symbol, domain, name, family, traits, summary) { domain, #name },
#include "op/operators.def"
};

#define COUNT (sizeof operators / sizeof *operators)

int main(void)
{
    static unsigned slots[1 << 16];
    unsigned size = 1;
    while (size < 2 * COUNT)
        size *= 2;
    for (unsigned i = 0; i < COUNT; i++) {
        const char *domain = operators[i].domain, *name = operators[i].name;
        uint32_t at = onxi_op_hash(domain, strlen(domain), name, strlen(name));
        while (slots[at & (size - 1)])
            at++;
        slots[at & (size - 1)] = i + 1;
    }
    for (unsigned i = 0; i < size; i++)
        printf("%u,%c", slots[i], i % 16 == 15 ? '\n' : ' ');
    return fflush(stdout) != 0 || ferror(stdout);
}

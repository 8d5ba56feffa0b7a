/* automaton.h - rules of BlingFire as they lie in a file: an automaton over characters whose states say which action a
 * match has, and the actions. Nothing is copied; whatever is read is held against the size of the file. */
#ifndef ONXI_KERNEL_CONTRIB_AUTOMATON_H
#define ONXI_KERNEL_CONTRIB_AUTOMATON_H

#include "kernel/contrib/contrib.h"

/* Inputs that are no characters; other characters below EPSILON are taken for it. */
enum { ONXI_AUTOMATON_ANY, ONXI_AUTOMATON_LEFT, ONXI_AUTOMATON_RIGHT, ONXI_AUTOMATON_EPSILON };
/* Of states: there is none; a state that leads nowhere, which ANY does not help out of. */
enum { ONXI_AUTOMATON_NOWHERE = -1, ONXI_AUTOMATON_DEAD = -2 };

/* Lists of numbers by key. */
typedef struct onxi_automaton_lists {
    uint64_t offsets, values; /* where they are in the file */
    uint32_t greatest, width; /* key; bytes of an offset */
} onxi_automaton_lists;

typedef struct onxi_automaton {
    onx_str file;
    uint64_t states; /* where the automaton is; states are places after that */
    uint32_t target; /* bytes of a state */
    int64_t initial;
    uint64_t ranges;             /* a map of characters to inputs; 0: they are the inputs */
    uint32_t range_count, input; /* of the map: ranges; bytes of an input */
    onxi_automaton_lists actions;
    int64_t depth, longest; /* of functions that call one another; characters of a match */
} onxi_automaton;

/* What has been read: `broken` once something lay beyond the end, in place of which there was 0. */
typedef struct onxi_automaton_reader {
    bool broken;
} onxi_automaton_reader;

typedef struct onxi_automaton_list {
    uint64_t at, count;
} onxi_automaton_list;

onx_status onxi_automaton_read(const onx_prepare *p, onx_str file, onxi_automaton *out);
int64_t onxi_automaton_go(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state, int64_t input);
bool onxi_automaton_accepts(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state);
/* Where a function begins; 0 is all of it. */
int64_t onxi_automaton_function(const onxi_automaton *q, onxi_automaton_reader *r, int64_t function);
/* The action of a state that accepts; without numbers where it has none. */
void onxi_automaton_action(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state, onxi_automaton_list *out);
int64_t onxi_automaton_item(const onxi_automaton *q, onxi_automaton_reader *r, const onxi_automaton_list *list,
                            uint64_t index);

#endif

/* automaton.h - BlingFire's rules, read in place from their file: an automaton over characters whose states say which
 * action a match has, and the actions. Nothing is copied; each access is checked against the size of the file. */
#ifndef ONXI_KERNEL_CONTRIB_AUTOMATON_H
#define ONXI_KERNEL_CONTRIB_AUTOMATON_H

#include "kernel/contrib/contrib.h"

/* Inputs that are not characters. Other characters below EPSILON are treated as EPSILON. */
enum { ONXI_AUTOMATON_ANY, ONXI_AUTOMATON_LEFT, ONXI_AUTOMATON_RIGHT, ONXI_AUTOMATON_EPSILON };
/* Special states: no state; a state without transitions, not even by ANY. */
enum { ONXI_AUTOMATON_NOWHERE = -1, ONXI_AUTOMATON_DEAD = -2 };

/* Lists of numbers by key. */
typedef struct onxi_automaton_lists {
    uint64_t offsets, values; /* offsets in the file */
    uint32_t greatest, width; /* greatest key; bytes of an offset */
} onxi_automaton_lists;

typedef struct onxi_automaton {
    onx_str file;
    uint64_t states; /* offset of the automaton; states are offsets from there */
    uint32_t target; /* bytes of a state's offset */
    int64_t initial;
    uint64_t ranges;             /* offset of the map from characters to inputs; 0: characters are inputs */
    uint32_t range_count, input; /* of the map: number of ranges, bytes of an input */
    onxi_automaton_lists actions;
    int64_t depth, longest; /* most nested function calls; most characters of a match */
} onxi_automaton;

/* Reading state: `broken` is set once an access was beyond the end; such an access reads 0. */
typedef struct onxi_automaton_reader {
    bool broken;
} onxi_automaton_reader;

typedef struct onxi_automaton_list {
    uint64_t at, count;
} onxi_automaton_list;

onx_status onxi_automaton_read(const onx_prepare *p, onx_str file, onxi_automaton *out);
int64_t onxi_automaton_go(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state, int64_t input);
bool onxi_automaton_accepts(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state);
/* The initial state of a function; 0 is the main one. */
int64_t onxi_automaton_function(const onxi_automaton *q, onxi_automaton_reader *r, int64_t function);
/* The action of an accepting state; an empty list where it has none. */
void onxi_automaton_action(const onxi_automaton *q, onxi_automaton_reader *r, int64_t state, onxi_automaton_list *out);
int64_t onxi_automaton_item(const onxi_automaton *q, onxi_automaton_reader *r, const onxi_automaton_list *list,
                            uint64_t index);

#endif

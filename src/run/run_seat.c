/* run_seat.c - keeps the states of finished runs where the thread that ran them finds them without a lock. With small
 * models, a run takes less time than passing a lock between two threads. A thread that finds no state on its seat takes
 * one from elsewhere before it makes one, so there are no more states than concurrent runs. */
#include "run/run.h"

#include <stdatomic.h>

static onxi_run_seat *seat_of(onxi_run_session *s)
{
    return &s->seats[onxi_process_thread_number() % ONXI_RUN_SEATS];
}

/* Takes the state on the seat; the caller then owns it. */
static onxi_run_state *take(onxi_run_seat *seat)
{
    return atomic_load_explicit(&seat->state, memory_order_relaxed)
               ? atomic_exchange_explicit(&seat->state, NULL, memory_order_acquire)
               : NULL;
}

static void put(onxi_run_session *s, onxi_run_seat *seat, onxi_run_state *state)
{
    onxi_run_state *other = atomic_exchange_explicit(&seat->state, state, memory_order_acq_rel);
    if (other) /* left by a thread with the same seat */
        onxi_run_plan_let_go(s, other->plan, other);
}

onxi_run_state *onxi_run_seat_take(onxi_run_session *s, const onx_value *const *inputs, bool nonfinite)
{
    onxi_run_state *state = take(seat_of(s));
    if (!state || (state->plan->nonfinite == nonfinite && onxi_run_plan_fits(state->plan, inputs)))
        return state;
    onxi_run_plan_let_go(s, state->plan, state);
    return NULL;
}

onxi_run_state *onxi_run_seat_find(onxi_run_session *s, const onxi_run_plan *plan)
{
    for (uint32_t i = 0; i < ONXI_RUN_SEATS; i++) {
        onxi_run_state *state = take(&s->seats[i]);
        if (state && state->plan == plan) {
            onxi_run_plan_let_go(s, state->plan, NULL); /* the caller counts as a user of the plan already */
            return state;
        }
        if (state)
            put(s, &s->seats[i], state);
    }
    return NULL;
}

void onxi_run_seat_leave(onxi_run_session *s, onxi_run_state *state)
{
    put(s, seat_of(s), state);
}

void onxi_run_seats_clear(onxi_run_session *s)
{
    for (uint32_t i = 0; i < ONXI_RUN_SEATS; i++) {
        onxi_run_state *state = take(&s->seats[i]);
        if (state)
            onxi_run_plan_let_go(s, state->plan, state);
    }
}

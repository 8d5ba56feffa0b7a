/* check_full.c - full mode: what needs types and shapes. */
#include "check.h"

void onxi_check_full(onxi_check *k, const onxi_at *at)
{
    (void)k;
    (void)at;
}

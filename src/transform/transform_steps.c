/* transform_steps.c - the table of steps. */
#include "transform/transform_retarget.h"

#define ROW(op_, since_, up_, kind_, when_, text_)                                                                     \
    { .op = ONXI_ID_##op_,                                                                                             \
      .since = (since_),                                                                                               \
      .up = (up_),                                                                                                     \
      .kind = ONXI_STEP_##kind_,                                                                                       \
      .when = (when_),                                                                                                 \
      .text = (text_) },
#define ASSUMING(op_, since_, when_, text_, assumes_)                                                                  \
    { .op = ONXI_ID_##op_,                                                                                             \
      .since = (since_),                                                                                               \
      .up = true,                                                                                                      \
      .kind = ONXI_STEP_DROP,                                                                                          \
      .when = (when_),                                                                                                 \
      .text = (text_),                                                                                                 \
      .assumes = (assumes_) },
#define WHEN(name)                                onxi_when_##name
#define SAME(op, since)                           ROW(op, since, true, SAME, NULL, NULL) ROW(op, since, false, SAME, NULL, NULL)
#define UP(op, since, when, text)                 ROW(op, since, true, TEXT, WHEN(when), text)
#define DOWN(op, since, when, text)               ROW(op, since, false, TEXT, WHEN(when), text)
#define UP_SAME(op, since, when)                  ROW(op, since, true, SAME, WHEN(when), NULL)
#define DOWN_SAME(op, since, when)                ROW(op, since, false, SAME, WHEN(when), NULL)
#define UP_SET(op, since, when)                   ROW(op, since, true, SAME, WHEN(when), NULL)
#define DOWN_SET(op, since, when)                 ROW(op, since, false, SAME, WHEN(when), NULL)
#define UP_DROP(op, since, when, text)            ROW(op, since, true, DROP, WHEN(when), text)
#define UP_ASSUME(op, since, when, text, assumes) ASSUMING(op, since, WHEN(when), text, assumes)
#define DOWN_DROP(op, since, when, text)          ROW(op, since, false, DROP, WHEN(when), text)
#define UP_FAIL(op, since, when, text)            ROW(op, since, true, FAIL, WHEN(when), text)
#define DOWN_FAIL(op, since, when, text)          ROW(op, since, false, FAIL, WHEN(when), text)
#define DOWN_WIDE(op, since, when, text)          ROW(op, since, false, WIDE, WHEN(when), text)
#define DOWN_BODY(op, since)                      ROW(op, since, false, BODY, NULL, NULL)
#define NEW(op, since)                            ROW(op, since, false, FAIL, NULL, NULL)

const onxi_step onxi_steps[] = {
#include "transform/transform_steps.def"
    { 0 }
};
const uint32_t onxi_step_count = sizeof onxi_steps / sizeof *onxi_steps - 1;

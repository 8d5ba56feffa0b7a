/* shard.h - what the files share that spread a model over devices: placements of values, how nodes may be split, the
 * plan of all ranks and the model of one. docs/notes/shard.md */
#ifndef ONXI_SHARD_H
#define ONXI_SHARD_H

#include <onx/kernel.h>
#include <onx/shard.h>

#include "base/base.h"
#include "bind/bind.h"
#include "ir/ir.h"
#include "op/op.h"

#define ONXI_SHARD_DOMAIN "onx.shard"
#define ONXI_SHARD_NONE   UINT32_MAX

enum {
    ONXI_SHARD_RANK = 8,          /* axes of values that can be split */
    ONXI_SHARD_DIMS = 16,         /* of the iterations of a node */
    ONXI_SHARD_AHEAD = 16,        /* steps that a value is sent before it is needed, as it is held so long */
    ONXI_SHARD_DEVICES_MAX = 4096 /* of a configuration */
};

/* ---- placements (shard_placement.c) ---- */

/* Where a value is: which shard of it each device has. Equal placements are one. */
typedef struct onxi_placement {
    struct onxi_placement *next;
    uint32_t axis_count, shards;                            /* shards in all */
    uint32_t axis[ONXI_SHARD_RANK], count[ONXI_SHARD_RANK]; /* ascending; count > 1 */
    const int32_t *at;                                      /* per device: row-major index of its shard, -1: none */
    const uint32_t *first, *holder; /* devices that have shard j: holder[first[j]] .. holder[first[j + 1] - 1] */
} onxi_placement;

typedef struct onxi_placements {
    onx_arena *arena;
    uint32_t devices;
    onxi_placement *all;
} onxi_placements;

/* Part of a value. */
typedef struct onxi_box {
    int64_t start[ONXI_SHARD_RANK], size[ONXI_SHARD_RANK];
} onxi_box;

/* Shard `index` of `count` of an axis: where it begins. The last one ends where shard `count` would begin. */
static inline int64_t onxi_shard_start(int64_t size, uint32_t count, uint32_t index)
{
    return size * index / count; /* values that are split have less than 2^48 elements */
}
/* `at` is copied; axes of one shard are dropped. NULL when out of memory, or when a shard is on no device. */
const onxi_placement *onxi_placement_make(onxi_placements *all, uint32_t axis_count, const uint32_t *axis,
                                          const uint32_t *count, const int32_t *at);
/* The whole value on the devices that `on` has (NULL: on all). */
const onxi_placement *onxi_placement_whole(onxi_placements *all, const bool *on);
/* What shard `index` is. */
onxi_box onxi_placement_box(const onxi_placement *p, const int64_t *dims, uint32_t rank, uint32_t index);
/* False when they have nothing in common. */
bool onxi_box_meet(const onxi_box *a, const onxi_box *b, uint32_t rank, onxi_box *out);
bool onxi_box_same(const onxi_box *a, const onxi_box *b, uint32_t rank);
int64_t onxi_box_count(const onxi_box *b, uint32_t rank);
/* Elements that all devices together lack of `to` when they have `from`. */
uint64_t onxi_placement_cost(const onxi_placements *all, const onxi_placement *from, const onxi_placement *to,
                             const int64_t *dims, uint32_t rank);
/* Who sends shard `index` to a device that lacks it. */
uint32_t onxi_placement_source(const onxi_placement *p, uint32_t index, uint32_t device);

/* ---- how a node may be split (shard_rules.c) ---- */

struct onxi_split_row; /* shard_rules.h */

typedef enum onxi_shard_kind { /* of a dimension that a node iterates over */
                               ONXI_SHARD_PARALLEL,
                               ONXI_SHARD_SUM, /* what shards make is added up */
                               ONXI_SHARD_MEAN,
                               ONXI_SHARD_MAX,
                               ONXI_SHARD_MIN,
                               ONXI_SHARD_PRODUCT
} onxi_shard_kind;

typedef enum onxi_shard_fix { /* what changes in the node of a shard */
                              ONXI_SHARD_KEEP,
                              ONXI_SHARD_SHAPE,    /* input 1 becomes the shape of output 0 */
                              ONXI_SHARD_COUNTS,   /* attributes count what the shard has of groups, heads */
                              ONXI_SHARD_LOOKUP,   /* Gather in some of the rows: others give zeros */
                              ONXI_SHARD_SIZES,    /* two attributes: the last axes of input 0 and of output 0 */
                              ONXI_SHARD_DIRECTION /* one of both directions of a recurrent layer */
} onxi_shard_fix;

typedef struct onxi_shard_dim {
    int64_t size;
    int64_t unit; /* the number of shards divides it; 0: any number up to `size` */
    onxi_shard_kind kind;
} onxi_shard_dim;

typedef struct onxi_shard_rule {
    onxi_shard_dim dim[ONXI_SHARD_DIMS];
    int8_t (*map)[ONXI_SHARD_RANK]; /* per input, then per output, and axis: its dimension, -1: never split */
    uint32_t dim_count;
    onxi_shard_fix fix;
    uint32_t fix_dim;
    const char *const *names; /* of COUNTS and SIZES, to NULL */
    int32_t once;             /* an input that only the first of the shards that are added up has, -1: none */
    int32_t unread;           /* an unused input, as its place is taken; -1: none */
} onxi_shard_rule;

typedef struct onxi_shard_value {
    onx_str name;
    int64_t dims[ONXI_SHARD_RANK];
    uint32_t rank;
    int32_t dtype;
    bool known; /* a tensor whose dims are known, of elements that fill bytes: it can be split and moved */
    const onx_tensor *tensor; /* initializer */
    const onx_sparse_tensor *sparse;
    bool input;     /* that the caller gives */
    bool constant;  /* made of constants alone, when and where it is needed */
    uint32_t depth; /* of nodes that make a constant */
    uint32_t node;  /* that makes it */
    struct onxi_shard_version *versions;
} onxi_shard_value;

/* A node as rules see it. */
typedef struct onxi_shard_subject {
    struct onxi_shard_plan *plan;
    const onx_node *node;
    const onxi_bound *bound;
    const onxi_attrs *attrs;
    const uint32_t *inputs, *outputs; /* values, ONXI_SHARD_NONE: omitted */
} onxi_shard_subject;

/* `rule` has one row of -1 per operand; it stays so where nothing is known about the operator, which `row`, from
 * onxi_split_row_find, is about. */
void onxi_shard_rule_find(const onxi_shard_subject *s, const struct onxi_split_row *row, onxi_shard_rule *rule);
/* NULL: there is none. */
const struct onxi_split_row *onxi_split_row_find(onxi_op_id op);

/* ---- the plan of all ranks (shard_plan.c) ---- */

/* A value in a placement. */
typedef struct onxi_shard_version {
    struct onxi_shard_version *next;
    const onxi_placement *placement;
    uint32_t id;   /* among those of the plan, once that is made */
    uint32_t last; /* the step that needs it last, for predictions */
} onxi_shard_version;

/* Which part of a node's iterations each device does. */
typedef struct onxi_assignment {
    uint32_t shards[ONXI_SHARD_DIMS];
    const int32_t *at; /* per device: row-major index of its part, -1: none */
} onxi_assignment;

typedef enum onxi_shard_step_kind { ONXI_STEP_NODE, ONXI_STEP_MOVE, ONXI_STEP_REDUCE } onxi_shard_step_kind;

typedef struct onxi_shard_step {
    onxi_shard_step_kind kind;
    uint32_t node;                     /* NODE, REDUCE */
    const onxi_assignment *assignment; /* NODE, REDUCE */
    uint32_t value;                    /* MOVE, REDUCE */
    uint32_t output;                   /* REDUCE: of the node */
    const onxi_placement **in, **out;  /* NODE: of its operands, NULL: omitted */
    const onxi_placement *from, *to;   /* MOVE; `to` of REDUCE */
} onxi_shard_step;

typedef struct onxi_shard_node {
    const onx_node *node;
    const onxi_bound *bound;
    onxi_attrs attrs;
    const struct onxi_split_row *row; /* what is known of its operator, NULL: nothing of its own (shard_rules.h) */
    onxi_shard_rule rule;
    uint32_t *inputs, *outputs; /* values */
    uint32_t *captured;         /* values that its subgraphs read */
    uint32_t captured_count;
    const onx_node_device_configuration *device; /* what the configuration says of it; NULL: nothing */
    bool live, constant;
} onxi_shard_node;

typedef struct onxi_shard_plan {
    onx_ctx *cx;
    onx_doc *doc; /* a copy whose inputs have their shapes */
    const onx_model *model;
    const onx_graph *graph;
    const onx_device_configuration *configuration;
    onx_arena *arena;
    onxi_placements placements;
    onxi_binder binder;
    onxi_functions functions;
    onxi_dict names;
    onxi_shard_value *value;
    onxi_shard_node *node;
    uint32_t value_count, value_room, node_count;
    onxi_shard_step *step;
    uint32_t step_count, step_room;
    uint32_t version_count;                   /* of all values */
    const onxi_placement *everywhere, *root;  /* whole on all, on device 0 */
    int32_t *scratch;                         /* per device, of onxi_shard_project */
    uint32_t *part;                           /* per dimension and device, of the node that is being placed */
    bool *on;                                 /* twice per device, of the same */
    const struct onxi_assignment *assignment; /* that was made last */
    uint32_t *operand; /* per value: which operand it is of the node whose annotations are read; of others, anything */
    int64_t *stages;   /* pipeline stages in order */
    uint32_t stage_count;
    bool strict, outputs_everywhere;
    bool overlaps; /* ranks compute while values are in transit */
} onxi_shard_plan;

/* Values and nodes with what is known of them (shard_read.c). */
onx_status onxi_shard_read(onxi_shard_plan *plan);
/* Reads the model and places everything. */
onx_status onxi_shard_plan_make(onxi_shard_plan *plan);
uint32_t onxi_shard_value_find(const onxi_shard_plan *plan, onx_str name);
/* The value as it is placed, NULL: it never is. */
onxi_shard_version *onxi_shard_version_find(const onxi_shard_plan *plan, uint32_t value, const onxi_placement *p);
/* The placement of an operand (inputs, then outputs) that an assignment makes. NULL when out of memory. */
const onxi_placement *onxi_shard_project(onxi_shard_plan *plan, const onxi_shard_node *n, const onxi_assignment *a,
                                         uint32_t operand);
/* Which part of dimension `dim` a device does. */
uint32_t onxi_shard_part(const onxi_shard_rule *rule, const onxi_assignment *a, uint32_t device, uint32_t dim);
/* Which of the parts that are combined a device has. */
uint32_t onxi_shard_reduced_part(const onxi_shard_rule *rule, const onxi_assignment *a, uint32_t device);
/* Are results to be added up? */
bool onxi_shard_is_partial(const onxi_shard_rule *rule, const onxi_assignment *a);
/* A diagnostic about a node: a note, or an error where the plan is strict. */
onx_status onxi_shard_note(onxi_shard_plan *plan, uint32_t node, const char *format, ...) ONX_PRINTF(3, 4);

/* ---- the order of its steps (shard_order.c) ---- */

/* Lists the steps of a plan anew, so that there is something to do while values are on their way. */
onx_status onxi_shard_order(onxi_shard_plan *plan);

/* ---- what nodes take (shard_cost.c) ---- */

typedef struct onxi_shard_work {
    double operations, bytes; /* additions and multiplications; read and written */
    double weights;           /* those of `bytes` that are constants */
    double rows;              /* that a product multiplies its weights by, else 1 */
} onxi_shard_work;

/* Of the whole node; zeros where that is not known. */
onxi_shard_work onxi_shard_work_of(const onxi_shard_plan *plan, const onxi_shard_node *n);
/* Of one part of `parts`, whose operands are placed like `in`, inputs and then outputs: what `device` has of them. */
onxi_shard_work onxi_shard_work_at(const onxi_shard_plan *plan, const onxi_shard_node *n,
                                   const onxi_placement *const *in, double parts, uint32_t device);

/* ---- annotations (shard_spec.c) ---- */

/* Devices, as a placement of any value has them, that a spec is about, and how it splits it; NULL, with a note, for
 * what cannot be done. `value` may be NULL: not known. */
onx_status onxi_shard_spec_read(onxi_shard_plan *plan, uint32_t node, const onx_sharding_spec *spec,
                                const onxi_shard_value *value, const onxi_placement **out);

/* ---- the model of one rank (shard_write.c) ---- */

/* `out` gets inputs that the caller gives, in their order, and the outputs on rank 0; unused outputs follow.
 */
onx_status onxi_shard_write(onxi_shard_plan *plan, uint32_t rank, onx_doc *out, onx_shard_summary *summary);

/* ---- collectives (shard_kernel.c) ---- */

typedef struct onxi_shard_runtime {
    onx_comm comm;
    uint64_t timeout_ns;
} onxi_shard_runtime;

enum { ONXI_SHARD_KERNELS = 24 };
/* Rows for sessions, the end included; `runtime` outlives them. */
void onxi_shard_kernels(const onxi_shard_runtime *runtime, onx_kernel rows[ONXI_SHARD_KERNELS]);

/* Names of operators of the domain, and what the numbers in attribute `pieces` are. */
typedef enum onxi_piece_kind { ONXI_PIECE_COPY, ONXI_PIECE_SEND, ONXI_PIECE_RECEIVE } onxi_piece_kind;
enum { ONXI_PIECE_HEAD = 2 /* kind, rank; then for each axis: where in the input, where in the output, how much */ };

/* ---- partial results (shard_sum.c) ---- */

typedef enum onxi_sum_kind { ONXI_SUM_ADD, ONXI_SUM_LARGEST, ONXI_SUM_SMALLEST, ONXI_SUM_MULTIPLY } onxi_sum_kind;
typedef struct onxi_shard_sum {
    int dtype;
    onxi_sum_kind kind;
    uint32_t parts;
    double scale;
} onxi_shard_sum;
/* `count` elements of each part; `out` may be one of them. False for types that have no sum. */
bool onxi_shard_sum_up(const onxi_shard_sum *s, const void *const *part, void *out, uint64_t count);

/* Sums over many values, or devices, end at the largest number: a plan for what no device can hold is still a plan. */
static inline uint64_t onxi_shard_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Does each of the devices get all parts of a sum and add them up for itself? That takes one exchange instead of two,
 * and, where there are more than two devices, more bytes. */
static inline bool onxi_shard_adds_alone(uint64_t members, uint64_t bytes)
{
    enum { AT_ONCE = 4000, BYTES_MOST = 1 << 17, MORE_MOST = 32 << 10 };
    if (bytes > AT_ONCE && bytes <= 2 * AT_ONCE) /* halves go immediately, where both sides would have to agree first */
        return false;
    return bytes <= BYTES_MOST && bytes * (members - 2) <= MORE_MOST;
}
/* What each of them gets from the others. */
static inline uint64_t onxi_shard_sum_bytes(uint64_t members, uint64_t bytes)
{
    return onxi_shard_adds_alone(members, bytes) ? bytes * (members - 1) : 2 * bytes * (members - 1) / members;
}

/* Says what an exchange failed of. */
onx_status onxi_shard_failed(onx_ctx *cx, onx_status status, uint32_t rank, uint64_t timeout_ns);

#endif

/* shard.h - shared by the files that distribute a model over devices: placements of values, how nodes may be split, the
 * plan of all ranks, and the model of one rank. docs/notes/shard.md */
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
    ONXI_SHARD_RANK = 8,          /* maximum number of axes of values that are split */
    ONXI_SHARD_DIMS = 16,         /* maximum number of dimensions of a node's iteration space */
    ONXI_SHARD_AHEAD = 16,        /* how many steps before its use a value is sent at most, because it occupies memory
                                   * from then on */
    ONXI_SHARD_DEVICES_MAX = 4096 /* in a configuration */
};

/* ---- placements (shard_placement.c) ---- */

/* Which shard of a value each device has. Equal placements share one object. */
typedef struct onxi_placement {
    struct onxi_placement *next;
    uint32_t axis_count, shards;                            /* total number of shards */
    uint32_t axis[ONXI_SHARD_RANK], count[ONXI_SHARD_RANK]; /* ascending; count > 1 */
    const int32_t *at;                                      /* per device: row-major index of its shard, -1: none */
    const uint32_t *first, *holder; /* devices that have shard j: holder[first[j]] .. holder[first[j + 1] - 1] */
} onxi_placement;

typedef struct onxi_placements {
    onx_arena *arena;
    uint32_t devices;
    onxi_placement *all;
} onxi_placements;

/* A part of a value. */
typedef struct onxi_box {
    int64_t start[ONXI_SHARD_RANK], size[ONXI_SHARD_RANK];
} onxi_box;

/* The start of shard `index` of `count` along an axis. The last one ends where shard `count` would begin. */
static inline int64_t onxi_shard_start(int64_t size, uint32_t count, uint32_t index)
{
    return size * index / count; /* values that are split have less than 2^48 elements */
}
/* `at` is copied; axes with a single shard are dropped. NULL when out of memory, or if a shard is on no device. */
const onxi_placement *onxi_placement_make(onxi_placements *all, uint32_t axis_count, const uint32_t *axis,
                                          const uint32_t *count, const int32_t *at);
/* The whole value on the devices in `on` (NULL: on all). */
const onxi_placement *onxi_placement_whole(onxi_placements *all, const bool *on);
/* The range of shard `index`. */
onxi_box onxi_placement_box(const onxi_placement *p, const int64_t *dims, uint32_t rank, uint32_t index);
/* False if they do not intersect. */
bool onxi_box_meet(const onxi_box *a, const onxi_box *b, uint32_t rank, onxi_box *out);
bool onxi_box_same(const onxi_box *a, const onxi_box *b, uint32_t rank);
int64_t onxi_box_count(const onxi_box *b, uint32_t rank);
/* The number of elements that all devices together lack of `to` if they have `from`. */
uint64_t onxi_placement_cost(const onxi_placements *all, const onxi_placement *from, const onxi_placement *to,
                             const int64_t *dims, uint32_t rank);
/* The device that sends shard `index` to a device that lacks it. */
uint32_t onxi_placement_source(const onxi_placement *p, uint32_t index, uint32_t device);

/* ---- how a node may be split (shard_rules.c) ---- */

struct onxi_split_row; /* shard_rules.h */

typedef enum onxi_shard_kind { /* of a dimension of a node's iteration space */
                               ONXI_SHARD_PARALLEL,
                               ONXI_SHARD_SUM, /* the results of shards are added up */
                               ONXI_SHARD_MEAN,
                               ONXI_SHARD_MAX,
                               ONXI_SHARD_MIN,
                               ONXI_SHARD_PRODUCT
} onxi_shard_kind;

typedef enum onxi_shard_fix { /* changes in the node of a shard */
                              ONXI_SHARD_KEEP,
                              ONXI_SHARD_SHAPE,    /* input 1 is replaced by the shape of output 0 */
                              ONXI_SHARD_COUNTS,   /* attributes with numbers of groups or heads are set to those of the
                                                    * shard */
                              ONXI_SHARD_LOOKUP,   /* a Gather with a part of the rows: other rows yield zeros */
                              ONXI_SHARD_SIZES,    /* two attributes: the sizes of the last axes of input 0 and of
                                                    * output 0 */
                              ONXI_SHARD_DIRECTION /* one direction of a bidirectional recurrent layer */
} onxi_shard_fix;

typedef struct onxi_shard_dim {
    int64_t size;
    int64_t unit; /* the number of shards has to divide it; 0: any number up to `size` */
    onxi_shard_kind kind;
} onxi_shard_dim;

typedef struct onxi_shard_rule {
    onxi_shard_dim dim[ONXI_SHARD_DIMS];
    int8_t (*map)[ONXI_SHARD_RANK]; /* per input, then per output, and axis: its dimension, -1: never split */
    uint32_t dim_count;
    onxi_shard_fix fix;
    uint32_t fix_dim;
    const char *const *names; /* for COUNTS and SIZES, ended by NULL */
    int32_t once;             /* an input that only the first of the shards that are summed has, such as a bias; -1:
                               * none */
    int32_t unread;           /* an input that is not read any more, because it is replaced; -1: none */
} onxi_shard_rule;

typedef struct onxi_shard_value {
    onx_str name;
    int64_t dims[ONXI_SHARD_RANK];
    uint32_t rank;
    int32_t dtype;
    bool known;               /* a tensor of known dims whose elements are whole bytes: it can be split and moved */
    const onx_tensor *tensor; /* if it is an initializer */
    const onx_sparse_tensor *sparse;
    bool input;     /* given by the caller */
    bool constant;  /* depends on constants only; computed when and where it is needed */
    uint32_t depth; /* number of nodes on the longest path that computes a constant */
    uint32_t node;  /* the node that computes it */
    struct onxi_shard_version *versions;
} onxi_shard_value;

/* A node, as rules see it. */
typedef struct onxi_shard_subject {
    struct onxi_shard_plan *plan;
    const onx_node *node;
    const onxi_bound *bound;
    const onxi_attrs *attrs;
    const uint32_t *inputs, *outputs; /* values, ONXI_SHARD_NONE: omitted */
} onxi_shard_subject;

/* `rule` has one row of -1 per operand, which is left unchanged if nothing is known about the operator, whose `row`
 * comes from onxi_split_row_find. */
void onxi_shard_rule_find(const onxi_shard_subject *s, const struct onxi_split_row *row, onxi_shard_rule *rule);
/* NULL if there is none. */
const struct onxi_split_row *onxi_split_row_find(onxi_op_id op);

/* ---- the plan of all ranks (shard_plan.c) ---- */

/* A value with a placement. */
typedef struct onxi_shard_version {
    struct onxi_shard_version *next;
    const onxi_placement *placement;
    uint32_t id;   /* index in the list of the finished plan */
    uint32_t last; /* the last step that needs it, for predictions */
} onxi_shard_version;

/* Which part of a node's iteration space each device computes. */
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
    const struct onxi_split_row *row; /* properties of its operator, NULL: none (shard_rules.h) */
    onxi_shard_rule rule;
    uint32_t *inputs, *outputs; /* values */
    uint32_t *captured;         /* captured by its subgraphs */
    uint32_t captured_count;
    const onx_node_device_configuration *device; /* its annotations in the configuration; NULL: none */
    bool live, constant;
} onxi_shard_node;

typedef struct onxi_shard_plan {
    onx_ctx *cx;
    onx_doc *doc; /* a copy in which inputs have concrete shapes */
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
    const onxi_placement *everywhere, *root;  /* the whole value on all devices, and on device 0 */
    int32_t *scratch;                         /* per device, for onxi_shard_project */
    uint32_t *part;                           /* per dimension and device, for the node that is being placed */
    bool *on;                                 /* two per device, for the same node */
    const struct onxi_assignment *assignment; /* the latest one */
    uint32_t *operand; /* per value: its operand index in the node whose annotations are read; undefined for other
                        * values */
    int64_t *stages;   /* pipeline stages in ascending order */
    uint32_t stage_count;
    bool strict, outputs_everywhere;
    bool overlaps; /* ranks compute while values are in transit */
} onxi_shard_plan;

/* Values and nodes with their properties (shard_read.c). */
onx_status onxi_shard_read(onxi_shard_plan *plan);
/* Reads the model and assigns placements. */
onx_status onxi_shard_plan_make(onxi_shard_plan *plan);
uint32_t onxi_shard_value_find(const onxi_shard_plan *plan, onx_str name);
/* The value with that placement, NULL if it never has it. */
onxi_shard_version *onxi_shard_version_find(const onxi_shard_plan *plan, uint32_t value, const onxi_placement *p);
/* The placement of an operand (inputs, then outputs) under an assignment. NULL when out of memory. */
const onxi_placement *onxi_shard_project(onxi_shard_plan *plan, const onxi_shard_node *n, const onxi_assignment *a,
                                         uint32_t operand);
/* The part of dimension `dim` that a device computes. */
uint32_t onxi_shard_part(const onxi_shard_rule *rule, const onxi_assignment *a, uint32_t device, uint32_t dim);
/* The index of the partial result that a device has. */
uint32_t onxi_shard_reduced_part(const onxi_shard_rule *rule, const onxi_assignment *a, uint32_t device);
/* Do results have to be added up? */
bool onxi_shard_is_partial(const onxi_shard_rule *rule, const onxi_assignment *a);
/* A diagnostic about a node: a note, or an error if the plan is strict. */
onx_status onxi_shard_note(onxi_shard_plan *plan, uint32_t node, const char *format, ...) ONX_PRINTF(3, 4);

/* ---- reordering steps (shard_order.c) ---- */

/* Reorders the steps of a plan, so that devices compute while values are in transit. */
onx_status onxi_shard_order(onxi_shard_plan *plan);

/* ---- costs of nodes (shard_cost.c) ---- */

typedef struct onxi_shard_work {
    double operations, bytes; /* additions and multiplications; bytes read and written */
    double weights;           /* the part of `bytes` that are constants */
    double rows;              /* the number of rows that a product multiplies by its weights, else 1 */
} onxi_shard_work;

/* Cost of the whole node; zeros if unknown. */
onxi_shard_work onxi_shard_work_of(const onxi_shard_plan *plan, const onxi_shard_node *n);
/* Cost of one of `parts` parts on `device`, with operands (inputs, then outputs) placed as in `in`. */
onxi_shard_work onxi_shard_work_at(const onxi_shard_plan *plan, const onxi_shard_node *n,
                                   const onxi_placement *const *in, double parts, uint32_t device);

/* ---- annotations (shard_spec.c) ---- */

/* The placement that a spec describes: its devices, and how it splits the value; NULL, with a note, if that is not
 * possible. `value` may be NULL: unknown. */
onx_status onxi_shard_spec_read(onxi_shard_plan *plan, uint32_t node, const onx_sharding_spec *spec,
                                const onxi_shard_value *value, const onxi_placement **out);

/* ---- the model of one rank (shard_write.c) ---- */

/* `out` has the inputs that the caller gives, in order, and the outputs on rank 0, followed by unused outputs. */
onx_status onxi_shard_write(onxi_shard_plan *plan, uint32_t rank, onx_doc *out, onx_shard_summary *summary);

/* ---- collectives (shard_kernel.c) ---- */

typedef struct onxi_shard_runtime {
    onx_comm comm;
    uint64_t timeout_ns;
} onxi_shard_runtime;

enum { ONXI_SHARD_KERNELS = 24 };
/* The kernel rows for sessions, including the terminator; `runtime` must outlive them. */
void onxi_shard_kernels(const onxi_shard_runtime *runtime, onx_kernel rows[ONXI_SHARD_KERNELS]);

/* Operator names of the domain, and the format of the attribute `pieces`. */
typedef enum onxi_piece_kind { ONXI_PIECE_COPY, ONXI_PIECE_SEND, ONXI_PIECE_RECEIVE } onxi_piece_kind;
enum { ONXI_PIECE_HEAD = 2 /* kind, rank; then for each axis: offset in the input, offset in the output, size */ };

/* ---- partial results (shard_sum.c) ---- */

typedef enum onxi_sum_kind { ONXI_SUM_ADD, ONXI_SUM_LARGEST, ONXI_SUM_SMALLEST, ONXI_SUM_MULTIPLY } onxi_sum_kind;
typedef struct onxi_shard_sum {
    int dtype;
    onxi_sum_kind kind;
    uint32_t parts;
    double scale;
} onxi_shard_sum;
/* Adds `count` elements of each part; `out` may be one of them. False for types that cannot be added. */
bool onxi_shard_sum_up(const onxi_shard_sum *s, const void *const *part, void *out, uint64_t count);

/* Sums over many values or devices saturate: a plan that exceeds the memory of every device is still a valid plan. */
static inline uint64_t onxi_shard_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Does each device receive all partial results and add them up itself? This needs one exchange instead of two but, with
 * more than two devices, transfers more bytes. */
static inline bool onxi_shard_adds_alone(uint64_t members, uint64_t bytes)
{
    enum { AT_ONCE = 4000, BYTES_MOST = 1 << 17, MORE_MOST = 32 << 10 };
    if (bytes > AT_ONCE && bytes <= 2 * AT_ONCE) /* halves are sent eagerly, while larger messages need a handshake */
        return false;
    return bytes <= BYTES_MOST && bytes * (members - 2) <= MORE_MOST;
}
/* The bytes that each device receives from the others. */
static inline uint64_t onxi_shard_sum_bytes(uint64_t members, uint64_t bytes)
{
    return onxi_shard_adds_alone(members, bytes) ? bytes * (members - 1) : 2 * bytes * (members - 1) / members;
}

/* Reports why an exchange failed. */
onx_status onxi_shard_failed(onx_ctx *cx, onx_status status, uint32_t rank, uint64_t timeout_ns);

#endif

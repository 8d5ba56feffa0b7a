/* registry.h - the internals of a registry of operators that are not built in, for op/registry/registry.c,
 * op/registry/custom.c and op/registry/document.c. */
#ifndef ONXI_OP_REGISTRY_H
#define ONXI_OP_REGISTRY_H

#include "op/op.h"

/* An operator with all its versions. */
typedef struct onxi_entry {
    onx_str domain, name;
    onxi_schema *rows; /* newest first; ends with a NULL name; when a version is added, the array is replaced, not
                        * changed */
    uint32_t count;
} onxi_entry;

typedef struct onxi_known_domain {
    onx_str name;
    int64_t newest;
    bool closed; /* a document has defined all of its operators */
} onxi_known_domain;

/* A document that was loaded. */
typedef struct onxi_loaded {
    struct onxi_loaded *next;
    onx_str domain;
    int64_t version;
} onxi_loaded;

/* A shared library with operators. */
typedef struct onxi_plugin {
    struct onxi_plugin *next;
    const char *path;
    void *handle;
} onxi_plugin;

struct onx_registry {
    onx_ctx *cx;
    onx_arena *arena;
    onxi_entry *entries;
    size_t entry_count, entry_room;
    onxi_table table; /* of entries */
    onxi_known_domain *domains;
    size_t domain_count, domain_room;
    onxi_dict by_name; /* indexes of domains */
    onxi_loaded *loaded;
    onxi_plugin *plugins; /* the last loaded one comes first */
};

/* Data registered from C in addition to the schema. */
typedef struct onxi_custom {
    onx_status (*infer)(void *user, onx_op_call *call);
    void *user;
    const struct onx_kernel *kernel;
} onxi_custom;

void onxi_registry_close_plugins(onx_registry *registry);
/* A terminated copy in the arena; NULL when out of memory. */
const char *onxi_registry_text(onx_registry *registry, onx_str text);
/* Adds versions of one operator, newest first; the rows are copied. An existing version is an error or, with `known`,
 * is kept. */
onx_status onxi_registry_add(onx_registry *registry, const onxi_schema *rows, uint32_t count, bool known);
/* Is the version one that the library does not have: is the operator not built in, or is the version newer than the
 * newest of its domain? */
bool onxi_registry_may_define(onx_str domain, onx_str name, int64_t since);
/* The domain's record, created on first use; NULL when out of memory. It may move when another one is created. */
onxi_known_domain *onxi_registry_domain(onx_registry *registry, onx_str name);
/* Sets the bounds that follow from the ports. */
void onxi_schema_count_ports(onxi_schema *schema);

/* ---- operator-set documents ---- */

/* An operator or function of a set. */
typedef struct onxi_opset_item {
    onx_str name;
    int64_t since;    /* of operators */
    onx_str overload; /* of functions */
    uint32_t index;
    bool is_function;
} onxi_opset_item;

/* The items sorted by name, operators before functions, newest version first; release count + 1 of them. */
onx_status onxi_opset_list(onx_ctx *cx, const onx_operator_set *set, onxi_opset_item **out, size_t *count_out);
/* Reports a violated rule. */
void onxi_opset_report(onx_ctx *cx, const char *rule, onx_severity severity, const char *path, onx_str value,
                       const char *format, ...) ONX_PRINTF(6, 7);
/* A note if the name does not follow the conventions for authors of operators (N-12). */
void onxi_lint_attribute(onx_ctx *cx, const char *where, onx_str name);
/* Negative, 0 or positive as a sorts before, with, or after b in byte order. */
int onxi_str_order(onx_str a, onx_str b);

#endif

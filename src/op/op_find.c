/* op_find.c - the table of all operators and the look-up by name: a hash table that is generated at build time
 * (scripts/op_hash.c), so that a look-up costs one hash and one comparison, and nothing is initialised at start-up. */
#include "op/op.h"
#include "op/op_hash.h"

const onxi_family_row onxi_families[ONXI_FAMILY_COUNT] = {
#define FAMILY(name, title, work) { #name, title, work },
#include "op/families.def"
};

#define OPERATOR(domain, name, family, traits, summary)            extern const onxi_schema onxi_op_##name[];
#define OPERATOR_AS(symbol, domain, name, family, traits, summary) extern const onxi_schema onxi_op_##symbol[];
#include "op/operators.def"

/* The macros of operators.def. */
enum {
    ELEMENTWISE = ONXI_TRAIT_ELEMENTWISE,
    KEEPS_AXES = ONXI_TRAIT_KEEPS_AXES,
    REDUCTION = ONXI_TRAIT_REDUCTION,
    WINDOW = ONXI_TRAIT_WINDOW,
    CHANNELS = ONXI_TRAIT_CHANNELS,
    NAMES_VALUES = ONXI_TRAIT_NAMES_VALUES,
    PLACES = ONXI_TRAIT_PLACES,
    SHAPE = ONXI_TRAIT_SHAPE,
    BITS = ONXI_TRAIT_BITS,
    DEVICE = ONXI_TRAIT_DEVICE,
    COMPILED = ONXI_TRAIT_COMPILED,
    PARTLY = ONXI_TRAIT_PARTLY,
};

const onxi_operator onxi_operators[] = {
#define OPERATOR(domain, name, family, traits, summary) OPERATOR_AS(name, domain, name, family, traits, summary)
#define OPERATOR_AS(symbol, domain, name, family, traits, summary)                                                     \
    { domain, #name, sizeof(domain) - 1, sizeof(#name) - 1, ONXI_FAMILY_##family, traits, summary, onxi_op_##symbol },
#include "op/operators.def"
};

const uint32_t onxi_operator_count = sizeof onxi_operators / sizeof *onxi_operators;

/* Index into onxi_operators plus 1; 0: free. The size is a power of two, and at most half of the slots are used. */
static const uint16_t slots[] = {
#include "op_hash.inc"
};

/* The first operator of that name from slot *at on, which is advanced past it. Operators of the standard come first. */
static const onxi_operator *next_of_name(onx_str domain, onx_str name, uint32_t *at)
{
    const uint32_t mask = sizeof slots / sizeof *slots - 1;
    for (;; ++*at) {
        const uint16_t slot = slots[*at & mask];
        if (!slot)
            return NULL;
        const onxi_operator *op = &onxi_operators[slot - 1];
        if (onx_str_equal(name, onx_str_make(op->name, op->name_length)) &&
            onx_str_equal(domain, onx_str_make(op->domain, op->domain_length))) {
            ++*at;
            return op;
        }
    }
}

bool onxi_node_is(const onx_node *node, onxi_op_id id)
{
    const onxi_operator *op = onxi_operator_of(id);
    return op && onx_str_equal(onx_view(node->op_type), onx_str_make(op->name, op->name_length)) &&
           onx_str_equal(onxi_domain_plain(onx_view(node->domain)), onx_str_make(op->domain, op->domain_length));
}

bool onxi_node_has_operands(const onx_node *node, const onxi_schema *row)
{
    bool has = onxi_arity_fits(node->input_count, row->min_input, row->max_input) &&
               onxi_arity_fits(node->output_count, row->min_output, row->max_output);
    for (uint32_t i = 0; has && i < node->input_count; i++) {
        const onxi_port *port = onxi_port_at(row->inputs, i);
        has = onx_view(node->input[i]).len || !port || port->flags & (ONXI_PORT_OPTIONAL | ONXI_PORT_VARIADIC);
    }
    return has;
}

const onxi_operator *onxi_operator_find(onx_str domain, onx_str name)
{
    domain = onxi_domain_plain(domain);
    uint32_t at = onxi_op_hash(domain.ptr, domain.len, name.ptr, name.len);
    return next_of_name(domain, name, &at);
}

/* The row in effect; *out: its operator. A domain may have rows for versions before the first one of the standard. */
static const onxi_schema *in_force(onx_str domain, onx_str name, int64_t opset, const onxi_operator **out)
{
    domain = onxi_domain_plain(domain);
    uint32_t at = onxi_op_hash(domain.ptr, domain.len, name.ptr, name.len);
    while ((*out = next_of_name(domain, name, &at)))
        for (const onxi_schema *row = (*out)->rows; row->name; row++)
            if (row->since <= opset)
                return row;
    return NULL;
}

const onxi_operator *onxi_operator_at(onx_str domain, onx_str name, int64_t opset)
{
    const onxi_operator *op;
    return in_force(domain, name, opset, &op) ? op : NULL;
}

const onxi_schema *onxi_schema_newest(onx_str domain, onx_str name)
{
    const onxi_operator *op = onxi_operator_find(domain, name);
    return op ? op->rows : NULL;
}

const onxi_schema *onxi_schema_find(onx_str domain, onx_str name, int64_t opset)
{
    const onxi_operator *op;
    return in_force(domain, name, opset, &op);
}

int64_t onxi_domain_newest(onx_str domain)
{
    int64_t newest = 0;
    domain = onxi_domain_plain(domain);
    for (uint32_t i = 0; i < onxi_operator_count; i++)
        if (onxi_operators[i].rows->since > newest && onx_str_is(domain, onxi_operators[i].domain))
            newest = onxi_operators[i].rows->since;
    return newest;
}

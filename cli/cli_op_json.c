/* cli_op_json.c - an operator as JSON, for `onx ops --json` and the page of `onx view`. */
#include "cli_op_words.h"

#include <onx/grad.h>
#include <onx/kernel.h>

enum { TEXT = 8192 };

uint32_t cli_op_kernels(const onx_op *op, const char *variants[CLI_OP_VARIANTS])
{
    const onx_kernel *own = onx_op_kernel(op);
    if (own) {
        variants[0] = own->variant ? own->variant : "plain";
        return 1;
    }
    const uint32_t count = onx_kernel_variants(onx_str_of(onx_op_domain(op)), onx_str_of(onx_op_name(op)),
                                               onx_op_since(op), variants, CLI_OP_VARIANTS);
    return count < CLI_OP_VARIANTS ? count : CLI_OP_VARIANTS;
}

typedef const onx_op_port *(*port_at)(const onx_op *op, uint32_t index);

static void json_ports(cli_json *json, const char *key, const onx_op *op, port_at at)
{
    cli_json_open(json, key, '[');
    for (uint32_t i = 0; at(op, i); i++) {
        const onx_op_port *port = at(op, i);
        cli_json_open(json, NULL, '{');
        cli_json_cstr(json, "name", port->name);
        cli_json_cstr(json, "type", port->type);
        if (cli_op_word(op, port->name))
            cli_json_cstr(json, "meaning", cli_op_word(op, port->name));
        if (port->flags & (ONX_PORT_OPTIONAL | ONX_PORT_VARIADIC))
            cli_json_cstr(json, "option", port->flags & ONX_PORT_VARIADIC ? "variadic" : "optional");
        if (port->flags & ONX_PORT_VARIADIC) {
            cli_json_bool(json, "homogeneous", !(port->flags & ONX_PORT_HETEROGENEOUS));
            cli_json_int(json, "min_arity", port->flags & ONX_PORT_ARITY_0 ? 0 : 1);
        }
        if (port->flags & (ONX_PORT_DIFF | ONX_PORT_NONDIFF))
            cli_json_cstr(json, "differentiation",
                          port->flags & ONX_PORT_DIFF ? "differentiable" : "nondifferentiable");
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_attributes(cli_json *json, const onx_op *op)
{
    cli_json_open(json, "attributes", '[');
    for (uint32_t i = 0; onx_op_attribute_at(op, i); i++) {
        const onx_op_attribute *a = onx_op_attribute_at(op, i);
        cli_json_open(json, NULL, '{');
        cli_json_cstr(json, "name", a->name);
        cli_json_cstr(json, "type", onx_attribute_type_name(a->type));
        cli_json_bool(json, "required", a->required);
        if (cli_op_word(op, a->name))
            cli_json_cstr(json, "meaning", cli_op_word(op, a->name));
        if (a->default_text)
            cli_json_cstr(json, "default", a->default_text);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_types(cli_json *json, const onx_op *op)
{
    cli_json_open(json, "type_constraints", '{');
    for (uint32_t i = 0; onx_op_type_name(op, i); i++) {
        char text[ONX_OP_TYPE_TEXT];
        uint32_t at = 0;
        cli_json_open(json, onx_op_type_name(op, i), '[');
        while (onx_op_type_next(op, i, &at, text))
            cli_json_cstr(json, NULL, text);
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
}

static void json_arity(cli_json *json, const char *key, uint32_t max)
{
    if (max == ONX_OP_MANY)
        cli_json_cstr(json, key, NULL);
    else
        cli_json_uint(json, key, max);
}

void cli_op_json(cli_json *json, const onx_op *op)
{
    char text[TEXT];
    const uint32_t flags = onx_op_flags(op);
    cli_json_open(json, NULL, '{');
    cli_json_cstr(json, "domain", onx_op_domain(op));
    cli_json_cstr(json, "name", onx_op_name(op));
    cli_json_int(json, "since_version", onx_op_since(op));
    cli_json_cstr(json, "family", onx_op_family(op));
    cli_json_cstr(json, "summary", onx_op_summary(op));
    cli_json_cstr(json, "status", flags & ONX_OP_EXPERIMENTAL ? "experimental" : "common");
    cli_json_bool(json, "standard", flags & ONX_OP_STANDARD);
    cli_json_bool(json, "deprecated", flags & ONX_OP_DEPRECATED);
    onx_op_signature(op, text, sizeof text);
    cli_json_cstr(json, "signature", text);
    onx_op_change(op, text, sizeof text);
    cli_json_cstr(json, "change", text);
    json_ports(json, "inputs", op, onx_op_input);
    json_ports(json, "outputs", op, onx_op_output);
    cli_json_uint(json, "min_input", onx_op_min_input(op));
    json_arity(json, "max_input", onx_op_max_input(op));
    cli_json_uint(json, "min_output", onx_op_min_output(op));
    json_arity(json, "max_output", onx_op_max_output(op));
    json_attributes(json, op);
    json_types(json, op);
    cli_json_bool(json, "has_function_body", flags & ONX_OP_FUNCTION);
    cli_json_bool(json, "function_body_is_context_dependent", flags & ONX_OP_CONTEXT_FUNCTION);
    cli_json_bool(json, "infers_types_and_shapes", flags & ONX_OP_INFERS);
    cli_json_bool(json, "propagates_data", flags & ONX_OP_PROPAGATES);
    const char *variants[CLI_OP_VARIANTS];
    const uint32_t count = cli_op_kernels(op, variants);
    cli_json_open(json, "kernels", '[');
    for (uint32_t i = 0; i < count; i++)
        cli_json_cstr(json, NULL, variants[i]);
    cli_json_close(json, ']');
    cli_json_bool(json, "runs_by_other_operators", !count && onx_op_is_composed(op));
    cli_json_bool(json, "has_gradient", onx_grad_knows(op));
    cli_json_cstr(json, "node_determinism",
                  flags & ONX_OP_NONDETERMINISTIC      ? "nondeterministic"
                  : flags & ONX_OP_DETERMINISM_UNKNOWN ? "unknown"
                                                       : "deterministic");
    cli_json_close(json, '}');
}

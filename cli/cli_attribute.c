/* cli_attribute.c - integer values of attributes, given by nodes or defaults of their operators. */
#include "cli_attribute.h"

#include <stdlib.h>
#include <string.h>

static onx_str plain(onx_bytes domain)
{
    const onx_str name = onx_view(domain);
    return onx_str_is(name, "ai.onnx") ? (onx_str){ 0 } : name;
}

const onx_op *cli_op_of(const onx_model *model, const onx_node *node)
{
    int64_t version = 0; /* of several entries the highest counts */
    for (uint32_t i = 0; i < model->opset_import_count; i++) {
        const onx_operator_set_id *id = model->opset_import[i];
        if (onx_str_equal(plain(id->domain), plain(node->domain)) && id->version > version)
            version = id->version;
    }
    return version ? onx_op_find(plain(node->domain), onx_view(node->op_type), version) : NULL;
}

bool cli_node_is(const onx_node *node, const char *op)
{
    return onx_str_is(onx_view(node->op_type), op) && !plain(node->domain).len;
}

static const onx_op_attribute *attribute_of(const onx_op *op, const char *name)
{
    const onx_op_attribute *a;
    for (uint32_t i = 0; op && (a = onx_op_attribute_at(op, i)); i++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

bool cli_op_has_attribute(const onx_op *op, const char *name)
{
    return attribute_of(op, name) != NULL;
}

bool cli_attribute_number(const onx_attribute *attribute, double *out)
{
    uint32_t count;
    const int64_t *whole = attribute ? onx_attribute_value(attribute, ONX_SLOT_I, &count) : NULL;
    const float *real = attribute ? onx_attribute_value(attribute, ONX_SLOT_F, &count) : NULL;
    if (whole || real)
        *out = whole ? (double)*whole : (double)*real;
    return whole || real;
}

int64_t cli_attribute_int(const onx_op *op, const onx_node *node, const char *name)
{
    uint32_t count;
    const onx_attribute *given = onx_node_attribute(node, name);
    const int64_t *value = given ? onx_attribute_value(given, ONX_SLOT_I, &count) : NULL;
    const onx_op_attribute *a = attribute_of(op, name);
    if (given || !a || !a->default_text)
        return value ? *value : 0;
    return strtoll(a->default_text, NULL, 10);
}

/* cli_view_rows.c - the text below operator names in boxes: weights and constants. */
#include "cli_attribute.h"
#include "cli_view.h"

#include <onx/tensor.h>

/* The maximum number of elements that are printed, and of columns for other values. */
enum { NUMBERS_MOST = 4, COLUMNS_MOST = 24 };

/* The elements of a tensor with few elements and at most one axis, if it is valid. */
static bool read_numbers(const cli_view *view, const onx_tensor *t, double *numbers, uint64_t *count)
{
    uint64_t bytes;
    if (t->data_type == ONX_STRING || onx_tensor_is_external(t) || !onx_tensor_count(t, count) || !*count ||
        *count > NUMBERS_MOST || (t->dims_count > 1 && *count > 1) || !onx_dtype_size(t->data_type, *count, &bytes))
        return false;
    return (onx_view(t->raw_data).len == bytes || (t->data_type == ONX_FLOAT && t->float_data_count == *count) ||
            (t->data_type == ONX_INT64 && t->int64_data_count == *count)) &&
           onx_tensor_get_f64(view->doc, t, 0, *count, numbers) == ONX_OK;
}

/* Writes to `to`: = 3, = [0,2], or, for more elements, 64×3×7×7. Returns whether elements were written. */
static bool put_tensor(const cli_view *view, const onx_tensor *t, char *to, size_t size)
{
    double number[NUMBERS_MOST];
    uint64_t count;
    size_t n = 0;
    if (read_numbers(view, t, number, &count)) {
        n = (size_t)snprintf(to, size, count > 1 ? "= [" : "= ");
        for (uint32_t i = 0; i < count; i++)
            n += (size_t)snprintf(to + n, size - n, "%s%.6g", i ? "," : "", number[i]);
        snprintf(to + n, size - n, count > 1 ? "]" : "");
        return true;
    }
    snprintf(to, size, "scalar");
    for (uint32_t i = 0; i < t->dims_count && n < size - 32; i++)
        n += (size_t)snprintf(to + n, size - n, "%s%lld", i ? "×" : "", (long long)t->dims[i]);
    return false;
}

uint32_t view_weight_row(cli_view *view, const onx_op *op, uint32_t input, const onx_tensor *t)
{
    char text[160];
    uint32_t last = 0;
    while (op && onx_op_input(op, last + 1) && last < input)
        last++;
    const onx_op_port *port = op ? onx_op_input(op, last) : NULL;
    (void)put_tensor(view, t, text, sizeof text);
    return view_format(view, "%s %s", port ? port->name : "-", text);
}

uint32_t view_constant_row(cli_view *view, const onx_node *node)
{
    if (!cli_node_is(node, "Constant") || node->attribute_count != 1)
        return 0;
    char text[160];
    uint32_t n = 0;
    const onx_attribute *a = node->attribute[0];
    onx_tensor *const *t = onx_attribute_value(a, ONX_SLOT_T, &n);
    if (t && n) {
        const bool numbers = put_tensor(view, *t, text, sizeof text);
        const char *type = onx_dtype_name((*t)->data_type);
        return view_format(view, "%s%s%s", numbers || !type ? "" : type, numbers || !type ? "" : " ", text);
    }
    const uint32_t at = view_value_text(view, a); /* may reallocate the strings */
    const onx_str value = view->string[at];
    if (!value.len)
        return 0;
    const onx_str fitting = cli_columns(value) > COLUMNS_MOST ? cli_fitting(value, COLUMNS_MOST - 1) : value;
    return view_format(view, "= %.*s%s", ONX_ARG(fitting), fitting.len < value.len ? "…" : "");
}

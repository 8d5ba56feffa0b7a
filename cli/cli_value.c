/* cli_value.c - reads and writes values in files. */
#include "cli_value.h"

#include <onx/npy.h>

/* If the file cannot be read, it becomes call->input, so that messages name it. */
static onx_status load_numpy(cli_call *call, const char *path, onx_str name, onx_value **out)
{
    onx_buffer bytes;
    const char *before = call->input;
    ONX_TRY(cli_load_bytes(call, path, &bytes));
    const onx_str file = onx_str_make(bytes.ptr, bytes.len);
    call->input = path;
    onx_status status = cli_ends_in(path, ".npz") ? onx_value_from_npz(call->cx, file, name, out)
                                                  : onx_value_from_npy(call->cx, file, out);
    if (status == ONX_OK)
        call->input = before;
    onx_buffer_free(&bytes);
    return status;
}

onx_status cli_value_load(cli_call *call, const char *path, const onx_type *type, onx_str name, onx_value **out)
{
    *out = NULL;
    if (cli_ends_in(path, ".npy") || cli_ends_in(path, ".npz"))
        return load_numpy(call, path, name, out);
    onx_kind kind = onx_value_kind_of_type(type);
    onx_doc *doc;
    const char *before = call->input;
    ONX_TRY(cli_load_as(call, path, kind ? kind : ONX_KIND_TENSOR, ONX_FORMAT_AUTO, &doc));
    kind = onx_doc_kind(doc);
    onx_status status = onx_value_from_message(call->cx, doc, kind, onx_doc_root(doc, kind), out);
    onx_doc_free(doc);
    if (status == ONX_OK)
        call->input = before;
    return status;
}

onx_status cli_value_save(cli_call *call, const char *path, const onx_value *value, onx_str name)
{
    return cli_value_save_as(call, path, false, value, name);
}

onx_status cli_value_save_as(cli_call *call, const char *path, bool npy, const onx_value *value, onx_str name)
{
    if (npy || cli_ends_in(path, ".npy")) {
        onx_buffer bytes;
        onx_status status = onx_value_to_npy(call->cx, value, &bytes);
        if (status == ONX_OK)
            status = onx_save_bytes(call->cx, path, onx_str_make(bytes.ptr, bytes.len));
        onx_buffer_free(&bytes);
        return status;
    }
    onx_doc *doc;
    ONX_TRY(onx_value_to_doc(call->cx, value, name, &doc));
    onx_status status = onx_save(call->cx, doc, path, &(onx_save_options){ .format = ONX_FORMAT_BINARY });
    onx_doc_free(doc);
    return status;
}
